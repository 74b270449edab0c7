"""Which component a tree begins with, interval by interval of the stream."""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Float64s, Int64s
from cepheid.engine.data.layout import Events
from cepheid.engine.kernels.arrays import grown
from cepheid.engine.kernels.compile import kernel
from cepheid.engine.kernels.windows import closes
from cepheid.engine.program.tables import NO_WINDOW, Program
from cepheid.engine.search.lazy.scope import Buffer, reach
from cepheid.engine.search.lazy.states import tests_something

JOINED, SEPARATE = 1, 2  # with or without events of the root that both slices can use
LEAST_SLICE = 4  # events of the last component, so that very short windows do not make more slices than they save
CHOICE = 0.25  # what it is worth that a root shares conditions with one more component


@kernel
def root_weights(program: Program, compares: bool) -> Float64s:
    """What an event of each component weighs as a root.

    All the same but for conditions: of about equally rare components, the one that shares conditions with most others
    leaves most choice of what to fill next, and one that shares none lets everything pass.
    """
    weights = np.ones(program.places)
    for root in range(program.places):
        shared = 0
        for place in range(program.places):
            shared += place != root and tests_something(program, compares, 1 << root, place)
        weights[root] = 1.0 / (1.0 + CHOICE * (shared - 1))
    return weights


@kernel
def slices_of(events: Events, program: Program, stack: Int64s, asked: Int64s) -> Int64s:
    """Cuts the asked entries of the last component by window lengths: where each slice ends."""
    ends = np.empty(16, np.int64)
    slices = 0
    begin = asked[2]
    while begin < asked[3]:
        end = asked[3]
        if program.window_kind != NO_WINDOW and events.ordered:
            end = closes(events, program, stack, begin, asked[3], stack[begin])
            end = max(end, min(begin + LEAST_SLICE, asked[3]))
        if slices == len(ends):
            ends = grown(ends)
        ends[slices] = end
        slices += 1
        begin = end
    return ends[:slices]


@kernel
def segments(
    events: Events, program: Program, buffer: Buffer, asked: Int64s, weights: Float64s
) -> tuple[Int64s, Int64s]:
    """Cuts the entries of the last component into segments with one root each: where each ends, and its root.

    A match belongs to the segment of its last event, so none is found twice. The stream is sliced by window lengths;
    a slice costs as many evaluations as the root has events in it, and a change of the root costs those of the window
    before it once more. The cheapest roots along the stream are found slice by slice (dynamic programming), so the
    rarest component is the root (LAZY section 6), but not every fluctuation changes it.
    """
    length = program.places
    final = length - 1
    ends = slices_of(events, program, buffer.stacks[final], asked)
    slices = len(ends)
    low, high = buffer.low, buffer.high
    behind = np.zeros(length, np.int64)  # how far each stack was used up to the slice before
    cost = np.zeros(length, np.float64)
    kept = np.zeros((slices, length), np.int64)  # JOINED or SEPARATE: this root was the root of the slice before, too
    best = np.zeros(slices + 1, np.int64)  # the best root up to a slice
    total = 0.0
    begin = asked[2]
    for index in range(slices):
        usable = reach(events, program, buffer, asked, begin, ends[index])
        begin = ends[index]
        cheapest = -1
        for place in range(length):
            anew = total
            gap = usable and low[place] > behind[place]
            if usable:
                anew += weights[place] * (high[place] - low[place])
                cost[place] += weights[place] * max(0, high[place] - max(low[place], behind[place]))
                behind[place] = high[place]
            if index > 0 and cost[place] <= anew:
                kept[index, place] = SEPARATE if gap else JOINED
            else:
                cost[place] = anew
            if cheapest < 0 or cost[place] < cost[cheapest]:
                cheapest = place
        best[index + 1] = cheapest
        total = cost[cheapest]
    roots = np.empty(slices, np.int64)
    root = best[slices]
    for index in range(slices - 1, -1, -1):
        roots[index] = root
        if kept[index, root] == 0:
            root = best[index]
    joined = 0
    for index in range(slices):
        if joined > 0 and roots[joined - 1] == roots[index] and kept[index, roots[index]] == JOINED:
            ends[joined - 1] = ends[index]
        else:
            ends[joined], roots[joined] = ends[index], roots[index]
            joined += 1
    return ends[:joined], roots[:joined]

"""Where in the input buffer the events of a component can lie: scopes, and stretches of the stream with one root.

The input buffer of a partition is one sorted stack per component. A scope is a range of a stack: the open interval
between the nearest filled neighbours, cut to the window (LAZY section 4, scoping parameters).
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.columns import INT64_ROWS, INT64S
from cepheid.engine.lazy.shape import SHAPE, Shape
from cepheid.engine.matches import Int64s
from cepheid.engine.sequence import EVENT_WINDOW, EVENTS, NO_WINDOW, TIME_WINDOW, Events, first_above

JOINED, APART = 1, 2  # with or without events of the root that both slices can use
LEAST_SLICE = 4  # events of the last component, so that very short windows do not make more slices than they save


@numba.njit(types.int64(EVENTS, SHAPE, INT64S, types.int64, types.int64, types.int64), cache=True)
def opens(events: Events, shape: Shape, stack: Int64s, low: int, high: int, last: int) -> int:
    """The first of stack[low:high] that one window can hold together with a later event."""
    if shape.window_kind == TIME_WINDOW:
        return first_above(stack, low, high, events.time, events.time[last] - shape.window)
    if shape.window_kind == EVENT_WINDOW and shape.rising:
        return first_above(stack, low, high, events.position, events.position[last] - shape.window)
    return low


@numba.njit(types.int64(EVENTS, SHAPE, INT64S, types.int64, types.int64, types.int64), cache=True)
def closes(events: Events, shape: Shape, stack: Int64s, low: int, high: int, first: int) -> int:
    """The first of stack[low:high] that no window can hold together with an earlier event."""
    if shape.window_kind == TIME_WINDOW:
        return first_above(stack, low, high, events.time, events.time[first] + shape.window - 1)
    if shape.window_kind == EVENT_WINDOW and shape.rising:
        return first_above(stack, low, high, events.position, events.position[first] + shape.window - 1)
    return high


@numba.njit(
    types.UniTuple(types.int64, 2)(EVENTS, SHAPE, INT64S, types.int64, types.int64, INT64S, types.int64, types.int64),
    cache=True,
)
def scope(
    events: Events, shape: Shape, stack: Int64s, low: int, high: int, at: Int64s, filled: int, place: int
) -> tuple[int, int]:
    """The part of stack[low:high] where the event of an open place can lie, given the filled ones."""
    first, last, below, above = -1, -1, -1, -1
    for other in range(shape.positives):
        if filled & (1 << other):
            if first < 0:
                first = other
            last = other
            if other < place:
                below = other
            elif above < 0:
                above = other
    if below >= 0:
        low = first_above(stack, low, high, events.instant, events.instant[at[below]])
    else:
        low = opens(events, shape, stack, low, high, at[last])
    if above >= 0:
        high = first_above(stack, low, high, events.instant, events.instant[at[above]] - 1)
    else:
        high = closes(events, shape, stack, low, high, at[first])
    return low, high


@numba.njit(
    types.boolean(EVENTS, SHAPE, INT64_ROWS, INT64S, INT64S, types.int64, types.int64, INT64S, INT64S), cache=True
)
def reach(
    events: Events,
    shape: Shape,
    stacks: npt.NDArray[np.int64],
    sizes: Int64s,
    asked: Int64s,
    begin: int,
    end: int,
    low: Int64s,
    high: Int64s,
) -> bool:
    """Fills low and high: the part of each stack that matches can use which end on entries begin:end of the last one.

    `asked` holds the entries of the first and of the last component that the completion interval allows. False: no
    match can end there.
    """
    final = shape.positives - 1
    low[final], high[final] = max(begin, asked[2]), min(end, asked[3])
    if final == 0:
        low[0], high[0] = max(low[0], asked[0]), min(high[0], asked[1])
    if low[final] >= high[final]:
        return False
    earliest, latest = stacks[final, low[final]], stacks[final, high[final] - 1]
    for place in range(final):
        stack, size = stacks[place], sizes[place]
        high[place] = first_above(stack, 0, size, events.instant, events.instant[latest] - 1)
        low[place] = opens(events, shape, stack, 0, high[place], earliest)
        if place == 0:
            low[0], high[0] = max(low[0], asked[0]), min(high[0], asked[1])
        if low[place] >= high[place]:
            return False
    # Where the interval asks for certain first events (postponed decisions), the others lie behind them.
    for place in range(1, shape.positives):
        stack = stacks[place]
        opening, closing = stacks[0, low[0]], stacks[0, high[0] - 1]
        low[place] = first_above(stack, low[place], high[place], events.instant, events.instant[opening])
        high[place] = closes(events, shape, stack, low[place], high[place], closing)
        if low[place] >= high[place]:
            return False
    return True


@numba.njit(INT64S(EVENTS, SHAPE, INT64_ROWS, INT64S, types.int64, types.int64), cache=True)
def asked_for(
    events: Events, shape: Shape, stacks: npt.NDArray[np.int64], sizes: Int64s, after: int, until: int
) -> Int64s:
    """Which entries of the first and of the last component a completion interval allows: two ranges."""
    final = shape.positives - 1
    asked = np.array([0, sizes[0], 0, sizes[final]])
    if not shape.postponed:
        asked[2] = first_above(stacks[final], 0, sizes[final], events.time, after)
        asked[3] = first_above(stacks[final], asked[2], sizes[final], events.time, until)
    elif shape.window_kind == TIME_WINDOW or shape.rising:
        asked[0] = first_above(stacks[0], 0, sizes[0], events.due, after)
        asked[1] = first_above(stacks[0], asked[0], sizes[0], events.due, until)
    return asked


@numba.njit(types.boolean(SHAPE, INT64S, INT64S), cache=True)
def restricted(shape: Shape, sizes: Int64s, asked: Int64s) -> bool:
    """Does the completion interval leave something out?"""
    whole_first = asked[0] == 0 and asked[1] == sizes[0]
    return not (whole_first and asked[2] == 0 and asked[3] == sizes[shape.positives - 1])


@numba.njit(types.UniTuple(INT64S, 2)(EVENTS, SHAPE, INT64_ROWS, INT64S, INT64S), cache=True)
def segments(
    events: Events, shape: Shape, stacks: npt.NDArray[np.int64], sizes: Int64s, asked: Int64s
) -> tuple[Int64s, Int64s]:
    """Cuts the entries of the last component into segments with one root each: where each ends, and its root.

    A match belongs to the segment of its last event, so none is found twice. The stream is sliced by window lengths;
    a slice costs as many evaluations as the root has events in it, and a change of the root costs those of the window
    before it once more. The cheapest roots along the stream are found slice by slice (dynamic programming), so the
    rarest component is the root (LAZY section 6), but not every fluctuation changes it.
    """
    length = shape.positives
    final = length - 1
    stack = stacks[final]
    ends = np.empty(16, np.int64)
    slices = 0
    begin = asked[2]
    while begin < asked[3]:
        end = asked[3]
        if shape.window_kind != NO_WINDOW and (shape.window_kind == TIME_WINDOW or shape.rising):
            end = closes(events, shape, stack, begin, asked[3], stack[begin])
            end = max(end, min(begin + LEAST_SLICE, asked[3]))
        if slices == len(ends):
            larger = np.empty(2 * slices, np.int64)
            larger[:slices] = ends
            ends = larger
        ends[slices] = end
        slices += 1
        begin = end
    low, high = np.zeros(length, np.int64), np.zeros(length, np.int64)
    behind = np.zeros(length, np.int64)  # how far each stack was used up to the slice before
    cost = np.zeros(length, np.int64)
    kept = np.zeros((slices, length), np.int64)  # JOINED or APART: this root was the root of the slice before, too
    best = np.zeros(slices + 1, np.int64)  # the best root up to a slice
    total = np.int64(0)
    begin = asked[2]
    for index in range(slices):
        usable = reach(events, shape, stacks, sizes, asked, begin, ends[index], low, high)
        begin = ends[index]
        cheapest = -1
        for place in range(length):
            anew = total
            gap = usable and low[place] > behind[place]
            if usable:
                anew += high[place] - low[place]
                cost[place] += max(0, high[place] - max(low[place], behind[place]))
                behind[place] = high[place]
            if index > 0 and cost[place] <= anew:
                kept[index, place] = APART if gap else JOINED
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

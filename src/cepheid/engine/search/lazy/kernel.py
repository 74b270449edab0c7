"""The lazy kernel: fills components in an order of its own, from the input buffer, depth first.

One kernel serves both automata. A chain (LAZY section 5) goes by a given order; a tree (section 6) decides after each
event taken, for that partial match alone, and makes the states it reaches. Since the events of a partition lie at
hand, a partial match that would wait for the stream is extended at once; when it would have lived is written down.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import COLUMNS, INT64_ROWS, INT64S, Columns
from cepheid.engine.data.matches import Int64s
from cepheid.engine.kernels.arrays import EVENTS, Events, grown, grown_rows
from cepheid.engine.search.lazy.conditions import KILLED, PASSED, judged
from cepheid.engine.search.lazy.roots import root_weights, segments
from cepheid.engine.search.lazy.scope import asked_for, reach, restricted, scope
from cepheid.engine.search.lazy.shape import SHAPE, Shape
from cepheid.engine.search.lazy.states import Edges, choose, grown_edges, lacks, learn_edge, make_edges
from cepheid.engine.values.compiled import PREDICATE

EVALUATIONS, CONSTRUCTED, NEGATED, STATES, SEGMENTS, OVERFLOW = range(6)
MAX_STATES = 1 << 16  # orders beyond these share the last state; nothing but counters and speed depends on it


class Life(NamedTuple):
    """When partial matches would have been held, if the events had come one by one; instants are ranks of time."""

    expiry: Int64s  # per event: the instant at which its window has passed
    waiting: Int64s  # per instant: matches that begin to wait for events to come, less those given up
    passing: Int64s  # per instant: 1 if a match was extended without having to wait


LIFE = types.NamedUniTuple(INT64S, 3, Life)


@numba.njit(types.void(EVENTS, SHAPE, LIFE, INT64S, types.int64, types.int64, types.int64), cache=True)
def note_life(events: Events, shape: Shape, life: Life, at: Int64s, filled: int, following: int, ready: int) -> None:
    """Writes down from when to when a partial match would have been held: while its next event may still come."""
    first, last = -1, -1
    for place in range(shape.positives):
        if filled & (1 << place):
            last = place
            if first < 0:
                first = place
    born = max(ready, events.instant[at[last]])
    if following < last:
        life.passing[born] = 1
        return
    expired = life.expiry[at[first]]
    if born < expired:
        life.waiting[born] += 1
        life.waiting[expired] -= 1


@numba.njit(types.void(EVENTS, SHAPE, types.int64, INT64_ROWS, INT64S), cache=True)
def fill_buffer(events: Events, shape: Shape, part: int, stacks: npt.NDArray[np.int64], sizes: Int64s) -> None:
    """The input buffer of one partition: for each component, in order, the events that can fill it (store edges)."""
    sizes[:] = 0
    for event in range(events.starts[part], events.starts[part + 1]):
        bits = events.mask[event]
        row = 0
        while bits != 0:
            if bits & 1:
                stacks[row, sizes[row]] = event
                sizes[row] += 1
            bits >>= 1
            row += 1


@numba.njit(
    types.Tuple((INT64_ROWS, INT64S, INT64S))(
        EVENTS,
        SHAPE,
        COLUMNS,
        types.FunctionType(PREDICATE),
        LIFE,
        INT64S,
        types.boolean,
        types.int64,
        types.int64,
        types.int64,
    ),
    cache=True,
)
def evaluate(
    events: Events,
    shape: Shape,
    columns: Columns,
    predicate: Any,
    life: Life,
    order: Int64s,
    learn: bool,
    after: int,
    until: int,
    limit: int,
) -> tuple[npt.NDArray[np.int64], Int64s, Int64s]:
    """All matches of all partitions: chosen events, completion, counters. An empty order makes it a tree."""
    length = shape.positives
    tree = len(order) == 0
    compares = events.compared.shape[0] > 0
    everything = (1 << length) - 1
    counters = np.zeros(6, np.int64)
    found = 0
    out = np.empty((1024, length), np.int64)
    completion = np.empty(1024, np.int64)
    longest = 0
    for part in range(len(events.starts) - 1):
        longest = max(longest, events.starts[part + 1] - events.starts[part])
    stacks = np.empty((length + shape.negatives, longest), np.int64)
    sizes = np.zeros(length + shape.negatives, np.int64)
    at = np.zeros(length + shape.negatives, np.int64)
    low, high = np.zeros(length, np.int64), np.zeros(length, np.int64)
    # A partial match per depth: the place being filled, how far its scope has been looked through, its state.
    filling, cursor = np.zeros(length, np.int64), np.zeros(length, np.int64)
    stop, state_at = np.zeros(length, np.int64), np.zeros(length, np.int64)
    following = np.full((16, length), -1)
    edges = Edges(np.empty((16, length), np.float64), np.empty((16, length), np.float64))
    make_edges(shape, compares, edges, 0, 0)
    states = 1
    weights = root_weights(shape, compares)
    for part in range(len(events.starts) - 1):
        fill_buffer(events, shape, part, stacks, sizes)
        asked = asked_for(events, shape, stacks, sizes, after, until)
        if tree:
            ends, roots = segments(events, shape, stacks, sizes, asked, weights)
        else:
            ends, roots = asked[3:4].copy(), order[:1].copy()
        begin = asked[2]
        for segment in range(len(ends)):
            if tree or restricted(shape, sizes, asked):
                usable = reach(events, shape, stacks, sizes, asked, begin, ends[segment], low, high)
                begin = ends[segment]
                if not usable:
                    continue
            else:
                low[:], high[:] = 0, sizes[:length]  # the paper's chain looks at whatever comes
            counters[SEGMENTS] += 1
            root = roots[segment]
            filling[0], cursor[0], stop[0], state_at[0] = root, low[root], high[root], 0
            depth, filled = 0, 0
            while depth >= 0:
                if cursor[depth] == stop[depth]:
                    depth -= 1
                    if depth >= 0:
                        filled ^= 1 << filling[depth]
                    continue
                place, state = filling[depth], state_at[depth]
                at[place] = stacks[place, cursor[depth]]
                cursor[depth] += 1
                both = filled | (1 << place)
                if tree and depth == 0 and lacks(events, shape, stacks, low, high, at, both):
                    continue
                counters[EVALUATIONS] += 1
                verdict = judged(events, shape, columns, predicate, at, stacks, sizes, filled, place)
                learn_edge(edges, state, place, verdict == PASSED)
                if verdict != PASSED:
                    counters[NEGATED] += verdict == KILLED
                    continue
                if both != everything:
                    target = following[state, place]
                    if target < 0:
                        if states < MAX_STATES:
                            if states == len(following):
                                following, edges = grown_rows(following), grown_edges(edges)
                            following[states] = -1
                            make_edges(shape, compares, edges, states, both)
                            states += 1
                        target = states - 1
                        following[state, place] = target
                    if tree:
                        then, first, beyond, ready = choose(
                            events, shape, stacks, low, high, at, both, edges, target, learn
                        )
                        if then < 0:
                            continue
                    else:
                        then, ready = order[depth + 1], 0
                        first, beyond = scope(events, shape, stacks[then], low[then], high[then], at, both, then)
                    note_life(events, shape, life, at, both, then, ready)
                    depth, filled = depth + 1, both
                    filling[depth], cursor[depth], stop[depth], state_at[depth] = then, first, beyond, target
                    continue
                counters[CONSTRUCTED] += 1
                known = events.due[at[0]] if shape.postponed else events.time[at[length - 1]]
                if known <= after or known > until:
                    continue
                if found == limit:
                    counters[OVERFLOW], counters[STATES] = 1, states + 1
                    return out[:found], completion[:found], counters
                if found == len(completion):
                    out, completion = grown_rows(out), grown(completion)
                for slot in range(length):
                    out[found, slot] = at[slot]
                completion[found] = known
                found += 1
    counters[STATES] = states + (counters[CONSTRUCTED] > 0)
    return out[:found], completion[:found], counters

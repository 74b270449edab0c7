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

from cepheid.engine.columns import COLUMNS, INT64_ROWS, INT64S, Columns
from cepheid.engine.lazy.conditions import KILLED, PASSED, judged, newly
from cepheid.engine.lazy.scope import asked_for, reach, restricted, scope, segments
from cepheid.engine.lazy.shape import SHAPE, Shape
from cepheid.engine.matches import Int64s
from cepheid.engine.predicates import PREDICATE
from cepheid.engine.sequence import EVENTS, Events, grown, grown_rows

EVALUATIONS, CONSTRUCTED, NEGATED, STATES, SEGMENTS, OVERFLOW = range(6)
MAX_STATES = 1 << 16  # orders beyond these share the last state; nothing but counters and speed depends on it
FORGET = 1 << 12  # candidates after which what was learned about an edge counts half


class Life(NamedTuple):
    """When partial matches would have been held, if the events had come one by one; instants are ranks of time."""

    expiry: Int64s  # per event: the instant at which its window has passed
    waiting: Int64s  # per instant: matches that begin to wait for events to come, less those given up
    passing: Int64s  # per instant: 1 if a match was extended without having to wait


LIFE = types.NamedUniTuple(INT64S, 3, Life)


@numba.njit(types.boolean(SHAPE, types.boolean, types.int64, types.int64), cache=True)
def tests_something(shape: Shape, compares: bool, filled: int, place: int) -> bool:
    """Can a candidate fail on the take edge of this place?"""
    both = filled | (1 << place)
    if compares and filled != 0:
        return True
    for needed in shape.needs:
        if newly(needed, filled, both):
            return True
    if shape.branches > 1:
        return both == (1 << shape.positives) - 1
    for needed in shape.neg_needs:
        if newly(needed, filled, both):
            return True
    return False


@numba.njit(types.void(SHAPE, types.boolean, INT64_ROWS, INT64_ROWS, INT64_ROWS, types.int64, types.int64), cache=True)
def make_state(
    shape: Shape,
    compares: bool,
    following: npt.NDArray[np.int64],
    tested: npt.NDArray[np.int64],
    passed: npt.NDArray[np.int64],
    state: int,
    filled: int,
) -> None:
    """A state for partial matches with these places filled, with nothing known about its take edges."""
    for place in range(shape.positives):
        following[state, place] = -1
        # An edge without conditions lets everything pass; of another, one half until it is known better.
        tested[state, place] = 2 if tests_something(shape, compares, filled, place) else 1
        passed[state, place] = 1


@numba.njit(
    types.UniTuple(types.int64, 4)(
        EVENTS,
        SHAPE,
        INT64_ROWS,
        INT64S,
        INT64S,
        INT64S,
        types.int64,
        INT64S,
        INT64S,
        types.boolean,
    ),
    cache=True,
)
def choose(
    events: Events,
    shape: Shape,
    stacks: npt.NDArray[np.int64],
    low: Int64s,
    high: Int64s,
    at: Int64s,
    filled: int,
    tested: Int64s,
    passed: Int64s,
    learn: bool,
) -> tuple[int, int, int, int]:
    """The open place to fill next, its scope, and the instant from which every open place has a candidate.

    Place -1: one has none (the paper's p_ne), so nothing is evaluated. By counters alone the fewest candidates win
    (p_se). With `learn`, the share that passed before counts, too: the rank of join ordering, (count * share - 1) /
    count, which is the order of the counts where nothing is known to fail.
    """
    best, best_low, best_high, ready = -1, 0, 0, 0
    best_rank = np.inf
    for place in range(shape.positives):
        if filled & (1 << place):
            continue
        begin, end = scope(events, shape, stacks[place], low[place], high[place], at, filled, place)
        if begin >= end:
            return -1, 0, 0, 0
        share = passed[place] / tested[place] if learn else 1.0
        rank = share - 1.0 / (end - begin)
        if rank < best_rank:
            best, best_low, best_high, best_rank = place, begin, end, rank
        ready = max(ready, events.instant[stacks[place, begin]])
    return best, best_low, best_high, ready


@numba.njit(types.boolean(EVENTS, SHAPE, INT64_ROWS, INT64S, INT64S, INT64S, types.int64), cache=True)
def lacks(
    events: Events,
    shape: Shape,
    stacks: npt.NDArray[np.int64],
    low: Int64s,
    high: Int64s,
    at: Int64s,
    filled: int,
) -> bool:
    """Has some open place no candidate in its scope?"""
    for place in range(shape.positives):
        if filled & (1 << place) == 0:
            begin, end = scope(events, shape, stacks[place], low[place], high[place], at, filled, place)
            if begin >= end:
                return True
    return False


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
    following, tested, passed = (
        np.empty((16, length), np.int64),
        np.empty((16, length), np.int64),
        np.empty((16, length), np.int64),
    )
    make_state(shape, compares, following, tested, passed, 0, 0)
    states = 1
    for part in range(len(events.starts) - 1):
        fill_buffer(events, shape, part, stacks, sizes)
        asked = asked_for(events, shape, stacks, sizes, after, until)
        if tree:
            ends, roots = segments(events, shape, stacks, sizes, asked)
        else:
            ends, roots = asked[3:4].copy(), order[:1].copy()
        begin = asked[2]
        for segment in range(len(ends)):
            end = ends[segment]
            if tree or restricted(shape, sizes, asked):
                usable = reach(events, shape, stacks, sizes, asked, begin, end, low, high)
                begin = end
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
                tested[state, place] += 1
                verdict = judged(events, shape, columns, predicate, at, stacks, sizes, filled, place)
                if verdict == PASSED:
                    passed[state, place] += 1
                elif verdict == KILLED:
                    counters[NEGATED] += 1
                if tested[state, place] > FORGET:
                    tested[state, place] >>= 1
                    passed[state, place] >>= 1
                if verdict != PASSED:
                    continue
                if both != everything:
                    target = following[state, place]
                    if target < 0:
                        if states < MAX_STATES:
                            if states == len(following):
                                following, tested = grown_rows(following), grown_rows(tested)
                                passed = grown_rows(passed)
                            make_state(shape, compares, following, tested, passed, states, both)
                            states += 1
                        target = states - 1
                        following[state, place] = target
                    if tree:
                        then, first, beyond, ready = choose(
                            events, shape, stacks, low, high, at, both, tested[target], passed[target], learn
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

"""The lazy kernel: fills components in an order of its own, from the input buffer, depth first.

One kernel serves both automata. A chain (LAZY section 5) goes by a given order; a tree (section 6) decides after each
event taken, for that partial match alone, and makes the states it reaches. Since the events of a partition lie at
hand, a partial match that would wait for the stream is extended at once; when it would have lived is written down.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from cepheid.engine.data.columns import COLUMNS, INT64_ROWS, INT64S, Columns
from cepheid.engine.data.layout import DUE, EVENTS, INSTANT, MASK, TIME, Events, Rows
from cepheid.engine.data.matches import Int64s
from cepheid.engine.kernels.arrays import grown, grown_rows
from cepheid.engine.kernels.compile import borrowing, search_kernel
from cepheid.engine.kernels.conditions import FUNCTION, SCRATCH, Scratch, new_scratch
from cepheid.engine.kernels.query import QUERY, Query, find_absent, room_for_absent
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.program.tables import PROGRAM, Program
from cepheid.engine.search.lazy.conditions import KILLED, PASSED, judge
from cepheid.engine.search.lazy.roots import root_weights, segments
from cepheid.engine.search.lazy.scope import BUFFER, Buffer, asked_for, reach, restricted, scope
from cepheid.engine.search.lazy.states import (
    STATES,
    States,
    choose,
    initial_states,
    lacks,
    learn_edge,
    with_state,
)

EVALUATIONS, CONSTRUCTED, NEGATED, STATES_MADE, SEGMENTS, OVERFLOW = range(6)


class Life(NamedTuple):
    """When partial matches would have been held, if the events had come one by one; instants are ranks of time."""

    expiry: Int64s  # per event: the instant at which its window has passed
    waiting: Int64s  # per instant: matches that begin to wait for events to come, less those given up
    passing: Int64s  # per instant: 1 if a match was extended without having to wait


LIFE = types.NamedUniTuple(INT64S, 3, Life)


@borrowing(types.void(EVENTS, PROGRAM, LIFE, INT64S, types.int64, types.int64, types.int64))
def note_life(
    events: Events, program: Program, life: Life, at: Int64s, filled: int, following: int, ready: int
) -> None:
    """Writes down from when to when a partial match would have been held: while its next event may still come."""
    first, last = -1, -1
    for place in range(program.places):
        if filled & (1 << place):
            last = place
            if first < 0:
                first = place
    born = max(ready, events.facts[INSTANT, at[last]])
    if following < last:
        life.passing[born] = 1
        return
    expired = life.expiry[at[first]]
    if born < expired:
        life.waiting[born] += 1
        life.waiting[expired] -= 1


@borrowing(types.void(EVENTS, types.int64, BUFFER))
def fill_buffer(events: Events, part: int, buffer: Buffer) -> None:
    """Fills the input buffer with the events of a partition (store edges)."""
    sizes = buffer.sizes
    sizes[:] = 0
    for event in range(events.starts[part], events.starts[part + 1]):
        bits = events.facts[MASK, event] & ((1 << len(sizes)) - 1)
        row = 0
        while bits != 0:
            if bits & 1:
                buffer.stacks[row, sizes[row]] = event
                sizes[row] += 1
            bits >>= 1
            row += 1


class Asked(NamedTuple):
    """What is asked of the kernel: which matches, how many at most, and whether a tree learns from its edges."""

    after: int
    until: int
    limit: int
    learn: bool


ASKED = types.NamedTuple((types.int64, types.int64, types.int64, types.boolean), Asked)


class Path(NamedTuple):
    """A partial match for each depth: the place being filled, how far its scope has been looked through, its state."""

    filling: Int64s
    cursor: Int64s
    stop: Int64s
    state: Int64s


PATH = types.NamedUniTuple(INT64S, 4, Path)


# What `descend` is told: the depth, the places filled so far, the state reached, and whether the tree learns.
DEPTH, FILLED, TARGET, LEARN = range(4)


@borrowing(types.boolean(QUERY, BUFFER, LIFE, INT64S, STATES, SCRATCH, PATH, INT64S), inline=True)
def descend(
    query: Query,
    buffer: Buffer,
    life: Life,
    order: Int64s,
    states: States,
    scratch: Scratch,
    path: Path,
    step: Int64s,
) -> bool:
    """Goes one deeper with a partial match: which place is filled next, from which scope; False if one has none."""
    events, program, at = query.events, query.program, scratch.at
    depth, filled, target = step[DEPTH], step[FILLED], step[TARGET]
    if len(order) == 0:
        then, first, beyond, ready = choose(events, program, buffer, at, filled, states.edges, target, step[LEARN] == 1)
        if then < 0:
            return False
    else:
        then, ready = order[depth + 1], 0
        first, beyond = scope(events, program, buffer, at, filled, then)
    note_life(events, program, life, at, filled, then, ready)
    path.filling[depth + 1], path.cursor[depth + 1] = then, first
    path.stop[depth + 1], path.state[depth + 1] = beyond, target
    return True


@search_kernel(types.Tuple((INT64_ROWS, INT64S, INT64S))(EVENTS, PROGRAM, COLUMNS, FUNCTION, LIFE, INT64S, ASKED))
def evaluate(
    events: Events, program: Program, columns: Columns, predicate: Any, life: Life, order: Int64s, asked: Asked
) -> tuple[Rows, Int64s, Int64s]:
    """All matches of all partitions: chosen events, completion, counters. An empty order makes it a tree."""
    length, tree, compares = program.places, len(order) == 0, events.compared.shape[0] > 0
    counters, found = np.zeros(6, np.int64), 0
    out, completion = np.empty((1024, length), np.int64), np.empty(1024, np.int64)
    longest = 0
    for part in range(len(events.starts) - 1):
        longest = max(longest, events.starts[part + 1] - events.starts[part])
    numbers = np.zeros((8, length), np.int64)
    buffer = Buffer(np.empty((length, longest), np.int64), numbers[0], numbers[1], numbers[2])
    path = Path(numbers[3], numbers[4], numbers[5], numbers[6])
    scratch = new_scratch(length + program.negatives, 2 * length, 0, events.compared.shape[0])
    at, entries, step = scratch.at, np.zeros((0, 4), np.int64), np.zeros(4, np.int64)
    step[LEARN] = 1 if asked.learn else 0
    states, weights = initial_states(program, compares), root_weights(program, compares)
    query = Query(events, program, columns, predicate, room_for_absent(events, program))
    for part in range(len(events.starts) - 1):
        find_absent(events, program, part, query.absent)
        fill_buffer(events, part, buffer)
        allowed = asked_for(events, program, buffer, asked.after, asked.until)
        if tree:
            ends, roots = segments(events, program, buffer, allowed, weights)
        else:
            ends, roots = allowed[3:4].copy(), order[:1].copy()
        begin = allowed[2]
        for segment in range(len(ends)):
            if tree or restricted(program, buffer, allowed):
                usable = reach(events, program, buffer, allowed, begin, ends[segment])
                begin = ends[segment]
                if not usable:
                    continue
            else:
                buffer.low[:], buffer.high[:] = 0, buffer.sizes  # the paper's chain looks at whatever comes
            counters[SEGMENTS] += 1
            root = roots[segment]
            path.filling[0], path.cursor[0], path.stop[0], path.state[0] = root, buffer.low[root], buffer.high[root], 0
            depth, filled = 0, 0
            while depth >= 0:
                if stop_flag() != 0:
                    return out[:found], completion[:found], counters
                if path.cursor[depth] == path.stop[depth]:
                    depth -= 1
                    if depth >= 0:
                        filled ^= 1 << path.filling[depth]
                    continue
                place, state = path.filling[depth], path.state[depth]
                at[place] = buffer.stacks[place, path.cursor[depth]]
                path.cursor[depth] += 1
                both = filled | (1 << place)
                if tree and depth == 0 and lacks(events, program, buffer, at, both):
                    continue
                counters[EVALUATIONS] += 1
                verdict = judge(query, scratch, entries, filled, place)
                learn_edge(states.edges, state, place, verdict == PASSED)
                if verdict != PASSED:
                    counters[NEGATED] += verdict == KILLED
                    continue
                if both != (1 << length) - 1:
                    if states.following[state, place] < 0:
                        states = with_state(states, program, compares, state, place, both)
                    step[DEPTH], step[FILLED], step[TARGET] = depth, both, states.following[state, place]
                    if descend(query, buffer, life, order, states, scratch, path, step):
                        depth, filled = depth + 1, both
                    continue
                counters[CONSTRUCTED] += 1
                known = events.facts[DUE, at[0]] if program.postponed else events.facts[TIME, at[length - 1]]
                if known <= asked.after or known > asked.until:
                    continue
                if found == asked.limit:
                    counters[OVERFLOW], counters[STATES_MADE] = 1, states.made[0] + 1
                    return out[:found], completion[:found], counters
                if found == len(completion):
                    out, completion = grown_rows(out), grown(completion)
                out[found], completion[found] = at[:length], known
                found += 1
    counters[STATES_MADE] = states.made[0] + (counters[CONSTRUCTED] > 0)
    return out[:found], completion[:found], counters

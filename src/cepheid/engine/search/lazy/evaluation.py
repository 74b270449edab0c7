"""The lazy kernel: fills components in an order of its own, from the input buffer, depth first.

One kernel serves both automata. A chain (LAZY section 5) goes by a given order; a tree (section 6) decides after each
event taken, for that partial match alone, and makes the states it reaches. Since the events of a partition lie at
hand, a partial match that would wait for the stream is extended at once; when it would have lived is written down.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.columns import Columns, PredicateCall
from cepheid.engine.data.layout import DUE, INSTANT, MASK, TIME, Events
from cepheid.engine.data.value_index import ValueIndex
from cepheid.engine.kernels.arrays import grown, grown_rows
from cepheid.engine.kernels.compile import borrowing, kernel, search_kernel
from cepheid.engine.kernels.conditions import Scratch, new_scratch
from cepheid.engine.kernels.query import Query, find_absent, room_for_absent
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.program.tables import Program
from cepheid.engine.search.lazy.conditions import KILLED, PASSED, judge
from cepheid.engine.search.lazy.roots import root_weights, segments
from cepheid.engine.search.lazy.scope import Buffer, asked_for, narrowed, reach, restricted, scope
from cepheid.engine.search.lazy.states import (
    DEPTH,
    FILLED,
    LEARN,
    TARGET,
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


@borrowing
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


@borrowing
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


class SearchRequest(NamedTuple):
    """What is asked of the kernel: which matches, how many at most, and whether a tree learns from its edges."""

    after: int
    until: int
    limit: int
    learn: bool


class Path(NamedTuple):
    """A partial match for each depth: the place being filled, how far its scope has been looked through, its state."""

    filling: Int64s
    cursor: Int64s
    stop: Int64s
    state: Int64s
    link: Int64s  # the index that the scope is a part of; -1: the stack of the place


class Sources(NamedTuple):
    """Where candidates come from, and in which order."""

    buffer: Buffer
    by_value: ValueIndex
    order: Int64s


class Evaluation(NamedTuple):
    """What the walk through partial matches works with in one partition."""

    query: Query
    sources: Sources
    life: Life
    scratch: Scratch
    entries: Int64Rows
    path: Path
    step: Int64s  # what is told to those that choose the next place
    position: Int64s  # how deep it is, which places are filled, how many matches were found


HOW_DEEP, NOW_FILLED, FOUND = range(3)
OVER, STOPPED, NEW_STATE, NO_ROOM = range(4)  # why the walk pauses


class Out(NamedTuple):
    """Room for matches: their events, and when they are complete."""

    chosen: Int64Rows
    completion: Int64s


@borrowing
def descend(evaluation: Evaluation, states: States, filled: int) -> None:
    """Goes one deeper with a partial match: which place is filled next, from which scope; not if one has none."""
    query, path, step, at = evaluation.query, evaluation.path, evaluation.step, evaluation.scratch.at
    events, program = query.events, query.program
    buffer, index, order = evaluation.sources
    depth = evaluation.position[HOW_DEEP]
    target = states.following[path.state[depth], path.filling[depth]]
    step[DEPTH], step[FILLED], step[TARGET] = depth, filled, target
    if len(order) == 0:
        then, first, beyond, link, ready = choose(events, program, buffer, index, at, filled, states.edges, step)
        if then < 0:
            return
    else:
        then, ready = order[depth + 1], 0
        first, beyond = scope(events, program, buffer, at, filled, then)
        first, beyond, link = narrowed(buffer, index, at, filled, then, first, beyond)
    note_life(events, program, evaluation.life, at, filled, then, ready)
    path.filling[depth + 1], path.cursor[depth + 1] = then, first
    path.stop[depth + 1], path.state[depth + 1], path.link[depth + 1] = beyond, target, link
    evaluation.position[HOW_DEEP], evaluation.position[NOW_FILLED] = depth + 1, filled


@borrowing
def takes(evaluation: Evaluation, states: States, counters: Int64s) -> bool:
    """Takes the next candidate of the place that is being filled, if no condition is against it."""
    query, path, scratch = evaluation.query, evaluation.path, evaluation.scratch
    depth, filled = evaluation.position[HOW_DEEP], evaluation.position[NOW_FILLED]
    buffer, index, order = evaluation.sources
    place, cursor = path.filling[depth], path.cursor[depth]
    scratch.at[place] = buffer.stacks[place, cursor] if path.link[depth] < 0 else index.events[cursor]
    path.cursor[depth] += 1
    is_root = len(order) == 0 and depth == 0
    if is_root and lacks(query.events, query.program, buffer, scratch.at, filled | (1 << place)):
        return False
    counters[EVALUATIONS] += 1
    verdict = judge(query, scratch, evaluation.entries, filled, place)
    learn_edge(states.edges, path.state[depth], place, verdict == PASSED)
    counters[NEGATED] += 1 if verdict == KILLED else 0
    return verdict == PASSED


@borrowing
def go_on(evaluation: Evaluation, states: States, out: Out, asked: SearchRequest, counters: Int64s) -> int:
    """Walks through the partial matches until that is OVER, or for another reason cannot go on.

    It makes no arrays, so that no references are counted: what needs some is done by the kernel around it.
    """
    path, position, at = evaluation.path, evaluation.position, evaluation.scratch.at
    events, program = evaluation.query.events, evaluation.query.program
    length = program.places
    while position[HOW_DEEP] >= 0:
        if stop_flag() != 0:
            return STOPPED
        if position[FOUND] == len(out.completion):
            return NO_ROOM
        depth = position[HOW_DEEP]
        if path.cursor[depth] == path.stop[depth]:
            position[HOW_DEEP] -= 1
            if depth > 0:
                position[NOW_FILLED] ^= 1 << path.filling[depth - 1]
            continue
        if not takes(evaluation, states, counters):
            continue
        filled = position[NOW_FILLED] | (1 << path.filling[depth])
        if filled != (1 << length) - 1:
            if states.following[path.state[depth], path.filling[depth]] < 0:
                return NEW_STATE
            descend(evaluation, states, filled)
            continue
        counters[CONSTRUCTED] += 1
        known = events.facts[DUE, at[0]] if program.postponed else events.facts[TIME, at[length - 1]]
        if known <= asked.after or known > asked.until:
            continue
        if position[FOUND] == asked.limit:
            counters[OVERFLOW] = 1
            return STOPPED
        for place in range(length):
            out.chosen[position[FOUND], place] = at[place]
        out.completion[position[FOUND]] = known
        position[FOUND] += 1
    return OVER


@borrowing
def begin(evaluation: Evaluation, root: int) -> None:
    """Begins with the place that a segment is searched from."""
    path, buffer, position = evaluation.path, evaluation.sources.buffer, evaluation.position
    path.filling[0], path.cursor[0], path.stop[0] = root, buffer.low[root], buffer.high[root]
    path.state[0], path.link[0] = 0, -1
    position[HOW_DEEP], position[NOW_FILLED] = 0, 0


@kernel
def new_evaluation(query: Query, index: ValueIndex, life: Life, order: Int64s, asked: SearchRequest) -> Evaluation:
    """Room for one, of any of the partitions."""
    events, program = query.events, query.program
    length, longest = program.places, 0
    for part in range(len(events.starts) - 1):
        longest = max(longest, events.starts[part + 1] - events.starts[part])
    numbers = np.zeros((8, length), np.int64)
    buffer = Buffer(np.empty((length, longest), np.int64), numbers[0], numbers[1], numbers[2])
    path = Path(numbers[3], numbers[4], numbers[5], numbers[6], numbers[7])
    scratch = new_scratch(length + program.negatives, 2 * length, 0, events.compared.shape[0])
    step = np.zeros(4, np.int64)
    step[LEARN] = 1 if asked.learn else 0
    sources, entries = Sources(buffer, index, order), np.zeros((0, 4), np.int64)
    return Evaluation(query, sources, life, scratch, entries, path, step, np.zeros(3, np.int64))


@search_kernel
def evaluate(
    events: Events,
    program: Program,
    columns: Columns,
    predicate: PredicateCall,
    index: ValueIndex,
    life: Life,
    order: Int64s,
    asked: SearchRequest,
) -> tuple[Int64Rows, Int64s, Int64s]:
    """All matches of all partitions: chosen events, completion, counters. An empty order makes it a tree."""
    tree, compares = len(order) == 0, events.compared.shape[0] > 0
    counters, out = np.zeros(6, np.int64), Out(np.empty((1024, program.places), np.int64), np.empty(1024, np.int64))
    query = Query(events, program, columns, predicate, room_for_absent(events, program))
    evaluation = new_evaluation(query, index, life, order, asked)
    buffer, path, position = evaluation.sources.buffer, evaluation.path, evaluation.position
    states, weights = initial_states(program, compares), root_weights(program, compares)
    pause = OVER
    for part in range(len(events.starts) - 1):
        if pause == STOPPED:
            break
        fill_buffer(events, part, buffer)
        if tree and buffer.sizes.min() == 0:
            continue  # of many small partitions, most: what follows makes arrays
        find_absent(events, program, part, query.absent)
        allowed = asked_for(events, program, buffer, asked.after, asked.until)
        if tree:
            ends, roots = segments(events, program, buffer, allowed, weights)
        else:
            ends, roots = allowed[3:4].copy(), order[:1].copy()
        start = allowed[2]
        for segment in range(len(ends)):
            if pause == STOPPED:
                break
            if tree or restricted(program, buffer, allowed):
                usable = reach(events, program, buffer, allowed, start, ends[segment])
                start = ends[segment]
                if not usable:
                    continue
            else:
                buffer.low[:], buffer.high[:] = 0, buffer.sizes  # the paper's chain looks at whatever comes
            counters[SEGMENTS] += 1
            begin(evaluation, roots[segment])
            pause = go_on(evaluation, states, out, asked, counters)
            while pause in (NEW_STATE, NO_ROOM):
                if pause == NO_ROOM:
                    out = Out(grown_rows(out.chosen), grown(out.completion))
                else:
                    depth = position[HOW_DEEP]
                    place, filled = path.filling[depth], position[NOW_FILLED] | (1 << path.filling[depth])
                    states = with_state(states, program, compares, path.state[depth], place, filled)
                    descend(evaluation, states, filled)
                pause = go_on(evaluation, states, out, asked, counters)
    found = position[FOUND]
    counters[STATES_MADE] = states.made[0] + (1 if counters[CONSTRUCTED] > 0 else 0)
    return out.chosen[:found], out.completion[:found], counters

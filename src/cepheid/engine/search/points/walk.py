"""The walk over point matches: every instant of every event that could come next, deeper and deeper.

Point matches of one signature are many, so what does not depend on instants is found out once for each (`signatures`).
The loop stands in a function that makes no arrays: what needs some is done by the kernel around it, which calls it
again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64s, Int64s
from cepheid.engine.data.columns import Columns, PredicateCall
from cepheid.engine.data.timed import Stacks, Timed, at_instant
from cepheid.engine.kernels.arrays import grown, grown_numbers
from cepheid.engine.kernels.asked import SearchRequest
from cepheid.engine.kernels.compile import borrowing, kernel, search_kernel
from cepheid.engine.kernels.conditions import EVENT, LEFT, RIGHT
from cepheid.engine.kernels.partial_matches import Nodes, PartialMatches, add_node, joins, more_nodes
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.program.tables import KLEENE, Program
from cepheid.engine.scoring.match_score import MatchScore, completion_of
from cepheid.engine.search.intervals.results import (
    COUNTERS,
    EVALUATED,
    JUDGED,
    OVERFLOW,
    PARTIAL,
    PEAK,
    REPORTED,
    Results,
    is_full,
    no_results,
    put,
    with_room,
)
from cepheid.engine.search.points.expansion import Points, expand, first_after
from cepheid.engine.search.points.signatures import (
    Question,
    Signatures,
    Table,
    describe,
    no_signatures,
    path_to,
    place_of,
    undisturbed,
    with_space,
)

REFUSED = -1  # in place of the node that follows: the conditions fail
DEPTH, FRESH, USED, PART = range(4)  # where a walk stands: FRESH: its point match is new; USED: signatures in the table
OVER, STOPPED, UNKNOWN, NO_ROOM = range(4)  # why a walk pauses; UNKNOWN: nothing is known of the signature that comes


class Walk(NamedTuple):
    """The point match being built, event by event."""

    node: Int64s
    at: Int64s  # the instant
    weight: Float64s  # the probability of these instants
    cursor: Int64s  # the point event that is tried next
    stop: Int64s  # where those that could come next end
    taking: Int64s  # 1: they are taken into the open group, 0: they begin the next component


@kernel
def new_walk() -> Walk:
    """Room for a short one."""
    size = 8
    return Walk(
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
        np.zeros(size),
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
    )


@kernel
def longer(walk: Walk) -> Walk:
    """The same with room for as many again."""
    return Walk(
        grown(walk.node),
        grown(walk.at),
        grown_numbers(walk.weight),
        grown(walk.cursor),
        grown(walk.stop),
        grown(walk.taking),
    )


@borrowing
def enter(walk: Walk, state: Int64s, depth: int, node: int, instant: int, weight: float) -> None:
    """Goes on with a node at an instant."""
    walk.node[depth], walk.at[depth], walk.weight[depth] = node, instant, weight
    state[DEPTH], state[FRESH] = depth, 1


@borrowing
def judge(question: Question, known: Signatures, walk: Walk, depth: int) -> None:
    """Adds the probability of a whole point match to that of its signature."""
    node, window = walk.node[depth], question.match_score.window
    low, high, stand = known.competitors[node, 0], known.competitors[node, 1], known.competitors[node, 2]
    share = walk.weight[depth]
    if low < high or question.program.judged:
        keys, branches = known.keys[low:high], known.branches[low:high]
        share *= undisturbed(question.timed, keys, branches, stand, walk.at, depth + 1, window)
    if share > 0.0:
        known.confidence[node] += share
        known.earliest[node] = min(known.earliest[node], walk.at[0])
        known.latest[node] = max(known.latest[node], walk.at[depth])


@borrowing
def aim(points: Points, known: Signatures, walk: Walk, depth: int, goal: int, window: int) -> None:
    """Finds the point events of a place that could come next."""
    bound = min(walk.at[0] + window - 1, known.nearest[walk.node[depth]])
    bottom, top = points.begin[goal], points.begin[goal + 1]
    walk.cursor[depth] = first_after(points.instant, bottom, top, walk.at[depth])
    walk.stop[depth] = first_after(points.instant, walk.cursor[depth], top, bound)


@borrowing
def go_on(
    question: Question,
    points: Points,
    nodes: Nodes,
    known: Signatures,
    table: Table,
    walk: Walk,
    state: Int64s,
    counters: Int64s,
) -> int:
    """Walks from where it stands until it is OVER, or for another reason cannot go on."""
    program, window = question.program, question.match_score.window
    while state[DEPTH] >= 0:
        if stop_flag() != 0:
            return STOPPED
        depth = state[DEPTH]
        node = walk.node[depth]
        place = nodes.entries[node, RIGHT]
        may_begin = place + 1 < program.places and nodes.closed[node] == 1  # the next component
        if state[FRESH] == 1:
            state[FRESH] = 0
            counters[PARTIAL] += 1
            if known.wanted[node] == 1:
                counters[JUDGED] += 1
                judge(question, known, walk, depth)
            # What may come next: first what the open group can take, then what begins the next component.
            walk.taking[depth] = program.place[place, KLEENE]
            walk.cursor[depth], walk.stop[depth] = 0, 0
            if walk.taking[depth] == 1 or may_begin:
                aim(points, known, walk, depth, place if walk.taking[depth] == 1 else place + 1, window)
        point = walk.cursor[depth]
        if point >= walk.stop[depth]:
            if walk.taking[depth] == 1 and may_begin:
                aim(points, known, walk, depth, place + 1, window)
            else:
                state[DEPTH] -= 1
            walk.taking[depth] = 0
            continue
        if depth + 1 == len(walk.at):
            return NO_ROOM
        key = key_of(question, walk, depth, points.event[point])
        slot = place_of(table.key, key)
        if table.key[slot] != key:
            counters[EVALUATED] += 1
            return UNKNOWN
        walk.cursor[depth] += 1
        if table.node[slot] != REFUSED:
            weight = walk.weight[depth] * points.chance[point]
            enter(walk, state, depth + 1, table.node[slot], points.instant[point], weight)
    return OVER


@borrowing
def key_of(question: Question, walk: Walk, depth: int, event: int) -> int:
    """The number of the signature that follows by an event."""
    return (walk.node[depth] * len(question.timed.lower) + event) * 2 + walk.taking[depth]  # type: ignore[no-any-return]


@borrowing
def contains(nodes: Nodes, node: int, event: int) -> bool:
    """Is the event one of those up to a node?"""
    while node >= 0:
        if nodes.entries[node, EVENT] == event:
            return True
        node = nodes.entries[node, LEFT]
    return False


@kernel
def find_out(
    question: Question,
    asked: SearchRequest,
    points: Points,
    nodes: Nodes,
    known: Signatures,
    table: Table,
    walk: Walk,
    state: Int64s,
) -> tuple[Nodes, Signatures, Table]:
    """Finds out whether the point event that comes next may follow, and what is to be known of the signature then."""
    timed, program, columns, predicate = question.timed, question.program, question.columns, question.predicate
    partial = PartialMatches(program, columns, predicate, nodes)
    depth = state[DEPTH]
    node, event, begins = walk.node[depth], points.event[walk.cursor[depth]], walk.taking[depth] == 0
    goal = nodes.entries[node, RIGHT] + (1 if begins else 0)
    following = REFUSED
    if not contains(nodes, node, event) and joins(timed.begins, timed.compared, partial, node, event, goal, begins, 0):
        following = known.size[0]
        if following == len(nodes.closed):
            nodes = more_nodes(nodes)
            partial = PartialMatches(program, columns, predicate, nodes)
        add_node(timed.compared, partial, node, following, event, goal, begins, 0)
        known = describe(question, asked, nodes, known, state[PART])
    key = key_of(question, walk, depth, event)
    slot = place_of(table.key, key)
    table.key[slot], table.node[slot] = key, following
    state[USED] += 1
    return nodes, known, with_space(table, state[USED])


@kernel
def report(
    question: Question, nodes: Nodes, known: Signatures, results: Results, limit: int, counters: Int64s
) -> Results:
    """Adds the signatures that are probable enough to the results."""
    timed, match_score = question.timed, question.match_score
    for node in range(known.size[0]):
        confidence = min(known.confidence[node], 1.0)
        if confidence <= 0.0 or confidence < match_score.least[0]:
            continue
        if counters[REPORTED] == limit:
            counters[OVERFLOW] = 1
            break
        _, chosen, filled = path_to(nodes, node)
        when = completion_of(timed, match_score, chosen[0], chosen[len(chosen) - 1], True)
        earliest, latest = known.earliest[node], known.latest[node]
        if is_full(results, len(chosen)):
            results = with_room(results, len(chosen))
        put(results, chosen, filled, len(chosen), when, 1.0, confidence, earliest, latest)
        counters[REPORTED] += 1
    return results


@search_kernel
def search_points(
    timed: Timed,
    match_score: MatchScore,
    stacks: Stacks,
    program: Program,
    columns: Columns,
    predicate: PredicateCall,
    nodes: Nodes,
    asked: SearchRequest,
) -> tuple[Results, Int64s]:
    """All matches of all partitions, and counters."""
    question = Question(timed, match_score, stacks, program, columns, predicate)
    counters, state = np.zeros(COUNTERS, np.int64), np.zeros(4, np.int64)
    results, known, walk = no_results(program.places), no_signatures(), new_walk()
    table = Table(np.full(64, -1, np.int64), np.empty(64, np.int64))
    for part in range(stacks.begin.shape[1] - 1):
        points = expand(timed, stacks, program.places, part)
        for index in range(stacks.begin[0, part], stacks.begin[0, part + 1]):
            first = stacks.member[index]
            partial = PartialMatches(program, columns, predicate, nodes)
            if not joins(timed.begins, timed.compared, partial, -1, first, 0, True, 0):
                continue
            table.key[:] = -1
            known.size[:] = 0
            state[USED], state[PART] = 0, part
            add_node(timed.compared, partial, -1, 0, first, 0, True, 0)
            known = describe(question, asked, nodes, known, part)
            for instant in range(timed.lower[first], timed.upper[first] + 1):
                weight = at_instant(timed, first, instant) * timed.exists[first]
                if weight <= 0.0:
                    continue
                enter(walk, state, 0, 0, instant, weight)
                pause = go_on(question, points, nodes, known, table, walk, state, counters)
                while pause != OVER:
                    if pause == STOPPED:
                        return results, counters
                    if pause == NO_ROOM:
                        walk = longer(walk)
                    else:
                        nodes, known, table = find_out(question, asked, points, nodes, known, table, walk, state)
                    pause = go_on(question, points, nodes, known, table, walk, state, counters)
            counters[PEAK] = max(counters[PEAK], known.size[0])
            results = report(question, nodes, known, results, asked.limit, counters)
            if counters[OVERFLOW] == 1:
                return results, counters
    return results, counters

"""The `points` engine: point-based evaluation (TIME section 3), the plain way that the event-based one is measured by.

Every event becomes one point event for each of its instants. All point matches are followed with skip_till_any_match,
whatever the query says, an event never standing twice in one match. Under skip_till_next_match points after the latest
time of the next event are left out. Point matches of one signature are collapsed: each is a set of worlds in which the
chosen events have these instants, so that rivals are independent of each other (equations 1, 2), and different point
matches are different worlds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import COLUMNS, FLOAT64S, INT64_ROWS, INT64S, Columns
from cepheid.engine.data.matches import NEVER, Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.data.timed import (
    STACKS,
    TIMED,
    Stacks,
    Timed,
    at_instant,
    between,
    first_beyond,
    next_by,
    onwards,
    prepare,
    up_to,
)
from cepheid.engine.kernels.arrays import grown, grown_rows
from cepheid.engine.kernels.compile import borrowing, called_by_address, kernel, search_kernel
from cepheid.engine.kernels.conditions import EVENT, FUNCTION, LEFT, RIGHT
from cepheid.engine.kernels.partial_matches import NODES, Nodes, add_node, joins, more_nodes, standing
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.program.tables import CONTIGUOUS, KLEENE, PROGRAM, SKIP_NEXT, Program
from cepheid.engine.search.intervals.query import compile_query
from cepheid.engine.search.intervals.report import matches_of, picked, searched
from cepheid.engine.search.intervals.results import (
    COUNTERS,
    EVALUATED,
    JUDGED,
    OVERFLOW,
    PARTIAL,
    PEAK,
    REPORTED,
    RESULTS,
    Results,
    grown_numbers,
    is_full,
    no_results,
    put,
)
from cepheid.engine.search.intervals.results import with_room as with_room_for
from cepheid.engine.worth.confidence.bounds import tighten
from cepheid.engine.worth.confidence.rivals import rivals
from cepheid.engine.worth.worth import WORTH, Worth, completion_of
from cepheid.plan.physical import Plan

Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]

UNKNOWN, REFUSED = -2, -1  # what is known of a signature: nothing, or that its conditions fail


def run_points(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
    """All matches with after < completion <= until, with confidence and tightest range."""
    prepared = prepare(plan, events)
    low, high = searched(plan, after, until)
    query = compile_query(plan, events, prepared)
    results, counters = search_points(
        prepared.timed,
        query.worth,
        prepared.stacks,
        query.program,
        query.columns,
        query.predicate,
        query.nodes,
        low,
        high,
        plan.limits.max_matches,
    )
    return picked(plan, events, matches_of(plan, prepared, results, counters, 0.0), until)


class Points(NamedTuple):
    """The point events of one partition that could fill each place, in order of time."""

    begin: Int64s  # place p has those from begin[p] to begin[p + 1] - 1
    instant: Int64s
    event: Int64s
    chance: Float64s


POINTS = types.NamedTuple((INT64S, INT64S, INT64S, FLOAT64S), Points)


@kernel(POINTS(TIMED, STACKS, types.int64, types.int64))
def expand(timed: Timed, stacks: Stacks, places: int, part: int) -> Points:
    """Stream expansion: the candidates come in order of their lower bounds, so that at most those that overlap wait.

    An event that arrives cannot have points before its lower bound, nor can any later one: what lies before has been
    given out (the paper's emit time, with lower bounds in order).
    """
    begin = np.zeros(places + 1, np.int64)
    for place in range(places):
        total = 0
        for index in range(stacks.begin[place, part], stacks.begin[place, part + 1]):
            event = stacks.member[index]
            for instant in range(timed.lower[event], timed.upper[event] + 1):
                total += 1 if at_instant(timed, event, instant) > 0.0 else 0
        begin[place + 1] = begin[place] + total
    size = begin[places]
    instants, events, chance = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
    for place in range(places):
        low, high = stacks.begin[place, part], stacks.begin[place, part + 1]
        waiting = np.empty(high - low, np.int64)
        count, index, put = 0, low, begin[place]
        now = timed.lower[stacks.member[low]] if low < high else 0
        while index < high or count > 0:
            if count == 0:
                now = max(now, timed.lower[stacks.member[index]])
            while index < high and timed.lower[stacks.member[index]] <= now:
                waiting[count] = stacks.member[index]
                count += 1
                index += 1
            kept = 0
            for slot in range(count):
                event = waiting[slot]
                weight = at_instant(timed, event, now)
                if weight > 0.0:
                    instants[put], events[put], chance[put] = now, event, weight * timed.exists[event]
                    put += 1
                if timed.upper[event] > now:
                    waiting[kept] = event
                    kept += 1
            count = kept
            now += 1
    return Points(begin, instants, events, chance)


@borrowing(types.int64(INT64S, types.int64, types.int64, types.int64))
def first_after(instants: Int64s, low: int, high: int, bound: int) -> int:
    """The first index in low .. high - 1 whose instant exceeds the bound."""
    while low < high:
        middle = (low + high) // 2
        if instants[middle] > bound:
            high = middle
        else:
            low = middle + 1
    return low


@borrowing(types.float64(TIMED, INT64S, INT64S, types.int64, INT64S, types.int64, types.int64))
def undisturbed_at(
    timed: Timed, keys: Int64s, branches: Int64s, subset: int, at: Int64s, length: int, window: int
) -> float:
    """P(no rival disturbs events at these instants, in any disjunct of a subset)."""
    gaps, final = length + 1, length - 1
    total, index = 1.0, 0
    while index < len(keys):
        event = keys[index] // gaps
        harmless, passed, came = 0.0, False, 0  # the gaps it could disturb come in order; add up what lies between them
        while index < len(keys) and keys[index] // gaps == event:
            gap = keys[index] % gaps
            if branches[index] & subset != 0:
                start = at[gap - 1] if gap > 0 else at[final] - window
                harmless += between(timed, event, came, start) if passed else up_to(timed, event, start)
                came = at[gap] if gap < length else at[0] + window
                passed = True
            index += 1
        if passed:
            exists = timed.exists[event]
            total *= (harmless + onwards(timed, event, came)) * exists + (1.0 - exists)
    return total


@borrowing(types.float64(TIMED, INT64S, INT64S, types.int64, INT64S, types.int64, types.int64))
def undisturbed(
    timed: Timed, keys: Int64s, branches: Int64s, stand: int, at: Int64s, length: int, window: int
) -> float:
    """P(nobody disturbs the events at these instants, in at least one of the standing disjuncts)."""
    total, most = 0.0, 0.0
    subset = stand
    while subset > 0:
        members = 0
        for bit in range(63):
            members += (subset >> bit) & 1
        share = undisturbed_at(timed, keys, branches, subset, at, length, window)
        total += share if members % 2 == 1 else -share
        if members == 1:
            most = max(most, share)
        subset = (subset - 1) & stand
    return max(total, most)


class Signatures(NamedTuple):
    """What is known of the signatures that begin with one event; node k of the trie is row k."""

    nearest: Int64s  # the latest time of the next event
    wanted: Int64s  # 1: it is complete and known in the interval that is asked for
    rivals: npt.NDArray[np.int64]  # where its rivals begin and end in `keys`, and the disjuncts that stand
    confidence: Float64s
    earliest: Int64s
    latest: Int64s
    keys: Int64s  # rivals of all of them
    branches: Int64s
    size: Int64s  # [0]: how many nodes, [1]: how many keys


SIGNATURES = types.NamedTuple(
    (INT64S, INT64S, INT64_ROWS, FLOAT64S, INT64S, INT64S, INT64S, INT64S, INT64S), Signatures
)


@kernel(SIGNATURES())
def no_signatures() -> Signatures:
    """Room for some."""
    room = 64
    return Signatures(
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
        np.zeros((room, 3), np.int64),
        np.zeros(room),
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
        np.zeros(2, np.int64),
    )


@called_by_address(SIGNATURES(SIGNATURES, types.int64))
def with_room(known: Signatures, keys: int) -> Signatures:
    """The same with room for one more node and some more keys."""
    if known.size[0] == len(known.nearest):
        confidence = np.zeros(2 * len(known.confidence))
        confidence[: len(known.confidence)] = known.confidence
        known = Signatures(
            grown(known.nearest),
            grown(known.wanted),
            grown_rows(known.rivals),
            confidence,
            grown(known.earliest),
            grown(known.latest),
            known.keys,
            known.branches,
            known.size,
        )
    while known.size[1] + keys > len(known.keys):
        known = Signatures(
            known.nearest,
            known.wanted,
            known.rivals,
            known.confidence,
            known.earliest,
            known.latest,
            grown(known.keys),
            grown(known.branches),
            known.size,
        )
    return known


@kernel(types.Tuple((INT64S, INT64S, INT64S))(NODES, types.int64))
def path_to(nodes: Nodes, node: int) -> tuple[Int64s, Int64s, Int64s]:
    """The nodes from the first to this one, their events and places."""
    length, each = 0, node
    while each >= 0:
        length += 1
        each = nodes.entries[each, LEFT]
    chain, chosen, places = np.empty(length, np.int64), np.empty(length, np.int64), np.empty(length, np.int64)
    for index in range(length - 1, -1, -1):
        chain[index], chosen[index], places[index] = node, nodes.entries[node, EVENT], nodes.entries[node, RIGHT]
        node = nodes.entries[node, LEFT]
    return chain, chosen, places


@called_by_address(
    SIGNATURES(
        TIMED,
        WORTH,
        STACKS,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        NODES,
        SIGNATURES,
        types.int64,
        types.int64,
        types.int64,
    )
)
def describe(
    timed: Timed,
    worth: Worth,
    stacks: Stacks,
    program: Program,
    columns: Columns,
    predicate: Any,
    nodes: Nodes,
    known: Signatures,
    part: int,
    after: int,
    until: int,
) -> Signatures:
    """Adds what can be said of the newest node, whatever its instants."""
    node = known.size[0]
    known = with_room(known, 0)
    event, place = nodes.entries[node, EVENT], nodes.entries[node, RIGHT]
    chain, chosen, _ = path_to(nodes, node)
    length = len(chain)
    known.nearest[node], known.wanted[node] = NEVER, 0
    known.confidence[node], known.earliest[node], known.latest[node] = 0.0, NEVER, -NEVER
    begins = program.place[place, KLEENE] == 0
    goal = place + 1 if begins else place
    if program.strategy == CONTIGUOUS:
        everyone = program.places + program.negatives
        known.nearest[node] = next_by(stacks, timed.lower, part, everyone, timed.upper[event])
    if program.strategy == SKIP_NEXT and goal < program.places:
        end = stacks.begin[goal, part + 1]
        index = first_beyond(stacks, timed.lower, stacks.begin[goal, part], end, timed.upper[event])
        while index < end and timed.lower[stacks.member[index]] <= known.nearest[node]:
            other = stacks.member[index]
            if timed.exists[other] >= 1.0 and joins(
                timed.begins, timed.compared, program, columns, predicate, nodes, node, other, goal, begins, 0
            ):
                known.nearest[node] = min(known.nearest[node], timed.upper[other])
            index += 1
    if place == program.places - 1 and nodes.closed[node] == 1:
        when = completion_of(timed, worth, chosen[0], event, True)
        if after < when <= until:
            low, high = np.empty(length, np.int64), np.empty(length, np.int64)
            for index in range(length):
                low[index], high[index] = timed.lower[chosen[index]], timed.upper[chosen[index]]
            tighten(np.arange(length), low, high, length, length, worth.window)
            found = rivals(timed, worth, stacks, program, columns, predicate, nodes, part, chain, low, high, 0)
            known = with_room(known, len(found.keys))
            start = known.size[1]
            for index in range(len(found.keys)):
                known.keys[start + index], known.branches[start + index] = found.keys[index], found.branches[index]
            known.size[1] = start + len(found.keys)
            known.wanted[node] = 1
            known.rivals[node, 0], known.rivals[node, 1] = start, known.size[1]
            known.rivals[node, 2] = standing(program, columns, predicate, nodes, node, 0)
    known.size[0] = node + 1
    return known


class Table(NamedTuple):
    """Which node follows from which by which event: a hash table."""

    key: Int64s  # -1: free
    node: Int64s


TABLE = types.NamedUniTuple(INT64S, 2, Table)


@borrowing(types.int64(INT64S, types.int64))
def place_of(keys: Int64s, key: int) -> int:
    """Where a key is, or where it would go."""
    mask = len(keys) - 1
    slot = (key ^ (key >> 13)) & mask
    while keys[slot] not in (key, -1):
        slot = (slot + 1) & mask
    return slot


@kernel(TABLE(TABLE, types.int64))
def with_space(table: Table, used: int) -> Table:
    """The same table, larger if more than half of it is used."""
    if 2 * used < len(table.key):
        return table
    larger = Table(np.full(2 * len(table.key), -1, np.int64), np.empty(2 * len(table.key), np.int64))
    for slot in range(len(table.key)):
        if table.key[slot] >= 0:
            new = place_of(larger.key, table.key[slot])
            larger.key[new], larger.node[new] = table.key[slot], table.node[slot]
    return larger


@search_kernel(
    types.Tuple((RESULTS, INT64S))(
        TIMED,
        WORTH,
        STACKS,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        NODES,
        types.int64,
        types.int64,
        types.int64,
    ),
)
def search_points(
    timed: Timed,
    worth: Worth,
    stacks: Stacks,
    program: Program,
    columns: Columns,
    predicate: Any,
    nodes: Nodes,
    after: int,
    until: int,
    limit: int,
) -> tuple[Results, Int64s]:
    """All matches of all partitions, and counters."""
    places, total = program.places, len(timed.lower)
    counters = np.zeros(COUNTERS, np.int64)
    results = no_results(places)
    known = no_signatures()
    table = Table(np.full(64, -1, np.int64), np.empty(64, np.int64))
    size = 8
    reached, at, weight = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size)
    cursor, stop, taking = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64)
    for part in range(stacks.begin.shape[1] - 1):
        points = expand(timed, stacks, places, part)
        for index in range(stacks.begin[0, part], stacks.begin[0, part + 1]):
            first = stacks.member[index]
            if not joins(timed.begins, timed.compared, program, columns, predicate, nodes, -1, first, 0, True, 0):
                continue
            table.key[:] = -1
            used = 0
            known.size[:] = 0
            add_node(timed.compared, program, columns, predicate, nodes, -1, 0, first, 0, True, 0)
            known = describe(timed, worth, stacks, program, columns, predicate, nodes, known, part, after, until)
            for instant in range(timed.lower[first], timed.upper[first] + 1):
                depth = 0
                reached[0], at[0], weight[0] = 0, instant, at_instant(timed, first, instant) * timed.exists[first]
                fresh = weight[0] > 0.0  # the point match at this depth is new
                if not fresh:
                    continue
                while depth >= 0:
                    if stop_flag() != 0:
                        return results, counters
                    node = reached[depth]
                    place = nodes.entries[node, RIGHT]
                    if fresh:
                        fresh = False
                        counters[PARTIAL] += 1
                        if known.wanted[node] == 1:
                            counters[JUDGED] += 1
                            low, high, stand = known.rivals[node, 0], known.rivals[node, 1], known.rivals[node, 2]
                            share = weight[depth]
                            if low < high or program.judged:
                                share *= undisturbed(
                                    timed,
                                    known.keys[low:high],
                                    known.branches[low:high],
                                    stand,
                                    at,
                                    depth + 1,
                                    worth.window,
                                )
                            if share > 0.0:
                                known.confidence[node] += share
                                known.earliest[node] = min(known.earliest[node], at[0])
                                known.latest[node] = max(known.latest[node], at[depth])
                        # What may come next: first what the open group can take, then what begins the next component.
                        taking[depth] = program.place[place, KLEENE]
                        cursor[depth], stop[depth] = 0, 0
                        if taking[depth] == 1 or (place + 1 < places and nodes.closed[node] == 1):
                            goal = place if taking[depth] == 1 else place + 1
                            bound = min(at[0] + worth.window - 1, known.nearest[node])
                            bottom, top = points.begin[goal], points.begin[goal + 1]
                            cursor[depth] = first_after(points.instant, bottom, top, at[depth])
                            stop[depth] = first_after(points.instant, cursor[depth], top, bound)
                    if cursor[depth] >= stop[depth]:
                        if taking[depth] == 1:
                            taking[depth] = 0
                            if place + 1 < places and nodes.closed[node] == 1:
                                bound = min(at[0] + worth.window - 1, known.nearest[node])
                                bottom, top = points.begin[place + 1], points.begin[place + 2]
                                cursor[depth] = first_after(points.instant, bottom, top, at[depth])
                                stop[depth] = first_after(points.instant, cursor[depth], top, bound)
                                continue
                        depth -= 1
                        continue
                    point = cursor[depth]
                    cursor[depth] += 1
                    event = points.event[point]
                    begins = taking[depth] == 0
                    key = (node * total + event) * 2 + taking[depth]
                    slot = place_of(table.key, key)
                    following = table.node[slot] if table.key[slot] == key else UNKNOWN
                    if following == UNKNOWN:
                        goal = place + 1 if begins else place
                        following = REFUSED
                        counters[EVALUATED] += 1
                        repeated, each = False, node
                        while each >= 0:
                            repeated = repeated or nodes.entries[each, EVENT] == event
                            each = nodes.entries[each, LEFT]
                        if not repeated and joins(
                            timed.begins,
                            timed.compared,
                            program,
                            columns,
                            predicate,
                            nodes,
                            node,
                            event,
                            goal,
                            begins,
                            0,
                        ):
                            following = known.size[0]
                            if following == len(nodes.closed):
                                nodes = more_nodes(nodes)
                            add_node(
                                timed.compared,
                                program,
                                columns,
                                predicate,
                                nodes,
                                node,
                                following,
                                event,
                                goal,
                                begins,
                                0,
                            )
                            known = describe(
                                timed, worth, stacks, program, columns, predicate, nodes, known, part, after, until
                            )
                        table.key[slot], table.node[slot] = key, following
                        used += 1
                        table = with_space(table, used)
                    if following == REFUSED:
                        continue
                    depth += 1
                    if depth == size:
                        size *= 2
                        reached, at, cursor, stop = grown(reached), grown(at), grown(cursor), grown(stop)
                        taking, weight = grown(taking), grown_numbers(weight)
                    reached[depth], at[depth] = following, points.instant[point]
                    weight[depth] = weight[depth - 1] * points.chance[point]
                    fresh = True
            counters[PEAK] = max(counters[PEAK], known.size[0])
            for node in range(known.size[0]):
                confidence = min(known.confidence[node], 1.0)
                if confidence <= 0.0 or confidence < worth.least[0]:
                    continue
                if counters[REPORTED] == limit:
                    counters[OVERFLOW] = 1
                    return results, counters
                _, chosen, filled = path_to(nodes, node)
                when = completion_of(timed, worth, chosen[0], chosen[len(chosen) - 1], True)
                earliest, latest = known.earliest[node], known.latest[node]
                if is_full(results, len(chosen)):
                    results = with_room_for(results, len(chosen))
                put(results, chosen, filled, len(chosen), when, 1.0, confidence, earliest, latest)
                counters[REPORTED] += 1
    return results, counters

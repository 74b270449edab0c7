"""Event-based evaluation in the order of the pattern for queries with Kleene plus (beyond TIME; SASE+ for the groups).

A group takes events one by one, in an order of their own: `a1 a2` and `a2 a1` are different results, found in
different worlds. Under skip_till_next_match an open group may not pass an event that it could take.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import COLUMNS, INT64_ROWS, INT64S, Columns
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.timed import STACKS, TIMED, Stacks, Timed, first_beyond, first_reaching, widest
from cepheid.engine.kernels.apart import apart
from cepheid.engine.kernels.arrays import grown
from cepheid.engine.output.top import begin_partition, raise_bar
from cepheid.engine.program.tables import KLEENE, PROGRAM, Program
from cepheid.engine.search.intervals.found import COUNTERS, EVALUATED, JUDGED, OVERFLOW, PARTIAL, PEAK, REPORTED
from cepheid.engine.search.intervals.query import SHAPE, Shape
from cepheid.engine.search.intervals.search import completion_of
from cepheid.engine.search.intervals.written import WRITTEN, Written, nothing_written, write
from cepheid.engine.kernels.partial_matches import (
    FUNCTION,
    NODES,
    Nodes,
    add_node,
    holds_event,
    joins,
    more_nodes,
    rivals_of,
    standing,
)
from cepheid.engine.worth.confidence.shared_rivals import unweighed
from cepheid.engine.worth.confidence.bounds import tighten
from cepheid.engine.worth.confidence.confidence import alternatives
from cepheid.engine.worth.confidence.order import workspace, ordered_within

Int64s = npt.NDArray[np.int64]

TAKING, BEGINNING, NOTHING = range(3)  # what is tried after a node: to take another event, to begin the next component


@apart(
    types.Tuple((types.float64, types.int64, types.int64, types.float64))(
        TIMED,
        SHAPE,
        STACKS,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        NODES,
        types.int64,
        INT64S,
        INT64S,
        INT64S,
        INT64S,
        types.float64,
    )
)
def judge_groups(
    timed: Timed,
    shape: Shape,
    stacks: Stacks,
    program: Program,
    columns: Columns,
    predicate: Any,
    nodes: Nodes,
    part: int,
    chain: Int64s,
    chosen: Int64s,
    low: Int64s,
    high: Int64s,
    ordered: float,
) -> tuple[float, int, int, float]:
    """The confidence and the tightest range of a complete match; `ordered` is what it would be without rivals."""
    length = len(chosen)
    holes = 0
    for event in chosen:
        holes |= timed.holes[event]
    simple = holes == 0 and ordered > 0.0
    if simple and not shape.next and shape.negatives == 0:
        return min(ordered, 1.0), low[0], high[length - 1], 0.0
    found = rivals_of(timed, shape, stacks, program, columns, predicate, nodes, part, chain, chosen, low, high)
    if simple and len(found.keys) == 0:
        return min(ordered, 1.0), low[0], high[length - 1], 0.0
    stand = standing(program, columns, predicate, nodes, chain[length - 1])
    return alternatives(timed, chosen, low, high, shape.window, found, stand, unweighed(), shape.budget)


@numba.njit(
    types.UniTuple(types.int64, 2)(TIMED, SHAPE, STACKS, types.int64, types.int64, INT64_ROWS, INT64_ROWS, types.int64),
    cache=True,
)
def reachable(
    timed: Timed,
    shape: Shape,
    stacks: Stacks,
    part: int,
    place: int,
    low: npt.NDArray[np.int64],
    high: npt.NDArray[np.int64],
    depth: int,
) -> tuple[int, int]:
    """Which candidates of a place could come after `depth` events with the valid bounds in row depth - 1."""
    bottom, top = stacks.begin[place, part], stacks.begin[place, part + 1]
    top = first_beyond(stacks, timed.lower, bottom, top, high[depth - 1, 0] + shape.window - 1)
    return first_reaching(stacks, bottom, top, low[depth - 1, depth - 1] + 1), top


@numba.njit(INT64_ROWS(INT64_ROWS), cache=True)
def widened(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The same values with room for as many rows and columns again."""
    larger = np.zeros((2 * values.shape[0], 2 * values.shape[1]), np.int64)
    larger[: values.shape[0], : values.shape[1]] = values
    return larger


@numba.njit(
    types.Tuple((WRITTEN, INT64S, types.float64))(
        TIMED,
        SHAPE,
        STACKS,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        NODES,
        types.int64,
        types.int64,
        types.int64,
    ),
    cache=True,
)
def search_groups(
    timed: Timed,
    shape: Shape,
    stacks: Stacks,
    program: Program,
    columns: Columns,
    predicate: Any,
    nodes: Nodes,
    after: int,
    until: int,
    limit: int,
) -> tuple[Written, Int64s, float]:
    """All matches of all partitions, counters, and the cost of a confidence that was too expensive (0: none was)."""
    places = shape.positives
    counters = np.zeros(COUNTERS, np.int64)
    written = nothing_written(places)
    width = widest(timed)
    size = max(8, places)
    room = workspace(width, size)
    steps = np.arange(size)  # the places of the events in the sequence, for `tighten`: 0, 1, 2 ...
    low, high = np.zeros((size, size), np.int64), np.zeros((size, size), np.int64)
    chosen, filled = np.zeros(size, np.int64), np.zeros(size, np.int64)
    cursor, stop, nearest = np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64)
    trying = np.zeros(size + 1, np.int64)
    nodes = more_nodes(nodes)
    for part in range(stacks.begin.shape[1] - 1):
        begin_partition(shape)
        depth = 0  # how many events are chosen; cursor[depth] goes over what may come next
        cursor[0], stop[0] = stacks.begin[0, part], stacks.begin[0, part + 1]
        trying[0], nearest[0] = BEGINNING, NEVER
        while depth >= 0:
            place = filled[depth - 1] if depth > 0 else -1
            if cursor[depth] >= stop[depth]:
                if trying[depth] == BEGINNING or depth == 0:
                    depth -= 1
                    continue
                # All that the group can take has been tried; now what can begin the next component.
                trying[depth] = BEGINNING
                if place + 1 == places or nodes.closed[depth - 1] == 0:
                    depth -= 1
                    continue
                cursor[depth], stop[depth] = reachable(timed, shape, stacks, part, place + 1, low, high, depth)
                continue
            event = stacks.member[cursor[depth]]
            cursor[depth] += 1
            if timed.lower[event] > nearest[depth]:
                cursor[depth] = stop[depth]
                continue
            begins = trying[depth] == BEGINNING
            goal = place + 1 if begins else place
            if holds_event(chosen, depth, event):
                continue
            counters[EVALUATED] += 1
            if not joins(timed, program, columns, predicate, nodes, depth - 1, event, goal, begins):
                continue
            if shape.next and depth > 0 and timed.lower[event] > high[depth - 1, depth - 1]:
                # It would be selected for certain by then; an open group is only held up by what it could take.
                holds_up = not begins or program.place[place, KLEENE] == 0
                nearest[depth] = min(nearest[depth], timed.upper[event] if holds_up else NEVER)
            if depth == size:
                size *= 2
                room, steps = workspace(width, size), np.arange(size)
                low, high = widened(low), widened(high)
                chosen, filled = grown(chosen), grown(filled)
                cursor, stop, nearest, trying = grown(cursor), grown(stop), grown(nearest), grown(trying)
            for index in range(depth):
                low[depth, index], high[depth, index] = low[depth - 1, index], high[depth - 1, index]
            low[depth, depth], high[depth, depth] = timed.lower[event], timed.upper[event]
            length = depth + places - goal  # at least so many events in the whole match
            if not tighten(steps, low[depth], high[depth], depth + 1, length, shape.window):
                continue
            chosen[depth], filled[depth] = event, goal
            ordered = -1.0
            if shape.least[0] > 0.0:
                ordered = ordered_within(timed, chosen, low[depth], high[depth], depth + 1, shape.window, room)
                if ordered < shape.least[0]:
                    continue
            if depth == len(nodes.closed):
                nodes = more_nodes(nodes)
            add_node(timed, program, columns, predicate, nodes, depth - 1, depth, event, goal, begins)
            counters[PARTIAL] += 1
            counters[PEAK] = max(counters[PEAK], depth + 1)
            if goal == places - 1 and nodes.closed[depth] == 1:
                known = completion_of(timed, shape, chosen[0], event)
                if after < known <= until:
                    counters[JUDGED] += 1
                    if ordered < 0.0:
                        ordered = ordered_within(timed, chosen, low[depth], high[depth], depth + 1, shape.window, room)
                    confidence, earliest, latest, cost = judge_groups(
                        timed,
                        shape,
                        stacks,
                        program,
                        columns,
                        predicate,
                        nodes,
                        part,
                        steps[: depth + 1],
                        chosen[: depth + 1],
                        low[depth][: depth + 1],
                        high[depth][: depth + 1],
                        ordered,
                    )
                    if cost > 0.0:
                        return written, counters, cost
                    if confidence > 0.0 and confidence >= shape.least[0]:
                        if counters[REPORTED] == limit:
                            counters[OVERFLOW] = 1
                            return written, counters, 0.0
                        written = write(
                            written, chosen[: depth + 1], filled[: depth + 1], known, confidence, earliest, latest
                        )
                        raise_bar(shape, confidence)
                        counters[REPORTED] += 1
            kleene = program.place[goal, KLEENE] == 1
            if goal == places - 1 and not kleene:
                continue
            depth += 1
            trying[depth], nearest[depth] = TAKING if kleene else BEGINNING, NEVER
            following = goal if kleene else goal + 1
            cursor[depth], stop[depth] = reachable(timed, shape, stacks, part, following, low, high, depth)
    return written, counters, 0.0

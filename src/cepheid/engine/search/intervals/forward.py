"""Event-based evaluation in the order of the pattern, with Kleene plus and with missing events (beyond TIME).

A group takes events one by one, in an order of their own: `a1 a2` and `a2 a1` are different results, found in
different worlds. Under skip_till_next_match an open group may not pass an event that it could take. Components whose
events may be missing are passed over, at the score of the edge that does so (AYAC section 4). A path is given up when
no choice of instants lets it reach the threshold: the scores of its gaps are taken at their best spans, what is to come
at the best that any path could reach, and all of it counts at most as often as two neighbours come in order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import COLUMNS, FLOAT64S, INT64_ROWS, INT64S, Columns
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.timed import STACKS, TIMED, Stacks, Timed, first_beyond, first_reaching, next_by, widest
from cepheid.engine.kernels.arrays import grown
from cepheid.engine.kernels.compile import borrowing, kernel, search_kernel
from cepheid.engine.kernels.conditions import FUNCTION
from cepheid.engine.kernels.partial_matches import (
    NODES,
    Nodes,
    add_node,
    complete_holds,
    holds_event,
    joins,
    more_nodes,
)
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.output.top import begin_partition, raise_bar
from cepheid.engine.program.tables import CONTIGUOUS, KLEENE, PROGRAM, SKIP_NEXT, Program
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
    with_room,
)
from cepheid.engine.worth.confidence.bounds import tighten
from cepheid.engine.worth.confidence.order import ordered_within, precedes, workspace
from cepheid.engine.worth.edges import CERTAIN, CLOSED
from cepheid.engine.worth.judge import judge
from cepheid.engine.worth.spans import best_of
from cepheid.engine.worth.worth import WORTH, Worth, completion_of

Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


class Path(NamedTuple):
    """The events chosen so far, an entry each, and what may come behind them: entry d is tried after d events."""

    low: Rows  # row d: the valid bounds of the first d + 1 events
    high: Rows
    event: Int64s
    place: Int64s
    missing: Int64s  # bits of the components that were passed over
    table: Int64s  # the table of scores of the gap before the event
    best: Float64s  # log of the best score of the gaps so far
    rare: Float64s  # how probable the least probable pair of neighbours is
    goal: Int64s  # the place that is tried
    cursor: Int64s
    stop: Int64s
    nearest: Int64s  # the latest time of the next event, as far as it is known


PATH = types.NamedTuple(
    (INT64_ROWS, INT64_ROWS, *(INT64S,) * 4, FLOAT64S, FLOAT64S, *(INT64S,) * 4),
    Path,
)


@kernel(PATH(types.int64))
def new_path(size: int) -> Path:
    """Room for so many events."""
    return Path(
        np.zeros((size, size), np.int64),
        np.zeros((size, size), np.int64),
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
        np.zeros(size + 1, np.int64),
        np.zeros(size),
        np.ones(size),
        np.zeros(size + 1, np.int64),
        np.zeros(size + 1, np.int64),
        np.zeros(size + 1, np.int64),
        np.zeros(size + 1, np.int64),
    )


@kernel(PATH(PATH))
def longer_path(path: Path) -> Path:
    """The same path with room for as many events again."""
    size = len(path.event)
    low, high = np.zeros((2 * size, 2 * size), np.int64), np.zeros((2 * size, 2 * size), np.int64)
    low[:size, :size], high[:size, :size] = path.low, path.high
    return Path(
        low,
        high,
        grown(path.event),
        grown(path.place),
        grown(path.missing),
        grown(path.table),
        grown_numbers(path.best),
        grown_numbers(path.rare),
        grown(path.goal),
        grown(path.cursor),
        grown(path.stop),
        grown(path.nearest),
    )


@borrowing(types.boolean(TIMED, WORTH, STACKS, PROGRAM, PATH, types.int64, types.int64, types.int64, types.boolean))
def aim(
    timed: Timed,
    worth: Worth,
    stacks: Stacks,
    program: Program,
    path: Path,
    part: int,
    depth: int,
    goal: int,
    first: bool,
) -> bool:
    """Looks for events for the first place from `goal` on that may come next after `depth` events; False: none may.

    `first` says that nothing has been tried there yet.
    """
    source = path.place[depth - 1] if depth > 0 else -1
    while goal < program.places and goal != source and worth.number[source + 1, goal] == CLOSED:
        goal += 1
    if goal == program.places:
        return False
    bottom, top = stacks.begin[goal, part], stacks.begin[goal, part + 1]
    if first or worth.scored:
        path.nearest[depth] = NEVER
    if depth > 0:
        low, high = path.low[depth - 1], path.high[depth - 1]
        top = first_beyond(stacks, timed.lower, bottom, top, high[0] + worth.window - 1)
        bottom = first_reaching(stacks, bottom, top, low[depth - 1] + 1)
        if program.strategy == CONTIGUOUS:
            everyone = program.places + program.negatives
            path.nearest[depth] = next_by(stacks, timed.lower, part, everyone, high[depth - 1])
    path.goal[depth], path.cursor[depth], path.stop[depth] = goal, bottom, top
    return True


@borrowing(types.boolean(TIMED, WORTH, PROGRAM, PATH, INT64S, types.int64, types.int64, types.int64))
def extends(
    timed: Timed, worth: Worth, program: Program, path: Path, steps: Int64s, depth: int, event: int, goal: int
) -> bool:
    """Puts an event at the end of the path, with valid bounds; False if no world is left that is worth it."""
    low, high = path.low[depth], path.high[depth]
    for index in range(depth):
        low[index], high[index] = path.low[depth - 1, index], path.high[depth - 1, index]
    low[depth], high[depth] = timed.lower[event], timed.upper[event]
    length = depth + (1 if worth.scored else program.places - goal)  # at least so many events in the whole match
    if not tighten(steps, low, high, depth + 1, length, worth.window):
        return False
    path.event[depth], path.place[depth] = event, goal
    if depth == 0:
        path.missing[0], path.table[0] = (1 << goal) - 1, worth.number[0, goal]
        path.best[0], path.rare[0] = 0.0, 1.0
    else:
        source = path.place[depth - 1]
        path.missing[depth], path.table[depth] = path.missing[depth - 1], CERTAIN
        if source != goal:
            path.missing[depth] |= ((1 << goal) - 1) & ~((1 << (source + 1)) - 1)
            path.table[depth] = worth.number[source + 1, goal]
    if not worth.scored:
        return True
    if depth > 0:
        path.best[depth] = path.best[depth - 1]
        if path.table[depth] != CERTAIN:
            longest = min(high[depth] - low[depth - 1], worth.window - 1)
            path.best[depth] += best_of(
                worth.spans,
                path.table[depth],
                worth.monotone[path.place[depth - 1] + 1, goal],
                max(1, low[depth] - high[depth - 1]),
                longest,
            )
        path.rare[depth] = min(path.rare[depth - 1], precedes(timed, path.event[depth - 1], event))
    rare, bound = path.rare[depth], path.best[depth] + worth.highest[0, path.place[0]] + worth.ahead[goal]
    if rare <= 0.0 or rare < worth.least[0] or bound == -np.inf:
        return False
    return bool(bound + np.log(rare) >= worth.threshold)


@borrowing(types.boolean(WORTH, PATH, types.int64))
def may_end(worth: Worth, path: Path, depth: int) -> bool:
    """Could a match that ends with entry `depth` reach the threshold, its edges taken at their best spans?"""
    if not worth.scored:
        return True
    window, low, high = worth.window, path.low[depth], path.high[depth]
    places, final = worth.number.shape[1] - 1, path.place[depth]
    nearest, farthest = 0, 0  # from the first to the last event
    if depth > 0:
        nearest, farthest = max(1, low[depth] - high[0]), min(high[depth] - low[0], window - 1)
    bound = path.best[depth] + np.log(path.rare[depth])
    monotone = worth.monotone
    bound += best_of(worth.spans, path.table[0], monotone[0, path.place[0]], window - farthest, window - nearest)
    behind = worth.number[final + 1, places]
    bound += best_of(worth.spans, behind, monotone[final + 1, places], window - farthest, window - nearest)
    return bool(bound > -np.inf and bound >= worth.threshold)


@search_kernel(
    types.Tuple((RESULTS, INT64S, types.float64))(
        TIMED, WORTH, STACKS, PROGRAM, COLUMNS, FUNCTION, NODES, types.int64, types.int64, types.int64
    ),
)
def search_forward(
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
) -> tuple[Results, Int64s, float]:
    """All matches of all partitions, counters, and the cost of a match that was too expensive to judge (0: none)."""
    places = program.places
    counters, results = np.zeros(COUNTERS, np.int64), no_results(places)
    width, size = widest(timed), max(8, places)
    room, steps, path = workspace(width, size), np.arange(size), new_path(size)
    nodes = more_nodes(nodes)
    for part in range(stacks.begin.shape[1] - 1):
        begin_partition(worth)
        depth = 0  # how many events are chosen
        if not aim(timed, worth, stacks, program, path, part, 0, 0, True):
            continue
        while depth >= 0:
            if stop_flag() != 0:
                return results, counters, 0.0
            source, goal = path.place[depth - 1] if depth > 0 else -1, path.goal[depth]
            if path.cursor[depth] >= path.stop[depth]:
                # All that could fill this place has been tried; now the next one that may come behind.
                left = source >= 0 and nodes.closed[depth - 1] == 0  # an open group that may not be left
                if left or not aim(timed, worth, stacks, program, path, part, depth, goal + 1, False):
                    depth -= 1
                continue
            event = stacks.member[path.cursor[depth]]
            path.cursor[depth] += 1
            if timed.lower[event] > path.nearest[depth]:
                path.cursor[depth] = path.stop[depth]
                continue
            if holds_event(path.event, depth, event):
                continue
            begins = goal != source
            if not begins and program.place[source, KLEENE] == 0:
                continue
            counters[EVALUATED] += 1
            skipped = path.missing[depth - 1] if depth > 0 else 0
            if begins:
                skipped |= ((1 << goal) - 1) & ~((1 << (source + 1)) - 1)
            if not joins(
                timed.begins,
                timed.compared,
                program,
                columns,
                predicate,
                nodes,
                depth - 1,
                event,
                goal,
                begins,
                skipped,
            ):
                continue
            if program.strategy == SKIP_NEXT and not worth.scored and depth > 0 and timed.exists[event] >= 1.0:
                # It would be selected for certain by then; an open group is only held up by what it could take.
                holds_up = not begins or program.place[source, KLEENE] == 0
                if holds_up and timed.lower[event] > path.high[depth - 1, depth - 1]:
                    path.nearest[depth] = min(path.nearest[depth], timed.upper[event])
            if depth == size:
                size *= 2
                room, steps, path = workspace(width, size), np.arange(size), longer_path(path)
            if not extends(timed, worth, program, path, steps, depth, event, goal):
                continue
            low, high = path.low[depth], path.high[depth]
            if worth.least[0] > 0.0 and not worth.scored:
                ordered = ordered_within(timed, path.event, low, high, depth + 1, worth.window, room)
                if ordered < worth.least[0]:
                    continue
            if depth == len(nodes.closed):
                nodes = more_nodes(nodes)
            add_node(timed.compared, program, columns, predicate, nodes, depth - 1, depth, event, goal, begins, skipped)
            counters[PARTIAL] += 1
            counters[PEAK] = max(counters[PEAK], depth + 1)
            ends_here = goal == places - 1
            behind = worth.number[goal + 1, places]
            known = completion_of(timed, worth, path.event[0], event, ends_here)
            # With an open end, the first component must have been seen.
            complete = behind != CLOSED and nodes.closed[depth] == 1 and (ends_here or path.place[0] == 0)
            if complete and after < known <= until and may_end(worth, path, depth):
                missing = skipped | ((1 << places) - (1 << (goal + 1)))
                if missing == 0 or complete_holds(program, columns, predicate, nodes, depth, missing):
                    counters[JUDGED] += 1
                    path.table[depth + 1] = behind
                    probability, confidence, earliest, latest, cost = judge(
                        timed,
                        worth,
                        stacks,
                        program,
                        columns,
                        predicate,
                        nodes,
                        part,
                        steps[: depth + 1],
                        low[: depth + 1],
                        high[: depth + 1],
                        path.table[: depth + 2],
                        missing,
                        room,
                    )
                    if cost > 0.0:
                        return results, counters, cost
                    if confidence > 0.0 and confidence >= worth.least[0] and probability >= worth.score:
                        if counters[REPORTED] == limit:
                            counters[OVERFLOW] = 1
                            return results, counters, 0.0
                        if is_full(results, depth + 1):
                            results = with_room(results, depth + 1)
                        put(
                            results,
                            path.event,
                            path.place,
                            depth + 1,
                            known,
                            probability,
                            confidence,
                            earliest,
                            latest,
                        )
                        raise_bar(worth, confidence)
                        counters[REPORTED] += 1
            kleene = program.place[goal, KLEENE] == 1
            if aim(timed, worth, stacks, program, path, part, depth + 1, goal if kleene else goal + 1, True):
                depth += 1
    return results, counters, 0.0

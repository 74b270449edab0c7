"""Event-based evaluation in the order of the pattern, with Kleene plus and with missing events (beyond TIME).

A group takes events one by one, in an order of their own: `a1 a2` and `a2 a1` are different results, found in
different worlds. Under skip_till_next_match an open group may not pass an event that it could take. Components whose
events may be missing are passed over, at the score of the edge that does so (AYAC section 4). A path is given up when
no choice of instants lets it reach the threshold: the scores of its gaps are taken at their best spans, what is to come
at the best that any path could reach, and all of it counts at most as often as two neighbours come in order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64s, Int64Rows, Int64s
from cepheid.engine.data.columns import Columns, PredicateCall
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.timed import Stacks, Timed, first_beyond, first_reaching, next_by, widest
from cepheid.engine.kernels.arrays import grown
from cepheid.engine.kernels.compile import borrowing, kernel, search_kernel
from cepheid.engine.kernels.partial_matches import (
    Nodes,
    PartialMatches,
    add_node,
    complete_holds,
    holds_event,
    joins,
    more_nodes,
)
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.output.top import begin_partition, raise_bar
from cepheid.engine.program.tables import CONTIGUOUS, KLEENE, SKIP_NEXT, Program
from cepheid.engine.scoring.confidence.bounds import tighten
from cepheid.engine.scoring.confidence.competing import Chain
from cepheid.engine.scoring.confidence.order import Workspace, ordered_within, precedes, workspace
from cepheid.engine.scoring.edges import CERTAIN, CLOSED
from cepheid.engine.scoring.evaluate import judge
from cepheid.engine.scoring.match_score import MatchScore, completion_of
from cepheid.engine.scoring.spans import best_of
from cepheid.engine.search.intervals.results import (
    BOUNDED,
    COUNTERS,
    DONE,
    EVALUATED,
    FULL,
    JUDGED,
    OVERFLOW,
    PARTIAL,
    PEAK,
    REPORTED,
    STOPPED,
    Results,
    SearchRequest,
    grown_numbers,
    is_full,
    no_results,
    put,
    with_room,
)


class Path(NamedTuple):
    """The events chosen so far, an entry each, and what may come behind them: entry d is tried after d events."""

    low: Int64Rows  # row d: the valid bounds of the first d + 1 events
    high: Int64Rows
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
    depth: Int64s  # one number: how many events are chosen


@kernel
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
        np.zeros(1, np.int64),
    )


@kernel
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
        path.depth,
    )


@borrowing
def aim(
    timed: Timed,
    match_score: MatchScore,
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
    while goal < program.places and goal != source and match_score.number[source + 1, goal] == CLOSED:
        goal += 1
    if goal == program.places:
        return False
    bottom, top = stacks.begin[goal, part], stacks.begin[goal, part + 1]
    if first or match_score.scored:
        path.nearest[depth] = NEVER
    if depth > 0:
        low, high = path.low[depth - 1], path.high[depth - 1]
        top = first_beyond(stacks, timed.lower, bottom, top, high[0] + match_score.window - 1)
        bottom = first_reaching(stacks, bottom, top, low[depth - 1] + 1)
        if program.strategy == CONTIGUOUS:
            everyone = program.places + program.negatives
            path.nearest[depth] = next_by(stacks, timed.lower, part, everyone, high[depth - 1])
    path.goal[depth], path.cursor[depth], path.stop[depth] = goal, bottom, top
    return True


@borrowing
def extends(
    timed: Timed,
    match_score: MatchScore,
    program: Program,
    path: Path,
    steps: Int64s,
    depth: int,
    event: int,
    goal: int,
) -> bool:
    """Puts an event at the end of the path, with valid bounds; False if no world is left that is worth it."""
    low, high = path.low[depth], path.high[depth]
    for index in range(depth):
        low[index], high[index] = path.low[depth - 1, index], path.high[depth - 1, index]
    low[depth], high[depth] = timed.lower[event], timed.upper[event]
    length = depth + (1 if match_score.scored else program.places - goal)  # at least so many events in the whole match
    if not tighten(steps, low, high, depth + 1, length, match_score.window):
        return False
    path.event[depth], path.place[depth] = event, goal
    if depth == 0:
        path.missing[0], path.table[0] = (1 << goal) - 1, match_score.number[0, goal]
        path.best[0], path.rare[0] = 0.0, 1.0
    else:
        source = path.place[depth - 1]
        path.missing[depth], path.table[depth] = path.missing[depth - 1], CERTAIN
        if source != goal:
            path.missing[depth] |= ((1 << goal) - 1) & ~((1 << (source + 1)) - 1)
            path.table[depth] = match_score.number[source + 1, goal]
    if not match_score.scored:
        return True
    if depth > 0:
        path.best[depth] = path.best[depth - 1]
        if path.table[depth] != CERTAIN:
            longest = min(high[depth] - low[depth - 1], match_score.window - 1)
            path.best[depth] += best_of(
                match_score.spans,
                path.table[depth],
                match_score.monotone[path.place[depth - 1] + 1, goal],
                max(1, low[depth] - high[depth - 1]),
                longest,
            )
        path.rare[depth] = min(path.rare[depth - 1], precedes(timed, path.event[depth - 1], event))
    rare, bound = path.rare[depth], path.best[depth] + match_score.highest[0, path.place[0]] + match_score.ahead[goal]
    if rare <= 0.0 or rare < match_score.least[0] or bound == -np.inf:
        return False
    return bool(bound + np.log(rare) >= match_score.threshold)


@borrowing
def may_end(match_score: MatchScore, path: Path, depth: int) -> bool:
    """Could a match that ends with entry `depth` reach the threshold, its edges taken at their best spans?"""
    if not match_score.scored:
        return True
    window, low, high = match_score.window, path.low[depth], path.high[depth]
    places, final = match_score.number.shape[1] - 1, path.place[depth]
    nearest, farthest = 0, 0  # from the first to the last event
    if depth > 0:
        nearest, farthest = max(1, low[depth] - high[0]), min(high[depth] - low[0], window - 1)
    bound = path.best[depth] + np.log(path.rare[depth])
    monotone = match_score.monotone
    bound += best_of(match_score.spans, path.table[0], monotone[0, path.place[0]], window - farthest, window - nearest)
    behind = match_score.number[final + 1, places]
    bound += best_of(match_score.spans, behind, monotone[final + 1, places], window - farthest, window - nearest)
    return bool(bound > -np.inf and bound >= match_score.threshold)


class Forward(NamedTuple):
    """What the search reads, and room for what is growing; kernels put it together, since it holds functions."""

    timed: Timed
    match_score: MatchScore
    stacks: Stacks
    partial: PartialMatches
    room: Workspace
    steps: Int64s  # 0, 1, 2 and so on
    counters: Int64s
    cost: Float64s  # one number: above 0, what a confidence costs that is too expensive


NOBODY = -1


@borrowing
def next_event(search: Forward, path: Path, part: int) -> int:
    """The next event to try at the end of the path; NOBODY, where all were tried: then the path is shorter, or aims on.

    One that cannot come there is passed over: it is in the path, or too late.
    """
    depth, nodes = path.depth[0], search.partial.nodes
    source, goal = path.place[depth - 1] if depth > 0 else -1, path.goal[depth]
    if path.cursor[depth] >= path.stop[depth]:
        # All that could fill this place has been tried; now the next one that may come behind.
        left = source >= 0 and nodes.closed[depth - 1] == 0  # an open group that may not be left
        timed, match_score, stacks, program = search.timed, search.match_score, search.stacks, search.partial.program
        if left or not aim(timed, match_score, stacks, program, path, part, depth, goal + 1, False):
            path.depth[0] -= 1
        return NOBODY
    event = search.stacks.member[path.cursor[depth]]
    path.cursor[depth] += 1
    if search.timed.lower[event] > path.nearest[depth]:
        path.cursor[depth] = path.stop[depth]
        return NOBODY
    if holds_event(path.event, depth, event):
        return NOBODY
    if goal == source and search.partial.program.place[source, KLEENE] == 0:
        return NOBODY
    return event  # type: ignore[no-any-return]


@borrowing
def joins_path(search: Forward, path: Path, event: int, skipped: int) -> bool:
    """May the event come at the end of the path, and is some world left that is worth it? Then it is put there."""
    timed, match_score, partial = search.timed, search.match_score, search.partial
    depth, program = path.depth[0], partial.program
    source, goal = path.place[depth - 1] if depth > 0 else -1, path.goal[depth]
    begins = goal != source
    search.counters[EVALUATED] += 1
    if not joins(timed.begins, timed.compared, partial, depth - 1, event, goal, begins, skipped):
        return False
    if program.strategy == SKIP_NEXT and not match_score.scored and depth > 0 and timed.exists[event] >= 1.0:
        # It would be selected for certain by then; an open group is only held up by what it could take.
        holds_up = not begins or program.place[source, KLEENE] == 0
        if holds_up and timed.lower[event] > path.high[depth - 1, depth - 1]:
            path.nearest[depth] = min(path.nearest[depth], timed.upper[event])
    if not extends(timed, match_score, program, path, search.steps, depth, event, goal):
        return False
    if match_score.least[0] > 0.0 and not match_score.scored:
        low, high = path.low[depth], path.high[depth]
        if (
            ordered_within(timed, path.event, low, high, depth + 1, match_score.window, search.room)
            < match_score.least[0]
        ):
            return False
    add_node(timed.compared, partial, depth - 1, depth, event, goal, begins, skipped)
    search.counters[PARTIAL] += 1
    search.counters[PEAK] = max(search.counters[PEAK], depth + 1)
    return True


@borrowing
def report_path(search: Forward, path: Path, asked: SearchRequest, part: int, skipped: int, results: Results) -> bool:
    """Judges the path if it is a match, and puts it to the results if it is worth it; False: the search must end."""
    timed, match_score, partial = search.timed, search.match_score, search.partial
    depth, places, counters = path.depth[0], partial.program.places, search.counters
    event, goal = path.event[depth], path.goal[depth]
    ends_here, behind = goal == places - 1, match_score.number[goal + 1, places]
    known = completion_of(timed, match_score, path.event[0], event, ends_here)
    # With an open end, the first component must have been seen.
    complete = behind != CLOSED and partial.nodes.closed[depth] == 1 and (ends_here or path.place[0] == 0)
    if not complete or known <= asked.after or known > asked.until or not may_end(match_score, path, depth):
        return True
    missing = skipped | ((1 << places) - (1 << (goal + 1)))
    if missing != 0 and not complete_holds(partial, depth, missing):
        return True
    counters[JUDGED] += 1
    path.table[depth + 1] = behind
    low, high = path.low[depth, : depth + 1], path.high[depth, : depth + 1]
    chain = Chain(part, search.steps[: depth + 1], low, high, path.table[: depth + 2], missing)
    probability, confidence, earliest, latest, cost = judge(
        timed, match_score, search.stacks, partial, chain, 0, search.room
    )
    if cost > 0.0:
        search.cost[0] = cost
        return False
    if confidence <= 0.0 or confidence < match_score.least[0] or probability < match_score.score:
        return True
    if counters[REPORTED] == asked.limit:
        counters[OVERFLOW] = 1
        return False
    put(results, path.event, path.place, depth + 1, known, probability, confidence, earliest, latest)
    raise_bar(match_score, confidence)
    counters[REPORTED] += 1
    return True


@borrowing
def search_paths(search: Forward, path: Path, asked: SearchRequest, part: int, results: Results) -> int:
    """Follows all paths of a partition from where the path stands. DONE, FULL or STOPPED."""
    program, nodes = search.partial.program, search.partial.nodes
    while path.depth[0] >= 0:
        if stop_flag() != 0:
            return STOPPED
        depth = path.depth[0]
        if depth == len(path.event) or depth == len(nodes.closed) or is_full(results, depth + 1):
            return FULL
        goal = path.goal[depth]
        event = next_event(search, path, part)
        if event == NOBODY:
            continue
        source = path.place[depth - 1] if depth > 0 else -1
        skipped = path.missing[depth - 1] if depth > 0 else 0
        if goal != source:
            skipped |= ((1 << goal) - 1) & ~((1 << (source + 1)) - 1)
        if not joins_path(search, path, event, skipped):
            continue
        if not report_path(search, path, asked, part, skipped, results):
            return STOPPED
        onwards = goal if program.place[goal, KLEENE] == 1 else goal + 1
        if aim(search.timed, search.match_score, search.stacks, program, path, part, depth + 1, onwards, True):
            path.depth[0] += 1
    return DONE


@borrowing
def lacks_events(match_score: MatchScore, stacks: Stacks, program: Program, part: int) -> bool:
    """Has a partition no event for some component, where none may be missing? Most of many small ones have none."""
    for place in range(0 if match_score.scored else program.places):
        if stacks.begin[place, part] == stacks.begin[place, part + 1]:
            return True
    return False


@search_kernel
def search_forward(
    timed: Timed,
    match_score: MatchScore,
    stacks: Stacks,
    program: Program,
    columns: Columns,
    predicate: PredicateCall,
    nodes: Nodes,
    asked: SearchRequest,
) -> tuple[Results, Int64s, float]:
    """All matches of all partitions, counters, and the cost of a match that was too expensive to judge (0: none)."""
    counters, results, cost = np.zeros(COUNTERS, np.int64), no_results(program.places), np.zeros(1)
    size = max(8, program.places)
    room, path = workspace(widest(timed), size), new_path(size)
    nodes = more_nodes(nodes)
    for part in range(stacks.begin.shape[1] - 1):
        if lacks_events(match_score, stacks, program, part):
            continue
        begin_partition(match_score)
        path.depth[0] = 0
        if not aim(timed, match_score, stacks, program, path, part, 0, 0, True):
            continue
        ended = FULL
        while ended == FULL:
            depth = path.depth[0]
            if depth == len(path.event):
                counters[BOUNDED] += room.memory.tally[0]
                room, path = workspace(widest(timed), 2 * depth), longer_path(path)
            if depth == len(nodes.closed):
                nodes = more_nodes(nodes)
            if is_full(results, depth + 1):
                results = with_room(results, depth + 1)
            steps = np.arange(len(path.event))
            partial = PartialMatches(program, columns, predicate, nodes)
            search = Forward(timed, match_score, stacks, partial, room, steps, counters, cost)
            ended = search_paths(search, path, asked, part, results)
        if ended == STOPPED:
            break
    counters[BOUNDED] += room.memory.tally[0]
    return results, counters, cost[0]

"""The search for matches some of whose events were not seen, among events whose times are intervals.

From every event that can be the last one seen it goes backwards, as AYAC's match generation does (section 4.2), but
chooses events, never instants: each chosen event keeps its valid bounds (TIME section 4.1). A path is given up when no
choice of instants lets it reach the threshold: the scores of its gaps are taken at their best spans, what is to come at
the best that any path could reach, and all of it counts at most as often as two neighbours come in order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import COLUMNS, FLOAT64S, INT64_ROWS, INT64S, Columns
from cepheid.engine.data.matches import MISSING
from cepheid.engine.data.timed import STACKS, TIMED, Stacks, Timed, between, first_beyond, first_reaching, widest
from cepheid.engine.kernels.apart import apart
from cepheid.engine.kernels.arrays import equal_codes, grown
from cepheid.engine.kernels.lean import lean
from cepheid.engine.search.intervals.found import (
    COUNTERS,
    EVALUATED,
    FOUND,
    JUDGED,
    OVERFLOW,
    PARTIAL,
    REPORTED,
    Found,
    grown_numbers,
    nothing_found,
    put,
    with_room,
)
from cepheid.engine.search.queues.generate import between as places_between
from cepheid.engine.search.queues.generate import bind_slots
from cepheid.engine.search.queues.judge import FUNCTION, clause_holds, entry_behind
from cepheid.engine.search.queues.query import AFTER, BRANCH, CONDITION, KNOWN, LOSSY, OWNER, PATH, Lossy, Path
from cepheid.engine.worth.confidence.bounds import tighten
from cepheid.engine.worth.confidence.confidence import RIVALS, Rivals, merged
from cepheid.engine.worth.confidence.order import workspace, precedes
from cepheid.engine.worth.edges import CLOSED
from cepheid.engine.worth.expected import worth
from cepheid.engine.worth.spans import SPANS, Spans, best_of

Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]

STOP, UNKNOWN = -2, -1  # what comes next at a path entry: may the match begin here; the stack's end, not yet found


class Aim(NamedTuple):
    """What is asked for, besides the query itself."""

    window: int  # in instants
    deadline: int  # the window in steps of the time column
    score: float  # the least probability and the least confidence to report
    confidence: float
    budget: float  # steps that one match may take
    best: Float64s  # per positive component: the best log score of any path from the window's opening to it


AIM = types.NamedTuple((types.int64, types.int64, types.float64, types.float64, types.float64, FLOAT64S), Aim)


class Steps(NamedTuple):
    """What the search remembers at each entry of its path; entry 0 is the last event."""

    low: npt.NDArray[np.int64]  # valid bounds of entries depth, depth - 1 ... 0, so in order of time
    high: npt.NDArray[np.int64]
    best: Float64s  # log of the best score of the gaps so far
    rare: Float64s  # how probable the least probable pair of neighbours is
    missing: Int64s  # bits of the components that were passed over
    place: Int64s  # the component that is tried next
    entry: Int64s  # the entry of its stack that was tried last


STEPS = types.NamedTuple((INT64_ROWS, INT64_ROWS, FLOAT64S, FLOAT64S, INT64S, INT64S, INT64S), Steps)


@lean(types.boolean(LOSSY, COLUMNS, FUNCTION, PATH, types.int64, types.int64, types.int64, types.int64))
def conditions_hold(
    query: Lossy, columns: Columns, predicate: Any, path: Path, missing: int, above: int, known: int, depth: int
) -> bool:
    """Tests the conditions that have become decided: those whose `known` lies in [known, above)."""
    for clause in range(query.clauses.shape[0]):
        if query.clauses[clause, OWNER] >= 0 or query.clauses[clause, BRANCH] >= 0:
            continue
        if known <= query.clauses[clause, KNOWN] < above and not clause_holds(
            query, columns, predicate, clause, missing, path, depth
        ):
            return False
    return True


@lean(types.boolean(LOSSY, COLUMNS, FUNCTION, PATH, types.int64, types.int64, types.int64, types.int64))
def disjunct_holds(
    query: Lossy, columns: Columns, predicate: Any, path: Path, owner: int, branch: int, missing: int, depth: int
) -> bool:
    """Do all conditions of a disjunct hold that concern a negated component (-1: the positive part)?"""
    for clause in range(query.clauses.shape[0]):
        if query.clauses[clause, OWNER] != owner or query.clauses[clause, BRANCH] != branch:
            continue
        if not clause_holds(query, columns, predicate, clause, missing, path, depth):
            return False
    return True


@lean(types.boolean(TIMED, PATH, types.int64, types.int64))
def joins(timed: Timed, path: Path, depth: int, event: int) -> bool:
    """Is the event none of those chosen, and equal to all of them in the compared attributes?"""
    for entry in range(depth + 1):
        if path.event[entry] == event or not equal_codes(timed.compared, path.event, entry, entry + 1, event):
            return False
    return True


@apart(
    RIVALS(
        TIMED,
        LOSSY,
        STACKS,
        COLUMNS,
        FUNCTION,
        PATH,
        types.int64,
        types.int64,
        types.int64,
        INT64S,
        INT64S,
        types.int64,
        RIVALS,
    )
)
def killers(
    timed: Timed,
    query: Lossy,
    stacks: Stacks,
    columns: Columns,
    predicate: Any,
    path: Path,
    missing: int,
    depth: int,
    part: int,
    low: Int64s,
    high: Int64s,
    window: int,
    nobody: Rivals,
) -> Rivals:
    """Every seen event of a negated component that could lie between its seen neighbours and pass its conditions."""
    keys, branches = nobody.keys, nobody.branches
    found, length = 0, depth + 1
    for negation in range(query.negatives):
        row, slot = query.positives + negation, 4 * query.positives + negation
        gap = depth - entry_behind(path.place, query.negations[negation, AFTER], depth)
        start = low[gap - 1] + 1 if gap > 0 else low[depth] - window + 1
        stop = high[gap] - 1 if gap < length else high[0] + window - 1
        bottom, top = stacks.begin[row, part], stacks.begin[row, part + 1]
        top = first_beyond(stacks, timed.lower, bottom, top, stop)
        for index in range(first_reaching(stacks, bottom, top, start), top):
            event = stacks.member[index]
            if timed.upper[event] < start or between(timed, event, start, stop) == 0.0:
                continue
            if not joins(timed, path, depth, event):
                continue
            path.at[slot] = event
            bits = 0
            for branch in range(query.branches):
                if disjunct_holds(query, columns, predicate, path, negation, branch, missing, depth):
                    bits |= 1 << branch
            if bits == 0:
                continue
            if found == 0:
                keys, branches = np.empty(16, np.int64), np.empty(16, np.int64)
            elif found == len(keys):
                keys, branches = grown(keys), grown(branches)
            keys[found], branches[found] = event * (length + 1) + gap, bits
            found += 1
    if found < 2:
        return Rivals(keys[:found], branches[:found])
    keys, branches = merged(keys[:found], branches[:found])
    return Rivals(keys, branches)


@lean(types.boolean(TIMED, STEPS, PATH, INT64S, types.int64, types.int64))
def bounded(timed: Timed, steps: Steps, path: Path, places: Int64s, depth: int, window: int) -> bool:
    """Gives the events of the path their valid bounds, once entry `depth` is new; False if no world is left."""
    low, high, event = steps.low[depth], steps.high[depth], path.event[depth]
    low[0], high[0] = timed.lower[event], timed.upper[event]
    for index in range(depth):
        low[index + 1], high[index + 1] = steps.low[depth - 1, index], steps.high[depth - 1, index]
    return bool(tighten(places, low, high, depth + 1, depth + 1, window))


@lean(types.void(PATH, STEPS, types.int64, types.int64, types.int64, types.int64))
def extend(path: Path, steps: Steps, depth: int, place: int, event: int, missing: int) -> None:
    """Puts an event at the path's beginning; what comes next is whether the match begins with it."""
    path.place[depth], path.event[depth] = place, event
    steps.missing[depth], steps.place[depth], steps.entry[depth] = missing, place - 1, STOP
    bind_slots(path, depth)


@numba.njit(
    types.Tuple((FOUND, FLOAT64S, INT64S, types.float64))(
        TIMED, LOSSY, AIM, STACKS, SPANS, COLUMNS, FUNCTION, types.int64, types.int64, types.int64
    ),
    cache=True,
)
def search_unseen(
    timed: Timed,
    query: Lossy,
    aim: Aim,
    stacks: Stacks,
    spans: Spans,
    columns: Columns,
    predicate: Any,
    after: int,
    until: int,
    limit: int,
) -> tuple[Found, Float64s, Int64s, float]:
    """All matches, their probabilities, counters, and the cost of a match that was too expensive (0: none was)."""
    length, number, window = query.positives, query.number, aim.window
    counters, found, probabilities = np.zeros(COUNTERS, np.int64), nothing_found(length), np.empty(1024)
    room, places = workspace(widest(timed), length), np.arange(length)
    path = Path(
        np.empty(length, np.int64),
        np.empty(length, np.int64),
        np.zeros(4 * length + query.negatives, np.int64),
        np.empty(0, np.int64),
        np.empty(0, np.float64),
    )
    steps = Steps(
        np.zeros((length, length), np.int64),
        np.zeros((length, length), np.int64),
        np.zeros(length),
        np.ones(length),
        np.zeros(length, np.int64),
        np.zeros(length, np.int64),
        np.zeros(length, np.int64),
    )
    at, table = np.empty(length, np.int64), np.empty(length + 1, np.int64)
    nobody = Rivals(np.empty(0, np.int64), np.empty(0, np.int64))
    for part in range(stacks.begin.shape[1] - 1):
        for final in range(length - 1, -1, -1):
            behind = number[final + 1, length]
            if behind == CLOSED or aim.best[final] + query.highest[final + 1, length] < query.threshold:
                continue
            immediate = final == length - 1 and not query.postponed  # known with its last event
            for top in range(stacks.begin[final, part], stacks.begin[final, part + 1]):
                last = stacks.member[top]
                if immediate and (timed.until[last] <= after or timed.until[last] > until):
                    continue
                depth = 0
                extend(path, steps, 0, final, last, places_between(final, length))
                steps.low[0, 0], steps.high[0, 0] = timed.lower[last], timed.upper[last]
                steps.best[0], steps.rare[0] = 0.0, 1.0
                if query.decides[final + 1, length] == CONDITION and not conditions_hold(
                    query, columns, predicate, path, steps.missing[0], 2 * length + 1, 2 * final, 0
                ):
                    continue
                while depth >= 0:
                    place, event = path.place[depth], path.event[depth]
                    if steps.entry[depth] != STOP:
                        source = steps.place[depth]
                        if source < 0:
                            depth -= 1
                            if depth >= 0:
                                bind_slots(path, depth)
                            continue
                        edge = number[source + 1, place]
                        entry = steps.entry[depth]
                        low, high = steps.low[depth], steps.high[depth]
                        bottom = stacks.begin[source, part]
                        if edge != CLOSED and entry == UNKNOWN:
                            end = stacks.begin[source, part + 1]
                            entry = first_beyond(stacks, timed.lower, bottom, end, high[0] - 1)
                        entry -= 1
                        oldest = low[depth] - window + 1
                        if edge == CLOSED or entry < bottom or stacks.reach[entry] < oldest:
                            steps.place[depth], steps.entry[depth] = source - 1, UNKNOWN
                            continue
                        steps.entry[depth] = entry
                        candidate = stacks.member[entry]
                        if timed.upper[candidate] < oldest:
                            continue
                        counters[EVALUATED] += 1
                        if not joins(timed, path, depth, candidate):
                            continue
                        unseen = steps.missing[depth] | places_between(source, place)
                        depth += 1
                        extend(path, steps, depth, source, candidate, unseen)
                        stays = bounded(timed, steps, path, places, depth, window)
                        if stays:
                            low, high = steps.low[depth], steps.high[depth]
                            longest = min(high[1] - low[0], window - 1)
                            steps.best[depth] = steps.best[depth - 1] + best_of(
                                spans, edge, query.monotone[source + 1, place], max(1, low[1] - high[0]), longest
                            )
                            rare = min(steps.rare[depth - 1], precedes(timed, candidate, event))
                            steps.rare[depth] = rare
                            bound = steps.best[depth] + aim.best[source]
                            stays = rare > 0.0 and rare >= aim.confidence and bound > -np.inf
                            stays = stays and bound + np.log(rare) >= query.threshold
                        if stays and query.decides[source + 1, place] == CONDITION:
                            stays = conditions_hold(
                                query, columns, predicate, path, unseen, 2 * place, 2 * source, depth
                            )
                        if stays:
                            counters[PARTIAL] += 1
                        else:
                            depth -= 1
                            bind_slots(path, depth)
                        continue
                    # Could this be the first event that was seen? Then the window's opening comes before it.
                    steps.entry[depth] = UNKNOWN
                    before = number[0, place]
                    if before == CLOSED or (final < length - 1 and place > 0):
                        continue  # with an open end, the first component must have been seen
                    known = timed.until[last] if immediate else timed.until[event] + aim.deadline
                    if known <= after or known > until:
                        continue
                    low, high = steps.low[depth][: depth + 1], steps.high[depth][: depth + 1]
                    nearest, farthest = 0, 0  # from the first to the last event
                    if depth > 0:
                        nearest, farthest = max(1, low[depth] - high[0]), min(high[depth] - low[0], window - 1)
                    bound = steps.best[depth] + np.log(steps.rare[depth])
                    bound += best_of(spans, before, query.monotone[0, place], window - farthest, window - nearest)
                    bound += best_of(
                        spans, behind, query.monotone[final + 1, length], window - farthest, window - nearest
                    )
                    if bound == -np.inf or bound < query.threshold:
                        continue
                    unseen = steps.missing[depth] | ((1 << place) - 1)
                    if query.decides[0, place] == CONDITION and not conditions_hold(
                        query, columns, predicate, path, unseen, 2 * place, -1, depth
                    ):
                        continue
                    standing = 1
                    if query.branches > 1:
                        standing = 0
                        for branch in range(query.branches):
                            if disjunct_holds(query, columns, predicate, path, -1, branch, unseen, depth):
                                standing |= 1 << branch
                        if standing == 0:
                            continue
                    counters[JUDGED] += 1
                    table[0], table[depth + 1] = before, behind
                    at[:] = MISSING
                    for index in range(depth + 1):  # in order of time
                        at[path.place[depth - index]] = path.event[depth - index]
                        if index > 0:
                            table[index] = number[path.place[depth - index + 1] + 1, path.place[depth - index]]
                    rivals = nobody
                    if query.negatives > 0:
                        rivals = killers(
                            timed,
                            query,
                            stacks,
                            columns,
                            predicate,
                            path,
                            unseen,
                            depth,
                            part,
                            low,
                            high,
                            window,
                            nobody,
                        )
                    probability, confidence, earliest, latest, cost = worth(
                        timed,
                        spans,
                        path.event[: depth + 1][::-1].copy(),
                        low,
                        high,
                        table[: depth + 2],
                        window,
                        rivals,
                        standing,
                        aim.budget,
                        room,
                    )
                    if cost > 0.0:
                        return found, probabilities, counters, cost
                    if confidence <= 0.0 or confidence < aim.confidence or probability < aim.score:
                        continue
                    if counters[REPORTED] == limit:
                        counters[OVERFLOW] = 1
                        return found, probabilities, counters, 0.0
                    if found.size[0] == len(found.completion):
                        found, probabilities = with_room(found), grown_numbers(probabilities)
                    probabilities[found.size[0]] = probability
                    put(found, at, known, confidence, earliest, latest)
                    counters[REPORTED] += 1
    return found, probabilities, counters, 0.0

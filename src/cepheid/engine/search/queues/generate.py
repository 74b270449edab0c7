"""Match generation (AYAC section 4.2): from every event that can be the last one seen, backwards through the queues.

A partial path is given up when its score times the bound of the entry it would continue with is below the threshold,
when a condition whose events are all decided fails, or when a negated event was seen in between. Scores are kept as
logarithms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import COLUMNS, FLOAT64S, INT64S, Columns
from cepheid.engine.data.matches import Int64s
from cepheid.engine.kernels.arrays import EVENTS, Events, equal_codes, grown
from cepheid.engine.kernels.lean import lean
from cepheid.engine.search.queues.judge import FUNCTION, first_beyond, must_test, passes
from cepheid.engine.search.queues.query import (
    CONDITION,
    EVALUATED,
    KILLED,
    LOSSY,
    NOTHING,
    OVERFLOW,
    PATH,
    QUEUES,
    Lossy,
    Path,
    Queues,
)
from cepheid.engine.search.queues.scan import fill_queues
from cepheid.engine.worth.edges import CERTAIN, CLOSED
from cepheid.model.score_lookup import TABLE_ARRAYS, TableArrays, log_score_at

STOP_FIRST, UNKNOWN = -2, -1  # what a path entry looks at next: whether to stop here; the queue's end, not yet found
PART, FINAL, TOP, DEPTH, ENTRIES, MATCHES = range(6)  # where the search stands
NOT_SCANNED, NO_PATH = -1, -1
ROOM = 1024  # for matches, at first


class Steps(NamedTuple):
    """What the search remembers at each entry of its path."""

    reached: npt.NDArray[np.float64]  # the score so far
    missing: Int64s  # bits of the components that were skipped
    place: Int64s  # the queue that is being tried
    entry: Int64s  # the entry of it that was tried last


class Found(NamedTuple):
    """The matches: their (place, event) entries, where each one's entries begin, log score and completion."""

    place: Int64s
    event: Int64s
    begins: Int64s
    score: npt.NDArray[np.float64]
    completion: Int64s


STEPS = types.NamedTuple((FLOAT64S, INT64S, INT64S, INT64S), Steps)
FOUND = types.NamedTuple((INT64S, INT64S, INT64S, FLOAT64S, INT64S), Found)


@lean(types.void(PATH, types.int64), inline=True)
def bind_slots(path: Path, entry: int) -> None:
    """Puts the event of a path entry where conditions look for it."""
    place, event = path.place[entry], path.event[entry]
    path.at[4 * place] = event  # backwards, the latest choice is the first event of the group
    if entry == 0 or path.place[entry - 1] != place:
        path.at[4 * place + 1] = event
    path.at[4 * place + 2] = event


@lean(types.void(LOSSY, PATH, STEPS, types.int64, types.int64, types.int64, types.float64, types.int64), inline=True)
def extend(
    query: Lossy, path: Path, steps: Steps, depth: int, place: int, event: int, score: float, missing: int
) -> None:
    """Puts an event at the path's beginning; what to look at next is whether the match begins with it."""
    path.place[depth], path.event[depth] = place, event
    steps.reached[depth], steps.missing[depth] = score, missing
    steps.place[depth] = place if query.kleene[place] == 1 else place - 1
    steps.entry[depth] = STOP_FIRST
    bind_slots(path, depth)


@lean(types.int64(types.int64, types.int64), inline=True)
def between(low: int, high: int) -> int:
    """The bits of the places strictly between two."""
    return ((1 << high) - 1) & ~((1 << (low + 1)) - 1)


@lean(
    types.boolean(
        EVENTS,
        LOSSY,
        COLUMNS,
        TABLE_ARRAYS,
        FUNCTION,
        QUEUES,
        PATH,
        STEPS,
        FOUND,
        INT64S,
        INT64S,
        types.int64,
        types.int64,
        types.int64,
    )
)
def search(
    events: Events,
    query: Lossy,
    columns: Columns,
    tables: TableArrays,
    predicate: Any,
    queues: Queues,
    path: Path,
    steps: Steps,
    found: Found,
    state: Int64s,
    counters: Int64s,
    after: int,
    until: int,
    limit: int,
) -> bool:
    """Goes on from where `state` stands until all is found, or until there is no room for another match (False)."""
    time, instant, starts = events.time, events.instant, events.starts
    number, decides = query.number, query.decides
    length, window, scale, threshold = query.positives, query.window, query.scale, query.threshold
    stacks, bounds, sizes = queues.stacks, queues.bounds, queues.sizes
    part, final, top, depth = state[PART], state[FINAL], state[TOP], state[DEPTH]
    entries, matches = state[ENTRIES], state[MATCHES]
    while part < len(starts) - 1:
        if final == NOT_SCANNED:
            fill_queues(events, query, tables, starts[part], starts[part + 1], queues, counters)
            final, top, depth = length - 1, 0, NO_PATH
        ends_here = final == length - 1
        immediate = ends_here and not query.postponed  # known with its last event
        if depth == NO_PATH:
            if number[final + 1, length] == CLOSED or top == sizes[final]:
                # Next the paths that end earlier: the components behind are missing.
                final, top = final - 1, 0
                if final < 0:
                    part, final = part + 1, NOT_SCANNED
                continue
            last = stacks[final, top]
            top += 1
            if immediate and (time[last] <= after or time[last] > until):
                continue
            if bounds[final, top - 1] + query.highest[final + 1, length] < threshold:
                continue
            depth = 0
            unseen = between(final, length)
            extend(query, path, steps, 0, final, last, 0.0, unseen)
            if decides[final + 1, length] == CONDITION and not passes(
                query, events, columns, predicate, queues, path, unseen, 2 * length + 1, 2 * final, 0
            ):
                depth = NO_PATH
                continue
        last = path.event[0]
        while depth >= 0:
            place, event = path.place[depth], path.event[depth]
            if steps.entry[depth] == STOP_FIRST:
                if matches + 2 > len(found.begins) or entries + depth + 1 > len(found.place):
                    state[PART], state[FINAL], state[TOP], state[DEPTH] = part, final, top, depth
                    state[ENTRIES], state[MATCHES] = entries, matches
                    return False
                # Could this be the first event that was seen? Then the window's opening comes before it.
                steps.entry[depth] = UNKNOWN
                if number[0, place] == CLOSED or (not ends_here and place > 0):
                    continue  # with an open end, the first component must have been seen
                counters[EVALUATED] += 1
                total = steps.reached[depth]
                if number[0, place] != CERTAIN:
                    total += log_score_at(tables, number[0, place], (time[event] - time[last] + window) * scale)
                if number[final + 1, length] != CERTAIN:
                    span = (time[event] + window - time[last]) * scale
                    total += log_score_at(tables, number[final + 1, length], span)
                known = time[last] if immediate else time[event] + window
                if total < threshold or total == -np.inf or known <= after or known > until:
                    continue
                if decides[0, place] != NOTHING and must_test(query, events, queues, path, place, -1, depth):
                    unseen = steps.missing[depth] | ((1 << place) - 1)
                    if not passes(query, events, columns, predicate, queues, path, unseen, 2 * place, -1, depth):
                        counters[KILLED] += 1
                        continue
                if matches == limit:
                    counters[OVERFLOW] = 1
                    state[ENTRIES], state[MATCHES] = entries, matches
                    return True
                found.begins[matches], found.score[matches], found.completion[matches] = entries, total, known
                for entry in range(depth, -1, -1):
                    found.place[entries], found.event[entries] = path.place[entry], path.event[entry]
                    entries += 1
                matches += 1
                continue
            # The next queue entry before this event.
            source = steps.place[depth]
            if source < 0:
                depth -= 1
                if depth >= 0:
                    bind_slots(path, depth)
                continue
            within_group = source == place
            if not within_group and number[source + 1, place] == CLOSED:
                steps.place[depth] -= 1
                continue
            entry = steps.entry[depth]
            if entry == UNKNOWN:
                entry = first_beyond(stacks, source, 0, sizes[source], instant, instant[event] - 1)
            entry -= 1
            if entry < 0 or time[last] - time[stacks[source, entry]] >= window:
                steps.place[depth] -= 1
                steps.entry[depth] = UNKNOWN
                continue
            steps.entry[depth] = entry
            candidate = stacks[source, entry]
            counters[EVALUATED] += 1
            score = steps.reached[depth]
            if not within_group and number[source + 1, place] != CERTAIN:
                score += log_score_at(tables, number[source + 1, place], (time[event] - time[candidate]) * scale)
            if score + bounds[source, entry] < threshold or score == -np.inf:
                continue
            agrees = True
            if events.compared.shape[0] > 0:
                for other in range(depth + 1):
                    agrees = agrees and equal_codes(events.compared, path.event, other, other + 1, candidate)
            if not agrees:
                continue
            depth += 1
            extend(
                query, path, steps, depth, source, candidate, score, steps.missing[depth - 1] | between(source, place)
            )
            if (
                not within_group
                and decides[source + 1, place] != NOTHING
                and must_test(query, events, queues, path, place, source, depth)
                and not passes(
                    query,
                    events,
                    columns,
                    predicate,
                    queues,
                    path,
                    steps.missing[depth],
                    2 * place,
                    2 * source,
                    depth,
                )
            ):
                counters[KILLED] += 1
                depth -= 1
                bind_slots(path, depth)
    state[ENTRIES], state[MATCHES] = entries, matches
    return True


@numba.njit(FLOAT64S(FLOAT64S), cache=True)
def grown_numbers(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The same values with room for as many again."""
    larger = np.empty(2 * len(values), np.float64)
    larger[: len(values)] = values
    return larger


@numba.njit(
    types.Tuple((FOUND, INT64S))(EVENTS, LOSSY, COLUMNS, TABLE_ARRAYS, FUNCTION, types.int64, types.int64, types.int64),
    cache=True,
)
def generate(
    events: Events,
    query: Lossy,
    columns: Columns,
    tables: TableArrays,
    predicate: Any,
    after: int,
    until: int,
    limit: int,
) -> tuple[Found, Int64s]:
    """All matches that are probable enough, with after < completion <= until, and what was counted on the way."""
    length, negatives = query.positives, query.negatives
    longest = 0
    for part in range(len(events.starts) - 1):
        longest = max(longest, events.starts[part + 1] - events.starts[part])
    queues = Queues(
        np.empty((length + negatives, longest), np.int64),
        np.empty((length, longest), np.float64),
        np.zeros(length + negatives, np.int64),
        np.empty((length, longest), np.int64),
        np.zeros((length, 4), np.int64),
    )
    deepest = longest if query.kleene.max() == 1 else min(length, longest)
    path = Path(
        np.empty(deepest, np.int64),
        np.empty(deepest, np.int64),
        np.zeros(4 * length + negatives, np.int64),
        np.empty(0, np.int64),
        np.empty(0, np.float64),
    )
    steps = Steps(
        np.empty(deepest, np.float64),
        np.empty(deepest, np.int64),
        np.empty(deepest, np.int64),
        np.empty(deepest, np.int64),
    )
    state, counters = np.array([0, NOT_SCANNED, 0, NO_PATH, 0, 0]), np.zeros(5, np.int64)
    place, event, begins = np.empty(ROOM, np.int64), np.empty(ROOM, np.int64), np.empty(ROOM, np.int64)
    score, completion = np.empty(ROOM, np.float64), np.empty(ROOM, np.int64)
    while True:
        found = Found(place, event, begins, score, completion)
        if search(
            events, query, columns, tables, predicate, queues, path, steps, found, state, counters, after, until, limit
        ):
            break
        place, event = grown(place), grown(event)
        if 2 * state[MATCHES] > len(begins):
            begins, score, completion = grown(begins), grown_numbers(score), grown(completion)
    entries, matches = state[ENTRIES], state[MATCHES]
    begins[matches] = entries
    return Found(
        place[:entries], event[:entries], begins[: matches + 1], score[:matches], completion[:matches]
    ), counters

"""Probabilistic arrival queues and backward match generation (AYAC sections 4.1, 4.2 and 5.1).

Scan: every event that could fill a component is put into that component's queue together with an upper bound of the
score of all paths that arrive there; an event whose bound is below the threshold is left out. The best bound in a
queue's window is kept by a second, falling queue, so that it costs O(1) amortised.

Generation: from every event that can be the last one seen, backwards through the queues. A partial path is given up
when its score times the bound of the entry it would continue with is below the threshold, when a condition whose
events are all decided fails, or when a negated event was seen in between. Scores are kept as logarithms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.columns import COLUMNS, FLOAT64_ROWS, INT64_ROWS, INT64S, Columns
from cepheid.engine.matches import Int64s
from cepheid.engine.predicates import PREDICATE
from cepheid.engine.queues.edges import CERTAIN, CLOSED, FALLS, RISES
from cepheid.engine.sequence import EVENTS, Events, equal_codes, first_above, grown
from cepheid.model.score_lookup import TABLE_ARRAYS, TableArrays, log_score_at, maximum_at

FLOAT64S = types.Array(types.float64, 1, "C")
STACKED, EVALUATED, KILLED, DROPPED, OVERFLOW = range(5)


class Lossy(NamedTuple):
    """The query, as the kernel sees it."""

    positives: int
    negatives: int
    window: int
    postponed: bool
    threshold: float  # its logarithm
    scale: float
    kleene: Int64s
    number: npt.NDArray[np.int64]  # edges: table, CERTAIN or CLOSED, by [source + 1, target]
    highest: npt.NDArray[np.float64]
    monotone: npt.NDArray[np.int64]
    negated_after: Int64s  # the positive component before each negated one, -1 for none
    negated_known: Int64s  # twice the place from which all that a negated component's conditions need is decided
    clause_base: Int64s
    clause_places: npt.NDArray[np.int64]
    clause_owner: Int64s
    clause_branch: Int64s
    clause_every: Int64s
    clause_pairs: Int64s
    clause_known: Int64s
    tested: Int64s
    decides: npt.NDArray[np.int64]  # [source + 1, place]: what is decided when a path grows that far
    branches: int


LOSSY = types.NamedTuple(
    (
        types.int64,
        types.int64,
        types.int64,
        types.boolean,
        types.float64,
        types.float64,
        INT64S,
        INT64_ROWS,
        FLOAT64_ROWS,
        INT64_ROWS,
        INT64S,
        INT64S,
        INT64S,
        INT64_ROWS,
        INT64S,
        INT64S,
        INT64S,
        INT64S,
        INT64S,
        INT64S,
        INT64_ROWS,
        types.int64,
    ),
    Lossy,
)


class Path(NamedTuple):
    """The path being built, from the last event backwards: one entry per chosen event."""

    place: Int64s
    event: Int64s


PATH = types.NamedUniTuple(INT64S, 2, Path)
NOTHING, CONDITION, NEGATION = 0, 1, 2  # what a step of a path decides: NEGATION if a negated component alone
STOP_FIRST, UNKNOWN = -2, -1  # what a path entry looks at next: whether to stop here; the queue's end, not yet found


# Kernels here pass single arrays rather than the tuples above wherever a function is called for every event: a call
# counts references to each array of a tuple, and with twenty of them that cost five times the work itself.


@numba.njit(types.float64(TABLE_ARRAYS, types.int64, types.float64), cache=True)
def edge_score(tables: TableArrays, number: int, span: float) -> float:
    """The log score of skipping what lies between two components, over a span of time."""
    if number == CERTAIN:
        return 0.0
    if number == CLOSED:
        return -np.inf
    return float(log_score_at(tables, number, span))


@numba.njit(types.float64(TABLE_ARRAYS, types.int64, types.int64, types.float64, types.float64), cache=True)
def edge_bound(tables: TableArrays, number: int, monotone: int, newest: float, oldest: float) -> float:
    """A bound of the log score over all spans from `newest` to `oldest`; exact at one end where it is monotone."""
    if number == CERTAIN:
        return 0.0
    if monotone == FALLS:
        return float(log_score_at(tables, number, newest))
    if monotone == RISES:
        return float(log_score_at(tables, number, oldest))
    best = maximum_at(tables, number, oldest)
    return float(np.log(best)) if best > 0.0 else -np.inf


@numba.njit(
    types.boolean(LOSSY, COLUMNS, types.FunctionType(PREDICATE), INT64S, types.int64, types.int64, PATH, types.int64),
    cache=True,
)
def clause_holds(
    query: Lossy, columns: Columns, predicate: Any, at: Int64s, clause: int, missing: int, path: Path, depth: int
) -> bool:
    """Does a condition hold, given which events are missing? For every event of a Kleene group, if it means each."""
    case = query.clause_base[clause]
    for slot in range(query.clause_places.shape[1]):
        place = query.clause_places[clause, slot]
        if place < 0:
            break
        if missing & (1 << place) != 0:
            case += 1 << slot
    if query.tested[case] == 0:
        return True
    no_counts, no_sums = np.empty(0, np.int64), np.empty(0, np.float64)
    every = query.clause_every[clause]
    if every < 0:
        return bool(predicate(case, at, no_counts, no_sums, columns))
    for entry in range(depth + 1):
        if path.place[entry] != every:
            continue
        # The path runs backwards: the entry after this one is the event before it in time.
        has_previous = entry < depth and path.place[entry + 1] == every
        if query.clause_pairs[clause] == 1 and not has_previous:
            continue
        at[4 * every + 2] = path.event[entry]
        at[4 * every + 3] = path.event[entry + 1] if has_previous else path.event[entry]
        if not predicate(case, at, no_counts, no_sums, columns):
            return False
    return True


@numba.njit(types.int64(INT64S, types.int64, types.int64), cache=True)
def entry_behind(path_place: Int64s, after: int, depth: int) -> int:
    """The path entry of the first seen event behind a negated component, -1 if there is none."""
    for entry in range(depth, -1, -1):
        if path_place[entry] > after:
            return entry
    return -1


@numba.njit(
    types.UniTuple(types.int64, 2)(INT64S, INT64S, INT64S, types.int64, INT64S, types.int64, types.int64, types.int64),
    cache=True,
)
def negated_range(
    time: Int64s,
    instant: Int64s,
    stack: Int64s,
    size: int,
    path_event: Int64s,
    later: int,
    depth: int,
    window: int,
) -> tuple[int, int]:
    """Where in its stack the events of a negated component lie that the path looks at."""
    if later < depth:
        low = first_above(stack, 0, size, instant, instant[path_event[later + 1]])
    else:
        low = first_above(stack, 0, size, time, time[path_event[0]] - window)
    if later >= 0:
        high = first_above(stack, low, size, instant, instant[path_event[later]] - 1)
    else:
        high = first_above(stack, low, size, time, time[path_event[depth]] + window - 1)
    return low, high


@numba.njit(
    types.boolean(
        INT64_ROWS,
        INT64S,
        INT64S,
        INT64_ROWS,
        INT64S,
        INT64S,
        INT64S,
        INT64S,
        INT64S,
        types.int64,
        types.int64,
        types.int64,
        types.int64,
    ),
    cache=True,
)
def must_test(
    decides: npt.NDArray[np.int64],
    negated_known: Int64s,
    negated_after: Int64s,
    stacks: npt.NDArray[np.int64],
    sizes: Int64s,
    time: Int64s,
    instant: Int64s,
    path_place: Int64s,
    path_event: Int64s,
    place: int,
    source: int,
    depth: int,
    window: int,
) -> bool:
    """Is there anything to test when a path grows from `place` down to `source`? Mostly there is not."""
    if decides[source + 1, place] == CONDITION:
        return True
    known = 2 * source if source >= 0 else -1
    positives = decides.shape[1] - 1
    for negation in range(len(negated_known)):
        later = entry_behind(path_place, negated_after[negation], depth)
        ready = negated_known[negation] if later >= 0 else -1
        if known <= ready < 2 * place + (1 if place == positives else 0):
            stack = stacks[positives + negation]
            size = sizes[positives + negation]
            low, high = negated_range(time, instant, stack, size, path_event, later, depth, window)
            if low < high:
                return True
    return False


@numba.njit(
    types.boolean(
        LOSSY,
        EVENTS,
        COLUMNS,
        types.FunctionType(PREDICATE),
        INT64S,
        types.int64,
        types.int64,
        types.int64,
        types.int64,
        INT64S,
        types.int64,
        PATH,
        types.int64,
    ),
    cache=True,
)
def seen_between(
    query: Lossy,
    events: Events,
    columns: Columns,
    predicate: Any,
    at: Int64s,
    negation: int,
    branch: int,
    low: int,
    high: int,
    stack: Int64s,
    missing: int,
    path: Path,
    depth: int,
) -> bool:
    """Was an event of a negated component seen in stack[low:high] that passes all its conditions that can be tested?"""
    slot = 4 * query.positives + negation
    for index in range(low, high):
        event = stack[index]
        agrees = True
        for entry in range(depth + 1):
            if not equal_codes(events.compared, path.event, entry, entry + 1, event):
                agrees = False
                break
        if not agrees:
            continue
        at[slot] = event
        passed = True
        for clause in range(len(query.clause_owner)):
            if query.clause_owner[clause] != negation or query.clause_branch[clause] != branch:
                continue
            if not clause_holds(query, columns, predicate, at, clause, missing, path, depth):
                passed = False
                break
        if passed:
            return True
    return False


@numba.njit(
    types.boolean(
        LOSSY,
        EVENTS,
        COLUMNS,
        types.FunctionType(PREDICATE),
        INT64S,
        types.int64,
        types.int64,
        types.int64,
        INT64_ROWS,
        INT64S,
        types.int64,
        PATH,
        types.int64,
    ),
    cache=True,
)
def negation_kills(
    query: Lossy,
    events: Events,
    columns: Columns,
    predicate: Any,
    at: Int64s,
    negation: int,
    branch: int,
    later: int,
    stacks: npt.NDArray[np.int64],
    sizes: Int64s,
    missing: int,
    path: Path,
    depth: int,
) -> bool:
    """Does a seen event of a negated component kill the path? `later` is the path entry behind it, -1 for the end."""
    stack = stacks[query.positives + negation]
    size = sizes[query.positives + negation]
    low, high = negated_range(events.time, events.instant, stack, size, path.event, later, depth, query.window)
    if low >= high:
        return False
    return seen_between(query, events, columns, predicate, at, negation, branch, low, high, stack, missing, path, depth)


@numba.njit(
    types.boolean(
        LOSSY,
        EVENTS,
        COLUMNS,
        types.FunctionType(PREDICATE),
        INT64S,
        INT64_ROWS,
        INT64S,
        types.int64,
        types.int64,
        types.int64,
        PATH,
        types.int64,
    ),
    cache=True,
)
def passes(
    query: Lossy,
    events: Events,
    columns: Columns,
    predicate: Any,
    at: Int64s,
    stacks: npt.NDArray[np.int64],
    sizes: Int64s,
    missing: int,
    above: int,
    known: int,
    path: Path,
    depth: int,
) -> bool:
    """Tests what has become decided: everything whose `known` lies in [known, above). At the end, known is -1."""
    for clause in range(len(query.clause_owner)):
        if query.clause_owner[clause] >= 0 or query.clause_branch[clause] >= 0:
            continue
        if known <= query.clause_known[clause] < above and not clause_holds(
            query, columns, predicate, at, clause, missing, path, depth
        ):
            return False
    if query.branches == 1:
        for negation in range(query.negatives):
            later = entry_behind(path.place, query.negated_after[negation], depth)
            ready = query.negated_known[negation]
            if later < 0:
                ready = -1  # its interval ends with the window, which the first event decides
            if known <= ready < above and negation_kills(
                query, events, columns, predicate, at, negation, 0, later, stacks, sizes, missing, path, depth
            ):
                return False
        return True
    if known >= 0:
        return True
    for branch in range(query.branches):
        stands = True
        for clause in range(len(query.clause_owner)):
            if query.clause_branch[clause] == branch and query.clause_owner[clause] < 0:
                stands = stands and clause_holds(query, columns, predicate, at, clause, missing, path, depth)
        for negation in range(query.negatives):
            if not stands:
                break
            later = entry_behind(path.place, query.negated_after[negation], depth)
            stands = not negation_kills(
                query, events, columns, predicate, at, negation, branch, later, stacks, sizes, missing, path, depth
            )
        if stands:
            return True
    return False


@numba.njit(FLOAT64S(FLOAT64S), cache=True)
def grown_numbers(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The same values with room for as many again."""
    larger = np.empty(2 * len(values), np.float64)
    larger[: len(values)] = values
    return larger


@numba.njit(types.void(INT64S, INT64S, INT64S, types.int64), cache=True)
def bind_slots(at: Int64s, path_place: Int64s, path_event: Int64s, entry: int) -> None:
    """Puts the event of a path entry where conditions look for it."""
    place, event = path_place[entry], path_event[entry]
    at[4 * place] = event  # backwards, the latest choice is the first event of the group
    if entry == 0 or path_place[entry - 1] != place:
        at[4 * place + 1] = event
    at[4 * place + 2] = event


@numba.njit(
    types.void(EVENTS, LOSSY, TABLE_ARRAYS, types.int64, types.int64, INT64_ROWS, FLOAT64_ROWS, INT64S, INT64S),
    cache=True,
)
def fill_queues(
    events: Events,
    query: Lossy,
    tables: TableArrays,
    begin: int,
    end: int,
    stacks: npt.NDArray[np.int64],
    bounds: npt.NDArray[np.float64],
    sizes: Int64s,
    counters: Int64s,
) -> None:
    """Scans one partition: fills each component's queue with events and the bounds of their scores."""
    time, instant, mask = events.time, events.instant, events.mask
    number, highest, monotone, kleene = query.number, query.highest, query.monotone, query.kleene
    length, window, scale, threshold = query.positives, query.window, query.scale, query.threshold
    falling = np.empty((length, end - begin), np.int64)  # entries that may still be the best of their queue, falling
    falling_first, falling_end = np.zeros(length, np.int64), np.zeros(length, np.int64)
    settled = np.zeros(length, np.int64)  # entries at instants before the current one
    oldest = np.zeros(length, np.int64)  # the first entry that is still in the window
    sizes[:] = 0
    previous = np.int64(-1)
    for event in range(begin, end):
        now = time[event]
        if instant[event] != previous:
            previous = instant[event]
            for place in range(length):
                for entry in range(settled[place], sizes[place]):
                    while (
                        falling_end[place] > falling_first[place]
                        and bounds[place, falling[place, falling_end[place] - 1]] <= bounds[place, entry]
                    ):
                        falling_end[place] -= 1
                    falling[place, falling_end[place]] = entry
                    falling_end[place] += 1
                settled[place] = sizes[place]
                while oldest[place] < settled[place] and now - time[stacks[place, oldest[place]]] >= window:
                    oldest[place] += 1
                while (
                    falling_first[place] < falling_end[place] and falling[place, falling_first[place]] < oldest[place]
                ):
                    falling_first[place] += 1
        bits = mask[event]
        for place in range(length):
            if bits & (1 << place) == 0:
                continue
            best = highest[0, place]
            for before in range(place + 1):
                if before == place and kleene[place] == 0:
                    continue
                if before < place and number[before + 1, place] == CLOSED:
                    continue
                if falling_first[before] == falling_end[before]:
                    continue
                top = bounds[before, falling[before, falling_first[before]]]
                if before < place:
                    newest_span = (now - time[stacks[before, settled[before] - 1]]) * scale
                    oldest_span = (now - time[stacks[before, oldest[before]]]) * scale
                    edge, shape = number[before + 1, place], monotone[before + 1, place]
                    top += edge_bound(tables, edge, shape, newest_span, oldest_span)
                best = max(best, top)
            if best < threshold or best == -np.inf:
                counters[DROPPED] += 1
                continue
            stacks[place, sizes[place]] = event
            bounds[place, sizes[place]] = best
            sizes[place] += 1
            counters[STACKED] += 1
        for negation in range(length, len(sizes)):
            if bits & (1 << negation) != 0:
                stacks[negation, sizes[negation]] = event
                sizes[negation] += 1


@numba.njit(
    types.Tuple((INT64S, INT64S, INT64S, FLOAT64S, INT64S, INT64S))(
        EVENTS, LOSSY, COLUMNS, TABLE_ARRAYS, types.FunctionType(PREDICATE), types.int64, types.int64, types.int64
    ),
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
) -> tuple[Int64s, Int64s, Int64s, npt.NDArray[np.float64], Int64s, Int64s]:
    """All matches: their (place, event) entries, where each match's entries begin, log score, completion, counters."""
    time, instant, compared = events.time, events.instant, events.compared
    number, highest, kleene, decides = query.number, query.highest, query.kleene, query.decides
    length, negatives, window = query.positives, query.negatives, query.window
    scale, threshold, postponed = query.scale, query.threshold, query.postponed
    negated_known, negated_after = query.negated_known, query.negated_after
    counters = np.zeros(5, np.int64)
    longest = 0
    for part in range(len(events.starts) - 1):
        longest = max(longest, events.starts[part + 1] - events.starts[part])
    stacks = np.empty((length + negatives, longest), np.int64)
    bounds = np.empty((length, longest), np.float64)
    sizes = np.zeros(length + negatives, np.int64)
    at = np.zeros(4 * length + negatives, np.int64)
    # The path being built, from the last event backwards; see Path.
    places, chosen, missing = np.empty(16, np.int64), np.empty(16, np.int64), np.empty(16, np.int64)
    reached = np.empty(16, np.float64)
    next_place, next_entry = np.empty(16, np.int64), np.empty(16, np.int64)
    out_place, out_event = np.empty(1024, np.int64), np.empty(1024, np.int64)
    begins, completion, scores = np.empty(1024, np.int64), np.empty(1024, np.int64), np.empty(1024, np.float64)
    entries = found = 0
    for part in range(len(events.starts) - 1):
        begin, end = events.starts[part], events.starts[part + 1]
        fill_queues(events, query, tables, begin, end, stacks, bounds, sizes, counters)
        for final in range(length):
            if number[final + 1, length] == CLOSED:
                continue  # the components behind it cannot all be missing
            ends_here = final == length - 1
            unseen_behind = 0
            for place in range(final + 1, length):
                unseen_behind |= 1 << place
            for top in range(sizes[final]):
                last = stacks[final, top]
                if ends_here and not postponed and (time[last] <= after or time[last] > until):
                    continue
                if bounds[final, top] + highest[final + 1, length] < threshold:
                    continue
                depth = 0
                places[0], chosen[0], reached[0], missing[0] = final, last, 0.0, unseen_behind
                next_place[0] = final if kleene[final] == 1 else final - 1
                next_entry[0] = STOP_FIRST
                bind_slots(at, places, chosen, 0)
                if decides[final + 1, length] == CONDITION and not passes(
                    query,
                    events,
                    columns,
                    predicate,
                    at,
                    stacks,
                    sizes,
                    unseen_behind,
                    2 * length + 1,
                    2 * final,
                    Path(places, chosen),
                    0,
                ):
                    continue
                while depth >= 0:
                    place, event = places[depth], chosen[depth]
                    if next_entry[depth] == STOP_FIRST:
                        # Could this be the first event that was seen? Then the window's opening comes before it.
                        next_entry[depth] = UNKNOWN
                        if number[0, place] == CLOSED or (not ends_here and place > 0):
                            continue  # with an open end, the first component must have been seen
                        counters[EVALUATED] += 1
                        total = reached[depth]
                        if number[0, place] != CERTAIN:
                            span = (time[event] - time[last] + window) * scale
                            total += edge_score(tables, number[0, place], span)
                        if number[final + 1, length] != CERTAIN:
                            span = (time[event] + window - time[last]) * scale
                            total += edge_score(tables, number[final + 1, length], span)
                        known = time[last] if ends_here and not postponed else time[event] + window
                        if total < threshold or total == -np.inf or known <= after or known > until:
                            continue
                        unseen = missing[depth] | ((1 << place) - 1)
                        if (
                            decides[0, place] != NOTHING
                            and must_test(
                                decides,
                                negated_known,
                                negated_after,
                                stacks,
                                sizes,
                                time,
                                instant,
                                places,
                                chosen,
                                place,
                                -1,
                                depth,
                                window,
                            )
                            and not passes(
                                query,
                                events,
                                columns,
                                predicate,
                                at,
                                stacks,
                                sizes,
                                unseen,
                                2 * place,
                                -1,
                                Path(places, chosen),
                                depth,
                            )
                        ):
                            counters[KILLED] += 1
                            continue
                        if found == limit:
                            counters[OVERFLOW] = 1
                            begins[found] = entries
                            return (
                                out_place[:entries],
                                out_event[:entries],
                                begins[: found + 1],
                                scores[:found],
                                completion[:found],
                                counters,
                            )
                        if found + 2 > len(begins):
                            begins, completion, scores = grown(begins), grown(completion), grown_numbers(scores)
                        while entries + depth + 1 > len(out_place):
                            out_place, out_event = grown(out_place), grown(out_event)
                        begins[found], scores[found], completion[found] = entries, total, known
                        for entry in range(depth, -1, -1):
                            out_place[entries], out_event[entries] = places[entry], chosen[entry]
                            entries += 1
                        found += 1
                        continue
                    # The next queue entry before this event.
                    source = next_place[depth]
                    if source < 0:
                        depth -= 1
                        if depth >= 0:
                            bind_slots(at, places, chosen, depth)
                        continue
                    within_group = source == place
                    if not within_group and number[source + 1, place] == CLOSED:
                        next_place[depth] -= 1
                        continue
                    entry = next_entry[depth]
                    if entry == UNKNOWN:
                        entry = first_above(stacks[source], 0, sizes[source], instant, instant[event] - 1)
                    entry -= 1
                    if entry < 0 or time[last] - time[stacks[source, entry]] >= window:
                        next_place[depth] -= 1
                        next_entry[depth] = UNKNOWN
                        continue
                    next_entry[depth] = entry
                    candidate = stacks[source, entry]
                    counters[EVALUATED] += 1
                    score = reached[depth]
                    if not within_group and number[source + 1, place] != CERTAIN:
                        score += edge_score(tables, number[source + 1, place], (time[event] - time[candidate]) * scale)
                    if score + bounds[source, entry] < threshold or score == -np.inf:
                        continue
                    agrees = True
                    if compared.shape[0] > 0:
                        for other in range(depth + 1):
                            agrees = agrees and equal_codes(compared, chosen, other, other + 1, candidate)
                    if not agrees:
                        continue
                    if depth + 1 == len(places):
                        places, chosen, missing = grown(places), grown(chosen), grown(missing)
                        next_place, next_entry, reached = grown(next_place), grown(next_entry), grown_numbers(reached)
                    depth += 1
                    unseen = missing[depth - 1]
                    for skipped in range(source + 1, place):
                        unseen |= 1 << skipped
                    places[depth], chosen[depth], reached[depth], missing[depth] = source, candidate, score, unseen
                    next_place[depth] = source if kleene[source] == 1 else source - 1
                    next_entry[depth] = STOP_FIRST
                    bind_slots(at, places, chosen, depth)
                    if (
                        not within_group
                        and decides[source + 1, place] != NOTHING
                        and must_test(
                            decides,
                            negated_known,
                            negated_after,
                            stacks,
                            sizes,
                            time,
                            instant,
                            places,
                            chosen,
                            place,
                            source,
                            depth,
                            window,
                        )
                        and not passes(
                            query,
                            events,
                            columns,
                            predicate,
                            at,
                            stacks,
                            sizes,
                            unseen,
                            2 * place,
                            2 * source,
                            Path(places, chosen),
                            depth,
                        )
                    ):
                        counters[KILLED] += 1
                        depth -= 1
                        bind_slots(at, places, chosen, depth)
    begins[found] = entries
    return out_place[:entries], out_event[:entries], begins[: found + 1], scores[:found], completion[:found], counters

"""What a path must pass while it grows backwards: conditions whose events are decided, and negated events not seen.

A condition is tested once the search has come down to the place from which all it needs is decided (AYAC section 4.2).
"""

from __future__ import annotations

from typing import Any

from numba import types

from cepheid.engine.data.columns import COLUMNS, INT64_ROWS, INT64S, Columns
from cepheid.engine.data.matches import Int64s
from cepheid.engine.kernels.arrays import EVENTS, Events, equal_codes
from cepheid.engine.kernels.lean import lean
from cepheid.engine.search.queues.query import (
    AFTER,
    BASE,
    BRANCH,
    CONDITION,
    EVERY,
    KNOWN,
    LOSSY,
    OWNER,
    PAIRS,
    PATH,
    PLACES,
    QUEUES,
    READY,
    Lossy,
    Path,
    Queues,
)
from cepheid.engine.values.compiled import PREDICATE

FUNCTION = types.FunctionType(PREDICATE)


@lean(types.boolean(LOSSY, COLUMNS, FUNCTION, types.int64, types.int64, PATH, types.int64))
def clause_holds(
    query: Lossy, columns: Columns, predicate: Any, clause: int, missing: int, path: Path, depth: int
) -> bool:
    """Does a condition hold, given which events are missing? For every event of a Kleene group, if it means each."""
    clauses, at = query.clauses, path.at
    case = clauses[clause, BASE]
    for slot in range(clauses.shape[1] - PLACES):
        place = clauses[clause, PLACES + slot]
        if place < 0:
            break
        if missing & (1 << place) != 0:
            case += 1 << slot
    if query.tested[case] == 0:
        return True
    every = clauses[clause, EVERY]
    if every < 0:
        return bool(predicate(case, at, path.counted, path.running, columns))
    for entry in range(depth + 1):
        if path.place[entry] != every:
            continue
        # The path runs backwards: the entry after this one is the event before it in time.
        has_previous = entry < depth and path.place[entry + 1] == every
        if clauses[clause, PAIRS] == 1 and not has_previous:
            continue
        at[4 * every + 2] = path.event[entry]
        at[4 * every + 3] = path.event[entry + 1] if has_previous else path.event[entry]
        if not predicate(case, at, path.counted, path.running, columns):
            return False
    return True


@lean(types.int64(INT64S, types.int64, types.int64), inline=True)
def entry_behind(path_place: Int64s, after: int, depth: int) -> int:
    """The path entry of the first seen event behind a negated component, -1 if there is none."""
    for entry in range(depth, -1, -1):
        if path_place[entry] > after:
            return entry
    return -1


@lean(types.int64(INT64_ROWS, types.int64, types.int64, types.int64, INT64S, types.int64), inline=True)
def first_beyond(stacks: Any, row: int, low: int, high: int, values: Int64s, bound: int) -> int:
    """The first entry of a queue in [low, high) whose value exceeds the bound; values rise along the queue."""
    while low < high:
        middle = (low + high) // 2
        if values[stacks[row, middle]] > bound:
            high = middle
        else:
            low = middle + 1
    return low


@lean(
    types.UniTuple(types.int64, 2)(INT64S, INT64S, QUEUES, types.int64, INT64S, types.int64, types.int64, types.int64),
    inline=True,
)
def negated_range(
    time: Int64s, instant: Int64s, queues: Queues, row: int, chosen: Int64s, later: int, depth: int, window: int
) -> tuple[int, int]:
    """Where in its queue the events of a negated component lie that the path looks at."""
    stacks, size = queues.stacks, queues.sizes[row]
    if later < depth:
        low = first_beyond(stacks, row, 0, size, instant, instant[chosen[later + 1]])
    else:
        low = first_beyond(stacks, row, 0, size, time, time[chosen[0]] - window)
    if later >= 0:
        high = first_beyond(stacks, row, low, size, instant, instant[chosen[later]] - 1)
    else:
        high = first_beyond(stacks, row, low, size, time, time[chosen[depth]] + window - 1)
    return low, high


@lean(types.boolean(LOSSY, EVENTS, QUEUES, PATH, types.int64, types.int64, types.int64))
def must_test(query: Lossy, events: Events, queues: Queues, path: Path, place: int, source: int, depth: int) -> bool:
    """Is there anything to test when a path grows from `place` down to `source`? Mostly there is not."""
    if query.decides[source + 1, place] == CONDITION:
        return True
    known = 2 * source if source >= 0 else -1
    above = 2 * place + (1 if place == query.positives else 0)
    for negation in range(query.negatives):
        row = query.positives + negation
        if queues.sizes[row] == 0:
            continue
        later = entry_behind(path.place, query.negations[negation, AFTER], depth)
        ready = query.negations[negation, READY] if later >= 0 else -1
        if known <= ready < above:
            low, high = negated_range(events.time, events.instant, queues, row, path.event, later, depth, query.window)
            if low < high:
                return True
    return False


@lean(
    types.boolean(
        LOSSY, EVENTS, COLUMNS, FUNCTION, QUEUES, PATH, types.int64, types.int64, types.int64, types.int64, types.int64
    )
)
def negation_kills(
    query: Lossy,
    events: Events,
    columns: Columns,
    predicate: Any,
    queues: Queues,
    path: Path,
    negation: int,
    branch: int,
    later: int,
    missing: int,
    depth: int,
) -> bool:
    """Was an event of a negated component seen that passes all its conditions that can be tested?

    `later` is the path entry behind the component, -1 for the window's end.
    """
    row, slot = query.positives + negation, 4 * query.positives + negation
    low, high = negated_range(events.time, events.instant, queues, row, path.event, later, depth, query.window)
    for index in range(low, high):
        event = queues.stacks[row, index]
        passed = True
        for entry in range(depth + 1):
            passed = passed and equal_codes(events.compared, path.event, entry, entry + 1, event)
        if not passed:
            continue
        path.at[slot] = event
        for clause in range(query.clauses.shape[0]):
            if query.clauses[clause, OWNER] != negation or query.clauses[clause, BRANCH] != branch:
                continue
            if not clause_holds(query, columns, predicate, clause, missing, path, depth):
                passed = False
                break
        if passed:
            return True
    return False


@lean(types.boolean(LOSSY, EVENTS, COLUMNS, FUNCTION, QUEUES, PATH, types.int64, types.int64, types.int64, types.int64))
def passes(
    query: Lossy,
    events: Events,
    columns: Columns,
    predicate: Any,
    queues: Queues,
    path: Path,
    missing: int,
    above: int,
    known: int,
    depth: int,
) -> bool:
    """Tests what has become decided: everything whose `known` lies in [known, above). At the end, known is -1."""
    clauses = query.clauses
    for clause in range(clauses.shape[0]):
        if clauses[clause, OWNER] >= 0 or clauses[clause, BRANCH] >= 0:
            continue
        if known <= clauses[clause, KNOWN] < above and not clause_holds(
            query, columns, predicate, clause, missing, path, depth
        ):
            return False
    if query.branches == 1:
        for negation in range(query.negatives):
            later = entry_behind(path.place, query.negations[negation, AFTER], depth)
            ready = query.negations[negation, READY]
            if later < 0:
                ready = -1  # its interval ends with the window, which the first event decides
            if known <= ready < above and negation_kills(
                query, events, columns, predicate, queues, path, negation, 0, later, missing, depth
            ):
                return False
        return True
    if known >= 0:
        return True
    for branch in range(query.branches):
        stands = True
        for clause in range(clauses.shape[0]):
            if clauses[clause, BRANCH] == branch and clauses[clause, OWNER] < 0:
                stands = stands and clause_holds(query, columns, predicate, clause, missing, path, depth)
        for negation in range(query.negatives):
            if not stands:
                break
            later = entry_behind(path.place, query.negations[negation, AFTER], depth)
            stands = not negation_kills(
                query, events, columns, predicate, queues, path, negation, branch, later, missing, depth
            )
        if stands:
            return True
    return False

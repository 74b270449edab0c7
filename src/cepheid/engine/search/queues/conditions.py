"""What a path must pass while it grows backwards: conditions whose events are decided, and negated events not seen.

A condition is tested once the search has come down to the place from which all it needs is decided (AYAC section 4.2).
"""

from __future__ import annotations

from typing import Any

from numba import types

from cepheid.engine.data.columns import COLUMNS, INT64_ROWS, INT64S, Columns
from cepheid.engine.data.matches import Int64s
from cepheid.engine.kernels.arrays import EVENTS, Events
from cepheid.engine.kernels.lean import lean
from cepheid.engine.kernels.variants import FUNCTION, holds, test_holds
from cepheid.engine.program.tables import AFTER_PLACE, KLEENE, PROGRAM, Program
from cepheid.engine.search.queues.query import CONDITION, PATH, QUEUES, SCORE, Path, Queues, Score
from cepheid.engine.search.runs.buffer import EVENT, RIGHT
from cepheid.engine.search.runs.conditions import absorb, agrees


@lean(types.void(PROGRAM, COLUMNS, PATH, types.int64))
def count_groups(program: Program, columns: Columns, path: Path, depth: int) -> None:
    """Brings lengths and aggregates up to date: over the events of each group, in order of time."""
    scratch, entries = path.scratch, path.entries
    grouped = False
    for entry in range(depth, -1, -1):
        place = entries[entry, RIGHT]
        if program.place[place, KLEENE] == 0:
            continue
        if not grouped:
            grouped = True
            scratch.counted[: program.walk_whole] = 0
            scratch.running[: program.walk_number] = 0.0
        first = entry == depth or entries[entry + 1, RIGHT] != place
        absorb(
            program,
            columns,
            place,
            entries[entry, EVENT],
            first,
            scratch.counted_row,
            scratch.running_row,
            0,
            0,
            0,
        )


@lean(types.boolean(EVENTS, PATH, types.int64, types.int64), inline=True)
def agrees_with_path(events: Events, path: Path, depth: int, event: int) -> bool:
    """Is an event equal to all those of the path in the attributes that are compared?"""
    for row in range(events.compared.shape[0]):
        for entry in range(depth + 1):
            if not agrees(events.compared[row, event], events.compared[row, path.entries[entry, EVENT]]):
                return False
    return True


@lean(types.int64(INT64_ROWS, types.int64, types.int64), inline=True)
def entry_behind(entries: Any, after: int, depth: int) -> int:
    """The path entry of the first seen event behind a negated component, -1 if there is none."""
    for entry in range(depth, -1, -1):
        if entries[entry, RIGHT] > after:
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
    types.UniTuple(types.int64, 2)(EVENTS, QUEUES, types.int64, INT64_ROWS, types.int64, types.int64, types.int64),
    inline=True,
)
def negated_range(
    events: Events, queues: Queues, row: int, entries: Any, later: int, depth: int, window: int
) -> tuple[int, int]:
    """Where in its queue the events of a negated component lie that the path looks at."""
    time, instant, stacks, size = events.time, events.instant, queues.stacks, queues.sizes[row]
    if later < depth:
        low = first_beyond(stacks, row, 0, size, instant, instant[entries[later + 1, EVENT]])
    else:
        low = first_beyond(stacks, row, 0, size, time, time[entries[0, EVENT]] - window)
    if later >= 0:
        high = first_beyond(stacks, row, low, size, instant, instant[entries[later, EVENT]] - 1)
    else:
        high = first_beyond(stacks, row, low, size, time, time[entries[depth, EVENT]] + window - 1)
    return low, high


@lean(types.boolean(PROGRAM, SCORE, EVENTS, QUEUES, PATH, types.int64, types.int64, types.int64))
def must_test(
    program: Program, score: Score, events: Events, queues: Queues, path: Path, place: int, source: int, depth: int
) -> bool:
    """Is there anything to test when a path grows from `place` down to `source`? Mostly there is not."""
    if score.decides[source + 1, place] == CONDITION:
        return True
    known = 2 * source if source >= 0 else -1
    above = 2 * place + (1 if place == program.places else 0)
    for negation in range(program.negatives):
        row = program.places + negation
        if queues.sizes[row] == 0:
            continue
        later = entry_behind(path.entries, program.negations[negation, AFTER_PLACE], depth)
        ready = score.ready[negation] if later >= 0 else -1
        if known <= ready < above:
            low, high = negated_range(events, queues, row, path.entries, later, depth, program.window)
            if low < high:
                return True
    return False


@lean(
    types.boolean(
        PROGRAM,
        EVENTS,
        COLUMNS,
        FUNCTION,
        QUEUES,
        PATH,
        types.int64,
        types.int64,
        types.int64,
        types.int64,
        types.int64,
    )
)
def negation_kills(
    program: Program,
    events: Events,
    columns: Columns,
    predicate: Any,
    queues: Queues,
    path: Path,
    negation: int,
    moment: int,
    later: int,
    missing: int,
    depth: int,
) -> bool:
    """Was an event of a negated component seen that passes all its conditions that can be tested?

    `later` is the path entry behind the component, -1 for the window's end.
    """
    at, entries = path.scratch.at, path.entries
    row, slot = program.places + negation, len(at) - program.negatives + negation
    low, high = negated_range(events, queues, row, entries, later, depth, program.window)
    for index in range(low, high):
        event = queues.stacks[row, index]
        if not agrees_with_path(events, path, depth, event):
            continue
        at[slot] = event
        if holds(program, columns, predicate, moment, missing, path.scratch, entries, 0):
            return True
    return False


@lean(
    types.boolean(
        PROGRAM,
        SCORE,
        EVENTS,
        COLUMNS,
        FUNCTION,
        QUEUES,
        PATH,
        types.int64,
        types.int64,
        types.int64,
        types.int64,
    )
)
def passes(
    program: Program,
    score: Score,
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
    count_groups(program, columns, path, depth)
    for test in range(program.moments[0], program.moments[1]):
        if known <= score.known[test] < above and not test_holds(
            program, columns, predicate, test, missing, path.scratch, path.entries, 0
        ):
            return False
    base = 3 * program.places
    if not program.judged:
        for negation in range(program.negatives):
            later = entry_behind(path.entries, program.negations[negation, AFTER_PLACE], depth)
            # An interval that ends with the window is known with the first event.
            ready = score.ready[negation] if later >= 0 else -1
            if known <= ready < above and negation_kills(
                program, events, columns, predicate, queues, path, negation, base + negation, later, missing, depth
            ):
                return False
        return True
    if known >= 0:
        return True
    for branch in range(program.branches):
        moment = base + program.negatives + branch * (1 + program.negatives)
        survives = holds(program, columns, predicate, moment, missing, path.scratch, path.entries, 0)
        for negation in range(program.negatives):
            if not survives:
                break
            later = entry_behind(path.entries, program.negations[negation, AFTER_PLACE], depth)
            survives = not negation_kills(
                program,
                events,
                columns,
                predicate,
                queues,
                path,
                negation,
                moment + 1 + negation,
                later,
                missing,
                depth,
            )
        if survives:
            return True
    return False

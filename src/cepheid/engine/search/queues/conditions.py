"""What a path must pass while it grows backwards: conditions whose events are decided, and negated events not seen.

A condition is tested once the search has come down to the place from which all it needs is decided (AYAC section 4.2).
"""

from __future__ import annotations

from cepheid.engine.data.arrays import Int64Rows
from cepheid.engine.data.columns import Columns, PredicateCall
from cepheid.engine.kernels.compile import borrowing, inlined
from cepheid.engine.kernels.conditions import (
    EVENT,
    RIGHT,
    agrees_on_codes,
    gather_codes,
    holds,
    holds_for_every,
    passes_test,
)
from cepheid.engine.kernels.negation import BEFORE, BEHIND, FIRST_EVENT, LAST_EVENT, interval, kills
from cepheid.engine.kernels.query import Query
from cepheid.engine.kernels.registers import Registers, absorb
from cepheid.engine.program.tables import (
    AFTER_PLACE,
    CURRENT_AT,
    KEPT_FROM,
    KLEENE,
    PREVIOUS_AT,
    SECOND,
    WALKED,
    WALKS_FROM,
    Program,
)
from cepheid.engine.search.queues.query import CONDITION, Path, Score


@inlined
def count_groups(query: Query, path: Path, depth: int) -> None:
    """Brings lengths and aggregates up to date: over the events of each group, in order of time."""
    program, scratch, entries = query.program, path.scratch, path.entries
    registers = Registers(scratch.counted_row, scratch.running_row, 0, 0)
    grouped = False
    for entry in range(depth, -1, -1):
        place = entries[entry, RIGHT]
        if program.place[place, KLEENE] == 0:
            continue
        if not grouped:
            grouped = True
            scratch.counted[: program.walk_whole] = 0
            scratch.running[: program.walk_number] = 0.0
        if program.place[place, KEPT_FROM] == program.place[place + 1, KEPT_FROM]:
            scratch.counted[place] += 1  # a length is all that is kept
        else:
            first = entry == depth or entries[entry + 1, RIGHT] != place
            absorb(program, query.columns, place, entries[entry, EVENT], first, registers, 0)


@borrowing
def holds_along(
    program: Program, columns: Columns, predicate: PredicateCall, test: int, path: Path, depth: int
) -> bool:
    """Does a condition hold for every element of the one group it goes over, of which no aggregates are kept?

    The elements are read where they stand in the path, backwards: `holds_for_every` would collect them first.
    """
    scratch, entries = path.scratch, path.entries
    walk = program.tests[test, WALKS_FROM]
    place, second = program.walks[walk, WALKED], program.walks[walk, SECOND]
    current, previous = program.place[place, CURRENT_AT], program.place[place, PREVIOUS_AT]
    left = scratch.counted[place]
    for entry in range(depth + 1):
        if entries[entry, RIGHT] != place:
            continue
        left -= 1
        if left < second:
            return True
        scratch.at[current] = entries[entry, EVENT]
        if left > 0:
            scratch.at[previous] = entries[entry + 1, EVENT]
        scratch.counted[program.walk_whole + place] = left  # how many elements come before this one
        if not passes_test(program, columns, predicate, test, scratch):
            return False
    return True


@inlined
def test_holds(program: Program, columns: Columns, predicate: PredicateCall, test: int, path: Path, depth: int) -> bool:
    """Does a test hold for the events of a path?"""
    walk, end = program.tests[test, WALKS_FROM], program.tests[test + 1, WALKS_FROM]
    if walk == end:
        return passes_test(program, columns, predicate, test, path.scratch)
    place = program.walks[walk, WALKED]
    missing = (path.scratch.missing[0] >> place) & 1 == 1
    kept = program.place[place, KEPT_FROM] < program.place[place + 1, KEPT_FROM]
    if end - walk > 1 or missing or kept:
        return holds_for_every(program, columns, predicate, test, path.scratch, path.entries, 0)
    return holds_along(program, columns, predicate, test, path, depth)


@borrowing
def gather_path(query: Query, path: Path, depth: int) -> None:
    """Takes in what the events of the path say of the attributes that are compared."""
    for entry in range(depth + 1):
        gather_codes(query.events, path.scratch.codes, path.entries[entry, EVENT], 1 if entry == 0 else 0)


@borrowing
def agrees_with_path(query: Query, path: Path, depth: int, event: int) -> bool:
    """Is an event equal to all those of the path in the attributes that are compared?"""
    gather_path(query, path, depth)
    return agrees_on_codes(query.events, path.scratch.codes, event)


@inlined
def entry_behind(entries: Int64Rows, after: int, depth: int) -> int:
    """The path entry of the first seen event behind a negated component, -1 if there is none."""
    for entry in range(depth, -1, -1):
        if entries[entry, RIGHT] > after:
            return entry
    return -1


@inlined
def ends_with_window(query: Query, path: Path, negation: int, depth: int) -> bool:
    """Writes down which seen events a negated component lies between; is there none behind it?"""
    entries, between = path.entries, path.scratch.between
    later = entry_behind(entries, query.program.negations[negation, AFTER_PLACE], depth)
    between[negation, BEFORE] = entries[later + 1, EVENT] if later < depth else -1
    between[negation, BEHIND] = entries[later, EVENT] if later >= 0 else -1
    between[negation, FIRST_EVENT], between[negation, LAST_EVENT] = entries[depth, EVENT], entries[0, EVENT]
    return later < 0


@inlined
def must_test(query: Query, score: Score, path: Path, place: int, source: int, depth: int) -> bool:
    """Is there anything to test when a path grows from `place` down to `source`? Mostly there is not."""
    if score.decides[source + 1, place] == CONDITION:
        return True
    known = 2 * source if source >= 0 else -1
    above = 2 * place + (1 if place == query.program.places else 0)
    for negation in range(query.program.negatives):
        if query.absent.sizes[negation] == 0:
            continue
        ready = -1 if ends_with_window(query, path, negation, depth) else score.ready[negation]
        if known <= ready < above:
            low, high = interval(query, negation, path.scratch)
            if low < high:
                return True
    return False


@borrowing
def passes(query: Query, score: Score, path: Path, missing: int, above: int, known: int, depth: int) -> bool:
    """Tests what has become decided: everything whose `known` lies in [known, above). At the end, known is -1."""
    program, columns, predicate, scratch = query.program, query.columns, query.predicate, path.scratch
    count_groups(query, path, depth)
    scratch.missing[0] = missing
    for test in range(program.moments[0], program.moments[1]):
        if known <= score.known[test] < above and not test_holds(program, columns, predicate, test, path, depth):
            return False
    if program.negatives == 0:
        return True
    gather_path(query, path, depth)
    base = 3 * program.places
    if not program.judged:
        for negation in range(program.negatives):
            # An interval that ends with the window is known with the first event.
            ready = -1 if ends_with_window(query, path, negation, depth) else score.ready[negation]
            if known <= ready < above and kills(query, negation, base + negation, scratch, path.entries, 0):
                return False
        return True
    if known >= 0:
        return True
    for branch in range(program.branches):
        moment = base + program.negatives + branch * (1 + program.negatives)
        survives = holds(program, columns, predicate, moment, scratch, path.entries, 0)
        for negation in range(program.negatives):
            if survives:
                ends_with_window(query, path, negation, depth)
                survives = not kills(query, negation, moment + 1 + negation, scratch, path.entries, 0)
        if survives:
            return True
    return False

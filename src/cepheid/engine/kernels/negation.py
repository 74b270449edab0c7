"""What must not happen (SASE sections 2.2.2 and 3.3): the one test that every search puts to negated components.

A negated component looks at an open interval, between the events before and behind it or to the window's edge. Its
events lie in a stack, in order, so the interval is found by bisection. Components that share a condition kill only
together: with one event for each, all different, that pass all their conditions.
"""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Int64Rows
from cepheid.engine.data.layout import INSTANT
from cepheid.engine.kernels.compile import borrowing, inlined, kernel
from cepheid.engine.kernels.conditions import Scratch, agrees, agrees_on_codes, holds
from cepheid.engine.kernels.query import Query
from cepheid.engine.kernels.windows import closes, first_above, in_window, opens
from cepheid.engine.program.tables import (
    AFTER_AT,
    BEFORE_AT,
    FIRST_AT,
    GROUP,
    JUDGED_AT,
    LAST_AT,
    LINKED,
    OUTSIDE,
    Program,
)

# Columns of `scratch.between`: the events before and behind a negated component (-1: the window's edge), and the first
# and the last event of the match, which the window's edges hang on.
BEFORE, BEHIND, FIRST_EVENT, LAST_EVENT = range(4)


@borrowing
def note_neighbours(program: Program, branch: int, negation: int, scratch: Scratch) -> None:
    """Writes down which events a negated component lies between, if all places are filled."""
    at, between = scratch.at, scratch.between
    row = branch * program.negatives + negation
    after, before = program.negations[row, AFTER_AT], program.negations[row, BEFORE_AT]
    between[negation, BEFORE] = at[after] if after >= 0 else -1
    between[negation, BEHIND] = at[before] if before >= 0 else -1
    between[negation, FIRST_EVENT] = at[program.place[0, FIRST_AT]]
    between[negation, LAST_EVENT] = at[program.place[program.places - 1, LAST_AT]]


@inlined
def interval(query: Query, negation: int, scratch: Scratch) -> tuple[int, int]:
    """The part of its stack that a negated component looks at."""
    facts, stack, between = query.events.facts, query.absent.stacks[negation], scratch.between[negation]
    size = query.absent.sizes[negation]
    if between[BEFORE] >= 0:
        low = first_above(stack, 0, size, facts, INSTANT, facts[INSTANT, between[BEFORE]])
    else:
        low = opens(query.events, query.program, stack, 0, size, between[LAST_EVENT])
    if between[BEHIND] >= 0:
        high = first_above(stack, low, size, facts, INSTANT, facts[INSTANT, between[BEHIND]] - 1)
    else:
        high = closes(query.events, query.program, stack, low, size, between[FIRST_EVENT])
    return low, high


@borrowing
def concerned(query: Query, negation: int, event: int, scratch: Scratch) -> bool:
    """Does an event of the interval lie in the window, and agree with the match on what is compared?"""
    events, between = query.events, scratch.between[negation]
    if not events.ordered:
        if between[BEFORE] < 0 and not in_window(events, query.program, event, between[LAST_EVENT]):
            return False
        if between[BEHIND] < 0 and not in_window(events, query.program, between[FIRST_EVENT], event):
            return False
    return agrees_on_codes(events, scratch.codes, event)


@borrowing
def kills(query: Query, negation: int, moment: int, scratch: Scratch, entries: Int64Rows, entry: int) -> bool:
    """Does an event of a negated component lie in its open interval and pass its conditions?"""
    low, high = interval(query, negation, scratch)
    slot = len(scratch.at) - query.program.negatives + negation
    for index in range(low, high):
        event = query.absent.stacks[negation, index]
        if not concerned(query, negation, event, scratch):
            continue
        scratch.at[slot] = event
        if holds(query.program, query.columns, query.predicate, moment, scratch, entries, entry):
            return True
    return False


@borrowing
def differs(query: Query, first_slot: int, slot: int, event: int, scratch: Scratch) -> bool:
    """Is an event another one than those chosen for the linked components before, and does it agree with them?"""
    for other in range(first_slot, slot):
        if scratch.at[other] == event:
            return False
        for row in range(len(scratch.codes)):
            compared = query.events.compared
            if scratch.at[other] >= 0 and not agrees(compared[row, scratch.at[other]], compared[row, event]):
                return False
    return True


@kernel
def kill_together(
    query: Query, branch: int, negation: int, moment: int, scratch: Scratch, entries: Int64Rows, entry: int
) -> bool:
    """Is there an event for each component of a linked group, all different, that pass all their conditions?

    `negation` is the first one of the group, `moment` that of the first negated component of all.
    """
    program = query.program
    count = program.negatives
    members, size = np.empty(count, np.int64), 0
    for other in range(count):
        if program.negations[branch * count + other, GROUP] == negation:
            members[size] = other
            size += 1
    base = len(scratch.at) - count
    low, high = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for depth in range(size):
        low[depth], high[depth] = interval(query, members[depth], scratch)
    scratch.at[base:] = -1
    cursor = low.copy()
    depth = 0
    while depth >= 0:
        member = members[depth]
        if cursor[depth] >= high[depth]:
            scratch.at[base + member] = -1
            depth -= 1
            continue
        event = query.absent.stacks[member, cursor[depth]]
        cursor[depth] += 1
        if not concerned(query, member, event, scratch):
            continue
        if not differs(query, base, base + member, event, scratch):
            continue
        scratch.at[base + member] = event
        if holds(program, query.columns, query.predicate, moment + member, scratch, entries, entry):
            if depth == size - 1:
                return True
            depth += 1
            cursor[depth] = low[depth]
    return False


@borrowing
def killed(
    query: Query, branch: int, negation: int, moment: int, scratch: Scratch, entries: Int64Rows, entry: int
) -> bool:
    """Is a match killed by a negated component, or by the linked ones of which it is the first?

    `moment` is that of the first negated component; those of the others follow it.
    """
    program = query.program
    row = branch * program.negatives + negation
    if program.negations[row, LINKED] == 0:
        note_neighbours(program, branch, negation, scratch)
        return kills(query, negation, moment + negation, scratch, entries, entry)
    if program.negations[row, GROUP] != negation:
        return False  # it is judged with the first of its group
    for other in range(program.negatives):
        note_neighbours(program, branch, other, scratch)
    return kill_together(query, branch, negation, moment, scratch, entries, entry)


@borrowing
def killed_at(query: Query, place: int, scratch: Scratch, entries: Int64Rows, entry: int) -> bool:
    """Is a match killed by a negated component that is judged at this place?"""
    program = query.program
    for negation in range(program.negatives):
        if program.negations[negation, JUDGED_AT] == place and killed(
            query, 0, negation, 3 * program.places, scratch, entries, entry
        ):
            return True
    return False


@borrowing
def killed_outside(query: Query, first: int, last: int, scratch: Scratch, entries: Int64Rows, entry: int) -> bool:
    """Is a complete match of an expression, from its first to its last event, killed by what lies outside of it?"""
    program = query.program
    for negation in range(program.negatives):
        row = program.negations[negation]
        if row[JUDGED_AT] != OUTSIDE:
            continue
        between = scratch.between[negation]
        between[BEFORE] = last if row[AFTER_AT] >= 0 else -1
        between[BEHIND] = first if row[BEFORE_AT] >= 0 else -1
        between[FIRST_EVENT], between[LAST_EVENT] = first, last
        if kills(query, negation, 3 * program.places + negation, scratch, entries, entry):
            return True
    return False


@borrowing
def killed_in_every_branch(query: Query, scratch: Scratch, entries: Int64Rows, entry: int) -> bool:
    """Is a complete match killed, or does it survive for some disjunct of the condition (SASE section 2.2.2)?"""
    program = query.program
    for branch in range(program.branches):
        moment = 3 * program.places + program.negatives + branch * (1 + program.negatives)
        survives = holds(program, query.columns, query.predicate, moment, scratch, entries, entry)
        for negation in range(program.negatives):
            survives = survives and not killed(query, branch, negation, moment + 1, scratch, entries, entry)
        if survives:
            return False
    return True

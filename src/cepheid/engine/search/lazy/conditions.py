"""Everything an event must pass to join a partial match, whatever its place in the order of evaluation."""

from __future__ import annotations

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.candidates import WILD
from cepheid.engine.data.layout import POSITION, Events
from cepheid.engine.kernels.compile import borrowing
from cepheid.engine.kernels.conditions import Scratch, gather_codes
from cepheid.engine.kernels.negation import killed, killed_in_every_branch
from cepheid.engine.kernels.query import Query
from cepheid.engine.program.tables import (
    CASE,
    NEEDS,
    NEGATION_NEEDS,
    Program,
)

FAILED, KILLED, PASSED = 0, 1, 2


@borrowing
def agrees_with_filled(compared: Int64Rows, at: Int64s, filled: int, event: int) -> bool:
    """Does the event agree with all filled places on every compared attribute? A wild code agrees with all."""
    for row in range(compared.shape[0]):
        own = compared[row, event]
        if own == WILD:
            continue
        place, rest = 0, filled
        while rest != 0:
            if rest & 1:
                other = compared[row, at[place]]
                if other not in (own, WILD):
                    return False
            rest >>= 1
            place += 1
    return True


@borrowing
def within(events: Events, program: Program, at: Int64s, filled: int) -> bool:
    """Do the filled places fit one window of events? Asked where scopes could not bisect the positions."""
    if filled & 1:
        opening = events.facts[POSITION, at[0]]
        for place in range(1, program.places):
            if filled & (1 << place) and events.facts[POSITION, at[place]] - opening >= program.window:
                return False
    return True


@borrowing
def newly(needed: int, before: int, filled: int) -> bool:
    """Are all needed places filled, one of them just now? What needs none is judged with the first."""
    return needed & filled == needed and (needed & before != needed or before == 0)


@borrowing
def unharmed(query: Query, scratch: Scratch, entries: Int64Rows, before: int, filled: int) -> bool:
    """Do the filled places survive the negated components that can be judged now, and could not before?"""
    program = query.program
    first = 1
    for place in range(program.places):
        if filled & (1 << place):
            gather_codes(query.events, scratch.codes, scratch.at[place], first)
            first = 0
    if program.judged:
        complete = filled == (1 << program.places) - 1
        return not (complete and killed_in_every_branch(query, scratch, entries, -1))
    for negation in range(program.negatives):
        if newly(program.negations[negation, NEGATION_NEEDS], before, filled) and killed(
            query, 0, negation, 3 * program.places, scratch, entries, -1
        ):
            return False
    return True


@borrowing
def judge(query: Query, scratch: Scratch, entries: Int64Rows, before: int, place: int) -> int:
    """PASSED, if the event at[place] may join the places filled before: it agrees with them, and every condition and
    negated component that can be judged now, and could not before, is content; FAILED or KILLED otherwise."""
    events, program, at = query.events, query.program, scratch.at
    if not agrees_with_filled(events.compared, at, before, at[place]):
        return FAILED
    filled = before | (1 << place)
    if not events.ordered and not within(events, program, at, filled):
        return FAILED
    for test in range(program.moments[1]):
        if newly(program.tests[test, NEEDS], before, filled) and not query.predicate(
            program.tests[test, CASE], at, scratch.counted, scratch.running, query.columns
        ):
            return FAILED
    if program.negatives > 0 and not unharmed(query, scratch, entries, before, filled):
        return KILLED
    return PASSED

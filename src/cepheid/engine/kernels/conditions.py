"""Conditions inside kernels: on the events chosen so far, and on every element of a group."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64Rows, Float64s, Int64Rows, Int64s
from cepheid.engine.data.candidates import WILD
from cepheid.engine.data.columns import Columns, PredicateCall
from cepheid.engine.data.layout import Events
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.kernels.registers import Registers, absorb
from cepheid.engine.program.tables import (
    CASE,
    CURRENT_AT,
    KEPT_FROM,
    KEPT_KNOWN,
    NEEDS,
    PREVIOUS_AT,
    SECOND,
    WALKED,
    WALKS_FROM,
    Program,
)

# An entry of a match buffer: its event, its predecessor (-1: none), and the place its event fills.
EVENT, LEFT, RIGHT = range(3)


class Scratch(NamedTuple):
    """A partial match's values while conditions are tested: copies, since a view into a row costs more than a few
    numbers."""

    at: Int64s
    counted: Int64s
    running: Float64s
    codes: Int64s  # what its events agree on, for each compared attribute
    counted_row: Int64Rows  # the same memory as `counted` and `running`, as tables of one row
    running_row: Float64Rows
    missing: Int64s  # one number: bit p says that the event of place p is missing
    between: Int64Rows  # for each negated component the events before and behind it, and the first and the last event


@kernel
def new_scratch(slots: int, whole: int, number: int, codes: int) -> Scratch:
    """Room for the values of one partial match."""
    counted = np.zeros((1, whole), np.int64)
    running = np.zeros((1, number), np.float64)
    return Scratch(
        np.zeros(slots, np.int64),
        counted[0],
        running[0],
        np.zeros(codes, np.int64),
        counted,
        running,
        np.zeros(1, np.int64),
        np.zeros((slots, 4), np.int64),
    )


@borrowing
def agrees(one: int, other: int) -> bool:
    """Are two values of an equivalence test equal? A wild one agrees with all."""
    return one in (other, WILD) or other == WILD


@borrowing
def agrees_on_codes(events: Events, codes: Int64s, event: int) -> bool:
    """Does an event agree with the values of all compared attributes?"""
    for row in range(len(codes)):
        if not agrees(events.compared[row, event], codes[row]):
            return False
    return True


@borrowing
def gather_codes(events: Events, codes: Int64s, event: int, first: int) -> None:
    """Takes in what an event says of the compared attributes; with `first` it is the first one to say something."""
    for row in range(len(codes)):
        if first == 1 or codes[row] == WILD:
            codes[row] = events.compared[row, event]


@borrowing
def variant(needs: int, missing: int) -> int:
    """Which variant of a test fits what is missing: a bit for each place it needs, the first place the lowest."""
    found, bit = 0, 1
    while needs != 0:
        lowest = needs & -needs
        if missing & lowest != 0:
            found |= bit
        bit <<= 1
        needs ^= lowest
    return found


@borrowing
def passes_test(program: Program, columns: Columns, predicate: PredicateCall, test: int, scratch: Scratch) -> bool:
    """Does a test hold for the events that are chosen?"""
    case = program.tests[test, CASE]
    if scratch.missing[0] != 0:
        case += variant(program.tests[test, NEEDS], scratch.missing[0])
    return bool(predicate(case, scratch.at, scratch.counted, scratch.running, columns))


@borrowing
def pass_by(program: Program, columns: Columns, place: int, event: int, first: bool, scratch: Scratch) -> None:
    """Makes an element of a walked group the previous one."""
    registers = Registers(scratch.counted_row, scratch.running_row, program.walk_whole, program.walk_number)
    absorb(program, columns, place, event, first, registers, 0)
    scratch.at[program.place[place, PREVIOUS_AT]] = event


@borrowing
def restart(program: Program, columns: Columns, walk: int, chosen: Int64s, scratch: Scratch) -> None:
    """Sets the registers to the element at which the walk over a group begins."""
    place = program.walks[walk, WALKED]
    scratch.counted[program.walk_whole + place] = 0
    for kept in range(program.place[place, KEPT_FROM], program.place[place + 1, KEPT_FROM]):
        scratch.counted[program.walk_whole + program.kept[kept, KEPT_KNOWN]] = 0
    scratch.at[program.place[place, CURRENT_AT]] = chosen[0]
    if program.walks[walk, SECOND] == 1:
        pass_by(program, columns, place, chosen[0], True, scratch)
        scratch.at[program.place[place, CURRENT_AT]] = chosen[1]


@kernel
def holds_for_every(
    program: Program,
    columns: Columns,
    predicate: PredicateCall,
    test: int,
    scratch: Scratch,
    entries: Int64Rows,
    entry: int,
) -> bool:
    """Does a condition hold for every element of the groups it goes over, in every combination?

    A group that is missing as a whole is not walked: if there is a default, it speaks for the group once.
    """
    begin, end = program.tests[test, WALKS_FROM], program.tests[test + 1, WALKS_FROM]
    walks, edges, groups = np.empty(end - begin, np.int64), np.zeros(end - begin + 1, np.int64), 0
    for walk in range(begin, end):
        place = program.walks[walk, WALKED]
        if (scratch.missing[0] >> place) & 1 == 1:
            continue
        size = scratch.counted[place]
        if size <= program.walks[walk, SECOND]:
            return True  # no element to hold for
        walks[groups], edges[groups + 1] = walk, edges[groups] + size
        groups += 1
    if groups == 0:
        return passes_test(program, columns, predicate, test, scratch)
    members = np.empty(edges[groups], np.int64)
    free = edges[1:].copy()
    left = len(members)
    while left > 0:  # back through the buffer: where a group is still to be walked, no two runs were merged
        for group in range(groups):
            if entries[entry, RIGHT] == program.walks[walks[group], WALKED]:
                free[group] -= 1
                members[free[group]] = entries[entry, EVENT]
                left -= 1
        entry = entries[entry, LEFT]
    index = np.empty(groups, np.int64)
    for group in range(groups):
        restart(program, columns, walks[group], members[edges[group] :], scratch)
        index[group] = program.walks[walks[group], SECOND]
    while True:
        if not passes_test(program, columns, predicate, test, scratch):
            return False
        group = groups - 1
        while group >= 0:
            place = program.walks[walks[group], WALKED]
            index[group] += 1
            current = edges[group] + index[group]
            if current < edges[group + 1]:
                pass_by(program, columns, place, members[current - 1], index[group] == 1, scratch)
                scratch.at[program.place[place, CURRENT_AT]] = members[current]
                break
            restart(program, columns, walks[group], members[edges[group] :], scratch)
            index[group] = program.walks[walks[group], SECOND]
            group -= 1
        if group < 0:
            return True


@borrowing
def test_holds(
    program: Program,
    columns: Columns,
    predicate: PredicateCall,
    test: int,
    scratch: Scratch,
    entries: Int64Rows,
    entry: int,
) -> bool:
    """Does a test hold? `entry` is the last one of the match, for conditions that go over groups."""
    if program.tests[test, WALKS_FROM] == program.tests[test + 1, WALKS_FROM]:
        return passes_test(program, columns, predicate, test, scratch)
    return holds_for_every(program, columns, predicate, test, scratch, entries, entry)


@borrowing
def holds(
    program: Program,
    columns: Columns,
    predicate: PredicateCall,
    moment: int,
    scratch: Scratch,
    entries: Int64Rows,
    entry: int,
) -> bool:
    """Do all conditions of a moment hold?"""
    for test in range(program.moments[moment], program.moments[moment + 1]):
        if not test_holds(program, columns, predicate, test, scratch, entries, entry):
            return False
    return True

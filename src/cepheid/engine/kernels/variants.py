"""Conditions where events may be missing: the variant of a test for the events that are, over the groups that are not.

A match is a chain of entries (event, entry before, place), read from its last event backwards: the same for searches
that go forwards and for those that come from the end.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types

from cepheid.engine.data.columns import COLUMNS, INT64_ROWS, Columns
from cepheid.engine.kernels.lean import lean
from cepheid.engine.program.tables import CASE, CURRENT_AT, NEEDS, PROGRAM, SECOND, WALKED, WALKS_FROM, Program
from cepheid.engine.search.runs.buffer import EVENT, LEFT, RIGHT, Rows
from cepheid.engine.search.runs.conditions import SCRATCH, Scratch, pass_by, restart
from cepheid.engine.values.compiled import PREDICATE

FUNCTION = types.FunctionType(PREDICATE)


@lean(types.int64(PROGRAM, types.int64, types.int64), inline=True)
def case_of(program: Program, test: int, missing: int) -> int:
    """The case of a test if some events are missing: the bits of those it needs, the lowest place first."""
    case, needs = program.tests[test, CASE], program.tests[test, NEEDS]
    if needs & missing != 0:
        bit = 1
        for place in range(program.places):
            if (needs >> place) & 1 == 1:
                case += bit * ((missing >> place) & 1)
                bit *= 2
    return case


@numba.njit(
    types.boolean(PROGRAM, COLUMNS, FUNCTION, types.int64, types.int64, SCRATCH, INT64_ROWS, types.int64), cache=True
)
def holds_for_every(
    program: Program,
    columns: Columns,
    predicate: Any,
    test: int,
    missing: int,
    scratch: Scratch,
    entries: Rows,
    entry: int,
) -> bool:
    """Does a test hold for every element of the groups it goes over, in every combination?"""
    begin, end = program.tests[test, WALKS_FROM], program.tests[test + 1, WALKS_FROM]
    walks, edges = np.empty(end - begin, np.int64), np.zeros(end - begin + 1, np.int64)
    groups, case = 0, case_of(program, test, missing)
    for walk in range(begin, end):
        place = program.walks[walk, WALKED]
        if (missing >> place) & 1 == 1:
            continue  # its default may speak for it, once
        size = scratch.counted[place]
        if size <= program.walks[walk, SECOND]:
            return True  # no element to hold for
        walks[groups], edges[groups + 1] = walk, edges[groups] + size
        groups += 1
    if groups == 0:
        return bool(predicate(case, scratch.at, scratch.counted, scratch.running, columns))
    members, free = np.empty(edges[groups], np.int64), edges[1 : groups + 1].copy()
    left = len(members)
    while left > 0:
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
        if not predicate(case, scratch.at, scratch.counted, scratch.running, columns):
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


@lean(types.boolean(PROGRAM, COLUMNS, FUNCTION, types.int64, types.int64, SCRATCH, INT64_ROWS, types.int64))
def test_holds(
    program: Program,
    columns: Columns,
    predicate: Any,
    test: int,
    missing: int,
    scratch: Scratch,
    entries: Rows,
    entry: int,
) -> bool:
    """Does a test hold for the match whose last event is an entry, given which components are missing?"""
    if program.tests[test, WALKS_FROM] == program.tests[test + 1, WALKS_FROM]:
        case = case_of(program, test, missing)
        return bool(predicate(case, scratch.at, scratch.counted, scratch.running, columns))
    return bool(holds_for_every(program, columns, predicate, test, missing, scratch, entries, entry))


@lean(types.boolean(PROGRAM, COLUMNS, FUNCTION, types.int64, types.int64, SCRATCH, INT64_ROWS, types.int64))
def holds(
    program: Program,
    columns: Columns,
    predicate: Any,
    moment: int,
    missing: int,
    scratch: Scratch,
    entries: Rows,
    entry: int,
) -> bool:
    """Do all tests of a moment hold?"""
    for test in range(program.moments[moment], program.moments[moment + 1]):
        if not test_holds(program, columns, predicate, test, missing, scratch, entries, entry):
            return False
    return True

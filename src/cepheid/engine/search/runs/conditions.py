"""Conditions inside the run kernels: on a run's registers, on every element of a group, on what must not happen."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.candidates import WILD
from cepheid.engine.data.columns import COLUMNS, FLOAT64_ROWS, FLOAT64S, INT64_ROWS, INT64S, Columns
from cepheid.engine.data.matches import Int64s
from cepheid.engine.kernels.arrays import EVENT_WINDOW, TIME_WINDOW
from cepheid.engine.kernels.lean import lean
from cepheid.engine.program.tables import (
    AFTER_AT,
    AVERAGE,
    BEFORE_AT,
    CASE,
    COUNT,
    CURRENT_AT,
    FIRST,
    FIRST_AT,
    GREATEST,
    JUDGED_AT,
    KEPT_COLUMN,
    KEPT_FRACTION,
    KEPT_FROM,
    KEPT_KIND,
    KEPT_KNOWN,
    KEPT_NULL,
    KEPT_VALUE,
    LAST,
    LAST_AT,
    LEAST,
    PREVIOUS_AT,
    PROGRAM,
    SECOND,
    SUM,
    WALKED,
    WALKS_FROM,
    Program,
)
from cepheid.engine.search.runs.buffer import EVENT, LEFT, RIGHT, Rows
from cepheid.engine.values.compiled import PREDICATE

Float64s = npt.NDArray[np.float64]
FUNCTION = types.FunctionType(PREDICATE)


class Events(NamedTuple):
    """The candidates, as the run kernels see them."""

    facts: Rows  # by event; see the names of the columns
    starts: Int64s
    compared: Rows
    ordered: bool  # does every window hold events side by side? Not if it counts events of several partitions at once


EVENTS = types.NamedTuple((INT64_ROWS, INT64S, INT64_ROWS, types.boolean), Events)

# Columns of `facts`: its time, the rank of its instant, its position among the events of its partition; when a match
# that starts here is decided, if decisions wait for the window to pass; under contiguity, the one instant at which a
# run that stands here can go on (-1: none); which components it can fill, and which of them it can be the first of.
TIME, INSTANT, POSITION, DUE, CHANCE, MASK, BEGINS = range(7)
EVENT_FACTS = 7


class Absent(NamedTuple):
    """The events that could fill negated components, in one partition."""

    stacks: Rows  # one row for each negated component
    sizes: Int64s


ABSENT = types.NamedTuple((INT64_ROWS, INT64S), Absent)


class Scratch(NamedTuple):
    """A run's values while conditions are tested: copies, since a view into a row costs more than a few numbers."""

    at: Int64s
    counted: Int64s
    running: Float64s
    codes: Int64s
    counted_row: Rows  # the same memory as `counted` and `running`, as tables of one row
    running_row: npt.NDArray[np.float64]


SCRATCH = types.NamedTuple((INT64S, INT64S, FLOAT64S, INT64S, INT64_ROWS, FLOAT64_ROWS), Scratch)


@numba.njit(SCRATCH(types.int64, types.int64, types.int64, types.int64), cache=True)
def new_scratch(slots: int, whole: int, number: int, codes: int) -> Scratch:
    """Room for the values of one run."""
    counted = np.zeros((1, whole), np.int64)
    running = np.zeros((1, number), np.float64)
    return Scratch(np.zeros(slots, np.int64), counted[0], running[0], np.zeros(codes, np.int64), counted, running)


@lean(types.int64(INT64S, types.int64, types.int64, INT64_ROWS, types.int64, types.int64))
def first_above(stack: Int64s, low: int, high: int, facts: Rows, column: int, bound: int) -> int:
    """The first index in stack[low:high] whose fact exceeds the bound; facts rise along the stack."""
    while low < high:
        middle = (low + high) // 2
        if facts[stack[middle], column] > bound:
            high = middle
        else:
            low = middle + 1
    return low


@lean(types.boolean(EVENTS, PROGRAM, types.int64, types.int64))
def in_window(events: Events, program: Program, first: int, last: int) -> bool:
    """Do the two events fit one window?"""
    if program.window_kind == TIME_WINDOW:
        return bool(events.facts[last, TIME] - events.facts[first, TIME] < program.window)
    if program.window_kind == EVENT_WINDOW:
        return bool(events.facts[last, POSITION] - events.facts[first, POSITION] < program.window)
    return True


@lean(types.boolean(types.int64, types.int64))
def agrees(one: int, other: int) -> bool:
    """Are two values of an equivalence test equal? A wild one agrees with all."""
    return one in (other, WILD) or other == WILD


@lean(
    types.void(
        PROGRAM,
        COLUMNS,
        types.int64,
        types.int64,
        types.boolean,
        INT64_ROWS,
        FLOAT64_ROWS,
        types.int64,
        types.int64,
        types.int64,
    )
)
def absorb(
    program: Program,
    columns: Columns,
    place: int,
    event: int,
    first: bool,
    rows: Rows,
    running: npt.NDArray[np.float64],
    row: int,
    whole: int,
    number: int,
) -> None:
    """Adds an event to the aggregates of its group; `whole` and `number` say where in the rows these begin."""
    rows[row, whole + place] += 1
    for kept in range(program.place[place, KEPT_FROM], program.place[place + 1, KEPT_FROM]):
        kind = program.kept[kept, KEPT_KIND]
        known = whole + program.kept[kept, KEPT_KNOWN]
        if kind == LAST or (kind == FIRST and first):
            rows[row, known] = 0
        elif kind == FIRST:
            continue
        if columns.null[program.kept[kept, KEPT_NULL], event] != 0:
            continue
        only = rows[row, known] == 0
        rows[row, known] = rows[row, known] + 1 if kind in (COUNT, AVERAGE) else 1
        if kind == COUNT:
            continue
        column = program.kept[kept, KEPT_COLUMN]
        if program.kept[kept, KEPT_FRACTION] == 1:
            at = number + program.kept[kept, KEPT_VALUE]
            value = columns.number[column, event]
            if only or (kind == LEAST and value < running[row, at]) or (kind == GREATEST and value > running[row, at]):
                running[row, at] = value
            elif kind in (SUM, AVERAGE):
                running[row, at] += value
        else:
            at = whole + program.kept[kept, KEPT_VALUE]
            exact = columns.whole[column, event]
            if only or (kind == LEAST and exact < rows[row, at]) or (kind == GREATEST and exact > rows[row, at]):
                rows[row, at] = exact
            elif kind in (SUM, AVERAGE):
                rows[row, at] += exact


@lean(types.void(PROGRAM, COLUMNS, types.int64, types.int64, types.boolean, SCRATCH))
def pass_by(program: Program, columns: Columns, place: int, event: int, first: bool, scratch: Scratch) -> None:
    """Makes an element of a walked group the previous one."""
    whole, number = program.walk_whole, program.walk_number
    absorb(program, columns, place, event, first, scratch.counted_row, scratch.running_row, 0, whole, number)
    scratch.at[program.place[place, PREVIOUS_AT]] = event


@lean(types.void(PROGRAM, COLUMNS, types.int64, INT64S, SCRATCH))
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


@numba.njit(types.boolean(PROGRAM, COLUMNS, FUNCTION, types.int64, SCRATCH, INT64_ROWS, types.int64), cache=True)
def holds_for_every(
    program: Program, columns: Columns, predicate: Any, test: int, scratch: Scratch, entries: Rows, entry: int
) -> bool:
    """Does a condition hold for every element of the groups it goes over, in every combination?"""
    begin = program.tests[test, WALKS_FROM]
    groups = program.tests[test + 1, WALKS_FROM] - begin
    edges = np.zeros(groups + 1, np.int64)
    for group in range(groups):
        size = scratch.counted[program.walks[begin + group, WALKED]]
        if size <= program.walks[begin + group, SECOND]:
            return True  # no element to hold for
        edges[group + 1] = edges[group] + size
    members = np.empty(edges[groups], np.int64)
    free = edges[1:].copy()
    missing = len(members)
    while missing > 0:  # back through the buffer: where a group is still to be walked, no two runs were merged
        for group in range(groups):
            if entries[entry, RIGHT] == program.walks[begin + group, WALKED]:
                free[group] -= 1
                members[free[group]] = entries[entry, EVENT]
                missing -= 1
        entry = entries[entry, LEFT]
    index = np.empty(groups, np.int64)
    for group in range(groups):
        restart(program, columns, begin + group, members[edges[group] :], scratch)
        index[group] = program.walks[begin + group, SECOND]
    while True:
        if not predicate(program.tests[test, CASE], scratch.at, scratch.counted, scratch.running, columns):
            return False
        group = groups - 1
        while group >= 0:
            place = program.walks[begin + group, WALKED]
            index[group] += 1
            current = edges[group] + index[group]
            if current < edges[group + 1]:
                pass_by(program, columns, place, members[current - 1], index[group] == 1, scratch)
                scratch.at[program.place[place, CURRENT_AT]] = members[current]
                break
            restart(program, columns, begin + group, members[edges[group] :], scratch)
            index[group] = program.walks[begin + group, SECOND]
            group -= 1
        if group < 0:
            return True


@lean(types.boolean(PROGRAM, COLUMNS, FUNCTION, types.int64, SCRATCH, INT64_ROWS, types.int64))
def holds(
    program: Program, columns: Columns, predicate: Any, moment: int, scratch: Scratch, entries: Rows, entry: int
) -> bool:
    """Do all conditions of a moment hold? `entry` is the run's last one, for those that go over earlier groups."""
    for test in range(program.moments[moment], program.moments[moment + 1]):
        if program.tests[test, WALKS_FROM] == program.tests[test + 1, WALKS_FROM]:
            if not predicate(program.tests[test, CASE], scratch.at, scratch.counted, scratch.running, columns):
                return False
        elif not holds_for_every(program, columns, predicate, test, scratch, entries, entry):
            return False
    return True


@lean(
    types.boolean(
        EVENTS,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        ABSENT,
        types.int64,
        types.int64,
        SCRATCH,
        INT64_ROWS,
        types.int64,
    )
)
def negated(
    events: Events,
    program: Program,
    columns: Columns,
    predicate: Any,
    absent: Absent,
    negation: int,
    moment: int,
    scratch: Scratch,
    entries: Rows,
    entry: int,
) -> bool:
    """Does an event of a negated component lie in its open interval and pass its conditions?"""
    at, facts = scratch.at, events.facts
    stack, size = absent.stacks[negation], absent.sizes[negation]
    first, last = at[program.place[0, FIRST_AT]], at[program.place[program.places - 1, LAST_AT]]
    after, before = program.negations[negation, AFTER_AT], program.negations[negation, BEFORE_AT]
    low, high = 0, size
    if after >= 0:
        low = first_above(stack, 0, size, facts, INSTANT, facts[at[after], INSTANT])
    elif program.window_kind == TIME_WINDOW:
        low = first_above(stack, 0, size, facts, TIME, facts[last, TIME] - program.window)
    elif events.ordered:
        low = first_above(stack, 0, size, facts, POSITION, facts[last, POSITION] - program.window)
    if before >= 0:
        high = first_above(stack, low, size, facts, INSTANT, facts[at[before], INSTANT] - 1)
    elif program.window_kind == TIME_WINDOW:
        high = first_above(stack, low, size, facts, TIME, facts[first, TIME] + program.window - 1)
    elif events.ordered:
        high = first_above(stack, low, size, facts, POSITION, facts[first, POSITION] + program.window - 1)
    slot = len(at) - program.negatives + negation
    for index in range(low, high):
        event = stack[index]
        if not events.ordered and after < 0 and not in_window(events, program, event, last):
            continue
        if not events.ordered and before < 0 and not in_window(events, program, first, event):
            continue
        agree = True
        for row in range(len(scratch.codes)):
            agree = agree and agrees(events.compared[row, event], scratch.codes[row])
        if not agree:
            continue
        at[slot] = event
        if holds(program, columns, predicate, moment, scratch, entries, entry):
            return True
    return False


@lean(types.boolean(EVENTS, PROGRAM, COLUMNS, FUNCTION, ABSENT, SCRATCH, INT64_ROWS, types.int64))
def stands(
    events: Events,
    program: Program,
    columns: Columns,
    predicate: Any,
    absent: Absent,
    scratch: Scratch,
    entries: Rows,
    entry: int,
) -> bool:
    """Does a complete match stand against the negated components that are judged at the end?"""
    base = 3 * program.places
    if not program.judged:
        for negation in range(program.negatives):
            if program.negations[negation, JUDGED_AT] == program.places and negated(
                events, program, columns, predicate, absent, negation, base + negation, scratch, entries, entry
            ):
                return False
        return True
    for branch in range(program.branches):
        moment = base + program.negatives + branch * (1 + program.negatives)
        killed = not holds(program, columns, predicate, moment, scratch, entries, entry)
        for negation in range(program.negatives):
            killed = killed or negated(
                events, program, columns, predicate, absent, negation, moment + 1 + negation, scratch, entries, entry
            )
        if not killed:
            return True
    return False

"""Conditions inside the run kernels: on a run's registers, on every element of a group, on what must not happen."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.candidates import WILD
from cepheid.engine.columns import COLUMNS, FLOAT64S, INT64_ROWS, INT64S, Columns
from cepheid.engine.matches import Int64s
from cepheid.engine.predicates import PREDICATE
from cepheid.engine.runs.buffer import EVENT, LEFT, RIGHT, Rows
from cepheid.engine.runs.program import COUNT, FIRST, GREATEST, LAST, LEAST, PROGRAM, SUM, Program
from cepheid.engine.sequence import EVENT_WINDOW, TIME_WINDOW, first_above

Float64s = npt.NDArray[np.float64]
FUNCTION = types.FunctionType(PREDICATE)


class Events(NamedTuple):
    """The candidates, as the run kernels see them."""

    time: Int64s
    instant: Int64s
    position: Int64s
    due: Int64s  # when a match that starts here is decided, if decisions wait for the window to pass
    chance: Int64s  # contiguity: the one instant at which a run that stands here can go on, -1 if there is none
    mask: Int64s
    starts: Int64s
    compared: Rows
    ordered: bool  # does every window hold events side by side? Not if it counts events of several partitions at once


EVENTS = types.NamedTuple((*(INT64S,) * 7, INT64_ROWS, types.boolean), Events)


class Absent(NamedTuple):
    """The events that could fill negated components, in one partition."""

    stacks: Rows  # one row for each negated component
    sizes: Int64s


ABSENT = types.NamedTuple((INT64_ROWS, INT64S), Absent)


@numba.njit(types.boolean(EVENTS, PROGRAM, types.int64, types.int64), cache=True)
def in_window(events: Events, program: Program, first: int, last: int) -> bool:
    """Do the two events fit one window?"""
    if program.window_kind == TIME_WINDOW:
        return bool(events.time[last] - events.time[first] < program.window)
    if program.window_kind == EVENT_WINDOW:
        return bool(events.position[last] - events.position[first] < program.window)
    return True


@numba.njit(types.boolean(INT64_ROWS, INT64S, types.int64), cache=True)
def agrees(compared: Rows, codes: Int64s, event: int) -> bool:
    """Has the event the values of the equivalence tests? A wild one agrees with all."""
    for row in range(len(codes)):
        own = compared[row, event]
        if own not in (WILD, codes[row]) and codes[row] != WILD:
            return False
    return True


@numba.njit(types.boolean(INT64_ROWS, INT64S, types.int64), cache=True)
def same_partition(compared: Rows, codes: Int64s, event: int) -> bool:
    """Has the event exactly these values of the equivalence tests, none absent? Then they share one count."""
    for row in range(len(codes)):
        if codes[row] == WILD or compared[row, event] != codes[row]:
            return False
    return True


@numba.njit(
    types.void(PROGRAM, COLUMNS, types.int64, types.int64, types.boolean, INT64S, FLOAT64S, types.int64, types.int64),
    cache=True,
)
def absorb(
    program: Program,
    columns: Columns,
    place: int,
    event: int,
    first: bool,
    counted: Int64s,
    running: Float64s,
    whole: int,
    number: int,
) -> None:
    """Adds an event to the aggregates of its group; `whole` and `number` say where in the rows these begin."""
    counted[whole + program.length[place]] += 1
    for kept in range(program.keep_start[place], program.keep_start[place + 1]):
        kind = program.keep_kind[kept]
        known = whole + program.keep_known[kept]
        null = columns.null[program.keep_null[kept], event] != 0
        if kind == LAST or (kind == FIRST and first):
            counted[known] = 0
        elif kind == FIRST:
            continue
        if null:
            continue
        counted[known] += 1
        if kind == COUNT:
            continue
        only = counted[known] == 1
        row = program.keep_row[kept]
        if program.keep_fraction[kept] == 1:
            at = number + program.keep_value[kept]
            value = columns.number[row, event]
            if only or (kind == LEAST and value < running[at]):
                running[at] = value
            elif kind == SUM:
                running[at] += value
            elif kind == GREATEST and value > running[at]:
                running[at] = value
        else:
            at = whole + program.keep_value[kept]
            exact = columns.whole[row, event]
            if only or (kind == LEAST and exact < counted[at]):
                counted[at] = exact
            elif kind == SUM:
                counted[at] += exact
            elif kind == GREATEST and exact > counted[at]:
                counted[at] = exact


@numba.njit(types.void(PROGRAM, COLUMNS, types.int64, INT64S, INT64S, INT64S, FLOAT64S), cache=True)
def restart(
    program: Program, columns: Columns, walk: int, chosen: Int64s, at: Int64s, counted: Int64s, running: Float64s
) -> None:
    """Sets the registers to the element at which the walk over a group begins."""
    place = program.walk_place[walk]
    whole, number = program.walk_whole, program.walk_number
    counted[whole + program.length[place]] = 0
    for kept in range(program.keep_start[place], program.keep_start[place + 1]):
        counted[whole + program.keep_known[kept]] = 0
    at[program.current[place]] = chosen[0]
    if program.walk_second[walk] == 1:
        absorb(program, columns, place, chosen[0], True, counted, running, whole, number)
        at[program.previous[place]] = chosen[0]
        at[program.current[place]] = chosen[1]


@numba.njit(
    types.boolean(PROGRAM, COLUMNS, FUNCTION, types.int64, INT64S, INT64S, FLOAT64S, INT64_ROWS, types.int64),
    cache=True,
)
def holds_for_every(
    program: Program,
    columns: Columns,
    predicate: Any,
    test: int,
    at: Int64s,
    counted: Int64s,
    running: Float64s,
    entries: Rows,
    entry: int,
) -> bool:
    """Does a condition hold for every element of the groups it goes over, in every combination?"""
    begin = program.walk_start[test]
    groups = program.walk_start[test + 1] - begin
    edges = np.zeros(groups + 1, np.int64)
    for group in range(groups):
        size = counted[program.length[program.walk_place[begin + group]]]
        if size <= program.walk_second[begin + group]:
            return True  # no element to hold for
        edges[group + 1] = edges[group] + size
    members = np.empty(edges[groups], np.int64)
    free = edges[1:].copy()
    missing = len(members)
    while missing > 0:  # back through the buffer: where a group is still to be walked, no two runs were merged
        for group in range(groups):
            if entries[entry, RIGHT] == program.walk_place[begin + group]:
                free[group] -= 1
                members[free[group]] = entries[entry, EVENT]
                missing -= 1
        entry = entries[entry, LEFT]
    index = np.empty(groups, np.int64)
    for group in range(groups):
        restart(program, columns, begin + group, members[edges[group] :], at, counted, running)
        index[group] = program.walk_second[begin + group]
    while True:
        if not predicate(program.test_case[test], at, counted, running, columns):
            return False
        group = groups - 1
        while group >= 0:
            index[group] += 1
            place = program.walk_place[begin + group]
            chosen = members[edges[group] : edges[group + 1]]
            if index[group] < len(chosen):
                before = chosen[index[group] - 1]
                whole, number = program.walk_whole, program.walk_number
                absorb(program, columns, place, before, index[group] == 1, counted, running, whole, number)
                at[program.previous[place]] = before
                at[program.current[place]] = chosen[index[group]]
                break
            restart(program, columns, begin + group, chosen, at, counted, running)
            index[group] = program.walk_second[begin + group]
            group -= 1
        if group < 0:
            return True


@numba.njit(
    types.boolean(PROGRAM, COLUMNS, FUNCTION, types.int64, INT64S, INT64S, FLOAT64S, INT64_ROWS, types.int64),
    cache=True,
)
def holds(
    program: Program,
    columns: Columns,
    predicate: Any,
    moment: int,
    at: Int64s,
    counted: Int64s,
    running: Float64s,
    entries: Rows,
    entry: int,
) -> bool:
    """Do all conditions of a moment hold? `entry` is the run's last one, for those that go over earlier groups."""
    for test in range(program.test_start[moment], program.test_start[moment + 1]):
        if program.walk_start[test] == program.walk_start[test + 1]:
            if not predicate(program.test_case[test], at, counted, running, columns):
                return False
        elif not holds_for_every(program, columns, predicate, test, at, counted, running, entries, entry):
            return False
    return True


@numba.njit(
    types.boolean(
        EVENTS,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        ABSENT,
        types.int64,
        types.int64,
        INT64S,
        INT64S,
        FLOAT64S,
        INT64S,
        INT64_ROWS,
        types.int64,
    ),
    cache=True,
)
def negated(
    events: Events,
    program: Program,
    columns: Columns,
    predicate: Any,
    absent: Absent,
    negation: int,
    moment: int,
    at: Int64s,
    counted: Int64s,
    running: Float64s,
    codes: Int64s,
    entries: Rows,
    entry: int,
) -> bool:
    """Does an event of a negated component lie in its open interval and pass its conditions?"""
    stack, size = absent.stacks[negation], absent.sizes[negation]
    first, last = at[program.first[0]], at[program.last[program.places - 1]]
    after, before = program.neg_after[negation], program.neg_before[negation]
    low, high = 0, size
    if after >= 0:
        low = first_above(stack, 0, size, events.instant, events.instant[at[after]])
    elif program.window_kind == TIME_WINDOW:
        low = first_above(stack, 0, size, events.time, events.time[last] - program.window)
    elif events.ordered:
        low = first_above(stack, 0, size, events.position, events.position[last] - program.window)
    if before >= 0:
        high = first_above(stack, low, size, events.instant, events.instant[at[before]] - 1)
    elif program.window_kind == TIME_WINDOW:
        high = first_above(stack, low, size, events.time, events.time[first] + program.window - 1)
    elif events.ordered:
        high = first_above(stack, low, size, events.position, events.position[first] + program.window - 1)
    slot = len(at) - program.negatives + negation
    for index in range(low, high):
        event = stack[index]
        if not events.ordered and after < 0 and not in_window(events, program, event, last):
            continue
        if not events.ordered and before < 0 and not in_window(events, program, first, event):
            continue
        if not agrees(events.compared, codes, event):
            continue
        at[slot] = event
        if holds(program, columns, predicate, moment, at, counted, running, entries, entry):
            return True
    return False


@numba.njit(
    types.boolean(
        EVENTS, PROGRAM, COLUMNS, FUNCTION, ABSENT, INT64S, INT64S, FLOAT64S, INT64S, INT64_ROWS, types.int64
    ),
    cache=True,
)
def stands(
    events: Events,
    program: Program,
    columns: Columns,
    predicate: Any,
    absent: Absent,
    at: Int64s,
    counted: Int64s,
    running: Float64s,
    codes: Int64s,
    entries: Rows,
    entry: int,
) -> bool:
    """Does a complete match stand against the negated components that are judged at the end?"""
    base = 3 * program.places
    if not program.judged:
        for negation in range(program.negatives):
            if program.neg_place[negation] == program.places and negated(
                events,
                program,
                columns,
                predicate,
                absent,
                negation,
                base + negation,
                at,
                counted,
                running,
                codes,
                entries,
                entry,
            ):
                return False
        return True
    for branch in range(program.branches):
        moment = base + program.negatives + branch * (1 + program.negatives)
        killed = not holds(program, columns, predicate, moment, at, counted, running, entries, entry)
        for negation in range(program.negatives):
            killed = killed or negated(
                events,
                program,
                columns,
                predicate,
                absent,
                negation,
                moment + 1 + negation,
                at,
                counted,
                running,
                codes,
                entries,
                entry,
            )
        if not killed:
            return True
    return False

"""Aggregates that are kept while events are added to a group."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64Rows, Int64Rows
from cepheid.engine.data.columns import Columns
from cepheid.engine.kernels.compile import borrowing
from cepheid.engine.kernels.whole import add_exactly
from cepheid.engine.program.tables import (
    COUNT,
    FIRST,
    GREATEST,
    KEPT_COLUMN,
    KEPT_COUNTS,
    KEPT_FRACTION,
    KEPT_FROM,
    KEPT_KIND,
    KEPT_KNOWN,
    KEPT_NULL,
    KEPT_VALUE,
    LAST,
    LEAST,
    SPREAD,
    SUM,
    Program,
)


class Registers(NamedTuple):
    """Rows of registers, one for each partial match, and where in them the aggregates begin."""

    counted: Int64Rows
    running: Float64Rows
    whole: int
    number: int


@borrowing
def spread_out(running: Float64Rows, row: int, at: int, value: float, known: int) -> None:
    """Adds a value to the sum of squared distances from the mean, and to the mean behind it (Welford)."""
    if known == 1:
        running[row, at], running[row, at + 1] = 0.0, value
        return
    distance = value - running[row, at + 1]
    running[row, at + 1] += distance / known
    running[row, at] += distance * (value - running[row, at + 1])


@borrowing
def absorb(
    program: Program, columns: Columns, place: int, event: int, first: bool, registers: Registers, row: int
) -> None:
    """Adds an event to the length and the aggregates of its group."""
    rows, running, whole, number = registers
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
        rows[row, known] = rows[row, known] + 1 if program.kept[kept, KEPT_COUNTS] == 1 else 1
        if kind == COUNT:
            continue
        column = program.kept[kept, KEPT_COLUMN]
        if kind == SPREAD:
            fraction = program.kept[kept, KEPT_FRACTION] == 1
            value = columns.number[column, event] if fraction else np.float64(columns.whole[column, event])
            spread_out(running, row, number + program.kept[kept, KEPT_VALUE], value, rows[row, known])
            continue
        if program.kept[kept, KEPT_FRACTION] == 1:
            at = number + program.kept[kept, KEPT_VALUE]
            value = columns.number[column, event]
            if only or (kind == LEAST and value < running[row, at]) or (kind == GREATEST and value > running[row, at]):
                running[row, at] = value
            elif kind == SUM:
                running[row, at] += value
        else:
            at = whole + program.kept[kept, KEPT_VALUE]
            exact = columns.whole[column, event]
            if only or (kind == LEAST and exact < rows[row, at]) or (kind == GREATEST and exact > rows[row, at]):
                rows[row, at] = exact
                if kind == SUM:
                    rows[row, at + 1] = 0
            elif kind == SUM:
                add_exactly(rows, row, at, exact)

"""Conditions that look at the path: a small stack machine inside the search.

What a condition may ask of the path is kept for every position of it: how often each set of labels has occurred, and
the running aggregates. Going back and on again overwrites them, so nothing has to be undone, and every navigation and
aggregate takes constant time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.kernels.compile import borrowing

# Steps of the stack machine. A step has an operation and up to five numbers.
CONST_I, CONST_F, NOTHING, NAV_I, NAV_F, NAV_LABEL, NUMBER = range(7)
SUM_I, SUM_F, COUNT, AVERAGE_I, AVERAGE_F = range(10, 15)
ADD_I, SUB_I, MUL_I, DIV_I, MOD_I, NEG_I, ABS_I = range(20, 27)
ADD_F, SUB_F, MUL_F, DIV_F, MOD_F, NEG_F, ABS_F = range(30, 37)
EQ_I, NE_I, LT_I, LE_I, GT_I, GE_I = range(40, 46)
EQ_F, NE_F, LT_F, LE_F, GT_F, GE_F = range(50, 56)
AND, OR, NOT, IS_NULL, CHOOSE, COALESCE, TO_FLOAT, SAME_I, SAME_F = range(60, 69)
# Running aggregates that are kept.
KEEP_SUM, KEEP_MIN, KEEP_MAX, KEEP_ROWS = range(4)

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.uint8]


class Judge(NamedTuple):
    """The conditions' code, what it reads, and room for what is kept of the path."""

    active: int
    code: Ints  # one row per step: operation and five numbers
    entry: Ints  # per label: its first step, and the one after its last
    ints: Ints  # values of whole numbers per slot and row, codes of strings and microseconds among them
    floats: Floats
    int_nulls: Flags
    float_nulls: Flags
    constants: Ints
    real_constants: Floats
    sets: Flags  # per set of labels and label: is it in the set?
    label_codes: Ints
    aggregates: Ints  # per aggregate: what is kept, set, slot, is it a float?
    counts: Ints  # per position and set: rows with such a label so far
    places: Ints  # per set: their positions
    labels: Ints  # per position: the label
    kept_i: Ints  # per position and aggregate
    kept_f: Floats
    kept_n: Ints
    stack_i: Ints
    stack_f: Floats
    stack_null: Flags


def with_own_room(judge: Judge, longest: int) -> Judge:
    """The same conditions with room of their own, for another thread; paths are at most so long."""
    return judge._replace(
        counts=np.zeros((longest, judge.counts.shape[1]), np.int64),
        places=np.zeros((judge.places.shape[0], longest), np.int64),
        labels=np.zeros(longest, np.int64),
        kept_i=np.zeros((longest, judge.kept_i.shape[1]), np.int64),
        kept_f=np.zeros((longest, judge.kept_f.shape[1]), np.float64),
        kept_n=np.zeros((longest, judge.kept_n.shape[1]), np.int64),
        stack_i=np.zeros_like(judge.stack_i),
        stack_f=np.zeros_like(judge.stack_f),
        stack_null=np.zeros_like(judge.stack_null),
    )


_I, _F, _B = types.int64[:, ::1], types.float64[:, ::1], types.uint8[:, ::1]
_I1, _F1, _B1 = types.int64[::1], types.float64[::1], types.uint8[::1]
JUDGE = types.NamedTuple(
    (types.int64, _I, _I, _I, _F, _B, _B, _I1, _F1, _B, _I1, _I, _I, _I, _I1, _I, _F, _I, _I1, _F1, _B1), Judge
)
INT = types.int64


@borrowing(types.void(JUDGE, INT, INT, INT))
def extend(judge: Judge, label: int, start: int, row: int) -> None:
    """The path grows by a row: what is kept of it, at its new position."""
    position = row - start
    judge.labels[position] = label
    for group in range(judge.sets.shape[0]):
        count = judge.counts[position - 1, group] if position > 0 else 0
        if judge.sets[group, label]:
            judge.places[group, count] = position
            count += 1
        judge.counts[position, group] = count
    for index in range(judge.aggregates.shape[0]):
        row_of = judge.aggregates[index]
        keep, group, slot, real = row_of[0], row_of[1], row_of[2], row_of[3]
        known, whole, fraction = 0, 0, 0.0
        if position > 0:
            known = judge.kept_n[position - 1, index]
            whole = judge.kept_i[position - 1, index]
            fraction = judge.kept_f[position - 1, index]
        if judge.sets[group, label]:
            if keep == KEEP_ROWS:
                known += 1
            elif real:
                if not judge.float_nulls[slot, row]:
                    value = judge.floats[slot, row]
                    if known == 0 or (keep == KEEP_MIN and value < fraction) or (keep == KEEP_MAX and value > fraction):
                        fraction = value
                    elif keep == KEEP_SUM:
                        fraction += value
                    known += 1
            elif not judge.int_nulls[slot, row]:
                item = judge.ints[slot, row]
                if known == 0 or (keep == KEEP_MIN and item < whole) or (keep == KEEP_MAX and item > whole):
                    whole = item
                elif keep == KEEP_SUM:
                    whole += item
                known += 1
        judge.kept_n[position, index] = known
        judge.kept_i[position, index] = whole
        judge.kept_f[position, index] = fraction


@borrowing(INT(JUDGE, INT, INT, INT, INT))
def place_of(judge: Judge, position: int, group: int, first: int, offset: int) -> int:
    """The position that FIRST or LAST means, -1 if there is none."""
    count = judge.counts[position, group]
    if offset >= count:
        return -1
    place: int = judge.places[group, offset] if first else judge.places[group, count - 1 - offset]
    return place


@borrowing(types.void(JUDGE, INT, INT))
def combine_whole(judge: Judge, operation: int, top: int) -> None:
    """An operator on two whole numbers, at top - 1 and top: the result goes to top - 1. NULL has been seen to."""
    left, right = judge.stack_i[top - 1], judge.stack_i[top]
    result = 0
    if operation == ADD_I:
        result = left + right
    elif operation == SUB_I:
        result = left - right
    elif operation == MUL_I:
        result = left * right
    elif operation in (DIV_I, MOD_I):
        if right == 0:
            judge.stack_null[top - 1] = 1
        else:
            quotient = abs(left) // abs(right)
            if (left < 0) != (right < 0):
                quotient = -quotient
            result = quotient if operation == DIV_I else left - right * quotient
    elif operation == EQ_I:
        result = 1 if left == right else 0
    elif operation == NE_I:
        result = 1 if left != right else 0
    elif operation == LT_I:
        result = 1 if left < right else 0
    elif operation == LE_I:
        result = 1 if left <= right else 0
    elif operation == GT_I:
        result = 1 if left > right else 0
    elif operation == GE_I:
        result = 1 if left >= right else 0
    judge.stack_i[top - 1] = result


@borrowing(types.void(JUDGE, INT, INT))
def combine_real(judge: Judge, operation: int, top: int) -> None:
    """The same for numbers with a fraction; comparisons give a whole number."""
    left, right = judge.stack_f[top - 1], judge.stack_f[top]
    if operation == ADD_F:
        judge.stack_f[top - 1] = left + right
    elif operation == SUB_F:
        judge.stack_f[top - 1] = left - right
    elif operation == MUL_F:
        judge.stack_f[top - 1] = left * right
    elif operation in (DIV_F, MOD_F):
        if right == 0.0:
            judge.stack_null[top - 1] = 1
        elif operation == DIV_F:
            judge.stack_f[top - 1] = left / right
        else:
            judge.stack_f[top - 1] = np.fmod(left, right)
    elif operation == EQ_F:
        judge.stack_i[top - 1] = 1 if left == right else 0
    elif operation == NE_F:
        judge.stack_i[top - 1] = 1 if left != right else 0
    elif operation == LT_F:
        judge.stack_i[top - 1] = 1 if left < right else 0
    elif operation == LE_F:
        judge.stack_i[top - 1] = 1 if left <= right else 0
    elif operation == GT_F:
        judge.stack_i[top - 1] = 1 if left > right else 0
    elif operation == GE_F:
        judge.stack_i[top - 1] = 1 if left >= right else 0


@borrowing(types.void(JUDGE, INT, INT))
def combine_logic(judge: Judge, operation: int, top: int) -> None:
    """AND and OR of SQL on top - 1 and top."""
    left_null, right_null = judge.stack_null[top - 1], judge.stack_null[top]
    left, right = judge.stack_i[top - 1], judge.stack_i[top]
    decisive = 0 if operation == AND else 1
    if (not left_null and left == decisive) or (not right_null and right == decisive):
        judge.stack_i[top - 1] = decisive
        judge.stack_null[top - 1] = 0
    elif left_null or right_null:
        judge.stack_null[top - 1] = 1
    else:
        judge.stack_i[top - 1] = 1 - decisive


@borrowing(types.void(JUDGE, INT, INT))
def move(judge: Judge, source: int, target: int) -> None:
    """Copies a value of the stack."""
    judge.stack_i[target] = judge.stack_i[source]
    judge.stack_f[target] = judge.stack_f[source]
    judge.stack_null[target] = judge.stack_null[source]


@borrowing(types.void(JUDGE, INT, INT, INT))
def load_kept(judge: Judge, step: int, top: int, position: int) -> None:
    """An aggregate of the path so far onto the stack."""
    operation, index = judge.code[step, 0], judge.code[step, 1]
    known = judge.kept_n[position, index]
    judge.stack_null[top] = 1 if known == 0 and operation != COUNT else 0
    if operation == COUNT:
        judge.stack_i[top] = known
    elif operation == SUM_I:
        judge.stack_i[top] = judge.kept_i[position, index]
    elif operation == SUM_F:
        judge.stack_f[top] = judge.kept_f[position, index]
    elif known > 0:
        total = judge.kept_f[position, index] if operation == AVERAGE_F else float(judge.kept_i[position, index])
        judge.stack_f[top] = total / known


@borrowing(types.void(JUDGE, INT, INT, INT, INT, INT, INT))
def load_row(judge: Judge, step: int, top: int, start: int, row: int, low: int, high: int) -> None:
    """A value of another row, or its label, onto the stack."""
    operation, slot = judge.code[step, 0], judge.code[step, 1]
    position = row - start
    place = place_of(judge, position, judge.code[step, 2], judge.code[step, 3], judge.code[step, 4])
    target = start + place + judge.code[step, 5]
    judge.stack_null[top] = 1
    if place < 0 or target < low or target >= high:
        return
    if operation == NAV_LABEL:
        if start <= target <= row:
            judge.stack_i[top] = judge.label_codes[judge.labels[target - start]]
            judge.stack_null[top] = 0
    elif operation == NAV_I:
        judge.stack_i[top] = judge.ints[slot, target]
        judge.stack_null[top] = judge.int_nulls[slot, target]
    else:
        judge.stack_f[top] = judge.floats[slot, target]
        judge.stack_null[top] = judge.float_nulls[slot, target]


@borrowing(INT(JUDGE, INT, INT))
def combine(judge: Judge, operation: int, top: int) -> int:
    """An operator on what is on the stack; the new top."""
    if operation in (AND, OR):
        combine_logic(judge, operation, top)
        return top - 1
    if operation == NOT:
        judge.stack_i[top] = 1 - judge.stack_i[top]
        return top
    if operation == IS_NULL:
        judge.stack_i[top] = judge.stack_null[top]
        judge.stack_null[top] = 0
        return top
    if operation == CHOOSE:  # test, value, other
        chosen = judge.stack_i[top - 2] == 1 and not judge.stack_null[top - 2]
        move(judge, top - 1 if chosen else top, top - 2)
        return top - 2
    if operation == COALESCE:
        if judge.stack_null[top - 1]:
            move(judge, top, top - 1)
        return top - 1
    if operation in (SAME_I, SAME_F):
        nulls = judge.stack_null[top - 1] + judge.stack_null[top]
        equal = judge.stack_i[top - 1] == judge.stack_i[top]
        if operation == SAME_F:
            equal = judge.stack_f[top - 1] == judge.stack_f[top]
        judge.stack_i[top - 1] = 1 if nulls == 2 or (nulls == 0 and equal) else 0
        judge.stack_null[top - 1] = 0
        return top - 1
    if judge.stack_null[top - 1] or judge.stack_null[top]:
        judge.stack_null[top - 1] = 1
    elif operation in (ADD_I, SUB_I, MUL_I, DIV_I, MOD_I) or EQ_I <= operation <= GE_I:
        combine_whole(judge, operation, top)
    else:
        combine_real(judge, operation, top)
    return top - 1


@borrowing(types.boolean(JUDGE, INT, INT, INT, INT, INT, INT))
def holds_here(judge: Judge, label: int, start: int, row: int, low: int, high: int, number: int) -> bool:
    """May the row at hand have the label, after the path that led to it?"""
    extend(judge, label, start, row)
    top = -1
    for step in range(judge.entry[label, 0], judge.entry[label, 1]):
        operation = judge.code[step, 0]
        if operation <= NUMBER:
            top += 1
            if operation == CONST_I:
                judge.stack_i[top] = judge.constants[judge.code[step, 1]]
                judge.stack_null[top] = 0
            elif operation == CONST_F:
                judge.stack_f[top] = judge.real_constants[judge.code[step, 1]]
                judge.stack_null[top] = 0
            elif operation == NOTHING:
                judge.stack_null[top] = 1
            elif operation == NUMBER:
                judge.stack_i[top] = number
                judge.stack_null[top] = 0
            else:
                load_row(judge, step, top, start, row, low, high)
        elif operation <= AVERAGE_F:
            top += 1
            load_kept(judge, step, top, row - start)
        elif operation == TO_FLOAT:  # so far below the top
            place = top - judge.code[step, 1]
            judge.stack_f[place] = float(judge.stack_i[place])
        elif operation == NEG_I:
            judge.stack_i[top] = -judge.stack_i[top]
        elif operation == ABS_I:
            judge.stack_i[top] = abs(judge.stack_i[top])
        elif operation == NEG_F:
            judge.stack_f[top] = -judge.stack_f[top]
        elif operation == ABS_F:
            judge.stack_f[top] = abs(judge.stack_f[top])
        else:
            top = combine(judge, operation, top)
    return bool(judge.stack_null[0] == 0 and judge.stack_i[0] == 1)

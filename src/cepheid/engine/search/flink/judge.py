"""Conditions inside the kernel: atoms that look back along what a run took."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import INT64_ROWS
from cepheid.engine.kernels.compile import borrowing
from cepheid.engine.search.flink.machine import (
    ADD,
    AND,
    AT_HAND,
    AT_LEAST,
    AT_MOST,
    AVERAGE,
    COALESCE,
    CONDITIONS,
    CONSTANT,
    COUNT,
    DIVIDE,
    EACH,
    EQUAL,
    FIRST,
    FIRST_VALUE,
    GREATEST,
    INT,
    IS_NULL,
    LAST,
    LAST_VALUE,
    LEAST,
    LESS,
    MINUS,
    MORE,
    MULTIPLY,
    NOT,
    OR,
    REMAINDER,
    SUBTRACT,
    SUM,
    UNEQUAL,
    Conditions,
    Floats,
)

Nodes = npt.NDArray[np.int64]  # per node: the event's row, the step, the node before it (-1: none), the length
FLOAT = types.float64
FLOATS = types.float64[::1]


@borrowing(FLOAT(FLOATS, INT, INT, FLOAT))
def in_order(stack: Floats, base: int, count: int, backwards: float) -> float:
    """The sum of values that were laid down from the end, added up from the first one, as a loop over events does."""
    if base + count > len(stack):
        return backwards
    total = 0.0
    for at in range(count):
        total += stack[len(stack) - count + at]
    return total


@borrowing(FLOAT(CONDITIONS, INT64_ROWS, FLOATS, INT, INT, INT))
def looked_up(conditions: Conditions, nodes: Nodes, stack: Floats, base: int, at: int, node: int) -> float:
    """A value of the events that a step took: of its first, its last, or an aggregate over all."""
    operation, step, column = conditions.code[at, 0], conditions.code[at, 1], conditions.code[at, 2]
    count, total = 0, 0.0
    known = 0
    least, greatest, first = math.nan, math.nan, math.nan
    while node >= 0:
        if nodes[node, 1] == step:
            value = conditions.values[column, nodes[node, 0]] if column >= 0 else 0.0
            if operation in (LAST, LAST_VALUE):
                return value
            first = value
            count += 1
            if not math.isnan(value):
                known += 1
                if base + known <= len(stack):
                    stack[len(stack) - known] = value
                total += value
                least = value if math.isnan(least) or value < least else least
                greatest = value if math.isnan(greatest) or value > greatest else greatest
        node = nodes[node, 2]
    if operation in (SUM, AVERAGE):
        total = in_order(stack, base, known, total)
    if operation == COUNT:
        return float(count if column < 0 else known)
    if operation == SUM:
        return total if known or not count else math.nan
    if operation == AVERAGE:
        return total / known if known else math.nan
    if operation == LEAST:
        return least
    if operation == GREATEST:
        return greatest
    return first if operation in (FIRST, FIRST_VALUE) else math.nan


@borrowing(FLOAT(INT, FLOAT, FLOAT))
def combined(operation: int, left: float, right: float) -> float:
    """Two values combined; NaN is NULL, and unknown."""
    if operation == AND:
        if left == 0.0 or right == 0.0:
            return 0.0
        return math.nan if math.isnan(left) or math.isnan(right) else 1.0
    if operation == OR:
        if left == 1.0 or right == 1.0:
            return 1.0
        return math.nan if math.isnan(left) or math.isnan(right) else 0.0
    if operation == COALESCE:
        return right if math.isnan(left) else left
    if math.isnan(left) or math.isnan(right):
        return math.nan
    if operation == ADD:
        return left + right
    if operation == SUBTRACT:
        return left - right
    if operation == MULTIPLY:
        return left * right
    if operation == DIVIDE:
        return left / right if right != 0.0 else math.nan
    if operation == REMAINDER:
        return float(np.fmod(left, right)) if right != 0.0 and not math.isinf(left) else math.nan
    holds = False
    if operation == EQUAL:
        holds = left == right
    elif operation == UNEQUAL:
        holds = left != right
    elif operation == LESS:
        holds = left < right
    elif operation == AT_MOST:
        holds = left <= right
    elif operation == MORE:
        holds = left > right
    elif operation == AT_LEAST:
        holds = left >= right
    return 1.0 if holds else 0.0


@borrowing(types.boolean(CONDITIONS, INT64_ROWS, FLOATS, INT, INT, INT, INT))
def is_true(conditions: Conditions, nodes: Nodes, stack: Floats, atom: int, row: int, node: int, each: int) -> bool:
    """Does an atom hold? `each` is the event of the step that it quantifies over, or -1."""
    size = 0
    for at in range(conditions.first_code[atom], conditions.first_code[atom + 1]):
        operation, column = conditions.code[at, 0], conditions.code[at, 2]
        if operation == CONSTANT:
            stack[size] = conditions.constants[column]
            size += 1
        elif operation == AT_HAND:
            stack[size] = conditions.values[column, row]
            size += 1
        elif operation == EACH:
            stack[size] = conditions.values[column, each] if each >= 0 else math.nan
            size += 1
        elif operation < ADD:
            stack[size] = looked_up(conditions, nodes, stack, size, at, node)
            size += 1
        elif operation == MINUS:
            stack[size - 1] = -stack[size - 1]
        elif operation == NOT:
            stack[size - 1] = 1.0 - stack[size - 1]
        elif operation == IS_NULL:
            stack[size - 1] = 1.0 if math.isnan(stack[size - 1]) else 0.0
        else:
            size -= 1
            stack[size - 1] = combined(operation, stack[size - 1], stack[size])
    return bool(stack[0] == 1.0)


@borrowing(types.boolean(CONDITIONS, INT64_ROWS, FLOATS, INT, INT, INT))
def atom_holds(conditions: Conditions, nodes: Nodes, stack: Floats, atom: int, row: int, node: int) -> bool:
    """Does an atom hold for the event at hand, and each event of the step it quantifies over?"""
    own, each = conditions.own[atom], conditions.each[atom]
    if own >= 0:
        at = node
        while at >= 0 and nodes[at, 1] != own:
            at = nodes[at, 2]
        if at < 0:
            return True
    if each < 0:
        return is_true(conditions, nodes, stack, atom, row, node, -1)
    at, seen = node, False
    while at >= 0:
        if nodes[at, 1] == each:
            seen = True
            if not is_true(conditions, nodes, stack, atom, row, node, nodes[at, 0]):
                return False
        at = nodes[at, 2]
    return seen or is_true(conditions, nodes, stack, atom, row, node, -1)

"""Conditions on one event or row alone, for a single dict: its values are put into columns of one row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.columns import Columns, storage
from cepheid.engine.kernels.compile import kernel
from cepheid.engine.kernels.memory import address_of, float64_rows, function_at, int64_row, int64_rows, uint8_rows
from cepheid.engine.values.compiled import Predicate
from cepheid.language.schema import DataType

# The numbers in `head`: the condition, and the columns; and the number of the row, which is 0.
PREDICATE_AT, WHOLE_AT, NUMBER_AT, NULL_AT, WHOLES, NUMBERS, NULLS, ROW, HEAD_SIZE = range(9)
_PLAIN = {DataType.INT: pa.int64(), DataType.FLOAT: pa.float64(), DataType.BOOL: pa.bool_()}


@kernel
def columns_at(head: Int64s) -> Columns:
    """The columns of one row. What is empty is no new array either: events are many."""
    return Columns(
        int64_rows(head[WHOLE_AT], head[WHOLES], 1),
        float64_rows(head[NUMBER_AT], head[NUMBERS], 1),
        uint8_rows(head[NULL_AT], head[NULLS], 1),
        int64_row(head[WHOLE_AT], 0),
        float64_rows(head[NUMBER_AT], 1, 0)[0],
        int64_rows(head[WHOLE_AT], 0, 0),
    )


@kernel
def holding_cases(head: Int64s, asked: int) -> int:
    """The cases that hold among those that are asked for, as bits."""
    columns, predicate = columns_at(head), function_at(head[PREDICATE_AT])
    at, nothing = head[ROW : ROW + 1], columns.flat
    found, case = 0, 0
    while asked >> case != 0:
        if asked >> case & 1 and predicate(case, at, at, nothing, columns):
            found |= 1 << case
        case += 1
    return found


class OneEvent:
    """Some conditions, and room for the values of one event."""

    def __init__(self, predicate: Predicate, asked: int) -> None:
        self.predicate, self.asked = predicate, asked
        self.head = np.zeros(HEAD_SIZE, np.int64)
        self._kept = room_for_one(self.head, predicate)

    def is_plain(self, schema: pa.Schema) -> bool:
        """Can its columns be filled from dicts?"""
        layout = self.predicate.layout
        plain = not layout.read and not layout.literals and self.predicate.form is None
        return plain and plain_columns(layout.attributes, schema)


def room_for_one(head: Int64s, predicate: Predicate) -> tuple[Any, Any, Any]:
    """Room for the values of one event, which the caller keeps in memory; `head` says where it is."""
    stored = [storage(kind) for _, kind, _ in predicate.layout.attributes]
    wholes, numbers = stored.count("whole"), stored.count("number")
    whole, number = np.zeros((max(1, wholes), 1), np.int64), np.zeros((max(1, numbers), 1), np.float64)
    null = np.zeros((max(1, len(stored)), 1), np.uint8)
    head[PREDICATE_AT] = address_of(predicate.call)
    head[WHOLE_AT], head[WHOLES] = whole.ctypes.data, wholes
    head[NUMBER_AT], head[NUMBERS] = number.ctypes.data, numbers
    head[NULL_AT], head[NULLS] = null.ctypes.data, len(stored)
    return whole, number, null


def plain_columns(attributes: Any, schema: pa.Schema) -> bool:
    """Are the attributes columns of numbers or truth values, as they are?"""
    return all(
        expression is None and kind in _PLAIN and schema.field(name).type == _PLAIN[kind]
        for name, kind, expression in attributes
    )

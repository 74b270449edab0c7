"""Some rows of some tables as new columns, read from Arrow's own memory: for the events of few matches.

Arrow takes tens of microseconds to join rows of several tables; two calls of a kernel take one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.incremental.table_door import (
    DATA_AT,
    FIRST_ROW,
    FRACTIONS,
    HOLDS_WHAT,
    LETTERS_AT,
    OF_TABLE_COLUMN,
    TEXTS,
    TRUTHS,
    VALID_AT,
    WHOLES,
    is_set,
)
from cepheid.engine.kernels.compile import kernel
from cepheid.engine.kernels.memory import int32_row, int64_row, int64_rows, uint8_rows

# The numbers in `head`: rows, with the address of what is known of their table, and their place there; columns; where
# values go, eight bytes for each, offsets of texts, bits of what is not NULL, and how many values are NULL.
ROWS, ROWS_AT, COLUMNS, OUT_AT, OFFSETS_AT, VALID_OUT_AT, NULLS_AT, LETTERS_OUT_AT = range(8)
HEAD_SIZE = 8


@kernel
def gathered_values(head: Int64s) -> int:
    """Fills the columns, but for the letters of texts, of which it tells where they end."""
    number, columns = head[ROWS], head[COLUMNS]
    rows, bits = int64_rows(head[ROWS_AT], number, 2), (number + 7) // 8
    out, offsets = int64_rows(head[OUT_AT], columns, number), int32_row(head[OFFSETS_AT], columns * (number + 1))
    valid, nulls = uint8_rows(head[VALID_OUT_AT], columns, bits), int64_row(head[NULLS_AT], columns)
    for row in range(number):
        table = int64_rows(rows[row, 0], columns, OF_TABLE_COLUMN)
        for column in range(columns):
            own, place = table[column], table[column, FIRST_ROW] + rows[row, 1]
            there = own[VALID_AT] == 0 or is_set(own[VALID_AT], place)
            if there:
                valid[column, row >> 3] |= np.uint8(1 << (row & 7))
            else:
                nulls[column] += 1
            if own[HOLDS_WHAT] == TEXTS:
                edges, at = int32_row(own[DATA_AT] + 4 * place, 2), column * (number + 1) + row
                offsets[at + 1] = offsets[at] + (edges[1] - edges[0] if there else 0)
            elif own[HOLDS_WHAT] == TRUTHS:
                if is_set(own[DATA_AT], place):
                    bytes_of = uint8_rows(head[OUT_AT] + 8 * column * number, 1, bits)
                    bytes_of[0, row >> 3] |= np.uint8(1 << (row & 7))
            else:
                out[column, row] = int64_row(own[DATA_AT] + 8 * place, 1)[0]
    return 0


@kernel
def gathered_letters(head: Int64s, column: int) -> int:
    """Copies the letters of a column of texts."""
    number, columns = head[ROWS], head[COLUMNS]
    rows = int64_rows(head[ROWS_AT], number, 2)
    offsets = int32_row(head[OFFSETS_AT] + 4 * column * (number + 1), number + 1)
    letters = uint8_rows(head[LETTERS_OUT_AT], 1, offsets[number])
    for row in range(number):
        own = int64_rows(rows[row, 0], columns, OF_TABLE_COLUMN)[column]
        length = offsets[row + 1] - offsets[row]
        begin = int32_row(own[DATA_AT] + 4 * (own[FIRST_ROW] + rows[row, 1]), 1)[0]
        given = uint8_rows(own[LETTERS_AT] + begin, 1, length)
        for letter in range(length):
            letters[0, offsets[row] + letter] = given[0, letter]
    return 0


values, letters = Entry(gathered_values), Entry(gathered_letters)


def load() -> None:
    """Loads or compiles the kernels now: what Ctrl-C meets later should not be numba."""
    values.direct()
    letters.direct()


@cache
def held_kind(kind: pa.DataType) -> int:
    """How a column holds its values; -1: in a way that is not read here."""
    if kind == pa.float64():
        return FRACTIONS
    if kind == pa.int64() or pa.types.is_timestamp(kind):
        return WHOLES
    return {pa.string(): TEXTS, pa.bool_(): TRUTHS}.get(kind, -1)


def place_column(row: Any, column: pa.Array) -> None:
    """Writes down where the values of a column lie."""
    valid, data, *text = column.buffers()
    row[VALID_AT] = 0 if valid is None or column.null_count == 0 else valid.address
    row[DATA_AT] = data.address
    row[LETTERS_AT] = text[0].address if text and text[0] is not None else data.address
    row[FIRST_ROW] = column.offset


class Places:
    """Where the columns of a table lie."""

    def __init__(self, table: pa.Table) -> None:
        batches, kinds = table.to_batches(), [held_kind(each) for each in table.schema.types]
        self.are_known = len(batches) == 1 and -1 not in kinds  # else they are of other kinds, or in several pieces
        self._rows = np.zeros((len(kinds), OF_TABLE_COLUMN), np.int64)
        self.address = int(self._rows.ctypes.data)
        if self.are_known:
            self._rows[:, HOLDS_WHAT] = kinds
            for row, column in zip(self._rows, batches[0].columns, strict=True):
                place_column(row, column)


def gather(rows: Sequence[tuple[int, int]], schema: pa.Schema) -> list[pa.Array]:
    """The columns of some rows: each is told by the address of the `Places` of its table, and its place there."""
    number, columns = len(rows), len(schema)
    bits, edges = (number + 7) // 8, number + 1
    # One piece of memory for all of it: to ask for the address of an array costs a microsecond.
    sizes = (8 * HEAD_SIZE, 16 * number, 8 * columns * number, 8 * columns, 4 * columns * edges, columns * bits)
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + (size + 7) // 8 * 8)
    room = np.zeros(starts[-1] // 8, np.int64)
    start = int(room.ctypes.data)
    _, rows_at, out_at, nulls_at, offsets_at, valid_at, _ = starts
    head = room[:HEAD_SIZE]
    head[:] = (
        number,
        start + rows_at,
        columns,
        start + out_at,
        start + offsets_at,
        start + valid_at,
        start + nulls_at,
        0,
    )
    room[rows_at // 8 : out_at // 8] = np.array(rows, np.int64).reshape(-1)
    values.direct()(head)
    memory, nulls = pa.py_buffer(room), room[nulls_at // 8 : nulls_at // 8 + columns].tolist()
    found = []
    for column, kind in enumerate(schema.types):
        buffers = [memory.slice(valid_at + column * bits, bits) if nulls[column] else None]
        if kind == pa.string():
            offsets = memory.slice(offsets_at + 4 * column * edges, 4 * edges)
            text = np.empty(int(np.frombuffer(offsets, np.int32)[number]) + 1, np.uint8)
            head[LETTERS_OUT_AT] = text.ctypes.data
            letters.direct()(head, column)
            buffers += [offsets, pa.py_buffer(text)]
        else:
            buffers.append(memory.slice(out_at + 8 * column * number, 8 * number))
        found.append(pa.Array.from_buffers(kind, number, buffers, nulls[column]))
    return found

"""Rows of an Arrow table, straight into the searches of the queries that mention their types: a kernel reads them.

A row becomes what a dict would be, for the few columns that queries read and the few rows that they want, and goes the
way of dicts (`dict_door`).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.incremental import arrow_rows
from cepheid.engine.incremental.arrow_memory import DATA, LETTERS, buffer_at, column_at, is_set, is_there, offset_of
from cepheid.engine.incremental.dict_door import (
    CALLS,
    COLUMNS,
    DELAY,
    DOOR_SIZE,
    DUE,
    FAR,
    LONG_WAY,
    OTHERS,
    RAWS_AT,
    VALUES_AT,
    choose,
    pass_time,
    push,
)
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.kernels.memory import float64_rows, int32_row, int64_row, int64_rows
from cepheid.engine.kernels.objects import clear_error, fraction_object, give_back, hold, text_object, whole_object

# The numbers in `table`: its columns that are read, and its memory; the row that is next, how many there are, and how
# many were kept; the last time; the addresses of True and False.
TABLE_COLUMNS_AT, TABLE_COLUMNS, BATCH_AT, NEXT, WANTED, KEPT, LAST_TIME, TRUE, FALSE = range(9)
NUMBERS_AT = 9  # room for the numbers of a row
TABLE_SIZE = 10
OF_SCHEMA, HOLDS_WHAT, OF_BATCH = range(3)  # of a column: its number in the schema, what it holds, and its number there
OF_TABLE_COLUMN = 3
WHOLES, FRACTIONS, TEXTS, TRUTHS = range(4)


@cache
def held_kind(kind: pa.DataType) -> int:
    """How a column holds its values; -1: in a way that is not read here."""
    if kind == pa.float64():
        return FRACTIONS
    if kind == pa.int64() or pa.types.is_timestamp(kind):
        return WHOLES
    return {pa.string(): TEXTS, pa.bool_(): TRUTHS}.get(kind, -1)


@borrowing
def value_at(table: Int64s, column: Int64s, row: int) -> int:
    """A value as an object, to be given back; 0: it is NULL; -1: there is no memory for it."""
    own = column_at(table[BATCH_AT], column[OF_BATCH])
    place = offset_of(own) + row
    if not is_there(own, place):
        return 0
    what, data = column[HOLDS_WHAT], buffer_at(own, DATA)
    if what == WHOLES:
        made = whole_object(int64_row(data + 8 * place, 1)[0])
    elif what == FRACTIONS:
        made = fraction_object(float64_rows(data + 8 * place, 1, 1)[0, 0])
    elif what == TEXTS:
        edges = int32_row(data + 4 * place, 2)
        begin, end = np.int64(edges[0]), np.int64(edges[1])
        made = text_object(buffer_at(own, LETTERS) + int(begin), int(end - begin), 0)
    else:
        made = table[TRUE] if is_set(data, place) else table[FALSE]
        hold(made)
    if made == 0:
        clear_error()
        return -1
    return int(made)


@borrowing
def read_numbers(door: Int64s, table: Int64s, row: int) -> bool:
    """Reads the columns of a row that queries read; False: there is no memory for them.

    No objects are made of numbers: `door` says where these are.
    """
    columns = int64_rows(table[TABLE_COLUMNS_AT], table[TABLE_COLUMNS], OF_TABLE_COLUMN)
    values = int64_row(door[VALUES_AT], door[COLUMNS])
    numbers = int64_row(table[NUMBERS_AT], door[COLUMNS])
    door[RAWS_AT] = table[NUMBERS_AT]
    for column in range(table[TABLE_COLUMNS]):
        place = columns[column, OF_SCHEMA]
        if columns[column, HOLDS_WHAT] <= FRACTIONS:
            own = column_at(table[BATCH_AT], columns[column, OF_BATCH])
            values[place] = 1 if is_there(own, offset_of(own) + row) else 0
            if values[place] == 1:
                numbers[place] = int64_row(buffer_at(own, DATA) + 8 * (offset_of(own) + row), 1)[0]
            continue
        value = value_at(table, columns[column], row)
        values[place] = max(value, 0)
        numbers[place] = 1 if value == table[TRUE] else 0
        if value < 0:
            for later in range(column + 1, table[TABLE_COLUMNS]):
                values[columns[later, OF_SCHEMA]] = 0
            give_back_texts(door, table)
            return False
    return True


@borrowing
def give_back_texts(door: Int64s, table: Int64s) -> None:
    """The values of a row are no longer needed that are objects though numbers are not."""
    columns = int64_rows(table[TABLE_COLUMNS_AT], table[TABLE_COLUMNS], OF_TABLE_COLUMN)
    values = int64_row(door[VALUES_AT], door[COLUMNS])
    for column in range(table[TABLE_COLUMNS]):
        place = columns[column, OF_SCHEMA]
        if values[place] != 0 and columns[column, HOLDS_WHAT] > FRACTIONS:
            give_back(values[place])
            values[place] = 0


@kernel
def rows_taken(at: int, table_at: int, types_at: int) -> int:
    """Takes the wanted rows in, and lets time pass; how many searches Python goes on with, or what is lacking."""
    door, table = int64_row(at, DOOR_SIZE), int64_row(table_at, TABLE_SIZE)
    head = int64_row(types_at, arrow_rows.HEAD_SIZE)
    room = head[arrow_rows.ROOM]
    rows, codes = int64_row(head[arrow_rows.ROWS_AT], room), int64_row(head[arrow_rows.TYPES_AT], room)
    when = int64_row(head[arrow_rows.TIMES_AT], room)
    if table[NEXT] == 0:
        door[CALLS] += 1
    while table[NEXT] < table[WANTED]:
        place = table[NEXT]
        if not read_numbers(door, table, rows[place]):
            return LONG_WAY
        code = codes[place] if codes[place] >= 0 else door[OTHERS]
        chosen = choose(door, at, code)
        if chosen > 0:
            push(door, at, chosen, when[place], -FAR)
            rows[table[KEPT]] = rows[place]
            table[KEPT] += 1
        give_back_texts(door, table)
        if chosen < 0:
            return chosen
        table[NEXT] += 1
    last = table[LAST_TIME]
    return pass_time(door, last - door[DELAY] - 1, 0) if last > door[DUE] else 0


take_rows = Entry(rows_taken)

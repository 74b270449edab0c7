"""Event tables in order: which rows precede which, and errors for times that cannot be ordered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.values.plain import microseconds
from cepheid.errors import DataError
from cepheid.language.schema import TIMES, Schema, data_type

_WHOLE = pa.int64()
FARTHEST = 2**62  # from 0: two times can be subtracted, and a window be added, within 64 bits


@dataclass(frozen=True)
class EventTable:
    """Events sorted by their order key: the time, then the tiebreakers.

    `instant` ranks the distinct order keys, so that an event precedes another iff its instant is smaller.
    """

    table: pa.Table
    time: Int64s
    instant: Int64s
    late: int = 0  # imprecise times: how many events came after one that surely happened after them

    def __len__(self) -> int:
        return len(self.time)


def ordered(table: pa.Table, schema: Schema) -> EventTable:
    """The table in order. Rows of one instant keep the order they came in; nothing may depend on it.

    >>> table = pa.table({"ts": [3, 1, 3], "type": ["B", "A", "C"]})
    >>> events = ordered(table, Schema.from_arrow(table.schema))
    >>> events.time.tolist(), events.instant.tolist(), events.table["type"].to_pylist()
    ([1, 3, 3], [0, 1, 1], ['A', 'B', 'C'])
    """
    table = in_plain_types(table)
    time = times_of(table, schema.time)
    late = 0 if schema.is_timed_exactly else int(late_arrivals(table, schema).sum())
    if not schema.tiebreak:
        later = time[1:] > time[:-1]
        if bool(later.all()):  # as most tables are: each row at an instant of its own
            return EventTable(table, time, np.arange(len(time)), late)
        if bool(np.any(time[1:] < time[:-1])):
            order = np.argsort(time, kind="stable")
            time, table = time[order], table.take(pa.array(order))
            later = time[1:] > time[:-1]
        instant = np.zeros(len(time), np.int64)
        np.cumsum(later, out=instant[1:])
        return EventTable(table, time, instant, late)
    # NULL comes first, as in Spark; a key of its own says so in every version of Arrow.
    keys = {"time": pa.array(time)}
    for number, name in enumerate(schema.tiebreak):
        keys |= {
            f"{number} known": pc.cast(table.column(name).is_valid(), pa.int8()),
            f"{number}": sortable(table.column(name)),
        }
    indices = pc.sort_indices(pa.table(keys), sort_keys=[(key, "ascending") for key in keys])
    time, table = time[indices.to_numpy()], table.take(indices)
    columns = [time, *(_codes(table.column(name)) for name in schema.tiebreak)]
    return EventTable(table, time, _ranks(len(time), columns))


def in_plain_types(table: pa.Table) -> pa.Table:
    """The table without the kinds of columns that Arrow cannot sort, take from or look up in.

    >>> in_plain_types(pa.table({"k": pa.array(["x"], pa.string_view())}))["k"].type
    DataType(string)
    """
    for number, field in enumerate(table.schema):
        if pa.types.is_string_view(field.type) or pa.types.is_binary_view(field.type):
            kind = pa.string() if pa.types.is_string_view(field.type) else pa.binary()
            table = table.set_column(number, field.name, table.column(number).cast(kind))
    return table


def late_arrivals(table: pa.Table, schema: Schema) -> npt.NDArray[np.bool_]:
    """True for rows that came too late, in the order of the table: surely before an event that had already come.

    TIME section 2.2: an event may come after another only if its upper bound is not below the other's lower bound.

    >>> table = pa.table({"lo": [1, 5, 2], "hi": [3, 9, 4]})
    >>> late_arrivals(table, Schema.from_arrow(table.schema, type=None, lower="lo", upper="hi")).tolist()
    [False, False, True]
    """
    assert schema.lower is not None
    assert schema.upper is not None
    lower, upper = times_of(table, schema.lower), times_of(table, schema.upper)
    check_bounds(lower, upper, schema.lower)
    late = np.zeros(len(lower), bool)
    late[1:] = upper[1:] < np.maximum.accumulate(lower)[:-1]
    return late


def times_of(table: pa.Table, name: str) -> Int64s:
    """A time column as int64: whole numbers as they are, timestamps in microseconds."""
    column = table.column(name)
    if column.null_count:
        row = int(pc.index(column.is_null(), True).as_py())
        raise DataError(
            f"column '{name}' holds the time, but it is NULL in {column.null_count} of {len(column)} rows, "
            f"first in row {row}",
            column=name,
            row=row,
        )
    try:
        if column.type != _WHOLE:
            column = microseconds(column) if data_type(column.type) in TIMES else column.cast(_WHOLE)
    except pa.ArrowInvalid as error:
        raise DataError(f"a time does not fit 64 bits: {error}", column=name) from None
    values: Int64s = np.ascontiguousarray(column.to_numpy())
    if len(values) and not (values.min() > -FARTHEST and values.max() < FARTHEST):
        row = int(np.argmax((values <= -FARTHEST) | (values >= FARTHEST)))
        raise DataError(
            f"the time {values[row]} is out of range: more than 2^62 steps from 0",
            column=name,
            row=row,
            hint="times and windows are added in 64 bits; drop such rows, or count time in larger steps",
        )
    return values


def sortable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of a kind that Arrow can sort, with the same order."""
    kind = column.type
    return column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column


def _ranks(length: int, columns: list[Int64s]) -> Int64s:
    changed = np.zeros(length, np.int64)
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return np.cumsum(changed)


def _codes(column: pa.ChunkedArray) -> Int64s:
    if not len(column):  # Arrow makes no dictionary of dates or durations without any
        return np.empty(0, np.int64)
    codes = pc.fill_null(pc.dictionary_encode(sortable(column)).combine_chunks().indices, -1)
    values: Int64s = codes.to_numpy(zero_copy_only=False).astype(np.int64)
    return values


def check_bounds(lower: Int64s, upper: Int64s, column: str) -> None:
    """An error for an interval that ends before it begins."""
    wrong = np.flatnonzero(lower > upper)
    if len(wrong):
        row = int(wrong[0])
        message = f"the lower bound {lower[row]} is above the upper bound {upper[row]}"
        raise DataError(message, column=column, row=row, hint="swap them, or drop such rows")

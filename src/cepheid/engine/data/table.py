"""Event tables in order: which rows precede which, and errors for times that cannot be ordered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import DataError
from cepheid.language.schema import Schema

Int64s = npt.NDArray[np.int64]


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
    time = times_of(table, schema.time)
    late = 0 if schema.is_timed_exactly else int(late_arrivals(table, schema).sum())
    if not schema.tiebreak:
        if len(time) > 1 and bool(np.any(time[1:] < time[:-1])):
            order = np.argsort(time, kind="stable")
            time, table = time[order], table.take(pa.array(order))
        return EventTable(table, time, _ranks(len(time), [time]), late)
    # NULL comes first, as in Spark; a key of its own says so in every version of Arrow.
    keys = {"time": pa.array(time)}
    for number, name in enumerate(schema.tiebreak):
        keys |= {f"{number} known": pc.cast(table.column(name).is_valid(), pa.int8()), f"{number}": table.column(name)}
    indices = pc.sort_indices(pa.table(keys), sort_keys=[(key, "ascending") for key in keys])
    time, table = time[indices.to_numpy()], table.take(indices)
    columns = [time, *(_codes(table.column(name)) for name in schema.tiebreak)]
    return EventTable(table, time, _ranks(len(time), columns))


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
    wrong = np.flatnonzero(lower > upper)
    if len(wrong):
        row = int(wrong[0])
        told = f"the lower bound {lower[row]} is above the upper bound {upper[row]}"
        raise DataError(told, column=schema.lower, row=row, hint="swap them, or drop such rows")
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
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        # Nanoseconds are cut to microseconds, as Spark does: events of one microsecond are concurrent.
        column = pc.cast(column, pa.timestamp("us", kind.tz if pa.types.is_timestamp(kind) else None), safe=False)
        column = column.cast(pa.int64())
    elif kind != pa.int64():
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise DataError(f"column '{name}' does not fit 64 bits: {error}", column=name) from None
    values: Int64s = np.ascontiguousarray(column.to_numpy())
    return values


def _ranks(length: int, columns: list[Int64s]) -> Int64s:
    changed = np.zeros(length, np.int64)
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return np.cumsum(changed)


def _codes(column: pa.ChunkedArray) -> Int64s:
    codes = pc.fill_null(pc.dictionary_encode(column).combine_chunks().indices, -1)
    values: Int64s = codes.to_numpy(zero_copy_only=False).astype(np.int64)
    return values

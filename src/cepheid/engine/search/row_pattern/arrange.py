"""Rows in the order of the clause: the partitions one after the other, each sorted by ORDER BY."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.kernels.compile import kernel
from cepheid.engine.search.row_pattern.columns import plain
from cepheid.engine.search.row_pattern.computed_keys import with_keys
from cepheid.engine.search.row_pattern.implied import window_of
from cepheid.errors import DataError
from cepheid.language.match_recognize.bound import BoundClause, SortKey
from cepheid.language.zone_labels import labelled_table

Key = npt.NDArray[Any]


@dataclass(frozen=True)
class Arranged:
    """A table in order: partition k holds the rows bounds[k] to bounds[k + 1]."""

    table: pa.Table
    bounds: Int64s
    time: Int64s  # the first sort key as a number, if there is a window
    within: int = 0  # the window, stated or implied; 0: none


def arrange(clause: BoundClause, table: pa.Table, columns: Sequence[str]) -> Arranged:
    """The columns that are needed, in order; instants are shown in the clause's zone."""
    table = table if clause.zone is None else labelled_table(table, clause.zone)
    table = with_keys(table, clause.keys, clause.text)
    columns = [*columns, *(key.name for key in clause.keys)]
    codes, count = partition_codes([plain(table.column(name)) for name in clause.partition_by], table.num_rows)
    order, bounds = grouped(codes, count)
    keys = [key for sort in clause.order_by for key in ascending(plain(table.column(sort.column)), sort)]
    if keys and not _is_sorted([key[order] for key in keys], bounds):
        order = np.lexsort([*reversed(keys), codes]).astype(np.int64)
    if len(order) > 1 and bool(np.any(order[1:] < order[:-1])):
        table = table.select(list(dict.fromkeys(columns))).take(pa.array(order))
    else:
        table = table.select(list(dict.fromkeys(columns)))
    within = window_of(clause, table) if clause.order_by else None
    time = window_times(table, clause) if within is not None else np.empty(0, np.int64)
    return Arranged(table, bounds, time, within or 0)


def partition_codes(columns: Sequence[pa.Array], length: int) -> tuple[Int64s, int]:
    """A number for each partition, in the order of their first rows; NULL is a value of its own here."""
    if not columns:
        return np.zeros(length, np.int64), 1 if length else 0
    combined: Int64s | None = None
    size = 1
    for column in columns:
        if pa.types.is_floating(column.type):
            column = pc.add(column, 0.0)  # 0.0 for -0.0: they are equal, and one partition
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        size = len(encoded.dictionary)
        if combined is None:
            combined = codes
        else:
            import pandas as pd  # slow to load; one key needs none of it

            combined, uniques = pd.factorize(combined * max(size, 1) + codes)
            combined, size = combined.astype(np.int64), len(uniques)
    assert combined is not None
    return combined, size


@kernel
def grouped(codes: Int64s, count: int) -> tuple[Int64s, Int64s]:
    """The rows of each code together, in the order in which they came, and where each code begins."""
    bounds = np.zeros(count + 1, np.int64)
    for code in codes:
        bounds[code + 1] += 1
    for number in range(count):
        bounds[number + 1] += bounds[number]
    following = bounds[:-1].copy()
    order = np.empty(len(codes), np.int64)
    for row in range(len(codes)):
        order[following[codes[row]]] = row
        following[codes[row]] += 1
    return order, bounds


def ascending(column: pa.Array, sort: SortKey) -> list[Key]:
    """Arrays by which rows are sorted upwards, the more important one first."""
    keys: list[Key] = []
    if pa.types.is_null(column.type):
        return keys  # nothing comes before anything else
    if column.null_count:
        known = column.is_valid().to_numpy(zero_copy_only=False)
        keys.append(known.astype(np.int8) if sort.nulls_first else (~known).astype(np.int8))
    kind = column.type
    if pa.types.is_floating(kind):
        values = pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False).astype(np.float64)
        unknown = np.isnan(values)
        if unknown.any():  # NaN is larger than every number, as in Spark
            keys.append((~unknown if sort.descending else unknown).astype(np.int8))
            values = np.where(unknown, 0.0, values)
        return [*keys, -values if sort.descending else values]
    times = pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_date64(kind)
    if times or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        numbers = column.cast(pa.int64())
    elif pa.types.is_date32(kind):
        numbers = column.cast(pa.int32())
    elif pa.types.is_nested(kind):
        raise DataError(f"rows cannot be ordered by {kind}", column=sort.column, hint="order them by a part of it")
    else:
        numbers = pc.rank(column, sort_keys="ascending", tiebreaker="dense").cast(pa.int64())
    values = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return [*keys, ~values if sort.descending else values]


def _is_sorted(keys: list[Key], bounds: Int64s) -> bool:
    length = len(keys[0])
    if length < 2:
        return True
    equal = np.ones(length - 1, bool)
    falls = np.zeros(length - 1, bool)
    for key in keys:
        falls |= equal & (key[1:] < key[:-1])
        equal &= key[1:] == key[:-1]
    inner = bounds[1:-1]
    falls[inner[(inner > 0) & (inner < length)] - 1] = False
    return not bool(falls.any())


def window_times(table: pa.Table, clause: BoundClause) -> Int64s:
    """The first sort key as a whole number: microseconds for times."""
    name = clause.order_by[0].column
    column = plain(with_keys(table, clause.keys, clause.text).column(name))
    if column.null_count:
        raise DataError("the time is NULL", column=name, hint="drop such rows: WITHIN needs a time for every row")
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        zone = kind.tz if pa.types.is_timestamp(kind) else None
        column = column.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    elif not pa.types.is_integer(kind):
        raise DataError(f"WITHIN needs a time or a whole number, not {kind}", column=name)
    values: Int64s = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return np.array(values)

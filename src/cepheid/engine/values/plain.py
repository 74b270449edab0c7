"""Columns of tables as expressions of query text see them: plain types, times in microseconds, NaN as NULL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.arrays import Int64s
from cepheid.errors import DataError
from cepheid.language.library.decimals import MOST
from cepheid.language.schema import DataType, data_type

ARROW_KINDS = {  # what values of a type are in columns
    DataType.BOOL: pa.bool_(),
    DataType.INT: pa.int64(),
    DataType.FLOAT: pa.float64(),
    DataType.STRING: pa.string(),
    DataType.TIME: pa.int64(),
    DataType.DATE: pa.int64(),
    DataType.TEXTS: pa.list_(pa.string()),
}


def value_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A table column as predicates see it: plain types, times in microseconds, NaN as NULL."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    match data_type(kind):
        case DataType.INT:
            try:
                return column.cast(pa.int64())
            except pa.ArrowInvalid as error:
                hint = "cast the column to a number or to text"
                raise DataError(f"a whole number beyond 64 bits: {error}", hint=hint) from None
        case DataType.FLOAT:
            column = column.cast(pa.float64())
            unknown = pc.is_nan(column)
            if pc.any(unknown).as_py():
                column = pc.if_else(unknown, pa.scalar(None, pa.float64()), column)
            return column
        case DataType.DECIMAL:
            return _as_decimal128(column)
        case DataType.TIME | DataType.DATE:
            try:
                return microseconds(column)
            except pa.ArrowInvalid as error:
                raise DataError(f"a time beyond 64 bits of microseconds: {error}") from None
        case DataType.STRING if pa.types.is_string_view(kind):
            return column.cast(pa.string())
    return column


def _as_decimal128(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return column.cast(pa.decimal128(min(column.type.precision, MOST), column.type.scale))
    except (pa.ArrowInvalid, ValueError) as error:
        raise DataError(f"a decimal of more than {MOST} digits: {error}", hint="cast the column to text") from None


def microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Timestamps and dates as whole numbers; ArrowInvalid if one does not fit 64 bits."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    zone = kind.tz if pa.types.is_timestamp(kind) else None
    # Nanoseconds are cut to microseconds, as Spark does: events of one microsecond are concurrent.
    exact = not (pa.types.is_timestamp(kind) and kind.unit == "ns")
    return pc.cast(column, pa.timestamp("us", zone), safe=exact).cast(pa.int64())


def sum_may_overflow(values: pa.Array | pa.ChunkedArray, sizes: Int64s) -> bool:
    """Could the sum of a group of these sizes go past 64 bits?"""
    if not pa.types.is_integer(values.type) or not len(values):
        return False
    ends = pc.min_max(values).as_py()
    largest = max(abs(ends["min"] or 0), abs(ends["max"] or 0))
    return bool(largest * int(sizes.max(initial=0)) >= 2**63)


def columns_of(table: pa.Table) -> Callable[[Any], Any]:
    """The column of an attribute as conditions read it, made when it is first asked for."""
    known: dict[str, Any] = {}

    def resolve(node: Any) -> Any:
        if node.name not in known:
            known[node.name] = value_column(table.column(node.name))
        return known[node.name]

    return resolve

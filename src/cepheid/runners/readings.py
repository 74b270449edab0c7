"""Columns as people have them: times written as text or as floats, numbers with commas, columns of nothing.

Each reader gives the column in the type that queries need, and says which rows it could not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.arrays import Bools
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.library.conversions import instant_of_text, moment_of_text
from cepheid.language.schema import DataType, data_type
from cepheid.language.zones import IN_UTC, instants_of, zone_called

_WHOLE = r"^-?[0-9]{1,18}$"
_ORDERS = frozenset({"<", "<=", ">", ">="})


@dataclass(frozen=True)
class Reading:
    """A column as it was read; where `bad` is true it holds NULL, and `wanted` says what should have stood there."""

    column: pa.ChunkedArray
    bad: Bools
    wanted: str


# --- times ----------------------------------------------------------------------------------------------------------


def read_times(column: pa.ChunkedArray, time_format: str | None = None, tz: str | None = None) -> Reading:
    """A time column as whole numbers or timestamps: texts as ISO 8601 or `time_format` says, floats without fraction.

    A text without an offset is a time of the zone `tz`, and without one a time that a clock shows.

    >>> read = read_times(pa.chunked_array([["2026-01-31 12:00:00", "yesterday", None]]))
    >>> read.bad.tolist(), read.column.type
    ([False, True, True], TimestampType(timestamp[us]))
    """
    kind = data_type(column.type)
    if kind is DataType.STRING:
        read = column.cast(pa.string()) if column.type != pa.string() else column
        if time_format is None and _mostly_whole(read):  # numbers that became text because of a few that are none
            fits = pc.fill_null(pc.match_substring_regex(read, _WHOLE), False)
            whole = pc.if_else(fits, read, pa.scalar(None, pa.string())).cast(pa.int64())
            return Reading(whole, _nulls(whole), "a whole number")
        parsed = placed(_written(read, time_format), tz) if time_format is not None else _iso(read, tz)
        wanted = f"written as {time_format}" if time_format is not None else "a time, such as 2026-01-31T12:00:00"
        return Reading(parsed, _nulls(parsed), wanted)
    if pa.types.is_floating(column.type):
        values = column.to_numpy()
        with np.errstate(invalid="ignore"):
            bad = ~(np.isfinite(values) & (np.floor(values) == values) & (np.abs(values) < 2.0**63))
        whole = np.where(bad, 0, values).astype(np.int64)
        return Reading(pa.chunked_array([pa.array(whole, mask=bad)]), bad, "a finite whole number")
    return Reading(column, _nulls(column), "a time")


def _mostly_whole(column: pa.ChunkedArray) -> bool:
    whole = pc.sum(pc.match_substring_regex(column, _WHOLE)).as_py() or 0
    return bool(2 * whole > len(column) - column.null_count)


def _nulls(column: pa.ChunkedArray) -> Bools:
    mask: Bools = column.is_null().to_numpy().astype(bool)
    return mask


def _written(column: pa.ChunkedArray, time_format: str) -> pa.ChunkedArray:
    return pc.strptime(column, format=time_format, unit="us", error_is_null=True)


def placed(column: pa.ChunkedArray, tz: str | None) -> pa.ChunkedArray:
    """Timestamps without a zone as instants of a zone, if one was given; all others as they are."""
    if tz is None or not pa.types.is_timestamp(column.type):
        return column
    zone = zone_called(tz)
    return instants_of(column, zone) if column.type.tz is None else column.cast(pa.timestamp(column.type.unit, zone))


def _iso(column: pa.ChunkedArray, tz: str | None = None) -> pa.ChunkedArray:
    """Texts as timestamps; NULL for those that are no times. Beside others with an offset, one without is in UTC."""
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        try:
            return placed(pc.cast(column, kind), tz)
        except pa.ArrowInvalid:
            continue
    coded = pc.dictionary_encode(column.combine_chunks())
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    texts = coded.dictionary.to_pylist()
    steps = pa.array([instant_of_text(text, zone_called(tz or IN_UTC)) for text in texts], pa.int64())
    zoned = tz is not None or any(found is not None and found[1] is not None for found in map(moment_of_text, texts))
    values = steps.cast(pa.timestamp("us", zone_called(tz or IN_UTC) if zoned else None))
    return pa.chunked_array([values.take(coded.indices)])


# --- numbers --------------------------------------------------------------------------------------------------------


def read_numbers(column: pa.ChunkedArray, decimal: str = ".", thousands: str | None = None) -> Reading:
    """Texts such as 1.234,50 as numbers; NULL stays NULL and is not bad.

    >>> read_numbers(pa.chunked_array([["1,234.50", "7", "seven", None]]), ".", ",").column.to_pylist()
    [1234.5, 7.0, None, None]
    """
    plain = pc.utf8_trim_whitespace(column.cast(pa.string()))
    if thousands:
        plain = pc.replace_substring(plain, thousands, "")
    if decimal != ".":
        plain = pc.replace_substring(pc.replace_substring(plain, ".", "?"), decimal, ".")  # a dot would be no decimal
    fits = pc.match_substring_regex(plain, r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$")
    bad = pc.fill_null(pc.invert(fits), False)
    cleaned = pc.if_else(pc.fill_null(fits, False), pc.utf8_ltrim(plain, "+"), pa.scalar(None, pa.string()))
    mask: Bools = bad.to_numpy().astype(bool)
    return Reading(cleaned.cast(pa.float64()), mask, "a number")


def looks_like_numbers(column: pa.ChunkedArray) -> str | None:
    """The first of a column of texts, if all of the first thousand are numbers in some notation.

    >>> looks_like_numbers(pa.chunked_array([["1.234,50", None, "7"]])), looks_like_numbers(pa.chunked_array([["x1"]]))
    ('1.234,50', None)
    """
    texts = column.slice(0, 1000).drop_null().cast(pa.string())
    if not len(texts) or not pc.all(pc.match_substring_regex(texts, r"^\s*[+-]?[0-9][0-9.,' ]*$")).as_py():
        return None
    first: str = texts[0].as_py()
    return first


def numeric_attributes(query: s.QuerySyntax) -> frozenset[str]:
    """The attributes that a query calculates with or orders, where no text in quotes says that it means texts.

    >>> from cepheid.language.sase.parse import parse
    >>> where = "a.x < 10 AND a.y + 1 = b.z AND a.name < 'M' AND [id]"
    >>> sorted(numeric_attributes(parse(f"PATTERN SEQ(A a, B b) WHERE {where}")))
    ['x', 'y', 'z']
    """
    found: set[str] = set()
    for node in _nodes(query):
        match node:
            case s.Arithmetic(left=left, right=right):
                found |= _names(left) | _names(right)
            case s.Negative(operand=operand):
                found |= _names(operand)
            case s.Comparison(operator=operator, left=left, right=right):
                sides = (left, right)
                if (operator in _ORDERS and not any(_is_text(side) for side in sides)) or any(
                    _is_number(side) for side in sides
                ):
                    found |= _names(left) | _names(right)
            case s.Between(operand=operand, low=low) if not _is_text(low):
                found |= _names(operand)
            case s.Call(function=function, arguments=arguments) if _takes_numbers(function):
                found |= {name for argument in arguments for name in _names(argument)}
    return frozenset(found)


def _takes_numbers(function: str) -> bool:
    aggregate = AGGREGATES.get(function.lower())
    return aggregate is not None and aggregate.numbers


def ordered_texts(query: s.QuerySyntax) -> frozenset[str]:
    """The attributes that a query orders against a number in quotes."""
    found: set[str] = set()
    for node in _nodes(query):
        if isinstance(node, s.Comparison) and node.operator in _ORDERS:
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(other, s.Literal) and isinstance(other.value, str) and _number_text(other.value):
                    found |= _names(one)
    return frozenset(found)


def _nodes(query: s.QuerySyntax) -> Iterator[s.Expression]:
    roots = [*query.conditions(), *(returned.expression for returned in query.returns or ())]
    for root in roots:
        yield from s.walk(root)


def _names(node: s.Expression) -> set[str]:
    return {node.name} if isinstance(node, s.Attribute | s.Name) else set()


def _is_text(node: s.Expression) -> bool:
    return isinstance(node, s.Literal) and isinstance(node.value, str)


def _is_number(node: s.Expression) -> bool:
    number = isinstance(node, s.Literal) and isinstance(node.value, int | float) and not isinstance(node.value, bool)
    return number or isinstance(node, s.Arithmetic | s.Negative)


def _number_text(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# --- columns of nothing ---------------------------------------------------------------------------------------------


_EMPTY: dict[DataType, pa.DataType] = {
    DataType.INT: pa.int64(),
    DataType.FLOAT: pa.float64(),
    DataType.STRING: pa.string(),
    DataType.BOOL: pa.bool_(),
    DataType.TIME: pa.timestamp("us"),
    DataType.LIST: pa.list_(pa.float64()),
}


def typed_nothing(table: pa.Table, kind_of: Callable[[str], DataType | None]) -> pa.Table:
    """The table with types for columns that hold nothing: all NULL, or without rows and of a type by accident.

    >>> typed_nothing(pa.table({"x": pa.nulls(2)}), lambda name: DataType.INT).schema.field("x").type
    DataType(int64)
    """
    for place, column in enumerate(table.schema):
        wanted = kind_of(column.name)
        accident = not table.num_rows and pa.types.is_floating(column.type) and wanted in (DataType.INT, DataType.TIME)
        if pa.types.is_null(column.type) or accident or (not table.num_rows and wanted is DataType.STRING):
            kind = _EMPTY.get(wanted or DataType.STRING, pa.string())
            if data_type(column.type) is not wanted:
                table = table.set_column(place, column.name, pa.nulls(table.num_rows, kind))
    return table

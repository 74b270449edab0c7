"""Operators over Arrow columns and constants, with SQL's NULL; NaN counts as NULL.

Whole numbers are computed in 64 bits. Times are whole microseconds in query text; clauses keep Arrow's types of them,
zones included, and have lengths of time.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.language.library import decimal_columns
from cepheid.language.library.conversions import number_of_text, truth_of_text, whole_of
from cepheid.language.library.decimal_columns import COMPARE, as_doubles, decimal_type, precision
from cepheid.language.library.decimals import as_decimal, fitted, precision_of
from cepheid.language.library.operators import known, moment_of, negative
from cepheid.language.schema import data_type
from cepheid.language.whole import LEAST, within_64_bits
from cepheid.language.zones import instants_of, name_of

Column: TypeAlias = Any  # a pyarrow Array, ChunkedArray or Scalar; pyarrow carries no types

_ARITHMETIC = {
    "+": (pc.add_checked, operator.add),
    "-": (pc.subtract_checked, operator.sub),
    "*": (pc.multiply_checked, operator.mul),
}
# Types that need no further look, by Arrow's numbers of them: a look takes as long as to compare two constants.
_NUMBERS = frozenset({pa.int64().id, pa.float64().id})
_TRUTH = pa.bool_().id
_SIMPLE = _NUMBERS | {pa.string().id, _TRUTH}


# --- values -----------------------------------------------------------------------------------------------------------


def constant(value: object) -> pa.Scalar:
    """A value as an Arrow scalar."""
    if isinstance(value, str):
        return pa.scalar(value, pa.string())
    if isinstance(value, datetime):
        return pa.scalar(value, pa.timestamp("us", name_of(value.tzinfo) if value.tzinfo else None))
    if isinstance(value, timedelta):
        return pa.scalar(value, pa.duration("us"))
    if isinstance(value, int) and not isinstance(value, bool):
        return pa.scalar(value, pa.int64())
    if isinstance(value, Decimal):
        return pa.scalar(value, decimal_type(precision_of(value)))
    return pa.scalar(value)


def without_nan(column: Column) -> Column:
    """A column in which NULL stands for what is not a number."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)


def nothing(like: Column, kind: pa.DataType) -> Column:
    """NULL, as often as there are values in a column."""
    return pa.scalar(None, kind) if isinstance(like, pa.Scalar) else pa.nulls(len(like), kind)


def whole(values: Column, length: int) -> pa.Array:
    """As many values as there are rows, in one piece."""
    if isinstance(values, pa.Scalar):
        return pa.array([values.as_py()] * length, values.type) if length < 2 else pa.repeat(values, length)
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()
    return values


def listed(column: Column, length: int = 1) -> list[object]:
    """The values of a column as Python's, or a constant so many times; times beyond the years 1 to 9999 are NULL.

    >>> listed(pa.array([0, 2**58], pa.timestamp("us")))
    [datetime.datetime(1970, 1, 1, 0, 0), None]
    """
    if not isinstance(column, pa.Array | pa.ChunkedArray):
        return [column.as_py() if isinstance(column, pa.Scalar) else column] * length
    try:
        found: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        if not pa.types.is_temporal(column.type) or pa.types.is_duration(column.type):
            raise
        first, last = (pa.scalar(end).cast(column.type) for end in (datetime.min, datetime.max))
        inside = pc.and_(pc.greater_equal(column, first), pc.less_equal(column, last))
        found = pc.if_else(inside, column, pa.scalar(None, column.type)).to_pylist()
    return found


def fitting(value: Any, kind: pa.DataType) -> Any:
    """A value that Arrow takes for the type; NULL where it does not fit."""
    if value is None:
        return None
    if pa.types.is_floating(kind):
        return known(float(value))
    if pa.types.is_decimal(kind):
        return fitted(as_decimal(value), (kind.precision, kind.scale))
    if pa.types.is_integer(kind):
        return value if -(2 ** (kind.bit_width - 1)) <= value < 2 ** (kind.bit_width - 1) else None
    if pa.types.is_timestamp(kind) and isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value


def is_number(kind: pa.DataType) -> bool:
    """Are values of an Arrow type whole numbers, doubles or decimals?"""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_moment(kind: pa.DataType) -> bool:
    """Are they times or dates?"""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def as_64_bits(column: Column) -> Column:
    """Whole numbers and doubles as those of 64 bits, everything else as it is."""
    kind = column.type
    if pa.types.is_integer(kind) and kind != pa.int64():
        return column.cast(pa.int64())
    return column.cast(pa.float64()) if pa.types.is_floating(kind) and kind != pa.float64() else column


def truth(column: Column) -> Column:
    """True, false or unknown; ArrowTypeError for other values."""
    if column.type.id == _TRUTH:
        return column
    if not pa.types.is_null(column.type):
        raise pa.ArrowTypeError(f"{column.type} is not true or false")
    return column.cast(pa.bool_())


def in_zone(column: Column, zone: str | None) -> Column:
    """Times as instants of a zone; without one, as they are."""
    if zone is None or getattr(column.type, "tz", None) is not None:
        return column.cast(pa.timestamp("us", zone), safe=False)
    return instants_of(column.cast(pa.timestamp("us"), safe=False), zone)


def _same_zone(left: Column, right: Column) -> tuple[Column, Column]:
    """Times beside each other: if one is an instant, so is the other, and it is of the same zone."""
    zone = next((kind.tz for kind in (left.type, right.type) if pa.types.is_timestamp(kind) and kind.tz), None)
    return in_zone(left, zone), in_zone(right, zone)


# --- comparisons ------------------------------------------------------------------------------------------------------


def beside(sign: str, left: Column, right: Column, written: bool = False) -> Column | None:
    """A comparison of values of any two types; None where it takes Python's values, as for lists.

    Is one of them `written` as a constant? A text that is none is read as a number or a time value by value.
    """
    kinds = (left.type, right.type)
    if kinds[0].id == kinds[1].id and kinds[0].id in _SIMPLE:
        return compared(sign, left, right)
    if any(pa.types.is_null(kind) for kind in kinds):
        return pa.scalar(None, pa.bool_())
    if any(pa.types.is_nested(kind) for kind in kinds):
        return None
    if all(is_number(kind) for kind in kinds):
        return compared(sign, as_64_bits(left), as_64_bits(right))
    texts = [pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in kinds]
    if texts[0] != texts[1]:
        return _beside_text(sign, left, right, texts[0], written)
    if all(is_moment(kind) for kind in kinds) and kinds[0] != kinds[1]:
        left, right = _same_zone(left, right)
    elif kinds[0] != kinds[1] and not all(texts) and not _are_alike(*kinds):
        raise pa.ArrowTypeError("values of different types")
    return compared(sign, left, right)


def _are_alike(one: pa.DataType, other: pa.DataType) -> bool:
    return data_type(one) is data_type(other) and bool(pa.types.is_duration(one) == pa.types.is_duration(other))


def _beside_text(sign: str, left: Column, right: Column, first: bool, written: bool) -> Column | None:
    other, text = (right, left) if first else (left, right)
    if is_moment(other.type) and isinstance(text, pa.Scalar):
        found = constant(moment_of(text.as_py())) if text.is_valid else pa.scalar(None, pa.timestamp("us"))
        return compared(sign, *_same_zone(*((found, other) if first else (other, found))))
    if not (is_moment(other.type) or is_number(other.type) or pa.types.is_boolean(other.type)):
        raise pa.ArrowTypeError("a string beside something else")
    if written and isinstance(text, pa.Scalar) and text.is_valid:
        found = _as_kind(text.as_py(), other.type)
        return beside(sign, *((found, other) if first else (other, found)))
    return None


def _as_kind(text: str, kind: pa.DataType) -> pa.Scalar:
    """A string as the kind of value that it is compared with."""
    found: bool | int | float | None
    if pa.types.is_boolean(kind):
        found, kind = truth_of_text(text), pa.bool_()
    elif pa.types.is_integer(kind):
        found, kind = whole_of(text), pa.int64()
    else:
        found, kind = number_of_text(text), pa.float64()
    if found is None:
        raise pa.ArrowTypeError(f"{text!r} cannot be compared with {kind}")
    return pa.scalar(found, kind)


def compared(sign: str, left: Column, right: Column) -> Column:
    """A comparison of two values of one kind."""
    for side in (left, right):
        if isinstance(side, pa.Scalar) and not side.is_valid:
            return nothing(right if side is left else left, pa.bool_())
    if left.type.id == right.type.id and left.type.id in _SIMPLE:
        return COMPARE[sign](left, right)
    if _are_decimals(left, right):
        return decimal_columns.compared(sign, left, right)
    return COMPARE[sign](*_as_numbers(left, right))


def _are_decimals(left: Column, right: Column) -> bool:
    """Is one a decimal, and neither a double?"""
    kinds = (left.type, right.type)
    return any(map(pa.types.is_decimal, kinds)) and not any(map(pa.types.is_floating, kinds))


def _as_numbers(left: Column, right: Column) -> tuple[Column, Column]:
    """Where a whole number or a decimal meets a double it becomes one, as in SQL."""
    if pa.types.is_floating(left.type) and _is_exact(right.type):
        return left, as_doubles(right)
    if pa.types.is_floating(right.type) and _is_exact(left.type):
        return as_doubles(left), right
    return left, right


def _is_exact(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


# --- arithmetic -------------------------------------------------------------------------------------------------------


def combined(sign: str, left: Column, right: Column) -> Column | None:
    """`left sign right` of numbers, times and lengths of time; None where it takes Python's values."""
    kinds = (left.type, right.type)
    if kinds[0].id in _NUMBERS and kinds[1].id in _NUMBERS and sign in "+-*/%":
        return arithmetic(sign, left, right)
    if all(is_number(kind) for kind in kinds):
        whole = all(pa.types.is_integer(kind) for kind in kinds)
        if sign == "div" and not whole:
            return None
        sign = {"whole /": "div" if whole else "/"}.get(sign, sign)
        return arithmetic(sign, as_64_bits(left), as_64_bits(right))
    if any(pa.types.is_null(kind) for kind in kinds):
        other = next((kind for kind in kinds if not pa.types.is_null(kind)), pa.int64())
        return pa.scalar(None, other)
    lengths = any(pa.types.is_duration(kind) for kind in kinds)
    if sign not in ("+", "-") or not all(is_moment(kind) or pa.types.is_duration(kind) for kind in kinds):
        if lengths and sign in ("*", "/"):
            return None
        raise pa.ArrowTypeError("a number beside something else")
    if sign == "-" and is_moment(kinds[0]) and is_moment(kinds[1]):
        left, right = _same_zone(left, right)
    elif pa.types.is_date(kinds[0]):
        left = left.cast(pa.timestamp("us"))
    try:
        return {"+": pc.add_checked, "-": pc.subtract_checked}[sign](left, right)
    except pa.ArrowInvalid:
        return None


def _checked(compute: Callable[..., Column], exact: Callable[..., object], *columns: Column) -> Column:
    """A result of arithmetic; NULL where a whole number does not fit 64 bits, as Spark's try_add says."""
    try:
        return compute(*columns)
    except pa.ArrowInvalid:  # an overflow somewhere: rare, so row by row
        length = next((len(column) for column in columns if not isinstance(column, pa.Scalar)), None)
        rows = zip(*[listed(column, 1 if length is None else length) for column in columns], strict=True)
        found = pa.array([None if None in row else within_64_bits(exact(*row)) for row in rows], pa.int64())
        return found if length is not None else found[0]


def opposite(column: Column) -> Column:
    """-x, NULL for the least whole number."""
    if pa.types.is_decimal(column.type):
        wanted = precision(column)

        def opposite_decimal(value: Decimal) -> Decimal | None:
            found = negative(value)
            return None if found is None else fitted(found, wanted)

        return decimal_columns.row_by_row(opposite_decimal, (column,), column.type)
    return _checked(pc.negate_checked, lambda number: -number, column)


def arithmetic(sign: str, left: Column, right: Column) -> Column:
    """`+ - * / % div` with SQL's NULL; division and remainder by zero are NULL, % keeps the sign of the left side."""
    if _are_decimals(left, right):
        return decimal_columns.calculated(sign, left, right)
    left, right = _as_numbers(left, right)
    if sign in _ARITHMETIC:
        return without_nan(_checked(*_ARITHMETIC[sign], left, right))
    zero = pc.equal(right, 0)
    if sign == "/":
        divisor = pc.if_else(zero, pa.scalar(None, pa.float64()), pc.cast(right, pa.float64(), safe=False))
        return without_nan(pc.divide(pc.cast(left, pa.float64(), safe=False), divisor))
    if sign == "div":
        divisor = pc.if_else(zero, pa.scalar(None, pa.int64()), right)
        opposed = pc.and_(pc.equal(left, LEAST), pc.equal(right, -1))
        return pc.if_else(opposed, pa.scalar(None, pa.int64()), pc.divide(left, divisor))
    whole = pa.types.is_integer(left.type) and pa.types.is_integer(right.type)
    kind = pa.int64() if whole else pa.float64()
    divisor = pc.if_else(zero, pa.scalar(None, kind), pc.cast(right, kind, safe=False))
    known = pc.and_(pc.is_valid(left), pc.is_valid(divisor))
    with np.errstate(invalid="ignore"):
        rest = np.fmod(_numbers(pc.fill_null(pc.cast(left, kind, safe=False), 0)), _numbers(pc.fill_null(divisor, 1)))
    if np.ndim(rest) == 0:
        return pa.scalar(rest.item() if known.as_py() else None, kind)
    return without_nan(pc.if_else(known, pa.array(rest, kind), pa.scalar(None, kind)))


def _numbers(column: Column) -> Any:
    return column.as_py() if isinstance(column, pa.Scalar) else column.to_numpy()

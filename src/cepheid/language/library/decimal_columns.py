"""Decimals over whole columns: Arrow's functions where their types are Spark's, else row by row."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.language.library import decimals
from cepheid.language.library.operators import calculate

Column: TypeAlias = Any  # a pyarrow Array, ChunkedArray or Scalar

_ARROW = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COMPARE = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_EXACT_DIGITS, _EXACT_POWERS = 15, 22  # numbers and powers of ten that doubles hold exactly


def is_decimal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind))


def precision(column: Column) -> decimals.Precision:
    """The digits that the values of a column have; those of a constant are as it is written."""
    if is_decimal(column.type):
        return column.type.precision, column.type.scale
    if isinstance(column, pa.Scalar) and column.is_valid:
        return decimals.precision_of(column.as_py())
    return decimals.OF_WHOLE


def decimal_type(of: decimals.Precision) -> pa.DataType:
    return pa.decimal128(*of)


def as_decimals(column: Column, wanted: decimals.Precision) -> Column:
    """Whole numbers and decimals in a type; rounded if it has fewer digits behind the point, NULL if in front of it."""
    kind = decimal_type(wanted)
    if column.type == kind:
        return column
    own = decimals.OF_WHOLE if pa.types.is_integer(column.type) else (column.type.precision, column.type.scale)
    if isinstance(column, pa.Scalar) or own[1] > wanted[1] or own[0] - own[1] > wanted[0] - wanted[1]:
        return row_by_row(lambda value: decimals.fitted(decimals.as_decimal(value), wanted), (column,), kind)
    if pa.types.is_integer(column.type):
        column = column.cast(pa.int64()).cast(pa.decimal128(19, 0))
    return column.cast(kind)


def as_doubles(column: Column) -> Column:
    """Decimals as the doubles next to them; Arrow's own cast may miss them by a bit."""
    if isinstance(column, pa.Scalar):
        value = column.as_py()
        return pa.scalar(None if value is None else float(value), pa.float64())
    kind = column.type
    if not is_decimal(kind):
        return pc.cast(column, pa.float64(), safe=False)
    if kind.precision <= _EXACT_DIGITS and kind.scale <= _EXACT_POWERS:
        whole = column.cast(pa.decimal128(decimals.MOST, kind.scale))
        parts = whole.chunks if isinstance(whole, pa.ChunkedArray) else [whole]
        found = [pa.array(low_half(part) / 10.0**kind.scale, pa.float64(), mask=nulls(part)) for part in parts]
        return pa.chunked_array(found, pa.float64()) if isinstance(whole, pa.ChunkedArray) else found[0]
    return rebuilt(column, [None if value is None else float(value) for value in column.to_pylist()], pa.float64())


def converted(column: Column, kind: pa.DataType) -> Column:
    """Values in another type that holds them; NULL alone has none of its own."""
    if isinstance(column, pa.Scalar) and not column.is_valid:
        return pa.scalar(None, kind)
    if column.type == kind:
        return column
    if is_decimal(kind):
        return as_decimals(column, (kind.precision, kind.scale))
    return as_doubles(column) if is_decimal(column.type) else pc.cast(column, kind, safe=False)


def common_kind(columns: Sequence[Column]) -> pa.DataType | None:
    """The type that holds the values of all columns; None without one, ArrowTypeError if they do not go together."""
    kinds = list(dict.fromkeys(each.type for each in columns if not _is_nothing(each)))
    if len(kinds) < 2:
        return kinds[0] if kinds else None
    if all(map(_is_number, kinds)):
        if any(pa.types.is_floating(kind) for kind in kinds):
            return pa.float64()
        if not any(map(is_decimal, kinds)):
            return pa.int64() if any(kind.bit_width > 32 for kind in kinds) else pa.int32()
        return decimal_type(
            decimals.widest([(kind.precision, kind.scale) if is_decimal(kind) else decimals.OF_WHOLE for kind in kinds])
        )
    if all(pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in kinds):
        return pa.string()
    if all(pa.types.is_timestamp(kind) or pa.types.is_date(kind) for kind in kinds):
        return next((kind for kind in kinds if pa.types.is_timestamp(kind)), kinds[0])
    raise pa.ArrowTypeError(f"no type that {', '.join(map(str, kinds))} have in common")


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or is_decimal(kind))


def _is_nothing(column: Column) -> bool:
    """Is it NULL as it is written, which has no type of its own?"""
    if pa.types.is_null(column.type):
        return True
    return isinstance(column, pa.Scalar) and not column.is_valid and pa.types.is_boolean(column.type)


def computed(column: Column, beside: Column) -> Column:
    """A whole number that was computed, beside a decimal: it has the digits of its type, not those of a constant."""
    if isinstance(column, pa.Scalar) and pa.types.is_integer(column.type) and is_decimal(beside.type):
        return as_decimals(column, decimals.OF_WHOLE)
    return column


def low_half(column: pa.Array) -> npt.NDArray[np.int64]:
    """The lower 64 bits of the unscaled values of decimal128: all of them, where they have at most 18 digits."""
    return _halves(column)[0::2]


def high_half(column: pa.Array) -> npt.NDArray[np.int64]:
    """The upper 64 bits."""
    return _halves(column)[1::2]


def _halves(column: pa.Array) -> npt.NDArray[np.int64]:
    if not len(column):
        return np.zeros(0, np.int64)
    data = np.frombuffer(column.buffers()[1], np.int64)[2 * column.offset : 2 * (column.offset + len(column))]
    if column.null_count:  # what lies under a NULL is undefined
        data = np.where(np.repeat(nulls(column), 2), 0, data)
    return data


def nulls(column: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = np.asarray(column.is_null().to_numpy(zero_copy_only=False), bool)
    return found


def rebuilt(like: Column, values: list[Any], kind: pa.DataType) -> Column:
    """Values as a column of the same shape."""
    found = pa.array(values, kind)
    return pa.chunked_array([found]) if isinstance(like, pa.ChunkedArray) else found


def calculated(sign: str, left: Column, right: Column) -> Column:
    """`left sign right`, of which one is a decimal and the other a decimal or a whole number."""
    types = precision(left), precision(right)
    wanted = decimals.type_of_result(sign, *types)
    if sign in _ARROW and _is_plain(sign, *types):
        found = _ARROW[sign](as_decimals(left, types[0]), as_decimals(right, types[1]))
        return found if found.type == decimal_type(wanted) else found.cast(decimal_type(wanted))
    return row_by_row(lambda one, other: calculate(sign, one, other, wanted), (left, right), decimal_type(wanted))


def _is_plain(sign: str, left: decimals.Precision, right: decimals.Precision) -> bool:
    """Does the exact result always fit, so that nothing is rounded?"""
    if sign == "*":
        return left[0] + right[0] + 1 <= decimals.MOST
    scale = max(left[1], right[1])
    return max(left[0] - left[1], right[0] - right[1]) + scale + 1 <= decimals.MOST


def compared(sign: str, left: Column, right: Column) -> Column:
    """A comparison of decimals and whole numbers."""
    types = precision(left), precision(right)
    wanted = decimals.widest(types)
    if all(wanted[0] - wanted[1] >= each[0] - each[1] and wanted[1] >= each[1] for each in types):
        return COMPARE[sign](as_decimals(left, wanted), as_decimals(right, wanted))
    test = _PYTHON[sign]
    return row_by_row(test, (left, right), pa.bool_())


def row_by_row(call: Callable[..., object], columns: tuple[Column, ...], kind: pa.DataType) -> Column:
    """A function of each row's values, NULL where one is."""
    length = next((len(column) for column in columns if not isinstance(column, pa.Scalar)), None)
    lists = [
        [column.as_py()] * (1 if length is None else length) if isinstance(column, pa.Scalar) else column.to_pylist()
        for column in columns
    ]
    values = [None if None in row else call(*row) for row in zip(*lists, strict=True)]
    if length is None:
        return pa.scalar(values[0], kind)
    return rebuilt(next(column for column in columns if not isinstance(column, pa.Scalar)), values, kind)

"""Expressions over whole columns: conditions on one event before any matching, and RETURN after it.

Arrow's compute functions carry NULL as SQL does; NaN counts as NULL.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.budget import paced
from cepheid.errors import DataError
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.functions import find_function
from cepheid.language.library import decimal_columns
from cepheid.language.library.decimal_columns import (
    as_doubles,
    common_kind,
    computed,
    converted,
    decimal_type,
    precision,
)
from cepheid.language.library.decimals import MOST, as_decimal, fitted
from cepheid.language.library.function import Function
from cepheid.language.library.growth import check_column
from cepheid.language.library.operators import negative
from cepheid.language.library.value_functions import type_named
from cepheid.language.schema import DataType, Schema, data_type
from cepheid.language.whole import LEAST, within_64_bits

Column: TypeAlias = Any  # a pyarrow Array, ChunkedArray or Scalar; pyarrow carries no types
Resolve = Callable[[s.Expression], Column]  # an attribute, length or aggregate -> its values, one per row

_COMPARE = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_ARITHMETIC = {
    "+": (pc.add_checked, operator.add),
    "-": (pc.subtract_checked, operator.sub),
    "*": (pc.multiply_checked, operator.mul),
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


def condition(node: s.Expression, resolve: Resolve, any_null: bool = False, lacking: Resolve | None = None) -> Column:
    """True where the condition holds; unknown counts as false.

    With `any_null`, a comparison with a NULL attribute counts as true (components declared with ANY); with `lacking`
    where that says so, and nowhere else (see `lacking_by_type`).
    """
    match node:
        case s.And(operands=operands):
            return _fold(pc.and_, [condition(operand, resolve, any_null, lacking) for operand in operands])
        case s.Or(operands=operands):
            return _fold(pc.or_, [condition(operand, resolve, any_null, lacking) for operand in operands])
        case s.Not(operand=operand):
            return pc.fill_null(pc.invert(value(operand, resolve)), False)
        case s.Comparison() | s.Membership() | s.Between() if any_null or lacking is not None:
            known = pc.fill_null(value(node, resolve), False)
            attributes = [inner for inner in s.walk(node) if isinstance(inner, s.Attribute)]
            return _fold(pc.or_, [known, *(lacking(a) if lacking else pc.is_null(resolve(a)) for a in attributes)])
    return pc.fill_null(value(node, resolve), False)


def lacking_by_type(table: pa.Table, schema: Schema) -> Resolve | None:
    """Where events have no such attribute, as a call said of their types with `lacks`; None if it said nothing."""
    if not schema.lacks or schema.type is None:
        return None
    types = value_column(table.column(schema.type))

    def lacking(node: Any) -> Column:
        named = schema.types_lacking(node.name)
        if not named:
            return pa.scalar(False)
        return pc.and_(pc.is_null(table.column(node.name)), pc.is_in(types, value_set=pa.array(named, types.type)))

    return lacking


def value(node: s.Expression, resolve: Resolve) -> Column:
    """The values of an expression, NULL where it is unknown."""
    match node:
        case s.Literal(value=literal):
            return pa.scalar(literal, pa.bool_() if literal is None else None)
        case s.Attribute() | s.Length() | s.PathValue() | s.Reference():
            return resolve(node)
        case s.Call(function=function) if function.lower() in AGGREGATES:
            return resolve(node)
        case s.Call(function=function, arguments=arguments):
            return _call(function, arguments, resolve)
        case s.Negative(operand=operand):
            return opposite(value(operand, resolve))
        case s.Arithmetic(operator=operator, left=left, right=right):
            one, other = value(left, resolve), value(right, resolve)
            one = one if isinstance(left, s.Literal) else computed(one, other)
            return arithmetic(operator, one, other if isinstance(right, s.Literal) else computed(other, one))
        case s.Comparison(operator=operator, left=left, right=right):
            return compared(operator, value(left, resolve), value(right, resolve))
        case s.Membership(operand=operand, values=tuple() as members, negated=negated):
            found = _member(value(operand, resolve), members, resolve)
            return pc.invert(found) if negated else found
        case s.Between(operand=operand, low=low, high=high, negated=negated):
            middle = value(operand, resolve)
            above, below = compared(">=", middle, value(low, resolve)), compared("<=", middle, value(high, resolve))
            inside = pc.and_kleene(above, below)
            return pc.invert(inside) if negated else inside
        case s.IsNull(operand=operand, negated=negated):
            known = value(operand, resolve)
            return pc.is_valid(known) if negated else pc.is_null(known)
        case s.And(operands=operands):  # as a value, unknown stays unknown
            return _fold(pc.and_kleene, [value(operand, resolve) for operand in operands])
        case s.Or(operands=operands):
            return _fold(pc.or_kleene, [value(operand, resolve) for operand in operands])
        case s.Not(operand=operand):
            return pc.invert(value(operand, resolve))
    raise TypeError(f"no column for {type(node).__name__}")


def _fold(combine: Callable[[Any, Any], Any], parts: list[Column]) -> Column:
    result = parts[0]
    for part in parts[1:]:
        result = combine(result, part)
    return result


def compared(operator: str, left: Column, right: Column) -> Column:
    """A comparison with SQL's NULL."""
    for side in (left, right):
        if isinstance(side, pa.Scalar) and not side.is_valid:
            other = right if side is left else left
            return _nothing(other, pa.bool_())
    if _are_decimals(left, right):
        return decimal_columns.compared(operator, left, right)
    return _COMPARE[operator](*_as_numbers(left, right))


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


def _nothing(like: Column, kind: pa.DataType) -> Column:
    return pa.scalar(None, kind) if isinstance(like, pa.Scalar) else pa.nulls(len(like), kind)


def _member(operand: Column, members: tuple[s.Expression, ...], resolve: Resolve) -> Column:
    literal = [member.value for member in members if isinstance(member, s.Literal)]
    if len(literal) == len(members) and None not in literal and not isinstance(operand, pa.Scalar):
        kind = operand.type
        alike: set[type] = {int} if pa.types.is_integer(kind) else {str} if pa.types.is_string(kind) else {int, float}
        alike = {bool} if pa.types.is_boolean(kind) else alike
        if not pa.types.is_decimal(kind) and {type(item) for item in literal} <= alike:
            if pa.types.is_floating(kind):  # -0.0 is 0.0, but hashes differ
                operand, literal = pc.add(operand, 0.0), [float(item or 0) + 0.0 for item in literal]
            found = pc.is_in(operand, value_set=pa.array(literal, kind))
            return pc.if_else(pc.is_null(operand), pa.scalar(None, pa.bool_()), found)
    return _fold(pc.or_kleene, [compared("=", operand, value(member, resolve)) for member in members])


def _checked(compute: Callable[..., Column], exact: Callable[..., Any], *columns: Column) -> Column:
    """A result of arithmetic; NULL where a whole number does not fit 64 bits, as Spark's try_add says."""
    try:
        return compute(*columns)
    except pa.ArrowInvalid:  # an overflow somewhere: rare, so row by row
        length = next((len(column) for column in columns if not isinstance(column, pa.Scalar)), None)
        rows = zip(*[_repeated(column, 1 if length is None else length) for column in columns], strict=True)
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


def listed(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column as Python's; its times end with the year 9999, and others are NULL.

    >>> listed(pa.array([0, 2**58], pa.timestamp("us")))
    [datetime.datetime(1970, 1, 1, 0, 0), None]
    """
    try:
        found: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        if not pa.types.is_temporal(column.type) or pa.types.is_duration(column.type):
            raise
        first, last = (pa.scalar(end).cast(column.type) for end in (datetime.min, datetime.max))
        inside = pc.and_(pc.greater_equal(column, first), pc.less_equal(column, last))
        found = pc.if_else(inside, column, pa.scalar(None, column.type)).to_pylist()
    return found


def without_nan(column: Column) -> Column:
    """A column in which NULL stands for what is not a number."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)


ARROW_KINDS = {  # what values of a type are in columns
    DataType.BOOL: pa.bool_(),
    DataType.INT: pa.int64(),
    DataType.FLOAT: pa.float64(),
    DataType.STRING: pa.string(),
    DataType.TIME: pa.int64(),
    DataType.DATE: pa.int64(),
    DataType.TEXTS: pa.list_(pa.string()),
}


def _call(name: str, nodes: tuple[s.Expression, ...], resolve: Resolve) -> Column:
    function = find_function(name)
    assert function is not None
    arguments: list[Any] = [
        node.value if place in function.constants and isinstance(node, s.Literal) else value(node, resolve)
        for place, node in enumerate(nodes)
    ]
    return called(function, arguments)


def called(function: Function, arguments: list[Any]) -> Column:
    """A function over columns and constants: by its form for columns, else called once for each row."""
    constants = function.constants_of(arguments)
    columns = [each for place, each in enumerate(arguments) if place not in function.constants]
    kind = _result_kind(function, columns, constants)
    if function.strict and any(isinstance(column, pa.Scalar) and not column.is_valid for column in columns):
        return _nothing(next((c for c in columns if not isinstance(c, pa.Scalar)), columns[0]), kind)
    if function.name in ("coalesce", "ifnull", "nvl"):
        return pc.coalesce(*(converted(each, kind) for each in arguments))
    if function.columnwise is not None:
        if not function.strict and function.typed is None and function.result is None:
            arguments = [converted(each, kind) for each in arguments]
        check_column(function.name, arguments)
        return _plain_column(function.columnwise(*arguments))
    if function.name == "array":
        arguments = [converted(each, kind.value_type) for each in arguments]
    return _row_by_row(function, arguments, kind)


def _row_by_row(function: Function, arguments: list[Any], kind: pa.DataType) -> Column:
    """One call for each row; where it depends on one column of texts, one for each distinct text."""
    columns = [each for each in arguments if isinstance(each, pa.Array | pa.ChunkedArray)]
    if len(columns) == 1 and pa.types.is_string(columns[0].type) and function.strict:
        coded = pc.dictionary_encode(columns[0])
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        distinct = [coded.dictionary if each is columns[0] else each for each in arguments]
        return _called(function, distinct, len(coded.dictionary), kind).take(coded.indices)
    length = len(columns[0]) if columns else None
    found = _called(function, arguments, 1 if length is None else length, kind)
    return found if length is not None else found[0]


def _called(function: Function, arguments: list[Any], length: int, kind: pa.DataType) -> pa.Array:
    rows = zip(*[_repeated(each, length) for each in arguments], strict=True)
    strict = function.strict
    results = [None if strict and _has_null(row) else _plain(function.apply(*row)) for row in paced(rows)]
    if pa.types.is_decimal(kind):
        results = [None if each is None else fitted(as_decimal(each), (kind.precision, kind.scale)) for each in results]
    elif pa.types.is_floating(kind):
        results = [None if each is None else float(each) for each in results]
    return without_nan(pa.array(results, kind))


def _has_null(row: tuple[Any, ...]) -> bool:
    return any(each is None for each in row)


def _result_kind(function: Function, columns: list[Any], constants: list[Any]) -> pa.DataType:
    if function.name in ("cast", "try_cast"):
        named = type_named(constants[0])
        assert named is not None
        return ARROW_KINDS[named[0]] if named[1] is None else decimal_type(named[1])
    if function.name == "decimal of":
        return decimal_type((constants[1], constants[0]))
    if function.name == "array":
        return pa.list_(common_kind(columns) or pa.float64())
    values = columns[:1] if function.name == "nullif" else columns
    decimals = any(pa.types.is_decimal(each.type) for each in values)
    if function.result is not None and not (decimals and function.precision is not None):
        return ARROW_KINDS[function.result]
    if not decimals or any(pa.types.is_floating(each.type) for each in values):
        return common_kind(values if function.name not in ("case", "if", "iff") else columns[1::2]) or pa.bool_()
    numbers = [precision(each) for each in values if each.type != pa.bool_()]
    return decimal_type(function.precision(numbers, constants) if function.precision is not None else numbers[0])


def _plain_column(column: Column) -> Column:
    """A result in the types that conditions know: elements of lists and maps come in their own."""
    if isinstance(column, pa.Scalar):
        known = pa.chunked_array([pa.array([column.as_py()], column.type)])
        return column if column.type in _PLAINARROW_KINDS else value_column(known)[0]
    if column.type not in _PLAINARROW_KINDS and not pa.types.is_nested(column.type):
        column = value_column(pa.chunked_array([column]) if isinstance(column, pa.Array) else column)
    return without_nan(column)


_PLAINARROW_KINDS = frozenset({pa.bool_(), pa.int64(), pa.string()})


def _repeated(column: Column, length: int) -> list[Any]:
    """The values of a column, or a constant so many times."""
    if isinstance(column, pa.Array | pa.ChunkedArray):
        values: list[Any] = column.to_pylist()
        return values
    return [column.as_py() if isinstance(column, pa.Scalar) else column] * length


def _plain(result: Any) -> Any:
    value = result.item() if hasattr(result, "item") else result
    return None if isinstance(value, float) and math.isnan(value) else within_64_bits(value)

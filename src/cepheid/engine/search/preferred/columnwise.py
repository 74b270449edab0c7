"""Expressions over whole columns: Arrow's functions where it has them, Python's, value by value, where not.

NULL is SQL's. What an expression reads of rows (columns, navigation, aggregates) the caller resolves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.budget import paced
from cepheid.errors import QueryError
from cepheid.language.functions import find_function
from cepheid.language.library.growth import check_column
from cepheid.language.match_recognize.bound import Apply, Bound, Constant
from cepheid.language.match_recognize.evaluate import function_of
from cepheid.language.match_recognize.functions import FUNCTIONS
from cepheid.language.match_recognize.scalars import REAL, TEXT, WHOLE, type_parts
from cepheid.language.schema import DataType

Values: TypeAlias = Any  # a pyarrow Array or Scalar; pyarrow carries no types
Resolve: TypeAlias = Callable[[Bound], Values]

_COMPARE = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_TYPES = {
    "double": pa.float64(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}
_WHOLE_TYPES = {"bigint": pa.int64(), "long": pa.int64(), "smallint": pa.int16(), "short": pa.int16()}
_WHOLE_TYPES |= {"tinyint": pa.int8(), "byte": pa.int8()}


def evaluate(expression: Bound, resolve: Resolve, length: int, text: str = "") -> Values:
    """The values of an expression, one per row, or a scalar that holds for every row."""
    if isinstance(expression, Constant):
        return constant(expression.value)
    if not isinstance(expression, Apply):
        return resolve(expression)
    arguments = [evaluate(argument, resolve, length, text) for argument in expression.arguments]
    try:
        return _apply(expression, arguments, length)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, TypeError, AttributeError) as error:
        kinds = ", ".join(str(argument.type) for argument in arguments)
        start, end = expression.span
        message = f"{expression.function.upper()} of {kinds} is not possible"
        hint = "cast one of them" if len(arguments) > 1 else None
        raise QueryError(message, text=text or None, start=start, end=end, hint=hint, code="types") from error


def constant(value: Any) -> pa.Scalar:
    """A value as an Arrow scalar."""
    if isinstance(value, datetime):
        return pa.scalar(value, pa.timestamp("us", "UTC" if value.tzinfo else None))
    if isinstance(value, timedelta):
        return pa.scalar(value, pa.duration("us"))
    if isinstance(value, int) and not isinstance(value, bool):
        return pa.scalar(value, pa.int64() if abs(value) < 2**63 else pa.decimal128(38))
    return pa.scalar(value)


def whole(values: Values, length: int) -> pa.Array:
    """As many values as there are rows, in one piece."""
    if isinstance(values, pa.Scalar):
        return pa.array([values.as_py()] * length, values.type) if length < 2 else pa.repeat(values, length)
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()
    return values


def plain(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A table's column as expressions see it: in one piece, no dictionary, one type of strings."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(column, pa.ChunkedArray):  # more than two billion characters
        raise QueryError("a string column is too large", hint="cut the table", code="too-large")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    return column


def common_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """The type that values of several types are brought to."""
    known = [kind for kind in types if not pa.types.is_null(kind)]
    if not known:
        return pa.null()
    if all(kind == known[0] for kind in known):
        return known[0]
    if all(pa.types.is_integer(kind) for kind in known):
        return pa.int64() if any(kind.bit_width > 32 for kind in known) else pa.int32()
    if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) for kind in known):
        return pa.float64()
    if all(pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in known):
        return pa.string()
    if all(pa.types.is_timestamp(kind) or pa.types.is_date(kind) for kind in known):
        return next((kind for kind in known if pa.types.is_timestamp(kind)), known[0])
    raise pa.ArrowTypeError(f"no type that {known} have in common")


def _apply(node: Apply, arguments: list[Values], length: int) -> Values:
    name = node.function
    if name in _COMPARE and not any(pa.types.is_nested(argument.type) for argument in arguments):
        return _COMPARE[name](*_alike(*arguments))
    if name in ("+", "-", "*"):
        return _arithmetic(node, arguments, length)
    if name in ("/", "whole /", "div", "%"):
        return _division(node, arguments, length)
    match name:
        case "and":
            return pc.and_kleene(*(_boolean(argument) for argument in arguments))
        case "or":
            return pc.or_kleene(*(_boolean(argument) for argument in arguments))
        case "not":
            return pc.invert(_boolean(arguments[0]))
        case "is null" | "isnull":
            return pc.is_null(arguments[0])
        case "isnotnull":
            return pc.is_valid(arguments[0])
        case "negative":
            return pc.negate(arguments[0])
        case "in":
            tests = [pc.equal(*_alike(arguments[0], item)) for item in arguments[1:]]
            result = tests[0]
            for test in tests[1:]:
                result = pc.or_kleene(result, test)
            return result
        case "case" | "if" | "iff":
            values = [*arguments, pa.scalar(None)] if len(arguments) % 2 == 0 else arguments
            return _choose(values, length)
        case "coalesce" | "nvl" | "ifnull":
            kind = common_type([argument.type for argument in arguments])
            return pc.coalesce(*(argument.cast(kind) for argument in arguments))
        case "<=>":
            left, right = _alike(*arguments)
            both_null = pc.and_(pc.is_null(left), pc.is_null(right))
            return pc.or_(both_null, pc.fill_null(pc.equal(left, right), False))
        case "field":
            return _field(arguments[0], str(node.target))
        case "cast":
            fast = _fast_cast(arguments[0], str(node.target))
            if fast is not None:
                return fast
        case "lower" | "lcase" if pa.types.is_string(arguments[0].type):
            return pc.utf8_lower(arguments[0])
        case "upper" | "ucase" if pa.types.is_string(arguments[0].type):
            return pc.utf8_upper(arguments[0])
        case "abs":
            return pc.abs(arguments[0])
        case "||" if all(pa.types.is_string(argument.type) for argument in arguments):
            check_column(name, arguments)
            return pc.binary_join_element_wise(*arguments, "")
        case "like" if len(arguments) == 2 and isinstance(arguments[1], pa.Scalar) and arguments[1].is_valid:
            return pc.match_like(arguments[0], arguments[1].as_py())
    return _one_by_one(node, arguments, length)


def _field(values: Values, name: str) -> Values:
    if not pa.types.is_struct(values.type):
        raise pa.ArrowTypeError("no struct")
    found = [field.name for field in values.type if field.name == name] or [
        field.name for field in values.type if field.name.lower() == name.lower()
    ]
    if not found:
        raise pa.ArrowTypeError(f"no field {name}")
    return pc.struct_field(values, found[0])


def _boolean(values: Values) -> Values:
    if not pa.types.is_boolean(values.type) and not pa.types.is_null(values.type):
        raise pa.ArrowTypeError(f"{values.type} is not true or false")
    return values.cast(pa.bool_())


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _alike(left: Values, right: Values) -> tuple[Values, Values]:
    """Two operands of a comparison brought to one type; a string beside a time is read as a time."""
    for one, other in ((left, right), (right, left)):
        if _is_moment(one.type) and pa.types.is_string(other.type):
            parsed = _moments(other, one.type)
            return (left, parsed) if other is right else (parsed, right)
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        kind = common_type([left.type, right.type])
        return left.cast(kind), right.cast(kind)
    numbers = _is_number(left.type), _is_number(right.type)
    if numbers[0] != numbers[1]:
        raise pa.ArrowTypeError("a number beside something else")
    if _is_moment(left.type) and _is_moment(right.type) and left.type != right.type:
        return _same_zone(left, right)
    return left, right


def _moments(values: Values, kind: pa.DataType) -> Values:
    target = kind if pa.types.is_timestamp(kind) else pa.timestamp("us")
    if isinstance(values, pa.Scalar):
        parsed = None if not values.is_valid else datetime.fromisoformat(values.as_py())
        return pa.scalar(parsed, pa.timestamp("us")).cast(target)
    return values.cast(pa.timestamp("us")).cast(target)


def _same_zone(left: Values, right: Values) -> tuple[Values, Values]:
    zone = next((kind.tz for kind in (left.type, right.type) if pa.types.is_timestamp(kind) and kind.tz), None)
    target = pa.timestamp("us", zone)
    return left.cast(target), right.cast(target)


def _arithmetic(node: Apply, arguments: list[Values], length: int) -> Values:
    left, right = arguments
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        kind = common_type([left.type, right.type])
        return pa.scalar(None, pa.int64() if pa.types.is_null(kind) else kind)
    if pa.types.is_decimal(left.type) or pa.types.is_decimal(right.type):
        if pa.types.is_floating(left.type) or pa.types.is_floating(right.type):
            left, right = left.cast(pa.float64()), right.cast(pa.float64())
    elif _is_number(left.type) != _is_number(right.type) and not pa.types.is_duration(left.type):
        raise pa.ArrowTypeError("a number beside something else")
    if node.function == "-" and _is_moment(left.type) and _is_moment(right.type):
        left, right = _same_zone(left, right)
    if _is_moment(left.type) and pa.types.is_duration(right.type) and pa.types.is_date(left.type):
        left = left.cast(pa.timestamp("us"))
    return {"+": pc.add, "-": pc.subtract, "*": pc.multiply}[node.function](left, right)


def _division(node: Apply, arguments: list[Values], length: int) -> Values:
    left, right = arguments
    kinds = (left.type, right.type)
    if any(pa.types.is_decimal(kind) or pa.types.is_duration(kind) for kind in kinds):
        return _one_by_one(node, arguments, length)
    if not all(_is_number(kind) or pa.types.is_null(kind) for kind in kinds):
        raise pa.ArrowTypeError("numbers are divided")
    whole_numbers = all(pa.types.is_integer(kind) for kind in kinds)
    if node.function == "/" or not whole_numbers:
        left, right = left.cast(pa.float64()), right.cast(pa.float64())
    safe = _nonzero(right)
    if node.function == "%":
        if whole_numbers:
            return pc.subtract(left, pc.multiply(safe, pc.divide(left, safe)))
        return _one_by_one(node, arguments, length)
    quotient = pc.divide(left, safe)
    return pc.trunc(quotient).cast(pa.int64()) if node.function == "div" and not whole_numbers else quotient


def _nonzero(values: Values) -> Values:
    if isinstance(values, pa.Scalar):
        return values if values.as_py() else pa.scalar(None, values.type)
    return pc.if_else(pc.equal(values, 0), pa.scalar(None, values.type), values)


def _choose(parts: list[Values], length: int) -> Values:
    """CASE: the last value is for where no test holds."""
    kind = common_type([value.type for value in [*parts[1::2], parts[-1]]])
    result = parts[-1].cast(kind)
    for test, value in reversed(list(zip(parts[:-1:2], parts[1::2], strict=True))):
        result = pc.if_else(pc.fill_null(_boolean(test), False), value.cast(kind), result)
    return result


def _fast_cast(values: Values, target: str) -> Values | None:
    name, numbers = type_parts(target)
    if name in REAL and (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        return values.cast(pa.float64())
    if name in WHOLE and (pa.types.is_integer(values.type)):
        return values.cast(_WHOLE_TYPES.get(name, pa.int32()), safe=False)
    if name in TEXT and pa.types.is_string(values.type) and not numbers:
        return values
    return None


def cast_type(target: str) -> pa.DataType:
    """The Arrow type that a CAST gives."""
    name, numbers = type_parts(target)
    if name in WHOLE:
        return _WHOLE_TYPES.get(name, pa.int32())
    if name in REAL:
        return pa.float64()
    if name in TEXT:
        return pa.string()
    if name in ("decimal", "dec"):
        return pa.decimal128(*(numbers or (10, 0)))
    return {"boolean": pa.bool_(), "bool": pa.bool_(), "date": pa.date32()}.get(name, pa.timestamp("us"))


def _one_by_one(node: Apply, arguments: list[Values], length: int) -> Values:
    """The function of each row's values, in Python."""
    function = function_of(node)
    kind = _result_type(node, [argument.type for argument in arguments])
    if all(isinstance(argument, pa.Scalar) for argument in arguments):
        return pa.scalar(fitting(function(*(argument.as_py() for argument in arguments)), kind), kind)
    lists = [[a.as_py()] * length if isinstance(a, pa.Scalar) else a.to_pylist() for a in arguments]
    return pa.array([fitting(function(*row), kind) for row in paced(zip(*lists, strict=True))], kind)


def fitting(value: Any, kind: pa.DataType) -> Any:
    """A value that Arrow takes for the type."""
    if value is None:
        return None
    if pa.types.is_floating(kind) and not isinstance(value, float):
        return float(value)
    if pa.types.is_decimal(kind):
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-kind.scale))
    if pa.types.is_timestamp(kind) and isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value


def _result_type(node: Apply, types: list[pa.DataType]) -> pa.DataType:
    if node.function == "cast":
        return cast_type(str(node.target))
    known = FUNCTIONS.get(node.function)
    if known is None:
        return _operator_type(node.function, types)
    if isinstance(known.result, int):
        return common_type(types[known.result :]) if known.nulls else types[known.result]
    if known.result == "array":
        return pa.list_(common_type(types) if types else pa.null())
    if known.result == "element":
        if not pa.types.is_list(types[0]):
            raise pa.ArrowTypeError("not an array")
        return types[0].value_type
    if known.result == "timestamp" and types and pa.types.is_timestamp(types[-1]):
        return types[-1]
    return _TYPES[known.result]


def _operator_type(name: str, types: list[pa.DataType]) -> pa.DataType:
    own = find_function(name)
    if own is not None and own.user:
        return {DataType.BOOL: pa.bool_(), DataType.INT: pa.int64()}.get(own.result or DataType.FLOAT, pa.float64())
    if name in ("like", "rlike") or name in _COMPARE:
        return pa.bool_()
    if name == "element":
        if not pa.types.is_list(types[0]):
            raise pa.ArrowTypeError("not an array")
        return types[0].value_type
    if name == "add months":
        return types[0] if _is_moment(types[0]) else pa.timestamp("us")
    if name == "||":
        return types[0] if pa.types.is_list(types[0]) else pa.string()
    if name == "/" and pa.types.is_duration(types[0]):
        return pa.float64() if pa.types.is_duration(types[1]) else types[0]
    if name in ("/", "whole /", "div", "%"):
        return pa.float64()
    return common_type(types)


def flags(values: Values, length: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """1 where a condition is true: neither false nor unknown."""
    if not pa.types.is_boolean(values.type) and not pa.types.is_null(values.type):
        raise pa.ArrowTypeError(f"{values.type} is not true or false")
    filled = pc.fill_null(whole(values, length).cast(pa.bool_()), False)
    result: np.ndarray[Any, np.dtype[np.uint8]] = filled.to_numpy(zero_copy_only=False).astype(np.uint8)
    return result

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
from cepheid.engine.values.columnwise import arithmetic, called, compared, listed, opposite, without_nan
from cepheid.errors import QueryError
from cepheid.language.functions import find_function
from cepheid.language.library.conversions import number_of_text, truth_of_text, whole_of
from cepheid.language.library.decimal_columns import as_doubles, computed, converted, decimal_type, precision
from cepheid.language.library.decimals import OF_WHOLE, as_decimal, fitted, precision_of, widest
from cepheid.language.library.function import Function
from cepheid.language.library.growth import check_column
from cepheid.language.library.operators import known, moment_of
from cepheid.language.library.text_functions import wrong_like, wrong_regex
from cepheid.language.library.time_functions import keeps_offset
from cepheid.language.match_recognize.bound import Apply, Bound, Constant
from cepheid.language.match_recognize.evaluate import function_of
from cepheid.language.match_recognize.functions import FUNCTIONS, TAKING_TEXTS
from cepheid.language.match_recognize.scalars import (
    BITS,
    DECIMALS,
    REAL,
    SINGLE,
    TEXT,
    WHOLE,
    decimal_parts,
    type_parts,
)
from cepheid.language.schema import DataType, data_type
from cepheid.language.zones import instants_of, name_of

Values: TypeAlias = Any  # a pyarrow Array or Scalar; pyarrow carries no types
Resolve: TypeAlias = Callable[[Bound], Values]

_COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
_TYPES = {
    DataType.FLOAT: pa.float64(),
    DataType.INT: pa.int64(),
    DataType.STRING: pa.string(),
    DataType.BOOL: pa.bool_(),
    DataType.DATE: pa.date32(),
    DataType.TEXTS: pa.list_(pa.string()),
}


def evaluate(expression: Bound, resolve: Resolve, length: int, text: str = "") -> Values:
    """The values of an expression, one per row, or a scalar that holds for every row."""
    if isinstance(expression, Constant):
        return constant(expression.value)
    if not isinstance(expression, Apply):
        return resolve(expression)
    return applied(
        expression, [evaluate(argument, resolve, length, text) for argument in expression.arguments], length, text
    )


def applied(expression: Apply, arguments: list[Values], length: int, text: str = "") -> Values:
    """The values of an application, from those of its arguments."""
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
        return pa.scalar(value, pa.timestamp("us", name_of(value.tzinfo) if value.tzinfo else None))
    if isinstance(value, timedelta):
        return pa.scalar(value, pa.duration("us"))
    if isinstance(value, int) and not isinstance(value, bool):
        return pa.scalar(value, pa.int64())
    if isinstance(value, Decimal):
        return pa.scalar(value, decimal_type(precision_of(value)))
    return pa.scalar(value)


def whole(values: Values, length: int) -> pa.Array:
    """As many values as there are rows, in one piece."""
    if isinstance(values, pa.Scalar):
        return pa.array([values.as_py()] * length, values.type) if length < 2 else pa.repeat(values, length)
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()
    return values


def plain(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A table's column in one piece, no dictionary, one type of strings."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(column, pa.ChunkedArray):  # more than two billion characters
        raise QueryError("a string column is too large", hint="cut the table", code="too-large")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    return column


def read(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A table's column as expressions see it: what is not a number is NULL."""
    column = plain(column)
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        return without_nan(column)
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
    if all(_is_number(kind) for kind in known):
        if any(pa.types.is_floating(kind) for kind in known):
            return pa.float64()
        digits = [(kind.precision, kind.scale) if pa.types.is_decimal(kind) else OF_WHOLE for kind in known]
        return decimal_type(widest(digits))
    if all(pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in known):
        return pa.string()
    if all(pa.types.is_timestamp(kind) or pa.types.is_date(kind) for kind in known):
        return next((kind for kind in known if pa.types.is_timestamp(kind)), known[0])
    raise pa.ArrowTypeError(f"no type that {known} have in common")


def _apply(node: Apply, arguments: list[Values], length: int) -> Values:
    name = node.function
    if name in _COMPARISONS and not any(pa.types.is_nested(argument.type) for argument in arguments):
        return _comparison(node, arguments, length)
    if name in ("+", "-", "*", "/", "whole /", "div", "%"):
        return _arithmetic(node, arguments, length)
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
        case "negative" if _is_number(arguments[0].type):
            return opposite(_as_64_bits(arguments[0]))
        case "in":
            tests = [
                _comparison(Apply("=", (), None, node.span), [arguments[0], item], length) for item in arguments[1:]
            ]
            result = tests[0]
            for test in tests[1:]:
                result = pc.or_kleene(result, test)
            return result
        case "case" | "if" | "iff":
            values = [*arguments, pa.scalar(None)] if len(arguments) % 2 == 0 else arguments
            return _choose(values, length)
        case "coalesce" | "nvl" | "ifnull":
            kind = common_type([argument.type for argument in arguments])
            return pc.coalesce(*(converted(argument, kind) for argument in arguments))
        case "array" if arguments:
            kind = common_type([argument.type for argument in arguments])
            return _one_by_one(node, [converted(argument, kind) for argument in arguments], length)
        case "named_struct":
            return _struct(node, arguments, length)
        case "<=>":
            return _same(arguments, length)
        case "field":
            return _field(arguments[0], str(node.target))
        case "zoned" if _is_moment(arguments[0].type):
            return _in_zone(arguments[0], str(node.target))
        case "cast":
            fast = _fast_cast(arguments[0], str(node.target))
            if fast is not None:
                return fast
        case "||" if all(pa.types.is_string(argument.type) for argument in arguments):
            check_column(name, arguments)
            return pc.binary_join_element_wise(*arguments, "")
        case "like" if len(arguments) == 2 and _is_constant(arguments[1]):
            if wrong_like((arguments[1].as_py(),)) is None and pa.types.is_string(arguments[0].type):
                return pc.match_like(arguments[0], arguments[1].as_py())
        case "rlike" if _is_constant(arguments[1]) and pa.types.is_string(arguments[0].type):
            if wrong_regex((arguments[1].as_py(),)) is None:
                return pc.match_substring_regex(arguments[0], arguments[1].as_py())
    function = FUNCTIONS.get(name)
    if function is not None and not str(node.target).startswith("decimal"):
        found = _by_library(function, arguments)
        if found is not None:
            return found
    return _one_by_one(node, arguments, length)


def _is_constant(values: Values) -> bool:
    return isinstance(values, pa.Scalar) and values.is_valid


# --- functions of the library -----------------------------------------------------------------------------------------


def _by_library(function: Function, arguments: list[Values]) -> Values | None:
    """A function over columns as query text has it; None where values are lists, or not of its types."""
    kinds = [argument.type for argument in arguments]
    if any(pa.types.is_nested(kind) or pa.types.is_duration(kind) or pa.types.is_null(kind) for kind in kinds):
        return None
    if function.result is None and len({data_type(kind) for kind in kinds}) > 1:
        return None
    if function.name in TAKING_TEXTS and not all(pa.types.is_string(kind) for kind in kinds):
        return None
    if any(place < len(arguments) and not _is_constant(arguments[place]) for place in function.constants):
        return None
    accepted = [data_type(kind) in function.accepted(place) for place, kind in enumerate(kinds)]
    if not all(accepted):
        return None
    zone = next((kind.tz for kind in kinds if pa.types.is_timestamp(kind) and kind.tz), None)
    given: list[Any] = [
        each.as_py() if place in function.constants else _library_values(each, function)
        for place, each in enumerate(arguments)
    ]
    if function.wrong is not None and function.wrong(function.constants_of(given)) is not None:
        return None
    found = called(function, given)
    if function.result is DataType.TIME:
        return _library_times(found, function, arguments, zone)
    if function.narrow:
        return found.cast(pa.int32())
    if function.result is None and _is_moment(kinds[0]):
        found = found.cast(pa.timestamp("us", getattr(kinds[0], "tz", None)))
        return found.cast(kinds[0], safe=False)
    return found


def _library_times(found: Values, function: Function, arguments: list[Values], zone: str | None) -> Values:
    """What the library gives as a time, as an instant or as what a clock shows."""
    if function.gives_instant:
        return found.cast(pa.timestamp("us", zone or "UTC"))
    walls = found.cast(pa.timestamp("us"))
    if zone is None or function.gives_instant is False:
        return walls
    near = arguments[1].cast(pa.timestamp("us", zone), safe=False)  # of date_trunc
    return instants_of(walls, zone, near if keeps_offset(arguments[0].as_py()) else None)


def _library_values(values: Values, function: Function) -> Values:
    """Values as the library takes them: whole numbers of 64 bits, doubles, times as the microseconds of a clock."""
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _as_64_bits(values)
    if pa.types.is_date(kind):
        return values.cast(pa.timestamp("us")).cast(pa.int64())
    if pa.types.is_timestamp(kind):
        local = (
            pc.local_timestamp(values) if kind.tz and function.result is not None and not function.instant else values
        )
        return local.cast(pa.timestamp("us", local.type.tz), safe=kind.unit != "ns").cast(pa.int64())
    return values


def _as_64_bits(values: Values) -> Values:
    kind = values.type
    if pa.types.is_integer(kind) and kind != pa.int64():
        return values.cast(pa.int64())
    return values.cast(pa.float64()) if pa.types.is_floating(kind) and kind != pa.float64() else values


# --- operators --------------------------------------------------------------------------------------------------------


def _comparison(node: Apply, arguments: list[Values], length: int) -> Values:
    left, right = arguments
    kinds = (left.type, right.type)
    if any(pa.types.is_null(kind) for kind in kinds):
        return pa.scalar(None, pa.bool_())
    if all(_is_number(kind) for kind in kinds):
        return compared(node.function, _as_64_bits(left), _as_64_bits(right))
    texts = [pa.types.is_string(kind) for kind in kinds]
    if texts[0] != texts[1]:
        other, text = (right, left) if texts[0] else (left, right)
        if _is_moment(other.type) and isinstance(text, pa.Scalar):
            parsed = _moment(text)
            return compared(node.function, *_same_zone(*((parsed, other) if texts[0] else (other, parsed))))
        if not (_is_moment(other.type) or _is_number(other.type) or pa.types.is_boolean(other.type)):
            raise pa.ArrowTypeError("a string beside something else")
        if _is_constant(text) and any(isinstance(argument, Constant) for argument in node.arguments):
            parsed = _as_kind(text.as_py(), other.type)
            return _comparison(node, [parsed, other] if texts[0] else [other, parsed], length)
        return _one_by_one(node, arguments, length)
    if all(_is_moment(kind) for kind in kinds) and kinds[0] != kinds[1]:
        left, right = _same_zone(left, right)
    elif data_type(left.type) is not data_type(right.type) or pa.types.is_duration(kinds[0]) != pa.types.is_duration(
        kinds[1]
    ):
        raise pa.ArrowTypeError("values of different types")
    return compared(node.function, left, right)


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


def _moment(text: pa.Scalar) -> pa.Scalar:
    return constant(moment_of(text.as_py())) if text.is_valid else pa.scalar(None, pa.timestamp("us"))


def _same(arguments: list[Values], length: int) -> Values:
    """IS NOT DISTINCT FROM."""
    left, right = arguments
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    equal = _comparison(Apply("=", ()), arguments, length)
    if isinstance(equal, pa.Scalar) and not equal.is_valid:
        equal = pa.scalar(False)
    return pc.or_(both_null, pc.fill_null(equal, False))


def _struct(node: Apply, arguments: list[Values], length: int) -> pa.Array:
    """A struct of values, from names and values in turns."""
    values = [whole(each, length) for each in arguments[1::2]]
    values = [each.cast(pa.string()) if pa.types.is_null(each.type) else each for each in values]
    names = [str(each.value) for each in node.arguments[::2] if isinstance(each, Constant)]
    return pa.StructArray.from_arrays(values, names)


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


def _same_zone(left: Values, right: Values) -> tuple[Values, Values]:
    """Times beside each other: if one is an instant, so is the other, and it is of the same zone."""
    zone = next((kind.tz for kind in (left.type, right.type) if pa.types.is_timestamp(kind) and kind.tz), None)
    return _in_zone(left, zone), _in_zone(right, zone)


def _in_zone(values: Values, zone: str | None) -> Values:
    """Times as instants of a zone; without one, as they are."""
    if zone is None or getattr(values.type, "tz", None) is not None:
        return values.cast(pa.timestamp("us", zone), safe=False)
    return instants_of(values.cast(pa.timestamp("us"), safe=False), zone)


def _arithmetic(node: Apply, arguments: list[Values], length: int) -> Values:
    left, right = arguments
    name, kinds = node.function, (left.type, right.type)
    if any(pa.types.is_null(kind) for kind in kinds):
        kind = common_type(kinds)
        return pa.scalar(None, pa.int64() if pa.types.is_null(kind) else kind)
    if all(_is_number(kind) for kind in kinds):
        written = [isinstance(argument, Constant) for argument in node.arguments]
        left, right = left if written[0] else computed(left, right), right if written[1] else computed(right, left)
        whole_numbers = all(pa.types.is_integer(kind) for kind in kinds)
        if name == "div" or (name == "whole /" and whole_numbers):
            if not whole_numbers:
                return _one_by_one(node, arguments, length)
            return arithmetic("div", _as_64_bits(left), _as_64_bits(right))
        return arithmetic("/" if name == "whole /" else name, _as_64_bits(left), _as_64_bits(right))
    if name not in ("+", "-") or not all(_is_moment(kind) or pa.types.is_duration(kind) for kind in kinds):
        if any(pa.types.is_duration(kind) for kind in kinds) and name in ("*", "/"):
            return _one_by_one(node, arguments, length)
        raise pa.ArrowTypeError("a number beside something else")
    if name == "-" and _is_moment(left.type) and _is_moment(right.type):
        left, right = _same_zone(left, right)
    elif pa.types.is_date(left.type):
        left = left.cast(pa.timestamp("us"))
    try:
        return {"+": pc.add_checked, "-": pc.subtract_checked}[name](left, right)
    except pa.ArrowInvalid:
        return _one_by_one(node, arguments, length)


def _choose(parts: list[Values], length: int) -> Values:
    """CASE: the last value is for where no test holds."""
    kind = common_type([value.type for value in [*parts[1::2], parts[-1]]])
    result = converted(parts[-1], kind)
    for test, value in reversed(list(zip(parts[:-1:2], parts[1::2], strict=True))):
        result = pc.if_else(pc.fill_null(_boolean(test), False), converted(value, kind), result)
    return result


def _fast_cast(values: Values, target: str) -> Values | None:
    name, numbers = type_parts(target)
    if name in REAL - SINGLE and _is_number(values.type):
        return as_doubles(values)
    if BITS.get(name) == 64 and pa.types.is_integer(values.type):
        return values.cast(pa.int64())
    if name in TEXT and pa.types.is_string(values.type) and not numbers:
        return values
    if name == "timestamp" and pa.types.is_timestamp(values.type):
        return values
    if name in ("timestamp_ntz", "datetime") and pa.types.is_timestamp(values.type) and values.type.tz is None:
        return values
    if name == "date" and pa.types.is_date32(values.type):
        return values
    return None


def cast_type(target: str) -> pa.DataType:
    """The Arrow type that a CAST gives."""
    name, numbers = type_parts(target)
    if name in WHOLE:
        return {64: pa.int64(), 32: pa.int32(), 16: pa.int16(), 8: pa.int8()}[BITS[name]]
    if name in REAL:
        return pa.float64()
    if name in TEXT:
        return pa.string()
    if name in DECIMALS:
        return pa.decimal128(*decimal_parts(numbers))
    return {"boolean": pa.bool_(), "bool": pa.bool_(), "date": pa.date32()}.get(name, pa.timestamp("us"))


def _one_by_one(node: Apply, arguments: list[Values], length: int) -> Values:
    """The function of each row's values, in Python; of one column of strings, once for each string."""
    kind = _result_type(node, [argument.type for argument in arguments], arguments)
    target = node.target
    if target is None and pa.types.is_decimal(kind):
        target = f"decimal({kind.precision},{kind.scale})"
    function = function_of(Apply(node.function, node.arguments, target, node.span))
    if all(isinstance(argument, pa.Scalar) for argument in arguments):
        return pa.scalar(fitting(function(*(argument.as_py() for argument in arguments)), kind), kind)
    columns = [argument for argument in arguments if not isinstance(argument, pa.Scalar)]
    if len(columns) == 1 and pa.types.is_string(columns[0].type):
        coded = columns[0].dictionary_encode()
        distinct = [*coded.dictionary.to_pylist(), None]
        lists = [distinct if a is columns[0] else [a.as_py()] * len(distinct) for a in arguments]
        found = pa.array([fitting(function(*row), kind) for row in zip(*lists, strict=True)], kind)
        return found.take(pc.fill_null(coded.indices, len(distinct) - 1))
    lists = [[a.as_py()] * length if isinstance(a, pa.Scalar) else listed(a) for a in arguments]
    return pa.array([fitting(function(*row), kind) for row in paced(zip(*lists, strict=True))], kind)


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


def _result_type(node: Apply, types: list[pa.DataType], arguments: list[Values]) -> pa.DataType:
    if node.function == "zoned":
        return pa.timestamp("us", str(node.target))
    if node.function == "cast":
        return cast_type(str(node.target))
    function = FUNCTIONS.get(node.function)
    if function is None:
        return _operator_type(node.function, types)
    if node.function == "array":
        return pa.list_(common_type(types) if types else pa.null())
    if node.function in ("element_at", "get"):
        return _element_type(types[0])
    if node.function == "reverse" and pa.types.is_list(types[0]):
        return types[0]
    if node.function == "nullif":
        return types[0]
    decimals = any(pa.types.is_decimal(kind) for kind in types)
    if function.result is not None and not (decimals and function.precision is not None):
        if function.result is DataType.TIME:
            stamp = next((kind for kind in types if pa.types.is_timestamp(kind)), pa.timestamp("us"))
            return pa.timestamp("us", "UTC") if function.gives_instant else stamp
        return pa.int32() if function.narrow else _TYPES[function.result]
    if decimals and not any(pa.types.is_floating(kind) for kind in types):
        constants = [each.as_py() for place, each in enumerate(arguments) if place in function.constants]
        digits = [precision(each) for place, each in enumerate(arguments) if place not in function.constants]
        return decimal_type(function.precision(digits, constants) if function.precision is not None else digits[0])
    chosen = common_type([kind for place, kind in enumerate(types) if place not in function.constants])
    return pa.int64() if pa.types.is_integer(chosen) else pa.float64() if pa.types.is_floating(chosen) else chosen


def _element_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_map(kind):
        return kind.item_type
    if not pa.types.is_list(kind):
        raise pa.ArrowTypeError("not an array")
    return kind.value_type


def _operator_type(name: str, types: list[pa.DataType]) -> pa.DataType:
    own = find_function(name)
    if own is not None and own.user:
        return {DataType.BOOL: pa.bool_(), DataType.INT: pa.int64()}.get(own.result or DataType.FLOAT, pa.float64())
    if name in ("like", "rlike") or name in _COMPARISONS:
        return pa.bool_()
    if name == "add months":
        return types[0] if _is_moment(types[0]) else pa.timestamp("us")
    if name == "||":
        return types[0] if pa.types.is_list(types[0]) else pa.string()
    if name in ("div", "whole /"):
        return pa.int64()
    moments = [kind for kind in types if _is_moment(kind)]
    if name in ("+", "-") and len(moments) == 1 and any(pa.types.is_duration(kind) for kind in types):
        return pa.timestamp("us") if pa.types.is_date(moments[0]) else moments[0]
    if name in ("*", "/") and any(pa.types.is_duration(kind) for kind in types):
        return pa.float64() if all(pa.types.is_duration(kind) for kind in types) else pa.duration("us")
    return common_type(types)


def flags(values: Values, length: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """1 where a condition is true: neither false nor unknown."""
    if not pa.types.is_boolean(values.type) and not pa.types.is_null(values.type):
        raise pa.ArrowTypeError(f"{values.type} is not true or false")
    filled = pc.fill_null(whole(values, length).cast(pa.bool_()), False)
    result: np.ndarray[Any, np.dtype[np.uint8]] = filled.to_numpy(zero_copy_only=False).astype(np.uint8)
    return result

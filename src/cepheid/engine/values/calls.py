"""Functions over Arrow columns: by their form for columns, else called once for each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.budget import paced
from cepheid.engine.values import operators
from cepheid.engine.values.operators import Column
from cepheid.engine.values.plain import ARROW_KINDS, value_column
from cepheid.language import syntax as s
from cepheid.language.evaluate import TAKING_TEXTS
from cepheid.language.functions import find_function
from cepheid.language.library.decimal_columns import as_doubles, common_kind, converted, decimal_type, precision
from cepheid.language.library.function import Function
from cepheid.language.library.growth import check_column
from cepheid.language.library.scalars import BITS, DECIMALS, REAL, SINGLE, TEXT, WHOLE, decimal_parts, type_parts
from cepheid.language.library.time_functions import keeps_offset
from cepheid.language.library.value_functions import type_named
from cepheid.language.schema import DataType, data_type
from cepheid.language.zones import instants_of

_PLAIN = frozenset({pa.bool_(), pa.int64(), pa.string()})
_TYPED = {**ARROW_KINDS, DataType.DATE: pa.date32()}  # the same where Arrow's types are kept
_CASES = ("case", "if", "iff")
_FIRST = ("coalesce", "ifnull", "nvl")


def called(function: Function, arguments: list[Any]) -> Column:
    """A function over columns of plain types and constants."""
    constants = function.constants_of(arguments)
    columns = [each for place, each in enumerate(arguments) if place not in function.constants]
    kind = result_kind(function, columns, constants)
    if function.strict and any(isinstance(column, pa.Scalar) and not column.is_valid for column in columns):
        return operators.nothing(next((c for c in columns if not isinstance(c, pa.Scalar)), columns[0]), kind)
    if function.name in _FIRST:
        return pc.coalesce(*(converted(each, kind) for each in arguments))
    if function.columnwise is not None:
        if not function.strict and function.typed is None and function.result is None:
            arguments = [converted(each, kind) for each in arguments]
        check_column(function.name, arguments)
        return _plain_column(function.columnwise(*arguments))
    if function.name == "array":
        arguments = [converted(each, kind.value_type) for each in arguments]
    return operators.without_nan(each_row(_applying(function), arguments, kind))


def _applying(function: Function) -> Callable[..., object]:
    def call(*values: object) -> Any:
        if function.strict and None in values:
            return None
        found = function.apply(*values)
        return found.item() if hasattr(found, "item") else found

    return call


def each_row(call: Callable[..., object], arguments: list[Any], kind: pa.DataType) -> Column:
    """One call for each row; where it depends on texts alone, one for each distinct text or combination of texts."""
    columns = [each for each in arguments if isinstance(each, pa.Array | pa.ChunkedArray)]
    if not columns:
        (row,) = zip(*(operators.listed(each) for each in arguments), strict=True)
        return pa.scalar(operators.fitting(call(*row), kind), kind)
    if len(columns) == 1 and pa.types.is_string(columns[0].type):
        coded = pc.dictionary_encode(columns[0])
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        distinct = [*coded.dictionary.to_pylist(), None]
        lists = [distinct if each is columns[0] else operators.listed(each, len(distinct)) for each in arguments]
        found = pa.array([operators.fitting(call(*row), kind) for row in paced(zip(*lists, strict=True))], kind)
        return found.take(pc.fill_null(coded.indices, len(distinct) - 1))
    if all(pa.types.is_string(each.type) for each in columns):
        rows, places = _combinations(columns)
        if 2 * len(rows) <= len(places):
            few = [
                each.take(pa.array(rows)) if isinstance(each, pa.Array | pa.ChunkedArray) else each
                for each in arguments
            ]
            lists = [operators.listed(each, len(rows)) for each in few]
            found = pa.array([operators.fitting(call(*row), kind) for row in paced(zip(*lists, strict=True))], kind)
            return found.take(pa.array(places))
    lists = [operators.listed(each, len(columns[0])) for each in arguments]
    return pa.array([operators.fitting(call(*row), kind) for row in paced(zip(*lists, strict=True))], kind)


def _combinations(columns: list[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A row for each combination of texts, and for each row the number of its combination."""
    key = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        coded = pc.dictionary_encode(column)
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        codes = pc.fill_null(coded.indices, len(coded.dictionary)).to_numpy(zero_copy_only=False)
        key = np.unique(key * (len(coded.dictionary) + 1) + codes, return_inverse=True)[1].astype(np.int64)
    _, rows, places = np.unique(key, return_index=True, return_inverse=True)
    return rows, places


def _plain_column(column: Column) -> Column:
    """A result in the types that conditions know: elements of lists and maps come in their own."""
    if isinstance(column, pa.Scalar):
        known = pa.chunked_array([pa.array([column.as_py()], column.type)])
        return column if column.type in _PLAIN else value_column(known)[0]
    if column.type not in _PLAIN and not pa.types.is_nested(column.type):
        column = value_column(pa.chunked_array([column]) if isinstance(column, pa.Array) else column)
    return operators.without_nan(column)


def result_kind(function: Function, columns: list[Any], constants: list[Any], typed: bool = False) -> pa.DataType:
    """The Arrow type of what a function gives; `typed` keeps times, and whole numbers of 32 bits."""
    name = function.name
    if name in ("cast", "try_cast"):
        named = type_named(constants[0])
        assert named is not None
        return ARROW_KINDS[named[0]] if named[1] is None else decimal_type(named[1])
    if name == "decimal of":
        return decimal_type((constants[1], constants[0]))
    if name == "array":
        return pa.list_(common_kind(columns) or (pa.null() if typed else pa.float64()))
    if name in ("get", "element_at"):
        element = _element_kind(columns[0].type)
        return element if typed else ARROW_KINDS.get(data_type(element), element)
    if typed and name == "reverse" and pa.types.is_list(columns[0].type):
        return columns[0].type
    values = columns[:1] if name == "nullif" else [*columns[1::2], columns[-1]] if name in _CASES else columns
    decimals = any(pa.types.is_decimal(each.type) for each in values)
    if function.result is not None and not (decimals and function.precision is not None):
        return _kind_of_result(function, columns) if typed else ARROW_KINDS[function.result]
    if decimals and not any(pa.types.is_floating(each.type) for each in values):
        numbers = [precision(each) for each in values if operators.is_number(each.type)]
        return decimal_type(function.precision(numbers, constants) if function.precision is not None else numbers[0])
    found = common_kind(values)
    if found is None:
        return pa.null() if typed else pa.bool_()
    return pa.int64() if pa.types.is_integer(found) else pa.float64() if pa.types.is_floating(found) else found


def _kind_of_result(function: Function, columns: list[Any]) -> pa.DataType:
    if function.result is DataType.TIME:
        if function.gives_instant:
            return pa.timestamp("us", "UTC")
        return next((each.type for each in columns if pa.types.is_timestamp(each.type)), pa.timestamp("us"))
    return pa.int32() if function.narrow else _TYPED.get(function.result or DataType.FLOAT, pa.float64())


def _element_kind(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_map(kind):
        return kind.item_type
    if not any(test(kind) for test in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)):
        raise pa.ArrowTypeError("not an array")
    return kind.value_type


# --- columns with Arrow's own types, as clauses have them -------------------------------------------------------------


def typed_call(node: s.Call, parts: list[Column]) -> Column | None:
    """A function over columns of any type; None where it takes Python's values, row by row."""
    name = node.function.lower()
    form = _FORMS.get(name)
    if form is not None:
        return form(*parts)
    function = find_function(name)
    assert function is not None
    if function.name in _CASES:
        parts = [operators.truth(each) if n % 2 == 0 and n < len(parts) - 1 else each for n, each in enumerate(parts)]
        return function.columnwise(*parts)  # type: ignore[misc]
    if function.name in _FIRST:
        kind = common_kind(parts) or pa.null()
        return pc.coalesce(*(converted(each, kind) for each in parts))
    if function.user or str(node.target).startswith("decimal") or not _takes(function, parts):
        return None
    kinds = [part.type for part in parts]
    zone = next((kind.tz for kind in kinds if pa.types.is_timestamp(kind) and kind.tz), None)
    given: list[Any] = [
        each.as_py() if place in function.constants else _plain_values(each, function)
        for place, each in enumerate(parts)
    ]
    if function.wrong is not None and function.wrong(function.constants_of(given)) is not None:
        return None
    found = called(function, given)
    if function.result is DataType.TIME:
        return _times(found, function, parts, zone)
    if function.result is DataType.DATE:
        return found.cast(pa.timestamp("us")).cast(pa.date32()) if pa.types.is_integer(found.type) else found
    if function.narrow:
        return found.cast(pa.int32())
    if function.result is None and operators.is_moment(kinds[0]):
        found = found.cast(pa.timestamp("us", getattr(kinds[0], "tz", None)))
        return found.cast(kinds[0], safe=False)
    return found


def kind_of(node: s.Expression, parts: list[Column]) -> pa.DataType:
    """The Arrow type of what an operator or a function gives where it takes Python's values."""
    kinds = [part.type for part in parts]
    match node:
        case s.Call(function="cast", arguments=(_, s.Literal(value=str(target)))):
            return cast_kind(target)
        case s.Call(function="in zone", arguments=(_, s.Literal(value=zone))):
            return pa.timestamp("us", zone)
        case s.Call(function="add months"):
            return kinds[0] if operators.is_moment(kinds[0]) else pa.timestamp("us")
        case s.Call(function="||"):
            return kinds[0] if pa.types.is_list(kinds[0]) else pa.string()
        case s.Call(function=name):
            function = find_function(name)
            assert function is not None
            columns = [each for place, each in enumerate(parts) if place not in function.constants]
            constants = [each.as_py() for each in function.constants_of(parts) if isinstance(each, pa.Scalar)]
            return result_kind(function, columns, constants, typed=True)
        case s.Arithmetic(operator="div" | "whole /"):
            return pa.int64()
        case s.Arithmetic(operator=sign):
            moments = [kind for kind in kinds if operators.is_moment(kind)]
            lengths = [kind for kind in kinds if pa.types.is_duration(kind)]
            if sign in ("+", "-") and len(moments) == 1 and lengths:
                return pa.timestamp("us") if pa.types.is_date(moments[0]) else moments[0]
            if sign in ("*", "/") and lengths:
                return pa.float64() if len(lengths) == 2 else pa.duration("us")
            return common_kind(parts) or pa.null()
        case s.Negative():
            return kinds[0]
    return pa.bool_()


def _takes(function: Function, parts: list[Column]) -> bool:
    """Has it a form for columns of these types?"""
    kinds = [part.type for part in parts]
    if any(pa.types.is_nested(kind) or pa.types.is_duration(kind) or pa.types.is_null(kind) for kind in kinds):
        return False
    if function.result is None and len({data_type(kind) for kind in kinds}) > 1:
        return False
    if function.name in TAKING_TEXTS and not all(pa.types.is_string(kind) for kind in kinds):
        return False
    if any(place < len(parts) and not _is_constant(parts[place]) for place in function.constants):
        return False
    return all(data_type(kind) in function.accepted(place) for place, kind in enumerate(kinds))


def _is_constant(column: Column) -> bool:
    return isinstance(column, pa.Scalar) and column.is_valid


def _times(found: Column, function: Function, parts: list[Column], zone: str | None) -> Column:
    """What the library gives as a time, as an instant or as what a clock shows."""
    if function.gives_instant:
        return found.cast(pa.timestamp("us", zone or "UTC"))
    walls = found.cast(pa.timestamp("us"))
    if zone is None or function.gives_instant is False:
        return walls
    near = parts[1].cast(pa.timestamp("us", zone), safe=False)  # of date_trunc
    return instants_of(walls, zone, near if keeps_offset(parts[0].as_py()) else None)


def _plain_values(values: Column, function: Function) -> Column:
    """Values as the library takes them: times as the microseconds of a clock."""
    kind = values.type
    if pa.types.is_date(kind):
        return values.cast(pa.timestamp("us")).cast(pa.int64())
    if pa.types.is_timestamp(kind):
        local = (
            pc.local_timestamp(values) if kind.tz and function.result is not None and not function.instant else values
        )
        return local.cast(pa.timestamp("us", local.type.tz), safe=kind.unit != "ns").cast(pa.int64())
    return operators.as_64_bits(values)


def _same(left: Column, right: Column) -> Column | None:
    """IS NOT DISTINCT FROM."""
    equal = operators.beside("=", left, right)
    if equal is None:
        return None
    if isinstance(equal, pa.Scalar) and not equal.is_valid:
        equal = pa.scalar(False)
    return pc.or_(pc.and_(pc.is_null(left), pc.is_null(right)), pc.fill_null(equal, False))


def _joined(*parts: Column) -> Column | None:
    if not all(pa.types.is_string(part.type) for part in parts):
        return None
    check_column("||", parts)
    return pc.binary_join_element_wise(*parts, "")


def _field(column: Column, name: pa.Scalar) -> Column:
    """A field of a struct, whatever the case of its name."""
    if not pa.types.is_struct(column.type):
        raise pa.ArrowTypeError("no struct")
    wanted, names = name.as_py(), [field.name for field in column.type]
    found = [each for each in names if each == wanted] or [e for e in names if e.lower() == wanted.lower()]
    if not found:
        raise pa.ArrowTypeError(f"no field {wanted}")
    return pc.struct_field(column, found[0])


def _struct(*parts: Column) -> Column:
    """A struct of values, from names and values in turns."""
    length = next((len(part) for part in parts if not isinstance(part, pa.Scalar)), None)
    values = [operators.whole(part, 1 if length is None else length) for part in parts[1::2]]
    values = [each.cast(pa.string()) if pa.types.is_null(each.type) else each for each in values]
    found = pa.StructArray.from_arrays(values, [name.as_py() for name in parts[::2]])
    return found[0] if length is None else found


def _zoned(column: Column, zone: pa.Scalar) -> Column | None:
    return operators.in_zone(column, zone.as_py()) if operators.is_moment(column.type) else None


def _cast(column: Column, target: pa.Scalar) -> Column | None:
    """A CAST that changes nothing, or that Arrow has."""
    name, numbers = type_parts(target.as_py())
    kind = column.type
    if name in REAL - SINGLE and operators.is_number(kind):
        return as_doubles(column)
    if BITS.get(name) == 64 and pa.types.is_integer(kind):
        return column.cast(pa.int64())
    if name in TEXT and pa.types.is_string(kind) and not numbers:
        return column
    if name == "timestamp" and pa.types.is_timestamp(kind):
        return column
    if name in ("timestamp_ntz", "datetime") and pa.types.is_timestamp(kind) and kind.tz is None:
        return column
    return column if name == "date" and pa.types.is_date32(kind) else None


def cast_kind(target: str) -> pa.DataType:
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


# What binding writes in clauses alone, and IS NULL under its other names, which takes values of any type.
_FORMS: dict[str, Callable[..., Column | None]] = {
    "||": _joined,
    "<=>": _same,
    "struct field": _field,
    "named_struct": _struct,
    "in zone": _zoned,
    "add months": lambda *parts: None,
    "cast": _cast,
    "isnull": pc.is_null,
    "isnotnull": pc.is_valid,
}

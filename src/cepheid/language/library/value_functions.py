"""Choosing among values, converting them, and looking into lists and maps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.language.library.conversions import (
    day_of_text,
    decimal_of,
    instant_of_text,
    number_of,
    text_of_day,
    text_of_moment,
    text_of_number,
    truth_of,
    whole_of,
)
from cepheid.language.library.dates import DAY
from cepheid.language.library.decimal_columns import as_decimals, common_kind, converted, high_half, low_half, nulls
from cepheid.language.library.decimals import Precision, moved, widest
from cepheid.language.library.function import ANY, INT, LISTS, MANY, NUMBER, STRING, Function, named_twice
from cepheid.language.library.operators import compared
from cepheid.language.schema import NUMBERS, TIMES, DataType
from cepheid.language.whole import GREATEST, LEAST
from cepheid.language.zones import IN_UTC

# Texts that are numbers to us and to Spark, in words of Java's regular expressions; others stay with the engine.
_WHOLE = r"[ \t\r\n]*[+-]?[0-9]+[ \t\r\n]*"
_BITS = {"int": 32, "integer": 32, "smallint": 16, "short": 16, "tinyint": 8, "byte": 8}

TYPES = {
    **dict.fromkeys(("bigint", "long", *_BITS), DataType.INT),
    **dict.fromkeys(("double", "number", "float", "real"), DataType.FLOAT),  # the latter two of 32 bits
    **dict.fromkeys(("string", "varchar", "char", "text"), DataType.STRING),
    **dict.fromkeys(("boolean", "bool"), DataType.BOOL),
    "timestamp": DataType.TIME,
    "date": DataType.DATE,
}


# --- choosing ---------------------------------------------------------------------------------------------------------


def _case(*arguments: object) -> Any:
    """Condition, value, condition, value, ..., and the value where none holds."""
    for place in range(0, len(arguments) - 1, 2):
        if arguments[place] is True:
            return arguments[place + 1]
    return arguments[-1]


def common_type(kinds: Sequence[DataType]) -> DataType | None:
    """The type of values of which one is chosen; None if they do not go together.

    >>> common_type([DataType.INT, DataType.NULL, DataType.FLOAT])
    <DataType.FLOAT: 'number'>
    """
    known = {kind for kind in kinds if kind is not DataType.NULL}
    if known <= NUMBERS:
        wider = (DataType.FLOAT, DataType.DECIMAL, DataType.INT)
        return next((kind for kind in wider if kind in known), DataType.NULL)
    if known <= TIMES:
        return DataType.TIME if DataType.TIME in known else DataType.DATE
    return known.pop() if len(known) == 1 else None


def _case_type(kinds: Sequence[DataType], constants: Sequence[object]) -> DataType | str:
    conditions = kinds[:-1:2]
    if not all(kind in (DataType.BOOL, DataType.NULL) for kind in conditions):
        return "WHEN takes a condition"
    return common_type([*kinds[1::2], kinds[-1]]) or "the values of CASE are of different types"


def _if_type(kinds: Sequence[DataType], constants: Sequence[object]) -> DataType | str:
    if kinds[0] not in (DataType.BOOL, DataType.NULL):
        return "if() takes a condition first"
    return common_type(kinds[1:]) or "the values of if() are of different types"


def _case_columns(*columns: object) -> Any:
    values = _alike([*columns[1::2], columns[-1]])
    result = values[-1]
    for condition, value in zip(reversed(columns[:-1:2]), reversed(values[:-1]), strict=True):
        result = pc.if_else(pc.fill_null(pc.cast(condition, pa.bool_()), False), value, result)
    return result


def _alike(columns: Sequence[object]) -> list[object]:
    """Columns of one type, of which NULL alone takes that of the others."""
    wanted = common_kind(columns)
    return list(columns) if wanted is None else [converted(column, wanted) for column in columns]


def _spark_case(F: Any, *columns: object) -> Any:
    chain = F
    for place in range(0, len(columns) - 1, 2):
        chain = chain.when(columns[place], columns[place + 1])
    return chain.otherwise(columns[-1])


def _first_known(*values: object) -> Any:
    return next((value for value in values if value is not None), None)


_equal = compared(lambda one, other: one == other)


def _nullif(value: object, other: object) -> Any:
    return None if _equal(value, other) else value


def _nullif_type(kinds: Sequence[DataType], constants: Sequence[object]) -> DataType | str:
    return "nullif() of different types" if common_type(kinds) is None else kinds[0]


def _nullif_columns(value: Any, other: object) -> Any:
    first, second = _alike([value, other])
    return pc.if_else(pc.fill_null(pc.equal(first, second), False), pa.scalar(None, value.type), value)


# --- converting -------------------------------------------------------------------------------------------------------


def type_named(wanted: str) -> tuple[DataType, Precision | None] | None:
    """The type that a name means, with the digits of a decimal; None if there is no such type.

    >>> type_named("decimal(10,2)"), type_named("Long"), type_named("dog")
    ((<DataType.DECIMAL: 'decimal'>, (10, 2)), (<DataType.INT: 'whole number'>, None), None)
    """
    name, _, inside = wanted.lower().replace(" ", "").partition("(")
    if name in ("decimal", "dec", "numeric"):
        digits = inside.removesuffix(")").split(",") if inside else ["10"]
        if len(digits) > 2 or not all(each.isdigit() for each in digits):
            return None
        precision, scale = int(digits[0]), int(digits[1]) if len(digits) > 1 else 0
        return (DataType.DECIMAL, (precision, scale)) if 1 <= precision <= 38 and scale <= precision else None
    found = TYPES.get(name)
    return None if found is None or inside else (found, None)


def cast(value: Any, wanted: str, kind: str = "") -> Any:
    """A value as another type, as Spark's try_cast has it: None where it cannot be. Times are microseconds in UTC.

    `kind` names the type that it has; binding adds it, as a time and a whole number look alike.

    >>> cast(" 12 ", "int"), cast("1.5", "int"), cast(-1.9, "int"), cast("yes", "boolean"), cast(1e300, "bigint")
    (12, None, -1, True, None)
    """
    named = type_named(wanted)
    assert named is not None
    found, precision = named
    is_time = kind in (DataType.TIME.name, DataType.DATE.name)
    match found:
        case DataType.INT:
            return whole_of(value // 1_000_000 if is_time else value, _BITS.get(wanted.lower(), 64))
        case DataType.FLOAT:
            number = value / 1_000_000 if is_time else number_of(value)
            return number if number is None or wanted.lower() not in ("float", "real") else float(_single(number))
        case DataType.DECIMAL:
            assert precision is not None
            return decimal_of(moved(value, -6) if is_time else value, precision)
        case DataType.STRING:
            return text_of(value, kind)
        case DataType.BOOL:
            return truth_of(value)
    if found is DataType.DATE and isinstance(value, str):
        days = day_of_text(value)
        return None if days is None else days * DAY
    time = _time_of(value, is_time)
    return time - time % DAY if time is not None and found is DataType.DATE else time


def _single(number: float) -> Any:
    """The nearest number of 32 bits."""
    with np.errstate(over="ignore"):
        return np.float32(number)


def text_of(value: Any, kind: str = "") -> str:
    """A value as a text; times are microseconds."""
    if kind == DataType.TIME.name:
        return text_of_moment(value)
    if kind == DataType.DATE.name:
        return text_of_day(value // DAY)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return text_of_number(value)
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _time_of(value: Any, is_time: bool) -> int | None:
    if is_time:
        return int(value)
    if isinstance(value, str):
        return instant_of_text(value, IN_UTC)
    return whole_of(value * 1_000_000)


def _spark_cast(F: Any, x: Any, wanted: str, kind: str) -> Any:
    """Conversions in which Spark, asked carefully, cannot differ; None for the others."""
    if wanted.lower() in (*_BITS, "float", "real") or wanted.lower() not in TYPES or kind == DataType.DECIMAL.name:
        return None
    match kind, TYPES[wanted.lower()].name:
        case ("INT" | "BOOL", "FLOAT" | "STRING") | ("BOOL", "INT"):
            return x.cast({"INT": "bigint", "FLOAT": "double", "STRING": "string"}[TYPES[wanted.lower()].name])
        case ("INT" | "FLOAT", "BOOL"):
            return x != 0
        case ("FLOAT", "INT"):  # in Spark NaN is larger than everything
            return F.when((x >= F.lit(-(2.0**63))) & (x <= F.lit(2.0**63)), x.cast("bigint"))
        case ("STRING", "INT"):
            return F.when(F.rlike(x, F.lit(f"(?d)^{_WHOLE}\\z")), x.try_cast("bigint"))
        case ("STRING", "FLOAT"):
            number = x.try_cast("double")
            return F.when(~F.isnan(number), number)
        case (same, other) if same == other and wanted.lower() != "date":
            return x
    return None


def _cast_type(kinds: Sequence[DataType], constants: Sequence[object]) -> DataType | str:
    if kinds[0] in (DataType.LIST, DataType.TEXTS, DataType.MAP):
        return f"a {kinds[0].value} cannot be converted"
    named = type_named(str(constants[0]))
    assert named is not None
    return named[0]


def _cast_precision(types: Sequence[Precision], constants: Sequence[object]) -> Precision:
    named = type_named(str(constants[0]))
    assert named is not None
    assert named[1] is not None
    return named[1]


def _wrong_type(constants: Sequence[object]) -> str | None:
    if isinstance(constants[0], str) and type_named(constants[0]) is not None:
        return None
    return f"no type {constants[0]!r}: it is one of bigint, double, decimal(10, 2), string, boolean, timestamp, date"


# --- lists and maps ---------------------------------------------------------------------------------------------------


def _get(collection: Any, key: Any) -> Any:
    """An element of a list, counted from 0, or the value of a map under a key; None if there is none."""
    if not collection or _is_map(collection):
        return _looked_up(collection, key)
    return collection[key] if 0 <= key < len(collection) else None


def _element_at(collection: Any, key: Any) -> Any:
    """The same counted from 1, negative places from the end."""
    if not collection or _is_map(collection):
        return _looked_up(collection, key)
    place = key - 1 if key > 0 else key + len(collection)
    return collection[place] if key != 0 and 0 <= place < len(collection) else None


def _is_map(collection: Any) -> bool:
    """Arrow gives a map as a list of pairs."""
    return isinstance(collection, dict) or isinstance(collection[0], tuple)


def _looked_up(collection: Any, key: object) -> Any:
    pairs = collection.items() if isinstance(collection, dict) else collection
    return next((value for known, value in reversed(list(pairs)) if known == key), None)


def _array_contains(collection: Any, value: object) -> bool | None:
    found = [_equal(element, value) for element in collection]
    return True if True in found else None if None in found else False


def _array_type(kinds: Sequence[DataType], constants: Sequence[object]) -> DataType | str:
    common = common_type(kinds)
    if common in NUMBERS or common is DataType.NULL:
        return DataType.LIST
    return DataType.TEXTS if common is DataType.STRING else "an array is of numbers or of strings"


def _each_of(call: Any) -> Any:
    """A function of lists or maps over columns, one row after the other."""

    def columnwise(*columns: Any) -> Any:
        length = next((len(column) for column in columns if not isinstance(column, pa.Scalar)), None)
        lists = [
            [c.as_py()] * (1 if length is None else length) if isinstance(c, pa.Scalar) else c.to_pylist()
            for c in columns
        ]
        kind = columns[0].type
        inner = kind.item_type if pa.types.is_map(kind) else kind.value_type
        wanted = pa.bool_() if call is _array_contains else inner
        found = [None if None in row else call(*row) for row in zip(*lists, strict=True)]
        if pa.types.is_decimal(wanted):  # elements are numbers
            wanted, found = pa.float64(), [None if each is None else float(each) for each in found]
        result = pa.array(found, wanted)
        return result if length is not None else result[0]

    return columnwise


def _element_key(kinds: Sequence[DataType], constants: Sequence[object]) -> DataType | str:
    if kinds[0] is not DataType.MAP and kinds[1] not in (DataType.INT, DataType.NULL):
        return "a list is asked by the number of a place"
    return DataType.STRING if kinds[0] is DataType.TEXTS else DataType.NULL  # the others: `type_of` knows the column


_MAP = frozenset({DataType.MAP})
_KEYS = STRING | INT | frozenset({DataType.BOOL})

FUNCTIONS: tuple[Function, ...] = (
    Function(
        "coalesce(x, y, ...)",
        _first_known,
        ANY,
        None,
        strict=False,
        spark=lambda F, *values: F.coalesce(*values),
        precision=lambda types, constants: widest(types),
        says="the first value that is not NULL",
    ),
    *(
        Function(
            f"{name}(x, y)",
            _first_known,
            ANY,
            None,
            strict=False,
            spark=lambda F, *values: F.coalesce(*values),
            precision=lambda types, constants: widest(types),
            says="the same of two",
        )
        for name in ("ifnull", "nvl")
    ),
    Function(
        "nullif(x, y)",
        _nullif,
        ANY,
        None,
        strict=False,
        columnwise=_nullif_columns,
        typed=_nullif_type,
        precision=lambda types, constants: types[0],
        says="x, or NULL if both are equal",
    ),
    Function(
        "CASE WHEN c THEN x ELSE y END",
        _case,
        ANY,
        None,
        name="case",
        least=3,
        most=2 * MANY + 1,
        strict=False,
        typed=_case_type,
        precision=lambda types, constants: widest(types),
        columnwise=_case_columns,
        spark=_spark_case,
        says="the value of the first condition that holds, otherwise ELSE, or NULL; also `CASE x WHEN 1 THEN ...`",
    ),
    *named_twice(
        Function(
            "if(c, x, y)",
            _case,
            ANY,
            None,
            strict=False,
            typed=_if_type,
            precision=lambda types, constants: widest(types),
            columnwise=_case_columns,
            spark=_spark_case,
            says="the same with one condition",
        ),
        "iff",
    ),
    *(
        Function(
            f"{name}(x)",
            lambda value, empty=empty: (value is None) == empty,
            ANY | frozenset({DataType.OTHER}),
            DataType.BOOL,
            strict=False,
            columnwise=pc.is_null if empty else pc.is_valid,
            says=f"the same as `x IS {'' if empty else 'NOT '}NULL`",
        )
        for name, empty in (("isnull", True), ("isnotnull", False))
    ),
    *(
        Function(
            f"{name.upper()}(x AS type)",
            cast,
            (ANY, STRING),
            None,
            name=name,
            least=2,
            most=3,
            constants=(1, 2),
            spark=_spark_cast,
            wrong=_wrong_type,
            typed=_cast_type,
            precision=_cast_precision,
            says="x as bigint, double, decimal(10, 2), string, boolean, timestamp or date; NULL if the cast fails"
            if name == "cast"
            else "the same",
        )
        for name in ("cast", "try_cast")
    ),
    Function(
        "get(list, i)",
        _get,
        (LISTS | _MAP, _KEYS),
        None,
        typed=_element_key,
        columnwise=_each_of(_get),
        says="an element of a list, from 0, or the value of a key in a map; also `a.list[0]` and `a.map['key']`",
    ),
    Function(
        "element_at(list, i)",
        _element_at,
        (LISTS | _MAP, _KEYS),
        None,
        typed=_element_key,
        columnwise=_each_of(_element_at),
        says="the same, counted from 1; negative positions count from the end",
    ),
    Function(
        "array_contains(list, x)",
        _array_contains,
        (LISTS, STRING | NUMBER),
        DataType.BOOL,
        columnwise=_each_of(_array_contains),
        says="true if x is an element of the list",
    ),
    *named_twice(
        Function(
            "size(list)", len, LISTS | _MAP, DataType.INT, narrow=True, says="the number of elements of a list or a map"
        ),
        "cardinality",
        "array_size",
    ),
    Function(
        "array(x, y, ...)",
        lambda *values: list(values),
        NUMBER | STRING,
        None,
        least=1,
        strict=False,
        typed=_array_type,
        says="a list of values",
    ),
    *(
        Function(
            f"{name}(x)",
            lambda value: None,  # binding makes it a CAST
            ANY,
            None,
            typed=lambda kinds, constants, kind=kind: kind,  # type: ignore[misc]
            says=f"the same as `CAST(x AS {kind.value})`",
        )
        for name, kind in (("to_date", DataType.DATE), ("date", DataType.DATE), ("to_timestamp", DataType.TIME))
    ),
)


def _unscaled(value: Any, scale: int) -> int:
    return int(moved(value, scale))


def _of_unscaled(value: int, scale: int, precision: int = 38) -> Decimal:
    return moved(value, -scale)


def _unscaled_columns(column: object, scale: int) -> Any:
    whole = as_decimals(column, (38, scale))
    if isinstance(whole, pa.Scalar):
        return pa.scalar(_unscaled(whole.as_py(), scale), pa.int64())
    whole = whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
    return pa.array(low_half(whole), pa.int64(), mask=nulls(whole))


def _halves(value: object, scale: int) -> tuple[int, int]:
    """The upper 64 bits of a decimal without its point, and the lower ones, moved so that signed numbers order them."""
    whole = _unscaled(value, scale)
    return whole >> 64, (whole & (2**64 - 1)) - 2**63


def _half_columns(upper: bool) -> Any:
    def columnwise(column: object, scale: int) -> Any:
        whole = as_decimals(column, (38, scale))
        if isinstance(whole, pa.Scalar):
            return pa.scalar(_halves(whole.as_py(), scale)[0 if upper else 1], pa.int64())
        whole = whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
        half = high_half(whole) if upper else low_half(whole) ^ np.int64(-(2**63))
        return pa.array(half, pa.int64(), mask=nulls(whole))

    return columnwise


def _floor(value: Any) -> int:
    """The whole number below, within 64 bits."""
    return int(min(max(math.floor(value), LEAST), GREATEST))


def _side(value: Any) -> int:
    """-2 and 2: a decimal below and above all whole numbers of 64 bits; 0: a whole number; 1: it has a fraction."""
    below = math.floor(value)
    return -2 if below < LEAST else 2 if below > GREATEST else int(value != below)


# Decimals without their point, and back: what binding writes for aggregates, and kernels compare. No query names them.
INTERNAL: tuple[Function, ...] = (
    Function("decimal whole(x, y)", _unscaled, NUMBER, DataType.INT, constants=(1,), columnwise=_unscaled_columns),
    *(
        Function(
            f"decimal {name}(x, y)",
            lambda value, scale, place=place: _halves(value, scale)[place],
            NUMBER,
            DataType.INT,
            constants=(1,),
            columnwise=_half_columns(place == 0),
        )
        for place, name in enumerate(("upper", "lower"))
    ),
    Function("decimal floor(x)", _floor, NUMBER, DataType.INT),
    Function("decimal side(x)", _side, NUMBER, DataType.INT),
    Function(
        "decimal of(x, y, z)",
        _of_unscaled,
        NUMBER,
        None,
        constants=(1, 2),
        typed=lambda kinds, constants: DataType.DECIMAL,
        precision=lambda types, constants: (constants[1], constants[0]),
    ),
)
# What binding makes a CAST, and to which type.
CASTS = {"to_date": "date", "date": "date", "to_timestamp": "timestamp"}

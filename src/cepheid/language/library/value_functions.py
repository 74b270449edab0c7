"""Choosing among values, converting them, and looking into lists and maps."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.language.library.function import ANY, INT, LISTS, MANY, NUMBER, STRING, Function
from cepheid.language.library.time_functions import DAY, civil, date_trunc
from cepheid.language.schema import NUMBERS, DataType

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Texts that are numbers, in words that Java's regular expressions understand as well.
_WHOLE = r"[ \t\r\n]*[+-]?[0-9]{1,30}[ \t\r\n]*"
_FRACTION = r"[ \t\r\n]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?[ \t\r\n]*"
_TRUE, _FALSE = frozenset({"t", "true", "y", "yes", "1"}), frozenset({"f", "false", "n", "no", "0"})

TYPES = {
    **dict.fromkeys(("bigint", "long", "int", "integer"), DataType.INT),  # the latter two of 32 bits, as in Spark
    **dict.fromkeys(("double", "float", "real"), DataType.FLOAT),  # the latter two of 32 bits
    **dict.fromkeys(("string", "varchar", "text"), DataType.STRING),
    **dict.fromkeys(("boolean", "bool"), DataType.BOOL),
    **dict.fromkeys(("timestamp", "date"), DataType.TIME),
}


# --- choosing ---------------------------------------------------------------------------------------------------------


def _case(*arguments: Any) -> Any:
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
        return DataType.FLOAT if DataType.FLOAT in known else DataType.INT if known else DataType.NULL
    return known.pop() if len(known) == 1 else None


def _case_type(kinds: Sequence[DataType], constants: Sequence[Any]) -> DataType | str:
    conditions = kinds[:-1:2]
    if not all(kind in (DataType.BOOL, DataType.NULL) for kind in conditions):
        return "WHEN takes a condition"
    return common_type([*kinds[1::2], kinds[-1]]) or "the values of CASE are of different types"


def _if_type(kinds: Sequence[DataType], constants: Sequence[Any]) -> DataType | str:
    if kinds[0] not in (DataType.BOOL, DataType.NULL):
        return "if() takes a condition first"
    return common_type(kinds[1:]) or "the values of if() are of different types"


def _case_columns(*columns: Any) -> Any:
    values = _alike([*columns[1::2], columns[-1]])
    result = values[-1]
    for condition, value in zip(reversed(columns[:-1:2]), reversed(values[:-1]), strict=True):
        result = pc.if_else(pc.fill_null(pc.cast(condition, pa.bool_()), False), value, result)
    return result


def _alike(columns: Sequence[Any]) -> list[Any]:
    """Columns of one type, of which NULL alone takes that of the others."""
    kinds = [column.type for column in columns if not (isinstance(column, pa.Scalar) and not column.is_valid)]
    if not kinds:
        return list(columns)
    wanted = pa.float64() if any(pa.types.is_floating(kind) for kind in kinds) else kinds[0]
    return [
        pa.scalar(None, wanted)
        if isinstance(column, pa.Scalar) and not column.is_valid
        else column
        if column.type == wanted
        else pc.cast(column, wanted, safe=False)
        for column in columns
    ]


def _spark_case(F: Any, *columns: Any) -> Any:
    chain = F
    for place in range(0, len(columns) - 1, 2):
        chain = chain.when(columns[place], columns[place + 1])
    return chain.otherwise(columns[-1])


def _first_known(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _nullif(value: Any, other: Any) -> Any:
    return None if value is not None and other is not None and value == other else value


def _nullif_columns(value: Any, other: Any) -> Any:
    first, second = _alike([value, other])
    return pc.if_else(pc.fill_null(pc.equal(first, second), False), pa.scalar(None, first.type), value)


# --- converting -------------------------------------------------------------------------------------------------------


def cast(value: Any, wanted: str, kind: str = "") -> Any:
    """A value as another type, as Spark's try_cast has it: None where it cannot be. Times are microseconds in UTC.

    `kind` names the type that it has; binding adds it, as a time and a whole number look alike.

    >>> cast(" 12 ", "int"), cast("1.5", "int"), cast(-1.9, "int"), cast("yes", "boolean"), cast(1e300, "bigint")
    (12, None, -1, True, None)
    """
    from_time = kind == DataType.TIME.name
    match TYPES[wanted.lower()]:
        case DataType.INT:
            whole, bits = _whole_of(value, from_time), 63 if wanted.lower() in ("bigint", "long") else 31
            return whole if whole is not None and -(2**bits) <= whole < 2**bits else None
        case DataType.FLOAT:
            number = _fraction_of(value, from_time)
            return number if number is None or wanted.lower() == "double" else float(_single(number))
        case DataType.STRING:
            return _text_of(value, from_time)
        case DataType.BOOL:
            if isinstance(value, str):
                word = value.strip(" \t\r\n").lower()
                return True if word in _TRUE else False if word in _FALSE else None
            return bool(value)
    time = _time_of(value, from_time)
    return date_trunc("day", time) if time is not None and wanted.lower() == "date" else time


def _whole_of(value: Any, from_time: bool) -> int | None:
    if isinstance(value, str):
        return int(value) if re.fullmatch(_WHOLE, value) else None
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else None
    return value // 1_000_000 if from_time else int(value)


def _fraction_of(value: Any, from_time: bool) -> float | None:
    if isinstance(value, str):
        return float(value) if re.fullmatch(_FRACTION, value) else None
    return value / 1_000_000 if from_time else float(value)


def _single(number: float) -> Any:
    """The nearest number of 32 bits."""
    with np.errstate(over="ignore"):
        return np.float32(number)


def _text_of(value: Any, from_time: bool) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return java_text(value)
    if from_time:
        year, month, day = civil(value // DAY)
        seconds, micros = divmod(value % DAY, 1_000_000)
        fraction = f".{micros:06d}".rstrip("0") if micros else ""
        hours, minutes = seconds // 3600, seconds // 60 % 60
        return f"{year:04d}-{month:02d}-{day:02d} {hours:02d}:{minutes:02d}:{seconds % 60:02d}{fraction}"
    return str(value)


def java_text(value: float) -> str:
    """A number as Java, and so Spark, writes it.

    >>> java_text(1e7), java_text(0.001), java_text(-120.5), java_text(1.25e-4)
    ('1.0E7', '0.001', '-120.5', '1.25E-4')
    """
    if not math.isfinite(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value:e}".partition("e")
    shortest = repr(value).replace("-", "").partition("e")[0]
    digits = shortest.replace(".", "").strip("0") or "0"
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{int(exponent)}" if mantissa else ""


def _time_of(value: Any, from_time: bool) -> int | None:
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip(" \t\r\n"))
        except ValueError:
            return None
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(microseconds=1)
    if isinstance(value, float):
        return int(value * 1_000_000) if math.isfinite(value * 1_000_000) else None
    return int(value) if from_time else int(value) * 1_000_000


def _spark_cast(F: Any, x: Any, wanted: str, kind: str) -> Any:
    """Conversions in which Spark, asked carefully, cannot differ; None for the others."""
    if wanted.lower() in ("int", "integer", "float", "real"):
        return None
    match kind, TYPES[wanted.lower()].name:
        case ("INT" | "BOOL", "FLOAT" | "STRING") | ("BOOL", "INT"):
            return x.cast({"INT": "bigint", "FLOAT": "double", "STRING": "string"}[TYPES[wanted.lower()].name])
        case ("INT" | "FLOAT", "BOOL"):
            return x != 0
        case ("FLOAT", "INT"):  # in Spark NaN is larger than everything
            return F.when((x >= F.lit(-(2.0**63))) & (x < F.lit(2.0**63)), x.cast("bigint"))
        case ("STRING", "INT"):
            return F.when(F.rlike(x, F.lit(f"(?d)^{_WHOLE}\\z")), x.try_cast("bigint"))
        case ("STRING", "FLOAT"):
            return F.when(F.rlike(x, F.lit(f"(?d)^{_FRACTION}\\z")), x.try_cast("double"))
        case (same, other) if same == other and wanted.lower() != "date":
            return x
    return None


def _cast_type(kinds: Sequence[DataType], constants: Sequence[Any]) -> DataType | str:
    if kinds[0] in (DataType.LIST, DataType.TEXTS, DataType.MAP):
        return f"a {kinds[0].value} cannot be converted"
    return TYPES[constants[0].lower()]


def _wrong_type(constants: Sequence[Any]) -> str | None:
    if isinstance(constants[0], str) and constants[0].lower() in TYPES:
        return None
    return f"no type {constants[0]!r}: it is one of bigint, double, string, boolean, timestamp, date"


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


def _looked_up(collection: Any, key: Any) -> Any:
    pairs = collection.items() if isinstance(collection, dict) else collection
    return next((value for known, value in reversed(list(pairs)) if known == key), None)


def _array_contains(collection: Any, value: Any) -> bool | None:
    if any(element == value for element in collection if element is not None):
        return True
    return None if any(element is None for element in collection) else False


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
        result = pa.array(found, wanted)
        return result if length is not None else result[0]

    return columnwise


def _element_key(kinds: Sequence[DataType], constants: Sequence[Any]) -> DataType | str:
    if kinds[0] is not DataType.MAP and kinds[1] not in (DataType.INT, DataType.NULL):
        return "a list is asked by the number of a place"
    return DataType.STRING if kinds[0] is DataType.TEXTS else DataType.NULL  # the others: `type_of` knows the column


_MAP = frozenset({DataType.MAP})
_KEYS = STRING | INT | frozenset({DataType.BOOL})

FUNCTIONS: tuple[Function, ...] = (
    Function(
        "coalesce",
        _first_known,
        2,
        MANY,
        ANY,
        None,
        strict=False,
        spark=lambda F, *values: F.coalesce(*values),
        shown="coalesce(x, y, ...)",
        says="the first that is not NULL",
    ),
    *(
        Function(
            name,
            _first_known,
            2,
            2,
            ANY,
            None,
            strict=False,
            spark=lambda F, *values: F.coalesce(*values),
            shown=f"{name}(x, y)",
            says="the same of two",
        )
        for name in ("ifnull", "nvl")
    ),
    Function(
        "nullif",
        _nullif,
        2,
        2,
        ANY,
        None,
        strict=False,
        columnwise=_nullif_columns,
        shown="nullif(x, y)",
        says="x, or NULL if both are equal",
    ),
    Function(
        "case",
        _case,
        3,
        2 * MANY + 1,
        ANY,
        None,
        strict=False,
        typed=_case_type,
        columnwise=_case_columns,
        spark=_spark_case,
        shown="CASE WHEN c THEN x ELSE y END",
        says="the value behind the first condition that holds, else the last, or NULL; also `CASE x WHEN 1 THEN ...`",
    ),
    Function(
        "if",
        _case,
        3,
        3,
        ANY,
        None,
        strict=False,
        typed=_if_type,
        columnwise=_case_columns,
        spark=_spark_case,
        shown="if(c, x, y)",
        says="the same with one condition",
    ),
    *(
        Function(
            name,
            cast,
            2,
            3,
            (ANY, STRING),
            None,
            constants=(1, 2),
            spark=_spark_cast,
            wrong=_wrong_type,
            typed=_cast_type,
            shown=f"{name.upper()}(x AS type)",
            says="the value as bigint, double, string, boolean, timestamp or date; NULL where it cannot be"
            if name == "cast"
            else "the same",
        )
        for name in ("cast", "try_cast")
    ),
    Function(
        "get",
        _get,
        2,
        2,
        (LISTS | _MAP, _KEYS),
        None,
        typed=_element_key,
        columnwise=_each_of(_get),
        shown="get(list, i)",
        says="an element, counted from 0, or the value of a map under a key; also `a.list[0]` and `a.map['key']`",
    ),
    Function(
        "element_at",
        _element_at,
        2,
        2,
        (LISTS | _MAP, _KEYS),
        None,
        typed=_element_key,
        columnwise=_each_of(_element_at),
        shown="element_at(list, i)",
        says="the same counted from 1, negative places from the end",
    ),
    Function(
        "array_contains",
        _array_contains,
        2,
        2,
        (LISTS, STRING | NUMBER),
        DataType.BOOL,
        columnwise=_each_of(_array_contains),
        shown="array_contains(list, x)",
        says="is it an element?",
    ),
    Function(
        "size",
        len,
        1,
        1,
        LISTS | _MAP,
        DataType.INT,
        shown="size(list)",
        says="how many elements a list or a map has",
    ),
)

"""The functions a clause may call: navigation, and functions of values; aggregates.py has the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime

from cepheid.language.match_recognize.scalars import (
    Value,
    cast,
    comparable,
    difference,
    element,
    text_of,
    truncated,
)

MANY = 64  # arguments at most
# Functions that go to another row; Snowflake calls two of them LAG and LEAD.
NAVIGATIONS = frozenset({"first", "last", "prev", "next", "lag", "lead"})
MATCH_FUNCTIONS = frozenset({"classifier", "match_number", "match_sequence_number", "match_rowtime"})
MATCH_FUNCTIONS |= {"match_row_number"}  # BigQuery's name for the second
# The time at which a query begins.
CLOCKS = frozenset({"current_timestamp", "now", "localtimestamp", "current_date"})
# Systems that refuse DISTINCT in the aggregates of a row pattern.
NO_DISTINCT = frozenset({"trino", "presto", "athena", "flink"})


@dataclass(frozen=True)
class Function:
    """A function of values: NULL arguments give NULL without a call, unless `nulls`.

    `result` is the type of the result: a name of types.py, or the position of the argument it is taken from.
    """

    name: str
    call: Callable[..., Value]
    least: int
    most: int
    result: str | int
    nulls: bool = False


def _guarded(call: Callable[..., Value]) -> Callable[..., Value]:
    """NULL where a function has no value."""

    def safe(*arguments: Value) -> Value:
        try:
            return call(*arguments)
        except (ValueError, OverflowError, ZeroDivisionError, IndexError):
            return None

    return safe


def _round(value: Value, digits: int = 0) -> Value:
    """Half away from zero, as SQL rounds."""
    if isinstance(value, int) and digits >= 0:
        return value
    scale = 10**digits
    rounded = math.floor(abs(value) * scale + 0.5) / scale
    return math.copysign(rounded, value)


def _substring(text: str, start: int, length: int | None = None) -> str:
    """From a position counted from 1, or from the end where it is negative."""
    begin = start - 1 if start > 0 else max(len(text) + start, 0) if start < 0 else 0
    return text[begin:] if length is None else text[begin : begin + max(length, 0)]


def _concat_ws(separator: str, *parts: Value) -> str | None:
    if separator is None:
        return None
    flat = [item for part in parts for item in (part if isinstance(part, list) else [part])]
    return separator.join(text_of(item) for item in flat if item is not None)


def _pad(text: str, length: int, fill: str, left: bool) -> str:
    missing = max(length - len(text), 0)
    filling = (fill * missing)[:missing]
    return (filling + text if left else text + filling)[:length]


def _extreme(largest: bool) -> Callable[..., Value]:
    def call(*values: Value) -> Value:
        known = [value for value in values if value is not None]
        return None if not known else max(known) if largest else min(known)

    return call


def _coalesce(*values: Value) -> Value:
    return next((value for value in values if value is not None), None)


def _nullif(left: Value, right: Value) -> Value:
    if left is None or right is None:
        return left
    first, second = comparable(left, right)
    return None if first == second else left


def _if(test: Value, yes: Value, no: Value = None) -> Value:
    return yes if test is True else no


def _datediff(*arguments: Value) -> int | None:
    """Days from the second date to the first (Spark), or units from the second to the third."""
    if len(arguments) == 3:
        return difference(*arguments)
    return difference("day", _day(arguments[1]), _day(arguments[0]))


def _day(value: date) -> date:
    return value.date() if isinstance(value, datetime) else value


def _seconds(value: date) -> float:
    at = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _element_at(values: list[Value], index: int) -> Value:
    return element(values, index - 1 if index > 0 else len(values) + index) if index else None


def _part(name: str) -> Callable[[date], int]:
    return lambda value: getattr(value, name, 0)


_FUNCTIONS: tuple[Function, ...] = (
    Function("abs", abs, 1, 1, 0),
    Function("sqrt", _guarded(math.sqrt), 1, 1, "double"),
    Function("exp", _guarded(math.exp), 1, 1, "double"),
    Function("ln", _guarded(math.log), 1, 1, "double"),
    Function("log", _guarded(lambda *a: math.log(a[0]) if len(a) == 1 else math.log(a[1], a[0])), 1, 2, "double"),
    Function("log10", _guarded(math.log10), 1, 1, "double"),
    Function("log2", _guarded(math.log2), 1, 1, "double"),
    Function("pow", _guarded(lambda a, b: math.pow(a, b)), 2, 2, "double"),
    Function("power", _guarded(lambda a, b: math.pow(a, b)), 2, 2, "double"),
    Function("floor", _guarded(math.floor), 1, 1, "bigint"),
    Function("ceil", _guarded(math.ceil), 1, 1, "bigint"),
    Function("ceiling", _guarded(math.ceil), 1, 1, "bigint"),
    Function("round", _round, 1, 2, 0),
    Function("sign", lambda value: float((value > 0) - (value < 0)), 1, 1, "double"),
    Function("mod", _guarded(lambda a, b: a - b * int(a / b)), 2, 2, 0),
    Function("least", _extreme(False), 2, MANY, 0, True),
    Function("greatest", _extreme(True), 2, MANY, 0, True),
    Function("coalesce", _coalesce, 1, MANY, 0, True),
    Function("nvl", _coalesce, 2, 2, 0, True),
    Function("ifnull", _coalesce, 2, 2, 0, True),
    Function("nullif", _nullif, 2, 2, 0, True),
    Function("if", _if, 2, 3, 1, True),
    Function("iff", _if, 3, 3, 1, True),
    Function("isnull", lambda value: value is None, 1, 1, "boolean", True),
    Function("isnotnull", lambda value: value is not None, 1, 1, "boolean", True),
    Function("isnan", lambda value: value != value, 1, 1, "boolean"),
    Function("lower", str.lower, 1, 1, "string"),
    Function("lcase", str.lower, 1, 1, "string"),
    Function("upper", str.upper, 1, 1, "string"),
    Function("ucase", str.upper, 1, 1, "string"),
    Function("length", len, 1, 1, "int"),
    Function("char_length", len, 1, 1, "int"),
    Function("substring", _substring, 2, 3, "string"),
    Function("substr", _substring, 2, 3, "string"),
    Function("left", lambda text, n: text[: max(n, 0)], 2, 2, "string"),
    Function("right", lambda text, n: text[-n:] if n > 0 else "", 2, 2, "string"),
    Function("concat", lambda *parts: "".join(text_of(part) for part in parts), 1, MANY, "string"),
    Function("concat_ws", _concat_ws, 1, MANY, "string", True),
    Function("trim", str.strip, 1, 1, "string"),
    Function("ltrim", str.lstrip, 1, 1, "string"),
    Function("rtrim", str.rstrip, 1, 1, "string"),
    Function("replace", lambda text, old, new="": text.replace(old, new), 2, 3, "string"),
    Function("reverse", lambda text: text[::-1], 1, 1, 0),
    Function("repeat", lambda text, n: text * n, 2, 2, "string"),
    Function("lpad", lambda text, n, fill=" ": _pad(text, n, fill, True), 2, 3, "string"),
    Function("rpad", lambda text, n, fill=" ": _pad(text, n, fill, False), 2, 3, "string"),
    Function("startswith", str.startswith, 2, 2, "boolean"),
    Function("starts_with", str.startswith, 2, 2, "boolean"),
    Function("endswith", str.endswith, 2, 2, "boolean"),
    Function("contains", lambda text, part: part in text, 2, 2, "boolean"),
    Function("instr", lambda text, part: text.find(part) + 1, 2, 2, "int"),
    Function("strpos", lambda text, part: text.find(part) + 1, 2, 2, "int"),
    Function("array", lambda *items: list(items), 0, MANY, "array", True),
    Function("size", len, 1, 1, "int"),
    Function("cardinality", len, 1, 1, "int"),
    Function("array_size", len, 1, 1, "int"),
    Function("array_join", lambda items, sep: _concat_ws(sep, items), 2, 2, "string"),
    Function("array_contains", lambda items, item: item in items, 2, 2, "boolean"),
    Function("element_at", _element_at, 2, 2, "element"),
    Function("year", _part("year"), 1, 1, "int"),
    Function("month", _part("month"), 1, 1, "int"),
    Function("day", _part("day"), 1, 1, "int"),
    Function("dayofmonth", _part("day"), 1, 1, "int"),
    Function("hour", _part("hour"), 1, 1, "int"),
    Function("minute", _part("minute"), 1, 1, "int"),
    Function("second", _part("second"), 1, 1, "int"),
    Function("dayofweek", lambda value: value.isoweekday() % 7 + 1, 1, 1, "int"),
    Function("dayofyear", lambda value: value.timetuple().tm_yday, 1, 1, "int"),
    Function("date_trunc", lambda unit, value: truncated(unit, value), 2, 2, "timestamp"),
    Function("datediff", _datediff, 2, 3, "bigint"),
    Function("date_diff", _datediff, 2, 3, "bigint"),
    Function("timestampdiff", _datediff, 3, 3, "bigint"),
    Function("unix_timestamp", lambda value: int(_seconds(value)), 1, 1, "bigint"),
    Function("to_unixtime", _seconds, 1, 1, "double"),
    Function("to_date", lambda value: cast(value, "date"), 1, 1, "date"),
    Function("date", lambda value: cast(value, "date"), 1, 1, "date"),
    Function("to_timestamp", lambda value: cast(value, "timestamp"), 1, 1, "timestamp"),
)
FUNCTIONS: dict[str, Function] = {function.name: function for function in _FUNCTIONS}
# Functions whose first argument may be a unit of time written as a bare word.
WITH_UNITS = frozenset({"datediff", "date_diff", "timestampdiff"})

"""Operators and functions on values of SQL as plain Python values; None is NULL.

The reference evaluator uses them for everything; the engine where Arrow has no function of its own.
"""

from __future__ import annotations

import math
import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeAlias

from cepheid.language.units import UNITS, unit_named


@dataclass(frozen=True)
class Months:
    """A length of time in months, which has no fixed length in days."""

    count: int

    def __neg__(self) -> Months:
        return Months(-self.count)

    def __add__(self, other: Months) -> Months:
        return Months(self.count + other.count)


Value: TypeAlias = Any  # None, bool, int, float, Decimal, str, date, datetime, timedelta or a list of them


def comparable(left: Value, right: Value) -> tuple[Value, Value]:
    """Two values brought to one kind, as SQL compares and combines them."""
    if isinstance(left, Decimal) and isinstance(right, float):
        return float(left), right
    if isinstance(left, float) and isinstance(right, Decimal):
        return left, float(right)
    if isinstance(left, date) and isinstance(right, str):
        return comparable(left, moment(right))
    if isinstance(left, str) and isinstance(right, date):
        return comparable(moment(left), right)
    if isinstance(left, datetime) != isinstance(right, datetime) and isinstance(left, date) and isinstance(right, date):
        return comparable(_midnight(left), _midnight(right))
    if isinstance(left, datetime) and isinstance(right, datetime) and (left.tzinfo is None) != (right.tzinfo is None):
        return _in_utc(left), _in_utc(right)
    return left, right


def _midnight(value: date) -> datetime:
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)


def _in_utc(value: datetime) -> datetime:
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def moment(text: str) -> date | datetime | None:
    """A date or a time from its text; None if it is neither."""
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        return None


def both(operate: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """An operator on two values: NULL if either is."""

    def operator(left: Value, right: Value) -> Value:
        if left is None or right is None:
            return None
        left, right = comparable(left, right)
        return None if left is None or right is None else operate(left, right)

    return operator


def divide(left: Value, right: Value) -> Value:
    """Division; by zero it gives NULL, as Spark's try_divide does."""
    if isinstance(left, timedelta):
        return None if not right else left / right
    if not right:
        return None
    return left / right


def divide_whole(left: Value, right: Value) -> Value:
    """Division of whole numbers towards zero, of all others as usual (Trino, PostgreSQL)."""
    if isinstance(left, int) and isinstance(right, int):
        if right == 0:
            return None
        quotient = abs(left) // abs(right)
        return quotient if (left < 0) == (right < 0) else -quotient
    return divide(left, right)


def remainder(left: Value, right: Value) -> Value:
    """The remainder with the sign of the dividend, as in Java."""
    if not right:
        return None
    if isinstance(left, int) and isinstance(right, int):
        return left - right * divide_whole(left, right)
    return math.fmod(left, right)


def integral(left: Value, right: Value) -> Value:
    """DIV: the whole part of a quotient."""
    return None if not right else int(left / right) if isinstance(left, float) else divide_whole(left, right)


def later_by_months(value: Value, months: Value) -> Value:
    """A time so many months later, on the last day where the month is too short, as SQL has it.

    >>> later_by_months(date(2024, 1, 31), 1)
    datetime.date(2024, 2, 29)
    """
    if value is None or months is None:
        return None
    if isinstance(value, str):
        value = moment(value)
    years, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    return value.replace(year=years, month=month + 1, day=min(value.day, monthrange(years, month + 1)[1]))


def field_of(value: Value, name: str) -> Value:
    """A field of a struct, whatever the case of its name."""
    if value is None:
        return None
    return value[name] if name in value else next((v for k, v in value.items() if k.lower() == name.lower()), None)


def conjunction(left: Value, right: Value) -> Value:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def disjunction(left: Value, right: Value) -> Value:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def same(left: Value, right: Value) -> bool:
    """IS NOT DISTINCT FROM: NULL equals NULL."""
    if left is None or right is None:
        return left is None and right is None
    left, right = comparable(left, right)
    return bool(left == right)


def member(value: Value, *items: Value) -> Value:
    """IN: unknown if no item equals and one is NULL."""
    if value is None:
        return None
    equal = [both(lambda a, b: a == b)(value, item) for item in items]
    return True if True in equal else None if None in equal else False


def choose(*parts: Value) -> Value:
    """CASE: test, value, test, value, ..., otherwise."""
    for test, value in zip(parts[:-1:2], parts[1::2], strict=True):
        if test is True:
            return value
    return parts[-1]


def like(value: Value, pattern: Value, escape: str = "\\") -> Value:
    return None if value is None or pattern is None else like_expression(pattern, escape).fullmatch(value) is not None


@lru_cache(256)
def like_expression(pattern: str, escape: str = "\\") -> re.Pattern[str]:
    """A LIKE pattern as a regular expression."""
    pieces, position = [], 0
    while position < len(pattern):
        character = pattern[position]
        if character == escape and position + 1 < len(pattern):
            position += 1
            pieces.append(re.escape(pattern[position]))
        else:
            pieces.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
        position += 1
    return re.compile("".join(pieces), re.DOTALL)


def element(values: Value, index: Value) -> Value:
    """values[index], counted from zero; NULL outside."""
    if values is None or index is None or not 0 <= index < len(values):
        return None
    return values[index]


OPERATORS: dict[str, Callable[..., Value]] = {
    "+": both(lambda a, b: a + b),
    "-": both(lambda a, b: a - b),
    "*": both(lambda a, b: a * b),
    "/": both(divide),
    "whole /": both(divide_whole),
    "%": both(remainder),
    "div": both(integral),
    "||": both(lambda a, b: a + b if isinstance(a, list) else text_of(a) + text_of(b)),
    "=": both(lambda a, b: a == b),
    "!=": both(lambda a, b: a != b),
    "<": both(lambda a, b: a < b),
    "<=": both(lambda a, b: a <= b),
    ">": both(lambda a, b: a > b),
    ">=": both(lambda a, b: a >= b),
    "<=>": same,
    "and": conjunction,
    "or": disjunction,
    "not": lambda value: None if value is None else not value,
    "negative": lambda value: None if value is None else -value,
    "is null": lambda value: value is None,
    "in": member,
    "like": like,
    "rlike": lambda value, pattern: None if value is None or pattern is None else bool(re.search(pattern, value)),
    "case": choose,
    "element": element,
    "add months": later_by_months,
}


# --- CAST ---------------------------------------------------------------------------------------------------------


def text_of(value: Value) -> str:
    """A value as CAST(... AS STRING) shows it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        shown = value.replace(tzinfo=None).isoformat(sep=" ")
        return shown.rstrip("0") if "." in shown else shown
    return str(value)


TEXT = frozenset({"string", "varchar", "char", "text"})
WHOLE = frozenset({"bigint", "long", "int", "integer", "smallint", "short", "tinyint", "byte"})
REAL = frozenset({"double", "float", "real", "number", "numeric"})


def cast(value: Value, target: str) -> Value:
    """CAST: NULL where the value cannot be brought to the type."""
    name, numbers = type_parts(target)
    if value is None:
        return None
    try:
        if name in TEXT:
            return text_of(value)[: numbers[0]] if numbers else text_of(value)
        if name in WHOLE:
            return int(Decimal(value.strip())) if isinstance(value, str) else int(value)
        if name in REAL:
            return float(value)
        if name in ("decimal", "dec"):
            return Decimal(str(value)).quantize(Decimal(1).scaleb(-(numbers[1] if len(numbers) > 1 else 0)))
        if name in ("boolean", "bool"):
            return {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else bool(value)
        if name in ("timestamp", "timestamp_ntz", "datetime"):
            found = moment(value) if isinstance(value, str) else value
            return None if found is None else _midnight(found)
        if name == "date":
            found = moment(value) if isinstance(value, str) else value
            return found.date() if isinstance(found, datetime) else found
    except (ValueError, TypeError, ArithmeticError):
        return None
    raise ValueError(f"no type '{target}'")


def type_parts(target: str) -> tuple[str, tuple[int, ...]]:
    """The name and the numbers of a type.

    >>> type_parts("decimal(10,2)")
    ('decimal', (10, 2))
    """
    name, _, inner = target.partition("(")
    return name, tuple(int(number) for number in inner.rstrip(")").split(",") if number.isdigit())


TIMES = frozenset({"timestamp", "timestamp_ntz", "datetime", "date"})
KNOWN_TYPES = TEXT | WHOLE | REAL | TIMES | {"decimal", "dec", "boolean", "bool"}


# --- times --------------------------------------------------------------------------------------------------------


def difference(unit: str, start: date, end: date) -> int | None:
    """How many whole units lie between two times, towards zero."""
    begin, finish = _midnight(start), _midnight(end)
    if (begin.tzinfo is None) != (finish.tzinfo is None):
        begin, finish = _in_utc(begin), _in_utc(finish)
    name = unit.lower().rstrip("s")
    if name in ("month", "quarter", "year"):
        months = (finish.year - begin.year) * 12 + finish.month - begin.month
        first, last = (begin.day, begin.time()), (finish.day, finish.time())
        months += (-1 if months > 0 and last < first else 0) + (1 if months < 0 and last > first else 0)
        return int(divide_whole(months, {"month": 1, "quarter": 3, "year": 12}[name]))
    named = unit_named(unit.lower())
    if named is None:
        return None
    microseconds = (finish - begin) // timedelta(microseconds=1)
    return int(divide_whole(microseconds * 1000, UNITS[named]))


def truncated(unit: str, value: date) -> datetime | None:
    """The beginning of the unit of time that a value lies in."""
    at = _midnight(value)
    name = unit.lower().rstrip("s")
    if name == "week":
        at = at - timedelta(days=at.weekday())
        name = "day"
    if name == "quarter":
        at = at.replace(month=(at.month - 1) // 3 * 3 + 1)
        name = "month"
    fields = ["year", "month", "day", "hour", "minute", "second"]
    if name not in fields:
        return None
    least = {"month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0}
    cleared = {field: least[field] for field in fields[fields.index(name) + 1 :]}
    return at.replace(microsecond=0, **cleared)  # type: ignore[arg-type]

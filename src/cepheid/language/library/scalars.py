"""Operators and CAST on values as plain Python has them, dates, times and lengths of time included; None is NULL.

The reference evaluators use them for everything; engines where Arrow has no function of its own.
"""

from __future__ import annotations

import operator
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any, TypeAlias

from cepheid.language.library import conversions as c
from cepheid.language.library import operators
from cepheid.language.library.dates import DAY
from cepheid.language.library.decimals import Precision
from cepheid.language.library.text_parts import LONGEST
from cepheid.language.library.value_functions import cast as plain_cast
from cepheid.language.library.value_functions import text_of as plain_text
from cepheid.language.schema import DataType
from cepheid.language.zones import zone_info

Value: TypeAlias = Any  # None, bool, int, float, Decimal, str, date, datetime, timedelta or a list of them


def arithmetic(sign: str, wanted: Precision | None = None) -> Callable[[Value, Value], Value]:
    """An operator on two numbers, times or lengths of time; `wanted` is the type of a result that is a decimal."""

    def calculated(left: Value, right: Value) -> Value:
        if left is None or right is None:
            return None
        if isinstance(left, date | timedelta) or isinstance(right, date | timedelta):
            return _of_times(sign, left, right)
        return operators.calculate(sign, left, right, wanted)

    return calculated


def _of_times(sign: str, left: Value, right: Value) -> Value:
    """Times and lengths of time; NULL beyond the years 1 to 9999."""
    left, right = (operators.midnight(each) if isinstance(each, date) else each for each in (left, right))
    try:
        if sign == "+":
            return _later(left, right)
        if sign == "-":
            if isinstance(left, datetime) and isinstance(right, datetime):
                left, right = operators.in_one_zone(left, right)
                return left - right
            return _later(left, -right)
        if sign == "*":
            return left * right
        return left / right if right else None
    except (OverflowError, ZeroDivisionError):
        return None


def _later(left: Value, right: Value) -> Value:
    """A sum with a length of time. It passes between instants, whatever clocks are put to meanwhile."""
    if isinstance(left, datetime) and left.tzinfo is not None:
        return (operators.in_utc(left) + right).astimezone(left.tzinfo)
    return _later(right, left) if isinstance(right, datetime) and right.tzinfo is not None else left + right


def divide_whole(wanted: Precision | None = None) -> Callable[[Value, Value], Value]:
    """Division of whole numbers towards zero, of all others as usual (Trino, PostgreSQL)."""
    plain, whole = arithmetic("/", wanted), arithmetic("div")

    def calculated(left: Value, right: Value) -> Value:
        return whole(left, right) if isinstance(left, int) and isinstance(right, int) else plain(left, right)

    return calculated


def later_by_months(value: Value, months: Value) -> Value:
    """A time so many months later, on the last day where the month is too short, as SQL has it.

    >>> later_by_months(date(2024, 1, 31), 1)
    datetime.date(2024, 2, 29)
    """
    if value is None or months is None:
        return None
    if isinstance(value, str):
        value = operators.moment_of(value)
        if value is None:
            return None
    years, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    if not 1 <= years <= 9999:
        return None
    return value.replace(year=years, month=month + 1, day=min(value.day, monthrange(years, month + 1)[1]))


def field_of(value: Value, name: str) -> Value:
    """A field of a struct, whatever the case of its name."""
    if value is None:
        return None
    return value[name] if name in value else next((v for k, v in value.items() if k.lower() == name.lower()), None)


def conjunction(*values: Value) -> Value:
    """AND: one that is false decides, else one that is unknown."""
    return False if False in values else None if None in values else True


def disjunction(*values: Value) -> Value:
    """OR: one that is true decides, else one that is unknown."""
    return True if True in values else None if None in values else False


def opposite(value: Value) -> Value:
    """NOT."""
    return None if value is None else not value


COMPARISONS: dict[str, Callable[[Value, Value], Value]] = {
    "=": operators.compared(operator.eq),
    "!=": operators.compared(operator.ne),
    "<": operators.compared(operator.lt),
    "<=": operators.compared(operator.le),
    ">": operators.compared(operator.gt),
    ">=": operators.compared(operator.ge),
}
_equal = COMPARISONS["="]


def between(value: Value, low: Value, high: Value) -> Value:
    """BETWEEN, both ends included."""
    return conjunction(COMPARISONS[">="](value, low), COMPARISONS["<="](value, high))


def same(left: Value, right: Value) -> bool:
    """IS NOT DISTINCT FROM: NULL equals NULL."""
    left, right = operators.known(left), operators.known(right)
    if left is None or right is None:
        return left is None and right is None
    return _equal(left, right) is True


def member(value: Value, *items: Value) -> Value:
    """IN: unknown if no item equals and one is NULL."""
    if value is None:
        return None
    equal = [_equal(value, item) for item in items]
    return True if True in equal else None if None in equal else False


def _joined(left: Value, right: Value) -> Value:
    if left is None or right is None:
        return None
    if isinstance(left, list):
        return left + right
    joined = text_of(left) + text_of(right)
    return joined if len(joined) <= LONGEST else None


# What a clause calls besides the functions of the library; binding writes the last two.
OPERATORS: dict[str, Callable[..., Value]] = {
    "||": _joined,
    "<=>": same,
    "add months": later_by_months,
    "cast": lambda value, target: cast(value, target),
    "in zone": lambda value, zone: instant_in(zone_info(zone))(value),
    "struct field": field_of,
    "named_struct": lambda *values: dict(zip(values[::2], values[1::2], strict=True)),
}
CHOOSING = frozenset({"case", "if", "iff", "coalesce", "nvl", "ifnull", "least", "greatest"})  # one of several values


# --- CAST ---------------------------------------------------------------------------------------------------------


def text_of(value: Value) -> str:
    """A value as CAST(... AS STRING) shows it."""
    if isinstance(value, datetime):
        return c.text_of_moment(operators.micros_of(value))
    if isinstance(value, date):
        return c.text_of_day(operators.micros_of(value) // DAY)
    if isinstance(value, timedelta):
        return _text_of_length(value)
    if isinstance(value, list):
        return f"[{', '.join('null' if each is None else text_of(each) for each in value)}]"
    return plain_text(value)


def _text_of_length(value: timedelta) -> str:
    """INTERVAL '1 02:03:04.5' DAY TO SECOND, as Spark writes it."""
    sign, length = ("-", -value) if value < timedelta() else ("", value)
    clock = c.text_of_moment((length % timedelta(days=1)) // timedelta(microseconds=1))[11:]
    return f"INTERVAL '{sign}{length.days} {clock}' DAY TO SECOND"


TEXT = frozenset({"string", "varchar", "char", "text"})
BITS = {"bigint": 64, "long": 64, "int": 32, "integer": 32, "smallint": 16, "short": 16, "tinyint": 8, "byte": 8}
WHOLE = frozenset(BITS)
SINGLE = frozenset({"float", "real"})
REAL = frozenset({"double", "number"}) | SINGLE
DECIMALS = frozenset({"decimal", "dec", "numeric"})


def cast(value: Value, target: str) -> Value:
    """CAST: NULL where the value cannot be brought to the type."""
    name, numbers = type_parts(target)
    value = operators.known(value)
    if value is None:
        return None
    if name in TEXT:
        return text_of(value)[: numbers[0]] if numbers else text_of(value)
    if name in TIMES:
        return _as_time(value, name)
    if isinstance(value, timedelta | list | dict):
        return None
    if isinstance(value, date):
        return operators.known(plain_cast(_instant(value), target, DataType.TIME.name))
    return operators.known(plain_cast(value, target))


def _instant(value: date) -> int:
    """The microseconds since 1970 in UTC."""
    return operators.micros_of(operators.in_utc(operators.midnight(value)))


def _as_time(value: Value, name: str) -> Value:
    """A value as a date or a time; numbers are seconds since 1970."""
    if isinstance(value, str):
        if name == "date":
            days = c.day_of_text(value)
            return None if days is None else operators.day_of(days * DAY)
        found = operators.moment_of(value)
        if found is None:
            return None
        return (found if name == "timestamp_ntz" else operators.in_utc(found)).replace(tzinfo=None)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | date):
        return None
    if not isinstance(value, date):
        value = operators.time_of(c.whole_of(value * 1_000_000))
    if value is None:
        return None
    if name == "date":
        return value.date() if isinstance(value, datetime) else value
    return operators.midnight(value).replace(tzinfo=None) if name == "timestamp_ntz" else operators.midnight(value)


def instant_in(zone: tzinfo) -> Callable[[Value], Value]:
    """CAST to a timestamp that is an instant: texts without an offset, dates and times without a zone are a zone's."""

    def function(value: Value) -> Value:
        if isinstance(value, int | float | Decimal):
            found = _as_time(operators.known(value), "timestamp")
            return None if found is None else found.replace(tzinfo=UTC).astimezone(zone)
        found = operators.moment_of(value) if isinstance(value, str) else value
        return operators.in_zone(operators.midnight(found), zone) if isinstance(found, date) else None

    return function


def type_parts(target: str) -> tuple[str, tuple[int, ...]]:
    """The name and the numbers of a type.

    >>> type_parts("decimal(10,2)")
    ('decimal', (10, 2))
    """
    name, _, inner = target.partition("(")
    return name, tuple(int(number) for number in inner.rstrip(")").split(",") if number.isdigit())


def decimal_parts(numbers: tuple[int, ...]) -> Precision:
    """The digits of a decimal that are written behind its name."""
    precision = numbers[0] if numbers else 10
    return precision, numbers[1] if len(numbers) > 1 else 0


TIMES = frozenset({"timestamp", "timestamp_ntz", "datetime", "date"})
KNOWN_TYPES = TEXT | WHOLE | REAL | TIMES | DECIMALS | {"boolean", "bool"}

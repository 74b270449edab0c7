"""Operators on values as plain Python has them, with Spark's meaning; None is NULL.

Values are truth values, whole numbers of 64 bits, doubles, decimals, texts, dates, times, lengths of time and lists.
Where Spark's ANSI mode raises an error for a value the result is None, and so it is where a double is not a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from cepheid.language.library import conversions as c
from cepheid.language.library.dates import DAY
from cepheid.language.library.decimals import (
    EXACT,
    MOST,
    Precision,
    as_decimal,
    fitted,
    operate,
    precision_of,
    type_of_result,
)
from cepheid.language.whole import LEAST, within_64_bits

EPOCH = datetime(1970, 1, 1)
_OPPOSITE = Context(prec=34, rounding=ROUND_HALF_EVEN)  # Spark keeps so many digits where a sign changes
_MICROSECOND = timedelta(microseconds=1)


def known(value: object) -> Any:
    """The value, or None if it is not a number or a whole number beyond 64 bits.

    >>> known(float("nan")), known(2**63), known(1.5)
    (None, None, 1.5)
    """
    return None if isinstance(value, float) and value != value else within_64_bits(value)


# --- times ------------------------------------------------------------------------------------------------------------


def micros_of(value: date) -> int:
    """The microseconds since 1970 that the clock of a date or a time shows."""
    return (midnight(value).replace(tzinfo=None) - EPOCH) // _MICROSECOND


def time_of(micros: int | None, zone: tzinfo | None = None) -> datetime | None:
    """The time at which the clock of a zone shows so many microseconds; None beyond the years 1 to 9999."""
    try:
        return None if micros is None else (EPOCH + micros * _MICROSECOND).replace(tzinfo=zone)
    except OverflowError:
        return None


def day_of(micros: int | None) -> date | None:
    """The date of so many microseconds."""
    found = time_of(micros)
    return None if found is None else found.date()


def midnight(value: date) -> datetime:
    """A date as the time at which it begins."""
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)


def in_one_zone(left: datetime, right: datetime) -> tuple[datetime, datetime]:
    """Two times beside each other: one without a zone is one of the other's. Instants are compared in UTC.

    Python compares and subtracts times of one zone as its clocks show them, which is off where they are put.
    """
    zone = left.tzinfo or right.tzinfo
    return (left, right) if zone is None else (in_utc(in_zone(left, zone)), in_utc(in_zone(right, zone)))


def in_zone(value: datetime, zone: tzinfo) -> datetime:
    """A time without a zone as one of a zone; an instant as the clocks of the zone show it."""
    return in_utc(value if value.tzinfo is not None else value.replace(tzinfo=zone)).astimezone(zone)


def in_utc(value: datetime) -> datetime:
    """The same instant in UTC; a time without a zone as it is."""
    return value if value.tzinfo is None else value.astimezone(UTC)


def ordered(value: object) -> Any:
    """What a value is ordered and told from others by: Python takes two instants for one where clocks show it twice."""
    return in_utc(value) if isinstance(value, datetime) else value


def moment_of(text: str) -> datetime | None:
    """A time as it is written; it has a zone if it names one.

    >>> moment_of("2024-02-29"), moment_of("2024-02-30")
    (datetime.datetime(2024, 2, 29, 0, 0), None)
    """
    found = c.moment_of_text(text)
    return None if found is None else time_of(*found)


# --- two values of one kind -------------------------------------------------------------------------------------------


def comparable(left: Any, right: Any) -> tuple[Any, Any]:
    """Two values brought to one kind, as SQL compares them; None for one that cannot be."""
    if isinstance(left, str) and not isinstance(right, str):
        return _beside(_as_kind(left, right), _plain(right))
    if isinstance(right, str) and not isinstance(left, str):
        return _beside(_plain(left), _as_kind(right, left))
    if isinstance(left, float) != isinstance(right, float) and _is_number(left) and _is_number(right):
        return float(left), float(right)
    return _beside(left, right)


def _beside(left: object, right: object) -> tuple[object, object]:
    """A date beside a time as a time, and both in one zone."""
    times = isinstance(left, datetime) or isinstance(right, datetime)
    if times and isinstance(left, date) and isinstance(right, date):
        return in_one_zone(midnight(left), midnight(right))
    return left, right


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _as_kind(text: str, other: object) -> Any:
    """A text as the kind of value that it is compared with."""
    if isinstance(other, bool):
        return c.truth_of_text(text)
    if isinstance(other, int):
        return c.whole_of(text)
    if isinstance(other, float | Decimal):
        return known(c.number_of_text(text))
    if isinstance(other, datetime):
        return moment_of(text)
    if isinstance(other, date):
        days = c.day_of_text(text)
        return None if days is None else day_of(days * DAY)
    raise TypeError(f"a string beside {type(other).__name__}")


def _plain(value: object) -> Any:
    """A decimal beside a text is compared as a double."""
    return float(value) if isinstance(value, Decimal) else value


def compared(compare: Callable[[Any, Any], object]) -> Callable[[object, object], object]:
    """A comparison of two values: None if either is NULL or cannot be brought to the kind of the other."""

    def operator(left: object, right: object) -> Any:
        left, right = known(left), known(right)
        if left is None or right is None:
            return None
        left, right = comparable(left, right)
        return None if left is None or right is None else compare(left, right)

    return operator


# --- arithmetic -------------------------------------------------------------------------------------------------------


def calculate(sign: str, left: Any, right: Any, wanted: Precision | None = None) -> Any:
    """`left sign right` of two numbers; `wanted` is the type of a result that is a decimal.

    >>> calculate("+", 2**63 - 1, 1), calculate("/", 7, 2), calculate("%", -(2**63), 5)
    (None, 3.5, -3)
    >>> calculate("*", 3, Decimal("1.1"))
    Decimal('3.3')
    """
    left, right = known(left), known(right)
    if left is None or right is None:
        return None
    if isinstance(left, float) or isinstance(right, float):
        return _of_doubles(sign, float(left), float(right))
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        one, other = as_decimal(left), as_decimal(right)
        if sign == "div":
            return None if not other else within_64_bits(int(EXACT.divide(one, other)))
        found = type_of_result(sign, precision_of(left), precision_of(right)) if wanted is None else wanted
        return operate(sign, one, other, found)
    if sign == "/":
        return None if right == 0 else float(left) / float(right)
    if sign in ("%", "div"):
        return None if right == 0 else within_64_bits(_remainder(left, right) if sign == "%" else quotient(left, right))
    return within_64_bits(left + right if sign == "+" else left - right if sign == "-" else left * right)


def _of_doubles(sign: str, left: float, right: float) -> Any:
    match sign:
        case "+":
            return known(left + right)
        case "-":
            return known(left - right)
        case "*":
            return known(left * right)
    if right == 0:
        return None
    if sign == "%":
        return None if math.isinf(left) else math.fmod(left, right)
    found = known(left / right)
    if sign == "/" or found is None:
        return found
    return c.whole_of(found)


def quotient(left: int, right: int) -> int:
    """The quotient of whole numbers, cut towards zero."""
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def _remainder(left: int, right: int) -> int:
    return left - right * quotient(left, right)


def positive_remainder(left: object, right: Any, wanted: Precision | None = None) -> Any:
    """pmod: the remainder, positive where the divisor is.

    >>> positive_remainder(-7, 3), positive_remainder(-7, -3), positive_remainder(-7.5, 2)
    (2, -1, 0.5)
    """
    rest = calculate("%", left, right, wanted)
    if rest is None or rest >= 0:
        return rest
    if isinstance(rest, float):
        return calculate("%", rest + float(right), right)
    if isinstance(rest, Decimal):
        return calculate("%", EXACT.add(rest, as_decimal(right)), right, wanted)
    moved = rest + right
    return calculate("%", moved if moved >= LEAST else moved + 2**64, right)  # as in Java, it goes around here


def negative(value: Any) -> Any:
    """-value; None for the least whole number."""
    if isinstance(value, Decimal):
        places = -int(value.as_tuple().exponent)
        return fitted(_OPPOSITE.plus(value.copy_negate()), (MOST, places)) if value else value
    return None if value is None else known(-value)


def absolute(value: Any) -> Any:
    """The value without its sign; None for the least whole number."""
    if isinstance(value, Decimal):
        return negative(value) if value < 0 else value
    return None if value is None else known(abs(value))

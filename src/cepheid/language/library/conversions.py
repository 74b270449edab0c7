"""Values as other types, as Spark's ANSI casts have them: None where a value cannot be converted.

Times are microseconds since 1970 on some clock; `cast` of value_functions.py and that of row patterns build on these.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal, InvalidOperation
from typing import Any

from cepheid.language.library.dates import DAY, civil, days_of, is_date
from cepheid.language.library.decimals import Precision, as_decimal, fitted
from cepheid.language.zones import to_instant, zone_in_text

_BLANK = "".join(map(chr, (*range(33), 127)))  # what Spark trims before it reads a value
_WHOLE = re.compile(r"[+-]?[0-9]+")
_FRACTION = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_HEXADECIMAL = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_ENDLESS = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE)
_TRUE, _FALSE = frozenset({"t", "true", "y", "yes", "1"}), frozenset({"f", "false", "n", "no", "0"})
_DAY = r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2}))?)?"
_DATE = re.compile(_DAY + r"(?:[ T].*)?", re.DOTALL)
_CLOCK = r"([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?)?)?"
_MOMENT = re.compile(_DAY + rf"(?:[ T]{_CLOCK}(.*))?")
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def trimmed(text: str) -> str:
    """Without blanks and control characters at both ends."""
    return text.strip(_BLANK)


def whole_of_text(text: str) -> int | None:
    """A whole number as it is written.

    >>> whole_of_text(" +12 "), whole_of_text("1.5"), whole_of_text("1_000")
    (12, None, None)
    """
    plain = trimmed(text)
    return int(plain) if len(plain) < 4000 and _WHOLE.fullmatch(plain) else None


def number_of_text(text: str) -> float | None:
    """A double as it is written, as Java reads it.

    >>> number_of_text("1e400"), number_of_text(".5f"), number_of_text("-Inf"), number_of_text("1_000")
    (inf, 0.5, -inf, None)
    """
    plain = trimmed(text)
    endless = _ENDLESS.fullmatch(plain)
    if endless:
        return -math.inf if endless.group(1) == "-" else math.inf
    plain = plain[:-1] if plain[-1:] in "dDfF" else plain
    if _FRACTION.fullmatch(plain):
        return float(plain)
    if _HEXADECIMAL.fullmatch(plain):
        try:
            return float.fromhex(plain)
        except OverflowError:
            return math.inf if not plain.startswith("-") else -math.inf
    return None


def decimal_of_text(text: str) -> Decimal | None:
    """A decimal as it is written."""
    plain = trimmed(text)
    if not _FRACTION.fullmatch(plain):
        return None
    try:
        found = Decimal(plain)
    except InvalidOperation:
        return None
    return found if -400 < found.adjusted() < 400 or not found else None


def truth_of_text(text: str) -> bool | None:
    """TRUE or FALSE as it is written.

    >>> truth_of_text(" Y "), truth_of_text("on")
    (True, None)
    """
    plain = trimmed(text).lower()
    return True if plain in _TRUE else False if plain in _FALSE else None


def day_of_text(text: str) -> int | None:
    """The days since 1970 of a date as it is written; what follows the date does not matter.

    >>> day_of_text("1970-1-2"), day_of_text("1970-02-30"), day_of_text("1970-01-01T??")
    (1, None, 0)
    """
    found = _DATE.fullmatch(trimmed(text))
    return None if found is None else _days(*found.groups())


def _days(year: str, month: str | None, day: str | None) -> int | None:
    date = int(year), int(month or 1), int(day or 1)
    return int(days_of(*date)) if is_date(*date) else None


def moment_of_text(text: str) -> tuple[int, tzinfo | None] | None:
    """The microseconds since 1970 of a time on the clock it is written for, and its zone if it names one.

    >>> moment_of_text("1970-01-01 1:2"), moment_of_text("1970-01-01T00:00:01.5Z")[0], moment_of_text("12:30")
    ((3720000000, None), 1500000, None)
    """
    found = _MOMENT.fullmatch(trimmed(text))
    if found is None:
        return None
    year, month, day, hours, minutes, seconds, fraction, zone = found.groups()
    days = _days(year, month, day)
    if days is None or int(hours or 0) > 23 or int(minutes or 0) > 59 or int(seconds or 0) > 59:
        return None
    if hours is not None and day is None:
        return None
    named = zone_in_text((zone or "").strip())
    if zone and zone.strip() and named is None:
        return None
    clock = (int(hours or 0) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    return days * DAY + clock * 1_000_000 + int(((fraction or "") + "000000")[:6]), named


def instant_of_text(text: str, zone: str) -> int | None:
    """A time in text as an instant, in a zone unless it names one; None if it is no time.

    >>> instant_of_text("2026-01-31T12:00:00", "+01:00") == instant_of_text("2026-01-31 11:00:00Z", "Asia/Tokyo")
    True
    """
    found = moment_of_text(text)
    if found is None:
        return None
    return to_instant(found[0], zone) if found[1] is None else _in_utc(found[0], found[1])


def _in_utc(micros: int, zone: tzinfo) -> int | None:
    """A time on the clock of a zone as the same instant on that of UTC."""
    if zone is UTC:
        return micros
    try:
        local = (_EPOCH + micros * _MICROSECOND).replace(tzinfo=zone)
        return (local.astimezone(UTC).replace(tzinfo=None) - _EPOCH) // _MICROSECOND
    except OverflowError:
        return None


# --- texts ------------------------------------------------------------------------------------------------------------


def text_of_day(days: int) -> str:
    """A date as it is written.

    >>> text_of_day(0), text_of_day(-719528)
    ('1970-01-01', '0000-01-01')
    """
    year, month, day = civil(days)
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def text_of_moment(micros: int) -> str:
    """A time as it is written.

    >>> text_of_moment(1_500_000)
    '1970-01-01 00:00:01.5'
    """
    seconds, rest = divmod(micros % DAY, 1_000_000)
    fraction = f".{rest:06d}".rstrip("0") if rest else ""
    return f"{text_of_day(micros // DAY)} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"


def text_of_number(value: float) -> str:
    """A number as Java, and so Spark, writes it.

    >>> text_of_number(1e7), text_of_number(0.001), text_of_number(-120.5), text_of_number(1.25e-4)
    ('1.0E7', '0.001', '-120.5', '1.25E-4')
    >>> text_of_number(5e-324)
    '4.9E-324'
    """
    if not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    shortest = Decimal(repr(abs(value))).normalize()
    if len(shortest.as_tuple().digits) == 1:  # Java takes the nearest of two digits
        shortest = Decimal(f"{abs(value):.1e}").normalize()
    _, digits, exponent = shortest.as_tuple()
    assert isinstance(exponent, int)
    first, *rest = map(str, digits)
    return f"{'-' if value < 0 else ''}{first}.{''.join(rest) or '0'}E{exponent + len(digits) - 1}"


# --- numbers ----------------------------------------------------------------------------------------------------------


def whole_of(value: Any, bits: int = 64) -> int | None:
    """A text, a number or a truth value as a whole number of so many bits, cut towards zero.

    >>> whole_of(1e30), whole_of(-1.9), whole_of(300, 8), whole_of("7")
    (None, -1, None, 7)
    """
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        return None
    found = whole_of_text(value) if isinstance(value, str) else int(value)
    if bits == 64 and isinstance(value, float) and found == 2**63:
        return 2**63 - 1  # as in Java, where a double has no other form of the greatest whole number
    return found if found is not None and -(2 ** (bits - 1)) <= found < 2 ** (bits - 1) else None


def number_of(value: Any) -> float | None:
    """A text, a number or a truth value as a double."""
    return number_of_text(value) if isinstance(value, str) else float(value)


def decimal_of(value: Any, wanted: Precision) -> Decimal | None:
    """A text, a number or a truth value as a decimal.

    >>> decimal_of(1.005, (10, 2)), decimal_of("x", (10, 2)), decimal_of(12345, (4, 0))
    (Decimal('1.01'), None, None)
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None
    plain = decimal_of_text(value) if isinstance(value, str) else as_decimal(value)
    return None if plain is None else fitted(plain, wanted)


def truth_of(value: object) -> bool | None:
    """A text or a number as TRUE or FALSE."""
    return truth_of_text(value) if isinstance(value, str) else bool(value)

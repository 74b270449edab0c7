"""Intervals, dates, numbers and the names of types, as expressions hold them."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from cepheid.language.library.decimals import MOST, precision_of
from cepheid.language.match_recognize.reader import Reader
from cepheid.language.match_recognize.syntax import Literal, Months
from cepheid.language.match_recognize.tokens import Kind, Token
from cepheid.language.units import UNITS, unit_named
from cepheid.language.whole import within_64_bits

_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def parse_type(reader: Reader) -> str:
    """The name of a type in lower case, with its numbers or the types it holds: decimal(10,2), array(int)."""
    name = reader.identifier("a type").name.lower()
    if name == "double":
        reader.take_words("PRECISION")
    if reader.take_symbol("("):
        name = f"{name}({_inside_type(reader)}{reader.expect_symbol(')').text}"
    elif reader.take_symbol("<"):
        name = f"{name}<{_inside_type(reader)}{reader.expect_symbol('>').text}"
    if name.startswith("timestamp") and reader.take_words("WITH", "TIME", "ZONE"):
        return "timestamp"
    if name.startswith("timestamp") and reader.take_words("WITHOUT", "TIME", "ZONE"):
        return "timestamp_ntz"
    if name.startswith("timestamp") and reader.take_words("WITH", "LOCAL", "TIME", "ZONE"):
        return "timestamp"
    return name


def _inside_type(reader: Reader) -> str:
    """The contents of the parentheses of a type: numbers, or types, each after the name of a field if it has one."""
    parts = []
    while True:
        if reader.token.kind is Kind.NUMBER:
            parts.append(str(reader.whole_number("a number")))
        else:
            part = parse_type(reader)
            if reader.take_symbol(":") or reader.token.kind in (Kind.WORD, Kind.QUOTED):
                part = f"{part} {parse_type(reader)}"
            parts.append(part)
        if not reader.take_symbol(","):
            return ",".join(parts)


def parse_interval(reader: Reader) -> Literal:
    """INTERVAL '5' MINUTE, INTERVAL 5 MINUTES, INTERVAL '1 day 2 hours', INTERVAL '0 00:05:00' DAY TO SECOND."""
    start = reader.advance().start
    negative = reader.take_symbol("-")
    if not negative:
        reader.take_symbol("+")
    token = reader.advance()
    words = token.value.replace(",", " ").split()
    value: timedelta | Months
    unit = reader.token.text.lower() if reader.token.kind is Kind.WORD else ""
    if _is_unit(unit) and (len(words) == 1 or _is_range(reader)):
        reader.advance()
        _precision(reader)
        if reader.take_words("TO"):
            last = reader.identifier("a unit").name.lower()
            _precision(reader)
            value = _clock(reader, token.value, unit, last, token)
        else:
            value = _length(reader, words[0], unit, token)
    else:
        if len(words) % 2 or not words:
            reader.fail("an interval needs a unit", token.span, "interval", "write INTERVAL '5' MINUTE")
        parts = [_length(reader, number, unit, token) for number, unit in zip(words[::2], words[1::2], strict=True)]
        if len({type(part) for part in parts}) > 1:
            reader.fail("months beside days", token.span, "interval", "add one after the other")
        value = sum(parts[1:], parts[0])
    return Literal(-value if negative else value, (start, reader.ahead(-1).end))


def _is_unit(word: str) -> bool:
    return unit_named(word) is not None or word.rstrip("s") in _MONTHS


def _is_range(reader: Reader) -> bool:
    """Do a unit, its precision if it has one, and TO come next?"""
    ahead = 4 if reader.ahead().text == "(" else 1
    return reader.ahead(ahead).upper == "TO"


def _precision(reader: Reader) -> None:
    """DAY(3): how many digits are kept, which changes nothing here."""
    if reader.take_symbol("("):
        reader.whole_number("a number")
        reader.expect_symbol(")")


def _length(reader: Reader, number: str, unit: str, token: Token) -> timedelta | Months:
    named = unit_named(unit.lower())
    try:
        amount = Decimal(number)
    except ArithmeticError:
        reader.fail(f"'{number}' is not a number", token.span, "interval", "write INTERVAL '5' MINUTE")
    months = _MONTHS.get(unit.lower().rstrip("s"))
    if months is not None:
        return Months(int(amount * months))
    if named is None:
        reader.fail(f"'{unit}' is not a unit of time", token.span, "interval", "write it in days or seconds")
    return timedelta(microseconds=int(amount * UNITS[named] / UNITS["microseconds"]))


def _clock(reader: Reader, written: str, first: str, last: str, token: Token) -> timedelta | Months:
    """INTERVAL '1:30' HOUR TO MINUTE, INTERVAL '2-6' YEAR TO MONTH."""
    if (first.rstrip("s"), last.rstrip("s")) == ("year", "month"):
        years, _, months = written.partition("-")
        if years.isdigit() and months.isdigit():
            return Months(12 * int(years) + int(months))
        reader.fail("expected years and months", token.span, "interval", "write INTERVAL '2-6' YEAR TO MONTH")
    units = ["days", "hours", "minutes", "seconds"]
    names = [unit_named(first), unit_named(last)]
    numbers = written.replace(":", " ").split()
    if names[0] not in units or names[1] not in units:
        reader.fail("an interval from one unit to another goes from DAY to SECOND", token.span, "interval")
    span = units[units.index(str(names[0])) : units.index(str(names[1])) + 1]
    if len(span) != len(numbers):
        reader.fail(f"{len(span)} numbers are expected", token.span, "interval")
    total = timedelta()
    for number, unit in zip(numbers, span, strict=True):
        length = _length(reader, number, unit, token)
        assert isinstance(length, timedelta)
        total += length
    return total


def parse_moment(reader: Reader) -> Literal:
    """DATE '2026-01-31', TIMESTAMP '2026-01-31 12:00:00'."""
    kind, token = reader.advance(), reader.advance()
    try:
        value: date | datetime
        value = date.fromisoformat(token.value) if kind.upper == "DATE" else datetime.fromisoformat(token.value)
    except ValueError:
        reader.fail(f"'{token.value}' is not a {kind.text.lower()}", token.span, "literal", "write it as 2026-01-31")
    return Literal(value, (kind.start, token.end))


def number_of(text: str, doubles: bool = False) -> int | float | Decimal:
    """The value of a number as written: with a fraction a decimal, with an exponent a double; or both a double.

    >>> number_of("1_000"), number_of("2.5e3"), number_of("1.50")
    (1000, 2500.0, Decimal('1.50'))
    """
    digits = text.replace("_", "")
    if digits.isdigit():
        whole = int(digits)
        return whole if within_64_bits(whole) is not None else Decimal(digits)
    if "e" in digits.lower() or doubles or precision_of(Decimal(digits))[0] > MOST:
        return float(digits)
    return Decimal(digits)


def within(value: object) -> Any:
    """-9223372036854775808 is a whole number of 64 bits, though the number after the sign is not.

    >>> within(-number_of("9223372036854775808"))
    -9223372036854775808
    """
    return -(2**63) if isinstance(value, Decimal) and value == -(2**63) and not value.as_tuple().exponent else value

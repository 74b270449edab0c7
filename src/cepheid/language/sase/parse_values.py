"""Nodes of values whose text has a form of its own: CASE, LIKE and lengths of time."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from lark import Token

from cepheid.language import syntax as s
from cepheid.language.library.decimals import MOST, moved, precision_of
from cepheid.language.units import unit_named
from cepheid.language.whole import LEAST, within_64_bits


def case_of(parts: list[Any], span: s.Span) -> s.Call:
    """`CASE WHEN c THEN x ELSE y END` as a call; `CASE v WHEN 1 THEN x END` compares v with each."""
    of, *rest = (part for part in parts if not isinstance(part, Token))
    pairs = [part for part in rest if isinstance(part, tuple)]
    other = rest[-1] if isinstance(rest[-1], s.Expression) else s.Literal(None)
    arguments: list[s.Expression] = []
    for condition, value in pairs:
        same = condition if of is None else s.Comparison("=", of, condition, span=condition.span)
        arguments += [same, value]
    return s.Call("case", (*arguments, other), span=span)


def exact_number(text: str, value: int | float) -> int | float | Decimal | None:
    """A number as it is written: None if a decimal has too many digits.

    >>> exact_number("1.50", 1.5), exact_number("80%", 0.8), exact_number("1e3", 1000.0), exact_number("7", 7)
    (Decimal('1.50'), Decimal('0.8'), 1000.0, 7)
    """
    digits = text.replace("_", "")
    if "e" in digits.lower() or (isinstance(value, int) and within_64_bits(value) is not None):
        return value
    found = Decimal(digits.removesuffix("%"))
    if digits.endswith("%"):
        found = moved(found, -2)
        found = found.quantize(Decimal(1)) if found == found.to_integral_value() else found.normalize()
    return found if precision_of(found)[0] <= MOST else None


def within(value: int | float | Decimal) -> int | float | Decimal:
    """-9223372036854775808 is a whole number of 64 bits, though the number after the sign is not."""
    return LEAST if isinstance(value, Decimal) and value == LEAST and value.as_tuple().exponent == 0 else value


def cast_type_of(name: str, digits: list[str]) -> str:
    """The name of a type as CAST holds it.

    >>> cast_type_of("DECIMAL", ["10", "2"]), cast_type_of("bigint", [])
    ('decimal(10,2)', 'bigint')
    """
    return f"{name.lower()}({','.join(digits)})" if digits else name.lower()


def like_of(parts: list[Any], span: s.Span) -> s.Expression:
    """`x LIKE 'a%'` and its relatives as a call."""
    operand, negated, word, pattern = parts
    name = str(word).lower()
    test = s.Call("rlike" if name == "regexp" else name, (operand, pattern), span=span)
    return s.Not(test, span=span) if negated is not None else test


def duration_of(text: str, span: s.Span) -> s.Duration:
    """A length of time, as we or SQL write it.

    >>> duration_of("5 minutes", s.NOWHERE), duration_of("INTERVAL '1.5' HOUR", s.NOWHERE)
    (Duration(length=5, unit='minutes'), Duration(length=1.5, unit='hours'))
    """
    number, word = text.lower().removeprefix("interval").replace("'", " ").replace("_", "").split()
    unit = unit_named(word)
    assert unit is not None
    return s.Duration(int(number) if number.isdigit() else float(number), unit, span=span)

"""Nodes of values whose text has a form of its own: CASE, LIKE and lengths of time."""

from __future__ import annotations

from typing import Any

from lark import Token

from cepheid.language import syntax as s
from cepheid.language.units import unit_named


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

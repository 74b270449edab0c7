"""Conditions as they read when some events are missing (AYAC section 2.2)."""

from __future__ import annotations

from collections.abc import Sequence

from cepheid.language import syntax as s
from cepheid.language.functions import AGGREGATES

TRUE = s.Literal(True)


def without(node: s.Expression, missing: frozenset[str]) -> s.Expression:
    """The condition as it reads when some events are missing; TRUE where nothing is left to test.

    A missing event stands for its default; without one the condition is vacuous. A missing group has no events, so its
    length and counts are zero and every other aggregate is NULL.

    >>> x, z = s.Attribute(s.Reference("x"), "id", s.Attribute(s.Reference("z"), "id")), s.Literal(3)
    >>> without(s.Comparison("=", x, z), frozenset("x"))  # doctest: +ELLIPSIS
    Comparison(operator='=', left=Attribute(of=Reference(variable='z', ...), name='id', ...), right=Literal(value=3))
    >>> without(s.Comparison("=", x, z), frozenset("xz"))
    Literal(value=True)
    """
    match node:
        case s.And(operands=operands):
            parts = [part for part in (without(operand, missing) for operand in operands) if part != TRUE]
            return _joined(s.And, parts)
        case s.Or(operands=operands):
            alternatives = [without(operand, missing) for operand in operands]
            return TRUE if TRUE in alternatives else _joined(s.Or, alternatives)
    try:
        return _with_defaults(node, missing)
    except _NoDefault:
        return TRUE


def has_default(node: s.Expression) -> bool:
    """Does a condition say something of an event even where that is missing?"""
    return any(isinstance(inner, s.Attribute) and inner.default is not None for inner in s.walk(node))


class _NoDefault(Exception):
    """A missing event without a default."""


def _joined(kind: type[s.And] | type[s.Or], parts: Sequence[s.Expression]) -> s.Expression:
    return TRUE if not parts else parts[0] if len(parts) == 1 else kind(tuple(parts))


def _with_defaults(node: s.Expression, missing: frozenset[str]) -> s.Expression:
    def change(inner: s.Expression) -> s.Expression:
        match inner:
            case s.Length(variable=variable) if variable in missing:
                return s.Literal(0)
            case s.Call(function=function, arguments=(argument,)) if (
                function.lower() in AGGREGATES and s.variables_of(argument) & missing
            ):
                return s.Literal(0 if function.lower() == "count" else None)
            case s.Attribute(of=of, name=name, default=default):
                if of.variable not in missing:
                    return s.Attribute(of, name, span=inner.span)
                if default is None:
                    raise _NoDefault
                return change(default)
        return s.rebuild(inner, change)

    return change(node)

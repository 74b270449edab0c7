"""How a condition reads in a linear pattern that leaves some variables out (docs/semantics.md, "Patterns").

A condition that mentions one says nothing, except where NULL has a meaning of its own: IS NULL, coalesce and counts.
"""

from __future__ import annotations

from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES

TRUE, FALSE, NULL = s.Literal(True), s.Literal(False), s.Literal(None)


class _SaysNothing(Exception):
    """The condition needs an event that was not chosen."""


def without_unchosen(node: s.Expression, unchosen: frozenset[str]) -> s.Expression:
    """The condition, in negation normal form, as it reads without some variables.

    >>> x = s.Attribute(s.Reference("b"), "x")
    >>> without_unchosen(s.Comparison(">", x, s.Literal(1)), frozenset("b"))
    Literal(value=True)
    >>> without_unchosen(s.IsNull(x, negated=True), frozenset("b"))
    Literal(value=False)
    >>> without_unchosen(s.Comparison("=", s.Length("b"), s.Literal(0)), frozenset("b"))
    Comparison(operator='=', left=Literal(value=0), right=Literal(value=0))
    """
    match node:
        case s.And(operands=operands):
            parts = [part for part in (without_unchosen(operand, unchosen) for operand in operands) if part != TRUE]
            if FALSE in parts:
                return FALSE
            return TRUE if not parts else parts[0] if len(parts) == 1 else s.And(tuple(parts), span=node.span)
        case s.Or(operands=operands):
            parts = [part for part in (without_unchosen(operand, unchosen) for operand in operands) if part != FALSE]
            if TRUE in parts:
                return TRUE
            return FALSE if not parts else parts[0] if len(parts) == 1 else s.Or(tuple(parts), span=node.span)
    try:
        return _condition(node, unchosen)
    except _SaysNothing:
        return TRUE


def _condition(node: s.Expression, unchosen: frozenset[str]) -> s.Expression:
    if not s.variables_of(node) & unchosen:
        return node
    if isinstance(node, s.IsNull):
        operand = _value(node.operand, unchosen, nullable=True)
        if isinstance(operand, s.Literal):
            return s.Literal((operand.value is None) != node.negated, span=node.span)
        return s.IsNull(operand, node.negated, span=node.span)
    replaced = s.rebuild(node, lambda inner: _value(inner, unchosen, nullable=False))
    # A comparison with NULL is unknown, and unknown does not select.
    return FALSE if NULL in s.children(replaced) else replaced


def _value(node: s.Expression, unchosen: frozenset[str], *, nullable: bool) -> s.Expression:
    match node:
        case s.Attribute(of=of) if of.variable in unchosen:
            if nullable:
                return NULL
            raise _SaysNothing
        case s.Reference(variable=variable) if variable in unchosen:
            raise _SaysNothing
        case s.Length(variable=variable) if variable in unchosen:
            return s.Literal(0, span=node.span)
        case s.Call(function=function) if function.lower() in AGGREGATES and s.variables_of(node) & unchosen:
            if AGGREGATES[function.lower()].counts and not _looks_back(node):
                return s.Literal(0, span=node.span)
            if nullable:
                return NULL
            raise _SaysNothing
        case s.Call(function=function, arguments=arguments) if function.lower() == "coalesce":
            values = [_value(argument, unchosen, nullable=True) for argument in arguments]
            known = tuple(value for value in values if value != NULL)
            return NULL if not known else known[0] if len(known) == 1 else s.Call(function, known, span=node.span)
        case s.Arithmetic() | s.Negative() | s.Call() if nullable:
            replaced = s.rebuild(node, lambda inner: _value(inner, unchosen, nullable=True))
            return NULL if NULL in s.children(replaced) else replaced
    return s.rebuild(node, lambda inner: _value(inner, unchosen, nullable=nullable))


def _looks_back(node: s.Expression) -> bool:
    return any(isinstance(inner, s.Reference) and inner.element is s.Element.BEFORE for inner in s.walk(node))

"""How a condition reads when some events are missing (AYAC section 2.2; docs/semantics.md, "Predicates").

An attribute of a missing event is replaced by its default; a condition that needs one without a default says nothing,
and so does one that looks at the elements of a missing Kleene group one by one. A missing event contributes nothing to
an aggregate: a missing group has LEN 0 and count 0, and its other aggregates are NULL.
"""

from __future__ import annotations

from collections.abc import Sequence

from cepheid.language import syntax as s
from cepheid.language.functions import AGGREGATES

TRUE = s.Literal(True)


class _SaysNothing(Exception):
    """The condition needs something of a missing event that nothing stands in for."""


def without_missing(node: s.Expression, missing: frozenset[str]) -> s.Expression:
    """The condition, in negation normal form, as it reads without some events; TRUE where nothing is left to test.

    >>> x, z = s.Attribute(s.Reference("x"), "id", s.Attribute(s.Reference("z"), "id")), s.Literal(3)
    >>> without_missing(s.Comparison("=", x, z), frozenset("x"))  # doctest: +ELLIPSIS
    Comparison(operator='=', left=Attribute(of=Reference(variable='z', ...), name='id', ...), right=Literal(value=3))
    >>> without_missing(s.Comparison("=", x, z), frozenset("xz"))
    Literal(value=True)
    >>> without_missing(s.Comparison(">", s.Length("b"), s.Literal(1)), frozenset("b"))
    Comparison(operator='>', left=Literal(value=0), right=Literal(value=1))
    """
    match node:
        case s.And(operands=operands):
            parts = [part for part in (without_missing(operand, missing) for operand in operands) if part != TRUE]
            return _joined(s.And, parts)
        case s.Or(operands=operands):
            parts = [without_missing(operand, missing) for operand in operands]
            return TRUE if TRUE in parts else _joined(s.Or, parts)
    try:
        return _replaced(node, missing)
    except _SaysNothing:
        return TRUE


def _joined(kind: type[s.And] | type[s.Or], parts: Sequence[s.Expression]) -> s.Expression:
    return TRUE if not parts else parts[0] if len(parts) == 1 else kind(tuple(parts))


def _replaced(node: s.Expression, missing: frozenset[str]) -> s.Expression:
    match node:
        case s.Attribute(of=of, name=name, default=default):
            if of.variable not in missing:
                return s.Attribute(of, name, span=node.span)
            if default is None:
                raise _SaysNothing
            return _replaced(default, missing)
        case s.Length(variable=variable) if variable in missing:
            return s.Literal(0, span=node.span)
        case s.Call(function=function) if function.lower() in AGGREGATES and s.variables_of(node) & missing:
            if any(isinstance(inner, s.Reference) and inner.element is s.Element.BEFORE for inner in s.walk(node)):
                raise _SaysNothing  # it asks about the element being taken, and there is none
            return s.Literal(0 if function.lower() == "count" else None, span=node.span)
    return s.rebuild(node, lambda inner: _replaced(inner, missing))

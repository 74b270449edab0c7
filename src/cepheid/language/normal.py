"""Normal forms: negation pushed inward, conjunctive (SASE+ section 3.2, step 2) and disjunctive (SASE 2.2.2, AYAC 2.2).

After negation is pushed inward, NOT stands only in front of a boolean value, so "unknown" can be treated as false
everywhere: nothing above it turns it around.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cepheid.budget import paced
from cepheid.errors import QueryError
from cepheid.language import syntax as s

MAX_CLAUSES = 512  # distributing AND over OR can explode; beyond this the query is refused

_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def negation_normal_form(node: s.Expression, negate: bool = False) -> s.Expression:
    """The same condition with NOT pushed inward as far as it goes.

    >>> x = s.Comparison("<", s.Name("x"), s.Literal(1))
    >>> negation_normal_form(s.Not(s.Or((x, s.Not(x)))))  # doctest: +NORMALIZE_WHITESPACE
    And(operands=(Comparison(operator='>=', left=Name(name='x'), right=Literal(value=1)),
                  Comparison(operator='<', left=Name(name='x'), right=Literal(value=1))))
    """
    match node:
        case s.Not(operand=operand):
            return negation_normal_form(operand, not negate)
        case s.And(operands=operands) | s.Or(operands=operands):
            inner = tuple(negation_normal_form(operand, negate) for operand in operands)
            turned = s.Or if isinstance(node, s.And) else s.And
            return (turned if negate else type(node))(inner, span=node.span)
        case s.Comparison(operator=operator) if negate:
            return replace(node, operator=_OPPOSITE[operator])
        case s.Membership() | s.Between() | s.IsNull() if negate:
            return replace(node, negated=not node.negated)
        case s.Literal(value=bool() as truth) if negate:
            return s.Literal(not truth, span=node.span)
    return s.Not(node, span=node.span) if negate else node


def conjuncts(node: s.Expression | None) -> tuple[s.Expression, ...]:
    """The clauses of the conjunctive normal form; each is a literal or an OR of literals.

    >>> a, b, c = s.Name("a"), s.Name("b"), s.Name("c")
    >>> len(conjuncts(s.Or((a, s.And((b, c))))))
    2
    """
    if node is None:
        return ()
    clauses = _clauses(negation_normal_form(node), s.And, s.Or)
    return tuple(clause[0] if len(clause) == 1 else s.Or(clause) for clause in clauses)


def disjuncts(node: s.Expression | None) -> tuple[tuple[s.Expression, ...], ...]:
    """The branches of the disjunctive normal form; each is a tuple of literals that must all hold.

    >>> a, b, c = s.Name("a"), s.Name("b"), s.Name("c")
    >>> len(disjuncts(s.And((a, s.Or((b, c))))))
    2
    """
    if node is None:
        return ((),)
    return _clauses(negation_normal_form(node), s.Or, s.And)


_Clause = dict[s.Expression, None]  # literals without repeats, in the order of the text


def _clauses(
    node: s.Expression, outer: type[s.And] | type[s.Or], inner: type[s.And] | type[s.Or]
) -> tuple[tuple[s.Expression, ...], ...]:
    """`node` as an outer-combination of inner-combinations of literals."""
    return tuple(tuple(clause) for clause in _combined(node, outer, inner))


def _combined(node: s.Expression, outer: type[s.And] | type[s.Or], inner: type[s.And] | type[s.Or]) -> list[_Clause]:
    if isinstance(node, outer):
        found = (clause for operand in node.operands for clause in _combined(operand, outer, inner))
        return _without_repeats(found, node)
    if isinstance(node, inner):
        product: list[_Clause] = [{}]
        for operand in node.operands:
            parts = _combined(operand, outer, inner)
            if len(parts) == 1:  # nothing to multiply: adding in place keeps long conditions linear
                for clause in product:
                    clause.update(parts[0])
            else:
                product = _without_repeats(({**left, **right} for left in product for right in parts), node)
        return _without_repeats(product, node)
    return [{node: None}]


def _without_repeats(clauses: Iterable[_Clause], node: s.Expression) -> list[_Clause]:
    seen: dict[frozenset[s.Expression], _Clause] = {}
    for clause in paced(clauses):
        seen.setdefault(frozenset(clause), clause)
        if len(seen) > MAX_CLAUSES:
            start, end = node.span
            message = f"AND and OR expand to more than {MAX_CLAUSES} combinations"
            hint = "write IN (...) for many values of one attribute, or split the query"
            raise QueryError(message, start=start, end=end, hint=hint, code="too-many-combinations")
    return list(seen.values())

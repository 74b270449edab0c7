"""Functions of values by their names: one call for operators, CAST, built-in and user functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cepheid.language import syntax as s
from cepheid.language.functions import find_function
from cepheid.language.library.growth import bounded_text
from cepheid.language.library.operators import known, negative, ordered
from cepheid.language.match_recognize.aggregates import AGGREGATES
from cepheid.language.match_recognize.bound import Aggregated
from cepheid.language.match_recognize.functions import called
from cepheid.language.match_recognize.scalars import (
    COMPARISONS,
    OPERATORS,
    Value,
    arithmetic,
    between,
    cast,
    conjunction,
    decimal_parts,
    disjunction,
    divide_whole,
    member,
    opposite,
    type_parts,
)


def function_of(node: s.Expression) -> Callable[..., Value]:
    """What an operator or a function computes from the values of its parts, constants included.

    >>> function_of(s.Arithmetic("+", s.Literal(1), s.Literal(None)))(1, None) is None
    True
    """
    match node:
        case s.Arithmetic(operator=sign, target=target):
            wanted = None if target is None else decimal_parts(type_parts(target)[1])
            return divide_whole(wanted) if sign == "whole /" else arithmetic(sign, wanted)
        case s.Comparison(operator=sign):
            return COMPARISONS[sign]
        case s.Membership(negated=negated):
            return _negated(member) if negated else member
        case s.Between(negated=negated):
            return _negated(between) if negated else between
        case s.IsNull(negated=negated):
            return lambda value: (known(value) is None) != negated
        case s.And():
            return conjunction
        case s.Or():
            return disjunction
        case s.Not():
            return opposite
        case s.Negative():
            return negative
        case s.Call(function=name, target=target):
            call = _called(name)
            return call if target is None else _as_type(call, target)
    raise TypeError(f"{type(node).__name__} is no function")


def _called(name: str) -> Callable[..., Value]:
    if name in OPERATORS:
        return bounded_text(name, OPERATORS[name])
    function = find_function(name)
    assert function is not None
    return _strict(function.apply) if function.user else bounded_text(name, called(function))


def _negated(call: Callable[..., Value]) -> Callable[..., Value]:
    return lambda *values: opposite(call(*values))


def _as_type(call: Callable[..., Value], target: str) -> Callable[..., Value]:
    """A function whose results are brought to one type."""
    return lambda *values: cast(call(*values), target)


def _strict(call: Callable[..., Value]) -> Callable[..., Value]:
    def function(*values: Value) -> Value:
        return None if any(value is None for value in values) else call(*values)

    return function


def aggregate_of(node: Aggregated) -> Callable[[Sequence[tuple[Value, ...]]], Value]:
    """What an aggregate computes from its arguments' values, row by row."""
    if not node.arguments:
        return len
    call = AGGREGATES[node.function].call
    if not (node.distinct or node.order or node.filtered):
        return call
    values = len(node.arguments) - len(node.order) - node.filtered

    def aggregate(rows: Sequence[tuple[Value, ...]]) -> Value:
        chosen = [row for row in rows if row[-1] is True] if node.filtered else list(rows)
        kept = [row[:values] for row in _sorted(chosen, values, node.order)]
        return call(_distinct(kept) if node.distinct else kept)

    return aggregate


def _sorted(rows: list[tuple[Value, ...]], first: int, order: Sequence[tuple[bool, bool]]) -> list[tuple[Value, ...]]:
    """Rows by their keys, which begin at a place; rows with equal keys stay in their order."""
    for at, (descending, nulls_first) in reversed(list(enumerate(order, first))):
        unknown = [row for row in rows if row[at] is None]
        rest = [row for row in rows if row[at] is not None]
        rest.sort(key=lambda row: ordered(row[at]), reverse=descending)
        rows = unknown + rest if nulls_first else rest + unknown
    return rows


def _distinct(rows: list[tuple[Value, ...]]) -> list[tuple[Value, ...]]:
    kept: list[tuple[Value, ...]] = []
    seen: list[tuple[Value, ...]] = []
    for row in rows:
        told = tuple(map(ordered, row))
        if told not in seen:
            seen.append(told)
            kept.append(row)
    return kept

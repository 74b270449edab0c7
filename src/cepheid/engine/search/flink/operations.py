"""Functions over several events in the operations that the kernel has: arithmetic, comparisons and coalesce.

In the kernel a truth is 1 or 0, NULL is NaN, and what is divided by 0 is NULL. So `value / truth` is the value where
the truth holds and else NULL, which makes choices of arithmetic. Other engines never see these forms, which no query
could write: a truth is no number there.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

from cepheid.engine.values import columnwise
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.functions import find_function
from cepheid.language.library.time_functions import fixed_size

# What is NULL where an event is absent: of these an expression is computed for all events beforehand.
_STRICT = (s.Attribute, s.Reference, s.Literal, s.Arithmetic, s.Negative, s.Comparison, s.Between, s.Membership)
_ZERO, _ONE, _TWO = s.Literal(0), s.Literal(1), s.Literal(2)


def is_aggregate(node: s.Expression) -> bool:
    """Is it over all events of a step?"""
    return isinstance(node, s.Call) and node.function.lower() in AGGREGATES


def is_strict(node: s.Expression) -> bool:
    """Is this operation NULL where one of its operands is, and safe to compute for events that nobody takes?"""
    if isinstance(node, s.Call) and not is_aggregate(node):
        function = find_function(node.function)
        return function is not None and function.strict and not function.user
    return isinstance(node, _STRICT)


def references_in(node: s.Expression) -> set[s.Reference]:
    """The events that it speaks of."""
    return {inner for inner in s.walk(node) if isinstance(inner, s.Reference)}


def is_of_one_event(node: s.Expression) -> bool:
    """Does it speak of one event alone, and is it NULL where that is absent?"""
    return len(references_in(node)) == 1 and all(is_strict(inner) for inner in s.walk(node))


def is_constant(node: s.Expression) -> bool:
    """Does it speak of no event at all?"""
    return not any(isinstance(inner, s.Reference | s.Length) for inner in s.walk(node)) and all(
        is_strict(inner) for inner in s.walk(node)
    )


def _of_nothing(node: s.Expression) -> Any:
    raise TypeError(f"{type(node).__name__} in a constant")


def spelled_out(node: s.Expression) -> s.Expression:
    """The same value, without the functions that can be written in operations of the kernel."""
    if is_of_one_event(node):
        return node  # computed for all events beforehand
    if is_constant(node):
        return s.Literal(columnwise.value(node, _of_nothing).as_py())
    node = s.rebuild(node, spelled_out)
    match node:
        case s.Membership(operand=operand, values=tuple() as values, negated=negated):
            found = s.Or(tuple(s.Comparison("=", operand, value) for value in values))
            one = found.operands[0] if len(values) == 1 else found
            return s.Not(one) if negated else one
        case s.Call(function=function, arguments=(argument,)) if function.lower() in ("first", "last"):
            return _of(argument, s.Element.FIRST if function.lower() == "first" else s.Element.LAST)
        case s.Call(function=function, arguments=arguments) if not is_aggregate(node):
            return _called(function.lower(), arguments, node)
    return node


def _of(node: s.Expression, element: s.Element) -> s.Expression:
    """An expression over all events of a step, for one of them."""
    if isinstance(node, s.Reference):
        return replace(node, element=element)
    return s.rebuild(node, lambda inner: _of(inner, element))


def _called(function: str, arguments: tuple[s.Expression, ...], node: s.Call) -> s.Expression:
    match function, arguments:
        case "abs", (value,):
            sign = s.Arithmetic("-", s.Arithmetic("*", _TWO, s.Comparison(">=", value, _ZERO)), _ONE)
            return s.Arithmetic("*", value, sign)
        case "sign", (value,):
            return s.Arithmetic("-", s.Comparison(">", value, _ZERO), s.Comparison("<", value, _ZERO))
        case "coalesce" | "ifnull" | "nvl", (first, *others):
            return reduce(lambda left, right: s.Call("coalesce", (left, right)), others, first)
        case "case" | "if", (*chosen, other):
            for condition, value in zip(reversed(chosen[::2]), reversed(chosen[1::2]), strict=True):
                other = _choice(condition, value, other)
            return other
        case "nullif", (value, other):
            return _choice(s.Comparison("=", value, other), s.Literal(None), value)
        case "timestampdiff", (s.Literal(value=str(unit)), start, end) if fixed_size(unit) is not None:
            size, length = s.Literal(fixed_size(unit)), s.Arithmetic("-", end, start)
            return s.Arithmetic("/", s.Arithmetic("-", length, s.Arithmetic("%", length, size)), size)
        case "least" | "greatest", (first, *others):
            order = "<=" if function == "least" else ">="
            return reduce(lambda left, right: _extreme(order, left, right), others, first)
    return node


def _choice(condition: s.Expression, value: s.Expression, other: s.Expression) -> s.Expression:
    """The value where the condition holds, and else the other one."""
    holds = s.Call("coalesce", (condition, _ZERO))
    fails = s.Arithmetic("-", _ONE, holds)
    return s.Call("coalesce", (s.Arithmetic("/", value, holds), s.Arithmetic("/", other, fails)))


def _extreme(operator: str, left: s.Expression, right: s.Expression) -> s.Expression:
    """The smaller or the larger of two; the one that is known, if the other is not."""
    both = _choice(s.Comparison(operator, left, right), left, right)
    return s.Call("coalesce", (both, s.Call("coalesce", (left, right))))

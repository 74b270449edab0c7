"""Which calls of a query run as Python instead of compiled code, and why: EXPLAIN says so."""

from __future__ import annotations

from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.bound import BoundQuery
from cepheid.language.functions import find_function
from cepheid.language.printing import expression_text
from cepheid.language.typing import type_of


def run_as_python(bound: BoundQuery) -> list[str]:
    """A line for each call that kernels cannot make, in the order of the conditions.

    >>> from cepheid.language.bind import bind
    >>> from cepheid.language.check import check
    >>> from cepheid.language.sase.parse import parse
    >>> from cepheid.language.schema import DataType, Schema
    >>> schema = Schema((("ts", DataType.INT), ("type", DataType.STRING), ("s", DataType.STRING)), "ts", "type")
    >>> text = "PATTERN SEQ(A a, B b) WHERE concat(a.s, b.s) = 'xy' AND lower(a.s) = b.s WITHIN 9"
    >>> run_as_python(bind(check(parse(text)), schema))
    ['concat(a.s, b.s): it takes values of several events, and compiled code takes numbers only']
    """
    found: dict[str, None] = {}
    for part in _conditions(bound):
        pending = [part]
        while pending:
            node = pending.pop()
            why = _why(node, bound) if isinstance(node, s.Call) and node.function.lower() not in AGGREGATES else None
            if why is not None:
                found[f"{expression_text(node)}: {why}"] = None
            else:  # what is inside of a call that runs as Python does, too
                pending.extend(reversed(s.children(node)))
    return list(found)


def calls_user_functions(bound: BoundQuery) -> bool:
    """Does a condition call a function that the user wrote? Such a function may raise an error."""
    calls = [node for part in _conditions(bound) for node in s.walk(part) if isinstance(node, s.Call)]
    found = [find_function(call.function) for call in calls]
    return any(function is not None and function.user for function in found)


def _conditions(bound: BoundQuery) -> list[s.Expression]:
    parts = [conjunct.expression for conjunct in bound.conjuncts]
    for branch in bound.branches:
        parts += [*branch.positive, *(each for _, tests in branch.negative for each in tests)]
    return parts


def _why(node: s.Call, bound: BoundQuery) -> str | None:
    function = find_function(node.function)
    assert function is not None
    if function.user:
        same = function.is_compiled([type_of(argument, bound.schema) for argument in node.arguments])
        return None if same else "compiled code might differ from Python; register it with compiled=True if it does not"
    if function.columns and len(s.variables_of(node)) > 1:
        return "it takes values of several events, and compiled code takes numbers only"
    return None

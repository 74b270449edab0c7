"""A bound on the sum of a group, tested while the group grows: `sum(b[].x) < 500` where no x is negative.

Such a sum only grows. A group that has come to the bound cannot be part of a match, whatever is added to it, so no
event is taken that brings it there. Without that, all groups of a window are built before their sums are compared:
exponentially many. Under skip_till_any_match an event that is not taken changes nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from cepheid.engine.data.table import EventTable
from cepheid.engine.values.plain import value_column
from cepheid.language import syntax as s
from cepheid.language.bind import place_conjunct
from cepheid.language.bound import BoundQuery
from cepheid.language.kept import kept_with_query
from cepheid.language.schema import DataType
from cepheid.plan.physical import Plan

SLACK = 1e-9  # of a bound on a sum of fractions: the order of adding may change the last digits

Sum = tuple[str, str, str, int | float]  # variable, attribute, < or <=, bound


def with_running_sums(plan: Plan, events: EventTable) -> Plan:
    """The plan with bounds on sums as conditions on each further event of the group, where that rules out nothing."""
    bound = plan.bound
    sums = list(_bounded_sums(bound))
    if not sums or bound.strategies != {s.Strategy.SKIP_TILL_ANY} or bound.given_up or not plan.push_predicates:
        return plan
    growing = frozenset(name for name in {each[1] for each in sums} if _only_grows(events, name))
    if not growing:
        return plan
    return replace(plan, match=replace(plan.match, bound=_bounded(bound, sums, growing)))


def _bounded_sums(bound: BoundQuery) -> Iterator[Sum]:
    """The conditions that a sum over a whole group is below a number.

    >>> from cepheid.plan.examples import example
    >>> text = "PATTERN SEQ(A a, B+ b[], C c) WHERE sum(b[].x) < 500 AND 7 >= sum(b[].x) AND sum(b[].x) > 3"
    >>> list(_bounded_sums(example(text).bound))
    [('b', 'x', '<', 500), ('b', 'x', '<=', 7)]
    """
    for conjunct in bound.conjuncts:
        match conjunct.expression:
            case s.Comparison(operator=sign, left=s.Call() as call, right=s.Literal(value=limit)):
                pass
            case s.Comparison(operator=turned, left=s.Literal(value=limit), right=s.Call() as call):
                sign = {">": "<", ">=": "<="}.get(turned, "")
            case _:
                continue
        match call:
            case s.Call(arguments=(s.Attribute(of=s.Reference(element=s.Element.ALL) as of, name=name, default=None),)):
                whole = isinstance(limit, int | float) and not isinstance(limit, bool)
                below = sign in ("<", "<=") and call.function.lower() == "sum"
                if below and whole and of.variable in bound.place_of:
                    yield of.variable, name, sign, limit  # type: ignore[misc]


def _only_grows(events: EventTable, name: str) -> bool:
    """Is a column known everywhere, and nowhere negative? (Comparisons with NaN are false.)"""
    column = value_column(events.table.column(name))
    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return False
    return bool(np.all(column.to_numpy() >= 0))


def _bounded(bound: BoundQuery, sums: list[Sum], growing: frozenset[str]) -> BoundQuery:
    """The query with the further conditions; the same object for the same query, since programs hang on it."""
    known = _by_columns(bound)
    if growing not in known:
        tests = [test for each in sums if each[1] in growing for test in _tests(bound, *each)]
        conjuncts = (*bound.conjuncts, *(place_conjunct(test, list(bound.positives)) for test in tests))
        known[growing] = replace(bound, conjuncts=conjuncts)
    return known[growing]


@kept_with_query
def _by_columns(bound: BoundQuery) -> dict[frozenset[str], BoundQuery]:
    """The changed queries, by the columns that only grow."""
    return {}


def _tests(bound: BoundQuery, variable: str, name: str, sign: str, limit: int | float) -> Iterator[s.Expression]:
    """What the first event of a group must pass, and each further one."""
    if bound.schema.type_of(name) is not DataType.INT or isinstance(limit, float):
        sign, limit = "<=", limit + SLACK * abs(limit)
    first, here = (s.Attribute(s.Reference(variable, which), name) for which in (s.Element.FIRST, s.Element.CURRENT))
    before = s.Call("sum", (s.Attribute(s.Reference(variable, s.Element.BEFORE), name),))
    yield s.Comparison(sign, first, s.Literal(limit))
    yield s.Comparison(sign, s.Arithmetic("+", before, here), s.Literal(limit))

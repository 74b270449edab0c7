"""Conditions across a group, tested while the group grows: `a.y < c.y - 700` of `SEQ(A a, B+ b[], C c)`.

The last event in the window of `a` that could be its `c` depends on `a` alone, so its instant is a column. No event of
the group comes at or after it. Without that, all groups of the window are built before the first `c` is compared:
exponentially many, also where there is no such `c` at all. Under skip_till_any_match an event that is not taken changes
nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.data.arrays import Bools, Float64s, Int64s
from cepheid.engine.data.candidates import Candidates, candidates
from cepheid.engine.data.table import EventTable
from cepheid.engine.kernels.compile import kernel
from cepheid.engine.values.columnwise import value
from cepheid.engine.values.plain import value_column
from cepheid.language import syntax as s
from cepheid.language.bind import place_conjunct
from cepheid.language.bound import BoundQuery
from cepheid.language.free_names import free_name
from cepheid.language.kept import kept_with_query
from cepheid.language.schema import DataType
from cepheid.language.typing import type_of
from cepheid.plan.physical import Plan

SLACK = 1e-9  # of the numbers compared: the order of adding may change the last digits
_SIGNS = {"<": 1.0, "<=": 1.0, ">": -1.0, ">=": -1.0}


class Across(NamedTuple):
    """A comparison of two single events with a group between them: what is added up of each, one below the other."""

    before: str
    behind: str
    of_before: tuple[tuple[float, s.Expression], ...]
    of_behind: tuple[tuple[float, s.Expression], ...]
    groups: tuple[str, ...]
    whole: bool  # are all numbers whole?
    strict: bool


def with_last_partners(plan: Plan, events: EventTable) -> tuple[Plan, EventTable]:
    """The plan with conditions across groups on each event of the group, and the events with the columns for that."""
    bound = plan.bound
    found = _across(bound)
    unsuitable = bound.strategies != {s.Strategy.SKIP_TILL_ANY} or bound.given_up or bound.schema.lacks
    if not found or unsuitable or not plan.push_predicates or len(events) == 0:
        return plan, events
    among = candidates(plan, events)
    table = events.table.append_column(_instant(bound), pa.array(events.instant))
    for number, across in enumerate(found):
        last = np.full(len(events), -1, np.int64)
        last[among.rows] = _last_instants(bound, events.table, among, across)
        table = table.append_column(_column(bound, number), pa.array(last))
    narrower = replace(plan, match=replace(plan.match, bound=_compared(bound)))
    return narrower, EventTable(table, events.time, events.instant)


def _instant(bound: BoundQuery) -> str:
    return free_name("instant, for conditions across groups", bound.schema.names)


def _column(bound: BoundQuery, number: int) -> str:
    return free_name(f"last partner {number}", bound.schema.names)


@kept_with_query
def _across(bound: BoundQuery) -> tuple[Across, ...]:
    """The conditions across groups that are sums of numbers of one event each.

    >>> from cepheid.plan.examples import example
    >>> text = "PATTERN SEQ(A a, B+ b[], C c) WHERE a.x < c.x - 7 AND c.x - a.x > 3 AND a.x < b[i].x"
    >>> [(each.before, each.behind, each.groups) for each in _across(example(text).bound)]
    [('a', 'c', ('b',)), ('a', 'c', ('b',))]
    """
    return tuple(found for conjunct in bound.conjuncts for found in _across_of(bound, conjunct.expression))


def _across_of(bound: BoundQuery, node: s.Expression) -> Iterator[Across]:
    if not isinstance(node, s.Comparison) or node.operator not in _SIGNS:
        return
    places, variables = bound.place_of, sorted(s.variables_of(node), key=lambda name: bound.place_of.get(name, -1))
    if len(variables) != 2 or any(name not in places for name in variables):
        return
    before, behind = variables
    components = bound.positives[places[before] : places[behind] + 1]
    groups = tuple(each.variable for each in components[1:-1] if each.kleene)
    numbers = all(
        bound.schema.type_of(part.name) in (DataType.INT, DataType.FLOAT) and part.default is None
        for part in s.walk(node)
        if isinstance(part, s.Attribute)
    )
    if (
        not groups
        or components[0].kleene
        or components[-1].kleene
        or any(each.any for each in components)
        or not numbers
    ):
        return
    sign = _SIGNS[node.operator]
    sums: dict[str, list[tuple[float, s.Expression]]] = {before: [], behind: []}
    for factor, term in (*_terms(node.left, sign), *_terms(node.right, -sign)):
        names = s.variables_of(term)
        if len(names) > 1:
            return
        name = next(iter(names), behind)
        sums[name].append((factor if name == before else -factor, term))
    whole = type_of(node.left, bound.schema) is type_of(node.right, bound.schema) is DataType.INT
    yield Across(before, behind, tuple(sums[before]), tuple(sums[behind]), groups, whole, node.operator in ("<", ">"))


def _terms(node: s.Expression, factor: float) -> Iterator[tuple[float, s.Expression]]:
    """What is added and subtracted."""
    if isinstance(node, s.Arithmetic) and node.operator in ("+", "-"):
        yield from _terms(node.left, factor)
        yield from _terms(node.right, factor if node.operator == "+" else -factor)
    else:
        yield factor, node


@kept_with_query
def _compared(bound: BoundQuery) -> BoundQuery:
    """The query with the further conditions; the same object for the same query, since programs hang on it."""
    tests: list[s.Expression] = []
    columns = [*bound.schema.columns, (_instant(bound), DataType.INT)]
    for number, across in enumerate(_across(bound)):
        last = s.Attribute(s.Reference(across.before), _column(bound, number))
        columns.append((_column(bound, number), DataType.INT))
        for group in across.groups:
            here = s.Attribute(s.Reference(group, s.Element.CURRENT), _instant(bound))
            tests.append(s.Comparison("<", here, last))
    conjuncts = (*bound.conjuncts, *(place_conjunct(test, list(bound.positives)) for test in tests))
    return replace(bound, schema=replace(bound.schema, columns=tuple(columns)), conjuncts=conjuncts)


def _last_instants(bound: BoundQuery, table: pa.Table, among: Candidates, across: Across) -> Int64s:
    """For each candidate the instant of the last one that it could be matched with; -1 if there is none."""
    rows = pa.array(among.rows)
    columns: dict[str, Any] = {}

    def resolve(node: Any) -> Any:
        if node.name not in columns:
            columns[node.name] = value_column(table.column(node.name)).take(rows)
        return columns[node.name]

    def added(terms: tuple[tuple[float, s.Expression], ...]) -> npt.NDArray[np.float64]:
        total = np.zeros(len(among), np.float64)
        for factor, term in terms:
            found = value(term, resolve)
            if isinstance(found, pa.Scalar):
                total += factor * (np.nan if found.as_py() is None else float(found.as_py()))
            else:
                total += factor * found.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return total

    low, high = added(across.of_before), added(across.of_behind)
    largest = max(float(np.nanmax(np.abs(each), initial=1.0)) for each in (low, high))
    window = bound.window.length if bound.window is not None and not bound.window.events else -1
    is_before, is_behind = ((among.mask >> bound.place_of[name]) & 1 > 0 for name in (across.before, across.behind))
    shift = 0.5 * across.strict if across.whole and largest < 2**50 else -SLACK * largest
    found: Int64s = last_above(among.starts, among.time, among.instant, is_before, is_behind, low + shift, high, window)
    return found


@kernel
def last_above(
    starts: Int64s,
    time: Int64s,
    instant: Int64s,
    is_before: Bools,
    is_behind: Bools,
    low: Float64s,
    high: Float64s,
    window: int,
) -> Int64s:
    """For each event the instant of the last one behind it in its window (-1: any time) whose number is not below its
    own; -1 if there is none.

    Of the events in reach, only those count that no later one surpasses: their numbers fall, so it is found by halving.
    """
    found = np.full(len(time), -1, np.int64)
    stack = np.empty(len(time), np.int64)
    for part in range(len(starts) - 1):
        size, ahead = 0, starts[part]
        for event in range(starts[part], starts[part + 1]):
            while ahead < starts[part + 1] and (window < 0 or time[ahead] - time[event] < window):
                if is_behind[ahead] and high[ahead] == high[ahead]:
                    while size > 0 and high[stack[size - 1]] <= high[ahead]:
                        size -= 1
                    stack[size] = ahead
                    size += 1
                ahead += 1
            if is_before[event] and low[event] == low[event]:
                first, end = 0, size  # numbers fall: how many are not below
                while first < end:
                    middle = (first + end) // 2
                    if high[stack[middle]] >= low[event]:
                        first = middle + 1
                    else:
                        end = middle
                if first > 0 and instant[stack[first - 1]] > instant[event]:
                    found[event] = instant[stack[first - 1]]
    return found

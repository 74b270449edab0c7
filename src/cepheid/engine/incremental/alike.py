"""Queries that one search serves: they ask for the same, but for constants in conditions, windows and RETURN.

Under skip_till_any_match a further condition on the events of a match leaves some matches out, and changes no other.
So `a.price > 10` finds all matches of `a.price > 11`, and a look at the events of these tells which they are. Of
`a.symbol = 'IBM'` and `a.symbol = 'SAP'` neither finds the matches of the other. A search for both values finds what
both find, and nothing else, if the queries differ in nothing else.

Under other strategies a condition also decides which event a run takes. That of a first event does not: each event that
meets it begins a run of its own. Nor does a window, since an event that a run must not skip comes before its last one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.incremental.core import Core
from cepheid.engine.incremental.pushed_matches import PushedMatches, some_of
from cepheid.engine.incremental.queries import decided
from cepheid.engine.limits import check_limit
from cepheid.engine.values.constants import CONSTANT, WithConstant, answers, with_constant
from cepheid.engine.values.plain import value_column
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery, Conjunct
from cepheid.plan.physical import Plan

WINDOW = "window"  # the longest a match may last is a constant, too
WINDOW_SHAPE = s.Comparison("<", s.Name("duration"), CONSTANT)
FEW_ROWS = 16  # values that are read one by one
MOST_VALUES = 32  # that one search looks for: they are a part of its compiled condition
MOST_WEAKEST = 32  # searches among which one is looked for that finds the matches of a query
_ANY = {s.Strategy.SKIP_TILL_ANY}
_LARGER = {">": 1, ">=": 1, "<": -1, "<=": -1, "=": 0}  # are larger constants on the right stricter?


class Varied(NamedTuple):
    """A condition with a constant in which queries may differ."""

    condition: WithConstant
    stricter: int  # 1: larger constants are stricter; -1: smaller ones; 0: no other one is
    expression: s.Expression
    variable: str  # of one of its events
    sums: bool = False  # is a whole number added to it, which may go past 64 bits?

    @property
    def value(self) -> Any:
        """The constant."""
        return self.condition.value

    def finds(self, other: Varied) -> bool:
        """Does it hold wherever the same condition with another constant does?"""
        if self.value == other.value:
            return True
        weaker = (other.value > self.value) if self.stricter > 0 else (other.value < self.value)
        # Of two sums the one that is nearer to zero goes past 64 bits only where the other one does.
        return bool(self.stricter and weaker and (not self.sums or abs(self.value) <= abs(other.value)))


class Likeness(NamedTuple):
    """What a query asks for: what it has in common with others, and its constants by the shape of their conditions."""

    common: str
    varied: dict[str, Varied]

    def finds(self, other: Likeness) -> bool:
        """Are the matches of another query with the same in common among those of this one?"""
        return all(shape in other.varied and own.finds(other.varied[shape]) for shape, own in self.varied.items())


def what_is_asked(plan: Plan) -> Likeness | None:
    """What a query asks for; None: its constants and its window decide more than which matches are left out."""
    plan = decided(plan)
    bound = plan.bound
    at_an_edge = any(each.before is None or each.after is None for each in bound.negations)
    timed = bound.window is not None and not bound.window.events
    plain = bound.summary is None and bound.forecast is None and plan.output.mode is s.OutputMode.ALL
    if not plain or not timed or at_an_edge or bound.postponed or bound.untils:
        return None
    if bound.strategies != _ANY and (not bound.is_linear or bound.may_lack):
        return None
    if plan.is_lossy or plan.is_imprecise or plan.exchange.retention.decides_late:
        return None
    assert bound.window is not None
    varied = _varied(plan)
    known = {each.expression for each in varied.values()}
    asked = replace(
        bound,
        syntax=replace(bound.syntax, within=None, returns=None, where=None),
        window=None,
        returns=None,
        text=None,
        conjuncts=_others(bound.conjuncts, known),
        branches=tuple(
            replace(each, positive=tuple(part for part in each.positive if part not in known))
            for each in bound.branches
        ),
    )
    match = replace(plan.match, bound=asked, conditions=_others(plan.match.conditions, known))
    takes = [
        replace(each, conditions=tuple(part for part in each.conditions if part not in known))
        for each in plan.scan.takes
    ]
    window = Varied(WithConstant(WINDOW_SHAPE, bound.window.length, True), -1, WINDOW_SHAPE, "")
    return Likeness(repr((match, takes, plan.scan.every_event)), {**varied, WINDOW: window})


def _others(conjuncts: Sequence[Conjunct], known: set[s.Expression]) -> tuple[Conjunct, ...]:
    return tuple(each for each in conjuncts if each.expression not in known)


def _varied(plan: Plan) -> dict[str, Varied]:
    """The conditions with one constant, on single events of the match, by their shapes."""
    bound = plan.bound
    if not bound.is_linear or bound.may_lack or len(bound.branches) != 1 or plan.match.conditions_at_the_end:
        return {}
    positives = bound.positives if bound.strategies == _ANY else bound.positives[:1]
    single = {each.variable for each in positives if not each.kleene}
    found: dict[str, list[Varied]] = {}
    for conjunct in bound.conjuncts:
        varied = _varied_by(conjunct, bound) if conjunct.variables and conjunct.variables <= single else None
        if varied is not None:
            found.setdefault(varied.condition.name, []).append(varied)
    return {shape: own[0] for shape, own in found.items() if len(own) == 1}


def _varied_by(conjunct: Conjunct, bound: BoundQuery) -> Varied | None:
    found = with_constant(conjunct.expression, bound.schema)
    if found is None or found.shape.operator not in _LARGER:
        return None
    shape, value, whole = found
    alone = shape.right == CONSTANT
    stricter = _LARGER[shape.operator] * (1 if alone else _direction(shape.right))
    if stricter and isinstance(value, str):
        return None
    # A search can look for several values of one event, of the type that its attribute has.
    if not stricter and (not conjunct.own or not alone or (whole and isinstance(value, float))):
        return None
    return Varied(found, stricter, conjunct.expression, min(conjunct.variables), whole and not alone)


def _direction(node: s.Expression) -> int:
    """Does a sum grow with the constant in it (1), or shrink (-1)? 0: it is no such sum."""
    match node:
        case s.Arithmetic("+", left, right) if CONSTANT in (left, right):
            return 1
        case s.Arithmetic("-", _, right) if right == CONSTANT:
            return -1
    return 0


# --- groups -----------------------------------------------------------------------------------------------------------


class Log(Protocol):
    """Where the events of matches lie."""

    def value(self, row: int, name: str) -> Any:
        """One value of an event."""

    def take(self, rows: Int64s) -> pa.Table:
        """Some events as a table."""


@dataclass(frozen=True)
class Group:
    """Queries that one search serves."""

    numbers: tuple[int, ...]
    plans: tuple[Plan, ...]  # of each
    searched: Plan
    asked: tuple[Likeness, ...] = field(default=(), repr=False)

    def alone(self) -> list[Group]:
        """Each query in a group of its own."""
        return [Group((number,), (plan,), plan) for number, plan in zip(self.numbers, self.plans, strict=True)]

    @cached_property
    def _tests(self) -> list[tuple[Varied, list[Any], Int64s]]:
        """The conditions in which they differ: one of them, all constants, and which of these each query has."""
        tests = []
        for shape in dict.fromkeys(shape for each in self.asked for shape in each.varied):
            own = [each.varied.get(shape) for each in self.asked]
            values = list(dict.fromkeys(each.value for each in own if each is not None))
            if len(values) > 1 or None in own:
                place = {value: number for number, value in enumerate(values)}
                numbers = [len(values) if each is None else place[each.value] for each in own]
                known = next(each for each in own if each is not None)
                tests.append((known, values, np.array(numbers, np.int64)))
        return tests

    def picked(
        self, found: PushedMatches, search: Core, log: Log, schema: pa.Schema
    ) -> Iterator[tuple[int, PushedMatches]]:
        """The matches of each query among those that were found, with its number."""
        matches = len(found.known)
        which = np.ones((len(self.numbers), matches), bool)
        for varied, values, numbers in self._tests:
            if varied.expression is WINDOW_SHAPE:
                answers = search.durations(found)[None, :] < np.array(values)[:, None]
                answers[values.index(max(values))] = True  # the search itself looked at the longest
            else:
                answers = self._answers(varied, values, found, log, schema)
            which &= np.concatenate([answers, np.ones((1, matches), bool)])[numbers]
        counts = which.sum(axis=1)
        for place in np.flatnonzero(counts).tolist():
            check_limit(self.plans[place], "max_matches", bool(counts[place] > self.plans[place].limits.max_matches))
            yield (
                self.numbers[place],
                found if counts[place] == matches else some_of(found, which[place]),
            )

    def _answers(
        self, varied: Varied, values: list[Any], found: PushedMatches, log: Log, schema: pa.Schema
    ) -> npt.NDArray[np.bool_]:
        """Of which matches a condition holds with each of some constants."""
        matches, columns = len(found.known), dict[tuple[str, str], pa.Array]()
        shape = varied.condition.shape
        for node in s.walk(shape):
            if isinstance(node, s.Attribute):
                rows = events_at(
                    found, self.searched.bound.place_of[node.of.variable], len(self.searched.bound.positives)
                )
                columns[node.of.variable, node.name] = value_column(column_of(log, rows, node.name, schema))
        return answers(shape, values, matches, lambda node: columns[node.of.variable, node.name])


def events_at(found: PushedMatches, place: int, places: int) -> Int64s:
    """The event of each match that fills a component, which takes one."""
    if found.sizes is None:
        events: Int64s = found.events.reshape(len(found.known), places)[:, place]
        return events
    sizes = found.sizes
    totals = sizes.sum(axis=1)
    chosen: Int64s = found.events[np.cumsum(totals) - totals + sizes[:, :place].sum(axis=1)]
    return chosen


def column_of(log: Log, rows: Int64s, name: str, schema: pa.Schema) -> pa.ChunkedArray:
    """The values of an attribute of some events."""
    if len(rows) <= FEW_ROWS:
        values = [log.value(row, name) for row in rows.tolist()]
        return pa.chunked_array([pa.array(values, schema.field(name).type)])
    distinct, places = np.unique(rows, return_inverse=True)
    return log.take(distinct).column(name).take(pa.array(places))


def groups_of(plans: Sequence[Plan], asked: Sequence[Likeness | None], apart: Sequence[Hashable]) -> list[Group]:
    """Which queries one search serves, in the order of the first ones; those that are `apart` have others."""
    alike: dict[Hashable, list[int]] = {}
    for number, each in enumerate(asked):
        alike.setdefault(number if each is None else (each.common, apart[number]), []).append(number)
    groups: list[Group] = []
    for numbers in alike.values():
        own = {number: known for number in numbers if (known := asked[number]) is not None}
        if len(own) < 2:
            groups += [Group((number,), (plans[number],), plans[number]) for number in numbers]
        else:
            groups += _united(plans, own, _weakest(own))
    return sorted(groups, key=lambda group: group.numbers[0])


def _weakest(asked: dict[int, Likeness]) -> dict[int, list[int]]:
    """Queries that find the matches of others, each with those others."""
    order = {
        shape: sorted({each.varied[shape].value for each in asked.values() if shape in each.varied})
        for shape in {shape for each in asked.values() for shape in each.varied}
    }
    ranks = {shape: {value: rank for rank, value in enumerate(values)} for shape, values in order.items()}

    def strictness(number: int) -> tuple[int, int]:
        varied = asked[number].varied
        return sum(each.stricter * ranks[shape][each.value] for shape, each in varied.items()), len(varied)

    found: dict[int, list[int]] = {}
    by_equalities: dict[Hashable, list[int]] = {}
    for number in sorted(asked, key=lambda number: (strictness(number)[1], strictness(number)[0], number)):
        equal = frozenset((shape, each.value) for shape, each in asked[number].varied.items() if not each.stricter)
        others = by_equalities.setdefault(equal, [])
        weaker = next((one for one in others[-MOST_WEAKEST:] if asked[one].finds(asked[number])), None)
        if weaker is None:
            others.append(number)
            found[number] = []
        else:
            found[weaker].append(number)
    return found


def _united(plans: Sequence[Plan], asked: dict[int, Likeness], weakest: dict[int, list[int]]) -> list[Group]:
    """The groups of queries that find the matches of others; those that differ in one equality alone are one group."""
    equalities: dict[str, set[Any]] = {}
    for number in weakest:
        for shape, each in asked[number].varied.items():
            if not each.stricter:
                equalities.setdefault(shape, set()).add(each.value)
    chosen = max(equalities, key=lambda shape: len(equalities[shape]), default=None)
    same: dict[Hashable, list[int]] = {}
    for number in weakest:
        own = asked[number].varied
        others = frozenset((shape, each.value) for shape, each in own.items() if shape != chosen)
        united = chosen in own and _is_scanned(plans[number], own[chosen]) if chosen is not None else False
        same.setdefault(others if united else number, []).append(number)
    groups = []
    for numbers in same.values():
        for begin in range(0, len(numbers), MOST_VALUES):
            some = numbers[begin : begin + MOST_VALUES]
            members = sorted(each for number in some for each in (number, *weakest[number]))
            searched = plans[some[0]]
            if len(some) > 1:
                assert chosen is not None
                searched = _looking_for(searched, [asked[number].varied[chosen] for number in some], len(members))
            own_plans = tuple(plans[number] for number in members)
            groups.append(Group(tuple(members), own_plans, searched, tuple(asked[number] for number in members)))
    return groups


def _is_scanned(plan: Plan, varied: Varied) -> bool:
    return varied.expression in plan.scan.conditions_of(varied.variable)


def _looking_for(plan: Plan, varied: Sequence[Varied], queries: int) -> Plan:
    """The plan of a query that takes any of some values where it took one."""
    expression = varied[0].expression
    assert isinstance(expression, s.Comparison)
    sides = expression.left, expression.right
    operand = next(side for side in sides if not isinstance(side, s.Literal))
    wanted = s.Membership(operand, tuple(s.Literal(each.value) for each in varied))
    takes = tuple(
        replace(each, conditions=tuple(wanted if part == expression else part for part in each.conditions))
        if each.component.variable == varied[0].variable
        else each
        for each in plan.scan.takes
    )
    limits = replace(plan.limits, max_matches=plan.limits.max_matches * queries)
    return replace(plan, scan=replace(plan.scan, takes=takes), match=replace(plan.match, limits=limits))

"""An automaton as kernels walk it: plain arrays, and all conditions compiled into one function.

A run keeps a row of chosen events (`at`: a slot for a single component; first, last, current and previous for a Kleene
group), a row of whole numbers (lengths and aggregates) and one of fractions. Conditions are grouped by moment: for
each place begin, take and close, then one for each negated component, and for each disjunct one for its positive part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.candidates import own_conditions
from cepheid.engine.data.columns import INT64_ROWS, INT64S, ColumnLayout, storage
from cepheid.engine.data.matches import Int64s
from cepheid.engine.kernels.arrays import EVENT_WINDOW, NO_WINDOW, TIME_WINDOW
from cepheid.engine.values.cases import any_variables
from cepheid.engine.values.compiled import PREDICATE, Case, Predicate, compile_cases
from cepheid.language import syntax as s
from cepheid.language.bind import place_conjunct
from cepheid.language.bound import BoundQuery, Conjunct
from cepheid.language.printing import expression_text
from cepheid.language.schema import DataType
from cepheid.language.typing import type_of
from cepheid.plan.automaton import (
    Automaton,
    Read,
    Which,
    begin_conjuncts,
    close_conjuncts,
    compile_automaton,
    judged_by_branch,
    judging_place,
    negation_conjuncts,
    pending_reads,
    take_conjuncts,
)
from cepheid.plan.physical import Plan

Rows = npt.NDArray[np.int64]

BEGIN, TAKE, CLOSE = range(3)  # moments at a place: 3 * place + one of these
SKIP_ANY, SKIP_NEXT, CONTIGUOUS = range(3)
COUNT, AVERAGE, SUM, LEAST, GREATEST, FIRST, LAST = range(7)  # what an aggregate keeps
KEY_WHOLE, KEY_NUMBER, KEY_NULL, KEY_EVENT, KEY_INSTANT, KEY_COUNTED, KEY_RUNNING, KEY_START = range(8)

_Key = tuple[int, int, str | int]  # kind, slot or register, and the attribute (or nothing)
_STRATEGIES = {s.Strategy.SKIP_TILL_ANY: SKIP_ANY, s.Strategy.SKIP_TILL_NEXT: SKIP_NEXT}
_KEPT = {"count": COUNT, "sum": SUM, "avg": AVERAGE, "min": LEAST, "max": GREATEST, "first": FIRST, "last": LAST}


class Program(NamedTuple):
    """A query, as the run kernels see it. Few arrays, since each one that is handed to a function costs time."""

    places: int
    negatives: int
    strategy: int
    window_kind: int
    window: int
    postponed: bool
    judged: bool  # negation is judged for each disjunct of the condition (SASE section 2.2.2)
    branches: int
    walk_whole: int  # where aggregates over part of a group begin in the row of whole numbers...
    walk_number: int  # ... and in that of fractions
    place: Rows  # by place; see the names of the columns
    kept: Rows  # by aggregate
    moments: Int64s  # by moment: where its tests begin
    tests: Rows
    walks: Rows  # the groups that a test must hold for every element of
    negations: Rows
    keys: Rows  # what runs that have filled a place must agree on to be merged


PROGRAM = types.NamedTuple(
    (
        *(types.int64,) * 5,
        types.boolean,
        types.boolean,
        *(types.int64,) * 3,
        INT64_ROWS,
        INT64_ROWS,
        INT64S,
        *(INT64_ROWS,) * 4,
    ),
    Program,
)

# Columns of `place`: is it a Kleene group; the slots of its first, last, current and previous event (one and the same
# for a single event); where its aggregates begin; may runs be merged there, and where the keys for that begin.
KLEENE, FIRST_AT, LAST_AT, CURRENT_AT, PREVIOUS_AT, KEPT_FROM, MERGEABLE, KEYS_FROM = range(8)
# Columns of `kept`: what is kept; are the values fractions; their column and that of their NULL mask; where in a run's
# rows the value is, and how many values were known (for all but counts and averages: were any?).
KEPT_KIND, KEPT_FRACTION, KEPT_COLUMN, KEPT_NULL, KEPT_KNOWN, KEPT_VALUE = range(6)
# Columns of `tests`: the case of the compiled function, and where the groups to walk begin.
CASE, WALKS_FROM = range(2)
# Columns of `walks`: the place of the group, and whether the condition holds from the second element on.
WALKED, SECOND = range(2)
# Columns of `negations`: the slots of the events before and behind it (-1: the window's edge), and the place at whose
# first event it is judged (past the last one: on the complete match).
AFTER_AT, BEFORE_AT, JUDGED_AT = range(3)
# Columns of `keys`: what kind of value, of which slot or register, and in which column.
KEY_KIND, KEY_OF, KEY_COLUMN = range(3)


@dataclass(frozen=True)
class Compiled:
    """What a query needs besides events."""

    automaton: Automaton
    program: Program
    predicate: Predicate
    layout: ColumnLayout  # the columns of the conditions, then those of aggregates and keys
    slots: int
    whole: int  # width of the row of whole numbers
    number: int


@dataclass(frozen=True)
class _Kept:
    """An aggregate that runs carry along."""

    place: int
    kind: int
    argument: s.Expression  # over the event at hand
    known: int
    value: int
    fraction: bool


def compile_query(plan: Plan) -> Compiled:
    """The automaton of a plan's query with its conditions compiled."""
    automaton = compile_automaton(plan.bound)
    return _Compiler(plan, automaton).compile()


class _Compiler:
    """Gives every value a slot and every condition a case."""

    def __init__(self, plan: Plan, automaton: Automaton) -> None:
        self.plan, self.automaton, self.bound = plan, automaton, plan.bound
        self.first: list[int] = []
        self.last: list[int] = []
        self.current: list[int] = []
        self.previous: list[int] = []
        slots = 0
        for component in self.bound.positives:
            own = [slots + step for step in range(4)] if component.kleene else [slots] * 4
            for places, slot in zip((self.first, self.last, self.current, self.previous), own, strict=True):
                places.append(slot)
            slots = own[-1] + 1
        self.negated = {n.component.variable: slots + j for j, n in enumerate(self.bound.negations)}
        self.slots = slots + len(self.negated)
        self.whole = len(self.bound.positives)  # first the lengths
        self.number = 0
        self.kept: dict[tuple[int, int, str], _Kept] = {}
        for expression in self.expressions():
            self.keep(expression)
        self.tests: list[list[tuple[int, tuple[tuple[int, bool], ...]]]] = []
        self.cases: list[Case] = []

    # aggregates

    def expressions(self) -> list[s.Expression]:
        found = [conjunct.expression for conjunct in self.bound.conjuncts]
        for branch in self.automaton.branches:
            found += [*branch.positive, *(part for _, parts in branch.negative for part in parts)]
        return found

    def keep(self, expression: s.Expression) -> None:
        for node in s.walk(expression):
            if isinstance(node, s.Call) and node.function.lower() in _KEPT:
                (argument,) = node.arguments
                if isinstance(argument, s.Reference):
                    continue  # counting events: the length
                (variable,) = s.variables_of(argument)
                place, kind, single = self.bound.place_of[variable], _KEPT[node.function.lower()], _single(argument)
                key = place, kind, expression_text(single)
                if key in self.kept:
                    continue
                fraction = storage(type_of(argument, self.bound.schema)) == "number"
                value = self.number if fraction else self.whole + 1
                self.kept[key] = _Kept(place, kind, single, self.whole, value, fraction)
                self.whole += 1 if fraction else 2
                self.number += fraction

    def kept_for(self, node: s.Call) -> _Kept:
        (argument,) = node.arguments
        (variable,) = s.variables_of(argument)
        kind = _KEPT[node.function.lower()]
        return self.kept[self.bound.place_of[variable], kind, expression_text(_single(argument))]

    def aggregate(self, walked: frozenset[str]) -> Callable[[s.Expression], tuple[str, str]]:
        """Source for an aggregate: over the run's events, or over those before an element that is being walked."""

        def source(node: s.Expression) -> tuple[str, str]:
            if isinstance(node, s.Length):
                return f"counted[{self.bound.place_of[node.variable]}]", "False"
            assert isinstance(node, s.Call)
            (argument,) = node.arguments
            (variable,) = s.variables_of(argument)
            before = any(isinstance(n, s.Reference) and n.element is s.Element.BEFORE for n in s.walk(argument))
            apart = before and variable in walked
            whole, number = (self.whole, self.number) if apart else (0, 0)
            if isinstance(argument, s.Reference):
                return f"counted[{whole + self.bound.place_of[variable]}]", "False"
            kept = self.kept_for(node)
            known = f"counted[{whole + kept.known}]"
            value = f"running[{number + kept.value}]" if kept.fraction else f"counted[{whole + kept.value}]"
            function = node.function.lower()
            if function == "count":
                return known, "False"
            if function == "avg":
                return f"({value} / {known} if {known} != 0 else nan)", f"{known} == 0"
            return value, f"{known} == 0"

        return source

    # conditions

    def slot(self, reference: s.Reference) -> str:
        if reference.variable in self.negated:
            return f"at[{self.negated[reference.variable]}]"
        place = self.bound.place_of[reference.variable]
        match reference.element:
            case s.Element.FIRST:
                return f"at[{self.first[place]}]"
            case s.Element.LAST:
                return f"at[{self.last[place]}]"
            case s.Element.PREVIOUS:
                return f"at[{self.previous[place]}]"
            case _:
                return f"at[{self.current[place]}]"

    def moment(self, conjuncts: Sequence[Conjunct], at_hand: str | None = None) -> None:
        """One more moment: a case for all plain conditions, and one for each that goes over earlier groups."""
        plain: list[s.Expression] = []
        tests: list[tuple[int, tuple[tuple[int, bool], ...]]] = []
        for conjunct in conjuncts:
            walked = tuple(sorted(conjunct.every - {at_hand}))
            if not walked:
                plain.append(conjunct.expression)
                continue
            groups = tuple((self.bound.place_of[name], name in conjunct.from_second) for name in walked)
            tests.append((len(self.cases), groups))
            self.cases.append(Case((conjunct.expression,), self.slot, self.aggregate(frozenset(walked))))
        if plain:
            tests.insert(0, (len(self.cases), ()))
            self.cases.append(Case(tuple(plain), self.slot, self.aggregate(frozenset())))
        self.tests.append(tests)

    def moments(self) -> None:
        bound, branches = self.bound, self.automaton.branches
        for place, component in enumerate(bound.positives):
            # Tested for whole columns beforehand.
            scanned = own_conditions(bound, component) + first_conditions(bound, component)

            def left(found: tuple[Conjunct, ...], done: list[s.Expression] = scanned) -> list[Conjunct]:
                return [conjunct for conjunct in found if not (conjunct.own and conjunct.expression in done)]

            self.moment(left(begin_conjuncts(bound, place)), component.variable)
            self.moment(left(take_conjuncts(bound, place)), component.variable)
            self.moment(close_conjuncts(bound, place))
        for negation in bound.negations:
            done = own_conditions(bound, negation.component)
            found = negation_conjuncts(bound, negation, branches[0]) if not self.judged else ()
            self.moment([conjunct for conjunct in found if conjunct.expression not in done])
        if self.judged:
            for branch in branches:
                self.moment([place_conjunct(part, list(bound.positives)) for part in branch.positive])
                for negation in bound.negations:
                    self.moment(negation_conjuncts(bound, negation, branch))

    @property
    def judged(self) -> bool:
        return judged_by_branch(self.automaton.branches)

    # keys of equivalent runs

    def key(self, place: int, layout: dict[str, DataType]) -> list[_Key] | None:
        """What two runs that have filled `place` must agree on to be merged; None: they never are."""
        found: set[_Key] = set()
        for read in pending_reads(self.bound, place, self.automaton.branches):
            if read.which is Which.GROUP:
                return None
            found |= set(self.read_key(read, layout))
        if any(negation.after is None or negation.before is None for negation in self.bound.negations):
            found.add((KEY_START, 0, 0))  # the window's edge decides, so only runs with one beginning are alike
        return sorted(found, key=repr)

    def read_key(self, read: Read, layout: dict[str, DataType]) -> list[_Key]:
        if isinstance(read.aggregate, s.Call) and not isinstance(read.aggregate.arguments[0], s.Reference):
            kept = self.kept_for(read.aggregate)
            return [(KEY_COUNTED, kept.known, 0), (KEY_RUNNING if kept.fraction else KEY_COUNTED, kept.value, 0)]
        if read.aggregate is not None:
            return [(KEY_COUNTED, read.place, 0)]
        slot = self.first[read.place] if read.which is Which.FIRST else self.last[read.place]
        if read.attribute is None:
            return [(KEY_INSTANT, slot, 0)]
        kind = self.bound.schema.type_of(read.attribute)
        assert kind is not None
        if kind in (DataType.LIST, DataType.OTHER):
            return [(KEY_EVENT, slot, 0)]
        layout[read.attribute] = kind
        value = KEY_NUMBER if storage(kind) == "number" else KEY_WHOLE
        return [(value, slot, read.attribute), (KEY_NULL, slot, read.attribute)]

    # all together

    def compile(self) -> Compiled:
        bound = self.bound
        self.moments()
        predicate = compile_cases(self.cases, bound.schema, any_variables(bound))
        if not predicate.compiled:
            predicate = replace(predicate, call=_called_from_kernels(predicate.call))
        extra: dict[str, DataType] = {}
        keys = [self.key(place, extra) for place in range(len(bound.positives))]
        kept = sorted(self.kept.values(), key=lambda each: each.place)
        layout = self.layout(predicate.layout, kept, extra)
        after = [-1 if n.after is None else self.last[n.after] for n in bound.negations]
        before = [-1 if n.before is None else self.first[n.before] for n in bound.negations]
        judged_at = [judging_place(bound, negation, self.automaton.branches) for negation in bound.negations]
        window = bound.window
        program = Program(
            len(bound.positives),
            len(bound.negations),
            _STRATEGIES.get(bound.strategy, CONTIGUOUS),
            NO_WINDOW if window is None else EVENT_WINDOW if window.events else TIME_WINDOW,
            window.length if window is not None else 0,
            bound.postponed,
            self.judged,
            len(self.automaton.branches),
            self.whole,
            self.number,
            self.place_table(kept, keys),
            _table(
                [
                    (each.kind, each.fraction, layout.value_row(name), layout.null_row(name), each.known, each.value)
                    for each in kept
                    for name in [_column_name(each.argument)]
                ],
                6,
            ),
            np.array(_starts(len(tests) for tests in self.tests), np.int64),
            self.test_table(),
            _table([walk for tests in self.tests for _, groups in tests for walk in groups], 2),
            _table(list(zip(after, before, judged_at, strict=True)), 3),
            _table([(k, of, _key_row(layout, k, name)) for key in keys for k, of, name in key or ()], 3),
        )
        # Twice the aggregates: the second half serves conditions on `a[..i-1]` while a group is walked.
        return Compiled(self.automaton, program, predicate, layout, self.slots, 2 * self.whole, 2 * self.number)

    def place_table(self, kept: Sequence[_Kept], keys: Sequence[Sequence[_Key] | None]) -> Rows:
        places = range(len(self.bound.positives))
        kept_from = _starts(sum(each.place == place for each in kept) for place in places)
        keys_from = _starts(len(key or ()) for key in keys)
        rows = [
            (
                self.bound.positives[place].kleene,
                self.first[place],
                self.last[place],
                self.current[place],
                self.previous[place],
                kept_from[place],
                keys[place] is not None,
                keys_from[place],
            )
            for place in places
        ]
        return _table([*rows, (0, 0, 0, 0, 0, kept_from[-1], 0, keys_from[-1])], 8)

    def test_table(self) -> Rows:
        flat = [test for tests in self.tests for test in tests]
        walks_from = _starts(len(groups) for _, groups in flat)
        cases = [case for case, _ in flat]
        return _table(list(zip([*cases, 0], walks_from, strict=True)), 2)

    def layout(self, used: ColumnLayout, kept: Sequence[_Kept], extra: dict[str, DataType]) -> ColumnLayout:
        """The conditions' columns with those of aggregates and keys behind them, so that no row changes its place."""
        attributes = {name: (kind, expression) for name, kind, expression in used.attributes}
        for each in kept:
            expression = None if isinstance(each.argument, s.Attribute) else each.argument
            kind = type_of(each.argument, self.bound.schema)
            attributes.setdefault(_column_name(each.argument), (kind, expression))
        for name, kind in extra.items():
            attributes.setdefault(name, (kind, None))
        return replace(used, attributes=tuple((name, *rest) for name, rest in attributes.items()))


def first_conditions(bound: BoundQuery, component: s.Component) -> list[s.Expression]:
    """The conditions that concern the first event of a Kleene group alone, such as `a[1].x > 3`."""
    variable = component.variable
    return [
        conjunct.expression
        for conjunct in bound.conjuncts
        if component.kleene and conjunct.own and conjunct.variables == {variable} and variable not in conjunct.every
    ]


def _single(node: s.Expression) -> s.Expression:
    """An aggregate's argument as a value of one event."""
    return s.Reference("event") if isinstance(node, s.Reference) else s.rebuild(node, _single)


def _column_name(argument: s.Expression) -> str:
    return argument.name if isinstance(argument, s.Attribute) else f"={expression_text(argument)}"


def _key_row(layout: ColumnLayout, kind: int, name: str | int) -> int:
    if isinstance(name, int):
        return name
    return layout.null_row(name) if kind == KEY_NULL else layout.value_row(name)


def _table(rows: Sequence[Sequence[int]], columns: int) -> Rows:
    return np.array(rows, np.int64).reshape(len(rows), columns)


def _starts(sizes: Iterable[int]) -> list[int]:
    return [0, *accumulate(sizes)]


def _called_from_kernels(plain: Any) -> Any:
    """A function that numba could not compile, in a form that compiled kernels can still call."""
    namespace = {"plain": plain, "objmode": numba.objmode}
    source = """
def predicate(case, at, counted, running, columns):
    with objmode(holds="boolean"):
        holds = bool(plain(case, at, counted, running, columns))
    return holds
"""
    exec(compile(source, "<predicate>", "exec"), namespace)
    return numba.njit(PREDICATE)(namespace["predicate"])

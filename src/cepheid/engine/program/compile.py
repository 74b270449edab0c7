"""Compiles a bound query for kernels: its conditions placed and made one function, everything else as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from types import MappingProxyType
from typing import Literal

import numpy as np

from cepheid.engine.data.arrays import Int64Rows
from cepheid.engine.data.columns import ColumnLayout
from cepheid.engine.kernels.compile import is_interpreted
from cepheid.engine.limits import MOST_PLACES
from cepheid.engine.program.equivalence import Key, equivalence_keys, state_keys
from cepheid.engine.program.graph import Graph, graph_of
from cepheid.engine.program.missing import TRUE, without
from cepheid.engine.program.placing import Order, Placed, PlacedNegation, Test, place_conditions, place_on_edges
from cepheid.engine.program.registers import Kept, Registers, Slots
from cepheid.engine.program.tables import (
    CONTIGUOUS,
    EVENT_WINDOW,
    KEY_NULL,
    MIXED,
    NO_WINDOW,
    SKIP_ANY,
    SKIP_NEXT,
    STRICT,
    TIME_WINDOW,
    Program,
)
from cepheid.engine.values.compiled import Case, Predicate, compile_cases
from cepheid.engine.values.python_first import is_python_first
from cepheid.errors import EngineError
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.kept import kept_with_query
from cepheid.language.printing import expression_text
from cepheid.language.schema import DataType, Schema
from cepheid.language.typing import type_of
from cepheid.plan.automaton import Automaton, QueryAutomaton
from cepheid.plan.lowering import automaton_of, every_beginning

Keys = tuple[list[list[Key] | None], dict[str, DataType]]
_STRATEGIES = {s.Strategy.SKIP_TILL_ANY: SKIP_ANY, s.Strategy.SKIP_TILL_NEXT: SKIP_NEXT}


# Which automaton of an expression: its own, or one that ends with every event, with and without negated components.
Automata = Literal["states", "beginnings", "beginnings, refused or not"]
_Asked = tuple["Order | Automata", bool, bool, bool, bool]


@dataclass(frozen=True)
class CompiledProgram:
    """What a search needs besides events."""

    program: Program
    predicate: Predicate
    layout: ColumnLayout  # the columns of the conditions, then those of aggregates and keys
    slots: int  # width of the row of chosen events...
    whole: int  # ... of that of whole numbers...
    number: int  # ... and of that of fractions


@dataclass(frozen=True)
class _Kept:
    """What was compiled of a query."""

    programs: dict[_Asked, CompiledProgram] = field(default_factory=dict)
    graphs: dict[Automata, Graph] = field(default_factory=dict)


@kept_with_query
def _kept_of(bound: BoundQuery) -> _Kept:
    return _Kept()


def compile_program(
    bound: BoundQuery, *, order: Order = None, push: bool = True, variants: bool = False
) -> CompiledProgram:
    """The program of a query, kept as long as the bound query is."""
    programs = _kept_of(bound).programs
    asked: _Asked = (order, push, variants, is_interpreted(), is_python_first())  # these run conditions as plain Python
    if asked not in programs or programs[asked].predicate.exhausted:
        programs[asked] = _compile_program(bound, order=order, push=push, variants=variants)
    return programs[asked]


def _compile_program(bound: BoundQuery, *, order: Order, push: bool, variants: bool) -> CompiledProgram:
    """The program of a query for searches that fill places in an order (None: that of the pattern).

    `push=False` puts every condition where the last place is filled (SASE's basic plan). With `variants` events may be
    missing: each test is compiled once for each set of missing events among those it needs. The case of a test is the
    first of these; a search adds a number whose bits say which are missing, the first needed place the lowest bit.
    """
    keyed = order is None and not variants
    placed = place_conditions(bound, order, push, variants)
    return _compile_placed(bound, placed, equivalence_keys if keyed else None, variants=variants)


def compile_runs(bound: BoundQuery, which: Automata = "states") -> tuple[CompiledProgram, Graph]:
    """The program of a query for the kernels that walk its automaton, and this; kept like every other."""
    kept = _kept_of(bound)
    asked: _Asked = (which, True, False, is_interpreted(), is_python_first())
    if asked not in kept.programs or which not in kept.graphs or kept.programs[asked].predicate.exhausted:
        automaton = automaton_of(bound)
        assert isinstance(automaton, Automaton)
        if which != "states":
            automaton = every_beginning(automaton, refused=which != "beginnings")
        strategies = {strategy: _strategy(strategy) for strategy in s.Strategy}
        kept.graphs[which] = graph_of(automaton, bound, strategies, unended=which == "beginnings")
        if bound.is_linear:
            kept.programs[asked] = compile_program(bound)
        else:
            keyed = partial(_keys_of_states, automaton, which != "states")
            kept.programs[asked] = _compile_placed(bound, place_on_edges(bound, automaton), keyed, variants=False)
    return kept.programs[asked], kept.graphs[which]


def _keys_of_states(
    automaton: QueryAutomaton, every_end: bool, bound: BoundQuery, slots: Slots, registers: Registers
) -> Keys:
    return state_keys(bound, automaton, slots, registers, every_end=every_end)


def _compile_placed(
    bound: BoundQuery,
    placed: Placed,
    keyed: Callable[[BoundQuery, Slots, Registers], Keys] | None,
    *,
    variants: bool,
) -> CompiledProgram:
    negated = (negation.component.variable for negation in bound.negations)
    slots = Slots(bound.place_of, (component.kleene for component in bound.positives), negated)
    conditions = (condition for test in placed.tests() for condition in test.conditions)
    registers = Registers(bound.place_of, bound.schema, conditions)
    cases, bases = _cases(bound, placed, slots, registers, variants)
    predicate = compile_cases(cases, bound.schema, any_variables(bound), filled=True)
    keys: list[list[Key] | None] = [None] * len(bound.positives)
    key_attributes: dict[str, DataType] = {}
    if keyed is not None:
        keys, key_attributes = keyed(bound, slots, registers)
    kept = registers.by_place()
    layout = whole_layout(bound.schema, predicate.layout, kept, key_attributes)
    window = bound.window
    tests = list(placed.tests())
    program = Program(
        len(bound.positives),
        len(bound.negations),
        MIXED if bound.mixed else _STRATEGIES.get(bound.strategy, CONTIGUOUS),
        NO_WINDOW if window is None else EVENT_WINDOW if window.events else TIME_WINDOW,
        window.length if window is not None else 0,
        bound.postponed,
        placed.judged,
        placed.branches,
        registers.whole,
        registers.number,
        _place_table(bound, slots, kept, keys),
        kept_table(kept, layout),
        np.array(starts_of(len(moment) for moment in placed.moments), np.int64),
        table_of(
            [
                *zip(bases, starts_of(len(test.walks) for test in tests), [t.needs for t in tests], strict=False),
                (0, sum(len(test.walks) for test in tests), 0),
            ],
            3,
        ),
        table_of([walk for test in tests for walk in test.walks], 2),
        table_of([_negation_row(slots, negation) for negation in placed.negations], 8),
        table_of([(kind, of, _key_row(layout, kind, name)) for key in keys for kind, of, name in key or ()], 3),
    )
    # Twice the aggregates: the second half serves conditions on `a[..i-1]` while a group is walked.
    return CompiledProgram(program, predicate, layout, slots.count, 2 * registers.whole, 2 * registers.number)


def any_variables(bound: BoundQuery) -> frozenset[str]:
    """The components that take events of several types, whose attributes may be absent."""
    return frozenset(component.variable for component in bound.components if component.any)


def _cases(
    bound: BoundQuery, placed: Placed, slots: Slots, registers: Registers, variants: bool
) -> tuple[list[Case], list[int]]:
    """The cases of the compiled function, and the first one of each test."""
    names = [component.variable for component in bound.positives]
    cases: list[Case] = []
    bases: list[int] = []
    known: dict[tuple[object, ...], int] = {}  # edges of an automaton often test the same
    for test in placed.tests():
        bases.append(known.setdefault((test.conditions, test.walks), len(cases)))
        if bases[-1] < len(cases):
            continue
        source = registers.source(frozenset(names[place] for place, _ in test.walks))
        for conditions in _variants(test, names) if variants else [test.conditions]:
            cases.append(Case(conditions, slots.of, source))
    return cases, bases


def _variants(test: Test, names: Sequence[str]) -> Iterable[tuple[s.Expression, ...]]:
    needed = [name for place, name in enumerate(names) if test.needs & (1 << place)]
    if len(needed) > MOST_PLACES:
        text = " AND ".join(expression_text(condition) for condition in test.conditions)
        raise EngineError(f"'{text}' mentions more than {MOST_PLACES} components")
    for bits in range(1 << len(needed)):
        missing = frozenset(name for bit, name in enumerate(needed) if bits & (1 << bit))
        variant = (without(condition, missing) for condition in test.conditions)
        yield tuple(condition for condition in variant if condition != TRUE)


def _negation_row(slots: Slots, placed: PlacedNegation) -> tuple[int, ...]:
    after, before = placed.negation.after, placed.negation.before
    return (
        -1 if after is None else slots.last[after],
        -1 if before is None else slots.first[before],
        -1 if after is None else after,
        -1 if before is None else before,
        placed.needs,
        placed.judged_at,
        placed.group,
        placed.linked,
    )


def _place_table(
    bound: BoundQuery, slots: Slots, kept: Sequence[Kept], keys: Sequence[Sequence[Key] | None]
) -> Int64Rows:
    """By place; where runs are merged is by state, and a pattern that is an expression has more states than places."""
    places = range(len(bound.positives))
    keys = [*keys, *[None] * (len(places) - len(keys))]
    kept_from = starts_of(sum(each.place == place for each in kept) for place in places)
    keys_from = starts_of(len(key or ()) for key in keys)
    rows = [
        (
            bound.positives[place].kleene,
            slots.first[place],
            slots.last[place],
            slots.current[place],
            slots.previous[place],
            kept_from[place],
            keys[place] is not None,
            keys_from[place],
            _strategy(bound.reached_by(bound.positives[place].variable, False)),
            _strategy(bound.reached_by(bound.positives[place].variable, True)),
        )
        for place in places
    ]
    for state in range(len(places), len(keys) + 1):
        merges = state < len(keys) and keys[state] is not None
        rows.append((False, 0, 0, 0, 0, kept_from[-1], merges, keys_from[state], 0, 0))
    return table_of(rows, 10)


def _strategy(strategy: s.Strategy) -> int:
    if strategy is s.Strategy.STRICT_CONTIGUITY:
        return STRICT
    return _STRATEGIES.get(strategy, CONTIGUOUS)


def kept_table(kept: Sequence[Kept], layout: ColumnLayout) -> Int64Rows:
    """The registers of aggregates, as kernels read them."""
    return table_of(
        [
            (k.kind, k.fraction, layout.value_row(k.column), layout.null_row(k.column), k.known, k.value, k.counts)
            for k in kept
        ],
        7,
    )


def whole_layout(
    schema: Schema, used: ColumnLayout, kept: Sequence[Kept], extra: Mapping[str, DataType] = MappingProxyType({})
) -> ColumnLayout:
    """The conditions' columns with those of aggregates and keys behind them, so that no row changes its place."""
    attributes = {name: (kind, expression) for name, kind, expression in used.attributes}
    for each in kept:
        expression = None if isinstance(each.argument, s.Attribute) else each.argument
        attributes.setdefault(each.column, (type_of(each.argument, schema), expression))
    for name, kind in extra.items():
        attributes.setdefault(name, (kind, None))
    return replace(used, attributes=tuple((name, *rest) for name, rest in attributes.items()))


def _key_row(layout: ColumnLayout, kind: int, name: str | int) -> int:
    if isinstance(name, int):
        return name
    return layout.null_row(name) if kind == KEY_NULL else layout.value_row(name)


def table_of(rows: Sequence[Sequence[int]], columns: int) -> Int64Rows:
    """Rows of numbers, also if there are none."""
    return np.array(rows, np.int64).reshape(len(rows), columns)


def starts_of(sizes: Iterable[int]) -> list[int]:
    """Where parts of some sizes begin, and where the last one ends."""
    return [0, *accumulate(sizes)]

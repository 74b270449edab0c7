"""Conditions that look back at earlier events, as one function of the predicate compiler.

A step that some condition looks back at has a place: slots for its first and last event, its length, and registers for
aggregates over its events. A reference to an event of a step is a slot, and an event that is absent is a row in which
everything is NULL. What is to hold for each event of a step is a test that walks over the step's events.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cepheid.engine.data.arrays import Int64Rows
from cepheid.engine.program.compile import CompiledProgram, kept_table, starts_of, table_of, whole_layout
from cepheid.engine.program.placing import Test
from cepheid.engine.program.registers import Kept, Registers, Slots
from cepheid.engine.program.tables import NO_WINDOW, SKIP_ANY, Program
from cepheid.engine.values.compiled import Case, Fragment, compile_cases
from cepheid.language import syntax as s
from cepheid.language.flink.conditions import HERE, Atom
from cepheid.plan.flink_automaton import FlinkAutomaton


def numbered_steps(automaton: FlinkAutomaton) -> dict[str, int]:
    """The steps in the order of their places, those that conditions look back at first; see `places`."""
    walked = [step for atom in automaton.atoms for step in automaton.walked(atom.expression)]
    looked_back = [step for atom in automaton.atoms for step in sorted(atom.steps()) if step in automaton.lists]
    return {step: number for number, step in enumerate(dict.fromkeys([*walked, *looked_back, *automaton.lists]))}


def places(automaton: FlinkAutomaton) -> dict[str, int]:
    """The steps that conditions look back at, and the place of each."""
    count = len({step for atom in automaton.atoms for step in atom.steps() if step in automaton.lists})
    return {step: place for step, place in numbered_steps(automaton).items() if place < count}


def compile_conditions(automaton: FlinkAutomaton) -> CompiledProgram:
    """The atoms that look back: a test for each atom, which says nothing for those that speak of one event alone."""
    place_of = places(automaton)
    tests = [_test(atom, automaton, place_of) for atom in automaton.atoms]
    slots = Slots(place_of, (automaton.lists[step] for step in place_of), (HERE,))
    conditions = [condition for test in tests for condition in test.conditions]
    registers = Registers(place_of, automaton.schema, conditions)
    source = _of_none_is_zero(registers, place_of)
    predicate = compile_cases(
        [Case(test.conditions, slots.of, source) for test in tests], automaton.schema, frozenset()
    )
    kept = registers.by_place()
    layout = whole_layout(automaton.schema, predicate.layout, kept)
    walks = starts_of(len(test.walks) for test in tests)
    program = Program(
        len(place_of),
        0,
        SKIP_ANY,
        NO_WINDOW,
        0,
        False,
        False,
        1,
        registers.whole,
        registers.number,
        _place_table(automaton, place_of, slots, kept),
        kept_table(kept, layout),
        np.zeros(1, np.int64),
        table_of([(case, walk, 0) for case, walk in enumerate(walks)], 3),
        table_of([walk for test in tests for walk in test.walks], 2),
        table_of([], 8),
        table_of([], 3),
    )
    return CompiledProgram(program, predicate, layout, slots.count, 2 * registers.whole, 2 * registers.number)


def _test(atom: Atom, automaton: FlinkAutomaton, place_of: dict[str, int]) -> Test:
    if atom.is_simple or (atom.from_second and atom.own not in place_of):  # a step that holds no events
        return Test((), (), 0)
    condition = atom.expression
    if atom.from_second:  # it says nothing about the first event of its own step
        assert atom.own is not None
        condition = s.Or((s.Comparison("=", s.Length(atom.own), s.Literal(0)), condition))
    walks = dict.fromkeys(automaton.walked(atom.expression))
    return Test((condition,), tuple((place_of[step], False) for step in walks), 0)


def _of_none_is_zero(registers: Registers, place_of: dict[str, int]) -> Callable[[s.Expression], Fragment]:
    """Source for aggregates and lengths; the sum of no events is 0, as in Flink's loops."""
    source = registers.source(frozenset())

    def of(node: s.Expression) -> Fragment:
        value, null = source(node)
        if isinstance(node, s.Call) and node.function.lower() == "sum":
            (variable,) = s.variables_of(node)
            null = f"(counted[{place_of[variable]}] != 0 and ({null}))"
        return value, null

    return of


def _place_table(automaton: FlinkAutomaton, place_of: dict[str, int], slots: Slots, kept: list[Kept]) -> Int64Rows:
    begins = starts_of(sum(each.place == place for each in kept) for place in place_of.values())
    rows = [
        (
            automaton.lists[step],
            slots.first[place],
            slots.last[place],
            slots.current[place],
            slots.previous[place],
            begins[place],
            *(0,) * 4,
        )
        for step, place in place_of.items()
    ]
    return table_of([*rows, (*(0,) * 5, begins[-1], *(0,) * 4)], 10)

"""The reference lays a Flink pattern out by itself: state by state it is what the automaton of the searches is."""

from __future__ import annotations

import random
from zlib import crc32

import pyarrow as pa
import pytest

from cepheid.engine.reference.flink_states import Is, State, StatesOfPattern, states_of
from cepheid.errors import QueryError
from cepheid.language.flink.conditions import Atom
from cepheid.plan.automaton import Kind
from cepheid.plan.flink_automaton import All, Always, FlinkAutomaton, Formula, Judged, Not
from cepheid.plan.flink_lowering import lower_flink
from cepheid.runners.flink import events_schema
from cepheid.runners.options import FlinkOptions
from strategies.flink import draw_task, to_pattern

SCHEMA = events_schema(
    FlinkOptions(type=None), pa.schema({"ts": pa.int64(), "name": pa.string(), "price": pa.float64()})
)
KINDS = {Is.WAITING: Kind.NORMAL, Is.COMPLETE: Kind.FINAL, Is.FORBIDDEN: Kind.STOP}
EVENTS = range(24)  # conditions are compared for so many choices of what their atoms say


def says(atom: Atom, _: object, number: int) -> bool:
    """What an atom says of an event: anything, but always the same."""
    return bool(crc32(f"{atom.text} {atom.own} {number}".encode()) & 64)


def holds(formula: Formula, automaton: FlinkAutomaton, number: int) -> bool:
    """What a condition of the automaton says."""
    match formula:
        case Always():
            return True
        case Judged(atom=atom):
            return says(automaton.atoms[atom], None, number)
        case Not(inner=inner):
            return not holds(inner, automaton, number)
        case All(left=left, right=right):
            return holds(left, automaton, number) and holds(right, automaton, number)
    return holds(formula.left, automaton, number) or holds(formula.right, automaton, number)


def compare(automaton: FlinkAutomaton, states: StatesOfPattern) -> int:
    """Asserts that both are the same from the first state on; returns how many pairs of states were compared."""
    assert (automaton.window, automaton.pattern.skip) == (states.window, automaton.skip)
    seen: set[tuple[int, State]] = set()
    pending = [(automaton.start, states.start)]
    while pending:
        number, state = pending.pop()
        if (number, state) in seen:
            continue
        seen.add((number, state))
        other = automaton.states[number]
        assert KINDS.get(state.kind, Kind.PENDING) is other.kind
        assert (state.step, state.gap) == (automaton.waits_for[number], automaton.gaps[number])
        assert [move.value for move, _, _ in state.moves] == [edge.action.value for edge in other.edges]
        for (_, target, condition), edge in zip(state.moves, other.edges, strict=True):
            expected = [holds(edge.guard, automaton, event) for event in EVENTS]
            assert [condition({}, event) for event in EVENTS] == expected
            pending.append((edge.target, target))
    assert len({number for number, _ in seen}) == len({state for _, state in seen}) == len(seen)
    return len(seen)


def laid_out(seed: int) -> int:
    """Compares one drawn pattern; 0: it is refused."""
    pattern = to_pattern(draw_task(random.Random(seed)))
    try:
        automaton = lower_flink(pattern, SCHEMA)
    except QueryError:
        return 0
    return compare(automaton, states_of(pattern, SCHEMA, {}, says))


def test_both_layouts_are_the_same() -> None:
    assert sum(laid_out(seed) > 0 for seed in range(300)) > 150


@pytest.mark.slow
def test_both_layouts_are_the_same_in_many_patterns() -> None:
    assert sum(laid_out(seed) > 0 for seed in range(1_000, 9_000)) > 4_000

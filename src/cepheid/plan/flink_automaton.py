"""The automaton of a Flink pattern: conditions on its edges, and what it refers to besides states and edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.flink.conditions import Atom
from cepheid.language.flink.pattern import Pattern
from cepheid.language.flink.skip import AfterMatchSkipStrategy
from cepheid.language.schema import Schema
from cepheid.plan.automaton import Automaton, Edge, State, edge_lines


@dataclass(frozen=True)
class Always:
    """Holds for every event."""


@dataclass(frozen=True)
class Judged:
    """Atom number so-and-so holds."""

    atom: int


@dataclass(frozen=True)
class Not:
    """Does not hold."""

    inner: Formula


@dataclass(frozen=True)
class All:
    """Both hold."""

    left: Formula
    right: Formula


@dataclass(frozen=True)
class Some:
    """At least one holds."""

    left: Formula
    right: Formula


Formula: TypeAlias = Always | Judged | Not | All | Some
FlinkEdge: TypeAlias = Edge[Formula]
FlinkState: TypeAlias = State[Formula]


@dataclass(frozen=True)
class FlinkAutomaton:
    """An automaton, and what it refers to. The edges of a state are in the order in which Flink follows them."""

    automaton: Automaton[Formula]
    gaps: tuple[int, ...]  # by state: the longest time since the event before; 0: any
    atoms: tuple[Atom, ...]
    window: int  # 0: none
    skip: AfterMatchSkipStrategy
    lists: dict[str, bool]  # the steps with events, in order: does each hold a list?
    schema: Schema
    pattern: Pattern  # what it was made from, for the reference...
    parameters: Mapping[str, object]  # ... with the values of its parameters

    @property
    def states(self) -> tuple[FlinkState, ...]:
        """The states, by their numbers."""
        return self.automaton.states

    @property
    def start(self) -> int:
        """The number of the state in which a run waits for its first event."""
        return self.automaton.start

    @cached_property
    def waits_for(self) -> tuple[str, ...]:
        """By state: the step whose event a run waits for, or a negated one."""
        return tuple(step_of(state.name) for state in self.states)

    def walked(self, expression: s.Expression) -> Iterator[str]:
        """The steps with several events for each of which an expression is to hold."""
        if isinstance(expression, s.Call) and expression.function.lower() in AGGREGATES:
            return
        match expression:
            case s.Reference(variable=step, element=s.Element.SINGLE) if self.lists.get(step):
                yield step
        for inner in s.children(expression):
            yield from self.walked(inner)

    def describe(self) -> str:
        """The automaton as text, a line for each edge."""
        return "\n".join(edge_lines(self.automaton, lambda guard: formula_text(guard, self.atoms)))


def step_of(state: str) -> str:
    """The step of a state with a name: further states of a step have a number behind its name."""
    return state.partition(":")[0]


def formula_text(formula: Formula, atoms: tuple[Atom, ...]) -> str:
    """A condition as text."""
    match formula:
        case Always():
            return "TRUE"
        case Judged(atom=atom):
            return atoms[atom].text
        case Not(inner=inner):
            return f"NOT ({formula_text(inner, atoms)})"
        case All(left=left, right=right):
            return f"{formula_text(left, atoms)} AND {formula_text(right, atoms)}"
        case Some(left=left, right=right):
            return f"({formula_text(left, atoms)} OR {formula_text(right, atoms)})"

"""The automaton of a pattern: states, and edges that take an event, ignore one, or proceed without one.

There is one type for every language. A language lowers its patterns to it, a search walks it, EXPLAIN prints it. What
stands on edges as a condition is for the language to say (`Guard`), and so is how the edges of a state compete.

- Query text (`plan/lowering.py`): a guard is a tuple of tests on the event and on earlier ones. All edges are followed.
  `forbids` lists the negated components between the event before and this one. `reached_by` is the selection strategy,
  which also says what an IGNORE edge lets pass. PROCEED closes a Kleene group, or ends a match in the final state.
- Row patterns (`plan/row_lowering.py`): `rank` is the order of preference, the lowest first. A step that takes a row is
  a TAKE edge whose `variable` is the label; a split is a state with two PROCEED edges, ranks 0 and 1; a jump is one
  PROCEED edge; an anchor is a PROCEED edge with a guard. An iteration that takes no row ends its loop: a guard, too.
- Flink's patterns: guards are formulas over numbered conditions, `rank` is the place of an edge among those of its
  state, and states may also be STOP (a forbidden event gives the run up) or PENDING (complete at the window's end).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeAlias, TypeVar

from cepheid.language import syntax as s

Guard = TypeVar("Guard")


class Action(Enum):
    """What an edge does with the event at hand."""

    TAKE = "take"
    IGNORE = "ignore"
    PROCEED = "proceed"  # to another state, with the same event still at hand


class Kind(Enum):
    """What a state is."""

    NORMAL = 0
    FINAL = 1  # the match is complete
    STOP = 2  # the run is given up
    PENDING = 3  # complete once its window has passed


@dataclass(frozen=True)
class Edge(Generic[Guard]):
    """A move from one state to another, and what must hold for it."""

    action: Action
    target: int  # the number of a state
    guard: Guard
    variable: str = ""  # TAKE: the component that the event fills
    forbids: tuple[tuple[str, Guard], ...] = ()  # what must not lie before the event, and what such an event passes
    rank: int = 0  # among the edges of a state the lowest is preferred; equal ones are all followed
    first: bool = True  # TAKE: is it a single event, or the first of a list whose first event matters?
    further: bool = False  # TAKE: does it begin a further round of a part that is open?
    reached_by: s.Strategy = s.Strategy.SKIP_TILL_ANY  # which events may lie before it; IGNORE: which may pass


@dataclass(frozen=True)
class State(Generic[Guard]):
    """A state and its edges."""

    name: str
    edges: tuple[Edge[Guard], ...] = ()
    kind: Kind = Kind.NORMAL

    @property
    def takes(self) -> Iterator[Edge[Guard]]:
        """The edges that take an event."""
        return (edge for edge in self.edges if edge.action is Action.TAKE)


@dataclass(frozen=True)
class Automaton(Generic[Guard]):
    """States by their numbers."""

    states: tuple[State[Guard], ...]
    start: int
    outside: tuple[tuple[str, Guard], ...] = ()  # forbidden before or behind a whole match, and what such events pass

    def proceeds(self, state: State[Guard], *, final: bool) -> Iterator[Edge[Guard]]:
        """The edges on which a state proceeds to a final state, or to others."""
        for edge in state.edges:
            if edge.action is Action.PROCEED and (self.states[edge.target].kind is Kind.FINAL) == final:
                yield edge

    def end(self, state: State[Guard]) -> Edge[Guard] | None:
        """The edge on which a match ends in a state, if it can."""
        return next(self.proceeds(state, final=True), None)


def edge_lines(automaton: Automaton[Guard], guard_text: Callable[[Guard], str]) -> Iterator[str]:
    """The automaton as text, a line for each edge."""
    for number, state in enumerate(automaton.states):
        label = f"{state.name}{' (start)' if number == automaton.start else ''}"
        for edge in state.edges:
            way = f"{edge.action.value:<9}-> {automaton.states[edge.target].name:<16}"
            yield f"{label:<20}{way}{guard_text(edge.guard)}".rstrip()
            label = ""


# --- automata of query text ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Test:
    """A condition on an edge or at the end, and the lists each of whose events it must hold for."""

    expression: s.Expression
    walked: tuple[str, ...] = ()


Tests: TypeAlias = tuple[Test, ...]
QueryEdge: TypeAlias = Edge[Tests]
QueryState: TypeAlias = State[Tests]
QueryAutomaton: TypeAlias = Automaton[Tests]


def ends_match(final: int, tests: Tests = ()) -> QueryEdge:
    """The edge on which a match ends."""
    return Edge(Action.PROCEED, final, tests)


def ignores(number: int, reached_by: s.Strategy, parted: bool) -> tuple[QueryEdge, ...]:
    """What a state lets pass: nothing if every event counts. `parted`: are there events of other partitions?"""
    if reached_by is s.Strategy.STRICT_CONTIGUITY or (reached_by is s.Strategy.PARTITION_CONTIGUITY and not parted):
        return ()
    return (Edge(Action.IGNORE, number, (), reached_by=reached_by),)

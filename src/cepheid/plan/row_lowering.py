"""A row pattern as an automaton: the preferred way on first.

`A*` becomes: a state that goes on to the body or past it; the body; a state that goes back or on. An iteration that
takes no row is the last one, as in Trino: where a body may be empty, a register keeps the row at which its iteration
began.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, TypeAlias

from cepheid.budget import paced
from cepheid.errors import QueryError
from cepheid.language import pattern as p
from cepheid.plan.automaton import Action, Automaton, Edge, Kind, State

MAX_STEPS = 30_000


class Asks(Enum):
    """What an edge asks besides the condition of a label."""

    NOTHING = ""
    LEFT_OUT = "the row is left out of the result"
    AT_START = "the partition begins here"
    AT_END = "the partition ends here"
    ITERATION = "an iteration begins"  # a register keeps the row
    AGAIN = "again"


class RowGuard(NamedTuple):
    """What must hold for an edge, and the register that says so; -1: none."""

    asks: Asks = Asks.NOTHING
    register: int = -1

    def __str__(self) -> str:
        some_row = self.asks is Asks.AGAIN and self.register >= 0
        return f"{self.asks.value}, if the iteration took a row" if some_row else self.asks.value


FREE = RowGuard()
RowEdge: TypeAlias = Edge[RowGuard]
RowAutomaton: TypeAlias = Automaton[RowGuard]


def lower_rows(pattern: p.Pattern, *, neighbours: bool = False) -> RowAutomaton:
    """The automaton of a pattern; states that take a row have the name of its label, and a number if there are several.

    `neighbours`: of parts in any order only each two that can be neighbours. That is enough to see which label can come
    after which, and few states.

    >>> from cepheid.plan.automaton import edge_lines
    >>> again = p.Repeat(p.Single("B"), 0, None)
    >>> print("\\n".join(edge_lines(lower_rows(p.Sequence((p.Single("A"), again))), str)))
    A (start)           take     -> 1
    1                   proceed  -> B
                        proceed  -> end
    B                   take     -> 3
    3                   proceed  -> B               again
                        proceed  -> end
    """
    states = _States(2 if neighbours else None)
    states.lower(p.joined_repeats(pattern), FREE)
    seen: dict[str, int] = {}
    found: list[State[RowGuard]] = []
    for number, edges in enumerate(states.edges):
        name = edges[0].variable
        seen[name] = seen.get(name, 0) + 1
        called = name if seen[name] == 1 else f"{name}:{seen[name]}"
        found.append(State(called if name else str(number), edges))
    return Automaton((*found, State("end", kind=Kind.FINAL)), 0)


class _States:
    """The automaton while it is made: the edges of each state, of which the next one is the usual target."""

    def __init__(self, ordered: int | None = None) -> None:
        self.ordered = ordered
        self.edges: list[tuple[RowEdge, ...]] = []
        self.registers = 0

    def add(self, action: Action = Action.PROCEED, guard: RowGuard = FREE, label: str = "") -> int:
        """A state with an edge to the next one."""
        if len(self.edges) >= MAX_STEPS:
            hint = "use fewer repetitions, or fewer parts of PERMUTE"
            raise QueryError("the pattern is too large", hint=hint, code="too-large")
        self.edges.append((Edge(action, len(self.edges) + 1, guard, label),))
        return len(self.edges) - 1

    def branch(self, at: int, inside: int, greedy: bool = True, guard: RowGuard = FREE) -> None:
        """A state goes on inside a part, or to where the next state will be; a reluctant one in the other order."""
        ways = [(inside, guard), (len(self.edges), FREE)]
        ordered = enumerate(ways if greedy else ways[::-1])
        self.edges[at] = tuple(Edge(Action.PROCEED, target, asks, rank=rank) for rank, (target, asks) in ordered)

    def lower(self, pattern: p.Pattern, guard: RowGuard) -> None:
        match pattern:
            case p.Single(label=label):
                self.add(Action.TAKE, guard, label)
            case p.Sequence(parts=parts):
                for part in parts:
                    self.lower(part, guard)
            case p.Choice(parts=parts):
                self.choice(parts, guard)
            case p.AnyOrder():
                self.choice(p.orders(pattern, self.ordered).parts, guard)
            case p.Excluded(part=part):
                self.lower(part, RowGuard(Asks.LEFT_OUT))
            case p.Repeat(most=None):
                self.unbounded(pattern, guard)
            case p.Repeat():
                self.bounded(pattern, guard)
            case p.Start():
                self.add(guard=RowGuard(Asks.AT_START))
            case p.End():
                self.add(guard=RowGuard(Asks.AT_END))

    def choice(self, parts: tuple[p.Pattern, ...], guard: RowGuard) -> None:
        jumps = []
        for part in parts[:-1]:
            split = self.add()
            self.lower(part, guard)
            jumps.append(self.add())
            self.branch(split, split + 1)
        self.lower(parts[-1], guard)
        for jump in jumps:
            self.edges[jump] = (Edge(Action.PROCEED, len(self.edges), FREE),)

    def several(self, part: p.Pattern, count: int, guard: RowGuard) -> None:
        """A part so many times; one without states, such as `()`, is the same however often it stands there."""
        for _ in paced(range(count)):
            before = len(self.edges)
            self.lower(part, guard)
            if len(self.edges) == before:
                return

    def unbounded(self, repeat: p.Repeat, guard: RowGuard) -> None:
        entry = self.add() if repeat.least == 0 else None
        self.several(repeat.part, repeat.least - 1, guard)
        body, register = len(self.edges), -1
        if p.may_be_empty(repeat.part):
            register = self.registers
            self.registers += 1
            self.add(guard=RowGuard(Asks.ITERATION, register))
        self.lower(repeat.part, guard)
        loop = self.add()
        self.branch(loop, body, repeat.greedy, RowGuard(Asks.AGAIN, register))
        if entry is not None:
            self.branch(entry, body, repeat.greedy)

    def bounded(self, repeat: p.Repeat, guard: RowGuard) -> None:
        assert repeat.most is not None
        self.several(repeat.part, repeat.least, guard)
        splits = []
        for _ in range(repeat.most - repeat.least):
            splits.append(self.add())
            self.lower(repeat.part, guard)
        for split in splits:
            self.branch(split, split + 1, repeat.greedy)

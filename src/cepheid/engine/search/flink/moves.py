"""What a run does with an event, found out beforehand.

Which edges an event opens depends on the conditions alone. Those that speak of nothing but the event at hand divide
events into a few kinds, so that for a state and a kind of event all is known before the walk, or known but for atoms
that look back: then these decide, one after the other, between outcomes that are known.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cepheid.budget import checkpoint, paced
from cepheid.engine.data.arrays import Int64s
from cepheid.engine.search.flink import machine as m
from cepheid.engine.search.flink.conditions import numbered_steps
from cepheid.errors import LimitError
from cepheid.plan.automaton import Action, Kind
from cepheid.plan.flink_automaton import All, Always, FlinkAutomaton, FlinkEdge, Formula, Judged, Not, Some

Move: TypeAlias = tuple[int, int, int]  # what is done, the step that takes the event, the state it leads to
Truths: TypeAlias = dict[int, bool]  # atoms that are decided
MOST_CHOICES = 1 << 17
TABLES = 64  # that are kept: small batches of a stream ask for few
MOST_EDGES = 1 << 12  # that one event opens for one run


class Undecided(Exception):
    """An atom has to be judged before it is known what a run does."""

    def __init__(self, atom: int) -> None:
        self.atom = atom


class MoveTable(NamedTuple):
    """The arrays of `Machine` that say what a run does."""

    decision: npt.NDArray[np.int64]
    choice: npt.NDArray[np.int64]
    first_move: Int64s
    move: npt.NDArray[np.int64]
    active: Int64s
    fan: int


class Moves:
    """The moves of an automaton; those for further kinds of events are added as they come up."""

    def __init__(self, automaton: FlinkAutomaton) -> None:
        self.automaton = automaton
        self.steps = numbered_steps(automaton)
        self.outcomes: dict[tuple[Move, ...], int] = {}
        self.choices: list[tuple[int, int, int]] = []
        self.decided: dict[tuple[int, bytes], int] = {}
        self.tables: dict[tuple[int, bytes], MoveTable] = {}
        self.asked = self._asked()

    def table(self, truths: npt.NDArray[np.uint8]) -> MoveTable:
        """What runs do with events of several kinds; per kind and atom, does it hold?"""
        key = len(truths), truths.tobytes()
        if key not in self.tables:
            if len(self.tables) >= TABLES:
                self.tables.clear()
            self.tables[key] = self._table(truths)
        return self.tables[key]

    def _table(self, truths: npt.NDArray[np.uint8]) -> MoveTable:
        decision = np.zeros((len(truths), len(self.automaton.states)), np.int64)
        active = np.zeros(len(truths), np.int64)
        for state in paced(range(len(self.automaton.states))):
            asked = self.asked[state]
            waiting = -1 - self._outcome((self._waiting(state),))
            decision[:, state] = [self._decided(state, asked, row) for row in truths[:, asked]]
            active |= (decision[:, state] != waiting).astype(np.int64) << min(state, m.BITS)
        moves = list(self.outcomes)
        return MoveTable(
            decision,
            np.array(self.choices, np.int64).reshape(-1, 3),
            np.concatenate([[0], np.cumsum([len(each) for each in moves])]).astype(np.int64),
            np.array([move for each in moves for move in each], np.int64).reshape(-1, 3),
            active,
            max(len(each) for each in moves),
        )

    def _asked(self) -> list[list[int]]:
        """For each state the atoms about the event alone that decide what a run does there."""
        states, atoms = self.automaton.states, self.automaton.atoms
        found = [{atom for edge in state.edges for atom in atoms_in(edge.guard)} for state in states]
        changed = True
        while changed:  # states mostly lead to those that were made before them, so that few rounds are enough
            changed = False
            for state, own in paced(zip(states, found, strict=True)):
                before = len(own)
                for edge in state.edges:
                    # Where a take leads to matters, too: the end may be reached from there without an event.
                    if edge.action is not Action.IGNORE:
                        own |= found[edge.target]
                changed = changed or len(own) > before
        return [sorted(atom for atom in each if atoms[atom].is_simple) for each in found]

    def _waiting(self, state: int) -> Move:
        return (m.AGAIN if state == self.automaton.start else m.WAIT, -1, state)

    def _decided(self, state: int, asked: list[int], truths: npt.NDArray[np.uint8]) -> int:
        key = state, truths.tobytes()
        if key not in self.decided:
            known = {atom: bool(holds) for atom, holds in zip(asked, truths, strict=True)}
            self.decided[key] = self._decision(state, known)
        return self.decided[key]

    def _decision(self, state: int, known: Truths) -> int:
        """A choice, or -1 minus an outcome."""
        checkpoint()
        try:
            return -1 - self._outcome(tuple(self._moves(state, known)))
        except Undecided as undecided:
            atom = undecided.atom
        yes, no = (self._decision(state, {**known, atom: holds}) for holds in (True, False))
        if yes == no:
            return yes
        if len(self.choices) >= MOST_CHOICES:
            raise LimitError("the pattern has too many transitions at a time", hint="use engine='reference'")
        self.choices.append((atom, yes, no))
        return len(self.choices) - 1

    def _outcome(self, moves: tuple[Move, ...]) -> int:
        return self.outcomes.setdefault(moves, len(self.outcomes))

    def _moves(self, state: int, known: Truths) -> list[Move]:
        """All that a run becomes, in Flink's order (NFA.computeNextStates)."""
        edges = self._open_edges(state, known)
        states, starts = self.automaton.states, state == self.automaton.start
        stopped = any(states[edge.target].kind is Kind.STOP for edge in edges)
        found: list[Move] = []
        for edge in edges:
            target, kind = edge.target, states[edge.target].kind
            # A run that may not go on can still be complete; what it took last is needed for that alone.
            goes_on = not stopped or kind is Kind.FINAL
            if edge.action is Action.IGNORE:
                if goes_on and not starts:
                    found.append((m.WAIT, -1, target))
                continue
            if kind is Kind.STOP:
                continue
            step = self.steps.get(edge.variable, -1)
            if goes_on:
                found.append((m.TAKE, step, target))
            final = self._final_after(target, known)
            if final is not None:
                found.append((m.ALSO if goes_on else m.TAKE, step, final))
        if starts and not stopped:
            found.append((m.AGAIN, -1, state))
        return found

    def _open_edges(self, state: int, known: Truths) -> list[FlinkEdge]:
        """The edges that take or ignore the event, from a state and those it proceeds to."""
        found: list[FlinkEdge] = []
        states = [state]
        while states:
            for edge in self.automaton.states[states.pop()].edges:
                if is_open(edge, known):
                    if edge.action is Action.PROCEED:
                        states.append(edge.target)
                    else:
                        found.append(edge)
            if len(found) + len(states) > MOST_EDGES:
                raise LimitError("the pattern has too many transitions at a time", hint="use engine='reference'")
        return found

    def _final_after(self, state: int, known: Truths) -> int | None:
        """The final state, if it is reached from a state without a further event."""
        states = [state]
        while states:
            for edge in self.automaton.states[states.pop()].edges:
                if edge.action is Action.PROCEED and is_open(edge, known):
                    if self.automaton.states[edge.target].kind is Kind.FINAL:
                        return edge.target
                    states.append(edge.target)
        return None


def is_open(edge: FlinkEdge, known: Truths) -> bool:
    """Does the condition of an edge hold?"""
    holds = truth(edge.guard, known)
    if holds is None:
        raise Undecided(next(atom for atom in atoms_in(edge.guard) if atom not in known))
    return holds


def truth(formula: Formula, known: Truths) -> bool | None:
    """Does a formula hold? None: that depends on atoms that are not decided."""
    match formula:
        case Always():
            return True
        case Judged(atom=atom):
            return known.get(atom)
        case Not(inner=inner):
            holds = truth(inner, known)
            return None if holds is None else not holds
    one, other = truth(formula.left, known), truth(formula.right, known)
    decisive = isinstance(formula, Some)  # one that is false settles a conjunction, one that is true the other
    if one is decisive or other is decisive:
        return decisive
    return None if one is None or other is None else not decisive


def atoms_in(formula: Formula) -> list[int]:
    """The numbers of the atoms of a formula."""
    match formula:
        case Always():
            return []
        case Judged(atom=atom):
            return [atom]
        case Not(inner=inner):
            return atoms_in(inner)
        case All(left=left, right=right) | Some(left=left, right=right):
            return [*atoms_in(left), *atoms_in(right)]

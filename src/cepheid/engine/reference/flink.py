"""Flink CEP's own way through the states of a pattern, literally and slowly.

Runs share a buffer of events, whose links carry version numbers (SASE+ section 4: "versioned shared buffer"). A run is
a state, a place in the buffer and a version; it is extended by all edges that an event opens. Runs and matches stand in
queues ordered by the event they began with, which are Java's binary heaps: where two are equal the heap decides which
comes first, and with a strategy that skips, the first one wins. So the heaps are here, too.

Time passes from one deadline to the next, as with watermarks that come often enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from cepheid.budget import checkpoint
from cepheid.engine.data.flink_runs import Arranged, Reported, matches_of
from cepheid.engine.data.matches import Matches
from cepheid.engine.reference.flink_states import Is, Move, State, StatesOfPattern, states_of
from cepheid.engine.reference.values import Evaluator
from cepheid.engine.values.plain import value_column
from cepheid.errors import DataError
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.flink.conditions import HERE, Atom
from cepheid.language.flink.skip import AfterMatchSkipStrategy, Skip
from cepheid.language.schema import Schema
from cepheid.plan.flink_automaton import FlinkAutomaton
from cepheid.plan.flink_limits import LIMITS, limit_reached
from cepheid.plan.options import Limits

Row: TypeAlias = Mapping[str, Any]
Version: TypeAlias = tuple[int, ...]
Node: TypeAlias = tuple[int, str]  # an event's number and the step that took it
Steps: TypeAlias = dict[str, list[int]]  # step -> the numbers of its events

_LAST = 2**63 - 1


@dataclass(frozen=True)
class FlinkMatch:
    """A match, or a run that was given up: then with the step it waited for, and when."""

    steps: Steps
    waiting_for: str | None = None
    given_up: int | None = None


def match_flink(
    states: StatesOfPattern,
    skip: AfterMatchSkipStrategy,
    times: Sequence[int],
    partial: bool = False,
    limits: Limits = LIMITS,
) -> list[FlinkMatch]:
    """The matches of one partition, whose events are in order; the end of the events counts as time having passed."""
    walk = _Walk(states, skip, times)
    found: list[FlinkMatch] = []
    for number, time in enumerate(times):
        if not number or time > times[number - 1]:  # once for all events of an instant, as Flink's operator does
            found += walk.advance(time)
        found += walk.process(number)
        if len(walk.runs.items) > limits.max_partial_matches:
            raise limit_reached("max_partial_matches", limits)
    found += walk.advance(_LAST)
    found = [each for each in found if partial or each.given_up is None]
    if len(found) > limits.max_matches:
        raise limit_reached("max_matches", limits)
    return found


def find(automaton: FlinkAutomaton, events: Arranged, partial: bool, limits: Limits = LIMITS) -> Matches:
    """The matches in events of several keys. Of the automaton only the pattern is read, and what names its results."""
    judge = _Judge(automaton.schema)
    states = states_of(automaton.pattern, automaton.schema, automaton.parameters, judge.atom)
    rows, times = _rows(states, events.table), events.time.tolist()
    found: list[tuple[int, FlinkMatch]] = []
    for partition in range(len(events.bounds) - 1):
        low, high = int(events.bounds[partition]), int(events.bounds[partition + 1])
        judge.rows = rows[low:high]
        each = match_flink(states, automaton.pattern.skip, times[low:high], partial, limits)
        found += [(low, one) for one in each]
        if len(found) > limits.max_matches:
            raise limit_reached("max_matches", limits)
    return _as_arrays(automaton, found, events)


def _rows(states: StatesOfPattern, table: pa.Table) -> list[dict[str, object]]:
    """The attributes that conditions speak of, with values as conditions see them."""
    nodes = (node for atom in states.atoms for node in s.walk(atom.expression))
    names = sorted({node.name for node in nodes if isinstance(node, s.Attribute)})
    columns = [value_column(table.column(name)).to_pylist() for name in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)] or [{}] * table.num_rows


def _as_arrays(automaton: FlinkAutomaton, found: Sequence[tuple[int, FlinkMatch]], events: Arranged) -> Matches:
    steps = list(automaton.lists)
    names = automaton.waits_for
    taken = [
        sorted((low + row, steps.index(step)) for step, rows in one.steps.items() for row in rows) for low, one in found
    ]
    waiting = [-1 if one.waiting_for is None else names.index(one.waiting_for) for _, one in found]
    arrays = (
        [0] * len(found),
        np.concatenate([[0], np.cumsum([len(each) for each in taken])]),
        [row for each in taken for row, _ in each],
        [step for each in taken for _, step in each],
        waiting,
        [one.given_up or 0 for _, one in found],
    )
    return matches_of(Reported(*(np.array(each, np.int64) for each in arrays)), events.time)


# --- versions and the shared buffer ---------------------------------------------------------------------------------


def increased(version: Version, by: int) -> Version:
    """A later version of the same stage."""
    return (*version[:-1], version[-1] + by)


def is_compatible(version: Version, earlier: Version) -> bool:
    """Could a run of this version have come along a link of an earlier one?"""
    if len(version) > len(earlier):
        return version[: len(earlier)] == earlier
    if len(version) == len(earlier):
        return version[:-1] == earlier[:-1] and version[-1] >= earlier[-1]
    return False


@dataclass
class _Link:
    """From an event in the buffer to the one taken before it."""

    target: Node | None
    version: Version
    locks: int = 0


@dataclass
class _Entry:
    links: list[_Link] = field(default_factory=list)
    locks: int = 0


class _Buffer:
    """The events of all runs; what no run needs any more is dropped, as it could be mistaken for another's."""

    def __init__(self) -> None:
        self.entries: dict[Node, _Entry] = {}

    def put(self, step: str, event: int, previous: Node | None, version: Version) -> Node:
        if previous is not None:
            self.lock(previous, version)
        node = (event, step)
        self.entries.setdefault(node, _Entry()).links.append(_Link(previous, version))
        return node

    def lock(self, node: Node | None, version: Version) -> None:
        entry = self.entries.get(node) if node is not None else None
        if entry is not None:
            entry.locks += 1
            for link in entry.links:
                if is_compatible(version, link.version):
                    link.locks += 1

    def release(self, node: Node | None, version: Version) -> None:
        pending = [(node, version)]
        while pending:
            at, of = pending.pop()
            entry = self.entries.get(at) if at is not None else None
            if entry is None:
                break
            for link in list(entry.links):
                if is_compatible(of, link.version):
                    link.locks -= 1
                    if link.locks <= 0:
                        entry.links.remove(link)
                        if link.target is not None:
                            pending.append((link.target, link.version))
            entry.locks -= 1
            if entry.locks <= 0:
                assert at is not None
                del self.entries[at]

    def path(self, node: Node | None, version: Version) -> Steps:
        """The events of a run, in order, by step."""
        if node is None or node not in self.entries:
            return {}
        pending: list[tuple[Node | None, Version, tuple[Node, ...]]] = [(node, version, ())]
        while pending:
            at, of, behind = pending.pop()
            if at is None:
                steps: Steps = {}
                for event, step in reversed(behind):
                    steps.setdefault(step, []).append(event)
                return steps
            for link in self.entries[at].links:
                if is_compatible(of, link.version):
                    pending.append((link.target, link.version, (*behind, at)))
        return {}


# --- Java's queues --------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """A partial match, or a complete one: where it is, and what it came along."""

    state: State
    node: Node | None
    version: Version
    began: int = _LAST  # the number of its first event
    start_time: int = 0
    previous_time: int = 0


class Heap:
    """java.util.PriorityQueue by the first event: `items` is its array, in which Flink walks it."""

    def __init__(self, items: Sequence[Run] = ()) -> None:
        self.items: list[Run] = []
        for item in items:
            self.add(item)

    def add(self, item: Run) -> None:
        self.items.append(item)
        at = len(self.items) - 1
        while at > 0:
            parent = (at - 1) >> 1
            if item.began >= self.items[parent].began:
                break
            self.items[at] = self.items[parent]
            at = parent
        self.items[at] = item

    def poll(self) -> Run:
        first, last = self.items[0], self.items.pop()
        if self.items:
            self._sift_down(0, last)
        return first

    def remove_where(self, matches: Callable[[Run], bool]) -> None:
        kept = [item for item in self.items if not matches(item)]
        if len(kept) == len(self.items):
            return
        self.items = kept
        for at in range((len(kept) >> 1) - 1, -1, -1):
            self._sift_down(at, self.items[at])

    def _sift_down(self, at: int, item: Run) -> None:
        size = len(self.items)
        while at < size >> 1:
            child = 2 * at + 1
            if child + 1 < size and self.items[child].began > self.items[child + 1].began:
                child += 1
            if item.began <= self.items[child].began:
                break
            self.items[at] = self.items[child]
            at = child
        self.items[at] = item


# --- the walk -------------------------------------------------------------------------------------------------------


class _Walk:
    """The runs of one partition."""

    def __init__(self, states: StatesOfPattern, skip: AfterMatchSkipStrategy, times: Sequence[int]) -> None:
        self.start = states.start
        self.window = states.window
        self.skip = skip
        self.times = times
        self.buffer = _Buffer()
        self.runs = Heap([Run(self.start, None, (1,))])
        self.complete = Heap()

    def advance(self, time: int) -> list[FlinkMatch]:
        """Time passes up to `time`, from deadline to deadline."""
        found: list[FlinkMatch] = []
        while True:
            deadlines = [deadline for run in self.runs.items if (deadline := self.deadline(run)) is not None]
            nearest = min(deadlines, default=_LAST)
            if nearest > time or nearest == _LAST:
                return found
            found += self.give_up(nearest)

    def deadline(self, run: Run) -> int | None:
        """When a run is given up."""
        if run.state is self.start:
            return None
        found = []
        if run.state.gap > 0:
            found.append(run.previous_time + run.state.gap)
        if self.window > 0:
            found.append(run.start_time + self.window)
        return min(found, default=None)

    def give_up(self, time: int) -> list[FlinkMatch]:
        """Runs whose window has passed: those that only waited for that are complete."""
        kept, waited = Heap(), Heap()
        found: list[FlinkMatch] = []
        for run in self.runs.items:
            deadline = self.deadline(run)
            if deadline is None or deadline > time:
                kept.add(run)
            elif run.state.kind is Is.UNTIL_THE_WINDOW_ENDS:
                waited.add(run)
            else:
                steps = self.buffer.path(run.node, run.version)
                found.append(FlinkMatch(steps, run.state.step, deadline))
                self.buffer.release(run.node, run.version)
        matches = self.settle(waited, kept)
        self.runs = kept
        return [*matches, *found]

    def process(self, number: int) -> list[FlinkMatch]:
        """Extends all runs by an event."""
        kept, complete = Heap(), Heap()
        for run in self.runs.items:
            retained = []
            stopped = False
            for extended in self.extend(run, number):
                if extended.state.kind is Is.COMPLETE:
                    complete.add(extended)
                elif extended.state.kind is Is.FORBIDDEN:
                    stopped = True
                    self.buffer.release(extended.node, extended.version)
                else:
                    retained.append(extended)
            for extended in retained:
                if stopped:
                    self.buffer.release(extended.node, extended.version)
                else:
                    kept.add(extended)
        found = self.settle(complete, kept)
        self.runs = kept
        return found

    def settle(self, complete: Heap, runs: Heap) -> list[FlinkMatch]:
        """Reports complete matches; a strategy that skips waits until no run that began earlier could win."""
        for run in complete.items:
            self.complete.add(run)
        found = []
        while self.complete.items:
            earliest = self.complete.items[0]
            if self.skip.skip is not Skip.NO_SKIP and runs.items and earliest.began > runs.items[0].began:
                break
            self.complete.poll()
            steps = self.buffer.path(earliest.node, earliest.version)
            self.prune(runs, steps)
            self.prune(self.complete, steps)
            found.append(FlinkMatch(steps))
            self.buffer.release(earliest.node, earliest.version)
        return found

    def prune(self, heap: Heap, steps: Steps) -> None:
        """Drops what the strategy skips after a match."""
        limit = skipped_before(self.skip, steps)
        if limit is None:
            return

        def dropped(run: Run) -> bool:
            return run.began < limit

        for run in heap.items:
            if dropped(run):
                self.buffer.release(run.node, run.version)
        heap.remove_where(dropped)

    def extend(self, run: Run, number: int) -> list[Run]:
        """What a run becomes with an event."""
        checkpoint()
        looked_back = self.buffer.path(run.node, run.version)
        moves, starts = self.open_moves(run.state, looked_back, number), run.state is self.start
        takes = sum(move is Move.TAKE for move, _, _ in moves)
        ignores = sum(move is Move.IGNORE and target is not run.state for move, _, target in moves)
        onwards = 0 if takes == ignores == 0 else ignores + max(1, takes)
        takes_left, ignores_left, skipped = max(0, takes - 1), ignores, max(0, takes - 1)
        found = []
        for move, step, target in moves:
            if move is Move.IGNORE:
                if starts:
                    continue
                if target is run.state:
                    version = increased(run.version, onwards)
                else:
                    version = (*increased(run.version, skipped + ignores_left), 0)
                    ignores_left -= 1
                extended = Run(target, run.node, version, run.began, run.start_time, run.previous_time)
                found.append(self.locked(extended))
                continue
            current = increased(run.version, takes_left)
            takes_left -= 1
            node = self.buffer.put(step, number, run.node, current)
            time = self.times[number]
            began, start_time = (number, time) if starts else (run.began, run.start_time)
            version = (*current, 0)
            found.append(self.locked(Run(target, node, version, began, start_time, time)))
            final = self.final_after(target, looked_back, number)
            if final is not None:
                found.append(self.locked(Run(final, node, version, began, start_time, time)))
        if starts:
            found.append(Run(run.state, None, increased(run.version, onwards)))
        if run.node is not None:
            self.buffer.release(run.node, run.version)
        return found

    def locked(self, run: Run) -> Run:
        self.buffer.lock(run.node, run.version)
        return run

    def open_moves(self, state: State, looked_back: Steps, number: int) -> list[tuple[Move, str, State]]:
        """The moves that take or ignore an event, from a state and those it proceeds to, with the step that takes."""
        found: list[tuple[Move, str, State]] = []
        states = [state]
        while states:
            at = states.pop()
            for move, target, holds in at.moves:
                if holds(looked_back, number):
                    if move is Move.PROCEED:
                        states.append(target)
                    else:
                        found.append((move, at.step, target))
        return found

    def final_after(self, state: State, looked_back: Steps, number: int) -> State | None:
        """The final state, if one is reached from here without a further event."""
        states = [state]
        while states:
            for move, target, holds in states.pop().moves:
                if move is Move.PROCEED and holds(looked_back, number):
                    if target.kind is Is.COMPLETE:
                        return target
                    states.append(target)
        return None


def skipped_before(skip: AfterMatchSkipStrategy, steps: Steps) -> int | None:
    """Runs that began before this event's number are dropped after a match; None: none are."""
    events = [event for taken in steps.values() for event in taken]
    match skip.skip:
        case Skip.NO_SKIP:
            return None
        case Skip.TO_NEXT:
            return min(events) + 1
        case Skip.PAST_LAST_EVENT:
            return max(events) + 1
    taken = steps.get(skip.step or "", [])
    limit = None if not taken else taken[0] if skip.skip is Skip.TO_FIRST else taken[-1]
    if skip.strict and limit is None:
        raise DataError(f"{skip.skip.value}: a match has no event of step '{skip.step}'")
    if skip.strict and limit == min(events):
        raise DataError(f"{skip.skip.value}: a match begins with step '{skip.step}', and would be found again")
    return limit


class _Judge:
    """Judges conditions for an event at hand and what a run took before."""

    def __init__(self, schema: Schema) -> None:
        self.rows: Sequence[Row] = ()
        self.evaluator = Evaluator(frozenset(), schema)

    def atom(self, atom: Atom, looked_back: Steps, number: int) -> bool:
        if atom.from_second and not looked_back.get(atom.own or ""):
            return True
        binding = {step: [self.rows[event] for event in looked_back.get(step, ())] for step in atom.steps()}
        expression = _known(atom.expression, binding)
        each = [[(step, at) for at in range(len(binding[step]))] for step in sorted(set(_each(expression)))]
        binding[HERE] = [self.rows[number]]
        return all(self.evaluator.condition(expression, binding, dict(chosen)) for chosen in product(*each))


def _known(node: s.Expression, binding: Mapping[str, Sequence[Row]]) -> s.Expression:
    """The expression with what steps that took nothing are worth."""
    match node:
        case s.Call(function=function) if function.lower() in AGGREGATES:
            if any(not binding[step] for step in s.variables_of(node)):
                return s.Literal(0 if function.lower() in ("sum", "count") else None)
            return node
        case s.Attribute(of=of) if of.variable != HERE and not binding[of.variable]:
            return s.Literal(None)
    return s.rebuild(node, lambda inner: _known(inner, binding))


def _each(node: s.Expression) -> Iterator[str]:
    """The steps that the expression is to hold for each event of."""
    if isinstance(node, s.Call) and node.function.lower() in AGGREGATES:
        return
    if isinstance(node, s.Reference) and node.variable != HERE and node.element is s.Element.SINGLE:
        yield node.variable
    for inner in s.children(node):
        yield from _each(inner)

"""Precise streams (SEMANTICS sections 1 to 3) by following every run of the automaton, one instant at a time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from cepheid.engine.matches import NEVER
from cepheid.engine.reference.values import Binding, Evaluator, Row
from cepheid.errors import LimitError
from cepheid.language import syntax as s
from cepheid.language.bind import place_conjunct
from cepheid.language.bound import BoundQuery, Negation, Phase

Groups = tuple[tuple[int, ...], ...]  # for each positive component so far, the indices of its events
FOREVER = NEVER
MAX_MATCHES = 200_000


@dataclass(frozen=True)
class Stream:
    """Events in order: rows, their time, and the rank of their order key (concurrent events share one)."""

    rows: Sequence[Row]
    times: Sequence[int]
    instants: Sequence[int]

    def at(self, instant: int) -> range:
        """The events of one instant."""
        return range(bisect_left(self.instants, instant), bisect_right(self.instants, instant))


@dataclass(frozen=True, order=True)
class Found:
    """A match: when it is known, and which events fill each positive component."""

    completion: float
    groups: Groups


def find_all(bound: BoundQuery, stream: Stream) -> list[Found]:
    """Every match of the query, by completion; before NON-OVERLAP is applied."""
    search = _Search(bound, stream)
    found: set[Found] = set()
    for groups in search.matches():
        found.add(Found(search.completion(groups), groups))
        if len(found) > MAX_MATCHES:
            raise LimitError(f"the reference engine enumerates at most {MAX_MATCHES} matches; use a fast engine")
    return sorted(found)


@dataclass
class _Search:
    bound: BoundQuery
    stream: Stream
    evaluator: Evaluator = field(init=False)
    last_instant: int = field(init=False)

    def __post_init__(self) -> None:
        declared_any = frozenset(component.variable for component in self.bound.components if component.any)
        self.evaluator = Evaluator(declared_any)
        self.last_instant = self.stream.instants[-1] if self.stream.instants else -1

    # runs

    def matches(self) -> Iterator[Groups]:
        """Runs start at every event that can be the first of the pattern, under every strategy."""
        for event in range(len(self.stream.rows)):
            if self.can_begin((), event):
                yield from self.continued(((event,),))

    def continued(self, groups: Groups) -> Iterator[Groups]:
        """All matches that a run grows into, itself included if it is complete."""
        place = len(groups) - 1
        kleene = self.bound.positives[place].kleene
        final = place == len(self.bound.positives) - 1
        closed = not kleene or self.can_close(groups)
        if final and closed and self.survives(groups):
            yield groups
        if final and not kleene:
            return
        for instant in self.instants_after(groups):
            events = [event for event in self.stream.at(instant) if self.in_window(groups, event)]
            takers = [event for event in events if kleene and self.can_take(groups, event)]
            beginners = [event for event in events if not final and closed and self.can_begin(groups, event)]
            for event in takers:
                yield from self.continued((*groups[:-1], (*groups[-1], event)))
            for event in beginners:
                yield from self.continued((*groups, (event,)))
            if self.bound.contiguous:
                return  # one chance only
            if self.bound.strategy is s.Strategy.SKIP_TILL_NEXT and (takers if kleene else beginners):
                return  # it may not pass an instant that holds an event it can take or begin with

    def instants_after(self, groups: Groups) -> Iterator[int]:
        last = groups[-1][-1]
        for instant in range(self.stream.instants[last] + 1, self.last_instant + 1):
            if self.bound.strategy is s.Strategy.PARTITION_CONTIGUITY and not any(
                self.partition(event) == self.partition(last) for event in self.stream.at(instant)
            ):
                continue  # nothing of this partition happens at this instant
            yield instant

    def partition(self, event: int) -> tuple[Any, ...]:
        """The equivalence-test values of an event."""
        return tuple(self.stream.rows[event][name] for name in self.bound.equivalence)

    # conditions

    def can_begin(self, groups: Groups, event: int) -> bool:
        """Can the event be the first (or only) one of the next component?"""
        place = len(groups)
        component = self.bound.positives[place]
        if not (self.fits(component, event) and self.equivalent(groups, component, event)):
            return False
        grown = self.binding((*groups, (event,)))
        variable = component.variable
        for conjunct in self.bound.conjuncts:
            if conjunct.place != place:
                continue
            first_taken = conjunct.phase is Phase.TAKE and variable not in conjunct.from_second
            if conjunct.phase is Phase.BEGIN or first_taken:
                at = {variable: 0} if first_taken else {}
                if not self.evaluator.holds(conjunct, grown, at):
                    return False
        return True

    def can_take(self, groups: Groups, event: int) -> bool:
        """Can the event be a further one of the open Kleene group?"""
        place = len(groups) - 1
        component = self.bound.positives[place]
        if not (self.fits(component, event) and self.equivalent(groups, component, event)):
            return False
        grown = self.binding((*groups[:-1], (*groups[-1], event)))
        at = {component.variable: len(groups[-1])}
        return all(
            self.evaluator.holds(conjunct, grown, at)
            for conjunct in self.bound.conjuncts
            if conjunct.place == place and conjunct.phase is Phase.TAKE
        )

    def can_close(self, groups: Groups) -> bool:
        """Do the conditions on the whole group hold?"""
        place = len(groups) - 1
        return all(
            self.evaluator.holds(conjunct, self.binding(groups))
            for conjunct in self.bound.conjuncts
            if conjunct.place == place and conjunct.phase is Phase.CLOSE
        )

    def binding(self, groups: Groups) -> dict[str, Sequence[Row] | None]:
        """The rows behind the chosen events, by variable."""
        return {
            component.variable: [self.stream.rows[event] for event in group]
            for component, group in zip(self.bound.positives, groups, strict=False)
        }

    def fits(self, component: s.Component, event: int) -> bool:
        """Has the event a type of the component, and the values that equivalence tests fix?"""
        row = self.stream.rows[event]
        if component.types is not None:
            assert self.bound.schema.type is not None
            if row[self.bound.schema.type] not in component.types:
                return False
        for name, value in self.bound.fixed:
            test = s.Comparison("=", s.Attribute(s.Reference(component.variable), name), value)
            if not self.evaluator.condition(test, {component.variable: [row]}, {}):
                return False
        return True

    def equivalent(self, groups: Groups, component: s.Component, event: int) -> bool:
        """Is the event equal to all chosen ones in the attributes of the equivalence tests?"""
        row = self.stream.rows[event]
        for name in self.bound.equivalence:
            if row[name] is None and not component.any:
                return False
            for chosen in (event for group in groups for event in group):
                value = self.stream.rows[chosen][name]
                if value is None or row[name] is None:
                    continue  # absent on a component declared with ANY
                if value != row[name]:
                    return False
        return True

    # the window

    def position(self, event: int) -> int:
        """How many events precede it among those with the same equivalence-test values."""
        own, instant = self.partition(event), self.stream.instants[event]
        return sum(
            1
            for other in range(len(self.stream.rows))
            if self.stream.instants[other] < instant and self.partition(other) == own
        )

    def in_window(self, groups: Groups, event: int) -> bool:
        """Could a match from the first chosen event to this one fit the window?"""
        window = self.bound.window
        if window is None:
            return True
        first = groups[0][0]
        if window.events:
            return self.position(event) - self.position(first) < window.length
        return self.stream.times[event] - self.stream.times[first] < window.length

    # negation

    def survives(self, groups: Groups) -> bool:
        """Does the match stand against the negated components, for some disjunct of the condition?"""
        binding = self.binding(groups)
        for branch in self.bound.branches:
            positive = len(self.bound.branches) == 1 or all(
                self.evaluator.holds(place_conjunct(part, list(self.bound.positives)), binding)
                for part in branch.positive
            )
            if positive and not any(
                self.killed(negation, branch.passed_by(negation.component.variable), groups, binding)
                for negation in self.bound.negations
            ):
                return True
        return False

    def killed(self, negation: Negation, conditions: Sequence[s.Expression], groups: Groups, binding: Binding) -> bool:
        component = negation.component
        placed = [place_conjunct(part, [*self.bound.positives, component]) for part in conditions]
        for event in range(len(self.stream.rows)):
            if not self.inside(negation, groups, event):
                continue
            if not (self.fits(component, event) and self.equivalent(groups, component, event)):
                continue
            with_event = {**binding, component.variable: [self.stream.rows[event]]}
            if all(self.evaluator.holds(conjunct, with_event) for conjunct in placed):
                return True
        return False

    def inside(self, negation: Negation, groups: Groups, event: int) -> bool:
        """Does the event lie in the open interval that a negated component looks at?"""
        instants, times = self.stream.instants, self.stream.times
        window = self.bound.window
        first, last = groups[0][0], groups[-1][-1]
        if negation.after is not None:
            if instants[event] <= instants[groups[negation.after][-1]]:
                return False
        else:
            assert window is not None
            if window.events:
                if self.position(event) <= self.position(last) - window.length:
                    return False
            elif times[event] <= times[last] - window.length:
                return False
        if negation.before is not None:
            return instants[event] < instants[groups[negation.before][0]]
        assert window is not None
        if window.events:
            return self.position(event) < self.position(first) + window.length
        return times[event] < times[first] + window.length

    # completion

    def completion(self, groups: Groups) -> float:
        """The instant from which the match is known."""
        first, last = groups[0][0], groups[-1][-1]
        if not self.bound.postponed:
            return self.stream.times[last]
        window = self.bound.window
        assert window is not None
        if not window.events:
            return self.stream.times[first] + window.length
        own, due = self.partition(first), self.position(first) + window.length
        later = [
            event
            for event in range(len(self.stream.rows))
            if self.partition(event) == own and self.position(event) >= due
        ]
        return self.stream.times[later[0]] if later else FOREVER


def without_overlap(bound: BoundQuery, stream: Stream, found: list[Found], previous: dict[Any, int]) -> list[Found]:
    """NON-OVERLAP: per partition, matches compete by end, then latest start, then the order of their events.

    `previous` maps a partition to the instant at which its last reported match ended.
    """

    def order(match: Found) -> tuple[Any, ...]:
        instants = [tuple(stream.instants[event] for event in group) for group in match.groups]
        content = [[sorted((k, repr(v)) for k, v in stream.rows[e].items()) for e in g] for g in match.groups]
        return (instants[-1][-1], -instants[0][0], instants, content)

    ended = dict(previous)
    kept = []
    for match in sorted(found, key=order):
        first, last = match.groups[0][0], match.groups[-1][-1]
        partition = tuple(stream.rows[first][name] for name in bound.equivalence)
        if stream.instants[first] > ended.get(partition, -1):
            kept.append(match)
            ended[partition] = stream.instants[last]
    return kept

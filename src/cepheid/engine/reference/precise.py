"""Precise streams (docs/semantics.md, "Patterns" to "Strategies") by following every run, one instant at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from cepheid.engine.data.matches import NEVER
from cepheid.engine.reference.stream import Found, Groups, Stream, first_seen, last_seen
from cepheid.engine.reference.values import Binding, Evaluator, Row
from cepheid.errors import LimitError
from cepheid.language import syntax as s
from cepheid.language.bind import place_conjunct
from cepheid.language.bound import BoundQuery, Branch, Negation, Phase
from cepheid.language.normal import negation_normal_form

MAX_MATCHES = 200_000
MAX_RUNS = 2_000_000


def find_all(bound: BoundQuery, stream: Stream) -> list[Found]:
    """Every match of the query in a stream without losses."""
    search = Search(bound, stream)
    return [Found(search.completion(groups), groups) for groups in search.matches()]


@dataclass
class Search:
    """Follows runs through a stream and judges them; what it says of conditions serves incomplete streams, too."""

    bound: BoundQuery
    stream: Stream
    missing_last: bool = False  # may the last event of a match be missing? Then all decisions may come late
    evaluator: Evaluator = field(init=False)
    branches: tuple[Branch, ...] = field(init=False)

    def __post_init__(self) -> None:
        declared_any = frozenset(component.variable for component in self.bound.components if component.any)
        self.evaluator = Evaluator(declared_any)
        self.branches = decisive_branches(self.bound)

    # runs

    def matches(self) -> Iterator[Groups]:
        """Runs start at every event that can be the first of the pattern, under every strategy."""
        pending: list[Groups] = [((event,),) for event in range(len(self.stream)) if self.can_begin((), event)]
        runs = found = 0
        while pending:
            groups = pending.pop()
            runs += 1
            closed = self.can_close(groups)
            if len(groups) == len(self.bound.positives) and closed and self.survives(groups):
                yield groups
                found += 1
            pending.extend(self.continued(groups, closed))
            if found > MAX_MATCHES or runs > MAX_RUNS:
                told = f"{MAX_MATCHES} matches and {MAX_RUNS} runs"
                raise LimitError(f"the reference engine enumerates at most {told}", hint="use a fast engine")

    def continued(self, groups: Groups, closed: bool) -> Iterator[Groups]:
        """The run with one more event, in every way that the strategy allows."""
        kleene = self.bound.positives[len(groups) - 1].kleene
        final = len(groups) == len(self.bound.positives)
        if final and not kleene:
            return
        for instant in self.instants_after(groups):
            events = [event for event in self.stream.at(instant) if self.in_window(groups, event)]
            takers = [event for event in events if kleene and self.can_take(groups, event)]
            beginners = [event for event in events if not final and closed and self.can_begin(groups, event)]
            for event in takers:
                yield (*groups[:-1], (*groups[-1], event))
            for event in beginners:
                yield (*groups, (event,))
            if self.bound.contiguous:
                return  # one chance only
            if self.bound.strategy is s.Strategy.SKIP_TILL_NEXT and (takers if kleene else beginners):
                return  # it may not pass an instant that holds an event it can take or begin with

    def instants_after(self, groups: Groups) -> Iterator[int]:
        """The instants that a run meets, up to the end of its window."""
        first, last = groups[0][0], groups[-1][-1]
        window = self.bound.window
        closing = NEVER if window is None or window.events else self.stream.times[first] + window.length
        for instant in range(self.stream.instants[last] + 1, self.stream.instants[-1] + 1):
            events = self.stream.at(instant)
            if self.stream.times[events[0]] >= closing:
                return
            if self.bound.strategy is s.Strategy.PARTITION_CONTIGUITY and not any(
                self.partition(event) == self.partition(last) for event in events
            ):
                continue  # nothing of this partition happens at this instant
            yield instant

    def partition(self, event: int) -> tuple[Any, ...]:
        """The equivalence-test values of an event; NULLs count as one value here."""
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
        """The rows behind the chosen events, by variable; None for a missing event."""
        return {
            component.variable: [self.stream.rows[event] for event in group] or None
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
        before = range(self.stream.at(instant)[0])
        return sum(1 for other in before if self.partition(other) == own)

    def in_window(self, groups: Groups, event: int) -> bool:
        """Could a match from the first chosen event to this one fit the window?"""
        window = self.bound.window
        if window is None:
            return True
        first = first_seen(groups)
        if window.events:
            return self.position(event) - self.position(first) < window.length
        return self.stream.times[event] - self.stream.times[first] < window.length

    # negation

    def survives(self, groups: Groups) -> bool:
        """Does the match stand against the negated components, for some disjunct of the condition?"""
        binding = self.binding(groups)
        for branch in self.branches:
            placed = (place_conjunct(part, list(self.bound.positives)) for part in branch.positive)
            if all(self.evaluator.holds(conjunct, binding) for conjunct in placed) and not any(
                self.killed(negation, branch.passed_by(negation.component.variable), groups, binding)
                for negation in self.bound.negations
            ):
                return True
        return False

    def killed(self, negation: Negation, conditions: Sequence[s.Expression], groups: Groups, binding: Binding) -> bool:
        """Does an event of the negated component lie in its interval and pass all conditions on it?"""
        component = negation.component
        placed = [place_conjunct(part, [*self.bound.positives, component]) for part in conditions]
        for event in range(len(self.stream)):
            if not self.inside(negation, groups, event):
                continue
            if not (self.fits(component, event) and self.equivalent(groups, component, event)):
                continue
            with_event = {**binding, component.variable: [self.stream.rows[event]]}
            if all(self.evaluator.holds(conjunct, with_event) for conjunct in placed):
                return True
        return False

    def inside(self, negation: Negation, groups: Groups, event: int) -> bool:
        """Does the event lie in the open interval that a negated component looks at?

        It reaches from the seen event before the component to the one after it; where none was, to the window's edge.
        """
        instants, times, window = self.stream.instants, self.stream.times, self.bound.window
        middle = len(groups) if negation.before is None else negation.before
        before = [chosen for group in groups[:middle] for chosen in group]
        after = [chosen for group in groups[middle:] for chosen in group]
        if before and instants[event] <= instants[before[-1]]:
            return False
        if after and instants[event] >= instants[after[0]]:
            return False
        assert window is not None or (before and after)
        first, last = first_seen(groups), last_seen(groups)
        if window is not None and not before:
            opening = self.position(last) if window.events else times[last]
            return (self.position(event) if window.events else times[event]) > opening - window.length
        if window is not None and not after:
            opening = self.position(first) if window.events else times[first]
            return (self.position(event) if window.events else times[event]) < opening + window.length
        return True

    # completion

    def completion(self, groups: Groups) -> int:
        """The instant from which the match is known, and known to be reported; a function of the match alone."""
        mode = self.bound.syntax.output.mode
        first, last = first_seen(groups), last_seen(groups)
        if mode is s.OutputMode.TOP:
            return NEVER  # a better one may come as long as anything comes
        if mode is s.OutputMode.MAXIMAL and self.bound.positives[-1].kleene:
            return self.deadline(first)  # a longer group may still be found
        if mode is s.OutputMode.NON_OVERLAP and (self.bound.postponed or self.missing_last):
            return self.deadline(last)  # matches compete in order of end, and one that ends here may have begun here
        if self.bound.postponed or not groups[-1]:
            return self.deadline(first)
        return self.stream.times[last]

    def deadline(self, event: int) -> int:
        """When a window that opens with this event has passed."""
        window = self.bound.window
        if window is None:
            return NEVER
        if not window.events:
            return self.stream.times[event] + window.length
        own, due = self.partition(event), self.position(event) + window.length
        for later in range(event + 1, len(self.stream)):
            if self.partition(later) == own and self.position(later) >= due:
                return self.stream.times[later]
        return NEVER


def decisive_branches(bound: BoundQuery) -> tuple[Branch, ...]:
    """The disjuncts that negation is judged by, reduced to conditions that share an OR with a negated component.

    All others were tested before as clauses of the conjunctive form. That matters for Kleene groups: `a.x = 1 OR
    a.y = 2` may hold for one element by its x and for another by its y, but a disjunct has to hold for all of them.
    """
    if not bound.negations or bound.syntax.where is None:
        return (Branch((), ()),)
    negated = {negation.component.variable for negation in bound.negations}
    plain: set[s.Expression] = set()
    shared: set[s.Expression] = set()
    for part in _operands(negation_normal_form(bound.syntax.where), s.And):
        nodes = list(s.walk(part))
        mixed = bool(s.variables_of(part) & negated) or any(isinstance(node, s.Equivalence) for node in nodes)
        (shared if mixed else plain).update(_operands(part, s.And, s.Or))
    kept = (
        Branch(tuple(each for each in branch.positive if each not in plain or each in shared), branch.negative)
        for branch in bound.branches
    )
    return tuple(dict.fromkeys(kept))


def _operands(node: s.Expression, *kinds: type[s.Expression]) -> Iterator[s.Expression]:
    """What stands under nested nodes of some kinds."""
    if isinstance(node, kinds):
        for inner in s.children(node):
            yield from _operands(inner, *kinds)
    else:
        yield node

"""Precise streams (docs/semantics.md, "Patterns" to "Strategies") by following every run, one instant at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from cepheid.budget import checkpoint, paced
from cepheid.engine.data.matches import NEVER
from cepheid.engine.reference.stream import FoundMatch, Groups, Stream, first_seen, last_seen
from cepheid.engine.reference.values import Binding, Evaluator, Row
from cepheid.errors import LimitError
from cepheid.language import syntax as s
from cepheid.language.bind import place_conjunct
from cepheid.language.bound import BoundQuery, Negation, Phase
from cepheid.language.missing import without_missing

MAX_MATCHES = 200_000
MAX_RUNS = 2_000_000
NEXT = s.Strategy.SKIP_TILL_NEXT
ENDING = "the event that ends a group"


def check_open(number: int, most: int) -> None:
    """An error if more partial matches are open than may be, or the call has spent what it may."""
    checkpoint()
    if number > most:
        hint = "raise the limit, make the window shorter or the conditions tighter"
        raise LimitError(f"the query reached max_partial_matches={most}", hint=hint)


def find_all(bound: BoundQuery, stream: Stream, most_open: int = MAX_RUNS) -> list[FoundMatch]:
    """Every match of the query in a stream without losses; at most so many runs are open at a time."""
    search = Search(bound, stream, most_open=most_open)
    return [FoundMatch(search.completion(groups), groups) for groups in search.matches()]


@dataclass
class Search:
    """Follows runs through a stream and judges them; what it says of conditions serves incomplete streams, too."""

    bound: BoundQuery
    stream: Stream
    missing_last: bool = False  # may the last event of a match be missing? Then all decisions may come late
    most_open: int = MAX_RUNS  # partial matches at a time
    evaluator: Evaluator = field(init=False)

    def __post_init__(self) -> None:
        declared_any = frozenset(component.variable for component in self.bound.components if component.any)
        self.evaluator = Evaluator(declared_any, self.bound.schema)

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
            check_open(len(pending), self.most_open)
            if found > MAX_MATCHES or runs > MAX_RUNS:
                limits = f"{MAX_MATCHES} matches and {MAX_RUNS} runs"
                raise LimitError(f"the reference engine enumerates at most {limits}", hint="use a fast engine")

    def continued(self, groups: Groups, closed: bool) -> Iterator[Groups]:
        """The run with one more event, in every way that the strategies allow."""
        kleene = self.bound.positives[len(groups) - 1].kleene
        final = len(groups) == len(self.bound.positives)
        moves: dict[str, s.Strategy] = {}  # those that the run may still make, and by which strategy
        if kleene:
            moves["take"] = self.bound.reached_by(self.bound.positives[len(groups) - 1].variable, True)
        if not final:
            moves["begin"] = self.bound.reached_by(self.bound.positives[len(groups)].variable, False)
        chances = Chances(self, groups[-1][-1])
        for instant in paced(self.instants_after(groups)) if moves else ():
            events = [event for event in self.stream.at(instant) if self.in_window(groups, event)]
            chances.come(instant)
            can = {move for move, strategy in moves.items() if chances.allow(strategy)}
            takers = [event for event in events if "take" in can and self.can_take(groups, event)]
            beginners = [event for event in events if "begin" in can and closed and self.can_begin(groups, event)]
            for event in takers:
                yield (*groups[:-1], (*groups[-1], event))
            for event in beginners:
                yield (*groups, (event,))
            # By skip_till_next_match it may not pass an instant that holds an event it can take or begin with; an open
            # group lives on after a close.
            relevant = takers if "take" in moves else beginners
            chances.go()
            moves = {move: by for move, by in moves.items() if not (by is NEXT and relevant) and chances.last(by)}
            if not moves:
                return

    def instants_after(self, groups: Groups) -> Iterator[int]:
        """The instants that a run meets, up to the end of its window."""
        first, last = groups[0][0], groups[-1][-1]
        window = self.bound.window
        closing = NEVER if window is None or window.events else self.stream.times[first] + window.length
        for instant in range(self.stream.instants[last] + 1, self.stream.instants[-1] + 1):
            if self.stream.times[self.stream.at(instant)[0]] >= closing:
                return
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
        if self.ended(component.variable, groups, groups[-1][0], event):
            return False
        return all(
            self.evaluator.holds(conjunct, grown, at)
            for conjunct in self.bound.conjuncts
            if conjunct.place == place and conjunct.phase is Phase.TAKE
        )

    def ended(self, variable: str, groups: Groups, first: int, event: int) -> bool:
        """Does UNTIL end the group that began with `first` at or before an event?

        It does where some event of the partition, of any type, that comes after the first one passes its condition.
        """
        condition = dict(self.bound.untils).get(variable)
        if condition is None:
            return False
        condition, ending = about_ending(condition, variable), s.Component(ENDING)
        instants = self.stream.instants
        return any(
            instants[first] < instants[other] <= instants[event]
            and self.equivalent(groups, ending, other)
            and self.evaluator.condition(condition, {ENDING: [self.stream.rows[other]]}, {})
            for other in range(len(self.stream))
        )

    def can_close(self, groups: Groups) -> bool:
        """Do the conditions on the whole group hold?"""
        place = len(groups) - 1
        return all(
            self.evaluator.holds(conjunct, self.binding(groups))
            for conjunct in self.bound.conjuncts
            if conjunct.place == place and conjunct.phase is Phase.CLOSE
        )

    def binding(self, groups: Groups) -> dict[str, Sequence[Row]]:
        """The rows behind the chosen events, by variable; none for a missing event."""
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
        return all(
            row[name] is None or self.evaluator.condition(s.Comparison("=", s.Literal(row[name]), value), {}, {})
            for name, value in self.bound.fixed  # on NULL the equivalence test decides, which is tested with them all
        )

    def equivalent(self, groups: Groups, component: s.Component, event: int) -> bool:
        """Is the event equal to all chosen ones in the attributes of the equivalence tests?

        An event without the attribute belongs to no partition, unless its type is known to lack it.
        """
        row = self.stream.rows[event]
        for name in self.bound.equivalence:
            if row[name] is None:
                if not self.evaluator.is_lacking(row, name):
                    return False
                continue
            chosen = (self.stream.rows[other][name] for group in groups for other in group)
            if any(value is not None and value != row[name] for value in chosen):
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
        missing = frozenset(variable for variable, rows in binding.items() if not rows)
        by_name = {negation.component.variable: negation for negation in self.bound.negations}
        for branch in self.bound.branches:
            positive = [without_missing(part, missing) for part in branch.positive]
            placed = (place_conjunct(part, list(self.bound.positives)) for part in positive)
            if not all(self.evaluator.holds(conjunct, binding) for conjunct in placed):
                continue
            if not any(
                self.killed(
                    [by_name[variable] for variable in together],
                    [without_missing(part, missing) for variable in together for part in branch.passed_by(variable)],
                    groups,
                    binding,
                )
                for together in branch.killed_together(list(by_name))
            ):
                return True
        return False

    def killed(
        self, together: Sequence[Negation], conditions: Sequence[s.Expression], groups: Groups, binding: Binding
    ) -> bool:
        """Is there an event for each of these negated components, all different, each in its interval, that kills?

        They kill if they pass all conditions on them. It is one component, or several that conditions tie together.
        """
        components = [negation.component for negation in together]
        placed = [place_conjunct(part, [*self.bound.positives, *components]) for part in conditions]
        everyone = range(len(self.stream))
        candidates = [
            [event for event in everyone if self.inside(each, groups, event) and self.fits(each.component, event)]
            for each in together
        ]
        for events in paced(product(*candidates)):
            if len(set(events)) < len(events):
                continue
            pairs = list(zip(components, events, strict=True))
            if not all(
                self.equivalent((*groups, events[:place]), component, event)
                for place, (component, event) in enumerate(pairs)
            ):
                continue
            with_events = {**binding, **{each.variable: [self.stream.rows[event]] for each, event in pairs}}
            if all(self.evaluator.holds(conjunct, with_events) for conjunct in placed):
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
        mode = self.bound.output.mode
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


@dataclass
class Chances:
    """Contiguity has one chance only: the next instant after an event, or the next one of its partition."""

    search: Search
    event: int
    strict: bool = True
    partition: bool = True
    here: bool = False  # does something of the partition happen at the instant at hand?

    def come(self, instant: int) -> None:
        """The run meets an instant."""
        own = self.search.partition(self.event)
        self.here = any(self.search.partition(event) == own for event in self.search.stream.at(instant))

    def allow(self, strategy: s.Strategy) -> bool:
        """May a step be made at this instant?"""
        contiguous = {
            s.Strategy.STRICT_CONTIGUITY: self.strict,
            s.Strategy.PARTITION_CONTIGUITY: self.partition and self.here,
        }
        return contiguous.get(strategy, True)

    def go(self) -> None:
        """The run passes the instant."""
        self.strict, self.partition = False, self.partition and not self.here

    def last(self, strategy: s.Strategy) -> bool:
        """May a step still be made at a later instant?"""
        contiguous = {s.Strategy.STRICT_CONTIGUITY: self.strict, s.Strategy.PARTITION_CONTIGUITY: self.partition}
        return contiguous.get(strategy, True)


def about_ending(node: s.Expression, variable: str) -> s.Expression:
    """UNTIL's condition on the event at hand, which is none of the group: whatever the group's own is declared as."""
    if isinstance(node, s.Reference) and node.variable == variable:
        return s.Reference(ENDING) if node.element in (s.Element.SINGLE, s.Element.CURRENT) else node
    return s.rebuild(node, lambda inner: about_ending(inner, variable))

"""Patterns that are expressions (docs/semantics.md, "Patterns are expressions"), literally: by the linear patterns
that one gets by choosing each optional part in or out, each alternative, each number of rounds, each order of an AND.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations, product
from typing import Any

from cepheid.budget import paced
from cepheid.engine.reference import missing
from cepheid.engine.reference.precise import (
    ENDING,
    MAX_MATCHES,
    MAX_RUNS,
    NEXT,
    Chances,
    Search,
    about_ending,
    check_open,
)
from cepheid.engine.reference.stream import FoundMatch, Groups, Stream
from cepheid.engine.reference.values import Row
from cepheid.engine.scoring.losses import linear_model
from cepheid.errors import LimitError
from cepheid.language import linear as as_queries
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.bind import place_conjunct
from cepheid.language.bound import BoundQuery, Branch, Negation
from cepheid.language.pattern import AnyOrder, Choice, Pattern, Repeat, Single, is_list, labels_of
from cepheid.language.pattern import Sequence as InSequence
from cepheid.language.unchosen import FALSE, TRUE, without_unchosen
from cepheid.model.scores import Scoring

MAX_PATTERNS = 20_000
Rounds = tuple[tuple[str, int], ...]  # the repeated parts around a step, the outermost first, and which round of each


@dataclass(frozen=True)
class PathStep:
    """One event of a linear pattern: its variable, and the rounds it belongs to."""

    variable: str
    rounds: Rounds = ()


Linear = tuple[PathStep, ...]


def find_all(bound: BoundQuery, stream: Stream, most_open: int = MAX_RUNS) -> list[FoundMatch]:
    """Every match, each assignment once, with the earliest instant from which one of its patterns is known to hold."""
    if len(stream) == 0:
        return []
    search = ExpansionSearch(bound, stream, most_open)
    known: dict[Groups, int] = {}
    for linear, taken in search.matches():
        groups = search.groups(linear, taken)
        known[groups] = min(known.get(groups, search.completion(linear, taken)), search.completion(linear, taken))
        if len(known) > MAX_MATCHES:
            raise LimitError(f"the reference engine enumerates at most {MAX_MATCHES} matches", hint="use a fast engine")
    return [FoundMatch(completion, groups) for groups, completion in known.items()]


def find_given_up(bound: BoundQuery, stream: Stream, most_open: int = MAX_RUNS) -> list[FoundMatch]:
    """OUTPUT PARTIAL: what runs took that were not complete and took nothing more until their window had passed."""
    if len(stream) == 0:
        return []
    search = ExpansionSearch(bound, stream, most_open)
    complete = {tuple(step.variable for step in judged.positive) for judged in search.patterns}
    taken_by_runs: dict[tuple[tuple[str, int], ...], list[tuple[Judged, tuple[int, ...]]]] = {}
    for patterns, taken in search.runs():
        for judged in patterns:
            begun = (step.variable for step in judged.positive[: len(taken)])
            taken_by_runs.setdefault(tuple(zip(begun, taken, strict=True)), []).append((judged, taken))
    went_on = {key[:-1] for key in taken_by_runs}
    waiting, found = set(bound.output.waiting or ()), []
    for key, runs in taken_by_runs.items():
        names = tuple(name for name, _ in key)
        awaited = {each[len(names)] for each in complete if each[: len(names)] == names and len(each) > len(names)}
        if not key or key in went_on or names in complete or awaited != waiting:
            continue
        if any(search.stands(judged, taken) and search.undisturbed(taken) for judged, taken in runs):
            groups = tuple(tuple(e for name, e in key if name == each.variable) for each in bound.positives)
            found.append(FoundMatch(search.search.deadline(key[0][1]), groups))
    return found


def find_likely(
    bound: BoundQuery, stream: Stream, model: Any, scoring: Scoring, most_open: int = MAX_RUNS
) -> list[FoundMatch]:
    """Where events may be missing: every match of a linear pattern, each assignment by the one that is most probable.

    That a variable was left out and that its event is missing are the same assignment: nobody saw it.
    """
    found: dict[Groups, FoundMatch] = {}
    for steps in as_queries.linear_patterns(bound, 1):
        query = as_queries.linear_query(bound, steps)
        if query is None:
            continue
        own = missing.check_missing(query.bound, linear_model(model, query.bound) if model is not None else None)
        likely = missing.probability_of(query.bound, own, scoring)
        may_miss = missing.missable(query.bound, own)
        for match in missing.find_all(query.bound, stream, likely, may_miss, most_open=most_open):
            groups = tuple(tuple(e for place in places for e in match.groups[place]) for places in query.places)
            best = found.get(groups, match)
            if (match.probability or 0.0) >= (best.probability or 0.0):
                found[groups] = replace(match, groups=groups)
    return list(found.values())


def linear_patterns(pattern: Pattern, negative: frozenset[str], room: int) -> list[Linear]:
    """The linear patterns with at most `room` events; a round takes at least one.

    >>> [[step.variable for step in each] for each in linear_patterns(Repeat(Single("b"), 0, None), frozenset(), 2)]
    [[], ['b'], ['b', 'b']]
    """

    def events(linear: Linear) -> int:
        return sum(step.variable not in negative for step in linear)

    def several(found: Iterable[Linear], room: int) -> list[Linear]:
        unique: dict[Linear, None] = {}
        for linear in paced(found):
            if events(linear) <= room:
                unique[linear] = None
            if len(unique) > MAX_PATTERNS:
                message = f"the pattern expands to more than {MAX_PATTERNS} linear patterns"
                raise LimitError(message, hint="use a fast engine")
        return list(unique)

    def expand(node: Pattern, rounds: Rounds, room: int) -> list[Linear]:
        found: Iterable[Linear] = []
        match node:
            case Single(label=label):
                found = [(PathStep(label, rounds),)]
            case InSequence(parts=parts):
                found = in_a_row(parts, rounds, room)
            case Choice(parts=parts):
                found = (linear for part in parts for linear in expand(part, rounds, room))
            case AnyOrder(parts=parts):
                found = (linear for order in permutations(parts) for linear in in_a_row(order, rounds, room))
            case Repeat(part=part) if not is_list(node):
                found = [(), *expand(part, rounds, room)]
            case Repeat(part=part, least=least, most=most):
                found = repeat(part, least, most, (f"{labels_of(part)[0]} {len(rounds)}", rounds), room)
        return several(found, room)

    def in_a_row(parts: Sequence[Pattern], rounds: Rounds, room: int) -> list[Linear]:
        found: list[Linear] = [()]
        for part in parts:
            longer = ((*head, *tail) for head in found for tail in expand(part, rounds, room - events(head)))
            found = several(longer, room)
        return found

    def repeat(part: Pattern, least: int, most: int | None, where: tuple[str, Rounds], room: int) -> list[Linear]:
        name, outer = where
        vanishes = any(events(linear) == 0 for linear in expand(part, outer, room))
        found: list[Linear] = []
        heads: list[Linear] = [()]
        count = 0
        while heads and (most is None or count <= most):
            if count >= (0 if vanishes else least):
                found = several([*found, *heads], room)
            count += 1
            heads = several(
                (
                    (*head, *tail)
                    for head in heads
                    for tail in expand(part, (*outer, (name, count)), room - events(head))
                    if events(tail) > 0
                ),
                room,
            )
        return found

    return expand(pattern, (), room)


@dataclass
class Judged:
    """A linear pattern with what is tested at each of its events."""

    linear: Linear
    positive: Linear
    negative: list[tuple[PathStep, int]]  # each with the number of positive steps before it
    tests: dict[int, list[tuple[s.Expression, dict[str, int]]]] = field(default_factory=dict)
    impossible: bool = False


def of_one_round(steps: Sequence[PathStep]) -> bool:
    """Do steps agree on the round of every repeated part that they share?"""
    rounds: dict[str, int] = {}
    return all(rounds.setdefault(name, number) == number for step in steps for name, number in step.rounds)


@dataclass
class ExpansionSearch:
    """Follows linear patterns, or runs that stand for several of them, through a stream."""

    bound: BoundQuery
    stream: Stream
    most_open: int = MAX_RUNS

    def __post_init__(self) -> None:
        self.search = Search(self.bound, self.stream)
        self.by_name = {component.variable: component for component in self.bound.components}
        self.negated = frozenset(name for name, component in self.by_name.items() if component.negative)
        self.gaps = dict(self.bound.gaps)
        room = self.stream.instants[-1] + 1
        if self.bound.given_up or self.bound.competes:  # what has no room in the stream may be waited for, or begun
            room += _shortest(self.bound.pattern)
        linear = linear_patterns(self.bound.pattern, self.negated, room)
        self.patterns = [judged for judged in map(self.judged, paced(linear)) if not judged.impossible]

    # linear patterns

    def judged(self, linear: Linear) -> Judged:
        """Each condition, for each choice of elements, at the event from which all that it mentions is known."""
        positive = tuple(step for step in linear if step.variable not in self.negated)
        negative: list[tuple[PathStep, int]] = []
        before = 0
        for step in linear:
            if step.variable in self.negated:
                negative.append((step, before))
            else:
                before += 1
        found = Judged(linear, positive, negative)
        for conjunct in self.bound.conjuncts:
            for expression, at in self.instances(found, conjunct.expression):
                found.impossible = found.impossible or expression == FALSE
                found.tests.setdefault(self.known(found, expression, at), []).append((expression, at))
        return found

    def places(self, judged: Judged, variable: str) -> list[int]:
        """Where the elements of a variable stand among the events of a linear pattern."""
        if variable in self.negated:
            return [number for number, (step, _) in enumerate(judged.negative) if step.variable == variable]
        return [number for number, step in enumerate(judged.positive) if step.variable == variable]

    def step(self, judged: Judged, variable: str, index: int) -> PathStep:
        """The step of one element."""
        place = self.places(judged, variable)[index]
        return judged.negative[place][0] if variable in self.negated else judged.positive[place]

    def instances(
        self, judged: Judged, condition: s.Expression, fixed: Mapping[str, int] | None = None
    ) -> Iterator[tuple[s.Expression, dict[str, int]]]:
        """A condition once for each choice of the elements that it must hold for.

        Elements of variables that share a repeated part are taken from one round of it.
        """
        chosen = {step.variable for step in judged.linear}
        expression = without_unchosen(condition, frozenset(self.by_name) - chosen)
        if expression == TRUE:
            return
        conjunct = place_conjunct(expression, list(self.bound.components))
        each = sorted(set(conjunct.every) | (conjunct.variables & self.negated))
        ranges: list[Sequence[int]] = []
        for name in each:
            count = len(self.places(judged, name))
            only = (fixed or {}).get(name)
            ranges.append(range(1 if name in conjunct.from_second else 0, count) if only is None else [only])
        for choice in product(*ranges):
            at = dict(zip(each, choice, strict=True))
            if of_one_round([self.step(judged, name, index) for name, index in at.items()]):
                yield expression, at

    def known(self, judged: Judged, expression: s.Expression, at: Mapping[str, int]) -> int:
        """The number of the event from which all that a condition mentions is known."""
        moments = [0]
        for name, element in _mentions(expression):
            places = self.places(judged, name)
            if element is s.Element.FIRST:
                moments.append(places[0])
            elif element in (s.Element.LAST, s.Element.ALL) or name not in at:
                moments.append(places[-1])
            else:
                moments.append(places[at[name]])
        return max(moments)

    # runs

    def matches(self) -> Iterator[tuple[Judged, tuple[int, ...]]]:
        """Every linear pattern with the events that fill it."""
        for patterns, taken in self.runs():
            for judged in patterns:
                if len(judged.positive) == len(taken) and self.survives(judged, taken):
                    yield judged, taken

    def runs(self) -> Iterator[tuple[list[Judged], tuple[int, ...]]]:
        """What runs have taken, and the linear patterns that agree with it."""
        runs = 0
        together = self.bound.competes
        pending: list[tuple[list[Judged], tuple[int, ...]]] = (
            [(self.patterns, ())] if together else [([judged], ()) for judged in self.patterns]
        )
        while pending:
            patterns, taken = pending.pop()
            check_open(len(pending), self.most_open)
            runs += 1
            if runs > MAX_RUNS:
                raise LimitError(f"the reference engine enumerates at most {MAX_RUNS} runs", hint="use a fast engine")
            yield patterns, taken
            pending.extend(self.continued(patterns, taken))

    def continued(
        self, patterns: list[Judged], taken: tuple[int, ...]
    ) -> Iterator[tuple[list[Judged], tuple[int, ...]]]:
        """The run with one more event, in every way that the strategies allow."""
        patterns = [judged for judged in patterns if len(judged.positive) > len(taken)]
        pseudo = tuple((event,) for event in taken)
        instants = self.search.instants_after(pseudo) if taken else iter(range(self.stream.instants[-1] + 1))
        chances = Chances(self.search, taken[-1]) if taken else None
        for instant in paced(instants) if patterns else ():
            if chances is not None:
                chances.come(instant)
            fitting: dict[tuple[int, str], list[Judged]] = {}
            for event in self.stream.at(instant):
                if taken and not self.search.in_window(pseudo, event):
                    continue
                for judged in patterns:
                    if chances is not None and not chances.allow(self.strategy(judged, len(taken))):
                        continue
                    if self.can_take(judged, taken, event):
                        fitting.setdefault((event, judged.positive[len(taken)].variable), []).append(judged)
            for (event, _), going_on in fitting.items():
                yield going_on, (*taken, event)
            if chances is None:
                continue  # runs start at every event, under every strategy
            # By skip_till_next_match it lives on only where nothing fits, or where a repeated part is open and nothing
            # here could fill a round of it.
            further = [judged for judged in patterns if self.begins_round(judged, len(taken))]
            filled = any(judged in further for going_on in fitting.values() for judged in going_on)
            relevant = bool(fitting) and (not further or filled)
            chances.go()
            by = [(judged, self.strategy(judged, len(taken))) for judged in patterns]
            patterns = [each for each, how in by if not (how is NEXT and relevant) and chances.last(how)]
            if not patterns:
                return

    def strategy(self, judged: Judged, place: int) -> s.Strategy:
        """How the event at a place is reached from the one before."""
        variable = judged.positive[place].variable
        return self.bound.reached_by(variable, any(step.variable == variable for step in judged.positive[:place]))

    def begins_round(self, judged: Judged, place: int) -> bool:
        """Is the step a further round of a repeated part that the step before it is in?"""
        before, here = dict(judged.positive[place - 1].rounds), dict(judged.positive[place].rounds)
        return any(here.get(name) == number + 1 for name, number in before.items())

    def can_take(self, judged: Judged, taken: tuple[int, ...], event: int) -> bool:
        """Can the event be the next one of a linear pattern?"""
        place = len(taken)
        step = judged.positive[place]
        component = self.by_name[step.variable]
        pseudo = tuple((each,) for each in taken)
        if not (self.search.fits(component, event) and self.search.equivalent(pseudo, component, event)):
            return False
        gap = self.gaps.get(step.variable)
        if gap is not None and taken:
            passed = self.stream.times[event] - self.stream.times[taken[-1]]
            if passed < (gap.after or 0) or (gap.within is not None and passed >= gap.within):
                return False
        if self.ended(judged, taken, event):
            return False
        binding = self.binding(judged, (*taken, event))
        condition = self.search.evaluator.condition
        return all(condition(expression, binding, at) for expression, at in judged.tests.get(place, ()))

    def ended(self, judged: Judged, taken: tuple[int, ...], event: int) -> bool:
        """Does UNTIL end the group that an event would be taken by, at or before that event?

        It does where some event of the partition, of any type, that comes after the first one of the group in its round
        passes the condition with what was taken before it. A condition that mentions what was not taken says nothing.
        """
        step, instants = judged.positive[len(taken)], self.stream.instants
        condition = dict(self.bound.untils).get(step.variable)
        own = [
            each
            for each, other in zip(taken, judged.positive, strict=False)
            if other.variable == step.variable and other.rounds[:-1] == step.rounds[:-1]
        ]
        if condition is None or not own:
            return False
        condition, pseudo = about_ending(condition, step.variable), tuple((each,) for each in taken)
        for other in range(len(self.stream)):
            if not instants[own[0]] < instants[other] <= instants[event]:
                continue
            if not self.search.equivalent(pseudo, s.Component(ENDING), other):
                continue
            before = tuple(each for each in taken if instants[each] < instants[other])
            binding: dict[str, Any] = {**self.binding(judged, before), ENDING: [self.stream.rows[other]]}
            at = {step.variable: len(binding[step.variable])}
            for name, element in _mentions(condition):
                of_a_round = element in (s.Element.SINGLE, s.Element.CURRENT) and name not in (step.variable, ENDING)
                if of_a_round and self.by_name[name].kleene:
                    taken_so_far = [place for place in self.places(judged, name) if place < len(before)]
                    here = [n for n, p in enumerate(taken_so_far) if of_one_round([judged.positive[p], step])]
                    at[name] = here[-1] if here else -1
            known = all(name in binding and at.get(name, 0) >= 0 for name, _ in _mentions(condition))
            if known and self.search.evaluator.condition(condition, binding, at):
                return True
        return False

    def binding(self, judged: Judged, taken: tuple[int, ...]) -> dict[str, Sequence[Row]]:
        """The rows behind the chosen events, by variable."""
        found: dict[str, list[Row]] = {}
        for step, event in zip(judged.positive, taken, strict=False):
            found.setdefault(step.variable, []).append(self.stream.rows[event])
        return dict(found)

    def groups(self, judged: Judged, taken: tuple[int, ...]) -> Groups:
        """The events by component; none where a variable was not chosen."""
        pairs = list(zip(judged.positive, taken, strict=True))
        return tuple(
            tuple(event for step, event in pairs if step.variable == component.variable)
            for component in self.bound.positives
        )

    def completion(self, judged: Judged, taken: tuple[int, ...]) -> int:
        """The instant from which the match is known."""
        if self.bound.output.mode is s.OutputMode.NON_OVERLAP and self.bound.postponed:
            return self.search.deadline(taken[-1])
        if self.bound.output.mode is s.OutputMode.MAXIMAL:
            return self.search.deadline(taken[0])  # a larger one may still be found
        if any(before == len(judged.positive) for _, before in judged.negative):
            return self.search.deadline(taken[0])
        return self.stream.times[taken[-1]]

    # negation

    def survives(self, judged: Judged, taken: tuple[int, ...]) -> bool:
        """Does the match stand against the negated components, for some disjunct of the condition?"""
        binding = self.binding(judged, taken)
        condition = self.search.evaluator.condition
        for branch in self.bound.branches:
            positive = [pair for part in branch.positive for pair in self.instances(judged, part)]
            if not all(condition(expression, binding, at) for expression, at in positive):
                continue
            if not any(self.killed(judged, branch, copies, taken) for copies in self.together(judged, branch)):
                return True
        return False

    def stands(self, judged: Judged, taken: tuple[int, ...]) -> bool:
        """Has a run met nothing that must not happen, up to the end of its window, before it takes another event?

        What must not happen before the next event ends the wait for it, unless that depends on an event to come.
        """
        place = len(taken)
        coming = frozenset(step.variable for step in judged.positive[place:])
        ahead = [
            (step, before)
            for step, before in judged.negative
            if before < place or (before == place and coming and not self.depends(step.variable, coming))
        ]
        part = replace(
            judged,
            positive=judged.positive[:place],
            linear=tuple(step for step in judged.linear if step.variable in self.negated),
            negative=ahead,
        )
        return self.survives(replace(part, linear=(*part.linear, *part.positive)), taken)

    def depends(self, negated: str, coming: frozenset[str]) -> bool:
        """Does a condition on a negated component mention an event to come?"""
        parts = (part for branch in self.bound.branches for part in branch.passed_by(negated))
        return any(s.variables_of(part) & coming for part in parts)

    def undisturbed(self, taken: tuple[int, ...]) -> bool:
        """Under contiguity, did nothing come behind the last event before the window had passed?"""
        if not self.bound.contiguous:
            return True
        last, due = taken[-1], self.search.deadline(taken[0])
        later = [e for e in range(len(self.stream)) if self.stream.instants[e] > self.stream.instants[last]]
        if not self.bound.strict:
            later = [e for e in later if self.search.partition(e) == self.search.partition(last)]
        return all(self.stream.times[event] >= due for event in later)

    def conditions(self, judged: Judged, branch: Branch, copy: int) -> list[tuple[s.Expression, dict[str, int]]]:
        """What an event of one negated step must pass to kill."""
        name = judged.negative[copy][0].variable
        index = self.places(judged, name).index(copy)
        parts = branch.passed_by(name)
        return [pair for part in parts for pair in self.instances(judged, part, {name: index})]

    def together(self, judged: Judged, branch: Branch) -> list[list[int]]:
        """The negated steps in groups that conditions tie together."""
        groups = [{copy} for copy in range(len(judged.negative))]
        for copy in range(len(judged.negative)):
            for _, at in self.conditions(judged, branch, copy):
                tied = {self.places(judged, name)[index] for name, index in at.items() if name in self.negated}
                joined = [group for group in groups if group & tied]
                groups = [group for group in groups if not group & tied] + ([set().union(*joined)] if joined else [])
        return [sorted(group) for group in groups]

    def killed(self, judged: Judged, branch: Branch, copies: list[int], taken: tuple[int, ...]) -> bool:
        """Is there an event for each of these negated steps, all different, that pass all conditions on them?"""
        pseudo = tuple((event,) for event in taken)
        components = [self.by_name[judged.negative[copy][0].variable] for copy in copies]
        candidates = []
        for copy, component in zip(copies, components, strict=True):
            before = judged.negative[copy][1]
            edge = Negation(component, before - 1 if before else None, before if before < len(taken) else None)
            everyone = range(len(self.stream))
            candidates.append(
                [e for e in everyone if self.search.inside(edge, pseudo, e) and self.search.fits(component, e)]
            )
        tests = [pair for copy in copies for pair in self.conditions(judged, branch, copy)]
        for events in paced(product(*candidates)):
            if len(set(events)) < len(events):
                continue
            pairs = list(zip(components, events, strict=True))
            if not all(
                self.search.equivalent((*pseudo, events[:number]), component, event)
                for number, (component, event) in enumerate(pairs)
            ):
                continue
            binding: dict[str, Any] = dict(self.binding(judged, taken))
            for copy, component, event in zip(copies, components, events, strict=True):
                index = self.places(judged, component.variable).index(copy)
                binding.setdefault(component.variable, {})[index] = self.stream.rows[event]
            if all(self.search.evaluator.condition(expression, binding, at) for expression, at in tests):
                return True
        return False


def _shortest(pattern: Pattern) -> int:
    """How many events a pattern takes with each part once, or as often as it must be there."""
    match pattern:
        case Single():
            return 1
        case Repeat(part=part, least=least):
            return max(least, 1) * _shortest(part)
        case InSequence(parts=parts) | Choice(parts=parts) | AnyOrder(parts=parts):
            return sum(map(_shortest, parts))
    return 0


def _mentions(expression: s.Expression) -> Iterator[tuple[str, s.Element]]:
    """Each mention of a variable; inside an aggregate a variable alone means all of its events."""
    pending = [(expression, False)]
    while pending:
        node, aggregate = pending.pop()
        match node:
            case s.Reference(variable=variable, element=element):
                yield variable, s.Element.ALL if aggregate and element is s.Element.SINGLE else element
            case s.Length(variable=variable):
                yield variable, s.Element.ALL
        inside = aggregate or (isinstance(node, s.Call) and node.function.lower() in AGGREGATES)
        pending.extend((child, inside) for child in s.children(node))

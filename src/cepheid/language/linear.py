"""The linear queries that a pattern with optional parts, alternatives, rounds and any order stands for.

Each is an ordinary query over the chosen components, so that every engine for sequences can run it. One component with
a quantifier stays one Kleene component, with conditions on its length; rounds of a group become components of their
own, and conditions are written out for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as Several
from dataclasses import dataclass, replace
from itertools import permutations, product

from cepheid.budget import paced
from cepheid.errors import LimitError
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.bind import bind, place_conjunct
from cepheid.language.bound import BoundGap, BoundQuery
from cepheid.language.normal import conjuncts, negation_normal_form
from cepheid.language.pattern import AnyOrder, Choice, Pattern, Repeat, Sequence, Single, is_list, labels_of, walk
from cepheid.language.unchosen import TRUE, without_unchosen

MAX_LINEAR = 120  # linear patterns that are run one by one
MAX_PLACES = 60  # components of one of them
FEWER = "use fewer parts in AND, fewer optional parts, or fewer repetitions"
_ONE_BY_ONE = frozenset({"count", "sum", "first", "last"})  # aggregates that can be written out for single events

Rounds = tuple[tuple[str, int], ...]  # the repeated parts around a step, the outermost first, and which round of each


class TooManyError(LimitError):
    """The pattern stands for more linear ones, or longer ones, than are run one by one."""


TOO_MANY = f"the pattern expands to more than {MAX_LINEAR} linear patterns"
TOO_LONG = f"a group is repeated so often that a match has more than {MAX_PLACES} events"


@dataclass(frozen=True)
class Step:
    """One component of a linear pattern; `many`: a Kleene group of at least `least` and at most `most` events."""

    variable: str
    rounds: Rounds = ()
    many: bool = False
    least: int = 1
    most: int | None = 1


Linear = tuple[Step, ...]


@dataclass(frozen=True)
class Competitor:
    """Events that another pattern would have taken before a step, as a negated component with what it must pass."""

    before: int  # the number of the step
    component: s.Component
    conditions: tuple[s.Expression, ...]


@dataclass(frozen=True)
class LinearQuery:
    """A linear pattern as a query, and the components of the pattern's variables in it."""

    steps: Linear
    bound: BoundQuery
    places: tuple[tuple[int, ...], ...]  # for each positive component of the pattern, its places here


def grows(bound: BoundQuery) -> bool:
    """Has its pattern a part that may be repeated without end, and is not one component of a linear one?"""
    competing = bound.competes
    endless = [node for node in walk(bound.pattern) if isinstance(node, Repeat) and node.most is None]
    return any(competing or not _is_kleene(node) for node in endless)


def refusal(bound: BoundQuery) -> str | None:
    """Why a pattern is not run as linear queries, or None."""
    competing = bound.competes
    if competing and bound.contiguous:
        return "contiguity together with skip_till_next_match in a pattern that is more than a sequence"
    if competing and any(component.any for component in bound.components):
        return "under skip_till_next_match ANY(...) in a pattern that is more than a sequence"
    grouped: set[str] = set()
    for node in walk(bound.pattern):
        if is_list(node) and (competing or not _is_kleene(node)):
            grouped |= set(labels_of(node))
            if any(isinstance(inner, Repeat) and inner.most is None for inner in walk(node) if inner is not node):
                return "a group that is repeated holds a part that is repeated without end"
    conditions = [conjunct.expression for conjunct in bound.conjuncts]
    conditions += [part for branch in bound.branches for part in branch.positive]
    conditions += [part for branch in bound.branches for _, parts in branch.negative for part in parts]
    for call in (inner for condition in conditions for inner in s.walk(condition) if isinstance(inner, s.Call)):
        name = call.function.lower()
        if name in AGGREGATES and s.variables_of(call) & grouped:
            counts_values = name == "count" and not isinstance(call.arguments[0], s.Reference)
            if name not in _ONE_BY_ONE or counts_values:
                return f"{name}() over the repetitions of a group"
    try:
        linear_patterns(bound, 2)
    except TooManyError as error:
        return error.message
    return None


def _is_kleene(node: Pattern) -> bool:
    return isinstance(node, Repeat) and isinstance(node.part, Single)


def linear_patterns(bound: BoundQuery, rounds: int) -> list[Linear]:
    """The linear patterns with at most so many rounds of the groups that are repeated without end.

    Under skip_till_next_match each event of a Kleene component is a step of its own, since they compete with others.
    """
    groups = not bound.competes
    negative = frozenset(component.variable for component in bound.components if component.negative)

    def takes(linear: Linear) -> bool:
        return any(step.variable not in negative for step in linear)

    def expand(node: Pattern, around: Rounds) -> list[Linear]:
        found: list[Linear] = []
        match node:
            case Single(label=label):
                found = [(Step(label, around),)]
            case Sequence(parts=parts):
                found = in_a_row(parts, around)
            case Choice(parts=parts):
                found = [linear for part in parts for linear in expand(part, around)]
            case AnyOrder(parts=parts):
                found = in_any_order(parts, around)
            case Repeat(part=part) if not is_list(node):
                found = [(), *expand(part, around)]
            case Repeat(part=Single(label=label), least=least, most=most) if groups and not around and most != 1:
                found = [()] if least == 0 else []
                found.append((Step(label, (), True, max(least, 1), most),))
            case Repeat(part=part, least=least, most=most):
                found = repeat(part, least, most, around)
        return several(found)

    def in_a_row(parts: Several[Pattern], around: Rounds) -> list[Linear]:
        found: list[Linear] = [()]
        for part in parts:
            tails = expand(part, around)
            found = several((*head, *tail) for head in found for tail in tails)
        return found

    def in_any_order(parts: Several[Pattern], around: Rounds) -> list[Linear]:
        # Counted before any order is built: parts that take something are all there in every order of them.
        taking = [part for part in parts if any(expand(part, around))]
        if math.factorial(min(len(taking), MAX_LINEAR)) > MAX_LINEAR:
            raise TooManyError(TOO_MANY, hint=FEWER)
        return several(linear for order in permutations(taking) for linear in in_a_row(order, around))

    def repeat(part: Pattern, least: int, most: int | None, around: Rounds) -> list[Linear]:
        name = f"{labels_of(part)[0]} {len(around)}"
        vanishes = any(not takes(linear) for linear in expand(part, around))
        last = max(least, rounds) if most is None else most
        if not vanishes and least > MAX_PLACES:
            raise TooManyError(TOO_LONG, hint=FEWER)
        found: list[Linear] = []
        heads: list[Linear] = [()]
        for number in range(last + 1):
            if number >= (0 if vanishes else least):
                found = several([*found, *heads])
            tails = [tail for tail in expand(part, (*around, (name, number + 1))) if takes(tail)]
            heads = several((*head, *tail) for head in heads for tail in tails) if number < last else []
        return found

    def several(found: Iterable[Linear]) -> list[Linear]:
        """Each once; an error as soon as they are too many or too long."""
        unique: dict[Linear, None] = {}
        for linear in paced(found):
            unique[linear] = None
            if len(unique) > MAX_LINEAR:
                raise TooManyError(TOO_MANY, hint=FEWER)
            if len(linear) > MAX_PLACES:
                raise TooManyError(TOO_LONG, hint=FEWER)
        return list(unique)

    return expand(bound.pattern, ())


def linear_query(bound: BoundQuery, steps: Linear, competitors: Several[Competitor] = ()) -> LinearQuery | None:
    """The query of a linear pattern; None if its conditions cannot hold.

    `competitors` are events that must not lie before a step, since another pattern would have taken them.
    """
    writer = Writer(bound, steps, competitors)
    where = writer.where()
    if where is None:
        return None
    places: list[tuple[int, ...]] = []
    positive = [number for number, step in enumerate(steps) if not writer.by_name[step.variable].negative]
    for component in bound.positives:
        own = [place for place, number in enumerate(positive) if steps[number].variable == component.variable]
        places.append(tuple(own))
    return LinearQuery(steps, writer.bound_with(where), tuple(places))


def beginning(
    bound: BoundQuery,
    steps: Linear,
    rounds: int,
    competitors_of: Callable[[Linear], Iterable[Competitor]] | None = None,
) -> LinearQuery | None:
    """A linear pattern up to its last step of round `rounds`, with the conditions that are known there.

    If nothing in a stream begins like that, no pattern with more rounds has a match.
    """
    negative = {component.variable for component in bound.components if component.negative}
    reached = [number for number, step in enumerate(steps) if any(count == rounds for _, count in step.rounds)]
    if not reached:
        return None
    first = tuple(step for step in steps[: reached[-1] + 1] if step.variable not in negative)
    writer = Writer(bound, first, () if competitors_of is None else tuple(competitors_of(first)))
    where = writer.where(partial=True)
    return None if where is None else LinearQuery(first, writer.bound_with(where), ())


class Writer:
    """Writes the conditions of a pattern for one of its linear ones."""

    def __init__(self, bound: BoundQuery, steps: Linear, competitors: Several[Competitor] = ()) -> None:
        self.bound, self.steps, self.competitors = bound, steps, competitors
        self.by_name = {component.variable: component for component in bound.components}
        self.negated = frozenset(name for name, component in self.by_name.items() if component.negative)
        self.elements: dict[str, list[int]] = {}
        for number, step in enumerate(steps):
            self.elements.setdefault(step.variable, []).append(number)
        self.names = [
            f"{step.variable}#{self.elements[step.variable].index(number) + 1}"
            if self.by_name[step.variable].kleene and not step.many
            else step.variable
            if len(self.elements[step.variable]) == 1
            else f"{step.variable}#{self.elements[step.variable].index(number) + 1}"
            for number, step in enumerate(steps)
        ]

    def bound_with(self, where: s.Expression) -> BoundQuery:
        """The linear pattern with a condition, ready to be planned."""
        components: list[s.Component] = []
        for number, (step, name) in enumerate(zip(self.steps, self.names, strict=True)):
            components += [competitor.component for competitor in self.competitors if competitor.before == number]
            own = self.by_name[step.variable]
            components.append(
                replace(
                    own, variable=name, kleene=step.many, named=True, gap=None, until=own.until if step.many else None
                )
            )
        strategy = _without_competitors(self.bound.strategy)
        selection = s.Selection(strategy, tuple(component.variable for component in components))
        syntax = s.QuerySyntax(tuple(components), where=None if where == TRUE else where, selection=selection)
        steps = tuple(each for each in self.step_strategies() if each[2] is not strategy) if self.bound.mixed else ()
        return replace(bind(syntax, self.bound.schema), window=self.bound.window, steps=steps)

    def step_strategies(self) -> Iterator[tuple[str, bool, s.Strategy]]:
        """By which strategy each step is reached, and the further events of a Kleene component."""
        for number, (step, name) in enumerate(zip(self.steps, self.names, strict=True)):
            if step.variable not in self.negated:
                further = self.elements[step.variable][0] != number
                yield name, False, _without_competitors(self.bound.reached_by(step.variable, further))
                if step.many:
                    yield name, True, _without_competitors(self.bound.reached_by(step.variable, True))

    def where(self, *, partial: bool = False) -> s.Expression | None:
        """All conditions of the linear pattern; None if they cannot hold. `partial`: those on these steps alone."""
        parts: list[s.Expression] = []
        where = self.bound.where
        for part in s.conjoined(negation_normal_form(where)) if where is not None else ():
            if isinstance(part, s.Equivalence):
                parts.append(part)
            elif s.variables_of(part) & self.negated:
                parts += [] if partial else [self.literal_by_literal(part)]
            else:
                parts += [written for clause in conjuncts(part) for written, _ in self.written(clause, partial)]
        parts += [*self.lengths(partial), *(condition for condition, _ in self.gap_conditions())]
        parts += [condition for competitor in self.competitors for condition in competitor.conditions]
        if s.Literal(False) in parts:
            return None
        parts = [part for part in parts if part != TRUE]
        return TRUE if not parts else parts[0] if len(parts) == 1 else s.And(tuple(parts))

    def literal_by_literal(self, node: s.Expression) -> s.Expression:
        """A condition that shares an OR with a negated component: each literal for all elements that it mentions."""
        if isinstance(node, s.And | s.Or):
            operands = tuple(self.literal_by_literal(operand) for operand in node.operands)
            return without_unchosen(type(node)(operands, span=node.span), frozenset())
        written = [each for each, _ in self.written(node, False)]
        return TRUE if not written else written[0] if len(written) == 1 else s.And(tuple(written))

    def written(self, clause: s.Expression, partial: bool) -> Iterator[tuple[s.Expression, int]]:
        """A condition once for each choice of elements, with the step at which it is known.

        Elements of one group come from the same round.
        """
        unchosen = frozenset(self.by_name) - set(self.elements)
        if partial and s.variables_of(clause) & unchosen:
            return
        expression = without_unchosen(_without_defaults(clause, unchosen), unchosen)
        if expression == TRUE or (partial and self.waits(expression)):
            return
        conjunct = place_conjunct(expression, list(self.bound.components))
        each = sorted(
            name for name in set(conjunct.every) | (conjunct.variables & self.negated) if not self.is_group(name)
        )
        ranges = [range(1 if name in conjunct.from_second else 0, len(self.elements[name])) for name in each]
        for choice in product(*ranges):
            at = dict(zip(each, choice, strict=True))
            if _of_one_round([self.steps[self.elements[name][index]] for name, index in at.items()]):
                yield self.substituted(expression, at), self.moment(expression, at)

    def moment(self, expression: s.Expression, at: dict[str, int]) -> int:
        """The step from which all that a condition mentions is known."""
        moments = [0]
        pending = [(expression, False)]
        while pending:
            node, aggregate = pending.pop()
            if isinstance(node, s.Reference | s.Length):
                steps = self.elements[node.variable]
                element = node.element if isinstance(node, s.Reference) else s.Element.ALL
                closed = element in (s.Element.LAST, s.Element.ALL) or (aggregate and element is s.Element.SINGLE)
                if element is s.Element.FIRST:
                    moments.append(steps[0])
                else:
                    moments.append(steps[-1] if closed or node.variable not in at else steps[at[node.variable]])
            inside = aggregate or (isinstance(node, s.Call) and node.function.lower() in AGGREGATES)
            pending.extend((child, inside) for child in s.children(node))
        return max(moments)

    def waits(self, expression: s.Expression) -> bool:
        """Does it mention the end of a group?"""
        return any(
            isinstance(node, s.Length)
            or (isinstance(node, s.Reference) and node.element in (s.Element.LAST, s.Element.ALL))
            or (isinstance(node, s.Call) and node.function.lower() in AGGREGATES)
            for node in s.walk(expression)
        )

    def is_group(self, variable: str) -> bool:
        """Is the variable one Kleene component here?"""
        return self.steps[self.elements[variable][0]].many

    def substituted(self, node: s.Expression, at: dict[str, int]) -> s.Expression:
        match node:
            case s.Length(variable=variable) if not self.is_group(variable):
                return s.Literal(len(self.elements[variable]), span=node.span)
            case s.Call(function=function, arguments=(argument,)) if function.lower() in AGGREGATES:
                (variable,) = s.variables_of(argument)
                if not self.is_group(variable):
                    return self.aggregated(function.lower(), argument, variable, at)
            case s.Reference(variable=variable, element=element) if not self.is_group(variable):
                return s.Reference(
                    self.names[self.elements[variable][_index(element, at.get(variable, 0))]], span=node.span
                )
        return s.rebuild(node, lambda inner: self.substituted(inner, at))

    def aggregated(self, function: str, argument: s.Expression, variable: str, at: dict[str, int]) -> s.Expression:
        """An aggregate over single events, written out; NULLs do not count."""
        before = any(isinstance(n, s.Reference) and n.element is s.Element.BEFORE for n in s.walk(argument))
        last = at[variable] if before else len(self.elements[variable])
        if function == "count":
            return s.Literal(last)
        values = [self.substituted(_each(argument), {**at, variable: index}) for index in range(last)]
        if function in ("first", "last"):
            return values[0 if function == "first" else -1]
        total = values[0]
        for value in values[1:]:
            known = s.Call("coalesce", (value, s.Literal(0)))
            total = s.Call("coalesce", (s.Arithmetic("+", total, known), value))
        return total

    def lengths(self, partial: bool) -> Iterator[s.Expression]:
        """How many events a Kleene component takes."""
        for step, name in zip(self.steps, self.names, strict=True):
            if step.many and step.least > 1 and not partial:
                yield s.Comparison(">=", s.Length(name), s.Literal(step.least))
            if step.many and step.most is not None:
                taken = s.Call("count", (s.Reference(name, s.Element.BEFORE),))
                yield s.Comparison("<", taken, s.Literal(step.most))

    def gap_conditions(self) -> Iterator[tuple[s.Expression, int]]:
        """How long after the event before it an event comes, with the step of that event."""
        gaps = dict(self.bound.gaps)
        before: str | None = None
        for number, (step, name) in enumerate(zip(self.steps, self.names, strict=True)):
            if step.variable in self.negated:
                continue
            gap = gaps.get(step.variable)
            if gap is not None and before is not None:
                own = s.Reference(name, s.Element.FIRST if step.many else s.Element.SINGLE)
                many = next(s for s, other in zip(self.steps, self.names, strict=True) if other == before).many
                other = s.Reference(before, s.Element.LAST if many else s.Element.SINGLE)
                yield from ((condition, number) for condition in self.gap_between(gap, other, own))
            if gap is not None and step.many:
                own, other = s.Reference(name, s.Element.CURRENT), s.Reference(name, s.Element.PREVIOUS)
                yield from ((condition, number) for condition in self.gap_between(gap, other, own))
            before = name

    def gap_between(self, gap: BoundGap, before: s.Reference, after: s.Reference) -> Iterator[s.Expression]:
        time = self.bound.schema.time
        passed = s.Arithmetic("-", s.Attribute(after, time), s.Attribute(before, time))
        if gap.after is not None:
            yield s.Comparison(">=", passed, s.Literal(gap.after))
        if gap.within is not None:
            yield s.Comparison("<", passed, s.Literal(gap.within))


def _without_defaults(node: s.Expression, unchosen: frozenset[str]) -> s.Expression:
    """Without defaults for missing events that mention a variable which was not chosen."""
    if isinstance(node, s.Attribute) and node.default is not None and s.variables_of(node.default) & unchosen:
        return replace(node, default=None)
    return s.rebuild(node, lambda inner: _without_defaults(inner, unchosen)) if unchosen else node


def _without_competitors(strategy: s.Strategy) -> s.Strategy:
    """What must not be skipped are the competitors, so that any event may be skipped without them."""
    return s.Strategy.SKIP_TILL_ANY if strategy is s.Strategy.SKIP_TILL_NEXT else strategy


def _index(element: s.Element, at: int) -> int:
    match element:
        case s.Element.FIRST:
            return 0
        case s.Element.LAST:
            return -1
        case s.Element.PREVIOUS:
            return at - 1
    return at


def _each(node: s.Expression) -> s.Expression:
    """An aggregate's argument for one element."""
    if isinstance(node, s.Reference):
        return s.Reference(node.variable, s.Element.CURRENT)
    return s.rebuild(node, _each)


def _of_one_round(steps: Several[Step]) -> bool:
    rounds: dict[str, int] = {}
    return all(rounds.setdefault(name, number) == number for step in steps for name, number in step.rounds)

"""A bound query: names resolved against a schema, conditions in normal form and put where they can be tested.

This is what plans and engines read. Nothing here is text any more, and nothing depends on an engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property

from cepheid.language import syntax as s
from cepheid.language.forecasts import Beginning, forecast_beginnings
from cepheid.language.pattern import Pattern, edge, exposed, without
from cepheid.language.printing import stored_text
from cepheid.language.schema import Schema
from cepheid.language.until import follows_runs


class Phase(IntEnum):
    """When, at a component, a condition can be tested (SASE+ section 3.2, step 2)."""

    BEGIN = 0  # on the first (or only) event of the component
    TAKE = 1  # on every further event of a Kleene group
    CLOSE = 2  # when a Kleene group is complete


@dataclass(frozen=True)
class Conjunct:
    """One clause of the condition, with the moment from which all that it mentions is known."""

    expression: s.Expression
    variables: frozenset[str]
    place: int  # index among the positive components
    phase: Phase
    every: frozenset[str] = frozenset()  # Kleene variables of which it must hold for every element...
    from_second: frozenset[str] = frozenset()  # ...or, where it mentions an earlier one, from the second on

    @property
    def own(self) -> bool:
        """Does it concern one event only, so that it can be tested before any matching?"""
        return len(self.variables) == 1 and self.phase is not Phase.CLOSE and not self.from_second


@dataclass(frozen=True)
class Branch:
    """One disjunct of the condition (SASE section 2.2.2): its positive part, and what each negated event must pass.

    A condition on several negated components is listed under each of them.
    """

    positive: tuple[s.Expression, ...]
    negative: tuple[tuple[str, tuple[s.Expression, ...]], ...]

    def passed_by(self, variable: str) -> tuple[s.Expression, ...]:
        """What an event of a negated component must pass to kill a match."""
        return dict(self.negative).get(variable, ())

    def killed_together(self, variables: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The negated components in groups that conditions tie together: only one event for each of a group kills.

        >>> pair = s.Comparison("=", s.Attribute(s.Reference("m"), "x"), s.Attribute(s.Reference("n"), "x"))
        >>> Branch((), (("m", (pair,)), ("n", (pair,)))).killed_together(["k", "m", "n"])
        (('k',), ('m', 'n'))
        """
        groups: list[set[str]] = [{variable} for variable in variables]
        for _, parts in self.negative:
            for part in parts:
                tied = s.variables_of(part) & set(variables)
                joined = [group for group in groups if group & tied]
                groups = [group for group in groups if not group & tied] + ([set().union(*joined)] if joined else [])
        found = [tuple(variable for variable in variables if variable in group) for group in groups]
        return tuple(sorted(found, key=lambda group: variables.index(group[0])))


@dataclass(frozen=True)
class Negation:
    """A negated component and the positive components it stands between (None: the window's edge)."""

    component: s.Component
    after: int | None  # index among the positive components
    before: int | None


@dataclass(frozen=True)
class BoundWindow:
    """The longest a match may last: in steps of the time column, or in events."""

    length: int
    events: bool = False


@dataclass(frozen=True)
class BoundTotal:
    """A total over all matches: of an expression over each event of a variable, of the events, or of the matches."""

    name: str
    function: str
    variable: str | None = None  # None: the matches themselves
    argument: s.Expression | None = None  # None: the events themselves


@dataclass(frozen=True)
class BoundSummary:
    """Totals instead of matches, under the values of attributes, in buckets of time."""

    totals: tuple[BoundTotal, ...]
    by: tuple[str, ...] = ()
    every: int | None = None  # in steps of the time column


@dataclass(frozen=True)
class BoundGap:
    """How long after the event selected before it an event comes: at least `after`, less than `within`, in steps."""

    after: int | None = None
    within: int | None = None


@dataclass(frozen=True)
class BoundQuery:
    """A query that is ready to be planned."""

    syntax: s.QuerySyntax
    schema: Schema
    strategy: s.Strategy
    window: BoundWindow | None
    equivalence: tuple[str, ...]  # attributes that all components share
    fixed: tuple[tuple[str, s.Literal], ...]  # equivalence tests that also fix the value
    conjuncts: tuple[Conjunct, ...]
    branches: tuple[Branch, ...]
    returns: tuple[tuple[str, s.Expression], ...] | None
    summary: BoundSummary | None = None
    gaps: tuple[tuple[str, BoundGap], ...] = ()
    steps: tuple[tuple[str, bool, s.Strategy], ...] = ()  # what does not follow it: variable, further events?, by which
    untils: tuple[tuple[str, s.Expression], ...] = ()  # of groups: the condition that ends them, on the group's name
    text: str | None = field(default=None, compare=False)

    @property
    def components(self) -> tuple[s.Component, ...]:
        """All components, in the order of the pattern."""
        return self.syntax.components

    @cached_property
    def positives(self) -> tuple[s.Component, ...]:
        """The components that must happen."""
        return tuple(component for component in self.components if not component.negative)

    @cached_property
    def negations(self) -> tuple[Negation, ...]:
        """The components that must not happen, each with its neighbours.

        In a pattern that is an expression, the neighbours of a component are those of the text, or None where nothing
        need stand between it and the window's edge.
        """
        found: list[Negation] = []
        position = 0
        for component in self.components:
            if component.negative:
                last = len(self.positives)
                found.append(
                    Negation(component, position - 1 if position else None, position if position < last else None)
                )
            else:
                position += 1
        negative = frozenset(negation.component.variable for negation in found)
        first, _ = exposed(self.pattern, negative)
        last_ones, _ = exposed(self.pattern, negative, last=True)
        return tuple(
            Negation(
                each.component,
                None if each.component.variable in first else each.after,
                None if each.component.variable in last_ones else each.before,
            )
            for each in found
        )

    # What is asked of matches, as written. Rewriting a query is what its syntax is for; nothing else reads it.

    def asking(self, **changes: object) -> BoundQuery:
        """The same query with other parts of its text that need no binding, such as OUTPUT or THRESHOLD."""
        return replace(self, syntax=replace(self.syntax, **changes))  # type: ignore[arg-type]

    def in_order(self, components: tuple[s.Component, ...], where: s.Expression | None) -> BoundQuery:
        """The same query as a plain sequence of these components, with another condition."""
        return replace(self, syntax=replace(self.syntax.in_order(components), where=where))

    @property
    def stored_text(self) -> str:
        """The text as checkpoints record it."""
        return stored_text(self.syntax)

    def written_conditions(self) -> tuple[s.Expression, ...]:
        """WHERE, what DEFINE says, and where groups end."""
        return self.syntax.conditions()

    @cached_property
    def beginnings(self) -> list[Beginning]:
        """What partial matches have taken and what they wait for."""
        return forecast_beginnings(self.syntax)

    @property
    def where(self) -> s.Expression | None:
        """The condition before it was taken apart."""
        return self.syntax.where

    @property
    def within(self) -> s.Window | None:
        """The window as written, with its unit."""
        return self.syntax.within

    @property
    def output(self) -> s.Output:
        """Which of the matches are reported."""
        return self.syntax.output

    @property
    def threshold(self) -> float | None:
        """The least probability of a match with missing events."""
        return self.syntax.threshold

    @property
    def confidence(self) -> float | None:
        """The least confidence of a match at imprecise times."""
        return self.syntax.confidence

    @property
    def forecast(self) -> float | None:
        """The least probability of a forecast; None: matches are asked for."""
        return self.syntax.forecast

    def may_miss(self, model: object) -> bool:
        """May events be missing? So say a loss model, and a query with THRESHOLD."""
        return model is not None or self.threshold is not None

    @property
    def follows_runs(self) -> bool:
        """Does it take the runs themselves to say where a group ends?"""
        return follows_runs(self.syntax)

    @property
    def pattern(self) -> Pattern:
        """How components combine."""
        return self.syntax.pattern

    @property
    def is_linear(self) -> bool:
        """Is it a plain sequence of events and Kleene groups, so that a match fills one component after the other?"""
        return self.syntax.is_linear

    @property
    def is_linear_of_singles(self) -> bool:
        """Is it a plain sequence of single events, so that every component holds exactly one?"""
        return self.is_linear and not self.has_kleene

    @property
    def may_grow(self) -> bool:
        """May a larger match begin with the events of a complete one, since a group or other parts may follow?"""
        return not self.is_linear or self.positives[-1].kleene

    @cached_property
    def lasts(self) -> tuple[s.Component, ...]:
        """The components that may hold the last event of a match."""
        absent = frozenset(component.variable for component in self.components if component.negative)
        labels = edge(without(self.pattern, absent), last=True)
        return tuple(component for component in self.positives if component.variable in labels)

    @cached_property
    def place_of(self) -> dict[str, int]:
        """The index of each positive variable among the positive components."""
        return {component.variable: place for place, component in enumerate(self.positives)}

    @property
    def postponed(self) -> bool:
        """Is a match known only when its window has passed (negation at the end, SASE section 3.3)?

        So are runs that were given up (OUTPUT PARTIAL).
        """
        return self.given_up or any(negation.before is None for negation in self.negations)

    @property
    def given_up(self) -> bool:
        """Are runs reported whose window passed before they were complete, and no matches?"""
        return self.output.waiting is not None

    @cached_property
    def has_tied_negations(self) -> bool:
        """Does a condition mention several negated components, so that they kill only together?"""
        negated = [negation.component.variable for negation in self.negations]
        return any(len(branch.killed_together(negated)) < len(negated) for branch in self.branches)

    @property
    def has_kleene(self) -> bool:
        """Does any component take one or more events?"""
        return any(component.kleene for component in self.components)

    @property
    def may_lack(self) -> bool:
        """May events lack attributes that conditions name, so that a comparison holds where one is NULL?"""
        return bool(self.schema.lacks) or any(component.any for component in self.components)

    @property
    def mixed(self) -> bool:
        """Are some steps reached by another strategy than the rest?"""
        return bool(self.steps)

    @cached_property
    def strategies(self) -> frozenset[s.Strategy]:
        """By which events are reached: the query's own strategy, and those of single steps."""
        return frozenset({self.strategy, *(strategy for _, _, strategy in self.steps)})

    def reached_by(self, variable: str, further: bool) -> s.Strategy:
        """How the first event of a variable, or the further ones of its group, are reached from the one before."""
        return next((by for name, later, by in self.steps if (name, later) == (variable, further)), self.strategy)

    @property
    def strategy_text(self) -> str:
        """By which strategies events are selected."""
        named: dict[s.Strategy, list[str]] = {}
        for name, further, by in self.steps:
            many = any(component.kleene and component.variable == name for component in self.components)
            named.setdefault(by, []).append(name + ("" if not many else "[i]" if further else "[1]"))
        parts = [f"{', '.join(names)} by {by.value}" for by, names in named.items()]
        return "; ".join([self.strategy.value, *parts])

    @property
    def contiguous(self) -> bool:
        """Does a strategy look at events that no component could take?"""
        return bool(self.strategies & s.CONTIGUOUS)

    @property
    def strict(self) -> bool:
        """Does a strategy look at the events of every partition?"""
        return s.Strategy.STRICT_CONTIGUITY in self.strategies

    @property
    def competes(self) -> bool:
        """May some event not be passed, since a step could take it?"""
        return s.Strategy.SKIP_TILL_NEXT in self.strategies

    def attributes(self) -> frozenset[str]:
        """The columns that conditions, equivalence tests and RETURN mention."""
        found = set(self.equivalence) | {name for name, _ in self.fixed}
        expressions = [conjunct.expression for conjunct in self.conjuncts]
        for branch in self.branches:
            expressions += [*branch.positive, *(part for _, parts in branch.negative for part in parts)]
        expressions += [expression for _, expression in (*self.untils, *(self.returns or ()))]
        if self.summary is not None:
            found |= set(self.summary.by)
            expressions += [total.argument for total in self.summary.totals if total.argument is not None]
        for expression in expressions:
            found |= {node.name for node in s.walk(expression) if isinstance(node, s.Attribute)}
        return frozenset(found)

"""A plan: the operators that run a query, each with what the rules have moved into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from cepheid.language.bound import BoundQuery, Conjunct
from cepheid.plan.drawing import query_html
from cepheid.plan.explain import plan_lines
from cepheid.plan.operators import Exchange, Match, Output, Scan, Score, Transform, scan_of
from cepheid.plan.options import EngineOptions, Limits
from cepheid.plan.rules import PLACED, optimise

__all__ = ["Limits", "Plan", "basic_plan"]

_OF_MATCH = frozenset(each.name for each in fields(Match))
_OF_SCORE = frozenset(each.name for each in fields(Score))


@dataclass(frozen=True, init=False)
class Plan:
    """The operators of one query, bottom up; runners and engines execute their contents.

    A plan is made by the planner (`engine.choose.make_plan`). `Plan(bound, engine, partition=..., ...)` makes the one
    in which everything else is pushed as far down as it goes, and `replace(plan, engine=...)` changes one thing.
    """

    scan: Scan
    exchange: Exchange
    match: Match
    score: Score
    output: Output
    transform: Transform
    reasons: tuple[str, ...] = ()  # why this engine and these choices, for explain
    estimates: Mapping[str, float] = field(default_factory=dict)

    def __init__(self, bound: BoundQuery | None = None, engine: str | None = None, **parts: object) -> None:
        if "match" in parts:
            given = dict(parts)
        else:
            assert bound is not None
            given = {**vars(_pushed(basic_plan(bound), parts)), **parts}
        changes: dict[str, object] = {"bound": bound, "engine": engine}
        _change(given, {name: value for name, value in changes.items() if value is not None})
        for each in fields(self):
            object.__setattr__(self, each.name, given.pop(each.name))
        if given:
            raise TypeError(f"a plan has no {', '.join(given)}")

    @property
    def bound(self) -> BoundQuery:
        """The query that is matched; rules may have rewritten its condition."""
        return self.match.bound

    @property
    def engine(self) -> str:
        """The engine that searches; "auto": decided where the events are."""
        return self.match.engine

    @property
    def partition(self) -> tuple[str, ...]:
        """Equivalence attributes that part the events in the scan."""
        return self.match.partition

    @property
    def compared(self) -> tuple[str, ...]:
        """Equivalence attributes that are compared while matches are built."""
        return self.match.compared + self.match.compared_at_the_end

    @property
    def push_predicates(self) -> bool:
        """Are conditions tested as soon as their events are chosen?"""
        return not self.match.conditions_at_the_end

    @property
    def push_window(self) -> bool:
        """Is the window used in scan and construction?"""
        return self.match.window_pushed or self.bound.window is None

    @property
    def order(self) -> tuple[int, ...] | None:
        """The order in which components are filled (LAZY)."""
        return self.match.order

    @property
    def limits(self) -> Limits:
        """How much may be produced."""
        return self.match.limits

    @property
    def options(self) -> EngineOptions:
        """What the engine reads besides."""
        return self.match.options

    @property
    def model(self) -> Any:
        """The loss and gap model."""
        return self.score.model

    @property
    def is_lossy(self) -> bool:
        """May events be missing?"""
        return self.bound.may_miss(self.model)

    @property
    def is_imprecise(self) -> bool:
        """Are times imprecise, or may events not have happened?"""
        return self.bound.schema.is_imprecise

    @property
    def scoring(self) -> str:
        """How missing events are scored."""
        return self.score.scoring

    def _repr_html_(self) -> str:
        return query_html(self.bound.syntax, "\n".join(plan_lines(self)))


def basic_plan(bound: BoundQuery, model: object = None, scoring: str = "exact") -> Plan:
    """The plan of SASE section 3.1: build all sequences, then select, then window, then negation; no engine yet."""
    return Plan(
        scan=scan_of(bound),
        exchange=Exchange(),
        match=Match(bound, "", compared_at_the_end=bound.equivalence, conditions_at_the_end=bound.conjuncts),
        score=Score(model, scoring, bound.threshold, bound.confidence),
        output=Output(bound.output.mode),
        transform=Transform(bound.returns),
        reasons=(),
        estimates={},
    )


def _pushed(plan: Plan, parts: Mapping[str, Any]) -> Plan:
    """The basic plan with everything pushed, but equivalence tests, which the caller places."""
    judged = {name: parts[name] for name in ("model", "scoring") if name in parts}
    options = typed_options(parts.get("options", EngineOptions()))
    match = replace(plan.match, compared_at_the_end=(), options=options)
    plan = replace(plan, match=match, score=replace(plan.score, **judged))
    return optimise(plan, PLACED)


def typed_options(given: EngineOptions | Mapping[str, Any]) -> EngineOptions:
    """Engine options from a mapping, too."""
    return given if isinstance(given, EngineOptions) else EngineOptions(**given)


def _change(given: dict[str, Any], changes: dict[str, Any]) -> None:
    """Puts changes that concern one operator into it: `given` holds the operators and the other changes."""
    changes |= {name: given.pop(name) for name in [*given] if name in _OF_MATCH | _OF_SCORE | _PUSHED.keys()}
    match: Match = given["match"]
    for name in [name for name in changes if name in _PUSHED]:
        match = _PUSHED[name](match, changes.pop(name))
    if "options" in changes:
        changes["options"] = typed_options(changes["options"])
    of_match = {name: changes.pop(name) for name in [*changes] if name in _OF_MATCH}
    given["match"] = replace(match, **of_match) if of_match else match
    if changes:
        given["score"] = replace(given["score"], **changes)


def _push_predicates(match: Match, pushed: bool) -> Match:
    conditions: tuple[Conjunct, ...] = match.conditions + match.conditions_at_the_end
    if pushed:
        return replace(match, conditions=conditions, conditions_at_the_end=())
    return replace(match, conditions=(), conditions_at_the_end=conditions)


def _push_window(match: Match, pushed: bool) -> Match:
    return replace(match, window_pushed=pushed)


_PUSHED = {"push_predicates": _push_predicates, "push_window": _push_window}

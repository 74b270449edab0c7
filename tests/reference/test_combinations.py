"""Combinations of what may be uncertain, against what is simpler: without loss, without width, without the tie."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings

from cepheid.engine import reference
from cepheid.engine.data.matches import NEVER, Matches
from cepheid.engine.data.table import ordered
from cepheid.engine.find import BEGINNING
from cepheid.language import syntax as s
from cepheid.language.check import check
from cepheid.model import Exponential, Model
from cepheid.plan.physical import Plan
from strategies.agreement import bound_to
from strategies.combinations import ImpreciseCase, MissingCase, contiguous_cases, missing_cases, tied_queries
from strategies.intervals import ROLES, intervals
from strategies.queries import queries, streams

slow = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def judged(query: s.QuerySyntax, events: pa.Table, roles: dict[str, Any] | None = None, **plan: Any) -> Matches:
    bound = bound_to(query, events, **(roles or {}))
    return reference.find(Plan(bound, "reference", **plan), ordered(events, bound.schema), BEGINNING, NEVER)


def sure(found: Matches, column: str) -> dict[Any, float]:
    values = getattr(found, column)
    assert values is not None
    groups = found.groups()
    assert len(set(groups)) == len(groups)
    return dict(zip(groups, values.tolist(), strict=True))


def with_strategy(query: s.QuerySyntax, strategy: s.Strategy) -> s.QuerySyntax:
    selection = s.Selection(strategy, tuple(component.variable for component in query.components))
    return check(dataclasses.replace(query, selection=selection))


def scored(case: MissingCase, query: s.QuerySyntax | None = None, **roles: str) -> dict[Any, float]:
    options = {"missing_last": case.missing_last}
    return sure(
        judged(query or case.query, case.events, roles, model=case.model, scoring=case.scoring, options=options),
        "probability",
    )


@slow
@given(
    queries(
        strategy=(s.Strategy.SKIP_TILL_ANY, s.Strategy.SKIP_TILL_NEXT),
        window=True,
        event_window=False,
        output=False,
        returns=False,
    ),
    streams(max_size=8),
)
def test_without_loss_it_is_the_precise_meaning(query: s.QuerySyntax, events: pa.Table) -> None:
    lossless = Model(loss=0.0, gaps={component.variable: Exponential(mean=3.0) for component in query.components})
    found = sure(judged(query, events, model=lossless), "probability")
    assert set(found) == set(judged(query, events).groups())
    assert all(abs(likely - 1.0) < 1e-9 for likely in found.values())


@slow
@given(missing_cases(strategy=s.Strategy.SKIP_TILL_NEXT))
def test_a_next_match_is_a_match(case: MissingCase) -> None:
    following, any_match = scored(case), scored(case, with_strategy(case.query, s.Strategy.SKIP_TILL_ANY))
    assert following.items() <= any_match.items()


@slow
@given(missing_cases())
def test_every_match_is_at_least_as_probable_as_asked_and_was_seen(case: MissingCase) -> None:
    for groups, likely in scored(case).items():
        assert likely >= case.query.threshold - 1e-9
        assert any(groups)
        assert case.missing_last or groups[-1]


@slow
@given(missing_cases(imprecise=True, scorings=("exact",), max_components=3))
def test_at_imprecise_times_the_probability_is_at_most_the_confidence(case: MissingCase) -> None:
    options = {"missing_last": case.missing_last}
    found = judged(case.query, case.events, ROLES, model=case.model, options=options)
    probability, confidence = sure(found, "probability"), sure(found, "confidence")
    assert all(likely <= confidence[groups] + 1e-9 for groups, likely in probability.items())


@slow
@given(contiguous_cases())
def test_contiguity_is_stricter_than_the_next_match(case: ImpreciseCase) -> None:
    query = dataclasses.replace(case.query, confidence=None)
    contiguous = sure(judged(query, case.events, ROLES), "confidence")
    following = sure(judged(with_strategy(query, s.Strategy.SKIP_TILL_NEXT), case.events, ROLES), "confidence")
    if case.query.selection.strategy is s.Strategy.STRICT_CONTIGUITY:  # type: ignore[union-attr]
        assert all(following.get(groups, 0.0) >= likely - 1e-9 for groups, likely in contiguous.items())
    assert all(0.0 < likely <= 1.0 for likely in contiguous.values())


@slow
@given(contiguous_cases(max_size=6))
def test_contiguity_at_certain_times_is_the_precise_meaning(case: ImpreciseCase) -> None:
    certain = case.events.set_column(case.events.column_names.index("upper"), "upper", case.events.column("lower"))
    certain = certain.set_column(certain.column_names.index("ts"), "ts", case.events.column("lower"))
    found = sure(judged(case.query, certain, ROLES), "confidence")
    assert found == dict.fromkeys(judged(case.query, certain).groups(), 1.0)


@slow
@given(tied_queries(disjunction=False, output=False), streams(max_size=8))
def test_what_must_kill_together_kills_no_more_than_each_alone(query: s.QuerySyntax, events: pa.Table) -> None:
    negated = {component.variable for component in query.components if component.negative}
    parts = query.where.operands if isinstance(query.where, s.And) else (query.where,)
    untied = [part for part in parts if part is not None and len(s.variables_of(part) & negated) < 2]
    alone = check(dataclasses.replace(query, where=s.And(tuple(untied)) if untied else None))
    assert set(judged(alone, events).groups()) <= set(judged(query, events).groups())


@slow
@given(tied_queries(max_components=3, event_window=False, output=False), intervals(max_size=4, most=2))
def test_tied_negations_at_imprecise_times(query: s.QuerySyntax, events: pa.Table) -> None:
    assert all(0.0 < likely <= 1.0 for likely in sure(judged(query, events, ROLES), "confidence").values())

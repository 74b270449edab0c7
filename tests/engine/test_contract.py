"""The contract of engines: whoever is listed in the registry agrees with the reference on what it says it supports.

A new engine is tested by being listed: for each kind of stream that it takes (certain, with missing events, with
imprecise times, with both), drawn queries over drawn streams give the reference's matches, cut anywhere, from every
kind of table.
"""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import polars
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import cepheid
from cepheid.engine.data.matches import Matches
from cepheid.engine.data.table import EventTable, ordered
from cepheid.engine.engines import ENGINES
from cepheid.engine.find import find
from cepheid.language import syntax as s
from cepheid.plan.examples import EXAMPLE_SCHEMA
from cepheid.plan.physical import Plan
from strategies.agreement import bound_to, cut
from strategies.intervals import ROLES, intervals
from strategies.models import models
from strategies.queries import queries, streams

WITHIN = 2e-6  # twice what a score table may be off
PROBE = cepheid.query("PATTERN SEQ(A a, B b) WITHIN 9").bind(EXAMPLE_SCHEMA)
CONTRACTS = [
    pytest.param(name, lossy, imprecise, id=f"{name}{'-missing' * lossy}{'-imprecise' * imprecise}")
    for name, engine in ENGINES.items()
    for lossy in (False, True)
    for imprecise in (False, True)
    if name != "reference" and engine.supports(PROBE, lossy, imprecise) is None
]
contract = pytest.mark.parametrize(("name", "lossy", "imprecise"), CONTRACTS)
pytestmark = pytest.mark.filterwarnings("ignore:THRESHOLD")  # a low threshold is warned of, and many are drawn
few = settings(suppress_health_check=list(HealthCheck))
CUTS = st.lists(st.integers(-5, 25), max_size=4)
SEQUENCES: dict[str, Any] = {"kleene": False, "strategy": s.Strategy.SKIP_TILL_ANY}


def drawn(data: Any, name: str, lossy: bool, imprecise: bool) -> tuple[Plan, EventTable]:
    """A plan of the engine for a query that it supports, and a stream of the kind."""
    short = {"returns": False, "max_components": 3 if imprecise else 4, "output": not (lossy or imprecise)}
    wide = queries(threshold=lossy, event_window=not imprecise, **short)
    narrow = queries(threshold=lossy, event_window=False, **({} if lossy else SEQUENCES), **short)
    table = data.draw(intervals(max_size=5) if imprecise else streams(max_size=8))
    roles = ROLES if imprecise else {}

    def supported(query: s.QuerySyntax) -> bool:
        return ENGINES[name].supports(bound_to(query, table, **roles), lossy, imprecise) is None

    query = data.draw((wide | narrow).filter(supported))
    bound = bound_to(query, table, **roles)
    model = data.draw(models(component.variable for component in query.components)) if lossy else None
    return Plan(bound, name, partition=bound.equivalence, model=model), ordered(table, bound.schema)


def described(matches: Matches) -> dict[Any, list[float]]:
    """Each match with its numbers; nothing may be found twice."""
    numbers = [matches.completion, matches.probability, matches.confidence, matches.earliest, matches.latest]
    columns = [column.tolist() for column in numbers if column is not None]
    groups = matches.groups()
    assert len(set(groups)) == len(groups)
    return {group: list(values) for group, values in zip(groups, zip(*columns, strict=True), strict=True)}


def assert_same(plan: Plan, found: dict[Any, list[float]], expected: dict[Any, list[float]]) -> None:
    """The same matches with the same numbers; at a threshold itself, either answer will do."""
    limits = [limit for limit in (plan.score.threshold, plan.score.confidence) if limit is not None]
    for group in found.keys() | expected.keys():
        if group in found and group in expected:
            assert found[group] == pytest.approx(expected[group], abs=WITHIN), group
        else:
            values = found.get(group) or expected[group]
            assert any(abs(value - limit) <= WITHIN for value in values for limit in limits), group


@contract
@few
@given(data=st.data())
def test_it_finds_what_the_reference_finds(name: str, lossy: bool, imprecise: bool, data: Any) -> None:
    plan, events = drawn(data, name, lossy, imprecise)
    reference = Plan(plan.bound, "reference", model=plan.model)
    assert_same(plan, described(find(plan, events)), described(find(reference, events)))


@contract
@few
@given(data=st.data(), cuts=CUTS)
def test_it_can_be_cut_anywhere(name: str, lossy: bool, imprecise: bool, data: Any, cuts: list[int]) -> None:
    plan, events = drawn(data, name, lossy, imprecise)
    pieces = [described(piece) for piece in cut(plan, events, cuts)]
    whole = described(find(plan, events))
    assert sum(map(len, pieces)) == len(whole)
    assert {group: values for piece in pieces for group, values in piece.items()} == whole


@contract
def test_it_takes_every_kind_of_table(name: str, lossy: bool, imprecise: bool) -> None:
    table = pa.table({"ts": [1, 2, 3, 4], "type": ["A", "B", "A", "B"], "id": [1, 1, 2, 2], "until": [1, 3, 3, 5]})
    options: dict[str, Any] = {"lower": "ts", "upper": "until"} if imprecise else {}
    if lossy:
        options["model"] = cepheid.Model(loss=0.1, gaps={"b": cepheid.Exponential(mean=2)})
    text = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 9"
    expected = (
        cepheid.match(table, text, engine="reference", **options).select(["match_start", "match_end"]).to_pylist()
    )
    for events in (table, table.to_pandas(), polars.from_arrow(table)):
        found = cepheid.match(events, text, engine=name, **options)
        assert type(found) is type(events)
        rows = list(zip(list(found["match_start"]), list(found["match_end"]), strict=True))
        plain = [tuple(int(getattr(value, "as_py", lambda value=value: value)()) for value in row) for row in rows]
        assert sorted(plain) == sorted((row["match_start"], row["match_end"]) for row in expected)

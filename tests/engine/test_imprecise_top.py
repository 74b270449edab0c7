"""TOP k BY CONFIDENCE raises the bar while it searches, and still reports what a search without a bar would pick."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.engine.data.matches import Matches
from cepheid.engine.find import find
from cepheid.language import syntax as s
from cepheid.language.schema import Schema
from cepheid.plan.physical import Plan
from cepheid.simulate.imprecise import imprecise_query, imprecise_series
from strategies.agreement import bound_to
from strategies.intervals import ROLES, assert_same, in_order, intervals, run
from strategies.queries import queries

METHODS = ("query-order", "any-state", "sorted", "selectivity")
DRAWN = {
    "strategy": (s.Strategy.SKIP_TILL_ANY, s.Strategy.SKIP_TILL_NEXT),
    "event_window": False,
    "output": False,
    "returns": False,
    "max_window": 6,
}


@given(queries(kleene=False, **DRAWN), intervals(), st.integers(1, 3), st.sampled_from(METHODS))
def test_the_most_confident_by_every_method_are_those_of_all_worlds(
    query: s.QuerySyntax, table: pa.Table, count: int, method: str
):
    bound = bound_to(replace(query, output=s.Output(s.OutputMode.TOP, count)), table, **ROLES)
    events = in_order(bound, table)
    plan = Plan(bound, "intervals", partition=bound.equivalence, options={"method": method})
    assert_same(find(plan, events), run(bound, events, "reference"))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("strategy", ["any", "next"])
def test_what_cannot_get_among_the_best_is_not_judged(method: str, strategy: str):
    table = imprecise_series(600, half_width=10).events
    text = imprecise_query(divisors=(32, 37, 41), window=100)
    text = text.replace(" WITHIN", f" AND skip_till_{strategy}_match(e1, e2, e3) WITHIN")

    def found(ending: str) -> Matches:
        bound = cepheid.query(text + ending).bind(Schema.from_arrow(table.schema, lower="lower", upper="upper"))
        return find(Plan(bound, "intervals", options={"method": method}), in_order(bound, table))

    everything, best = found(""), found(" OUTPUT TOP 3 BY CONFIDENCE")
    assert everything.confidence is not None
    assert best.confidence is not None
    assert sorted(best.confidence) == pytest.approx(sorted(everything.confidence)[-3:])
    assert best.counters["judged"] < everything.counters["judged"]


def test_matches_that_tie_for_the_last_place_are_told_apart_by_their_events():
    table = pa.table({"type": ["A", "A", "B", "B"], "lower": [1, 1, 5, 5], "upper": [1, 1, 5, 5], "id": [4, 3, 2, 1]})
    for engine in ("reference", "intervals"):
        found = cepheid.match(
            table,
            "PATTERN SEQ(A a, B b) WITHIN 9 OUTPUT TOP 2 BY CONFIDENCE",
            lower="lower",
            upper="upper",
            engine=engine,
        )
        assert [(row["a"]["id"], row["b"]["id"]) for row in found.sort_by("match_start").to_pylist()] in (
            [(3, 1), (3, 2)],
            [(3, 2), (3, 1)],
        )

"""The run engine (SASE+) against the reference: strategies, Kleene plus, aggregates, merged or not, cut anywhere."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.table import ordered
from cepheid.engine.find import BEGINNING, find
from cepheid.engine.search import runs
from cepheid.language import syntax as s
from cepheid.plan.physical import Plan
from strategies.agreement import assert_agrees, bound_to, everything
from strategies.queries import queries, streams

QUERIES = queries(output=False, returns=False)
KLEENE = queries(output=False, returns=False, max_components=3, negation=False)


@given(QUERIES, streams(), st.booleans(), st.sampled_from(["all", "first", "none"]))
def test_it_agrees_with_the_reference(query: s.QuerySyntax, events: pa.Table, merge: bool, split: str) -> None:
    names = bound_to(query, events).equivalence
    partition = {"all": names, "first": names[:1], "none": ()}[split]
    compared = tuple(name for name in names if name not in partition)
    assert assert_agrees(query, events, "runs", partition=partition, compared=compared, options={"merge": merge})


@given(KLEENE, streams())
def test_kleene_plus_agrees_with_the_reference(query: s.QuerySyntax, events: pa.Table) -> None:
    assert assert_agrees(query, events, "runs")


@given(QUERIES, streams(), st.booleans())
def test_counts_and_compressed_matches_are_those_that_are_listed(
    query: s.QuerySyntax, events: pa.Table, merge: bool
) -> None:
    bound = bound_to(query, events)
    table = ordered(events, bound.schema)
    plan = Plan(bound, "runs", partition=bound.equivalence, options={"merge": merge})
    listed = everything(find(plan, table))
    assert runs.count(plan, table, BEGINNING, NEVER) == len(listed)
    packed = runs.find_compressed(plan, table, BEGINNING, NEVER)
    assert packed.count() == len(listed)
    assert everything(packed.enumerate()) == listed
    assert len(packed.enumerate(2)) == min(2, len(listed))


STOCKS = pa.table(
    {
        "ts": range(1, 9),
        "type": ["Stock"] * 8,
        "symbol": ["GOOG"] * 8,
        "price": [100, 120, 120, 121, 125, 120, 124, 130],
        "volume": [1010, 990, 1005, 999, 999, 750, 950, 700],
    }
)
TREND = """PATTERN SEQ(Stock+ a[], Stock b)
WHERE skip_till_next_match(a[], b) {
  [symbol] AND a[1].volume > 1000 AND a[i].price > avg(a[..i-1].price) AND b.volume < 80% * a[a.LEN].volume }
WITHIN 1 hour"""


def test_query_3_of_the_paper() -> None:
    found = cepheid.match(STOCKS, TREND + " RETURN a.ts AS a, b.ts AS b", time_unit="s").to_pylist()
    matches = {(tuple(match["a"]), match["b"]) for match in found}
    assert {((1, 2, 3, 4, 5), 6), ((3, 4, 5), 6)} <= matches
    assert matches == {
        (tuple(m["a"]), m["b"])
        for m in cepheid.match(
            STOCKS, TREND + " RETURN a.ts AS a, b.ts AS b", time_unit="s", engine="reference"
        ).to_pylist()
    }


def test_the_automaton_is_shown() -> None:
    told = cepheid.query(TREND).explain(STOCKS, time_unit="s")
    for edge in ("begin", "take", "proceed", "ignore"):
        assert edge in told


def test_limits_of_partial_matches() -> None:
    events = pa.table({"ts": range(40), "type": ["A"] * 39 + ["B"], "id": [1] * 40})
    text = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match(a[], b) { [id] } WITHIN 100"
    # Too many matches are told first; where they may be listed, the runs that it takes are too many.
    with pytest.raises(cepheid.LimitError, match=r"max_partial_matches=1000.* there are 549,755,813,887 matches"):
        cepheid.match(events, text, max_partial_matches=1000, max_matches=10**12, merge=False)
    cut = cepheid.match(events, text, max_partial_matches=1000, merge=False, truncate=True)
    assert b'"truncated": true' in cut.schema.metadata[b"cepheid"]

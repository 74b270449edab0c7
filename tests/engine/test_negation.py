"""What must not happen, in every engine for precise times: components that a condition ties together kill together."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given

import cepheid
from cepheid.language import syntax as s
from cepheid.language.check import check
from strategies.agreement import assert_agrees
from strategies.combinations import tied_queries
from strategies.queries import streams

ENGINES = ("sequence", "lazy-chain", "lazy-tree", "runs")


@given(tied_queries(output=False), streams(max_size=8))
def test_tied_negations_agree_with_the_reference(query: s.QuerySyntax, events: pa.Table) -> None:
    ran = [assert_agrees(check(query), events, engine) for engine in ENGINES]
    assert ran[-1]


@given(tied_queries(output=False, disjunction=False, kleene=False), streams(max_size=10))
def test_tied_negations_of_sequences_agree_with_the_reference(query: s.QuerySyntax, events: pa.Table) -> None:
    for engine in ENGINES:
        assert_agrees(check(query), events, engine)


@pytest.mark.parametrize("engine", ["reference", *ENGINES])
def test_a_match_is_killed_by_a_pair_of_events_that_passes(engine: str) -> None:
    """PATTERN SEQ(A a, !(B m), C c, !(B n), D d) WHERE m.x = n.x: the same value must not occur on both sides of c."""
    text = "PATTERN SEQ(A a, !(B m), C c, !(B n), D d) WHERE m.x = n.x WITHIN 20 RETURN a.ts AS start"
    kinds = ["A", "B", "B", "C", "B", "D"]
    for values, matches in (([0, 1, 2, 0, 3, 0], 1), ([0, 1, 2, 0, 2, 0], 0)):
        events = pa.table({"ts": [1, 2, 3, 4, 5, 6], "type": kinds, "x": values})
        assert cepheid.match(events, text, engine=engine).num_rows == matches

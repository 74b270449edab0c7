"""Events that may not be true: `existence` names the column with the probability that an event happened at all.

The contract suite draws such streams for every engine; here are examples that a reader can check by hand.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.errors import CepheidError, DataError, EngineError, QueryError
from cepheid.language import syntax as s
from strategies.agreement import bound_to
from strategies.intervals import ROLES, assert_same, in_order, intervals, run
from strategies.queries import queries

METHODS = ("query-order", "any-state", "sorted", "selectivity")
SEQUENCES = queries(
    kleene=False, strategy=tuple(s.Strategy), event_window=False, output=False, returns=False, max_window=6
)
EVENTS = pa.table({"ts": [1, 2, 3, 4], "type": ["A", "B", "B", "C"], "p": [0.9, 0.5, 0.25, 0.8]})
ENGINES = pytest.mark.parametrize("engine", ["auto", "intervals", "points", "reference"])


def probabilities(text: str, table: pa.Table = EVENTS, **options: Any) -> list[float]:
    found = cepheid.match(table, text, existence="p", **options)
    assert found.column_names == ["match_start", "match_end", *found.column_names[2:-1], "probability"]
    return [round(value, 9) for value in found["probability"].to_pylist()]


@ENGINES
def test_the_chosen_events_must_have_happened(engine: str):
    found = probabilities("PATTERN SEQ(A a, B b, C c) WITHIN 9", engine=engine)
    assert sorted(found) == [round(0.9 * 0.25 * 0.8, 9), round(0.9 * 0.5 * 0.8, 9)]


@ENGINES
def test_what_would_have_come_first_must_not_have_happened(engine: str):
    found = probabilities("PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { } WITHIN 9", engine=engine)
    assert sorted(found) == [round(0.9 * 0.5 * 0.25 * 0.8, 9), round(0.9 * 0.5 * 0.8, 9)]


@ENGINES
def test_what_would_kill_the_match_must_not_have_happened(engine: str):
    assert probabilities("PATTERN SEQ(A a, !(B b), C c) WITHIN 9", engine=engine) == [round(0.9 * 0.5 * 0.75 * 0.8, 9)]


def test_confidence_is_the_least_probability_that_is_reported():
    text = "PATTERN SEQ(A a, B b, C c) WITHIN 9 CONFIDENCE 0.3"
    assert probabilities(text) == [0.36]
    assert probabilities("PATTERN SEQ(A a, B b, C c) WITHIN 9", confidence=0.3) == [0.36]
    assert probabilities("PATTERN SEQ(A a, B b, C c) WITHIN 9 OUTPUT TOP 1 BY CONFIDENCE") == [0.36]


def test_losses_and_doubts_multiply():
    events = pa.table({"ts": [1, 4], "type": ["A", "C"], "p": [0.5, 0.8]})
    model = cepheid.Model(loss=0.2, gaps=dict.fromkeys("bc", cepheid.Exponential(mean=2.0)))
    text = "PATTERN SEQ(A a, B b, C c) WITHIN 9 THRESHOLD 0.01"
    certain = cepheid.match(events, text, model=model)
    doubted = cepheid.match(events, text, model=model, existence="p")
    assert doubted.column_names == certain.column_names
    by_start = {row["match_start"]: row["probability"] for row in certain.to_pylist() if row["a"]}
    for row in doubted.to_pylist():
        if row["a"]:
            assert row["probability"] == pytest.approx(0.4 * by_start[row["match_start"]], abs=1e-6)


@given(SEQUENCES, intervals(max_size=5, most=1), st.sampled_from(METHODS), st.data())
def test_every_method_agrees_with_possible_worlds(query: s.QuerySyntax, table: pa.Table, method: str, data: Any):
    chances = [data.draw(st.sampled_from([0.0, 0.3, 0.75, 1.0])) for _ in range(table.num_rows)]
    table = table.append_column("p", pa.array(chances, pa.float64()))
    bound = bound_to(query, table, existence="p", **ROLES)
    events = in_order(bound, table)
    assert_same(run(bound, events, "intervals", method=method), run(bound, events, "reference"))


@given(SEQUENCES, intervals(most=1))
def test_what_surely_happened_is_as_without(query: s.QuerySyntax, table: pa.Table):
    certain = table.append_column("p", pa.array([1.0] * table.num_rows, pa.float64()))
    doubted, plain = bound_to(query, certain, existence="p", **ROLES), bound_to(query, table, **ROLES)
    assert_same(run(doubted, in_order(doubted, certain), "intervals"), run(plain, in_order(plain, table), "intervals"))


def test_rows_may_come_in_any_order():
    shuffled = EVENTS.take([3, 1, 0, 2])
    text = "PATTERN SEQ(A a, !(B b), C c) WITHIN 9"
    assert probabilities(text, shuffled) == probabilities(text)


@pytest.mark.parametrize("bad", [1.5, -0.1, None, float("nan")])
def test_a_probability_that_is_none_is_an_error(bad: float | None):
    table = pa.table({"ts": [1, 2], "type": ["A", "B"], "p": pa.array([0.5, bad], pa.float64())})
    with pytest.raises(DataError, match="from 0 to 1") as error:
        cepheid.match(table, "PATTERN SEQ(A a, B b) WITHIN 5", existence="p")
    assert "row 1" in str(error.value) or error.value.row == 1


def test_the_column_must_be_there_and_hold_numbers():
    with pytest.raises(DataError, match="no column 'q' for the existence"):
        cepheid.match(EVENTS, "PATTERN SEQ(A a, B b) WITHIN 5", existence="q")
    with pytest.raises(DataError, match="must be a number"):
        cepheid.match(EVENTS, "PATTERN SEQ(A a, B b) WITHIN 5", existence="type")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 5 OUTPUT NON-OVERLAP", {}),
        ("PATTERN SEQ(A a, B b) WITHIN 5 EVENTS", {}),
        ("PATTERN SEQ(A a, B b) WITHIN 5", {"engine": "sequence"}),
        ("PATTERN SEQ(A a, B b) WITHIN 5", {"tiebreak": "p"}),
    ],
)
def test_what_cannot_be_said_is_refused(text: str, options: dict[str, Any]):
    with pytest.raises(CepheidError, match=r"not have happened|every event happened|existence") as error:
        cepheid.match(EVENTS, text, existence="p", **options)
    assert isinstance(error.value, QueryError | EngineError | DataError)

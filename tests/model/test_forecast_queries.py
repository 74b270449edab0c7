"""FORECAST and `cepheid.forecast`: by definition, in batches and as events come."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid import Exponential, Gamma, Model, QueryError, forecast

MODEL = Model(gaps={"b": Exponential(6, happens=0.8), "c": Gamma(2, 4, happens=0.9), "n": Exponential(20, happens=0.4),
    "x": Exponential(50, happens=0.2)})  # fmt: skip
QUERIES = [
    "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 15 FORECAST 60%",
    "PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN 30 FORECAST 55%",
    "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match { [id] AND b.x > a.x } WITHIN 30 FORECAST 55%",
    "PATTERN SEQ(A a, !(N n), B b) WHERE [id] WITHIN 20 FORECAST 65%",
    "PATTERN SEQ(A a, !(N n)) WHERE [id] AND n.x >= a.x WITHIN 20 FORECAST 80%",
    "PATTERN SEQ(A a, B b, !(N n)) WITHIN 12 FORECAST 75%",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE [id] WITHIN 25 FORECAST 40%",
    "PATTERN SEQ(A a, B? b, C c) WHERE [id] WITHIN 25 FORECAST 60%",
    "PATTERN SEQ(A a, (B b | N n), C c) WHERE skip_till_next_match { [id] AND c.x >= a.x } WITHIN 30 FORECAST 50%",
    "PATTERN SEQ(A a, !(X x), B* b[], C c) WHERE [id] AND c.x >= b[1].x WITHIN 25 FORECAST 40%",
]


def events(seed: int, size: int = 40) -> pa.Table:
    rng = random.Random(seed)
    rows, at = [], 0
    for _ in range(size):
        at += rng.randint(1, 4)
        rows.append({"ts": at, "type": rng.choice("AABCNX"), "id": rng.randint(1, 2), "x": rng.randint(0, 9)})
    return pa.Table.from_pylist(rows)


def told(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.some(8)
@pytest.mark.some(2)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("query", QUERIES)
def test_events_as_they_come_give_what_the_batch_gives(query: str, seed: int) -> None:
    table = events(seed)
    batch = cepheid.match(table, query, model=MODEL).to_pylist()
    live = cepheid.live(query, table.schema, model=MODEL)
    rng, found, place = random.Random(seed), [], 0
    while place < len(table):
        size = rng.randint(1, 9)
        found += live.send(table.slice(place, size)).to_pylist()
        place += size
        if rng.random() < 0.3:
            live = cepheid.live(query, table.schema, model=MODEL, state=live.save())
    found += live.finish().to_pylist()
    assert told(found) == told(batch)


@pytest.mark.some(2)
@pytest.mark.parametrize("query", [*QUERIES[:2], *QUERIES[7:]])
def test_a_partial_match_is_reported_when_its_forecast_first_reaches_the_probability(query: str) -> None:
    """At every instant, what `forecast` says of the open ones."""
    asked = cepheid.query(query).syntax.forecast
    assert asked is not None
    table = events(11, 25)
    first: dict[str, int] = {}
    for at in range(table["ts"][0].as_py(), table["ts"][-1].as_py() + 31):
        for row in forecast(table, query, model=MODEL, at=at).to_pylist():
            if row["probability"] >= asked:
                first.setdefault(repr([row[name] for name in "abcn" if name in row]), at)
    found = cepheid.match(table, query, model=MODEL).to_pylist()
    reported = {repr([row[name] for name in "abcn" if name in row]): row["forecast_at"] for row in found}
    # Between two points of the table's grid a forecast is off by up to 1e-3, and so may be the instant, by a step.
    assert reported.keys() == first.keys()
    assert all(abs(reported[key] - first[key]) <= 1 for key in first)


def test_open_partial_matches() -> None:
    table = pa.table({"ts": [0, 10, 40, 50], "type": ["A", "B", "A", "X"], "id": [1, 1, 2, 2]})
    model = Model(gaps={"b": Exponential(30)})
    rows = forecast(table, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 60", model=model).to_pylist()
    assert [row["a"]["id"] for row in rows] == [2]  # the first one has its B
    chance = 1 - math.exp(-(100 - 50) / 30)
    assert rows[0]["probability"] == pytest.approx(chance, abs=1e-3)
    assert rows[0]["waiting_for"] == "b"
    assert rows[0]["forecast_at"] == 50
    earlier = forecast(table, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 60", model=model, at=5).to_pylist()
    assert [row["a"]["id"] for row in earlier] == [1]
    assert forecast(table, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 60", model=model, at=200).num_rows == 0


def test_missing_events_in_between() -> None:
    """b was lost or did not happen: what is held is a and c, and d is awaited."""
    table = pa.table({"ts": [0, 20], "type": ["A", "C"], "id": [1, 1]})
    model = Model(
        loss={"b": 0.2, "*": 0.0},
        gaps={"b": Exponential(10, happens=0.5), "c": Exponential(10), "d": Exponential(10)},
    )
    rows = forecast(table, "PATTERN SEQ(A a, B b, C c, D d) WHERE [id] WITHIN 60", model=model).to_pylist()
    (row,) = [row for row in rows if row["c"] is not None]
    # b happened unseen: 0.5 * 0.2 * (t / 10) against 0.5; then d within 40
    posterior = 0.5 * 0.2 * 2 / (0.5 * 0.2 * 2 + 0.5)
    assert row["probability"] == pytest.approx(posterior * (1 - math.exp(-4)), abs=2e-3)
    assert row["b"] is None


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("PATTERN SEQ(A a, B b) FORECAST 80%", "window of time"),
        ("PATTERN SEQ(A a, B b) WITHIN 5 EVENTS FORECAST 80%", "window of time"),
        ("PATTERN SEQ(A a, AND(B b, C c)) WITHIN 5 FORECAST 80%", "covers a single order"),
        ("PATTERN SEQ(A a, B{2,3} b[], C c) WITHIN 5 FORECAST 80%", "numbers of events"),
        ("PATTERN SEQ(A a, (B b, C c)+, D d) WITHIN 5 FORECAST 80%", "rounds of a group"),
        ("PATTERN SEQ(A a, (SEQ(!(B b), C c) | D d)) WITHIN 5 FORECAST 80%", "inside an optional part"),
        ("PATTERN SEQ(A a, B? b, !(N n), D d) WITHIN 5 FORECAST 80%", "after an optional part"),
        ("PATTERN SEQ(A a, (SEQ(B b, C? c) | D d), !(N n), E e) WITHIN 5 FORECAST 80%", "after an optional part"),
        ("PATTERN SEQ(A a, (SEQ(B? b, C c) | D d), E e) WITHIN 5 FORECAST 80%", "begins with an optional part"),
        ("PATTERN (A a | B b) WITHIN 5 FORECAST 80%", "of a single event"),
        ("PATTERN A a WITHIN 5 FORECAST 80%", "of a single event"),
        ("PATTERN SEQ(A a, B b) WHERE strict_contiguity { } WITHIN 5 FORECAST 80%", "contiguity"),
        ("PATTERN SEQ(A a, B b) WITHIN 5 FORECAST 80% OUTPUT MAXIMAL", "OUTPUT MAXIMAL"),
        ("PATTERN SEQ(A a, B b) WITHIN 5 FORECAST 80% RETURN a.x", "returns events"),
        ("PATTERN SEQ(A a, B b) WITHIN 5 THRESHOLD 0.5 FORECAST 80%", "THRESHOLD"),
        ("PATTERN SEQ(!(A a), B b, C c) WITHIN 5 FORECAST 80%", "begins with an absence"),
        ("PATTERN SEQ(A a, B b) WITHIN 5 FORECAST 0", "outside"),
    ],
)
def test_what_cannot_be_forecast_is_named(query: str, named: str) -> None:
    with pytest.raises(QueryError, match=named):
        cepheid.query(query)


def test_a_forecast_needs_a_model() -> None:
    with pytest.raises(cepheid.CepheidError, match="needs a loss and gap model"):
        cepheid.match(events(1), QUERIES[0])


def test_a_negated_event_that_may_be_lost_between_two_that_are_held() -> None:
    table = pa.table({"ts": [0, 10], "type": ["A", "B"], "id": [1, 1]})
    gaps = {"n": Exponential(20, happens=0.5), "b": Exponential(10), "c": Exponential(10)}
    model = Model(loss={"n": 0.4, "*": 0.0}, gaps=gaps)
    (row,) = forecast(table, "PATTERN SEQ(A a, !(N n), B b, C c) WHERE [id] WITHIN 60", model=model).to_pylist()
    happened = 0.5 * (1 - math.exp(-10 / 20))
    absent = (1 - happened) / (1 - happened + 0.4 * happened)
    assert row["probability"] == pytest.approx(absent * (1 - math.exp(-5)), abs=2e-3)


def test_the_loss_of_the_first_component_does_not_matter() -> None:
    table = pa.table({"ts": [0, 10, 20], "type": ["A", "B", "C"], "id": [1, 1, 1]})
    gaps = {"b": Exponential(10), "c": Exponential(10), "d": Exponential(10)}
    query = "PATTERN SEQ(A a, B b, C c, D d) WHERE [id] WITHIN 60"
    chances = [
        forecast(table, query, model=Model(loss={"a": loss, "b": 0.1, "*": 0.0}, gaps=gaps))["probability"].to_pylist()
        for loss in (0.0, 0.3)
    ]
    assert chances[0] == chances[1]


def test_what_was_lost_between_alternatives_cannot_be_told() -> None:
    gaps = {"b": Exponential(10), "c": Exponential(10), "d": Exponential(10), "e": Exponential(10)}
    query = "PATTERN SEQ(A a, (B b | C c), D d, E e) WHERE [id] WITHIN 60"
    with pytest.raises(cepheid.ModelError, match="whether a lost 'b' happened"):
        forecast(events(1), query, model=Model(loss={"b": 0.1, "*": 0.0}, gaps=gaps))
    optional = "PATTERN SEQ(A a, B? b, C c, D d) WHERE [id] WITHIN 60"  # with or without it, it is a match
    forecast(events(1), optional, model=Model(loss={"b": 0.1, "*": 0.0}, gaps=gaps))

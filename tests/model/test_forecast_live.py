"""`live.forecast`: what `cepheid.forecast` says of the events that were sent."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import cepheid
from cepheid import CepheidError, DataError, Exponential, Model, forecast
from model.test_forecast_queries import MODEL, QUERIES, events, told

WITHOUT = "PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN 30"


@pytest.mark.some(1)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("query", [QUERIES[1], QUERIES[4], QUERIES[6], WITHOUT])
def test_open_partial_matches_of_what_was_sent(query: str, seed: int) -> None:
    """In disorder and with delay, in pieces, restarted; only what a window passed is gone."""
    rng, table = random.Random(seed), events(seed, 60)
    delay, place = 3, 0
    late = table["ts"].to_numpy() + [rng.randint(0, delay) for _ in range(len(table))]
    table = table.take(pa.array(late.argsort(kind="stable")))
    live = cepheid.live(query, table.schema, model=MODEL, delay=delay)
    while place < len(table):
        size = rng.randint(1, 9)
        live.send(table.slice(place, size))
        place += size
        assert told(live.forecast().to_pylist()) == told(forecast(table[:place], query, model=MODEL).to_pylist())
        if rng.random() < 0.3:
            live = cepheid.live(query, table.schema, model=MODEL, delay=delay, state=live.save())
    later = table["ts"].to_numpy().max() + 5
    expected = forecast(table, query, model=MODEL, at=later).to_pylist()
    assert told(live.forecast(at=later).to_pylist()) == told(expected)


def test_several_queries_at_once() -> None:
    table = events(3)
    queries = {"one": QUERIES[4], "two": QUERIES[1], "matches": WITHOUT}
    live = cepheid.live(queries, table.schema, model=MODEL)
    live.send(table)
    found = live.forecast().to_pylist()
    assert {row["query"] for row in found} == {"one", "two"}
    for name in ("one", "two"):
        rows = [row[name]["probability"] for row in found if row["query"] == name]
        alone = forecast(table, queries[name], model=MODEL)
        assert sorted(rows) == sorted(alone["probability"].to_pylist())


def test_mappings_time_that_passes_and_refusals() -> None:
    columns = {"ts": int, "type": str, "id": int}
    live = cepheid.live("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 60", columns, model=Model(gaps={"b": Exponential(30)}))
    assert live.forecast().num_rows == 0
    live.send({"ts": 10, "type": "A", "id": 1})
    (first,) = live.forecast()
    live.advance(40)
    (second,) = live.forecast()
    assert (first["forecast_at"], second["forecast_at"]) == (10, 40)
    assert first["probability"] > second["probability"]
    with pytest.raises(DataError, match="before the watermark"):
        live.forecast(at=20)
    assert live.forecast(at=70) == []
    live.finish()
    with pytest.raises(CepheidError, match="finished"):
        live.forecast()
    plain = cepheid.live("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 60", columns)
    with pytest.raises(CepheidError, match="needs a loss and gap model"):
        plain.forecast()
    contiguous = cepheid.live("PATTERN SEQ(A a, B b) WHERE strict_contiguity { [id] } WITHIN 60", columns)
    with pytest.raises(CepheidError, match="contiguity"):
        contiguous.forecast()
    partial = cepheid.live("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 60 OUTPUT PARTIAL", columns)
    with pytest.raises(CepheidError, match="has no forecast"):
        partial.forecast()

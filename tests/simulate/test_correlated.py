"""LAZY's stocks with price histories."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from cepheid.errors import DataError
from cepheid.simulate.correlated import FINANCE, HI_TECH, OTHER, correlated_stocks, correlation_query


def test_histories_are_the_ticker_s_last_prices_minute_by_minute() -> None:
    history, per_minute = 5, 3
    simulation = correlated_stocks(600, history=history, events_per_minute=per_minute, irrelevant=0.2, seed=1)
    events = simulation.events
    assert events.schema.field("history").type == pa.list_(pa.float64())
    rows = events.to_pylist()
    price_at: dict[tuple[str, int], float] = {}
    for row in rows:
        assert len(row["history"]) == history
        assert row["history"][-1] == row["price"]
        for back, price in enumerate(reversed(row["history"])):
            minute = row["ts"] // per_minute - back
            assert price_at.setdefault((row["ticker"], minute), price) == price
    sectors = dict.fromkeys(FINANCE, "Finance") | dict.fromkeys(HI_TECH, "Hi-Tech")
    sectors |= dict.fromkeys(OTHER, "Pharmaceuticals") | {"GOOG": "Internet"}
    assert {row["ticker"]: row["sector"] for row in rows} == sectors


def test_the_rare_component_is_as_rare_as_asked() -> None:
    sector = correlated_stocks(100_000, history=2, rare_frequency=0.1, irrelevant=0.25, seed=2).events["sector"]
    drawn = sector.to_pylist()
    finance, hi_tech, target = (drawn.count(name) for name in ("Finance", "Hi-Tech", "Internet"))
    assert finance == pytest.approx(hi_tech, rel=0.05)
    assert target / finance == pytest.approx(0.1, rel=0.1)
    assert drawn.count("Pharmaceuticals") / len(drawn) == pytest.approx(0.25, abs=0.01)


def test_frequencies_of_the_common_ones_swing_a_little() -> None:
    drawn = correlated_stocks(20_000, history=2, seed=3).events["sector"].to_pylist()
    first, second = drawn[:10_000], drawn[10_000:]
    assert first.count("Finance") > first.count("Hi-Tech")
    assert second.count("Finance") < second.count("Hi-Tech")


def test_the_rarest_changes_where_the_truth_says() -> None:
    simulation = correlated_stocks(35_000, history=2, rare_frequency=0.02, switch_every=10_000, seed=4)
    assert simulation.truth is not None
    intervals = simulation.truth.to_pylist()
    assert [interval["rarest"] for interval in intervals] == ["Internet", "Finance", "Hi-Tech", "Internet"]
    assert [(interval["first_ts"], interval["last_ts"]) for interval in intervals] == [
        (0, 9_999), (10_000, 19_999), (20_000, 29_999), (30_000, 34_999),
    ]  # fmt: skip
    drawn = simulation.events["sector"].to_pylist()
    for interval in intervals:
        part = drawn[interval["first_ts"] : interval["last_ts"] + 1]
        counts = {name: part.count(name) for name in ("Finance", "Hi-Tech", "Internet")}
        assert min(counts, key=counts.__getitem__) == interval["rarest"]
        assert counts[interval["rarest"]] < 0.1 * sorted(counts.values())[1]


def correlations(coupling: float) -> list[float]:
    rows = correlated_stocks(3_000, coupling=coupling, events_per_minute=1, seed=5).events.to_pylist()
    pairs = [(a, b) for a, b in pairwise(rows) if a["ticker"] != b["ticker"]]
    return [float(np.corrcoef(a["history"][1:], b["history"][:-1])[0, 1]) for a, b in pairs]


def test_coupled_stocks_correlate() -> None:
    assert np.mean(correlations(1.0)) > 0.9
    assert abs(np.mean(correlations(0.0))) < 0.2


def test_query() -> None:
    query = correlation_query(threshold=0.8, window=50, order="acb")
    assert query.startswith("PATTERN SEQ(Stock a, Stock c, Stock b) WHERE a.ticker IN ('JPM', ")
    assert query.endswith("Corr(b.history, c.history) > 0.8 WITHIN 50")
    with pytest.raises(DataError, match="a, b, c once each"):
        correlation_query(order="aab")


def test_histories_too_large_for_one_column_are_refused() -> None:
    with pytest.raises(DataError, match="fewer events"):
        correlated_stocks(2**30, history=2)

"""Trips that are still open when a history ends are waits that were cut off, not failures."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest

import cepheid

QUERY = "PATTERN SEQ(Order a, Payment b) WHERE [id] WITHIN {}"


def orders(count: int, happens: float, ends: float, seed: int = 1) -> pa.Table:
    """An order every second, paid after 600 ± 420 seconds if ever; the history ends before many of them could be."""
    random = np.random.default_rng(seed)
    ordered = np.arange(count, dtype=float)
    paid = ordered + np.maximum(np.ceil(random.gamma(2.0, 300.0, count)), 1.0)
    kept = (random.random(count) < happens) & (paid <= ends)
    times = np.concatenate([ordered, paid[kept]])
    kinds = np.repeat(["Order", "Payment"], [count, int(kept.sum())])
    ids = np.concatenate([np.arange(count), np.flatnonzero(kept)])
    return pa.table({"ts": times.astype(np.int64), "type": kinds, "id": ids}).sort_by("ts")


@pytest.mark.parametrize(("happens", "ends"), [(1.0, 3_000.0), (0.8, 3_000.0), (0.8, 6_000.0)])
def test_open_trips_are_no_failures(happens: float, ends: float) -> None:
    # The window passes for no trip, or for few: what is known of the others is that they had waited until the end.
    events = orders(3_000, happens, ends)
    naive = events["type"].to_pylist().count("Payment") / 3_000
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nor do they speak against the model
        warnings.filterwarnings("ignore", message="the history ends before its windows do")
        model = cepheid.fit(events, QUERY.format(4_000), loss=0.0)
    gap = model.gaps["b"]
    assert gap.happens == pytest.approx(happens, abs=0.03)
    assert gap.mean == pytest.approx(600.0, rel=0.08)
    assert ends > 3_000.0 or naive < happens - 0.1
    slower = events.set_column(0, "ts", pa.array((events["ts"].to_numpy() * 1.3).astype(np.int64)))
    assert not model.check(slower, QUERY.format(4_000)).fits


def test_a_longer_history_tells_the_same() -> None:
    early, late = (cepheid.fit(orders(2_500, 0.7, ends), QUERY.format(9_000), loss=0.0) for ends in (2_500.0, 9_000.0))
    times = np.array([200.0, 600.0, 1_500.0])
    assert early.gaps["b"].cdf(times) == pytest.approx(late.gaps["b"].cdf(times), abs=0.04)

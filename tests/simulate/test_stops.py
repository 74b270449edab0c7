"""Stops that are bypassed, readings that are lost: the shares come out as asked for."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
import pytest

from cepheid.errors import DataError
from cepheid.simulate import Gap, stop_visits
from cepheid.simulate.stops import DAY, EVENING


def test_shares_of_stops_and_of_readings() -> None:
    world = stop_visits(20_000, stops=3, loss=(0.1, 0.4, 0.0), bypass=(0.2, 0.3, 0.0), seed=1)
    assert world.truth is not None
    for stop, happens, seen in (("S0", 0.8, 0.9), ("S1", 0.7, 0.6), ("S2", 1.0, 1.0)):
        rows = world.truth.filter(pc.equal(world.truth["type"], stop))
        assert len(rows) / 20_000 == pytest.approx(happens, abs=0.015)
        assert pc.mean(pc.cast(rows["seen"], "float64")).as_py() == pytest.approx(seen, abs=0.015)
    assert len(world.events) == pc.sum(world.truth["seen"]).as_py()


def test_every_visit_passes_all_stops_in_order() -> None:
    world = stop_visits(50, stops=4, loss=0.0, visits=3, seed=2)
    for tag in range(50):
        mine = world.events.filter(pc.equal(world.events["tag"], tag))
        assert mine["type"].to_pylist() == ["S0", "S1", "S2", "S3"] * 3
        assert (np.diff(mine["ts"].to_numpy()) > 0).all()


def test_readers_lose_more_in_the_evening() -> None:
    world = stop_visits(20_000, loss=0.1, evening_loss=0.5, arrivals=Gap("exponential", 20.0), seed=3)
    assert world.truth is not None
    evening = world.truth["ts"].to_numpy() % DAY >= EVENING
    seen = world.truth["seen"].to_numpy()
    assert seen[evening].mean() == pytest.approx(0.5, abs=0.02)
    assert seen[~evening].mean() == pytest.approx(0.9, abs=0.02)


def test_a_bypassed_stop_takes_no_time() -> None:
    long, short = (stop_visits(5_000, stops=3, loss=0.0, bypass=(0.0, b, 0.0), seed=4) for b in (0.0, 1.0))
    lengths = []
    for world in (long, short):
        ends = [world.events.filter(pc.equal(world.events["type"], stop)).sort_by("tag") for stop in ("S0", "S2")]
        lengths.append((ends[1]["ts"].to_numpy() - ends[0]["ts"].to_numpy()).mean())
    assert lengths == [pytest.approx(1200, rel=0.05), pytest.approx(600, rel=0.05)]


def test_bad_arguments() -> None:
    with pytest.raises(DataError, match="3 numbers in loss, not 4"):
        stop_visits(10, loss=(0.1, 0.1, 0.1))
    with pytest.raises(DataError, match="bypass"):
        stop_visits(10, bypass=1.5)

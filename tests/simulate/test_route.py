"""The route past many readers."""

import numpy as np
import pyarrow.compute as pc
import pytest

import cepheid
from cepheid.errors import DataError
from cepheid.simulate.gaps import Gap
from cepheid.simulate.route import route_visits


def test_same_seed_same_route() -> None:
    once, again, other = (route_visits(200, seed=seed) for seed in (7, 7, 8))
    assert once.events.equals(again.events)
    assert once.truth is not None
    assert once.truth.equals(again.truth)
    assert not once.events.equals(other.events)


def test_readers_are_passed_in_turn_and_never_at_one_instant() -> None:
    rows = route_visits(300, readers=4, loss=0.0, happens=0.8, step=Gap("exponential", mean=0.5), seed=1)
    readings: dict[int, list[tuple[int, str]]] = {}
    for row in rows.events.to_pylist():
        readings.setdefault(row["parcel"], []).append((row["ts"], row["type"]))
    assert rows.truth is not None
    for row in rows.truth.to_pylist():
        times, names = zip(*readings[row["parcel"]], strict=True)
        assert list(names) == [f"R{place}" for place in range(row["passed"])]
        assert len(set(times)) == len(times)
        assert row["arrived"] == (row["passed"] == 4)
        assert row["seen"] == row["passed"]


def test_losses_and_the_share_that_goes_on() -> None:
    losses = [0.0, 0.1, 0.3]
    route = route_visits(20_000, readers=3, loss=losses, happens=0.7, seed=2)
    assert route.truth is not None
    passed = route.truth["passed"].to_numpy()
    assert np.mean(passed >= 2) == pytest.approx(0.7, abs=0.02)
    assert np.mean(passed == 3) == pytest.approx(0.49, abs=0.02)
    for place, loss in enumerate(losses):
        seen = pc.sum(pc.equal(route.events["type"], f"R{place}")).as_py()
        assert 1.0 - seen / np.sum(passed > place) == pytest.approx(loss, abs=0.02)


def test_the_query_finds_every_arrival_when_no_reading_is_lost() -> None:
    route = route_visits(200, readers=3, loss=0.0, happens=0.6, seed=3)
    assert route.truth is not None
    found = cepheid.match(route.events, route.query, engine="reference").to_pylist()
    arrived = [row["parcel"] for row in route.truth.to_pylist() if row["arrived"]]
    assert sorted(row["v2"]["parcel"] for row in found) == arrived
    assert 0 < len(arrived) < 200


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"parcels": 0}, "at least 1"),
        ({"readers": 1}, "at least 2"),
        ({"loss": 1.5}, "between 0 and 1"),
        ({"loss": [0.1, 0.2]}, "2 losses for 6 readers"),
        ({"happens": -0.1}, "between 0 and 1"),
    ],
)
def test_impossible_routes_are_refused(change: dict, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        route_visits(**{"parcels": 10, **change})

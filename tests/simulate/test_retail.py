"""The retail store."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from cepheid.errors import DataError
from cepheid.simulate import Gap, Simulation, retail_visits


def truth_of(simulation: Simulation) -> list[dict]:
    assert simulation.truth is not None
    return simulation.truth.to_pylist()


@pytest.mark.parametrize("exit_clock", ["register", "shelf"])
@pytest.mark.parametrize("timestamps", [False, True])
def test_events_are_exactly_the_readings_the_truth_calls_seen(exit_clock: str, timestamps: bool) -> None:
    loss = {"Shelf": 0.1, "Register": 0.3, "Exit": 0.2}
    simulation = retail_visits(
        500, loss=loss, theft=0.2, stay=0.1, exit_clock=exit_clock, to_exit=Gap("exponential", mean=900.0),
        timestamps=timestamps, seed=1,
    )  # fmt: skip
    expected = set()
    for row in truth_of(simulation):
        for reader in ("shelf", "register", "exit"):
            assert (row[f"{reader}_ts"] is None) == (row[f"{reader}_seen"] is None)
            if row[f"{reader}_seen"]:
                expected.add((row[f"{reader}_ts"], reader.capitalize(), row["tag_id"]))
        order = [row[f"{reader}_ts"] for reader in ("shelf", "register", "exit") if row[f"{reader}_ts"] is not None]
        assert order == sorted(set(order))
        assert row["stolen"] == (row["exit_ts"] is not None and row["register_ts"] is None)
    rows = simulation.events.to_pylist()
    assert {(row["ts"], row["type"], row["tag_id"]) for row in rows} == expected
    assert len(rows) == len(expected)
    assert len({(row["tag_id"], row["category"]) for row in rows}) == len({row["tag_id"] for row in rows})


def test_shares_are_as_asked() -> None:
    truth = truth_of(retail_visits(40_000, loss={"Register": 0.25, "Exit": 0.05}, theft=0.1, stay=0.2, seed=2))
    left = [row for row in truth if row["exit_ts"] is not None]
    assert len(left) / len(truth) == pytest.approx(0.8, abs=0.01)
    assert sum(row["stolen"] for row in left) / len(left) == pytest.approx(0.1, abs=0.01)
    for reader, loss in (("shelf", 0.0), ("register", 0.25), ("exit", 0.05)):
        seen = [row[f"{reader}_seen"] for row in truth if row[f"{reader}_seen"] is not None]
        assert 1 - sum(seen) / len(seen) == pytest.approx(loss, abs=0.01)


def test_gaps_have_the_means_asked_for() -> None:
    truth = truth_of(
        retail_visits(
            40_000,
            theft=0.0,
            arrivals=Gap("uniform", mean=2.0),
            to_register=Gap("lognormal", mean=300.0, shape=0.5),
            to_exit=Gap("gamma", mean=40.0, shape=3.0),
            timestamps=True,
            seed=3,
        )
    )
    shelf, register, exit_ = (
        np.array([row[f"{r}_ts"].timestamp() for row in truth]) for r in ("shelf", "register", "exit")
    )
    assert np.diff(shelf).mean() == pytest.approx(2.0, rel=0.02)
    assert (register - shelf).mean() == pytest.approx(300.0, rel=0.02)
    assert (register - shelf).std() == pytest.approx(300.0 * np.sqrt(np.exp(0.25) - 1), rel=0.05)
    assert (exit_ - register).mean() == pytest.approx(40.0, rel=0.02)
    assert (exit_ - register).std() == pytest.approx(40.0 / np.sqrt(3.0), rel=0.03)


def test_timestamps_start_when_the_store_opens() -> None:
    simulation = retail_visits(10, timestamps=True)
    assert simulation.events.schema.field("ts").type == pa.timestamp("us", tz="UTC")
    opening = datetime.datetime(2024, 1, 1, 8, tzinfo=datetime.UTC)
    first = simulation.events["ts"][0].as_py()
    assert opening < first < opening + datetime.timedelta(minutes=1)
    assert simulation.query.endswith("WITHIN 12 hours")
    assert retail_visits(10).query.endswith("WITHIN 43200")


def test_with_the_shelf_clock_the_paper_s_probability_of_theft_is_calibrated() -> None:
    """AYAC §3.2: given no register reading within T, nobody paid with probability (1 - F) / (εF + 1 - F)."""
    loss, theft, mean = 0.4, 0.3, 600.0
    simulation = retail_visits(
        200_000,
        loss={"Register": loss},
        theft=theft,
        to_register=Gap("exponential", mean=mean),
        to_exit=Gap("uniform", mean=mean),
        exit_clock="shelf",
        timestamps=True,
        seed=4,
    )
    assert simulation.truth is not None
    seconds = {
        reader: simulation.truth[f"{reader}_ts"].cast(pa.int64()).to_numpy() / 1e6 for reader in ("shelf", "exit")
    }
    unread = np.array([seen is not True for seen in simulation.truth["register_seen"].to_pylist()])
    gap = (seconds["exit"] - seconds["shelf"])[unread]
    stolen = simulation.truth["stolen"].to_numpy()[unread]
    happened = (1.0 - theft) * (1.0 - np.exp(-gap / mean))
    predicted = (1.0 - happened) / (loss * happened + 1.0 - happened)
    for low in np.arange(0.0, 2 * mean, mean / 2):
        here = (gap >= low) & (gap < low + mean / 2)
        assert stolen[here].mean() == pytest.approx(predicted[here].mean(), abs=0.015)


def test_unknown_readers_and_impossible_losses_are_refused() -> None:
    with pytest.raises(DataError, match="Shelf, Register, Exit"):
        retail_visits(10, loss={"Door": 0.1})
    with pytest.raises(DataError, match=r"loss at Shelf is 1\.5"):
        retail_visits(10, loss=1.5)
    with pytest.raises(DataError, match="exponential, gamma, lognormal, uniform"):
        Gap("normal", mean=1.0)
    with pytest.raises(DataError, match="register, shelf"):
        retail_visits(10, exit_clock="door")

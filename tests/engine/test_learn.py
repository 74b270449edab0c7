"""Fitting: loss, gaps and `happens` come back from simulated histories, with honest intervals and clear refusals."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.engine.data.table import ordered
from cepheid.engine.fitting.history import History, gather
from cepheid.engine.fitting.learn import Fitting, learn
from cepheid.errors import ModelError
from cepheid.model import ByAttribute, Gamma, GapStatistics, Model
from cepheid.simulate import Simulation, retail_visits, route_visits, stop_visits
from cepheid.simulate.gaps import Gap
from strategies.agreement import bound_to

SHOPLIFTING = "PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag_id] WITHIN 43200"
TO_REGISTER, TO_EXIT = Gap("gamma", 1200.0, 2.0), Gap("gamma", 2400.0, 2.0)


def store(tags: int, **how: Any) -> Simulation:
    """A store where AYAC's assumptions hold: leaving does not depend on paying."""
    usual = {"exit_clock": "shelf", "theft": 0.1, "to_register": TO_REGISTER, "to_exit": TO_EXIT, "seed": 1}
    return retail_visits(tags, **{**usual, **how})


def loss_of(model: Model, name: str) -> float:
    assert isinstance(model.loss, dict)
    loss = model.loss[name]
    assert isinstance(loss, float)
    return loss


# --- what comes back ------------------------------------------------------------------------------------------------


def test_a_store() -> None:
    model = cepheid.fit(store(30_000, loss=0.1).events, SHOPLIFTING)
    assert model.loss == {name: pytest.approx(0.1, abs=0.01) for name in "abc"}
    register, leave = model.gaps["b"], model.gaps["c"]
    assert isinstance(register, Gamma)
    assert isinstance(leave, Gamma)
    assert (register.mean, leave.mean) == (pytest.approx(1200, rel=0.03), pytest.approx(2400, rel=0.03))
    assert (register.shape, leave.shape) == (pytest.approx(2, rel=0.1), pytest.approx(2, rel=0.1))
    assert register.happens == pytest.approx(0.9, abs=0.02)  # thieves never come to the register
    assert leave.happens == pytest.approx(1.0, abs=0.02)


def test_what_never_leaves() -> None:
    model = cepheid.fit(store(30_000, loss=0.1, stay=0.3).events, SHOPLIFTING)
    assert model.gaps["c"].happens == pytest.approx(0.7, abs=0.03)
    assert model.gaps["b"].happens == pytest.approx(0.9, abs=0.03)


def test_every_reader_of_a_route_has_its_own_loss_where_a_later_reading_proves_it() -> None:
    losses = [0.05, 0.3, 0.15, 0.02, 0.1]
    route = route_visits(8_000, readers=5, loss=losses, happens=0.9, seed=1)
    model = cepheid.fit(route.events, route.query)
    for place in range(4):
        assert loss_of(model, f"v{place}") == pytest.approx(losses[place], abs=0.02)
        low, high = model.loss_intervals[f"v{place}"]
        assert low < losses[place] < high
    # Nothing comes after the last reader, so it is taken to be like the others together.
    assert loss_of(model, "v4") == pytest.approx(np.average(losses[:4]), abs=0.03)
    for place in range(1, 4):
        gap = model.gaps[f"v{place}"]
        assert gap.mean == pytest.approx(600, rel=0.05)
        assert gap.happens == pytest.approx(1.0, abs=0.03)  # no stop is bypassed: where the next was seen, it happened
    # But trips end: one in ten at every reader.
    assert model.gaps["v4"].happens == pytest.approx(0.9 * (1 - losses[4]) / (1 - loss_of(model, "v4")), abs=0.03)
    assert dict(model.goes_on) == {name: pytest.approx(0.9, abs=0.02) for name in ("v1", "v2", "v3")}


def test_stops_that_are_bypassed_are_told_from_stops_that_were_lost() -> None:
    route = stop_visits(20_000, stops=4, loss=(0.1, 0.3, 0.1, 0.1), bypass=(0.0, 0.2, 0.4, 0.0), seed=1)
    model = cepheid.fit(route.events, route.query)
    for name, loss, happens in (("v1", 0.3, 0.8), ("v2", 0.1, 0.6)):
        assert loss_of(model, name) == pytest.approx(loss, abs=0.03)
        assert model.gaps[name].happens == pytest.approx(happens, abs=0.03)
        assert model.happens_intervals[name][0] < happens < model.happens_intervals[name][1]


def test_what_cannot_be_told_of_the_first_event_is_said_and_can_be_stated() -> None:
    route = stop_visits(8_000, stops=3, loss=0.1, bypass=(0.3, 0.0, 0.0), seed=2)
    with pytest.warns(UserWarning, match="'v0' was lost or never happened .* taken as lost"):
        model = cepheid.fit(route.events, route.query)
    assert model.happens["v0"] == 1.0
    assert loss_of(model, "v0") == pytest.approx(0.37, abs=0.02)
    assert cepheid.fit(route.events, route.query, loss={"v0": 0.1}).happens["v0"] == pytest.approx(0.7, abs=0.02)
    stated = cepheid.fit(route.events, route.query, happens={"v0": 0.7})
    assert loss_of(stated, "v0") == pytest.approx(0.1, abs=0.02)


def test_stops_too_near_to_tell_are_a_clear_error() -> None:
    near = stop_visits(3_000, stops=3, loss=0.2, bypass=(0.0, 0.3, 0.0), steps=(0.01, 900.0), seed=3)
    with pytest.raises(ModelError, match="does not show whether events of 'v1' were lost or never happened"):
        cepheid.fit(near.events, near.query)


@pytest.mark.parametrize(("draws", "least"), [(6, 9), pytest.param(20, 34, marks=pytest.mark.slow)])
def test_intervals_cover_the_truth_about_as_often_as_they_say(draws: int, least: int) -> None:
    covered = []
    for seed in range(draws):
        route = route_visits(400, readers=3, loss=0.15, arrivals=Gap("exponential", 100.0), seed=seed)
        intervals = cepheid.fit(route.events, route.query).loss_intervals
        covered += [low <= 0.15 <= high for low, high in (intervals["v0"], intervals["v1"])]
    assert sum(covered) >= least  # of two for each draw, 95% each


def test_a_history_that_begins_in_the_middle_proves_no_loss_of_what_came_before_it() -> None:
    events = route_visits(6_000, readers=3, loss=0.1, seed=3).events
    late = events.filter(pc.greater(events["ts"], int(events["ts"][len(events) // 3].as_py())))
    model = cepheid.fit(late, "PATTERN SEQ(R0 v0, R1 v1, R2 v2) WHERE [parcel] WITHIN 7200")
    assert loss_of(model, "v0") == pytest.approx(0.1, abs=0.02)


def test_where_the_exit_waits_for_the_payment_the_share_of_trips_tells_how_many_paid() -> None:
    history = retail_visits(
        20_000, loss=0.1, theft=0.2, to_register=TO_REGISTER, to_exit=Gap("exponential", 300), seed=1
    )
    gaps = cepheid.fit(history.events, SHOPLIFTING).gaps
    assert gaps["b"].happens == pytest.approx(0.8, abs=0.03)
    assert gaps["c after b"].mean == pytest.approx(300, rel=0.05)
    assert gaps["c"].mean == pytest.approx(1500, rel=0.1)  # thieves take as long as customers


# --- what is stated, what is inferred -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        (0.2, {"a": 0.2, "b": 0.2, "c": 0.2}),
        ({"b": 0.3}, {"a": pytest.approx(0.1, abs=0.02), "b": 0.3, "c": pytest.approx(0.1, abs=0.02)}),
        ({"b": 0.3, "*": 0.05}, {"a": 0.05, "b": 0.3, "c": 0.05}),
        (ByAttribute("type", {"Register": 0.3}, default=0.0), {"a": 0.0, "b": 0.3, "c": 0.0}),
    ],
)
def test_stated_losses_win(stated: Any, expected: dict[str, Any]) -> None:
    model = cepheid.fit(store(15_000, loss=0.1).events, SHOPLIFTING, loss=stated)
    assert model.loss == expected
    assert set(model.loss_intervals) == {name for name in "abc" if not isinstance(expected[name], float)}


def test_a_stated_loss_changes_how_often_the_event_must_have_happened() -> None:
    events = store(15_000, loss=0.1).events
    right, none = (cepheid.fit(events, SHOPLIFTING, loss={"b": loss}).gaps["b"].happens for loss in (0.1, 0.0))
    assert right == pytest.approx(none / 0.9)


def trips(count: int, *, happens: float, loss: float, seed: int = 0) -> pa.Table:
    """Visits where who pays takes long, and who does not walks straight out; only the register loses readings."""
    random = np.random.default_rng(seed)
    pays, lost = random.random(count) < happens, random.random(count) < loss
    begins = np.cumsum(random.exponential(5.0, count))
    paid = begins + random.gamma(3.0, 20.0, count)
    left = np.where(pays, paid + random.gamma(4.0, 10.0, count), begins + random.gamma(2.0, 15.0, count))
    times = np.concatenate([begins, paid[pays & ~lost], left])
    tag = np.concatenate([np.arange(count), np.flatnonzero(pays & ~lost), np.arange(count)])
    kind = np.repeat(["Shelf", "Register", "Exit"], [count, int((pays & ~lost).sum()), count])
    return pa.table({"ts": (times * 1000).astype(np.int64), "type": kind, "tag_id": tag})


def test_the_length_of_trips_tells_losses_that_nothing_proves() -> None:
    query = SHOPLIFTING.replace("43200", "1000000")
    model = cepheid.fit(trips(10_000, happens=0.7, loss=0.2), query, negatives="em")
    low, high = model.loss_intervals["b"]
    assert low < 0.2 < high
    assert high - low < 0.1
    assert loss_of(model, "b") == pytest.approx(0.2, abs=0.04)
    assert loss_of(model, "a") < 0.01  # the shelf lost nothing, and the pool would have said so of the register


def test_it_says_when_the_length_of_trips_does_not_tell() -> None:
    # Thieves take as long as customers.
    events = retail_visits(10_000, loss=0.1, theft=0.1, exit_clock="register", seed=1).events
    with pytest.raises(ModelError, match="does not show whether events of 'b' were lost or never happened"):
        cepheid.fit(events, SHOPLIFTING, negatives="em")


# --- the same history in other forms --------------------------------------------------------------------------------


def test_json_keeps_the_model(tmp_path: Path) -> None:
    model = cepheid.fit(store(8_000, loss=0.1).events, SHOPLIFTING)
    model.save(tmp_path / "store.json")
    assert cepheid.load_model(tmp_path / "store.json") == model


def test_timestamps_and_whole_seconds_give_the_same_model() -> None:
    whole, stamped = (store(8_000, loss=0.1, timestamps=True).events for _ in range(2))
    seconds = pc.divide(pc.cast(whole["ts"], pa.int64()), 1_000_000)
    whole = whole.set_column(0, "ts", seconds)
    stamped = stamped.set_column(0, "ts", pc.multiply(seconds, 1_000_000).cast(pa.timestamp("us", tz="UTC")))
    by_number = cepheid.fit(whole, SHOPLIFTING)
    by_stamp = cepheid.fit(stamped, SHOPLIFTING.replace("43200", "12 hours"))
    assert by_stamp.unit == "seconds"
    assert by_stamp.loss == by_number.loss
    assert by_stamp.happens == by_number.happens
    for name in "bc":
        times = np.linspace(0.0, 43_200.0, 50)
        assert by_stamp.gaps[name].cdf(times) == pytest.approx(by_number.gaps[name].cdf(times), abs=1e-6)


def test_other_kinds_of_tables_give_the_same_model() -> None:
    events = store(4_000, loss=0.1, seed=2).events
    model = cepheid.fit(events, SHOPLIFTING, loss=0.1)
    assert cepheid.fit(events.to_pandas(), SHOPLIFTING, loss=0.1) == model
    shuffled = events.take(np.random.default_rng(1).permutation(len(events)))
    assert cepheid.fit(shuffled, SHOPLIFTING, loss=0.1) == model


ROUTES = [
    ("PATTERN SEQ(R0 v0, R1 v1, R2 v2) WHERE [parcel] WITHIN 7200"),
    ("PATTERN SEQ(R0 v0, !(R1 v1), R2 v2) WHERE [parcel] WITHIN 7200"),
    ("PATTERN SEQ(R0 v0, R1+ v1[], R2 v2) WHERE [parcel] WITHIN 2000"),
    ("PATTERN SEQ(R0 v0, R1 v1, !(R2 v2)) WHERE [parcel] WITHIN 7200"),
]


@given(
    st.sampled_from(ROUTES),
    st.integers(1, 5),
    st.integers(0, 20),
    st.lists(st.integers(0, 3), min_size=60, max_size=60),
)
def test_parts_of_a_history_merge_to_the_whole(query: str, visits: int, seed: int, part_of: list[int]) -> None:
    events = route_visits(60 * visits, readers=3, seed=seed).events
    # Several visits of one parcel, so that trips follow each other.
    parcel = pc.cast(pc.divide(events["parcel"], visits), pa.int64())
    events = events.set_column(2, "parcel", parcel)
    bound = bound_to(cepheid.query(query).syntax, events)
    table = ordered(events, bound.schema)
    whole = gather(bound, table, 0.5)
    span = (int(table.time[0]), int(table.time[-1]))
    merged = History({})
    for part in range(4):
        rows = events.filter(pa.array(np.array(part_of)[parcel.to_numpy()] == part))
        merged = merged.merge(gather(bound, ordered(rows, bound.schema), 0.5, span))
    assert (merged.events, merged.step) == (whole.events, whole.step)
    assert merged.together == whole.together
    assert merged.intervals.keys() == whole.intervals.keys()
    for ends, lengths in whole.intervals.items():
        assert_same(merged.intervals[ends], lengths)
    assert merged.components.keys() == whole.components.keys()
    for name, known in whole.components.items():
        assert_same(merged.components[name], known)


def assert_same(found: Any, expected: Any) -> None:
    """The same counts, and the same sums but for rounding."""
    for field in dataclasses.fields(expected):
        ours, theirs = getattr(found, field.name), getattr(expected, field.name)
        if dataclasses.is_dataclass(theirs):
            assert_same(ours, theirs)
        elif isinstance(theirs, float):
            assert ours == pytest.approx(theirs)
        else:
            assert ours == theirs, field.name


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "rows", "options", "problem"),
    [
        (SHOPLIFTING, 0, {}, "the history is empty"),
        (SHOPLIFTING, 60, {}, "no event of the history could be 'b'"),
        (SHOPLIFTING, 300, {"loss": 0.1}, "too short to estimate the gaps of 'b': 0 of them, at least 20"),
        (SHOPLIFTING.replace(" WITHIN 43200", ""), 9_000, {}, "needs a query with a window of time"),
        (SHOPLIFTING.replace("43200", "5 EVENTS"), 9_000, {}, "needs a query with a window of time"),
        (SHOPLIFTING.replace("Shelf a", "Shelf+ a[]"), 9_000, {}, "shows no loss of any component, so that of 'b'"),
        ("EVENT Shelf a WITHIN 10", 9_000, {}, "shows no loss of any component, so that of 'a'"),
        (SHOPLIFTING.replace("Exit c", "Door c"), 9_000, {}, "no event of the history could be 'c'"),
        (SHOPLIFTING, 9_000, {"negatives": "EM"}, "neither 'pooled' nor 'em'"),
        (SHOPLIFTING, 9_000, {"loss": 1.0}, "outside"),
        (SHOPLIFTING, 9_000, {"loss": {"bb": 0.1}}, "did you mean 'b'"),
    ],
)
def test_what_a_history_cannot_tell_is_a_clear_error(
    query: str, rows: int, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ModelError, match=problem):
        cepheid.fit(store(5_000, loss=0.1).events.slice(0, rows), query, **options)


def test_too_few_proofs_are_a_clear_error_unless_the_loss_is_stated() -> None:
    events = store(3_000, loss=0.1).events  # shorter than the trips: few shelf readings are certain to be missed
    early = events.filter(pc.less(events["ts"], 9_500))
    with pytest.raises(ModelError, match=r"too short to estimate the loss|shows no loss"):
        cepheid.fit(early, SHOPLIFTING)
    assert cepheid.fit(early, SHOPLIFTING, loss=0.1).loss == {"a": 0.1, "b": 0.1, "c": 0.1}


def test_a_reader_that_lost_everything_is_not_estimated() -> None:
    events = pa.table({"ts": [1], "type": ["Shelf"], "tag_id": [1]})
    bound = bound_to(cepheid.query("PATTERN SEQ(Shelf a, Exit c) WHERE [tag_id] WITHIN 10").syntax, events)
    history = gather(bound, ordered(events, bound.schema), 1.0)
    gaps = GapStatistics.from_samples(np.arange(1.0, 41.0))
    lost = dataclasses.replace(history.of("a"), lost_since=GapStatistics.from_samples(np.full(50, 100.0)))
    seen = dataclasses.replace(history.of("c"), gaps=gaps, events=40.0)
    with pytest.raises(ModelError, match="every occurrence of 'a' in the history was lost"):
        learn(bound, History({"a": lost, "c": seen}, 90), Fitting(), resolution=1.0, window=10.0)


# --- are the probabilities honest? ----------------------------------------------------------------------------------


def calibration_error(said: npt.NDArray[np.float64], true: npt.NDArray[np.float64]) -> float:
    """How far reported probabilities are from the share that was true, over ten bins, weighted."""
    place = np.minimum((said * 10).astype(int), 9)
    return float(sum(abs(said[place == b].sum() - true[place == b].sum()) for b in range(10)) / len(said))


@pytest.mark.parametrize("clock", ["shelf", "register"])
def test_probabilities_of_a_fitted_model_are_calibrated(clock: str) -> None:
    to_exit = TO_EXIT if clock == "shelf" else Gap("exponential", 300.0)
    past, live = (store(16_000, loss=0.15, exit_clock=clock, to_exit=to_exit, seed=seed) for seed in (1, 2))
    model = cepheid.fit(past.events, SHOPLIFTING)
    query = SHOPLIFTING + " THRESHOLD 0.01 OUTPUT MAXIMAL"
    found = cepheid.match(live.events, query, model=model, scoring="posterior")
    assert live.truth is not None
    tag = pc.struct_field(found["c"].combine_chunks(), "tag_id").to_numpy()
    stolen = live.truth["stolen"].to_numpy(zero_copy_only=False)[tag].astype(float)
    assert len(stolen) > 2_000
    assert 0.1 < stolen.mean() < 0.9
    assert calibration_error(found["probability"].to_numpy(), stolen) <= 0.03

"""model.check: silent where the model fits, and it names what deviates where it does not."""

from __future__ import annotations

import dataclasses
import warnings
from functools import cache

import pytest

import cepheid
from cepheid.engine.data.table import ordered
from cepheid.engine.fitting.drift import drift_warning
from cepheid.model import Model
from cepheid.plan.physical import Plan
from cepheid.runners.pieces import Piece, found
from cepheid.simulate import stop_visits
from cepheid.simulate.gaps import Gap
from strategies.agreement import bound_to

SLOW_ARRIVALS = Gap("exponential", 30.0)
QUERY = "PATTERN SEQ(S0 v0, S1 v1, S2 v2, S3 v3) WHERE [tag] WITHIN 10800"


def world(tags: int = 8_000, seed: int = 1, **how: object) -> cepheid.simulate.Simulation:
    return stop_visits(tags, **{"loss": 0.15, "bypass": 0.25, "arrivals": SLOW_ARRIVALS, "seed": seed, **how})  # type: ignore[arg-type]


@cache
def fitted() -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cepheid.fit(world(seed=2).events, QUERY)


def test_a_stream_like_the_history_fits() -> None:
    check = fitted().check(world().events, QUERY, time_unit="s")
    assert check.fits
    assert check.worst is None
    assert len(check.comparisons) > 20
    assert "none of them deviates" in str(check)
    assert {row["what"] for row in check.to_rows()} >= {
        "share seen",
        "share seen by hour",
        "gap",
        "trip",
        "trip without",
    }


def test_a_reader_that_loses_more_is_named() -> None:
    check = fitted().check(world(loss=(0.15, 0.15, 0.45, 0.15)).events, QUERY)
    assert check.worst is not None
    assert (check.worst.what, check.worst.component) == ("share seen", "v2")
    assert check.worst.predicted == pytest.approx(0.75 * 0.85, abs=0.03)
    assert check.worst.observed == pytest.approx(0.75 * 0.55, abs=0.03)
    assert "'v2': 4" in str(check)


def test_slower_trips_are_named() -> None:
    check = fitted().check(world(steps=(600.0, 900.0, 600.0)).events, QUERY)
    assert check.worst is not None
    assert {each.component for each in check.comparisons if each.deviates and each.what == "gap"} == {"v2"}


def test_losses_in_the_evening_are_named_with_their_hour() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        events = world(25_000, evening_loss=0.5, loss=0.05, arrivals=Gap("exponential", 10.0)).events
        model = cepheid.fit(events, QUERY)
    check = model.check(events, QUERY, time_unit="s")
    assert check.worst is not None
    assert check.worst.what == "share seen by hour"
    assert check.worst.hour is not None
    assert check.worst.hour >= 17
    by_hour = check.loss_by_hour("v1", 0.75)
    assert by_hour[20] > 0.3 > 0.15 > by_hour[8]


def test_losses_by_the_hour_are_fitted() -> None:
    more = {"evening_loss": 0.5, "loss": 0.05, "arrivals": Gap("exponential", 10.0)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cepheid.fit(world(25_000, **more).events, QUERY, time_unit="s", loss_by_hour=True)
    assert model.hours == (0, 18)
    for name in ("v1", "v2"):
        assert model.loss_of(name, hour=12) == pytest.approx(0.05, abs=0.02)
        assert model.loss_of(name, hour=20) == pytest.approx(0.5, abs=0.04)
    assert model.loss_of("v3", hour=20) > 0.3
    later = world(25_000, 5, **more).events
    assert model.check(later, QUERY, time_unit="s").fits
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cepheid.match(later, QUERY + " THRESHOLD 0.4", model=model, time_unit="s")
    with pytest.raises(cepheid.ModelError, match="time_unit"):
        cepheid.fit(later, QUERY, loss_by_hour=True, happens={"v0": 1.0})
    with pytest.raises(cepheid.ModelError, match="not both"):
        cepheid.fit(later, QUERY, loss_by_hour=True, loss_by="type")


def test_two_speeds_show_in_the_length_of_whole_trips() -> None:
    mixed = world(slow=0.4, slowness=4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cepheid.fit(mixed.events, mixed.query)
    check = model.check(mixed.events, mixed.query)
    assert not check.fits
    assert {each.what for each in check.comparisons if each.deviates} >= {"trip"}


def test_a_stream_that_changed_is_worth_a_warning() -> None:
    for loss, told in ((0.15, None), (0.5, "differs from the data that the model was fitted to")):
        events = world(loss=loss).events
        bound = bound_to(cepheid.query(QUERY).syntax, events)
        found = drift_warning(bound, fitted(), ordered(events, bound.schema))
        assert found is None if told is None else found is not None and told in found


def test_match_warns_of_a_stream_that_changed() -> None:
    model = fitted()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cepheid.match(world().events, QUERY + " THRESHOLD 0.3", model=model)
    with pytest.warns(UserWarning, match="differs from the data that the model was fitted to"):
        cepheid.match(world(loss=0.5).events, QUERY + " THRESHOLD 0.3", model=model)


@pytest.mark.parametrize(("loss", "warned"), [(0.15, []), (0.5, [True])])
def test_a_stream_in_small_batches_is_looked_at_too(loss: float, warned: list[bool]) -> None:
    events = world(16_000, loss=loss).events
    unused = dataclasses.replace(fitted())  # a model that no batch was looked at with
    flow = cepheid.live(QUERY + " THRESHOLD 0.3", events.schema, model=unused)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for begin in range(0, len(events), 4_000):
            flow.send(events.slice(begin, 4_000))
    assert ["differs from the data that the model was fitted to" in str(each.message) for each in told] == warned


def test_workers_of_a_batch_look_too() -> None:
    events = world(loss=0.5).events
    bound = bound_to(cepheid.query(QUERY + " THRESHOLD 0.3").syntax, events)
    plan = Plan(bound, "queues", partition=bound.equivalence, model=dataclasses.replace(fitted(), unit=None))
    with pytest.warns(UserWarning, match="differs from the data that the model was fitted to"):
        found(plan, ordered(events, bound.schema), Piece(events), None)


def test_losses_by_reader() -> None:
    stream = world(loss=(0.15, 0.3, 0.1, 0.15))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cepheid.fit(stream.events, QUERY, loss_by="type")
        with pytest.raises(cepheid.ModelError, match="the query fixes it on no component"):
            cepheid.fit(stream.events, QUERY, loss_by="tag")
    assert isinstance(model.loss, cepheid.ByAttribute)
    assert model.loss.losses["S1"] == pytest.approx(0.3, abs=0.04)
    assert model.loss.losses["S2"] == pytest.approx(0.1, abs=0.04)

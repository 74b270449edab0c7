"""Stops that depend on each other, and losses that come together: the check names them, and the model has them."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
import pytest

import cepheid
from bench.calibration import LEAST, _stops, calibration_error
from cepheid.errors import ModelError
from cepheid.model import Exponential, Gamma, Model, SegmentItem, Uniform, score
from cepheid.model.check import MISSING_TOGETHER, Check
from cepheid.model.dependence import LEFT_OUT_TOGETHER, LOST_TOGETHER, compare_apart, compare_together
from cepheid.model.loss_model import model_from_json, model_to_json
from cepheid.model.posterior import posterior
from cepheid.model.segments import Ends
from cepheid.simulate import Simulation, stop_visits

LEFT_OUT: dict[str, Any] = {"loss": 0.1, "bypass": 0.2, "bypass_again": 0.7}
LOST: dict[str, Any] = {"loss": 0.1, "bypass": 0.2, "bad_trips": 0.2, "bad_loss": 0.6}
KEPT: dict[str, dict[str, Any]] = {
    "route": {"loss": 0.15},
    "bypassed stops": {"loss": 0.2, "bypass": (0.0, 0.3, 0.2, 0.0)},
    "nothing lost": {"loss": 0.0, "bypass": 0.25},
    "five stops": {"loss": 0.2, "bypass": 0.25, "stops": 5},
    "several visits": {"loss": 0.2, "bypass": 0.25, "visits": 3, "steps": 300.0},
    "loss by reader": {"loss": (0.05, 0.35, 0.1, 0.2), "bypass": 0.25, "shape": 3.0},
    "first stop bypassed": {"loss": 0.2, "bypass": (0.2, 0.2, 0.0, 0.0), "steps": (500.0, 700.0, 900.0)},
    "last stop bypassed": {"loss": 0.2, "bypass": (0.0, 0.2, 0.0, 0.3), "steps": (400.0, 800.0, 600.0)},
    "many losses": {
        "stops": 5,
        "loss": 0.4,
        "bypass": (0.0, 0.2, 0.2, 0.1, 0.0),
        "steps": (300.0, 600.0, 900.0, 600.0),
    },
    "left out together": LEFT_OUT,  # the model has that
}


def fitted(world: Simulation) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cepheid.fit(world.events, world.query)


def alarms(how: dict[str, Any], tags: int, seed: int) -> list[bool]:
    """Does a model not fit its own history, or another one of the same world?"""
    model = fitted(stop_visits(tags, seed=2 * seed, **how))
    live = stop_visits(tags, seed=2 * seed + 1, **how)
    return [any("does not fit" in each for each in model.notes), not model.check(live.events, live.query).fits]


@pytest.mark.parametrize("name", ["bypassed stops", "five stops", "left out together"])
def test_nothing_is_said_where_the_assumptions_hold(name: str) -> None:
    assert not any(alarms(KEPT[name], 3_000, 7))


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT)
def test_false_alarms_are_rare(name: str) -> None:
    found = np.array([alarms(KEPT[name], 4_000, seed) for seed in range(500, 520)])
    assert found.mean() <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("how", [LOST, {"loss": 0.05, "bad_trips": 0.3, "bad_loss": 0.3}])
def test_losses_that_come_together_are_found_in_nearly_every_history(how: dict[str, Any]) -> None:
    found = np.array([alarms(how, 4_000, seed) for seed in range(500, 520)])
    assert found.mean() >= 0.9


def independent(model: Model) -> Model:
    return dataclasses.replace(model, histories={})


def deviations(check: Check) -> list[tuple[str, str]]:
    return [(each.component, each.reason) for each in check.comparisons if each.deviates]


def test_stops_that_are_left_out_together_are_named_and_the_model_has_them() -> None:
    past, live = (stop_visits(6_000, seed=seed, **LEFT_OUT) for seed in (3, 4))
    model = fitted(past)
    check = independent(model).check(live.events, live.query)
    assert not check.fits
    assert set(deviations(check)) == {("v2", LEFT_OUT_TOGETHER)}
    assert "'v2': not seen on" in str(check)
    assert "of trips without 'v1'" in str(check)
    # Where none was seen between v0 and v3, nearly always none was there.
    shares = model.histories["v1 v2, v3"]
    assert shares[""] == pytest.approx(0.83, abs=0.15)
    assert shares["v1 v2"] == pytest.approx(0.04, abs=0.03)
    assert model.check(live.events, live.query).fits


def test_losses_that_come_together_are_named() -> None:
    past = stop_visits(5_000, seed=5, **LOST)
    with pytest.warns(cepheid.ModelWarning, match=LOST_TOGETHER):
        model = cepheid.fit(past.events, past.query)
    assert any(LOST_TOGETHER in each for each in model.notes)


def errors(model: Model, live: Simulation) -> dict[int, float]:
    """By how many events are missing, how far what is said is from what is true."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = f"{live.query} THRESHOLD 1e-9 OUTPUT MAXIMAL"
        judged = _stops(live, cepheid.match(live.events, text, model=model, scoring="posterior"))
    kept = judged.said >= LEAST
    said, true, missing = judged.said[kept], judged.true[kept], judged.missing[kept]
    return {count: calibration_error(said[missing == count], true[missing == count])[0] for count in (1, 2, 3)}


@pytest.mark.slow
@pytest.mark.parametrize(("how", "within"), [(LEFT_OUT, {2: 0.03, 3: 0.04}), (LOST, {2: 0.08})])
def test_what_is_said_of_several_missing_stops_is_truer(how: dict[str, Any], within: dict[int, float]) -> None:
    past, live = stop_visits(24_000, seed=1, **how), stop_visits(12_000, seed=2, **how)
    model = fitted(past)
    before, after = errors(independent(model), live), errors(model, live)
    for count, most in within.items():
        assert after[count] < before[count]
        assert after[count] <= most


def test_three_stops_of_which_each_two_are_independent() -> None:
    random = np.random.default_rng(1)
    first, second = random.random(6_000) < 0.5, random.random(6_000) < 0.5
    seen = random.random((3, 6_000)) >= 0.1
    mask = (first & seen[0]) * 1 + (second & seen[1]) * 2 + ((first ^ second) & seen[2]) * 4
    counts = {(-1, int(place)): float((mask == place).sum()) for place in np.unique(mask)}
    found = compare_together(["a", "b", "c"], counts)
    assert [each.others for each in found if each.deviates] == [("a", "b")]
    assert next(each for each in found if each.deviates).component == "c"


def test_what_hours_explain_is_no_dependence() -> None:
    random = np.random.default_rng(2)
    counts: dict[tuple[int, int], float] = {}
    for hour, loss in ((9, 0.1), (20, 0.6)):
        mask = (random.random((3, 4_000)) >= loss).T @ np.array([1, 2, 4])
        counts |= {(hour, int(place)): float((mask == place).sum()) for place in np.unique(mask)}
    assert not any(each.deviates for each in compare_together(["a", "b", "c"], counts))
    assert not any(each.deviates for each in compare_apart(["a", "b", "c"], counts))
    together: dict[tuple[int, int], float] = {}
    for (_, mask), number in counts.items():
        together[-1, mask] = together.get((-1, mask), 0.0) + number
    assert all(each.deviates and each.what == MISSING_TOGETHER for each in compare_together(["a", "b", "c"], together))


# --- the posterior of a gap whose histories are known ---------------------------------------------------------------

B, C, D = Gamma(2.0, 30.0, happens=0.7), Exponential(40.0, happens=0.6), Uniform(5.0, 200.0, outside=0.1)
ITEMS = [SegmentItem("missing", 0.2, B), SegmentItem("missing", 0.3, C)]


def shares(*weights: float) -> tuple[float, ...]:
    return tuple(weight / sum(weights) for weight in weights)


@pytest.mark.parametrize("time", [3.0, 40.0, 150.0, 700.0])
def test_shares_of_independent_stops_give_the_posterior_of_independent_stops(time: float) -> None:
    known = shares(0.3 * 0.4, 0.7 * 0.2 * 0.4, 0.3 * 0.6 * 0.3, 0.7 * 0.2 * 0.6 * 0.3)
    plain = score(ITEMS, time, "posterior", Ends(D))
    assert score(ITEMS, time, "posterior", Ends(D, shares=known)) == pytest.approx(plain, abs=1e-6)
    table = posterior(ITEMS, Ends(D, shares=known), 800.0, 1e-7)
    assert table.fast(np.array([time]))[0] == pytest.approx(plain, abs=1e-5)


def test_shares_decide() -> None:
    assert score(ITEMS, 100.0, "posterior", Ends(D, shares=(0.0, 0.0, 0.0, 1.0))) == pytest.approx(1.0)
    assert score(ITEMS, 100.0, "posterior", Ends(D, shares=(0.5, 0.5, 0.0, 0.0))) == 0.0
    first = SegmentItem("missing", 0.2, Uniform(0.0, 800.0))
    leading = Ends(D, leading=True, shares=(0.0, 0.6, 0.0, 0.1, 0.0, 0.1, 0.0, 0.2))
    assert score([first, *ITEMS], 500.0, "posterior", leading) == pytest.approx(0.2)


@pytest.mark.some(1)
@pytest.mark.parametrize("visits", [15, 40])
def test_engines_and_the_reference_agree_on_histories(visits: int) -> None:
    live = stop_visits(visits, seed=1, **LEFT_OUT)
    gaps = {name: Gamma(2.0, 300.0, happens=share) for name, share in (("v1", 0.9), ("v2", 0.8), ("v3", 1.0))}
    known = {"v1 v2, v3": {"": 0.7, "v1": 0.1, "v2": 0.1, "v1 v2": 0.1}}
    model = Model(loss=0.2, gaps=gaps, happens={"v0": 0.9}, histories=known)
    text = f"{live.query} THRESHOLD 0.01"
    found = {
        engine: sorted(
            cepheid.match(live.events, text, model=model, scoring="posterior", engine=engine)["probability"].to_pylist()
        )
        for engine in ("queues", "reference")
    }
    assert len(found["queues"]) > visits
    assert found["queues"] == pytest.approx(found["reference"], abs=1e-5)


def test_histories_are_kept_shown_and_checked() -> None:
    model = Model(loss=0.1, histories={"b c, d": {"": 0.7, "b c": 0.3}})
    assert model_from_json(model_to_json(model)) == model
    assert model.shares_between(["b", "c"], "d") == (0.7, 0.0, 0.0, 0.3)
    assert model.shares_between(["b"], "d") == ()
    assert str(model).endswith("of b c, where none was seen before d, there happened: none 0.7, b c 0.3")
    for wrong in ({"b c, d": {"": 0.7}}, {"b c, d": {"x": 1.0}}, {"b c, d": {"c b": 1.0}}, {"b c, d": 1}, 3):
        with pytest.raises(ModelError):
            Model(histories=wrong)  # type: ignore[arg-type]

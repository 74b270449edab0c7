"""Forecasts against numbers worked out by hand and against drawn histories."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from cepheid.errors import ModelError
from cepheid.model import (
    Empirical,
    Exponential,
    Gamma,
    GapDistribution,
    LogNormal,
    SegmentItem,
    Uniform,
    Weibull,
)
from cepheid.model.forecast import forecast_table
from cepheid.model.segments import split

Floats = npt.NDArray[np.float64]
WINDOW = 400.0


def awaited(gap: GapDistribution, loss: float = 0.0, goes_on: float = 1.0) -> SegmentItem:
    return SegmentItem("missing", loss, gap, goes_on=goes_on)


def negated(gap: GapDistribution, loss: float = 0.0) -> SegmentItem:
    return SegmentItem("negative", loss, gap)


def chance(items: list[SegmentItem], elapsed: float, remaining: float, seen: bool = False) -> float:
    table = forecast_table(tuple(items), WINDOW, seen)
    return float(table.probability(np.array([elapsed]), np.array([remaining]))[0])


def rises(mean: float, t: float) -> float:
    return 1.0 - math.exp(-t / mean)


def test_one_component_without_loss() -> None:
    for u, end in [(0.0, 50.0), (30.0, 100.0), (99.0, 100.0), (250.0, 400.0)]:
        expected = (rises(60, end) - rises(60, u)) / (1.0 - rises(60, u))
        assert chance([awaited(Exponential(60))], u, end) == pytest.approx(expected, abs=1e-3)


def test_one_component_that_may_never_happen() -> None:
    share, u, end = 0.7, 30.0, 100.0
    expected = share * (rises(60, end) - rises(60, u)) / (1.0 - share * rises(60, u))
    assert chance([awaited(Exponential(60, share))], u, end) == pytest.approx(expected, abs=1e-3)


def test_one_component_that_may_be_lost() -> None:
    loss, u, end = 0.3, 30.0, 100.0
    weight = loss * rises(60, u) + 1.0 - rises(60, u)
    expected = (loss * rises(60, u) + rises(60, end) - rises(60, u)) / weight
    assert chance([awaited(Exponential(60), loss)], u, end) == pytest.approx(expected, abs=1e-3)
    seen = (1.0 - loss) * (rises(60, end) - rises(60, u)) / weight
    assert chance([awaited(Exponential(60), loss)], u, end, seen=True) == pytest.approx(seen, abs=1e-3)


def test_two_components_without_loss() -> None:
    """Two exponential gaps of one mean: given u, the sum of both comes by R as if the clock began at u."""
    left = (100.0 - 30.0) / 60.0
    expected = 1.0 - math.exp(-left) * (1.0 + left)
    assert chance([awaited(Exponential(60)), awaited(Exponential(60))], 30.0, 100.0) == pytest.approx(
        expected, abs=1e-3
    )


def test_two_components_that_may_be_lost() -> None:
    """Exponential gaps of one mean: at u none, one or both have happened unseen."""
    loss, u, end, mean = 0.3, 40.0, 100.0, 60.0
    none = math.exp(-u / mean)
    one = loss * u / mean * math.exp(-u / mean)
    both = loss**2 * (1.0 - math.exp(-u / mean) * (1.0 + u / mean))
    left = (end - u) / mean
    completes = none * (1.0 - math.exp(-left) * (1.0 + left)) + one * (1.0 - math.exp(-left)) + both
    expected = completes / (none + one + both)
    items = [awaited(Exponential(mean), loss), awaited(Exponential(mean), loss)]
    assert chance(items, u, end) == pytest.approx(expected, abs=1e-3)


def test_an_absence_that_lasts() -> None:
    loss, share, u, end = 0.2, 0.5, 40.0, 150.0
    absent = 1.0 - share * rises(100, end)
    unseen = 1.0 - share * rises(100, u) + loss * share * rises(100, u)
    table = forecast_table((negated(Exponential(100, share), loss),), WINDOW)
    found = table.forecast(np.array([u]), np.array([end]))
    assert found.probability[0] == pytest.approx(absent / unseen, abs=1e-3)
    assert found.expected[0] == found.earliest[0] == found.latest[0] == end


def test_a_trip_that_may_have_ended() -> None:
    share, u, end = 0.8, 30.0, 100.0
    expected = share * (rises(60, end) - rises(60, u)) / (share * (1.0 - rises(60, u)) + 1.0 - share)
    assert chance([awaited(Exponential(60), goes_on=share)], u, end) == pytest.approx(expected, abs=1e-3)


def test_when_it_completes() -> None:
    """The completion instant of an exponential gap, given that it lies between u and R."""
    u, end = 30.0, 100.0
    found = forecast_table((awaited(Exponential(60)),), WINDOW).forecast(np.array([u]), np.array([end]))
    for part, instant in ((0.5, found.expected), (0.05, found.earliest), (0.95, found.latest)):
        share = rises(60, u) + part * (rises(60, end) - rises(60, u))
        assert instant[0] == pytest.approx(-60 * math.log(1.0 - share), abs=0.5)


def test_when_a_threshold_is_reached() -> None:
    waiting = forecast_table((awaited(Exponential(60)),), WINDOW)
    at = waiting.reached(np.array([200.0, 50.0]), 0.8)
    assert at[0] == 0.0  # a long window: from the beginning
    assert at[1] == math.inf  # the forecast falls while nothing comes
    lasting = forecast_table((negated(Exponential(100)),), WINDOW)
    (instant,) = lasting.reached(np.array([150.0]), 0.8)
    # exp(-1.5) / exp(-u / 100) = 0.8
    assert instant == pytest.approx(150 + 100 * math.log(0.8), abs=0.5)


def test_what_waits_for_nothing_has_no_forecast() -> None:
    with pytest.raises(ModelError, match="waits for nothing"):
        forecast_table((), WINDOW)


def drawn_gap(gap: GapDistribution, size: int, rng: np.random.Generator) -> Floats:
    share = rng.random(size)
    low, high = np.zeros(size), np.full(size, 1e6)
    for _ in range(50):
        middle = (low + high) / 2
        below = gap.cdf(middle) < share
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(share < gap.happens, high, np.inf)


def by_drawing(items: list[SegmentItem], elapsed: float, remaining: float, size: int = 200_000) -> float:
    """The share of drawn histories that complete, among those of which nothing was seen."""
    rng = np.random.default_rng(7)
    positives, groups = split(items)
    last = np.zeros(size)
    completes, seen = np.ones(size, bool), np.zeros(size, bool)
    absent = [(drawn_gap(each.gap, size, rng), each) for each in groups[0]]
    for item, group in zip(positives, groups[1:], strict=True):
        comes = last + drawn_gap(item.gap, size, rng)
        happens = np.isfinite(comes)
        seen |= happens & (comes <= elapsed) & (rng.random(size) >= item.loss)
        for at, each in absent:
            seen |= (at <= elapsed) & (at < comes) & (rng.random(size) >= each.loss)
            completes &= at >= comes
        completes &= happens
        last = np.where(happens, comes, last)
        absent = [(last + drawn_gap(each.gap, size, rng), each) for each in group]
    for at, each in absent:
        seen |= (at <= elapsed) & (rng.random(size) >= each.loss)
        completes &= at >= remaining
    completes &= last <= remaining
    return float((completes & ~seen).sum() / (~seen).sum())


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("items", "elapsed", "remaining"),
    [
        pytest.param(
            [awaited(LogNormal(3, 1, 0.9), 0.3), awaited(Gamma(3, 20, 0.9), 0.3), awaited(Weibull(2, 50, 0.8), 0.2)],
            80,
            300,
            marks=pytest.mark.slow,
        ),
        ([negated(Exponential(100, 0.5), 0.2), awaited(Gamma(3, 20, 0.9), 0.1)], 40, 150),
        (
            [
                negated(Exponential(100, 0.5)),
                awaited(Gamma(3, 20)),
                negated(Exponential(50), 0.3),
                awaited(Uniform(10, 40)),
            ],
            40,
            150,
        ),
        ([awaited(Exponential(50, 0.9), 0.2), negated(Exponential(200, 0.5), 0.1)], 40, 150),
        ([awaited(Empirical((0, 10, 20, 80), (0.2, 0.5, 0.3), 0.9), 0.2), awaited(Uniform(5, 60), 0.1)], 15, 100),
    ],
)
def test_drawn_histories(items: list[SegmentItem], elapsed: float, remaining: float) -> None:
    assert chance(items, elapsed, remaining) == pytest.approx(by_drawing(items, elapsed, remaining), abs=0.006)

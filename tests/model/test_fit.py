"""Fitting: the right family with the right parameters, from samples or merged statistics, and clear refusals."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.errors import ModelError
from cepheid.model import (
    Empirical,
    Ends,
    Exponential,
    Gamma,
    GapStatistics,
    LogNormal,
    SegmentItem,
    Uniform,
    Weibull,
    check_distribution,
    compare_families,
    estimate_loss,
    fit_from_statistics,
    fit_gap,
    gap_bin,
    score,
)


def draws(name, count=8000, seed=3):
    random = np.random.default_rng(seed)
    return {
        "exponential": lambda: random.exponential(60.0, count),
        "gamma": lambda: random.gamma(3.0, 20.0, count),
        "gamma below one": lambda: random.gamma(0.5, 20.0, count),
        "lognormal": lambda: random.lognormal(3.0, 0.7, count),
        "weibull": lambda: 50.0 * random.weibull(2.5, count),
        "uniform": lambda: random.uniform(10.0, 30.0, count),
    }[name]()


@pytest.mark.parametrize(
    ("name", "truth"),
    [
        ("exponential", Exponential(60)),
        ("gamma", Gamma(3, 20)),
        ("gamma below one", Gamma(0.5, 20)),
        ("lognormal", LogNormal(3, 0.7)),
        ("weibull", Weibull(2.5, 50)),
        ("uniform", Uniform(10, 30)),
    ],
)
def test_the_family_and_its_parameters_are_found(name, truth):
    found = fit_gap(draws(name))
    assert type(found) is type(truth)
    times = np.linspace(1.0, 200.0, 100)
    assert np.abs(found.cdf(times) - truth.cdf(times)).max() < 0.02  # four deviations of 8000 draws
    assert found.happens == 1.0


def test_what_no_family_explains_becomes_a_histogram():
    random = np.random.default_rng(1)
    gaps = np.where(random.random(5000) < 0.5, random.normal(20, 2, 5000), random.normal(200, 10, 5000))
    found = fit_gap(gaps)
    assert isinstance(found, Empirical)
    times = np.linspace(1.0, 250.0, 200)
    share = np.searchsorted(np.sort(gaps), times) / 5000
    assert np.abs(found.cdf(times) - share).max() < 0.05
    assert 0.0 < found.pdf(100.0) < 1e-5  # between the two humps nothing came


@pytest.mark.parametrize("count", [30, 300, 3000])
@pytest.mark.parametrize("kind", ["two humps", "uniform", "one value"])
def test_no_time_is_impossible_because_nothing_was_seen_there(kind, count):
    random = np.random.default_rng(count)
    humps = np.where(random.random(count) < 0.5, random.normal(20, 1, count), random.normal(200, 5, count))
    gaps = {"two humps": humps, "uniform": random.uniform(10, 30, count), "one value": np.full(count, 25.0)}[kind]
    found = fit_gap(gaps, families=() if kind != "uniform" else [Uniform], resolution=0.01)
    check_distribution(found)
    times = np.array([0.5, 5.0, 60.0, 100.0, 150.0, 260.0, 1000.0, 50_000.0])
    assert np.all(found.pdf(times) > 0.0)
    assert np.all(found.survival(times) > 0.0)
    # Each interval without gaps weighs as much as one gap: the next one is as likely to fall between any two.
    beyond = float(found.survival(gaps.max() * 1.05))
    assert 0.5 / count < beyond < 2.0 / count
    stop, visit = Gamma(2.0, 50.0, happens=0.6), SegmentItem("missing", 0.2, found)
    for time in times.tolist():
        assert 0.0 < score([SegmentItem("missing", 0.2, stop)], time, "posterior", Ends(found)) < 1.0 - 0.01 / count
        assert 0.0 < score([visit], time, "exact") < 0.2
        assert 0.0 < score([SegmentItem("negative", 0.2, found)], time, "exact") < 1.0


def test_waits_that_were_longer_than_any_gap_count_beyond_it():
    seen, longer = np.linspace(10.0, 20.0, 50), np.full(50, 100.0)
    found = fit_gap(seen, longer, ())
    assert found.survival(21.0) == pytest.approx(0.5, abs=0.05)
    assert found.happens == 1.0


def test_whole_seconds_do_not_hide_the_family():
    # Gaps on a clock of whole seconds; those that round to zero cannot be seen.
    random = np.random.default_rng(2)
    seconds = random.exponential(5.0, 6000).round()
    found = fit_gap(seconds[seconds > 0], resolution=1.0)
    assert isinstance(found, Exponential)
    assert found.mean == pytest.approx(5.0, rel=0.05)
    assert isinstance(fit_gap(random.integers(3, 9, 3000).astype(float), resolution=1.0), Uniform)


def test_trials_tell_how_often_the_event_happens():
    found = fit_gap(draws("gamma"), trials=10000)
    assert isinstance(found, Gamma)
    assert found.happens == pytest.approx(0.8)


def test_censored_gaps_count_as_longer():
    random = np.random.default_rng(4)
    gaps, cut = random.gamma(3.0, 20.0, 8000), random.exponential(70.0, 8000)
    seen, censored = gaps[gaps < cut], cut[gaps >= cut]
    assert fit_gap(seen).mean < 50.0  # long ones are cut off more often
    for families in [(Gamma,), (Weibull,), ()]:
        found = fit_gap(seen, censored, families)
        assert found.mean == pytest.approx(60.0, rel=0.05)


def test_censored_gaps_and_trials_together():
    random = np.random.default_rng(6)
    happens = random.random(20000) < 0.7
    gaps = np.where(happens, random.gamma(3.0, 20.0, 20000), np.inf)
    cut = random.exponential(150.0, 20000)
    watched_long = cut > 300.0  # long enough to say that it never comes
    seen, censored = gaps[gaps < cut], cut[(gaps >= cut) & ~watched_long]
    found = fit_gap(seen, censored, trials=20000)
    assert isinstance(found, Gamma)
    assert found.happens == pytest.approx(0.7, abs=0.02)
    assert found.mean == pytest.approx(60.0, rel=0.03)
    histogram = fit_gap(seen, censored, (), trials=20000)
    assert histogram.happens == pytest.approx(0.7, abs=0.03)


def test_families_are_listed_best_first():
    fits = compare_families(GapStatistics.from_samples(draws("gamma")))
    assert [type(each.distribution) for each in fits][:2] == [Gamma, Weibull]
    assert [each.aic for each in fits] == sorted(each.aic for each in fits)
    assert {type(each.distribution) for each in fits} == {Exponential, Gamma, LogNormal, Weibull, Uniform, Empirical}


GAP_LISTS = st.lists(st.floats(1e-3, 1e6), max_size=30)


@given(GAP_LISTS, GAP_LISTS, GAP_LISTS)
def test_statistics_merge_to_those_of_everything(first, second, censored):
    merged = GapStatistics.from_samples(first, censored).merge(GapStatistics.from_samples(second, trials=40))
    whole = GapStatistics.from_samples(first + second, censored, trials=len(first) + len(censored) + 40)
    assert (merged.bins, merged.censored, merged.never) == (whole.bins, whole.censored, whole.never)
    assert (merged.smallest, merged.largest, merged.count) == (whole.smallest, whole.largest, whole.count)
    for name in ("total", "total_square", "total_log", "total_log_square"):
        assert getattr(merged, name) == pytest.approx(getattr(whole, name), rel=1e-9, abs=1e-9)


def test_merged_statistics_fit_alike():
    gaps = draws("gamma")
    parts = [GapStatistics.from_samples(part) for part in np.array_split(gaps, 7)]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merge(part)
    whole = fit_gap(gaps)
    assert fit_from_statistics(merged).mean == pytest.approx(whole.mean, rel=1e-3)


@given(st.floats(1e-6, 1e9))
def test_bins_hold_their_gaps(gap):
    low, high = 2 ** (gap_bin(gap)[0] / 16), 2 ** ((gap_bin(gap)[0] + 1) / 16)
    assert low * (1 - 1e-12) <= gap <= high * (1 + 1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fit_gap([3.0] * 7, component="y"), "too short to estimate the gaps of 'y': 7 of them, at least 20"),
        (lambda: fit_gap([1.0, 0.0]), "gaps are positive"),
        (lambda: fit_gap([1.0, math.nan]), "gap of nan"),
        (lambda: fit_gap([[1.0, 2.0]]), "list of numbers"),
        (lambda: fit_gap(np.ones(30), trials=29), "29 trials cannot have had 30 gaps"),
        (lambda: fit_gap(np.ones(30), families=[Empirical]), "cannot fit 'Empirical'"),
        (lambda: GapStatistics.from_samples([1.0], weights=[-1.0]), "weights"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ModelError, match=message):
        make()


# Loss from proven losses.


@pytest.mark.parametrize(("loss", "seed"), [(0.05, 1), (0.3, 2), (0.0, 3)])
def test_the_interval_covers_the_loss_as_often_as_it_says(loss, seed):
    random = np.random.default_rng(seed)
    lost = random.binomial(200, loss, 400)
    estimates = [estimate_loss(200 - each, each) for each in lost]
    covered = sum(each.low <= loss <= each.high for each in estimates)
    assert covered >= 0.91 * 400
    assert estimates[0].loss == lost[0] / 200


def test_thin_or_impossible_counts():
    with pytest.raises(ModelError, match=r"too short to estimate the loss of 'y': 12 occurrences"):
        estimate_loss(10, 2, component="y")
    with pytest.raises(ModelError, match="every occurrence of 'y'"):
        estimate_loss(0, 100, component="y")
    with pytest.raises(ModelError, match="cannot be"):
        estimate_loss(-1, 100)
    with pytest.raises(ModelError, match="confidence"):
        estimate_loss(100, 1, confidence=95)
    assert estimate_loss(100, 0).low == 0.0
    assert 0.03 < estimate_loss(100, 0).high < 0.04


def test_a_warning_names_the_line_that_called() -> None:
    query = "PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag] WITHIN 12 hours"
    with pytest.warns(cepheid.ModelWarning, match="does not fit") as caught:
        cepheid.fit(cepheid.examples.shoplifting(), query)
    assert caught[0].filename == __file__

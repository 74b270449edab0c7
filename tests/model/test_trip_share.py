"""The share of trips with their middle seen, by length: taken only where waits for the middle do not explain it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.model import Exponential, Gamma, GapStatistics, share_by_length


def trips(there, lengths):
    """Statistics of trips with and without the middle."""
    return GapStatistics.from_samples(lengths[there]), GapStatistics.from_samples(lengths[~there])


def test_an_end_that_comes_when_it_likes_leaves_the_waits_to_tell():
    random = np.random.default_rng(1)
    lengths, waits = random.gamma(2.0, 50.0, 20_000), random.exponential(40.0, 20_000)
    assert share_by_length(*trips(waits < lengths, lengths), Exponential(mean=40)) is None


def test_an_end_that_waits_for_the_middle_does_not():
    random = np.random.default_rng(1)
    before, after = random.gamma(2.0, 50.0, 20_000), random.exponential(10.0, 20_000)
    found = share_by_length(*trips(random.random(20_000) < 0.7, before + after), Gamma(2.0, 50.0, happens=0.7))
    assert found is not None
    assert found.cdf([10.0, 50.0, 100.0, 400.0]) == pytest.approx(0.7, abs=0.03)
    assert found.happens == pytest.approx(0.7, abs=0.03)


def test_shares_that_rise_with_the_length_are_followed():
    random = np.random.default_rng(2)
    lengths = random.uniform(0.0, 100.0, 40_000)
    found = share_by_length(*trips(random.random(40_000) < 0.2 + lengths / 200, lengths), Exponential(mean=5))
    assert found is not None
    times = np.array([10.0, 50.0, 90.0])
    assert found.cdf(times) == pytest.approx(0.2 + times / 200, abs=0.04)


@given(st.lists(st.tuples(st.booleans(), st.floats(0.01, 1e4)), max_size=60))
def test_it_is_a_distribution_or_nothing(seen):
    there, lengths = np.array([each[0] for each in seen], bool), np.array([each[1] for each in seen])
    found = share_by_length(*trips(there, lengths), Exponential(mean=1e-3, happens=1e-6))
    assert (found is None) == (not there.any()) or found is None
    if found is not None:
        assert 0.0 < found.happens <= 1.0
        assert np.all(np.diff(found.cdf(np.geomspace(1e-3, 1e5, 50))) >= 0.0)

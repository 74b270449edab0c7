"""Gap distributions: density and cdf agree, scipy agrees, JSON keeps them, nonsense is refused."""

import itertools
import json
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from cepheid.errors import ModelError
from cepheid.model import (
    Empirical,
    Exponential,
    Gamma,
    GapDistribution,
    LogNormal,
    Model,
    Uniform,
    Weibull,
    check_distribution,
    distribution_from_json,
    distribution_to_json,
    load_model,
    register_distribution,
)

HISTOGRAM = Empirical((1.0, 2.0, 5.0, 9.0), (0.2, 0.0, 0.8), 0.9)
EACH = [
    (Exponential(3.0, 0.7), stats.expon(scale=3.0)),
    (Gamma(2.5, 4.0, 0.7), stats.gamma(2.5, scale=4.0)),
    (Gamma(0.4, 4.0), stats.gamma(0.4, scale=4.0)),
    (LogNormal(1.0, 0.8, 0.7), stats.lognorm(0.8, scale=math.e)),
    (Weibull(1.7, 5.0, 0.7), stats.weibull_min(1.7, scale=5.0)),
    (Weibull(0.6, 5.0), stats.weibull_min(0.6, scale=5.0)),
    (Uniform(2.0, 7.0, 0.7), stats.uniform(2.0, 5.0)),
    (HISTOGRAM, stats.rv_histogram((np.array([0.2, 0.0, 0.8]), np.array([1.0, 2.0, 5.0, 9.0])), density=False)),
    (Uniform(2.0, 7.0, 0.7, outside=0.2), None),
    (Uniform(0.0, 7.0, outside=0.2), None),
    (Empirical((0.0, 2.0, 5.0), (0.3, 0.7), 0.9, tail=0.2), None),
]
IDS = [str(gap)[:30] for gap, _ in EACH]
TIMES = np.array([-1.0, 0.1, 0.5, 1.5, 2.5, 4.0, 6.9, 8.0, 12.0, 50.0])


@pytest.mark.parametrize(("gap", "scipys"), [each for each in EACH if each[1] is not None])
def test_they_are_what_scipy_says(gap, scipys):
    p = gap.happens
    np.testing.assert_allclose(gap.pdf(TIMES), p * scipys.pdf(TIMES), rtol=1e-12)
    np.testing.assert_allclose(gap.cdf(TIMES), p * scipys.cdf(TIMES), rtol=1e-12)
    np.testing.assert_allclose(gap.survival(TIMES), 1 - p + p * scipys.sf(TIMES), rtol=1e-12)
    assert gap.mean == pytest.approx(scipys.mean(), rel=1e-9)
    assert gap.cdf(math.inf) == pytest.approx(p)


@pytest.mark.parametrize("gap", [gap for gap, _ in EACH], ids=IDS)
def test_density_integrates_to_the_cdf(gap):
    cuts = sorted({0.05, 11.0, *(k for k in gap.kinks() if 0.05 < k < 11.0)})
    total = sum(integrate.quad(gap.pdf, a, b)[0] for a, b in itertools.pairwise(cuts))
    assert total == pytest.approx(float(gap.cdf(11.0) - gap.cdf(0.05)), abs=1e-8)
    check_distribution(gap)


@pytest.mark.parametrize("gap", [gap for gap, _ in EACH], ids=IDS)
def test_arrays_keep_their_shape_and_far_tails_their_digits(gap):
    assert gap.pdf(TIMES.reshape(2, 5)).shape == (2, 5)
    assert gap.cdf(3.0).shape == ()
    assert np.all(np.isfinite(gap.survival(1e9)))
    assert Exponential(1.0).survival(100.0) == pytest.approx(math.exp(-100.0), rel=1e-12)


@pytest.mark.parametrize("gap", [gap for gap, _ in EACH], ids=IDS)
def test_json_round_trip(gap):
    again = distribution_from_json(json.loads(json.dumps(distribution_to_json(gap))))
    assert again == gap
    assert hash(again) == hash(gap)


positive = st.floats(0.05, 1e6)
probability = st.floats(0.0, 1.0)


@given(
    st.one_of(
        st.builds(Exponential, positive, probability),
        st.builds(Gamma, positive, positive, probability),
        st.builds(LogNormal, st.floats(-10, 10), st.floats(0.01, 5), probability),
        st.builds(Weibull, st.floats(0.05, 100), positive, probability),
    ),
    st.lists(st.floats(0.0, 1e9), min_size=2, max_size=20),
)
def test_cdf_rises_from_zero_to_happens(gap, times):
    values = gap.cdf(np.sort(times))
    assert np.all(np.diff(values) >= 0.0)
    assert np.all((values >= 0.0) & (values <= gap.happens))
    assert gap.cdf(0.0) == 0.0
    np.testing.assert_allclose(gap.survival(times), 1.0 - gap.cdf(times), atol=1e-12)
    assert np.all(gap.pdf(np.array(times)[np.array(times) > 0]) >= 0.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Exponential(0.0), "mean=0 must be greater than 0"),
        (lambda: Exponential(-1.0), "greater than 0"),
        (lambda: Exponential(math.nan), "not finite"),
        (lambda: Exponential("soon"), "is not a number"),
        (lambda: Exponential(1.0, happens=1.5), r"happens=1.5 .* \[0, 1\]"),
        (lambda: Gamma(1.0, 0.0), "scale=0"),
        (lambda: Gamma(0.001, 1.0), "below 0.05"),
        (lambda: Weibull(0.0, 1.0), "below 0.05"),
        (lambda: LogNormal(0.0, 0.0), "sigma=0"),
        (lambda: Uniform(5.0, 5.0), "0 <= low < high"),
        (lambda: Uniform(-1.0, 5.0), "0 <= low < high"),
        (lambda: Empirical((0, 1, 2), (0.5,)), "n \\+ 1 edges"),
        (lambda: Empirical((0,), ()), "at least one bin"),
        (lambda: Empirical((0, 1), (1.0,), tail=1.0), "tail=1 is not a share"),
        (lambda: Uniform(0, 1, outside=-0.1), "outside=-0.1 is not a share"),
        (lambda: Empirical((0, 2, 1), (0.5, 0.5)), "rise strictly"),
        (lambda: Empirical((0, 1, 2), (1.5, -0.5)), "negative density"),
        (lambda: Empirical((0, 1, 2), (0.5, 0.4)), "not normalised, the masses sum to 0.9"),
        (lambda: distribution_from_json({"type": "Exponentail", "mean": 1}), "did you mean 'Exponential'"),
        (lambda: distribution_from_json({"type": "Exponential"}), "mean"),
        (lambda: distribution_from_json({"type": "Exponential", "mean": 1, "rate": 2}), "rate"),
        (lambda: distribution_from_json([1]), "is not a gap distribution"),
        (lambda: register_distribution(int), "is not a gap distribution"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ModelError, match=message):
        make()


@dataclass(frozen=True)
class Ramp(GapDistribution):
    """A user's own: density falling from 2/high to 0, times `factor` to break it, plus `offset`."""

    high: float
    factor: float = 1.0
    offset: float = 0.0
    happens: float = 1.0

    @property
    def mean(self):
        return self.high / 3

    def pdf(self, t):
        t = np.asarray(t, dtype=float)
        inside = (t >= 0) & (t <= self.high)
        return np.where(inside, self.factor * 2 * (1 - t / self.high) / self.high + self.offset, 0) * self.happens

    def cdf(self, t):
        return (1 - (1 - np.clip(t, 0, self.high) / self.high) ** 2) * self.happens

    def kinks(self):
        return (self.high,)


@pytest.fixture
def ramp():
    return register_distribution(Ramp)


def test_a_users_distribution_is_saved_and_loaded(ramp, tmp_path):
    model = Model(loss=0.1, gaps={"y": ramp(30, happens=0.8)})
    model.save(tmp_path / "model.json")
    assert load_model(tmp_path / "model.json") == model


def test_a_users_wrong_density_is_refused(ramp):
    with pytest.raises(ModelError, match="pdf and cdf disagree"):
        Model(gaps={"y": ramp(30, factor=1.2)})
    with pytest.raises(ModelError, match="negative"):
        Model(gaps={"y": ramp(30, offset=-0.01)})


@dataclass(frozen=True)
class Unnormalised(Exponential):
    """An exponential that forgets to come half of the time without saying so."""

    def pdf(self, t):
        return 0.5 * super().pdf(t)

    def cdf(self, t):
        return 0.5 * super().cdf(t)


def test_a_users_unnormalised_density_is_refused():
    with pytest.raises(ModelError, match=r"not normalised, the cdf reaches 0\.5"):
        Model(gaps={"y": Unnormalised(30)})
    with pytest.raises(ModelError, match="not registered"):
        distribution_to_json(Unnormalised(30))
    with pytest.raises(ModelError, match="already registered"):
        register_distribution(dataclass(frozen=True)(type("Gamma", (Exponential,), {"__module__": "elsewhere"})))

"""The gap distributions that come with the package: exponential, gamma, lognormal, Weibull, uniform, histogram."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from cepheid.errors import ModelError
from cepheid.model.gap import Floats, GapDistribution, register_distribution

# Below this a gamma or Weibull density puts percents of its mass into times no clock can tell from zero.
SMALLEST_SHAPE = 0.05
# How far probabilities that should sum to one may be off (they are often typed or printed with six digits).
NORMALISED_WITHIN = 1e-6
# Beyond the last edge L, the share that is left at t is (L / t) to this power: heavy, and with a variance.
TAIL_POWER = 3.0


@register_distribution
@dataclass(frozen=True)
class Exponential(GapDistribution):
    """No memory: the event is equally likely at every moment. `mean` is the mean gap."""

    mean: float
    happens: float = 1.0

    def validate(self) -> None:
        _require_positive(self, "mean")

    def pdf(self, t: ArrayLike) -> Floats:
        x = _times(t) / self.mean
        return np.where(x >= 0.0, self.happens * np.exp(-np.maximum(x, 0.0)) / self.mean, 0.0)

    def cdf(self, t: ArrayLike) -> Floats:
        return -self.happens * np.expm1(-np.maximum(_times(t), 0.0) / self.mean)

    def survival(self, t: ArrayLike) -> Floats:
        return _defective(self.happens, np.exp(-np.maximum(_times(t), 0.0) / self.mean))


@register_distribution
@dataclass(frozen=True)
class Gamma(GapDistribution):
    """A gap made of `shape` exponential stages of mean `scale`; shape need not be whole."""

    shape: float
    scale: float
    happens: float = 1.0

    def validate(self) -> None:
        _require_positive(self, "scale")
        _require_shape(self)

    @property
    def mean(self) -> float:
        return self.shape * self.scale

    def pdf(self, t: ArrayLike) -> Floats:
        x = _times(t) / self.scale
        positive = np.maximum(x, 0.0)
        with np.errstate(divide="ignore", over="ignore"):
            log_density = special.xlogy(self.shape - 1.0, positive) - positive - special.gammaln(self.shape)
            return np.where(x >= 0.0, _scaled(self.happens / self.scale, np.exp(log_density)), 0.0)

    def cdf(self, t: ArrayLike) -> Floats:
        return np.asarray(self.happens * special.gammainc(self.shape, np.maximum(_times(t), 0.0) / self.scale))

    def survival(self, t: ArrayLike) -> Floats:
        return _defective(self.happens, special.gammaincc(self.shape, np.maximum(_times(t), 0.0) / self.scale))


@register_distribution
@dataclass(frozen=True)
class LogNormal(GapDistribution):
    """The logarithm of the gap is normal with mean `mu` and deviation `sigma`: long tails."""

    mu: float
    sigma: float
    happens: float = 1.0

    def validate(self) -> None:
        _require_positive(self, "sigma")
        if not math.isfinite(self.mu):
            raise ModelError(f"LogNormal: mu={self.mu:g} is not finite")

    @property
    def mean(self) -> float:
        return math.exp(self.mu + self.sigma**2 / 2)

    def pdf(self, t: ArrayLike) -> Floats:
        x = _times(t)
        safe = np.where(x > 0.0, x, 1.0)
        log_t = np.log(safe)
        z = (log_t - self.mu) / self.sigma
        density = np.exp(-0.5 * z * z - log_t) / (self.sigma * math.sqrt(2 * math.pi))
        return np.where(x > 0.0, self.happens * density, 0.0)

    def cdf(self, t: ArrayLike) -> Floats:
        return np.asarray(self.happens * special.ndtr(self._standard(t)))

    def survival(self, t: ArrayLike) -> Floats:
        return _defective(self.happens, special.ndtr(-self._standard(t)))

    def _standard(self, t: ArrayLike) -> Floats:
        x = _times(t)
        positive = x > 0.0
        return np.where(positive, (np.log(np.where(positive, x, 1.0)) - self.mu) / self.sigma, -np.inf)


@register_distribution
@dataclass(frozen=True)
class Weibull(GapDistribution):
    """Survival exp(-(t/scale)^shape): shape > 1 when the event becomes more pressing with time."""

    shape: float
    scale: float
    happens: float = 1.0

    def validate(self) -> None:
        _require_positive(self, "scale")
        _require_shape(self)

    @property
    def mean(self) -> float:
        return float(self.scale * special.gamma(1.0 + 1.0 / self.shape))

    def pdf(self, t: ArrayLike) -> Floats:
        x = _times(t) / self.scale
        positive = np.maximum(x, 0.0)
        with np.errstate(divide="ignore", over="ignore"):
            log_density = special.xlogy(self.shape - 1.0, positive) - positive**self.shape
            return np.where(x >= 0.0, _scaled(self.happens * self.shape / self.scale, np.exp(log_density)), 0.0)

    def cdf(self, t: ArrayLike) -> Floats:
        return -self.happens * np.expm1(-self._hazard(t))

    def survival(self, t: ArrayLike) -> Floats:
        return _defective(self.happens, np.exp(-self._hazard(t)))

    def _hazard(self, t: ArrayLike) -> Floats:
        with np.errstate(over="ignore"):  # an infinite hazard is right: the event has come
            return np.asarray((np.maximum(_times(t), 0.0) / self.scale) ** self.shape)


@register_distribution
@dataclass(frozen=True)
class Uniform(GapDistribution):
    """Any time between `low` and `high` after the last positive component, all alike.

    `outside` is the share of gaps that are shorter or longer: what a fit leaves for those that it has not seen.
    """

    low: float
    high: float
    happens: float = 1.0
    outside: float = 0.0

    def validate(self) -> None:
        if not (0.0 <= self.low < self.high and math.isfinite(self.high)):
            raise ModelError(f"Uniform: no interval [{self.low:g}, {self.high:g}]", hint="it needs 0 <= low < high")
        _require_share(self, "outside")

    @property
    def mean(self) -> float:
        return (self.low + self.high) / 2 if self.outside == 0.0 else self._bins.mean

    def pdf(self, t: ArrayLike) -> Floats:
        return self._bins.pdf(t)

    def cdf(self, t: ArrayLike) -> Floats:
        return self._bins.cdf(t)

    def survival(self, t: ArrayLike) -> Floats:
        return self._bins.survival(t)

    def kinks(self) -> tuple[float, ...]:
        return (self.low, self.high)

    @cached_property
    def _bins(self) -> Empirical:
        """The same as a histogram: what lies outside is half below and half above, if there is room below."""
        if self.outside == 0.0 or self.low == 0.0:
            return Empirical((self.low, self.high), (1.0,), self.happens, self.outside)
        share = self.outside / 2.0 / (1.0 - self.outside / 2.0)
        return Empirical((0.0, self.low, self.high), (share, 1.0 - share), self.happens, self.outside / 2.0)


@register_distribution
@dataclass(frozen=True)
class Empirical(GapDistribution):
    """A histogram: `masses[i]` is the share of gaps in [edges[i], edges[i+1]), spread evenly over it.

    `tail` is the share of gaps beyond the last edge; the masses are shares of the others. Of these, (L / t)³ are longer
    than t, where L is the last edge.
    """

    edges: tuple[float, ...]
    masses: tuple[float, ...]
    happens: float = 1.0
    tail: float = 0.0

    def validate(self) -> None:
        if len(self.masses) < 1 or len(self.edges) != len(self.masses) + 1:
            raise ModelError(
                f"Empirical: {len(self.edges)} edges and {len(self.masses)} masses",
                hint="n masses need n + 1 edges, at least one bin",
            )
        if not (self.edges[0] >= 0.0 and all(a < b for a, b in zip(self.edges, self.edges[1:], strict=False))):
            raise ModelError("Empirical: the edges must be at least 0 and rise strictly")
        if any(mass < 0.0 for mass in self.masses):
            raise ModelError(f"Empirical: negative density, a mass of {min(self.masses):g}")
        if abs(math.fsum(self.masses) - 1.0) > NORMALISED_WITHIN:
            raise ModelError(
                f"Empirical: not normalised, the masses sum to {math.fsum(self.masses):.6g}",
                hint="divide by their sum; use `happens` for events that may never come",
            )
        _require_share(self, "tail")

    @property
    def mean(self) -> float:
        edges, masses = np.array(self.edges), np.array(self.masses)
        inside = float(((edges[:-1] + edges[1:]) / 2 * masses).sum() / masses.sum())
        return (1.0 - self.tail) * inside + self.tail * TAIL_POWER / (TAIL_POWER - 1.0) * self.edges[-1]

    def pdf(self, t: ArrayLike) -> Floats:
        x = _times(t)
        edges, masses = np.array(self.edges), np.array(self.masses)
        densities = np.concatenate([[0.0], (1.0 - self.tail) * masses / masses.sum() / np.diff(edges), [0.0]])
        place = np.searchsorted(edges, x, side="right")
        place = np.where(x == edges[-1], len(masses), place)  # the last bin is closed, as in numpy's histograms
        beyond = np.maximum(x, edges[-1])
        tail = np.where(x > edges[-1], self.tail * TAIL_POWER / beyond * (edges[-1] / beyond) ** TAIL_POWER, 0.0)
        return np.asarray(self.happens * (densities[place] + tail))

    def cdf(self, t: ArrayLike) -> Floats:
        cumulative = np.concatenate([[0.0], np.cumsum(self.masses)])
        x = _times(t)
        inside = (1.0 - self.tail) * np.interp(x, self.edges, cumulative / cumulative[-1])
        return np.asarray(self.happens * (inside + self.tail * (1.0 - self._left(x))))

    def survival(self, t: ArrayLike) -> Floats:
        remaining = np.concatenate([np.cumsum(self.masses[::-1])[::-1], [0.0]])
        x = _times(t)
        inside = (1.0 - self.tail) * np.interp(x, self.edges, remaining / remaining[0])
        return _defective(self.happens, inside + self.tail * self._left(x))

    def _left(self, x: Floats) -> Floats:
        """Of the gaps beyond the last edge, the share that is longer than x."""
        return np.asarray((self.edges[-1] / np.maximum(x, self.edges[-1])) ** TAIL_POWER)

    def kinks(self) -> tuple[float, ...]:
        return self.edges


def is_built_in(gap: GapDistribution) -> bool:
    """Whether the class is one of this module, whose densities need no numerical check."""
    return type(gap).__module__ == __name__


def _times(t: ArrayLike) -> Floats:
    return np.asarray(t, dtype=np.float64)


def _scaled(factor: float, density: Floats) -> Floats:
    """factor * density, where nothing times an infinite density is nothing."""
    return np.asarray(factor * density) if factor > 0.0 else np.zeros_like(density)


def _defective(happens: float, survival: Floats) -> Floats:
    """1 - happens + happens * survival, without losing the digits of a small survival when happens = 1."""
    return np.asarray((1.0 - happens) + happens * survival)


def _require_positive(owner: GapDistribution, name: str) -> None:
    value = getattr(owner, name)
    if not value > 0.0:
        raise ModelError(f"{type(owner).__name__}: {name}={value:g} must be greater than 0")


def _require_share(owner: GapDistribution, name: str) -> None:
    value = getattr(owner, name)
    if not 0.0 <= value < 1.0:
        raise ModelError(f"{type(owner).__name__}: {name}={value:g} is not a share", hint="it must lie in [0, 1)")


def _require_shape(owner: Gamma | Weibull) -> None:
    if owner.shape < SMALLEST_SHAPE:
        raise ModelError(
            f"{type(owner).__name__}: shape={owner.shape:g} is below {SMALLEST_SHAPE:g}",
            hint="such a gap is nearly always zero: drop the component or use `happens`",
        )

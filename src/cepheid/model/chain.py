"""How is the integral over the unknown times of missing events solved? One convolution per missing event.

The score (docs/semantics.md) integrates over 0 < s1 < ... < sk < T. Each factor depends on one gap s(q+1) - s(q), so
the k-fold integral is a chain, solved from the last gap to the first:

    rest_k(t) = end(t)
    rest_q(t) = local_q(t) + weight * ∫ density(s) rest_(q+1)(t - s) ds
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cepheid.model.convolution import convolve
from cepheid.model.gap import Floats, GapDistribution
from cepheid.model.piecewise import Function, Piecewise, resolve, seed_breaks

# Where a gap's probability mass lies, as shares of `happens`.
QUANTILES = (1e-8, 1e-3, 0.1, 0.5, 0.9, 0.999, 1.0 - 1e-8)
# scale(q, points, values): what errors of level q are measured against, at the given points.
Scale = Callable[[int, Floats, Floats], Floats]

_MOST_SUMS = 120
_DENSITY_PRECISION = 1e-10


@dataclass(frozen=True)
class Landmarks:
    """Where a function on [0, W] is not smooth (`kinks`) and where it changes at all (`features`)."""

    kinks: frozenset[float] = frozenset()
    features: frozenset[float] = frozenset()

    def __or__(self, other: Landmarks) -> Landmarks:
        return Landmarks(self.kinks | other.kinks, self.features | other.features)


@dataclass(frozen=True)
class ChainStep:
    """One missing event: its density times what must not happen before it, and its loss as weight."""

    density: Function
    weight: float
    landmarks: Landmarks
    local: Function | None = None


@dataclass(frozen=True)
class Chain:
    """The steps from the first missing event to the last, and the factor of the gap after the last."""

    steps: tuple[ChainStep, ...]
    end: Function
    end_landmarks: Landmarks


@dataclass(frozen=True)
class SolvedChain:
    """`levels[q]` is rest_q on [0, W]; `at` computes rest_0 directly, without its polynomials."""

    levels: tuple[Piecewise, ...]
    at: Function
    error: float


def landmarks_of(gap: GapDistribution, window: float, shares: Sequence[float] = QUANTILES) -> Landmarks:
    """The kinks and quantiles of a gap that lie in the window."""
    kinks = frozenset(k for k in gap.kinks() if 0.0 < k < window)
    return Landmarks(kinks, frozenset(quantiles(gap, shares, window)))


def quantiles(gap: GapDistribution, shares: Sequence[float], window: float) -> tuple[float, ...]:
    """The times in (0, window) by which the given shares of `happens` have come, by bisection on log t."""
    targets = np.array(shares) * gap.happens
    low, high = np.full(len(targets), np.log(window) - 650.0), np.full(len(targets), np.log(window))
    low = np.maximum(low, -700.0)
    inside = (gap.cdf(np.exp(high)) > targets) & (gap.cdf(np.exp(low)) < targets)
    for _ in range(40):
        middle = (low + high) / 2.0
        below = gap.cdf(np.exp(middle)) < targets
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return tuple(float(t) for t in np.exp(high[inside]))


def solve(chain: Chain, window: float, tolerance: float, scale: Scale | None = None) -> SolvedChain:
    """All levels of the chain on [0, window], each within `tolerance` of the truth, times its scale if one is given.

    (An error in one level passes to the next with weight * cdf <= 1, so errors add up over levels.)
    """
    landmarks = chain.end_landmarks
    level = _resolve_level(len(chain.steps), chain.end, landmarks, window, tolerance, scale)
    levels, function = [level], chain.end
    for q in range(len(chain.steps) - 1, -1, -1):
        step = chain.steps[q]
        function = _level_function(step, level, window, tolerance, exacting=scale is not None)
        landmarks = sum_landmarks(step.landmarks, landmarks, window)
        level = _resolve_level(q, function, landmarks, window, tolerance, scale)
        levels.append(level)
    error = sum(each.error for each in levels) + len(levels) * tolerance
    return SolvedChain(tuple(reversed(levels)), function, error)


def solve_at(chain: Chain, t: float, tolerance: float) -> float:
    """rest_0(t) for one t, without the polynomials of the first level."""
    if not chain.steps:
        return float(chain.end(np.array([t]))[0])
    rest = solve(Chain(chain.steps[1:], chain.end, chain.end_landmarks), t, tolerance).levels[0]
    return float(_level_function(chain.steps[0], rest, t, tolerance, exacting=False)(np.array([t]))[0])


def _resolve_level(
    q: int, function: Function, landmarks: Landmarks, window: float, tolerance: float, scale: Scale | None
) -> Piecewise:
    def allowed(points: Floats, values: Floats, widths: Floats) -> Floats:
        if scale is None:
            return np.full(len(points), tolerance)
        return np.asarray(tolerance * scale(q, points, values).min(axis=1))

    return resolve(function, seed_breaks(landmarks.kinks, landmarks.features, window), allowed)


def _level_function(step: ChainStep, rest: Piecewise, window: float, tolerance: float, exacting: bool) -> Function:
    breaks = density_breaks(step, window, tolerance * (1e-9 if exacting else 1e-4))

    def value(t: Floats) -> Floats:
        integral = step.weight * convolve(step.density, breaks, rest, t)
        return integral if step.local is None else step.local(t) + integral

    return value


def density_breaks(step: ChainStep, window: float, mass: float) -> Floats:
    """Panels on which the density is smooth enough to integrate, up to errors of `mass` in each."""

    def allowed(points: Floats, values: Floats, widths: Floats) -> Floats:
        return np.asarray(np.maximum(_DENSITY_PRECISION * np.abs(values).max(axis=1), mass / widths))

    return resolve(step.density, seed_breaks(step.landmarks.kinks, step.landmarks.features, window), allowed).breaks


def sum_landmarks(first: Landmarks, second: Landmarks, window: float) -> Landmarks:
    """Landmarks of a convolution: those of both functions, and their sums."""
    kinks = first.kinks | second.kinks
    sums = _sums(first.kinks, second.kinks, window)
    # Kinks soften with every convolution: with many of them the weaker ones are left to the halving of panels.
    if len(kinks) + len(sums) <= _MOST_SUMS:
        kinks |= sums
    features = first.features | second.features
    return Landmarks(kinks, features | _sums(_thin(first.features), _thin(features), window))


def _sums(first: frozenset[float], second: frozenset[float], window: float) -> frozenset[float]:
    return frozenset(total for a in first for b in second if (total := a + b) < window)


def _thin(features: frozenset[float], most: int = 6) -> frozenset[float]:
    ordered = sorted(features)
    picks = np.linspace(0, len(ordered) - 1, min(most, len(ordered))).round().astype(int)
    return frozenset(ordered[i] for i in picks)

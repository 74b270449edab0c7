"""How far is an estimate off because the gaps it rests on are estimates, too?

The share of unseen middles that were lost is read off the lengths of trips, against the lengths that the fitted gaps
predict. If the gaps are a little off, so is the share: by the derivative of the one with respect to the other, times
how far the gaps' parameters may be off given how many middles were seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cepheid.model.distributions import Empirical
from cepheid.model.fit import decode_gap, encode_gap
from cepheid.model.gap import Floats, GapDistribution
from cepheid.model.gap_statistics import Trips, bin_edges

_CELLS = 4096
_STEP = 1e-4
_DRAWS = 24


def sum_cdf(first: GapDistribution, second: GapDistribution, times: Floats, *more: GapDistribution) -> Floats:
    """The distribution of the sum of gaps, by a convolution on a grid: as exact as a history of any size asks.

    >>> from cepheid.model.distributions import Exponential, Gamma
    >>> times = np.array([10.0, 40.0, 160.0])
    >>> bool(np.allclose(sum_cdf(Exponential(20), Exponential(20), times), Gamma(2, 20).cdf(times), atol=1e-5))
    True
    """
    from scipy import signal  # slow to load

    top = float(times.max())
    edges = np.linspace(0.0, top, _CELLS + 1)
    total = np.asarray(first.cdf(edges))
    for gap in (second, *more):
        # The mass of a cell lies in its middle on average, so the other gap has half a step more or less to go.
        later = np.asarray(gap.cdf((np.arange(_CELLS) + 0.5) * top / _CELLS))
        total = np.concatenate([[0.0], signal.fftconvolve(np.diff(total), later)[:_CELLS]])
    return np.asarray(np.interp(times, edges, np.clip(total, 0.0, 1.0)))


def gap_doubt(
    trips: Trips, before: GapDistribution, after: GapDistribution, lost: float, skip: GapDistribution, bypass: bool
) -> float:
    """One deviation of the share that was lost, due to the gaps alone."""
    lower, upper = bin_edges(np.array([b for b, _ in trips.unseen.bins], dtype=np.int64))
    counts = np.array([count for _, count in trips.unseen.bins])

    def slope(first: GapDistribution, second: GapDistribution) -> tuple[float, float]:
        """The derivative of the log likelihood at the share, and minus the second one."""
        total = sum_cdf(first, second, np.append(lower, upper)).reshape(2, -1)
        around = second if bypass else skip
        through = np.maximum(total[1] - total[0], 1e-300)
        left_out = np.maximum(around.cdf(upper) - around.cdf(lower), 1e-300)
        ratio = (through - left_out) / (lost * through + (1.0 - lost) * left_out)
        return float(counts @ ratio), float(counts @ ratio**2)

    information = max(slope(before, after)[1], 1e-12)
    variance = 0.0
    for own, is_before in ((before, True), (after, False)):
        seen = trips.before.count if is_before else trips.after.count

        def shifted(gap: GapDistribution, is_before: bool = is_before) -> float:
            return slope(gap, after)[0] if is_before else slope(before, gap)[0]

        variance += _variance(own, seen, shifted) / information**2
    return math.sqrt(variance)


def _variance(gap: GapDistribution, seen: float, slope: Callable[[GapDistribution], float]) -> float:
    """Of slope(gap), where the gap was estimated from so many."""
    if isinstance(gap, Empirical):
        random = np.random.default_rng(20070521)
        weights = random.gamma(np.maximum(np.array(gap.masses) * seen, 1e-3), size=(_DRAWS, len(gap.masses)))
        drawn = [replace(gap, masses=tuple(each / each.sum())) for each in weights]
        return float(np.var([slope(each) for each in drawn]))
    try:
        theta = encode_gap(gap)
    except (ValueError, TypeError):
        return 0.0  # a uniform from zero: its ends are known far better than anything else
    covariance = _covariance(gap, theta, seen)
    gradient = np.empty(len(theta))
    for place in range(len(theta)):
        step = np.zeros(len(theta))
        step[place] = max(math.sqrt(covariance[place, place]), 1e-6)
        high, low = slope(decode_gap(type(gap), theta + step)), slope(decode_gap(type(gap), theta - step))
        gradient[place] = (high - low) / (2.0 * step[place])
    return float(gradient @ covariance @ gradient)


def _covariance(gap: GapDistribution, theta: Floats, seen: float) -> Floats:
    """The inverse of the information that so many gaps hold about the parameters."""
    edges = gap.mean * np.concatenate([[0.0], np.geomspace(0.01, 30.0, 120)])

    def masses(at: Floats) -> Floats:
        return np.maximum(np.diff(decode_gap(type(gap), at).cdf(edges)), 1e-300)

    middle = masses(theta)
    slopes = np.array(
        [(masses(theta + step) - masses(theta - step)) / (2.0 * _STEP) for step in _STEP * np.eye(len(theta))]
    )
    kept = middle > 1e-12
    information = seen * (slopes[:, kept] / middle[kept]) @ slopes[:, kept].T
    return np.linalg.pinv(information)

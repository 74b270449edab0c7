"""How likely did the middle of a trip happen, given how long the trip took? The share of trips in which it was seen.

AYAC's model lets the end of a trip come when it likes, whether or not the middle happened. Then the share of trips of
length T with the middle in them is F(T), the distribution of its gap, and waits for it tell F best. Where the end waits
for the middle (one pays, then leaves), waits tell something else, but the score of a negated event still asks for the
share by length: so that is measured here, and taken where the waits clearly do not explain it.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

from cepheid.model.distributions import Empirical
from cepheid.model.fit import CLEARLY_BETTER
from cepheid.model.gap import Floats, GapDistribution
from cepheid.model.gap_statistics import GapStatistics, bin_edges

_MOST_STEPS = 40
_FEWEST_PER_STEP = 50.0


def share_by_length(seen: GapStatistics, unseen: GapStatistics, waits: GapDistribution) -> Empirical | None:
    """A gap whose cdf at T is the share of trips of length T in which the middle was seen, never falling.

    `seen` and `unseen` are the lengths of trips with the middle seen and not seen. None if `waits`, a gap fitted to the
    waits for the middle, explains the shares as well.

    >>> random = np.random.default_rng(1)
    >>> length, follows = random.gamma(2.0, 30.0, 20_000), random.random(20_000) < 0.8
    >>> statistics = GapStatistics.from_samples(length[follows]), GapStatistics.from_samples(length[~follows])
    >>> from cepheid.model.distributions import Exponential
    >>> found = share_by_length(*statistics, Exponential(mean=30, happens=0.9))
    >>> [round(float(found.cdf(t)), 1) for t in (20, 60, 180)]
    [0.8, 0.8, 0.8]
    """
    lengths, there, trips, edges = _steps(seen, unseen)
    if there.sum() == 0.0:
        return None
    rising = optimize.isotonic_regression(there / trips, weights=trips).x
    measured = _log_likelihood(rising, there, trips)
    explained = _log_likelihood(np.asarray(waits.cdf(lengths)), there, trips)
    # As many parameters as there are different levels.
    if explained >= measured - len(np.unique(rising)) - CLEARLY_BETTER / 2.0:
        return None
    happens = float(rising[-1])
    levels = np.concatenate([[0.0, rising[0]], rising])
    rises = np.diff(levels) > 0.0
    kept = np.append(rises, False) | np.append(False, rises)  # an edge in the middle of a plateau says nothing
    return Empirical(tuple(edges[kept]), tuple(np.diff(levels[kept]) / happens), happens)


def _steps(seen: GapStatistics, unseen: GapStatistics) -> tuple[Floats, Floats, Floats, Floats]:
    """Steps of length with enough trips each: their middles, trips with the middle seen, all trips; and their edges.

    The cdf reaches a step's share at its middle, so that is where edges lie; the first step's share holds from the
    shortest trip on.
    """
    with_it, without = dict(seen.bins), dict(unseen.bins)
    bins = sorted(with_it.keys() | without.keys())
    enough = max(_FEWEST_PER_STEP, (seen.count + unseen.count) / _MOST_STEPS)
    steps: list[list[float]] = []
    open_step = [0.0, 0.0, 0.0]  # trips with it, all trips, sum of log lengths
    lower, upper = bin_edges(np.array(bins, np.int64))
    for place, middle in zip(bins, (np.log(lower) + np.log(upper)) / 2.0, strict=True):
        here, gone = with_it.get(place, 0.0), without.get(place, 0.0)
        open_step = [open_step[0] + here, open_step[1] + here + gone, open_step[2] + (here + gone) * float(middle)]
        if open_step[1] >= enough:
            steps.append(open_step)
            open_step = [0.0, 0.0, 0.0]
    if open_step[1] > 0.0:
        last = steps.pop() if steps else [0.0, 0.0, 0.0]
        steps.append([a + b for a, b in zip(last, open_step, strict=True)])
    there, trips, logs = (np.array([step[i] for step in steps]) for i in range(3))
    lengths = np.exp(logs / np.maximum(trips, 1.0))
    return lengths, there, trips, np.concatenate([[0.0], lower[:1], lengths])


def _log_likelihood(shares: Floats, there: Floats, trips: Floats) -> float:
    known = np.clip(shares, 1e-12, 1.0 - 1e-12)
    return float((special.xlogy(there, known) + special.xlogy(trips - there, 1.0 - known)).sum())

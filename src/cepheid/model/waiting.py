"""Does the end of a trip wait for the middle, or does it come when it likes? The share of trips with it, by length.

AYAC's model lets the end of a trip come when it likes, whether or not the middle happened: then the share of trips of
length T in which the middle was seen is the distribution of its gap at T. Where the end waits for the middle (one pays,
then leaves), trips are of two kinds, through the middle or past it, and the share is that of the first kind.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from cepheid.model.em import TripFit
from cepheid.model.gap import Floats, GapDistribution
from cepheid.model.gap_doubt import sum_cdf
from cepheid.model.gap_statistics import GapStatistics, bin_edges

# Two kinds of trips have more parameters; each must earn a unit of log likelihood, and there must be no doubt.
_PENALTY = 6.0


def end_waits(seen: GapStatistics, unseen: GapStatistics, gap: GapDistribution, trips: TripFit) -> bool:
    """Which of both explains the trips better?

    `seen` and `unseen` are the lengths of trips with the middle seen and not seen, `gap` is fitted to the waits for the
    middle as if the end came when it likes, and `trips` as if it waited.
    """
    with_it, without = dict(seen.bins), dict(unseen.bins)
    bins = np.array(sorted(with_it.keys() | without.keys()), np.int64)
    if len(bins) == 0:
        return False
    lower, upper = bin_edges(bins)
    there = np.array([with_it.get(int(place), 0.0) for place in bins])
    gone = np.array([without.get(int(place), 0.0) for place in bins])
    independent = np.asarray(gap.cdf(np.sqrt(lower * upper)))
    total = sum_cdf(trips.gap, trips.after, np.append(lower, upper)).reshape(2, -1)
    through = np.maximum(total[1] - total[0], 1e-12)
    past = (1.0 - trips.happens) * np.maximum(trips.skip.cdf(upper) - trips.skip.cdf(lower), 1e-12)
    waiting = (1.0 - trips.loss) * through / (through + past)
    return _log_likelihood(waiting, there, gone) - _PENALTY > _log_likelihood(independent, there, gone)


def _log_likelihood(shares: Floats, there: Floats, gone: Floats) -> float:
    known = np.clip(shares, 1e-6, 1.0 - 1e-6)
    return float((special.xlogy(there, known) + special.xlogy(gone, 1.0 - known)).sum())

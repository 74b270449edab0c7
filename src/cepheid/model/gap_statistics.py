"""What must be kept of a history of gaps to fit a distribution? Counts in logarithmic bins and a few sums.

They can be added, so a cluster aggregates its part of the history and only these small tables travel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cepheid.errors import ModelError
from cepheid.model.gap import Floats

# Bin b holds the gaps t with floor(BINS_PER_OCTAVE * log2(t)) = b: 4% wide, far below the noise of any history.
BINS_PER_OCTAVE = 16

Bins = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Moments:
    """Sums over gaps from which most families are fitted at once."""

    count: float
    total: float
    total_log: float
    total_log_square: float
    smallest: float
    largest: float


@dataclass(frozen=True)
class GapStatistics:
    """Gaps that were seen to end (`bins` and sums), that were cut off (`censored`), and that `never` ended.

    Bins are (bin, count) in rising order. `never` counts trials that are known to have passed without the event.

    >>> first, second = GapStatistics.from_samples([1.0, 2.0]), GapStatistics.from_samples([2.0], trials=4)
    >>> first.merge(second).bins, first.merge(second).never
    (((0, 1.0), (16, 2.0)), 3.0)
    """

    bins: Bins = ()
    censored: Bins = ()
    never: float = 0.0
    total: float = 0.0
    total_square: float = 0.0
    total_log: float = 0.0
    total_log_square: float = 0.0
    smallest: float = math.inf
    largest: float = 0.0

    @property
    def count(self) -> float:
        """The number of gaps that were seen to end."""
        return math.fsum(count for _, count in self.bins)

    @property
    def moments(self) -> Moments:
        """The sums over gaps that were seen to end."""
        return Moments(self.count, self.total, self.total_log, self.total_log_square, self.smallest, self.largest)

    @classmethod
    def from_samples(
        cls, samples: ArrayLike, censored: ArrayLike = (), trials: float | None = None, weights: ArrayLike | None = None
    ) -> GapStatistics:
        """Statistics of gaps. Of `trials` beginnings, those neither in `samples` nor `censored` never had the event."""
        gaps, cut = _positive(samples, "a gap"), _positive(censored, "a censored gap")
        shares = np.ones(len(gaps)) if weights is None else np.asarray(weights, dtype=np.float64)
        if shares.shape != gaps.shape or not np.all(shares >= 0.0):
            raise ModelError("weights must be one number >= 0 per gap")
        never = 0.0 if trials is None else trials - float(shares.sum()) - len(cut)
        if never < 0.0:
            raise ModelError(
                f"{trials:g} trials cannot have had {shares.sum() + len(cut):g} gaps", hint="count every beginning once"
            )
        logs = np.log(gaps)
        return cls(
            bins=_counted(gaps, shares),
            censored=_counted(cut, np.ones(len(cut))),
            never=never,
            total=float((shares * gaps).sum()),
            total_square=float((shares * gaps**2).sum()),
            total_log=float((shares * logs).sum()),
            total_log_square=float((shares * logs**2).sum()),
            smallest=float(gaps.min(initial=math.inf)),
            largest=float(gaps.max(initial=0.0)),
        )

    def count_from(self, shortest: float) -> float:
        """How many gaps that were seen to end are at least so long, by the bins that they are in."""
        lower, _ = bin_edges(np.array([place for place, _ in self.bins], np.int64))
        return float(sum(count for (_, count), low in zip(self.bins, lower, strict=True) if low >= shortest))

    def merge(self, other: GapStatistics) -> GapStatistics:
        """The statistics of both histories together."""
        return GapStatistics(
            bins=_added(self.bins, other.bins),
            censored=_added(self.censored, other.censored),
            never=self.never + other.never,
            total=self.total + other.total,
            total_square=self.total_square + other.total_square,
            total_log=self.total_log + other.total_log,
            total_log_square=self.total_log_square + other.total_log_square,
            smallest=min(self.smallest, other.smallest),
            largest=max(self.largest, other.largest),
        )


@dataclass(frozen=True)
class Trips:
    """Trips with the middle seen (gaps before and after it) and without it (their length), as counts that merge."""

    before: GapStatistics
    after: GapStatistics
    unseen: GapStatistics

    @classmethod
    def from_samples(cls, before: ArrayLike, after: ArrayLike, unseen: ArrayLike) -> Trips:
        """Trips from arrays: before[i] and after[i] belong to one trip."""
        if np.shape(before) != np.shape(after):
            raise ModelError(f"{np.size(before)} gaps before the middle, but {np.size(after)} after it")
        return cls(*(GapStatistics.from_samples(gaps) for gaps in (before, after, unseen)))

    def merge(self, other: Trips) -> Trips:
        """Both histories together."""
        return Trips(self.before.merge(other.before), self.after.merge(other.after), self.unseen.merge(other.unseen))


def gap_bin(gaps: ArrayLike) -> np.ndarray:
    """The bin of each gap; in SQL: floor(16 * log2(gap))."""
    return np.asarray(np.floor(BINS_PER_OCTAVE * np.log2(_positive(gaps, "a gap"))), dtype=np.int64)


def bin_edges(bins: np.ndarray) -> tuple[Floats, Floats]:
    """Where bins begin and end."""
    return np.exp2(bins / BINS_PER_OCTAVE), np.exp2((bins + 1) / BINS_PER_OCTAVE)


def _positive(values: ArrayLike, what: str) -> Floats:
    gaps = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if gaps.ndim != 1:
        raise ModelError(f"gaps must be a list of numbers, not an array of shape {gaps.shape}")
    bad = ~(np.isfinite(gaps) & (gaps > 0.0))
    if bad.any():
        raise ModelError(
            f"{what} of {gaps[bad][0]:g}", hint="gaps are positive: an event comes strictly after the one before it"
        )
    return gaps


def _counted(gaps: Floats, weights: Floats) -> Bins:
    bins, place = np.unique(gap_bin(gaps), return_inverse=True) if len(gaps) else (np.empty(0), np.empty(0, dtype=int))
    counts = np.bincount(place, weights, len(bins))
    return tuple((int(b), float(count)) for b, count in zip(bins, counts, strict=True) if count > 0.0)


def _added(first: Bins, second: Bins) -> Bins:
    counts = dict(first)
    for b, count in second:
        counts[b] = counts.get(b, 0.0) + count
    return tuple(sorted(counts.items()))

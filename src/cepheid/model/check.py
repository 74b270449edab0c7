"""Does a model fit a stream? What it predicts beside what is seen, and where they differ most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from cepheid.model.gap import Floats, GapDistribution
from cepheid.model.gap_doubt import sum_cdf
from cepheid.model.gap_statistics import GapStatistics, bin_edges

# What chance explains is no deviation, and neither is what no decision would depend on.
UNLIKELY = 1e-4
SLIGHT = 0.03
FEWEST = 50.0


@dataclass(frozen=True)
class Comparison:
    """One thing that the model predicts and the stream shows.

    `what` is "share seen", "share seen by hour", "gap", "trip" (lengths of trips with the component seen) or "trip
    without" (not seen). Shares are compared as they are; lengths by their medians, and `off` is the largest difference
    of the two distributions. `unlikely` is the probability that chance alone differs so much.
    """

    what: str
    component: str
    predicted: float
    observed: float
    count: float
    off: float
    unlikely: float
    hour: int | None = None

    @property
    def deviates(self) -> bool:
        """Is it more than chance, and enough to matter?"""
        return self.unlikely < UNLIKELY and self.off > SLIGHT

    @property
    def text(self) -> str:
        """One line with its numbers."""
        when = "" if self.hour is None else f" from {self.hour}:00 to {self.hour + 1}:00"
        if self.what.startswith("share"):
            return (
                f"{self.component!r}{when}: {self.observed:.1%} seen, {self.predicted:.1%} predicted ({self.count:g})"
            )
        told = {"gap": "gap", "trip": "trips with it", "trip without": "trips without it"}[self.what]
        return (
            f"{self.component!r}, {told}: median {self.observed:.4g}, {self.predicted:.4g} predicted, "
            f"distributions {self.off:.1%} apart ({self.count:g})"
        )


@dataclass(frozen=True)
class Check:
    """All comparisons of a model with a stream."""

    comparisons: tuple[Comparison, ...]

    @property
    def fits(self) -> bool:
        """Does nothing deviate?"""
        return not any(each.deviates for each in self.comparisons)

    @property
    def worst(self) -> Comparison | None:
        """What deviates most, None if nothing does."""
        deviating = [each for each in self.comparisons if each.deviates]
        return max(deviating, key=lambda each: each.off, default=None)

    def loss_by_hour(self, component: str, happens: float) -> dict[int, float]:
        """The loss of a component in each hour of the day, given how often it happens: what is not lost is seen."""
        return {
            each.hour: min(max(1.0 - each.observed / happens, 0.0), 1.0)
            for each in self.comparisons
            if each.component == component and each.hour is not None
        }

    def to_rows(self) -> list[dict[str, object]]:
        """The comparisons as rows of a table."""
        return [vars(each) | {"deviates": each.deviates} for each in self.comparisons]

    def __str__(self) -> str:
        if self.worst is None:
            return f"the model fits: {len(self.comparisons)} comparisons, none of them deviates"
        deviating = sorted((e for e in self.comparisons if e.deviates), key=lambda e: -e.off)
        more = "" if len(deviating) <= 8 else f"\n  and {len(deviating) - 8} more"
        lines = "".join(f"\n  {each.text}" for each in deviating[:8])
        return f"the model does not fit: {len(deviating)} of {len(self.comparisons)} comparisons deviate{lines}{more}"


def compare_shares(component: str, predicted: float, seen: float, unseen: float) -> list[Comparison]:
    """How often it was seen, where it could have been."""
    return _share("share seen", component, predicted, seen, unseen, None)


def compare_hours(component: str, seen: Sequence[float], unseen: Sequence[float], not_lost: Floats) -> list[Comparison]:
    """The same, hour by hour, against the day as a whole: what is wrong all day long is not the hour's fault.

    `not_lost` is what the model says that each hour shows.
    """
    here, everything = np.array(seen), np.array(seen) + np.array(unseen)
    if not everything.any():
        return []
    shares = np.minimum(not_lost * here.sum() / max(float(everything @ not_lost), 1e-12), 1.0)
    return [
        each
        for hour, share in enumerate(shares.tolist())
        for each in _share("share seen by hour", component, share, seen[hour], unseen[hour], hour)
    ]


def _share(
    what: str, component: str, predicted: float, seen: float, unseen: float, hour: int | None
) -> list[Comparison]:
    count = seen + unseen
    if count < FEWEST:
        return []
    observed = seen / count
    spread = np.sqrt(max(predicted * (1.0 - predicted), 0.25 / count) / count)
    unlikely = float(2.0 * special.ndtr(-abs(observed - predicted) / spread))
    return [Comparison(what, component, predicted, observed, count, abs(observed - predicted), unlikely, hour)]


def compare_lengths(what: str, component: str, lengths: GapStatistics, predicted: Floats | None) -> list[Comparison]:
    """Lengths against a distribution, given as its cdf at `length_edges`."""
    if lengths.count < FEWEST or predicted is None:
        return []
    edges = length_edges(lengths)
    counts = dict(lengths.bins)
    low = lengths.bins[0][0]
    shares = np.cumsum([counts.get(low + place, 0.0) for place in range(len(edges))]) / lengths.count
    off = float(np.abs(shares - predicted).max())
    unlikely = float(special.kolmogorov(np.sqrt(lengths.count) * off))
    middle, seen = (float(np.interp(0.5, np.maximum.accumulate(each), edges)) for each in (predicted, shares))
    return [Comparison(what, component, middle, seen, lengths.count, off, unlikely)]


def length_edges(lengths: GapStatistics) -> Floats:
    """The upper edges of all bins from the first to the last, empty ones included."""
    return bin_edges(np.arange(lengths.bins[0][0], lengths.bins[-1][0] + 1))[1] if lengths.bins else np.empty(0)


def gap_at(gap: GapDistribution, edges: Floats) -> Floats:
    """The distribution of a gap that came to an end."""
    return np.asarray(gap.cdf(edges) / max(gap.happens, 1e-12))


def trip_at(first: GapDistribution, second: GapDistribution, edges: Floats) -> Floats:
    """The distribution of two gaps in a row."""
    return sum_cdf(first, second, edges) / max(first.happens * second.happens, 1e-12) if len(edges) else edges

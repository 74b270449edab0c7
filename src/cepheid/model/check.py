"""Does a model fit a stream? What it predicts beside what is seen, and where they differ most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from cepheid.model.check_comparison import FEWEST, MISSING_TOGETHER, Comparison
from cepheid.model.forecast_check import ForecastCheck
from cepheid.model.gap import Floats, GapDistribution
from cepheid.model.gap_doubt import sum_cdf
from cepheid.model.gap_statistics import GapStatistics, bin_edges

__all__ = [
    "FEWEST",
    "MISSING_TOGETHER",
    "Check",
    "Comparison",
    "chain_at",
    "compare_hours",
    "compare_lengths",
    "compare_shares",
    "compare_waits",
    "gap_at",
    "length_edges",
    "trip_at",
]


@dataclass(frozen=True)
class Check:
    """All comparisons of a model with a stream."""

    comparisons: tuple[Comparison, ...]
    forecasts: ForecastCheck | None = None  # of a query with FORECAST
    notes: tuple[str, ...] = ()  # what could not be compared

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
        reported = [] if self.forecasts is None else [self.forecasts.text]
        reported += self.notes
        ending = "".join(f"\n{each}" for each in reported)
        if self.worst is None:
            return f"the model fits: {len(self.comparisons)} comparisons, none of them deviates{ending}"
        deviating = sorted((e for e in self.comparisons if e.deviates), key=lambda e: -e.off)
        more = "" if len(deviating) <= 8 else f"\n  and {len(deviating) - 8} more"
        lines = "".join(f"\n  {each.text}" for each in deviating[:8])
        number = f"{len(deviating)} of {len(self.comparisons)} comparisons deviate"
        return f"the model does not fit: {number}{lines}{more}{ending}"


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


def compare_waits(component: str, waits: GapStatistics, predicted: Floats, share: float) -> list[Comparison]:
    """Waits of which many were cut off: the product-limit estimate against a distribution, given at `length_edges`.

    It rises to `share`, the part of the waits that end. The difference is judged as Hall and Wellner do, which is
    Kolmogorov's test where nothing was cut off.
    """
    edges, ended, cut = length_edges(waits), dict(waits.bins), dict(waits.censored)
    number = waits.count + math.fsum(cut.values()) + waits.never
    if waits.count < FEWEST:
        return []
    low = waits.bins[0][0]
    waiting = number - math.fsum(count for place, count in cut.items() if place < low)
    left, spread, off, unlikely, reached = 1.0, 0.0, 0.0, 0.0, []
    for place, expected in enumerate(predicted.tolist()):
        gone = ended.get(low + place, 0.0)
        at_risk = waiting - cut.get(low + place, 0.0) / 2.0
        waiting -= gone + cut.get(low + place, 0.0)
        if at_risk - gone < 1.0:  # nothing is known of later times
            break
        left *= 1.0 - gone / at_risk
        spread += number * gone / (at_risk * (at_risk - gone))
        apart = abs(1.0 - left - expected)
        off = max(off, apart)
        unlikely = max(unlikely, apart / left / (1.0 + spread))
        reached.append(1.0 - left)
    middle, seen = (
        float(np.interp(0.5 * share, np.maximum.accumulate(each), edges[: len(reached)]))
        for each in (predicted[: len(reached)], np.array(reached))
    )
    chance = float(special.kolmogorov(np.sqrt(number) * unlikely))
    return [Comparison("gap", component, middle, seen, waits.count, off / max(share, 1e-12), chance)]


def length_edges(lengths: GapStatistics) -> Floats:
    """The upper edges of all bins from the first to the last, empty ones included."""
    return bin_edges(np.arange(lengths.bins[0][0], lengths.bins[-1][0] + 1))[1] if lengths.bins else np.empty(0)


def gap_at(gap: GapDistribution, edges: Floats) -> Floats:
    """The distribution of a gap that came to an end."""
    return np.asarray(gap.cdf(edges) / max(gap.happens, 1e-12))


def trip_at(first: GapDistribution, second: GapDistribution, edges: Floats) -> Floats:
    """The distribution of two gaps in a row."""
    return chain_at([first, second], edges) if len(edges) else edges


def chain_at(gaps: Sequence[GapDistribution], edges: Floats) -> Floats:
    """The distribution of several gaps in a row, all of which came to an end."""
    if len(gaps) == 1:
        return gap_at(gaps[0], edges)
    first, second, *more = gaps
    return sum_cdf(first, second, edges, *more) / max(math.prod(gap.happens for gap in gaps), 1e-12)

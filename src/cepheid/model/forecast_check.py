"""Were forecasts true as often as they said, and how early would alarms have come?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from cepheid.model.check_comparison import Comparison
from cepheid.model.gap import Floats

BINS = 10
FEWEST = 30.0  # forecasts in a bin
THRESHOLDS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)


@dataclass(frozen=True)
class ForecastBin:
    """Forecasts of about the same probability: what they said on average, and how many completed."""

    predicted: float
    observed: float
    count: int


@dataclass(frozen=True)
class AtThreshold:
    """What FORECAST with a threshold would have reported.

    `precision` is the share of the reports that completed, `recall` that of the matches that were reported before they
    were complete, `lead` the median time between the first report and the completion, in the unit of the gaps.
    """

    threshold: float
    reports: int
    precision: float
    recall: float
    lead: float


@dataclass(frozen=True)
class ForecastCheck:
    """Forecasts of partial matches in moments spread over a history, beside what became of them."""

    bins: tuple[ForecastBin, ...]
    thresholds: tuple[AtThreshold, ...]
    count: int
    moments: int
    overlap: float = 1.0  # in how many moments the same partial match was looked at

    @property
    def error(self) -> float:
        """The mean difference of predicted and observed shares."""
        total = sum(each.count for each in self.bins)
        off = math.fsum(abs(each.predicted - each.observed) * each.count for each in self.bins)
        return off / total if total else 0.0

    def comparisons(self) -> list[Comparison]:
        """The bins as comparisons of a model with a history."""
        found = []
        for each in self.bins:
            count = each.count / self.overlap
            if count < FEWEST:
                continue
            off = abs(each.observed - each.predicted)
            spread = math.sqrt(max(each.predicted * (1.0 - each.predicted), 0.25 / count) / count)
            unlikely = float(2.0 * special.ndtr(-off / spread))
            found.append(Comparison("forecast", "", each.predicted, each.observed, each.count, off, unlikely))
        return found

    @property
    def text(self) -> str:
        """One line with its numbers."""
        return f"{self.count:,} forecasts in {self.moments} moments: predicted and observed differ by {self.error:.3f}"


def forecast_bins(predicted: Floats, completed: npt.NDArray[np.bool_]) -> tuple[ForecastBin, ...]:
    """Forecasts in order, in ten parts of the same size."""
    parts = [part for part in np.array_split(np.argsort(predicted, kind="stable"), BINS) if len(part)]
    return tuple(ForecastBin(float(predicted[part].mean()), float(completed[part].mean()), len(part)) for part in parts)

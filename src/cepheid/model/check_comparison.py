"""One thing that a model predicts, beside what a stream shows of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from scipy import special

# What chance explains is no deviation, and neither is what no decision would depend on.
UNLIKELY = 1e-4
SLIGHT = 0.03
# Components that are missing together are compared among themselves, all at once: one false alarm in a hundred checks.
UNLIKELY_TOGETHER = 0.01
FEWEST = 50.0
MISSING_TOGETHER = "missing together"


@dataclass(frozen=True)
class Comparison:
    """One thing that the model predicts and the stream shows.

    `what` is "share seen", "share seen by hour", "gap", "trip" (lengths of trips with the component seen), "trip
    without" (not seen), "forecast" (partial matches of about the same probability) or "missing together": how often it
    was not seen on some trips, where `given` says what these showed of `others`. Shares are compared as they are;
    lengths by their medians, and `off` is the largest difference of the two distributions. `unlikely` is the
    probability of such a difference by chance, and `reason` says what the deviation means, if that is known.
    """

    what: str
    component: str
    predicted: float
    observed: float
    count: float
    off: float
    unlikely: float
    hour: int | None = None
    given: str = ""
    others: tuple[str, ...] = ()
    reason: str = ""

    @property
    def deviates(self) -> bool:
        """Is it more than chance, and enough to matter?"""
        least = UNLIKELY_TOGETHER if self.what == MISSING_TOGETHER else UNLIKELY
        return self.unlikely < least and self.off > SLIGHT

    def between_two_histories(self) -> Comparison:
        """The same where what is predicted comes from a history of about the same size, and is off by chance, too."""
        if self.what.startswith("share") or self.what == "forecast":
            unlikely = 2.0 * special.ndtr(special.ndtri(self.unlikely / 2.0) / math.sqrt(2.0))
        else:
            unlikely = special.kolmogorov(special.kolmogi(self.unlikely) / math.sqrt(2.0))
        return replace(self, unlikely=float(unlikely))

    @property
    def text(self) -> str:
        """One line with its numbers."""
        when = "" if self.hour is None else f" from {self.hour}:00 to {self.hour + 1}:00"
        if self.what.startswith("share"):
            return (
                f"{self.component!r}{when}: {self.observed:.1%} seen, {self.predicted:.1%} predicted ({self.count:g})"
            )
        if self.what == MISSING_TOGETHER:
            return (
                f"{self.component!r}: not seen on {self.observed:.1%} of trips {self.given}, {self.predicted:.1%} "
                f"predicted ({self.count:g})" + (f": {self.reason}" if self.reason else "")
            )
        if self.what == "forecast":
            return f"partial matches forecast with {self.predicted:.1%}: {self.observed:.1%} completed ({self.count:g})"
        message = {"gap": "gap", "trip": "trips with it", "trip without": "trips without it"}[self.what]
        return (
            f"{self.component!r}, {message}: median {self.observed:.4g}, {self.predicted:.4g} predicted, "
            f"distributions {self.off:.1%} apart ({self.count:g})"
        )

"""How often is an event lost? Loss rates from counts of proven losses, with confidence intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import special

from cepheid.errors import ModelError

FEWEST_OCCURRENCES = 20


@dataclass(frozen=True)
class LossEstimate:
    """A loss rate and its confidence interval, from so many occurrences seen and lost."""

    loss: float
    low: float
    high: float
    seen: float
    lost: float


def estimate_loss(
    seen: float,
    lost: float,
    *,
    confidence: float = 0.95,
    fewest: float = FEWEST_OCCURRENCES,
    component: str | None = None,
) -> LossEstimate:
    """The loss rate where sequences prove losses: `lost` occurrences that must have happened, next to `seen` ones.

    The interval is Wilson's, which stays inside [0, 1] and covers the rate when no loss was proven.

    >>> estimate = estimate_loss(seen=90, lost=10)
    >>> print(f"{estimate.loss:.2f} [{estimate.low:.3f}, {estimate.high:.3f}]")
    0.10 [0.055, 0.174]
    """
    where = f" of {component!r}" if component else ""
    if not (seen >= 0.0 and lost >= 0.0 and math.isfinite(seen + lost)):
        raise ModelError(f"the counts{where} cannot be seen={seen!r}, lost={lost!r}")
    if not 0.0 < confidence < 1.0:
        raise ModelError(f"confidence={confidence!r} is outside (0, 1)", hint="use 0.95, for example")
    count = seen + lost
    if count < fewest or count == 0.0:
        raise ModelError(
            f"the history is too short to estimate the loss{where}: {count:g} occurrences, at least {fewest:g} needed",
            hint="give more history or state the loss yourself",
        )
    if seen == 0.0:
        raise ModelError(f"every occurrence{where} in the history was lost", hint="is the component named correctly?")
    share = lost / count
    z = float(special.ndtri(0.5 + confidence / 2.0))
    centre = (share + z * z / (2.0 * count)) / (1.0 + z * z / count)
    spread = z * math.sqrt(share * (1.0 - share) / count + (z / (2.0 * count)) ** 2) / (1.0 + z * z / count)
    low = max(centre - spread, 0.0) if lost > 0.0 else 0.0
    return LossEstimate(share, low, min(centre + spread, 1.0), seen, lost)

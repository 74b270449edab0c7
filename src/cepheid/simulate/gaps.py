"""How long something takes: waiting times to draw from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cepheid.simulate.simulation import check_at_least, check_choice

KINDS = ("exponential", "gamma", "lognormal", "uniform")


@dataclass(frozen=True)
class Gap:
    """A waiting time with a given mean.

    `shape` is the gamma distribution's shape or the lognormal's sigma; the others have none. `uniform` runs from 0 to
    twice the mean.
    """

    kind: str
    mean: float
    shape: float = 1.0

    def __post_init__(self) -> None:
        check_choice("the kind of gap", self.kind, KINDS)
        check_at_least("the mean of a gap", self.mean, 0.0)
        check_at_least("the shape of a gap", self.shape, 1e-6)


def draw_gaps(rng: np.random.Generator, gap: Gap, count: int) -> NDArray[np.float64]:
    """`count` independent waiting times.

    >>> waits = draw_gaps(np.random.default_rng(0), Gap("exponential", mean=60.0), 100_000)
    >>> round(waits.mean())
    60
    """
    if gap.kind == "exponential":
        return rng.exponential(gap.mean, count)
    if gap.kind == "gamma":
        return rng.gamma(gap.shape, gap.mean / gap.shape, count)
    if gap.kind == "lognormal":
        return rng.lognormal(np.log(gap.mean) - gap.shape**2 / 2.0, gap.shape, count)
    return rng.uniform(0.0, 2.0 * gap.mean, count)

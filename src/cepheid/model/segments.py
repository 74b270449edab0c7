"""What lies between two events that were seen: components that were not, and what stands at either end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cepheid.errors import ModelError
from cepheid.model.chain import QUANTILES, Landmarks, landmarks_of
from cepheid.model.gap import Floats, GapDistribution


@dataclass(frozen=True)
class SegmentItem:
    """A component between two observed events: a missing positive or a negative, its loss and its gap.

    `onward` is the gap of the positive component behind a negative, counted from the negative where that happened: the
    exit waits for the payment. `goes_on` is the chance that a trip goes on to a positive component or past it: where
    nothing was seen behind a gap, it may have ended before.
    """

    kind: Literal["missing", "negative"]
    loss: float
    gap: GapDistribution
    onward: GapDistribution | None = None
    goes_on: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in ("missing", "negative"):
            raise ModelError(f"a segment item is 'missing' or 'negative', not {self.kind!r}")
        if not (math.isfinite(self.loss) and 0.0 <= self.loss < 1.0):
            raise ModelError(f"loss {self.loss:g} is outside [0, 1)", hint="a component that is never seen has no loss")


@dataclass(frozen=True)
class Ends:
    """What stands at the ends of a segment, which only a posterior asks for.

    `following` is the gap of the component seen behind it; None: nothing was seen, it ends with the deadline. A
    `leading` segment begins with the window's opening. `shares` says how often which of the missing positives had
    happened, where both ends were seen and nothing between them: by the bits of those that had, the first one being 1.
    Without it, they happen and are lost independently of each other.
    """

    following: GapDistribution | None = None
    leading: bool = False
    shares: tuple[float, ...] = ()


OPEN_END = Ends()


def split(items: Sequence[SegmentItem]) -> tuple[list[SegmentItem], list[list[SegmentItem]]]:
    """The missing positives m1..mk, and the negatives N0..Nk before, between and after them."""
    missing: list[SegmentItem] = []
    groups: list[list[SegmentItem]] = [[]]
    for item in items:
        if item.kind == "missing":
            missing.append(item)
            groups.append([])
        else:
            groups[-1].append(item)
    return missing, groups


def group_landmarks(group: Sequence[SegmentItem], window: float) -> Landmarks:
    """Where the factors of negatives change."""
    # S^N passes 1/2 where F = 1 / (1 + ε), in a layer that is narrow when the loss is small.
    marks = Landmarks()
    for item in group:
        shares = [*QUANTILES, *(1.0 / (1.0 + odds * item.loss) for odds in (0.1, 1.0, 10.0))]
        marks |= landmarks_of(item.gap, window, shares)
    return marks


Factor = Callable[[SegmentItem, Floats], Floats]  # what an item contributes at some times


def product_of(factor: Factor, items: Sequence[SegmentItem], t: Floats) -> Floats:
    """The product of what each item contributes at some times."""
    result = np.ones_like(t)
    for item in items:
        result *= factor(item, t)
    return result

"""OUTPUT TOP k BY CONFIDENCE: how confident a match must be to get among the best of its partition so far.

The k-th best is a `CONFIDENCE` that rises while the partition is searched, and saves work in the same places. Matches
that tie with it up to rounding are kept: their events decide between them when all are known.
"""

from __future__ import annotations

from numba import types

from cepheid.engine.kernels.lean import lean
from cepheid.engine.search.intervals.query import SHAPE, Shape

TIED = 2e-9  # confidences are compared after rounding to nine digits


@lean(types.void(SHAPE))
def begin_partition(shape: Shape) -> None:
    """Forgets what was found in other partitions."""
    shape.least[0] = shape.least[1]
    for index in range(len(shape.best)):
        shape.best[index] = 0.0


@lean(types.void(SHAPE, types.float64))
def raise_bar(shape: Shape, confidence: float) -> None:
    """Takes note of one more match."""
    best = shape.best
    size = len(best)
    if size == 0 or confidence <= best[0]:
        return
    index = 0  # a heap: the smallest is on top, and the new one takes its place and sinks
    while 2 * index + 1 < size:
        child = 2 * index + 1
        if child + 1 < size and best[child + 1] < best[child]:
            child += 1
        if best[child] >= confidence:
            break
        best[index] = best[child]
        index = child
    best[index] = confidence
    shape.least[0] = max(shape.least[1], best[0] - TIED)

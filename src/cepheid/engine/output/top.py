"""OUTPUT TOP k BY CONFIDENCE: how confident a match must be to get among the best of its partition so far.

The k-th best is a `CONFIDENCE` that rises while the partition is searched, and saves work in the same places. Matches
that tie with it up to rounding are kept: their events decide between them when all are known.
"""

from __future__ import annotations

from cepheid.engine.kernels.compile import borrowing
from cepheid.engine.scoring.match_score import MatchScore

TIED = 2e-9  # confidences are compared after rounding to nine digits


@borrowing
def begin_partition(match_score: MatchScore) -> None:
    """Forgets what was found in other partitions."""
    match_score.least[0] = match_score.least[1]
    for index in range(len(match_score.best)):
        match_score.best[index] = 0.0


@borrowing
def raise_bar(match_score: MatchScore, confidence: float) -> None:
    """Takes note of one more match."""
    best = match_score.best
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
    match_score.least[0] = max(match_score.least[1], best[0] - TIED)

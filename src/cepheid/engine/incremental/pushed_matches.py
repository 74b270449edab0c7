"""What a push of events finds: matches as numbers of events, or rows that an engine found over a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.data.arrays import Float64s, Int64s


class Replayed(NamedTuple):
    """Rows of the result, found by an engine over a table of events."""

    batches: list[pa.RecordBatch]


class PushedMatches(NamedTuple):
    """Matches, as numbers of their events: one after the other, each with how many events fill each place."""

    events: Int64s
    sizes: npt.NDArray[np.int64] | None  # None: one event for each place
    known: Int64s
    scores: Float64s | None = None  # logarithms, where events may be missing


Found = PushedMatches | Replayed


def some_of(found: PushedMatches, which: npt.NDArray[np.bool_]) -> PushedMatches:
    """Some of the matches."""
    events, sizes, known, scores = found
    if sizes is None:
        chosen = events.reshape(len(known), -1)[which].reshape(-1)
        return PushedMatches(chosen, None, known[which])
    chosen = events[np.repeat(which, sizes.sum(axis=1))]
    return PushedMatches(chosen, sizes[which], known[which], None if scores is None else scores[which])


def joined(found: Sequence[PushedMatches]) -> PushedMatches:
    """Matches that were found one after the other."""
    if len(found) == 1:
        return found[0]
    events, sizes, known, scores = zip(*found, strict=True)
    of_each = None if sizes[0] is None else np.concatenate(sizes)
    scored = None if scores[0] is None else np.concatenate(scores)
    return PushedMatches(np.concatenate(events), of_each, np.concatenate(known), scored)

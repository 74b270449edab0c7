"""Matches that may hold Kleene groups, as kernels find them: arrays that grow."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import FLOAT64S, INT64_ROWS, INT64S
from cepheid.engine.kernels.apart import apart
from cepheid.engine.kernels.arrays import grown, grown_rows
from cepheid.engine.search.intervals.found import grown_numbers

Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]


class Written(NamedTuple):
    """Matches so far."""

    events: Int64s  # match after match, place after place
    sizes: npt.NDArray[np.int64]  # for each match, how many events each place holds
    completion: Int64s
    confidence: Float64s
    earliest: Int64s
    latest: Int64s
    size: Int64s  # how many matches, how many events


WRITTEN = types.NamedTuple((INT64S, INT64_ROWS, INT64S, FLOAT64S, INT64S, INT64S, INT64S), Written)


@numba.njit(WRITTEN(types.int64), cache=True)
def nothing_written(places: int) -> Written:
    """Room for matches with so many places."""
    room = 256
    return Written(
        np.empty(4 * room, np.int64),
        np.empty((room, places), np.int64),
        np.empty(room, np.int64),
        np.empty(room),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.zeros(2, np.int64),
    )


@apart(WRITTEN(WRITTEN, INT64S, INT64S, types.int64, types.float64, types.int64, types.int64))
def write(
    written: Written, chosen: Int64s, places: Int64s, completion: int, confidence: float, earliest: int, latest: int
) -> Written:
    """One more match: its events and the places they fill, in order."""
    size, filled = written.size[0], written.size[1]
    if size == len(written.completion):
        written = Written(
            written.events,
            grown_rows(written.sizes),
            grown(written.completion),
            grown_numbers(written.confidence),
            grown(written.earliest),
            grown(written.latest),
            written.size,
        )
    if filled + len(chosen) > len(written.events):
        events = np.empty(2 * (filled + len(chosen)), np.int64)
        events[:filled] = written.events[:filled]
        written = Written(
            events,
            written.sizes,
            written.completion,
            written.confidence,
            written.earliest,
            written.latest,
            written.size,
        )
    written.sizes[size, :] = 0
    for index in range(len(chosen)):
        written.events[filled + index] = chosen[index]
        written.sizes[size, places[index]] += 1
    written.completion[size] = completion
    written.confidence[size] = confidence
    written.earliest[size], written.latest[size] = earliest, latest
    written.size[0], written.size[1] = size + 1, filled + len(chosen)
    return written

"""Matches as kernels find them: arrays that grow."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import FLOAT64S, INT64_ROWS, INT64S
from cepheid.engine.kernels.arrays import grown, grown_rows
from cepheid.engine.kernels.lean import lean

Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]

EVALUATED, JUDGED, REPORTED, OVERFLOW, PARTIAL, PEAK = range(6)  # counters
COUNTERS = 6
TOO_MANY_RUNS = 2  # what counters[OVERFLOW] says then; 1: too many matches


class Found(NamedTuple):
    """Matches so far."""

    chosen: npt.NDArray[np.int64]
    completion: Int64s
    confidence: Float64s
    earliest: Int64s
    latest: Int64s
    size: Int64s  # [0]: how many there are


FOUND = types.NamedTuple((INT64_ROWS, INT64S, FLOAT64S, INT64S, INT64S, INT64S), Found)


@numba.njit(FOUND(types.int64), cache=True)
def nothing_found(length: int) -> Found:
    """Room for matches of some length."""
    room = 1024
    return Found(
        np.empty((room, length), np.int64),
        np.empty(room, np.int64),
        np.empty(room),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.zeros(1, np.int64),
    )


@numba.njit(FLOAT64S(FLOAT64S), cache=True)
def grown_numbers(values: Float64s) -> Float64s:
    """The same values with room for as many again."""
    larger = np.empty(2 * len(values))
    larger[: len(values)] = values
    return larger


@numba.njit(FOUND(FOUND), cache=True)
def with_room(found: Found) -> Found:
    """The same matches with room for as many again."""
    return Found(
        grown_rows(found.chosen),
        grown(found.completion),
        grown_numbers(found.confidence),
        grown(found.earliest),
        grown(found.latest),
        found.size,
    )


@lean(types.void(FOUND, INT64S, types.int64, types.float64, types.int64, types.int64))
def put(found: Found, at: Int64s, completion: int, confidence: float, earliest: int, latest: int) -> None:
    """One more match; there must be room for it."""
    size = found.size[0]
    for place in range(found.chosen.shape[1]):
        found.chosen[size, place] = at[place]
    found.completion[size] = completion
    found.confidence[size] = confidence
    found.earliest[size] = earliest
    found.latest[size] = latest
    found.size[0] = size + 1

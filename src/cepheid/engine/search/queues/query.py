"""The query, as the kernels for missing events see it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import FLOAT64_ROWS, FLOAT64S, INT64_ROWS, INT64S
from cepheid.engine.data.matches import Int64s

STACKED, EVALUATED, KILLED, DROPPED, OVERFLOW = range(5)
NOTHING, CONDITION, NEGATION = 0, 1, 2  # what a step of a path decides: NEGATION if a negated component alone
# The rows of `clauses`; from PLACES on, the components whose bits choose the variant, filled up with -1.
OWNER, BRANCH, EVERY, PAIRS, KNOWN, BASE, PLACES = range(7)
AFTER, READY = range(2)  # the rows of `negations`


class Lossy(NamedTuple):
    """The query. Edges are found by [source + 1, target]; "known" is twice a place, see `clauses.Clause`."""

    positives: int
    negatives: int
    window: int
    postponed: bool
    branches: int
    threshold: float  # its logarithm
    scale: float
    kleene: Int64s
    number: npt.NDArray[np.int64]  # edges: table, CERTAIN or CLOSED
    highest: npt.NDArray[np.float64]  # edges: log of the best score
    monotone: npt.NDArray[np.int64]  # edges: FALLS, RISES or NEITHER
    decides: npt.NDArray[np.int64]  # edges: what is decided when a path grows that far
    negations: npt.NDArray[np.int64]  # AFTER: the positive component before it, -1 for none; READY: all is known
    clauses: npt.NDArray[np.int64]
    tested: Int64s  # per case: is there anything to test?


LOSSY = types.NamedTuple(
    (
        types.int64,
        types.int64,
        types.int64,
        types.boolean,
        types.int64,
        types.float64,
        types.float64,
        INT64S,
        INT64_ROWS,
        FLOAT64_ROWS,
        INT64_ROWS,
        INT64_ROWS,
        INT64_ROWS,
        INT64_ROWS,
        INT64S,
    ),
    Lossy,
)


class Path(NamedTuple):
    """The path being built, from the last event backwards, and what conditions see of it."""

    place: Int64s
    event: Int64s
    at: Int64s  # chosen events by slot, see `clauses.Slots`
    counted: Int64s  # aggregates, of which there are none
    running: npt.NDArray[np.float64]


PATH = types.NamedTuple((INT64S, INT64S, INT64S, INT64S, FLOAT64S), Path)


class Queues(NamedTuple):
    """The queues of one partition: row by row the positive components, then the negated ones."""

    stacks: npt.NDArray[np.int64]  # their events, in order
    bounds: npt.NDArray[np.float64]  # the best score of any path that arrives there, as a logarithm
    sizes: Int64s
    falling: npt.NDArray[np.int64]  # entries that may still be the best of their queue, bounds falling
    marks: npt.NDArray[np.int64]  # per component: FALLING_FIRST, FALLING_END, SETTLED, OLDEST


QUEUES = types.NamedTuple((INT64_ROWS, FLOAT64_ROWS, INT64S, INT64_ROWS, INT64_ROWS), Queues)

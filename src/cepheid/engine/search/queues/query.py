"""What the search for missing events keeps: what is asked of a match, the queues, and the path that is being built."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import FLOAT64_ROWS, FLOAT64S, INT64_ROWS, INT64S
from cepheid.engine.data.matches import Int64s
from cepheid.engine.kernels.conditions import SCRATCH, Scratch

STACKED, EVALUATED, KILLED, DROPPED, OVERFLOW = range(5)
NOTHING, CONDITION, NEGATION = 0, 1, 2  # what a step of a path decides: NEGATION if a negated component alone


class Score(NamedTuple):
    """What is asked of a match some of whose events are missing. Edges are found by [source + 1, target].

    "Known" is twice the place from which all is decided that a condition or a negated component needs, backwards; one
    less, and so odd, if that place is a group, which must have been left.
    """

    threshold: float  # the logarithm of the least probability
    scale: float  # what one step of the time column is in the unit of the gaps
    number: npt.NDArray[np.int64]  # edges: table, CERTAIN or CLOSED
    highest: npt.NDArray[np.float64]  # edges: log of the best score
    monotone: npt.NDArray[np.int64]  # edges: FALLS, RISES or NEITHER
    decides: npt.NDArray[np.int64]  # edges: what is decided when a path grows that far
    known: Int64s  # by test: from where it is known
    ready: Int64s  # by negated component: from where all is known that it needs
    # [source + 1, bits of what is missing behind]: may a path come to this place so? Of no rows: every path may.
    allowed: npt.NDArray[np.int64]
    # Where losses depend on the hour, by hour of the day: how far behind an edge's table, which is a bound, its own
    # table lies. Else of no entries.
    hours: Int64s
    day: int  # in steps of time


SCORE = types.NamedTuple(
    (
        types.float64,
        types.float64,
        INT64_ROWS,
        FLOAT64_ROWS,
        INT64_ROWS,
        INT64_ROWS,
        INT64S,
        INT64S,
        INT64_ROWS,
        INT64S,
        types.int64,
    ),
    Score,
)


class Path(NamedTuple):
    """The path being built, from the last event backwards."""

    entries: npt.NDArray[np.int64]  # event, the entry that comes before it in time, place
    scratch: Scratch  # what conditions see of it
    reached: npt.NDArray[np.float64]  # by entry: the score so far
    missing: Int64s  # bits of the components that were skipped
    place: Int64s  # the queue that is being tried
    tried: Int64s  # the entry of it that was tried last


PATH = types.NamedTuple((INT64_ROWS, SCRATCH, FLOAT64S, INT64S, INT64S, INT64S), Path)


class Queues(NamedTuple):
    """The queues of one partition: row by row the positive components, then the negated ones."""

    stacks: npt.NDArray[np.int64]  # their events, in order
    bounds: npt.NDArray[np.float64]  # the best score of any path that arrives there, as a logarithm
    sizes: Int64s
    falling: npt.NDArray[np.int64]  # entries that may still be the best of their queue, bounds falling
    marks: npt.NDArray[np.int64]  # per component: FALLING_FIRST, FALLING_END, SETTLED, OLDEST


QUEUES = types.NamedTuple((INT64_ROWS, FLOAT64_ROWS, INT64S, INT64_ROWS, INT64_ROWS), Queues)

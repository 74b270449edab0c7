"""The states of a tree (LAZY section 6): made when they are reached, each with what it learned about its take edges."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import FLOAT64_ROWS, INT64_ROWS, INT64S
from cepheid.engine.data.matches import Int64s
from cepheid.engine.kernels.arrays import EVENTS, Events
from cepheid.engine.search.lazy.conditions import newly
from cepheid.engine.search.lazy.scope import scope
from cepheid.engine.search.lazy.shape import SHAPE, Shape

UNCONDITIONAL, UNKNOWN = 0.0, 2.0  # in place of a number of tests: there is nothing to test; nothing was tested yet
MEMORY = 4096.0  # candidates after which what was learned about an edge counts half
FADING = 1.0 - 1.0 / 256.0  # an edge that is not taken seems a little more selective with time, so it is tried again


class Edges(NamedTuple):
    """What was learned about take edges, a row per state: candidates looked at, and those that passed."""

    tested: npt.NDArray[np.float64]
    passed: npt.NDArray[np.float64]


EDGES = types.NamedUniTuple(FLOAT64_ROWS, 2, Edges)


@numba.njit(types.boolean(SHAPE, types.boolean, types.int64, types.int64), cache=True)
def tests_something(shape: Shape, compares: bool, filled: int, place: int) -> bool:
    """Can a candidate fail on the take edge of this place?"""
    both = filled | (1 << place)
    if compares and filled != 0:
        return True
    for needed in shape.needs:
        if newly(needed, filled, both):
            return True
    if shape.branches > 1:
        return both == (1 << shape.positives) - 1
    for needed in shape.neg_needs:
        if newly(needed, filled, both):
            return True
    return False


@numba.njit(types.void(SHAPE, types.boolean, EDGES, types.int64, types.int64), cache=True)
def make_edges(shape: Shape, compares: bool, edges: Edges, row: int, filled: int) -> None:
    """The edges of a state for partial matches with these places filled, with nothing known about them."""
    for place in range(shape.positives):
        # An edge without conditions lets everything pass; another is given one half until it is known better.
        edges.tested[row, place] = UNKNOWN if tests_something(shape, compares, filled, place) else UNCONDITIONAL
        edges.passed[row, place] = 1.0


@numba.njit(EDGES(EDGES), cache=True)
def grown_edges(edges: Edges) -> Edges:
    """The same edges with room for as many again."""
    rows, places = edges.tested.shape
    tested, passed = np.empty((2 * rows, places), np.float64), np.empty((2 * rows, places), np.float64)
    tested[:rows], passed[:rows] = edges.tested, edges.passed
    return Edges(tested, passed)


@numba.njit(types.void(EDGES, types.int64, types.int64, types.boolean), cache=True)
def learn_edge(edges: Edges, row: int, place: int, taken: bool) -> None:
    """Takes in what became of a candidate on a state's edge."""
    if edges.tested[row, place] == UNCONDITIONAL:
        return
    edges.tested[row, place] += 1.0
    if taken:
        edges.passed[row, place] += 1.0
    if edges.tested[row, place] > MEMORY:
        edges.tested[row, place] /= 2.0
        edges.passed[row, place] /= 2.0


@numba.njit(
    types.UniTuple(types.int64, 4)(
        EVENTS,
        SHAPE,
        INT64_ROWS,
        INT64S,
        INT64S,
        INT64S,
        types.int64,
        EDGES,
        types.int64,
        types.boolean,
    ),
    cache=True,
)
def choose(
    events: Events,
    shape: Shape,
    stacks: npt.NDArray[np.int64],
    low: Int64s,
    high: Int64s,
    at: Int64s,
    filled: int,
    edges: Edges,
    row: int,
    learn: bool,
) -> tuple[int, int, int, int]:
    """The open place to fill next, its scope, and the instant from which every open place has a candidate.

    Place -1: one has none (the paper's p_ne), so nothing is evaluated. By counters alone the fewest candidates win
    (p_se). With `learn`, the share that passed before counts, too: the rank of join ordering, (count * share - 1) /
    count, which is the order of the counts where nothing is known to fail.
    """
    best, best_low, best_high, ready = -1, 0, 0, 0
    best_rank = np.inf
    for place in range(shape.positives):
        if filled & (1 << place):
            continue
        begin, end = scope(events, shape, stacks[place], low[place], high[place], at, filled, place)
        if begin >= end:
            return -1, 0, 0, 0
        tested = edges.tested[row, place]
        share = edges.passed[row, place] / tested if learn and tested != UNCONDITIONAL else 1.0
        rank = share - 1.0 / (end - begin)
        if rank < best_rank:
            best, best_low, best_high, best_rank = place, begin, end, rank
        ready = max(ready, events.instant[stacks[place, begin]])
    for place in range(shape.positives):
        if place != best:
            edges.passed[row, place] *= FADING
    return best, best_low, best_high, ready


@numba.njit(types.boolean(EVENTS, SHAPE, INT64_ROWS, INT64S, INT64S, INT64S, types.int64), cache=True)
def lacks(
    events: Events,
    shape: Shape,
    stacks: npt.NDArray[np.int64],
    low: Int64s,
    high: Int64s,
    at: Int64s,
    filled: int,
) -> bool:
    """Has some open place no candidate in its scope?"""
    for place in range(shape.positives):
        if filled & (1 << place) == 0:
            begin, end = scope(events, shape, stacks[place], low[place], high[place], at, filled, place)
            if begin >= end:
                return True
    return False

"""Event-based evaluation that fills places in a fixed order, depth first (TIME sections 4.1, 4.3, C.1).

In the order of the pattern this is query-order evaluation with valid bounds kept up to date at every step; with the
rarest component first it is selectivity order. Candidates lie in order of their lower bound, so that bisection finds
those that the chosen events' bounds and the window leave. Under skip_till_next_match the latest time of the next event
ends the search early: once some event surely comes next, later ones need not be looked at.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import COLUMNS, INT64S, Columns
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.timed import STACKS, TIMED, Stacks, Timed, first_beyond, first_reaching, widest
from cepheid.engine.kernels.arrays import equal_codes
from cepheid.engine.kernels.lean import lean
from cepheid.engine.output.top import begin_partition, raise_bar
from cepheid.engine.search.intervals.found import (
    COUNTERS,
    EVALUATED,
    FOUND,
    JUDGED,
    OVERFLOW,
    PARTIAL,
    REPORTED,
    Found,
    nothing_found,
    put,
    with_room,
)
from cepheid.engine.search.intervals.query import SHAPE, Shape
from cepheid.engine.values.compiled import PREDICATE
from cepheid.engine.worth.confidence.bounds import tighten
from cepheid.engine.worth.confidence.confidence import judge
from cepheid.engine.worth.confidence.order import counted, workspace, precedes

Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]


@lean(types.int64(TIMED, SHAPE, types.int64, types.int64))
def completion_of(timed: Timed, shape: Shape, first: int, last: int) -> int:
    """When a match is known: once no event that begins later can be in it or in its way."""
    if shape.deadline >= 0:
        return timed.until[first] + shape.deadline  # type: ignore[no-any-return]
    return timed.until[last]  # type: ignore[no-any-return]


@lean(types.boolean(TIMED, SHAPE, types.int64, types.int64, types.int64))
def likely(timed: Timed, shape: Shape, before: int, event: int, after: int) -> bool:
    """Could a match in which these are neighbours (-1: none) be confident enough? An upper bound from pairs."""
    if before >= 0 and precedes(timed, before, event) < shape.least[0]:
        return False
    return not (after >= 0 and precedes(timed, event, after) < shape.least[0])


@lean(types.int64(TIMED, STACKS, types.int64, types.int64, types.int64))
def next_by(timed: Timed, stacks: Stacks, part: int, place: int, instant: int) -> int:
    """By when some event that begins after an instant has surely taken a place, if any event of its stack can."""
    end = stacks.begin[place, part + 1]
    index = first_beyond(stacks, timed.lower, stacks.begin[place, part], end, instant)
    return stacks.ahead[index] if index < end else NEVER


@numba.njit(
    types.Tuple((FOUND, INT64S, types.float64))(
        TIMED, SHAPE, STACKS, COLUMNS, types.FunctionType(PREDICATE), types.int64, types.int64, types.int64
    ),
    cache=True,
)
def search(
    timed: Timed,
    shape: Shape,
    stacks: Stacks,
    columns: Columns,
    predicate: Any,
    after: int,
    until: int,
    limit: int,
) -> tuple[Found, Int64s, float]:
    """All matches of all partitions, counters, and the cost of a confidence that was too expensive (0: none was)."""
    length, order = shape.positives, shape.order
    counters = np.zeros(COUNTERS, np.int64)
    found = nothing_found(length)
    room = workspace(widest(timed), length)
    places = np.zeros((length, length), np.int64)  # row k: the places filled after step k, in ascending order
    inserted = np.zeros(length, np.int64)  # where the place of step k stands among them
    for step in range(length):
        places[step, : step + 1] = np.sort(order[: step + 1])
        inserted[step] = np.searchsorted(places[step, : step + 1], order[step])
    forward = True  # the order of the pattern
    for step in range(length):
        forward = forward and order[step] == step
    simple = np.zeros(length, np.bool_)  # can any event of a place's stack take it, whatever came before?
    for place in range(length):
        simple[place] = shape.tested[place] == 0 and timed.compared.shape[0] == 0
    low, high = np.zeros((length, length), np.int64), np.zeros((length, length), np.int64)
    at = np.zeros(length + shape.negatives, np.int64)
    cursor, stop = np.zeros(length, np.int64), np.zeros(length, np.int64)
    nearest = np.zeros(length, np.int64)  # the latest time of the next event, as far as it is known
    no_counts, no_sums = np.empty(0, np.int64), np.empty(0, np.float64)
    plain = not shape.next and shape.negatives == 0  # nobody can disturb a match
    lower, upper = timed.lower, timed.upper
    for part in range(stacks.begin.shape[1] - 1):
        empty = False
        for place in range(length):
            empty = empty or stacks.begin[place, part] == stacks.begin[place, part + 1]
        if empty:
            continue
        begin_partition(shape)
        step = 0
        cursor[0], stop[0] = stacks.begin[order[0], part], stacks.begin[order[0], part + 1]
        nearest[0] = NEVER
        while step >= 0:
            if cursor[step] >= stop[step]:
                step -= 1
                continue
            event = stacks.member[cursor[step]]
            cursor[step] += 1
            place, slot = order[step], inserted[step]
            if lower[event] > nearest[step]:
                cursor[step] = stop[step]
                continue
            repeated = False
            if shape.shared:
                for index in range(step):
                    repeated = repeated or at[order[index]] == event
            if repeated:
                continue
            if step > 0 and timed.compared.shape[0] > 0:
                differs = False
                for index in range(step):
                    differs = differs or not equal_codes(timed.compared, at, order[index], order[index] + 1, event)
                if differs:
                    continue
            at[place] = event
            if shape.tested[length + step] == 1:
                counters[EVALUATED] += 1
                if not predicate(length + step, at, no_counts, no_sums, columns):
                    continue
            if shape.next and forward and step > 0 and lower[event] > high[step - 1, step - 1]:
                nearest[step] = min(nearest[step], upper[event])
            # Valid bounds with the new event among the others.
            for index in range(slot):
                low[step, index], high[step, index] = low[step - 1, index], high[step - 1, index]
            low[step, slot], high[step, slot] = lower[event], upper[event]
            for index in range(slot, step):
                low[step, index + 1], high[step, index + 1] = low[step - 1, index], high[step - 1, index]
            if not tighten(places[step], low[step], high[step], step + 1, length, shape.window):
                continue
            if shape.next and not forward:
                passed = slot > 0 and places[step, slot - 1] == place - 1 and simple[place]
                if passed and low[step, slot] > next_by(timed, stacks, part, place, high[step, slot - 1]):
                    continue
                passed = slot < step and places[step, slot + 1] == place + 1 and simple[place + 1]
                if passed and low[step, slot + 1] > next_by(timed, stacks, part, place + 1, high[step, slot]):
                    continue
            if shape.least[0] > 0.0 and step > 0:
                left = at[places[step, slot - 1]] if slot > 0 else -1
                right = at[places[step, slot + 1]] if slot < step else -1
                if not likely(timed, shape, left, event, right):
                    continue
            if step < length - 1:
                counters[PARTIAL] += 1
                following = order[step + 1]
                index = inserted[step + 1]
                reach_from, reach_to = low[step, step] - shape.window + 1, high[step, 0] + shape.window - 1
                if index > 0:
                    reach_from = max(reach_from, low[step, index - 1] + following - places[step, index - 1])
                if index <= step:
                    reach_to = min(reach_to, high[step, index] + following - places[step, index])
                bottom, top = stacks.begin[following, part], stacks.begin[following, part + 1]
                top = first_beyond(stacks, timed.lower, bottom, top, reach_to)
                cursor[step + 1] = first_reaching(stacks, bottom, top, reach_from)
                stop[step + 1] = top
                nearest[step + 1] = NEVER
                step += 1
                continue
            known = completion_of(timed, shape, at[0], at[length - 1])
            if known <= after or known > until:
                continue
            counters[JUDGED] += 1
            earliest, latest = low[step, 0], high[step, step]
            confidence = -1.0
            if plain:
                confidence = counted(lower, upper, timed.share, timed.base, at, low, high, length, shape.window)
            if confidence < 0.0:
                confidence, earliest, latest, cost = judge(
                    timed, shape, stacks, columns, predicate, part, at, low[step], high[step], room
                )
                if cost > 0.0:
                    return found, counters, cost
            if confidence <= 0.0 or confidence < shape.least[0]:
                continue
            if counters[REPORTED] == limit:
                counters[OVERFLOW] = 1
                return found, counters, 0.0
            if found.size[0] == len(found.completion):
                found = with_room(found)
            put(found, at, known, confidence, earliest, latest)
            raise_bar(shape, confidence)
            counters[REPORTED] += 1
    return found, counters, 0.0

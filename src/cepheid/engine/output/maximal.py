"""OUTPUT MAXIMAL: without matches whose events are a proper part of another reported one's, place by place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import numpy.typing as npt

from cepheid.engine.data.arrays import Bools, Int64Rows, Int64s
from cepheid.engine.data.candidates import partitions as by_equivalence
from cepheid.engine.data.candidates import passed_at, rank_within
from cepheid.engine.data.matches import MISSING, NEVER, Matches
from cepheid.engine.data.table import EventTable, times_of
from cepheid.engine.kernels.compile import borrowing, kernel, search_kernel
from cepheid.engine.kernels.stop import briefly, stop_flag
from cepheid.language.bound import BoundQuery
from cepheid.plan.physical import Plan

BEGINNING = np.iinfo(np.int64).min
OPEN, KEPT, CONTAINED = range(3)  # what is known of a match
FEW_HOLDERS = 64  # that are looked at before an index of all events is made


def find_maximal(
    run: Callable[[Plan, EventTable, int, int], Matches], plan: Plan, events: EventTable, after: int, until: int
) -> Matches:
    """The maximal ones of what an engine's `run` finds, with after < completion <= until.

    A match that contains another one is known within a window of it, and may have been known before. A group at the
    end of the pattern may grow as long as the window is open, so that its match is known only then; and a pattern that
    is an expression may have more to come after any of its ends.
    """
    window = plan.bound.window
    earlier = BEGINNING
    precise = not plan.bound.schema.is_imprecise  # else a larger one may have been known at any time before
    if precise and window is not None and not window.events and after > BEGINNING + window.length:
        earlier = after - window.length
    matches = maximal(run(plan, events, earlier, until))
    if plan.bound.may_grow:
        first = matches.first_rows(in_order=plan.bound.is_linear)
        matches = replace(matches, completion=deadlines(plan.bound, events, first))
    return matches.take(np.flatnonzero((matches.completion > after) & (matches.completion <= until)))


def deadlines(bound: BoundQuery, events: EventTable, rows: Int64s) -> Int64s:
    """When windows that open with these events have passed."""
    if bound.window is None:
        return np.full(len(rows), NEVER, np.int64)
    if bound.schema.upper is not None:
        return times_of(events.table, bound.schema.upper)[rows] + bound.window.length
    if not bound.window.events:
        return events.time[rows] + bound.window.length
    order, starts = by_equivalence(bound, events)
    position = rank_within(order, starts, events.instant)[1]
    return np.asarray(passed_at(order, starts, position, events.time, bound.window.length)[rows])


def maximal(matches: Matches) -> Matches:
    """The matches that no other one contains."""
    return matches if len(matches) < 2 else matches.take(np.flatnonzero(are_maximal(matches)))


def are_maximal(matches: Matches) -> npt.NDArray[np.bool_]:
    """Which of the matches no other one contains."""
    if len(matches) < 2:
        return np.ones(len(matches), bool)
    if any(group.offsets is not None for group in matches.chosen):
        return _maximal_groups(matches)
    return _maximal_rows(np.stack([group.rows for group in matches.chosen], axis=1))


def _maximal_rows(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """One event or none per component: a match is contained in another that agrees wherever it saw an event."""
    places = np.arange(rows.shape[1])
    seen = ((rows != MISSING) << places).sum(axis=1)
    kept = np.ones(len(rows), bool)
    kinds = np.unique(seen)
    for small, large in product(kinds, kinds):
        if small == large or small & large != small:
            continue
        shared = places[(small >> places) & 1 == 1]
        inner, outer = np.flatnonzero(seen == small), np.flatnonzero(seen == large)
        kept[inner[np.isin(_keys(rows[inner][:, shared]), _keys(rows[outer][:, shared]))]] = False
    return kept


def _keys(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.void]:
    """Each row as one value that can be compared."""
    whole = np.ascontiguousarray(rows)
    return whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1]))).ravel()


def _maximal_groups(matches: Matches) -> npt.NDArray[np.bool_]:
    """Kleene groups: compared as sets of events, place by place."""
    number, places = len(matches), len(matches.chosen)
    sizes = np.zeros((number, places), np.int64)
    for place, group in enumerate(matches.chosen):
        sizes[:, place] = (group.rows != MISSING) if group.offsets is None else np.diff(group.offsets)
    ends = np.cumsum(sizes.ravel())
    begins = np.empty((number, places + 1), np.int64)
    begins[:, 1:] = ends.reshape(number, places)
    begins[1:, 0], begins[0, 0] = begins[:-1, places], 0
    rows = np.empty(ends[-1], np.int64)
    ordered = True
    for place, group in enumerate(matches.chosen):
        seen = group.rows if (group.rows != MISSING).all() else group.rows[group.rows != MISSING]
        ordered &= fill_place(np.ascontiguousarray(seen), begins, rows, place)
    if not ordered:
        of_place = np.repeat(np.arange(number * places), sizes.ravel())
        rows = np.ascontiguousarray(rows[np.lexsort((rows, of_place))])
    totals = sizes.sum(axis=1)
    # Most matches have few events, and numpy sorts short integers by their digits, without comparing.
    totals = -totals.astype(np.int16) if totals.max() < 2**15 else -totals
    by_size, events = np.argsort(totals, kind="stable"), int(rows.max(initial=0)) + 1
    fewest = int(np.argmin(np.where((sizes > 0).all(axis=0), sizes.sum(axis=0), len(rows) + 1)))
    with briefly(number < FEW_HOLDERS):
        judged = among_holders(rows, begins, by_size, fewest, events)
        if (judged == OPEN).any():
            return np.asarray(largest(rows, begins, by_size, events, judged))
    return np.asarray(judged == KEPT)


@kernel
def fill_place(seen: Int64s, begins: Int64Rows, rows: Int64s, place: int) -> bool:
    """Writes the events of one place of every match where they belong; False if some are not in order."""
    at, ordered = 0, True
    for match in range(len(begins)):
        for index in range(begins[match, place], begins[match, place + 1]):
            rows[index] = seen[at]
            if index > begins[match, place] and rows[index - 1] > rows[index]:
                ordered = False
            at += 1
    return ordered


@borrowing
def contains(rows: Int64s, begins: Int64Rows, large: int, small: int) -> bool:
    """Does a match hold all events of another, place by place? The events of a place are in order."""
    for place in range(begins.shape[1] - 1):
        at, end = begins[large, place], begins[large, place + 1]
        for index in range(begins[small, place], begins[small, place + 1]):
            while at < end and rows[at] < rows[index]:
                at += 1
            if at == end or rows[at] != rows[index]:
                return False
            at += 1
    return True


@search_kernel
def among_holders(rows: Int64s, begins: Int64Rows, by_size: Int64s, place: int, events: int) -> Int64s:
    """Which matches no other one contains, judged by the holders of the first event of one place, largest first.

    That is the place with the fewest events, so that the list of holders is short. Most often the first of them
    contains the match; where many do not, the match stays OPEN.
    """
    number, places = len(begins), begins.shape[1] - 1
    judged = np.full(number, OPEN, np.int64)
    starts = np.zeros(events + 1, np.int64)
    held = 0
    for match in range(number):
        for index in range(begins[match, place], begins[match, place + 1]):
            starts[rows[index] + 1] += 1
            held += 1
    for event in range(events):
        starts[event + 1] += starts[event]
    holding, free = np.empty(held, np.int64), starts.copy()
    for match in by_size:
        for index in range(begins[match, place], begins[match, place + 1]):
            holding[free[rows[index]]] = match
            free[rows[index]] += 1
    for match in range(number):
        if stop_flag() != 0:
            break
        if begins[match, place] == begins[match, place + 1]:
            continue
        size, event = begins[match, places] - begins[match, 0], rows[begins[match, place]]
        stop = min(starts[event + 1], starts[event] + FEW_HOLDERS)
        judged[match] = KEPT if stop == starts[event + 1] else OPEN
        for at in range(starts[event], stop):
            other = holding[at]
            if begins[other, places] - begins[other, 0] <= size:
                judged[match] = KEPT
                break
            if contains(rows, begins, other, match):
                judged[match] = CONTAINED
                break
    return judged


@search_kernel
def largest(rows: Int64s, begins: Int64Rows, by_size: Int64s, events: int, judged: Int64s) -> Bools:
    """Which matches no other one contains, where some are still to be judged.

    `rows` are the events of match after match, place after place, and begins[m, p] says where those of a place begin.
    A match that contains another holds the first event of each of its places, so only those are looked at that hold the
    one that fewest do, the largest first (`by_size`): most often the first of them contains it.
    """
    number, places = len(begins), begins.shape[1] - 1
    starts = np.zeros(places * events + 1, np.int64)  # by place and event: where the matches that hold it begin
    for match in range(number):
        for place in range(places):
            for index in range(begins[match, place], begins[match, place + 1]):
                starts[place * events + rows[index] + 1] += 1
    for code in range(places * events):
        starts[code + 1] += starts[code]
    holding, free = np.empty(len(rows), np.int64), starts.copy()
    for match in by_size:
        for place in range(places):
            for index in range(begins[match, place], begins[match, place + 1]):
                code = place * events + rows[index]
                holding[free[code]] = match
                free[code] += 1
    kept = np.ones(number, np.bool_)
    for match in range(number):
        if stop_flag() != 0:
            break
        if judged[match] != OPEN:
            kept[match] = judged[match] == KEPT
            continue
        size = begins[match, places] - begins[match, 0]
        rarest = -1
        for place in range(places):
            if begins[match, place] < begins[match, place + 1]:
                code = place * events + rows[begins[match, place]]
                if rarest < 0 or starts[code + 1] - starts[code] < starts[rarest + 1] - starts[rarest]:
                    rarest = code
        if rarest < 0:
            continue
        for index in range(starts[rarest], starts[rarest + 1]):
            other = holding[index]
            if begins[other, places] - begins[other, 0] <= size or stop_flag() != 0:
                break
            if contains(rows, begins, other, match):
                kept[match] = False
                break
    return kept

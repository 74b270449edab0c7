"""OUTPUT MAXIMAL: without matches whose events are a proper part of another reported one's, place by place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.candidates import partitions as by_equivalence
from cepheid.engine.data.candidates import passed_at, rank_within
from cepheid.engine.data.columns import INT64_ROWS, INT64S
from cepheid.engine.data.matches import MISSING, NEVER, Int64s, Matches
from cepheid.engine.data.table import EventTable, times_of
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.language.bound import BoundQuery
from cepheid.plan.physical import Plan

Rows = npt.NDArray[np.int64]

BEGINNING = np.iinfo(np.int64).min


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
    precise = plan.bound.schema.lower is None  # else a larger one may have been known at any time before
    if precise and window is not None and not window.events and after > BEGINNING + window.length:
        earlier = after - window.length
    matches = maximal(run(plan, events, earlier, until))
    if plan.bound.positives[-1].kleene or plan.bound.pattern is not None:
        first = _first_rows(matches, any_order=plan.bound.pattern is not None)
        matches = replace(matches, completion=deadlines(plan.bound, events, first))
    return matches.take(np.flatnonzero((matches.completion > after) & (matches.completion <= until)))


def _first_rows(matches: Matches, any_order: bool) -> Int64s:
    """The first event of each match that was seen; rows are in the order of time, variables may be in any."""
    if any_order:
        rows = np.stack([group.first() for group in matches.chosen])
        return np.asarray(np.where(rows == MISSING, NEVER, rows).min(axis=0))
    first = np.full(len(matches), MISSING, np.int64)
    for group in matches.chosen:
        first = np.where(first == MISSING, group.first(), first)
    return first


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
    if len(matches) < 2:
        return matches
    if any(group.offsets is not None for group in matches.chosen):
        kept = _maximal_groups(matches)
    else:
        kept = _maximal_rows(np.stack([group.rows for group in matches.chosen], axis=1))
    return matches.take(np.flatnonzero(kept))


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
    members: list[Int64s] = []
    for place, group in enumerate(matches.chosen):
        if group.offsets is None:
            sizes[:, place] = group.rows != MISSING
        else:
            sizes[:, place] = np.diff(group.offsets)
        here = group.rows[group.rows != MISSING]
        members += [np.repeat(np.arange(number), sizes[:, place]), np.full(len(here), place), here]
    of_match, of_place, rows = (np.concatenate(members[kind::3]) for kind in range(3))
    order = np.lexsort((rows, of_place, of_match))
    begins = np.concatenate([[0], np.cumsum(sizes.ravel())]).astype(np.int64)
    kept: npt.NDArray[np.bool_] = largest(
        np.ascontiguousarray(rows[order]),
        np.ascontiguousarray(begins[np.arange(number)[:, None] * places + np.arange(places + 1)]),
        np.argsort(-sizes.sum(axis=1), kind="stable"),
        int(rows.max(initial=0)) + 1,
    )
    return kept


@borrowing(types.boolean(INT64S, INT64_ROWS, types.int64, types.int64))
def contains(rows: Int64s, begins: Rows, large: int, small: int) -> bool:
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


@kernel(types.Array(types.boolean, 1, "C")(INT64S, INT64_ROWS, INT64S, types.int64))
def largest(rows: Int64s, begins: Rows, by_size: Int64s, events: int) -> npt.NDArray[np.bool_]:
    """Which matches no other one contains.

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
            if begins[other, places] - begins[other, 0] <= size:
                break
            if contains(rows, begins, other, match):
                kept[match] = False
                break
    return kept

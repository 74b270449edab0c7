"""OUTPUT MAXIMAL: without matches whose events are a proper part of another reported one's, place by place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import numpy.typing as npt

from cepheid.engine.data.candidates import partitions as by_equivalence
from cepheid.engine.data.candidates import passed_at, rank_within
from cepheid.engine.data.matches import MISSING, NEVER, Int64s, Matches
from cepheid.engine.data.table import EventTable, times_of
from cepheid.language.bound import BoundQuery
from cepheid.plan.physical import Plan

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
    """Kleene groups: compared as sets, among matches that share the first event that was seen last."""
    groups = [tuple(frozenset(group) for group in match) for match in matches.groups()]
    holding: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, match in enumerate(groups):
        for place, group in enumerate(match):
            for event in group:
                holding[place, event].append(number)
    kept = np.ones(len(groups), bool)
    for number, match in enumerate(groups):
        place = max(index for index, group in enumerate(match) if group)
        for other in holding[place, min(match[place])]:
            larger = groups[other]
            if larger != match and all(small <= large for small, large in zip(match, larger, strict=True)):
                kept[number] = False
                break
    return kept

"""Totals over the shared match buffer, for every query that runs can follow: its paths are added up, not listed.

An entry has the sums of all paths that lead to it: those of its predecessor with the event added, or those of the two
entries that it joins. Where a window cuts paths off that began too early, the sums are made for one first event after
the other. Memory is that of the buffer, in which runs that go on alike are one (merging.py).
"""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.table import EventTable
from cepheid.engine.data.totals import GroupTotals, groups_of, lanes_of
from cepheid.engine.kernels.compile import borrowing, search_kernel
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.kernels.sum_products import carry_over
from cepheid.engine.kernels.sums import (
    LaneValues,
    Sums,
    add,
    clear,
    exact_sums,
    new_sums,
    report,
    take_event,
)
from cepheid.engine.search.runs import find_compressed
from cepheid.engine.search.runs.buffer import EARLIEST, ENTRY, EVENT, JOINED, KNOWN, LEFT, RIGHT
from cepheid.language.bound import BoundSummary
from cepheid.plan.physical import Plan

ALL = -1  # all first events at once


def total(plan: Plan, summary: BoundSummary, events: EventTable, after: int, until: int) -> GroupTotals:
    """The totals over the matches with after < completion <= until."""
    found = find_compressed(plan, events, after, until)
    rows = found.prepared.candidates.rows
    ends = rows[found.entries[found.accepted[:, ENTRY], EVENT]]
    groups = groups_of(summary, events, ends, found.accepted[:, KNOWN], np.ones(len(ends), np.int64))
    lanes = lanes_of(plan.bound, summary, events).at(rows)
    values = LaneValues(lanes.exact, lanes.exact_place, lanes.rough, lanes.rough_place, lanes.rank, lanes.rank_place)
    reported = add_paths(
        np.ascontiguousarray(found.entries),
        np.ascontiguousarray(found.accepted),
        groups.group,
        len(groups.rows),
        values,
    )
    exact = exact_sums(reported, 1 + len(lanes.exact))
    return GroupTotals(lanes, groups.rows, groups.bucket, exact, reported.near, reported.least, found.counters)


@borrowing
def reach(sums: Sums, entries: Int64Rows, lanes: LaneValues, entry: int, root: int) -> None:
    """The sums of the paths that lead to an entry, or of those that begin with one of the entries before it."""
    clear(sums, entry)
    event, left, right = entries[entry, EVENT], entries[entry, LEFT], entries[entry, RIGHT]
    if event == JOINED:
        if left >= root:
            add(sums, entry, sums, left)
        if right >= root:
            add(sums, entry, sums, right)
        carry_over(sums, entry)
        return
    if left < 0:
        if root in (ALL, entry):
            sums.pieces[entry, 0] += 1
            sums.near[entry, 0] += 1.0
    elif left >= root:
        add(sums, entry, sums, left)
    if sums.near[entry, 0] != 0.0:
        take_event(sums, entry, lanes, right, event)


@borrowing
def cut_off(entries: Int64Rows, accepted: Int64Rows, oldest: Int64s) -> bool:
    """Does some accepting entry have paths that began too early? Fills in the oldest beginning of each entry."""
    for entry in range(len(entries)):
        left = entries[entry, LEFT]
        if entries[entry, EVENT] == JOINED:
            oldest[entry] = min(oldest[left], oldest[entries[entry, RIGHT]])
        else:
            oldest[entry] = oldest[left] if left >= 0 else entries[entry, EVENT]
    for row in range(len(accepted)):
        if oldest[accepted[row, ENTRY]] < accepted[row, EARLIEST]:
            return True
    return False


@search_kernel
def add_paths(entries: Int64Rows, accepted: Int64Rows, group: Int64s, groups: int, lanes: LaneValues) -> Sums:
    """The sums of every group over the paths of its accepting entries."""
    sums, reported = new_sums(len(entries), lanes), new_sums(groups, lanes)
    oldest = np.zeros(len(entries), np.int64)
    if not cut_off(entries, accepted, oldest):
        for entry in range(len(entries)):
            reach(sums, entries, lanes, entry, ALL)
            if stop_flag() != 0:
                return reported
        for row in range(len(accepted)):
            report(reported, group[row], sums, accepted[row, ENTRY])
        return reported
    # For each first event: the entries from its own on, up to the last accepting one that a path from it may reach.
    earliest, ends = accepted[:, EARLIEST].copy(), accepted[:, ENTRY].copy()
    order, by_entry = np.argsort(earliest), np.argsort(ends)
    farthest = np.zeros(len(order) + 1, np.int64)
    for place in range(len(order)):
        farthest[place + 1] = max(farthest[place], accepted[order[place], ENTRY] + 1)
    earliest, ends = earliest[order], ends[by_entry]
    for root in range(len(entries)):
        if entries[root, EVENT] == JOINED or entries[root, LEFT] >= 0:
            continue
        first = entries[root, EVENT]
        stop = farthest[np.searchsorted(earliest, first, side="right")]
        for entry in range(root, stop):
            reach(sums, entries, lanes, entry, root)
            if stop_flag() != 0:
                return reported
        for place in range(np.searchsorted(ends, root), np.searchsorted(ends, stop)):
            row = by_entry[place]
            if accepted[row, EARLIEST] <= first and sums.near[accepted[row, ENTRY], 0] != 0.0:
                report(reported, group[row], sums, accepted[row, ENTRY])
    return reported

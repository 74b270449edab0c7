"""Totals over the shared match buffer, for every query that runs can follow: its paths are added up, not listed.

An entry has the sums of all paths that lead to it: those of its predecessor with the event added, or those of the two
entries that it joins. Where a window cuts paths off that began too early, entries are cut into blocks that a window
spans: a path ends in the block that it began in, or in the next one. For an entry by which paths cross over, the sums
up to it by first event and those from it on are multiplied. Where more entries are crossed by than paths begin with,
the sums are made for one first event after the other. Memory is that of the buffer, in which runs that go on alike are
one (merging.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.table import EventTable
from cepheid.engine.data.totals import GroupTotals, groups_of, lanes_of
from cepheid.engine.kernels.compile import borrowing, kernel, search_kernel
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.kernels.sum_products import add_pairs, carry_over
from cepheid.engine.kernels.sums import (
    LIMBS,
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
from cepheid.engine.search.runs.buffer import EARLIEST, ENTRY, EVENT, JOINED, KNOWN, LATEST, LEFT, RIGHT
from cepheid.language.bound import BoundSummary
from cepheid.plan.physical import Plan

ALL = -1  # all first events at once
TOO_MANY = 2e38  # an exact count(*) of more matches is refused, so nothing is added to it


def total(plan: Plan, summary: BoundSummary, events: EventTable, after: int, until: int) -> GroupTotals:
    """The totals over the matches with after < completion <= until."""
    found = find_compressed(plan, events, after, until)
    rows = found.prepared.candidates.rows
    ends = rows[found.entries[found.accepted[:, ENTRY], EVENT]]
    groups = groups_of(summary, events, ends, found.accepted[:, KNOWN], np.ones(len(ends), np.int64))
    lanes = lanes_of(plan.bound, summary, events).at(rows)
    values = LaneValues(lanes.exact, lanes.exact_place, lanes.rough, lanes.rough_place, lanes.rank, lanes.rank_place)
    entries, accepted = np.ascontiguousarray(found.entries), np.ascontiguousarray(found.accepted)
    limit = TOO_MANY if any(each.variable is None and each.function == "count" for each in summary.totals) else np.inf
    reported = add_paths(Task(entries, accepted, groups.group, values), len(groups.rows), limit)
    exact = exact_sums(reported, 1 + len(lanes.exact))
    return GroupTotals(lanes, groups.rows, groups.bucket, exact, reported.near, reported.least, found.counters)


class Task(NamedTuple):
    """What is added up: the buffer, its accepting entries, the group of each, and what events add."""

    entries: Int64Rows
    accepted: Int64Rows
    group: Int64s
    lanes: LaneValues


class Room(NamedTuple):
    """Rows of sums to work on."""

    sums: Sums  # by entry
    begun: Sums  # by root of a block: what began there or later
    step: Sums  # one row...
    pieces: Int64Rows  # ... and pieces of products


@borrowing
def reach(sums: Sums, task: Task, entry: int, low: int, origin: int) -> None:
    """The sums of the paths that lead to an entry from another one, or (ALL) from all beginnings from `low` on."""
    clear(sums, entry)
    event, left, right = task.entries[entry, EVENT], task.entries[entry, LEFT], task.entries[entry, RIGHT]
    if event == JOINED:
        if left >= low or left == origin:
            add(sums, entry, sums, left)
        if right >= low or right == origin:
            add(sums, entry, sums, right)
        carry_over(sums, entry)
        return
    if left < 0:
        if origin in (ALL, entry):
            sums.pieces[entry, 0] += 1
            sums.near[entry, 0] += 1.0
    elif left >= low or left == origin:
        add(sums, entry, sums, left)
    if sums.near[entry, 0] != 0.0:
        take_event(sums, entry, task.lanes, right, event)


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


@kernel
def roots_between(entries: Int64Rows, low: int, high: int) -> Int64s:
    """The entries of some that begin a path."""
    count = 0
    for entry in range(low, high):
        count += entries[entry, EVENT] != JOINED and entries[entry, LEFT] < 0
    found = np.empty(count, np.int64)
    count = 0
    for entry in range(low, high):
        if entries[entry, EVENT] != JOINED and entries[entry, LEFT] < 0:
            found[count] = entry
            count += 1
    return found


@kernel
def blocks_of(entries: Int64Rows, accepted: Int64Rows) -> Int64s:
    """Where blocks of entries begin such that a path ends in the block that it began in, or in the next one.

    In one block no window cuts a path off. Nothing if beginnings or ends are not in the order of time.
    """
    none = np.empty(0, np.int64)
    roots = roots_between(entries, 0, len(entries))
    for index in range(1, len(roots)):
        if entries[roots[index], EVENT] < entries[roots[index - 1], EVENT]:
            return none
    starts = np.zeros(len(accepted) + 2, np.int64)
    blocks, root = 1, 0
    for row in range(len(accepted)):
        entry, earliest = accepted[row, ENTRY], accepted[row, EARLIEST]
        if row > 0 and (entry <= accepted[row - 1, ENTRY] or earliest < accepted[row - 1, EARLIEST]):
            return none
        if root < len(roots) and earliest > entries[roots[root], EVENT]:
            starts[blocks] = entry
            blocks += 1
            while root < len(roots) and roots[root] < entry:
                root += 1
    starts[blocks] = len(entries)
    return starts[: blocks + 1]


@borrowing
def add_from_root(room: Room, task: Task, reported: Sums, root: int, rows: tuple[int, int]) -> None:
    """Reports the paths that lead from one root to some of the accepting entries, as far as the window lets them."""
    sums, accepted, first = room.sums, task.accepted, task.entries[root, EVENT]
    last = -1
    for row in range(rows[0], rows[1]):
        if accepted[row, EARLIEST] <= first:
            last = max(last, accepted[row, ENTRY])
    for entry in range(root, last + 1):
        reach(sums, task, entry, root, root)
    for row in range(rows[0], rows[1]):
        entry = accepted[row, ENTRY]
        if root <= entry and accepted[row, EARLIEST] <= first and sums.near[entry, 0] != 0.0:
            report(reported, task.group[row], sums, entry)


@borrowing
def go_back(room: Room, task: Task, roots: Int64s, low: int, through: int) -> None:
    """For each root of a block: what began there or later has come to when it leads to the entry `through`."""
    sums, begun, entries = room.sums, room.begun, task.entries
    for entry in range(low, through + 1):
        clear(sums, entry)
    sums.pieces[through, 0], sums.near[through, 0] = 1, 1.0
    for entry in range(through, low - 1, -1):
        if sums.near[entry, 0] == 0.0:
            continue
        left, right = entries[entry, LEFT], entries[entry, RIGHT]
        if entries[entry, EVENT] == JOINED:
            carry_over(sums, entry)
            if right >= low:
                add(sums, right, sums, entry)
        else:
            take_event(sums, entry, task.lanes, right, entries[entry, EVENT])
        if left >= low:
            add(sums, left, sums, entry)
    clear(begun, len(roots))
    for index in range(len(roots) - 1, -1, -1):
        clear(begun, index)
        add(begun, index, begun, index + 1)
        if roots[index] <= through:
            add(begun, index, sums, roots[index])
        carry_over(begun, index)


@borrowing
def add_through(
    room: Room, task: Task, reported: Sums, roots: Int64s, through: int, rows: tuple[int, int], low: int
) -> None:
    """Reports the paths from the roots of one block, through its entry `through`, to accepting ones of the next."""
    sums, accepted, entries = room.sums, task.accepted, task.entries
    clear(sums, through)
    sums.pieces[through, 0], sums.near[through, 0] = 1, 1.0
    for entry in range(low, accepted[rows[1] - 1, ENTRY] + 1):
        reach(sums, task, entry, low, through)
    first = 0
    for row in range(rows[0], rows[1]):
        while first < len(roots) and entries[roots[first], EVENT] < accepted[row, EARLIEST]:
            first += 1
        entry = accepted[row, ENTRY]
        if entry >= low and sums.near[entry, 0] != 0.0 and room.begun.near[first, 0] != 0.0:
            carry_over(sums, entry)
            clear(room.step, 0)
            add_pairs(room.step, 0, sums, entry, room.begun, first, room.pieces)
            report(reported, task.group[row], room.step, 0)


@kernel
def add_across(room: Room, task: Task, reported: Sums, starts: Int64s, block: int, rows: tuple[int, int]) -> None:
    """Reports the paths that began in the block before: by the entries that they cross over by, or by their roots."""
    before, begin, end = starts[block - 1], starts[block], task.accepted[rows[1] - 1, ENTRY] + 1
    earliest, entries = task.accepted[rows[0], EARLIEST], task.entries
    roots = roots_between(entries, before, begin)
    possible = 0
    for root in roots:
        possible += entries[root, EVENT] >= earliest
    first_use = np.full(begin - before, -1, np.int64)
    crossed = 0
    for entry in range(begin, end):
        for side in (LEFT, RIGHT):
            other = entries[entry, side]
            used = side == LEFT or entries[entry, EVENT] == JOINED
            if (
                used
                and before <= other < begin
                and entries[other, LATEST] >= earliest
                and first_use[other - before] < 0
            ):
                first_use[other - before] = entry
                crossed += 1
    if 2 * crossed < possible:
        for other in range(before, begin):
            if first_use[other - before] >= 0 and stop_flag() == 0:
                go_back(room, task, roots, before, other)
                add_through(room, task, reported, roots, other, rows, first_use[other - before])
        return
    for root in roots:
        if entries[root, EVENT] >= earliest and stop_flag() == 0:
            add_from_root(room, task, reported, root, rows)


@search_kernel
def add_paths(task: Task, groups: int, limit: float) -> Sums:
    """The sums of every group over the paths of its accepting entries.

    It stops at a group that has more than `limit` of them, and says that these are infinitely many.
    """
    entries, accepted, group, lanes = task
    cut = cut_off(entries, accepted, np.zeros(len(entries), np.int64))
    starts = blocks_of(entries, accepted) if cut else np.array([0, len(entries)])
    most = 0
    for block in range(1, len(starts)):
        most = max(most, len(roots_between(entries, starts[block - 1], starts[block])))
    sums, reported = new_sums(len(entries), lanes), new_sums(groups, lanes)
    room = Room(sums, new_sums(most + 1, lanes), new_sums(1, lanes), np.zeros((3, LIMBS), np.int64))
    if len(starts) == 0:
        for root in roots_between(entries, 0, len(entries)):
            add_from_root(room, task, reported, root, (0, len(accepted)))
            if stop_flag() != 0:
                break
        return reported
    row = 0
    for block in range(len(starts) - 1):
        for entry in range(starts[block], starts[block + 1]):
            reach(sums, task, entry, starts[block], ALL)
            if stop_flag() != 0:
                return reported
        begun = row
        while row < len(accepted) and (not cut or accepted[row, ENTRY] < starts[block + 1]):
            report(reported, group[row], sums, accepted[row, ENTRY])
            if reported.near[group[row], 0] > limit:
                reported.near[group[row], 0] = np.inf
                return reported
            row += 1
        if block > 0 and row > begun:
            add_across(room, task, reported, starts, block, (begun, row))
    return reported

"""One match and its competitors, laid out for computing its confidence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64Rows, Float64s, Int64Rows, Int64s
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.timed import Timed
from cepheid.engine.kernels.compile import borrowing, called_by_address, kernel


class CompetingTables(NamedTuple):
    """One match and its competitors, with all the probabilities that are needed.

    The valid instants of the match's events lie one after the other: instant t of event j at place offset[j] + t.
    Competitors of one gap come first, gap by gap: gap g has those from singles[g] to singles[g + 1] - 1. Then come the
    ambiguous ones, those of several gaps.
    """

    low: Int64s  # valid bounds of the match's events
    high: Int64s
    window: int
    coupled: bool  # does it matter how far the first event is from the last?
    offset: Int64s
    weight: Float64s  # P(event j happens at t)
    singles: Int64s
    disturbs: Int64Rows  # for each ambiguous competitor a row: which gaps it could disturb
    point: Float64Rows  # for each competitor: P(T = t)
    before: Float64Rows  # P(T <= t)
    after: Float64Rows  # P(T >= t)
    early: Float64Rows  # P(T <= t - window), for the instants of the last event
    late: Float64Rows  # P(T >= t + window), for those of the first
    first: Int64s  # for each competitor its first and its last instant
    last: Int64s


@borrowing
def spread_point(timed: Timed, event: int, first: int, ramp: Float64s, row: Float64s) -> None:
    """P(T = t) for all t from `first` on. Here and below without branches: several steps are done at a time.

    `ramp` is 0, 1, 2 and so on: processors that turn whole numbers into others do so one at a time.
    """
    lower, upper, share, base = timed.lower[event], timed.upper[event], timed.share[event], timed.base[event]
    begin, end = float(lower - first), float(upper - first)
    for index in range(len(row)):
        row[index] = share if begin <= ramp[index] <= end else 0.0
    if base >= 0:
        for instant in range(max(lower, first), min(upper, first + len(row) - 1) + 1):
            row[instant - first] = timed.point[base + instant - lower]


@borrowing
def spread_before(timed: Timed, event: int, first: int, ramp: Float64s, row: Float64s) -> None:
    """P(it happened, and T <= t) for the same instants."""
    lower, share, base, exists = timed.lower[event], timed.share[event], timed.base[event], timed.exists[event]
    width, past = timed.upper[event] - lower + 1, first - lower + 1
    if base < 0:
        whole, begin, each = float(width), float(past), share * exists
        for index in range(len(row)):
            number = begin + ramp[index]
            row[index] = 0.0 if number <= 0.0 else exists if number >= whole else number * each
        return
    for index in range(len(row)):
        count = past + index
        row[index] = 0.0 if count <= 0 else exists if count >= width else timed.below[base + count - 1] * exists


@borrowing
def spread_after(timed: Timed, event: int, first: int, ramp: Float64s, row: Float64s) -> None:
    """P(T >= t) for the same instants; what never happens counts as later than anything."""
    lower, upper, share, base = timed.lower[event], timed.upper[event], timed.share[event], timed.base[event]
    exists, width, never = timed.exists[event], upper - lower + 1, 1.0 - timed.exists[event]
    if base < 0:
        whole, end, each = float(width), float(upper - first + 1), share * exists
        for index in range(len(row)):
            number = end - ramp[index]
            row[index] = (0.0 if number <= 0.0 else exists if number >= whole else number * each) + never
        return
    for index in range(len(row)):
        count = upper - first + 1 - index
        weight = 0.0 if count <= 0 else exists if count >= width else timed.above[base + width - count] * exists
        row[index] = weight + never


@kernel
def by_gap(keys: Int64s, gaps: int) -> tuple[Int64s, Int64s, Int64Rows]:
    """Competitors in the order that `CompetingTables` wants, its `singles` and its `disturbs`."""
    singles = np.zeros(gaps + 1, np.int64)
    number, multiple = 0, 0
    for index in range(len(keys)):
        if index > 0 and keys[index] // gaps == keys[index - 1] // gaps:
            continue
        number += 1
        if index + 1 < len(keys) and keys[index] // gaps == keys[index + 1] // gaps:
            multiple += 1
        else:
            singles[keys[index] % gaps + 1] += 1
    for gap in range(gaps):
        singles[gap + 1] += singles[gap]
    free = singles.copy()
    competitors, disturbs = np.empty(number, np.int64), np.zeros((multiple, gaps), np.int64)
    multiple = -1
    for index in range(len(keys)):
        event, gap = keys[index] // gaps, keys[index] % gaps
        again = index > 0 and event == keys[index - 1] // gaps
        if not again and (index + 1 == len(keys) or event != keys[index + 1] // gaps):
            competitors[free[gap]] = event
            free[gap] += 1
            continue
        if not again:
            multiple += 1
            competitors[singles[gaps] + multiple] = event
        disturbs[multiple, gap] = 1
    return competitors, singles, disturbs


@kernel
def task(timed: Timed, chosen: Int64s, low: Int64s, high: Int64s, window: int, keys: Int64s) -> CompetingTables:
    """The match and its competitors; `keys` holds competitor * (number of gaps) + gap, sorted, each once."""
    competitors, singles, disturbs = by_gap(keys, len(chosen) + 1)
    return tables(timed, chosen, low, high, window, competitors, singles, disturbs)


@kernel
def independent(timed: Timed, chosen: Int64s, low: Int64s, high: Int64s, window: int, keys: Int64s) -> CompetingTables:
    """The same as if a competitor of several gaps were as many competitors that know nothing of each other."""
    gaps = len(chosen) + 1
    singles, competitors, count = np.zeros(gaps + 1, np.int64), np.empty(len(keys), np.int64), 0
    for gap in range(gaps):
        for key in keys:
            if key % gaps == gap:
                competitors[count] = key // gaps
                count += 1
        singles[gap + 1] = count
    return tables(timed, chosen, low, high, window, competitors, singles, np.zeros((0, gaps), np.int64))


@called_by_address
def tables(
    timed: Timed,
    chosen: Int64s,
    low: Int64s,
    high: Int64s,
    window: int,
    competitors: Int64s,
    singles: Int64s,
    disturbs: Int64Rows,
) -> CompetingTables:
    """All the probabilities for a match and its competitors, which are in the order that `CompetingTables` wants."""
    length = len(chosen)
    final = length - 1
    edged = singles[1] > 0 or singles[length] < singles[length + 1]
    for which in range(disturbs.shape[0]):
        edged = edged or disturbs[which, 0] != 0 or disturbs[which, length] != 0
    offset = np.empty(length, np.int64)
    size = 0
    for step in range(length):
        offset[step] = size - low[step]
        size += high[step] - low[step] + 1
    weight, number, ramp = np.empty(size), len(competitors), np.arange(0.0, size)
    for step in range(length):
        start, stop = offset[step] + low[step], offset[step] + high[step] + 1
        spread_point(timed, chosen[step], low[step], ramp, weight[start:stop])
    point, before, after = np.empty((number, size)), np.empty((number, size)), np.empty((number, size))
    early = np.empty((number if edged else 0, high[final] - low[final] + 1))
    late = np.empty((number if edged else 0, high[0] - low[0] + 1))
    first, last = np.empty(number, np.int64), np.empty(number, np.int64)
    for competitor in range(number):
        event = competitors[competitor]
        first[competitor], last[competitor] = timed.lower[event], timed.upper[event]
        if timed.exists[event] < 1.0:
            last[competitor] = NEVER  # it may not happen at all, which is as good as happening later than anything
        for step in range(length):
            start, stop = offset[step] + low[step], offset[step] + high[step] + 1
            spread_before(timed, event, low[step], ramp, before[competitor, start:stop])
            spread_after(timed, event, low[step], ramp, after[competitor, start:stop])
            if competitor >= singles[length + 1]:
                spread_point(timed, event, low[step], ramp, point[competitor, start:stop])
        if competitor >= singles[length + 1]:
            point[competitor] *= timed.exists[event]
        if edged:
            spread_before(timed, event, low[final] - window, ramp, early[competitor])
            spread_after(timed, event, low[0] + window, ramp, late[competitor])
    coupled = edged or (length > 1 and high[final] - low[0] >= window)
    return CompetingTables(
        low, high, window, coupled, offset, weight, singles, disturbs, point, before, after, early, late, first, last
    )


@borrowing
def undisturbed(
    before: Float64Rows,
    after: Float64Rows,
    competitor_from: int,
    competitor_to: int,
    start: int,
    stop: int,
    size: int,
    shares: Float64s,
) -> None:
    """For each of `size` places from `stop` on: P(no competitor lies strictly between place `start` and it)."""
    for index in range(size):
        shares[index] = 1.0
    for competitor in range(competitor_from, competitor_to):
        happened, later = before[competitor, start], after[competitor, stop : stop + size]
        for index in range(size):  # over a slice: then several steps are done at a time
            shares[index] *= happened + later[index]


@borrowing
def edges(job: CompetingTables, first: int, last: int) -> float:
    """The same for the gaps before the first and after the last event of the match, and their instants."""
    final = len(job.low) - 1
    total = 1.0
    for competitor in range(job.singles[0], job.singles[1]):
        total *= job.early[competitor, last - job.low[final]] + job.after[competitor, job.offset[0] + first]
    for competitor in range(job.singles[final + 1], job.singles[final + 2]):
        total *= job.before[competitor, job.offset[final] + last] + job.late[competitor, first - job.low[0]]
    return total

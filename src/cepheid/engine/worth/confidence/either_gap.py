"""The confidence of a match of three events some of whose rivals could disturb it in either of its two gaps.

This is the usual case where one event fits several places. At instants s < t < u such a rival is harmless if it comes
by s, at t, or from u on: P(T <= s) + P(T >= u) + P(T = t). The last term alone depends on t, and it is the same for all
instants t between two at which one of the rivals begins or ends. So instants of the middle event are taken stretch by
stretch, not one by one: for each stretch the rivals' factors are a function of s and u. That is exact, quadratic in the
width of the intervals and linear in the number of rivals for each stretch, where going through instants is cubic and
remembering who has happened is exponential in the number of rivals. Only what is possible is added up, as everywhere.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import FLOAT64_ROWS, FLOAT64S, INT64S
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.worth.confidence.rival_tables import RIVAL_TABLES, RivalTables, edges, undisturbed

Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float64]


@kernel(INT64S(INT64S, INT64S, types.int64, types.int64, INT64S))
def as_either_gap(lower: Int64s, upper: Int64s, low: int, high: int, keys: Int64s) -> Int64s:
    """The keys with both gaps for rivals of one that can never lie in the other, where some rival has both anyway.

    They are those that have happened by the middle event's first instant `low`, or not before its last one, `high`.
    Rivals of one gap tie the middle event to a neighbour; taken so, they do not.
    """
    both = False
    for index in range(1, len(keys)):
        both = both or (keys[index] == keys[index - 1] + 1 and keys[index] % 4 == 2)
    if not both:
        return keys
    found, count = np.empty(2 * len(keys), np.int64), 0
    for index in range(len(keys)):
        event, gap = keys[index] // 4, keys[index] % 4
        alone = (index == 0 or keys[index - 1] // 4 != event) and (
            index + 1 == len(keys) or keys[index + 1] // 4 != event
        )
        if alone and gap == 2 and lower[event] >= high:
            found[count] = keys[index] - 1
            count += 1
        found[count] = keys[index]
        count += 1
        if alone and gap == 1 and upper[event] <= low:
            found[count] = keys[index] + 1
            count += 1
    return found[:count].copy()


@borrowing(types.boolean(RIVAL_TABLES))
def in_either_gap(job: RivalTables) -> bool:
    """Has the match three events, and could every ambiguous rival disturb exactly the two gaps between them?"""
    if len(job.low) != 3:
        return False
    for which in range(job.disturbs.shape[0]):
        if job.disturbs[which, 0] or job.disturbs[which, 3]:
            return False
    return True


@kernel(INT64S(RIVAL_TABLES))
def stretches(job: RivalTables) -> Int64s:
    """Where the stretches of the middle event's instants begin, and the end of the last one."""
    low, high, base = job.low[1], job.high[1], job.singles[4]
    begins, count = np.empty(high - low + 2, np.int64), 0
    for instant in range(low, high + 1):
        place, changes = job.offset[1] + instant, instant == low
        for which in range(job.disturbs.shape[0]):
            changes = changes or job.point[base + which, place] != job.point[base + which, place - 1]
        if changes:
            begins[count] = instant
            count += 1
    begins[count] = high + 1
    return begins[: count + 1].copy()


@borrowing(types.float64(RIVAL_TABLES, INT64S))
def either_gap_cost(job: RivalTables, begins: Int64s) -> float:
    """About how many steps it takes, several of which a processor does at once."""
    first, middle, last = job.high[0] - job.low[0] + 1.0, job.high[1] - job.low[1] + 1.0, job.high[2] - job.low[2] + 1.0
    total = first * last * (len(begins) - 1) * (1 + job.disturbs.shape[0])
    total += middle * last * (1 + job.singles[3] - job.singles[2])
    return float(total + first * middle * last if job.singles[1] < job.singles[2] else total)


@kernel(FLOAT64_ROWS(RIVAL_TABLES))
def closing(job: RivalTables) -> Rows:
    """P(the last two events happen at t and u, and no rival of the last gap alone lies between): t in rows."""
    low, high, last_low, last_high = job.low[1], job.high[1], job.low[2], job.high[2]
    chances, shares = np.zeros((high - low + 1, last_high - last_low + 1)), np.empty(last_high - last_low + 1)
    for instant in range(low, min(high, last_high - 1) + 1):
        start = max(last_low, instant + 1)
        place, size = job.offset[2] + start, last_high - start + 1
        undisturbed(job.before, job.after, job.singles[2], job.singles[3], job.offset[1] + instant, place, size, shares)
        weight = job.weight[job.offset[1] + instant]
        for index in range(size):
            chances[instant - low, start - last_low + index] = shares[index] * weight * job.weight[place + index]
    return chances


@borrowing(types.int64(RIVAL_TABLES, types.int64, types.int64, types.int64))
def last_undisturbed(job: RivalTables, first: int, middle: int, stop: int) -> int:
    """Until when the last event can happen: by then a rival comes that is not by the first nor with the middle one."""
    base = job.singles[4]
    for rival in range(base, base + job.disturbs.shape[0]):
        surely = job.last[rival] < stop and job.first[rival] > first
        if surely and job.point[rival, job.offset[1] + middle] == 0.0:
            stop = job.last[rival]
    return stop


@borrowing(types.void(RIVAL_TABLES, types.int64, types.int64, types.int64, types.int64, FLOAT64S))
def spare_either_gap(job: RivalTables, first: int, middle: int, start: int, size: int, shares: Float64s) -> None:
    """Multiplies in, for `size` instants of the last event from `start` on: P(no ambiguous rival disturbs)."""
    base, place, whole = job.singles[4], job.offset[2] + start, 1.0
    for rival in range(base, base + job.disturbs.shape[0]):
        if job.last[rival] <= first or job.first[rival] >= start + size - 1:
            continue  # surely by the first event, or not before the last one
        # By the first event or at the middle one; later it depends on the last.
        happened = job.before[rival, job.offset[0] + first] + job.point[rival, job.offset[1] + middle]
        if job.last[rival] < start:
            whole *= happened
            continue
        after = job.after[rival, place : place + size]  # a slice: then the loop is done several steps at a time
        for index in range(size):
            shares[index] *= happened + after[index]
    if whole < 1.0:
        for index in range(size):
            shares[index] *= whole


@kernel(types.Tuple((types.float64, types.int64, types.int64))(RIVAL_TABLES, INT64S))
def by_stretches(job: RivalTables, begins: Int64s) -> tuple[float, int, int]:
    """The probability and the tightest range."""
    low, high, window = job.low, job.high, job.window
    ends = closing(job)
    opened = job.singles[1] < job.singles[2]  # rivals of the first gap alone tie the middle event to the first
    edged = job.singles[1] > 0 or job.singles[3] < job.singles[4]
    shares, spared = np.empty(high[2] - low[2] + 1), np.empty(high[1] - low[1] + 1)
    total, earliest, latest = 0.0, high[0] + 1, low[2] - 1
    for stretch in range(len(begins) - 1):
        begin, end = begins[stretch], begins[stretch + 1] - 1
        if not opened:  # then all instants of the middle event that are left count alike: add them up from the end
            for instant in range(end - 1, begin - 1, -1):
                ends[instant - low[1]] += ends[instant + 1 - low[1]]
        for first in range(low[0], min(high[0], end - 1) + 1):
            weight = job.weight[job.offset[0] + first]
            middle = max(begin, first + 1)
            start, stop = max(low[2], middle + 1), min(high[2], first + window - 1)
            stop = last_undisturbed(job, first, middle, stop)
            if weight == 0.0 or start > stop:
                continue
            size, column = stop - start + 1, start - low[2]
            if not opened:
                shares[:size] = ends[middle - low[1], column : column + size]
            else:
                undisturbed(
                    job.before,
                    job.after,
                    job.singles[1],
                    job.singles[2],
                    job.offset[0] + first,
                    job.offset[1] + middle,
                    end - middle + 1,
                    spared,
                )
                shares[:size] = 0.0
                for instant in range(middle, end + 1):
                    share, row = spared[instant - middle], ends[instant - low[1], column : column + size]
                    for index in range(size):
                        shares[index] += share * row[index]
            spare_either_gap(job, first, middle, start, size, shares)
            if edged:
                for index in range(size):
                    if shares[index] > 0.0:
                        shares[index] *= edges(job, first, start + index)
            part = 0.0
            for index in range(size):
                part += shares[index]
            while size > 0 and start + size - 1 > latest and shares[size - 1] == 0.0:
                size -= 1
            if part > 0.0:
                latest = max(latest, start + size - 1)
                total += weight * part
                earliest = min(earliest, first)
    return total, earliest, latest

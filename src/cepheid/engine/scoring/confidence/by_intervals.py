"""The confidence of a match some of whose competitors could disturb it in several gaps, by intervals of instants.

At instants s < t < u a competitor of both gaps is harmless if it comes by s, at t, or from u on: P(T <= s) + P(T = t) +
P(T >= u), and so on for longer matches. The terms in between are the same for all instants t between two at which a
competitor begins or ends. So instants of the events in between are taken interval by interval, not one by one: for each
choice of intervals the competitors' factors are a function of s and u. That asks for competitors that disturb all gaps
alike.

That is exact. It is quadratic in the width of the intervals; by the number k of intervals it grows as the number of
choices, k for three events, k (k + 1) / 2 for four, while going through instants grows with the width, and remembering
who has happened is exponential in the number of competitors. Only what is possible is added up, as everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64Rows, Float64s, Int64s
from cepheid.engine.kernels.compile import borrowing, inlined, kernel
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.scoring.confidence.competing_tables import CompetingTables, edges, undisturbed

LONGEST = 60  # events of a match whose gaps are bits of a number


class Intervals(NamedTuple):
    """The intervals of the events in between: those of event j begin at begin[first[j]] .. begin[first[j + 1] - 2].

    Behind them stands the end of the last one.
    """

    begin: Int64s
    first: Int64s


class Sums(NamedTuple):
    """Room for the sums: row j is for event j of the match."""

    start: Int64s  # the interval at hand of each event: its first and its last instant...
    stop: Int64s
    number: Int64s  # ... and its number
    reach: Float64Rows  # P(the events up to j come in order in their intervals, j at each instant)
    spared: Float64Rows  # for each ambiguous competitor: P(it has happened by event j without harm)
    order: Int64s  # the ambiguous competitors, the latest to begin first
    later: Float64Rows  # row k: P(none of the first k of them comes before each instant of the last event)
    gap: Int64s  # for each gap where its table begins in `table`; -1: nobody disturbs it alone
    table: Float64s  # P(the event behind it happens at t, and no competitor of this gap alone lies between s and t)
    summed: bool  # the same for all instants s of the event before it from one on to the end of its interval
    shares: Float64s  # for each instant of the last event: for one choice of intervals...
    alone: Float64s  # ... for one instant of the first event...
    total: Float64s  # ... and for all of them


@borrowing
def widened(lower: Int64s, upper: Int64s, low: Int64s, high: Int64s, keys: Int64s, found: Int64s) -> int:
    """Writes the keys, where some competitor has several gaps: with those gaps for it, too, in which it can never lie.

    Then it disturbs all gaps alike, and intervals are long. For competitors of one gap only if that makes it all gaps:
    so they do not tie the event before the gap to the one behind it. Returns how many keys there are then.
    """
    gaps, several, event = len(low) + 1, False, -1
    for key in keys:
        several = several or key < (event + 1) * gaps
        event = event if several else key // gaps
    if not several or gaps > LONGEST:
        for index in range(len(keys)):
            found[index] = keys[index]
        return len(keys)
    inner = (1 << (gaps - 1)) - 2
    count, index = 0, 0
    while index < len(keys):
        event, given, end = keys[index] // gaps, 0, index
        while end < len(keys) and keys[end] < (event + 1) * gaps:
            given |= 1 << (keys[end] - event * gaps)
            end += 1
        whole = given
        for gap in range(1, gaps - 1):
            if upper[event] <= low[gap - 1] or lower[event] >= high[gap]:
                whole |= 1 << gap
        if end - index == 1 and whole != inner:
            whole = given
        for gap in range(gaps):
            if (whole >> gap) & 1 == 1:
                found[count] = event * gaps + gap
                count += 1
        index = end
    return count


@borrowing
def has_intervals(job: CompetingTables) -> bool:
    """Can intervals be used? Every ambiguous competitor must disturb all gaps inside the match, and none at an end."""
    final = len(job.low) - 1
    if final < 2:
        return False
    for which in range(job.disturbs.shape[0]):
        if job.disturbs[which, 0] or job.disturbs[which, final + 1]:
            return False
        for gap in range(1, final + 1):
            if not job.disturbs[which, gap]:
                return False
    return True


@inlined
def begins_interval(job: CompetingTables, step: int, instant: int) -> bool:
    """Does it matter to an ambiguous competitor whether the event happens at this instant or at the one before?"""
    base, place, begins = job.singles[len(job.low) + 1], job.offset[step] + instant, False
    for which in range(job.disturbs.shape[0]):
        begins = begins or job.point[base + which, place] != job.point[base + which, place - 1]
    return begins


@kernel
def intervals(job: CompetingTables) -> Intervals:
    """The intervals of all events but the first and the last."""
    final, size = len(job.low) - 1, 0
    for step in range(1, final):
        size += job.high[step] - job.low[step] + 2
    begin, first, count = np.empty(size, np.int64), np.zeros(final + 1, np.int64), 0
    for step in range(1, final):
        first[step] = count
        for instant in range(job.low[step], job.high[step] + 1):
            if instant == job.low[step] or begins_interval(job, step, instant):
                begin[count] = instant
                count += 1
        begin[count] = job.high[step] + 1
        count += 1
    first[final] = count
    return Intervals(begin[:count].copy(), first)


@kernel
def intervals_cost(job: CompetingTables, parts: Intervals) -> float:
    """About how many steps it takes, several of which a processor does at once."""
    final = len(job.low) - 1
    ways = np.ones(len(parts.begin))  # choices of intervals that end with each
    for step in range(2, final):
        for now in range(parts.first[step], parts.first[step + 1] - 1):
            ways[now] = 0.0
            for before in range(parts.first[step - 1], parts.first[step] - 1):
                if parts.begin[before] + 1 < parts.begin[now + 1]:
                    ways[now] += ways[before]
    choices = 0.0
    for now in range(parts.first[final - 1], parts.first[final] - 1):
        choices += ways[now]
    total = choices * (2 + 0.5 * job.disturbs.shape[0])
    for step in range(1, final + 1):
        if job.singles[step] < job.singles[step + 1]:  # sums over pairs of instants
            total += choices * (job.high[step - 1] - job.low[step - 1] + 1.0) * (0.2 if step > 1 and final > 2 else 0.0)
    return float(total * (job.high[0] - job.low[0] + 1.0) * (job.high[final] - job.low[final] + 1.0))


@kernel
def new_sums(job: CompetingTables, parts: Intervals) -> Sums:
    """Room for the sums, and all that does not depend on the intervals."""
    length, ambiguous, base = len(job.low), job.disturbs.shape[0], job.singles[len(job.low) + 1]
    final, widest, size = length - 1, 0, 0
    gap = np.full(length, -1, np.int64)
    for step in range(length):
        width = job.high[step] - job.low[step] + 1
        widest = max(widest, width)
        if step > 0 and job.singles[step] < job.singles[step + 1]:
            gap[step] = size
            size += width * (job.high[step - 1] - job.low[step - 1] + 1)
    last = job.high[final] - job.low[final] + 1
    order = np.argsort(-job.first[base:], kind="mergesort")
    later = np.ones((ambiguous + 1, last))
    for index in range(ambiguous):
        later[index + 1] = later[index] * job.after[base + order[index], job.offset[final] + job.low[final] :]
    sums = Sums(
        np.zeros(length, np.int64),
        np.zeros(length, np.int64),
        np.zeros(length, np.int64),
        np.zeros((length, widest)),
        np.zeros((length, ambiguous)),
        order,
        later,
        gap,
        np.zeros(size),
        length == 3 and gap[1] < 0 and gap[2] >= 0,  # then the middle event may come at any time after the first
        np.zeros(max(widest, last)),
        np.zeros(last),
        np.zeros(last),
    )
    for step in range(1, length):
        if gap[step] >= 0:
            fill_gap(job, sums, step)
    if sums.summed:
        sum_intervals(job, parts, sums)
    return sums


@inlined
def fill_gap(job: CompetingTables, sums: Sums, step: int) -> None:
    """The table of a gap that some competitors disturb alone."""
    low, high, width = job.low[step], job.high[step], job.high[step] - job.low[step] + 1
    for previous in range(job.low[step - 1], min(job.high[step - 1], high - 1) + 1):
        start = max(low, previous + 1)
        size, place = high - start + 1, job.offset[step] + start
        came = job.offset[step - 1] + previous
        undisturbed(job.before, job.after, job.singles[step], job.singles[step + 1], came, place, size, sums.shares)
        base = sums.gap[step] + (previous - job.low[step - 1]) * width + start - low
        for index in range(size):
            sums.table[base + index] = sums.shares[index] * job.weight[place + index]


@borrowing
def sum_intervals(job: CompetingTables, parts: Intervals, sums: Sums) -> None:
    """Adds up the table of the last of two gaps over the middle event's instants, from the end of each interval."""
    width = job.high[2] - job.low[2] + 1
    for now in range(parts.first[1], parts.first[2] - 1):
        for instant in range(parts.begin[now + 1] - 1, parts.begin[now] - 1, -1):
            base, weight = sums.gap[2] + (instant - job.low[1]) * width, job.weight[job.offset[1] + instant]
            row, behind = sums.table[base : base + width], sums.table[base + width : base + 2 * width]
            for index in range(width):
                row[index] *= weight
            if instant + 1 < parts.begin[now + 1]:
                for index in range(width):
                    row[index] += behind[index]


@inlined
def follow(job: CompetingTables, sums: Sums, step: int, start: int, stop: int, found: Float64s) -> None:
    """P(all up to event `step` come in order in their intervals), for its instants start .. stop: found[0] and on."""
    before, low, high = sums.reach[step - 1], sums.start[step - 1], sums.stop[step - 1]
    base, place = job.low[step - 1], job.offset[step]
    if sums.gap[step] < 0:
        total, reached = 0.0, low - 1
        for instant in range(start, min(stop, high + 1) + 1):
            while reached < instant - 1 and reached < high:
                reached += 1
                total += before[reached - base]
            found[instant - start] = total * job.weight[place + instant]
        while reached < high and reached < stop - 1:
            reached += 1
            total += before[reached - base]
        begin = max(start, high + 2)
        if begin <= stop:  # behind the whole interval: over slices, then several steps are done at a time
            weights, target = job.weight[place + begin : place + stop + 1], found[begin - start : stop - start + 1]
            for index in range(stop - begin + 1):
                target[index] = total * weights[index]
        return
    width = job.high[step] - job.low[step] + 1
    for index in range(stop - start + 1):
        found[index] = 0.0
    for previous in range(low, min(high, stop - 1) + 1):
        share, begin = before[previous - base], max(start, previous + 1)
        row = sums.gap[step] + (previous - base) * width + begin - job.low[step]
        size = stop - begin + 1
        chances, target = sums.table[row : row + size], found[begin - start : stop - start + 1]
        for index in range(size):
            target[index] += share * chances[index]


@inlined
def enter(job: CompetingTables, sums: Sums, step: int, start: int, stop: int) -> None:
    """Takes an interval for an event in between."""
    sums.start[step], sums.stop[step] = start, stop
    follow(job, sums, step, start, stop, sums.reach[step, start - job.low[step] :])
    base, place = job.singles[len(job.low) + 1], job.offset[step] + start
    for which in range(job.disturbs.shape[0]):
        sums.spared[step, which] = sums.spared[step - 1, which] + job.point[base + which, place]


@inlined
def close(job: CompetingTables, sums: Sums, stop: int) -> None:
    """Adds up, for the choice of intervals at hand, the instants of the last event up to `stop`."""
    final, base = len(job.low) - 1, job.singles[len(job.low) + 1]
    middle = sums.start[final - 1]
    start, whole = max(job.low[final], middle + 1), 1.0
    spared = sums.spared[final - 1]
    for which in range(job.disturbs.shape[0]):
        if spared[which] == 0.0:  # it may not have come before the last event
            stop = min(stop, job.last[base + which])
    if start > stop:
        return
    shares, size, column = sums.shares, stop - start + 1, start - job.low[final]
    if sums.summed:
        weight = sums.reach[0, sums.start[0] - job.low[0]]
        begin = sums.gap[final] + (middle - job.low[1]) * (job.high[final] - job.low[final] + 1) + column
        row = sums.table[begin : begin + size]
        for index in range(size):
            shares[index] = weight * row[index]
    else:
        follow(job, sums, final, start, stop, shares)
    count = 0
    while count < len(sums.order) and job.first[base + sums.order[count]] > middle:
        count += 1
    if count > 0:
        later = sums.later[count, column : column + size]
        for index in range(size):
            shares[index] *= later[index]
    for index in range(count, len(sums.order)):
        which = sums.order[index]
        if job.last[base + which] < start:
            whole *= spared[which]
            continue
        after, share = job.after[base + which, job.offset[final] + start : job.offset[final] + stop + 1], spared[which]
        for column_index in range(size):  # over slices: then several steps are done at a time
            shares[column_index] *= share + after[column_index]
    alone = sums.alone[column : column + size]
    for index in range(size):
        alone[index] += whole * shares[index]


@borrowing
def follow_first(job: CompetingTables, parts: Intervals, sums: Sums, first: int) -> None:
    """Goes through all choices of intervals behind one instant of the first event."""
    final, base = len(job.low) - 1, job.singles[len(job.low) + 1]
    stop = min(job.high[final], first + job.window - 1)
    sums.start[0], sums.stop[0] = first, first
    sums.reach[0, first - job.low[0]] = job.weight[job.offset[0] + first]
    for which in range(job.disturbs.shape[0]):
        sums.spared[0, which] = job.before[base + which, job.offset[0] + first]
    step = 1
    sums.number[1] = parts.first[1]
    while step > 0 and stop_flag() == 0:
        now = sums.number[step]
        sums.number[step] += 1
        start, end = parts.begin[now], 0
        if now + 1 < parts.first[step + 1]:
            start, end = max(start, sums.start[step - 1] + 1), min(parts.begin[now + 1], stop) - 1
        if now + 1 >= parts.first[step + 1] or start >= stop:  # all intervals of this event are done
            step -= 1
        elif start <= end:
            enter(job, sums, step, start, end)
            if step == final - 1:
                close(job, sums, stop)
            else:
                step += 1
                sums.number[step] = parts.first[step]


@kernel
def by_intervals(job: CompetingTables, parts: Intervals) -> tuple[float, int, int]:
    """The probability and the tightest range."""
    final, sums = len(job.low) - 1, new_sums(job, parts)
    edged = job.singles[1] > 0 or job.singles[final + 1] < job.singles[final + 2]
    earliest, latest, total = job.high[0] + 1, job.low[final] - 1, 0.0
    for first in range(job.low[0], job.high[0] + 1):
        if job.weight[job.offset[0] + first] == 0.0:
            continue
        sums.alone[:] = 0.0
        follow_first(job, parts, sums, first)
        if edged:
            for index in range(len(sums.alone)):
                if sums.alone[index] > 0.0:
                    sums.alone[index] *= edges(job, first, job.low[final] + index)
        if earliest > job.high[0]:
            for index in range(len(sums.alone)):
                if sums.alone[index] > 0.0:
                    earliest = first
        sums.total[:] += sums.alone
    for index in range(len(sums.total)):
        total += sums.total[index]
        if sums.total[index] > 0.0:
            latest = job.low[final] + index
    return total, earliest, latest

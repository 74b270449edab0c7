"""The confidence of a match some of whose competitors could disturb it in several gaps.

Such a competitor has one instant per world, which ties these gaps together. Two exact ways: `sweep` moves from event to
event and remembers which of these ambiguous competitors have already happened (harmlessly), a better recurrence than
going through their instants (TIME, equation 4); `enumerate_instants` goes through the instants of the match, where all
competitors are independent. The first is exponential in how many ambiguous competitors overlap, the second in the
number of events.

Both can weigh worlds: where events are missing, a gap counts with the score of its span.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64Rows, Float64s, Int64Rows, Int64s
from cepheid.engine.kernels.compile import borrowing, inlined, kernel
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.scoring.confidence.competing_tables import CompetingTables, edges, undisturbed

MAX_AMBIGUOUS = 20  # competitors that may have happened or not at one step of the sweep


class Weighing(NamedTuple):
    """What a world counts for: the product of a score for each gap, by its span in instants."""

    score: Float64s  # tables behind each other
    first: Int64s  # where each begins
    table: Int64s  # for each gap its table, -1: the score is 1; no gaps at all: every world counts in full


@kernel
def unweighed() -> Weighing:
    """Every world counts in full."""
    return Weighing(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))


@inlined
def weight_of(weighing: Weighing, gap: int, span: int) -> float:
    """What a gap counts for that spans some instants."""
    if len(weighing.table) == 0 or weighing.table[gap] < 0:
        return 1.0
    return float(weighing.score[weighing.first[weighing.table[gap]] + span])


@borrowing
def weight_of_edges(weighing: Weighing, window: int, first: int, last: int) -> float:
    """What the gaps before the first and after the last event count for: both reach over the rest of the window."""
    span, final = window - (last - first), len(weighing.table) - 1
    return float(weight_of(weighing, 0, span) * weight_of(weighing, final, span))


@kernel
def is_tied(job: CompetingTables, weighing: Weighing) -> bool:
    """Does it matter how far the first event is from the last?"""
    final = len(weighing.table) - 1
    return bool(job.coupled or (final >= 0 and (weighing.table[0] >= 0 or weighing.table[final] >= 0)))


@kernel
def later(job: CompetingTables, first: int, last: int, shares: Float64s) -> None:
    """For each ambiguous competitor: P(it has not happened by the last event of the match, and never disturbs it)."""
    final = len(job.low) - 1
    base = job.singles[final + 2]
    for which in range(job.disturbs.shape[0]):
        competitor = base + which
        share = 0.0
        if job.disturbs[which, final + 1]:
            share = job.late[competitor, first - job.low[0]]
        elif job.last[competitor] > last:
            share = job.after[competitor, job.offset[final] + last] - job.point[competitor, job.offset[final] + last]
        if job.disturbs[which, 0]:
            share += job.early[competitor, last - job.low[final]]
        shares[which] = share


@kernel
def happening(
    point: Float64Rows,
    before: Float64Rows,
    disturbs: Int64Rows,
    base: int,
    step: int,
    start: int,
    stop: int,
    shares: Float64s,
) -> None:
    """For each ambiguous competitor: P(it happens harmlessly after place `start`, by place `stop`, of event `step`)."""
    for which in range(disturbs.shape[0]):
        if disturbs[which, step]:
            shares[which] = point[base + which, stop]
        elif step == 0:
            shares[which] = before[base + which, stop]
        else:
            shares[which] = before[base + which, stop] - before[base + which, start]


# --- the sweep --------------------------------------------------------------------------------------------------


@kernel
def admit(job: CompetingTables, step: int, slots: Int64s, count: int) -> int:
    """Gives a slot to each ambiguous competitor that may have happened by this event of the match; returns how many."""
    base = job.singles[len(job.low) + 1]
    for which in range(job.disturbs.shape[0]):
        first = job.first[base + which]
        if first <= job.high[step] and (step == 0 or first > job.high[step - 1]):
            slots[count] = which
            count += 1
    return count


@kernel
def settled(job: CompetingTables, step: int, which: int) -> bool:
    """Must an ambiguous competitor have happened by this event of the match?"""
    last = job.last[job.singles[len(job.low) + 1] + which]
    return last <= job.low[step] and job.disturbs[which, 0] == 0  # type: ignore[no-any-return]


@kernel
def sweep_cost(job: CompetingTables, tied: bool) -> float:
    """About how many steps the sweep takes."""
    length = len(job.low)
    slots = np.empty(job.disturbs.shape[0], np.int64)
    count, total = 0, 0.0
    for step in range(length):
        count = admit(job, step, slots, count)
        if count > MAX_AMBIGUOUS:
            return np.inf
        width = job.high[step] - job.low[step] + 1.0
        before = job.high[step - 1] - job.low[step - 1] + 1.0 if step else 1.0
        states = float(1 << count)
        total += width * before * (states * (count + 1) + (job.singles[step + 1] - job.singles[step]))
        kept = 0
        for index in range(count):
            if not settled(job, step, slots[index]):
                slots[kept] = slots[index]
                kept += 1
        count = kept
    if tied:
        total *= job.high[0] - job.low[0] + 1.0
    return total


@kernel
def forget(job: CompetingTables, step: int, slots: Int64s, count: int, now: Float64Rows) -> tuple[Float64Rows, int]:
    """Drops the slots of competitors that have surely happened by now, and the states in which they have not."""
    slot = 0
    while slot < count:
        if not settled(job, step, slots[slot]):
            slot += 1
            continue
        fewer = np.empty((now.shape[0], 1 << (count - 1)))
        below = (1 << slot) - 1
        for state in range(1 << (count - 1)):
            full = (state & below) | (1 << slot) | ((state & ~below) << 1)
            for row in range(now.shape[0]):
                fewer[row, state] = now[row, full]
        now = fewer
        for index in range(slot, count - 1):
            slots[index] = slots[index + 1]
        count -= 1
    return now, count


class Swept(NamedTuple):
    """One event of the match: for each of its instants from `low` on, and for each choice of competitors that have
    happened (a bit for each slot), the probability that the match has come so far unharmed."""

    low: int
    high: int
    slots: Int64s  # the ambiguous competitors that may or may not have happened
    held: int  # how many these are
    chances: Float64Rows


@kernel
def begin_sweep(job: CompetingTables, low: int, high: int) -> Swept:
    """The first event of the match, somewhere in low .. high."""
    ambiguous, base = job.disturbs.shape[0], job.singles[len(job.low) + 1]
    slots, moved = np.empty(ambiguous, np.int64), np.empty(ambiguous)
    count = admit(job, 0, slots, 0) if ambiguous else 0
    now = np.zeros((high - low + 1, 1 << count))
    for instant in range(low, high + 1):
        now[instant - low, 0] = job.weight[job.offset[0] + instant]
        if ambiguous > 0:
            happening(job.point, job.before, job.disturbs, base, 0, 0, job.offset[0] + instant, moved)
        for slot in range(count):
            for state in range(1 << slot):
                now[instant - low, state | (1 << slot)] = now[instant - low, state] * moved[slots[slot]]
    if ambiguous:
        now, count = forget(job, 0, slots, count, now)
    return Swept(low, high, slots, count, now)


@borrowing
def run_on(job: CompetingTables, step: int, before: Swept, low: int, high: int, now: Float64Rows) -> None:
    """One event further where nobody disturbs the gap: a running sum does it."""
    total, reached = 0.0, before.low - 1
    for instant in range(low, high + 1):
        while reached < min(instant - 1, before.high):
            reached += 1
            total += before.chances[reached - before.low, 0]
        now[instant - low, 0] = total * job.weight[job.offset[step] + instant]


@kernel
def gap_shares(
    job: CompetingTables, weighing: Weighing, step: int, previous: int, start: int, stop: int, shares: Float64s
) -> None:
    """What the gap after `previous` counts for, for the instants start .. stop: undisturbed by its own competitors."""
    size, place = stop - start + 1, job.offset[step] + start
    came = job.offset[step - 1] + previous
    undisturbed(job.before, job.after, job.singles[step], job.singles[step + 1], came, place, size, shares)
    if len(weighing.table) > 0 and weighing.table[step] >= 0:
        shift = weighing.first[weighing.table[step]] + start - previous
        for index in range(size):
            shares[index] *= weighing.score[shift + index]


@kernel
def spread_states(
    job: CompetingTables,
    step: int,
    previous: int,
    instant: int,
    states: Float64s,
    slots: Int64s,
    moved: Float64s,
    target: Float64s,
) -> None:
    """Adds to `target` the states at `previous`, with the competitors that happen harmlessly until `instant`."""
    base, came = job.singles[len(job.low) + 1], job.offset[step - 1] + previous
    happening(job.point, job.before, job.disturbs, base, step, came, job.offset[step] + instant, moved)
    for slot in range(len(slots)):
        bit, likely = 1 << slot, moved[slots[slot]]
        if likely == 0.0:
            continue
        for state in range(len(states)):
            if state & bit == 0:
                states[state | bit] += states[state] * likely
    for state in range(len(states)):
        target[state] += states[state]


@kernel
def sweep_on(job: CompetingTables, weighing: Weighing, step: int, before: Swept, limit: int) -> Swept:
    """One event further, by `limit` at the latest; without instants, if there is no time for it."""
    ambiguous, slots, known = job.disturbs.shape[0], before.slots, 1 << before.held
    low, high = max(job.low[step], before.low + 1), min(job.high[step], limit)
    count = admit(job, step, slots, before.held) if ambiguous else 0
    now = np.zeros((max(high - low + 1, 0), 1 << count))
    if low > high:
        return Swept(low, high, slots, count, now)
    weighed = len(weighing.table) > 0 and weighing.table[step] >= 0
    if count == 0 and job.singles[step] == job.singles[step + 1] and not weighed:
        run_on(job, step, before, low, high, now)
        return Swept(low, high, slots, 0, now)
    shares, states, moved = np.empty(high - low + 1), np.zeros(1 << count), np.empty(ambiguous)
    for previous in range(before.low, min(before.high, high - 1) + 1):
        if stop_flag() != 0:
            break
        start, chances = max(low, previous + 1), before.chances[previous - before.low]
        gap_shares(job, weighing, step, previous, start, high, shares)
        for instant in range(start, high + 1):
            share = shares[instant - start]
            if count == 0:
                now[instant - low, 0] += chances[0] * share
            elif share > 0.0:
                states[:] = 0.0
                for state in range(known):
                    states[state] = chances[state] * share
                spread_states(job, step, previous, instant, states, slots[:count], moved, now[instant - low])
    for instant in range(low, high + 1):
        now[instant - low] *= job.weight[job.offset[step] + instant]
    if ambiguous:
        now, count = forget(job, step, slots, count, now)
    return Swept(low, high, slots, count, now)


@kernel
def sweep(job: CompetingTables, weighing: Weighing, tied: bool, first_from: int, first_to: int) -> tuple[float, int]:
    """The probability, with the first event somewhere in first_from .. first_to, and the last possible instant.

    If the first event is tied to the last, it must have one instant only.
    """
    length, ambiguous, base = len(job.low), job.disturbs.shape[0], job.singles[len(job.low) + 1]
    limit = first_from + job.window - 1 if tied else job.high[length - 1]
    now = begin_sweep(job, first_from, first_to)
    for step in range(1, length):
        now = sweep_on(job, weighing, step, now, limit)
        if now.low > now.high:
            return 0.0, 0
    moved, total, latest = np.empty(ambiguous), 0.0, 0
    for instant in range(now.low, now.high + 1):
        part = 0.0
        if ambiguous > 0:
            later(job, first_from, instant, moved)
        for state in range(1 << now.held):
            share = now.chances[instant - now.low, state]
            for slot in range(now.held):
                if state & (1 << slot) == 0:
                    share *= moved[now.slots[slot]]
            part += share
        for which in range(ambiguous):
            if job.first[base + which] > job.high[length - 1]:  # it comes too late to have had a slot
                part *= moved[which]
        if part > 0.0 and tied:
            part *= edges(job, first_from, instant) * weight_of_edges(weighing, job.window, first_from, instant)
        if part > 0.0:
            latest = instant
            total += part
    return total, latest


@kernel
def swept(job: CompetingTables, weighing: Weighing) -> tuple[float, int, int]:
    """The probability by sweeping, and the tightest range."""
    if not is_tied(job, weighing):
        total, latest = sweep(job, weighing, False, job.low[0], job.high[0])
        earliest = job.low[0]
        if total > 0.0:
            while earliest < job.high[0] and sweep(job, weighing, False, earliest, earliest)[0] == 0.0:
                earliest += 1
        return total, earliest, latest
    total, earliest, latest = 0.0, job.high[0] + 1, job.low[0] - 1
    for instant in range(job.low[0], job.high[0] + 1):
        part, last = sweep(job, weighing, True, instant, instant)
        if part > 0.0:
            total += part
            earliest, latest = min(earliest, instant), max(latest, last)
    return total, earliest, latest


# --- enumeration ------------------------------------------------------------------------------------------------


@kernel
def enumeration_cost(job: CompetingTables) -> float:
    """About how many steps it takes to go through the instants of the match."""
    total = 1.0
    for step in range(len(job.low)):
        total *= job.high[step] - job.low[step] + 1.0
    return total * (1 + len(job.first))


@kernel
def enumerate_instants(job: CompetingTables, weighing: Weighing) -> tuple[float, int, int]:
    """The probability by going through all instants of the match, and the tightest range."""
    length, ambiguous = len(job.low), job.disturbs.shape[0]
    at = np.empty(length, np.int64)
    share = np.empty(length)  # probability of the instants so far, undisturbed
    harmless = np.zeros((length, ambiguous))  # P(an ambiguous competitor has happened by now without harm)
    moved, base = np.empty(ambiguous), job.singles[length + 1]
    total, earliest, latest = 0.0, job.high[0] + 1, job.low[0] - 1
    tied = is_tied(job, weighing)
    step = 0
    at[0] = job.low[0] - 1
    while step >= 0 and stop_flag() == 0:
        at[step] += 1
        instant = at[step]
        if instant > job.high[step] or instant - at[0] >= job.window:
            step -= 1
            continue
        place = job.offset[step] + instant
        came = job.offset[step - 1] + at[step - 1] if step else 0
        weight = job.weight[place]
        if step > 0 and weight > 0.0:
            for competitor in range(job.singles[step], job.singles[step + 1]):
                weight *= job.before[competitor, came] + job.after[competitor, place]
            weight *= share[step - 1] * weight_of(weighing, step, instant - at[step - 1])
        if weight == 0.0:
            continue
        share[step] = weight
        happening(job.point, job.before, job.disturbs, base, step, came, place, moved)
        for which in range(ambiguous):
            harmless[step, which] = moved[which] + (harmless[step - 1, which] if step else 0.0)
        if step < length - 1:
            step += 1
            at[step] = max(job.low[step], instant + 1) - 1
            continue
        if tied:
            weight *= edges(job, at[0], instant) * weight_of_edges(weighing, job.window, at[0], instant)
        later(job, at[0], instant, moved)
        for which in range(ambiguous):
            weight *= harmless[step, which] + moved[which]
        if weight > 0.0:
            total += weight
            earliest, latest = min(earliest, at[0]), max(latest, instant)
    return total, earliest, latest

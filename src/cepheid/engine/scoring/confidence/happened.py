"""The confidence of a match from event to event, with a bit for each competing event: has it happened without harm?

A competing event of all gaps is harmless if it comes by the first event, at an event in between, or from the last event
on. One of a single gap is harmless if it comes by the event before the gap or from the event behind it. Each of these
terms depends on the instant of one event. So the sum over all instants goes from event to event by running sums: linear
in the width of the intervals, and 2 to the number of competing events that are undecided at a time. Each has a bit from
the first event by which it can have happened to the last one that can find it so. Only what is possible is added up.
"""

from __future__ import annotations

from typing import NamedTuple

from cepheid.engine.data.arrays import Float64Rows, Float64s, Int64s
from cepheid.engine.data.timed import Timed
from cepheid.engine.kernels.compile import borrowing, inlined
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.scoring.confidence.competing_tables import spread_point
from cepheid.engine.scoring.confidence.few_events import (
    PACE,
    Three,
    Two,
    arranged,
    by_instants_of_the_first,
    by_runs_of_the_middle,
    filled_up,
    harmless,
)
from cepheid.engine.scoring.confidence.undecided import Buffers, Undecided, pairs_are_cheaper, ties_of


@borrowing
def carry(
    now: Float64Rows, behind: Float64Rows, states: int, start: int, width: int, next_start: int, next_width: int
) -> None:
    """The running sums: for each instant of the next event, what came before it."""
    passed = min(max(next_start - start, 0), width)
    for state in range(states):
        before, after, total = now[state], behind[state], 0.0
        for index in range(passed):
            total += before[index]
        at = next_start - start
        for index in range(next_width):
            after[index] = total
            if 0 <= at < width:
                total += before[at]
            at += 1


@borrowing
def take_bit(now: Float64Rows, slot: int, count: int, row: Float64s, width: int) -> None:
    """A bit less: what had not happened without harm must do so now."""
    below = (1 << slot) - 1
    for state in range(1 << (count - 1)):
        open_state = (state & below) | ((state & ~below) << 1)
        target, waiting, done = now[state], now[open_state], now[open_state | (1 << slot)]
        for index in range(width):
            target[index] = done[index] + row[index] * waiting[index]


@borrowing
def set_bit(now: Float64Rows, slot: int, count: int, row: Float64s, width: int) -> None:
    """What had not happened may do so now."""
    for state in range(1 << count):
        if (state >> slot) & 1 == 0:
            target, waiting = now[state | (1 << slot)], now[state]
            for index in range(width):
                target[index] += row[index] * waiting[index]


@borrowing
def give_bit(now: Float64Rows, count: int, row: Float64s, width: int) -> None:
    """A bit more: it may have happened by now."""
    for state in range(1 << count):
        target, waiting = now[state | (1 << count)], now[state]
        for index in range(width):
            target[index] = row[index] * waiting[index]


class Room(NamedTuple):
    """Room for the sums: by who has happened and by instant."""

    now: Float64Rows
    behind: Float64Rows
    row: Float64s
    factor: Float64s
    slots: Int64s  # those that have a bit
    ramp: Float64s


@borrowing
def decide(
    timed: Timed,
    competing: Undecided,
    chosen: Int64s,
    low: Int64s,
    high: Int64s,
    step: int,
    count: int,
    now: Float64Rows,
    room: Room,
) -> int:
    """One event of the match: who has happened by its instants, and what they weigh. Returns how many have a bit."""
    width, slots, final = high[step] - low[step] + 1, room.slots, len(low) - 1
    row, factor = room.row[:width], room.factor[:width]
    for slot in range(count - 1, -1, -1):
        if competing.leaves[slots[slot]] == step:
            harmless(timed, competing, slots[slot], step, final, low[step], room.ramp, row)
            take_bit(now, slot, count, row, width)
            count -= 1
            for index in range(slot, count):
                slots[index] = slots[index + 1]
    spread_point(timed, chosen[step], low[step], room.ramp, factor)
    for competitor in range(len(competing.event)):
        if competing.enters[competitor] == step == competing.leaves[competitor]:
            harmless(timed, competing, competitor, step, final, low[step], room.ramp, row)
            for index in range(width):
                factor[index] *= row[index]
    for state in range(1 << count):
        target = now[state]
        for index in range(width):
            target[index] *= factor[index]
    for slot in range(count):
        harmless(timed, competing, slots[slot], step, final, low[step], room.ramp, row)
        set_bit(now, slot, count, row, width)
    for competitor in range(len(competing.event)):
        if competing.enters[competitor] == step < competing.leaves[competitor]:
            harmless(timed, competing, competitor, step, final, low[step], room.ramp, row)
            give_bit(now, count, row, width)
            slots[count] = competitor
            count += 1
    return count


@borrowing
def summed(
    timed: Timed, competing: Undecided, chosen: Int64s, low: Int64s, high: Int64s, room: Room
) -> tuple[float, int]:
    """The probability with all events in low .. high, and the last possible instant."""
    final, now, behind = len(low) - 1, room.now, room.behind
    count, total, latest = 0, 0.0, low[final]
    for index in range(high[0] - low[0] + 1):
        now[0, index] = 1.0
    for step in range(final + 1):
        if step > 0:
            before = high[step - 1] - low[step - 1] + 1
            carry(now, behind, 1 << count, low[step - 1], before, low[step], high[step] - low[step] + 1)
            now, behind = behind, now
        count = decide(timed, competing, chosen, low, high, step, count, now, room)
    for index in range(high[final] - low[final] + 1):
        if now[0, index] > 0.0:
            latest = low[final] + index
            total += now[0, index]
    return total, latest


@borrowing
def from_event_to_event(
    timed: Timed,
    competing: Undecided,
    chosen: Int64s,
    low: Int64s,
    high: Int64s,
    window: int,
    begin: Int64s,
    end: Int64s,
    room: Room,
) -> tuple[float, int, int]:
    """The probability and the tightest range of some events; `begin` and `end` are copies of `low` and `high`.

    Where the window cuts the last event, each first instant is followed on its own; all others together.
    """
    final = len(low) - 1
    total, earliest, latest, first = 0.0, high[0], low[final], low[0]
    while first <= high[0] and stop_flag() == 0:
        limit = first + window - 1
        begin[0], end[0], end[final] = first, first, min(high[final], limit)
        if limit >= high[final]:
            end[0] = high[0]
        if begin[final] <= end[final]:
            part, last = summed(timed, competing, chosen, begin, end, room)
            if part > 0.0:
                if total == 0.0:
                    earliest = first
                total, latest = total + part, max(latest, last)
        first = end[0] + 1
    if total > 0.0 and earliest + window > high[final]:  # found in a group of instants: which is the first?
        begin[0], end[0], end[final] = earliest, earliest, high[final]
        while earliest < high[0] and summed(timed, competing, chosen, begin, end, room)[0] == 0.0:
            earliest += 1
            begin[0], end[0] = earliest, earliest
    return total, earliest, latest


@borrowing
def sums_for(competing: Undecided, low: Int64s, high: Int64s, window: int) -> int:
    """How many numbers `by_who_happened` needs room for."""
    number, widest = len(competing.event) + 1, 0
    for step in range(len(low)):
        widest = max(widest, high[step] - low[step] + 1)
    if len(low) == 2 and pairs_are_cheaper(competing, low, high, window):
        return int(filled_up(widest) * (3 * number + 5) + 3 * number)
    if len(low) == 3:
        return int(filled_up(widest) * (2 * number + 4 + (2 << ties_of(competing))) + 4 * number)
    return int(widest * (2 + (2 << competing.bits)))


@inlined
def by_who_happened(
    timed: Timed, competing: Undecided, chosen: Int64s, low: Int64s, high: Int64s, window: int, room: Buffers
) -> tuple[float, int, int]:
    """The probability and the tightest range."""
    final, widest, number, sums = len(low) - 1, 0, len(competing.event), room.sums
    for step in range(final + 1):
        widest = max(widest, high[step] - low[step] + 1)
    first, last = filled_up(high[0] - low[0] + 1), filled_up(high[final] - low[final] + 1)
    if final == 1 and pairs_are_cheaper(competing, low, high, window):
        stretches = last // PACE
        rows = (number + 1) * first
        end = rows + (stretches * number + 1) * PACE
        later = end + (number + 1) * last
        chance, each = later + 4 * PACE, number + 1
        two = Two(
            sums[:rows].reshape((number + 1, first)),
            sums[rows:end].reshape((stretches * number + 1, PACE)),
            sums[end:later].reshape((stretches * (number + 1), PACE)),
            room.ramp,
            sums[chance : chance + each],
            sums[chance + each : chance + 2 * each],
            sums[chance + 2 * each : chance + 3 * each],
            sums[later : later + 2],
            sums[later + PACE : later + 2 * PACE],
            sums[later + 2 * PACE : later + 3 * PACE],
            sums[later + 3 * PACE : chance],
        )
        return by_instants_of_the_first(timed, competing, chosen, low, high, window, two)
    if final == 2:
        ties, early, late = arranged(competing, room.competing[5], room.events[0])
        end = (ties + early + 2) * first
        rows = end + (ties + late + 2) * last
        states = rows + (first << ties)
        chance = states + (last << ties)
        alone = chance + 4 * (number + 1)
        three = Three(
            room.competing[5],
            ties,
            early,
            late,
            sums[:end].reshape((ties + early + 2, first)),
            sums[end:rows].reshape((ties + late + 2, last)),
            sums[rows:states].reshape((1 << ties, first)),
            sums[states:chance].reshape((1 << ties, last)),
            room.ramp,
            sums[chance : chance + number + 1],
            sums[chance + number + 1 : chance + 2 * (number + 1)],
            sums[chance + 2 * (number + 1) : chance + 3 * (number + 1)],
            sums[chance + 3 * (number + 1) : alone],
            sums[alone : alone + first],
        )
        return by_runs_of_the_middle(timed, competing, chosen, low, high, window, three, room.events[2])
    size, begin_at, end_at = widest << competing.bits, room.events[0, : final + 1], room.events[1, : final + 1]
    for step in range(final + 1):
        begin_at[step], end_at[step] = low[step], high[step]
    sweep = Room(
        sums[:size].reshape((1 << competing.bits, widest)),
        sums[size : 2 * size].reshape((1 << competing.bits, widest)),
        sums[2 * size : 2 * size + widest],
        sums[2 * size + widest : 2 * size + 2 * widest],
        room.events[2],
        room.ramp,
    )
    return from_event_to_event(timed, competing, chosen, low, high, window, begin_at, end_at, sweep)

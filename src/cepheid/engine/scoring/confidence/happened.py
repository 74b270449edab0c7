"""The confidence of a match from event to event, with a bit for each competing event: has it happened without harm?

A competing event of all gaps is harmless if it comes by the first event, at an event in between, or from the last event
on. One of a single gap is harmless if it comes by the event before the gap or from the event behind it. Each of these
terms depends on the instant of one event. So the sum over all instants goes from event to event by running sums: linear
in the width of the intervals, and 2 to the number of competing events that are undecided at a time. Each has a bit from
the first event by which it can have happened to the last one that can find it so. Only what is possible is added up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64Rows, Float64s, Int64s
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.timed import Timed
from cepheid.engine.kernels.compile import borrowing, inlined, kernel
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.scoring.confidence.competing_tables import spread_after, spread_before, spread_point

MOST_BITS = 10
EVERY = 0  # the gap of a competitor that disturbs all gaps between the events of the match


class Undecided(NamedTuple):
    """The competing events of a match: from which of its events to which each of them has a bit."""

    event: Int64s
    gap: Int64s  # the gap that it disturbs, or EVERY
    enters: Int64s  # the step that gives it a bit...
    leaves: Int64s  # ... and the one that takes it away; the same step: it has none
    bits: int  # at most so many at a time; -1: some competitor disturbs some gaps and not others


@kernel
def undecided(lower: Int64s, upper: Int64s, exists: Float64s, low: Int64s, high: Int64s, keys: Int64s) -> Undecided:
    """The competing events, by their keys: competitor * (number of gaps) + gap, sorted, each once."""
    final, gaps, count, fits = len(low) - 1, len(low) + 1, 0, len(low) > 1
    event, gap = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    enters, leaves = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    index = 0
    while index < len(keys) and fits:
        end = index
        while end < len(keys) and keys[end] // gaps == keys[index] // gaps:
            fits = fits and 0 < keys[end] % gaps <= final
            end += 1
        event[count], gap[count] = keys[index] // gaps, keys[index] % gaps
        if end - index == final:
            gap[count] = EVERY
        fits = fits and (end - index == final or end - index == 1)
        if fits:
            last = upper[event[count]] if exists[event[count]] >= 1.0 else NEVER  # as good as later than anything
            enters[count], leaves[count] = span(low, high, gap[count], lower[event[count]], last)
        count, index = count + 1, end
    event, gap, enters, leaves = event[:count], gap[:count], enters[:count], leaves[:count]
    bits = -1
    for step in range(final if fits else 0):
        alive = 0
        for competitor in range(count):
            alive += 1 if enters[competitor] <= step < leaves[competitor] else 0
        bits = max(bits, alive)
    return Undecided(event, gap, enters, leaves, bits)


@inlined
def span(low: Int64s, high: Int64s, gap: int, first: int, last: int) -> tuple[int, int]:
    """From which step to which one it is not decided whether a competitor has happened that comes in first .. last."""
    final = len(low) - 1
    if gap == EVERY:
        enter = 0
        while enter < final and first > high[enter]:
            enter += 1
        leave = enter
        while leave < final and last >= low[leave + 1]:
            leave += 1
        return enter, leave
    if first > high[gap - 1]:
        return gap, gap
    return gap - 1, gap - 1 if last < low[gap] else gap


@borrowing
def happened_cost(competing: Undecided, low: Int64s, high: Int64s, window: int) -> float:
    """About how many steps it takes, several of which a processor does at once."""
    if competing.bits < 0 or competing.bits > MOST_BITS:
        return np.inf
    total, final = 0.0, len(low) - 1
    for step in range(final + 1):
        states, changes = 1.0, 2.0
        for competitor in range(len(competing.event)):
            states *= 2.0 if competing.enters[competitor] < step <= competing.leaves[competitor] else 1.0
            changes += 0.5 if competing.enters[competitor] <= step <= competing.leaves[competitor] else 0.0
        total += states * changes * (high[step] - low[step] + 1.0)
    if final == 2:  # run by run of the middle event
        ties, runs = 1.0, min(high[1] - low[1] + 1.0, 2.0 * len(competing.event) + 1.0)
        for competitor in range(len(competing.event)):
            ties *= 2.0 if competing.enters[competitor] == 0 and competing.leaves[competitor] == 2 else 1.0
        return float(runs * (len(competing.event) + 5.0 * ties) * 0.5 * (high[0] - low[0] + high[2] - low[2] + 2.0))
    return float(
        total * (1.0 + max(0, min(high[0], high[final] - window) - low[0] + 1))
    )  # each that the window is cut for


@inlined
def harmless(
    timed: Timed, competing: Undecided, competitor: int, step: int, low: Int64s, high: Int64s, row: Float64s
) -> None:
    """For each instant of an event: P(the competitor comes without harm, as this event decides)."""
    event, gap, final = competing.event[competitor], competing.gap[competitor], len(low) - 1
    begin, end = low[step : step + 1], high[step : step + 1]
    if (gap == EVERY and step == final) or gap == step != EVERY:
        spread_after(timed, event, begin, end, 0, row)
    elif gap != EVERY or step == 0:
        spread_before(timed, event, begin, end, 0, row)
    else:
        spread_point(timed, event, begin, end, row)
        exists = timed.exists[event]
        for index in range(high[step] - low[step] + 1):
            row[index] *= exists


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
    width, slots, row, factor = high[step] - low[step] + 1, room.slots, room.row, room.factor
    for slot in range(count - 1, -1, -1):
        if competing.leaves[slots[slot]] == step:
            harmless(timed, competing, slots[slot], step, low, high, row)
            take_bit(now, slot, count, row, width)
            count -= 1
            for index in range(slot, count):
                slots[index] = slots[index + 1]
    spread_point(timed, chosen[step], low[step : step + 1], high[step : step + 1], factor)
    for competitor in range(len(competing.event)):
        if competing.enters[competitor] == step == competing.leaves[competitor]:
            harmless(timed, competing, competitor, step, low, high, row)
            for index in range(width):
                factor[index] *= row[index]
    for state in range(1 << count):
        target = now[state]
        for index in range(width):
            target[index] *= factor[index]
    for slot in range(count):
        harmless(timed, competing, slots[slot], step, low, high, row)
        set_bit(now, slot, count, row, width)
    for competitor in range(len(competing.event)):
        if competing.enters[competitor] == step < competing.leaves[competitor]:
            harmless(timed, competing, competitor, step, low, high, row)
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


class Three(NamedTuple):
    """Three events: by competitor, and in the row behind for the event itself, what `harmless` says of each."""

    before: Float64Rows  # the instants of the first event; in the last row: room for the sum
    chances: Float64Rows  # ... of the middle one
    after: Float64Rows  # ... and of the last one
    starts: Float64Rows  # room: by who has happened by the middle event, and by instant of the first one
    ends: Float64Rows  # the same for the last one


@kernel
def new_three(competing: int, bits: int, first: int, middle: int, last: int) -> Three:
    """Room for so many competing events and instants."""
    states = 1 << bits
    return Three(
        np.empty((competing + 2, first)),
        np.empty((competing + 1, middle)),
        np.empty((competing + 1, last)),
        np.empty((states, first)),
        np.empty((states, last)),
    )


@borrowing
def fill_three(timed: Timed, competing: Undecided, chosen: Int64s, low: Int64s, high: Int64s, three: Three) -> None:
    """All that depends on one event only."""
    number = len(competing.event)
    for competitor in range(number):
        harmless(timed, competing, competitor, 1, low, high, three.chances[competitor])
        if competing.enters[competitor] == 0:
            harmless(timed, competing, competitor, 0, low, high, three.before[competitor])
        if competing.leaves[competitor] == 2:
            harmless(timed, competing, competitor, 2, low, high, three.after[competitor])
    spread_point(timed, chosen[0], low[:1], high[:1], three.before[number])
    spread_point(timed, chosen[1], low[1:2], high[1:2], three.chances[number])
    spread_point(timed, chosen[2], low[2:], high[2:], three.after[number])


@borrowing
def run_from(three: Three, low: Int64s, high: Int64s, middle: int) -> int:
    """The last instant of the middle event up to which nothing changes for competitors or for a neighbour."""
    stop, number = middle, three.chances.shape[0]
    while stop < high[1] and (stop + 1 < low[2] or middle > high[0]):
        at = stop - low[1]
        for competitor in range(number):
            if three.chances[competitor, at] != three.chances[competitor, at + 1]:
                return stop
        stop += 1
    return stop


@borrowing
def fill_run(competing: Undecided, three: Three, low: Int64s, high: Int64s, begin: int, stop: int) -> int:
    """What both sides weigh while the middle event lies in begin .. stop; how many competitors tie one to the other."""
    number, at, count = len(competing.event), begin - low[1], 0
    start, end, weight = three.starts[0], three.ends[0], three.chances[number, at]
    for index in range(len(start)):  # how many instants of the run come after it
        start[index] = three.before[number, index] * max(0, stop - max(begin, low[0] + index + 1) + 1)
    for index in range(len(end)):
        end[index] = three.after[number, index]
    if stop >= low[2]:
        for index in range(len(end)):
            end[index] *= max(0, min(stop, low[2] + index - 1) - begin + 1)
        if stop > begin:  # then all of them come after the first event: they are counted here
            for index in range(len(start)):
                start[index] = three.before[number, index]
    for competitor in range(number):
        chance, early, late = (
            three.chances[competitor, at],
            competing.enters[competitor] == 0,
            competing.leaves[competitor] == 2,
        )
        if early and not late:
            row = three.before[competitor]
            for index in range(len(start)):
                start[index] *= row[index] + chance
        elif late and not early:
            row = three.after[competitor]
            for index in range(len(end)):
                end[index] *= row[index] + chance
        elif not early:
            weight *= chance
    for index in range(len(start)):
        start[index] *= weight
    for competitor in range(number):
        if competing.enters[competitor] == 0 and competing.leaves[competitor] == 2:
            tie(three, competitor, at, count)
            count += 1
    return count


@inlined
def tie(three: Three, competitor: int, at: int, count: int) -> None:
    """A bit more: a competitor may have happened by the middle event, or it comes from the last one on."""
    before, after, chance = three.before[competitor], three.after[competitor], three.chances[competitor, at]
    for state in range(1 << count):
        done, waiting = three.starts[state | (1 << count)], three.starts[state]
        for index in range(len(done)):
            done[index] = waiting[index] * (before[index] + chance)
        done, waiting = three.ends[state | (1 << count)], three.ends[state]
        for index in range(len(done)):
            done[index] = waiting[index]
            waiting[index] *= after[index]


@borrowing
def by_runs_of_the_middle(
    timed: Timed, competing: Undecided, chosen: Int64s, low: Int64s, high: Int64s, window: int, three: Three
) -> tuple[float, int, int]:
    """The probability and the tightest range of three events: the first and the last one's instants side by side."""
    fill_three(timed, competing, chosen, low, high, three)
    size, last, alone = high[0] - low[0] + 1, high[2] - low[2], three.before[len(competing.event) + 1]
    shift, latest = low[0] + window - 1 - low[2], -1  # where the window of the first instant ends
    begin = min(max(0, -shift), size)
    cut = min(size, max(begin, last - shift))
    for index in range(size):
        alone[index] = 0.0
    middle = low[1]
    while middle <= high[1] and stop_flag() == 0:
        stop = run_from(three, low, high, middle)
        count = fill_run(competing, three, low, high, middle, stop)
        for state in range(1 << count):
            reach, share, total = three.ends[state], three.starts[state], 0.0
            latest = max(latest, last_of(share, reach, begin, shift))
            for index in range(last + 1):
                total += reach[index]
                reach[index] = total
            inside, limits = share[begin:cut], reach[begin + shift : cut + shift]
            found = alone[begin:cut]
            for index in range(cut - begin):
                found[index] += inside[index] * limits[index]
            for index in range(cut, size):
                alone[index] += share[index] * total
        middle = stop + 1
    total, earliest = 0.0, high[0] + 1
    for index in range(size):
        total += alone[index]
        if alone[index] > 0.0 and earliest > high[0]:
            earliest = low[0] + index
    return total, earliest, low[2] + latest


@inlined
def last_of(share: Float64s, reach: Float64s, begin: int, shift: int) -> int:
    """The last possible instant of the last event, in the window of the last possible one of the first; -1: none is."""
    first = len(share) - 1
    while first >= begin and share[first] == 0.0:
        first -= 1
    last = min(len(reach) - 1, first + shift) if first >= begin else -1
    while last >= 0 and reach[last] == 0.0:
        last -= 1
    return last


@kernel
def new_room(bits: int, widest: int) -> Room:
    """Room for so many bits and instants."""
    states = 1 << bits
    return Room(
        np.empty((states, widest)),
        np.empty((states, widest)),
        np.empty(widest),
        np.empty(widest),
        np.empty(bits + 1, np.int64),
    )


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


@kernel
def by_who_happened(
    timed: Timed, competing: Undecided, chosen: Int64s, low: Int64s, high: Int64s, window: int
) -> tuple[float, int, int]:
    """The probability and the tightest range."""
    final, widest, ties = len(low) - 1, 0, 0
    if final == 2:
        for competitor in range(len(competing.event)):
            ties += 1 if competing.enters[competitor] == 0 and competing.leaves[competitor] == 2 else 0
        three = new_three(len(competing.event), ties, high[0] - low[0] + 1, high[1] - low[1] + 1, high[2] - low[2] + 1)
        return by_runs_of_the_middle(timed, competing, chosen, low, high, window, three)
    for step in range(final + 1):
        widest = max(widest, high[step] - low[step] + 1)
    room = new_room(competing.bits, widest)
    return from_event_to_event(timed, competing, chosen, low, high, window, low.copy(), high.copy(), room)

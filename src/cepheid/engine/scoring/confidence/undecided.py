"""The competing events of a match that are undecided between some of its events, and what following them costs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64s, Int64Rows, Int64s
from cepheid.engine.data.matches import NEVER
from cepheid.engine.kernels.compile import borrowing, inlined, kernel

MOST_BITS = 10
NARROW = 4  # times as many numbers as an event has instants are needed at least
ONE_AT_A_TIME = 12.0  # a step of running sums takes as long as so many that a processor does at once
EVERY = 0  # the gap of a competitor that disturbs all gaps between the events of the match


class Undecided(NamedTuple):
    """The competing events of a match: from which of its events to which each of them has a bit."""

    event: Int64s
    gap: Int64s  # the gap that it disturbs, or EVERY
    enters: Int64s  # the step that gives it a bit...
    leaves: Int64s  # ... and the one that takes it away; the same step: it has none
    bits: int  # at most so many at a time; -1: some competitor disturbs some gaps and not others


class Buffers(NamedTuple):
    """Room for competing events and for sums, made once for many matches."""

    competing: Int64Rows  # keys, a row for each field of `Undecided`, and one for their order
    events: Int64Rows  # of the match: bounds of their instants, and who has a bit
    sums: Float64s
    ramp: Float64s  # 0, 1, 2 and so on, for the instants of an event


@kernel
def new_buffers(keys: int, length: int, sums: int) -> Buffers:
    """Room for so many keys, events of a match, and sums."""
    events = np.empty((3, max(length, MOST_BITS + 1)), np.int64)
    return Buffers(np.empty((6, keys), np.int64), events, np.empty(sums), np.arange(0.0, sums // NARROW))


@borrowing
def undecided(
    lower: Int64s,
    upper: Int64s,
    exists: Float64s,
    low: Int64s,
    high: Int64s,
    keys: Int64s,
    found: Int64Rows,
) -> tuple[int, int]:
    """Writes the competing events, by their keys: competitor * (number of gaps) + gap, sorted, each once.

    Into rows as `Buffers` have them. Returns how many these are, and how many bits they need.
    """
    final, gaps, count, fits = len(low) - 1, len(low) + 1, 0, len(low) > 1
    event, gap, enters, leaves = found[1], found[2], found[3], found[4]
    index = 0
    while index < len(keys) and fits:
        end, one = index, keys[index] // gaps
        while end < len(keys) and keys[end] < (one + 1) * gaps:
            fits = fits and 0 < keys[end] - one * gaps <= final
            end += 1
        event[count], gap[count] = one, keys[index] - one * gaps
        if end - index == final:
            gap[count] = EVERY
        fits = fits and (end - index == final or end - index == 1)
        if fits:
            last = upper[one] if exists[one] >= 1.0 else NEVER  # as good as later than anything
            enters[count], leaves[count] = span(low, high, gap[count], lower[one], last)
        count, index = count + 1, end
    bits = -1
    for step in range(final if fits else 0):
        alive = 0
        for competitor in range(count):
            alive += 1 if enters[competitor] <= step < leaves[competitor] else 0
        bits = max(bits, alive)
    return count, bits


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


@inlined
def ties_of(competing: Undecided) -> int:
    """How many competitors may come by the first event of three, or from the last one on."""
    ties = 0
    for competitor in range(len(competing.event)):
        ties += 1 if competing.enters[competitor] == 0 and competing.leaves[competitor] == 2 else 0
    return ties


@borrowing
def summing_cost(competing: Undecided, low: Int64s, high: Int64s, window: int) -> float:
    """About how many steps running sums take from event to event, several of which a processor does at once."""
    if competing.bits > MOST_BITS:
        return np.inf
    total, final = 0.0, len(low) - 1
    for step in range(final + 1):
        states, changes = 1.0, 2.0
        for competitor in range(len(competing.event)):
            states *= 2.0 if competing.enters[competitor] < step <= competing.leaves[competitor] else 1.0
            changes += 0.5 if competing.enters[competitor] <= step <= competing.leaves[competitor] else 0.0
        total += states * changes * (high[step] - low[step] + 1.0)
    cut = max(0, min(high[0], high[final] - window) - low[0] + 1)  # each that the window is cut for
    return float(total * (1.0 + cut))


@borrowing
def two_events_cost(competing: Undecided, low: Int64s, high: Int64s) -> float:
    """The same for all pairs of instants of two events."""
    return float((high[0] - low[0] + 1.0) * (high[1] - low[1] + 1.0) * (0.5 + (len(competing.event) + 3) // 4))


@borrowing
def pairs_are_cheaper(competing: Undecided, low: Int64s, high: Int64s, window: int) -> bool:
    """Are all pairs of instants of two events tried in less time?"""
    return two_events_cost(competing, low, high) < ONE_AT_A_TIME * summing_cost(competing, low, high, window)


@borrowing
def happened_cost(competing: Undecided, low: Int64s, high: Int64s, window: int) -> float:
    """About how many steps it takes, several of which a processor does at once."""
    final = len(low) - 1
    if competing.bits < 0 or (final > 1 and competing.bits > MOST_BITS):
        return np.inf
    if final == 2:  # run by run of the middle event
        ties, runs = 2.0 ** ties_of(competing), min(high[1] - low[1] + 1.0, 2.0 * len(competing.event) + 1.0)
        return float(runs * (len(competing.event) + 5.0 * ties) * 0.5 * (high[0] - low[0] + high[2] - low[2] + 2.0))
    summing = summing_cost(competing, low, high, window)
    return min(summing, two_events_cost(competing, low, high)) if final == 1 else summing

"""How probable it is that some events come in order and within the window (skip_till_any_match without negation).

Instants are never enumerated together: one event's at a time, with running sums (compare TIME's algorithm 2). Events
whose valid intervals do not overlap fall into clusters that know nothing of each other, except through the window,
which ties the first event to the last. Clusters of one or two events with all instants alike need no sums at all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64Rows, Float64s, Int64Rows, Int64s
from cepheid.engine.data.timed import Timed, at_instant, between
from cepheid.engine.kernels.compile import borrowing, borrowing_by_address, kernel
from cepheid.engine.scoring.confidence.bounds import NO_WINDOW
from cepheid.engine.scoring.confidence.memory import Memory, new_memory
from cepheid.engine.scoring.confidence.undecided import Buffers, new_buffers

COMPETING = 64  # events that there is room for: with more, a match is judged with arrays of its own...
SUMS = 1 << 16  # ... as with more sums


class Workspace(NamedTuple):
    """Room for sums, made once for many matches."""

    one: Float64s  # as wide as the widest interval
    two: Float64s
    three: Float64s
    left: Float64Rows  # a row for each instant, a column for each event
    words: Float64Rows  # events x events
    more: Float64Rows
    memory: Memory  # of matches that were judged before
    chosen: Int64s  # the events of the match at hand...
    found: Int64Rows  # ... its competing events, two rows as `CompetingEvents` has them, and two more...
    buffers: Buffers  # ... and room for its confidence


@kernel
def workspace(width: int, length: int) -> Workspace:
    """A workspace for matches of some length, whose events have at most so many instants."""
    return Workspace(
        np.empty(width + 1),
        np.empty(width + 1),
        np.empty(width + 1),
        np.empty((width + 1, length + 1)),
        np.empty((length, length + 1)),
        np.empty((length, length + 1)),
        new_memory(),
        np.empty(length, np.int64),
        np.empty((4, COMPETING), np.int64),
        new_buffers(COMPETING * (length + 1), length, SUMS),
    )


@borrowing
def pairs_before(first_low: int, first_high: int, second_low: int, second_high: int) -> float:
    """How many pairs of instants, one from each interval, come in order.

    >>> pairs_before(1, 3, 2, 4)
    6.0
    """
    low, high = max(second_low, first_low + 1), min(second_high, first_high + 1)
    pairs = 0.0
    if low <= high:  # here each instant of the second has one predecessor more than the one before
        pairs += 0.5 * (high - low + 1) * ((low - first_low) + (high - first_low))
    beyond = max(second_low, first_high + 2)
    if beyond <= second_high and first_low <= first_high:
        pairs += (second_high - beyond + 1.0) * (first_high - first_low + 1.0)
    return pairs


@borrowing
def triples_before(
    low: int, high: int, mid_low: int, mid_high: int, last_low: int, last_high: int, window: int
) -> float:
    """How many triples of instants, one from each interval, come in order and within the window.

    >>> triples_before(1, 2, 2, 3, 3, 4, 100), triples_before(1, 2, 2, 3, 3, 4, 3)
    (4.0, 2.0)
    """
    triples = 0.0
    if last_high - low < window:  # by the middle one: how many before it, how many after it
        for instant in range(max(mid_low, low + 1), min(mid_high, last_high - 1) + 1):
            earlier = min(instant - 1, high) - low + 1
            triples += float(earlier) * (last_high - max(instant + 1, last_low) + 1)
        return triples
    for instant in range(low, high + 1):
        triples += pairs_before(max(mid_low, instant + 1), mid_high, last_low, min(last_high, instant + window - 1))
    return triples


@borrowing
def counted(
    lower: Int64s,
    upper: Int64s,
    share: Float64s,
    base: Int64s,
    chosen: Int64s,
    lows: Int64Rows,
    highs: Int64Rows,
    length: int,
    window: int,
) -> float:
    """P(chosen[:length] in order and within the window), where counting instants is enough; -1 where it is not.

    That is: all instants of an event alike, and at most three events overlap one after the other. The valid bounds
    are in the last rows of `lows` and `highs`. This is `ordered_within` for most matches, without its sums.
    """
    final = length - 1
    low, high = lows[final], highs[final]
    for index in range(length):
        if base[chosen[index]] >= 0:
            return -1.0
    total, first, end = 1.0, 0, length
    if length > 1 and high[final] - low[0] >= window:  # the window cuts: the first and the last event go together
        if length == 3:
            triples = triples_before(low[0], high[0], low[1], high[1], low[2], high[2], window)
            return triples * share[chosen[0]] * share[chosen[1]] * share[chosen[2]]  # type: ignore[no-any-return]
        if length > 2 and (high[0] >= low[1] or high[final - 1] >= low[final]):
            return -1.0
        pairs = pairs_before(low[0], high[0], low[final], high[final])
        pairs -= pairs_before(low[0] + window - 1, high[0] + window - 1, low[final], high[final])  # too far apart
        total, first, end = pairs * share[chosen[0]] * share[chosen[final]], 1, final
    for index in range(first, end):
        if index < end - 1 and high[index] >= low[index + 1]:
            continue
        one, two = chosen[first], chosen[index]
        if index == first:
            if low[index] > lower[one] or high[index] < upper[one]:
                total *= (high[index] - low[index] + 1) * share[one]
        elif index == first + 1:
            total *= pairs_before(low[first], high[first], low[index], high[index]) * share[one] * share[two]
        elif index == first + 2:
            triples = triples_before(
                low[first], high[first], low[first + 1], high[first + 1], low[index], high[index], NO_WINDOW
            )
            total *= triples * share[one] * share[chosen[first + 1]] * share[two]
        else:
            return -1.0
        first = index + 1
    return total


@borrowing
def precedes(timed: Timed, first: int, second: int) -> float:
    """P(the first event happens before the second)."""
    low, high = timed.lower[first], timed.upper[first]
    if high < timed.lower[second]:
        return 1.0
    if timed.base[first] < 0 and timed.base[second] < 0:
        pairs = pairs_before(low, high, timed.lower[second], timed.upper[second])
        return pairs * timed.share[first] * timed.share[second]  # type: ignore[no-any-return]
    total = 0.0
    for instant in range(timed.lower[second], timed.upper[second] + 1):
        total += at_instant(timed, second, instant) * between(timed, first, low, instant - 1)
    return total


@borrowing
def forwards(
    timed: Timed, chosen: Int64s, low: Int64s, high: Int64s, first: int, last: int, sums: Float64s, spare: Float64s
) -> float:
    """P(chosen[first:last + 1] in order, each within low .. high).

    Leaves in `sums[k]` the part of it where the last one happens by low + k.
    """
    total = 0.0
    for index in range(first, last + 1):
        event = chosen[index]
        # So that the last round writes to `sums`.
        now, before = (sums, spare) if (last - index) % 2 == 0 else (spare, sums)
        start, base, share = low[index], timed.base[event], timed.share[event]
        own = base + start - timed.lower[event]  # where its probabilities begin, if it has some of its own
        total = 0.0
        for step in range(high[index] - start + 1):
            weight = share if base < 0 else timed.point[own + step]
            if index > first:
                newest = high[index - 1] - low[index - 1]
                weight *= before[min(start + step - 1 - low[index - 1], newest)]
            total += weight
            now[step] = total
    return total


@borrowing
def backwards(
    timed: Timed, chosen: Int64s, low: Int64s, high: Int64s, first: int, last: int, parts: Float64s, spare: Float64s
) -> float:
    """P(chosen[first:last + 1] in order, each within low .. high).

    Leaves in `parts[k]` the part of it where the first one happens at low + k.
    """
    total = 0.0
    for index in range(last, first - 1, -1):
        event = chosen[index]
        now, after = (parts, spare) if (index - first) % 2 == 0 else (spare, parts)
        start, base, share = low[index], timed.base[event], timed.share[event]
        own = base + start - timed.lower[event]
        total = 0.0
        for step in range(high[index] - start, -1, -1):
            weight = share if base < 0 else timed.point[own + step]
            if index < last:
                weight *= after[max(start + step + 1 - low[index + 1], 0)]
            total += weight
            now[step] = weight if index == first else total
    return total


@borrowing
def cluster(timed: Timed, chosen: Int64s, low: Int64s, high: Int64s, first: int, last: int, room: Workspace) -> float:
    """P(chosen[first:last + 1] in order, each within low .. high)."""
    if first == last:
        return between(timed, chosen[first], low[first], high[first])
    one, two = chosen[first], chosen[last]
    if last == first + 1 and timed.base[one] < 0 and timed.base[two] < 0:
        pairs = pairs_before(low[first], high[first], low[last], high[last])
        return pairs * timed.share[one] * timed.share[two]  # type: ignore[no-any-return]
    return forwards(timed, chosen, low, high, first, last, room.one, room.two)


@borrowing
def apart_within(
    timed: Timed, one: int, two: int, one_low: int, one_high: int, two_low: int, two_high: int, window: int
) -> float:
    """P(the first event precedes the second by less than the window), each within its bounds."""
    if timed.base[one] < 0 and timed.base[two] < 0:
        pairs = pairs_before(one_low, one_high, two_low, two_high)
        pairs -= pairs_before(one_low + window - 1, one_high + window - 1, two_low, two_high)  # too far apart
        return pairs * timed.share[one] * timed.share[two]  # type: ignore[no-any-return]
    total = 0.0
    for instant in range(one_low, one_high + 1):
        reached = between(timed, two, max(two_low, instant + 1), min(two_high, instant + window - 1))
        total += at_instant(timed, one, instant) * reached
    return total


@borrowing
def overlapping_within(
    timed: Timed, chosen: Int64s, low: Int64s, high: Int64s, length: int, window: int, room: Workspace
) -> float:
    """The same where all events overlap one after the other, and the window cuts into them.

    For each instant s of the first event, the others must come in order in (s, s + window). With a cut c inside all
    of these intervals, the first k come by c and the rest after it, for some k: sums over (s, c], grown to the left
    for falling s, and over (c, s + window), grown to the right for rising s. Every step only adds, so nothing cancels.
    """
    if length == 2:
        return apart_within(timed, chosen[0], chosen[1], low[0], high[0], low[1], high[1], window)
    rest = length - 1
    left, before, after = room.left, room.words, room.more
    total = 0.0
    block = low[0]
    while block <= high[0]:
        stop = min(high[0], block + window - 1)  # s from block to stop share the cut c = stop
        # before[i, k]: P(events i .. k - 1 of the rest in order in (s, c]), i <= k
        for i in range(rest + 1):
            for k in range(rest + 1):
                if i < rest:
                    before[i, k] = 1.0 if i == k else 0.0
                    after[i, k] = 1.0 if i == k else 0.0
        for instant in range(stop, block - 1, -1):
            for k in range(rest + 1):
                left[instant - block, k] = before[0, k]
            # instant itself joins the interval of the next smaller s
            for i in range(rest):
                weight = 0.0
                if low[i + 1] <= instant <= high[i + 1]:
                    weight = at_instant(timed, chosen[i + 1], instant)
                if weight > 0.0:
                    for k in range(i + 1, rest + 1):
                        before[i, k] += weight * (1.0 if i + 1 == k else before[i + 1, k])
        # after[k, j]: P(events k .. j - 1 of the rest in order in (c, e]), k <= j
        reached = stop
        for start in range(block, stop + 1):
            while reached < min(start + window - 1, high[rest]):
                reached += 1
                for j in range(rest, 0, -1):
                    weight = 0.0
                    if low[j] <= reached <= high[j]:
                        weight = at_instant(timed, chosen[j], reached)
                    if weight > 0.0:
                        for k in range(j):
                            after[k, j] += weight * (1.0 if k == j - 1 else after[k, j - 1])
            weight = at_instant(timed, chosen[0], start)
            if weight > 0.0:
                joint = left[start - block, rest]
                for k in range(rest):
                    joint += left[start - block, k] * after[k, rest]
                total += weight * joint
        block = stop + 1
    return total


@borrowing_by_address
def ordered_within(
    timed: Timed, chosen: Int64s, low: Int64s, high: Int64s, length: int, window: int, room: Workspace
) -> float:
    """P(chosen[:length] in order and within the window); low and high are their valid bounds."""
    final = length - 1
    if length == 1 or high[final] - low[0] < window:  # the window cannot be missed any more
        total, first = 1.0, 0
        for index in range(length):
            if index == final or high[index] < low[index + 1]:
                total *= cluster(timed, chosen, low, high, first, index, room)
                first = index + 1
        return total
    head = 0
    while head < final and high[head] >= low[head + 1]:
        head += 1
    if head == final:
        return overlapping_within(timed, chosen, low, high, length, window, room)
    tail = final
    while high[tail - 1] >= low[tail]:
        tail -= 1
    total, first = 1.0, head + 1
    for index in range(head + 1, tail):
        if high[index] < low[index + 1]:
            total *= cluster(timed, chosen, low, high, first, index, room)
            first = index + 1
    if head == 0 and tail == final:
        return total * apart_within(timed, chosen[0], chosen[final], low[0], high[0], low[final], high[final], window)
    # The first event's instant on one side, the last event's on the other.
    start, stop = low[0], low[final]
    newest = high[final] - stop
    forwards(timed, chosen, low, high, tail, final, room.one, room.three)
    backwards(timed, chosen, low, high, 0, head, room.two, room.three)
    joint = 0.0
    for instant in range(start, high[0] + 1):
        reached = instant + window - 1 - stop
        if reached >= 0:
            joint += room.two[instant - start] * room.one[min(reached, newest)]
    return total * joint

"""Stream expansion (TIME section 3): every event as point events, one for each of its instants."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64s, Int64s
from cepheid.engine.data.timed import Stacks, Timed, at_instant
from cepheid.engine.kernels.compile import borrowing, kernel


class Points(NamedTuple):
    """The point events of one partition that could fill each place, in order of time."""

    begin: Int64s  # place p has those from begin[p] to begin[p + 1] - 1
    instant: Int64s
    event: Int64s
    chance: Float64s


@kernel
def expand(timed: Timed, stacks: Stacks, places: int, part: int) -> Points:
    """Stream expansion: the candidates come in order of their lower bounds, so that at most those that overlap wait.

    An event that arrives cannot have points before its lower bound, nor can any later one: what lies before has been
    given out (the paper's emit time, with lower bounds in order).
    """
    begin = np.zeros(places + 1, np.int64)
    for place in range(places):
        total = 0
        for index in range(stacks.begin[place, part], stacks.begin[place, part + 1]):
            event = stacks.member[index]
            for instant in range(timed.lower[event], timed.upper[event] + 1):
                total += 1 if at_instant(timed, event, instant) > 0.0 else 0
        begin[place + 1] = begin[place] + total
    size = begin[places]
    instants, events, chance = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
    for place in range(places):
        low, high = stacks.begin[place, part], stacks.begin[place, part + 1]
        waiting = np.empty(high - low, np.int64)
        count, index, put = 0, low, begin[place]
        now = timed.lower[stacks.member[low]] if low < high else 0
        while index < high or count > 0:
            if count == 0:
                now = max(now, timed.lower[stacks.member[index]])
            while index < high and timed.lower[stacks.member[index]] <= now:
                waiting[count] = stacks.member[index]
                count += 1
                index += 1
            kept = 0
            for slot in range(count):
                event = waiting[slot]
                weight = at_instant(timed, event, now)
                if weight > 0.0:
                    instants[put], events[put], chance[put] = now, event, weight * timed.exists[event]
                    put += 1
                if timed.upper[event] > now:
                    waiting[kept] = event
                    kept += 1
            count = kept
            now += 1
    return Points(begin, instants, events, chance)


@borrowing
def first_after(instants: Int64s, low: int, high: int, bound: int) -> int:
    """The first index in low .. high - 1 whose instant exceeds the bound."""
    while low < high:
        middle = (low + high) // 2
        if instants[middle] > bound:
            high = middle
        else:
            low = middle + 1
    return low

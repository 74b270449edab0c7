"""Between which bounds a confidence lies, for less than it costs to add it up.

A competitor that could disturb several gaps ties them together. Taken as one competitor for each of its gaps, all
independent, it gives an upper bound, since (1 - p)(1 - q) >= 1 - p - q, for what the simple case costs: sums over pairs
of instants. What that is too much by is at most the quotient of both sides where p and q are largest: a lower bound.
Without holes in the intervals a competitor can avoid all its gaps at some instants of the match iff it can avoid each
of them (an interval that lies in two gaps holds the instant between them), so that the range is exact even so.
"""

from __future__ import annotations

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.timed import Timed, between, onwards, up_to
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.scoring.confidence.competing_tables import independent
from cepheid.engine.scoring.confidence.independent_competing import by_pairs_of_instants


@borrowing
def without_holes(timed: Timed, chosen: Int64s, keys: Int64s) -> bool:
    """Are all instants within the bounds of all these events possible?"""
    gaps = len(chosen) + 1
    for event in chosen:
        if timed.holes[event] != 0:
            return False
    for key in keys:
        if timed.holes[key // gaps] != 0:
            return False
    return True


@borrowing
def at_most(timed: Timed, low: Int64s, high: Int64s, keys: Int64s) -> float:
    """An upper bound at once: P(no competitor disturbs the match), each at the instants that suit it best."""
    gaps, final = len(low) + 1, len(low) - 1
    total, index = 1.0, 0
    while index < len(keys):
        event, count, sure = keys[index] // gaps, 0, 0.0
        while index < len(keys) and keys[index] < (event + 1) * gaps:
            gap = keys[index] - event * gaps
            if 0 < gap <= final:
                count += 1
                sure += between(timed, event, high[gap - 1] + 1, low[gap] - 1)
            index += 1
        best = 1.0 - sure
        if count == final and timed.base[event] < 0:  # harmless by the first, from the last on, or with one between
            outside = up_to(timed, event, high[0]) + onwards(timed, event, low[final])
            best = min(best, outside + (final - 1) * timed.share[event])
        exists = timed.exists[event]
        total *= 1.0 - exists + exists * min(max(best, 0.0), 1.0)
    return total


@borrowing
def at_least_of_bound(timed: Timed, low: Int64s, high: Int64s, window: int, keys: Int64s) -> float:
    """Which part of the upper bound the confidence is at least: 1 - p - q by (1 - p)(1 - q) where both are largest."""
    gaps, final = len(low) + 1, len(low) - 1
    total, index = 1.0, 0
    while index < len(keys):
        event, apart, together, count = keys[index] // gaps, 1.0, 1.0, 0
        while index < len(keys) and keys[index] // gaps == event:
            gap = keys[index] % gaps
            start = low[gap - 1] + 1 if gap > 0 else low[final] - window + 1
            stop = high[gap] - 1 if gap <= final else high[0] + window - 1
            chance = between(timed, event, start, stop) * timed.exists[event]
            apart, together, count = apart * (1.0 - chance), together - chance, count + 1
            index += 1
        if count > 1:
            total *= together / apart if together > 0.0 and apart > 0.0 else 0.0
    return min(total, 1.0)


@borrowing
def bounds_cost(low: Int64s, high: Int64s, window: int, keys: Int64s) -> float:
    """About how many steps the bounds take."""
    total, final = 0.0, len(low) - 1
    tied = high[final] - low[0] >= window
    for step in range(1, final + 1):
        area = (high[step - 1] - low[step - 1] + 1.0) * (high[step] - low[step] + 1.0)
        total += area * (1.0 + len(keys) / final)
        if tied and step > 1:
            total += area * (high[0] - low[0] + 1.0)
    return total


@kernel
def bounds_of(
    timed: Timed, chosen: Int64s, low: Int64s, high: Int64s, window: int, keys: Int64s
) -> tuple[float, float, int, int]:
    """Lower and upper bound of P(the chosen events come in order and within the window, undisturbed), and the range."""
    upper, earliest, latest = by_pairs_of_instants(independent(timed, chosen, low, high, window, keys))
    return upper * at_least_of_bound(timed, low, high, window, keys), upper, earliest, latest

"""How probable it is that nobody disturbs a match whose condition has alternatives (OR) that competitors belong to."""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.timed import Timed
from cepheid.engine.kernels.compile import borrowing, called_by_address
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.scoring.confidence.competing import CompetingEvents
from cepheid.engine.scoring.confidence.shared_competing import Weighing
from cepheid.engine.scoring.confidence.undisturbed import Effort, Exclusive, exclusive


@borrowing
def bits_of(number: int) -> int:
    """How many bits are set."""
    count = 0
    while number != 0:
        number &= number - 1
        count += 1
    return count


@borrowing
def disturb_all(branches: Int64s, standing: int) -> bool:
    """Does every competitor disturb the match in the standing disjuncts?"""
    for bits in branches:
        if bits & standing == 0:
            return False
    return True


@called_by_address
def alternatives(
    timed: Timed,
    chosen: Int64s,
    low: Int64s,
    high: Int64s,
    window: int,
    found: CompetingEvents,
    standing: int,
    weighing: Weighing,
    effort: Effort,
) -> Exclusive:
    """The probability that nobody disturbs the match in at least one of the standing disjuncts, worlds being weighed.

    By inclusion and exclusion: nobody disturbs it in all disjuncts of a set iff all that disturb it in any one of them
    stay away.
    """
    if standing & (standing - 1) == 0 and len(found.keys) > 0 and disturb_all(found.branches, standing):
        share, first, last, cost = exclusive(timed, chosen, low, high, window, found.keys, weighing, effort)
        return min(share, 1.0), first, last, cost
    total, earliest, latest = 0.0, high[0] + 1, low[0] - 1
    most, state = 0.0, 0.0
    # Parts are added and taken off: each must be known, however small, and as well as all of them together.
    shared = Effort(effort.budget, effort.tolerance / (1 << bits_of(standing)), 0.0, effort.ordered)
    subset = standing
    while subset > 0 and stop_flag() == 0:
        members = bits_of(subset)
        keys = np.empty(len(found.keys), np.int64)
        count = 0
        for index in range(len(found.keys)):
            if found.branches[index] & subset != 0:
                keys[count] = found.keys[index]
                count += 1
        share, first, last, cost = exclusive(timed, chosen, low, high, window, keys[:count].copy(), weighing, shared)
        if cost > 0.0:
            return 0.0, 0, 0, cost
        state = min(state, cost)
        total += share if members % 2 == 1 else -share
        if members == 1 and share > 0.0:
            most = max(most, share)
            earliest, latest = min(earliest, first), max(latest, last)
        subset = (subset - 1) & standing
    return min(max(total, most), 1.0), earliest, latest, state

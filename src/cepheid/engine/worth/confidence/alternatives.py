"""How probable it is that nobody disturbs a match, where the condition has alternatives (OR) that rivals belong to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import INT64S
from cepheid.engine.data.timed import TIMED, Timed
from cepheid.engine.kernels.compile import called_by_address
from cepheid.engine.worth.confidence.rivals import RIVALS, Rivals
from cepheid.engine.worth.confidence.shared_rivals import WEIGHING, Weighing
from cepheid.engine.worth.confidence.undisturbed import exclusive

Int64s = npt.NDArray[np.int64]

Judged = tuple[float, int, int, float]  # confidence, earliest, latest; above 0: the steps it would take, too many


@called_by_address(
    types.Tuple((types.float64, types.int64, types.int64, types.float64))(
        TIMED, INT64S, INT64S, INT64S, types.int64, RIVALS, types.int64, WEIGHING, types.float64
    )
)
def alternatives(
    timed: Timed,
    chosen: Int64s,
    low: Int64s,
    high: Int64s,
    window: int,
    found: Rivals,
    standing: int,
    weighing: Weighing,
    budget: float,
) -> Judged:
    """The probability that nobody disturbs the match in at least one of the standing disjuncts, worlds being weighed.

    By inclusion and exclusion: nobody disturbs it in all disjuncts of a set iff all that disturb it in any one of them
    stay away.
    """
    total, earliest, latest = 0.0, high[0] + 1, low[0] - 1
    most = 0.0
    subset = standing
    while subset > 0:
        members = 0
        for bit in range(63):
            members += (subset >> bit) & 1
        keys = np.empty(len(found.keys), np.int64)
        count = 0
        for index in range(len(found.keys)):
            if found.branches[index] & subset != 0:
                keys[count] = found.keys[index]
                count += 1
        share, first, last, cost = exclusive(timed, chosen, low, high, window, keys[:count].copy(), weighing, budget)
        if cost > 0.0:
            return 0.0, 0, 0, cost
        total += share if members % 2 == 1 else -share
        if members == 1 and share > 0.0:
            most = max(most, share)
            earliest, latest = min(earliest, first), max(latest, last)
        subset = (subset - 1) & standing
    return min(max(total, most), 1.0), earliest, latest, 0.0

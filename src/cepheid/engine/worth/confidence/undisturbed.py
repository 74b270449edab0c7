"""How probable it is that some events come in order and within the window, while others stay out of their way.

Under skip_till_next_match no event that could have taken a place may lie strictly between the previous event and the
one that took it; under negation no event of the negated component may lie in its interval (TIME, equations 2 to 4).
Gaps are numbered: gap g lies between the events g - 1 and g of the match, gap 0 before the first one (back to a
window before the last), gap n after the last one (up to a window after the first).
Everything is a sum over harmless worlds, so that 0 means impossible. Where events are missing, worlds are weighed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import INT64S
from cepheid.engine.data.timed import TIMED, Timed
from cepheid.engine.kernels.compile import called_by_address
from cepheid.engine.worth.confidence.either_gap import (
    as_either_gap,
    by_stretches,
    either_gap_cost,
    in_either_gap,
    stretches,
)
from cepheid.engine.worth.confidence.independent_rivals import by_pairs_of_instants, pairs_cost
from cepheid.engine.worth.confidence.rival_tables import task
from cepheid.engine.worth.confidence.shared_rivals import (
    WEIGHING,
    Weighing,
    enumerate_instants,
    enumeration_cost,
    is_tied,
    sweep_cost,
    swept,
)

Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float64]

SLOWER = 20.0  # a step of the enumeration takes as long as so many of the sweep (measured: 25)


@called_by_address(
    types.Tuple((types.float64, types.int64, types.int64, types.float64))(
        TIMED, INT64S, INT64S, INT64S, types.int64, INT64S, WEIGHING, types.float64
    )
)
def exclusive(
    timed: Timed,
    chosen: Int64s,
    low: Int64s,
    high: Int64s,
    window: int,
    keys: Int64s,
    weighing: Weighing,
    budget: float,
) -> tuple[float, int, int, float]:
    """P(the chosen events come in order and within the window, and nobody disturbs them), with the tightest range.

    The last number is above 0 if that would take more steps than the budget allows: about so many.
    """
    gaps = len(chosen) + 1
    for key in keys:
        event, gap = key // gaps, key % gaps
        sure = timed.exists[event] >= 1.0 and 0 < gap < gaps - 1
        if sure and timed.lower[event] > high[gap - 1] and timed.upper[event] < low[gap]:
            return 0.0, 0, 0, 0.0  # always in the way
    if len(chosen) == 3 and len(weighing.table) == 0:
        keys = as_either_gap(timed.lower, timed.upper, low[1], high[1], keys)
    job = task(timed, chosen, low, high, window, keys)
    if job.disturbs.shape[0] == 0 and len(weighing.table) == 0:
        cost = pairs_cost(job)
        if cost > budget:
            return 0.0, 0, 0, cost
        total, earliest, latest = by_pairs_of_instants(job)
        return total, earliest, latest, 0.0
    if len(weighing.table) == 0 and in_either_gap(job):
        begins = stretches(job)
        cost = either_gap_cost(job, begins)
        if cost <= budget:
            total, earliest, latest = by_stretches(job, begins)
            return total, earliest, latest, 0.0
    sweeping, enumerating = sweep_cost(job, is_tied(job, weighing)), enumeration_cost(job)
    if min(sweeping, enumerating) > budget:
        return 0.0, 0, 0, min(sweeping, enumerating)
    if sweeping <= SLOWER * enumerating:
        total, earliest, latest = swept(job, weighing)
    else:
        total, earliest, latest = enumerate_instants(job, weighing)
    return total, earliest, latest, 0.0

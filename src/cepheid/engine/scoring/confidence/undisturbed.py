"""How probable it is that some events come in order and within the window, while others stay out of their way.

Under skip_till_next_match no event that could have taken a place may lie strictly between the previous event and the
one that took it; under negation no event of the negated component may lie in its interval (TIME, equations 2 to 4).
Gaps are numbered: gap g lies between the events g - 1 and g of the match, gap 0 before the first one (back to a
window before the last), gap n after the last one (up to a window after the first).
Everything is a sum over harmless worlds, so that 0 means impossible. Where events are missing, worlds are weighed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.timed import Timed
from cepheid.engine.kernels.compile import borrowing, borrowing_by_address, called_by_address, kernel
from cepheid.engine.scoring.confidence.by_intervals import (
    by_intervals,
    has_intervals,
    intervals,
    intervals_cost,
    widened,
)
from cepheid.engine.scoring.confidence.chain_bounds import at_most, bounds_cost, bounds_of, without_holes
from cepheid.engine.scoring.confidence.competing_tables import CompetingTables, task
from cepheid.engine.scoring.confidence.happened import by_who_happened, sums_for
from cepheid.engine.scoring.confidence.independent_competing import by_pairs_of_instants, pairs_cost
from cepheid.engine.scoring.confidence.shared_competing import (
    Weighing,
    enumerate_instants,
    enumeration_cost,
    is_tied,
    sweep_cost,
    swept,
)
from cepheid.engine.scoring.confidence.undecided import Buffers, Undecided, happened_cost, new_buffers, undecided

SLOWER = 20.0  # a step of the enumeration takes as long as so many of the sweep (measured: 25)
QUICK = 2e4  # steps from event to event, below which nobody asks whether there is a cheaper way
CHEAP = 1e5  # steps of intervals, below which nobody asks whether there is a cheaper way
SLOWER_BOUNDS = 2.0  # a step of the bounds takes as long as so many from event to event (measured)
VECTOR = 4.0  # so many steps of intervals take as long as one of the sweep
PAY = 20.0  # bounds are tried where the sum takes so many times as long...
PAY_FOR_LEAST = 2.0  # ... or so many, where a confidence is asked for that they may show to be out of reach
WITHIN = -1.0  # what stands for the cost of a confidence that bounds gave
OTHERWISE = -2.0  # ... and of one that sums from event to event are not for, ...
NO_ROOM = -3.0  # ... or have no room for: how much they need is in its stead


class Effort(NamedTuple):
    """How well a confidence must be known."""

    budget: float  # how many steps it may take
    tolerance: float  # by how much it may be off
    least: float  # nobody asks for one below
    ordered: float  # it is not above


Exclusive = tuple[float, int, int, float]  # probability, earliest, latest; above 0: steps, too many; WITHIN: by bounds


@borrowing
def surely_disturbed(timed: Timed, low: Int64s, high: Int64s, keys: Int64s) -> bool:
    """Is somebody in the way in all worlds?"""
    gaps, event = len(low) + 1, -1
    for key in keys:
        event = event if key < (event + 1) * gaps else key // gaps
        gap = key - event * gaps
        sure = timed.exists[event] >= 1.0 and 0 < gap < gaps - 1
        if sure and timed.lower[event] > high[gap - 1] and timed.upper[event] < low[gap]:
            return True
    return False


@kernel
def by_instants(job: CompetingTables, weighing: Weighing, budget: float) -> Exclusive:
    """The sum by sweeping or by going through instants, whichever is cheaper."""
    sweeping, enumerating = sweep_cost(job, is_tied(job, weighing)), enumeration_cost(job)
    if min(sweeping, enumerating) > budget:
        return 0.0, 0, 0, min(sweeping, enumerating)
    if sweeping <= SLOWER * enumerating:
        total, earliest, latest = swept(job, weighing)
    else:
        total, earliest, latest = enumerate_instants(job, weighing)
    return total, earliest, latest, 0.0


@borrowing_by_address
def by_sums(
    timed: Timed, chosen: Int64s, low: Int64s, high: Int64s, window: int, keys: Int64s, effort: Effort, room: Buffers
) -> Exclusive:
    """The same as `exclusive` for what is found quickly from event to event; leaves the keys widened in the room.

    It makes no arrays. Numba would count references for each match, which takes longer than the sums themselves.
    """
    if effort.least > 0.0 and effort.ordered * at_most(timed, low, high, keys) < effort.least:
        return 0.0, 0, 0, 0.0
    if room.competing.shape[1] < len(keys) * (len(low) + 1):
        return 0.0, 0, 0, OTHERWISE
    wide = room.competing[0]
    wide = wide[: widened(timed.lower, timed.upper, low, high, keys, wide)]
    count, bits = undecided(timed.lower, timed.upper, timed.exists, low, high, wide, room.competing)
    rows = room.competing
    competing = Undecided(rows[1, :count], rows[2, :count], rows[3, :count], rows[4, :count], bits)
    cost = happened_cost(competing, low, high, window) / VECTOR
    if cost > min(QUICK, effort.budget):
        return 0.0, len(wide), 0, OTHERWISE
    slower = effort.tolerance > 0.0 and cost > SLOWER_BOUNDS * bounds_cost(low, high, window, wide) / VECTOR
    if slower and effort.ordered * at_most(timed, low, high, keys) <= effort.tolerance:
        return 0.0, len(wide), 0, OTHERWISE
    needed = sums_for(competing, low, high, window)
    if needed > len(room.sums):
        return float(needed), 0, 0, NO_ROOM
    total, earliest, latest = by_who_happened(timed, competing, chosen, low, high, window, room)
    return total, earliest, latest, 0.0


@called_by_address
def exclusive(
    timed: Timed,
    chosen: Int64s,
    low: Int64s,
    high: Int64s,
    window: int,
    keys: Int64s,
    weighing: Weighing,
    effort: Effort,
) -> Exclusive:
    """P(the chosen events come in order and within the window, and nobody disturbs them), with the tightest range."""
    if surely_disturbed(timed, low, high, keys):
        return 0.0, 0, 0, 0.0
    if len(weighing.table) > 0:
        return by_instants(task(timed, chosen, low, high, window, keys), weighing, effort.budget)
    room = new_buffers(len(keys) * (len(low) + 1), len(low), 4096)
    total, earliest, latest, cost = by_sums(timed, chosen, low, high, window, keys, effort, room)
    if cost == NO_ROOM:
        room = new_buffers(len(keys) * (len(low) + 1), len(low), int(total))
        total, earliest, latest, cost = by_sums(timed, chosen, low, high, window, keys, effort, room)
    if cost != OTHERWISE:
        return total, earliest, latest, cost
    bound, keys = effort.ordered * at_most(timed, low, high, keys), room.competing[0, :earliest].copy()
    job = task(timed, chosen, low, high, window, keys)
    if job.disturbs.shape[0] == 0:
        cost = pairs_cost(job)
        if cost > effort.budget:
            return 0.0, 0, 0, cost
        total, earliest, latest = by_pairs_of_instants(job)
        return total, earliest, latest, 0.0
    apart, parts = has_intervals(job), intervals(job)
    by_interval = intervals_cost(job, parts) / VECTOR if apart else np.inf
    cost = by_interval
    if by_interval > CHEAP:
        cost = min(sweep_cost(job, job.coupled), SLOWER * enumeration_cost(job))
    cheaper = bounds_cost(low, high, window, keys) / VECTOR
    pays = min(cost, by_interval) > (PAY_FOR_LEAST if effort.least > 0.0 else PAY) * cheaper
    if (pays or bound <= effort.tolerance) and cheaper <= effort.budget and without_holes(timed, chosen, keys):
        least, most, earliest, latest = bounds_of(timed, chosen, low, high, window, keys)
        if most == 0.0 or most < effort.least:
            return 0.0, 0, 0, 0.0
        if most - least <= effort.tolerance:
            return 0.5 * (least + most), earliest, latest, WITHIN if least < most else 0.0
    if by_interval <= cost and by_interval <= effort.budget:
        total, earliest, latest = by_intervals(job, parts)
        return total, earliest, latest, 0.0
    return by_instants(job, weighing, effort.budget)

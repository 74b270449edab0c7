"""Candidates with their instants, as kernels see them, and what they ask of one event: how probable is it then?

Every probability here is a sum of what is allowed, never one minus what is not: an event that cannot lie somewhere
gets exactly 0 there, so that "possible" and "above zero" are the same thing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64s, Int64Rows, Int64s
from cepheid.engine.data.candidates import Candidates, candidates, partitions
from cepheid.engine.data.instants import Instants, instants_of
from cepheid.engine.data.layout import beginnings
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.table import EventTable
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.language import syntax as s
from cepheid.plan.physical import Plan


class Timed(NamedTuple):
    """The candidates: partition after partition, each in order of the lower bound."""

    lower: Int64s  # the first and last instant that is possible at all
    upper: Int64s
    share: Float64s  # the probability of each instant, where all are alike
    base: Int64s  # where an event with probabilities of its own begins in the flat arrays; -1: all alike
    point: Float64s  # flat: P(T = t)
    below: Float64s  # flat: P(T <= t)
    above: Float64s  # flat: P(T >= t)
    possible: Int64s  # flat: how many instants up to t are possible
    holes: Int64s  # 1: some instant between the bounds is impossible
    mask: Int64s  # bit c: the event can fill component c; positives first, then the negated ones
    begins: Int64s  # bit c: it can be the first event of positive component c
    compared: Int64Rows  # codes of the equivalence attributes that are compared here
    until: Int64s  # the upper bound as it stands in the table, for completion
    exists: Float64s  # the probability that the event happened at all; the instants are those if it did


class Stacks(NamedTuple):
    """For each component and partition its candidates in order of the lower bound; under contiguity, then everyone."""

    member: Int64s  # component after component, each partition by partition
    begin: Int64Rows  # row c: where each partition of component c begins in `member`, and the end
    reach: Int64s  # the latest upper bound so far in the same component and partition
    ahead: Int64s  # the earliest upper bound from here on of one that surely happened (TIME's NELT)


@dataclass(frozen=True)
class Prepared:
    """The candidates of a plan's query in a table."""

    rows: Int64s  # their rows in the table
    timed: Timed
    stacks: Stacks
    starts: Int64s  # partition k is starts[k]:starts[k + 1]
    step: int
    scanned: int
    late: int  # events that came after one that surely happened after them


def prepare(plan: Plan, events: EventTable) -> Prepared:
    """The events that could fill some component, with their instants."""
    instants = instants_of(events.table, plan.bound.schema, plan.options)
    found = with_everyone(plan, events) if plan.bound.contiguous else candidates(plan, events)
    part = np.repeat(np.arange(len(found.starts) - 1), np.diff(found.starts))
    lower, upper, begin = _possible(instants, found.rows)
    order = np.lexsort((upper, lower, part))
    rows = found.rows[order]
    lower, upper, base = lower[order], upper[order], np.full(len(rows), -1, np.int64)
    holes, nothing = np.zeros(len(rows), np.int64), np.zeros(0, np.float64)
    point, below, above, possible = nothing, nothing, nothing, np.zeros(0, np.int64)
    if begin is not None and instants.weights is not None:
        sizes = np.where(begin[order] >= 0, upper - lower + 1, 0)
        before = np.cumsum(sizes) - sizes
        base = np.where(sizes > 0, before, -1)
        spread = np.arange(int(sizes.sum())) + np.repeat(begin[order] - before, sizes)
        point = instants.weights[spread]
        below, above, possible = accumulate(point, base, sizes, holes)
    components = len(plan.bound.positives) + len(plan.bound.negations)
    begins = beginnings(plan.bound, events, found) if plan.bound.has_kleene else found.mask
    timed = Timed(
        lower,
        upper,
        1.0 / (upper - lower + 1),
        base,
        point,
        below,
        above,
        possible,
        holes,
        np.ascontiguousarray(found.mask[order]),
        np.ascontiguousarray(begins[order]),
        np.ascontiguousarray(found.compared[:, order]),
        instants.until[rows],
        instants.exists[rows],
    )
    stacks = _stacks(timed, components, found.starts, everyone=plan.bound.contiguous)
    return Prepared(rows, timed, stacks, found.starts, instants.step, found.scanned, events.late)


def _possible(instants: Instants, rows: Int64s) -> tuple[Int64s, Int64s, Int64s | None]:
    """The bounds of some rows without impossible instants at the ends, and where their probabilities then begin."""
    lower, upper = instants.lower[rows], instants.upper[rows]
    if instants.weights is None or instants.offsets is None:
        return lower, upper, None
    begin = np.where(np.diff(instants.offsets)[rows] > 0, instants.offsets[rows], -1)
    return (*trimmed(instants.weights, lower, upper, begin), begin)


@kernel
def trimmed(weights: Float64s, lower: Int64s, upper: Int64s, begin: Int64s) -> tuple[Int64s, Int64s]:
    """The bounds without impossible instants at the ends; moves `begin` along."""
    low, high = lower.copy(), upper.copy()
    for row in range(len(begin)):
        if begin[row] < 0:
            continue
        last = begin[row] + upper[row] - lower[row]
        while weights[last] == 0.0:
            last -= 1
            high[row] -= 1
        while weights[begin[row]] == 0.0:
            begin[row] += 1
            low[row] += 1
    return low, high


@kernel
def accumulate(point: Float64s, base: Int64s, sizes: Int64s, holes: Int64s) -> tuple[Float64s, Float64s, Int64s]:
    """Prefix and suffix sums of each event's probabilities, and counts of its possible instants; fills `holes`."""
    below, above = np.empty(len(point)), np.empty(len(point))
    possible = np.empty(len(point), np.int64)
    for event in range(len(base)):
        first, size = base[event], sizes[event]
        if first < 0:
            continue
        total, number = 0.0, 0
        for index in range(first, first + size):
            total += point[index]
            number += 1 if point[index] > 0.0 else 0
            below[index], possible[index] = total, number
        total = 0.0
        for index in range(first + size - 1, first - 1, -1):
            total += point[index]
            above[index] = total
        holes[event] = 1 if number < size else 0
    return below, above, possible


def with_everyone(plan: Plan, events: EventTable) -> Candidates:
    """The candidates and all other events: under contiguity each of them is in the way of others.

    Under partition contiguity those that have the same equivalence-test values, under strict contiguity all.
    """
    bound = plan.bound
    found = candidates(plan, events)
    order, starts = partitions(bound, events)
    codes = np.zeros((0, len(order)), np.int64)
    if bound.strategy is s.Strategy.STRICT_CONTIGUITY:  # then values are compared instead
        number = np.empty(len(events), np.int64)
        number[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        codes = number[None, :] if bound.equivalence else codes
        order, starts = np.arange(len(events)), np.array([0, len(events)])
    mask = np.zeros(len(events), np.int64)
    mask[found.rows] = found.mask
    return Candidates(
        order,
        events.time[order],
        events.instant[order],
        events.instant[order],
        found.position[:0],
        found.due[:0],
        mask[order],
        starts,
        np.ascontiguousarray(codes),
        len(events),
    )


def _stacks(timed: Timed, components: int, starts: Int64s, everyone: bool) -> Stacks:
    members = [np.flatnonzero((timed.mask >> place) & 1) for place in range(components)]
    if everyone:
        members.append(np.arange(len(timed.lower)))
    bases = np.cumsum([0, *(len(member) for member in members)])
    begin = np.stack([base + np.searchsorted(member, starts) for base, member in zip(bases, members, strict=False)])
    member = np.concatenate(members)
    order, upper = np.ascontiguousarray(begin, np.int64), timed.upper
    surely = np.where(timed.exists >= 1.0, upper, NEVER)
    return Stacks(member, order, *extremes(member, order, upper, surely))


@kernel
def extremes(member: Int64s, begin: Int64Rows, upper: Int64s, surely: Int64s) -> tuple[Int64s, Int64s]:
    """The latest upper bound up to each entry of a stack, and the earliest by which one has surely come."""
    reach, ahead = np.empty(len(member), np.int64), np.empty(len(member), np.int64)
    for place in range(begin.shape[0]):
        for part in range(begin.shape[1] - 1):
            low, high = begin[place, part], begin[place, part + 1]
            for index in range(low, high):
                reach[index] = upper[member[index]]
                if index > low:
                    reach[index] = max(reach[index], reach[index - 1])
            for index in range(high - 1, low - 1, -1):
                ahead[index] = surely[member[index]]
                if index < high - 1:
                    ahead[index] = min(ahead[index], ahead[index + 1])
    return reach, ahead


@borrowing
def widest(timed: Timed) -> int:
    """The number of instants of the widest interval."""
    width = 1
    for event in range(len(timed.lower)):
        width = max(width, timed.upper[event] - timed.lower[event] + 1)
    return width


# --- questions about one event ----------------------------------------------------------------------------------


@borrowing
def at_instant(timed: Timed, event: int, instant: int) -> float:
    """P(T = instant)."""
    if instant < timed.lower[event] or instant > timed.upper[event]:
        return 0.0
    base = timed.base[event]
    return timed.share[event] if base < 0 else timed.point[base + instant - timed.lower[event]]  # type: ignore[no-any-return]


@borrowing
def up_to(timed: Timed, event: int, instant: int) -> float:
    """P(T <= instant)."""
    if instant < timed.lower[event]:
        return 0.0
    if instant >= timed.upper[event]:
        return 1.0
    base, past = timed.base[event], instant - timed.lower[event]
    return (past + 1) * timed.share[event] if base < 0 else timed.below[base + past]  # type: ignore[no-any-return]


@borrowing
def onwards(timed: Timed, event: int, instant: int) -> float:
    """P(T >= instant)."""
    if instant > timed.upper[event]:
        return 0.0
    if instant <= timed.lower[event]:
        return 1.0
    base = timed.base[event]
    if base < 0:
        return (timed.upper[event] - instant + 1) * timed.share[event]  # type: ignore[no-any-return]
    return timed.above[base + instant - timed.lower[event]]  # type: ignore[no-any-return]


@borrowing
def between(timed: Timed, event: int, first: int, last: int) -> float:
    """P(first <= T <= last)."""
    lower, upper = timed.lower[event], timed.upper[event]
    if first > upper or last < lower or first > last:
        return 0.0
    if first <= lower:
        return up_to(timed, event, last)
    if last >= upper:
        return onwards(timed, event, first)
    base = timed.base[event]
    if base < 0:
        return (last - first + 1) * timed.share[event]  # type: ignore[no-any-return]
    low, high = base + first - lower - 1, base + last - lower
    if timed.possible[low] == timed.possible[high]:
        return 0.0
    difference = timed.below[high] - timed.below[low]
    if difference < 1e-9:  # rounding could make it nothing, or less
        difference = 0.0
        for index in range(low + 1, high + 1):
            difference += timed.point[index]
    return difference  # type: ignore[no-any-return]


@borrowing
def first_beyond(stacks: Stacks, lower: Int64s, low: int, high: int, bound: int) -> int:
    """The first entry of member[low:high] whose lower bound exceeds `bound`."""
    while low < high:
        middle = (low + high) // 2
        if lower[stacks.member[middle]] > bound:
            high = middle
        else:
            low = middle + 1
    return low


@borrowing
def first_reaching(stacks: Stacks, low: int, high: int, bound: int) -> int:
    """The first entry of member[low:high] such that it or one before it can still happen at `bound`."""
    while low < high:
        middle = (low + high) // 2
        if stacks.reach[middle] >= bound:
            high = middle
        else:
            low = middle + 1
    return low


@borrowing
def next_by(stacks: Stacks, lower: Int64s, part: int, place: int, instant: int) -> int:
    """By when some event of a stack that begins after an instant has surely happened; NEVER if there is none."""
    end = stacks.begin[place, part + 1]
    index = first_beyond(stacks, lower, stacks.begin[place, part], end, instant)
    return stacks.ahead[index] if index < end else NEVER

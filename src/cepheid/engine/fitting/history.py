"""What a history tells about loss and gaps: waits that ended, waits that were cut off, and losses that it proves.

For each component, every event of the positive component before it opens a wait. The wait ends with the first event
that could fill the component, and is cut off where the trip ends without it: at the next positive component, at a new
beginning, at the window's end or at the end of the history. A positive component that was not seen although the next
one was, is a proven loss; of the first component only where the history had begun early enough to see it. All of it
is counts, so that parts of a history can be gathered apart and merged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.candidates import candidates
from cepheid.engine.data.columns import FLOAT64S, INT64S
from cepheid.engine.data.matches import Int64s
from cepheid.engine.data.table import EventTable
from cepheid.engine.kernels.compile import search_kernel
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.worth.losses import day_length, leading_components
from cepheid.language.bound import BoundQuery
from cepheid.model import GapStatistics, Trips
from cepheid.model.loss_kinds import HOURS
from cepheid.plan.physical import Plan

SEEN, LOST, NOTHING, RESOLVED = range(4)
NO_COMPONENT = -1


@dataclass(frozen=True)
class ComponentHistory:
    """What was seen of one component."""

    events: float = 0.0  # that could fill it
    gaps: GapStatistics = field(default_factory=GapStatistics)  # from the positive component before it
    seen: float = 0.0  # times it was seen where it must have happened...
    lost: float = 0.0  # ...and times it was not
    # Of the first component: how long after the history's beginning the second one was seen, with and without it.
    seen_since: GapStatistics = field(default_factory=GapStatistics)
    lost_since: GapStatistics = field(default_factory=GapStatistics)
    # Of a component between two others: trips with it seen, by length, and what is known of all trips.
    lengths: GapStatistics = field(default_factory=GapStatistics)
    trips: Trips = field(default_factory=lambda: Trips(GapStatistics(), GapStatistics(), GapStatistics()))
    # Of these trips, by the hour in which their middle lies: with it seen, and not. Empty where days are not known.
    seen_by_hour: tuple[float, ...] = ()
    unseen_by_hour: tuple[float, ...] = ()
    # Of all trips past the component before it whose window is over: how many there were, and after how many of them
    # nothing of this or a later component was seen.
    resolved: float = 0.0
    nothing: float = 0.0

    def merge(self, other: ComponentHistory) -> ComponentHistory:
        """Both histories together."""
        return ComponentHistory(
            self.events + other.events,
            self.gaps.merge(other.gaps),
            self.seen + other.seen,
            self.lost + other.lost,
            self.seen_since.merge(other.seen_since),
            self.lost_since.merge(other.lost_since),
            self.lengths.merge(other.lengths),
            self.trips.merge(other.trips),
            _added(self.seen_by_hour, other.seen_by_hour),
            _added(self.unseen_by_hour, other.unseen_by_hour),
            self.resolved + other.resolved,
            self.nothing + other.nothing,
        )


def _added(first: tuple[float, ...], second: tuple[float, ...]) -> tuple[float, ...]:
    if not first or not second:
        return first or second
    return tuple(a + b for a, b in zip(first, second, strict=True))


@dataclass(frozen=True)
class History:
    """What was seen of every component."""

    components: dict[str, ComponentHistory]
    events: int = 0
    step: int = 0  # of its clock: the largest that all times are multiples of, counted from the beginning

    def of(self, name: str) -> ComponentHistory:
        """What was seen of one component, nothing if it was not looked at."""
        return self.components.get(name, ComponentHistory())

    def merge(self, other: History) -> History:
        """Both histories together."""
        names = self.components.keys() | other.components.keys()
        merged = {name: self.of(name).merge(other.of(name)) for name in names}
        return History(merged, self.events + other.events, math.gcd(self.step, other.step))


def gather(bound: BoundQuery, events: EventTable, scale: float, span: tuple[int, int] | None = None) -> History:
    """The history of a table; `span` is when the whole history begins and ends, if the table is a part of it.

    `scale` turns steps of the time column into the unit that the model's gaps count.
    """
    assert bound.window is not None
    if len(events) == 0:
        return History({})
    begins, ends = span or (int(events.time[0]), int(events.time[-1]))
    prepared = candidates(Plan(bound, "queues", partition=bound.equivalence), events)
    bits = component_bits(bound)
    leading = leading_components(bound)
    day = day_length(bound)
    found: dict[str, ComponentHistory] = {}
    for index, component in enumerate(bound.components):
        before = [c for c in bound.components[:index] if not c.negative]
        after = [c for c in bound.components[index + 1 :] if not c.negative]
        source = bits[before[-1].variable] if before else NO_COMPONENT
        target = bits[component.variable]
        behind = bits[after[0].variable] if after else NO_COMPONENT
        count = float(np.count_nonzero(prepared.mask & (1 << target)))
        arrays = (prepared.time, prepared.instant, prepared.mask, prepared.starts)
        if component.variable in leading:
            if component.negative or behind == NO_COMPONENT:
                continue
            window = bound.window.length
            others = other_positives(bound, bits, target, behind)
            seen, lost = proven_at_the_start(*arrays, target, behind, others, window, begins)
            found[component.variable] = ComponentHistory(
                count,
                seen_since=GapStatistics.from_samples(seen * scale),
                lost_since=GapStatistics.from_samples(lost * scale),
            )
            continue
        others = other_positives(bound, bits, source, target, behind)
        waits, cut, never, counts, trip_before, trip_after, trip_unseen, seen_middle, unseen_middle = observe(
            *arrays, source, target, behind, others, component.negative, before[-1].kleene, bound.window.length, ends
        )
        gaps = GapStatistics.from_samples(waits * scale, cut * scale, len(waits) + len(cut) + never)
        between: dict[str, Any] = {}
        if behind != NO_COMPONENT:
            between["lengths"] = GapStatistics.from_samples((trip_before + trip_after) * scale)
            between["trips"] = Trips.from_samples(trip_before * scale, trip_after * scale, trip_unseen * scale)
            between["seen_by_hour"] = _by_hour(seen_middle, day)
            between["unseen_by_hour"] = _by_hour(unseen_middle, day)
        provable = not component.negative and behind != NO_COMPONENT
        found[component.variable] = ComponentHistory(
            count,
            gaps,
            seen=float(counts[SEEN]) if provable else 0.0,
            lost=float(counts[LOST]) if provable else 0.0,
            resolved=float(counts[RESOLVED]),
            nothing=float(counts[NOTHING]),
            **between,
        )
    return History(found, len(events), int(np.gcd.reduce(events.time - begins)))


def _by_hour(times: Int64s, day: int | None) -> tuple[float, ...]:
    if not day:
        return ()
    return tuple(np.bincount(times % day * HOURS // day, minlength=HOURS).astype(float).tolist())


def other_positives(bound: BoundQuery, bits: dict[str, int], *known: int) -> int:
    """The positive components that end a trip when they are seen where others are expected, as a mask."""
    return sum(1 << bits[c.variable] for c in bound.positives if bits[c.variable] not in known)


def component_bits(bound: BoundQuery) -> dict[str, int]:
    """Which bit of a candidate's mask says that it can fill a component."""
    ordered = [*bound.positives, *(negation.component for negation in bound.negations)]
    return {component.variable: place for place, component in enumerate(ordered)}


@search_kernel(
    types.UniTuple(FLOAT64S, 2)(
        INT64S, INT64S, INT64S, INT64S, types.int64, types.int64, types.int64, types.int64, types.int64
    )
)
def proven_at_the_start(
    time: Int64s,
    instant: Int64s,
    mask: Int64s,
    starts: Int64s,
    target: int,
    behind: int,
    others: int,
    window: int,
    begins: int,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """When the second component was seen, counted from the history's beginning: with the first one before it, without.

    What lies before the beginning cannot be missed, so these times tell later which of them prove a loss.
    """
    seen_since, lost_since = np.empty(len(mask), np.float64), np.empty(len(mask), np.float64)
    n_seen = n_lost = 0
    for part in range(len(starts) - 1):
        for event in range(starts[part], starts[part + 1]):
            if stop_flag() != 0:
                break
            if mask[event] & (1 << behind) == 0:
                continue
            since = max(np.float64(time[event] - begins), 0.5)
            seen = False
            earlier = event - 1
            while earlier >= starts[part] and time[event] - time[earlier] < window:
                if instant[earlier] < instant[event]:
                    if mask[earlier] & (1 << target) != 0:
                        seen = True
                        break
                    if mask[earlier] & (others | (1 << behind)) != 0:
                        break  # an earlier trip
                earlier -= 1
            if seen:
                seen_since[n_seen] = since
                n_seen += 1
            else:
                lost_since[n_lost] = since
                n_lost += 1
    return seen_since[:n_seen], lost_since[:n_lost]


@search_kernel(
    types.Tuple((FLOAT64S, FLOAT64S, types.int64, INT64S, FLOAT64S, FLOAT64S, FLOAT64S, INT64S, INT64S))(
        INT64S,
        INT64S,
        INT64S,
        INT64S,
        types.int64,
        types.int64,
        types.int64,
        types.int64,
        types.boolean,
        types.boolean,
        types.int64,
        types.int64,
    )
)
def observe(
    time: Int64s,
    instant: Int64s,
    mask: Int64s,
    starts: Int64s,
    source: int,
    target: int,
    behind: int,
    others: int,
    negative: bool,
    grouped: bool,
    window: int,
    ends: int,
) -> tuple[Any, ...]:
    """All waits from one component for another: ended, cut off, in vain; and the trips on to the one behind.

    A trip is over where any of the `others` is seen. Of a group of events (`grouped`) only the last one opens a wait.
    """
    count = 0
    for event in range(len(mask)):
        if mask[event] & (1 << source) != 0:
            count += 1
    waits, cut = np.empty(count, np.float64), np.empty(count, np.float64)
    before, after, unseen = np.empty(count, np.float64), np.empty(count, np.float64), np.empty(count, np.float64)
    seen_middle, unseen_middle = np.empty(count, np.int64), np.empty(count, np.int64)
    n_waits = n_cut = n_trips = n_unseen = 0
    never = np.int64(0)
    counts = np.zeros(4, np.int64)
    for part in range(len(starts) - 1):
        for event in range(starts[part], starts[part + 1]):
            if stop_flag() != 0:
                break
            if mask[event] & (1 << source) == 0:
                continue
            began = time[event]
            came = arrived = -1
            renewed = 0.0
            over = went_on = False
            later = event + 1
            while later < starts[part + 1] and time[later] - began < window and not over:
                if instant[later] > instant[event]:
                    passed = max(np.float64(time[later] - began), 0.5)
                    if came < 0 and mask[later] & (1 << target) != 0:
                        came = later
                        over = behind < 0
                    elif (
                        behind >= 0
                        and mask[later] & (1 << behind) != 0
                        and (came < 0 or instant[later] > instant[came])
                    ):
                        over = True
                        arrived = later
                    elif mask[later] & (others | (1 << source)) != 0:
                        over = True  # another trip, or this one went on without the one behind being seen
                        renewed = passed
                        went_on = mask[later] & (1 << source) == 0
                later += 1
            if began + window <= ends and (renewed == 0.0 or went_on):
                counts[RESOLVED] += 1
                if came < 0 and arrived < 0 and not went_on:
                    counts[NOTHING] += 1
            if came >= 0 and arrived >= 0:
                counts[SEEN] += 1
                before[n_trips] = max(np.float64(time[came] - began), 0.5)
                after[n_trips] = max(np.float64(time[arrived] - time[came]), 0.5)
                seen_middle[n_trips] = began + (time[arrived] - began) // 2
                n_trips += 1
            elif arrived >= 0:
                counts[LOST] += 1
                unseen[n_unseen] = max(np.float64(time[arrived] - began), 0.5)
                unseen_middle[n_unseen] = began + (time[arrived] - began) // 2
                n_unseen += 1
            if negative and behind >= 0:
                # Only where the end of the trip was seen is it known how long the event had time to come.
                if arrived >= 0 and came >= 0:
                    waits[n_waits] = before[n_trips - 1]
                    n_waits += 1
                elif arrived >= 0:
                    cut[n_cut] = unseen[n_unseen - 1]
                    n_cut += 1
            elif came >= 0:
                waits[n_waits] = max(np.float64(time[came] - began), 0.5)
                n_waits += 1
            elif arrived >= 0:
                never += 1  # it was lost; the share that is seen is `happens` times what is not lost
            elif renewed > 0.0:
                if not grouped:
                    cut[n_cut] = renewed
                    n_cut += 1
            elif began + window <= ends:
                never += 1
            elif ends > began:
                cut[n_cut] = np.float64(ends - began)
                n_cut += 1
    middles = seen_middle[:n_trips], unseen_middle[:n_unseen]
    return waits[:n_waits], cut[:n_cut], never, counts, before[:n_trips], after[:n_trips], unseen[:n_unseen], *middles

"""What a history says about loss and gaps: complete waits, censored waits, and losses that it proves.

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

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.candidates import candidates
from cepheid.engine.data.table import EventTable
from cepheid.engine.fitting import trips as t
from cepheid.engine.scoring.losses import day_length, leading_components
from cepheid.language.bound import BoundQuery
from cepheid.model import GapStatistics, Trips
from cepheid.model.loss_kinds import HOURS
from cepheid.plan.physical import Plan

MOST_COMPONENTS = 16  # of which it is counted which were seen together
NO_HOUR = -1


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
    # Trips to the last component: how many there were in each hour of the day (NO_HOUR where days are not known) on
    # which the positive components of a mask were seen, and no others.
    together: dict[tuple[int, int], float] = field(default_factory=dict)
    # How long they took from one positive component to another one, where several in between were not seen.
    intervals: dict[tuple[int, int], GapStatistics] = field(default_factory=dict)

    def of(self, name: str) -> ComponentHistory:
        """What was seen of one component, nothing if it was not looked at."""
        return self.components.get(name, ComponentHistory())

    def merge(self, other: History) -> History:
        """Both histories together."""
        names = self.components.keys() | other.components.keys()
        merged = {name: self.of(name).merge(other.of(name)) for name in names}
        together, intervals = dict(self.together), dict(self.intervals)
        for trip, count in other.together.items():
            together[trip] = together.get(trip, 0.0) + count
        for ends, lengths in other.intervals.items():
            intervals[ends] = lengths.merge(intervals.get(ends, GapStatistics()))
        step = math.gcd(self.step, other.step)
        return History(merged, self.events + other.events, step, together, intervals)


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
        source = bits[before[-1].variable] if before else t.NO_COMPONENT
        target = bits[component.variable]
        behind = bits[after[0].variable] if after else t.NO_COMPONENT
        count = float(np.count_nonzero(prepared.mask & (1 << target)))
        moments = t.Moments(prepared.time, prepared.instant, prepared.mask, prepared.starts)
        window = bound.window.length
        if component.variable in leading:
            if component.negative or behind == t.NO_COMPONENT:
                continue
            others = other_positives(bound, bits, target, behind)
            sought = t.Sought(t.NO_COMPONENT, target, behind, others, False, False, window, ends)
            seen, lost = t.proven_at_the_start(moments, sought, begins)
            found[component.variable] = ComponentHistory(
                count,
                seen_since=GapStatistics.from_samples(seen * scale),
                lost_since=GapStatistics.from_samples(lost * scale),
            )
            continue
        others = other_positives(bound, bits, source, target, behind)
        sought = t.Sought(source, target, behind, others, component.negative, before[-1].kleene, window, ends)
        trips = t.observe(moments, sought)
        number = len(trips.waits) + len(trips.cut) + trips.never
        gaps = GapStatistics.from_samples(trips.waits * scale, trips.cut * scale, number)
        between: dict[str, Any] = {}
        if behind != t.NO_COMPONENT:
            between["lengths"] = GapStatistics.from_samples((trips.before + trips.after) * scale)
            between["trips"] = Trips.from_samples(trips.before * scale, trips.after * scale, trips.unseen * scale)
            inside = (begins + window // 2, ends - window // 2)
            between["seen_by_hour"] = _by_hour(trips.seen_middle, day, inside)
            between["unseen_by_hour"] = _by_hour(trips.unseen_middle, day, inside)
        provable = not component.negative and behind != t.NO_COMPONENT
        found[component.variable] = ComponentHistory(
            count,
            gaps,
            seen=float(trips.counts[t.SEEN]) if provable else 0.0,
            lost=float(trips.counts[t.LOST]) if provable else 0.0,
            resolved=float(trips.counts[t.RESOLVED]),
            nothing=float(trips.counts[t.NOTHING]),
            **between,
        )
    step = int(np.gcd.reduce(events.time - begins))
    return History(found, len(events), step, *_whole_trips(bound, moments, begins, scale))


def _whole_trips(
    bound: BoundQuery, moments: t.Moments, begins: int, scale: float
) -> tuple[dict[tuple[int, int], float], dict[tuple[int, int], GapStatistics]]:
    """What `together` and `intervals` of a history are; nothing where an event may fill several components."""
    count = len(bound.positives)
    masks = moments.mask & ((1 << count) - 1)
    if not 3 <= count <= MOST_COMPONENTS or bound.has_kleene or bool(np.any(masks & (masks - 1))):
        return {}, {}
    assert bound.window is not None
    trips, day = t.passed(moments, count, bound.window.length, begins), day_length(bound)
    hours = trips.middle % day * HOURS // day if day else np.full(len(trips.middle), NO_HOUR)
    (hour, mask), number = np.unique(np.stack([hours, trips.seen]), axis=1, return_counts=True)
    together = zip(hour.tolist(), mask.tolist(), number.astype(float).tolist(), strict=True)
    found: dict[tuple[int, int], GapStatistics] = {}
    for source, target in sorted(set(zip(trips.source.tolist(), trips.target.tolist(), strict=True))):
        own = (trips.source == source) & (trips.target == target)
        found[source, target] = GapStatistics.from_samples(trips.length[own] * scale)
    return {(hour, mask): number for hour, mask, number in together}, found


def _by_hour(times: Int64s, day: int | None, inside: tuple[int, int]) -> tuple[float, ...]:
    """How many middles of trips lie in each hour. Near the ends of the history only short trips have theirs there.

    Short trips show fewer of the events in between, so that only middles count around which a long trip has room, too.
    """
    if not day:
        return ()
    times = times[(times >= inside[0]) & (times <= inside[1])]
    return tuple(np.bincount(times % day * HOURS // day, minlength=HOURS).astype(float).tolist())


def other_positives(bound: BoundQuery, bits: dict[str, int], *known: int) -> int:
    """The positive components that end a trip when they are seen where others are expected, as a mask."""
    return sum(1 << bits[c.variable] for c in bound.positives if bits[c.variable] not in known)


def component_bits(bound: BoundQuery) -> dict[str, int]:
    """Which bit of a candidate's mask says that it can fill a component."""
    ordered = [*bound.positives, *(negation.component for negation in bound.negations)]
    return {component.variable: place for place, component in enumerate(ordered)}

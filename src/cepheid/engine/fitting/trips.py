"""Kernels that follow the trips of a history from one component to another, and count what they find."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64s, Int64s
from cepheid.engine.kernels.compile import borrowing, search_kernel
from cepheid.engine.kernels.stop import stop_flag

SEEN, LOST, NOTHING, RESOLVED = range(4)
NO_COMPONENT = -1
CAME, ARRIVED, RENEWED, WENT_ON = range(4)  # of a trip: the events that say so, or NOBODY; WENT_ON: 1 or 0
NOBODY = -1
WAITS, CUT, TRIPS, UNSEEN, NEVER = range(5)  # how many there are of each


class Moments(NamedTuple):
    """The events that could fill components, partition by partition in order of time."""

    time: Int64s
    instant: Int64s
    mask: Int64s  # bits of the components that it could fill
    starts: Int64s  # of the partitions


class Sought(NamedTuple):
    """The components of a trip, by their bits, and how long it may take."""

    source: int  # it begins with this one
    target: int  # the one that is waited for
    behind: int  # the one behind that, or NO_COMPONENT
    others: int  # a mask: the trip is over where any of these is seen
    negative: bool  # is the target negated?
    grouped: bool  # is the source a group? Only its last event opens a wait
    window: int
    ends: int  # when the history ends


class Observed(NamedTuple):
    """What was found, in steps of time."""

    waits: Float64s  # for the target, that ended
    cut: Float64s  # that were cut off
    never: int  # in vain
    counts: Int64s  # SEEN, LOST, NOTHING, RESOLVED
    before: Float64s  # trips on to the one behind: up to the target, and from there on
    after: Float64s
    unseen: Float64s  # those on which the target was not seen
    seen_middle: Int64s  # the times of their middles
    unseen_middle: Int64s


class Passed(NamedTuple):
    """Trips that were seen to end, backwards from there."""

    seen: Int64s  # a mask: the components before the last one that were seen on the trip
    middle: Int64s  # when half of it was over
    source: Int64s  # intervals of these trips with several components in them that were not seen: behind this one...
    target: Int64s  # ... and before this one
    length: Float64s


@borrowing
def duration(moments: Moments, early: int, late: int) -> float:
    """The time between two events; half a step if they are at the same time."""
    return max(np.float64(moments.time[late] - moments.time[early]), 0.5)


@borrowing
def is_begun(moments: Moments, sought: Sought, event: int, first: int) -> bool:
    """Was the target seen before an event of the one behind it? `first` is the first event of the partition."""
    earlier = event - 1
    while earlier >= first and moments.time[event] - moments.time[earlier] < sought.window:
        if moments.instant[earlier] < moments.instant[event]:
            if moments.mask[earlier] & (1 << sought.target) != 0:
                return True
            if moments.mask[earlier] & (sought.others | (1 << sought.behind)) != 0:
                return False  # an earlier trip
        earlier -= 1
    return False


@search_kernel
def proven_at_the_start(moments: Moments, sought: Sought, begins: int) -> tuple[Float64s, Float64s]:
    """When the second component was seen, counted from the history's beginning: with the first one before it, without.

    What lies before the beginning cannot be missed, so these times tell later which of them prove a loss.
    """
    mask, starts = moments.mask, moments.starts
    seen_since, lost_since = np.empty(len(mask), np.float64), np.empty(len(mask), np.float64)
    n_seen = n_lost = 0
    for part in range(len(starts) - 1):
        for event in range(starts[part], starts[part + 1]):
            if stop_flag() != 0:
                break
            if mask[event] & (1 << sought.behind) == 0:
                continue
            since = max(np.float64(moments.time[event] - begins), 0.5)
            if is_begun(moments, sought, event, starts[part]):
                seen_since[n_seen] = since
                n_seen += 1
            else:
                lost_since[n_lost] = since
                n_lost += 1
    return seen_since[:n_seen], lost_since[:n_lost]


@borrowing
def follow(moments: Moments, sought: Sought, event: int, end: int, trip: Int64s) -> None:
    """Follows the trip that an event begins: what came of it. `end` is where the partition ends."""
    mask, instant = moments.mask, moments.instant
    source, behind = 1 << sought.source, sought.behind
    trip[CAME], trip[ARRIVED], trip[RENEWED], trip[WENT_ON] = NOBODY, NOBODY, NOBODY, 0
    later = event + 1
    while later < end and moments.time[later] - moments.time[event] < sought.window:
        if instant[later] > instant[event]:
            came = trip[CAME]
            if came < 0 and mask[later] & (1 << sought.target) != 0:
                trip[CAME] = later
                if behind < 0:
                    return
            elif behind >= 0 and mask[later] & (1 << behind) != 0 and (came < 0 or instant[later] > instant[came]):
                trip[ARRIVED] = later
                return
            elif mask[later] & (sought.others | source) != 0:
                # Another trip, or this one went on without the one behind being seen.
                trip[RENEWED], trip[WENT_ON] = later, 1 if mask[later] & source == 0 else 0
                return
        later += 1


@borrowing
def note_trip(moments: Moments, sought: Sought, event: int, trip: Int64s, observed: Observed, sizes: Int64s) -> None:
    """Notes whether the target was seen on a trip on to the one behind it."""
    came, arrived, counts = trip[CAME], trip[ARRIVED], observed.counts
    began = moments.time[event]
    if began + sought.window <= sought.ends and (trip[RENEWED] == NOBODY or trip[WENT_ON] == 1):
        counts[RESOLVED] += 1
        if came < 0 and arrived < 0 and trip[WENT_ON] == 0:
            counts[NOTHING] += 1
    if arrived < 0:
        return
    middle = began + (moments.time[arrived] - began) // 2
    if came >= 0:
        counts[SEEN] += 1
        place = sizes[TRIPS]
        observed.before[place] = duration(moments, event, came)
        observed.after[place] = duration(moments, came, arrived)
        observed.seen_middle[place] = middle
        sizes[TRIPS] += 1
    else:
        counts[LOST] += 1
        observed.unseen[sizes[UNSEEN]], observed.unseen_middle[sizes[UNSEEN]] = (
            duration(moments, event, arrived),
            middle,
        )
        sizes[UNSEEN] += 1


@borrowing
def note_wait(moments: Moments, sought: Sought, event: int, trip: Int64s, observed: Observed, sizes: Int64s) -> None:
    """Notes how the wait for the target went that an event opened: it ended, was cut off, or was in vain."""
    came, arrived, began = trip[CAME], trip[ARRIVED], moments.time[event]
    waited, cut = -1.0, -1.0
    if sought.negative and sought.behind >= 0:
        # Only where the end of the trip was seen is it known how long the event had time to come.
        if arrived >= 0 and came >= 0:
            waited = duration(moments, event, came)
        elif arrived >= 0:
            cut = duration(moments, event, arrived)
    elif came >= 0:
        waited = duration(moments, event, came)
    elif arrived >= 0:
        sizes[NEVER] += 1  # it was lost; the share that is seen is `happens` times what is not lost
    elif trip[RENEWED] >= 0:
        if not sought.grouped:
            cut = duration(moments, event, trip[RENEWED])
    elif began + sought.window <= sought.ends:
        sizes[NEVER] += 1
    elif sought.ends > began:
        cut = np.float64(sought.ends - began)
    if waited >= 0.0:
        observed.waits[sizes[WAITS]] = waited
        sizes[WAITS] += 1
    if cut >= 0.0:
        observed.cut[sizes[CUT]] = cut
        sizes[CUT] += 1


@borrowing
def note_all(moments: Moments, sought: Sought, trip: Int64s, observed: Observed, sizes: Int64s) -> None:
    """Follows every trip of every partition."""
    for part in range(len(moments.starts) - 1):
        for event in range(moments.starts[part], moments.starts[part + 1]):
            if stop_flag() != 0:
                return
            if moments.mask[event] & (1 << sought.source) != 0:
                follow(moments, sought, event, moments.starts[part + 1], trip)
                note_trip(moments, sought, event, trip, observed, sizes)
                note_wait(moments, sought, event, trip, observed, sizes)


@search_kernel
def observe(moments: Moments, sought: Sought) -> Observed:
    """All waits from one component for another: ended, cut off, in vain; and the trips on to the one behind."""
    count = 0
    for event in range(len(moments.mask)):
        if moments.mask[event] & (1 << sought.source) != 0:
            count += 1
    waits, cut = np.empty(count, np.float64), np.empty(count, np.float64)
    before, after, unseen = np.empty(count, np.float64), np.empty(count, np.float64), np.empty(count, np.float64)
    seen_middle, unseen_middle = np.empty(count, np.int64), np.empty(count, np.int64)
    counts, sizes, trip = np.zeros(4, np.int64), np.zeros(5, np.int64), np.zeros(4, np.int64)
    room = Observed(waits, cut, 0, counts, before, after, unseen, seen_middle, unseen_middle)
    note_all(moments, sought, trip, room, sizes)
    trips, lost = sizes[TRIPS], sizes[UNSEEN]
    return Observed(
        waits[: sizes[WAITS]],
        cut[: sizes[CUT]],
        sizes[NEVER],
        counts,
        before[:trips],
        after[:trips],
        unseen[:lost],
        seen_middle[:trips],
        unseen_middle[:lost],
    )


@borrowing
def place_of(masks: Int64s, event: int) -> int:
    """The first component that an event could fill."""
    place = 0
    while masks[event] & (1 << place) == 0:
        place += 1
    return place


@search_kernel
def passed(moments: Moments, count: int, window: int, begins: int) -> Passed:
    """The trips that end with the last of `count` positive components: what was seen of them before that.

    A trip reaches back to the first event that is not of an earlier component than the one before it was. What was
    seen of those that may have begun before the history did is not known; their intervals are.
    """
    time, instant, starts, last = moments.time, moments.instant, moments.starts, count - 1
    masks = moments.mask & ((1 << count) - 1)
    trips = 0
    for event in range(len(masks)):
        if masks[event] & (1 << last) != 0:
            trips += 1
    seen, middle = np.zeros(trips, np.int64), np.zeros(trips, np.int64)
    size = len(masks)
    source, target, length = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.float64)
    trips = intervals = 0
    for part in range(len(starts) - 1):
        for event in range(starts[part], starts[part + 1]):
            if stop_flag() != 0:
                break
            if masks[event] & (1 << last) == 0:
                continue
            current, at, earlier, found = last, event, event - 1, 0
            while earlier >= starts[part] and time[event] - time[earlier] < window:
                if masks[earlier] != 0 and instant[earlier] < instant[at]:
                    place = place_of(masks, earlier)
                    if place >= current:
                        break
                    found |= 1 << place
                    if current - place > 2:
                        source[intervals], target[intervals] = place, current
                        length[intervals] = duration(moments, earlier, at)
                        intervals += 1
                    current, at = place, earlier
                earlier -= 1
            if time[event] >= begins + window:
                seen[trips], middle[trips] = found, time[at] + (time[event] - time[at]) // 2
                trips += 1
    return Passed(seen[:trips], middle[:trips], source[:intervals], target[:intervals], length[:intervals])

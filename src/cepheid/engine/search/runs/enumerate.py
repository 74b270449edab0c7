"""From the shared match buffer to matches: every path from an accepting entry back to a beginning.

Each step follows an entry that leads to a match, so the time is that of writing the matches down.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Int32s, Int64Rows, Int64s
from cepheid.engine.kernels.arrays import grown, grown_rows
from cepheid.engine.kernels.compile import borrowing, kernel, unlocked_kernel
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.search.runs.buffer import EARLIEST, ENTRY, EVENT, JOINED, KNOWN, LATEST, LEFT, RIGHT

FOUND, EVENTS_LISTED, CUT = range(3)
MANY_EVENTS = 100_000_000  # in all matches together; a limit on matches alone would not bound the memory of long ones


class Listed(NamedTuple):
    """Matches as they are written down: the events of each, place by place, one match after the other."""

    events: Int32s  # 32 bits: results may be long, and a table's events are fewer than two billion
    sizes: Int64Rows  # for each match, how many events fill each place
    known: Int64s  # when each match is known
    filled: Int64s  # how many matches, how many events, and whether the limit was reached


def nothing_listed(places: int) -> Listed:
    """Room for the first matches."""
    return Listed(
        np.empty(4096, np.int32), np.zeros((256, places), np.int64), np.empty(256, np.int64), np.zeros(3, np.int64)
    )


@kernel
def with_room(events: Int32s, least: int) -> Int32s:
    """The same events with room for more."""
    wider = np.empty(max(2 * len(events), least), np.int32)
    wider[: len(events)] = events
    return wider


class Search(NamedTuple):
    """Where the way through the buffer stands: the path so far, and the entries still to be followed."""

    path: Int64Rows  # for each step, the event and its place, the last event first
    waiting: Int64Rows  # for each entry to be followed, the entry and how much of the path leads there
    cursor: Int64s  # the accepting entry, and how many entries wait


ROW, WAITING = range(2)


@borrowing
def place_by_place(listed: Listed, path: Int64Rows, match: int, start: int, depth: int) -> None:
    """Writes the events of a match down again, place by place."""
    for place in range(listed.sizes.shape[1]):
        if listed.sizes[match, place] > 0:
            for step in range(depth, -1, -1):
                if path[step, 1] == place:
                    listed.events[start] = path[step, 0]
                    start += 1


@borrowing
def write_some(listed: Listed, search: Search, entries: Int64Rows, accepted: Int64Rows, end: int, limit: int) -> bool:
    """Writes matches down as far as there is room; True when all are, or `limit` of them, or very many events."""
    most_events = max(limit, MANY_EVENTS)
    path, waiting, cursor, filled = search.path, search.waiting, search.cursor, listed.filled
    top = cursor[WAITING]
    while cursor[ROW] < end:
        earliest = accepted[cursor[ROW], EARLIEST]
        while top > 0:
            top -= 1
            entry, depth = waiting[top, 0], waiting[top, 1]
            while entries[entry, LATEST] >= earliest:
                event = entries[entry, EVENT]
                if event == JOINED:
                    if top + 2 > len(waiting):
                        break
                    waiting[top, 0], waiting[top, 1] = entries[entry, RIGHT], depth
                    top += 1
                    entry = entries[entry, LEFT]
                    continue
                if depth == len(path):
                    break
                path[depth, 0], path[depth, 1] = event, entries[entry, RIGHT]
                if entries[entry, LEFT] >= 0:
                    depth += 1
                    entry = entries[entry, LEFT]
                    continue
                match, position = filled[FOUND], filled[EVENTS_LISTED]
                if match == limit or position + depth > most_events or stop_flag() != 0:
                    filled[CUT] = 1
                    return True
                if match == len(listed.known) or position + depth + 1 > len(listed.events):
                    break
                for place in range(listed.sizes.shape[1]):
                    listed.sizes[match, place] = 0
                in_order = True  # are places filled one after the other, as in every sequence?
                for step in range(depth, -1, -1):
                    listed.events[position] = path[step, 0]
                    listed.sizes[match, path[step, 1]] += 1
                    in_order = in_order and (step == depth or path[step, 1] >= path[step + 1, 1])
                    position += 1
                if not in_order:
                    place_by_place(listed, path, match, position - depth - 1, depth)
                listed.known[match] = accepted[cursor[ROW], KNOWN]
                filled[FOUND], filled[EVENTS_LISTED] = match + 1, position
                depth = -1
                break
            if depth >= 0 and entries[entry, LATEST] >= earliest:  # no room: this entry is followed again later
                waiting[top, 0], waiting[top, 1] = entry, depth
                cursor[WAITING] = top + 1
                return False
        cursor[ROW] += 1
        if cursor[ROW] < end:
            waiting[0, 0], waiting[0, 1] = accepted[cursor[ROW], ENTRY], 0
            top = 1
    return True


@unlocked_kernel
def list_matches(listed: Listed, entries: Int64Rows, accepted: Int64Rows, accepting: int, limit: int) -> Listed:
    """Appends the matches of the accepting entries, until there are `limit` of them."""
    if accepting == 0:
        return listed
    search = Search(np.empty((64, 2), np.int64), np.empty((64, 2), np.int64), np.zeros(2, np.int64))
    search.waiting[0, 0], search.waiting[0, 1] = accepted[0, ENTRY], 0
    search.cursor[WAITING] = 1
    while not write_some(listed, search, entries, accepted, accepting, limit):
        events, sizes, known, filled = listed
        path, waiting = search.path, search.waiting
        if search.cursor[WAITING] + 2 > len(waiting):
            waiting = grown_rows(waiting)
        if search.waiting[search.cursor[WAITING] - 1, 1] + 1 >= len(path):
            path = grown_rows(path)
        if filled[FOUND] == len(known):
            sizes, known = grown_rows(sizes), grown(known)
        if filled[EVENTS_LISTED] + len(path) > len(events):
            events = with_room(events, filled[EVENTS_LISTED] + len(path))
        listed = Listed(events, sizes, known, filled)
        search = Search(path, waiting, search.cursor)
    return listed


@kernel
def split_place(
    events: Int32s, sizes: Int64Rows, matches: int, starts: Int64s, rows: Int64s, place: int
) -> tuple[Int64s, Int64s]:
    """The table rows that fill one place, and where each match's begin. `starts`: where its events were listed."""
    offsets = np.empty(matches + 1, np.int64)
    offsets[0] = 0
    for match in range(matches):
        offsets[match + 1] = offsets[match] + sizes[match, place]
    chosen = np.empty(offsets[matches], np.int64)
    for match in range(matches):
        source = starts[match]
        for target in range(offsets[match], offsets[match + 1]):
            chosen[target] = rows[events[source]]
            source += 1
        starts[match] = source
    return chosen, offsets

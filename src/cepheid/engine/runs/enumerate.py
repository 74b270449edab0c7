"""From the shared match buffer to matches: every path from an accepting entry back to a beginning.

Each step follows an entry that leads to a match, so the time is that of writing the matches down.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.columns import INT64_ROWS, INT64S
from cepheid.engine.matches import Int64s
from cepheid.engine.runs.buffer import EARLIEST, ENTRY, EVENT, JOINED, KNOWN, LATEST, LEFT, RIGHT, Rows
from cepheid.engine.sequence import grown, grown_rows

INT32S = types.Array(types.int32, 1, "C")
FOUND, EVENTS_WRITTEN, CUT = range(3)


class Written(NamedTuple):
    """Matches as they are written down: the events of each, place by place, one match after the other."""

    events: npt.NDArray[np.int32]  # 32 bits: results may be long, and a table's events are fewer than two billion
    sizes: Rows  # for each match, how many events fill each place
    known: Int64s  # when each match is known
    filled: Int64s  # how many matches, how many events, and whether the limit was reached


WRITTEN = types.NamedTuple((INT32S, INT64_ROWS, INT64S, INT64S), Written)


def nothing_written(places: int) -> Written:
    """Room for the first matches."""
    return Written(
        np.empty(4096, np.int32), np.zeros((256, places), np.int64), np.empty(256, np.int64), np.zeros(3, np.int64)
    )


@numba.njit(INT32S(INT32S, types.int64), cache=True)
def with_room(events: npt.NDArray[np.int32], least: int) -> npt.NDArray[np.int32]:
    """The same events with room for more."""
    wider = np.empty(max(2 * len(events), least), np.int32)
    wider[: len(events)] = events
    return wider


@numba.njit(WRITTEN(WRITTEN, INT64_ROWS, INT64_ROWS, types.int64, types.int64, types.int64), cache=True)
def write_matches(written: Written, entries: Rows, accepted: Rows, begin: int, end: int, limit: int) -> Written:
    """Appends the matches of accepting entries begin : end, until there are `limit` of them."""
    events, sizes, known, filled = written
    path = np.empty(64, np.int64)
    waiting = np.empty(64, np.int64)  # entries still to be followed...
    depths = np.empty(64, np.int64)  # ... and how much of the path leads there
    for row in range(begin, end):
        earliest = accepted[row, EARLIEST]
        waiting[0], depths[0] = accepted[row, ENTRY], 0
        top = 1
        while top > 0:
            top -= 1
            entry, depth = waiting[top], depths[top]
            while entries[entry, LATEST] >= earliest:
                if entries[entry, EVENT] == JOINED:
                    if top == len(waiting):
                        waiting, depths = grown(waiting), grown(depths)
                    waiting[top], depths[top] = entries[entry, RIGHT], depth
                    top += 1
                    entry = entries[entry, LEFT]
                    continue
                if depth == len(path):
                    path = grown(path)
                path[depth] = entry
                depth += 1
                if entries[entry, LEFT] >= 0:
                    entry = entries[entry, LEFT]
                    continue
                if filled[FOUND] == limit:
                    filled[CUT] = 1
                    return Written(events, sizes, known, filled)
                if filled[FOUND] == len(known):
                    sizes, known = grown_rows(sizes), grown(known)
                if filled[EVENTS_WRITTEN] + depth > len(events):
                    events = with_room(events, filled[EVENTS_WRITTEN] + depth)
                match = filled[FOUND]
                position = filled[EVENTS_WRITTEN]
                sizes[match, :] = 0
                for step in range(depth - 1, -1, -1):
                    reached = path[step]
                    events[position] = entries[reached, EVENT]
                    sizes[match, entries[reached, RIGHT]] += 1
                    position += 1
                known[match] = accepted[row, KNOWN]
                filled[FOUND] = match + 1
                filled[EVENTS_WRITTEN] = position
                break
    return Written(events, sizes, known, filled)


@numba.njit(types.Tuple((INT64S, INT64S))(INT32S, INT64_ROWS, types.int64, INT64S, INT64S, types.int64), cache=True)
def split_place(
    events: npt.NDArray[np.int32], sizes: Rows, matches: int, starts: Int64s, rows: Int64s, place: int
) -> tuple[Int64s, Int64s]:
    """The table rows that fill one place, and where each match's begin. `starts`: where its events were written."""
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

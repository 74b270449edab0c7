"""Matches of the keys of which one may have come to its end, by the run engine: strategies, groups, expressions."""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.incremental.linking import (
    AFTER,
    FACTS_AT,
    FACTS_OF_EVENT,
    KEY_WIDTH,
    KNOWN_AT,
    KNOWN_ROOM,
    MATCHED,
    MATCHES,
    MERGING,
    MOST_MATCHES,
    MOST_RUNS,
    NEEDS_MATCHES,
    NUMBERS,
    OUT_AT,
    OUT_ROOM,
    PLACES,
    PREDICATE_AT,
    ROOM,
    ROW,
    SIDE_EVENTS_AT,
    SIDE_SIZE,
    SIZES_AT,
    SLOTS,
    TOO_MANY_MATCHES,
    TOO_MANY_RUNS,
    UNTIL,
    WHOLES,
    columns_at,
    events_at,
    graph_at,
    has_room,
    program_at,
)
from cepheid.engine.incremental.stepping import go_on, step
from cepheid.engine.kernels.compile import called_by_address
from cepheid.engine.kernels.memory import function_at, int64_row, int64_rows
from cepheid.engine.search.runs.by_value import Waits
from cepheid.engine.search.runs.enumerate import EVENTS_LISTED, FOUND, Listed
from cepheid.engine.search.runs.moves import OVERFLOW, Widths
from cepheid.engine.search.runs.scan import NOTHING_REACHED, RUNS_REACHED, VERBOSE, Machine, SearchRequest, scan

_scan = scan.__wrapped__  # type: ignore[attr-defined]
del scan  # by its name it would be one of the kernels that are called here


@called_by_address
def search_runs(head: Int64s) -> int:
    """The matches that runs find among the events that lie side by side."""
    number, places = head[SIDE_SIZE], head[PLACES]
    listed, _, _, state = _scan(
        events_at(head),
        Machine(program_at(head), graph_at(head)),
        columns_at(head),
        function_at(head[PREDICATE_AT]),
        Waits(np.zeros((0, 5), np.int64), np.zeros((0, 0), np.int64), 0),
        Widths(0, head[SLOTS], head[WHOLES], head[NUMBERS], head[KEY_WIDTH]),
        Listed(np.empty(64, np.int32), np.zeros((16, places), np.int64), np.empty(16, np.int64), np.zeros(3, np.int64)),
        SearchRequest(
            VERBOSE,
            head[MERGING] == 1,
            False,
            head[AFTER],
            head[UNTIL],
            head[MOST_RUNS],
            head[MOST_MATCHES] - head[MATCHES],
        ),
    )
    if state[OVERFLOW] != NOTHING_REACHED:
        return TOO_MANY_RUNS if state[OVERFLOW] == RUNS_REACHED else TOO_MANY_MATCHES
    found, size = listed.filled[FOUND], listed.filled[EVENTS_LISTED]
    if not has_room(head, found, size):
        return NEEDS_MATCHES
    facts = int64_rows(head[FACTS_AT], FACTS_OF_EVENT, head[ROOM])
    laid = int64_row(head[SIDE_EVENTS_AT], number)
    out, when = int64_row(head[OUT_AT], head[OUT_ROOM]), int64_row(head[KNOWN_AT], head[KNOWN_ROOM])
    sizes = int64_rows(head[SIZES_AT], head[KNOWN_ROOM], places)
    for match in range(found):
        when[head[MATCHES]] = listed.known[match]
        for place in range(places):
            sizes[head[MATCHES], place] = listed.sizes[match, place]
        head[MATCHES] += 1
    for event in range(size):
        out[head[MATCHED]] = facts[ROW, laid[listed.events[event]]]
        head[MATCHED] += 1
    return 0


search = Entry(search_runs)

__all__ = ["go_on", "search", "step"]

"""Sequences of the keys of which a match may have come to its end, by instance stacks."""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.value_index import ValueIndex
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.incremental.linking import (
    AFTER,
    FACTS_AT,
    FACTS_OF_EVENT,
    KNOWN_AT,
    KNOWN_ROOM,
    MATCHED,
    MATCHES,
    MOST_MATCHES,
    NEEDS_MATCHES,
    OUT_AT,
    OUT_ROOM,
    PLACES,
    PREDICATE_AT,
    PUSH_CONDITIONS,
    PUSH_WINDOW,
    ROOM,
    ROW,
    SIDE_EVENTS_AT,
    SIDE_SIZE,
    TOO_MANY_MATCHES,
    UNTIL,
    columns_at,
    events_at,
    has_room,
    program_at,
)
from cepheid.engine.incremental.stepping import go_on, step
from cepheid.engine.kernels.compile import called_by_address
from cepheid.engine.kernels.memory import function_at, int64_row, int64_rows
from cepheid.engine.search.stacks import OVERFLOW, SearchRequest, construct

_construct = construct.__wrapped__  # type: ignore[attr-defined]
del construct  # by its name it would be one of the kernels that are called here


@called_by_address
def search_stacks(head: Int64s) -> int:
    """The sequences among the events that lie side by side."""
    number, places = head[SIDE_SIZE], head[PLACES]
    index = ValueIndex(
        np.zeros((0, 4), np.int64),
        np.zeros((0, number), np.int64),
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
        np.zeros((places, 2), np.int64),
    )
    limit = head[MOST_MATCHES] - head[MATCHES]
    asked = SearchRequest(head[AFTER], head[UNTIL], limit, head[PUSH_WINDOW] == 1, head[PUSH_CONDITIONS] == 1, NEVER)
    chosen, known, counters = _construct(
        events_at(head), program_at(head), columns_at(head), function_at(head[PREDICATE_AT]), index, asked
    )
    if counters[OVERFLOW] != 0:
        return TOO_MANY_MATCHES
    found = len(known)
    if not has_room(head, found, found * places):
        return NEEDS_MATCHES
    facts = int64_rows(head[FACTS_AT], FACTS_OF_EVENT, head[ROOM])
    laid = int64_row(head[SIDE_EVENTS_AT], number)
    out, when = int64_row(head[OUT_AT], head[OUT_ROOM]), int64_row(head[KNOWN_AT], head[KNOWN_ROOM])
    for match in range(found):
        when[head[MATCHES]] = known[match]
        head[MATCHES] += 1
        for place in range(places):
            out[head[MATCHED]] = facts[ROW, laid[chosen[match, place]]]
            head[MATCHED] += 1
    return 0


search = Entry(search_stacks)

__all__ = ["go_on", "search", "step"]

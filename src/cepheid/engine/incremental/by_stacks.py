"""Sequences of the keys of which a match may have come to its end, by instance stacks."""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.layout import TIME
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.value_index import ValueIndex
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.incremental.linking import (
    AFTER,
    AGAIN,
    BRIEF,
    FACTS_AT,
    FACTS_OF_EVENT,
    KNOWN_AT,
    KNOWN_ROOM,
    MATCHED,
    MATCHES,
    MOST_MATCHES,
    NEEDS_MATCHES,
    NEGATIVES,
    OUT_AT,
    OUT_ROOM,
    PLACES,
    PREDICATE_AT,
    PUSH_CONDITIONS,
    PUSH_WINDOW,
    ROOM,
    ROW,
    SIDE,
    SIDE_EVENTS_AT,
    SIDE_SIZE,
    TOO_MANY_MATCHES,
    UNTIL,
    columns_at,
    events_at,
    has_room,
    program_at,
)
from cepheid.engine.incremental.side_by_side import EVENT_ROOM, KNOWN, LAID, OF_SIDE, STATE_AT, give_up, side_at
from cepheid.engine.incremental.stepping import go_on, step
from cepheid.engine.kernels.compile import borrowing, called_by_address, kernel
from cepheid.engine.kernels.conditions import new_scratch
from cepheid.engine.kernels.memory import function_at, int64_row, int64_rows
from cepheid.engine.kernels.query import Absent, Query, add_absent
from cepheid.engine.search.stacks import (
    EVALUATED,
    FOUND,
    OVERFLOW,
    Room,
    SearchRequest,
    Stacks,
    construct,
    construct_all,
    new_walk,
    push_events,
)

_construct = construct.__wrapped__  # type: ignore[attr-defined]
del construct  # by its name it would be one of the kernels that are called here


@kernel
def no_index(places: int, number: int) -> ValueIndex:
    """No events are found by value."""
    return ValueIndex(
        np.zeros((0, 4), np.int64),
        np.zeros((0, number), np.int64),
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
        np.zeros((places, 2), np.int64),
    )


@borrowing
def asked_of(head: Int64s, evaluations: int) -> SearchRequest:
    """What is asked for, and how many events may be tested."""
    limit = head[MOST_MATCHES] - head[MATCHES]
    push_window, push_conditions = head[PUSH_WINDOW] == 1, head[PUSH_CONDITIONS] == 1
    return SearchRequest(head[AFTER], head[UNTIL], limit, push_window, push_conditions, evaluations)


@borrowing
def write_down(head: Int64s, chosen: Int64Rows, known: Int64s, found: int) -> int:
    """Writes matches to where results are; or there is no room for them."""
    places = head[PLACES]
    if not has_room(head, found, found * places):
        return NEEDS_MATCHES
    facts = int64_rows(head[FACTS_AT], FACTS_OF_EVENT, head[ROOM])
    laid = int64_row(head[SIDE_EVENTS_AT], head[SIDE_SIZE])
    out, when = int64_row(head[OUT_AT], head[OUT_ROOM]), int64_row(head[KNOWN_AT], head[KNOWN_ROOM])
    for match in range(found):
        when[head[MATCHES]] = known[match]
        head[MATCHES] += 1
        for place in range(places):
            out[head[MATCHED]] = facts[ROW, laid[chosen[match, place]]]
            head[MATCHED] += 1
    return 0


def words_of_stacks(places: int, negatives: int, room: int) -> int:
    """How much memory the search of a key has that has a place for itself."""
    return 2 * places * room + 2 * places + negatives * room + negatives


@kernel
def kept_stacks(head: Int64s, side: Int64s) -> tuple[Stacks, Absent]:
    """The stacks of the key at hand."""
    places, negatives, room = head[PLACES], head[NEGATIVES], side[EVENT_ROOM]
    events, of_place = side[STATE_AT], 8 * places
    reach = events + of_place * room
    sizes = reach + of_place * room
    absent = sizes + 2 * of_place
    return (
        Stacks(
            int64_rows(events, places, room),
            int64_rows(reach, places, room),
            int64_row(sizes, places),
            int64_row(sizes + of_place, places),
        ),
        Absent(int64_rows(absent, negatives, room), int64_row(absent + 8 * negatives * room, negatives)),
    )


@kernel
def search_kept_stacks(head: Int64s) -> int:
    """The sequences that end with an event that came since the last search, of the key that has a place for itself."""
    side, events, program = int64_row(side_at(head), OF_SIDE), events_at(head), program_at(head)
    stacks, absent = kept_stacks(head, side)
    places = program.places
    if side[KNOWN] == 0:
        stacks.sizes[:], stacks.settled[:], absent.sizes[:] = 0, 0, 0
    add_absent(events, program, side[KNOWN], side[LAID], absent)
    push_events(events, program, stacks, side[KNOWN], side[LAID], head[PUSH_WINDOW] == 1)
    side[KNOWN] = side[LAID]
    asked, index = asked_of(head, int(BRIEF)), no_index(places, 0)
    walk = new_walk(events, program, index)
    top = stacks.sizes[places - 1]
    while top > 0 and events.facts[TIME, stacks.events[places - 1, top - 1]] > asked.after:
        top -= 1
    walk.top[0], walk.place[0] = top - 1, places
    scratch = new_scratch(places + program.negatives, 2 * places, 0, 0)
    query = Query(events, program, columns_at(head), function_at(head[PREDICATE_AT]), absent)
    room = Room(np.empty((64, places), np.int64), np.empty(64, np.int64), np.zeros(7, np.int64))
    room = construct_all(query, stacks, index, scratch, walk, asked, room, 0)
    if room.counters[EVALUATED] == asked.evaluations:  # it is not brief: it goes where it can be stopped
        give_up(head)
        return AGAIN
    if room.counters[OVERFLOW] != 0:
        return TOO_MANY_MATCHES
    return write_down(head, room.chosen, room.completion, room.counters[FOUND])


@called_by_address
def search_stacks(head: Int64s) -> int:
    """The sequences among the events that lie side by side."""
    if head[SIDE] > 0:
        return search_kept_stacks(head)
    index = no_index(head[PLACES], head[SIDE_SIZE])
    chosen, known, counters = _construct(
        events_at(head),
        program_at(head),
        columns_at(head),
        function_at(head[PREDICATE_AT]),
        index,
        asked_of(head, NEVER),
    )
    if counters[OVERFLOW] != 0:
        return TOO_MANY_MATCHES
    return write_down(head, chosen, known, len(known))


search = Entry(search_stacks)

__all__ = ["go_on", "search", "step"]

"""The backtrack algorithm (SASE+ section 5.2.3), for comparison: one run at a time, all others wait on a stack.

A run follows the stream until it can go on in several ways; then it takes the furthest one, and what it could have
done instead is postponed. When it ends, the run postponed last resumes where it stood, so events are read again.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import types

from cepheid.engine.columns import COLUMNS, INT64S, Columns
from cepheid.engine.matches import Int64s
from cepheid.engine.runs.conditions import EVENTS, FUNCTION, Events, in_window
from cepheid.engine.runs.enumerate import WRITTEN, Written
from cepheid.engine.runs.moves import (
    ACCEPTED,
    ALIVE,
    BEGAN,
    ENTRIES,
    FRESH,
    NEXT,
    OVERFLOW,
    PEAK_BUFFERED,
    PEAK_RUNS,
    RESUME,
    WIDTHS,
    Widths,
    advance,
    begin_run,
    new_runs,
    release,
)
from cepheid.engine.runs.program import PROGRAM, Program
from cepheid.engine.runs.scan import (
    NO_LIMIT,
    NOTHING_REACHED,
    OFTEN,
    RUNS_REACHED,
    VERBOSE,
    absent_events,
    cramped,
    drain,
    may_start,
    new_books,
    with_room,
)


@numba.njit(
    types.Tuple((WRITTEN, INT64S))(
        EVENTS,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        WIDTHS,
        WRITTEN,
        types.int64,
        types.int64,
        types.int64,
        types.int64,
    ),
    cache=True,
)
def backtrack(
    events: Events,
    program: Program,
    columns: Columns,
    predicate: Any,
    widths: Widths,
    written: Written,
    after: int,
    until: int,
    most_runs: int,
    most_matches: int,
) -> tuple[Written, Int64s]:
    """Every run of every partition, depth first: the matches written down, and counters."""
    books = new_books(len(events.time), after, until, False)
    state = books.state
    runs = new_runs(256, widths, state)
    for part in range(len(events.starts) - 1):
        absent = absent_events(events, program, part)
        end = events.starts[part + 1]
        for first in range(events.starts[part], end):
            if not may_start(events, program, state, first) or state[OVERFLOW] != NOTHING_REACHED:
                continue
            if cramped(runs, books, 1, 0):
                runs, books = with_room(runs, books, first, 1, 0, NO_LIMIT)
            begin_run(events, program, columns, predicate, absent, runs, books, first, first)
            resume = first + 1
            while resume < end and events.instant[resume] == events.instant[first]:
                resume += 1
            slot = state[FRESH]
            if slot >= 0:
                runs.facts[slot, RESUME] = resume
            while slot >= 0 and state[OVERFLOW] == NOTHING_REACHED:
                state[FRESH] = runs.facts[slot, NEXT]
                below = state[FRESH]
                low = runs.facts[slot, RESUME]
                if low == end or (not program.postponed and events.time[low] > until):
                    release(runs, books, slot, first)
                    slot = state[FRESH]
                    continue
                if events.ordered and not in_window(events, program, runs.facts[slot, BEGAN], low):
                    release(runs, books, slot, first)
                    slot = state[FRESH]
                    continue
                high = low + 1
                while high < end and events.instant[high] == events.instant[low]:
                    high += 1
                if cramped(runs, books, 2 * (high - low) + 1, 0):
                    written = drain(books, written, VERBOSE, most_matches)
                    runs, books = with_room(runs, books, first, 2 * (high - low) + 1, 0, NO_LIMIT)
                state[PEAK_BUFFERED] = max(state[PEAK_BUFFERED], high - first)  # what may have to be read again
                lives = advance(events, program, columns, predicate, absent, runs, books, slot, low, high, first)
                child = state[FRESH]
                bottom = -1
                while child != below:
                    runs.facts[child, RESUME] = high
                    bottom = child
                    child = runs.facts[child, NEXT]
                if lives:  # postponed behind what it became
                    runs.facts[slot, RESUME] = high
                    runs.facts[slot, NEXT] = below
                    if bottom < 0:
                        state[FRESH] = slot
                    else:
                        runs.facts[bottom, NEXT] = slot
                else:
                    release(runs, books, slot, first)
                state[PEAK_RUNS] = max(state[PEAK_RUNS], state[ALIVE])
                if state[ALIVE] > most_runs:
                    state[OVERFLOW] = RUNS_REACHED
                if state[ACCEPTED] >= OFTEN:
                    written = drain(books, written, VERBOSE, most_matches)
                slot = state[FRESH]
            written = drain(books, written, VERBOSE, most_matches)
            while slot >= 0:  # a limit was reached
                following = runs.facts[slot, NEXT]
                release(runs, books, slot, first)
                slot = following
            state[FRESH] = -1
            state[ENTRIES] = 0
    return written, state

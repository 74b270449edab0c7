"""The backtrack algorithm (SASE+ section 5.2.3), for comparison: one run at a time, all others wait on a stack.

A run follows the stream until it can go on in several ways; then it takes the furthest one, and what it could have
done instead is postponed. When it ends, the run postponed last resumes where it stood, so events are read again.
"""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.columns import Columns, PredicateCall
from cepheid.engine.data.layout import INSTANT, TIME, Events
from cepheid.engine.kernels.compile import borrowing, search_kernel
from cepheid.engine.kernels.query import Query, find_absent, room_for_absent
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.kernels.windows import in_window
from cepheid.engine.program.graph import Graph
from cepheid.engine.search.runs.enumerate import Listed
from cepheid.engine.search.runs.moves import (
    ACCEPTED,
    ALIVE,
    BLANK,
    FRESH,
    NEXT,
    OVERFLOW,
    PEAK_BUFFERED,
    PEAK_RUNS,
    RESUME,
    UNTIL,
    RunPool,
    Runs,
    Widths,
    advance,
    new_runs,
    release,
)
from cepheid.engine.search.runs.scan import (
    NO_LIMIT,
    NOTHING_REACHED,
    OFTEN,
    RUNS_REACHED,
    VERBOSE,
    Machine,
    SearchRequest,
    cramped,
    drain,
    new_books,
    with_room,
)


@borrowing
def after_instant(events: Events, event: int, end: int) -> int:
    """The first event behind those that are concurrent with this one."""
    instant = events.facts[INSTANT, event]
    while event < end and events.facts[INSTANT, event] == instant:
        event += 1
    return event


FIRST, GOING = range(2)  # where the search stands: the event that runs begin with now, and whether one is under way


@borrowing
def search(query: Query, graph: Graph, runs: Runs, run_pool: RunPool, cursor: Int64s, end: int, most_runs: int) -> int:
    """Follows the runs of a partition, depth first, as far as there is room; says how much is needed, 0 at the end."""
    events, program, state = query.events, query.program, run_pool.state
    while cursor[FIRST] < end and state[OVERFLOW] == NOTHING_REACHED:
        first = cursor[FIRST]
        if cursor[GOING] == 0:
            if cramped(runs, run_pool, 3, 0):
                return 3
            advance(query, graph, runs, run_pool, BLANK, first, first + 1, first)
            if state[FRESH] >= 0:
                runs.rows[state[FRESH], RESUME] = after_instant(events, first, end)
            cursor[GOING] = 1
        while state[FRESH] >= 0 and state[OVERFLOW] == NOTHING_REACHED:
            slot = state[FRESH]
            low = runs.rows[slot, RESUME]
            below = runs.rows[slot, NEXT]
            over = low == end or (not program.postponed and events.facts[TIME, low] > state[UNTIL])
            if over or (events.ordered and not in_window(events, program, first, low)):
                state[FRESH] = below
                release(runs, run_pool, slot, first)
                continue
            high = after_instant(events, low, end)
            if cramped(runs, run_pool, 2 * (high - low) + 1, 0):
                return int(2 * (high - low) + 1)
            state[FRESH] = below
            state[PEAK_BUFFERED] = max(state[PEAK_BUFFERED], high - first)  # what may have to be read again
            lives = advance(query, graph, runs, run_pool, slot, low, high, first)
            child, oldest = state[FRESH], -1
            while child != below:
                runs.rows[child, RESUME] = high
                oldest = child
                child = runs.rows[child, NEXT]
            if lives:  # postponed, behind what it became
                runs.rows[slot, RESUME] = high
                runs.rows[slot, NEXT] = below
                if oldest < 0:
                    state[FRESH] = slot
                else:
                    runs.rows[oldest, NEXT] = slot
            else:
                release(runs, run_pool, slot, first)
            state[PEAK_RUNS] = max(state[PEAK_RUNS], state[ALIVE])
            if state[ALIVE] > most_runs or stop_flag() != 0:
                state[OVERFLOW] = RUNS_REACHED
            if state[ACCEPTED] >= OFTEN:
                return 1
        cursor[GOING] = 0
        cursor[FIRST] += 1
    return 0


@search_kernel
def backtrack(
    events: Events,
    machine: Machine,
    columns: Columns,
    predicate: PredicateCall,
    widths: Widths,
    listed: Listed,
    asked: SearchRequest,
) -> tuple[Listed, Int64s]:
    """Every run of every partition, one at a time: the matches written down, and counters."""
    program, graph = machine.program, machine.graph
    run_pool = new_books(events.facts.shape[1], widths, asked.after, asked.until, False)
    state = run_pool.state
    runs = new_runs(256, widths, state)
    cursor = np.zeros(2, np.int64)
    query = Query(events, program, columns, predicate, room_for_absent(events, program))
    for part in range(len(events.starts) - 1):
        find_absent(events, program, part, query.absent)
        cursor[FIRST], cursor[GOING] = events.starts[part], 0
        end = events.starts[part + 1]
        needed = 1
        while needed > 0 and state[OVERFLOW] == NOTHING_REACHED:
            needed = search(query, graph, runs, run_pool, cursor, end, asked.most_runs)
            listed = drain(run_pool, listed, VERBOSE, asked.most_matches)
            runs, run_pool = with_room(runs, run_pool, cursor[FIRST], needed, 0, NO_LIMIT)
        if state[OVERFLOW] != NOTHING_REACHED:
            break
    return listed, state

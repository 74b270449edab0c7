"""Event-based evaluation in one pass over the events, with runs that wait for more (TIME sections 4.2, 4.3, C.2, C.3).

`any_state` takes events as they come, in order of their lower bounds, and lets a run begin at any place. A run ends
when nothing that is still to come can complete it: its window has passed, or a place before a filled one is empty and
all that is to come is later. `sorted_pass` holds events back until all that could go before them in a match has been
seen, so that runs begin at the first place and grow place by place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import COLUMNS, INT64S, Columns
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.timed import STACKS, TIMED, Stacks, Timed, first_beyond, next_by, widest
from cepheid.engine.kernels.arrays import equal_codes, grown, grown_rows
from cepheid.engine.kernels.compile import borrowing, called_by_address, search_kernel
from cepheid.engine.kernels.conditions import FUNCTION
from cepheid.engine.kernels.partial_matches import NODES, Nodes
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.output.top import begin_partition, raise_bar
from cepheid.engine.program.tables import CASE, NEEDS, PROGRAM, SKIP_NEXT, Program
from cepheid.engine.search.intervals.results import (
    COUNTERS,
    EVALUATED,
    JUDGED,
    OVERFLOW,
    PARTIAL,
    PEAK,
    REPORTED,
    RESULTS,
    TOO_MANY_RUNS,
    Results,
    is_full,
    no_results,
    put,
    with_room,
)
from cepheid.engine.search.intervals.search import as_nodes
from cepheid.engine.worth.confidence.bounds import tighten
from cepheid.engine.worth.confidence.order import workspace
from cepheid.engine.worth.edges import CERTAIN
from cepheid.engine.worth.judge import judge
from cepheid.engine.worth.worth import WORTH, Worth, completion_of, likely

Int64s = npt.NDArray[np.int64]
Int64Rows = npt.NDArray[np.int64]


@borrowing(types.boolean(PROGRAM, types.int64), inline=True)
def untested(program: Program, place: int) -> bool:
    """Can any event of a place's stack take it, whatever came before?"""
    return bool(program.moments[3 * place] == program.moments[3 * place + 1])


@called_by_address(
    types.boolean(
        TIMED,
        WORTH,
        STACKS,
        PROGRAM,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        types.int64,
        INT64S,
        types.int64,
        types.int64,
        types.int64,
        INT64S,
        INT64S,
        INT64S,
        INT64S,
    )
)
def joins(
    timed: Timed,
    worth: Worth,
    stacks: Stacks,
    program: Program,
    placed: Program,
    columns: Columns,
    predicate: Any,
    part: int,
    at: Int64s,
    filled: int,
    place: int,
    event: int,
    places: Int64s,
    low: Int64s,
    high: Int64s,
    counters: Int64s,
) -> bool:
    """Can the event take a place in a run that holds at[p] for the places p in `filled`? Leaves bounds in low, high."""
    length = program.places
    count, slot = 0, 0
    for other in range(length):
        if other == place:
            slot = count
            places[count], low[count], high[count] = other, timed.lower[event], timed.upper[event]
            count += 1
        elif filled & (1 << other) != 0:
            if at[other] == event or not equal_codes(timed.compared, at, other, other + 1, event):
                return False
            places[count], low[count], high[count] = other, timed.lower[at[other]], timed.upper[at[other]]
            count += 1
    if not tighten(places, low, high, count, length, worth.window):
        return False
    at[place] = event
    together = filled | (1 << place)
    no_counts, no_sums = np.empty(0, np.int64), np.empty(0, np.float64)
    for test in range(placed.moments[0], placed.moments[1]):
        needs = placed.tests[test, NEEDS]
        if (needs == 0 or needs & (1 << place) != 0) and needs & ~together == 0:
            counters[EVALUATED] += 1
            if not predicate(placed.tests[test, CASE], at, no_counts, no_sums, columns):
                return False
    if program.strategy == SKIP_NEXT and timed.compared.shape[0] == 0:
        # What surely comes next leaves no room for what begins later (TIME's NELT).
        adjoins = slot > 0 and places[slot - 1] == place - 1 and untested(program, place)
        if adjoins and low[slot] > next_by(timed, stacks, part, place, high[slot - 1]):
            return False
        adjoins = slot + 1 < count and places[slot + 1] == place + 1 and untested(program, place + 1)
        if adjoins and low[slot + 1] > next_by(timed, stacks, part, place + 1, high[slot]):
            return False
    if worth.least[0] > 0.0:
        before = at[places[slot - 1]] if slot > 0 else -1
        after = at[places[slot + 1]] if slot + 1 < count else -1
        return likely(timed, worth, before, event, after)
    return True


@borrowing(types.int64(WORTH, INT64S, INT64S, types.int64))
def lives_until(worth: Worth, places: Int64s, high: Int64s, count: int) -> int:
    """The last instant at which an event may begin that a run still can use (time to live, unmatched prefix)."""
    last = int(high[0]) + worth.window - 1
    expected = 0
    for index in range(count):
        if places[index] > expected:  # a place before this one is empty
            last = min(last, int(high[index]) - 1)
        expected = places[index] + 1
    return last


@search_kernel(
    types.Tuple((RESULTS, INT64S, types.float64))(
        TIMED,
        WORTH,
        STACKS,
        INT64S,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        NODES,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        types.int64,
        types.int64,
        types.int64,
        types.int64,
    ),
)
def any_state(
    timed: Timed,
    worth: Worth,
    stacks: Stacks,
    starts: Int64s,
    program: Program,
    columns: Columns,
    predicate: Any,
    nodes: Nodes,
    placed: Program,
    placed_columns: Columns,
    placed_predicate: Any,
    after: int,
    until: int,
    limit: int,
    run_limit: int,
) -> tuple[Results, Int64s, float]:
    """All matches of all partitions; partition k is starts[k]:starts[k + 1]."""
    length = program.places
    steps, table = np.arange(length), np.full(length + 1, CERTAIN)
    everything = (1 << length) - 1
    counters = np.zeros(COUNTERS, np.int64)
    results = no_results(length)
    room = workspace(widest(timed), length)
    runs, filled, alive = np.empty((256, length), np.int64), np.empty(256, np.int64), np.empty(256, np.int64)
    at = np.zeros(length + program.negatives, np.int64)
    places, low, high = np.zeros(length, np.int64), np.zeros(length, np.int64), np.zeros(length, np.int64)
    for part in range(len(starts) - 1):
        begin_partition(worth)
        size = 0
        for event in range(starts[part], starts[part + 1]):
            bits = timed.mask[event] & everything
            now = timed.lower[event]
            run, old = 0, size  # runs before `old` are from before this event
            while run <= old:
                if stop_flag() != 0:
                    return results, counters, 0.0
                if run < old and alive[run] < now:
                    # Over: the last run from before takes its place, and the last of the new ones takes that one's.
                    for other, source in ((run, old - 1), (old - 1, size - 1)):
                        for place in range(length):
                            runs[other, place] = runs[source, place]
                        filled[other], alive[other] = filled[source], alive[source]
                    old -= 1
                    size -= 1
                    continue
                held = filled[run] if run < old else 0  # after all runs, a new one
                for place in range(length):
                    if bits & (1 << place) == 0 or held & (1 << place) != 0:
                        continue
                    for other in range(length):
                        at[other] = runs[run, other] if held & (1 << other) != 0 else 0
                    if not joins(
                        timed,
                        worth,
                        stacks,
                        program,
                        placed,
                        placed_columns,
                        placed_predicate,
                        part,
                        at,
                        held,
                        place,
                        event,
                        places,
                        low,
                        high,
                        counters,
                    ):
                        continue
                    grown_to = held | (1 << place)
                    if grown_to == everything:
                        known = completion_of(timed, worth, at[0], at[length - 1], True)
                        if known <= after or known > until:
                            continue
                        counters[JUDGED] += 1
                        as_nodes(program, nodes, timed, at)
                        _, confidence, earliest, latest, cost = judge(
                            timed,
                            worth,
                            stacks,
                            program,
                            columns,
                            predicate,
                            nodes,
                            part,
                            steps,
                            low,
                            high,
                            table,
                            0,
                            room,
                        )
                        if cost > 0.0:
                            return results, counters, cost
                        if confidence <= 0.0 or confidence < worth.least[0]:
                            continue
                        if counters[REPORTED] == limit:
                            counters[OVERFLOW] = 1
                            return results, counters, 0.0
                        if is_full(results, length):
                            results = with_room(results, length)
                        put(results, at, steps, length, known, 1.0, confidence, earliest, latest)
                        raise_bar(worth, confidence)
                        counters[REPORTED] += 1
                        continue
                    count = 0
                    for other in range(length):
                        count += (grown_to >> other) & 1
                    last = lives_until(worth, places, high, count)
                    if last < now:
                        continue
                    if size == run_limit:
                        counters[OVERFLOW] = TOO_MANY_RUNS
                        return results, counters, 0.0
                    if size == len(filled):
                        runs, filled, alive = grown_rows(runs), grown(filled), grown(alive)
                    for other in range(length):
                        runs[size, other] = at[other]
                    filled[size], alive[size] = grown_to, last
                    size += 1
                    counters[PARTIAL] += 1
                run += 1
            counters[PEAK] = max(counters[PEAK], size)
    return results, counters, 0.0


@called_by_address(types.Tuple((INT64S, INT64S, INT64S))(TIMED, STACKS, types.int64, types.int64))
def query_order(timed: Timed, stacks: Stacks, length: int, part: int) -> tuple[Int64s, Int64s, Int64s]:
    """The candidates of a partition in query order: events, the places they go for, and the least lower bound to come.

    An event that goes for a place is given out when nothing can come any more that happens before it, and not before
    any event that could take an earlier place before it has been given out. An event that fits several places is
    given out for each of them.
    """
    total = 0
    for place in range(length):
        total += stacks.begin[place, part + 1] - stacks.begin[place, part]
    events, places, due = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    newest = np.empty(total, np.int64)  # in each place's stack, the latest time so far at which one is given out
    offset = np.zeros(length + 1, np.int64)
    index = 0
    for place in range(length):
        low, high = stacks.begin[place, part], stacks.begin[place, part + 1]
        offset[place] = index - low
        for entry in range(low, high):
            event = stacks.member[entry]
            when = timed.lower[event] if place == 0 else timed.upper[event]
            for other in range(place):
                bottom = stacks.begin[other, part]
                end = first_beyond(stacks, timed.lower, bottom, stacks.begin[other, part + 1], timed.upper[event])
                if end > bottom:
                    when = max(when, newest[offset[other] + end - 1])
            events[index], places[index], due[index] = event, place, when
            newest[index] = when if entry == low else max(when, newest[index - 1])
            index += 1
    order = np.argsort(due, kind="mergesort")  # places are in ascending order already, and stay so where times tie
    events, places = events[order], places[order]
    least = np.empty(total, np.int64)
    to_come = np.full(length, NEVER, np.int64)
    for index in range(total - 1, -1, -1):
        to_come[places[index]] = min(to_come[places[index]], timed.lower[events[index]])
        least[index] = to_come[places[index]]
    return events, places, least


@search_kernel(
    types.Tuple((RESULTS, INT64S, types.float64))(
        TIMED,
        WORTH,
        STACKS,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        NODES,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        types.int64,
        types.int64,
        types.int64,
        types.int64,
    ),
)
def sorted_pass(
    timed: Timed,
    worth: Worth,
    stacks: Stacks,
    program: Program,
    columns: Columns,
    predicate: Any,
    nodes: Nodes,
    placed: Program,
    placed_columns: Columns,
    placed_predicate: Any,
    after: int,
    until: int,
    limit: int,
    run_limit: int,
) -> tuple[Results, Int64s, float]:
    """All matches of all partitions, with events in query order."""
    length = program.places
    steps, table = np.arange(length), np.full(length + 1, CERTAIN)
    counters = np.zeros(COUNTERS, np.int64)
    results = no_results(length)
    room = workspace(widest(timed), length)
    # Runs that wait for place p: their events, and the last instant at which an event may begin that they can use.
    waiting = [np.empty((64, length), np.int64) for _ in range(length)]
    alive = [np.empty(64, np.int64) for _ in range(length)]
    sizes = np.zeros(length, np.int64)
    at = np.zeros(length + program.negatives, np.int64)
    places, low, high = np.zeros(length, np.int64), np.zeros(length, np.int64), np.zeros(length, np.int64)
    for part in range(stacks.begin.shape[1] - 1):
        events, goals, least = query_order(timed, stacks, length, part)
        sizes[:] = 0
        begin_partition(worth)
        for index in range(len(events)):
            event, place = events[index], goals[index]
            run = 0
            while run < (sizes[place] if place > 0 else 1):
                if stop_flag() != 0:
                    return results, counters, 0.0
                if place > 0:
                    pool, until_when = waiting[place], alive[place]
                    if until_when[run] < least[index]:  # nothing to come is early enough
                        final = sizes[place] - 1
                        for other in range(place):
                            pool[run, other] = pool[final, other]
                        until_when[run] = until_when[final]
                        sizes[place] = final
                        continue
                    for other in range(place):
                        at[other] = pool[run, other]
                run += 1
                if not joins(
                    timed,
                    worth,
                    stacks,
                    program,
                    placed,
                    placed_columns,
                    placed_predicate,
                    part,
                    at,
                    (1 << place) - 1,
                    place,
                    event,
                    places,
                    low,
                    high,
                    counters,
                ):
                    continue
                if place < length - 1:
                    size = sizes[place + 1]
                    if sizes.sum() >= run_limit:
                        counters[OVERFLOW] = TOO_MANY_RUNS
                        return results, counters, 0.0
                    if size == len(alive[place + 1]):
                        waiting[place + 1], alive[place + 1] = grown_rows(waiting[place + 1]), grown(alive[place + 1])
                    for other in range(place + 1):
                        waiting[place + 1][size, other] = at[other]
                    alive[place + 1][size] = high[0] + worth.window - 1
                    sizes[place + 1] = size + 1
                    counters[PARTIAL] += 1
                    continue
                known = completion_of(timed, worth, at[0], at[length - 1], True)
                if known <= after or known > until:
                    continue
                counters[JUDGED] += 1
                as_nodes(program, nodes, timed, at)
                _, confidence, earliest, latest, cost = judge(
                    timed,
                    worth,
                    stacks,
                    program,
                    columns,
                    predicate,
                    nodes,
                    part,
                    steps,
                    low,
                    high,
                    table,
                    0,
                    room,
                )
                if cost > 0.0:
                    return results, counters, cost
                if confidence <= 0.0 or confidence < worth.least[0]:
                    continue
                if counters[REPORTED] == limit:
                    counters[OVERFLOW] = 1
                    return results, counters, 0.0
                if is_full(results, length):
                    results = with_room(results, length)
                put(results, at, steps, length, known, 1.0, confidence, earliest, latest)
                raise_bar(worth, confidence)
                counters[REPORTED] += 1
            counters[PEAK] = max(counters[PEAK], sizes.sum())
    return results, counters, 0.0

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

from cepheid.engine.data.columns import COLUMNS, INT64_ROWS, INT64S, Columns
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.timed import STACKS, TIMED, Stacks, Timed, first_beyond
from cepheid.engine.kernels.arrays import grown, grown_rows
from cepheid.engine.kernels.compile import borrowing, called_by_address, search_kernel
from cepheid.engine.kernels.conditions import FUNCTION
from cepheid.engine.kernels.partial_matches import NODES, Nodes
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.output.top import begin_partition, raise_bar
from cepheid.engine.program.tables import PROGRAM, Program
from cepheid.engine.search.intervals.joining import REFUSED, joins, likely_among, new_run
from cepheid.engine.search.intervals.results import (
    COUNTERS,
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
from cepheid.engine.search.intervals.sequences import judge_sequence, new_judging
from cepheid.engine.worth.worth import WORTH, Worth, completion_of

Int64s = npt.NDArray[np.int64]
Int64Rows = npt.NDArray[np.int64]


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


@borrowing(types.void(INT64_ROWS, INT64S, INT64S, types.int64, types.int64))
def move_run(runs: Int64Rows, filled: Int64s, alive: Int64s, source: int, target: int) -> None:
    """Puts a run into the row of another one."""
    for place in range(runs.shape[1]):
        runs[target, place] = runs[source, place]
    filled[target], alive[target] = filled[source], alive[source]


@borrowing(types.int64(types.int64))
def ones(bits: int) -> int:
    """How many bits are set."""
    count = 0
    while bits != 0:
        bits &= bits - 1
        count += 1
    return count


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
    everything = (1 << length) - 1
    counters = np.zeros(COUNTERS, np.int64)
    results = no_results(length)
    judging = new_judging(timed, program, columns, predicate, nodes)
    joined = new_run(timed, worth, program, placed, counters)
    at, places, low, high = joined.at, joined.places, joined.low, joined.high
    runs, filled, alive = np.empty((256, length), np.int64), np.empty(256, np.int64), np.empty(256, np.int64)
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
                    move_run(runs, filled, alive, old - 1, run)
                    move_run(runs, filled, alive, size - 1, old - 1)
                    old -= 1
                    size -= 1
                    continue
                held = filled[run] if run < old else 0  # after all runs, a new one
                for place in range(length):
                    if bits & (1 << place) == 0 or held & (1 << place) != 0:
                        continue
                    for other in range(length):
                        at[other] = runs[run, other] if held & (1 << other) != 0 else 0
                    slot = joins(joined, stacks, placed_columns, placed_predicate, part, held, place, event)
                    if slot == REFUSED:
                        continue
                    grown_to = held | (1 << place)
                    count = ones(grown_to)
                    if worth.least[0] > 0.0 and not likely_among(timed, worth, joined, slot, count):
                        continue
                    if grown_to == everything:
                        known = completion_of(timed, worth, at[0], at[length - 1], True)
                        if known <= after or known > until:
                            continue
                        counters[JUDGED] += 1
                        confidence, earliest, latest, cost = judge_sequence(
                            timed, worth, stacks, judging, part, at, low, high
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
                        put(results, at, judging.chain, length, known, 1.0, confidence, earliest, latest)
                        raise_bar(worth, confidence)
                        counters[REPORTED] += 1
                        continue
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
    counters = np.zeros(COUNTERS, np.int64)
    results = no_results(length)
    judging = new_judging(timed, program, columns, predicate, nodes)
    joined = new_run(timed, worth, program, placed, counters)
    at, low, high = joined.at, joined.low, joined.high
    # Runs that wait for place p: their events, and the last instant at which an event may begin that they can use.
    waiting = [np.empty((64, length), np.int64) for _ in range(length)]
    alive = [np.empty(64, np.int64) for _ in range(length)]
    sizes = np.zeros(length, np.int64)
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
                slot = joins(joined, stacks, placed_columns, placed_predicate, part, (1 << place) - 1, place, event)
                if slot == REFUSED:
                    continue
                if worth.least[0] > 0.0 and not likely_among(timed, worth, joined, slot, place + 1):
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
                confidence, earliest, latest, cost = judge_sequence(timed, worth, stacks, judging, part, at, low, high)
                if cost > 0.0:
                    return results, counters, cost
                if confidence <= 0.0 or confidence < worth.least[0]:
                    continue
                if counters[REPORTED] == limit:
                    counters[OVERFLOW] = 1
                    return results, counters, 0.0
                if is_full(results, length):
                    results = with_room(results, length)
                put(results, at, judging.chain, length, known, 1.0, confidence, earliest, latest)
                raise_bar(worth, confidence)
                counters[REPORTED] += 1
            counters[PEAK] = max(counters[PEAK], sizes.sum())
    return results, counters, 0.0

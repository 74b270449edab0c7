"""Event-based evaluation in one pass over the events, with runs that wait for more (TIME sections 4.2, 4.3, C.2, C.3).

`any_state` takes events as they come, in order of their lower bounds, and lets a run begin at any place. A run ends
when nothing that is still to come can complete it: its window has passed, or a place before a filled one is empty and
all that is to come is later. `sorted_pass` holds events back until all that could go before them in a match has been
seen, so that runs begin at the first place and grow place by place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64s, Int64Rows, Int64s
from cepheid.engine.data.columns import Columns, PredicateCall
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.timed import Stacks, Timed, first_beyond
from cepheid.engine.kernels.arrays import grown, grown_rows
from cepheid.engine.kernels.compile import borrowing, called_by_address, kernel, search_kernel
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.output.top import begin_partition
from cepheid.engine.scoring.match_score import MatchScore
from cepheid.engine.search.intervals.joining import REFUSED, Run, joins, likely_among, new_run
from cepheid.engine.search.intervals.results import (
    COUNTERS,
    DONE,
    FULL,
    OVERFLOW,
    PARTIAL,
    PEAK,
    STOPPED,
    TOO_MANY_RUNS,
    Results,
    SearchRequest,
    is_full,
    no_results,
    with_room,
)
from cepheid.engine.search.intervals.sequences import Complete, InPatternOrder, Judging, Placed, new_judging, report


class Pass(NamedTuple):
    """What one pass reads, and the run that an event is offered to; kernels put it together."""

    timed: Timed
    match_score: MatchScore
    stacks: Stacks
    columns: Columns  # with the predicate: the conditions as they are tested whatever the order
    predicate: PredicateCall
    judging: Judging
    run: Run
    cost: Float64s


class Pool(NamedTuple):
    """Runs that wait for more, whatever places they hold."""

    events: Int64Rows  # a row for each, by place
    filled: Int64s  # the places that are filled, as bits
    alive: Int64s  # the last instant at which an event may begin that it can use
    state: Int64s  # SIZE and where an event that is offered has come: the runs before it, the run, the place


SIZE, OLD, AT, PLACE = range(4)


@borrowing
def lives_until(match_score: MatchScore, places: Int64s, high: Int64s, count: int) -> int:
    """The last instant at which an event may begin that a run still can use (time to live, unmatched prefix)."""
    last = int(high[0]) + match_score.window - 1
    expected = 0
    for index in range(count):
        if places[index] > expected:  # a place before this one is empty
            last = min(last, int(high[index]) - 1)
        expected = places[index] + 1
    return last


@borrowing
def move_run(pool: Pool, source: int, target: int) -> None:
    """Puts a run into the row of another one."""
    for place in range(pool.events.shape[1]):
        pool.events[target, place] = pool.events[source, place]
    pool.filled[target], pool.alive[target] = pool.filled[source], pool.alive[source]


@borrowing
def ones(bits: int) -> int:
    """How many bits are set."""
    count = 0
    while bits != 0:
        bits &= bits - 1
        count += 1
    return count


@kernel
def larger_pool(pool: Pool) -> Pool:
    """The same runs with room for as many again."""
    return Pool(grown_rows(pool.events), grown(pool.filled), grown(pool.alive), pool.state)


@borrowing
def take_place(
    search: Pass, pool: Pool, asked: SearchRequest, part: int, event: int, place: int, held: int, results: Results
) -> bool:
    """Puts the event into a place of a run that holds others, if it may join: a longer run, or a match.

    False: the search must end. There must be room for either.
    """
    timed, match_score, joined, state = search.timed, search.match_score, search.run, pool.state
    length, counters, at = len(joined.places), joined.counters, joined.at
    for other in range(length):
        at[other] = pool.events[state[AT], other] if held & (1 << other) != 0 else 0
    slot = joins(joined, search.stacks, search.columns, search.predicate, part, held, place, event)
    if slot == REFUSED:
        return True
    grown_to = held | (1 << place)
    count = ones(grown_to)
    if match_score.least[0] > 0.0 and not likely_among(timed, match_score, joined, slot, count):
        return True
    if count == length:
        match = Complete(at, joined.low, joined.high, counters, search.cost)
        return report(timed, match_score, search.stacks, search.judging, part, match, asked, results)
    last = lives_until(match_score, joined.places, joined.high, count)
    if last < timed.lower[event]:
        return True
    if state[SIZE] == asked.runs:
        counters[OVERFLOW] = TOO_MANY_RUNS
        return False
    for other in range(length):
        pool.events[state[SIZE], other] = at[other]
    pool.filled[state[SIZE]], pool.alive[state[SIZE]] = grown_to, last
    state[SIZE] += 1
    counters[PARTIAL] += 1
    return True


@borrowing
def offer(search: Pass, pool: Pool, asked: SearchRequest, part: int, event: int, results: Results) -> int:
    """Offers an event to all runs and to a new one. DONE, FULL or STOPPED."""
    state, length = pool.state, len(search.run.places)
    bits, now = search.timed.mask[event], search.timed.lower[event]
    while state[AT] <= state[OLD]:
        run, old = state[AT], state[OLD]  # runs before `old` are from before this event
        if run < old and state[PLACE] == 0 and pool.alive[run] < now:
            # Over: the last run from before takes its place, and the last of the new ones takes that one's.
            move_run(pool, old - 1, run)
            move_run(pool, state[SIZE] - 1, old - 1)
            state[OLD] -= 1
            state[SIZE] -= 1
            continue
        held = pool.filled[run] if run < old else 0  # after all runs, a new one
        while state[PLACE] < length:
            if stop_flag() != 0:
                return STOPPED
            if state[SIZE] == len(pool.filled) or is_full(results, length):
                return FULL
            place = state[PLACE]
            state[PLACE] += 1
            if bits & (1 << place) == 0 or held & (1 << place) != 0:
                continue
            if not take_place(search, pool, asked, part, event, place, held, results):
                return STOPPED
        state[AT], state[PLACE] = run + 1, 0
    return DONE


@search_kernel
def any_state(
    timed: Timed,
    match_score: MatchScore,
    stacks: Stacks,
    starts: Int64s,
    query: InPatternOrder,
    predicate: PredicateCall,
    placed: Placed,
    placed_predicate: PredicateCall,
    asked: SearchRequest,
) -> tuple[Results, Int64s, float]:
    """All matches of all partitions; partition k is starts[k]:starts[k + 1]."""
    length = query.program.places
    counters, results, cost = np.zeros(COUNTERS, np.int64), no_results(length), np.zeros(1)
    judging = new_judging(timed, query, predicate)
    joined = new_run(timed, match_score, query.program, placed.program, counters)
    search = Pass(timed, match_score, stacks, placed.columns, placed_predicate, judging, joined, cost)
    pool = Pool(
        np.empty((256, length), np.int64), np.empty(256, np.int64), np.empty(256, np.int64), np.zeros(4, np.int64)
    )
    state = pool.state
    for part in range(len(starts) - 1):
        begin_partition(match_score)
        state[SIZE] = 0
        for event in range(starts[part], starts[part + 1]):
            state[OLD], state[AT], state[PLACE] = state[SIZE], 0, 0
            ended = offer(search, pool, asked, part, event, results)
            while ended == FULL:
                if is_full(results, length):
                    results = with_room(results, length)
                else:
                    pool = larger_pool(pool)
                ended = offer(search, pool, asked, part, event, results)
            if ended == STOPPED:
                return results, counters, cost[0]
            counters[PEAK] = max(counters[PEAK], state[SIZE])
    return results, counters, cost[0]


@called_by_address
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


class Candidate(NamedTuple):
    """An event that goes for a place, and the least lower bound of those to come for it."""

    event: int
    place: int
    least: int


class Queue(NamedTuple):
    """Runs by the place that they wait for: those that wait for place p are the rows p * room + 0, 1 and so on."""

    events: Int64Rows
    alive: Int64s
    sizes: Int64s
    state: Int64s  # one number: the run that an event is offered to


@kernel
def new_queue(length: int, room: int) -> Queue:
    """Room for so many runs for each place."""
    return Queue(
        np.empty((length * room, length), np.int64),
        np.empty(length * room, np.int64),
        np.zeros(length, np.int64),
        np.zeros(1, np.int64),
    )


@kernel
def longer_queue(queue: Queue) -> Queue:
    """The same runs with room for as many again."""
    length, room = queue.events.shape[1], len(queue.alive) // queue.events.shape[1]
    larger = new_queue(length, 2 * room)
    for place in range(length):
        for run in range(queue.sizes[place]):
            larger.events[2 * place * room + run] = queue.events[place * room + run]
            larger.alive[2 * place * room + run] = queue.alive[place * room + run]
    larger.sizes[:] = queue.sizes
    larger.state[:] = queue.state
    return larger


@borrowing
def join_run(
    search: Pass, queue: Queue, asked: SearchRequest, part: int, candidate: Candidate, results: Results
) -> bool:
    """Lets a candidate join the run at hand, if it may; False: the search must end. There must be room."""
    timed, match_score, joined, place = search.timed, search.match_score, search.run, candidate.place
    length, counters, at, sizes = len(joined.places), joined.counters, joined.at, queue.sizes
    filled = (1 << place) - 1
    slot = joins(joined, search.stacks, search.columns, search.predicate, part, filled, place, candidate.event)
    if slot == REFUSED:
        return True
    if match_score.least[0] > 0.0 and not likely_among(timed, match_score, joined, slot, place + 1):
        return True
    if place == length - 1:
        match = Complete(at, joined.low, joined.high, counters, search.cost)
        return report(timed, match_score, search.stacks, search.judging, part, match, asked, results)
    if sizes.sum() >= asked.runs:
        counters[OVERFLOW] = TOO_MANY_RUNS
        return False
    row = (place + 1) * (len(queue.alive) // length) + sizes[place + 1]
    for other in range(place + 1):
        queue.events[row, other] = at[other]
    queue.alive[row] = joined.high[0] + match_score.window - 1
    sizes[place + 1] += 1
    counters[PARTIAL] += 1
    return True


@borrowing
def offer_in_order(
    search: Pass, queue: Queue, asked: SearchRequest, part: int, candidate: Candidate, results: Results
) -> int:
    """Offers a candidate to all runs that wait for its place. DONE, FULL or STOPPED."""
    place, state, sizes, at = candidate.place, queue.state, queue.sizes, search.run.at
    length = len(search.run.places)
    room = len(queue.alive) // length
    while state[0] < (sizes[place] if place > 0 else 1):
        if stop_flag() != 0:
            return STOPPED
        row = place * room + state[0]
        if place > 0 and queue.alive[row] < candidate.least:  # nothing to come is early enough
            sizes[place] -= 1
            last = place * room + sizes[place]
            for other in range(place):
                queue.events[row, other] = queue.events[last, other]
            queue.alive[row] = queue.alive[last]
            continue
        if is_full(results, length) or (place < length - 1 and sizes[place + 1] == room):
            return FULL
        for other in range(place):
            at[other] = queue.events[row, other]
        state[0] += 1
        if not join_run(search, queue, asked, part, candidate, results):
            return STOPPED
    return DONE


@search_kernel
def sorted_pass(
    timed: Timed,
    match_score: MatchScore,
    stacks: Stacks,
    query: InPatternOrder,
    predicate: PredicateCall,
    placed: Placed,
    placed_predicate: PredicateCall,
    asked: SearchRequest,
) -> tuple[Results, Int64s, float]:
    """All matches of all partitions, with events in query order."""
    length = query.program.places
    counters, results, cost = np.zeros(COUNTERS, np.int64), no_results(length), np.zeros(1)
    judging = new_judging(timed, query, predicate)
    joined = new_run(timed, match_score, query.program, placed.program, counters)
    search = Pass(timed, match_score, stacks, placed.columns, placed_predicate, judging, joined, cost)
    queue = new_queue(length, 64)
    for part in range(stacks.begin.shape[1] - 1):
        events, goals, least = query_order(timed, stacks, length, part)
        queue.sizes[:] = 0
        begin_partition(match_score)
        for index in range(len(events)):
            candidate = Candidate(events[index], goals[index], least[index])
            queue.state[0] = 0
            ended = offer_in_order(search, queue, asked, part, candidate, results)
            while ended == FULL:
                if is_full(results, length):
                    results = with_room(results, length)
                else:
                    queue = longer_queue(queue)
                ended = offer_in_order(search, queue, asked, part, candidate, results)
            if ended == STOPPED:
                return results, counters, cost[0]
            counters[PEAK] = max(counters[PEAK], queue.sizes.sum())
    return results, counters, cost[0]

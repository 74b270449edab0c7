"""The scan: probabilistic arrival queues with upper bounds (AYAC sections 4.1 and 5.1).

Every event that could fill a component is put into that component's queue together with an upper bound of the score of
all paths that arrive there; an event whose bound is below the threshold is left out. The best bound in a queue's window
is kept by a second, falling queue, so that it costs O(1) amortised.
"""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.layout import INSTANT, MASK, TIME, Events
from cepheid.engine.kernels.compile import borrowing, inlined
from cepheid.engine.kernels.score_lookup import log_score_at, maximum_at
from cepheid.engine.program.tables import KLEENE, SKIP_NEXT, Program
from cepheid.engine.scoring.edges import CERTAIN, CLOSED, FALLS, RISES
from cepheid.engine.search.queues.query import DROPPED, STACKED, Queues, Score
from cepheid.model.table_arrays import TableArrays

FALLING_FIRST, FALLING_END, SETTLED, OLDEST = range(4)


@inlined
def edge_bound(tables: TableArrays, number: int, monotone: int, newest: float, oldest: float) -> float:
    """A bound of the log score over all spans from `newest` to `oldest`; exact at one end where it is monotone."""
    if number == CERTAIN:
        return 0.0
    if monotone == FALLS:
        return float(log_score_at(tables, number, newest))
    if monotone == RISES:
        return float(log_score_at(tables, number, oldest))
    best = maximum_at(tables, number, oldest)
    return float(np.log(best)) if best > 0.0 else -np.inf


@inlined
def settle(queues: Queues, facts: Int64Rows, place: int, now: int, window: int) -> None:
    """Lets a new instant see the entries that came before it, and forget those that have left the window."""
    stacks, bounds, sizes, falling, marks = queues
    for entry in range(marks[place, SETTLED], sizes[place]):
        while (
            marks[place, FALLING_END] > marks[place, FALLING_FIRST]
            and bounds[place, falling[place, marks[place, FALLING_END] - 1]] <= bounds[place, entry]
        ):
            marks[place, FALLING_END] -= 1
        falling[place, marks[place, FALLING_END]] = entry
        marks[place, FALLING_END] += 1
    marks[place, SETTLED] = sizes[place]
    while marks[place, OLDEST] < sizes[place] and now - facts[TIME, stacks[place, marks[place, OLDEST]]] >= window:
        marks[place, OLDEST] += 1
    while (
        marks[place, FALLING_FIRST] < marks[place, FALLING_END]
        and falling[place, marks[place, FALLING_FIRST]] < marks[place, OLDEST]
    ):
        marks[place, FALLING_FIRST] += 1


@borrowing
def fill_queues(
    events: Events,
    program: Program,
    score: Score,
    tables: TableArrays,
    begin: int,
    end: int,
    queues: Queues,
    counters: Int64s,
) -> None:
    """Scans one partition: fills each component's queue with events and the bounds of their scores.

    Under skip_till_next_match no event is left out: one that leads nowhere can still be in the way of others.
    """
    facts = events.facts
    number, highest, monotone = score.number, score.highest, score.monotone
    length, window, scale, threshold = program.places, program.window, score.scale, score.threshold
    all_stay = program.strategy == SKIP_NEXT
    stacks, bounds, sizes, falling, marks = queues
    sizes[:] = 0
    marks[:] = 0
    previous = np.int64(-1)
    for event in range(begin, end):
        now = facts[TIME, event]
        if facts[INSTANT, event] != previous:
            previous = facts[INSTANT, event]
            for place in range(length):
                settle(queues, facts, place, now, window)
        bits = facts[MASK, event]
        for place in range(length):
            if bits & (1 << place) == 0:
                continue
            best = highest[0, place]
            for before in range(place + 1):
                if before == place and program.place[place, KLEENE] == 0:
                    continue
                if before < place and number[before + 1, place] == CLOSED:
                    continue
                if marks[before, FALLING_FIRST] == marks[before, FALLING_END]:
                    continue
                top = bounds[before, falling[before, marks[before, FALLING_FIRST]]]
                if before < place:
                    newest_span = (now - facts[TIME, stacks[before, marks[before, SETTLED] - 1]]) * scale
                    oldest_span = (now - facts[TIME, stacks[before, marks[before, OLDEST]]]) * scale
                    edge, shape = number[before + 1, place], monotone[before + 1, place]
                    top += edge_bound(tables, edge, shape, newest_span, oldest_span)
                best = max(best, top)
            if (best < threshold or best == -np.inf) and not all_stay:
                counters[DROPPED] += 1
                continue
            stacks[place, sizes[place]] = event
            bounds[place, sizes[place]] = best
            sizes[place] += 1
            counters[STACKED] += 1
        for negation in range(length, len(sizes)):
            if bits & (1 << negation) != 0:
                stacks[negation, sizes[negation]] = event
                sizes[negation] += 1

"""May an event join a run that holds events for some of the places, whichever these are?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64s, Int64Rows, Int64s
from cepheid.engine.data.columns import Columns, PredicateCall
from cepheid.engine.data.timed import Stacks, Timed, next_by
from cepheid.engine.kernels.arrays import equal_codes
from cepheid.engine.kernels.compile import borrowing, inlined, kernel
from cepheid.engine.program.tables import CASE, NEEDS, SKIP_NEXT, Program
from cepheid.engine.scoring.confidence.bounds import tighten
from cepheid.engine.scoring.match_score import MatchScore, likely
from cepheid.engine.search.intervals.results import EVALUATED

REFUSED = -1


class Run(NamedTuple):
    """The run that an event may join: what is read of events, what it must pass, and room for the run itself.

    Only what is needed for every event that is tried, since all of it is handed over with each call.
    """

    window: int
    follows_next: bool  # is the next event selected?
    lower: Int64s  # of all events, as in `Timed`
    upper: Int64s
    compared: Int64Rows
    tests: Int64Rows  # conditions: case and the places they need, as rows of a program
    simple: Int64s  # by place: 1 if any event of its stack can take it, whatever came before
    at: Int64s  # by place: its event
    places: Int64s  # the places that are filled, in order, and the valid bounds of their events
    low: Int64s
    high: Int64s
    counted: Int64s  # lengths and aggregates, of which there are none
    running: Float64s
    counters: Int64s


@kernel
def new_run(timed: Timed, match_score: MatchScore, program: Program, placed: Program, counters: Int64s) -> Run:
    """Room for a run; `placed` has the conditions as they are tested whatever the order."""
    length = program.places
    simple = np.zeros(length, np.int64)
    for place in range(length):
        simple[place] = program.moments[3 * place] == program.moments[3 * place + 1]
    return Run(
        match_score.window,
        program.strategy == SKIP_NEXT and timed.compared.shape[0] == 0,
        timed.lower,
        timed.upper,
        timed.compared,
        placed.tests[placed.moments[0] : placed.moments[1]],
        simple,
        np.zeros(length + program.negatives, np.int64),
        np.zeros(length, np.int64),
        np.zeros(length, np.int64),
        np.zeros(length, np.int64),
        np.empty(0, np.int64),
        np.empty(0, np.float64),
        counters,
    )


@inlined
def passes_next(run: Run, stacks: Stacks, part: int, place: int, slot: int, count: int) -> bool:
    """Does something surely come next that leaves no room for what begins later (TIME's NELT)?"""
    places, low, high = run.places, run.low, run.high
    passed = False
    if slot > 0 and places[slot - 1] == place - 1 and run.simple[place] == 1:
        passed = low[slot] > next_by(stacks, run.lower, part, place, high[slot - 1])
    if not passed and slot + 1 < count and places[slot + 1] == place + 1 and run.simple[place + 1] == 1:
        passed = low[slot + 1] > next_by(stacks, run.lower, part, place + 1, high[slot])
    return passed


@borrowing
def joins(
    run: Run,
    stacks: Stacks,
    columns: Columns,
    predicate: PredicateCall,
    part: int,
    filled: int,
    place: int,
    event: int,
) -> int:
    """Can the event take a place in a run that holds at[p] for the places p in `filled`? Leaves valid bounds.

    The answer is where the event stands among those of the run; REFUSED if it cannot join.
    """
    length, at, places, low, high = len(run.places), run.at, run.places, run.low, run.high
    count, slot = 0, 0
    for other in range(length):
        if other == place:
            slot = count
            places[count], low[count], high[count] = other, run.lower[event], run.upper[event]
            count += 1
        elif filled & (1 << other) != 0:
            if at[other] == event or not equal_codes(run.compared, at, other, other + 1, event):
                return REFUSED
            places[count], low[count], high[count] = other, run.lower[at[other]], run.upper[at[other]]
            count += 1
    if not tighten(places, low, high, count, length, run.window):
        return REFUSED
    at[place] = event
    together = filled | (1 << place)
    for test in range(run.tests.shape[0]):
        needs = run.tests[test, NEEDS]
        if (needs == 0 or needs & (1 << place) != 0) and needs & ~together == 0:
            run.counters[EVALUATED] += 1
            if not predicate(run.tests[test, CASE], at, run.counted, run.running, columns):
                return REFUSED
    if run.follows_next and passes_next(run, stacks, part, place, slot, count):
        return REFUSED
    return slot


@inlined
def likely_among(timed: Timed, match_score: MatchScore, run: Run, slot: int, count: int) -> bool:
    """Could a match be confident enough in which the event in this slot has these neighbours?"""
    before = run.at[run.places[slot - 1]] if slot > 0 else -1
    after = run.at[run.places[slot + 1]] if slot + 1 < count else -1
    return likely(timed, match_score, before, run.at[run.places[slot]], after)

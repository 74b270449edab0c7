"""The steps of a search that fills places in a fixed order, depth first: which events to try next, and may one stay?

What is done for every event that is tried counts no references (see `borrowing`); matches are judged by the caller.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64s, Int64Rows, Int64s
from cepheid.engine.data.columns import Columns, PredicateCall
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.timed import Stacks, Timed, first_beyond, first_reaching, next_by
from cepheid.engine.kernels.arrays import equal_codes
from cepheid.engine.kernels.compile import borrowing, inlined
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.program.tables import CASE, CONTIGUOUS, SKIP_NEXT, Program
from cepheid.engine.scoring.confidence.bounds import tighten
from cepheid.engine.scoring.match_score import MatchScore, likely
from cepheid.engine.search.intervals.results import EVALUATED, PARTIAL

UNTESTED = -1  # in `case`


class Steps(NamedTuple):
    """In which order places are filled, and where the search stands. Step k fills place order[k]."""

    shared: bool  # can one event fill several places?
    forward: bool  # is it the order of the pattern?
    follows_next: bool  # is the next event selected?
    contiguous: bool
    order: Int64s
    places: Int64Rows  # row k: the places that are filled after step k, in ascending order
    inserted: Int64s  # where the place of step k stands among them
    case: Int64s  # by step: the case of the compiled function that tests it
    simple: Int64s  # by place: 1 if any event of its stack can take it, whatever came before
    low: Int64Rows  # row k: valid bounds after step k
    high: Int64Rows
    at: Int64s  # by place: the event that was chosen
    cursor: Int64s  # by step: the entry of the stack that is tried next...
    stop: Int64s  # ... and the first one that need not be tried
    nearest: Int64s  # by step: the latest time of the next event, as far as it is known
    step: Int64s  # one number: the step at hand
    counted: Int64s  # lengths and aggregates, of which there are none
    running: Float64s


def steps_of(program: Program, placed: Program, order: tuple[int, ...], shared: bool, compared: int) -> Steps:
    """The steps of a search in some order, for which `placed` has the conditions."""
    length = program.places
    places, inserted = np.zeros((length, length), np.int64), np.zeros(length, np.int64)
    case = np.full(length, UNTESTED)
    simple = np.zeros(length, np.int64)
    for step, place in enumerate(order):
        places[step, : step + 1] = sorted(order[: step + 1])
        inserted[step] = sorted(order[: step + 1]).index(place)
        test = placed.moments[3 * place]
        if test < placed.moments[3 * place + 1]:
            case[step] = placed.tests[test, CASE]
        simple[place] = program.moments[3 * place] == program.moments[3 * place + 1] and compared == 0
    return Steps(
        shared,
        order == tuple(range(length)),
        program.strategy == SKIP_NEXT,
        program.strategy == CONTIGUOUS,
        np.array(order, np.int64),
        places,
        inserted,
        case,
        simple,
        np.zeros((length, length), np.int64),
        np.zeros((length, length), np.int64),
        np.zeros(length + program.negatives, np.int64),
        np.zeros(length, np.int64),
        np.zeros(length, np.int64),
        np.zeros(length, np.int64),
        np.zeros(1, np.int64),
        np.empty(0, np.int64),
        np.empty(0, np.float64),
    )


@inlined
def begin_search(stacks: Stacks, steps: Steps, part: int) -> None:
    """Goes to the first event of a partition; not at all, if some place can be filled by none."""
    steps.step[0] = 0
    steps.cursor[0], steps.stop[0] = stacks.begin[steps.order[0], part], stacks.begin[steps.order[0], part + 1]
    steps.nearest[0] = NEVER
    for place in range(len(steps.order)):
        if stacks.begin[place, part] == stacks.begin[place, part + 1]:
            steps.step[0] = -1


@inlined
def agrees_with_chosen(timed: Timed, steps: Steps, step: int, event: int) -> bool:
    """Is it another event than those chosen before, and equal to them in the attributes that are compared?"""
    order, at = steps.order, steps.at
    agrees = True
    if steps.shared:
        for index in range(step):
            agrees = agrees and at[order[index]] != event
    if timed.compared.shape[0] > 0:
        for index in range(step):
            agrees = agrees and equal_codes(timed.compared, at, order[index], order[index] + 1, event)
    return agrees


@inlined
def fits(timed: Timed, steps: Steps, step: int, event: int, window: int) -> bool:
    """Are there valid bounds with the new event among the others? Leaves them in the step's row."""
    low, high, slot = steps.low, steps.high, steps.inserted[step]
    for index in range(slot):
        low[step, index], high[step, index] = low[step - 1, index], high[step - 1, index]
    low[step, slot], high[step, slot] = timed.lower[event], timed.upper[event]
    for index in range(slot, step):
        low[step, index + 1], high[step, index + 1] = low[step - 1, index], high[step - 1, index]
    return tighten(steps.places[step], low[step], high[step], step + 1, len(steps.order), window)


@inlined
def passes_next(timed: Timed, stacks: Stacks, steps: Steps, part: int, step: int) -> bool:
    """Does some event surely come between the new one and a neighbour, so that they are never selected together?"""
    places, place, slot = steps.places, steps.order[step], steps.inserted[step]
    low, high = steps.low, steps.high
    passed = False
    if slot > 0 and places[step, slot - 1] == place - 1 and steps.simple[place] == 1:
        passed = low[step, slot] > next_by(stacks, timed.lower, part, place, high[step, slot - 1])
    if not passed and slot < step and places[step, slot + 1] == place + 1 and steps.simple[place + 1] == 1:
        passed = low[step, slot + 1] > next_by(stacks, timed.lower, part, place + 1, high[step, slot])
    return passed


@inlined
def likely_among(timed: Timed, match_score: MatchScore, steps: Steps, step: int, event: int) -> bool:
    """Could a match be confident enough in which the new event has these neighbours?"""
    slot = steps.inserted[step]
    left = steps.at[steps.places[step, slot - 1]] if slot > 0 else -1
    right = steps.at[steps.places[step, slot + 1]] if slot < step else -1
    return likely(timed, match_score, left, event, right)


@inlined
def go_deeper(timed: Timed, stacks: Stacks, steps: Steps, part: int, step: int, window: int) -> None:
    """Goes to the events for the next step that the chosen events' bounds and the window leave."""
    low, high, places = steps.low, steps.high, steps.places
    following, index = steps.order[step + 1], steps.inserted[step + 1]
    reach_from, reach_to = low[step, step] - window + 1, high[step, 0] + window - 1
    if index > 0:
        reach_from = max(reach_from, low[step, index - 1] + following - places[step, index - 1])
    if index <= step:
        reach_to = min(reach_to, high[step, index] + following - places[step, index])
    bottom, top = stacks.begin[following, part], stacks.begin[following, part + 1]
    top = first_beyond(stacks, timed.lower, bottom, top, reach_to)
    steps.cursor[step + 1] = first_reaching(stacks, bottom, top, reach_from)
    steps.stop[step + 1] = top
    steps.nearest[step + 1] = NEVER
    if steps.contiguous and steps.forward:
        # In the row behind all components are the events of all.
        everyone = len(steps.at)
        steps.nearest[step + 1] = next_by(stacks, timed.lower, part, everyone, high[step, step])
    steps.step[0] = step + 1


@borrowing
def next_match(
    timed: Timed,
    match_score: MatchScore,
    stacks: Stacks,
    steps: Steps,
    columns: Columns,
    predicate: PredicateCall,
    part: int,
    counters: Int64s,
) -> bool:
    """Goes on to the next choice of events that is possible in some world; False: the partition has no more."""
    window, final = match_score.window, len(steps.order) - 1
    at, cursor, nearest = steps.at, steps.cursor, steps.nearest
    while steps.step[0] >= 0:
        if stop_flag() != 0:
            return False
        step = steps.step[0]
        if cursor[step] >= steps.stop[step]:
            steps.step[0] -= 1
            continue
        event = stacks.member[cursor[step]]
        cursor[step] += 1
        if timed.lower[event] > nearest[step]:
            cursor[step] = steps.stop[step]
            continue
        if not agrees_with_chosen(timed, steps, step, event):
            continue
        at[steps.order[step]] = event
        if steps.case[step] != UNTESTED:
            counters[EVALUATED] += 1
            if not predicate(steps.case[step], at, steps.counted, steps.running, columns):
                continue
        sure = steps.follows_next and steps.forward and timed.exists[event] >= 1.0  # selected, if nothing comes before
        if sure and step > 0 and timed.lower[event] > steps.high[step - 1, step - 1]:
            nearest[step] = min(nearest[step], timed.upper[event])
        if not fits(timed, steps, step, event, window):
            continue
        if steps.follows_next and not steps.forward and passes_next(timed, stacks, steps, part, step):
            continue
        if match_score.least[0] > 0.0 and step > 0 and not likely_among(timed, match_score, steps, step, event):
            continue
        if step == final:
            return True
        counters[PARTIAL] += 1
        go_deeper(timed, stacks, steps, part, step, window)
    return False

"""Event-based evaluation that fills places in a fixed order, depth first (TIME sections 4.1, 4.3, C.1).

In the order of the pattern this is query-order evaluation with valid bounds kept up to date at every step; with the
rarest component first it is selectivity order. Candidates lie in order of their lower bound, so that bisection finds
those that the chosen events' bounds and the window leave. Under skip_till_next_match the latest time of the next event
ends the search early: once some event surely comes next, later ones need not be looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.candidates import WILD
from cepheid.engine.data.columns import COLUMNS, INT64S, Columns
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.timed import STACKS, TIMED, Stacks, Timed, first_beyond, first_reaching, next_by, widest
from cepheid.engine.kernels.arrays import equal_codes
from cepheid.engine.kernels.compile import borrowing, search_kernel
from cepheid.engine.kernels.conditions import EVENT, FUNCTION, LEFT, RIGHT
from cepheid.engine.kernels.partial_matches import NODES, Nodes
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.output.top import begin_partition, raise_bar
from cepheid.engine.program.tables import CASE, CONTIGUOUS, PROGRAM, SKIP_NEXT, Program
from cepheid.engine.search.intervals.results import (
    COUNTERS,
    EVALUATED,
    JUDGED,
    OVERFLOW,
    PARTIAL,
    REPORTED,
    RESULTS,
    Results,
    is_full,
    no_results,
    put,
    with_room,
)
from cepheid.engine.worth.confidence.bounds import tighten
from cepheid.engine.worth.confidence.order import counted, workspace
from cepheid.engine.worth.confidence.rivals import has_rivals
from cepheid.engine.worth.edges import CERTAIN
from cepheid.engine.worth.judge import judge
from cepheid.engine.worth.worth import WORTH, Worth, completion_of, likely

Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]


@borrowing(types.void(PROGRAM, NODES, TIMED, INT64S), inline=True)
def as_nodes(program: Program, nodes: Nodes, timed: Timed, at: Int64s) -> None:
    """Writes a complete match without groups as nodes, one for each place, for who judges it.

    All of them hold all events: conditions of a place read none behind it.
    """
    for place in range(program.places):
        nodes.entries[place, EVENT], nodes.entries[place, LEFT], nodes.entries[place, RIGHT] = (
            at[place],
            place - 1,
            place,
        )
        for other in range(program.places):
            nodes.at[place, other] = at[other]
        for row in range(nodes.codes.shape[1]):
            code = nodes.codes[place - 1, row] if place > 0 else WILD
            nodes.codes[place, row] = timed.compared[row, at[place]] if code == WILD else code


@search_kernel(
    types.Tuple((RESULTS, INT64S, types.float64))(
        TIMED,
        WORTH,
        STACKS,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        NODES,
        INT64S,
        types.boolean,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        types.int64,
        types.int64,
        types.int64,
    ),
)
def search(
    timed: Timed,
    worth: Worth,
    stacks: Stacks,
    program: Program,
    columns: Columns,
    predicate: Any,
    nodes: Nodes,
    order: Int64s,
    shared: bool,
    placed: Program,
    placed_columns: Columns,
    placed_predicate: Any,
    after: int,
    until: int,
    limit: int,
) -> tuple[Results, Int64s, float]:
    """All matches of all partitions, counters, and the cost of a confidence that was too expensive (0: none was).

    `placed` has the conditions as they are tested in this order; `shared` says that one event can fill several places.
    """
    length, following_next = program.places, program.strategy == SKIP_NEXT
    counters = np.zeros(COUNTERS, np.int64)
    results = no_results(length)
    steps, table = np.arange(length), np.full(length + 1, CERTAIN)
    room = workspace(widest(timed), length)
    places = np.zeros((length, length), np.int64)  # row k: the places filled after step k, in ascending order
    inserted = np.zeros(length, np.int64)  # where the place of step k stands among them
    for step in range(length):
        places[step, : step + 1] = np.sort(order[: step + 1])
        inserted[step] = np.searchsorted(places[step, : step + 1], order[step])
    forward = True  # the order of the pattern
    for step in range(length):
        forward = forward and order[step] == step
    simple = np.zeros(length, np.bool_)  # can any event of a place's stack take it, whatever came before?
    for place in range(length):
        simple[place] = program.moments[3 * place] == program.moments[3 * place + 1] and timed.compared.shape[0] == 0
    low, high = np.zeros((length, length), np.int64), np.zeros((length, length), np.int64)
    at = np.zeros(length + program.negatives, np.int64)
    cursor, stop = np.zeros(length, np.int64), np.zeros(length, np.int64)
    nearest = np.zeros(length, np.int64)  # the latest time of the next event, as far as it is known
    no_counts, no_sums = np.empty(0, np.int64), np.empty(0, np.float64)
    plain = not has_rivals(program)
    everyone = length + program.negatives
    lower, upper = timed.lower, timed.upper
    for part in range(stacks.begin.shape[1] - 1):
        empty = False
        for place in range(length):
            empty = empty or stacks.begin[place, part] == stacks.begin[place, part + 1]
        if empty:
            continue
        begin_partition(worth)
        step = 0
        cursor[0], stop[0] = stacks.begin[order[0], part], stacks.begin[order[0], part + 1]
        nearest[0] = NEVER
        while step >= 0:
            if stop_flag() != 0:
                return results, counters, 0.0
            if cursor[step] >= stop[step]:
                step -= 1
                continue
            event = stacks.member[cursor[step]]
            cursor[step] += 1
            place, slot = order[step], inserted[step]
            if lower[event] > nearest[step]:
                cursor[step] = stop[step]
                continue
            repeated = False
            if shared:
                for index in range(step):
                    repeated = repeated or at[order[index]] == event
            if repeated:
                continue
            if step > 0 and timed.compared.shape[0] > 0:
                differs = False
                for index in range(step):
                    differs = differs or not equal_codes(timed.compared, at, order[index], order[index] + 1, event)
                if differs:
                    continue
            at[place] = event
            test = placed.moments[3 * place]
            if test < placed.moments[3 * place + 1]:
                counters[EVALUATED] += 1
                if not placed_predicate(placed.tests[test, CASE], at, no_counts, no_sums, placed_columns):
                    continue
            if following_next and forward and step > 0 and lower[event] > high[step - 1, step - 1]:
                nearest[step] = min(nearest[step], upper[event])
            # Valid bounds with the new event among the others.
            for index in range(slot):
                low[step, index], high[step, index] = low[step - 1, index], high[step - 1, index]
            low[step, slot], high[step, slot] = lower[event], upper[event]
            for index in range(slot, step):
                low[step, index + 1], high[step, index + 1] = low[step - 1, index], high[step - 1, index]
            if not tighten(places[step], low[step], high[step], step + 1, length, worth.window):
                continue
            if following_next and not forward:
                passed = slot > 0 and places[step, slot - 1] == place - 1 and simple[place]
                if passed and low[step, slot] > next_by(timed, stacks, part, place, high[step, slot - 1]):
                    continue
                passed = slot < step and places[step, slot + 1] == place + 1 and simple[place + 1]
                if passed and low[step, slot + 1] > next_by(timed, stacks, part, place + 1, high[step, slot]):
                    continue
            if worth.least[0] > 0.0 and step > 0:
                left = at[places[step, slot - 1]] if slot > 0 else -1
                right = at[places[step, slot + 1]] if slot < step else -1
                if not likely(timed, worth, left, event, right):
                    continue
            if step < length - 1:
                counters[PARTIAL] += 1
                following = order[step + 1]
                index = inserted[step + 1]
                reach_from, reach_to = low[step, step] - worth.window + 1, high[step, 0] + worth.window - 1
                if index > 0:
                    reach_from = max(reach_from, low[step, index - 1] + following - places[step, index - 1])
                if index <= step:
                    reach_to = min(reach_to, high[step, index] + following - places[step, index])
                bottom, top = stacks.begin[following, part], stacks.begin[following, part + 1]
                top = first_beyond(stacks, timed.lower, bottom, top, reach_to)
                cursor[step + 1] = first_reaching(stacks, bottom, top, reach_from)
                stop[step + 1] = top
                nearest[step + 1] = NEVER
                if program.strategy == CONTIGUOUS and forward:
                    nearest[step + 1] = next_by(timed, stacks, part, everyone, high[step, step])
                step += 1
                continue
            known = completion_of(timed, worth, at[0], at[length - 1], True)
            if known <= after or known > until:
                continue
            counters[JUDGED] += 1
            earliest, latest = low[step, 0], high[step, step]
            confidence = -1.0
            if plain:
                confidence = counted(lower, upper, timed.share, timed.base, at, low, high, length, worth.window)
            if confidence < 0.0:
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
                    low[step],
                    high[step],
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
    return results, counters, 0.0

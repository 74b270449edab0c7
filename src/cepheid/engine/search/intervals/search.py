"""Event-based evaluation that fills places in a fixed order, depth first (TIME sections 4.1, 4.3, C.1).

In the order of the pattern this is query-order evaluation with valid bounds kept up to date at every step; with the
rarest component first it is selectivity order. Candidates lie in order of their lower bound, so that bisection finds
those that the chosen events' bounds and the window leave. Under skip_till_next_match the latest time of the next event
ends the search early: once some event surely comes next, later ones need not be looked at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import COLUMNS, INT64S, Columns
from cepheid.engine.data.timed import STACKS, TIMED, Stacks, Timed
from cepheid.engine.kernels.compile import borrowing, search_kernel
from cepheid.engine.kernels.conditions import FUNCTION
from cepheid.engine.kernels.partial_matches import NODES, Nodes
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.output.top import begin_partition, raise_bar
from cepheid.engine.program.tables import PROGRAM, Program
from cepheid.engine.search.intervals.results import (
    COUNTERS,
    JUDGED,
    OVERFLOW,
    REPORTED,
    RESULTS,
    Results,
    is_full,
    no_results,
    put,
    with_room,
)
from cepheid.engine.search.intervals.sequences import JUDGING, Judging, judge_sequence, new_judging
from cepheid.engine.search.intervals.steps import STEPS, Steps, begin_search, next_match
from cepheid.engine.worth.confidence.order import counted
from cepheid.engine.worth.confidence.rivals import has_rivals
from cepheid.engine.worth.worth import WORTH, Worth, completion_of

Int64s = npt.NDArray[np.int64]


class Search(NamedTuple):
    """What one search reads and where it has come; kernels put it together, since it holds functions."""

    timed: Timed
    worth: Worth
    stacks: Stacks
    steps: Steps
    columns: Columns  # with the predicate: the conditions as they are tested in the order of the steps
    predicate: Any
    judging: Judging
    counters: Int64s


SEARCH = types.NamedTuple((TIMED, WORTH, STACKS, STEPS, COLUMNS, FUNCTION, JUDGING, INT64S), Search)


class Asked(NamedTuple):
    """Which matches are asked for, and how many at most."""

    after: int
    until: int
    limit: int


ASKED = types.NamedUniTuple(types.int64, 3, Asked)


@borrowing(types.float64(SEARCH, ASKED, types.boolean, types.int64, RESULTS))
def search_partition(search: Search, asked: Asked, plain: bool, part: int, results: Results) -> float:
    """Reports matches of a partition until there is no room for more, and goes on there when called again.

    It makes no arrays, so that numba counts no references for each match. Says what a confidence costs that is too
    expensive (0: none was).
    """
    timed, worth, stacks, steps = search.timed, search.worth, search.stacks, search.steps
    judging, counters = search.judging, search.counters
    at, low, high = steps.at, steps.low, steps.high
    length, final = len(steps.order), len(steps.order) - 1
    while not is_full(results, length) and next_match(
        timed, worth, stacks, steps, search.columns, search.predicate, part, counters
    ):
        known = completion_of(timed, worth, at[0], at[final], True)
        if known <= asked.after or known > asked.until:
            continue
        counters[JUDGED] += 1
        earliest, latest = low[final, 0], high[final, final]
        confidence = -1.0
        if plain:
            confidence = counted(timed.lower, timed.upper, timed.share, timed.base, at, low, high, length, worth.window)
            for index in range(length):
                confidence *= timed.exists[at[index]]
        if confidence < 0.0:
            confidence, earliest, latest, cost = judge_sequence(
                timed, worth, stacks, judging, part, at, low[final], high[final]
            )
            if cost > 0.0:
                return cost
        if confidence <= 0.0 or confidence < worth.least[0]:
            continue
        if counters[REPORTED] == asked.limit:
            counters[OVERFLOW] = 1
            return 0.0
        put(results, at, judging.chain, length, known, 1.0, confidence, earliest, latest)
        raise_bar(worth, confidence)
        counters[REPORTED] += 1
    return 0.0


@search_kernel(
    types.Tuple((RESULTS, INT64S, types.float64))(
        TIMED, WORTH, STACKS, PROGRAM, COLUMNS, FUNCTION, NODES, STEPS, COLUMNS, FUNCTION, ASKED
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
    steps: Steps,
    placed_columns: Columns,
    placed_predicate: Any,
    asked: Asked,
) -> tuple[Results, Int64s, float]:
    """All matches of all partitions, counters, and the cost of a confidence that was too expensive (0: none was).

    `placed_columns` and `placed_predicate` are for the conditions as they are tested in the order of the steps.
    """
    length, plain = program.places, not has_rivals(program)
    counters, results = np.zeros(COUNTERS, np.int64), no_results(length)
    judging = new_judging(timed, program, columns, predicate, nodes)
    searching = Search(timed, worth, stacks, steps, placed_columns, placed_predicate, judging, counters)
    for part in range(stacks.begin.shape[1] - 1):
        begin_partition(worth)
        begin_search(stacks, steps, part)
        while True:
            cost = search_partition(searching, asked, plain, part, results)
            if cost > 0.0 or counters[OVERFLOW] != 0 or stop_flag() != 0:
                return results, counters, cost
            if not is_full(results, length):
                break
            results = with_room(results, length)
    return results, counters, 0.0

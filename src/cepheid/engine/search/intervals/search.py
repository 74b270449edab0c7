"""Event-based evaluation that fills places in a fixed order, depth first (TIME sections 4.1, 4.3, C.1).

In the order of the pattern this is query-order evaluation with valid bounds kept up to date at every step; with the
rarest component first it is selectivity order. Candidates lie in order of their lower bound, so that bisection finds
those that the chosen events' bounds and the window leave. Under skip_till_next_match the latest time of the next event
ends the search early: once some event surely comes next, later ones need not be looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64s, Int64s
from cepheid.engine.data.columns import Columns, PredicateCall
from cepheid.engine.data.timed import Stacks, Timed
from cepheid.engine.kernels.compile import borrowing, search_kernel
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.output.top import begin_partition, raise_bar
from cepheid.engine.scoring.confidence.competing import has_competing_events
from cepheid.engine.scoring.confidence.order import counted
from cepheid.engine.scoring.match_score import MatchScore, completion_of
from cepheid.engine.search.intervals.results import (
    COUNTERS,
    DONE,
    FULL,
    JUDGED,
    OVERFLOW,
    REPORTED,
    STOPPED,
    Results,
    SearchRequest,
    is_full,
    no_results,
    put,
    with_room,
)
from cepheid.engine.search.intervals.sequences import Complete, InPatternOrder, Judging, new_judging, report
from cepheid.engine.search.intervals.steps import Steps, begin_search, next_match


class Search(NamedTuple):
    """What one search reads and where it has come; kernels put it together, since it holds functions."""

    timed: Timed
    match_score: MatchScore
    stacks: Stacks
    steps: Steps
    columns: Columns  # with the predicate: the conditions as they are tested in the order of the steps
    predicate: PredicateCall
    judging: Judging
    counters: Int64s
    cost: Float64s


@borrowing
def search_partition(search: Search, asked: SearchRequest, plain: bool, part: int, results: Results) -> int:
    """Reports matches of a partition until there is no room for more, and goes on there when called again.

    It makes no arrays, so that numba counts no references for each match. DONE, FULL or STOPPED.
    """
    timed, match_score, stacks, steps = search.timed, search.match_score, search.stacks, search.steps
    judging, counters = search.judging, search.counters
    at, low, high = steps.at, steps.low, steps.high
    length, final = len(steps.order), len(steps.order) - 1
    match = Complete(at, low[final], high[final], counters, search.cost)
    while not is_full(results, length):
        if not next_match(timed, match_score, stacks, steps, search.columns, search.predicate, part, counters):
            return STOPPED if stop_flag() != 0 else DONE
        confidence = -1.0
        if plain:
            confidence = counted(
                timed.lower, timed.upper, timed.share, timed.base, at, low, high, length, match_score.window
            )
        if confidence < 0.0:
            if not report(timed, match_score, stacks, judging, part, match, asked, results):
                return STOPPED
            continue
        known = completion_of(timed, match_score, at[0], at[final], True)
        if known <= asked.after or known > asked.until:
            continue
        counters[JUDGED] += 1
        for index in range(length):
            confidence *= timed.exists[at[index]]
        if confidence <= 0.0 or confidence < match_score.least[0]:
            continue
        if counters[REPORTED] == asked.limit:
            counters[OVERFLOW] = 1
            return STOPPED
        put(results, at, judging.chain, length, known, 1.0, confidence, low[final, 0], high[final, final])
        raise_bar(match_score, confidence)
        counters[REPORTED] += 1
    return FULL


@search_kernel
def search(
    timed: Timed,
    match_score: MatchScore,
    stacks: Stacks,
    query: InPatternOrder,
    predicate: PredicateCall,
    steps: Steps,
    placed_columns: Columns,
    placed_predicate: PredicateCall,
    asked: SearchRequest,
) -> tuple[Results, Int64s, float]:
    """All matches of all partitions, counters, and the cost of a confidence that was too expensive (0: none was).

    `placed_columns` and `placed_predicate` are for the conditions as they are tested in the order of the steps.
    """
    length, plain = query.program.places, not has_competing_events(query.program)
    counters, results, cost = np.zeros(COUNTERS, np.int64), no_results(length), np.zeros(1)
    judging = new_judging(timed, query, predicate)
    searching = Search(timed, match_score, stacks, steps, placed_columns, placed_predicate, judging, counters, cost)
    for part in range(stacks.begin.shape[1] - 1):
        begin_partition(match_score)
        begin_search(stacks, steps, part)
        ended = search_partition(searching, asked, plain, part, results)
        while ended == FULL:
            results = with_room(results, length)
            ended = search_partition(searching, asked, plain, part, results)
        if ended == STOPPED:
            break
    return results, counters, cost[0]

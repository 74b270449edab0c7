"""Missing events and imprecise times together: candidates by search, their expected scores by recurrences.

A match says which events were seen and which components were missed. Its probability is the expectation of the score of
missing events (AYAC) over the possible worlds of imprecise times (TIME), its confidence the probability of the worlds
that contain it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cepheid.engine.data.columns import fill
from cepheid.engine.data.matches import MISSING, Chosen, Float64s, Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.data.timed import prepare
from cepheid.engine.search.intervals.query import MAX_COST, least_confidence, window_in_instants
from cepheid.engine.search.intervals.report import matches_of
from cepheid.engine.search.queues import ROUNDING, as_arrays
from cepheid.engine.search.queues.clauses import compile_clauses
from cepheid.engine.search.unseen_search import Aim, search_unseen
from cepheid.engine.worth.edges import Edges
from cepheid.engine.worth.spans import edges_in_instants
from cepheid.plan.physical import Plan


def run_unseen(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
    """All matches that are probable and confident enough, with after < completion <= until."""
    bound = plan.bound
    assert bound.window is not None
    prepared = prepare(plan, events)
    window = window_in_instants(plan, prepared.step)
    edges, spans = edges_in_instants(plan, window, prepared.step)
    clauses = compile_clauses(bound)
    columns = fill(clauses.predicate.layout, events.table, prepared.rows, bound.schema)
    aim = Aim(
        window,
        bound.window.length,
        (bound.syntax.threshold or 0.0) - ROUNDING,
        least_confidence(plan),
        float(plan.options.get("max_cost", MAX_COST)),
        best_from_opening(edges, len(bound.positives)),
    )
    kernel = search_unseen if clauses.predicate.compiled else search_unseen.py_func
    found, probabilities, counters, cost = kernel(
        prepared.timed,
        as_arrays(plan, edges, clauses),
        aim,
        prepared.stacks,
        spans,
        columns,
        clauses.predicate.call,
        after,
        until,
        plan.limits.max_matches,
    )
    matches = matches_of(plan, prepared, found, counters, cost)
    size = len(matches)
    chosen = tuple(
        Chosen(np.where(found.chosen[:size, place] == MISSING, MISSING, group.rows))
        for place, group in enumerate(matches.chosen)
    )
    return replace(matches, chosen=chosen, probability=np.minimum(probabilities[:size], 1.0))


def best_from_opening(edges: Edges, count: int) -> Float64s:
    """For each positive component, the best log score of any path from the window's opening to it."""
    best = np.full(count, -np.inf)
    for place in range(count):
        best[place] = max([edges.highest[0, place], *(best[:place] + edges.highest[1 : place + 1, place])])
    return best

"""The `intervals` engine: event-based evaluation (TIME section 4), by the method that suits query and stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cepheid.engine.data.matches import Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.data.timed import Prepared, prepare
from cepheid.engine.program.placing import Order
from cepheid.engine.search.intervals.forward import search_forward
from cepheid.engine.search.intervals.passes import any_state, sorted_pass
from cepheid.engine.search.intervals.query import IntervalQuery, compile_conditions, compile_query
from cepheid.engine.search.intervals.report import matches_of, picked, searched
from cepheid.engine.search.intervals.results import SearchRequest
from cepheid.engine.search.intervals.search import search
from cepheid.engine.search.intervals.sequences import InPatternOrder, Placed
from cepheid.engine.search.intervals.steps import steps_of
from cepheid.errors import EngineError, closest
from cepheid.plan.physical import Plan

METHODS = ("query-order", "any-state", "sorted", "selectivity")


def run_intervals(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
    """All matches with after < completion <= until, with confidence and tightest range (and score, if one is asked)."""
    prepared = prepare(plan, events)
    query = compile_query(plan, events, prepared)
    low, high = searched(plan, after, until)
    if plan.bound.has_kleene or query.match_score.scored:
        found = run_forward(plan, prepared, query, low, high)
    else:
        found = run_sequences(plan, events, prepared, query, low, high)
    return picked(plan, events, matches_of(plan, prepared, *found), until)


def run_forward(plan: Plan, prepared: Prepared, query: IntervalQuery, after: int, until: int) -> Any:
    """Queries with Kleene plus or missing events, in the order of the pattern."""
    method = plan.options.get("method") or "auto"
    if method not in ("auto", "query-order"):
        what = "Kleene plus" if plan.bound.has_kleene else "missing events"
        raise EngineError(f"method '{method}' does not support {what}", hint="use method='query-order'")
    return search_forward(
        prepared.timed,
        query.match_score,
        prepared.stacks,
        query.program,
        query.columns,
        query.predicate,
        query.nodes,
        SearchRequest(after, until, plan.limits.max_matches, plan.limits.max_partial_matches),
    )


def run_sequences(
    plan: Plan, events: EventTable, prepared: Prepared, query: IntervalQuery, after: int, until: int
) -> Any:
    """Sequences of single events: what the kernel of a method finds, counters, the cost of what was too expensive."""
    positives, limits = len(plan.bound.positives), plan.limits
    method = chosen_method(plan, prepared)
    order = tuple(search_order(plan, prepared, method))
    forward = order == tuple(range(positives)) and method not in ("any-state", "sorted")
    asked: Order = "any" if method in ("any-state", "sorted") else order
    placed: Any = query if forward else compile_conditions(plan, events, prepared, asked)
    events_and_query: Any = (prepared.timed, query.match_score, prepared.stacks)
    judged: Any = (InPatternOrder(query.program, query.columns, query.nodes), query.predicate)
    searching: Any = (Placed(placed.program, placed.columns), placed.predicate)
    asked_for = SearchRequest(after, until, limits.max_matches, limits.max_partial_matches)
    kernel: Any
    match method:
        case "any-state":
            kernel = any_state
            return kernel(*events_and_query, prepared.starts, *judged, *searching, asked_for)
        case "sorted":
            kernel = sorted_pass
            return kernel(*events_and_query, *judged, *searching, asked_for)
    compared = prepared.timed.compared.shape[0]
    steps = steps_of(query.program, placed.program, order, shares_events(prepared, positives), compared)
    kernel = search
    return kernel(*events_and_query, *judged, steps, placed.columns, placed.predicate, asked_for)


def shares_events(prepared: Prepared, positives: int) -> bool:
    """Can one event fill several places?"""
    bits = prepared.timed.mask & ((1 << positives) - 1)
    return bool(np.any(bits & (bits - 1)))


def chosen_method(plan: Plan, prepared: Prepared) -> str:
    """The method that was asked for, or the one that the counts of candidates speak for.

    Both orders of the search beat the passes that keep runs (TIME figures 4(b) to 4(d)). The order of the pattern ends
    the search for the next event early, and shares work between matches that begin alike; it loses where its first
    components are far more frequent than the rarest.
    """
    method = plan.options.get("method") or "auto"
    if method != "auto":
        if method not in METHODS:
            guess = closest(method, METHODS)
            known = f"did you mean '{guess}'?" if guess else f"the methods are {', '.join(METHODS)}"
            raise EngineError(f"no method '{method}' for imprecise times; {known}")
        return str(method)
    counts = frequencies(prepared, len(plan.bound.positives))
    return "selectivity" if counts[0] > RARER * counts.min() else "query-order"


RARER = 2.0  # how many times rarer than the first component the rarest must be to begin with it


def frequencies(prepared: Prepared, positives: int) -> Any:
    """How many candidates each positive component has."""
    return np.diff(prepared.stacks.begin[:positives, [0, -1]], axis=1)[:, 0]


def search_order(plan: Plan, prepared: Prepared, method: str) -> Sequence[int]:
    """The order in which places are filled: that of the pattern; or the rarest first, then what conditions tie to it.

    TIME orders by selectivity alone; a component that no condition ties to the chosen ones multiplies them all.
    """
    bound = plan.bound
    left = list(range(len(bound.positives)))
    if method != "selectivity":
        return left
    counts = frequencies(prepared, len(left))
    tied = [frozenset(bound.place_of[name] for name in conjunct.variables) for conjunct in bound.conjuncts]
    order: list[int] = []
    while left:
        known = frozenset(order)
        loose = {
            place: not any(place in each and each <= known | {place} for each in tied if len(each) > 1)
            for place in left
        }
        order.append(min(left, key=lambda place: (loose[place], counts[place], place)))
        left.remove(order[-1])
    return order

"""The `intervals` engine: event-based evaluation (TIME section 4), by the method that suits query and stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cepheid.engine.data.columns import Columns, fill
from cepheid.engine.data.matches import Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.data.timed import Prepared, prepare
from cepheid.engine.search.intervals.grouped import compile_grouped
from cepheid.engine.search.intervals.groups import search_groups
from cepheid.engine.search.intervals.passes import any_state, sorted_pass
from cepheid.engine.search.intervals.query import Compiled, compile_query
from cepheid.engine.search.intervals.report import matches_of, matches_of_groups, picked, searched
from cepheid.engine.search.intervals.search import search
from cepheid.errors import EngineError, closest
from cepheid.plan.physical import Plan

METHODS = ("query-order", "any-state", "sorted", "selectivity")


def run_intervals(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
    """All matches with after < completion <= until, with confidence and tightest range."""
    if plan.model is not None or plan.bound.syntax.threshold is not None:
        from cepheid.engine.search.unseen import run_unseen

        return run_unseen(plan, events, after, until)
    prepared = prepare(plan, events)
    low, high = searched(plan, after, until)
    if plan.bound.has_kleene:
        return picked(plan, events, run_groups(plan, events, prepared, low, high), until)
    positives = len(plan.bound.positives)
    method = chosen_method(plan, prepared)
    order = search_order(plan, prepared, method)
    compared = prepared.timed.compared.shape[0]
    compiled = compile_query(plan, order, shares_events(prepared, positives), prepared.step, compared)
    columns = fill(compiled.predicate.layout, events.table, prepared.rows, plan.bound.schema)
    found, counters, cost = evaluate(method, prepared, compiled, columns, low, high, plan)
    return picked(plan, events, matches_of(plan, prepared, found, counters, cost), until)


def run_groups(plan: Plan, events: EventTable, prepared: Prepared, after: int, until: int) -> Matches:
    """Queries with Kleene plus, in the order of the pattern."""
    method = plan.options.get("method") or "auto"
    if method not in ("auto", "query-order"):
        raise EngineError(f"method '{method}' does not know Kleene plus", hint="use method='query-order'")
    grouped = compile_grouped(plan, events, prepared)
    written, counters, cost = search_groups(
        prepared.timed,
        grouped.shape,
        prepared.stacks,
        grouped.program,
        grouped.columns,
        grouped.predicate,
        grouped.nodes,
        after,
        until,
        plan.limits.max_matches,
    )
    return matches_of_groups(plan, prepared, written, counters, cost)


def evaluate(
    method: str, prepared: Prepared, compiled: Compiled, columns: Columns, after: int, until: int, plan: Plan
) -> Any:
    """What the kernel of a method finds, its counters, and the cost of a confidence that was too expensive."""
    timed, shape, stacks, call = prepared.timed, compiled.shape, prepared.stacks, compiled.predicate.call
    limits = plan.limits
    kernel: Any
    match method:
        case "any-state":
            kernel = any_state if compiled.predicate.compiled else any_state.py_func
            runs = limits.max_partial_matches
            starts = prepared.starts
            return kernel(timed, shape, stacks, starts, columns, call, after, until, limits.max_matches, runs)
        case "sorted":
            kernel = sorted_pass if compiled.predicate.compiled else sorted_pass.py_func
            runs = limits.max_partial_matches
            return kernel(timed, shape, stacks, columns, call, after, until, limits.max_matches, runs)
    kernel = search if compiled.predicate.compiled else search.py_func
    return kernel(timed, shape, stacks, columns, call, after, until, limits.max_matches)


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

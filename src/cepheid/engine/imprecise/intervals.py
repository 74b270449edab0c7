"""The `intervals` engine: event-based evaluation (TIME section 4), by the method that suits query and stream."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cepheid.engine.columns import fill
from cepheid.engine.events import EventTable
from cepheid.engine.imprecise.found import EVALUATED, JUDGED, OVERFLOW, PARTIAL
from cepheid.engine.imprecise.query import compile_query, refuses
from cepheid.engine.imprecise.report import check_cost, picked, waits_for_end
from cepheid.engine.imprecise.search import search
from cepheid.engine.imprecise.timed import Prepared, prepare
from cepheid.engine.limits import check_limit
from cepheid.engine.matches import NEVER, Chosen, Matches
from cepheid.errors import EngineError, closest
from cepheid.plan.physical import Plan

METHODS = ("query-order", "any-state", "sorted", "selectivity")
BEGINNING = np.iinfo(np.int64).min

__all__ = ["METHODS", "refuses", "run_intervals"]


def run_intervals(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
    """All matches with after < completion <= until, with confidence and tightest range."""
    prepared = prepare(plan, events)
    method = chosen_method(plan, prepared)
    order = search_order(prepared, len(plan.bound.positives), method)
    compiled = compile_query(plan, order, shares_events(prepared, len(plan.bound.positives)), prepared.step)
    columns = fill(compiled.predicate.layout, events.table, prepared.rows, plan.bound.schema)
    if waits_for_end(plan):
        after, until = BEGINNING, NEVER if until == NEVER else BEGINNING
    kernel = search if compiled.predicate.compiled else search.py_func
    results, counters, cost = kernel(
        prepared.timed,
        compiled.shape,
        prepared.stacks,
        columns,
        compiled.predicate.call,
        after,
        until,
        plan.limits.max_matches,
    )
    check_cost(cost)
    size = int(results.size[0])
    rows = prepared.rows
    step = prepared.step
    matches = Matches(
        tuple(Chosen(rows[results.chosen[:size, place]]) for place in range(len(plan.bound.positives))),
        results.completion[:size],
        confidence=results.confidence[:size],
        earliest=results.earliest[:size] * step,
        latest=results.latest[:size] * step,
        counters={
            "scanned": prepared.scanned,
            "candidates": len(rows),
            "evaluations": int(counters[EVALUATED]),
            "partial": int(counters[PARTIAL]),
            "judged": int(counters[JUDGED]),
        },
        truncated=check_limit(plan, "max_matches", bool(counters[OVERFLOW])),
    )
    return picked(plan, events, matches, until)


def shares_events(prepared: Prepared, positives: int) -> bool:
    """Can one event fill several places?"""
    bits = prepared.timed.mask & ((1 << positives) - 1)
    return bool(np.any(bits & (bits - 1)))


def chosen_method(plan: Plan, prepared: Prepared) -> str:
    """The method that was asked for, or the one that the counts of candidates speak for."""
    method = plan.options.get("method") or "auto"
    if method != "auto":
        if method not in METHODS:
            guess = closest(method, METHODS)
            known = f"did you mean '{guess}'?" if guess else f"the methods are {', '.join(METHODS)}"
            raise EngineError(f"no method '{method}' for imprecise times; {known}")
        return str(method)
    return "query-order"


def search_order(prepared: Prepared, positives: int, method: str) -> Sequence[int]:
    """The order in which places are filled: that of the pattern, or the rarest first."""
    if method != "selectivity":
        return range(positives)
    counts = np.diff(prepared.stacks.begin[:positives, [0, -1]], axis=1)[:, 0]
    return [int(place) for place in np.argsort(counts, kind="stable")]

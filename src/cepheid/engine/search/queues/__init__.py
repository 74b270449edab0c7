"""The engine for missing events (AYAC): probabilistic arrival queues with score bounds.

`edges` says what may be missing and at what score, `clauses` what must hold among the events that were seen,
`kernel` scans and generates.
"""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.candidates import candidates
from cepheid.engine.data.columns import fill
from cepheid.engine.data.matches import MISSING, Chosen, Int64s, Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.kernels.arrays import kernel_events
from cepheid.engine.limits import check_limit
from cepheid.engine.search.queues.clauses import Clause, CompiledClauses, compile_clauses, refusal
from cepheid.engine.search.queues.generate import Found, generate
from cepheid.engine.search.queues.query import (
    BASE,
    CONDITION,
    DROPPED,
    EVALUATED,
    KILLED,
    NEGATION,
    NOTHING,
    OVERFLOW,
    PLACES,
    STACKED,
    Lossy,
)
from cepheid.engine.worth.edges import Edges, build_edges, describe_edges
from cepheid.errors import EngineError
from cepheid.language.bound import BoundQuery
from cepheid.plan.physical import Plan

ROUNDING = 1e-9  # a probability that reaches its threshold but for rounding has reached it

__all__ = ["describe_edges", "run"]


def run(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
    """All matches that are probable enough, with after < completion <= until."""
    edges = build_edges(plan)
    refused = refusal(plan.bound)
    if refused is not None:
        raise EngineError(f"the engine for missing events cannot run this query: {refused}")
    clauses = compile_clauses(plan.bound)
    prepared = candidates(plan, events)
    columns = fill(clauses.predicate.layout, events.table, prepared.rows, plan.bound.schema)
    kernel = generate if clauses.predicate.compiled else generate.py_func
    found, counters = kernel(
        kernel_events(prepared),
        as_arrays(plan, edges, clauses),
        columns,
        edges.tables,
        clauses.predicate.call,
        after,
        until,
        plan.limits.max_matches,
    )
    truncated = check_limit(plan, "max_matches", bool(counters[OVERFLOW]))
    return Matches(
        _chosen(plan.bound, found, prepared.rows),
        found.completion,
        probability=np.exp(found.score),
        counters={
            "scanned": prepared.scanned,
            "candidates": len(prepared),
            "queued": int(counters[STACKED]),
            "dropped_by_bound": int(counters[DROPPED]),
            "evaluations": int(counters[EVALUATED]),
            "killed": int(counters[KILLED]),
        },
        truncated=truncated,
    )


def as_arrays(plan: Plan, edges: Edges, compiled: CompiledClauses) -> Lossy:
    bound, clauses = plan.bound, compiled.clauses
    assert bound.window is not None
    threshold = (bound.syntax.threshold or 0.0) - ROUNDING
    known = []
    for index, negation in enumerate(bound.negations):
        # Its interval is known once the search has come down to the component before it.
        lowest = -1 if negation.after is None or negation.before is None else 2 * negation.after
        known.append(min([lowest, *(clause.known for clause in clauses if clause.owner == index)]))
    fields = [(c.owner, c.branch, c.every, c.pairs, c.known) for c in clauses]
    described = np.zeros((len(clauses), PLACES + compiled.places.shape[1]), np.int64)
    if clauses:
        described[:, :BASE], described[:, BASE] = fields, compiled.base
        described[:, PLACES:] = compiled.places
    return Lossy(
        len(bound.positives),
        len(bound.negations),
        bound.window.length,
        bound.postponed,
        len(bound.branches),
        float(np.log(threshold)) if threshold > 0 else -np.inf,
        edges.scale,
        np.array([component.kleene for component in bound.positives], np.int64),
        edges.number,
        edges.highest,
        edges.monotone,
        _decides(bound, clauses, known, bool(plan.options.get("missing_last", False))),
        np.array(
            [(-1 if n.after is None else n.after, ready) for n, ready in zip(bound.negations, known, strict=True)],
            np.int64,
        ).reshape(-1, 2),
        described,
        compiled.tested,
    )


def _decides(bound: BoundQuery, clauses: tuple[Clause, ...], known: list[int], missing_last: bool) -> Int64s:
    """What each step of a path decides, [source + 1, place]: conditions, or whether a negated event was seen."""
    count = len(bound.positives)
    found = np.full((count + 1, count + 1), NOTHING, np.int64)
    for source in range(-1, count):
        for place in range(count + 1):
            low, high = 2 * source if source >= 0 else -1, 2 * place + (1 if place == count else 0)
            early = any(clause.owner < 0 and clause.branch < 0 and low <= clause.known < high for clause in clauses)
            if early or (source < 0 and len(bound.branches) > 1):
                found[source + 1, place] = CONDITION
            # At the end, a negated component whose neighbour behind is missing is looked at, too.
            elif any(low <= ready < high for ready in known) or (source < 0 and known and missing_last):
                found[source + 1, place] = NEGATION
    return found


def _chosen(bound: BoundQuery, found: Found, rows: Int64s) -> tuple[Chosen, ...]:
    """The entries of all matches, component by component."""
    count = len(found.begins) - 1
    match_of = np.repeat(np.arange(count), np.diff(found.begins))
    chosen = []
    for place, component in enumerate(bound.positives):
        here = found.place == place
        if component.kleene:
            sizes = np.bincount(match_of[here], minlength=count)
            chosen.append(Chosen(rows[found.event[here]], np.concatenate([[0], np.cumsum(sizes)])))
        else:
            column = np.full(count, MISSING, np.int64)
            column[match_of[here]] = rows[found.event[here]]
            chosen.append(Chosen(column))
    return tuple(chosen)

"""The engine for missing events (AYAC): probabilistic arrival queues with score bounds.

`edges` says what may be missing and at what score, the program what must hold among the events that were seen; `scan`
fills the queues, `generate` goes back through them from every event that can be the last one seen.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.candidates import Candidates, candidates, regrouped
from cepheid.engine.data.columns import Columns, fill
from cepheid.engine.data.layout import Events, lay_out
from cepheid.engine.data.matches import MISSING, Chosen, Matches, joined
from cepheid.engine.data.table import EventTable
from cepheid.engine.kernels.asked import SearchRequest
from cepheid.engine.kernels.conditions import new_scratch
from cepheid.engine.kernels.partial_matches import new_nodes
from cepheid.engine.limits import check_limit
from cepheid.engine.program.compile import CompiledProgram, compile_program
from cepheid.engine.program.tables import KLEENE, NEEDS, NEGATION_NEEDS, Program
from cepheid.engine.scoring.edges import CLOSED, Edges, build_edges, describe_edges
from cepheid.engine.scoring.match_score import ROUNDING
from cepheid.engine.search.queues.generate import Backward, Forward, Found, Scoring, generate
from cepheid.engine.search.queues.query import (
    CONDITION,
    DROPPED,
    EVALUATED,
    KILLED,
    NEGATION,
    NOTHING,
    OVERFLOW,
    STACKED,
    Score,
)
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.plan.operators import Hashed
from cepheid.plan.physical import Plan
from cepheid.plan.rules.recognise_equivalence import without_equalities

__all__ = ["QueueSearch", "describe_edges", "queue_search", "run"]


def run(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
    """All matches that are probable enough, with after < completion <= until."""
    edges = build_edges(plan)
    prepared = candidates(plan, events)
    hashed = plan.match.hashed
    if hashed is None:
        return _search(plan, plan.bound, events, edges, prepared, _anything(), (after, until))
    # What is tied together by equal values is searched for value by value, the rest among all events.
    parted, valued = regrouped(prepared, events.table, hashed.attributes)
    simpler = without_equalities(plan.bound, hashed.equalities, ()) if valued else plan.bound
    apart = _untied(plan.bound, hashed)
    found = _search(plan, simpler, events, edges, parted, _allowed(plan.bound, apart, False), (after, until))
    apart = {absent for absent in apart if _reachable(plan.bound, edges, absent)}
    if not apart or found.truncated:
        return found
    untied = _allowed(plan.bound, apart, True)
    found = joined(found, _search(plan, plan.bound, events, edges, prepared, untied, (after, until)))
    limit = plan.limits.max_matches
    if check_limit(plan, "max_matches", len(found) > limit):
        return replace(found.take(np.arange(limit)), truncated=True)
    return found


class QueueSearch(NamedTuple):
    """All of a search that depends on the query alone."""

    plan: Plan
    compiled: CompiledProgram
    forward: CompiledProgram  # in the order of the pattern, which skip_till_next_match selects by
    scoring: Scoring

    def found(self, events: Events, columns: Columns, forward: Columns, when: tuple[int, int]) -> tuple[Found, Int64s]:
        """The matches among events that lie as kernels read them, and what was counted; at most as many as may be."""
        plan, codes = self.plan, len(events.compared)
        scratch = new_scratch(self.compiled.slots, self.compiled.whole, self.compiled.number, codes)
        sizes = (self.forward.slots, self.forward.whole, self.forward.number, codes)
        found, counters = generate(
            events,
            Backward(self.compiled.program, columns, scratch),
            self.compiled.predicate.call,
            Forward(self.forward.program, forward, new_nodes(8, *sizes, new_scratch(*sizes))),
            self.forward.predicate.call,
            self.scoring,
            SearchRequest(*when, plan.limits.max_matches),
        )
        check_limit(plan, "max_matches", bool(counters[OVERFLOW]))
        return found, counters


def queue_search(plan: Plan, bound: BoundQuery, edges: Edges, allowed: Int64Rows | None = None) -> QueueSearch:
    """The search for a query of which an allowed set of components is missing."""
    compiled = compile_program(bound, order="any", variants=True)
    follows = bound.strategy is s.Strategy.SKIP_TILL_NEXT
    forward = compile_program(bound, variants=True) if follows else compiled
    score = score_of(plan, bound, edges, compiled.program, _anything() if allowed is None else allowed)
    return QueueSearch(plan, compiled, forward, Scoring(score, edges.tables))


def _search(
    plan: Plan,
    bound: BoundQuery,
    events: EventTable,
    edges: Edges,
    prepared: Candidates,
    allowed: Int64Rows,
    when: tuple[int, int],
) -> Matches:
    """The matches of a query of which an allowed set of components is missing, among events of one partition each."""
    search = queue_search(plan, bound, edges, allowed)
    columns = fill(search.compiled.layout, events.table, prepared.rows, bound.schema)
    forward = columns
    if search.forward is not search.compiled:
        forward = fill(search.forward.layout, events.table, prepared.rows, bound.schema)
    found, counters = search.found(lay_out(bound, events, prepared), columns, forward, when)
    counted = {
        "scanned": prepared.scanned,
        "candidates": len(prepared),
        "queued": int(counters[STACKED]),
        "dropped_by_bound": int(counters[DROPPED]),
        "evaluations": int(counters[EVALUATED]),
        "killed": int(counters[KILLED]),
    }
    matches = _scored(bound, found._replace(event=prepared.rows[found.event]))
    return replace(matches, counters=counted, truncated=bool(counters[OVERFLOW]))


def _anything() -> Int64Rows:
    return np.empty((0, 0), np.int64)


def _untied(bound: BoundQuery, hashed: Hashed) -> set[int]:
    """The sets of missing components that leave the others untied, as bits."""
    places = {component.variable: place for place, component in enumerate(bound.positives)}
    return {sum(1 << places[name] for name in absent) for absent in hashed.untied}


def _reachable(bound: BoundQuery, edges: Edges, absent: int) -> bool:
    """Is there a path of edges that leaves out just these components? The threshold closes many."""
    count = len(bound.positives)
    seen = [place for place in range(count) if (absent >> place) & 1 == 0]
    return all(edges.number[source + 1, target] != CLOSED for source, target in pairwise([-1, *seen, count]))


def _allowed(bound: BoundQuery, named: set[int], wanted: bool) -> Int64Rows:
    """Which places a path may come to, by what it has left out behind them: so that one of the named sets is missing,
    or (not `wanted`) any other."""
    count = len(bound.positives)
    table = np.zeros((count + 1, 1 << count), np.int64)
    for absent in range(1 << count):
        if (absent in named) != wanted:
            continue
        table[0, absent] = 1
        for place in range(count):
            if (absent >> place) & 1 == 0:
                table[place + 1, absent >> (place + 1) << (place + 1)] = 1
    return table


def score_of(plan: Plan, bound: BoundQuery, edges: Edges, program: Program, allowed: Int64Rows) -> Score:
    """What the plan asks of a match, and from where on each condition and negated component is known."""
    threshold = (bound.threshold or 0.0) - ROUNDING
    known = [_known(program, int(needs)) for needs in program.tests[: program.moments[-1], NEEDS]]
    ready = []
    for index, negation in enumerate(bound.negations):
        if negation.after is None or negation.before is None:
            ready.append(-1)
        else:  # its interval is known once the search has come down to the component before it
            ready.append(min(2 * negation.after, _known(program, int(program.negations[index, NEGATION_NEEDS]))))
    early = known[program.moments[0] : program.moments[1]]
    return Score(
        float(np.log(threshold)) if threshold > 0 else -np.inf,
        edges.scale,
        edges.number,
        edges.highest,
        edges.monotone,
        _decides(program, early, ready, bool(plan.options.get("missing_last", False))),
        np.array(known, np.int64),
        np.array(ready, np.int64),
        allowed,
        edges.hours,
        edges.day,
    )


def _known(program: Program, needs: int) -> int:
    """Twice the lowest place that is needed; one less if that is a group, which must have been left."""
    if needs == 0:
        return 2 * program.places
    lowest = (needs & -needs).bit_length() - 1
    return 2 * lowest - int(program.place[lowest, KLEENE])


def _decides(program: Program, known: list[int], ready: list[int], missing_last: bool) -> Int64s:
    """What each step of a path decides, [source + 1, place]: conditions, or whether a negated event was seen."""
    count = program.places
    found = np.full((count + 1, count + 1), NOTHING, np.int64)
    for source in range(-1, count):
        for place in range(count + 1):
            low, high = 2 * source if source >= 0 else -1, 2 * place + (1 if place == count else 0)
            if any(low <= from_here < high for from_here in known) or (source < 0 and program.judged):
                found[source + 1, place] = CONDITION
            # At the end, a negated component whose neighbour behind is missing is looked at, too.
            elif any(low <= from_here < high for from_here in ready) or (source < 0 and ready and missing_last):
                found[source + 1, place] = NEGATION
    return found


def _scored(bound: BoundQuery, found: Found) -> Matches:
    """What was found, with the rows of its events, component by component."""
    count = len(found.begins) - 1
    match_of = np.repeat(np.arange(count), np.diff(found.begins))
    chosen = []
    for place, component in enumerate(bound.positives):
        here = found.place == place
        if component.kleene:
            sizes = np.bincount(match_of[here], minlength=count)
            chosen.append(Chosen(found.event[here], np.concatenate([[0], np.cumsum(sizes)])))
        else:
            column = np.full(count, MISSING, np.int64)
            column[match_of[here]] = found.event[here]
            chosen.append(Chosen(column))
    return Matches(tuple(chosen), found.completion, probability=np.exp(found.score))

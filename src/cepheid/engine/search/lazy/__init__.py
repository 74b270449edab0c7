"""The lazy engines (LAZY): components are filled rarest first, from a buffer, not in the order of the sequence.

`lazy-chain` goes by one order for the whole stream; `lazy-tree` decides anew after every event it takes. Both return
what every other engine returns for skip_till_any_match; what they change is counted: evaluations (candidates looked
at on take edges, LAZY section 7), partial matches held at a time, events buffered at a time.

Conditions are tested as soon as the events they mention are known and scopes always end at the window, whatever the
plan says about pushing: without that, no order would be better than another.
"""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Int64s, ReadOnlyInt64s
from cepheid.engine.data.candidates import Candidates, candidates
from cepheid.engine.data.columns import fill
from cepheid.engine.data.layout import lay_out
from cepheid.engine.data.matches import Chosen, Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.data.value_index import value_index
from cepheid.engine.kernels.compile import kernel
from cepheid.engine.limits import check_limit
from cepheid.engine.program.compile import compile_program
from cepheid.engine.search.lazy.evaluation import (
    CONSTRUCTED,
    EVALUATIONS,
    NEGATED,
    OVERFLOW,
    SEGMENTS,
    STATES_MADE,
    Life,
    SearchRequest,
    evaluate,
)
from cepheid.engine.search.lazy.orders import chain_order, chain_text, scopes, tree_text
from cepheid.plan.physical import Plan

__all__ = ["chain_text", "run_chain", "run_tree", "scopes", "tree_text"]


def run_chain(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
    """All matches with after < completion <= until, filling components in the plan's order or rarest first."""
    prepared = candidates(plan, events)
    return _run(plan, events, prepared, np.array(chain_order(plan, prepared), np.int64), after, until)


def run_tree(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
    """All matches with after < completion <= until, deciding the order match by match."""
    return _run(plan, events, candidates(plan, events), np.empty(0, np.int64), after, until)


def _run(plan: Plan, events: EventTable, prepared: Candidates, order: Int64s, after: int, until: int) -> Matches:
    compiled = compile_program(plan.bound, order="any")
    columns = fill(compiled.layout, events.table, prepared.rows, plan.bound.schema)
    life = _life(plan, events, prepared)
    chosen, completion, counters = evaluate(
        lay_out(plan.bound, events, prepared),
        compiled.program,
        columns,
        compiled.predicate.call,
        value_index(plan.bound, plan.match.indexed, compiled.layout, columns, prepared.mask),
        life,
        order,
        SearchRequest(after, until, plan.limits.max_matches, bool(plan.options.get("learn", True))),
    )
    truncated = check_limit(plan, "max_matches", bool(counters[OVERFLOW]))
    rows = prepared.rows
    return Matches(
        tuple(Chosen(rows[chosen[:, place]]) for place in range(compiled.program.places)),
        completion,
        counters={
            "scanned": prepared.scanned,
            "candidates": len(prepared),
            "evaluations": int(counters[EVALUATIONS]),
            "constructed": int(counters[CONSTRUCTED]),
            "killed": int(counters[NEGATED]),
            "states": int(counters[STATES_MADE]),
            "segments": int(counters[SEGMENTS]),
            "peak_partial_matches": int((np.cumsum(life.waiting) + life.passing).max(initial=0)),
            "peak_buffered_events": _peak_buffered(prepared, life.expiry, len(life.waiting)),
        },
        truncated=truncated,
    )


# --- what would be held in memory, if the events came one by one ------------------------------------------------


def _life(plan: Plan, events: EventTable, prepared: Candidates) -> Life:
    """Room to write down when partial matches would have been held, and when each event's window has passed."""
    instants = int(events.instant[-1]) + 1 if len(events) else 0
    window = plan.bound.window
    if window is None:
        expiry = np.full(len(prepared), instants)
    elif window.events:
        expiry = passed_positions(prepared.starts, prepared.position, prepared.instant, window.length, instants)
    else:
        passed = passed_times(events.time, events.instant, window.length, instants)
        expiry = passed[prepared.rows]
    return Life(expiry, np.zeros(instants + 1, np.int64), np.zeros(instants + 1, np.int64))


def _peak_buffered(prepared: Candidates, expiry: Int64s, instants: int) -> int:
    """The most events at a time that lie in the input buffer: every candidate, until its window has passed."""
    used = prepared.mask != 0
    change = np.bincount(prepared.instant[used], minlength=instants) - np.bincount(expiry[used], minlength=instants)
    return int(np.cumsum(change).max(initial=0))


@kernel
def passed_times(time: ReadOnlyInt64s, instant: ReadOnlyInt64s, length: int, end: int) -> Int64s:
    """For each event of the table, the first instant that one window cannot hold with it; `end` if none."""
    expiry = np.empty(len(time), np.int64)
    ahead = 0
    for event in range(len(time)):
        while ahead < len(time) and time[ahead] - time[event] < length:
            ahead += 1
        expiry[event] = instant[ahead] if ahead < len(time) else end
    return expiry


@kernel
def passed_positions(starts: Int64s, position: Int64s, instant: Int64s, length: int, end: int) -> Int64s:
    """The same for windows of events, as far as candidates tell: the first one of the partition that is too far on."""
    expiry = np.empty(len(position), np.int64)
    for part in range(len(starts) - 1):
        ahead = starts[part]
        for event in range(starts[part], starts[part + 1]):
            ahead = max(ahead, event)
            while ahead < starts[part + 1] and position[ahead] - position[event] < length:
                ahead += 1
            expiry[event] = instant[ahead] if ahead < starts[part + 1] else end
    return expiry

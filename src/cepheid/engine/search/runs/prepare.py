"""From a plan and its events to what the run kernels take, and from what they give back to matches."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.candidates import Candidates, candidates
from cepheid.engine.data.columns import Columns, fill
from cepheid.engine.data.endings import with_endings
from cepheid.engine.data.last_partners import with_last_partners
from cepheid.engine.data.layout import Events, lay_out
from cepheid.engine.data.matches import MISSING, Chosen, Matches
from cepheid.engine.data.running_sums import with_running_sums
from cepheid.engine.data.table import EventTable
from cepheid.engine.program.compile import Automata, CompiledProgram, compile_runs
from cepheid.engine.program.tables import KEYS_FROM
from cepheid.engine.search.runs.by_value import Waits, make_state_waits, make_waits
from cepheid.engine.search.runs.enumerate import EVENTS_LISTED, FOUND, Listed, split_place
from cepheid.engine.search.runs.moves import EVALUATED, KILLED, MERGED, PEAK_BUFFERED, PEAK_RUNS, Widths
from cepheid.engine.search.runs.scan import Machine
from cepheid.language.bound import BoundQuery
from cepheid.plan.automaton import Automaton
from cepheid.plan.ends import with_ends
from cepheid.plan.lowering import automaton_of
from cepheid.plan.physical import Plan


@dataclass(frozen=True)
class Prepared:
    """A query and its candidates, ready for a kernel."""

    plan: Plan
    compiled: CompiledProgram
    candidates: Candidates
    events: Events
    columns: Columns
    widths: Widths  # of a run's rows, if runs are merged
    machine: Machine

    def counters(self, state: Int64s) -> dict[str, int]:
        """What the kernel counted."""
        return {
            "scanned": self.candidates.scanned,
            "candidates": len(self.candidates),
            "evaluations": int(state[EVALUATED]),
            "killed": int(state[KILLED]),
            "merged": int(state[MERGED]),
            "peak_partial_matches": int(state[PEAK_RUNS]),
            "peak_buffered_events": int(state[PEAK_BUFFERED]),
        }


def prepare(plan: Plan, events: EventTable, which: Automata = "states") -> Prepared:
    """Compiles the query and lays its candidates out."""
    if plan.bound.is_linear:
        plan, events = with_endings(*with_last_partners(with_running_sums(plan, events), events))
    else:
        plan = replace(plan, match=replace(plan.match, bound=with_ends(plan.bound)))
    compiled, graph = compile_runs(plan.bound, which)
    found = candidates(plan, events)
    program = compiled.program
    columns = fill(compiled.layout, events.table, found.rows, plan.bound.schema)
    codes = len(found.compared)
    keys = int(np.diff(program.place[:, KEYS_FROM]).max(initial=0))
    machine = Machine(program, graph)
    widths = Widths(codes, compiled.slots, compiled.whole, compiled.number, 1 + codes + keys)
    return Prepared(plan, compiled, found, lay_out(plan.bound, events, found), columns, widths, machine)


def waits_for_values(prepared: Prepared) -> Waits:
    """Which runs are found by value. Contiguity looks at all of them, and so do windows over several partitions."""
    plan, compiled = prepared.plan, prepared.compiled
    bound = plan.bound
    if not bound.is_linear and prepared.events.ordered and not bound.contiguous and plan.push_predicates:
        automaton = automaton_of(bound)
        assert isinstance(automaton, Automaton)
        return make_state_waits(bound, automaton, compiled, prepared.columns, prepared.candidates.mask)
    if not prepared.events.ordered:
        return make_waits(plan.bound, (), compiled, prepared.columns, prepared.candidates.mask)
    return make_waits(plan.bound, plan.match.indexed, compiled, prepared.columns, prepared.candidates.mask)


def to_matches(prepared: Prepared, listed: Listed, state: Int64s, truncated: bool) -> Matches:
    """The matches that a kernel wrote down."""
    found = matches_of(prepared.plan.bound, listed, prepared.candidates.rows)
    return replace(found, counters=prepared.counters(state), truncated=truncated)


def matches_of(bound: BoundQuery, listed: Listed, row_of: Int64s) -> Matches:
    """The matches that are written down; `row_of` gives the table row of each event."""
    found = int(listed.filled[FOUND])
    sizes = listed.sizes[:found]
    starts = np.concatenate([[0], np.cumsum(sizes.sum(axis=1))])[:-1].astype(np.int64)
    events = listed.events[: int(listed.filled[EVENTS_LISTED])]
    chosen = []
    for place, component in enumerate(bound.positives):
        rows, offsets = split_place(events, sizes, found, starts, row_of, place)
        if not component.kleene and len(rows) < found:  # an optional part, or another alternative was chosen
            filled = np.full(found, MISSING, np.int64)
            filled[sizes[:, place] > 0] = rows
            rows = filled
        chosen.append(Chosen(rows, offsets if component.kleene else None))
    return Matches(tuple(chosen), listed.known[:found].copy())

"""From a plan and its events to what the run kernels take, and from what they give back to matches."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cepheid.engine.data.candidates import Candidates, candidates
from cepheid.engine.data.columns import Columns, fill
from cepheid.engine.data.endings import with_endings
from cepheid.engine.data.layout import Events, lay_out
from cepheid.engine.data.matches import MISSING, Chosen, Int64s, Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.program.compile import Automata, CompiledProgram, compile_program, compile_states_program
from cepheid.engine.program.graph import Graph, sequence_graph
from cepheid.engine.program.tables import KEYS_FROM
from cepheid.engine.search.runs.by_value import Waits, make_state_waits, make_waits
from cepheid.engine.search.runs.enumerate import EVENTS_LISTED, FOUND, Listed, split_place
from cepheid.engine.search.runs.moves import EVALUATED, KILLED, MERGED, PEAK_BUFFERED, PEAK_RUNS, Widths
from cepheid.engine.search.runs.scan import Machine
from cepheid.language.bound import BoundQuery
from cepheid.plan.ends import with_ends
from cepheid.plan.physical import Plan
from cepheid.plan.states import States, compile_states, every_beginning


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


def prepare(plan: Plan, events: EventTable) -> Prepared:
    """Compiles the query and lays its candidates out."""
    plan, events = with_endings(plan, events)
    compiled = compile_program(plan.bound)
    return _prepared(plan, events, compiled, sequence_graph(compiled.program))


def prepare_states(plan: Plan, events: EventTable, which: Automata = "states") -> Prepared:
    """The same for a pattern that is an expression, by its states."""
    plan = replace(plan, match=replace(plan.match, bound=with_ends(plan.bound)))
    automaton = compile_states(plan.bound)
    assert isinstance(automaton, States)
    if which != "states":
        automaton = every_beginning(automaton, refused=which != "beginnings")
    return _prepared(plan, events, *compile_states_program(plan.bound, automaton, which))


def _prepared(plan: Plan, events: EventTable, compiled: CompiledProgram, graph: Graph) -> Prepared:
    found = candidates(plan, events)
    program = compiled.program
    columns = fill(compiled.layout, events.table, found.rows, plan.bound.schema)
    codes = len(found.compared)
    keys = int(np.diff(program.place[:, KEYS_FROM]).max(initial=0))
    machine = Machine(program, graph)
    widths = Widths(codes, compiled.slots, compiled.whole, compiled.number, 2 + codes + keys)
    return Prepared(plan, compiled, found, lay_out(plan.bound, events, found), columns, widths, machine)


def waits_for_values(prepared: Prepared) -> Waits:
    """Which runs are found by value. Contiguity looks at all of them, and so do windows over several partitions."""
    plan, compiled = prepared.plan, prepared.compiled
    bound = plan.bound
    if not bound.is_linear and prepared.events.ordered and not bound.contiguous and plan.push_predicates:
        automaton = compile_states(bound)
        assert isinstance(automaton, States)
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

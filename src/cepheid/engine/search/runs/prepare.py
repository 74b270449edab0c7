"""From a plan and its events to what the run kernels take, and from what they give back to matches."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import pyarrow as pa

from cepheid.engine.data.candidates import Candidates, candidates, first_conditions
from cepheid.engine.data.candidates import _partitions as by_equivalence
from cepheid.engine.data.columns import INT64S, Columns, fill
from cepheid.engine.data.matches import Chosen, Int64s, Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.program.compile import CompiledProgram, compile_program
from cepheid.engine.program.tables import KEYS_FROM
from cepheid.engine.search.runs.conditions import (
    BEGINS,
    CHANCE,
    DUE,
    EVENT_FACTS,
    INSTANT,
    MASK,
    POSITION,
    TIME,
    Events,
)
from cepheid.engine.search.runs.enumerate import EVENTS_WRITTEN, FOUND, Written, split_place
from cepheid.engine.search.runs.moves import EVALUATED, KILLED, MERGED, PEAK_BUFFERED, PEAK_RUNS, Widths
from cepheid.engine.values.columnwise import condition, value_column
from cepheid.language import syntax as s
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
    compiled = compile_program(plan.bound)
    found = candidates(plan, events)
    program = compiled.program
    columns = fill(compiled.layout, events.table, found.rows, plan.bound.schema)
    several = len(found.compared) > 0 and plan.bound.window is not None and plan.bound.window.events
    facts = np.zeros((len(found), EVENT_FACTS), np.int64)
    known = {TIME: found.time, INSTANT: found.instant, POSITION: found.position, DUE: found.due, MASK: found.mask}
    known |= {CHANCE: _chances(plan, events, found), BEGINS: _begins(plan, events, found)}
    for column, values in known.items():
        if len(values):
            facts[:, column] = values
    codes = len(found.compared)
    keys = int(np.diff(program.place[:, KEYS_FROM]).max(initial=0))
    widths = Widths(codes, compiled.slots, compiled.whole, compiled.number, 2 + codes + keys)
    laid_out = Events(facts, found.starts, found.compared, not several)
    return Prepared(plan, compiled, found, laid_out, columns, widths)


def to_matches(prepared: Prepared, written: Written, state: Int64s, truncated: bool) -> Matches:
    """The matches that a kernel wrote down."""
    found = int(written.filled[FOUND])
    sizes = written.sizes[:found]
    starts = np.concatenate([[0], np.cumsum(sizes.sum(axis=1))])[:-1].astype(np.int64)
    events = written.events[: int(written.filled[EVENTS_WRITTEN])]
    chosen = []
    for place, component in enumerate(prepared.plan.bound.positives):
        rows, offsets = split_place(events, sizes, found, starts, prepared.candidates.rows, place)
        chosen.append(Chosen(rows, offsets if component.kleene else None))
    return Matches(tuple(chosen), written.known[:found].copy(), counters=prepared.counters(state), truncated=truncated)


def _begins(plan: Plan, events: EventTable, found: Candidates) -> Int64s:
    """Which components each candidate can be the first event of: conditions on `a[1]` alone, over whole columns."""
    begins = found.mask
    for place, component in enumerate(plan.bound.positives):
        for part in first_conditions(plan.bound, component):
            needed = {node.name for node in s.walk(part) if isinstance(node, s.Attribute)}
            table = events.table.select(sorted(needed)).take(pa.array(found.rows))
            columns = {name: value_column(table.column(name)) for name in needed}
            passed = condition(part, lambda node, known=columns: known[node.name], component.any)  # type: ignore[misc]
            if isinstance(passed, pa.Scalar):
                fits = np.full(len(found), passed.as_py())
            else:
                fits = passed.to_numpy(zero_copy_only=False)
            begins = np.where(fits, begins, begins & ~(1 << place))
    return begins


# --- contiguity -------------------------------------------------------------------------------------------------


def _chances(plan: Plan, events: EventTable, found: Candidates) -> Int64s:
    """For each candidate, the one instant at which a run that stands there can go on; -1: never."""
    bound = plan.bound
    if not bound.contiguous:
        return np.zeros(0, np.int64)
    if bound.strategy is s.Strategy.STRICT_CONTIGUITY or not bound.equivalence:
        return found.instant + 1
    if len(found.compared) == 0:
        return next_ordinal(found.starts, found.instant, found.ordinal)
    # Candidates of several partitions lie side by side: ask all events when each partition goes on.
    order, starts = by_equivalence(bound, events)
    return next_instant(order, starts, events.instant)[found.rows]


@numba.njit(INT64S(INT64S, INT64S, INT64S), cache=True)
def next_ordinal(starts: Int64s, instant: Int64s, ordinal: Int64s) -> Int64s:
    """The instant of the next candidate, if nothing else of its partition lies between; else -1."""
    chance = np.full(len(instant), -1, np.int64)
    for part in range(len(starts) - 1):
        following = -1  # the first candidate of the next instant
        for event in range(starts[part + 1] - 2, starts[part] - 1, -1):
            if instant[event + 1] != instant[event]:
                following = event + 1
            if following >= 0 and ordinal[following] == ordinal[event] + 1:
                chance[event] = instant[following]
    return chance


@numba.njit(INT64S(INT64S, INT64S, INT64S), cache=True)
def next_instant(order: Int64s, starts: Int64s, instant: Int64s) -> Int64s:
    """For each event, the next instant at which something of its partition happens; -1 if nothing does."""
    chance = np.full(len(instant), -1, np.int64)
    for part in range(len(starts) - 1):
        following = -1
        for index in range(starts[part + 1] - 2, starts[part] - 1, -1):
            if instant[order[index + 1]] != instant[order[index]]:
                following = instant[order[index + 1]]
            chance[order[index]] = following
    return chance

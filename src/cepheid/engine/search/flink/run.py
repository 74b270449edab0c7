"""A Flink pattern over a table: events in order, the walk, and a column per step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.keys import codes, combined, grouped
from cepheid.engine.data.matches import Int64s
from cepheid.engine.data.table import ordered
from cepheid.engine.search.flink import machine as m
from cepheid.engine.search.flink.conditions import activity, compile_conditions, formulas_of
from cepheid.engine.search.flink.kernel import MISSED, OUT_OF_ROOM, walk
from cepheid.errors import DataError, LimitError
from cepheid.language.flink.skip import Skip
from cepheid.plan.flink_automaton import FlinkAutomaton

_SKIPS = {
    Skip.NO_SKIP: m.NO_SKIP,
    Skip.TO_NEXT: m.TO_NEXT,
    Skip.PAST_LAST_EVENT: m.PAST_LAST,
    Skip.TO_FIRST: m.TO_FIRST,
    Skip.TO_LAST: m.TO_LAST,
}
MAX_LIST = 2**31 - 1  # Arrow's list offsets are 32 bits wide


@dataclass(frozen=True)
class Arranged:
    """Events by key, in order: partition k holds the rows bounds[k] to bounds[k + 1]."""

    table: pa.Table
    bounds: Int64s
    time: Int64s


def arranged(automaton: FlinkAutomaton, table: pa.Table, keys: Sequence[str]) -> Arranged:
    """The events of each key together, in the order of time; those of one instant as they came."""
    events = ordered(table, automaton.schema)
    if not keys:
        bounds = np.array([0, len(events)] if len(events) else [0], np.int64)
        return Arranged(events.table, bounds, np.require(events.time, requirements=["C", "W"]))
    key = combined([codes(events.table.column(name)) for name in keys], len(events))
    order, starts = grouped(key)
    bounds = np.unique(starts)
    return Arranged(events.table.take(pa.array(order)), bounds, np.ascontiguousarray(events.time[order]))


def machine_of(automaton: FlinkAutomaton, partial: bool) -> m.Machine:
    """The automaton as arrays."""
    formulas = {formula: number for number, formula in enumerate(formulas_of(automaton))}
    edges = [edge for state in automaton.states for edge in state.edges]
    counts = [len(state.edges) for state in automaton.states]
    final = next(state.number for state in automaton.states if state.kind.value == m.FINAL)
    skip = automaton.skip
    return m.Machine(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.array([edge.action.value for edge in edges], np.int64),
        np.array([edge.source.number for edge in edges], np.int64),
        np.array([edge.target.number for edge in edges], np.int64),
        np.array([formulas[edge.formula] for edge in edges], np.int64),
        np.array([state.kind.value for state in automaton.states], np.int64),
        np.array([_step(automaton, state.step) for state in automaton.states], np.int64),
        np.array([state.window or 0 for state in automaton.states], np.int64),
        automaton.start,
        final,
        automaton.window,
        _SKIPS[skip.skip],
        _step(automaton, skip.step),
        int(skip.strict),
        int(partial),
    )


def _step(automaton: FlinkAutomaton, name: str | None) -> int:
    """The number of a step; -1 for one that holds no events."""
    return list(automaton.lists).index(name) if name is not None and name in automaton.lists else -1


def find_matches(
    automaton: FlinkAutomaton,
    events: Arranged,
    partial: bool,
    known: m.Reported | None = None,
    begin: Int64s | None = None,
    end: int | None = None,
) -> tuple[m.Reported, m.Reported]:
    """What is reported and, if time has an end, the runs that go on from there."""
    machine = machine_of(automaton, partial)
    conditions = compile_conditions(automaton, events.table)
    nobody = m.Reported(*(np.zeros(length, np.int64) for length in (0, 1, 0, 0, 0, 0)))
    first = events.bounds[:-1] if begin is None else begin
    given = m.Events(
        events.bounds,
        np.ascontiguousarray(first),
        events.time,
        activity(automaton, conditions.atom_holds),
        m.LATEST if end is None else end,
        int(end is not None),
    )
    room = m.make_room(machine, len(conditions.code) + 1)
    reported, kept, failure = walk(machine, conditions, given, known or nobody, room)
    if failure == OUT_OF_ROOM:
        raise LimitError("the pattern opens too many ways at a time", hint="use engine='reference'")
    if failure:
        step = automaton.skip.step
        told = f"has no event of step '{step}'" if failure == MISSED else f"begins with step '{step}'"
        raise DataError(f"{automaton.skip.skip.value}: a match {told}", hint="leave throw_exception_on_miss() out")
    return reported, kept


def assemble(automaton: FlinkAutomaton, events: Arranged, found: m.Reported, partial: bool) -> pa.Table:
    """The result: when each match starts and ends, and a column per step."""
    schema = automaton.schema
    clock = events.table.column(schema.time)
    sizes = np.diff(found.first)
    of = np.repeat(np.arange(len(sizes)), sizes)
    columns: dict[str, pa.Array] = {
        "match_start": _taken(clock, found.row[found.first[:-1]]),
        "match_end": _taken(clock, found.row[found.first[1:] - 1]),
    }
    for number, (step, many) in enumerate(automaton.lists.items()):
        own = found.step == number
        rows, counts = found.row[own], np.bincount(of[own], minlength=len(sizes))
        columns[step] = (
            _listed(events.table, rows, counts) if many else _single(events.table, rows, of[own], len(sizes))
        )
    if partial:
        names = np.array([state.step for state in automaton.states], object)
        waited = found.waiting >= 0
        columns["timed_out"] = pa.array(waited)
        columns["waiting_for"] = pa.array([names[at] if at >= 0 else None for at in found.waiting], pa.string())
        columns["given_up"] = _instants(clock.type, found.given_up, waited)
    return pa.table(columns)


def result_schema(automaton: FlinkAutomaton, schema: pa.Schema, partial: bool) -> pa.Schema:
    """The schema of the result, without running anything: that of an empty table."""
    empty = Arranged(schema.empty_table(), np.zeros(1, np.int64), np.zeros(0, np.int64))
    nothing = m.Reported(*(np.zeros(length, np.int64) for length in (0, 1, 0, 0, 0, 0)))
    return assemble(automaton, empty, nothing, partial).schema


def _taken(column: pa.ChunkedArray, rows: Int64s) -> pa.Array:
    taken = column.take(pa.array(rows))
    taken = taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken
    return taken.cast(taken.type.value_type) if pa.types.is_dictionary(taken.type) else taken


def _structs(table: pa.Table, rows: Int64s) -> pa.StructArray:
    return pa.StructArray.from_arrays([_taken(column, rows) for column in table.columns], table.column_names)


def _listed(table: pa.Table, rows: Int64s, counts: Int64s) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(counts)])
    if offsets[-1] > MAX_LIST:
        raise LimitError("the lists of the result hold over two billion events", hint="match fewer events at a time")
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), _structs(table, rows))


def _single(table: pa.Table, rows: Int64s, of: Int64s, count: int) -> pa.Array:
    place = np.full(count, -1, np.int64)
    place[of] = np.arange(len(rows))
    return _structs(table, rows).take(pa.array(place, mask=place < 0))


def _instants(kind: pa.DataType, values: Int64s, known: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Array:
    column = pa.array(values, mask=~known)
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz)).cast(kind)
    if pa.types.is_date(kind):
        return column.cast(pa.timestamp("us"))
    return pc.cast(column, pa.int64())

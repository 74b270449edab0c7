"""A Flink pattern over a table: events in order, the walk, and a column per step."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.budget import checkpoint
from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.columns import fill_with_absent
from cepheid.engine.data.flink_runs import NOBODY, Arranged, Reported
from cepheid.engine.kernels.compile import is_interpreted
from cepheid.engine.kernels.conditions import new_scratch
from cepheid.engine.program.compile import CompiledProgram
from cepheid.engine.search.flink import machine as m
from cepheid.engine.search.flink.conditions import compile_conditions
from cepheid.engine.search.flink.kernel import MISSED, TOO_MANY_MATCHES, TOO_MANY_RUNS, walk
from cepheid.engine.search.flink.kinds import kinds_of_events
from cepheid.engine.search.flink.moves import Moves
from cepheid.engine.values.python_first import as_python_first, is_python_first
from cepheid.errors import DataError, LimitError
from cepheid.language.flink.skip import Skip
from cepheid.plan.flink_automaton import FlinkAutomaton
from cepheid.plan.flink_limits import LIMITS, limit_reached
from cepheid.plan.options import Limits

_SKIPS = {
    Skip.NO_SKIP: m.NO_SKIP,
    Skip.TO_NEXT: m.TO_NEXT,
    Skip.PAST_LAST_EVENT: m.PAST_LAST,
    Skip.TO_FIRST: m.TO_FIRST,
    Skip.TO_LAST: m.TO_LAST,
}
MAX_LIST = 2**31 - 1  # Arrow's list offsets are 32 bits wide


class Search:
    """What the walk needs of a pattern, made once: its moves, and its conditions as kernels call them."""

    def __init__(self, automaton: FlinkAutomaton) -> None:
        self.automaton = automaton
        self.moves = Moves(automaton)
        self.compiled: dict[tuple[bool, bool], CompiledProgram] = {}  # by how conditions run
        self.unread: m.Conditions | None = None  # where no condition looks back: nobody reads them
        in_result = list(automaton.lists)
        self.step_of = np.array([*(in_result.index(step) for step in self.moves.steps), -1], np.int64)  # by place
        self.place_of = np.array([*(self.moves.steps[step] for step in in_result), -1], np.int64)

    def conditions(self) -> CompiledProgram:
        """The conditions that look back."""
        asked = is_interpreted(), is_python_first()
        if asked not in self.compiled or self.compiled[asked].predicate.exhausted:
            self.compiled[asked] = compile_conditions(self.automaton)
        return self.compiled[asked]

    def over(self, table: pa.Table) -> tuple[m.Conditions, CompiledProgram]:
        """The same over the events of a table."""
        compiled = self.conditions()
        if self.unread is not None:
            return self.unread, compiled
        columns = fill_with_absent(compiled.layout, table, self.automaton.schema)
        scratch = new_scratch(compiled.slots, compiled.whole, compiled.number, 0)
        found = m.Conditions(compiled.program, columns, scratch, compiled.slots - 1, table.num_rows)
        self.unread = None if compiled.program.places else found
        return found, compiled

    def machine(self, truths: npt.NDArray[np.uint8], partial: bool) -> m.Machine:
        """The automaton as arrays, for events of some kinds."""
        automaton, table = self.automaton, self.moves.table(truths)
        gap = np.array(automaton.gaps, np.int64)
        skip = automaton.skip
        return m.Machine(
            table.decision,
            table.choice,
            table.first_move,
            table.move,
            table.active,
            np.array([state.kind.value for state in automaton.states], np.int64),
            gap,
            automaton.start,
            automaton.window,
            int(gap.any()),
            table.fan,
            _SKIPS[skip.skip],
            self.moves.steps.get(skip.step or "", -1),
            int(skip.strict),
            int(partial),
        )


def find(automaton: FlinkAutomaton, events: Arranged, partial: bool, limits: Limits = LIMITS) -> Reported:
    """The matches of a pattern in events that are all there, and if asked for the runs that were given up."""
    return find_matches(Search(automaton), events, partial, limits=limits)[0]


def find_matches(
    search: Search,
    events: Arranged,
    partial: bool,
    known: Reported | None = None,
    begin: Int64s | None = None,
    end: int | None = None,
    limits: Limits = LIMITS,
) -> tuple[Reported, Reported]:
    """What is reported and, if time has an end, the runs that go on from there."""
    automaton = search.automaton
    kind, truths = kinds_of_events(automaton, events.table)
    machine = search.machine(truths, partial)
    known = known or NOBODY
    first = events.bounds[:-1] if begin is None else begin
    end_of_time = m.LATEST if end is None else end
    given = m.Events(events.bounds, np.ascontiguousarray(first), events.time, kind, end_of_time, int(end is not None))
    known = known._replace(step=search.place_of[known.step])

    def walked() -> tuple[Reported, Reported, int]:
        conditions, compiled = search.over(events.table)
        room = m.make_room(machine.fan, compiled, limits)
        return walk(machine, conditions, compiled.predicate.call, given, known, room)

    judged = np.asarray((machine.decision >= 0).any(axis=1))[kind]  # the events for which conditions look back
    reported, kept, failure = as_python_first(int(np.count_nonzero(judged)), walked)
    if failure in (TOO_MANY_RUNS, TOO_MANY_MATCHES):
        raise limit_reached("max_partial_matches" if failure == TOO_MANY_RUNS else "max_matches", limits)
    if failure:
        raise failure_of(automaton, failure)
    reported, kept = (each._replace(step=search.step_of[each.step]) for each in (reported, kept))
    return reported, kept


def failure_of(automaton: FlinkAutomaton, failure: int) -> DataError:
    """The error of a strategy that skips to where there is nothing."""
    step = automaton.skip.step
    told = f"has no event of step '{step}'" if failure == MISSED else f"begins with step '{step}'"
    return DataError(f"{automaton.skip.skip.value}: a match {told}", hint="leave throw_exception_on_miss() out")


def assemble(automaton: FlinkAutomaton, events: Arranged, found: Reported, partial: bool) -> pa.Table:
    """The result: when each match starts and ends, and a column per step."""
    schema = automaton.schema
    clock = events.table.column(schema.time)
    sizes = np.diff(found.first)
    columns: dict[str, pa.Array] = {
        "match_start": _taken(clock, found.row[found.first[:-1]]),
        "match_end": _taken(clock, found.row[found.first[1:] - 1]),
    }
    # The events of the first step, then those of the second, and so on: all are taken from the table at once.
    order = np.argsort(found.step.astype(np.int16), kind="stable")
    of = np.repeat(np.arange(len(sizes)), sizes)[order]
    bounds = np.searchsorted(found.step[order], np.arange(len(automaton.lists) + 1))
    taken = [_taken(column, found.row[order]) for column in events.table.columns]
    for number, (step, many) in enumerate(automaton.lists.items()):
        here = slice(int(bounds[number]), int(bounds[number + 1]))
        own = pa.StructArray.from_arrays([column[here] for column in taken], events.table.column_names)
        columns[step] = _listed(own, of[here], len(sizes)) if many else _single(own, of[here], len(sizes))
    if partial:
        names = automaton.waits_for
        waited = found.waiting >= 0
        columns["timed_out"] = pa.array(waited)
        columns["waiting_for"] = pa.array([names[at] if at >= 0 else None for at in found.waiting], pa.string())
        columns["given_up"] = _instants(clock.type, found.given_up, waited)
    return pa.table(columns)


def result_schema(automaton: FlinkAutomaton, schema: pa.Schema, partial: bool) -> pa.Schema:
    """The schema of the result, without running anything: that of an empty table."""
    empty = Arranged(schema.empty_table(), np.zeros(1, np.int64), np.zeros(0, np.int64))
    return assemble(automaton, empty, NOBODY, partial).schema


def _taken(column: pa.ChunkedArray, rows: Int64s) -> pa.Array:
    checkpoint()
    taken = column.take(pa.array(rows))
    taken = taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken
    return taken.cast(taken.type.value_type) if pa.types.is_dictionary(taken.type) else taken


def _listed(own: pa.StructArray, of: Int64s, count: int) -> pa.Array:
    """A list for each match; `of` says whose event each one is."""
    if len(of) > MAX_LIST:
        raise LimitError("the lists of the result hold over two billion events", hint="match fewer events at a time")
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(of, minlength=count), out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), own)


def _single(own: pa.StructArray, of: Int64s, count: int) -> pa.Array:
    """An event for each match, or NULL."""
    if len(of) == count:
        return own
    place = np.full(count, -1, np.int64)
    place[of] = np.arange(len(of))
    return own.take(pa.array(place, mask=place < 0))


def _instants(kind: pa.DataType, values: Int64s, known: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Array:
    column = pa.array(values, mask=~known)
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz)).cast(kind)
    if pa.types.is_date(kind):
        return column.cast(pa.timestamp("us"))
    return pc.cast(column, pa.int64())

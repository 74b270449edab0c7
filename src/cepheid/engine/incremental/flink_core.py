"""The incremental search of a Flink pattern: the runs of all keys in arrays that grow, and what events do with them.

The events themselves lie elsewhere: here each has a number, from 0 on. All of it follows from the runs at some time and
the events since then that did something, so it can be dropped and made again at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.budget import checkpoint
from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.columns import Columns, fill_with_absent, storage
from cepheid.engine.data.flink_runs import Reported
from cepheid.engine.incremental import flink_push as f
from cepheid.engine.incremental.pushed_matches import PushedMatches
from cepheid.engine.kernels.compile import is_interpreted
from cepheid.engine.kernels.conditions import new_scratch
from cepheid.engine.kernels.memory import address_of
from cepheid.engine.program.compile import CompiledProgram
from cepheid.engine.search.flink.kinds import kinds_of_events
from cepheid.engine.search.flink.machine import BITS, LATEST
from cepheid.engine.search.flink.reports import (
    MORE_ARRIVED,
    MORE_EVENTS,
    MORE_NODES,
    MORE_REPORTS,
    MORE_RUNS,
    TOO_MANY_MATCHES,
    TOO_MANY_RUNS,
)
from cepheid.engine.search.flink.run import Search, failure_of
from cepheid.engine.values.python_first import python_first
from cepheid.language.schema import DataType
from cepheid.plan.automaton import Kind
from cepheid.plan.flink_limits import limit_reached
from cepheid.plan.options import Limits

KEY_TYPES = (pa.int64(), pa.string(), pa.bool_())  # whose values are equal in Python as they are in a search
FIRST_ROOM, COLLECT = 1024, 1 << 14
_GROWING = {
    MORE_RUNS: (f.BEHIND,),
    MORE_NODES: (f.NODE_TABLE, f.NODE_AT, f.NODE_COUNTED, f.NODE_RUNNING),
    MORE_ARRIVED: (f.ARRIVALS,),
    MORE_REPORTS: (f.OUT_PARTITION, f.OUT_FIRST, f.OUT_WAITING, f.OUT_GIVEN_UP),
    MORE_EVENTS: (f.OUT_ROW, f.OUT_STEP),
}


class Calls(NamedTuple):
    """The kernels, as they are called."""

    begin_key: Callable[..., int]
    go_on: Callable[..., int]
    push_table: Callable[..., int]
    let_pass: Callable[..., int]
    all_runs: Callable[..., Reported]
    load_runs: Callable[..., None]
    collect_nodes: Callable[..., None]
    by_step: Callable[..., int]


def refusal(search: Search, schema: pa.Schema, keys: Sequence[str]) -> str | None:
    """Why the runs of a pattern are taken up anew at each step; None: they are not."""
    if not all(schema.field(name).type in KEY_TYPES for name in keys):
        return "a key has a type that Python does not compare as SQL does"
    if search.automaton.schema.lacks:
        return "attributes are lacking by type"
    with python_first(False):
        compiled = search.conditions()
    layout = compiled.layout
    if any(kind in (DataType.STRING, DataType.DECIMAL) or storage(kind) == "list" for _, kind, _ in layout.attributes):
        return "its conditions compare texts, decimals or lists of two events"
    if layout.read or layout.literals or compiled.predicate.form is not None:
        return "its conditions are not compiled"
    return None


class FlinkCore:
    """The runs of a pattern, and its kinds of events."""

    def __init__(self, search: Search, keys: Sequence[str], partial: bool, limits: Limits) -> None:
        self.search, self.automaton, self.key_names = search, search.automaton, tuple(keys)
        self.partial, self.limits = partial, limits
        self.head = np.zeros(f.HEAD_SIZE, np.int64)
        self.tables: dict[int, npt.NDArray[Any]] = {}  # what lies at the addresses in `head`
        self.interpreted = is_interpreted()
        entries = (f.begin_key, f.go_on, f.push_table, f.let_pass, f.all_runs, f.load_runs, f.collect_nodes, f.by_step)
        self.calls = Calls(*(each.plain() if self.interpreted else each.direct() for each in entries))
        with python_first(False):
            self.compiled: CompiledProgram = search.conditions()
        self.numbers: dict[Any, int] = {}  # of keys
        self.kinds: dict[bytes, int] = {}
        self.begins: list[bool] = []  # by kind: does a run begin with such an event?
        self.matters: list[bool] = []  # ... does any run do anything with it?
        states = enumerate(self.automaton.states)
        waits = {1 << min(number, BITS) for number, state in states if state.kind not in (Kind.FINAL, Kind.STOP)}
        self.waiting = sum(waits)  # the states in which runs wait for events, as bits
        self.collect_at, self.grew = COLLECT, False
        self._write_conditions()
        self._make_rooms()

    # --- rooms ------------------------------------------------------------------------------------------------------

    def _place(self, number: int, table: npt.NDArray[Any]) -> None:
        rows = 1 if table.ndim == 1 else table.shape[0]
        self.tables[number] = table
        at = f.TABLES + 3 * number
        self.head[at : at + 3] = table.ctypes.data, rows, table.shape[-1]

    def _write_conditions(self) -> None:
        head, compiled = self.head, self.compiled
        program = compiled.program
        numbers = (program.places, program.strategy, program.window_kind, program.window, program.branches)
        head[f.PLACES : f.BRANCHES + 1] = numbers
        head[f.WALK_WHOLE], head[f.WALK_NUMBER] = program.walk_whole, program.walk_number
        head[f.AT_HAND], head[f.PREDICATE_AT] = compiled.slots - 1, address_of(compiled.predicate.call)
        head[f.RUN_LIMIT], head[f.REPORT_LIMIT] = self.limits.max_partial_matches, self.limits.max_matches
        tables = (program.place, program.kept, program.moments, program.tests, program.walks)
        for number, table in zip(
            (f.PLACE, f.KEPT, f.MOMENTS, f.TESTS, f.WALKS, f.NEGATIONS, f.MERGE_KEYS),
            (*tables, program.negations, program.keys),
            strict=True,
        ):
            self._place(number, table)
        scratch = new_scratch(compiled.slots, compiled.whole, compiled.number, 0)
        more: list[tuple[int, npt.NDArray[Any]]] = [
            (f.SCRATCH_AT, scratch.at),
            (f.SCRATCH_COUNTED, scratch.counted_row),
            (f.SCRATCH_CODES, scratch.codes),
            (f.SCRATCH_MISSING, scratch.missing),
            (f.SCRATCH_BETWEEN, scratch.between),
            (f.SCRATCH_RUNNING, scratch.running_row),
            (f.LITERAL, np.zeros(0, np.int64)),
            (f.EDGE, np.zeros((0, 0), np.int64)),
        ]
        for number, values in more:
            self._place(number, values)

    def _make_rooms(self) -> None:
        program, slots = self.compiled.program, self.compiled.slots if self.compiled.program.places else 0
        stored = [storage(kind) for _, kind, _ in self.compiled.layout.attributes]
        rows = len(stored) if program.places else 0
        wholes, numbers = (stored.count(kind) if program.places else 0 for kind in ("whole", "number"))
        whole, number = np.zeros((wholes, FIRST_ROOM), np.int64), np.zeros((numbers, FIRST_ROOM), np.float64)
        null = np.zeros((rows, FIRST_ROOM), np.uint8)
        null[:, 0] = 1  # the event that is absent
        size = FIRST_ROOM
        rooms: dict[int, npt.NDArray[Any]] = {
            f.WHOLE: whole,
            f.NUMBER: number,
            f.NULL: null,
            f.TIMES: np.zeros(size, np.int64),
            f.KINDS: np.zeros(size, np.int64),
            f.BEHIND: np.zeros((64, 3), np.int64),
            f.ARRIVALS: np.zeros((64, 3), np.int64),
            f.NODE_TABLE: np.zeros((size, 4), np.int64),
            f.NODE_AT: np.zeros((size, slots), np.int64),
            f.NODE_COUNTED: np.zeros((size, program.walk_whole), np.int64),
            f.NODE_RUNNING: np.zeros((size, program.walk_number), np.float64),
            f.KEYS: np.zeros((64, f.KEY_WIDTH), np.int64),
            f.ARENA: np.zeros((size, 3), np.int64),
            f.QUEUE: np.zeros((64, 2), np.int64),
            **{out: np.zeros(64, np.int64) for out in range(f.OUT_PARTITION, f.OUT_GIVEN_UP + 1)},
        }
        for place, table in rooms.items():
            self._place(place, table)
        self.head[f.SIZE] = 1

    def _grow(self, number: int, least: int = 0) -> None:
        """More room in a table: twice as many rows, or at least so many."""
        before = self.tables[number]
        after = np.zeros((max(2 * len(before), least), *before.shape[1:]), before.dtype)
        after[: len(before)] = before
        self._place(number, after)

    def make_room(self, events: int) -> None:
        """Room for so many events more."""
        needed = int(self.head[f.SIZE]) + events
        if needed <= len(self.tables[f.TIMES]):
            return
        for number in (f.TIMES, f.KINDS):
            self._grow(number, 2 * needed)
        for number in (f.WHOLE, f.NUMBER, f.NULL):
            before = self.tables[number]
            after = np.zeros((before.shape[0], 2 * needed), before.dtype)
            after[:, : before.shape[1]] = before
            self._place(number, after)

    # --- keys and kinds ---------------------------------------------------------------------------------------------

    def key_number(self, value: Any) -> int:
        """The number of a key, which begins here if it is new."""
        number = self.numbers.get(value)
        if number is None:
            number = len(self.numbers)
            if number >= len(self.tables[f.KEYS]):
                self._grow(f.KEYS)
            while self.calls.begin_key(self.head, number) != f.IDLE:
                self._grow(f.ARENA)
            self.numbers[value] = number
            self.head[f.KEYS_USED] = number + 1
        return number

    def kind_number(self, truths: bytes) -> int:
        """The number of a kind of events, which is made if it is new."""
        number = self.kinds.get(truths)
        if number is None:
            number = len(self.kinds)
            every = [*self.kinds, truths]
            table = np.frombuffer(b"".join(every), np.uint8).reshape(len(every), len(self.automaton.atoms))
            machine = self.search.machine(table, self.partial)
            for place, part in enumerate(machine[:7]):
                self._place(f.DECISION + place, part)
            self.head[f.START : f.PARTIAL + 1] = machine[7:]
            start = 1 << min(machine.start, BITS)
            self.begins = [bool(each & start) for each in machine.active.tolist()]
            self.matters = (machine.active & self.waiting != 0).tolist()
            if len(self.tables[f.ARRIVALS]) < 2 * machine.fan:
                self._grow(f.ARRIVALS, 4 * machine.fan)
            self.kinds[truths] = number
        return number

    # --- events -----------------------------------------------------------------------------------------------------

    def _went_on(self, returned: int) -> None:
        while returned != f.USED:
            self.make_way(returned)
            returned = self.calls.go_on(self.head)

    def push_table(self, table: pa.Table, times: Int64s) -> Int64s:
        """Takes in events in order of time; which of them did something."""
        number = table.num_rows
        if not number:
            return np.zeros(0, np.int64)
        local, truths = kinds_of_events(self.automaton, table)
        kinds = np.array([self.kind_number(each.tobytes()) for each in truths], np.int64)[local]
        return self.push_rows(table, times, kinds)

    def push_rows(self, table: pa.Table, times: Int64s, kinds: Int64s) -> Int64s:
        """The same where kinds are known."""
        number, head = table.num_rows, self.head
        self.make_room(number)
        keys = self._keys_of(table, kinds)
        taken = np.zeros(number + 1, np.int64)
        rows = [np.ascontiguousarray(each, np.int64) for each in (times, kinds, keys)]
        arrays: list[npt.NDArray[Any]] = [*rows, *self.columns_of(table), taken]
        for place, array in zip(range(f.NEW_TIMES, f.TAKEN + 1), arrays, strict=True):
            self._place(place, array)
        begin = 0
        while begin < number:
            returned = self.calls.push_table(head, begin, number)
            if returned == f.USED:
                break
            begin = int(taken[number]) + 1
            if returned != f.PAUSED:
                self.make_way(returned)
                self._went_on(self.calls.go_on(head))
            checkpoint()
        return np.flatnonzero(taken[:number])

    def _keys_of(self, table: pa.Table, kinds: Int64s) -> Int64s:
        """The number of each event's key; -1: nothing waits for it, and no run begins with it."""
        if not self.key_names:
            return np.full(table.num_rows, self.key_number(()))
        columns = [table.column(name).to_pylist() for name in self.key_names]
        values = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        get, begins, new = self.numbers.get, self.begins, self.key_number
        found = [get(value, -1) for value in values]
        for place, number in enumerate(found):
            if number < 0 and begins[kinds[place]]:
                found[place] = new(values[place])
            elif number < 0:
                found[place] = get(values[place], -1)  # it may have begun a moment ago
        return np.array(found, np.int64)

    def _columns_of(self, table: pa.Table) -> Columns:
        if not self.compiled.program.places:
            whole, number, null = (self.tables[place][:, :0] for place in (f.WHOLE, f.NUMBER, f.NULL))
            return Columns(whole, number, null, *_NOTHING)
        return fill_with_absent(self.compiled.layout, table, self.automaton.schema)

    def let_pass(self, until: int) -> None:
        """Time has passed up to some moment."""
        head = self.head
        if not head[f.WAITING_KEYS] or self.tables[f.QUEUE][0, 0] > until:
            return
        returned = self.calls.let_pass(head, until)
        while returned != f.IDLE:
            self.make_way(returned)
            returned = self.calls.let_pass(head, until)

    def nearest(self) -> int:
        """No run is given up before."""
        return int(self.tables[f.QUEUE][0, 0]) if self.head[f.WAITING_KEYS] else LATEST

    def make_way(self, returned: int) -> None:
        """Makes room, or raises an error."""
        self.grew = True
        needed = int(self.head[f.NEEDED])
        if returned == f.FAILED:
            if needed in (TOO_MANY_RUNS, TOO_MANY_MATCHES):
                name = "max_partial_matches" if needed == TOO_MANY_RUNS else "max_matches"
                raise limit_reached(name, self.limits)
            raise failure_of(self.automaton, needed)
        if returned == f.NEEDS_ARENA:
            self._grow(f.ARENA, len(self.tables[f.ARENA]) + 2 * needed)
        elif returned == f.NEEDS_QUEUE:
            self._grow(f.QUEUE)
        else:
            for number in _GROWING[needed]:
                self._grow(number)

    # --- what is found ----------------------------------------------------------------------------------------------

    def matches(self, steps: int) -> PushedMatches:
        """The matches that are reported, with their events step by step; they stay reported."""
        head = self.head
        runs, events = int(head[f.REPORTED_RUNS]), np.empty(int(head[f.REPORTED_EVENTS]), np.int64)
        sizes = np.empty((runs, steps), np.int64)
        self.calls.by_step(head, self.search.step_of, events, sizes)
        return PushedMatches(events, sizes, self.tables[f.OUT_PARTITION][:runs])

    def forget_reported(self) -> None:
        """What is reported has been told."""
        self.head[f.REPORTED_RUNS] = self.head[f.REPORTED_EVENTS] = 0

    def found(self) -> Reported | None:
        """What has been reported since the last call; None: nothing."""
        head = self.head
        runs, events = int(head[f.REPORTED_RUNS]), int(head[f.REPORTED_EVENTS])
        if not runs:
            return None
        out = [self.tables[number] for number in range(f.OUT_PARTITION, f.OUT_GIVEN_UP + 1)]
        partition, first, row, step, waiting, given_up = out
        self.forget_reported()
        step = self.search.step_of[step[:events]]
        return Reported(
            partition[:runs].copy(),
            first[: runs + 1].copy(),
            row[:events] - 1,
            step,
            waiting[:runs].copy(),
            given_up[:runs].copy(),
        )

    # --- the whole state --------------------------------------------------------------------------------------------

    def tidy(self, now: bool = False) -> None:
        """Drops nodes that no run needs, now and then: between events."""
        if now or self.head[f.NODES_USED] > self.collect_at:
            self.calls.collect_nodes(self.head)
            self.collect_at = max(COLLECT, 4 * int(self.head[f.NODES_USED]))

    def runs(self) -> tuple[Reported, list[Any]]:
        """All runs, by partition, and the key of each partition."""
        kept = self.calls.all_runs(self.head)
        values = list(self.numbers)
        partitions, number = np.unique(kept.partition, return_inverse=True)
        runs = Reported(
            number.reshape(-1), kept.first, kept.row - 1, self.search.step_of[kept.step], kept.waiting, kept.given_up
        )
        return runs, [values[each] for each in partitions.tolist()]

    def columns(self, rows: Int64s) -> list[npt.NDArray[Any]]:
        """The columns of some events."""
        return [self.tables[place][:, rows + 1] for place in (f.WHOLE, f.NUMBER, f.NULL)]

    def times(self, rows: Int64s) -> Int64s:
        """The times of some events."""
        times: Int64s = self.tables[f.TIMES][rows + 1]
        return times

    def load(self, runs: Reported, keys: Sequence[Any], times: Int64s, columns: Sequence[npt.NDArray[Any]]) -> None:
        """Takes up runs over some events, in a search that is new: the key of each partition, times and columns."""
        number = len(times)
        if not number:
            return
        self.make_room(number)
        self.kind_number(bytes(len(self.automaton.atoms)))  # so that there is a machine
        self.head[f.SIZE] = number + 1
        self.tables[f.TIMES][1 : number + 1] = times
        for place, column in zip((f.WHOLE, f.NUMBER, f.NULL), columns, strict=True):
            if len(column):
                self.tables[place][:, 1 : number + 1] = column[:, :number]
        self.numbers = {value: place for place, value in enumerate(keys)}
        self._load(runs, len(keys))

    def columns_of(self, table: pa.Table) -> Sequence[npt.NDArray[Any]]:
        """What conditions read of the events of a table."""
        columns = self._columns_of(table)
        return [columns.whole, columns.number, columns.null]

    def keys_of(self, runs: Reported, table: pa.Table) -> list[Any]:
        """The key of each partition of runs over the events of a table."""
        if not self.key_names:
            return [()] if len(runs.partition) else []
        some = np.flatnonzero(np.diff(runs.first) > 0)
        _, first = np.unique(runs.partition[some], return_index=True)
        events = table.take(pa.array(runs.row[runs.first[some[first]]]))
        columns = [events.column(name).to_pylist() for name in self.key_names]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    def _load(self, runs: Reported, keys: int) -> None:
        number, events, fan = len(runs.partition), len(runs.row), int(self.head[f.FAN])
        for place in (f.NODE_TABLE, f.NODE_AT, f.NODE_COUNTED, f.NODE_RUNNING):
            self._grow(place, 2 * events)
        self._grow(f.KEYS, 2 * keys)
        self._grow(f.QUEUE, 2 * keys)
        self._grow(f.ARENA, 8 * number + 8 * (fan + 8) * keys)
        partition = np.unique(runs.partition, return_inverse=True)[1].reshape(-1)
        known = Reported(
            partition, runs.first, runs.row + 1, self.search.place_of[runs.step], runs.waiting, runs.given_up
        )
        self.calls.load_runs(self.head, Reported(*(np.ascontiguousarray(each, np.int64) for each in known)))
        self.head[f.KEYS_USED] = keys


_NOTHING = np.empty(0, np.int64), np.empty(0, np.float64), np.zeros((0, 0), np.int64)

__all__ = ["FlinkCore", "refusal"]

"""What the kernels of `pattern_door` and `pattern_rows` read: made for one pattern, which the caller searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.incremental import dict_door as d
from cepheid.engine.incremental import pattern_door as p
from cepheid.engine.incremental import pattern_rows as w
from cepheid.engine.incremental.arrow_memory import Exported, exported
from cepheid.engine.incremental.dict_events import DictColumns
from cepheid.engine.incremental.one_event import OneEvent
from cepheid.engine.incremental.table_door import (
    FALSE,
    NUMBERS_AT,
    TABLE_COLUMNS,
    TABLE_COLUMNS_AT,
    TRUE,
    held_kind,
)
from cepheid.engine.kernels.memory import address_of_kernel

FIRST_ROOM = 1024  # events that wait
KEYS_SEEN = 2048  # that are found again without an object
KEY_KINDS = (pa.int64(), pa.string(), pa.bool_())  # whose values kernels read from tables as dicts have them


class Step(NamedTuple):
    """How a search takes a step: its kernel and its array, and what it has to know of an event."""

    kernel: Any
    head: Int64s
    keys: dict[Any, int]  # numbers of keys
    key_names: Sequence[str]
    texts: dict[str, dict[Any, int]]  # by column: what a text says, as bits...
    all_bits: int  # ... that are and-ed (-1) or or-ed (0)
    one: OneEvent | None  # conditions on one event
    has_kinds: bool  # do bits say what kind of event it is?
    attributes: Sequence[Any]  # what conditions read: name, kind
    is_idle: Any = None  # the kernel that says whether an event does nothing
    gathers: bool = False  # are rows put down first, and then searched, several at once?
    put: Any = None  # the kernel that puts several down
    begin_key: Any = None  # the kernel that begins with a new key
    tell: Any = None  # the kernel that makes the rows of the result, of single dicts...
    of_telling: Int64s | None = None  # ... and what it needs


class PatternEvents(DictColumns):
    """Takes single events in, for a pattern."""

    def __init__(self, schema: pa.Schema, time: str, delay: int) -> None:
        super().__init__(schema, time, None, p.PATTERN_DOOR_SIZE)
        self.time = time
        self.door[d.DELAY], self.door[p.NONE], self.door[p.FRACTION] = delay, id(None), id(float)
        self._numbers = np.zeros(len(schema), np.int64)  # room for those of a row: rows that wait know where it is
        self.waiting: list[Any] = []
        self.log_names: Sequence[str] = self.names  # columns of the log
        self.wait_again([])

    def look_at(self, step: Step) -> None:
        """The search is another one than before."""
        door = self.door
        self.call, self.go_on = p.arrive.direct(), p.go_on.direct()
        self._check_rows, self._release_rows = w.check_rows.direct(), w.release_rows.direct()
        fills: list[tuple[int, ...]] = [(self.names.index(name), d.NOWHERE, 0, 0) for name in step.key_names]
        door[p.KEYS_FROM], door[p.KEYS_TO] = 0, len(fills)
        door[p.ONE_AT] = 0
        if step.one is not None:
            door[p.ONE_AT], door[p.ONE_ASKED] = step.one.head.ctypes.data, step.one.asked
            door[p.ONE_FROM] = len(fills)
            fills += self._fills(step.one.predicate.layout.attributes)
            door[p.ONE_TO] = len(fills)
        door[p.READ_FROM] = len(fills)
        fills += self._fills(step.attributes)
        door[p.READ_TO] = len(fills)
        self._place("fills", np.array(fills or [(0,) * d.OF_FILL], np.int64), d.FILLS_AT, d.FILLS)
        texts = [(self.names.index(name), id(known)) for name, known in step.texts.items()]
        self._place("texts", np.array(texts or [(0, 0)], np.int64), p.TEXTS_AT)
        door[p.TEXTS], door[p.ALL_BITS], door[p.KINDS] = len(texts), step.all_bits, 0 if step.has_kinds else -1
        door[p.STEP_AT], door[p.SEARCH], door[p.KEYS_OF] = (
            address_of_kernel(step.kernel),
            step.head.ctypes.data,
            id(step.keys),
        )
        door[p.IDLE_AT] = 0 if step.is_idle is None else address_of_kernel(step.is_idle)
        door[p.NEXT_DUE] = -d.FAR
        door[p.STAGE], door[p.GATHERS], door[p.GATHERED] = p.FRESH, int(step.gathers), 0
        self._kept["step"], self._kinds = step, list[tuple[int, int, bool, bool]]()
        self.columns_read = sorted({self.names[fill[d.COLUMN]] for fill in fills} | set(step.texts))
        kinds = [self._schema.field(name).type for name in step.key_names]
        self.reads_tables = all(held_kind(self._schema.field(name).type) >= 0 for name in self.columns_read)
        self.reads_tables = self.reads_tables and all(kind in KEY_KINDS for kind in kinds)
        seen = KEYS_SEEN if kinds == [pa.int64()] else 0
        self._place("seen", np.zeros((seen, 2), np.int64), p.SEEN_AT, p.SEEN)
        fractions = [name for name in self.log_names if self._schema.field(name).type == pa.float64()]
        read = [self.names[fill[d.COLUMN]] for fill in fills]
        named = (sorted(set(read)), fractions, read, [*step.texts])
        columns, of_fractions, of_fills, of_texts = (self.table_columns(names, self.log_names) for names in named)
        self.of_tables = columns, of_fractions
        self._place("of fills", of_fills, p.COLUMNS_READ_AT)
        self._place("of texts", of_texts, p.TEXT_COLUMNS_AT)
        self._place("texts seen", np.zeros(len(texts) * w.TEXTS_SEEN * w.OF_TEXT_SEEN, np.int64), p.TEXTS_SEEN_AT)
        door[p.PUT_AT] = 0 if step.put is None else address_of_kernel(step.put)
        door[p.BEGIN_KEY_AT] = 0 if step.begin_key is None else address_of_kernel(step.begin_key)
        door[p.TELL_AT] = 0 if step.tell is None else address_of_kernel(step.tell)
        door[p.OF_TELLING] = 0 if step.of_telling is None else step.of_telling.ctypes.data
        head = np.zeros(w.GIVEN_SIZE, np.int64)
        head[NUMBERS_AT] = self._numbers.ctypes.data
        head[TRUE], head[FALSE], head[w.TIME_COLUMN] = id(True), id(False), self.log_names.index(self.time)
        head[TABLE_COLUMNS_AT], head[TABLE_COLUMNS] = columns.ctypes.data, len(columns)
        head[w.FRACTIONS_AT], head[w.FRACTION_COLUMNS] = of_fractions.ctypes.data, len(of_fractions)
        self._kept["of rows"], self._of_rows_at = head, int(head.ctypes.data)

    def add_kind(self, bits: int, kind: int, begins: bool, matters: bool) -> None:
        """A kind of events that is new: can one begin, and can a run do anything with one?"""
        self._kinds.append((bits, kind, begins, matters))
        self._place("kinds", np.array(self._kinds, np.int64), p.KINDS_AT, p.KINDS)

    def look_at_log(self, dicts: list[Any] | None, rows: int, most: int) -> None:
        """The list that dicts are appended to, how many events the log has, and how many before it is looked at."""
        door = self.door
        door[d.LOG], door[d.ROWS], door[d.MOST_ROWS] = 0 if dicts is None else id(dicts), rows, most
        self._kept["dicts"] = dicts

    # --- events that wait -------------------------------------------------------------------------------------------

    @property
    def waits(self) -> list[Any]:
        """The dicts that wait."""
        return self.waiting[self.door[p.RING_FIRST] : self.door[p.RING_LAST]]

    def wait_again(self, before: list[Any], room: int = 0) -> None:
        """Begins with no dict that waits, and room for twice those that did."""
        width = p.OF_RING + int(self.door[p.READ_TO] - self.door[p.READ_FROM])
        ring = np.zeros((max(FIRST_ROOM, 2 * len(before) + room), width), np.int64)
        self.door[p.RING_WIDTH] = width
        self.waiting = []
        self.door[p.WAITING] = id(self.waiting)
        self.door[p.RING_FIRST] = self.door[p.RING_LAST] = 0
        self._place("ring", ring, p.RING_AT, p.RING_ROOM)

    def make_room_to_wait(self, more: int = 1) -> None:
        """Room for some more dicts that wait."""
        first, last = int(self.door[p.RING_FIRST]), int(self.door[p.RING_LAST])
        before, kept = self._kept["ring"][first:last], self.waiting[first:last]
        self.wait_again(kept, more)
        self.waiting += kept
        self._kept["ring"][: len(kept)] = before
        self.door[p.RING_LAST] = len(kept)

    def sort(self) -> None:
        """Puts dicts that wait into the order of time."""
        first, last = int(self.door[p.RING_FIRST]), int(self.door[p.RING_LAST])
        ring = self._kept["ring"]
        order = np.argsort(ring[first:last, 0], kind="stable")
        ring[first:last] = ring[first:last][order]
        own = self.waiting[first:last]
        self.waiting[first:last] = [own[place] for place in order.tolist()]

    def newest_waiting(self) -> int:
        """The latest time of a dict that waits."""
        first, last = self.door[p.RING_FIRST], self.door[p.RING_LAST]
        return int(self._kept["ring"][last - 1, 0]) if last > first else -d.FAR

    # --- rows of tables ---------------------------------------------------------------------------------------------

    def rows_of(self, table: pa.Table) -> GivenRows | None:
        """The rows of a table, if they can be taken in as they are."""
        if not self.reads_tables:
            return None
        shown = table if len(self.log_names) == len(self.names) else table.select(self.log_names)
        memory = exported(shown)
        if memory is None:
            return None
        number = shown.num_rows
        numbers = np.empty(w.GIVEN_SIZE + number, np.int64)  # in one piece: to ask for an address takes a microsecond
        if self._check_rows(numbers, self._of_rows_at, memory.at, number) != 1:
            return None
        return GivenRows(self, table, shown, memory, numbers)

    def release_rows(self, given: GivenRows) -> int:
        """Takes in the rows that the watermark has passed: what `rows_released` returns."""
        returned: int = self._release_rows(self.at, given.at)
        return returned


class GivenRows:
    """Rows of a table, some of which may wait. The log has the columns of the table that are shown."""

    __slots__ = ("_columns", "_names", "at", "first", "head", "last", "memory", "part", "rows", "shown", "table")

    def __init__(
        self, events: PatternEvents, table: pa.Table, shown: pa.Table, memory: Exported, numbers: Int64s
    ) -> None:
        self.table, self.shown, self.memory = table, shown, memory
        self._columns, self._names = events.of_tables, events.columns_read
        self.rows, self.head = numbers[w.GIVEN_SIZE :], numbers.data  # which of them are in the log, and the rest
        self.at, self.first, self.last = self.head[w.GIVEN_AT], self.head[w.FIRST_TIME], self.head[w.LATEST_TIME]
        self.part: Any = None  # of the log, if some rows are there

    @property
    def next(self) -> int:
        """The first row that waits."""
        return self.head[w.NEXT_ROW]

    @property
    def is_done(self) -> bool:
        """Has the watermark passed all rows?"""
        return self.head[w.NEXT_ROW] == self.head[w.ROWS_GIVEN]

    def waits(self) -> pa.Table:
        """The rows that wait."""
        return self.waits_from(self.next)

    def waits_from(self, row: int) -> pa.Table:
        """The rows that waited when this one was the first of them."""
        return self.table.slice(row)

    def row(self) -> dict[str, Any]:
        """The first row that waits: the columns that the search reads."""
        return {name: self.table.column(name)[self.next].as_py() for name in self._names}

    @property
    def taken(self) -> int:
        """How many rows have gone into the log."""
        return self.head[w.KEPT_ROWS]

"""Events as dicts and rows of tables: what the kernels of `dict_door` and `table_door` read, made for some queries.

The searches and the log of events belong to the caller, who says whenever something of them has moved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.columns import storage
from cepheid.engine.incremental import dict_door as d
from cepheid.engine.incremental import table_door as t
from cepheid.engine.incremental.alone import Alone
from cepheid.engine.incremental.arrow_memory import Exported
from cepheid.engine.incremental.arrow_rows import LAST, TypeNumbers
from cepheid.engine.incremental.core import Core
from cepheid.engine.incremental.dict_answers import Answers, take
from cepheid.engine.incremental.intake import load as load_dropping
from cepheid.engine.incremental.one_event import plain_columns
from cepheid.engine.incremental.pushed_matches import Found
from cepheid.engine.incremental.result_blocks import load as load_result_rows
from cepheid.engine.kernels.objects import ARE_KNOWN

FAR = d.FAR
KEYS_SEEN = 8192  # of all queries together, that are found again without an object
_KEYS = (pa.int64(), pa.string(), pa.bool_())  # types whose values are equal in Python as they are in a search
_KINDS: dict[pa.DataType, tuple[type, int]] = {
    pa.int64(): (int, d.IN_WHOLES),
    pa.float64(): (float, d.NOWHERE),
    pa.string(): (str, d.IN_TEXTS),
    pa.bool_(): (bool, d.NOWHERE),
}


def reads_dicts(core: Core, alone: Alone, schema: pa.Schema) -> bool:
    """Can events of a schema be read from dicts, one by one?"""
    keys = core.keys
    if not ARE_KNOWN or not all(schema.field(name).type in _KEYS for name in keys):
        return False
    return plain_columns(core.form.layout.attributes, schema) and alone.is_plain(schema)


class DictColumns:
    """The columns of a schema as kernels read them from dicts, and an array from which all else is reached."""

    def __init__(self, schema: pa.Schema, time: str, kind: str | None, size: int) -> None:
        numbers = np.zeros(size, np.int64)
        self.at = int(numbers.ctypes.data)
        self.door = numbers.data  # which Python reads in half the time
        self.names, self._schema = schema.names, schema
        self._kept: dict[str, Any] = {}  # what lies at the addresses in `door`
        columns = np.zeros((len(schema), d.OF_COLUMN), np.int64)
        clock = schema.field(time).type
        for row, field in zip(columns, schema, strict=True):
            value, stored = _KINDS.get(field.type, (type(None), d.NOWHERE))
            role = d.PLAIN
            if field.name == time:
                role = d.IS_TIME
                value = int if pa.types.is_integer(clock) else datetime
            elif field.name == kind:
                role = d.IS_TYPE
            row[:] = 0, id(value), role, stored
        columns[:, d.NAME] = [id(name) for name in self.names]
        self._place("columns", columns, d.COLUMNS_AT, d.COLUMNS)
        self._place("values", np.zeros(len(schema), np.int64), d.VALUES_AT)
        self.door[d.NONE_KIND], self.door[d.GIVEN] = id(type(None)), FAR
        self.door[d.UTC_AT] = id(UTC) if getattr(clock, "tz", None) is not None else 0

    def _place(self, name: str, table: Any, at: int, size: int | None = None) -> None:
        self._kept[name] = table
        self.door[at] = table.ctypes.data
        if size is not None:
            self.door[size] = len(table)

    def _fills(self, attributes: Any) -> list[tuple[int, ...]]:
        found, wholes, numbers = list[tuple[int, ...]](), 0, 0
        for place, (name, kind, _) in enumerate(attributes):
            column = self.names.index(name)
            if storage(kind) == "whole":
                found.append((column, d.IN_WHOLES, wholes, place))
                wholes += 1
            else:
                found.append((column, d.IN_NUMBERS, numbers, place))
                numbers += 1
        return found

    def table_columns(self, names: Sequence[str], of_table: Sequence[str]) -> npt.NDArray[np.int64]:
        """Some columns as kernels read them from a table with these columns."""
        columns = np.zeros((len(names), t.OF_TABLE_COLUMN), np.int64)
        columns[:, t.OF_SCHEMA] = [self.names.index(name) for name in names]
        columns[:, t.HOLDS_WHAT] = [t.held_kind(self._schema.field(name).type) for name in names]
        columns[:, t.OF_BATCH] = [of_table.index(name) for name in names]
        return columns


class DictEvents(DictColumns):
    """Takes single events in, for some queries."""

    def __init__(self, schema: pa.Schema, time: str, kind: str, delay: int, of_table: Sequence[str]) -> None:
        super().__init__(schema, time, kind, d.DOOR_SIZE)
        self._of_table = of_table  # the columns that tables have
        self.call: Callable[[Any, list[Any], int, int], int] | None = None  # with a list that rows are put in
        self.door[d.DELAY] = delay
        self._make_room_for_ends(64)

    # --- queries --------------------------------------------------------------------------------------------------

    def look_at(
        self, cores: Sequence[Core], alone: Sequence[Alone], takers: Mapping[str | None, Sequence[Any]]
    ) -> None:
        """The searches of all queries, and for each type (None: all others) the numbers and components of takers."""
        queries = np.zeros((len(cores), d.OF_QUERY), np.int64)
        fills = list[tuple[int, ...]]()
        for row, core, own in zip(queries, cores, alone, strict=True):
            row[d.HEAD_AT], row[d.EVERY], row[d.STEPPED] = core.head.ctypes.data, int(core.every_event), -1
            row[d.KEY_FROM] = len(fills)
            fills += [(self.names.index(name), d.NOWHERE, 0, 0) for name in core.keys]
            row[d.KEY_TO] = len(fills)
            if own.tested:
                own.prepare()
                row[d.ALONE_AT], row[d.ALONE_FROM] = own.head.ctypes.data, len(fills)
                fills += self._fills(own.layout.attributes)
                row[d.ALONE_TO] = len(fills)
            row[d.FILL_FROM] = len(fills)
            fills += self._fills(core.form.layout.attributes)
            row[d.FILL_TO] = len(fills)
        self._cores, self.call, self._take_rows = cores, take.direct(), t.take_rows.direct()
        load_result_rows()
        load_dropping()
        self._place("queries", queries, d.QUERIES_AT, d.QUERIES)
        self._remember_keys(cores, queries)
        self._place("fills", np.array(fills or [(0,) * d.OF_FILL], np.int64), d.FILLS_AT, d.FILLS)
        self._place("chosen", np.zeros((len(cores), d.OF_CHOSEN), np.int64), d.CHOSEN_AT)
        pending = np.zeros((len(cores), 2), np.int64)
        self._place("pending", pending, d.PENDING_AT)
        self._returned = pending.data
        self._place_takers(takers)
        self.look_at_keys()
        self.door[d.LATE] = int(any(core.form.moments.deadline for core in cores))
        columns = self.table_columns(sorted({self.names[fill[d.COLUMN]] for fill in fills}), self._of_table)
        table = np.zeros(t.TABLE_SIZE, np.int64)
        table[t.TRUE], table[t.FALSE] = id(True), id(False)
        table[t.TABLE_COLUMNS_AT], table[t.TABLE_COLUMNS] = columns.ctypes.data, len(columns)
        self._kept["numbers"] = numbers = np.zeros(len(self.names), np.int64)
        table[t.NUMBERS_AT] = numbers.ctypes.data
        self._table, self._table_at = table.data, int(table.ctypes.data)
        self._kept["of table"] = columns

    def _remember_keys(self, cores: Sequence[Core], queries: npt.NDArray[np.int64]) -> None:
        """Room for keys that tables have shown lately, where these are single whole numbers."""
        slots = max(16, KEYS_SEEN >> (len(cores) - 1).bit_length())
        seen = np.zeros((len(cores), 2 * slots), np.int64)
        for row, core, own in zip(queries, cores, seen, strict=True):
            if len(core.keys) == 1 and self._schema.field(core.keys[0]).type == pa.int64():
                row[d.SEEN_AT], row[d.SEEN] = own.ctypes.data, slots
        self._kept["seen"] = seen

    def _place_takers(self, takers: Mapping[str | None, Sequence[Any]]) -> None:
        codes: dict[Any, int] = {}
        ranges, rows = list[tuple[int, int]](), list[tuple[int, int]]()
        self.door[d.OTHERS] = -1
        for kind, own in takers.items():
            if kind is None and not own:
                continue
            if kind is None:
                self.door[d.OTHERS] = len(ranges)
            else:
                codes[kind] = len(ranges)
            ranges.append((len(rows), len(rows) + len(own)))
            rows += own
        self._place("ranges", np.array(ranges or [(0, 0)], np.int64), d.RANGES_AT, d.CODES_KNOWN)
        self._place("takers", np.array(rows or [(0, 0)], np.int64), d.TAKERS_AT, d.TAKERS)
        self._kept["codes"] = codes
        self.door[d.CODES] = id(codes)

    def look_at_keys(self) -> None:
        """The dicts of keys are others than before."""
        self._kept["seen"][:] = 0
        keys = [core.reader.numbers for core in self._cores]
        self._kept["queries"][:, d.KEYS] = [id(each) for each in keys]
        self._kept["keys"] = keys

    def look_at_log(self, dicts: list[Any] | None, rows: int, most: int, answers: Answers | None) -> None:
        """The list that dicts are appended to, how many events the log has, and how many before it is looked at.

        `answers` makes rows of matches, where all of these events are in that list.
        """
        door = self.door
        door[d.ANSWERS_AT] = 0 if answers is None else answers.at
        door[d.LOG], door[d.ROWS], door[d.MOST_ROWS] = 0 if dicts is None else id(dicts), rows, most
        self._kept["dicts"] = dicts

    # --- rooms ----------------------------------------------------------------------------------------------------

    def make_room(self, events: int = 1) -> None:
        """Room for some more events, one at least of them with a new key, in every search."""
        for core in self._cores:
            core.make_room(events)
            core.make_room_for_keys(core.reader.keys + 1)
        self._make_room_for_ends(events * len(self._cores))

    def _make_room_for_ends(self, more: int) -> None:
        first, last = int(self.door[d.ENDS_FIRST]), int(self.door[d.ENDS_LAST])
        if last + more <= self.door[d.ENDS_ROOM]:
            return
        ends = np.zeros((2 * (last - first + more), 2), np.int64)
        if last > first:
            ends[: last - first] = self._kept["ends"][first:last]
        self._place("ends", ends, d.ENDS_AT, d.ENDS_ROOM)
        self.door[d.ENDS_FIRST], self.door[d.ENDS_LAST] = 0, last - first

    # --- rows of a table ------------------------------------------------------------------------------------------

    def take_rows(self, found: TypeNumbers, batch: Exported, wanted: int) -> tuple[int, int]:
        """Takes the rows of a batch in that were found last: searches to go on with, rows kept."""
        table = self._table
        table[t.NEXT], table[t.WANTED], table[t.KEPT], table[t.LAST_TIME] = 0, wanted, 0, found.head[LAST]
        table[t.BATCH_AT] = batch.at
        arguments = self.at, self._table_at, found.at
        pending = self._take_rows(*arguments)
        while pending == d.NEEDS_ROOM:
            self.make_room(wanted)
            pending = self._take_rows(*arguments)
        return pending, table[t.KEPT]

    # --- possible last events of matches --------------------------------------------------------------------------

    @property
    def due(self) -> int:
        """The time from which a match may be known."""
        return int(self.door[d.DUE])

    def set_ends(self, times: Int64s, queries: Int64s) -> None:
        """The times of all events that may be the last ones of a match, and the numbers of their queries."""
        door, order = self.door, np.argsort(times, kind="stable")
        door[d.ENDS_FIRST] = door[d.ENDS_LAST] = 0
        self._make_room_for_ends(len(times))
        ends = self._kept["ends"]
        ends[: len(times), 0], ends[: len(times), 1] = times[order], queries[order]
        door[d.ENDS_LAST] = len(times)
        self.look_when_due()

    def look_when_due(self) -> None:
        """The time from which a match may be known has moved."""
        door = self.door
        due = [core.next_deadline for core in self._cores]
        if door[d.ENDS_FIRST] < door[d.ENDS_LAST]:
            due.append(int(self._kept["ends"][door[d.ENDS_FIRST], 0]))
        door[d.DUE] = min(FAR, min(due) + int(door[d.DELAY]))

    def passed_ends(self, until: int) -> list[int]:
        """The queries of which an event up to a time may be the last one of a match; these events are done with."""
        door, ends = self.door, self._kept["ends"]
        first, last = int(door[d.ENDS_FIRST]), int(door[d.ENDS_LAST])
        passed = first + int(np.searchsorted(ends[first:last, 0], until, side="right"))
        queries = {number for number, core in enumerate(self._cores) if core.next_deadline <= until}
        queries |= set(ends[first:passed, 1].tolist())
        door[d.ENDS_FIRST] = passed
        return sorted(queries)

    # --- results --------------------------------------------------------------------------------------------------

    def is_found(self, pending: int) -> bool:
        """Has the search of the first query found something, without hindrance, and no other?"""
        return bool(pending == 1 and self._returned[0, 0] == 0 and self._returned[0, 1] > 0)

    def results(self, pending: int) -> list[tuple[int, list[Found]]]:
        """What the searches of a call found, by the number of the query."""
        found: list[tuple[int, list[Found]]] = []
        told = self._kept["pending"][:pending].tolist()
        for number, returned in sorted(told) if pending > 1 else told:
            results = self._cores[number].results(returned)
            if results:
                found.append((number, results))
        return found


__all__ = ["Alone", "DictEvents", "reads_dicts"]

"""The events that a live query keeps, as they came: tables, rows of tables, and dicts.

They become one kind only where that is needed: to be saved, or for the events of a match. So an event that is in no
match is never copied.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from ctypes import addressof, c_int64
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.incremental.arrow_memory import Exported, exported
from cepheid.engine.incremental.pushed_matches import PushedMatches
from cepheid.engine.incremental.result_rows import BATCH_AT, OF_PART, ROWS_AT, START, ResultRows, is_ready

Event = dict[str, Any]
FEW = 64  # events that are taken one by one
_PLAIN = {pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.timestamp("us")}


@dataclass(slots=True)
class Part:
    """Events that came one after the other: dicts, or some rows of a table."""

    events: list[Event] | None = None
    table: pa.Table | None = None
    rows: Int64s | None = None  # None: all rows of the table
    first: int = 0  # of dicts: how many events came before them
    used: int | None = None  # the first so many of `rows`; None: all of them
    made: pa.Table | None = field(default=None, repr=False)  # of the dicts or rows, if somebody asked for it
    memory: Exported | None = field(default=None, repr=False)  # of the table
    rows_at: int = 0  # where `rows` lies, if that is known

    def __len__(self) -> int:
        if self.events is not None:
            return len(self.events)
        assert self.table is not None
        if self.rows is None:
            return int(self.table.num_rows)
        return len(self.rows) if self.used is None else self.used


class Mark(NamedTuple):
    """How far the log went at some time: what is put behind later is none of it."""

    parts: Sequence[Part]
    number: int
    rows: int


class EventLog:
    """Events, numbered from 0 on.

    `row_column` is made for tiebreak="row": of dicts it holds numbers that rise as these came.
    """

    def __init__(
        self, schema: pa.Schema, as_table: Callable[[list[Event]], pa.Table], row_column: str | None = None
    ) -> None:
        self._schema, self._as_table, self._row_column = schema, as_table, row_column
        self.parts: list[Part] = []
        self.starts: list[int] = []
        self.dicts: list[Event] | None = None  # those of the last part, if it has dicts
        self._rows = 0  # up to the end of the last part, if it is a table
        self.held_rows = 0  # of tables, those included that nobody needs
        self.counted = 0  # rows whose ties are counted elsewhere
        self._make_places(64)  # where parts lie, as `ResultRows` reads it...
        self._placed: list[tuple[Exported | None, Int64s | None]] = []  # ... of the parts that it is known of

    def __len__(self) -> int:
        return self.rows

    @property
    def rows(self) -> int:
        """How many events there are."""
        return self._rows if self.dicts is None else self.starts[-1] + len(self.dicts)

    def add_events(self, before: int = 0) -> list[Event]:
        """The list that further dicts are appended to; so many events came before these, kept or not."""
        if self.dicts is None:
            dicts: list[Event] = []
            self.parts.append(Part(dicts, first=before))
            self.starts.append(self._rows)
            self.dicts = dicts
        return self.dicts

    def add_table(self, table: pa.Table, rows: Int64s | None, memory: Exported | None = None) -> None:
        """Some rows of a table, or all."""
        part, before = Part(table=table, rows=rows, memory=memory), self.rows
        self.parts.append(part)
        self.starts.append(before)
        self.dicts, self._rows = None, before + len(part)
        self.held_rows += table.num_rows

    def add_some(self, table: pa.Table, rows: Int64s, rows_at: int, used: int, memory: Exported) -> Part:
        """The first so many of some rows of a table, in their order; `add_more` adds others."""
        part, before = Part(table=table, rows=rows, used=used, memory=memory, rows_at=rows_at), self.rows
        self.parts.append(part)
        self.starts.append(before)
        self.dicts, self._rows = None, before + used
        self.held_rows += table.num_rows
        return part

    def add_more(self, part: Part, used: int) -> None:
        """The first so many rows of what was added last: some of them are there."""
        assert part is self.parts[-1], "others came behind it"
        assert part.used is not None, "it was made a table of its own"
        self._rows += used - part.used
        part.used = used

    def copy(self) -> EventLog:
        """Another log of the same events: what is done to it leaves this one as it is."""
        log = EventLog(self._schema, self._as_table, self._row_column)
        log.parts, log.starts, log._rows, log.held_rows = list(self.parts), list(self.starts), self.rows, self.held_rows
        log.counted = self.counted
        log._rows_of = self._rows_of  # it takes longer to make than to use once
        log._make_places(len(self._places) // OF_PART)
        log._places[:], log._placed = self._places, list(self._placed)
        return log

    # --- going back ---------------------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """To go back to."""
        return Mark(self.parts, len(self.parts), self.rows)

    def tables(self, mark: Mark) -> list[pa.Table]:
        """The events up to a mark."""
        found, left = [], mark.rows
        for part in mark.parts[: mark.number]:
            table = self._made(part)
            found.append(table if table.num_rows <= left else table.slice(0, left))
            left -= found[-1].num_rows
        return found

    def _made(self, part: Part) -> pa.Table:
        if part.events is not None:
            if part.made is None or part.made.num_rows < len(part.events):
                known = part.made.num_rows if part.made is not None else 0
                more = self._read(part, part.events[known:], np.arange(known, len(part.events)))
                part.made = more if part.made is None else pa.concat_tables([part.made, more])
            return part.made
        assert part.table is not None
        if part.rows is not None:
            if part.used != part.table.num_rows:
                part.table, part.memory = part.table.take(pa.array(part.rows[: len(part)])), None
            part.rows = part.used = None
        return part.table

    def _read(self, part: Part, events: list[Event], places: Int64s) -> pa.Table:
        """Dicts as a table; they lie at these places of their part."""
        table = self._as_table(events)
        if self._row_column is None:
            return table
        column = table.schema.get_field_index(self._row_column)
        return table.set_column(column, self._row_column, pa.array(part.first + places, pa.int64()))

    def table(self) -> pa.Table:
        """All events."""
        return pa.concat_tables([self._schema.empty_table(), *self.tables(self.mark())])

    # --- events of matches --------------------------------------------------------------------------------------------

    def are_dicts(self, rows: Sequence[int]) -> bool:
        """Did all of these come as dicts?"""
        if len(self.parts) == 1:
            return self.dicts is not None
        return all(self.parts[bisect_right(self.starts, row) - 1].events is not None for row in rows)

    @cached_property
    def has_plain_types(self) -> bool:
        """Are values the same after they were Python's? A time with nanoseconds is not, for one."""
        return all(field.type in _PLAIN for field in self._schema)

    def event(self, row: int) -> Event:
        """An event as a dict: the one that came, or a row of a table."""
        place = bisect_right(self.starts, row) - 1
        events = self.parts[place].events
        if events is not None:
            return events[row - self.starts[place]]
        (event,) = self._single(row).to_pylist()
        return event  # type: ignore[no-any-return]

    def value(self, row: int, name: str) -> Any:
        """One value of an event."""
        place = bisect_right(self.starts, row) - 1
        part, row = self.parts[place], row - self.starts[place]
        if part.events is not None:
            return part.events[row].get(name)
        assert part.table is not None
        return part.table.column(name)[row if part.rows is None else int(part.rows[row])].as_py()

    def take(self, rows: Int64s) -> pa.Table:
        """Some of the events as a table."""
        if not len(rows):
            return self._schema.empty_table()
        if len(rows) <= FEW:
            return pa.concat_tables([self._single(row) for row in rows.tolist()])
        places = np.searchsorted(np.array(self.starts), rows, side="right") - 1
        tables, found = [], []
        for place in np.unique(places).tolist():
            here = np.flatnonzero(places == place)
            found.append(here)
            tables.append(self._taken(self.parts[place], rows[here] - self.starts[place]))
        if len(tables) == 1:
            return tables[0]
        order = np.argsort(np.concatenate(found), kind="stable")
        return pa.concat_tables(tables).take(pa.array(order))

    def places(self) -> tuple[int, int]:
        """How many parts there are, and the address of what is known of them (`ResultRows`), until the next change."""
        known = len(self._placed)
        while known < len(self.parts):
            start, part = self.starts[known], self.parts[known]
            if OF_PART * known == len(self._places):
                before = self._places
                self._make_places(2 * known)
                self._places[: len(before)] = before
            if part.memory is None and part.table is not None:
                part.memory = exported(part.table)
            memory, rows = part.memory, part.rows
            self._placed.append((memory, rows))
            at = OF_PART * known
            self._places[at + START], self._places[at + BATCH_AT] = start, 0 if memory is None else memory.at
            self._places[at + ROWS_AT] = 0 if rows is None else part.rows_at or _address(rows)
            known += 1
        return known, self._places_at

    def _make_places(self, parts: int) -> None:
        places = np.zeros(OF_PART * parts, np.int64)
        self._places, self._places_at = places.data, int(places.ctypes.data)

    def _single(self, row: int) -> pa.Table:
        """One of the events, without a copy if it came in a table."""
        place = bisect_right(self.starts, row) - 1
        part, row = self.parts[place], row - self.starts[place]
        if part.events is not None:
            return self._read(part, [part.events[row]], np.array([row]))
        assert part.table is not None
        return part.table.slice(row if part.rows is None else int(part.rows[row]), 1)

    def _taken(self, part: Part, rows: Int64s) -> pa.Table:
        if part.events is not None:
            if part.made is not None and part.made.num_rows == len(part.events):
                return part.made.take(pa.array(rows))
            return self._read(part, [part.events[row] for row in rows.tolist()], rows)
        assert part.table is not None
        return part.table.take(pa.array(rows if part.rows is None else part.rows[rows]))

    @cached_property
    def _rows_of(self) -> ResultRows:
        schema = pa.schema([("event", pa.struct([(each.name, each.type) for each in self._schema]))])
        return ResultRows(self._schema, schema, None, self._schema.names, [False], True)

    def _joined(self, rows: Int64s) -> pa.Table:
        """Events that came in tables, as one table: by a kernel, since Arrow takes ten microseconds for each table."""
        if self._rows_of.fits and is_ready(len(rows)):
            batch = self._rows_of.batch(self.places(), PushedMatches(rows, None, rows))
            if batch is not None:
                return pa.Table.from_arrays(batch.column(0).flatten(), schema=self._schema)
        return self.take(rows).combine_chunks()

    # --- forgetting ---------------------------------------------------------------------------------------------------

    def keep(self, which: npt.NDArray[np.bool_]) -> None:
        """Forgets all other events; the parts are new ones, so that marks stay what they were."""
        parts, self.held_rows = list[Part](), 0
        self.counted = int(np.count_nonzero(which[: self.counted]))
        begin = 0  # of tables that follow each other

        def join(end: int) -> None:
            stay = begin + np.flatnonzero(which[begin:end])
            if len(stay):
                parts.append(Part(table=self._joined(stay)))

        for start, part in zip(self.starts, self.parts, strict=True):
            if part.events is None:
                continue
            join(start)
            begin = start + len(part)
            kept = list(compress(part.events, which[start:begin].tobytes()))
            if kept and parts and parts[-1].events is not None:
                parts[-1].events.extend(kept)
            elif kept:
                parts.append(Part(kept, first=part.first))
        join(len(which))
        self.parts, self.starts, self._rows, self._placed = parts, [], 0, []
        for part in parts:
            self.starts.append(self._rows)
            self._rows += len(part)
            self.held_rows += part.table.num_rows if part.table is not None else 0
        self.dicts = parts[-1].events if parts else None


def _address(rows: Int64s) -> int:
    """Where numbers lie; numpy's own way takes twice as long."""
    writable = len(rows) and rows.flags.writeable
    return addressof(c_int64.from_buffer(rows.data)) if writable else int(rows.ctypes.data)

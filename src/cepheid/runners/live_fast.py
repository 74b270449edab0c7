"""The short way into a live query: single dicts, lists of them and Arrow tables, in order of time.

An event goes as numbers into the compiled search of the queries that mention its type (engine/incremental). Nothing is
made of it but a copy, unless it is in a match. What cannot go this way, such as an event that is older than another, is
left to the long way (live_face.py), which first takes over what came here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.data.matches import Int64s
from cepheid.engine.incremental.arrow_rows import FIRST, LAST, RISES, SOME_RISE, TypeNumbers
from cepheid.engine.incremental.core import Core, Found
from cepheid.engine.incremental.dict_events import Alone, DictEvents, reads_dicts
from cepheid.engine.incremental.linking import AFTER, WAITS
from cepheid.engine.search.incremental_events import Arrived
from cepheid.runners.live_events import EventReader
from cepheid.runners.live_rows import DictRows
from cepheid.runners.stream import incremental_shard as residents
from cepheid.runners.stream.event_log import Event, Mark
from cepheid.runners.stream.incremental_pushed import HeldLog, ResidentIncremental
from cepheid.runners.ties import LiveTies
from cepheid.runners.worker_plans import result_rows

FAR = 2**62  # times beyond are none
LEAST, MOST = -(2**63), 2**63 - 1  # of whole numbers
MOST_TIED = 1_000  # events of one time, or tables with some, that wait to be counted
MOST_SHAPES = 1_000  # combinations of names and types of values that are known to fit
HELD_FOR_EACH = 20  # rows of tables in memory, for each event that is kept
_KINDS: dict[pa.DataType, frozenset[type]] = {
    pa.int64(): frozenset({int, type(None)}),
    pa.float64(): frozenset({float, type(None)}),
    pa.string(): frozenset({str, type(None)}),
    pa.bool_(): frozenset({bool, type(None)}),
}
_NOTHING: frozenset[type] = frozenset({type(None)})
_NAIVE, _EPOCH = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)
_LETTERS = (pa.string(),)
_TO_LIST = pa.Table.to_pylist

Takers = tuple[tuple[int, DictEvents, int], ...]  # the number of a query, its events, and the components as bits
Told = list[tuple[int, list[Found]]]  # what was found, by the number of the query


class FastDoor:
    """Takes in events that come in order."""

    def __init__(self, resident: ResidentIncremental, reader: EventReader, result: pa.Schema) -> None:
        schema = resident.step.plans[0].bound.schema
        assert schema.type is not None
        self.resident, self.reader, self.result = resident, reader, result
        self.time, self.type, self.delay = schema.time, schema.type, resident.step.delay
        given, narrow = reader.given, reader.narrow
        self.names = frozenset(given.names)
        self.kinds = [(each.name, _KINDS.get(each.type, _NOTHING)) for each in given if each.name != self.time]
        self.wholes = [each.name for each in given if each.type == pa.int64() and each.name != self.time]
        # Of types that queries name nobody need ask.
        self.texts = [each.name for each in given if each.type in _LETTERS and each.name != self.type]
        kind = given.field(self.time).type
        self.whole, self.zoned = pa.types.is_integer(kind), getattr(kind, "tz", None) is not None
        self.alone = [Alone(core.plan) for core in resident.cores]
        pairs = zip(resident.cores, self.alone, strict=True)
        self.readable = all(reads_dicts(core, alone, resident.schema) for core, alone in pairs)
        self.shapes: set[Any] = set()
        self.nothing = result.empty_table()
        self.same = given.equals(narrow)
        self.time_at, self.type_at = narrow.get_field_index(self.time), narrow.get_field_index(self.type)
        self.columns_at = [
            [(name, narrow.get_field_index(name)) for name in core.array_names] for core in resident.cores
        ]
        self.selects = all(given.field(each.name).type == each.type for each in narrow)
        self.dict_rows = DictRows(resident.shipments, result) if not self.zoned else None
        self._cores: list[Core] = []
        self.before: tuple[Any, ...] = ()  # where to go back to, if a call is broken off...
        self.broken = False  # ...and whether it was, and that was not done yet
        self.newest = -FAR
        self.passed = -FAR  # the time that had passed when the long way was left: `advance` may be ahead of events
        # The times of events that may be the last ones of a match, with the numbers of their queries.
        self.ends: deque[tuple[int, int]] = deque()
        self.due = FAR  # the time from which a match may be known
        self.events = self.matches = 0  # that came this way since the long way last looked
        self.counts_ties = False
        self.tied: list[Any] = []  # events that share their time with another
        self.most_tied = 2
        self.tied_time = -FAR  # of the latest of them
        self.recent: list[Any] = []  # the latest event that a query wanted...
        self.recent_time = -FAR  # ...and its time
        self.back: Callable[[pa.Table], Any] | None = None

    # --- the long way -------------------------------------------------------------------------------------------------

    def open(self, held: Any, ties: LiveTies) -> bool:
        """Events may come this way again; False: not yet, since kernels are not compiled."""
        resident = self.resident
        if resident._at is not held:
            resident.go_back(held)
            resident._at = held
        if any(core.calls is None for core in resident.cores):
            return False
        if resident.cores is not self._cores:
            self._look_at(resident.cores)
        known = [resident.newest, None if resident.until is None else resident.until + 1]
        self.newest = max((each for each in known if each is not None), default=-FAR)
        self.passed = -FAR if resident.until is None else resident.until
        self._look_for_ends()
        self.counts_ties = ties.counts
        self.recent, self.recent_time = [], self.newest  # the long way knows the events of that time
        self.events = self.matches = 0
        self.back, self.tied, self.broken = None, [], False
        return True

    def closed(self) -> list[Any]:
        """What came this way, for the long way, which asks for its number, too: events that may be tied."""
        if self.broken:
            self.mend()
        resident = self.resident
        if self.events:
            resident.until, resident.newest = self._until(self.newest), self.newest
        return [*self.tied, *self.recent]

    def _look_at(self, cores: list[Core]) -> None:
        """New searches: which of them want events of which types?"""
        events = [DictEvents(core, alone) for core, alone in zip(cores, self.alone, strict=True)]
        kinds = sorted(frozenset().union(*(core.reader.types for core in cores)))

        def takers(kind: str | None) -> Takers | None:
            of_each = [(number, each, each.core.reader.mask_of_type(kind)) for number, each in enumerate(events)]
            return tuple(each for each in of_each if each[2] or each[1].every_event) or None

        self.entries: dict[Any, Takers | None] = {kind: takers(kind) for kind in kinds}
        self.others = takers(None)
        self.types = TypeNumbers(kinds, self.others is not None)
        masks = [[core.reader.mask_of_type(kind) for kind in (*kinds, None)] for core in cores]
        self.masks = [np.array(each, np.int64) for each in masks]
        self._cores = cores

    def _look_for_ends(self) -> None:
        cores = enumerate(self.resident.cores)
        self.ends = deque(sorted((time, number) for number, core in cores for time in core.waiting_ends()))
        self.due = self.ends[0][0] + self.delay if self.ends else FAR

    # --- one call at a time -------------------------------------------------------------------------------------------

    def _alone(self, live: Any, events: Any) -> Any:
        """What events decide, by this way or by the long one, while no other call is at work."""
        told = done = None
        try:
            with live._lock:
                if (live._opened is live._state and not self.tied and not self.broken) or live._is_open():
                    told = self._one(events) if type(events) is dict else self.take(events)
                    done = self.before
            if told is not None:
                return told
        except BaseException:
            if told is not None:  # Ctrl-C came between what happened and the end of the call
                with live._lock:
                    if self.before is done:
                        self.mend()
            raise
        return live._sent_the_long_way(events)

    # --- single events ------------------------------------------------------------------------------------------------

    def take(self, events: Any) -> Any:
        """What events decide, as they came; None: they have to go the long way."""
        kind = type(events)
        if kind is dict:
            return self._one(events)
        if kind is pa.Table:
            return self._table(events)
        if kind is list and events:
            return self._several(events)
        return None

    def _one(self, event: Event) -> Any:
        time = event.get(self.time)
        if type(time) is not int or not self.whole:
            time = self._instant(time)
        newest = self.newest
        if not newest <= time < FAR:
            return None
        if (*event, *map(type, event.values())) not in self.shapes and not self._fits(event):
            return None
        for name in self.wholes:
            value = event.get(name)
            if value is not None and not LEAST <= value <= MOST:
                return None
        takers = self.entries.get(event.get(self.type), self.others)
        if takers is None and time <= self.due:
            events = self.events
            self.before = newest, events, self.back
            try:
                self.back = _TO_LIST
                self.newest = time
                self.events = events + 1
                return []
            except BaseException:
                self.mend()
                raise
        if takers is not None and (self.texts or takers is self.others) and not self._are_texts(event):
            return None
        self._begin()
        try:
            found = self._pushed(event, time, takers or (), max(time - self.delay - 1, self.passed))
            return self._done(found, time, 1, as_table=False)
        except BaseException:
            self.mend()
            raise

    def _several(self, events: list[Any]) -> Any:
        newest, times = self.newest, []
        for event in events:
            if type(event) is not dict:
                return None
            time = event.get(self.time)
            if type(time) is not int or not self.whole:
                time = self._instant(time)
            if not newest <= time < FAR or not self._fits(event) or not self._are_texts(event):
                return None
            for name in self.wholes:
                value = event.get(name)
                if value is not None and not LEAST <= value <= MOST:
                    return None
            newest = time
            times.append(time)
        self._begin()
        try:
            for event, time in zip(events, times, strict=True):
                takers = self.entries.get(event.get(self.type), self.others)
                if takers is not None:
                    self._pushed(event, time, takers, None)
            found = self._stepped(newest - self.delay - 1) if newest > self.due else []
            return self._done(found, newest, len(events), as_table=False)
        except BaseException:
            self.mend()
            raise

    def _pushed(self, event: Event, time: int, takers: Takers, until: int | None) -> Told:
        """Takes an event in, and lets time pass, unless `until` is None."""
        found: Told = []
        log = self.resident.log
        row = log.rows
        passes = until is not None and time > self.due
        for number, events, mask in takers:
            taken = events.take(event, mask)
            if taken is None:
                continue
            if log.rows == row:
                log.add_events().append(event.copy())  # the caller may use it again
                log.rows += 1
                if self.counts_ties:
                    self._count_tied(time)
            core = events.core
            returned = events.push(event, time, taken, row, int(core.head[AFTER]) if until is None else until)
            if not returned:
                continue
            if returned != WAITS:
                results = core.results(returned)
                if results:
                    found.append((number, results))
                if not taken[1] & events.ending:
                    continue
            self.ends.append((time, number))
            self.due = self.ends[0][0] + self.delay
        if passes:
            assert until is not None
            found += self._stepped(until)
            found.sort(key=_by_query)
        return found

    def _stepped(self, until: int) -> Told:
        """Lets time pass for the queries of which an event may be the last one of a match."""
        ends, found = self.ends, []
        numbers: dict[int, None] = {}
        while ends and ends[0][0] <= until:
            numbers[ends.popleft()[1]] = None
        self.due = ends[0][0] + self.delay if ends else FAR
        for number in sorted(numbers):
            core = self.resident.cores[number]
            if core.head[AFTER] < until:
                results = core.step(until)
                if results:
                    found.append((number, results))
        return found

    def _fits(self, event: Event) -> bool:
        """Has it the names and types of values of the schema, so that a table takes it as it is?"""
        shape = (*event, *map(type, event.values()))
        if shape not in self.shapes:
            if not self.names >= event.keys():
                return False
            for name, kinds in self.kinds:
                if type(event.get(name)) not in kinds:
                    return False
            if len(self.shapes) < MOST_SHAPES:
                self.shapes.add(shape)
        return True

    def _are_texts(self, event: Event) -> bool:
        """Are its texts such that Arrow takes them?"""
        for name in (self.type, *self.texts):
            value = event.get(name)
            if value is not None and not value.isascii():
                try:
                    value.encode()
                except UnicodeEncodeError:
                    return False
        return True

    def _instant(self, time: Any) -> int:
        """A time in microseconds; one that lies too far away if it is not what the column holds."""
        if self.whole or type(time) is not datetime or (time.tzinfo is not None) != self.zoned:
            return FAR
        since = time - (_EPOCH if self.zoned else _NAIVE)
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds

    # --- tables -------------------------------------------------------------------------------------------------------

    def _table(self, table: pa.Table) -> pa.Table | None:
        if not self.same and self.selects and table.schema.equals(self.reader.given):
            table = table.select(self.reader.narrow.names)
        if not table.schema.equals(self.reader.narrow):
            return None
        batches = table.to_batches()
        if len(batches) != 1:
            return None
        (batch,) = batches
        times, kinds = batch.column(self.time_at), batch.column(self.type_at)
        if times.null_count or kinds.null_count:
            return None
        rows, codes, when = self.types.rows(times, kinds)
        head = self.types.head
        first, last = int(head[FIRST]), int(head[LAST])
        if first < self.newest or head[SOME_RISE] == 0 or not -FAR < last < FAR:
            return None
        self._begin()
        try:
            if len(rows):
                self._add(table, batch, (rows.copy(), codes, when))
                if self.counts_ties:
                    self._count_tied_table(table, (first, int(when[-1]), int(rows[-1])), head[RISES] == 1)
            found = self._stepped(last - self.delay - 1) if last > self.due else []
            return self._done(found, last, table.num_rows, as_table=True)
        except BaseException:
            self.mend()
            raise

    def _add(self, table: pa.Table, batch: pa.RecordBatch, wanted: tuple[Int64s, Int64s, Int64s]) -> None:
        """Keeps the rows of a table that a query wants."""
        rows, codes, when = wanted
        resident, start = self.resident, self.resident.log.rows
        cores = resident.cores
        if len(cores) == 1:
            arrived = self._read(0, table, batch, rows, codes)
            chosen = arrived.rows
            if len(chosen):
                resident.log.add_table(table, chosen)
                times = when if chosen is rows else _times(batch, self.time)[chosen]
                self._append(0, arrived, times, np.arange(start, start + len(chosen)))
            return
        every = [self._read(number, table, batch, rows, codes) for number in range(len(cores))]
        held = np.zeros(table.num_rows, bool)
        for arrived in every:
            held[arrived.rows] = True
        if not held.any():
            return
        resident.log.add_table(table, np.flatnonzero(held))
        numbers, times = start + np.cumsum(held) - 1, _times(batch, self.time)
        for number, arrived in enumerate(every):
            if len(arrived.rows):
                self._append(number, arrived, times[arrived.rows], numbers[arrived.rows])
        if len(self.ends) > 1:
            self.ends = deque(sorted(self.ends))
            self.due = self.ends[0][0] + self.delay

    def _append(self, number: int, arrived: Arrived, times: Int64s, numbers: Int64s) -> None:
        core = self.resident.cores[number]
        core.append(arrived, times, numbers, in_order=True)
        ending = times[(arrived.mask & core.form.ending) != 0]
        if len(ending):
            self.ends.extend((time, number) for time in ending.tolist())
            self.due = self.ends[0][0] + self.delay

    def _read(self, number: int, table: pa.Table, batch: pa.RecordBatch, rows: Int64s, codes: Int64s) -> Arrived:
        """The candidates of one query among the rows whose types are wanted."""
        core = self.resident.cores[number]
        if self.alone[number].tested or not core.reads_arrays:
            return core.read(table)
        mask = self.masks[number][codes]
        if not core.every_event and not mask.all():
            inside = mask != 0
            rows, mask = rows[inside], mask[inside]
        columns = {name: batch.column(place) for name, place in self.columns_at[number]}
        for column in columns.values():
            if column.null_count:
                return core.read(table)
        return core.read_arrays(columns, rows, mask)

    # --- a call -------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Notes where to go back to if the call is broken off."""
        log, resident = self.resident.log, self.resident
        of_log = log, log.parts, len(log.parts), log.rows, resident.until
        counted = self.events, self.matches
        self.before = self.newest, counted, self.tied, self.recent, self.recent_time, self.back, of_log
        self.broken = True

    def mend(self) -> None:
        """A call was broken off: it did not happen."""
        self.broken = True
        if len(self.before) == 3:  # nothing was kept of the event
            self.newest, self.events, self.back = self.before
            self.broken = False
            return
        newest, counted, self.tied, self.recent, self.recent_time, self.back, of_log = self.before
        self.events, self.matches = counted
        log, parts, number, rows, until = of_log
        resident = self.resident
        resident.until = until
        known = None if newest <= -FAR else newest
        ends = dict(resident.ends.by_query)
        mark = Mark(parts, number, rows)
        resident.go_back(HeldLog((), 0, rows, self._until(newest), known, ends, log=log, mark=mark))
        self._look_at(resident.cores)
        self._look_for_ends()
        self.newest, self.broken = newest, False

    def _until(self, newest: int) -> int | None:
        known = self.resident.until
        if newest <= -FAR:
            return known
        return newest - self.delay - 1 if known is None else max(known, newest - self.delay - 1)

    def _done(self, found: Told, newest: int, events: int, as_table: bool) -> Any:
        """Makes the rows of the result, forgets what has expired, and says that the call has happened."""
        told, matches = (self.nothing if as_table else []), 0
        if found:
            told = self._rows(found, as_table)
            matches = len(told)
        resident, log = self.resident, self.resident.log
        if log.rows > residents.LEAST or log.held_rows > HELD_FOR_EACH * residents.LEAST:
            most = max(residents.LEAST, 2 * resident.kept)
            if log.rows > most or log.held_rows > HELD_FOR_EACH * most:
                self._forget(newest)
        self.events += events
        self.matches += matches
        self.back = _same if as_table else _TO_LIST
        self.newest = newest
        self.broken = False
        return told

    def _forget(self, newest: int) -> None:
        """Leaves out what no later match can need."""
        resident = self.resident
        resident.until = self._until(newest)
        if resident.until is not None:
            resident.forget()

    # --- results ------------------------------------------------------------------------------------------------------

    def _rows(self, found: Told, as_table: bool) -> Any:
        """What was found as a table, or as a list of dicts."""
        resident = self.resident
        if not as_table and self.dict_rows is not None:
            rows = self.dict_rows.rows(resident.log, found)
            if rows is not None:
                return rows
        shipments, batches = resident.shipments, []
        for number, results in found:
            for place, batch in resident.told(number, resident.cores[number].matches(results)):
                named = shipments[place].name is not None
                batches.append(result_rows(shipments[place], batch, self.result) if named else batch)
        table = pa.Table.from_batches(batches, self.result)
        return table if as_table else table.to_pylist()

    # --- ties ---------------------------------------------------------------------------------------------------------

    def is_crowded(self) -> bool:
        """Do so many events that share their time wait that they should be counted?"""
        passed = self.newest - self.delay > self.tied_time or len(self.tied) >= MOST_TIED
        if len(self.tied) < self.most_tied or not passed:  # before time passes them, they cannot be counted
            return False
        self.most_tied = min(2 * self.most_tied, MOST_TIED)
        return True

    def _count_tied(self, time: int) -> None:
        """Notes the event that was kept last, if it shares its time with the one before it, and that one."""
        event = self.resident.log.add_events()[-1]
        if time > self.recent_time:
            self.recent, self.recent_time = [event], time
        else:
            self.tied, self.tied_time = [*self.tied, *self.recent, event], time
            self.recent = []

    def _count_tied_table(self, table: pa.Table, place: tuple[int, int, int], rises: bool) -> None:
        first, time, row = place
        if rises and first > self.recent_time:
            self.recent, self.recent_time = [table.slice(row, 1)], time
        else:
            self.tied, self.tied_time = [*self.tied, *self.recent, table], time
            self.recent, self.recent_time = [], time


def door_for(resident: Any, reader: EventReader, result: pa.Schema) -> FastDoor | None:
    """The short way into a live query; None where there is none."""
    if type(resident) is not ResidentIncremental:
        return None
    options, plans = reader.options, resident.step.plans
    schema = plans[0].bound.schema
    special = options.bad_records or options.dedupe or options.row_column or options.ignore_case
    special = special or any(name not in reader.given.names for name in reader.narrow.names)  # fields of structs
    if special or reader.most_ahead is not None or schema.type is None:
        return None
    if any(plan.model is not None for plan in plans):
        return None
    kind = reader.given.field(schema.time).type
    plain = kind == pa.int64() or (pa.types.is_timestamp(kind) and kind.unit == "us")
    if (
        not plain
        or reader.given.field(schema.type).type != pa.string()
        or reader.narrow.field(schema.time).type != kind
    ):
        return None
    resident.read_events_by(lambda events: reader.read(events).table)
    return FastDoor(resident, reader, result)


def _by_query(found: tuple[int, list[Found]]) -> int:
    return found[0]


def _same(table: pa.Table) -> pa.Table:
    return table


def _times(batch: pa.RecordBatch, name: str) -> Int64s:
    column = batch.column(name)
    return np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column)]

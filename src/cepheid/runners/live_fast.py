"""The short way into a live query: single dicts, lists of them and Arrow tables, in order of time.

An event goes as numbers into the compiled search of the queries that mention its type (engine/incremental). Nothing is
made of it but a copy, unless it is in a match. What cannot go this way, such as an event that is older than another, is
left to the long way (live_face.py), which first takes over what came here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.budget import within_budget
from cepheid.engine.data.table import times_of
from cepheid.engine.incremental import dict_door as d
from cepheid.engine.incremental.arrow_memory import exported
from cepheid.engine.incremental.arrow_rows import FIRST, LAST, LAST_ROW, LAST_TIME, RISES, SOME_RISE, TypeNumbers
from cepheid.engine.incremental.core import Core
from cepheid.engine.incremental.dict_events import Alone, DictEvents, reads_dicts
from cepheid.engine.incremental.linking import AFTER
from cepheid.engine.incremental.pushed_matches import Found
from cepheid.engine.kernels.compile import COMPILES
from cepheid.runners.live_dicts import instant_of
from cepheid.runners.live_events import EventReader
from cepheid.runners.live_rows import DictRows
from cepheid.runners.stream import incremental_shard as residents
from cepheid.runners.stream.event_log import Event, Mark
from cepheid.runners.stream.incremental_shard import ChunkCache, Resident
from cepheid.runners.ties import LiveTies
from cepheid.runners.worker_plans import result_table

FAR = d.FAR
MOST_TIED = 1_000  # events of one time, or tables with some, that wait to be counted
HELD_FOR_EACH = 20  # rows of tables in memory, for each event that is kept
_TO_LIST = pa.Table.to_pylist

Told = list[tuple[int, list[Found]]]  # what was found, by the number of the query


class FastDoor:
    """Takes in events that come in order."""

    def __init__(self, resident: Resident, reader: EventReader, result: pa.Schema) -> None:
        schema = resident.step.plans[0].bound.schema
        assert schema.type is not None
        self.resident, self.reader, self.result = resident, reader, result
        self.time, self.type, self.delay = schema.time, schema.type, resident.step.delay
        given, narrow = reader.given, reader.narrow
        kind = given.field(self.time).type
        self.whole, self.zoned = pa.types.is_integer(kind), getattr(kind, "tz", None) is not None
        self.alone = [Alone(core.plan) for core in resident.cores]
        pairs = zip(resident.cores, self.alone, strict=True)
        self.readable = all(reads_dicts(core, alone, resident.schema) for core, alone in pairs)
        self.dicts = DictEvents(given, self.time, self.type, self.delay, narrow.names)
        self.door, self.at = self.dicts.door, self.dicts.at
        self.call: Callable[[Any, list[Any], int, int], int] = _not_yet
        self.nothing = result.empty_table()
        self.rows = reader.options.row_column  # the column that tables get for tiebreak="row"
        own = narrow if self.rows is None else narrow.remove(narrow.get_field_index(self.rows))
        self.same, self.own = given.equals(own), own
        self.came = 0  # events that came before those that this way counts
        self.limits = reader.options.timeout, reader.options.max_bytes
        self.time_at, self.type_at = narrow.get_field_index(self.time), narrow.get_field_index(self.type)
        self.selects = all(given.field(each.name).type == each.type for each in own)
        self.dict_rows = DictRows(resident.shipments, result) if not self.zoned else None
        form = resident.cores[0].form
        # Numpy works out probabilities, and Python which matches are reported.
        plain = self.dict_rows is not None and not form.by_queues and not resident.carrying
        self.answers = self.dict_rows.answers(self.whole, form.by_runs) if plain and self.dict_rows else None
        self._cores: list[Core] = []
        self.before: tuple[Any, ...] = ()  # where to go back to, if a call is broken off...
        self.broken = False  # ...and whether it was, and that was not done yet
        self.calls = 0  # of the kernel, when the last call ended
        self.counts_ties = False
        self.tied: list[Any] = []  # events that share their time with another
        self.most_tied = 2
        self.tied_time = -FAR  # of the latest of them
        # The latest event that a query wanted, a table with a row where it came in one; or `door` tells its row.
        self._recent: list[Any] = []
        self.back: Callable[[pa.Table], Any] | None = None

    @property
    def newest(self) -> int:
        """The time of the newest event."""
        return self.door[d.NEWEST]

    @property
    def events(self) -> int:
        """How many events came this way since the long way last looked."""
        return self.door[d.EVENTS]

    @property
    def matches(self) -> int:
        """How many matches were told since the long way last looked."""
        return self.door[d.TOLD]

    @property
    def is_broken(self) -> bool:
        """Was a call broken off, and not taken back yet? Or is the kernel in the midst of one?"""
        return self.broken or self.door[d.HALF] > 0

    @property
    def recent(self) -> list[Any]:
        """The latest event that a query wanted."""
        row = self.door[d.RECENT_ROW]
        return self._recent if row < 0 else [self.resident.log.event(row)]

    def _note_recent(self, events: list[Any], time: int, row: int = -1) -> None:
        self._recent, self.door[d.RECENT_TIME], self.door[d.RECENT_ROW] = events, time, row

    # --- the long way -------------------------------------------------------------------------------------------------

    def open(self, held: Any, ties: LiveTies, events: int) -> bool:
        """Events may come this way again, behind so many; False: not yet, since kernels are not compiled."""
        resident, door = self.resident, self.door
        self.came = self.reader.first_row + events
        if resident._at is not held:
            resident.go_back(held)
            resident._at = held
        if any(core.calls is None for core in resident.cores):
            return False
        if resident.cores is not self._cores:
            self._look_at(resident.cores)
        self.dicts.look_at_keys()
        known = [resident.newest, None if resident.until is None else resident.until + 1]
        door[d.NEWEST] = max((each for each in known if each is not None), default=-FAR)
        # `advance` may be ahead of events.
        door[d.PASSED] = -FAR if resident.until is None else resident.until
        self._look_for_ends()
        self.counts_ties = ties.counts
        door[d.TIES] = int(ties.counts)
        self._note_recent([], self.newest)  # the long way knows the events of that time
        resident.log.counted = resident.log.rows
        door[d.TOLD] = door[d.EVENTS] = door[d.HALF] = 0
        self.back, self.tied, self.broken = None, [], False
        self._look_at_log()
        self._look_at_buckets()
        return True

    @property
    def is_overtaken(self) -> bool:
        """Has the long way begun a step that did not come to its end?"""
        return self.resident._at is None

    def closed(self) -> list[Any]:
        """What came this way, for the long way, which asks for its number, too: events that may be tied."""
        self.door[d.OPEN] = 0
        if self.is_broken:
            self.mend()
        resident = self.resident
        if self.events:
            resident.until, resident.newest = self._until(self.newest), self.newest
        if self.counts_ties and self.delay and resident.until is not None:
            return self._tied_of_delay(resident.until)
        return [_looked_up(each) for each in (*self.tied, *self.recent)]

    def _tied_of_delay(self, until: int) -> list[Any]:
        """The same where events of some earlier times may still come: all of these times, and what was tied before."""
        log, name = self.resident.log, self.time
        events = [_looked_up(each) for each in self.tied]
        tables = [self.reader.read([each]).table if type(each) is dict else each for each in events]
        before = [table.filter(pa.array(times_of(table, name) <= until)) for table in tables]
        fresh = log.take(np.arange(log.counted, log.rows))
        return [*before, fresh.filter(pa.array(times_of(fresh, name) > until))]

    def _look_at(self, cores: list[Core]) -> None:
        """New searches: which of them want events of which types?"""
        kinds = sorted(frozenset().union(*(core.reader.types for core in cores)))

        def takers(kind: str | None) -> list[tuple[int, int]]:
            of_each = [(number, core.reader.mask_of_type(kind)) for number, core in enumerate(cores)]
            return [each for each in of_each if each[1] or cores[each[0]].every_event]

        entries = {kind: takers(kind) for kind in (*kinds, None)}
        self.types = TypeNumbers(kinds, bool(entries[None]), self.time_at, self.type_at)
        self.dicts.look_at(cores, self.alone, entries)
        self.call = self.dicts.call or _not_yet
        self._cores = cores

    def _look_at_log(self) -> None:
        log = self.resident.log
        answers = self.answers if log.dicts is not None and len(log.parts) == 1 else None
        self.dicts.look_at_log(log.dicts, log.rows, max(residents.LEAST, 2 * self.resident.kept), answers)

    def _look_for_ends(self) -> None:
        waiting = [np.array(core.waiting_ends(), np.int64) for core in self.resident.cores]
        numbers = [np.full(len(times), number) for number, times in enumerate(waiting)]
        self.dicts.set_ends(np.concatenate(waiting), np.concatenate(numbers))

    def _look_at_buckets(self) -> None:
        self.door[d.CLOSES] = min(FAR, self.resident.closes + self.delay + 1)

    # --- one call at a time -------------------------------------------------------------------------------------------

    def _alone(self, live: Any, events: Any, is_in: bool = False) -> Any:
        """What events decide, by this way or by the long one, while no other call is at work.

        If `is_in`, the kernel has taken the event in, unless another thread was faster, and took it back.
        """
        told = done = None
        try:
            with live._lock, within_budget(*self.limits):
                if is_in and self.door[d.HALF] and self.door[d.TAKEN] == id(events):
                    told = self._rest(self.door[d.HALF])
                    done = self.before
                    self._let_in(told)
                    return told
                ready = live._opened is live._state and not self.is_overtaken and not self.tied and not self.is_broken
                if ready or live._is_open():
                    self.door[d.OPEN] = 0
                    told = self._one(events) if type(events) is dict else self.take(events)
                    done = self.before
                    self._let_in(told)
            if told is not None:
                return told
        except BaseException:
            if told is not None:  # Ctrl-C came between what happened and the end of the call
                with live._lock:
                    if self.before is done and self.calls == self.door[d.CALLS]:
                        self.mend()
            raise
        return live._sent_the_long_way(events)

    def _let_in(self, told: Any) -> None:
        """May single events come without the lock? As plain Python the kernel could be broken off."""
        self.door[d.OPEN] = COMPILES and told is not None and self.back is _TO_LIST and not self.tied

    def _rest(self, pending: int) -> Any:
        """What an event decides that the kernel has taken in, where searches need Python to go on."""
        self.before, self.broken = self._before_event(), True
        try:
            return self._done(self.dicts.results(pending), as_table=False)
        except BaseException:
            self.mend()
            raise

    def undo(self, live: Any, event: Event) -> None:
        """Ctrl-C came after the kernel had taken an event in: it did not happen."""
        with live._lock:
            if self.door[d.TAKEN] == id(event):
                self.before = self._before_event()
                self.mend()

    def _before_event(self) -> tuple[Any, ...]:
        """What was before the event that the kernel took in last."""
        log = self.resident.log
        newest, events, rows, recent_time, recent_row, told = self.door[d.BEFORE : d.BEFORE + 6].tolist()
        recent = self._recent if recent_row < 0 else [log.event(recent_row)]
        of_log = log, log.parts, len(log.parts), rows, self.resident.until
        return newest, (events, told), self.tied, recent, recent_time, self.back, of_log

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
        self._begin()
        try:
            pending = self._pushed(event, d.LOCKED)
            if pending < 0:
                self.broken = False
                return None
            return self._done(self.dicts.results(pending) if pending else [], as_table=False)
        except BaseException:
            self.mend()
            raise

    def _several(self, events: list[Any]) -> Any:
        self.door[d.CHECKED] = self.newest
        for event in events:
            if type(event) is not dict or self._called(event, d.CHECKS) < 0:
                return None
        self._begin()
        try:
            for event in events:
                if self._pushed(event, d.HOLDS) < 0:
                    self.mend()
                    return None
            newest = self.newest
            found = self._stepped(newest - self.delay - 1) if newest > self.dicts.due else []
            return self._done(found, as_table=False)
        except BaseException:
            self.mend()
            raise

    def _called(self, event: Event, how: int) -> int:
        if not self.whole:
            self.door[d.GIVEN] = instant_of(event.get(self.time), self.whole, self.zoned)
        return self.call(event, [], self.at, how)

    def _pushed(self, event: Event, how: int) -> int:
        """Takes an event in; how many searches there are to go on with; below 0: it has to go the long way."""
        log = self.resident.log
        rows = log.rows
        found = self._called(event, how)
        while found == d.NEEDS_ROOM:
            log.add_events(self.came + self.events)
            self.dicts.make_room()
            self._look_at_log()
            found = self._called(event, how)
        if found >= 0 and self.counts_ties and log.rows > rows:
            self._count_tied(self.newest, rows)
        return found

    def _stepped(self, until: int) -> Told:
        """Lets time pass for the queries of which an event may be the last one of a match."""
        found = []
        for number in self.dicts.passed_ends(until):
            core = self.resident.cores[number]
            if core.head[AFTER] < until:
                results = core.step(until)
                if results:
                    found.append((number, results))
        self.dicts.look_when_due()
        return found

    # --- tables -------------------------------------------------------------------------------------------------------

    def _table(self, table: pa.Table) -> pa.Table | None:
        if not self.same and self.selects and table.schema.equals(self.reader.given):
            table = table.select(self.own.names)
        if not table.schema.equals(self.own):
            return None
        if self.rows is not None:
            first = self.came + self.events
            table = table.append_column(self.rows, pa.array(np.arange(first, first + table.num_rows)))
        memory = exported(table)
        if memory is None:
            return None
        wanted = self.types.rows(memory, table.num_rows)
        if wanted < 0:
            return None
        head = self.types.head
        first, last = head[FIRST], head[LAST]
        if first < self.newest or head[SOME_RISE] == 0 or not -FAR < last < FAR:
            return None
        self._begin()
        try:
            pending, kept = 0, 0
            if wanted or last > self.dicts.due:
                pending, kept = self.dicts.take_rows(self.types, memory, wanted)
                if pending < 0:
                    self.mend()
                    return None
            if kept:
                self.resident.log.add_table(table, self.types.found(kept), memory)
                if self.counts_ties:
                    self._count_tied_table(table)
            told = self.resident.small_table() if pending and self.dicts.is_found(pending) else None
            found = self.dicts.results(pending) if pending and told is None else []
            self.door[d.NEWEST] = last
            self.door[d.EVENTS] += table.num_rows
            return self._done(found, as_table=True, told=told)
        except BaseException:
            self.mend()
            raise

    # --- a call -------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Notes where to go back to if the call is broken off."""
        resident, door = self.resident, self.door
        log, row = resident.log, door[d.RECENT_ROW]
        door[d.ENTERED] += 1
        of_log = log, log.parts, len(log.parts), log.rows, resident.until
        counted, recent = (door[d.EVENTS], door[d.TOLD]), self._recent if row < 0 else [log.event(row)]
        self.before = door[d.NEWEST], counted, self.tied, recent, door[d.RECENT_TIME], self.back, of_log
        self.broken = True

    def mend(self) -> None:
        """A call was broken off: it did not happen."""
        if self.door[d.HALF] and not self.broken:
            self.before = self._before_event()
        self.broken = True
        self.door[d.OPEN] = 0
        newest, counted, self.tied, recent, recent_time, self.back, of_log = self.before
        log, parts, number, rows, until = of_log
        resident = self.resident
        resident.until = until
        known = None if newest <= -FAR else newest
        ends = dict(resident.ends.by_query)
        mark = Mark(parts, number, rows)
        resident.go_back(ChunkCache(log, mark, self._until(newest), known, ends))
        self._look_at(resident.cores)
        self._look_for_ends()
        self._look_at_log()
        self._look_at_buckets()
        self._note_recent(recent, recent_time)
        self.door[d.NEWEST], self.door[d.TAKEN] = newest, 0
        self.door[d.EVENTS], self.door[d.TOLD] = counted
        self.door[d.HALF], self.broken = 0, False

    def _until(self, newest: int) -> int | None:
        known = self.resident.until
        if newest <= -FAR:
            return known
        return newest - self.delay - 1 if known is None else max(known, newest - self.delay - 1)

    def _done(self, found: Told, as_table: bool, told: Any = None) -> Any:
        """Makes the rows of the result, forgets what has expired, and says that the call has happened."""
        if self.resident.carrying:
            self._look_at_buckets()  # what was searched again is in the sums, and not in what was found
        if found or self.newest >= self.door[d.CLOSES]:
            told = self._rows(found, as_table)
        matches = 0 if told is None else len(told)
        if told is None:
            told = self.nothing if as_table else []
        resident, log = self.resident, self.resident.log
        if log.rows > residents.LEAST or log.held_rows > HELD_FOR_EACH * residents.LEAST:
            most = max(residents.LEAST, 2 * resident.kept)
            if log.rows > most or log.held_rows > HELD_FOR_EACH * most:
                self._forget(self.newest)
        if as_table and self.door[d.LOG]:  # dicts do not go on where they were
            self._look_at_log()
        if matches:
            self.door[d.TOLD] += matches
        self.back = _same if as_table else _TO_LIST
        self.calls = self.door[d.CALLS]
        self.door[d.HALF], self.broken = 0, False
        return told

    def _forget(self, newest: int) -> None:
        """Leaves out what no later match can need."""
        resident = self.resident
        resident.until = self._until(newest)
        if resident.until is not None:
            self._note_recent(self.recent, self.door[d.RECENT_TIME])
            resident.forget()
            self.dicts.look_at_keys()
            self._look_at_log()

    # --- results ------------------------------------------------------------------------------------------------------

    def _rows(self, found: Told, as_table: bool) -> Any:
        """What was found as a table, or as a list of dicts."""
        resident = self.resident
        found, closed = resident.of_queries(found), self._closed_buckets() if resident.carrying else ()
        if not found and not closed:
            return self.nothing if as_table else []
        if as_table and found and resident.tells_as_found:
            ((number, results),) = found
            batch = resident.batch_of(number, results)
            if batch is not None:
                return pa.Table.from_batches([batch], self.result)
        if not as_table and self.dict_rows is not None and not closed:
            rows = self.dict_rows.rows(resident.log, found)
            if rows is not None:
                return rows
        table = result_table(resident.shipments, (*resident.told(found), *closed), self.result)
        return table if as_table else table.to_pylist()

    def _closed_buckets(self) -> Any:
        """The rows of buckets of totals that are over."""
        until = self._until(self.newest)
        closed = () if until is None or until < self.resident.closes else self.resident.closed(until)
        self._look_at_buckets()
        return closed

    # --- ties ---------------------------------------------------------------------------------------------------------

    def is_crowded(self) -> bool:
        """Do so many events that share their time wait that they should be counted?"""
        passed = self.newest - self.delay > self.tied_time or len(self.tied) >= MOST_TIED
        if len(self.tied) < self.most_tied or not passed:  # before time passes them, they cannot be counted
            return False
        self.most_tied = min(2 * self.most_tied, MOST_TIED)
        return True

    def _count_tied(self, time: int, row: int) -> None:
        """Notes an event that was kept, if it shares its time with the one before it, and that one."""
        if time > self.door[d.RECENT_TIME]:
            self._note_recent([], time, row)
        else:
            self.tied, self.tied_time = [*self.tied, *self.recent, self.resident.log.event(row)], time
            self._note_recent([], time)

    def _count_tied_table(self, table: pa.Table) -> None:
        head = self.types.head
        time = head[LAST_TIME]
        if head[RISES] and head[FIRST] > self.door[d.RECENT_TIME]:
            self._note_recent([(table, head[LAST_ROW])], time)
        else:
            self.tied, self.tied_time = [*self.tied, *self.recent, table], time
            self._note_recent([], time)


def door_for(resident: Any, reader: EventReader, result: pa.Schema) -> FastDoor | None:
    """The short way into a live query; None where there is none."""
    if type(resident) is not Resident or not all(core.is_searched_when_due for core in resident.cores):
        return None
    options, plans = reader.options, resident.step.plans
    schema = plans[0].bound.schema
    special = options.bad_records or options.dedupe or options.ignore_case
    made = {name for name in reader.narrow.names if name not in reader.given.names}
    special = special or bool(made - {options.row_column})  # fields of structs
    if special or reader.most_ahead is not None or schema.type is None:
        return None
    if any(getattr(plan.model, "is_fitted", False) for plan in plans):  # it is looked whether events have changed
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


def _not_yet(event: Any, found: list[Any], at: int, how: int) -> int:
    """The kernel is not there."""
    return d.LONG_WAY


def _same(table: pa.Table) -> pa.Table:
    return table


def _looked_up(event: Any) -> Any:
    """An event that may be tied: a dict, or a table of one row that was noted as its table and place."""
    return event[0].slice(event[1], 1) if type(event) is tuple else event

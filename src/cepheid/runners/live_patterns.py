"""The short way into a live pattern: dicts and rows of tables go as numbers into a search that stays in memory.

A kernel reads an event (engine/incremental/pattern_door.py). It waits until the watermark has passed it, and is then
taken in. Nothing is made of it but a copy, unless it is in a match. What cannot go this way, such as an event that
comes too late, is left to the long way (live_search.py), which first takes over what came here.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from cepheid.budget import checkpoint
from cepheid.engine.incremental import dict_door as d
from cepheid.engine.incremental import pattern_door as p
from cepheid.engine.incremental import pattern_rows as w
from cepheid.engine.incremental.pattern_events import GivenRows, PatternEvents
from cepheid.engine.incremental.row_core import NotIncrementalError
from cepheid.engine.kernels.compile import COMPILES
from cepheid.engine.kernels.objects import ARE_KNOWN
from cepheid.runners.live_events import EventReader
from cepheid.runners.stream import pushed as at_least
from cepheid.runners.stream.pushed import Noted, PushedSearch
from cepheid.runners.stream.searches import SearchStream

FAR = d.FAR
_TO_LIST = pa.Table.to_pylist
FEW = 200  # rows of a table that are taken in as dicts, if they cannot be as they are
Event = dict[str, Any]


class TakesEvents(Protocol):
    """A search that takes in single events."""

    def begin(self, events: PatternEvents) -> None:
        """Says what a step is, now that the search is another one."""

    def until_of(self, watermark: int) -> int:
        """Up to where time has passed."""

    def learn_texts(self, event: Event) -> None:
        """Finds out what the texts of an event say."""

    def learn_kind(self, bits: int) -> None:
        """A kind of events that is new."""

    def learn_key(self, event: Event) -> None:
        """A key that is new."""

    def make_way(self, hinders: int) -> None:
        """Makes room, or raises an error."""

    def found(self, as_table: bool) -> Any:
        """The rows of the result that are decided, as dicts or as a table."""


class Before(NamedTuple):
    """How everything stood before a call."""

    noted: Noted
    dicts: list[Event]
    tables: list[tuple[GivenRows, int]]  # and the first row of each that waited
    watermark: int
    events: int
    matches: int


class PatternDoor:
    """Takes in events that do not come too late."""

    def __init__(self, stream: SearchStream, reader: EventReader) -> None:
        self.reader, self.result = reader, stream.result
        self.events = PatternEvents(reader.given, stream.time, stream.delay)
        self.door, self.at, self.delay = self.events.door, self.events.at, stream.delay
        self.tables: list[GivenRows] = []  # with rows that wait; dicts wait only where there are none
        self.back: Any = _TO_LIST  # to the kind of table that came last
        self.opened: SearchStream | None = None
        self.before: Before | None = None  # of a call of several events that is at work...
        self.happened: tuple[Any, Before | None] = None, None  # ... and of one that has done its work, with its events
        self.nothing = stream.result.empty_table()
        self.call: Callable[[Any, Any, int, int], int] = _not_yet

    # --- the long way -------------------------------------------------------------------------------------------------

    def open(self, stream: SearchStream) -> bool:
        """Events may come this way; False: they cannot yet."""
        takes = stream.takes_events()
        if takes is None:
            return False
        self.takes: TakesEvents = takes
        assert stream.pushed is not None
        self.pushed: PushedSearch = stream.pushed
        self.events.log_names = stream.pushed.schema.names
        self.watermark_then = -FAR if stream.watermark is None else stream.watermark
        self.until_then = stream.pushed.until
        self.door[p.WATERMARK], self.door[d.EVENTS], self.door[d.TOLD] = self.watermark_then, 0, 0
        self.before = None
        self.opened = stream
        return self._look(stream.waiting.to_pylist(), [])

    def _look(self, dicts: list[Event], tables: list[pa.Table]) -> bool:
        """The search is another one than before; these events wait. False: some cannot wait here."""
        self.takes.begin(self.events)
        self.call, self.go_on = self.events.call, self.events.go_on
        self._look_at_log()
        self.events.wait_again(dicts)
        self.tables = []
        for table in tables:
            given = self.events.rows_of(table)
            assert given is not None, "it could be read before"
            self.tables.append(given)
        held = all(self._hold(event) for event in dicts)
        self.events.sort()
        return held

    def _look_at_log(self) -> None:
        log, most = self.pushed.log, max(at_least.LEAST, 2 * self.pushed.kept)
        self.events.look_at_log(log.add_events(), log.rows, most)

    def closed(self) -> SearchStream:
        """The stream as it stands after what came this way."""
        assert self.opened is not None
        stream, watermark = copy(self.opened), self.door[p.WATERMARK]
        self.pushed.until = self._until(watermark)
        stream.state = self.pushed.stands()
        dicts = self.events.waits
        waiting = [self.reader.read(dicts).table] if dicts else []
        waiting += [given.waits() for given in self.tables]
        stream.waiting = pa.concat_tables([stream.schema.empty_table(), *waiting])
        stream.watermark = None if watermark <= -FAR else watermark
        return stream

    def _until(self, watermark: int) -> int | None:
        return self.until_then if watermark == self.watermark_then else self.takes.until_of(watermark)

    @property
    def number(self) -> int:
        """How many events came this way since the long way last looked."""
        return self.door[d.EVENTS]

    @property
    def matches(self) -> int:
        """How many matches came this way since then."""
        return self.door[d.TOLD]

    # --- single events that need no lock ------------------------------------------------------------------------------

    def let_in(self) -> None:
        """May single events come without the lock? As plain Python the kernel could be broken off."""
        self.door[d.OPEN] = COMPILES and self.back is _TO_LIST and not self.tables

    def keep_out(self) -> None:
        """No event comes without the lock from here on; what one of them has begun did not happen."""
        self.door[d.OPEN] = 0
        if self.door[d.HALF]:
            self._return_to(self._before_event())

    # --- events -------------------------------------------------------------------------------------------------------

    def take(self, events: Any, said: int) -> Any:
        """What events decide, as they came; None: they have to go the long way, and nothing happened.

        The kernel has said something of a single event: if that is begun, it goes on.
        """
        begun = self.door[d.HALF] == said and self.door[d.TAKEN] == id(events)
        try:
            if begun:
                self.door[d.HALF] = 0
                return self._one(events, said)
            self.keep_out()
            if type(events) is dict:
                if self.tables:
                    self.before = self._standing()
                    self._as_dicts()
                    self.before = None
                return self._one(events, self.call(events, None, self.at, p.RELEASES))
            if type(events) is list and events:
                return self._several(events, events, as_table=False)
            if type(events) is pa.Table and events.num_rows and events.schema.equals(self.reader.given):
                return self._table(events)
        except NotIncrementalError:
            self.take_back(events)
        return None

    def _one(self, event: Event, found: int) -> list[Event] | None:
        """What an event decides, of which the kernel said this; None: it has to go the long way."""
        if found < 0:
            more = self._gone_on(found) if self.door[d.TAKEN] else self._again(event, found)
            if more is None:
                return None
            found = more
        rows: list[Event] = self.takes.found(False) if found else []
        self.door[d.TOLD] += len(rows)
        self.back = _TO_LIST
        self.happened, self.before = (event, self.before), None
        return rows

    def _again(self, event: Event, found: int) -> int | None:
        """Makes way for an event that is not taken in; how much there is to report, None: it has to go the long way."""
        self.before = self._standing()
        while found < 0 and not self.door[d.TAKEN]:
            if found == p.OUT_OF_ORDER:
                return self._held_and_released([event])
            if found == d.NEEDS_ROOM:
                self._tidy()
            if not self._made_way(found, event):
                self.before = None
                return None
            found = self.call(event, None, self.at, p.RELEASES)
        self.before = None
        return self._gone_on(found)

    def _made_way(self, hinders: int, event: Event) -> bool:
        """Finds out what is lacking of an event that is not taken in; False: it cannot be."""
        if hinders == p.NEEDS_TEXT:
            self.takes.learn_texts(event)
        elif hinders == p.NEEDS_OWN_KIND:
            self.takes.learn_kind(int(self.door[p.BITS]))
        elif hinders == p.NEEDS_KEY:
            self.takes.learn_key(event)
        elif hinders == p.NO_MEMORY:
            raise MemoryError
        elif hinders == d.NEEDS_ROOM:
            self._look_at_log()
            self.events.make_room_to_wait()
        else:
            return False
        return True

    def _gone_on(self, found: int) -> int:
        """Makes way for dicts that are released, until they are taken in; how much there is to report."""
        while found < 0:
            if found == p.NO_MEMORY:
                raise MemoryError
            self.takes.make_way(found - p.HINDERED)
            found = self.go_on(self.at)
        return found

    def _released(self) -> int:
        """Takes in the dicts that the watermark has passed, and lets time pass; how much there is to report."""
        if not self.door[d.LOG]:  # tables came last
            self._look_at_log()
        return self._gone_on(self.go_on(self.at))

    def _hold(self, event: Any) -> bool:
        """Lets an event wait; False: it has to go the long way."""
        found = self.call(event, None, self.at, p.HOLDS) if type(event) is dict else d.LONG_WAY
        while found < 0:
            if not self._made_way(found, event):
                return False
            found = self.call(event, None, self.at, p.HOLDS)
        return True

    def _several(self, given: Any, events: list[Any], as_table: bool) -> Any:
        """Takes in events in any order that are not too late, which were given in some form."""
        self.before = self._standing()
        self._tidy()
        if self.tables:
            self._as_dicts()
        found = self._held_and_released(events)
        return None if found is None else self._told(given, found, as_table)

    def _held_and_released(self, events: list[Any]) -> int | None:
        assert self.before is not None
        held = int(self.door[p.RING_LAST] - self.door[p.RING_FIRST])
        if not all(self._hold(event) for event in events):
            self._nothing_happened(held)
            return None
        self.events.sort()
        mark = max(self.events.newest_waiting() - self.delay, self.before.watermark)
        self.door[d.EVENTS] += len(events)
        if mark <= self.before.watermark:
            return 0
        self.door[p.WATERMARK] = mark
        return self._released()

    def _told(self, events: Any, found: int, as_table: bool) -> Any:
        """What is found, as the last thing that a call of several events does."""
        told: Any = self.nothing if as_table else []
        if found:
            rows = self.takes.found(as_table)
            told = rows if len(rows) else told
        self.door[d.TOLD] += len(told)
        self.back = _same if as_table else _TO_LIST
        self.happened, self.before = (events, self.before), None
        return told

    def _nothing_happened(self, held: int) -> None:
        """Only the first so many events wait: others came with this call."""
        last = int(self.door[p.RING_FIRST]) + held
        self.door[p.RING_LAST] = last
        del self.events.waiting[last:]
        self.before = None

    def _as_dicts(self) -> None:
        """Rows of tables that wait do so as dicts from here on."""
        rows = [row for given in self.tables for row in given.waits().to_pylist()]
        held = all(self._hold(row) for row in rows)
        assert held, "it could be read before"
        self.tables = []

    # --- rows of tables -----------------------------------------------------------------------------------------------

    def _table(self, table: pa.Table) -> Any:
        door, given, waiting = self.door, self.events.rows_of(table), self.tables
        watermark = door[p.WATERMARK]
        waits = not waiting and door[p.RING_LAST] > door[p.RING_FIRST]
        latest = waiting[-1].last if waiting else self.events.newest_waiting()
        fits = given is not None and given.last < FAR and given.first >= max(watermark, latest)
        if given is None or not fits or (waits and (latest == given.first or given.last - self.delay < given.first)):
            return self._several(table, table.to_pylist(), as_table=True) if table.num_rows <= FEW else None
        self.before = self._standing()
        self._tidy()
        if waits:
            door[p.WATERMARK] = given.first
            self._released()
        self.tables.append(given)
        door[d.EVENTS] += table.num_rows
        found, mark = 0, given.last - self.delay
        if mark > watermark:
            door[p.WATERMARK] = mark
            self._release_tables()
            found = self.go_on(self.at)
            if found < 0:
                found = self._gone_on(found)
        return self._told(table, found, as_table=True)

    def _release_tables(self) -> None:
        """Takes in the rows that the watermark has passed."""
        tables, log, release = self.tables, self.pushed.log, self.events.release_rows
        while tables:
            given = tables[0]
            while (found := release(given)) < 0:
                if found == p.PAUSED:
                    checkpoint()
                elif found <= p.HINDERED:
                    self.takes.make_way(found - p.HINDERED)
                else:
                    self._made_way(found, given.row())
            taken = given.taken
            if given.part is not None:
                log.add_more(given.part, taken)
            elif taken:
                given.part = log.add_some(given.shown, given.rows, given.head[w.KEPT_AT], taken, given.memory)
            if not given.is_done:
                break
            del tables[0]
        self.door[d.LOG] = 0

    # --- whole or not at all ------------------------------------------------------------------------------------------

    def _tidy(self) -> None:
        """Forgets what nobody needs, now and then, before something happens."""
        if self.door[d.ROWS] > self.door[d.MOST_ROWS]:
            self.pushed.until = self._until(self.door[p.WATERMARK])
            self.pushed.tidy()
            self._look(self.events.waits, [given.waits() for given in self.tables])

    def _standing(self) -> Before:
        door, pushed = self.door, self.pushed
        watermark = door[p.WATERMARK]
        pushed.until = self._until(watermark)
        dicts = self.events.waits if door[p.RING_LAST] > door[p.RING_FIRST] else []
        tables = [(given, given.next) for given in self.tables]
        return Before(pushed.noted(), dicts, tables, watermark, door[d.EVENTS], self.matches)

    def _before_event(self) -> Before:
        """What was before the dict that the kernel took in last."""
        watermark, first, last, number, rows, matches = self.door[p.NOTED : p.NOTED + 6].tolist()
        self.pushed.until = self._until(watermark)
        log, parts, count, _, *more = self.pushed.noted()
        return Before((log, parts, count, rows, *more), self.events.waiting[first:last], [], watermark, number, matches)

    def take_back(self, events: Any) -> None:
        """A call was broken off, wherever it was: it did not happen."""
        before = self.before
        if before is None and type(events) is dict and self.door[d.TAKEN] == id(events):
            before = self._before_event()
        elif before is None and self.happened[0] is events:
            before = self.happened[1]
        if before is not None:
            self._return_to(before)

    def _return_to(self, before: Before) -> None:
        """What happened since then did not."""
        self.before = before  # should this be broken off, too
        pushed = self.pushed
        pushed.at = None
        place = pushed.place_at(before.noted)
        pushed.go_to(place)
        pushed.at = place
        assert self.opened is not None
        self.opened.state = place
        takes = self.opened.takes_events()
        assert takes is not None
        self.takes = takes
        door = self.door
        door[p.WATERMARK], door[d.EVENTS], door[d.TOLD] = before.watermark, before.events, before.matches
        door[d.TAKEN] = door[d.HALF] = door[d.OPEN] = 0
        self._look(before.dicts, [given.waits_from(row) for given, row in before.tables])
        self.happened, self.before = (None, None), None


def _same(table: pa.Table) -> pa.Table:
    return table


def _not_yet(event: Any, answer: Any, at: int, how: int) -> int:
    """The kernel is not there."""
    return d.LONG_WAY


def refused(stream: SearchStream, reader: EventReader) -> str | None:
    """Why events of a live pattern have to go the long way; None: they need not, as far as the options go."""
    options = reader.options
    if (
        options.bad_records
        or options.dedupe
        or options.row_column
        or options.ignore_case
        or reader.most_ahead is not None
    ):
        return "an option looks at every event"
    if stream.time not in reader.given.names:
        return "the time is computed"
    kind = reader.given.field(stream.time).type
    if kind != pa.int64() and not (pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz is None):
        return f"the time is {kind}, and kernels read int64 and timestamp[us]"
    if not reader.given.equals(reader.narrow):
        return "columns are converted first"
    return None if ARE_KNOWN else "Python's objects lie in memory in another way than in CPython 3.11"


def door_for(stream: SearchStream, reader: EventReader) -> PatternDoor | None:
    """The short way into a pattern; None where there is none."""
    return PatternDoor(stream, reader) if refused(stream, reader) is None else None


def how_it_is_searched(stream: SearchStream, reader: EventReader) -> list[str]:
    """Says what a call searches again, and how events come in and rows of the result go out; where it is slow, why."""
    why = stream.replays()
    if why is not None:
        return ["replayed: a call takes up the search again from the events that are kept", f"because {why}"]
    told = ["incremental: a call goes on where the search stopped"]
    why = refused(stream, reader) or stream.reads_tables_alone()
    if why is not None:
        return [*told, f"a call makes a table of its events, because {why}"]
    told.append("kernels read dicts and Arrow tables")
    why = stream.computes_rows()
    return [*told, "kernels make the rows of the result" if why is None else f"rows of the result take longer: {why}"]

"""The short way into a live pattern: a few events at a time go as numbers into a search that stays in memory.

An event waits until the watermark has passed it, and is then taken in. Nothing is made of it but a copy, unless it is
in a match. What cannot go this way, such as an event that comes too late, is left to the long way (live_search.py),
which first takes over what came here.
"""

from __future__ import annotations

from bisect import bisect_left
from copy import copy
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from cepheid.engine.incremental.row_core import NotIncrementalError
from cepheid.runners.live_dicts import FAR, instant_of, kinds_of
from cepheid.runners.live_events import EventReader
from cepheid.runners.stream.pushed import Noted, PushedSearch
from cepheid.runners.stream.searches import SearchStream

LEAST, MOST = -(2**63), 2**63 - 1  # of whole numbers
MOST_SHAPES = 1_000
FEW = 200  # rows of a table, or of a list, that are taken in one by one
Event = dict[str, Any]
_Note: TypeAlias = tuple[Noted, list[tuple[int, Event]], int, int, int]


class TakesDicts(Protocol):
    """A search that takes in single events."""

    def step(self, event: Event, time: int, until: int) -> list[Event] | None:
        """Takes an event in, and lets time pass; the rows of the result that are decided, None: none."""

    def pass_by(self, until: int) -> list[Event] | None:
        """Lets time pass."""


class PatternDoor:
    """Takes in single events that do not come too late."""

    def __init__(self, stream: SearchStream, reader: EventReader) -> None:
        given = reader.given
        self.time, self.delay = stream.time, stream.delay
        kind = given.field(self.time).type
        self.whole, self.zoned = pa.types.is_integer(kind), getattr(kind, "tz", None) is not None
        self.names = frozenset(given.names)
        self.kinds = kinds_of(given, self.time)
        self.wholes = [each.name for each in given if each.type == pa.int64() and each.name != self.time]
        self.fractions = [each.name for each in given if each.type == pa.float64()]
        self.letters = [each.name for each in given if each.type == pa.string()]
        self.shapes: set[Any] = set()
        self.reader, self.result = reader, stream.result
        self.events = self.matches = 0  # that came this way since the long way last looked
        self.back: Any = pa.Table.to_pylist  # to the kind of table that came last
        self.opened: SearchStream | None = None

    # --- the long way -------------------------------------------------------------------------------------------------

    def open(self, stream: SearchStream) -> bool:
        """Events may come this way; False: they cannot yet."""
        takes = stream.takes_dicts()
        if takes is None:
            return False
        self.takes: TakesDicts = takes
        assert stream.pushed is not None
        self.pushed: PushedSearch = stream.pushed
        waiting = stream.waiting.to_pylist()
        times = stream.times(stream.waiting).tolist()
        order = sorted(range(len(times)), key=times.__getitem__)
        self.waiting = [(times[at], waiting[at]) for at in order]
        self.watermark = -FAR if stream.watermark is None else stream.watermark
        self.events = self.matches = 0
        self.opened = stream
        return True

    def closed(self) -> SearchStream:
        """The stream as it stands after what came this way."""
        assert self.opened is not None
        stream = copy(self.opened)
        stream.state = self.pushed.stands()
        events = [event for _, event in self.waiting]
        stream.waiting = self.reader.read(events).table if events else stream.schema.empty_table()
        stream.watermark = None if self.watermark <= -FAR else self.watermark
        return stream

    # --- one event ----------------------------------------------------------------------------------------------------

    def note(self) -> _Note:
        """How everything stands, for `take_back`."""
        return self.pushed.noted(), self.waiting, self.watermark, self.events, self.matches

    def take(self, events: Any, before: _Note) -> Any:
        """What events decide, as they came; None: they have to go the long way, and nothing happened."""
        try:
            if type(events) is dict:
                time = self._time_of(events)
                if time is None:
                    return None
                self.back = pa.Table.to_pylist
                return self._taken([(time, events.copy())])  # the caller may use it again
            if type(events) is list and 0 < len(events) <= FEW:
                return self._several(events)
            if type(events) is pa.Table and 0 < events.num_rows <= FEW and events.schema.equals(self.reader.given):
                return self._table(events)
        except NotIncrementalError:
            self.take_back(before)
        return None

    def _several(self, events: list[Any]) -> list[Event] | None:
        found: list[tuple[int, Event]] = []
        for event in events:
            time = self._time_of(event) if type(event) is dict else None
            if time is None:
                return None
            found.append((time, event.copy()))
        self.back = pa.Table.to_pylist
        return self._taken(found)

    def _table(self, table: pa.Table) -> pa.Table | None:
        """A few rows are faster one by one than as a table."""
        rows = table.to_pylist()
        times = [row[self.time] for row in rows]
        if not self.whole:
            times = [instant_of(time, self.whole, self.zoned) for time in times]
        if None in times or not self.watermark <= min(times) <= max(times) < FAR or self._has_nan(rows):
            return None
        found = self._taken(list(zip(times, rows, strict=True)))
        self.back = _same
        return pa.Table.from_pylist(found, schema=self.result) if found else self.result.empty_table()

    def _has_nan(self, rows: list[Event]) -> bool:
        """Is something not a number? It counts as NULL, which tables see to."""
        return any(row[name] != row[name] for name in self.fractions for row in rows)

    def _time_of(self, event: Event) -> int | None:
        """The time of an event that can go this way."""
        time = event.get(self.time)
        if type(time) is not int or not self.whole:
            time = instant_of(time, self.whole, self.zoned)
        if not self.watermark <= time < FAR:
            return None
        if (*event, *map(type, event.values())) not in self.shapes and not self._fits(event):
            return None
        for name in self.wholes:
            value = event.get(name)
            if value is not None and not LEAST <= value <= MOST:
                return None
        for name in self.fractions:
            value = event.get(name)
            if value != value:  # what is not a number is NULL
                return None
        for name in self.letters:
            value = event.get(name)
            if value is not None and not value.isascii() and not _is_text(value):
                return None
        return int(time)

    def _taken(self, events: list[tuple[int, Event]]) -> list[Event]:
        """Takes in events that are not too late, and lets time pass."""
        waiting, watermark, found = self.waiting, self.watermark, list[Event]()
        self.pushed.at = None
        together = [*waiting, *events]
        if (waiting and waiting[-1][0] > events[0][0]) or len(events) > 1:
            together.sort(key=_first)
        mark = max(together[-1][0] - self.delay, watermark)
        number = bisect_left(together, mark, key=_first)
        if mark > watermark:
            found = self._released(together[:number], mark)
        self.waiting, self.watermark = together[number:], mark
        self.events += len(events)
        self.matches += len(found)
        return found

    def _released(self, released: list[tuple[int, Event]], mark: int) -> list[Event]:
        takes = self.takes
        if len(released) == 1:
            time, event = released[0]
            return takes.step(event, time, mark) or []
        found: list[Event] = []
        for time, event in released:
            found += takes.step(event, time, time) or []
        found += takes.pass_by(mark) or []
        return found

    def take_back(self, before: _Note) -> None:
        """A call was broken off, wherever it was: it did not happen."""
        noted, self.waiting, self.watermark, self.events, self.matches = before
        pushed = self.pushed
        pushed.at = None
        place = pushed.place_at(noted)
        pushed.go_to(place)
        pushed.at = place
        assert self.opened is not None
        self.opened.state = place
        takes = self.opened.takes_dicts()
        assert takes is not None
        self.takes = takes

    def _fits(self, event: Event) -> bool:
        """Has it the names and types of values of the schema, so that a table takes it as it is?"""
        if not self.names >= event.keys():
            return False
        for name, kinds in self.kinds:
            if type(event.get(name)) not in kinds:
                return False
        if len(self.shapes) < MOST_SHAPES:
            self.shapes.add((*event, *map(type, event.values())))
        return True


def _first(entry: tuple[int, Event]) -> int:
    return entry[0]


def _same(table: pa.Table) -> pa.Table:
    return table


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def door_for(stream: SearchStream, reader: EventReader) -> PatternDoor | None:
    """The short way into a pattern; None where there is none."""
    options = reader.options
    special = options.bad_records or options.dedupe or options.row_column or options.ignore_case
    if special or reader.most_ahead is not None or stream.time not in reader.given.names:
        return None
    kind = reader.given.field(stream.time).type
    plain = kind == pa.int64() or (pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz is None)
    return PatternDoor(stream, reader) if plain and reader.given.equals(reader.narrow) else None

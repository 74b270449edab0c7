"""The short way into a live pattern: single dicts, as they come, go as numbers into a search that stays in memory.

An event waits until the watermark has passed it, and is then taken in. Nothing is made of it but a copy, unless it is
in a match. What cannot go this way, such as an event that comes too late, is left to the long way (live_search.py),
which first takes over what came here.
"""

from __future__ import annotations

from bisect import bisect_right
from copy import copy
from datetime import UTC, datetime
from typing import Any, Protocol

import pyarrow as pa

from cepheid.engine.incremental.row_core import NotIncrementalError
from cepheid.runners.live_events import EventReader
from cepheid.runners.stream.pushed import Noted, PushedSearch
from cepheid.runners.stream.searches import SearchStream

FAR = 2**62
LEAST, MOST = -(2**63), 2**63 - 1  # of whole numbers
MOST_SHAPES = 1_000
_KINDS: dict[pa.DataType, frozenset[type]] = {
    pa.int64(): frozenset({int, type(None)}),
    pa.float64(): frozenset({float, type(None)}),
    pa.string(): frozenset({str, type(None)}),
    pa.bool_(): frozenset({bool, type(None)}),
}
_NOTHING: frozenset[type] = frozenset({type(None)})
_NAIVE, _EPOCH = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)
Event = dict[str, Any]


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
        self.kinds = [(each.name, _KINDS.get(each.type, _NOTHING)) for each in given if each.name != self.time]
        self.wholes = [each.name for each in given if each.type == pa.int64() and each.name != self.time]
        self.fractions = [each.name for each in given if each.type == pa.float64()]
        self.letters = [each.name for each in given if each.type == pa.string()]
        self.shapes: set[Any] = set()
        self.reader = reader
        self.events = self.matches = 0  # that came this way since the long way last looked
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

    def take(self, event: Event) -> list[Event] | None:
        """What an event decides; None: it has to go the long way."""
        time = event.get(self.time)
        if type(time) is not int or not self.whole:
            time = self._instant(time)
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
        try:
            return self._taken(event.copy(), time)  # the caller may use it again
        except NotIncrementalError:
            return None

    def _taken(self, event: Event, time: int) -> list[Event]:
        waiting, watermark = self.waiting, self.watermark
        pushed = self.pushed
        before = pushed.noted()
        released: list[tuple[int, Event]] = []
        try:
            pushed.at = None
            if not waiting or waiting[-1][0] <= time:
                waiting.append((time, event))
            else:
                waiting.insert(bisect_right(waiting, time, key=_first), (time, event))
            found: list[Event] = []
            mark = time - self.delay
            if mark > watermark:
                number = 0
                while waiting[number][0] < mark:  # the event itself is not passed
                    number += 1
                released = waiting[:number]
                del waiting[:number]
                found = self._released(released, mark)
                self.watermark = mark
            self.events += 1
            self.matches += len(found)
            return found
        except BaseException:
            self._take_back(before, released, event, watermark)
            raise

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

    def _take_back(self, before: Noted, released: list[tuple[int, Event]], event: Event, watermark: int) -> None:
        """A call was broken off: it did not happen."""
        self.waiting = [each for each in (*released, *self.waiting) if each[1] is not event]
        self.watermark = watermark
        pushed = self.pushed
        pushed.at = None
        place = pushed.place_at(before)
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

    def _instant(self, time: Any) -> int:
        """A time in microseconds; one that lies too far away if it is not what the column holds."""
        if self.whole or type(time) is not datetime or (time.tzinfo is not None) != self.zoned:
            return FAR
        since = time - (_EPOCH if self.zoned else _NAIVE)
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _first(entry: tuple[int, Event]) -> int:
    return entry[0]


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

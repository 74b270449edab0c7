"""`cepheid.live` of a MATCH_RECOGNIZE clause or a Flink pattern: events in, matches out, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from cepheid.engine.incremental.dict_door import LONG_WAY
from cepheid.engine.incremental.pattern_door import ALONE
from cepheid.errors import CepheidError
from cepheid.language.durations import whole_steps
from cepheid.runners.languages import LiveStart, PatternLanguage
from cepheid.runners.live_events import EventReader, as_schema, most_ahead, with_times
from cepheid.runners.live_face import LiveFace, LiveState, Numbers, StepResult
from cepheid.runners.live_patterns import PatternDoor, door_for, how_it_is_searched
from cepheid.runners.stream.searches import SearchStream

_KINDS = (dict, list, pa.Table)  # of events that may go the short way


@dataclass(frozen=True)
class ChunkCache:
    """A stream as it stands after a step: the next step is taken by a copy of it."""

    stream: SearchStream

    def __len__(self) -> int:
        return len(self.stream)

    @property
    def nbytes(self) -> int:
        """The size of the events that are kept."""
        return self.stream.nbytes

    @property
    def until(self) -> int | None:
        """All matches up to here are known."""
        return None if self.stream.watermark is None else self.stream.watermark - 1


class SearchLive(LiveFace):
    """A pattern at work: `send` it events, in any table or one by one, and get the matches that are known."""

    def __init__(
        self,
        stream: SearchStream,
        reader: EventReader,
        lateness: int | None = None,
        described: Callable[[], str] | None = None,
    ) -> None:
        super().__init__(reader, ChunkCache(stream))
        self._lateness, self._described = lateness, described
        self._state = self._state._replace(numbers=Numbers(late=stream.late))
        self._result, self._time = stream.result, stream.time
        self._door = door_for(stream, reader)
        self._opened: LiveState | None = None  # the state that the short way goes on from

    @property
    def schema(self) -> pa.Schema:
        """The columns of the matches."""
        return self._result

    def lateness_of(self, name: str) -> int | None:
        """How long after its end a match may become known."""
        return self._lateness

    def explain(self) -> str:
        """How the pattern is searched, what a call searches again, and why."""
        if self._described is None:
            return super().explain()
        told = how_it_is_searched(self.held.stream, self.reader)
        return "\n".join([self._described(), "", "Live", *(f"  {line}" for line in told)])

    @property
    def late(self) -> int:
        """How many events came too late and were left out."""
        return self._state.numbers.late

    @property
    def _clock(self) -> str:
        return self._time

    # --- the short way (live_patterns.py) ----------------------------------------------------------------------------

    def send(self, events: Any) -> Any:
        """Takes in events and returns the matches that are known now, as a table of the same kind.

        An event as a mapping, or a list of them, gives a list of mappings. If it raises an error, nothing of it
        happened, and the same events can be sent again.
        """
        door, said = self._door, LONG_WAY
        if door is not None and type(events) is dict:
            found: list[Any] = []
            try:
                said = door.call(events, found, door.at, ALONE)
                if said == 0:
                    return found
            except BaseException:  # such as Ctrl-C, which may come after everything has happened
                self._take_back(door, events)
                raise
        if door is not None and type(events) in _KINDS:
            self._check_alone()
            told = self._by_door(door, events, said)
            if told is not None:
                return told
        return super().send(events)

    def _by_door(self, door: PatternDoor, events: Any, said: int) -> Any:
        """What events decide that go the short way: all of it happens, or nothing. None: they cannot go it.

        The kernel has said something of a single event that came without the lock.
        """
        door.happened = None, None
        try:
            with self._lock:
                if self._opened is not self._state and not self._is_open(door):
                    return None
                told = door.take(events, said)
                if told is not None:
                    door.let_in()
                return told
        except BaseException:
            self._take_back(door, events)
            raise

    def _take_back(self, door: PatternDoor, events: Any) -> None:
        with self._lock:
            if self._opened is self._state:
                door.take_back(events)

    def _is_open(self, door: PatternDoor) -> bool:
        """Can events come the short way?"""
        state = self._state
        if state.finished or not door.open(state.held.stream):
            return False
        self._opened = state
        return True

    def _latest(self) -> LiveState:
        """All that is known now, with what came the short way."""
        door, state = self._door, self._state
        if door is None or self._opened is not state:
            return state
        door.keep_out()
        if door.number:
            seen = state.numbers
            seen = replace(seen, events=seen.events + door.number, matches=seen.matches + door.matches)
            # Should this be broken off, the door is still open or the state another one.
            self._state = state._replace(held=ChunkCache(door.closed()), numbers=seen, back=door.back)
        self._opened = None
        return self._state

    @property
    def held(self) -> ChunkCache:
        """The events that are kept, and what the search made of them."""
        self._check_alone()
        with self._lock:
            held: ChunkCache = self._latest().held
        return held

    @property
    def numbers(self) -> Numbers:
        """How many events, late events and matches there were, and what is kept of them."""
        if not self._is_at_work:
            self._alone(lambda state: (state, None))
        return super().numbers

    # --- the long way ------------------------------------------------------------------------------------------------

    def _take(self, held: ChunkCache, events: pa.Table) -> tuple[ChunkCache, StepResult]:
        stream, late = copy(held.stream), list[pa.Table]()
        stream.on_late = late.append
        return ChunkCache(stream), StepResult(stream.send(events), late[0] if late else None)

    def _pass(self, held: ChunkCache, until: int) -> tuple[ChunkCache, StepResult]:
        stream = copy(held.stream)
        return ChunkCache(stream), StepResult(stream.advance(until + 1))

    def _end(self, held: ChunkCache) -> tuple[ChunkCache, StepResult]:
        stream = copy(held.stream)
        return ChunkCache(stream), StepResult(stream.finish())

    def _packed(self, held: ChunkCache) -> tuple[ChunkCache, bytes]:
        stream = copy(held.stream)
        return ChunkCache(stream), stream.save()


def live_search(query: PatternLanguage, given: Any, start: LiveStart, keywords: Mapping[str, Any]) -> SearchLive:
    """A query over events of a schema, as they come."""
    columns = as_schema(given)
    options = query.asked(keywords).in_memory(columns).check_place(live=True)
    if options.counts:
        raise CepheidError("output='count' is for tables, and a live query returns rows", hint="leave it out")
    schema = with_times(given, columns, query.times(options), None, options.tz)
    search = query.bind(schema, options)
    search.check_stream()  # an error now, not at the first event
    stream = search.begin(whole_steps(start.delay, search.clock, "delay"))
    if start.state is not None:
        stream.restore(start.state)
    if start.max_ahead is not None and stream.computed_time is not None:
        raise CepheidError("max_ahead needs a time column, and ORDER BY computes the time", hint="leave it out")
    ahead, clock = most_ahead(start.max_ahead, search.clock), stream.computed_time
    reader = EventReader(columns, schema, schema, (stream.time,), most_ahead=ahead, clock=clock)
    return SearchLive(stream, reader, search.lateness(), lambda: query.described(schema, options))

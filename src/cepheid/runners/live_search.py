"""`cepheid.live` of a MATCH_RECOGNIZE clause or a Flink pattern: events in, matches out, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cepheid.errors import CepheidError
from cepheid.language.durations import whole_steps
from cepheid.language.flink.pattern import Pattern
from cepheid.language.match_recognize.syntax import Clause
from cepheid.language.schema import Schema
from cepheid.runners.flink import automaton_for
from cepheid.runners.live_events import EventReader, as_schema, most_ahead, with_times
from cepheid.runners.live_face import Found, LiveFace, Numbers
from cepheid.runners.options import FlinkOptions, RowOptions
from cepheid.runners.rows import bound_to
from cepheid.runners.stream.flink import FlinkStream, check_compiled
from cepheid.runners.stream.rows import RowStream
from cepheid.runners.stream.searches import SearchStream


@dataclass(frozen=True)
class Held:
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

    def __init__(self, stream: SearchStream, reader: EventReader) -> None:
        super().__init__(reader, Held(stream))
        self._state = self._state._replace(numbers=Numbers(late=stream.late))
        self._result, self._time = stream.result, stream.time

    @property
    def schema(self) -> pa.Schema:
        """The columns of the matches."""
        return self._result

    @property
    def late(self) -> int:
        """How many events came too late and were left out."""
        return self._state.numbers.late

    @property
    def _clock(self) -> str:
        return self._time

    def _take(self, held: Held, events: pa.Table) -> tuple[Held, Found]:
        stream, late = copy(held.stream), list[pa.Table]()
        stream.on_late = late.append
        return Held(stream), Found(stream.send(events), late[0] if late else None)

    def _pass(self, held: Held, until: int) -> tuple[Held, Found]:
        stream = copy(held.stream)
        return Held(stream), Found(stream.advance(until + 1))

    def _end(self, held: Held) -> tuple[Held, Found]:
        stream = copy(held.stream)
        return Held(stream), Found(stream.finish())

    def _packed(self, held: Held) -> tuple[Held, bytes]:
        stream = copy(held.stream)
        return Held(stream), stream.save()


def live_pattern(
    pattern: Pattern, given: Any, delay: Any, state: bytes | None, max_ahead: Any, keywords: Mapping[str, Any]
) -> SearchLive:
    """A Flink pattern over events of a schema, as they come."""
    columns = as_schema(given)
    options = FlinkOptions.from_keywords(keywords).as_they_come(columns).check_place(live=True)
    _refuse_count(options.output)
    schema = with_times(given, columns, (options.time,), None, options.tz)
    automaton = automaton_for(pattern, schema, options)
    steps = whole_steps(delay, automaton.schema, "delay")
    stream = FlinkStream(automaton, schema, steps, options.partition_by, options.partial, options.limits)
    check_compiled(automaton)  # an error now, not at the first event
    if state is not None:
        stream.restore(state)
    ahead = most_ahead(max_ahead, automaton.schema)
    return SearchLive(stream, EventReader(columns, schema, schema, (options.time,), most_ahead=ahead))


def live_clause(
    clause: Clause, given: Any, delay: Any, state: bytes | None, max_ahead: Any, keywords: Mapping[str, Any]
) -> SearchLive:
    """A MATCH_RECOGNIZE clause over rows of a schema, as they come."""
    options = RowOptions.from_keywords(keywords).check_place(live=True)
    _refuse_count(options.output)
    columns = as_schema(given)
    clock = tuple(key.column.name for key in clause.order_by[:1])
    schema = with_times(given, columns, clock, None, options.tz)
    bound = bound_to(clause, schema, options.tz)
    stream = RowStream(bound, schema, 0, options.max_rows, options.limits)
    timed = Schema.from_arrow(pa.schema([schema.field(stream.time)]), time=stream.time, type=None)
    stream.delay = whole_steps(delay, timed, "delay")
    if state is not None:
        stream.restore(state)
    ahead = most_ahead(max_ahead, timed)
    return SearchLive(stream, EventReader(columns, schema, schema, (stream.time,), most_ahead=ahead))


def _refuse_count(output: str) -> None:
    if output != "rows":
        raise CepheidError(f"output={output!r} is for tables, and a live query returns rows", hint="leave it out")

"""`cepheid.live` of a Flink pattern: events in, matches out, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from cepheid.errors import DataError
from cepheid.language.durations import whole_steps
from cepheid.language.flink.pattern import Pattern
from cepheid.runners.flink import SPARK_ONLY, FlinkOptions, automaton_for
from cepheid.runners.live_face import LiveFace, Numbers, steps_of
from cepheid.runners.stream.flink import FlinkStream, check_compiled
from cepheid.runners.tables import as_local


class FlinkLive(LiveFace):
    """A Flink pattern at work: `send` it events, in any table or one by one, and get the matches that are known."""

    def __init__(self, stream: FlinkStream) -> None:
        self._stream = stream
        self._back: Callable[[pa.Table], Any] = lambda table: table
        self._events = self._matches = 0
        self._finished = False
        self.on_late: Callable[[pa.Table], object] | None = None  # gets events that came too late
        stream.on_late = self._tell_late

    @property
    def schema(self) -> pa.Schema:
        """The columns of the matches."""
        return self._stream.result

    @property
    def late(self) -> int:
        """How many events came too late and were left out."""
        return self._stream.late

    @property
    def numbers(self) -> Numbers:
        """How many events, late events and matches there were, and what is kept of them."""
        stream = self._stream
        kept = stream.state.events.nbytes + stream.waiting.nbytes
        until = None if self._finished or stream.watermark is None else stream.watermark - 1
        return Numbers(self._events, stream.late, self._matches, len(stream), kept, until)

    def send(self, events: Any) -> Any:
        """Takes in events and returns the matches that are known now, as a table of the same kind.

        An event as a mapping, or a list of them, gives a list of mappings.
        """
        self._check_open()
        if isinstance(events, Mapping):
            events = [events]
        if isinstance(events, Sequence) and not isinstance(events, str | bytes):
            self._back = pa.Table.to_pylist
            try:
                arrow = pa.Table.from_pylist(list(events), self._stream.schema)
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, AttributeError) as error:
                raise DataError(f"the events do not fit the schema: {error}") from None
        else:
            local = as_local(events)
            if local is None:
                told = "events must be a mapping, a list of them, or a pyarrow, pandas or polars table"
                raise DataError(f"{told}, not {type(events).__name__}")
            self._back = local.back
            arrow = fitted(local.arrow, self._stream.schema)
        found = self._stream.send(arrow)
        self._events += arrow.num_rows
        return self._told(found)

    def advance(self, time: Any) -> Any:
        """Says that nothing at or before a time will come any more, and returns what that decides."""
        self._check_open()
        until = steps_of(time, self._stream.schema, self._stream.automaton.schema.time)
        return self._told(self._stream.advance(until + 1))

    def finish(self) -> Any:
        """Says that nothing will come any more, as at the end of a table, and returns what that decides."""
        self._check_open()
        self._finished = True
        return self._told(self._stream.finish())

    def save(self) -> bytes:
        """All that is needed to go on later or elsewhere: `cepheid.live(..., state=...)`."""
        return self._stream.save()

    def _told(self, found: pa.Table) -> Any:
        self._matches += found.num_rows
        return self._back(found)

    def _tell_late(self, late: pa.Table) -> None:
        if self.on_late is not None:
            self.on_late(late)


def live_pattern(
    pattern: Pattern, schema: pa.Schema, delay: Any, state: bytes | None, keywords: Mapping[str, Any]
) -> FlinkLive:
    """A Flink pattern over events of a schema, as they come."""
    options = FlinkOptions.from_keywords(keywords).as_they_come(schema)
    options.refuse(SPARK_ONLY, "is for Spark")
    automaton = automaton_for(pattern, schema, options)
    steps = whole_steps(delay, automaton.schema, "delay")
    stream = FlinkStream(automaton, schema, steps, options.partition_by, options.partial, options.limits)
    check_compiled(automaton, schema)  # an error now, not at the first event
    if state is not None:
        stream.restore(state)
    return FlinkLive(stream)


def fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The events in the columns and types of the schema."""
    for name in schema.names:
        if name not in table.column_names:
            raise DataError(f"the events have no column '{name}', which the schema has")
    try:
        return table.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"the events do not have the types of the schema: {error}") from None

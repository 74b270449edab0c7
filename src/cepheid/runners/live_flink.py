"""`cepheid.live` of a Flink pattern: events in, matches out, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from cepheid.engine.search.flink.conditions import NotCompiled, compile_conditions
from cepheid.errors import DataError, EngineError
from cepheid.language.durations import whole_steps
from cepheid.language.flink.pattern import Pattern
from cepheid.runners.flink import FlinkOptions, automaton_for
from cepheid.runners.live_face import LiveFace, steps_of
from cepheid.runners.stream.flink import FlinkStream
from cepheid.runners.tables import as_local


class FlinkLive(LiveFace):
    """A Flink pattern at work: `send` it events, in any table or one by one, and get the matches that are known."""

    def __init__(self, stream: FlinkStream) -> None:
        self._stream = stream
        self._back: Callable[[pa.Table], Any] = lambda table: table
        self._finished = False

    @property
    def schema(self) -> pa.Schema:
        """The columns of the matches."""
        return self._stream.result

    @property
    def late(self) -> int:
        """How many events came too late and were left out."""
        return self._stream.late

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
        return self._back(_compiled(self._stream.send, arrow))

    def advance(self, time: Any) -> Any:
        """Says that nothing at or before a time will come any more, and returns what that decides."""
        self._check_open()
        until = steps_of(time, self._stream.schema, self._stream.automaton.schema.time)
        return self._back(_compiled(self._stream.advance, until + 1))

    def finish(self) -> Any:
        """Says that nothing will come any more, as at the end of a table, and returns what that decides."""
        self._check_open()
        self._finished = True
        return self._back(_compiled(self._stream.finish))

    def save(self) -> bytes:
        """All that is needed to go on later or elsewhere: `cepheid.live(..., state=...)`."""
        return self._stream.save()


def live_pattern(
    pattern: Pattern, schema: pa.Schema, delay: Any, state: bytes | None, keywords: Mapping[str, Any]
) -> FlinkLive:
    """A Flink pattern over events of a schema, as they come."""
    options = FlinkOptions.from_keywords(keywords)
    automaton = automaton_for(pattern, schema, options)
    steps = whole_steps(delay, automaton.schema, "delay")
    stream = FlinkStream(automaton, schema, steps, options.partition_by, options.partial, options.limits)
    _compiled(lambda: compile_conditions(automaton, schema.empty_table()))  # an error now, not at the first event
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


def _compiled(call: Callable[..., Any], *arguments: Any) -> Any:
    """Runs a step of a stream, where conditions must be such that the kernel can judge them."""
    try:
        return call(*arguments)
    except NotCompiled:
        hint = "match a table with engine='reference', or write the condition more simply"
        raise EngineError("a condition is beyond the compiled automaton, which streams need", hint=hint) from None

"""What every live query offers besides taking in events: an asynchronous face, and times as users give them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

import pyarrow as pa

from cepheid.engine.data.table import times_of
from cepheid.errors import CepheidError, DataError


class LiveFace(ABC):
    """A query at work, of whatever kind."""

    _finished = False

    @abstractmethod
    def send(self, events: Any) -> Any:
        """Takes in events and returns the matches that are known now."""

    @abstractmethod
    def finish(self) -> Any:
        """Says that nothing will come any more, as at the end of a table, and returns what that decides."""

    async def matches(self, source: AsyncIterable[Any]) -> AsyncIterator[Any]:
        """The matches of an asynchronous source of events, as they become known; its end is the end of time."""
        async for events in source:
            found = self.send(events)
            if len(found):
                yield found
        found = self.finish()
        if len(found):
            yield found

    def _check_open(self) -> None:
        if self._finished:
            raise CepheidError("this live query is finished", hint="make another with cepheid.live(...)")


def steps_of(time: Any, schema: pa.Schema, name: str) -> int:
    """A time in steps of the time column."""
    kind = schema.field(name).type
    try:
        column = pa.chunked_array([pa.array([time]).cast(kind)])
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        hint = "pass a whole number" if pa.types.is_integer(kind) else "pass a datetime"
        raise DataError(f"{time!r} is not a time of column '{name}', which is {kind}", hint=hint) from None
    return int(times_of(pa.table({name: column}), name)[0])

"""What every live query offers besides taking in events: an asynchronous face, and times as users give them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cepheid.engine.data.table import times_of
from cepheid.errors import CepheidError, DataError


@dataclass(frozen=True)
class Numbers:
    """What a live query has seen so far."""

    events: int = 0
    late: int = 0  # came after time had passed them, and were left out
    matches: int = 0
    retained: int = 0  # events in memory, those included that a later match turns out not to need
    state_bytes: int = 0  # that they take
    watermark: int | None = None  # all matches that complete by then are known; in steps of the time column
    ties: int = 0  # events up to there that share time and key with another: these do not follow each other


class LiveFace(ABC):
    """A query at work, of whatever kind: what `cepheid.live` returns, and `cepheid.Live` names for type checkers."""

    _finished = False
    on_late: Callable[[pa.Table], object] | None = None  # gets events that came too late

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of the matches."""

    @property
    @abstractmethod
    def numbers(self) -> Numbers:
        """How many events, late events and matches there were, and what is kept of them."""

    @abstractmethod
    def send(self, events: Any) -> Any:
        """Takes in events and returns the matches that are known now."""

    @abstractmethod
    def advance(self, time: Any) -> Any:
        """Says that nothing at or before a time will come any more, and returns what that decides."""

    @abstractmethod
    def finish(self) -> Any:
        """Says that nothing will come any more, as at the end of a table, and returns what that decides."""

    @abstractmethod
    def save(self) -> bytes:
        """All that is needed to go on later or elsewhere: `cepheid.live(..., state=...)`."""

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

"""A search that goes on where it stopped, over events as they come: what row patterns and Flink patterns share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Int64s = npt.NDArray[np.int64]


class SearchStream(ABC):
    """Takes events as they come, at most `delay` steps late, and gives back what no later event can change.

    Times are those of the time column: whole numbers, or microseconds.
    """

    def __init__(self, schema: pa.Schema, result: pa.Schema, delay: int) -> None:
        self.schema, self.result, self.delay = schema, result, delay
        self.waiting = schema.empty_table()  # events that the watermark has not passed
        self.watermark: int | None = None
        self.late = 0
        self.on_late: Callable[[pa.Table], object] | None = None

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def time(self) -> str:
        """The time column."""

    @property
    @abstractmethod
    def retained(self) -> pa.Table:
        """The events that the watermark has passed, and that a later match may need."""

    @abstractmethod
    def times(self, events: pa.Table) -> Int64s:
        """The times of events."""

    @abstractmethod
    def decided(self, released: pa.Table, end: int | None) -> pa.Table:
        """What is decided when the watermark has passed some events; `end` is None when no more will come."""

    @abstractmethod
    def save(self) -> bytes:
        """What the stream knows, as bytes: tables of events and numbers, nothing else."""

    @abstractmethod
    def restore(self, saved: bytes) -> None:
        """Goes on from a saved state of the same pattern."""

    @abstractmethod
    def earliest_decision(self) -> int | None:
        """The watermark at which something is decided even if no event comes."""

    @property
    def nbytes(self) -> int:
        """The size of the events that are kept."""
        return int(self.retained.nbytes + self.waiting.nbytes)

    def send(self, events: pa.Table) -> pa.Table:
        """Takes in events, and gives what they decide; those that come too late are counted and left out."""
        times = self.keep(events)
        newest = int(times.max()) - self.delay if len(times) else self.watermark
        return self.advance(newest) if newest is not None else self.result.empty_table()

    def keep(self, events: pa.Table) -> Int64s:
        """Keeps events until the watermark passes them; the times of those that are not too late."""
        times = self.times(events)
        if self.watermark is not None:
            timely = times >= self.watermark
            late = int((~timely).sum())
            self.late += late
            if late and self.on_late is not None:
                self.on_late(events.filter(pa.array(~timely)))
            events, times = events.filter(pa.array(timely)), times[timely]
        self.waiting = pa.concat_tables([self.waiting, events])
        return times

    def advance(self, watermark: int) -> pa.Table:
        """Time has passed: no event before the watermark will come."""
        self.watermark = watermark if self.watermark is None else max(watermark, self.watermark)
        passed = pc.less(pa.array(self.times(self.waiting)), self.watermark)
        released, self.waiting = self.waiting.filter(passed), self.waiting.filter(pc.invert(passed))
        return self.decided(released, self.watermark)

    def finish(self) -> pa.Table:
        """No more events will come: everything is decided."""
        released, self.waiting = self.waiting, self.waiting.slice(0, 0)
        return self.decided(released, None)

"""A search that goes on where it stopped, over events as they come: what row patterns and Flink patterns share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.runners.stream.clock import split_late
from cepheid.runners.stream.pushed import Place, PushedSearch
from cepheid.runners.stream.saved import packed_search, read_search, reading

Int64s = npt.NDArray[np.int64]

MANY = 500  # events of a stream after which conditions on the path are worth compiling
OF_A_STEP = 5  # a step without compiled conditions takes as long as with so many events, at the least


class SearchStream(ABC):
    """Takes events as they come, at most `delay` steps late, and gives back what no later event can change.

    Times are those of the time column: whole numbers, or microseconds.
    """

    whose: ClassVar[str]  # the kind of search, as saved states name it
    numbers: ClassVar[tuple[str, ...]] = ()  # the names of numbers that it saves
    state: Any  # what the search keeps from one step to the next
    pushed: PushedSearch | None = None  # the search that stays in memory, where there is one

    def __init__(self, schema: pa.Schema, result: pa.Schema, delay: int) -> None:
        self.schema, self.result, self.delay = schema, result, delay
        self.waiting = schema.empty_table()  # events that the watermark has not passed
        self.watermark: int | None = None
        self.late = 0
        self.on_late: Callable[[pa.Table], object] | None = None

    def __len__(self) -> int:
        return int(len(self._kept()) + self.waiting.num_rows)

    @property
    @abstractmethod
    def time(self) -> str:
        """The time column."""

    @property
    def computed_time(self) -> pa.Field | None:
        """The time column, if it is computed from the columns of the events."""
        return None

    def takes_events(self) -> Any:
        """What takes in single events from here on (live_patterns.py); None: nothing does, or not yet."""
        return None

    def replays(self) -> str | None:
        """Why a step takes up the search again from what is kept; None: it goes on where the search stopped."""
        return None

    def reads_tables_alone(self) -> str | None:
        """Why single events are made a table before they are searched; None: they are not."""
        return None

    def computes_rows(self) -> str | None:
        """Why rows of the result are not made by kernels; None: they are."""
        return None

    @property
    def retained(self) -> pa.Table:
        """The events that the watermark has passed, and that a later match may need."""
        return self.held_by(self._retained())

    @abstractmethod
    def held_by(self, state: Any) -> pa.Table:
        """The events of a state that is saved."""

    def _retained(self) -> Any:
        """The state as it is saved."""
        state = self.state
        if isinstance(state, Place):
            assert self.pushed is not None
            return self.pushed.retained(state)
        return state

    def _kept(self) -> Place | pa.Table:
        """The events that the search keeps, wherever they are."""
        return self.state if isinstance(self.state, Place) else self.held_by(self.state)

    @abstractmethod
    def times(self, events: pa.Table) -> Int64s:
        """The times of events."""

    @abstractmethod
    def decided(self, released: pa.Table, end: int | None) -> pa.Table:
        """What is decided when the watermark has passed some events; `end` is None when no more will come."""

    @abstractmethod
    def parts(self) -> tuple[pa.Table, dict[str, int | None]]:
        """What the search knows besides events and the clock: a table, and numbers by name."""

    @abstractmethod
    def resumed(self, retained: pa.Table, part: pa.Table, numbers: Mapping[str, int | None]) -> Any:
        """The state that is made of these parts again."""

    def save(self) -> bytes:
        """What the stream knows, as bytes: tables of events and numbers, nothing else."""
        part, more = self.parts()
        numbers = {"watermark": self.watermark, "late": self.late, **more}
        return packed_search(self.whose, numbers, (self.retained, self.waiting, part))

    def restore(self, saved: bytes) -> None:
        """Goes on from a saved state of the same pattern."""
        with reading(f"{self.whose} over these columns"):
            names = ("watermark", "late", *self.numbers)
            numbers, (retained, waiting, part) = read_search(self.whose, names, saved)
            retained = retained.cast(self.retained.schema)  # the zones of instants are labels
            waiting = waiting.select(self.schema.names).cast(self.schema)
            state = self.resumed(retained, part, numbers)
            late = int(numbers["late"] or 0)
        self.watermark, self.late, self.waiting, self.state = numbers["watermark"], late, waiting, state

    @abstractmethod
    def earliest_decision(self) -> int | None:
        """The watermark at which something is decided even if no event comes."""

    @property
    def nbytes(self) -> int:
        """The size of the events that are kept."""
        return int(self._kept().nbytes + self.waiting.nbytes)

    def send(self, events: pa.Table) -> pa.Table:
        """Takes in events, and gives what they decide; those that come too late are counted and left out."""
        times = self.keep(events)
        newest = int(times.max()) - self.delay if len(times) else self.watermark
        return self.advance(newest) if newest is not None else self.result.empty_table()

    def keep(self, events: pa.Table) -> Int64s:
        """Keeps events until the watermark passes them; the times of those that are not too late."""
        times = self.times(events)
        arrived, late = split_late(events, times, None if self.watermark is None else self.watermark - 1)
        if late is not None:
            self.late += late.num_rows
            if self.on_late is not None:
                self.on_late(late)
            times = self.times(arrived)
        self.waiting = pa.concat_tables([self.waiting, arrived])
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

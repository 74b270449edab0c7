"""Steps of streams whose search goes on from where it stopped: row patterns and Flink's patterns.

Time, late events and numbers are those of every stream (state.py, clock.py). What the search keeps is one object, which
lies in the store as one chunk. Nothing here knows Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from cepheid.engine.data.table import times_of
from cepheid.errors import DataError
from cepheid.runners.stream.clock import Chunk, Clock, split_late
from cepheid.runners.stream.identity import ALONE
from cepheid.runners.stream.searches import SearchStream
from cepheid.runners.stream.state import Outcome, Store
from cepheid.runners.worker_plans import register_functions

SEARCH = 0  # under which a store remembers it


class Stepper(Protocol):
    """What takes a stream from one micro-batch to the next."""

    @property
    def numbers(self) -> tuple[int, ...]: ...
    @property
    def keys(self) -> tuple[str, ...]: ...
    def run(self, clock: Clock, store: Store, fresh: Sequence[pa.Table], newest: int | None) -> Outcome: ...
    def ready(self) -> Stepper: ...
    def for_shards(self, planned: int, shards: int, /) -> Stepper: ...
    def looks_back(self) -> bool: ...
    def adds_up(self) -> bool: ...


@dataclass(frozen=True)
class IncrementalStep:
    """What is the same in every step of such a stream."""

    begin: Callable[[], SearchStream]
    events: pa.Schema
    time: str
    delay: int  # how much later than the newest event others may come, in steps of the time column
    result: pa.Schema
    late: tuple[str, ...] = ()  # the columns of late events that come out
    numbers: tuple[int, ...] = (0,)
    keys: tuple[str, ...] = ()  # none: what it keeps is read as a whole
    functions: tuple[bytes, ...] = ()  # the user's, pickled
    name: str = ALONE  # of the query, where others read it

    def run(self, clock: Clock, store: Store, fresh: Sequence[pa.Table], newest: int | None) -> Outcome:
        """Takes in new events and, if that moves the watermark, reports what is decided by it."""
        if self.name in clock.begun:
            changed = f"the checkpoint belongs to another query '{self.name}': its state cannot be continued"
            raise DataError(changed, hint="go back to what it was, or start a new checkpoint")
        newest, until = clock.moved(newest, self.delay)
        came = [table.rename_columns(self.events.names).cast(self.events) for table in fresh]
        table = pa.concat_tables([self.events.empty_table(), *came])
        arrived, late = split_late(table, times_of(table, self.time), clock.until)
        clock = replace(clock, newest=newest, until=until, steps=clock.steps + 1)
        told = Outcome(clock, late=late.select(self.late) if late is not None else None, events=table.num_rows)
        remembered = store.remembered.pop(SEARCH, None)
        search: SearchStream = self.restored(clock, store) if remembered is None else remembered
        if arrived.num_rows:
            search.keep(arrived)
        due = search.earliest_decision()
        if until is not None and due is not None and due <= until + 1:
            found = search.advance(until + 1).rename_columns(self.result.names).cast(self.result)
            told = replace(told, results=tuple((self.numbers[0], batch) for batch in found.to_batches()))
        elif not arrived.num_rows:
            store.remembered[SEARCH] = search
            return replace(told, retained=len(search))
        store.remembered[SEARCH] = search
        return self.stored(told, search, store)

    def restored(self, clock: Clock, store: Store) -> SearchStream:
        """The search as it is stored."""
        search = self.begin()
        for chunk in clock.chunks:
            search.restore(store.read(chunk.number))
        return search

    def stored(self, told: Outcome, search: SearchStream, store: Store) -> Outcome:
        """The outcome of a step, with what the search keeps put down."""
        packed = search.save()
        for chunk in told.clock.chunks:
            store.remove(chunk.number)
        store.write(0, packed)
        clock = replace(told.clock, used=told.clock.used + told.used, found=told.clock.found + told.matches)
        clock = replace(clock, chunks=(Chunk(0, len(search), len(packed)),))
        return replace(told, clock=clock, retained=len(search))

    def ready(self) -> IncrementalStep:
        """The same, in a process that knows the user's functions."""
        register_functions(self.functions)
        return self

    def for_shards(self, _planned: int, _shards: int) -> IncrementalStep:
        """The same however many shards there are."""
        return self

    def looks_back(self) -> bool:
        """Are there numbers of earlier matches beside the events? What the search keeps holds them."""
        return False

    def adds_up(self) -> bool:
        """Does it add up matches?"""
        return False

"""One shard of a stream in Spark's state store: reads its state, takes a step, writes it back.

Imported only when a stream is matched: it needs PySpark.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StringType, StructType

from cepheid.runners.arrow_bytes import decoded, encoded
from cepheid.runners.spark.pack import LATE, LATE_EVENT, as_structs
from cepheid.runners.stream.state import Clock, Outcome, Step


@dataclass(frozen=True)
class StateChunks:
    """Chunks, the keys of those asleep, and what NON-OVERLAP carries, in maps of Spark's state store."""

    chunks: Any
    codes: Any
    ends: Any

    def read(self, number: int) -> bytes:
        """The chunk of a number."""
        return bytes(self.chunks.getValue((number,))[0])

    def write(self, number: int, chunk: bytes) -> None:
        """Puts a chunk under a number."""
        self.chunks.updateValue((number,), (chunk,))

    def remove(self, number: int) -> None:
        """Forgets a chunk."""
        self.chunks.removeKey((number,))

    def keys(self, number: int) -> bytes:
        """The codes of the keys in a chunk."""
        return bytes(self.codes.getValue((number,))[0])

    def write_keys(self, number: int, keys: bytes) -> None:
        """Puts down the codes of the keys in a chunk."""
        self.codes.updateValue((number,), (keys,))

    def remove_keys(self, number: int) -> None:
        """Forgets the codes of a chunk."""
        self.codes.removeKey((number,))

    def ended(self, query: int) -> bytes | None:
        """Where the last matches of a query ended."""
        return bytes(self.ends.getValue((query,))[0]) if self.ends.containsKey((query,)) else None

    def end(self, query: int, ended: bytes) -> None:
        """Puts down where the last matches of a query ended."""
        self.ends.updateValue((query,), (ended,))


class Shard(StatefulProcessor):
    """Spark calls it with the packed events of a shard, and, if it was asked to, when nothing has come for a while."""

    def __init__(self, step: Step, fingerprint: str, keep_late: bool, idle: tuple[int, float] | None) -> None:
        self.step, self.fingerprint, self.keep_late = step, fingerprint, keep_late
        self.idle = idle  # milliseconds of silence, and steps of the time column in a millisecond

    def __setstate__(self, state: dict[str, Any]) -> None:
        quieten()  # as early as anything of ours runs in a worker
        self.__dict__.update(state)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Opens the state."""
        self.handle = handle
        self.ready = replace(self.step, plans=tuple(shipment.unpacked() for shipment in self.step.shipments))
        # Schemas as objects: as text, each would go to the JVM and back to be read.
        self.clock = handle.getValueState("clock", StructType().add("told", StringType()))
        number, packed = StructType().add("number", LongType()), StructType().add("packed", BinaryType())
        ends = handle.getMapState("ended", number, packed) if self.ready.looks_back() else None
        codes = handle.getMapState("keys", number, packed) if self.ready.keys else None
        self.store = StateChunks(handle.getMapState("chunks", number, packed), codes, ends)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[pd.DataFrame]:
        """Takes in what came for this shard in a micro-batch."""
        tables: list[pa.Table] = []
        newest: int | None = None
        for packed in rows:
            tables += [decoded(events) for events in packed["events"] if events is not None]
            times = packed["newest"].dropna()
            newest = max(int(times.max()), newest) if newest is not None else int(times.max())
        now = timerValues.getCurrentProcessingTimeInMs() if self.idle else None
        yield from self.stepped(tables, newest, now)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        """Nothing came for a while: time goes on as the machine's clock does."""
        assert self.idle is not None
        clock = self.read()
        now = timerValues.getCurrentProcessingTimeInMs()
        if clock.newest is None or clock.arrived is None:
            return
        yield from self.stepped([], clock.newest + int((now - clock.arrived) * self.idle[1]), now)

    def stepped(self, tables: list[pa.Table], newest: int | None, now: int | None) -> Iterator[pd.DataFrame]:
        """One step from the stored state to the next."""
        outcome = self.ready.run(self.read(), self.store, tables, newest)
        clock = replace(outcome.clock, arrived=now)
        self.clock.update((clock.text(self.fingerprint),))
        if self.idle is not None and now is not None:
            for timer in list(self.handle.listTimers()):
                self.handle.deleteTimer(timer)
            if clock.chunks:  # otherwise there is nothing to decide
                self.handle.registerTimer(now + self.idle[0])
        yield told(outcome, self.keep_late)

    def read(self) -> Clock:
        """The stored clock."""
        # Spark logs a warning where there is nothing to get.
        return Clock.read(self.clock.get()[0] if self.clock.exists() else None, self.fingerprint)

    def close(self) -> None:
        """Nothing to close."""


def quieten() -> None:
    """Stops what Spark's own worker would print about the start of every stream. It has no setting for that."""
    main: Any = sys.modules["__main__"]
    if str(getattr(main, "__file__", "")).endswith("transform_with_state_driver_worker.py"):
        main.print = lambda *_: None


def told(outcome: Outcome, keep_late: bool) -> pd.DataFrame:
    """The outcome as rows: one with the numbers, the others with packed results. No NULLs: pandas is slow with them."""
    late = 0 if outcome.late is None else outcome.late.num_rows
    numbers = (outcome.events, late, outcome.retained, outcome.matches, outcome.state_bytes)
    zeros = [0] * len(numbers)
    rows: list[tuple[Any, ...]] = [(0, None, *numbers)]
    if outcome.late is not None and keep_late:
        rows.append((LATE, encoded(as_structs(outcome.late, LATE_EVENT)), *zeros))
    by_query: dict[int, list[pa.RecordBatch]] = {}
    for query, batch in outcome.results:
        by_query.setdefault(query, []).append(batch)
    for query, batches in by_query.items():
        rows.append((query, encoded(pa.Table.from_batches(batches)), *zeros))
    columns = ["query", "packed", "events", "late", "retained", "matches", "state_bytes"]
    return pd.DataFrame(rows, columns=columns)

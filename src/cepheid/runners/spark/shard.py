"""One shard of a stream in Spark's state store: reads its state, takes a step, writes it back.

Imported only when a stream is matched: it needs PySpark.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import fs
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from cepheid.runners.arrow_bytes import decoded
from cepheid.runners.spark.chunks import StateChunks, StateMap
from cepheid.runners.spark.held import HELD
from cepheid.runners.spark.outcome import told
from cepheid.runners.spark.processor import Variables, text_state
from cepheid.runners.spark.settled import settle
from cepheid.runners.spark.shards import shards_here
from cepheid.runners.spark.short_errors import short_errors
from cepheid.runners.stream.clock import Clock, signed
from cepheid.runners.stream.composed import Level, run_composed
from cepheid.runners.stream.identity import Fingerprint
from cepheid.runners.stream.incremental import Stepper


@dataclass(frozen=True)
class Telling:
    """What a shard tells besides matches, and when."""

    keep_late: bool = False
    idle: tuple[int, float] | None = None  # milliseconds of silence, and steps of the time column in a millisecond
    aside: str | None = None  # the directory that records go to that cannot be events
    named: bool = False  # do queries have names, so that the numbers of each are told?
    adopts: bool = False  # does the checkpoint decide how many shards there are?


@dataclass(frozen=True)
class ShardInput:
    """What came for a shard in a micro-batch."""

    tables: list[pa.Table]
    newest: int | None
    counts: dict[str, int]  # read, irrelevant, malformed: of all shards, told to one of them
    bad: tuple[str, ...] = ()


class Shard(StatefulProcessor):
    """Spark calls it with the packed events of a shard, and, if it was asked to, when nothing has come for a while."""

    def __init__(
        self, step: Stepper, fingerprint: Fingerprint, telling: Telling, levels: tuple[Level, ...] = ()
    ) -> None:
        self.levels = levels
        self.stream = uuid.uuid4().hex
        self.step, self.fingerprint, self.telling, self.idle = step, fingerprint, telling, telling.idle

    def variables(self) -> Variables:
        """What it keeps in Spark's store."""
        steps = [self.step, *(level.step for level in self.levels)]
        asked = {"chunks": True, "keys": any(step.keys for step in steps), "ended": any(s.looks_back() for s in steps)}
        return Variables(("clock",), tuple(name for name, needed in asked.items() if needed))

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Opens the state."""
        settle()
        self.handle = handle
        if self.telling.adopts:
            self.adopt(shards_here(self.fingerprint.shards))
        self.ready = self.step.ready()
        self.above = [replace(level, step=level.step.ready()) for level in self.levels]
        self.clock = text_state(handle, "clock")
        maps = {name: StateMap(handle, name) for name in self.variables().maps}
        self.store = StateChunks(maps["chunks"], maps.get("keys"), maps.get("ended"))

    def adopt(self, shards: int) -> None:
        """There are so many shards, of which this is one, rather than as many as were planned."""
        planned = self.fingerprint.shards
        if shards != planned:
            self.fingerprint = replace(self.fingerprint, shards=shards)
            self.step = self.step.for_shards(planned, shards)

    def handleInputRows(self, key: object, rows: Iterator[object], timerValues: Any) -> Iterator[pd.DataFrame]:
        """Takes in what came for this shard in a micro-batch."""
        now = timerValues.getCurrentProcessingTimeInMs() if self.idle else None
        yield from self.stepped(came(rows), now)

    def handleInitialState(self, key: object, initialState: Any, timerValues: object) -> None:
        """Begins with a state that was moved here (moving.py)."""
        for kind, number, packed in initialState[["kind", "number", "packed"]].itertuples(index=False):
            if kind == "clock":
                self.clock.update((bytes(packed).decode(),))
            elif kind == "chunk":
                self.store.chunks.put(int(number), bytes(packed))
            elif self.store.ends is not None:
                self.store.end(int(number), bytes(packed))

    def handleExpiredTimer(self, key: object, timerValues: Any, expiredTimerInfo: object) -> Iterator[pd.DataFrame]:
        """Nothing came for a while: time goes on as the machine's clock does."""
        assert self.idle is not None
        clock = Clock.read(self.stored(), self.fingerprint)
        now = timerValues.getCurrentProcessingTimeInMs()
        if clock.newest is None or clock.arrived is None:
            return
        yield from self.stepped(ShardInput([], clock.newest + int((now - clock.arrived) * self.idle[1]), {}), now)

    @short_errors
    def stepped(self, came: ShardInput, now: int | None) -> Iterator[pd.DataFrame]:
        """One step from the stored state to the next."""
        text = self.stored()
        before = Clock.read(text, self.fingerprint)
        store = opened(self.store, text, self.stream)
        outcome = run_composed(self.ready, self.above, before, store, came.tables, came.newest)
        if came.bad and self.telling.aside is not None:
            write_bad(self.telling.aside, outcome.clock.steps, came.bad)
        clock = replace(outcome.clock, arrived=now)
        self.clock.update((clock.text(self.fingerprint, put_away(store, self.stream), store.small),))
        if self.idle is not None and now is not None:
            for timer in list(self.handle.listTimers()):
                self.handle.deleteTimer(timer)
            if clock.chunks or self.ready.adds_up():  # otherwise there is nothing to decide
                self.handle.registerTimer(now + self.idle[0])
        yield told(outcome, came.counts, self.telling.keep_late, self.telling.named)

    def stored(self) -> str | None:
        """The clock as it is stored, if it is."""
        # Spark logs a warning where there is nothing to get.
        found = self.clock.get() if self.clock.exists() else None
        text: str | None = found[0] if found is not None else None
        return text

    def close(self) -> None:
        """Nothing to close."""


def opened(store: StateChunks, text: str | None, stream: str) -> StateChunks:
    """The store of a shard with what its clock holds, and what this worker remembers of it for a stream."""
    token, small = signed(text)
    held = HELD.take(token, stream)
    return replace(store, held=held.chunks, small=small, remembered=held.searches)


def put_away(store: StateChunks, stream: str) -> str:
    """Remembers what a step leaves; the token to sign its state with."""
    return HELD.put(store.held, store.remembered, stream, sum(map(len, store.small.values())))


def came(rows: Iterator[Any]) -> ShardInput:
    """What Spark hands over, put together."""
    tables: list[pa.Table] = []
    newest: int | None = None
    counts: Counter[str] = Counter()
    bad: list[str] = []
    for packed in rows:
        tables += [decoded(events) for events in packed["events"] if events is not None]
        times = packed["newest"].dropna()
        if len(times):
            newest = max(int(times.max()), newest) if newest is not None else int(times.max())
        counts.update({name: int(packed[name].sum()) for name in ("read", "irrelevant", "malformed")})
        bad += [line for lines in packed["bad"] if lines is not None for line in lines.splitlines()]
    return ShardInput(tables, newest, counts, tuple(bad))


def write_bad(folder: str, step: int, bad: Sequence[str]) -> None:
    """Records that cannot be events, a line each, in a file of this step: one that is taken again writes it again."""
    files, path = fs.FileSystem.from_uri(folder) if "://" in folder else (fs.LocalFileSystem(), folder)
    files.create_dir(path)
    name = f"{path}/step-{step:08}.jsonl"
    with files.open_output_stream(f"{name}.new") as stream:
        stream.write("".join(f"{line}\n" for line in bad).encode())
    files.move(f"{name}.new", name)

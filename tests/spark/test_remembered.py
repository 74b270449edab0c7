"""What a worker remembers of a shard: its search goes on where that is the state's own, and is made again elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

import cepheid
from cepheid.engine.choose import make_plan
from cepheid.language.schema import Schema
from cepheid.runners.options import Options
from cepheid.runners.spark import shard as spark_shard
from cepheid.runners.spark.chunks import StateChunks
from cepheid.runners.spark.held import ChunkCache
from cepheid.runners.spark.outcome import TOTAL
from cepheid.runners.spark.shard import Shard, ShardInput, Telling
from cepheid.runners.spark.worker_plan import ship
from cepheid.runners.stream import remembered
from cepheid.runners.stream.identity import ALONE, Fingerprint
from cepheid.runners.stream.state import StreamStep

COLUMNS = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("id", pa.int64())])
TEXT = "PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN 40 RETURN a.ts AS first, c.ts AS last"
ONE_KEY = Fingerprint(1, ("id",), {ALONE: {"text": TEXT}})


class Map(dict[int, bytes]):
    """A map of the state store."""

    def put(self, number: int, packed: bytes) -> None:
        self[number] = packed

    def remove(self, number: int) -> None:
        del self[number]


class Value:
    """A value of the state store."""

    told: tuple[str] | None = None

    def exists(self) -> bool:
        return self.told is not None

    def get(self) -> tuple[str] | None:
        return self.told

    def update(self, told: tuple[str]) -> None:
        self.told = told


def started(clock: Value, chunks: Map, codes: Map) -> Shard:
    """A shard in a new worker, or of a new stream, over a state that may be there."""
    schema = Schema.from_arrow(COLUMNS, time="ts", type="type")
    plan = make_plan(cepheid.query(TEXT).bind(schema), None, Options(), decide_later=True)[0]
    step = StreamStep((ship(plan, COLUMNS),), (0,), 0, schema=COLUMNS)
    found = Shard(step, ONE_KEY, Telling())
    found.ready, found.above, found.clock = step.ready(), [], clock  # type: ignore[assignment]
    found.store = StateChunks(chunks, codes, None)  # type: ignore[arg-type]
    return found


def events() -> list[pa.Table]:
    rng = np.random.default_rng(5)
    times = np.arange(400)
    table = pa.table([times, rng.choice(["A", "B", "C"], 400), rng.integers(0, 4, 400)], schema=COLUMNS)
    return [table.slice(start, 10) for start in range(0, 400, 10)]


def found_by(shard: Shard, table: pa.Table) -> list[tuple[int, int]]:
    newest = int(table["ts"].to_numpy().max())
    (frame,) = shard.stepped(ShardInput([table], newest, {}), None)
    packed = [each for number, each in zip(frame["query"], frame["packed"], strict=True) if number != TOTAL]
    rows = [row for each in packed for row in spark_shard.decoded(each).to_pylist()]
    return sorted((row["first"], row["last"]) for row in rows)


@pytest.fixture
def rebuilding(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps in which a search was made from the chunks, with a cache of this test's own."""
    numbers: list[int] = []

    def noting(step: StreamStep, clock: Any, store: Any) -> Any:
        numbers.append(clock.steps)
        return made(step, clock, store)

    made = remembered.rebuilt
    monkeypatch.setattr(remembered, "rebuilt", noting)
    monkeypatch.setattr(spark_shard, "HELD", ChunkCache())
    return numbers


def test_a_search_goes_on_unless_the_state_is_not_its_own(
    rebuilding: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = events()
    whole = cepheid.match(pa.concat_tables(batches), TEXT)
    clock, chunks, codes, found = Value(), Map(), Map(), []
    shard = started(clock, chunks, codes)
    for number, batch in enumerate(batches):
        if number == 10:  # the task ran, failed afterwards, and runs again over what was stored before
            kept, before = (Map(chunks), Map(codes)), clock.told
            found_by(shard, batch)
            chunks.clear(), codes.clear()
            chunks.update(kept[0]), codes.update(kept[1])
            clock.told = before
        if number == 20:  # another worker
            monkeypatch.setattr(spark_shard, "HELD", ChunkCache())
        if number == 30:  # the stream was started again, in the same worker
            shard = started(clock, chunks, codes)
        found += found_by(shard, batch)
    found += found_by(shard, pa.table([[1000], ["Z"], [0]], schema=COLUMNS))
    expected = [(row["first"], row["last"]) for row in whole.to_pylist()]
    assert sorted(found) == sorted(expected)
    assert rebuilding == [0, 10, 20, 30]


def test_memory_is_bounded() -> None:
    held = ChunkCache(most=100)
    tokens = [held.put({0: bytes(10)}, {0: "a search"}, "s") for _ in range(5)]
    assert [bool(held.take(token, "s").searches) for token in tokens] == [False, False, False, True, True]
    assert held.size == 0

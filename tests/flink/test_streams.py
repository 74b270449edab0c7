"""A stream cut anywhere, saved and restored, finds what the whole table does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.search.flink.heaps import drop_earlier, drop_first, push
from cepheid.errors import CepheidError, DataError, QueryError
from cepheid.flink import Pattern
from flink.cases import events
from strategies.flink import draw_task, to_pattern

KINDS = {"ts": pa.int64(), "name": pa.string(), "price": pa.float64(), "key": pa.int64(), "id": pa.int64()}
SCHEMA = pa.schema(KINDS)


@pytest.mark.some(16)
@pytest.mark.parametrize("seed", range(0, 400, 8))
def test_a_drawn_stream_equals_its_table(seed: int) -> None:
    for number in range(seed, seed + 8):
        rng = random.Random(number)
        task = draw_task(rng)
        keys = rng.choice([1, 1, 3])
        rows = [{**event, "key": rng.randint(0, keys), "id": at} for at, event in enumerate(task["events"])]
        table = pa.Table.from_pylist(rows, SCHEMA)
        options = {"type": None, "partial": True, "partition_by": rng.choice([[], ["key"]])}
        try:
            pattern = to_pattern(task)
            whole = cepheid.match(table, pattern, **options)
        except QueryError:
            continue
        delay = rng.choice([0, 0, 2])
        live = cepheid.live(pattern, SCHEMA, delay=delay, **options)
        found, at = [], 0
        while at < len(rows):
            size = rng.randint(1, 3)
            found += live.send(table.slice(at, size)).to_pylist()
            at += size
            if rng.random() < 0.4:
                live = cepheid.live(pattern, SCHEMA, delay=delay, state=live.save(), **options)
            if at >= len(rows):
                found += live.advance(rows[-1]["ts"] + rng.randint(0, 5)).to_pylist()
        found += live.finish().to_pylist()
        assert sorted(map(str, found)) == sorted(map(str, whole.to_pylist())), pattern


def test_what_is_late_is_counted_and_what_is_finished_is_closed() -> None:
    live = cepheid.live(Pattern.begin("a"), {"ts": int}, type=None)
    assert live.send([{"ts": 5}, {"ts": 7}])[0]["a"] == {"ts": 5}
    assert live.send({"ts": 3}) == []
    assert live.late == 1
    assert [row["a"]["ts"] for row in live.finish()] == [7]
    with pytest.raises(CepheidError, match="finished"):
        live.send({"ts": 9})


def test_absence_is_known_when_time_has_passed() -> None:
    alone = Pattern.begin("order").where("kind = 'o'").not_followed_by("paid").where("kind = 'p'").within("5 minutes")
    live = cepheid.live(alone, {"ts": pa.timestamp("us"), "kind": str}, type=None)
    noon = datetime(2026, 5, 1, 12)
    assert live.send({"ts": noon, "kind": "o"}) == []
    assert live.advance(noon + timedelta(minutes=4)) == []
    assert [row["order"]["ts"] for row in live.advance(noon + timedelta(minutes=5))] == [noon]


def test_an_asynchronous_source() -> None:
    async def source() -> AsyncIterator[dict[str, object]]:
        for ts, name in enumerate("axb"):
            yield {"ts": ts, "name": name}

    async def found() -> list[object]:
        live = cepheid.live(Pattern.begin("a").where("name = 'b'"), {"ts": int, "name": str}, type=None)
        return [row["a"]["ts"] async for rows in live.matches(source(), finish=True) for row in rows]

    assert asyncio.run(found()) == [2]


def test_kinds_of_tables() -> None:
    table = events("a1 b2 a3 b4")
    pattern = Pattern.begin("x").where("name = 'a'").next("y").where("name = 'b'").times(1, 2).optional()
    expected = cepheid.match(table, pattern, type=None).to_pylist()
    frame = cepheid.match(table.to_pandas(), pattern, type=None)
    assert [row["id"] for row in frame["x"]] == [row["x"]["id"] for row in expected]
    polars = pytest.importorskip("polars")
    assert cepheid.match(polars.from_arrow(table), pattern, type=None).to_dicts() == expected


def test_an_event_that_does_not_fit_its_column() -> None:
    with pytest.raises(DataError, match="does not fit"):
        cepheid.live(Pattern.begin("a"), {"ts": int}, type=None).send([{"ts": "noon"}])


def test_a_run_of_a_key_without_events_is_given_up_when_time_passes() -> None:
    """The condition looks back, so that the first steps take the runs up anew."""
    later = Pattern.begin("a").where("name = 'a'").followed_by("b").where("name = 'b' AND price > a.price")
    live = cepheid.live(later.within("5 seconds"), SCHEMA, type=None, partial=True, partition_by=["key"], time_unit="s")

    def send(ts: int, name: str, key: int) -> list[int]:
        row = {"ts": ts, "name": name, "price": float(ts), "key": key, "id": 0}
        return [found["a"]["key"] for found in live.send(pa.Table.from_pylist([row], SCHEMA)).to_pylist()]

    assert [send(1, "a", 1), send(1, "a", 2), send(3, "b", 2)] == [[], [], []]
    assert sorted(send(7, "x", 2)) == [1, 2]


def test_a_heap_without_its_first_runs_is_a_heap() -> None:
    rng = random.Random(1)
    for _ in range(50):
        heap, size, order = np.zeros((20, 3), np.int64), 0, list[list[int]]()
        begins = rng.sample(range(30), rng.randint(1, 20))
        for began in begins:
            size = push(heap, size, began + 100, began + 200, began)
        size = drop_earlier(heap, size, 10)
        while size:
            order.append(heap[0].tolist())
            size = drop_first(heap, size)
        assert order == [[began + 100, began + 200, began] for began in sorted(begins) if began >= 10]

"""Runs that stay in memory between calls: a stream cut anywhere, in any order that the delay allows, equals its table.

What is in memory is dropped at random places and made again, saved and restored, and forgotten early.
"""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import CepheidError, QueryError
from cepheid.runners.stream import flink, pushed
from strategies.flink import draw_task, to_pattern

SCHEMA = pa.schema({"ts": pa.int64(), "name": pa.string(), "price": pa.float64(), "key": pa.int64(), "id": pa.int64()})


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flink, "MANY", 0)
    monkeypatch.setattr(pushed, "LEAST", 4)


def disordered(rng: random.Random, rows: list[dict[str, Any]], delay: int) -> list[dict[str, Any]]:
    """The same events; none comes after one that is more than `delay` newer. Those of one instant stay in order."""
    return sorted(rows, key=lambda row: (row["ts"] + rng.randint(0, delay // 2) * (delay > 0), row["ts"], row["id"]))


def as_sent(rng: random.Random, rows: list[dict[str, Any]]) -> Any:
    """One dict, a list of them, or a table."""
    if len(rows) == 1 and rng.random() < 0.7:
        return rows[0]
    return rows if rng.random() < 0.4 else pa.Table.from_pylist(rows, SCHEMA)


@pytest.mark.some(20)
@pytest.mark.parametrize("seed", range(0, 480, 8))
def test_a_drawn_stream_equals_its_table(seed: int) -> None:
    for number in range(seed, seed + 8):
        rng = random.Random(number)
        task = draw_task(rng)
        ids = enumerate(task["events"])
        rows = [{**event, "key": rng.choice([None, 0, 1, 2]), "id": at} for at, event in ids]
        if rng.random() < 0.3:  # ties
            rows = [{**row, "ts": row["ts"] // 2} for row in rows]
        options = {"type": None, "partial": rng.random() < 0.5, "partition_by": rng.choice([[], ["key"]])}
        delay = rng.choice([0, 0, 4])
        came = disordered(rng, rows, delay)
        in_order = sorted(came, key=lambda row: row["ts"])
        try:
            pattern = to_pattern(task)
            whole = cepheid.match(pa.Table.from_pylist(in_order, SCHEMA), pattern, **options)
        except (QueryError, CepheidError):
            continue
        live = cepheid.live(pattern, SCHEMA, delay=delay, **options)
        found, at = [], 0
        while at < len(came):
            size = rng.choice([1, 1, 2, 3, 7])
            sent = live.send(as_sent(rng, came[at : at + size]))
            found += sent if isinstance(sent, list) else sent.to_pylist()
            at += size
            if rng.random() < 0.2:
                live = cepheid.live(pattern, SCHEMA, delay=delay, state=live.save(), **options)
            elif rng.random() < 0.3 and live.held.stream.pushed is not None:
                live.held.stream.pushed.at = None  # what is in memory is lost
        assert live.late == 0
        told = live.finish()
        found += told if isinstance(told, list) else told.to_pylist()
        assert sorted(map(str, found)) == sorted(map(str, whole.to_pylist())), (number, pattern)

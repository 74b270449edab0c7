"""Many queries in one streaming step: each finds what it finds alone, whether searches go on or begin anew."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.incremental import core
from cepheid.engine.search import incremental_events
from cepheid.runners.many import common_schema, dressed, dressed_together
from cepheid.runners.stream import incremental_shard
from cepheid.runners.stream.changing import SearchRequest, Serving
from cepheid.runners.stream.clock import Clock
from cepheid.runners.stream.remembered import run_step
from cepheid.runners.stream.state import StreamStep
from contract.steps import Memory

EVENTS, PARTS = 900, 4
KEYS: dict[str, list[Any]] = {
    "whole": [0, 1, 2**40, None],
    "number": [0.0, -0.0, 1.5, float("nan"), None],
    "text": ["a", "", "b", None],
    "truth": [True, False, None],
}


def events() -> pa.Table:
    rng = np.random.default_rng(3)
    columns: dict[str, Any] = {
        "ts": np.arange(EVENTS),
        "type": [None if kind == 5 else "ABCDE"[kind] for kind in rng.integers(0, 6, EVENTS)],
        "x": rng.integers(0, 10, EVENTS),
    }
    columns |= {name: [values[row] for row in rng.integers(0, len(values), EVENTS)] for name, values in KEYS.items()}
    return pa.table(columns)


def texts() -> dict[str, str]:
    """Queries that share types, keys and conditions, and differ in some of them."""
    asked = [
        f"PATTERN SEQ({first} a, {last} b) WHERE [{key}] AND a.x > {least} WITHIN {window}{shown}"
        for first, last, least in (("A", "B", 3), ("B", "A", 3), ("C", "D", 7))
        for key in (*KEYS, "whole, text")
        for window, shown in ((40, ""), (30, " RETURN a.ts AS f, b.ts AS l"))
    ]
    asked += ["PATTERN SEQ(A a, !(C c), B+ b) WHERE [text] AND a.x > 3 AND c.x > 3 WITHIN 9"]
    return {f"q{number}": text for number, text in enumerate(asked)}


@pytest.mark.parametrize("goes_on", [True, False])
def test_each_finds_what_it_finds_alone(goes_on: bool) -> None:
    table = events()
    serving = Serving(table.schema, {"time": "ts"}, (), 1, StreamStep((), (), 0, schema=table.schema))
    step, fingerprint = serving.ready({name: SearchRequest(text) for name, text in texts().items()})
    run = partial(run_step, step) if goes_on else step.run
    clock, store, found = Clock.read(None, fingerprint), Memory(), {name: list[str]() for name in texts()}
    size = -(-EVENTS // PARTS)
    for start in range(0, EVENTS + 1, size):
        part = table.slice(start, size)
        outcome = run(clock, store, [part] if part.num_rows else [], start + size)
        assert bool(store.remembered) == goes_on
        clock = Clock.read(outcome.clock.text(fingerprint), fingerprint)
        for number, batch in outcome.results:
            found[list(found)[number]] += map(repr, batch.to_pylist())
    for name, text in texts().items():
        alone = cepheid.match(table, text, time="ts").select(step.shipments[list(found).index(name)].schema.names)
        assert sorted(found[name]) == sorted(map(repr, alone.to_pylist())), text
        assert found[name], text


def test_events_out_of_order_and_keys_that_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incremental_shard, "LEAST", 200)
    monkeypatch.setattr(core, "FIRST_ROOM", 16)
    monkeypatch.setattr(incremental_events, "MANY_KEYS", 16)
    rng, number, delay = np.random.default_rng(5), 3_000, 20
    times = np.sort(rng.integers(0, number, number))
    columns = {
        "ts": times,
        "type": np.array(list("ABCD"))[rng.integers(0, 4, number)],
        "id": times // 60 + rng.integers(0, 5, number),
        "x": pa.array(rng.integers(0, 10, number), mask=rng.random(number) < 0.1),
        "y": rng.random(number),
    }
    table = pa.table(columns).take(np.argsort(times + rng.integers(0, delay, number), kind="stable"))
    asked = {
        "two": "PATTERN SEQ(A a, B b) WHERE [id] AND a.x < b.x AND a.y > b.y WITHIN 50",
        "three": "PATTERN SEQ(B a, C b, A c) WHERE [id] AND b.x > 2 WITHIN 80",
        "group": "PATTERN SEQ(A a, B+ b[], C c) WHERE [id] AND b[i].x > 5 WITHIN 20",
        "no key": "PATTERN SEQ(A a, B b) WHERE a.x = 9 AND a.x = b.x WITHIN 15",
        "contiguous": "PATTERN SEQ(A a, B b) WHERE partition_contiguity AND [id] AND a.x < b.x WITHIN 50",
    }
    serving = Serving(table.schema, {"time": "ts"}, (), 1, StreamStep((), (), delay, schema=table.schema))
    step, fingerprint = serving.ready({name: SearchRequest(text) for name, text in asked.items()})
    clock, store, found = Clock.read(None, fingerprint), Memory(), {name: list[str]() for name in asked}
    for start in range(0, number + 1, 250):
        part = table.slice(start, 250)
        newest = int(part["ts"].to_numpy().max()) if part.num_rows else 2 * number
        outcome = run_step(step, clock, store, [part] if part.num_rows else [], newest)
        assert not outcome.late
        assert store.remembered
        clock = Clock.read(outcome.clock.text(fingerprint), fingerprint)
        for place, batch in outcome.results:
            found[list(found)[place]] += map(repr, batch.to_pylist())
    for name, text in asked.items():
        alone = cepheid.match(table, text, time="ts").select(step.shipments[list(found).index(name)].schema.names)
        assert sorted(found[name]) == sorted(map(repr, alone.to_pylist())), text
        assert found[name], text


SHAPES = (
    "SEQ(A a, B b) WHERE [whole] AND a.x < b.x",
    "SEQ(A a, !(C c), B b, D d) WHERE [text]",
    "SEQ(A a, B? b, C c) WHERE [truth]",
    "SEQ(A a, B+ b[], C c) WHERE [text]",
    "(A a, (B b | C c), D d) WHERE [whole]",
    "SEQ(A a, B b) WHERE skip_till_next_match(a, b) { [text] }",
    "SEQ(A a, B+ b[], C c) WHERE skip_till_next_match(a, b[], c) { [text] }",
    "SEQ(A a, B b, !(C c)) WHERE [text]",
    "SEQ(!(C c), A a, B b) WHERE [text]",
    "SEQ(A a, B b) WHERE [text] AND a.x > 3 OUTPUT NON-OVERLAP",
)


@pytest.mark.some(10)
@pytest.mark.filterwarnings("ignore::cepheid.TiesWarning")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [1, 7, 150])
def test_queries_that_differ_in_their_windows_find_what_each_finds_alone(shape: str, size: int) -> None:
    table, delay = events().slice(0, 300), 3
    times = np.sort(np.random.default_rng(1).integers(0, 200, 300))
    table = table.set_column(0, "ts", pa.array(times)).take(np.argsort(times + np.arange(300) % delay, kind="stable"))
    pattern, _, output = shape.partition(" OUTPUT ")
    asked = {
        f"q{number}": f"PATTERN {pattern} WITHIN {window}{shown}{' OUTPUT ' + output if output else ''}"
        for number, (window, shown) in enumerate([(9, ""), (20, ""), (9, " RETURN a.ts AS f"), (3, ""), (20, "")])
    }
    live: Any = cepheid.live(asked, table.schema, time="ts", delay=delay)
    assert (len(live.resident.cores) < len(asked)) == (shape in SHAPES[:7])
    found: list[Any] = []
    for start in range(0, 300, size):
        piece = table.slice(start, size)
        rows = live.send(piece.to_pylist()[0] if size == 1 else piece)
        found += rows if size == 1 else rows.to_pylist()
        if start // size % 40 == 20:
            live = cepheid.live(asked, table.schema, time="ts", delay=delay, state=live.save())
    ends = live.finish()
    found += ends if isinstance(ends, list) else ends.to_pylist()
    for name, text in asked.items():
        alone = cepheid.match(table, text, time="ts").drop_columns(["match_start", "match_end"]).to_pylist()
        assert sorted(repr(row[name]) for row in found if row["query"] == name) == sorted(map(repr, alone)), text
    assert found


def test_rows_of_several_queries_become_rows_of_the_common_result_together() -> None:
    table = events()
    own = {name: cepheid.match(table, text, time="ts") for name, text in list(texts().items())[-4:]}
    own["none"] = next(iter(own.values())).slice(0, 0)
    schema = common_schema({name: result.schema for name, result in own.items()})
    parts = {name: result.to_batches(max_chunksize=3) for name, result in own.items() if result.num_rows}
    one_by_one = pa.Table.from_batches([dressed(name, each, schema) for name in parts for each in parts[name]])
    together = dressed_together(parts, schema)
    together.validate(full=True)
    assert list(map(repr, together.to_pylist())) == list(map(repr, one_by_one.to_pylist()))

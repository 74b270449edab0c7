"""Rows of results that a kernel makes of Arrow's own memory: every kind of column, slice and match."""

from __future__ import annotations

import pickle
import random
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.incremental import arrow_memory, linking
from cepheid.engine.incremental.pushed_matches import PushedMatches
from cepheid.engine.incremental.result_blocks import MOST_WORDS, BlockRows
from cepheid.engine.incremental.result_rows import ResultRows
from cepheid.runners.stream.event_log import EventLog

TEXTS = ["", "a", "ü", "x\0y", "long " * 20]
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "whole": (pa.int64(), [0, -1, 2**63 - 1]),
    "small": (pa.int8(), [0, -1, 127]),
    "short": (pa.uint16(), [0, 65_535]),
    "number": (pa.float64(), [0.0, -0.5, 1e300]),
    "half": (pa.float32(), [0.5, -2.0]),
    "flag": (pa.bool_(), [True, False]),
    "text": (pa.string(), TEXTS),
    "long text": (pa.large_string(), TEXTS),
    "bytes": (pa.binary(), [b"", b"\xff", b"12345678"]),
    "three": (pa.binary(3), [b"abc", b"\0\0\0"]),
    "day": (pa.date32(), [date(2026, 1, 31)]),
    "price": (pa.decimal128(30, 2), [Decimal("12.50"), Decimal("-1.00")]),
    'odd "name"': (pa.int64(), [7]),
}
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), *((name, kind) for name, (kind, _) in COLUMNS.items())])


def drawn_table(draw: random.Random, rows: int) -> pa.Table:
    columns: list[Any] = [pa.array([draw.randrange(10**6) for _ in range(rows)], pa.timestamp("us", "UTC"))]
    for kind, values in COLUMNS.values():
        nulls = draw.choice([0, 0, 1])
        columns.append(pa.array([draw.choice([*values, *[None] * nulls]) for _ in range(rows)], kind))
    return pa.table(columns, schema=SCHEMA)


def drawn_log(draw: random.Random) -> EventLog:
    log = EventLog(SCHEMA, lambda events: pa.Table.from_pylist(events, SCHEMA))
    for _ in range(draw.randrange(1, 70)):
        rows = draw.randrange(1, 12)
        table = drawn_table(draw, rows + 10).slice(draw.randrange(10), rows)
        some = sorted(draw.sample(range(rows), draw.randrange(1, rows + 1)))
        log.add_table(table, draw.choice([None, np.array(some, np.int64)]))
        if draw.random() < 0.2:
            log.places()
        if draw.random() < 0.1:
            kept = np.array([draw.random() < 0.7 for _ in range(log.rows)])
            if kept.any():
                log.keep(kept)
    return log


def result_schema(groups: list[bool], chances: bool) -> pa.Schema:
    event = pa.struct([(field.name, field.type) for field in SCHEMA])
    shown = [(f"v{place}", pa.list_(event) if group else event) for place, group in enumerate(groups)]
    clock = SCHEMA.field("ts").type
    extra = [("probability", pa.float64())] if chances else []
    return pa.schema([("match_start", clock), ("match_end", clock), *shown, *extra])


@pytest.mark.some(8)
@pytest.mark.parametrize("seed", range(20))
def test_rows_are_those_of_the_events(seed: int) -> None:
    draw = random.Random(seed)
    log = drawn_log(draw)
    every = log.table().to_pylist()
    places, matches = draw.randrange(1, 5), draw.randrange(1, 80)
    sized, chances, linear = draw.random() < 0.7, draw.random() < 0.3, draw.random() < 0.5
    groups = [sized and draw.random() < 0.5 for _ in range(places)]
    sizes, events, expected = [], list[int](), []
    scores = np.array([-draw.random() for _ in range(matches)])
    for match in range(matches):
        own = [draw.randrange(4) if group else draw.randrange(2) if sized else 1 for group in groups]
        own[draw.randrange(places)] = 1
        sizes.append(own)
        chosen = [[draw.randrange(len(every)) for _ in range(size)] for size in own]
        events += [event for each in chosen for event in each]
        times = [every[event]["ts"] for each in chosen for event in each]
        row = {"match_start": min(times), "match_end": max(times)}
        for place, (group, each) in enumerate(zip(groups, chosen, strict=True)):
            shown = [every[event] for event in each]
            nothing = None if linear or not group else []
            row[f"v{place}"] = (shown if group else shown[0]) if shown else nothing
        expected.append(row | ({"probability": float(np.exp(scores[match]))} if chances else {}))
    schema = result_schema(groups, chances)
    rows = ResultRows(SCHEMA, schema, "ts", SCHEMA.names, groups, linear)
    assert rows.fits
    pushed = PushedMatches(
        np.array(events, np.int64),
        np.array(sizes, np.int64) if sized else None,
        np.zeros(matches, np.int64),
        scores if chances else None,
    )
    batch = rows.batch(log.places(), pushed)
    assert batch is not None
    del log
    batch.validate(full=True)
    assert batch.schema == schema
    assert batch.to_pylist() == expected
    assert pa.Table.from_batches([batch]).slice(matches // 2).combine_chunks().to_pylist() == expected[matches // 2 :]


def test_dicts_among_the_events_are_left_to_others() -> None:
    log = EventLog(SCHEMA, lambda events: pa.Table.from_pylist(events, SCHEMA))
    log.add_table(drawn_table(random.Random(1), 5), None)
    log.add_events().append({"ts": 0})
    rows = ResultRows(SCHEMA, result_schema([False], False), "ts", SCHEMA.names, [False], True)
    one = np.zeros(1, np.int64)
    assert rows.batch(log.places(), PushedMatches(one, None, one)) is not None
    assert rows.batch(log.places(), PushedMatches(one + 5, None, one)) is None


@pytest.mark.parametrize("kind", [pa.dictionary(pa.int32(), pa.string()), pa.list_(pa.int64()), pa.null()])
def test_columns_of_other_kinds_are_left_to_others(kind: pa.DataType) -> None:
    schema = pa.schema([("ts", pa.int64()), ("x", kind)])
    result = pa.schema([("match_start", pa.int64()), ("match_end", pa.int64()), ("a", pa.struct(list(schema)))])
    assert not ResultRows(schema, result, "ts", schema.names, [False], True).fits


def test_memory_is_given_back() -> None:
    log = EventLog(SCHEMA, lambda events: pa.Table.from_pylist(events, SCHEMA))
    log.add_table(drawn_table(random.Random(1), 50), None)
    rows = ResultRows(SCHEMA, result_schema([True, False], False), "ts", SCHEMA.names, [True, False], True)
    pushed = PushedMatches(np.arange(48), np.array([[2, 1]] * 16, np.int64), np.zeros(16, np.int64))
    log.places()
    before = pa.total_allocated_bytes()
    for _ in range(3):
        batch = rows.batch(log.places(), pushed)
        assert pa.total_allocated_bytes() > before
        column = batch.column(2)
        del batch
        assert len(column.to_pylist()) == 16
        del column
        assert pa.total_allocated_bytes() == before
    memory = arrow_memory.exported(drawn_table(random.Random(2), 1_000))
    assert pa.total_allocated_bytes() > before + 10_000
    del memory
    assert pa.total_allocated_bytes() == before


def search_of(pushed: PushedMatches, kept: list[Any]) -> int:
    """The address of what a search says of some matches."""
    sizes = np.zeros(0, np.int64) if pushed.sizes is None else np.ascontiguousarray(pushed.sizes)
    head = np.zeros(linking.HEAD_SIZE, np.int64)
    head[linking.MATCHES], head[linking.MATCHED] = len(pushed.known), len(pushed.events)
    head[linking.OUT_AT], head[linking.SIZES_AT] = pushed.events.ctypes.data, sizes.ctypes.data
    kept[:] = [head, sizes, pushed]
    return int(head.ctypes.data)


@pytest.mark.some(4)
@pytest.mark.parametrize("seed", list(range(12)))
def test_small_results_are_parts_of_a_block(seed: int) -> None:
    """They are the rows that are made one result at a time, and stay so while further ones are written."""
    draw, kept, found, blocks = random.Random(seed), list[Any](), [], 0
    log = drawn_log(draw)
    places, sized = draw.randrange(1, 4), draw.random() < 0.7
    chances, linear = draw.random() < 0.3, draw.random() < 0.5
    groups = [sized and draw.random() < 0.5 for _ in range(places)]
    rows = ResultRows(SCHEMA, result_schema(groups, chances), "ts", SCHEMA.names, groups, linear)
    block = BlockRows(rows, sized)
    for _ in range(40):
        matches = draw.choice([1, 1, 2, 5, 20, 70])
        sizes = np.array([[draw.choice([0, 1, 3]) if group else 1 for group in groups] for _ in range(matches)])
        if sized and places > 1:
            sizes[:, draw.randrange(places)] = 1
            sizes[draw.randrange(matches), 0] = 0
        sizes[sizes.sum(axis=1) == 0, 0] = 1
        events = np.array([draw.randrange(log.rows) for _ in range(int(sizes.sum()))], np.int64)
        scores = -np.array([draw.random() for _ in range(matches)])
        pushed = PushedMatches(
            events, sizes if sized else None, np.zeros(matches, np.int64), scores if chances else None
        )
        expected = rows.batch(log.places(), pushed)
        assert expected is not None
        made = block.table(log.places(), search_of(pushed, kept), np.exp(scores[: matches * chances]))
        blocks += made is not None
        if made is not None:
            found.append((made, expected.to_pylist()))
    assert blocks > 20
    for made, known in found:
        made.validate(full=True)
        assert made.to_pylist() == known
        assert pickle.loads(pickle.dumps(made)).to_pylist() == known
        assert pa.concat_tables([made, made]).combine_chunks().to_pylist() == known * 2
        assert [column.null_count for column in made.columns] == [
            sum(row[name] is None for row in known) for name in made.column_names
        ]
    before = pa.total_allocated_bytes()
    del found, made, block
    assert pa.total_allocated_bytes() < before


@pytest.mark.some(3)
@pytest.mark.parametrize("columns", [1, 10, 100])
@pytest.mark.parametrize("group", [False, True])
def test_a_row_that_is_kept_holds_little_memory(columns: int, group: bool) -> None:
    """A block is small, however large results are, and however many columns they have."""
    kept = list[Any]()
    names = ["ts", *(f"c{number}" for number in range(columns))]
    wide = pa.table({name: range(100) for name in names})
    log = EventLog(wide.schema, lambda events: pa.Table.from_pylist(events, wide.schema))
    log.add_table(wide, None)
    event = pa.struct(list(wide.schema))
    kind = pa.list_(event) if group else event
    schema = pa.schema([("start", pa.int64()), ("end", pa.int64()), ("a", kind), ("b", kind)])
    rows = ResultRows(wide.schema, schema, "ts", names, [group, group], True)
    for matches in (1, 5, 20, 64):
        block, before = BlockRows(rows, True), pa.total_allocated_bytes()
        pushed = PushedMatches(
            np.arange(2 * matches) % 100, np.ones((matches, 2), np.int64), np.zeros(matches, np.int64)
        )
        made = block.table(log.places(), search_of(pushed, kept))
        assert pa.total_allocated_bytes() - before <= 8 * MOST_WORDS
        assert made is not None or columns * matches >= 500
        expected = rows.batch(log.places(), pushed)
        assert expected is not None
        assert made is None or made.to_pylist() == expected.to_pylist()


def in_kinds(table: pa.Table) -> list[pa.Table]:
    """The same events in tables that lie in memory in other ways."""
    chunks = pa.concat_tables([table.slice(0, 3), table.slice(3)])
    longer = pa.concat_tables([table.slice(0, 5), table]).combine_chunks().slice(5)
    types = table.schema.get_field_index("type")
    coded = table.set_column(types, "type", table.column("type").dictionary_encode())
    wide = table.set_column(types, "type", table.column("type").cast(pa.large_string()))
    return [table, chunks, longer, coded, wide, table.select(table.column_names[::-1])]


@pytest.mark.some(12)
@pytest.mark.parametrize("kind", range(6))
@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(A a, B b) WHERE [k] AND a.x < b.x WITHIN 20",
        "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match(a, b[], c) { [k] } WITHIN 20",
        "PATTERN SEQ(A a, B? b, C c) WHERE [k] WITHIN 20",
        "PATTERN SEQ(A a, !(B b), C c) WHERE [k] AND a.flag = TRUE WITHIN 20",
        "PATTERN SEQ(A a, C c) WHERE [k] WITHIN 5 EVENTS",
    ],
)
def test_a_live_query_reads_tables_of_every_kind(query: str, kind: int) -> None:
    draw = random.Random(5)
    rows, names = 400, ["A", "B", "C", "D", "Ä"]
    table = pa.table(
        {
            "ts": pa.array(range(rows), pa.int64()),
            "type": pa.array([draw.choice(names) for _ in range(rows)], pa.string()),
            "k": pa.array([draw.choice([1, 2, 2**40, None]) for _ in range(rows)], pa.int64()),
            "x": pa.array([draw.choice([0.5, 1.5, None]) for _ in range(rows)], pa.float64()),
            "flag": pa.array([draw.choice([True, False, None]) for _ in range(rows)], pa.bool_()),
            'odd "name"': pa.array([draw.choice(["", "ü", None]) for _ in range(rows)], pa.string()),
        }
    )
    live = cepheid.live(query, table.schema)
    found = []
    for start in range(0, rows, 20):
        found.append(live.send(in_kinds(table.slice(start, 20))[kind]))
    found.append(live.finish())
    expected = cepheid.match(table, query)
    assert expected.num_rows > 5
    together = pa.concat_tables(found)
    together.validate(full=True)
    assert sorted(map(repr, together.to_pylist())) == sorted(map(repr, expected.to_pylist()))

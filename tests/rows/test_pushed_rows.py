"""Searches that stay in memory between calls: a stream cut anywhere, dropped and made again, equals its table."""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cepheid
from cepheid.engine.incremental import row_core, row_push
from cepheid.engine.kernels.compile import COMPILES
from cepheid.flink import Pattern
from cepheid.runners.stream import flink, pushed, rows
from cepheid.runners.stream.rows import RowStream
from contract.rows import RowCase
from rows.row_cases import bound, rows_of
from strategies.rows import CONDITIONS, clauses, tables


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MANY", 0)
    monkeypatch.setattr(pushed, "LEAST", 3)
    monkeypatch.setattr(row_core, "FIRST_ROOM", 2)
    monkeypatch.setattr(row_core, "SCRATCH_ROOM", 1)
    monkeypatch.setattr(row_core, "RESULT_ROOM", 1)
    if not COMPILES:
        monkeypatch.setattr(row_push, "LONG", 1)


_within = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def cases(conditions: str) -> st.SearchStrategy[RowCase]:
    """A drawn clause over a longer table."""
    return st.builds(RowCase, clauses(CONDITIONS[conditions]), tables(16))


@_within
@given(cases("of rows") | cases("of paths"), st.integers(0, 3), st.data())
def test_a_drawn_stream_equals_its_table(case: RowCase, delay: int, data: st.DataObject) -> None:
    late = [at + data.draw(st.integers(0, delay)) for at in case.table.column("id").to_pylist()]
    ordered = case.table.take(pa.array(sorted(range(len(late)), key=late.__getitem__), pa.int64()))
    case = RowCase(case.clause.replace("$", "()"), ordered)  # a stream has no last row
    whole = case.found("auto")
    if not isinstance(whole, pa.Table):
        return
    query, schema = bound(case.clause, case.table), case.table.schema
    stream = RowStream(query, schema, delay, max_rows=1000)
    found: list[str] = []
    at = 0
    while at < len(ordered):
        size = data.draw(st.integers(1, 4))
        found += rows_of(stream.send(ordered.slice(at, size)))
        at += size
        what = data.draw(st.integers(0, 5))
        if what == 0:
            saved, stream = stream.save(), RowStream(query, schema, delay, max_rows=1000)
            stream.restore(saved)
        elif what == 1 and stream.pushed is not None:
            stream.pushed.at = None  # what is in memory is lost
    found += rows_of(stream.finish())
    assert sorted(found) == sorted(rows_of(whole))


@_within
@given(cases("of rows") | cases("of paths"), st.integers(0, 3), st.data())
def test_single_rows_find_what_the_table_does(case: RowCase, delay: int, data: st.DataObject) -> None:
    late = [at + data.draw(st.integers(0, delay)) for at in case.table.column("id").to_pylist()]
    ordered = case.table.take(pa.array(sorted(range(len(late)), key=late.__getitem__), pa.int64()))
    clause = case.clause.replace("array_agg", "collect_list")  # which is the same in the dialects of both
    case = RowCase(clause.replace("$", "()"), ordered)
    whole = case.found("auto")
    if not isinstance(whole, pa.Table):
        return
    text, options = f"MATCH_RECOGNIZE ({case.clause})", {"max_rows": 1000, "delay": delay}
    live = cepheid.live(text, ordered.schema, **options)
    found, at, came = [], 0, ordered.to_pylist()
    while at < len(came):
        size = data.draw(st.sampled_from([1, 1, 1, 3, 8]))
        sent = live.send(came[at] if size == 1 else ordered.slice(at, size))
        found += sent if isinstance(sent, list) else sent.to_pylist()
        at += size
        what = data.draw(st.integers(0, 9))
        if what == 0:
            live = cepheid.live(text, ordered.schema, state=live.save(), **options)
        elif what == 1 and live.held.stream.pushed is not None:
            live.held.stream.pushed.at = None
    told = live.finish()
    found += told if isinstance(told, list) else told.to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, whole.to_pylist()))


def test_what_a_table_decided_is_not_told_again_by_a_single_row() -> None:
    clause = "MATCH_RECOGNIZE (ORDER BY id MEASURES A.id AS at PATTERN (A) WITHIN 5 DEFINE A AS value > 1)"
    live = cepheid.live(clause, {"id": int, "value": int})
    assert live.send([{"id": at, "value": at} for at in range(5)]) == [{"at": 2}, {"at": 3}]
    assert live.send({"id": 5, "value": 0}) == [{"at": 4}]
    assert live.send([{"id": 6, "value": 7}, {"id": 7, "value": 7}]) == [{"at": 6}]


PATTERNS: list[tuple[Any, dict[str, Any]]] = [
    (
        "MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.ts AS begins, LAST(B.price) AS price, A.kind AS kind"
        " PATTERN (A B+) WITHIN 9 DEFINE A AS kind = 'x', B AS price > PREV(price))",
        {},
    ),
    (
        Pattern.begin("a").where("kind = 'x'").followed_by("b").where("price > a.price").within(9),
        {"partition_by": ["k"], "type": None},
    ),
]


@pytest.mark.some(3)
@pytest.mark.parametrize("number", range(len(PATTERNS)))
@pytest.mark.parametrize(
    ("delay", "keys"), [(0, ["u", "v", None]), (3, ["u", "v", None]), (0, [1, 2, None]), (3, [1, 2])]
)
def test_a_call_that_fails_leaves_nothing_behind(
    number: int, delay: int, keys: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flink, "MANY", 0)
    pattern, options = PATTERNS[number]
    rng = random.Random(number)
    kinds = {"ts": pa.int64(), "k": pa.array(keys).type, "kind": pa.string(), "price": pa.float64()}
    columns = {
        "ts": [at // 2 for at in range(300)],
        "k": [rng.choice(keys) for _ in range(300)],
        "kind": [rng.choice(["x", "y", None]) for _ in range(300)],
        "price": [rng.choice([1.0, 2.0, 3.0, None]) for _ in range(300)],
    }
    table = pa.table(columns, schema=pa.schema(kinds))
    whole = cepheid.match(table, pattern, **({"time": "ts"} if number else {}), **options).to_pylist()
    live = cepheid.live(pattern, table.schema, delay=delay, **options)
    found, at, came, failed = [], 0, table.to_pylist(), 0
    while at < len(came):
        size = rng.choice([1, 1, 1, 2, 7, 20])
        how = rng.choice(["dicts", "list", "table"])
        piece = came[at] if size == 1 else came[at : at + size] if how == "list" else table.slice(at, size)
        door = live._door
        if rng.random() < 0.5 and live._opened is live._state:
            with monkeypatch.context() as patch:
                patch.setattr(door.takes, "found", Mock(side_effect=KeyboardInterrupt))
                try:
                    told = live.send(piece)
                except KeyboardInterrupt:
                    failed += 1
                    continue
        else:
            told = live.send(piece)
        found += told if isinstance(told, list) else told.to_pylist()
        at += size
    assert failed > 10
    assert live.numbers.events == len(came)
    told = live.finish()
    found += told if isinstance(told, list) else told.to_pylist()
    assert len(whole) > 5
    assert sorted(map(str, found)) == sorted(map(str, whole))


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_rows_with_instants_are_taken_up_in_any_zone(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first rows are searched as they come; then the search stays in memory, and takes up what was kept of them."""
    monkeypatch.setattr(rows, "MANY", 20)
    instants = pa.timestamp("us", tz="UTC")
    prices = [3, 2, 1, 2] * 30
    table = pa.table({"ts": pa.array(range(120)).cast(pa.int64()).cast(instants), "price": prices})
    clause = """MATCH_RECOGNIZE (ORDER BY ts MEASURES hour(A.ts) AS begins, LAST(C.price) AS price
        PATTERN (A B+ C+) WITHIN INTERVAL '1' HOUR DEFINE B AS price < PREV(price), C AS price > PREV(price))"""
    live, found = cepheid.live(clause, table.schema, tz=zone), list[Any]()
    for start in range(0, 120, 15):
        found += live.send(table.slice(start, 15)).to_pylist()
    found += live.finish().to_pylist()
    assert found == cepheid.match(table, clause, tz=zone).to_pylist()
    assert len(found) == 30

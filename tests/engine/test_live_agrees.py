"""Live queries and streaming steps find what a batch finds, for keys of every type and wherever these are NULL.

Drawn are one or several queries of every output and strategy, readers of their matches, the type of the key, the order
in which events come within the delay, where the stream is cut, and where its state is saved and restored.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import event, given

import cepheid
from cepheid.runners import live_door
from cepheid.runners.stream import incremental_shard, state
from cepheid.runners.stream.clock import Clock
from cepheid.runners.stream.composed import run_composed
from cepheid.runners.stream.incremental_levels import ResidentLevels
from cepheid.runners.worker_plans import result_rows
from contract.steps import END_OF_TIME, Memory, drawn_streams, in_batches

# The types of keys, with values that are easily taken for each other.
KEYS: dict[pa.DataType, list[Any]] = {
    pa.int64(): [1, 2**60, 2**60 + 1],
    pa.int32(): [-1, 0, 1],
    pa.bool_(): [True, False],
    pa.string(): ["", "None", "nan"],
    pa.large_string(): ["a", "b"],
    pa.dictionary(pa.int8(), pa.string()): ["a", "b"],
    pa.date32(): [date(1969, 12, 31), date(2026, 3, 8)],
    pa.timestamp("us"): [datetime(1969, 12, 31), datetime(2026, 3, 8, 2, 30)],
    pa.timestamp("ms", "America/New_York"): [datetime(2026, 3, 8, 7, tzinfo=UTC), datetime(2026, 3, 8, 6, tzinfo=UTC)],
    pa.decimal128(20, 2): [Decimal("1.50"), Decimal("-2.00"), Decimal("0.00")],
    pa.float64(): [0.0, -0.0, 1.5, float("nan")],
    pa.float32(): [0.0, -0.0, 0.1, float("nan")],
}
QUERIES = [
    "PATTERN SEQ(A a, B b) WHERE {keys} WITHIN 5",
    "PATTERN SEQ(A a, B b) WHERE {keys} AND a.s <= b.s WITHIN 5",
    "PATTERN SEQ(A a, B b, C c) WHERE {keys} AND a.x <= c.x WITHIN 7",
    "PATTERN SEQ(A a, !(C c), B b) WHERE {keys} WITHIN 5",
    "PATTERN SEQ(!(C c), A a, B b) WHERE {keys} WITHIN 4",
    "PATTERN SEQ(A a, B b, !(C c)) WHERE {keys} WITHIN 4",
    "PATTERN SEQ(A a, B+ b[]) WHERE {keys} WITHIN 5",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match(a, b[], c) {{ {keys} AND b[i].x >= a.x }} WITHIN 7",
    "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) {{ {keys} }} WITHIN 5",
    "PATTERN SEQ(C a, A{{2}} b[]) WHERE skip_till_next_match {{ {keys} }} WITHIN 9",
    "PATTERN SEQ(A a, (B b | C c), D? d) WHERE skip_till_next_match {{ {keys} }} WITHIN 6",
    "PATTERN SEQ(A a, (B b | C c)) WHERE {keys} WITHIN 6",
    "PATTERN AND(A a, B b, C? c) WHERE {keys} WITHIN 5",
    "PATTERN SEQ(A a, B+ b[] UNTIL b.x > 1, C c) WHERE {keys} WITHIN 8",
    "PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) {{ {keys} }} WITHIN 5",
    "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) {{ {keys} }} WITHIN 5",
    "PATTERN SEQ(A a, B b) WHERE {keys} WITHIN 4 EVENTS",
    "PATTERN SEQ(A a, B b) WHERE {keys} WITHIN 6 OUTPUT NON-OVERLAP",
    "PATTERN SEQ(A a, B+ b[]) WHERE {keys} WITHIN 6 OUTPUT NON-OVERLAP",
    "PATTERN SEQ(A a, (B b | C c), D? d) WHERE {keys} WITHIN 6 OUTPUT NON-OVERLAP",
    "PATTERN SEQ(A a, !(C c), B b) WHERE {keys} WITHIN 4 EVENTS OUTPUT NON-OVERLAP",
    "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) {{ {keys} }} WITHIN 6 OUTPUT NON-OVERLAP",
    "PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) {{ {keys} }} WITHIN 5 OUTPUT NON-OVERLAP",
    "PATTERN SEQ(A a, B+ b[]) WHERE {keys} WITHIN 5 OUTPUT MAXIMAL",
    "PATTERN SEQ(A a, B? b, C c) WHERE {keys} WITHIN 6 OUTPUT MAXIMAL",
    "PATTERN ANY(A, B) a WHERE a.x > 0",
    "PATTERN (A a | C c) WHERE {keys}",
]
TOTALS = [
    "PATTERN SEQ(A a, B b) WHERE {keys} WITHIN 5 SUMMARISE count(*) AS n, sum(a.x) AS x, min(b.s) AS s EVERY 4",
    "PATTERN SEQ(A a, B+ b[]) WHERE {keys} WITHIN 5 SUMMARISE count(*) AS n, avg(b.x) AS x BY {by} EVERY 3",
    "PATTERN SEQ(A a, (B b | C c)) WHERE {keys} WITHIN 5 SUMMARISE count(*) AS n BY {by}",
]
LOSSY = [
    "PATTERN SEQ(A a, B b, C c) WHERE {keys} WITHIN 6 THRESHOLD 0.05",
    "PATTERN SEQ(A a, !(D d), C c) WHERE {keys} WITHIN 6 THRESHOLD 0.3",
    "PATTERN SEQ(A a, B b, C c) WHERE {keys} WITHIN 6 THRESHOLD 0.05 OUTPUT MAXIMAL",
    "PATTERN SEQ(A a, (B b | D d), C c) WHERE {keys} WITHIN 6 THRESHOLD 0.01",
]
READ = [
    "PATTERN SEQ(A a, B b) WHERE {keys} WITHIN 5 RETURN a.k AS k, b.x AS x",
    "PATTERN SEQ(A a, !(C c)) WHERE {keys} WITHIN 4 RETURN a.k AS k, a.x AS x",
    "PATTERN SEQ(C a, A{{2}} b[]) WHERE skip_till_next_match {{ {keys} }} WITHIN 9 RETURN a.k AS k, a.x AS x",
    "PATTERN SEQ(A a, (B b | C c)) WHERE {keys} WITHIN 6 OUTPUT MAXIMAL RETURN a.k AS k, a.x AS x",
]
READING = [
    "PATTERN SEQ(read a, read b) FROM read WHERE [k] AND a.x <= b.x WITHIN 12",
    "PATTERN SEQ(read a, read b) FROM read WHERE skip_till_next_match(a, b) { } WITHIN 12 OUTPUT NON-OVERLAP",
    "PATTERN SEQ(read a, read b) FROM read WITHIN 12 SUMMARISE count(*) AS n, sum(b.x) AS x EVERY 5",
    "PATTERN SEQ(read a, read b) FROM read WHERE [k] WITHIN 12 SUMMARISE count(*) AS n, sum(b.x) AS x BY k",
]
MODEL = cepheid.Model(loss=0.2, gaps={name: cepheid.Exponential(mean=3) for name in "abcd"})
pytestmark = pytest.mark.filterwarnings("ignore:THRESHOLD")


@st.composite
def asked(draw: st.DrawFn, ends: bool = True) -> Any:
    """One query, or several, some of which may read the matches of others; `ends`: is there an end of time?"""

    def chosen(texts: list[str]) -> str:
        return draw(st.sampled_from([text for text in texts if ends or "SUMMARISE" not in text or "EVERY" in text]))

    def one(texts: list[str]) -> str:
        keys = draw(st.sampled_from(["id", "id", "k", "id, k"]))
        by = draw(st.sampled_from(keys.split(", ")))
        return chosen(texts).format(keys=f"[{keys}]", by=by)

    lossy = draw(st.integers(0, 4)) == 0
    number = draw(st.sampled_from([1, 1, 2, 3]))
    lists = [LOSSY] if lossy else [QUERIES, QUERIES, QUERIES, TOTALS]
    named = {f"q{place}": one(draw(st.sampled_from(lists))) for place in range(number)}
    if not lossy and draw(st.booleans()):
        named["read"] = one(READ)
        named["reading"] = chosen(READING)
    return named if len(named) > 1 or draw(st.booleans()) else named["q0"]


@st.composite
def keyed_streams(draw: st.DrawFn) -> pa.Table:
    """Events with keys of a drawn type, NULL here and there."""
    kind = draw(st.sampled_from(list(KEYS)))
    event(f"key {kind}")
    row = st.tuples(
        st.integers(0, 2),
        st.sampled_from("AAABBBCCD"),
        st.sampled_from([*KEYS[kind], *KEYS[kind][:2], None]),
        st.sampled_from([None, "s", "t", "t", "t"]),
        st.integers(-2, 2),
        st.sampled_from("abc"),
    )
    size = max(draw(st.integers(0, 22)), draw(st.integers(0, 22)))  # long streams are the better tests
    rows = draw(st.lists(row, min_size=size, max_size=size))
    now, times = 0, []
    for step, *_ in rows:
        now += step
        times.append(now)
    columns = list(zip(*rows, strict=True)) or [()] * 6
    table = {"ts": pa.array(times, pa.int64()), "type": pa.array(columns[1], pa.string())}
    table |= {"id": pa.array(columns[2], kind), "k": pa.array(columns[3], pa.string())}
    table |= {"x": pa.array(columns[4], pa.int64()), "s": pa.array(columns[5], pa.string())}
    return pa.table({**table, "event": pa.array(range(len(rows)), pa.int64())})


def plain(value: Any) -> Any:
    """A value as it is compared: sums in another order, and -0.0, are equal."""
    match value:
        case float():
            return round(value, 6) + 0.0 if value == value else "nan"
        case list():
            return [plain(each) for each in value]
        case dict():
            return {name: plain(each) for name, each in value.items()}
    return value


def rows_of(tables: Any) -> list[str]:
    return sorted(repr(plain(row)) for table in tables for row in table.to_pylist())


def opened(queries: Any, table: pa.Table, delay: int, saved: bytes | None = None) -> Any:
    model = MODEL if "THRESHOLD" in str(queries) else None
    return cepheid.live(queries, table.schema, delay=delay, state=saved, model=model)


def found_live(data: Any, queries: Any, table: pa.Table, delay: int) -> Iterator[pa.Table]:
    """What a live query finds in drawn pieces, restored now and then."""
    live = opened(queries, table, delay)
    for batch in in_batches(data.draw, table, delay, most=6):
        match data.draw(st.integers(0, 3)):
            case 0:
                live = opened(queries, table, delay, live.save())
            case 1 if batch.num_rows:
                yield pa.Table.from_pylist(live.send(batch.to_pylist()), live.schema)
                continue
            case 2:
                for row in batch.to_pylist():
                    yield pa.Table.from_pylist(live.send(row), live.schema)
                continue
        yield live.send(batch)
    assert live.numbers.late == 0
    last = live.finish()
    yield last if isinstance(last, pa.Table) else pa.Table.from_pylist(last, live.schema)


def found_in_steps(data: Any, queries: Any, table: pa.Table, delay: int) -> Iterator[pa.Table]:
    """The same by the streaming step, its state read back between the steps."""
    live = opened(queries, table, delay)
    kept = live.resident
    levels = [level for level, _ in kept.levels] if isinstance(kept, ResidentLevels) else []
    text, store = None, Memory()
    for batch in [*in_batches(data.draw, table, delay, most=6), None]:
        newest = END_OF_TIME if batch is None else max(batch["ts"].to_pylist(), default=None)
        fresh = [batch.select(kept.schema.names)] if batch is not None and batch.num_rows else []
        outcome = run_composed(kept.step, levels, Clock.read(text, kept.fingerprint), store, fresh, newest)
        assert outcome.late is None
        text = outcome.clock.text(kept.fingerprint)
        for number, part in outcome.results:
            yield pa.Table.from_batches([result_rows(kept.shipments[number], part, live.schema)])


def batch_of(queries: Any, table: pa.Table) -> pa.Table:
    model = MODEL if "THRESHOLD" in str(queries) else None
    found: pa.Table = cepheid.match(table, queries, model=model)
    return found


@given(st.data(), asked(), keyed_streams(), st.integers(0, 4))
def test_live_finds_what_a_batch_finds(data: Any, queries: Any, table: pa.Table, delay: int) -> None:
    incremental_shard.LEAST = data.draw(st.sampled_from([1, 4, 2000]))  # how soon it is looked what has expired
    assert rows_of(found_live(data, queries, table, delay)) == rows_of([batch_of(queries, table)])


@given(
    st.data(), st.sampled_from([*QUERIES, *QUERIES, *TOTALS, *LOSSY]), keyed_streams(), st.sampled_from([0, 0, 1, 3])
)
def test_tables_in_order_find_what_a_batch_finds(data: Any, text: str, table: pa.Table, delay: int) -> None:
    """One query and tables in the order of time, which kernels read as they are; dicts in between, now and then."""
    keys = data.draw(st.sampled_from(["id", "k", "id, k"]))
    query: Any = text.format(keys=f"[{keys}]", by=keys.split(", ")[0])
    query = {"one": query} if data.draw(st.integers(0, 3)) == 0 else query
    incremental_shard.LEAST = data.draw(st.sampled_from([1, 4, 2000]))
    cuts = data.draw(st.lists(st.integers(0, table.num_rows), max_size=5).map(sorted))
    live, found = opened(query, table, delay), []
    for low, high in pairwise([0, *cuts, table.num_rows]):
        piece = table.slice(low, high - low)
        match data.draw(st.integers(0, 7)):
            case 0:
                live = opened(query, table, delay, live.save())
            case 1:
                found += [pa.Table.from_pylist(live.send(row), live.schema) for row in piece.to_pylist()]
                continue
        found.append(live.send(piece))
    last = live.finish()
    found.append(last if isinstance(last, pa.Table) else pa.Table.from_pylist(last, live.schema))
    assert rows_of(found) == rows_of([batch_of(query, table)])


@drawn_streams
@given(st.data(), asked(ends=False), keyed_streams(), st.integers(0, 4))
def test_a_stream_finds_what_a_batch_finds(data: Any, queries: Any, table: pa.Table, delay: int) -> None:
    state.FEW = data.draw(st.sampled_from([1, 1000]))  # how many events of idle keys lie apart
    assert rows_of(found_in_steps(data, queries, table, delay)) == rows_of([batch_of(queries, table)])


@given(st.data(), asked(), keyed_streams(), st.integers(0, 3))
def test_an_event_that_waits_tells_nothing_later(data: Any, queries: Any, table: pa.Table, delay: int) -> None:
    """Events one by one, which may wait, give call by call what lists of one event give, which do not."""
    live_door.MOST_WAITING = data.draw(st.sampled_from([1, 3, 1000]))
    live_door.MANY_KEYS = data.draw(st.sampled_from([1, 10_000]))
    single, listed = opened(queries, table, delay), opened(queries, table, delay)
    for batch in in_batches(data.draw, table, delay, most=6):
        match data.draw(st.integers(0, 6)):
            case 0:
                assert rows_of([single.send(batch)]) == rows_of([listed.send(batch)])
                continue
            case 1:
                single = opened(queries, table, delay, single.save())
                listed = opened(queries, table, delay, listed.save())
            case 2:
                assert single.numbers.events == listed.numbers.events
                assert single.numbers.watermark == listed.numbers.watermark
            case 3 if batch.num_rows:
                time = max(batch["ts"].to_pylist()) - data.draw(st.integers(0, delay + 1))  # beyond what events tell
                told = [each.advance(time) for each in (single, listed)]
                assert len(told[0]) == len(told[1])
        for row in batch.to_pylist():
            assert list(map(plain, single.send(row))) == list(map(plain, listed.send([row]))), row
    last = [each.finish() for each in (single, listed)]
    assert len(last[0]) == len(last[1])
    assert single.numbers.late == listed.numbers.late

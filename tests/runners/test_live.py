"""Live queries: whatever is sent, however it is cut, they find what a batch finds, and can be saved in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import date, datetime, timedelta
from typing import Any

import hypothesis.strategies as st
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given

import cepheid
from cepheid.engine.incremental.core import Core
from cepheid.errors import CepheidError
from cepheid.language import syntax as s
from cepheid.runners.stream import incremental_shard
from contract.steps import in_batches
from strategies.intervals import ROLES, intervals
from strategies.queries import queries, streams

QUERY = "PATTERN SEQ(A a, C c) WHERE [id] WITHIN 5"
SCHEMA = {"ts": int, "type": str, "id": int}


def numbered(table: pa.Table) -> pa.Table:
    return table.append_column("event", pa.array(range(table.num_rows), pa.int64()))


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def check_live(data: Any, query: Any, table: pa.Table, delay: int, engine: str = "reference", **options: Any) -> None:
    """What is found in drawn pieces, the state saved and restored in between, is what a batch finds."""
    asked = cepheid.query(query) if isinstance(query, str) else cepheid.Query(query)
    incremental_shard.LEAST = data.draw(st.sampled_from([1, 4, 2000]))  # how soon it is looked what has expired
    live = asked.live(table.schema, delay=delay, engine=engine, **options)
    found = []
    for batch in in_batches(data.draw, table, delay):
        found.append(live.send(batch))
        if data.draw(st.booleans()):
            live = asked.live(table.schema, delay=delay, state=live.save(), engine=engine, **options)
    found.append(live.finish())
    assert live.numbers.late == 0
    expected = asked.match(table, engine="reference", **options)
    assert rows_of(pa.concat_tables(found)) == rows_of(expected)


@given(st.data(), queries(window=True, returns=False), streams(max_size=14, ids=3), st.integers(0, 6))
def test_live_finds_what_a_batch_finds(data: Any, query: Any, table: pa.Table, delay: int) -> None:
    try:
        check_live(data, query, numbered(table), delay)
    except CepheidError as error:  # n EVENTS of each key, and an event that may belong to all of them
        assume("an event of an ANY component may belong to every partition" not in str(error))
        raise


KEYED = [
    "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 3",
    "PATTERN SEQ(A a, !(C c), B b) WHERE [id] AND a.x <= b.x WITHIN 4",
    "PATTERN SEQ(!(C c), A a, B b) WHERE [id] WITHIN 4",
    "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match(a, b[]) { [id] AND b[i].x >= a.x } WITHIN 5",
    "PATTERN SEQ(A a, A b) WHERE [id] WITHIN 4",
    "PATTERN SEQ(A a, B b, C? c) WHERE [id] WITHIN 6",
    "PATTERN SEQ(A a, (B b | C c)) WHERE [id] WITHIN 6",
]


@given(st.data(), st.sampled_from(KEYED), streams(max_size=20, ids=3), st.integers(0, 3))
def test_live_finds_what_a_batch_finds_where_keys_part_the_events(
    data: Any, query: str, table: pa.Table, delay: int
) -> None:
    check_live(data, query, numbered(table), delay)


PLAIN = [
    KEYED[0],
    KEYED[1],
    KEYED[4],
    "PATTERN SEQ(A a, B b, C c) WHERE [id] AND a.x > 1 AND b.x <= c.x WITHIN 6",
    "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 4 RETURN a.id AS key, a.x + b.x AS total",
    "PATTERN SEQ(A a, B b) WHERE [id] AND [shop] WITHIN 5",
]


@given(st.data(), st.sampled_from(PLAIN), streams(max_size=24, ids=3), st.integers(0, 3))
def test_plain_queries_prepare_an_event_once_and_find_the_same(
    data: Any, query: str, table: pa.Table, delay: int
) -> None:
    shops = data.draw(st.lists(st.sampled_from(["s", "t", None]), min_size=len(table), max_size=len(table)))
    events = numbered(table).append_column("shop", pa.array(shops, pa.string()))
    kept = cepheid.query(query).live(events.schema, engine="sequence")
    assert not kept.resident.cores[0].form.replays
    check_live(data, query, events, delay, engine="sequence")


NEXT = [
    "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { [id] } WITHIN 4",
    "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c) { [id] AND a.x <= b.x AND b.x <> c.x } WITHIN 9",
    "PATTERN SEQ(A a, A b, A c) WHERE skip_till_next_match(a, b, c) { [id] AND [shop] } WITHIN 9",
    "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c) { a.x < c.x } WITHIN 6",
    "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match(a, b[]) { [id] AND b[i].x >= a.x } WITHIN 7",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match(a, b[], c) { [id] AND b[1].x > 0 AND b[i].x >= b[i-1].x }"
    " WITHIN 9",
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) { [id] AND a[i].x <= avg(a[..i-1].x) } WITHIN 9",
    "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { [id] } WITHIN 6 RETURN a.id AS key, a.x + b.x AS total",
    "PATTERN SEQ(A a, (B b | C c), D? d) WHERE skip_till_next_match { [id] } WITHIN 6",
    "PATTERN SEQ((A a, B b){1,2}, C c) WHERE skip_till_next_match { [id] } WITHIN 9",
]


AGAIN = [
    "PATTERN SEQ(A a, !(C c), B b) WHERE skip_till_next_match(a, b) { [id] AND a.x <= b.x } WITHIN 6",
    "PATTERN SEQ(!(C c), A a, B+ b[]) WHERE skip_till_next_match(a, b[]) { [id] AND b[1].x > 0 } WITHIN 6",
    "PATTERN SEQ(A+ a[], B b) WHERE [id] AND a[1].x > 0 AND a[i].x >= a[i-1].x WITHIN 6",
]


@given(st.data(), st.sampled_from(AGAIN), streams(max_size=20, ids=3), st.integers(0, 3))
def test_runs_over_events_that_stay_find_the_same(data: Any, query: str, table: pa.Table, delay: int) -> None:
    kept = cepheid.query(query).live(numbered(table).schema, engine="runs")
    assert not kept.resident.cores[0].form.replays
    check_live(data, query, numbered(table), delay, engine="runs")


@given(st.data(), st.sampled_from(NEXT), streams(max_size=24, ids=3), st.integers(0, 3))
def test_runs_that_stay_find_the_same(data: Any, query: str, table: pa.Table, delay: int) -> None:
    shops = data.draw(st.lists(st.sampled_from(["s", "t", None]), min_size=len(table), max_size=len(table)))
    events = numbered(table).append_column("shop", pa.array(shops, pa.string()))
    engine = "states" if "|" in query or "{1,2}" in query else "runs"
    kept = cepheid.query(query).live(events.schema, engine=engine)
    assert not kept.resident.cores[0].form.replays
    check_live(data, query, events, delay, engine=engine)


@given(
    st.data(),
    queries(
        window=True,
        returns=False,
        output=False,
        event_window=False,
        negation=False,
        strategy=s.Strategy.SKIP_TILL_NEXT,
    ),
    streams(max_size=16, ids=3),
    st.integers(0, 4),
)
def test_runs_of_drawn_queries_find_the_same(data: Any, query: Any, table: pa.Table, delay: int) -> None:
    check_live(data, query, numbered(table), delay, engine="runs")


@pytest.mark.parametrize("query", [KEYED[0], NEXT[0]])
def test_what_is_kept_is_made_again_after_a_stop(monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    """A search that was stopped half way leaves nothing behind: what was kept is made again from the events."""
    live = cepheid.live(query, SCHEMA)
    live.send([{"ts": 1, "type": "A", "id": 7}, {"ts": 2, "type": "A", "id": 8}, {"ts": 3, "type": "D", "id": 7}])
    results = Core.results

    def stopped(core: Core, returned: int) -> Any:
        results(core, returned)
        raise KeyboardInterrupt

    for bad in ({"ts": 4, "type": "B", "id": 8}, {"ts": 4, "type": "B", "id": 7}):
        with monkeypatch.context() as patched:
            patched.setattr(Core, "results", stopped)
            with pytest.raises(KeyboardInterrupt):
                live.send([bad, {"ts": 9, "type": "D", "id": 9}])
    assert [match["a"]["id"] for match in live.send({"ts": 4, "type": "B", "id": 8}) + live.finish()] == [8]


def test_limits_are_those_of_each_key() -> None:
    """Runs of all keys lie in one pool, but `max_partial_matches` bounds those of one."""
    # The times keep runs apart: they would be merged otherwise.
    text = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { [id] AND a.ts < b.ts } WITHIN 40"
    events = [{"ts": time, "type": "A", "id": time} for time in range(8)]
    live = cepheid.live(text, SCHEMA, max_partial_matches=3)
    live.send(events)
    found = live.send([{"ts": 9 + time, "type": "B", "id": time} for time in range(8)]) + live.finish()
    assert sorted(match["a"]["id"] for match in found) == list(range(8))
    crowded = cepheid.live(text, SCHEMA, max_partial_matches=3)
    with pytest.raises(cepheid.LimitError, match="max_partial_matches"):
        crowded.send([{**event, "id": 7, "type": "A" if event["ts"] < 6 else "B"} for event in events])
    few = cepheid.live(text, SCHEMA, max_matches=3)
    few.send([{**event, "id": 7} for event in events])
    few.send([{"ts": 8, "type": "B", "id": 7}])
    with pytest.raises(cepheid.LimitError, match="max_matches"):
        few.send([{"ts": 9, "type": "A", "id": 7}])
    # What was refused did not happen: with a higher limit the query goes on from before.
    more = cepheid.live(text, SCHEMA, state=few.save())
    assert len(more.send([{"ts": 9, "type": "A", "id": 7}])) == 8
    more.send([{"ts": 10, "type": "B", "id": 7}])
    assert [match["a"]["ts"] for match in more.finish()] == [9]


@given(
    st.data(),
    queries(window=True, returns=False, event_window=False, output=False, max_components=2),
    intervals(max_size=5),
    st.integers(0, 4),
)
def test_live_finds_what_a_batch_finds_where_times_are_imprecise(
    data: Any, query: Any, table: pa.Table, delay: int
) -> None:
    check_live(data, query, numbered(table), delay, **ROLES)


def test_every_kind_of_table_and_single_events() -> None:
    events = {"ts": [1, 2, 3], "type": ["A", "B", "C"], "id": [7, 7, 7]}
    for table in (pa.table(events), pd.DataFrame(events), pl.DataFrame(events)):
        live = cepheid.live(QUERY, table)
        assert isinstance(live.send(table), type(table))
        assert len(live.finish()) == 1
    live = cepheid.live(QUERY, SCHEMA)
    assert live.send({"ts": 1, "type": "A", "id": 7}) == []
    assert live.send([{"ts": 3, "type": "C", "id": 7}]) == []
    assert live.send({"ts": 4, "type": "Z"})[0]["c"] == {"ts": 3, "type": "C", "id": 7}
    numbers = live.numbers
    assert (numbers.events, numbers.late, numbers.matches, numbers.retained, numbers.watermark) == (3, 0, 1, 2, 3)
    assert numbers.state_bytes > 0


def test_a_schema_of_types_of_python() -> None:
    schema = {"ts": datetime, "type": str, "day": date, "long": timedelta, "size": float, "first": bool}
    live = cepheid.live("PATTERN SEQ(A a, C c) WHERE [day] WITHIN 1 hour", schema)
    noon = datetime(2026, 3, 8, 12)
    event = {"ts": noon, "type": "A", "day": noon.date(), "long": timedelta(minutes=2), "size": 0.5, "first": True}
    later = event | {"ts": noon + timedelta(minutes=30), "type": "C"}
    found = [*live.send([event, later]), *live.finish()]
    assert [(match["a"], match["c"]) for match in found] == [(event, later)]


def test_time_can_be_told() -> None:
    live = cepheid.live("PATTERN SEQ(A a, !(B b)) WHERE [id] WITHIN 5", SCHEMA)
    assert live.send({"ts": 1, "type": "A", "id": 7}) == []
    assert live.advance(5) == []
    assert len(live.advance(6)) == 1
    late = []
    live.on_late = late.append
    assert live.send({"ts": 2, "type": "B", "id": 7}) == []
    assert late[0]["ts"].to_pylist() == [2]
    assert live.numbers.late == 1
    stamped = cepheid.live("PATTERN A a WITHIN 5 s", {"ts": pa.timestamp("us"), "type": str}, delay="2 seconds")
    stamped.send({"ts": pd.Timestamp("2026-01-31 12:00"), "type": "A"})
    assert stamped.advance(pd.Timestamp("2026-01-31 11:59")) == []
    assert len(stamped.advance(pd.Timestamp("2026-01-31 12:00"))) == 1


@pytest.mark.parametrize("window", ["5", "4 EVENTS"])
def test_time_that_was_told_stays_ahead_of_events(window: str) -> None:
    """`advance` goes further than events and their delay do: an event after it does not turn time back."""
    live = cepheid.live(f"PATTERN SEQ(A a, C c) WHERE [id] WITHIN {window}", SCHEMA, delay=2)
    assert live.send({"ts": 15, "type": "A", "id": 7}) == []
    assert live.send({"ts": 17, "type": "C", "id": 7}) == []
    assert [match["c"]["ts"] for match in live.advance(17)] == [17]
    assert live.send({"ts": 18, "type": "C", "id": 7}) == []
    assert live.numbers.watermark == 17
    assert [match["c"]["ts"] for match in live.finish()] == [18]


def test_totals_by_a_key_of_two_zeros() -> None:
    """-0.0 and 0.0 are one key, in a total that is put together from several calls as in one of a table."""
    query = "PATTERN SEQ(A a, C c) WHERE [x] WITHIN 5 SUMMARISE count(*) AS n BY x"
    schema = pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.float64()})
    rows = [
        {"ts": ts, "type": kind, "x": x}
        for ts, kind, x in zip([1, 2, 3, 4], "ACAC", [-0.0, -0.0, 0.0, 0.0], strict=True)
    ]
    live = cepheid.live(query, schema)
    assert [live.send(row) for row in rows] == [[], [], [], []]
    assert live.finish() == cepheid.match(pa.Table.from_pylist(rows, schema), query).to_pylist()


def test_several_queries() -> None:
    live = cepheid.live({"pairs": QUERY, "single": "PATTERN B WITHIN 1"}, SCHEMA)
    live.send([{"ts": 1, "type": "A", "id": 7}, {"ts": 2, "type": "B", "id": 7}, {"ts": 3, "type": "C", "id": 7}])
    assert [match["query"] for match in live.finish()] == ["pairs"]
    assert live.numbers.matches == 2


async def each(kinds: str, begin: int = 0) -> AsyncIterator[dict[str, Any]]:
    for time, kind in enumerate(kinds, begin):
        yield {"ts": time, "type": kind, "id": 7}


async def ends_of(live: Any, source: AsyncIterator[Any], **options: Any) -> list[int]:
    return [match["match_end"] async for found in live.matches(source, **options) for match in found]


def test_the_end_of_a_source_is_not_the_end_of_time() -> None:
    absent = "PATTERN SEQ(A a, !(C c)) WHERE [id] WITHIN 5"
    live, alarm = cepheid.live(QUERY, SCHEMA), cepheid.live(absent, SCHEMA)
    assert asyncio.run(ends_of(live, each("AB"))) == []
    assert asyncio.run(ends_of(alarm, each("AB"))) == []
    # The source is there again.
    assert asyncio.run(ends_of(live, each("CD", 2))) == [2]
    assert asyncio.run(ends_of(alarm, each("CBBBB", 2))) == []
    assert live.numbers.late == alarm.numbers.late == 0
    assert asyncio.run(ends_of(live, each("ABC", 4), finish=True)) == [6]
    with pytest.raises(cepheid.CepheidError, match="is finished"):
        live.send({"ts": 9})


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ({"ts": "x", "type": "A"}, "column 'ts', row 0: 'x' does not fit a column of int64"),
        ({"ts": 1, "typ": "A"}, "the event has 'typ', which the schema does not have; did you mean 'type'?"),
        ({"type": "A"}, "NULL in 1 of 1 rows"),
        (7, "not int"),
        ([7], "an event is a mapping of names to values, not int"),
        (pa.table({"ts": [1]}), "no column"),
    ],
)
def test_what_cannot_be_sent(event: Any, told: str) -> None:
    with pytest.raises(cepheid.DataError) as error:
        cepheid.live(QUERY, SCHEMA).send(event)
    assert told in str(error.value)


def test_what_cannot_be_made() -> None:
    with pytest.raises(cepheid.CepheidError, match="add WITHIN"):
        cepheid.live("PATTERN SEQ(A a, C c) WHERE [id]", SCHEMA)
    with pytest.raises(cepheid.DataError, match="is not a schema"):
        cepheid.live(QUERY, 7)
    with pytest.raises(cepheid.DataError, match="saved state is damaged"):
        cepheid.live(QUERY, SCHEMA, state=b"rubbish")
    state = cepheid.live(QUERY, SCHEMA).save()
    with pytest.raises(cepheid.DataError, match="another query"):
        cepheid.live(QUERY.replace("5", "6"), SCHEMA, state=state)
    live = cepheid.live(QUERY, SCHEMA)
    live.finish()
    with pytest.raises(cepheid.CepheidError, match="is finished"):
        live.send({"ts": 1})


def test_a_condition_on_two_events_is_compiled_whatever_ran_before() -> None:
    """Other calls may have run it as Python first; the search of a live query calls it by its address."""
    schema = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("id", pa.int64()), ("x", pa.int64())])
    rows = [{"ts": at, "type": "ABC"[at // 2 % 3], "id": at % 2, "x": at * 7 % 11} for at in range(300)]
    query = "PATTERN SEQ(A a, B b, C c) WHERE [id] AND a.x < c.x WITHIN 15"
    found = cepheid.match(pa.Table.from_pylist(rows, schema), query)
    live = cepheid.live(query, schema)
    single = [match for row in rows for match in live.send(row)] + list(live.finish())
    assert len(single) == found.num_rows > 0

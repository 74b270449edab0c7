"""SUMMARISE in parts: streams cut anywhere, on any number of shards, and pieces of a table equal the whole."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.table import ordered
from cepheid.engine.find import BEGINNING
from cepheid.engine.reference.totals import totals
from cepheid.language import syntax as s
from cepheid.plan.physical import Plan
from cepheid.runners.arrow_bytes import encoded
from cepheid.runners.pieces import Piece, can_cut, cut_by_time
from cepheid.runners.spark.totals import parts_of_pieces
from cepheid.runners.spark.unpack import unpacker
from cepheid.runners.spark.worker_plan import ship
from cepheid.runners.stream.clock import Clock
from cepheid.runners.stream.identity import fingerprint
from cepheid.runners.stream.state import StreamStep
from cepheid.runners.stream.totals import whole_here
from cepheid.runners.total_parts import added_up, finished
from contract.steps import END_OF_TIME, Memory, in_batches
from strategies.agreement import bound_to
from strategies.queries import queries, streams
from strategies.totals import assert_same_totals, summarised

ID = s.Equivalence((("id", None),))


def expected(plan: Plan, table: pa.Table) -> list[dict[str, Any]]:
    """The totals of the whole table, by the reference."""
    events = ordered(table, plan.bound.schema)
    assert plan.bound.summary is not None
    return totals(
        replace(plan, match=replace(plan.match, engine="reference")), plan.bound.summary, events, BEGINNING, NEVER
    )


def keyed(query: s.QuerySyntax) -> s.QuerySyntax:
    """The same with an equivalence test on `id`, so that a stream has shards."""
    return replace(query, where=ID if query.where is None else s.And((ID, query.where)))


def stepped(plan: Plan, batches: list[pa.Table], delay: int, shards: int) -> list[dict[str, Any]]:
    """What a stream of several shards appends, batch by batch; a bucket comes out once."""
    plan = replace(plan, exchange=replace(plan.exchange, shards=shards))
    worker_plan = ship(plan, batches[0].schema)
    step = replace(StreamStep((worker_plan,), (0,), delay), plans=(plan,))
    same = fingerprint((worker_plan,), shards)
    clocks, stores = [Clock.read(None, same)] * shards, [Memory() for _ in range(shards)]
    rows: list[dict[str, Any]] = []
    for batch, newest in [
        *((batch, max(batch["ts"].to_pylist(), default=None)) for batch in batches),
        (None, END_OF_TIME),
    ]:
        told: list[bytes] = []
        for shard in range(shards):
            own = []
            if batch is not None:
                own = [
                    batch.filter(
                        pa.array([(value or 0) % shards == shard for value in batch["id"].to_pylist()], pa.bool_())
                    )
                ]
            outcome = step.run(clocks[shard], stores[shard], [each for each in own if each.num_rows], newest)
            clocks[shard] = Clock.read(outcome.clock.text(same), same)
            told += [encoded(pa.Table.from_batches([part])) for _, part in outcome.results]
        packed = pa.record_batch({"query": [0] * len(told), "packed": pa.array(told, pa.binary())})
        parted = {} if whole_here(plan) else {0: worker_plan}
        for part in unpacker([None], worker_plan.schema, parted)([packed]):
            rows += part.to_pylist()
    return rows


@given(data=st.data())
def test_a_stream_cut_anywhere_equals_the_batch(data: Any) -> None:
    drawn = data.draw(queries(window=True, event_window=False, returns=False))
    query = data.draw(summarised(drawn, every=True))
    table, delay = data.draw(streams(max_size=12)), data.draw(st.integers(0, 6))
    bound = bound_to(query, table)
    plan = Plan(bound, "runs", partition=bound.equivalence)
    found = stepped(plan, in_batches(data.draw, table, delay), delay, 1)
    assert bound.summary is not None
    assert_same_totals(bound.summary, found, expected(plan, table))


@given(data=st.data())
def test_shards_add_up(data: Any) -> None:
    drawn = data.draw(queries(window=True, event_window=False, returns=False))
    query = data.draw(summarised(keyed(drawn), every=True))
    table, delay = data.draw(streams(max_size=12, ids=4)), data.draw(st.integers(0, 6))
    table = table.filter(table["id"].is_valid())  # no match holds an event without its key, and Spark ships none
    bound = bound_to(query, table)
    plan = Plan(bound, "runs", partition=bound.equivalence)
    if bound.strategy is s.Strategy.STRICT_CONTIGUITY:  # looks at the events of all keys, and is never parted by them
        return
    plan = replace(plan, exchange=replace(plan.exchange, keys=("id",)))
    found = stepped(plan, in_batches(data.draw, table, delay), delay, data.draw(st.integers(2, 3)))
    assert bound.summary is not None
    assert_same_totals(bound.summary, found, expected(plan, table))


@given(data=st.data())
def test_pieces_of_a_table_add_up(data: Any) -> None:
    query = data.draw(summarised(data.draw(queries(window=True, returns=False))))
    table = data.draw(streams(max_size=12))
    bound = bound_to(query, table)
    plan = Plan(bound, "runs", partition=bound.equivalence)
    assert bound.summary is not None
    cut = cut_by_time(table, [plan], data.draw(st.integers(1, 4))) if can_cut(table, [plan]) else [Piece(table)]
    parts = added_up(parts_of_pieces(plan, cut), bound.summary)
    assert_same_totals(bound.summary, finished(bound, parts, table.schema).to_pylist(), expected(plan, table))


EVENTS = pa.table(
    {
        "ts": list(range(40)),
        "type": ["AB"[number % 3 == 2] for number in range(40)],
        "id": [number % 2 for number in range(40)],
        "x": [number * 7 % 11 for number in range(40)],
    }
)
TOTALS = "PATTERN SEQ(A+ a[], B b) WHERE [id] WITHIN 9 SUMMARISE count(*) AS n, sum(a.x) AS v, avg(b.x) AS mean"


@pytest.mark.parametrize("clauses", ["", "BY id", "EVERY 10", "BY id EVERY 10"])
def test_a_live_query_reports_a_bucket_when_it_is_over(clauses: str) -> None:
    live = cepheid.live(f"{TOTALS} {clauses}", EVENTS.schema, delay=1)
    early = live.send(EVENTS.slice(0, 25)).to_pylist()
    assert [row["bucket"] for row in early] == (
        [0, 10] if clauses == "EVERY 10" else [0, 0, 10, 10] if "EVERY" in clauses else []
    )
    live = cepheid.live(f"{TOTALS} {clauses}", EVENTS.schema, delay=1, state=live.save())
    rows = [*early, *live.send(EVENTS.slice(25)).to_pylist(), *live.finish().to_pylist()]
    assert sorted(map(str, rows)) == sorted(map(str, cepheid.match(EVENTS, f"{TOTALS} {clauses}").to_pylist()))


def test_a_live_query_without_events_counts_none() -> None:
    live = cepheid.live(TOTALS, EVENTS.schema)
    assert live.finish().to_pylist() == [{"n": Decimal(0), "v": None, "mean": None}]
    assert cepheid.live(f"{TOTALS} EVERY 10", EVENTS.schema).finish().num_rows == 0


def test_totals_beside_matches() -> None:
    queries = {"totals": f"{TOTALS} EVERY 10", "rows": "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 3"}
    found = cepheid.match(EVENTS, queries)
    assert found.column_names == ["query", "match_start", "match_end", "totals", "rows"]
    own = [row["totals"] for row in found.to_pylist() if row["query"] == "totals"]
    assert own == cepheid.match(EVENTS, queries["totals"]).to_pylist()
    assert cepheid.match(EVENTS, {"totals": queries["totals"]}).column_names == ["query", "totals"]
    live = cepheid.live(queries, EVENTS.schema)
    rows = [*live.send(EVENTS).to_pylist(), *live.finish().to_pylist()]
    assert sorted(map(str, rows)) == sorted(map(str, found.to_pylist()))


def test_too_many_digits_are_seen_where_parts_are_added_up() -> None:
    bound = bound_to(cepheid.query(f"{TOTALS} EVERY 10").syntax, EVENTS)
    part = pa.table(
        {
            "bucket": [0],
            "_0": pa.array([Decimal(9 * 10**37)], pa.decimal128(38, 0)),
            "_1": pa.array([Decimal(1)], pa.decimal128(38, 0)),
            "_2": pa.array([Decimal(1)], pa.decimal128(38, 0)),
            "_2_known": pa.array([Decimal(1)], pa.decimal128(38, 0)),
        }
    )
    assert bound.summary is not None
    with pytest.raises(cepheid.LimitError, match=r"n has more than 38 digits(.|\n)*approximate_count"):
        added_up([part, part], bound.summary)


def test_every_group_in_one_shard_needs_no_adding_up() -> None:
    bound = bound_to(cepheid.query(f"{TOTALS} BY id EVERY 10").syntax, EVENTS)
    plan = Plan(bound, "runs", partition=bound.equivalence)
    assert whole_here(replace(plan, exchange=replace(plan.exchange, keys=("id",), shards=4)))
    assert not whole_here(replace(plan, exchange=replace(plan.exchange, keys=("id", "x"), shards=4)))


def test_decimals_as_groups_keep_their_places() -> None:
    number = pa.decimal128(20, 2)
    table = pa.table(
        {
            "ts": [1, 2, 3, 4, 9],
            "type": ["A", "B", "A", "B", "Z"],
            "id": pa.array([Decimal("1.50")] * 4 + [None], number),
        }
    )
    query = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 SUMMARISE count(*) AS n BY id EVERY 4"
    live = cepheid.live(query, table.schema)
    found = [row for event in table.to_pylist() for row in live.send([event])] + live.finish()
    assert found == cepheid.match(table, query).to_pylist()
    assert {row["id"] for row in found} == {Decimal("1.50")}

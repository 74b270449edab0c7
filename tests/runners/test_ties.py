"""Events of one time: they are counted where their order could matter, said once, and can be taken in row order."""

from __future__ import annotations

import warnings
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import assume, given

import cepheid
from cepheid.engine.choose import make_plan
from cepheid.engine.data.table import ordered
from cepheid.errors import DataError
from cepheid.flink import Pattern
from contract.steps import in_batches
from strategies.queries import queries, streams

QUERY = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5"
EVENTS = pa.table(
    {"ts": [1, 1, 2, 2, 3, 3], "type": ["A", "B", "A", "B", "A", "B"], "id": [1, 1, 1, 1, 2, 3], "x": range(6)}
)


def told(call: Any) -> list[str]:
    """The warnings of ties that a call gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in caught if issubclass(each.category, cepheid.TiesWarning)]


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def table(*events: tuple[int, str, int | None]) -> pa.Table:
    ts, kinds, ids = zip(*events, strict=True)
    return pa.table({"ts": ts, "type": kinds, "id": pa.array(ids, pa.int64())})


@pytest.mark.parametrize(
    ("query", "events", "expected"),
    [
        (QUERY, EVENTS, 4),
        ("PATTERN SEQ(A a, B b) WITHIN 5", EVENTS, 6),
        ("PATTERN A a WHERE a.id = 1", EVENTS, 0),
        ("PATTERN AND(A a, B b) WHERE [id] WITHIN 5", EVENTS, 0),
        (
            "PATTERN SEQ(A a, B b) WHERE [id] AND a.x > 0 WITHIN 5",
            EVENTS,
            2,
        ),  # row 0 cannot be `a`
        (QUERY, table((1, "A", 1), (1, "A", 1), (2, "B", 1)), 0),  # of one place of the pattern
        ("PATTERN SEQ(A+ a[], B b) WHERE [id] WITHIN 5", table((1, "A", 1), (1, "A", 1), (2, "B", 1)), 2),
        ("PATTERN SEQ((A a){2}, B b) WHERE [id] WITHIN 5", table((1, "A", 1), (1, "A", 1), (2, "B", 1)), 2),
        ("PATTERN SEQ(A a, !(C c), B b) WHERE [id] WITHIN 5", table((1, "A", 1), (2, "C", 1), (2, "B", 1)), 2),
        (QUERY, table((1, "A", None), (1, "B", None)), 0),  # NULL is no key
        ("PATTERN SEQ(A a, B b) WHERE a.id = b.id WITHIN 5", EVENTS, 4),
        (f"{QUERY} EVENTS", table((1, "A", 1), (2, "X", 1), (2, "B", 1)), 1),
        (
            "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { } WITHIN 5",
            table((1, "A", 1), (2, "X", 2), (2, "B", 1)),
            1,
        ),
        (f"{QUERY} SUMMARISE count(*) AS n", EVENTS, 4),
        (f"{QUERY} OUTPUT PARTIAL", EVENTS, 4),
    ],
)
def test_what_is_counted(query: str, events: pa.Table, expected: int) -> None:
    found = told(lambda: cepheid.match(events, query))
    assert [each.split(" of ")[0] for each in found] == [str(expected)] * (expected > 0)


def test_it_is_said_once_a_call_with_the_remedy() -> None:
    (message,) = told(lambda: cepheid.match(EVENTS, {"one": QUERY, "other": "PATTERN SEQ(A a, B b) WITHIN 3"}))
    assert message.startswith("6 of 6 events share their time with another event")
    assert "tiebreak='row'" in message
    assert "time and 'id'" in told(lambda: cepheid.match(EVENTS, QUERY, output="count"))[0]
    assert told(lambda: cepheid.match(EVENTS, QUERY, output="compressed"))
    assert not told(lambda: cepheid.match(EVENTS, QUERY, tiebreak="x"))
    assert not told(lambda: cepheid.match(EVENTS, QUERY, tiebreak="row"))
    assert not told(lambda: cepheid.match(EVENTS, QUERY, lower="ts", upper="ts"))


def test_the_warning_names_the_line_that_called() -> None:
    with pytest.warns(cepheid.TiesWarning) as caught:
        cepheid.query(QUERY).match(EVENTS)
    assert caught[0].filename == __file__


@given(queries(window=True, returns=False), streams(max_size=12, ids=2))
def test_without_a_warning_the_order_of_rows_changes_nothing(query: Any, events: pa.Table) -> None:
    asked = cepheid.Query(query)
    found: list[pa.Table] = []
    if told(lambda: found.append(asked.match(events, engine="reference"))):
        return
    assert rows_of(asked.match(events, engine="reference", tiebreak="row")) == rows_of(found[0])


@given(queries(window=True), streams(max_size=12, ids=2))
def test_row_order_is_that_of_a_column_of_row_numbers(query: Any, events: pa.Table) -> None:
    numbered = events.append_column("row", pa.array(range(len(events)), pa.int64()))
    asked = cepheid.Query(query)
    by_column = asked.match(numbered, engine="reference", tiebreak="row")  # the column of that name
    found = asked.match(numbered.rename_columns([*events.column_names, "nr"]), engine="reference", tiebreak="row")
    assert rows_of(found) == [each.replace("'row':", "'nr':") for each in rows_of(by_column)]


@given(st.data(), queries(window=True), streams(max_size=12, ids=2), st.integers(0, 4))
def test_live_takes_the_order_in_which_events_come(data: Any, query: Any, events: pa.Table, delay: int) -> None:
    asked = cepheid.Query(query)
    options: dict[str, Any] = {"engine": "reference", "tiebreak": "row"}
    try:
        live = asked.live(events.schema, delay=delay, **options)
    except cepheid.CepheidError as error:
        assume("cannot run live" not in str(error))  # such as windows that count the events of keys that ANY lacks
        raise
    found, came = [], []
    for batch in in_batches(data.draw, events, delay):
        came.append(batch)
        found.append(live.send(batch))
        if data.draw(st.booleans()):
            live = asked.live(events.schema, delay=delay, state=live.save(), **options)
    found.append(live.finish())
    arrived = pa.concat_tables([events.schema.empty_table(), *came])
    assert rows_of(pa.concat_tables(found)) == rows_of(asked.match(arrived, **options))


def test_an_end_at_the_same_time_stays_an_end_after_a_restart() -> None:
    asked = cepheid.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 OUTPUT NON-OVERLAP")
    events = table((1, "A", 1), (2, "A", 1), (2, "B", 1), (2, "A", 1), (3, "X", 1), (4, "B", 1))
    found, live = [], asked.live(events.schema, tiebreak="row")
    for row in events.to_pylist():
        found += live.send(row)
        live = asked.live(events.schema, tiebreak="row", state=live.save())
    found += live.finish().to_pylist()
    assert sorted(map(repr, found)) == rows_of(asked.match(events, tiebreak="row"))
    assert len(found) == 2


def test_a_live_query_says_it_once_and_counts_on() -> None:
    live = cepheid.live(QUERY, EVENTS.schema)
    found = told(lambda: [live.send(row) for row in EVENTS.to_pylist()])
    assert len(found) == 1
    assert "in which they come" in found[0]
    assert live.numbers.ties == 4
    assert not told(live.finish)
    assert live.numbers.ties == 4
    assert live.numbers.late == 0


def test_late_events_tie_nothing() -> None:
    live = cepheid.live(QUERY, EVENTS.schema)
    live.send([{"ts": 5, "type": "A", "id": 1}, {"ts": 9, "type": "X", "id": 1}])
    live.send([{"ts": 5, "type": "B", "id": 1}, {"ts": 10, "type": "X", "id": 1}])
    assert (live.numbers.late, live.numbers.ties) == (1, 0)


def test_row_is_no_column_of_the_result_and_free_names_are_found() -> None:
    events = EVENTS.append_column("__row", pa.array(["u"] * 6))
    found = cepheid.match(events, QUERY, tiebreak="row")
    assert found.num_rows == 3
    assert list(found.to_pylist()[0]["a"]) == ["ts", "type", "id", "x", "__row"]
    live = cepheid.live(QUERY, events.schema, tiebreak="row")
    assert live.schema == found.schema
    assert live.send(events).num_rows + live.finish().num_rows == 3


def test_bad_records_are_set_aside_as_they_came(tmp_path: Any) -> None:
    events = table((1, "A", None), (1, "A", 1), (1, "B", 1))
    aside: list[pa.Table] = []
    found = cepheid.match(events, QUERY, tiebreak="row", bad_records="set aside", aside=aside.append)
    assert found.num_rows == 1
    assert aside[0].column_names == ["row", "reason", "ts", "type", "id"]


def test_where_there_is_no_row_order_the_error_says_what_to_do() -> None:
    from cepheid.language.schema import Schema

    with pytest.raises(DataError, match=r"tiebreak='row' is the order of rows.*Spark; name a column"):
        Schema.from_arrow(EVENTS.schema, tiebreak=("row",))


def test_a_flink_pattern_takes_row_order_anyway() -> None:
    pattern = Pattern.begin("a").where("type = 'A'").followed_by("b").where("type = 'B'")
    found = cepheid.match(EVENTS, pattern, partition_by="id")
    assert cepheid.match(EVENTS, pattern, partition_by="id", tiebreak="row").equals(found)
    assert cepheid.live(pattern, EVENTS.schema, tiebreak="row").schema == found.schema


def test_fit_takes_row_order() -> None:
    with pytest.raises(cepheid.ModelError, match="2 of them"):  # gaps, where without an order there is one
        cepheid.fit(EVENTS, QUERY, tiebreak="row", loss=0.1)


def test_a_worker_of_spark_says_it_once_and_proposes_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    from cepheid.language.schema import Schema
    from cepheid.runners import ties
    from cepheid.runners.pieces import Piece, found

    monkeypatch.setattr(ties._Worker, "told", False)
    plan, _ = make_plan(cepheid.query(QUERY).bind(Schema.from_arrow(EVENTS.schema)))
    events = ordered(EVENTS, plan.bound.schema)
    (message,) = told(lambda: [found(plan, events, Piece(EVENTS), None) for _ in range(3)])
    assert message.endswith("pass tiebreak='...' with a column that orders them")

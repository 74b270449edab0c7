"""Tables in memory: every kind in, the same kind out; several queries at once; data that cannot be matched."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cepheid

EVENTS = {"ts": [1, 2, 3], "type": ["A", "B", "C"], "id": [7, 7, 7], "x": [1.5, None, 2.5]}
TEXT = "PATTERN SEQ(A a, C c) WHERE [id] WITHIN 5"


def test_arrow_gives_arrow() -> None:
    found = cepheid.match(pa.table(EVENTS), TEXT)
    assert isinstance(found, pa.Table)
    assert found.column_names == ["match_start", "match_end", "a", "c"]
    assert found["a"].to_pylist() == [{"ts": 1, "type": "A", "id": 7, "x": 1.5}]


def test_pandas_gives_pandas() -> None:
    found = cepheid.match(pd.DataFrame(EVENTS), TEXT)
    assert isinstance(found, pd.DataFrame)
    assert found["match_end"].tolist() == [3]


def test_polars_gives_polars() -> None:
    for events in (pl.DataFrame(EVENTS), pl.LazyFrame(EVENTS)):
        found = cepheid.match(events, TEXT)
        assert isinstance(found, pl.DataFrame)
        assert found["c"].struct.field("ts").to_list() == [3]


def test_the_schema_is_the_same_without_matches() -> None:
    nothing = cepheid.match(pa.table(EVENTS), TEXT.replace("WITHIN 5", "WITHIN 1"))
    assert nothing.num_rows == 0
    assert nothing.schema.equals(cepheid.match(pa.table(EVENTS), TEXT).schema)
    empty = cepheid.match(pa.table(EVENTS).slice(0, 0), TEXT)
    assert empty.schema.equals(nothing.schema)


def test_timestamps_stay_timestamps() -> None:
    start = datetime(2026, 1, 31, 12, tzinfo=UTC)
    table = pa.table({"ts": [start, start + timedelta(minutes=5)], "type": ["A", "C"], "id": [1, 1]})
    found = cepheid.match(table, "PATTERN SEQ(A a, C c) WHERE [id] WITHIN 10 minutes")
    assert found["match_end"].to_pylist() == [start + timedelta(minutes=5)]
    assert cepheid.match(table, "PATTERN SEQ(A a, C c) WHERE [id] WITHIN 5 minutes").num_rows == 0
    with pytest.raises(cepheid.QueryError, match="needs a unit"):
        cepheid.match(table, "PATTERN SEQ(A a, C c) WITHIN 300")
    since = "PATTERN SEQ(A a, C c) WHERE c.ts > '2026-01-31 12:04:00' AND c.ts - a.ts > 1000 WITHIN 1 hour"
    assert cepheid.match(table, since).num_rows == 1


def test_integer_times_need_to_be_told_their_unit() -> None:
    table = pa.table(EVENTS)
    with pytest.raises(cepheid.QueryError, match="pass time_unit='ms'"):
        cepheid.match(table, TEXT.replace("WITHIN 5", "WITHIN 5 seconds"))
    assert cepheid.match(table, TEXT.replace("WITHIN 5", "WITHIN 5 seconds"), time_unit="s").num_rows == 1
    assert cepheid.match(table, TEXT.replace("WITHIN 5", "WITHIN 2 ms"), time_unit="ms").num_rows == 0


def test_several_queries_at_once() -> None:
    queries = {"both": TEXT, "single": "PATTERN B WHERE id = 7 RETURN event.ts AS at"}
    found = cepheid.match(pa.table(EVENTS), queries).to_pylist()
    assert [match["query"] for match in found] == ["both", "single"]
    assert found[0]["both"]["c"]["ts"] == 3
    assert found[1]["single"] == {"at": 2}
    assert found[1]["both"] is None
    with pytest.raises(cepheid.QueryError, match="cannot be called 'query'"):
        cepheid.match(pa.table(EVENTS), {"query": TEXT})


@pytest.mark.parametrize(
    ("change", "options", "problem"),
    [
        ({"ts": [1, None, 3]}, {}, "column 'ts' holds the time, but it is NULL in 1 of 3 rows, first in row 1"),
        ({"ts": [1.0, 2.0, 3.0]}, {}, "must be a whole number or a timestamp"),
        ({"ts": ["1", "2", "3"]}, {}, "must be a whole number or a timestamp"),
        ({"type": [1, 2, 3]}, {}, "holds the event type and must be a string"),
        ({}, {"time": "tts"}, "no column 'tts' for the time; did you mean time='ts'"),
        ({}, {"type": "kind"}, "no column 'kind' for the type"),
        ({}, {"tiebreak": "nr"}, "no column 'nr' for the tiebreak"),
        ({}, {"time_unit": "fortnights"}, "no time unit 'fortnights'"),
    ],
)
def test_bad_data_is_a_clear_error(change: dict[str, Any], options: dict[str, Any], problem: str) -> None:
    with pytest.raises(cepheid.DataError, match=problem):
        cepheid.match(pa.table({**EVENTS, **change}), TEXT, **options)


def test_what_is_no_table_is_a_clear_error() -> None:
    with pytest.raises(cepheid.DataError, match="not list"):
        cepheid.match([1, 2, 3], TEXT)
    with pytest.raises(cepheid.QueryError, match="a query is a text or a pattern"):
        cepheid.match(pa.table(EVENTS), 7)


def test_tiebreakers_order_what_happens_at_one_instant() -> None:
    table = pa.table({"ts": [1, 1], "type": ["C", "A"], "id": [7, 7], "nr": [2, 1]})
    assert cepheid.match(table, TEXT).num_rows == 0
    assert cepheid.match(table, TEXT, tiebreak="nr").num_rows == 1


def test_returned_columns() -> None:
    text = """PATTERN SEQ(A+ a[], C c) WHERE skip_till_next_match(a[], c) { [id] } WITHIN 9
        RETURN c.ts AS at, a.LEN AS many, sum(a[].x) AS total, avg(a[].x) AS mean, a.ts AS all, a[1].ts AS first,
               max(a[].x) + c.x AS more, c"""
    table = pa.table({"ts": [1, 2, 3], "type": ["A", "A", "C"], "id": [7, 7, 7], "x": [1.0, None, 2.0]})
    found = cepheid.match(table, text).to_pylist()
    first = next(match for match in found if match["many"] == 2)
    assert first["all"] == [1, 2]
    assert (first["at"], first["total"], first["mean"], first["first"], first["more"]) == (3, 1.0, 1.0, 1, 3.0)
    assert first["c"]["ts"] == 3


def test_the_builder_and_the_text_are_the_same_query() -> None:
    start, end = cepheid.event("A").as_("a"), cepheid.event("C").as_("c")
    built = cepheid.seq(start, end).where(cepheid.equivalent("id")).within(5)
    assert cepheid.query(built) == cepheid.query(TEXT)
    assert cepheid.match(pa.table(EVENTS), built).equals(cepheid.match(pa.table(EVENTS), TEXT))


def test_one_time_column_that_may_be_off() -> None:
    table = pa.table({"ts": [3, 4, 4, 6], "type": list("ACBC"), "id": [1, 2, 3, 4]})
    found = cepheid.match(table, "PATTERN SEQ(A a, B b, C c) WITHIN 4", uncertainty={"A": 2, "B": 1, "C": 1})
    # a1 [1, 5], c2 and b3 [3, 5]: TIME's running example (docs/semantics.md).
    assert found["confidence"].to_pylist()[0] == pytest.approx(25 / 225)
    assert found["earliest"].to_pylist()[0] == 1
    exact = cepheid.match(table, "PATTERN SEQ(A a, B b, C c) WITHIN 4", uncertainty=0)
    assert exact["confidence"].to_pylist() == [1.0]
    with pytest.raises(cepheid.DataError, match="either uncertainty, or the columns"):
        cepheid.match(table, "PATTERN A", uncertainty=1, lower="ts", upper="ts")


def test_how_far_each_time_may_be_off() -> None:
    columns = {"ts": [3, 4, 4, 6], "type": list("ACBC"), "id": [1, 2, 3, 4]}
    text = "PATTERN SEQ(A a, B b, C c) WITHIN 4"
    by_type = cepheid.match(pa.table(columns), text, uncertainty={"A": 2, "B": 1, "C": 1})
    table = pa.table({**columns, "sigma": [2, 1, 1, 1]})
    assert cepheid.match(table, text, uncertainty="sigma")["confidence"].equals(by_type["confidence"])
    start = datetime(2026, 1, 31, tzinfo=UTC)
    stamped = {**columns, "ts": [start + timedelta(seconds=second) for second in columns["ts"]]}
    seconds = pa.table({**stamped, "sigma": [2.0, 1.0, 1.0, 1.0]})
    durations = pa.table({**stamped, "sigma": [timedelta(seconds=second) for second in (2, 1, 1, 1)]})
    for each in (seconds, durations):
        found = cepheid.match(each, text.replace("4", "4 s"), uncertainty="sigma", unit="1 s")
        assert found["confidence"].equals(by_type["confidence"])
    with pytest.raises(cepheid.DataError, match="column 'sigma', row 1: -1 is not a valid uncertainty"):
        cepheid.match(pa.table({**columns, "sigma": [2, -1, 1, 1]}), text, uncertainty="sigma")
    with pytest.raises(cepheid.DataError, match="but it is string"):
        cepheid.match(pa.table({**columns, "sigma": ["2"] * 4}), text, uncertainty="sigma")

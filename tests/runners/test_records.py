"""Data as it is: results that keep what pandas loses, tables without rows, and records that cannot be events."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid

PAIR = "PATTERN SEQ(A a, C c) WHERE [id] WITHIN 9 minutes"
TAG = 2**60 + 1
MODEL = cepheid.Model(loss=0.3, gaps={name: cepheid.Exponential(mean=1.0) for name in "abc"})


# --- pandas ---------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:THRESHOLD")
def test_integers_stay_exact_where_events_are_missing() -> None:
    events = pd.DataFrame({"ts": [1, 2, 5], "type": ["A", "B", "C"], "tag": [TAG] * 3})
    text = "PATTERN SEQ(A a, B b, C c) WHERE [tag] WITHIN 9 THRESHOLD 0.05"
    found = cepheid.match(events, text, model=MODEL)
    seen = [event for event in [*found["a"], *found["b"]] if event is not None]
    assert found["a"].isna().any() or found["b"].isna().any()
    assert all(type(event["tag"]) is int and event["tag"] == TAG for event in seen)
    returned = cepheid.match(events, text + " RETURN b.tag AS tag", model=MODEL)
    assert set(returned["tag"].dropna()) == {TAG}


@pytest.mark.parametrize("unit", ["ns", "us", "s"])
def test_times_in_events_are_times(unit: str) -> None:
    times = pd.to_datetime(["2026-01-01 10:00", "2026-01-01 10:05"]).astype(f"datetime64[{unit}]")
    events = pd.DataFrame({"ts": times, "type": ["A", "C"], "id": [1, 1]})
    found = cepheid.match(events, PAIR)
    assert found["a"][0]["ts"] == pd.Timestamp("2026-01-01 10:00")
    assert "2026-01-01 10:00" in repr(cepheid.show(found)).splitlines()[1].partition("{")[2]
    group = cepheid.match(events, "PATTERN SEQ(A+ a[], C c) WITHIN 9 minutes")
    assert group["a"][0][0]["ts"] == pd.Timestamp("2026-01-01 10:00")


@pytest.mark.parametrize(
    "empty",
    [
        pd.DataFrame({"ts": [], "type": [], "id": [], "x": []}),
        pd.DataFrame({"ts": [1], "type": ["A"], "id": [1], "x": [0.5]}).iloc[:0],
        pd.DataFrame(columns=["ts", "type", "id", "x"]),
        pl.DataFrame({"ts": [], "type": [], "id": [], "x": []}),
    ],
)
def test_tables_without_rows(empty: Any) -> None:
    found = cepheid.match(empty, "PATTERN SEQ(A a, C c) WHERE [id] AND a.x < c.x WITHIN 9")
    assert len(found) == 0
    assert list(found.columns) == ["match_start", "match_end", "a", "c"]


def test_two_columns_of_one_name() -> None:
    events = pd.DataFrame([[1, "A", 1]], columns=["ts", "type", "type"])
    with pytest.raises(cepheid.DataError, match="two columns are called 'type'"):
        cepheid.match(events, PAIR)


def test_the_query_may_be_named() -> None:
    events = pa.table({"ts": [1, 2], "type": ["A", "C"]})
    assert cepheid.match(events, query="PATTERN SEQ(A a, C c) WITHIN 5").num_rows == 1


@pytest.mark.parametrize("given", ["10", 10**30])
def test_limits_are_numbers_that_fit(given: Any) -> None:
    with pytest.raises(cepheid.CepheidError, match=r"max_matches=.* is not a whole number"):
        cepheid.match(pa.table({"ts": [1], "type": ["A"]}), "PATTERN A a", max_matches=given)


# --- numbers and times in text --------------------------------------------------------------------------------------


AMOUNTS = {"ts": [1, 2, 3, 4], "type": ["P"] * 4, "Amount": ["1,234.50", "5", "7.00", "9.99"]}


def test_ordering_a_text_against_a_number_offers_a_cast() -> None:
    with pytest.raises(cepheid.QueryError, match=r"cast the column to a number, or pass decimal='\.'"):
        cepheid.match(pa.table(AMOUNTS), "PATTERN P p WHERE p.Amount < 10")
    like_numbers = "column 'Amount' holds texts that look like numbers, such as '1,234.50'"
    with pytest.warns(UserWarning, match=like_numbers) as caught:
        cepheid.match(pa.table(AMOUNTS), "PATTERN P p WHERE p.Amount < '10'")
    assert caught[0].filename == __file__


@pytest.mark.parametrize("query", ["PATTERN P p WHERE p.Amount < 10", "PATTERN P p WHERE p.Amount + 1 < 11"])
def test_numbers_in_text_are_read(query: str) -> None:
    assert cepheid.match(pa.table(AMOUNTS), query, decimal=".", thousands=",").num_rows == 3
    german = {**AMOUNTS, "Amount": ["1.234,50", "5", "7,00", "9,99"]}
    found = cepheid.match(pd.DataFrame(german), query, decimal=",", thousands=".")
    assert sorted(event["Amount"] for event in found["p"]) == [5.0, 7.0, 9.99]
    with pytest.raises(cepheid.DataError, match="column 'Amount', row 2: 'seven' is not a number"):
        cepheid.match(pa.table({**AMOUNTS, "Amount": ["1", "2", "seven", None]}), query, decimal=".")
    assert cepheid.match(pa.table({**AMOUNTS, "code": ["007"] * 4}), query, decimal=".", thousands=",").num_rows == 3


TIMES = ["2026-01-01 10:00", "2026-01-01T10:05:00", "garbage", None, "2026-01-01 10:07"]
MESSY = {"ts": TIMES, "type": ["A", "C", "A", "A", "C"], "id": [1, 1, 1, 1, None]}


def test_the_error_shows_the_culprit() -> None:
    rows = ["2026-01-01 10:00:00"] * 2056 + ["31/02/2026"]
    for table in (pa.table({"ts": rows, "type": ["A"] * 2057}), pd.DataFrame({"ts": rows, "type": ["A"] * 2057})):
        with pytest.raises(cepheid.DataError, match="column 'ts', row 2056: '31/02/2026' is not a time"):
            cepheid.match(table, "PATTERN A a")
    with pytest.raises(cepheid.DataError, match="column 'ts', row 2: 'x' is not a whole number"):
        cepheid.match(pd.DataFrame({"ts": [1, 2, "x"], "type": ["A"] * 3}), "PATTERN A a")
    with pytest.raises(cepheid.DataError, match="NULL in 1 of 3 rows, first in row 1"):
        cepheid.match(pd.DataFrame({"ts": [1, None, 3], "type": ["A"] * 3}), "PATTERN A a")
    with pytest.raises(cepheid.DataError, match="row 1: inf is not a finite whole number"):
        cepheid.match(pd.DataFrame({"ts": [1, float("inf"), 3], "type": ["A"] * 3}), "PATTERN A a")


def test_times_in_text_are_read() -> None:
    table = pa.table({"ts": ["2026-01-01 10:00", "2026-01-01T10:05:00"], "type": ["A", "C"], "id": [1, 1]})
    assert cepheid.match(table, PAIR).num_rows == 1
    german = pa.table({"ts": ["01.02.2026 10:00", "01.02.2026 10:05"], "type": ["A", "C"], "id": [1, 1]})
    assert cepheid.match(german, PAIR, time_format="%d.%m.%Y %H:%M").num_rows == 1
    with pytest.raises(cepheid.DataError, match=r"row 0 holds '01.02.2026 10:00'.*time_format"):
        cepheid.match(german, PAIR)


# --- policies -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pa.table, pd.DataFrame, lambda columns: pl.DataFrame(columns)])
def test_bad_records_by_policy(kind: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(cepheid.DataError, match="column 'ts'"):
        cepheid.match(kind(MESSY), PAIR, bad_records="fail")
    assert len(cepheid.match(kind(MESSY), PAIR, bad_records="drop")) == 1
    assert "left out 2 of 5 records" in caplog.text
    aside: list[pa.Table] = []
    found = cepheid.match(kind(MESSY), PAIR, bad_records="set aside", aside=aside.append)
    assert len(found) == 1
    assert aside[0]["row"].to_pylist() == [2, 3, 4]
    told = aside[0]["reason"].to_pylist()
    assert told[0].startswith("ts is not a time")
    assert told[1:] == ["ts is NULL, and it holds the time", "id is NULL, and it is a key of the query"]
    for name in ("bad.parquet", "bad.csv", "bad.jsonl"):
        cepheid.match(kind(MESSY), PAIR, bad_records="set aside", aside=tmp_path / name)
    assert pq.read_table(tmp_path / "bad.parquet").num_rows == 3
    with open(tmp_path / "bad.csv", newline="") as lines:
        assert [row["row"] for row in csv.DictReader(lines)] == ["2", "3", "4"]
    assert json.loads((tmp_path / "bad.jsonl").read_text().splitlines()[0])["ts"] == "garbage"


def test_several_queries_set_a_record_aside_once(tmp_path: Path) -> None:
    cepheid.match(
        pa.table(MESSY), {"one": PAIR, "two": "PATTERN A a"}, bad_records="set aside", aside=tmp_path / "bad.parquet"
    )
    assert sorted(pq.read_table(tmp_path / "bad.parquet")["row"].to_pylist()) == [2, 3, 4]


def test_what_was_left_out_is_counted() -> None:
    found = cepheid.match(pd.DataFrame(MESSY), PAIR, bad_records="drop")
    assert sum(found.attrs["cepheid"]["left_out"].values()) == 3
    arrow = cepheid.match(pa.table(MESSY), PAIR, bad_records="drop")
    facts = json.loads(arrow.schema.metadata[b"cepheid"])
    assert facts["left_out"]["id is NULL, and it is a key of the query"] == 1


def test_null_keys_match_nothing_unless_a_policy_says_more() -> None:
    table = pa.table({"ts": [1, 2], "type": ["A", "C"], "id": pa.array([None, None], pa.int64())})
    assert cepheid.match(table, "PATTERN SEQ(A a, C c) WHERE [id] WITHIN 9").num_rows == 0
    with pytest.raises(cepheid.DataError, match="column 'id', row 0: it is NULL, and it is a key of the query"):
        cepheid.match(table, "PATTERN SEQ(A a, C c) WHERE [id] WITHIN 9", bad_records="fail")
    others = pa.table({"ts": [1], "type": ["Z"], "id": pa.array([None], pa.int64())})
    assert cepheid.match(others, "PATTERN SEQ(A a, C c) WHERE [id] WITHIN 9", bad_records="fail").num_rows == 0


def test_times_that_are_not_whole_can_be_left_out() -> None:
    events = pd.DataFrame({"ts": [1.0, float("nan"), 2.5, float("inf"), 3.0], "type": ["A", "A", "A", "A", "C"]})
    assert len(cepheid.match(events, "PATTERN SEQ(A a, C c) WITHIN 5", bad_records="drop")) == 1


def test_duplicates() -> None:
    events = {"ts": [1, 1, 2], "type": ["A", "A", "C"], "id": [7, 7, 7]}
    assert len(cepheid.match(pd.DataFrame(events), "PATTERN SEQ(A a, C c) WITHIN 5")) == 2
    assert len(cepheid.match(pd.DataFrame(events), "PATTERN SEQ(A a, C c) WITHIN 5", dedupe=["ts", "type"])) == 1
    with pytest.raises(cepheid.DataError, match=r"no column 'typ' to find duplicates by; did you mean 'type'?"):
        cepheid.match(pd.DataFrame(events), "PATTERN SEQ(A a, C c) WITHIN 5", dedupe="typ")


def test_where_bad_records_go_must_be_said() -> None:
    for options in ({"bad_records": "set aside"}, {"aside": "bad.parquet"}):
        with pytest.raises(cepheid.CepheidError, match="must be passed together"):
            cepheid.match(pa.table(MESSY), PAIR, **options)
    with pytest.raises(cepheid.CepheidError, match="did you mean 'drop'"):
        cepheid.match(pa.table(MESSY), PAIR, bad_records="drp")


def test_fit_and_why_read_records_too() -> None:
    assert "0 matches" in str(cepheid.why(pa.table({**MESSY, "type": ["A"] * 5}), PAIR, bad_records="drop"))
    history = pa.table({"ts": ["2026-01-01 10:00", "2026-01-01 10:05"] * 3, "type": ["A", "C"] * 3, "id": [1, 1] * 3})
    with pytest.raises(cepheid.ModelError, match="too short"):  # its times were read
        cepheid.fit(history, PAIR, loss=0.1)


def test_what_is_set_aside_is_there_once() -> None:
    events = pa.table({"ts": ["2026-01-31T12:00:00", "soon"], "type": ["A", "B"], "id": [1, 1]})
    aside: list[pa.Table] = []
    query = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 seconds"
    cepheid.match(events, query, bad_records="set aside", aside=aside.append)
    assert aside[0].num_rows == 1

"""What is sent to a live query is taken as it is, or refused; times may come as text, and none from the future."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cepheid
from cepheid.flink import Pattern
from cepheid.runners import live_events
from cepheid.runners.live_events import column_of, in_type

FLINK = Pattern.begin("a").where("type = 'A'").followed_by("b").where("type = 'B'")
NOON, ZONED = datetime(2026, 1, 31, 12), datetime(2026, 1, 31, 12, tzinfo=UTC)

REFUSED = [
    (pa.int64(), 1.9),
    (pa.int64(), Decimal("1.5")),
    (pa.int64(), np.float64(1.5)),
    (pa.int64(), True),
    (pa.int64(), np.bool_(True)),
    (pa.int64(), "1"),
    (pa.int64(), 2**63),
    (pa.int64(), float("nan")),
    (pa.int8(), 300),
    (pa.float64(), 2**53 + 1),
    (pa.float64(), True),
    (pa.bool_(), 1),
    (pa.string(), 1),
    (pa.string(), b"x"),
    (pa.decimal128(10, 2), Decimal("1.555")),
    (pa.decimal128(10, 2), 1.5),
    (pa.timestamp("us"), ZONED),
    (pa.timestamp("us"), "2026-01-31T12:00:00Z"),
    (pa.timestamp("us"), "noon"),
    (pa.timestamp("us"), 1.5),
    (pa.timestamp("us"), pd.NaT),
    (pa.timestamp("us", "UTC"), NOON),
    (pa.timestamp("us", "UTC"), date(2026, 1, 31)),
    (pa.timestamp("s"), NOON.replace(microsecond=5)),
    (pa.date32(), NOON),
    (pa.date32(), 5.5),
    (pa.list_(pa.int64()), [1, 1.9]),
    (pa.struct({"n": pa.int64()}), {"n": 1.9}),
]
TAKEN = [
    (pa.int64(), 1.0, 1),
    (pa.int64(), np.int64(3), 3),
    (pa.int64(), 2**63 - 1, 2**63 - 1),
    (pa.float64(), 3, 3.0),
    (pa.float32(), np.float64(0.5), 0.5),
    (pa.decimal128(10, 2), 5, Decimal("5.00")),
    (pa.decimal128(10, 2), Decimal("1.5"), Decimal("1.50")),
    (pa.timestamp("us"), NOON, NOON),
    (pa.timestamp("us"), pd.Timestamp(NOON), NOON),
    (pa.timestamp("us"), date(2026, 1, 31), datetime(2026, 1, 31)),
    (pa.timestamp("us"), "2026-01-31T12:00:00", NOON),
    (pa.timestamp("us", "UTC"), ZONED, ZONED),
    (pa.timestamp("us", "UTC"), "2026-01-31T13:00:00+01:00", ZONED),
    (pa.timestamp("us", "UTC"), "2026-01-31 12:00:00", ZONED),
    (pa.date32(), date(2026, 1, 31), date(2026, 1, 31)),
    (pa.dictionary(pa.int8(), pa.string()), "a", "a"),
    (pa.struct({"n": pa.int64(), "s": pa.string()}), {"n": 1}, {"n": 1, "s": None}),
]


@pytest.mark.parametrize(("kind", "value"), REFUSED)
def test_a_value_that_would_be_another_one_is_refused(kind: pa.DataType, value: Any) -> None:
    with pytest.raises(cepheid.DataError, match=r"column 'c', row 1: .* does not fit a column of"):
        column_of([None, value], pa.field("c", kind))


@pytest.mark.parametrize(("kind", "value", "held"), TAKEN)
def test_a_value_that_stays_the_same_is_taken(kind: pa.DataType, value: Any, held: Any) -> None:
    assert column_of([value, None], pa.field("c", kind)).to_pylist() == [held, None]


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (pa.int64(), pa.array([1.9])),
        (pa.int64(), pa.array([True])),
        (pa.int64(), pa.array(["1"])),
        (pa.int64(), pa.array([2**63], pa.uint64())),
        (pa.float64(), pa.array([2**53 + 1])),
        (pa.float64(), pa.array(["1.5"])),
        (pa.bool_(), pa.array([1])),
        (pa.string(), pa.array([1])),
        (pa.string(), pa.array([NOON])),
        (pa.decimal128(10, 1), pa.array([Decimal("1.55")])),
        (pa.decimal128(10, 1), pa.array([1.5])),
        (pa.timestamp("us"), pa.array([ZONED])),
        (pa.timestamp("us"), pa.array(["noon"])),
        (pa.timestamp("us", "UTC"), pa.array([NOON])),
        (pa.date32(), pa.array([NOON])),
    ],
)
def test_a_column_of_another_kind_is_refused(kind: pa.DataType, column: pa.Array) -> None:
    with pytest.raises(cepheid.DataError, match="column 'c'"):
        in_type(pa.chunked_array([column]), pa.field("c", kind))


def test_whole_numbers_are_not_cut() -> None:
    schema = {"ts": int, "type": str, "id": int}
    live = cepheid.live("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5", schema)
    live.send({"ts": 1, "type": "A", "id": 1})
    for events in ({"ts": 2, "type": "B", "id": 1.9}, pd.DataFrame({"ts": [2], "type": ["B"], "id": [1.9]})):
        with pytest.raises(cepheid.DataError, match="column 'id'"):
            live.send(events)
    assert live.finish() == []
    flink = cepheid.live(FLINK, schema)
    with pytest.raises(cepheid.DataError, match=r"column 'id', row 0: 1\.9 does not fit"):
        flink.send({"ts": 2, "type": "B", "id": 1.9})
    with pytest.raises(cepheid.DataError, match="did you mean 'type'"):
        flink.send({"ts": 2, "typ": "B"})


TEXTS = ["2026-01-31T12:00:00", "2026-01-31T12:00:02", "2026-01-31T12:00:09"]


@pytest.mark.parametrize("kind", [str, pa.timestamp("us"), pa.timestamp("us", "UTC")])
@pytest.mark.parametrize("query", ["PATTERN SEQ(A a, B b) WITHIN 5 seconds", FLINK])
def test_times_as_text(kind: Any, query: Any) -> None:
    live = cepheid.live(query, {"ts": kind, "type": str})
    found = []
    for text, type in zip(TEXTS, "ABC", strict=True):
        found += live.send({"ts": text, "type": type})
    (match,) = found
    assert match["b"]["ts"].replace(tzinfo=None) == datetime(2026, 1, 31, 12, 0, 2)
    with pytest.raises(cepheid.DataError, match="'ts', row 1: 'noon' is not a time"):
        live.send([{"ts": TEXTS[2], "type": "A"}, {"ts": "noon", "type": "A"}])
    assert live.advance("2026-01-31T12:00:10") == []


def test_times_as_text_in_tables_and_in_a_format_of_their_own() -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 5 seconds"
    table = pa.table({"ts": TEXTS, "type": list("ABC")})
    expected = cepheid.match(table, query).to_pylist()
    for events in (table, pl.from_arrow(table), table.to_pandas()):
        live = cepheid.live(query, events)
        assert pa.table(live.send(events)).to_pylist() == expected  # the table shows of what kind the times are
    zoned = table.set_column(0, "ts", pa.array([text + "Z" for text in TEXTS]))
    assert cepheid.live(query, {"ts": str, "type": str}).send(zoned).equals(cepheid.match(zoned, query))
    written = table.set_column(0, "ts", pa.array(["31.01.2026 12:00", "31.01.2026 12:01", "31.01.2026 12:09"]))
    live = cepheid.live(
        "PATTERN SEQ(A a, B b) WITHIN 5 minutes", {"ts": str, "type": str}, time_format="%d.%m.%Y %H:%M"
    )
    assert [match["match_end"] for match in live.send(written.to_pylist())] == [datetime(2026, 1, 31, 12, 1)]
    saved = live.save()
    again = cepheid.live(
        "PATTERN SEQ(A a, B b) WITHIN 5 minutes", {"ts": str, "type": str}, time_format="%d.%m.%Y %H:%M", state=saved
    )
    assert again.numbers.watermark == live.numbers.watermark


def test_bad_times_are_left_out_if_that_is_asked_for() -> None:
    bad: list[pa.Table] = []
    live = cepheid.live(
        "PATTERN SEQ(A a, B b) WITHIN 5 seconds",
        {"ts": str, "type": str},
        bad_records="set aside",
        aside=bad.append,
    )
    live.send([{"ts": TEXTS[0], "type": "A"}, {"ts": "noon", "type": "A"}, {"ts": TEXTS[1], "type": "B"}])
    assert len(live.finish()) == 1
    assert [table["ts"].to_pylist() for table in bad] == [["noon"]]
    assert (live.numbers.events, live.numbers.bad) == (2, 1)
    with pytest.raises(cepheid.CepheidError, match="aside is a path"):
        cepheid.live("PATTERN A a", {"ts": int, "type": str}, bad_records="set aside", aside="bad.parquet")


def test_an_event_from_the_future_makes_nothing_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_events.time, "time_ns", lambda: int(ZONED.timestamp()) * 10**9)
    schema = {"ts": pa.timestamp("us", "UTC"), "type": str}
    late, aside = [], []
    for query in ("PATTERN SEQ(A a, B b) WITHIN 5 minutes", FLINK):
        live = cepheid.live(query, schema, max_ahead="1 minute")
        live.on_late = late.append
        live.send([{"ts": ZONED, "type": "A"}, {"ts": ZONED + timedelta(days=400), "type": "A"}])
        found = live.send([{"ts": ZONED + timedelta(seconds=30), "type": kind} for kind in "B"]) + live.finish()
        assert len(found) == 1
        assert (live.numbers.events, live.numbers.bad, live.numbers.late) == (2, 1, 0)
    told = cepheid.live(
        "PATTERN A a", schema, max_ahead=timedelta(seconds=60), bad_records="set aside", aside=aside.append
    )
    told.send({"ts": ZONED + timedelta(seconds=61), "type": "A"})
    assert "max_ahead" in aside[0]["reason"][0].as_py()
    strict = cepheid.live("PATTERN A a", schema, max_ahead="1 minute", bad_records="fail")
    with pytest.raises(cepheid.DataError, match="in the future"):
        strict.send({"ts": ZONED + timedelta(seconds=61), "type": "A"})
    whole = cepheid.live("PATTERN A a", {"ts": int, "type": str}, max_ahead="1 minute", time_unit="s")
    now = int(ZONED.timestamp())
    whole.send([{"ts": now + 60, "type": "A"}, {"ts": now + 61, "type": "A"}])
    assert len(whole.finish()) == 1
    with pytest.raises(cepheid.DataError, match="pass time_unit"):
        cepheid.live("PATTERN A a", {"ts": int, "type": str}, max_ahead=5)


def test_a_query_of_one_event_needs_no_window() -> None:
    schema = {"ts": int, "type": str, "x": int}
    for query in ("PATTERN A a WHERE a.x > 1", "PATTERN (A a | B b) WHERE a.x > 1", "PATTERN A a OUTPUT NON-OVERLAP"):
        live = cepheid.live(query, schema)
        found = live.send([{"ts": 1, "type": "A", "x": 2}, {"ts": 2, "type": "C", "x": 2}])
        assert [match["a"]["ts"] for match in found] == [1]
        live.send([{"ts": time, "type": "A", "x": 2} for time in range(3, 5000)])
        live.save()
        assert live.numbers.retained <= 1
    for query in ("PATTERN SEQ(A a, B b)", "PATTERN A+ a[]", "PATTERN SEQ(A a, B? b)"):
        with pytest.raises(cepheid.CepheidError, match="add WITHIN"):
            cepheid.live(query, schema)

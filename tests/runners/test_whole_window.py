"""`WITHIN ALL`: absence to the end of a table, or from its beginning."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given

import cepheid
from cepheid.errors import QueryError
from strategies.queries import streams

NEVER = "PATTERN SEQ(A a, !(B b)) WHERE [id] WITHIN ALL"


@pytest.mark.filterwarnings("ignore::cepheid.TiesWarning")
@given(streams(concurrent=True))
def test_never_after_and_never_before(events: pa.Table) -> None:
    rows = events.to_pylist()
    for text, kills in (
        (NEVER, lambda a, b: b["ts"] > a["ts"]),
        ("PATTERN SEQ(!(B b), A a) WHERE [id] WITHIN ALL", lambda a, b: b["ts"] < a["ts"]),
    ):
        expected = [
            a
            for a in rows
            if a["type"] == "A" and not any(b["type"] == "B" and b["id"] == a["id"] and kills(a, b) for b in rows)
        ]
        for engine in ("reference", "auto"):
            found = cepheid.match(events, text, engine=engine)["a"].to_pylist()
            assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_timestamps_and_empty_tables() -> None:
    day = datetime(2024, 5, 4, tzinfo=UTC)
    events = pa.table(
        {
            "ts": pa.array([day, day + timedelta(days=400), day + timedelta(days=900)], pa.timestamp("ns", "UTC")),
            "type": ["A", "A", "B"],
            "id": [1, 2, 1],
        }
    )
    assert [row["a"]["id"] for row in cepheid.match(events, NEVER).to_pylist()] == [2]
    assert cepheid.match(events.slice(0, 0), NEVER).num_rows == 0
    assert cepheid.match(events, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN ALL").num_rows == 1


def test_only_tables_have_an_end() -> None:
    with pytest.raises(QueryError, match="WITHIN ALL is for local tables"):
        cepheid.live(NEVER, {"ts": int, "type": str, "id": int})
    with pytest.raises(QueryError, match="missing events need a window with a length"):
        cepheid.match(
            pa.table({"ts": [1], "type": ["A"], "id": [1]}), "PATTERN SEQ(A a, B b) WHERE [id] WITHIN ALL THRESHOLD 0.5"
        )

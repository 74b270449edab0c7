"""What comes next, and who comes back."""

from datetime import datetime, timedelta

import pandas as pd
import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import CepheidError, DataError

DAY = datetime(2024, 5, 1)
EVENTS = pa.table(
    {
        "ts": [
            DAY,
            DAY + timedelta(hours=1),
            DAY + timedelta(days=1),
            DAY + timedelta(days=1, hours=2),
            DAY + timedelta(days=3),
        ],
        "type": ["A", "B", "A", "A", "C"],
        "who": ["x", "x", "y", "x", "x"],
        "shop": [1, 1, 1, 1, None],
    }
)


def test_what_comes_next() -> None:
    rows = cepheid.next_events(EVENTS, "A", by="who").to_pylist()
    assert [(row["next"], row["count"], row["median_time"]) for row in rows] == [
        ("B", 1, timedelta(hours=1)),
        ("C", 1, timedelta(days=1, hours=22)),
        (None, 1, None),
    ]
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert [row["next"] for row in cepheid.next_events(EVENTS, "A", by=["who", "shop"]).to_pylist()] == [None, "B"]
    assert isinstance(cepheid.next_events(EVENTS.to_pandas(), "A", by="who"), pd.DataFrame)
    with pytest.raises(DataError, match="no event of type 'a'; did you mean 'A'"):
        cepheid.next_events(EVENTS, "a", by="who")
    with pytest.raises(DataError, match="no column 'whom'; did you mean 'who'"):
        cepheid.next_events(EVENTS, "A", by="whom")


def test_who_comes_back() -> None:
    rows = cepheid.retention(EVENTS, by="who", every="1 day", periods=3).to_pylist()
    assert [(row["cohort"], row["period"], row["count"]) for row in rows] == [
        (DAY, 0, 1),
        (DAY, 1, 1),
        (DAY, 2, 0),
        (DAY + timedelta(days=1), 0, 1),
        (DAY + timedelta(days=1), 1, 0),
        (DAY + timedelta(days=1), 2, 0),
    ]
    only = cepheid.retention(EVENTS, by="who", every="1 day", of="C").to_pylist()
    assert [(row["cohort"], row["count"]) for row in only] == [(DAY + timedelta(days=3), 1)]
    counted = pa.table({"ts": [0, 5, 12], "who": [1, 1, 1]})
    assert cepheid.retention(counted, by="who", every=10)["count"].to_pylist() == [1, 1]
    with pytest.raises(CepheidError, match="needs a unit"):
        cepheid.retention(EVENTS, by="who", every=1)

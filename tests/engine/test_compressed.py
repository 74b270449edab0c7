"""Counted and compressed results through the public call."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cepheid

TREND = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match(a[], b) { [id] } WITHIN 100"


def ticks(count: int) -> pa.Table:
    """Many As and a B: every subset of the As is a match."""
    return pa.table({"ts": range(count + 1), "type": ["A"] * count + ["B"], "id": [1] * (count + 1)})


def test_counts_need_no_listing() -> None:
    assert cepheid.match(ticks(10), TREND, output="count") == 2**10 - 1
    assert cepheid.match(ticks(70), TREND, output="count") == 2**70 - 1


def test_a_compressed_result_lists_what_is_asked_for() -> None:
    found = cepheid.match(ticks(70), TREND, output="compressed")
    assert found.count == 2**70 - 1
    assert found.first(5).num_rows == 5
    small = cepheid.match(ticks(6), TREND, output="compressed")
    assert sorted(map(repr, small.all().to_pylist())) == sorted(map(repr, cepheid.match(ticks(6), TREND).to_pylist()))


def test_what_cannot_be_compressed_is_said() -> None:
    with pytest.raises(cepheid.EngineError, match="compare matches one by one"):
        cepheid.match(ticks(3), TREND + " OUTPUT NON-OVERLAP", output="count")
    with pytest.raises(cepheid.CepheidError, match="output='zip' is not 'rows', 'count' or 'compressed'"):
        cepheid.match(ticks(3), TREND, output="zip")

"""Counted and compressed results through the public call."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.engine.data.table import ordered
from cepheid.engine.find import find
from cepheid.plan.physical import Plan
from cepheid.runners.results import assemble
from cepheid.runners.spark.compressed import compressed, listed
from strategies.agreement import bound_to
from strategies.queries import queries, streams

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
    with pytest.raises(cepheid.EngineError, match="compares matches one by one"):
        cepheid.match(ticks(3), TREND + " OUTPUT NON-OVERLAP", output="compressed")
    assert cepheid.match(ticks(3), TREND + " OUTPUT NON-OVERLAP", output="count") == 1
    with pytest.raises(cepheid.CepheidError, match="SUMMARISE defines its own totals"):
        cepheid.match(ticks(3), TREND + " SUMMARISE count(*)", output="count")
    with pytest.raises(cepheid.CepheidError, match="one query at a time"):
        cepheid.match(ticks(3), {"one": TREND}, output="count")
    with pytest.raises(cepheid.CepheidError, match="output='zip' is not 'rows', 'count' or 'compressed'"):
        cepheid.match(ticks(3), TREND, output="zip")


@given(data=st.data())
def test_what_is_packed_is_listed_again(data: Any) -> None:
    query, table = data.draw(queries(returns=False, output=False)), data.draw(streams(min_size=1, max_size=9))
    bound = bound_to(query, table)
    plan = Plan(bound, "runs", partition=bound.equivalence)
    events = ordered(table, bound.schema)
    number, packed = compressed(plan, events, None, None)
    expected = assemble(bound, events.table, find(plan, events))
    assert number == expected.num_rows
    if number:
        assert sorted(map(repr, listed(plan, packed, None).to_pylist())) == sorted(map(repr, expected.to_pylist()))
        assert listed(plan, packed, 1).num_rows == 1

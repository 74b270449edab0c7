"""Bounds on sums of groups rule groups out while they grow, and change no result."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid

BOUNDS = [
    "sum(b[].x) < 5",
    "sum(b[].x) <= 4",
    "6 > sum(b[].x)",
    "sum(b[].x) < 4.5",
    "sum(b[].x) < 5 AND sum(b[].y) <= 3",
]
values = st.one_of(st.integers(0, 4), st.integers(-2, 4), st.sampled_from([None, 0, 1, 3]))


@given(
    kinds=st.text("ABC", min_size=2, max_size=9),
    data=st.data(),
    bound=st.sampled_from(BOUNDS),
    strategy=st.sampled_from(["skip_till_any_match", "skip_till_next_match", "partition_contiguity"]),
    fractions=st.booleans(),
)
def test_results_are_those_of_the_reference(
    kinds: str, data: st.DataObject, bound: str, strategy: str, fractions: bool
) -> None:
    kind = pa.float64() if fractions else pa.int64()
    drawn = [data.draw(st.lists(values, min_size=len(kinds), max_size=len(kinds))) for _ in range(2)]
    table = pa.table(
        {"ts": range(len(kinds)), "type": list(kinds), "x": pa.array(drawn[0], kind), "y": pa.array(drawn[1], kind)}
    )
    text = f"PATTERN SEQ(A a, B+ b[], C c) WHERE {strategy} {{ {bound} }} WITHIN 8"
    found = cepheid.match(table, text).to_pylist()
    assert sorted(map(repr, found)) == sorted(map(repr, cepheid.match(table, text, engine="reference").to_pylist()))
    assert cepheid.match(table, text, output="count") == len(found)


@pytest.mark.parametrize("length", [12, 18])
def test_the_work_does_not_double_with_each_event(length: int) -> None:
    table = pa.table({"ts": range(length + 2), "type": ["A", *"B" * length, "C"], "x": [3] * (length + 2)})
    found = cepheid.match(table, "PATTERN SEQ(A a, B+ b[], C c) WHERE sum(b[].x) < 7 WITHIN 100")
    assert found.num_rows == length + length * (length - 1) // 2
    counters = json.loads(found.schema.metadata[b"cepheid"])["counters"]
    assert counters["peak_partial_matches"] <= 1 + length**2

"""Bounds on sums of groups, and conditions across groups, rule groups out while they grow, and change no result."""

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


ACROSS = [
    "a.x < c.x - 1",
    "c.x - a.x >= 2",
    "a.x + 1 > c.x + a.y",
    "a.x <= c.x AND a.y > c.y",
    "2 * a.x < c.x + c.y AND b[i].x > a.x",
]


@given(
    kinds=st.text("ABBC", min_size=2, max_size=9),
    data=st.data(),
    across=st.sampled_from(ACROSS),
    tied=st.sampled_from(["", "[k] AND ", "b[i].x <> c.x AND "]),
    window=st.sampled_from(["WITHIN 5", "WITHIN 6 EVENTS", ""]),
    fractions=st.booleans(),
)
def test_conditions_across_groups_change_no_result(
    kinds: str, data: st.DataObject, across: str, tied: str, window: str, fractions: bool
) -> None:
    count, kind = len(kinds), pa.float64() if fractions else pa.int64()
    drawn = [data.draw(st.lists(values, min_size=count, max_size=count)) for _ in range(2)]
    times = sorted(data.draw(st.lists(st.integers(0, 8), min_size=count, max_size=count)))
    keys = data.draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
    table = pa.table({"ts": times, "type": list(kinds), "k": keys, "x": pa.array(drawn[0], kind)})
    table = table.append_column("y", pa.array(drawn[1], kind))
    for pattern in ("SEQ(A a, B+ b[], C c)", "SEQ(A a, B+ b[], !(B n), B d, C c)"):
        text = f"PATTERN {pattern} WHERE {tied}{across} {window}"
        found = sorted(map(repr, cepheid.match(table, text, engine="runs").to_pylist()))
        assert found == sorted(map(repr, cepheid.match(table, text, engine="reference").to_pylist()))


def test_no_group_grows_where_nothing_can_end_the_match() -> None:
    table = pa.table({"ts": range(42), "type": ["A", "C", *"B" * 39, "C"], "x": [5, 9, *[1] * 39, 4]})
    found = cepheid.match(table, "PATTERN SEQ(A a, B+ b[], C c) WHERE a.x < c.x AND avg(b[].x) < 7 WITHIN 100")
    assert found.num_rows == 0
    assert json.loads(found.schema.metadata[b"cepheid"])["counters"]["peak_partial_matches"] <= 2

"""Aggregates through the reference and every engine that keeps them: one entry in the registry serves them all."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

import cepheid
from cepheid.language.aggregates import AGGREGATES

EVENTS = pa.table(
    {
        "ts": list(range(1, 9)),
        "type": ["A", "B", "B", "B", "B", "B", "B", "C"],
        "x": [0, 4, 4, None, 10, -6, 1, 0],
        "y": [0.0, 1e9, 1e9 + 2, 1e9 + 4, None, 1e9 + 6, 1e9, 0.0],
    }
)
GROUPS = "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_any_match {{ {condition} }} WITHIN 20 RETURN {returned}"


@pytest.mark.parametrize("name", sorted(AGGREGATES))
@pytest.mark.parametrize("column", ["x", "y"])
def test_conditions_and_results_agree_with_the_reference(name: str, column: str) -> None:
    aggregate = f"{name}(b[].{column})"
    half = {"x": "2", "y": "1000000001.5"}[column] if AGGREGATES[name].keeps[0] not in ("count", "spread") else "2.5"
    text = GROUPS.format(condition=f"{aggregate} > {half}", returned=f"{aggregate} AS found, count(b[]) AS size")
    expected = cepheid.match(EVENTS, text, engine="reference")
    found = cepheid.match(EVENTS, text, engine="runs")
    assert 0 < found.num_rows < 2**6
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))


def test_the_deviation_is_exact_where_squares_would_not_be() -> None:
    text = GROUPS.format(
        condition="stddev(b[].y) >= 2 AND b.LEN = 3 AND b[1].ts = 2 AND b[b.LEN].ts = 4", returned="stddev(b[].y) AS s"
    )
    assert cepheid.match(EVENTS, text, engine="runs").to_pydict()["s"] == [2.0]


def test_elements_are_compared_with_an_aggregate_of_those_before() -> None:
    text = GROUPS.format(
        condition="b[i].x > stddev(b[..i-1].x) AND b[i].y > avg(b[..i-1].y)", returned="b[1].ts AS first, b.LEN AS size"
    )
    rows = [cepheid.match(EVENTS, text, engine=engine).to_pylist() for engine in ("reference", "runs")]
    assert sorted(map(str, rows[0])) == sorted(map(str, rows[1]))


def test_what_an_aggregate_is_over() -> None:
    deviation = AGGREGATES["stddev"]
    assert deviation.over([1.0, 3.0, None]) == pytest.approx(math.sqrt(2))
    assert deviation.over([1.0]) is None
    assert [each.over([]) for each in AGGREGATES.values() if each.counts] == [0]

"""Funnels: counts by definition, and the same on Spark."""

from __future__ import annotations

import random
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from cepheid import CepheidError, examples, funnel

STEPS = ["View", "Cart", "Ordered", "Paid", "Shipped"]


def furthest(events: list[dict[str, Any]], steps: str, within: int) -> dict[int, int]:
    """By definition: for each visitor the longest beginning of the steps that some events make in order."""
    best: dict[int, int] = {}
    for first in events:
        if first["type"] != steps[0]:
            continue
        depth, at = 1, first["ts"]
        for step in steps[1:]:
            later = [
                each["ts"]
                for each in events
                if each["type"] == step and each["who"] == first["who"] and at < each["ts"] < first["ts"] + within
            ]
            if not later:
                break
            depth, at = depth + 1, min(later)
        best[first["who"]] = max(best.get(first["who"], 0), depth)
    return best


def test_counts_are_those_of_the_definition() -> None:
    for seed in range(25):
        rng = random.Random(seed)
        events = [
            {"ts": rng.randint(0, 40), "type": rng.choice("ABCX"), "who": rng.randint(1, 4)}
            for _ in range(rng.randint(1, 40))
        ]
        found = funnel(pa.Table.from_pylist(events), list("ABC"), within=9, by="who").to_pylist()
        best = furthest(events, "ABC", 9)
        assert [row["count"] for row in found] == [
            sum(depth >= number for depth in best.values()) for number in (1, 2, 3)
        ]


def test_shares_and_times() -> None:
    table = pa.table({"ts": [1, 2, 3, 4, 5, 6], "type": ["a", "b", "a", "c", "b b", "b"], "who": [1, 1, 2, 1, 2, 3]})
    found = funnel(table, {"begin": "a", "go on": ["b", "b b"], "end": "c"}, within=10, by="who").to_pylist()
    assert [row["step"] for row in found] == ["begin", "go on", "end"]
    assert [row["count"] for row in found] == [2, 2, 1]
    assert [row["from_previous"] for row in found] == [1.0, 1.0, 0.5]
    assert [row["median_time"] for row in found] == [None, 1.5, 2.0]


def test_an_empty_table_has_no_shares() -> None:
    table = pa.table({"ts": [1], "type": ["a"], "who": [1]}).slice(0, 0)
    found = funnel(table, ["a", "b"], within=10, by="who").to_pylist()
    assert [(row["count"], row["conversion"]) for row in found] == [(0, None), (0, None)]


def test_times_are_durations() -> None:
    found = funnel(examples.orders(), STEPS, within="2 days", by="customer")
    assert pd.api.types.is_timedelta64_dtype(found["median_time"])
    assert found["count"].is_monotonic_decreasing


@pytest.mark.parametrize(
    ("steps", "by", "told"),
    [
        ("View", "who", "event types in order"),
        (["View"], "who", "at least two steps"),
        (["a", []], "who", "no event type"),
        (["a", "a"], "who", "different names"),
        (["a", "b"], [], "by= names no column"),
    ],
)
def test_mistakes(steps: Any, by: Any, told: str) -> None:
    with pytest.raises(CepheidError, match=told):
        funnel(pa.table({"ts": [1], "type": ["a"], "who": [1]}), steps, within=10, by=by)


@pytest.mark.parametrize("table", [examples.shoplifting, examples.logins, examples.flights, examples.heartbeats])
def test_examples_are_the_same_each_time(table: Any) -> None:
    assert table().equals(table())
    assert table()["ts"].is_monotonic_increasing

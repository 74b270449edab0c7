"""A drawn pattern of Flink's over many keys of one table: each is a case, and costs little more than an event."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.flink import COLUMNS, FlinkCase
from strategies.flink import drawn_pattern

KEYS = 40


def events_of(rng: random.Random, key: int) -> list[dict[str, Any]]:
    time, events = 0, []
    for _ in range(rng.randint(1, 7)):
        time += rng.choice((0, 1, 1, 1, 2, 3))
        events.append({"ts": time, "name": rng.choice("abcd"), "price": float(rng.randint(0, 4)), "key": key})
    return events


@pytest.mark.slow
@given(st.integers(0, 2**32), st.booleans())
def test_flink_patterns_over_many_keys(seed: int, partial: bool) -> None:
    rng = random.Random(seed)
    rows = sorted((row for key in range(KEYS) for row in events_of(rng, key)), key=lambda row: row["ts"])
    case = FlinkCase(drawn_pattern(seed)[1], pa.Table.from_pylist(rows, COLUMNS), {"partial": partial})
    case.options["partition_by"] = "key"
    found, expected = case.found("automaton"), case.found("reference")
    if isinstance(expected, pa.Table):  # in any order: tests/contract looks at the order of few events
        assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))
    else:
        assert found is expected


test_flink_patterns_over_many_keys.cases_each = KEYS  # type: ignore[attr-defined]

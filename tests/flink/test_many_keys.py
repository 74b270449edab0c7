"""A drawn pattern of Flink's over many keys of one table: each is a case, and costs little more than an event."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.engine.engines import FLINK_ENGINES
from cepheid.flink import AfterMatchSkipStrategy, Pattern
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
    assert found.to_pylist() == expected.to_pylist() if isinstance(expected, pa.Table) else found is expected


test_flink_patterns_over_many_keys.cases_each = KEYS  # type: ignore[attr-defined]


@pytest.mark.parametrize("engine", [*FLINK_ENGINES, "live"])
def test_time_passes_once_for_all_events_of_an_instant(engine: str) -> None:
    """At 3 nothing is given up, as b may still come. With d, the run waits for c, which is due at 3, and c comes."""
    pattern = Pattern.begin("a").where("name = 'a'").next("b").where("name = 'b'").optional()
    pattern = pattern.followed_by("c").where("name = 'c'").within(1, between_events=True)
    events = [{"ts": at, "name": name, "price": 0.0, "key": 0} for at, name in ((2, "a"), (3, "d"), (3, "c"), (9, "d"))]
    if engine == "live":
        live = cepheid.live(pattern, COLUMNS, type=None)
        found = [row for event in events for row in live.send(event)] + list(live.finish())
    else:
        found = cepheid.match(pa.Table.from_pylist(events, COLUMNS), pattern, type=None, engine=engine).to_pylist()
    assert [(row["a"]["ts"], row["c"]["ts"]) for row in found] == [(2, 3)]


@pytest.mark.parametrize("engine", FLINK_ENGINES)
def test_a_match_is_reported_before_the_run_that_it_waited_for(engine: str) -> None:
    """Flink's operator hands on what `advanceTime` completes, then what it gives up."""
    skip = AfterMatchSkipStrategy.skip_past_last_event()
    pattern = (
        Pattern.begin("a", skip=skip)
        .where("name = 'a'")
        .followed_by("b")
        .where("name = 'b' AND price = a.price")
        .within(3)
    )
    rows = [(0, "a", 1.0), (1, "a", 2.0), (2, "b", 2.0), (9, "c", 0.0)]
    events = [{"ts": at, "name": name, "price": price, "key": 0} for at, name, price in rows]
    found = cepheid.match(pa.Table.from_pylist(events, COLUMNS), pattern, type=None, engine=engine, partial=True)
    assert [(row["a"]["price"], row["timed_out"]) for row in found.to_pylist()] == [(2.0, False), (1.0, True)]

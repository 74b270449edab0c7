"""Conditions of Flink patterns: whatever the language can say of events, the automaton judges as the reference does."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import EngineError, QueryError
from cepheid.flink import Pattern
from flink.cases import events

NOON = datetime(2026, 3, 1, 12)
KINDS = {
    "ts": pa.timestamp("us"),
    "name": pa.string(),
    "price": pa.float64(),
    "volume": pa.int64(),
    "tags": pa.list_(pa.string()),
}


def drawn_events(rng: random.Random) -> pa.Table:
    rows = [
        {
            "ts": NOON + timedelta(seconds=37 * number),
            "name": rng.choice(["a", "b", "ab", None]),
            "price": rng.choice([0.0, 1.0, 2.5, -3.0, None]),
            "volume": rng.choice([0, 1, 2, 7, None]),
            "tags": rng.choice([["x"], ["x", "y"], [], None]),
        }
        for number in range(rng.randint(3, 6))
    ]
    return pa.Table.from_pylist(rows, pa.schema(KINDS))


def event(rng: random.Random) -> str:
    """The event at hand, one before, or one of the step's own."""
    return rng.choice(["", "", "s.", "s.", "m[i-1].", "m[1].", "o."])


def number(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.25:
        attribute = rng.choice(["price", "volume"])
        leaf = rng.choice([f"{event(rng)}{attribute}", str(rng.randint(-2, 3)), f"count(m[].{attribute})"])
        return leaf if rng.random() < 0.8 else f"{rng.choice(['sum', 'min', 'max', 'avg'])}(m[].{attribute})"
    one, other = number(rng, depth - 1), number(rng, depth - 1)
    return rng.choice(
        [
            f"({one} {rng.choice('+-*/%')} {other})",
            f"abs({one})",
            f"sign({one})",
            f"coalesce({one}, {other})",
            f"nullif({one}, {other})",
            f"least({one}, {other}, 1)",
            f"greatest({one}, {other})",
            f"CASE WHEN {truth(rng, depth - 1)} THEN {one} ELSE {other} END",
            f"if({truth(rng, depth - 1)}, {one}, {other})",
            f"round({event(rng)}price)",
            f"length({event(rng)}name)",
            f"mod({one}, 2)",
            f"timestampdiff(minute, {event(rng)}ts, {event(rng)}ts)",
        ]
    )


def truth(rng: random.Random, depth: int) -> str:
    if depth > 0 and rng.random() < 0.4:
        one, other = truth(rng, depth - 1), truth(rng, depth - 1)
        return rng.choice([f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})"])
    one, other = number(rng, depth), number(rng, depth)
    return rng.choice(
        [
            f"{one} {rng.choice(['=', '!=', '<', '<=', '>', '>='])} {other}",
            f"{one} IN ({other}, 1, {event(rng)}price)",
            f"{one} NOT IN ({other}, 2)",
            f"{one} BETWEEN {other} AND 3",
            f"{one} IS NULL",
            f"upper({event(rng)}name) {rng.choice(['=', '<'])} upper({event(rng)}name)",
            f"{event(rng)}name LIKE 'a%'",
            f"{rng.choice(['first', 'last'])}(m[].name) = {event(rng)}name",
            f"ts - {rng.choice(['first', 'last', 'min', 'max'])}(m[].ts) < 1 minute",
            f"{event(rng)}ts - {event(rng)}ts < {rng.randint(1, 2)} minutes",
            f"size({event(rng)}tags) > 0" if rng.random() < 0.5 else "s.tags[0] = m.tags[0]",
        ]
    )


@pytest.mark.parametrize("seed", range(0, 240, 40))
def test_drawn_conditions_are_judged_alike(seed: int) -> None:
    for each in range(seed, seed + 40):
        rng = random.Random(each)
        condition = truth(rng, rng.randint(0, 2))
        pattern = Pattern.begin("s").followed_by("o").where("name = 'a'").optional()
        pattern = pattern.followed_by_any("m").where(condition).one_or_more().allow_combinations()
        table = drawn_events(rng)
        expected = cepheid.match(table, pattern, type=None, engine="reference")
        assert cepheid.match(table, pattern, type=None, engine="automaton").equals(expected), condition


def matched(condition: str, **options: Any) -> int:
    rows = [
        {"ts": NOON + timedelta(minutes=at), "name": "ab"[at % 2], "price": float(at), "tags": ["x"] * at}
        for at in range(6)
    ]
    table = pa.Table.from_pylist(rows)
    pattern = Pattern.begin("s").where("name = 'a'").followed_by("e").where(condition)
    found = cepheid.match(table, pattern, type=None, engine="reference", **options)
    assert cepheid.match(table, pattern, type=None, engine="automaton", **options).equals(found)
    return int(found.num_rows)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("mod(price, 2) = 1", 3),
        ("ts - s.ts < 2 minutes", 3),
        ("ts < s.ts + 90 seconds", 3),
        ("ts > '2026-03-01 12:03:00'", 3),
        ("minute(ts) > 2 AND hour(ts) = 12", 3),
        ("CAST(price AS int) = 3 AND CAST(s.price AS int) = 0", 1),
        ("e.tags[0] = 'x' AND size(tags) > 2", 3),
        ("timestampdiff(minute, s.ts, ts) >= 2", 2),
        ("date_trunc('hour', ts) = date_trunc('hour', s.ts)", 3),
        ("abs(price - s.price) < 2", 3),
        ("sign(-2) + 2 IN (s.price + 1, abs(price - 1))", 1),
    ],
)
def test_values_are_those_of_the_language(condition: str, expected: int) -> None:
    assert matched(condition) == expected


def test_parameters_are_values_of_any_kind() -> None:
    assert matched("price > least_price", parameters={"least_price": np.float64(2)}) == 3
    assert matched("ts > since", parameters={"since": NOON + timedelta(minutes=2)}) == 3
    assert matched("price IN wanted", parameters={"wanted": [1, 3]}) == 2
    with pytest.raises(QueryError, match="cannot be a object"):
        matched("price > limit", parameters={"limit": object()})


def test_texts_of_several_events_run_by_the_reference() -> None:
    pattern = Pattern.begin("a").where("name = 'a'").next("b").where("contains(concat(name, a.name), 'ba')")
    table = events("a1 b2 a3 c4")
    assert cepheid.match(table, pattern, type=None).num_rows == 1
    with pytest.raises(EngineError, match="which streams need"):
        cepheid.live(pattern, table.schema, type=None)


def test_a_word_that_is_no_step() -> None:
    with pytest.raises(QueryError, match="for the current event, write price alone"):
        cepheid.match(events("a1"), Pattern.begin("a").where("event.price > 1"), type=None)


def test_a_table_without_events() -> None:
    since = "CAST('2026-03-01' AS timestamp)"
    condition = f"e.tags[0] = s.tags[0] AND timestampdiff(minute, s.ts, ts) < timestampdiff(day, ts, {since})"
    pattern = Pattern.begin("s").followed_by("e").where(condition)
    for engine in ("reference", "automaton"):
        assert cepheid.match(pa.schema(KINDS).empty_table(), pattern, type=None, engine=engine).num_rows == 0
    assert cepheid.live(pattern, pa.schema(KINDS), type=None).finish().num_rows == 0

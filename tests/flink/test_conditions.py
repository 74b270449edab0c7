"""Conditions of Flink patterns: whatever the language can say of events, the automaton judges as the reference does."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from decimal import Decimal
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
    "cents": pa.decimal128(20, 2),
    "serial": pa.int64(),
}
BEYOND = 2**53  # doubles skip every other whole number from here on


def drawn_events(rng: random.Random) -> pa.Table:
    rows = [
        {
            "ts": NOON + timedelta(seconds=37 * number),
            "name": rng.choice(["a", "b", "ab", None]),
            "price": rng.choice([0.0, 1.0, 2.5, -3.0, None]),
            "volume": rng.choice([0, 1, 2, 7, None]),
            "tags": rng.choice([["x"], ["x", "y"], [], None]),
            "cents": rng.choice([Decimal(BEYOND), Decimal(f"{BEYOND}.01"), Decimal("-0.01"), None]),
            "serial": rng.choice([BEYOND, BEYOND + 1, -BEYOND - 1, None]),
        }
        for number in range(rng.randint(3, 6))
    ]
    return pa.Table.from_pylist(rows, pa.schema(KINDS))


def event(rng: random.Random) -> str:
    """The event at hand, one before, or one of the step's own."""
    return rng.choice(["", "", "s.", "s.", "m[i-1].", "m[1].", "o.", "l.", "l[1].", "l[l.LEN]."])


def number(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.25:
        attribute = rng.choice(["price", "volume"])
        leaf = rng.choice([f"{event(rng)}{attribute}", str(rng.randint(-2, 3)), f"count(m[].{attribute})"])
        aggregate = rng.choice(["sum", "min", "max", "avg", "stddev", "first", "last"])
        return leaf if rng.random() < 0.8 else f"{aggregate}({rng.choice('ml')}[].{attribute})"
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
            f"{event(rng)}cents {rng.choice(['=', '!=', '<', '>='])} {event(rng)}cents",
            f"{event(rng)}serial {rng.choice(['=', '!=', '<', '>='])} {event(rng)}serial",
            f"{event(rng)}serial - {event(rng)}serial = {rng.choice([0, 1])}",
            f"{event(rng)}name LIKE concat({event(rng)}name, '%')",
            f"contains(concat({event(rng)}name, max(l[].name)), 'ba')",
            f"concat(first(m[].name), {event(rng)}name) != 'ab'",
            f"size({event(rng)}tags) > 0" if rng.random() < 0.5 else "s.tags[0] = m.tags[0]",
        ]
    )


@pytest.mark.some(3)
@pytest.mark.parametrize("seed", range(0, 240, 40))
def test_drawn_conditions_are_judged_alike(seed: int) -> None:
    for each in range(seed, seed + 40):
        rng = random.Random(each)
        condition = truth(rng, rng.randint(0, 2))
        pattern = Pattern.begin("s").followed_by("o").where("name = 'a'").optional()
        pattern = pattern.followed_by("l").times(1, 2).optional()
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


def by_all(pattern: Pattern, table: pa.Table) -> int:
    """How many matches there are: by the automaton as by the reference, and as a stream, event by event."""
    expected = cepheid.match(table, pattern, type=None, engine="reference")
    assert cepheid.match(table, pattern, type=None, engine="automaton").equals(expected)
    live = cepheid.live(pattern, table.schema, type=None)
    found = [live.send(table.slice(row, 1)) for row in range(table.num_rows)]
    assert pa.concat_tables([*found, live.finish()]).equals(expected)
    return int(expected.num_rows)


def test_texts_of_several_events() -> None:
    table = events("a1 b2 a3 c4")
    first = Pattern.begin("a").where("name = 'a'")
    assert by_all(first.next("b").where("contains(concat(name, a.name), 'ba')"), table) == 1
    assert by_all(first.followed_by_any("b").where("name LIKE a.name"), table) == 1
    assert by_all(first.one_or_more().next("b").where("concat(max(a[].name), name) = 'ab'"), table) == 1


def test_numbers_that_doubles_do_not_tell_apart() -> None:
    cents = [Decimal(BEYOND) + Decimal(each) / 100 for each in (0, 1, 2)]
    serials = [BEYOND, BEYOND + 1, BEYOND + 2]
    columns = {"cents": pa.array(cents, pa.decimal128(30, 2)), "serial": serials}
    table = pa.table({"ts": [1, 2, 3], **columns})
    pattern = Pattern.begin("a")
    for condition in ("cents > a.cents", "serial > a.serial", "serial - a.serial = 1", "serial = max(a[].serial) + 1"):
        assert by_all(pattern.next("b").where(condition), table) == 2, condition
    assert by_all(pattern.next("b").where("cents - a.cents = 0.01"), table) == 2
    assert by_all(pattern.next("b").where("cents = a.cents OR serial = a.serial"), table) == 0


def test_aggregates_of_a_step() -> None:
    loop = Pattern.begin("a").where("name = 'a'").one_or_more()
    table = events("a1 a5 b2 a3 b9")
    assert by_all(loop.next("b").where("stddev(a[].price) > 1 AND name = 'b'"), table) == 3
    assert by_all(loop.next("b").where("price BETWEEN min(a[].price) AND max(a[].price) AND name = 'b'"), table) == 1


def test_a_condition_on_each_event_of_several_steps() -> None:
    pattern = Pattern.begin("a").where("name = 'a'").times(1, 2).optional()
    pattern = pattern.followed_by("b").where("name = 'b'").times(1, 2).followed_by_any("c")
    table = events("a1 a4 b2 b3 c5 c9 c3")
    assert by_all(pattern.where("name = 'c' AND price > a.price + b.price"), table) == 8
    assert by_all(pattern.where("name = 'c' AND coalesce(a.price, 0) < b.price"), table) > 0


def test_functions_of_the_user_see_earlier_events() -> None:
    @cepheid.function(result=float)
    def distance_between(one: float, other: float) -> float:
        return abs(one - other)

    memory: dict[float, float] = {}

    @cepheid.function(result=float)
    def remembered(one: float, other: float) -> float:
        return memory.setdefault(one, one) - other  # numba compiles no dict of Python's

    table = events("a1 b2 a3 b9")
    first = Pattern.begin("a").where("name = 'a'")
    assert by_all(first.followed_by_any("b").where("name = 'b' AND distance_between(price, a.price) > 5"), table) == 2
    assert by_all(first.followed_by_any("b").where("name = 'b' AND remembered(price, a.price) > 5"), table) == 2


def test_a_step_that_must_not_occur_takes_no_event_to_look_back_at() -> None:
    pattern = Pattern.begin("a").where("name = 'a'").not_followed_by("n").where("price > n[i-1].price")
    assert by_all(pattern.followed_by("c").where("name = 'c'"), events("a1 c4")) == 1


def test_conditions_on_each_event_of_very_many_steps_run_by_the_reference() -> None:
    pattern, steps = Pattern.begin("s0").times(2).consecutive(), [f"s{number}" for number in range(63)]
    for step in steps[1:]:
        pattern = pattern.next(step).times(2).consecutive()
    pattern = pattern.next("end").where(" AND ".join(f"price > {step}.price" for step in steps))
    table = events(" ".join(f"a{number}" for number in range(127)))
    assert cepheid.match(table, pattern, type=None).num_rows == 1
    with pytest.raises(EngineError, match="for each event of over 62 steps"):
        cepheid.match(table, pattern, type=None, engine="automaton")
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

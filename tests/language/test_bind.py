"""Binding: names, times, units and parameters of a query over given columns."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from cepheid.errors import QueryError
from cepheid.language import syntax as s
from cepheid.language.bind import bind
from cepheid.language.bound import BoundQuery, BoundWindow, Phase
from cepheid.language.check import check
from cepheid.language.printing import expression_text
from cepheid.language.sase.parse import parse
from cepheid.language.schema import DataType, Schema

COLUMNS = (
    ("ts", DataType.INT),
    ("type", DataType.STRING),
    ("id", DataType.INT),
    ("x", DataType.INT),
    ("f", DataType.FLOAT),
    ("s", DataType.STRING),
    ("at", DataType.TIME),
    ("blob", DataType.OTHER),
)
STEPS = Schema(COLUMNS, "ts", "type")
MILLISECONDS = replace(STEPS, time_unit="milliseconds")
TIMESTAMPS = Schema((("ts", DataType.TIME), *COLUMNS[1:]), "ts", "type", "microseconds")


def bound(text: str, schema: Schema = STEPS, **parameters: Any) -> BoundQuery:
    return bind(check(parse(text), text), schema, parameters, text)


def conditions(text: str, **parameters: Any) -> list[str]:
    query = bound(f"PATTERN SEQ(A a, B b) WHERE {text}", **parameters)
    return [expression_text(conjunct.expression) for conjunct in query.conjuncts]


# --- windows ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("within", "schema", "window"),
    [
        ("500", STEPS, BoundWindow(500)),
        ("2.5", STEPS, BoundWindow(3)),  # last - first < 2.5 means at most 2
        ("100 EVENTS", STEPS, BoundWindow(100, events=True)),
        ("2 seconds", MILLISECONDS, BoundWindow(2000)),
        ("500", MILLISECONDS, BoundWindow(500)),
        ("1 us", MILLISECONDS, BoundWindow(1)),
        ("12 hours", TIMESTAMPS, BoundWindow(12 * 3600 * 10**6)),
        ("0.1 s", TIMESTAMPS, BoundWindow(100_000)),
        ("0.7 s", TIMESTAMPS, BoundWindow(700_000)),
        ("0.3 weeks", TIMESTAMPS, BoundWindow(181_440 * 10**6)),
        ("10 EVENTS", TIMESTAMPS, BoundWindow(10, events=True)),
    ],
)
def test_windows(within: str, schema: Schema, window: BoundWindow) -> None:
    assert bound(f"PATTERN SEQ(A a, B b) WITHIN {within}", schema).window == window


@pytest.mark.parametrize(
    ("within", "given", "window"),
    [
        ("T", 500, BoundWindow(500)),
        ("T", np.int64(500), BoundWindow(500)),
        ("T seconds", 2, BoundWindow(2000)),
        ("T EVENTS", 2, BoundWindow(2, events=True)),
        ("T", timedelta(seconds=2), BoundWindow(2000)),
        ("T hours", timedelta(seconds=2), BoundWindow(2000)),
        ("T", "2 seconds", BoundWindow(2000)),
        ("T", "1.5s", BoundWindow(1500)),
        ("T", "7", BoundWindow(7)),
        ("T seconds", "7", BoundWindow(7000)),
        ("T", "7 events", BoundWindow(7, events=True)),
        ("`my window`", None, None),
    ],
)
def test_windows_from_parameters(within: str, given: Any, window: BoundWindow | None) -> None:
    text = f"PATTERN SEQ(A a, B b) WITHIN {within}"
    if window is None:
        with pytest.raises(QueryError, match="no value for 'my window'"):
            bound(text, MILLISECONDS)
    else:
        assert bound(text, MILLISECONDS, T=given).window == window


@pytest.mark.parametrize(
    "given", [0, -1, float("nan"), float("inf"), True, "", "soon", "1 2 hours", "-3 s", None, [1], 2**62]
)
def test_lengths_that_are_none(given: Any) -> None:
    with pytest.raises(QueryError) as raised:
        bound("PATTERN SEQ(A a, B b) WITHIN T", MILLISECONDS, T=given)
    assert raised.value.code == "bad-window"


# --- parameters and attributes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        (3, "a.x > 3"),
        (np.int32(3), "a.x > 3"),
        (2.5, "a.x > 2.5"),
        (np.float64(2.5), "a.x > 2.5"),
        (None, "a.x > NULL"),
    ],
)
def test_parameters_become_constants(given: Any, printed: str) -> None:
    assert conditions("a.x > T", T=given) == [printed]


def test_lists_of_values() -> None:
    assert conditions("a.s IN S", S=["u", "v"]) == ["a.s IN ('u', 'v')"]
    assert conditions("a.x IN `the set`", **{"the set": range(2)}) == ["a.x IN (0, 1)"]
    assert conditions("a.x IN S", S=np.array([1, 2])) == ["a.x IN (1, 2)"]
    assert bound("PATTERN SEQ(A a, B b) WHERE a.x IN S", S=[]).conjuncts[0].expression == s.Membership(
        s.Attribute(s.Reference("a"), "x"), ()
    )


def test_equivalence_tests_take_parameters() -> None:
    query = bound("PATTERN SEQ(A a, B b) WHERE [s = Who] AND [id]", Who="John")
    assert query.equivalence == ("s", "id")
    assert query.fixed == (("s", s.Literal("John")),)


def test_a_filter_knows_its_attributes_but_parameters_go_first() -> None:
    query = bound("EVENT A WHERE x > 1 AND id = T AND s = 'v'", T=3, s="w")
    assert [expression_text(conjunct.expression) for conjunct in query.conjuncts] == [
        "`event`.x > 1",
        "`event`.id = 3",
        "'w' = 'v'",
    ]


def test_a_type_and_an_attribute_may_share_a_name() -> None:
    query = bound("EVENT x WHERE x > 1")
    assert query.components[0].types == ("x",)
    assert query.attributes() == {"x"}


# --- times ------------------------------------------------------------------------------------------------------------

NOON = int(datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp()) * 10**6


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("a.at > '2026-01-31 12:00:00'", f"a.at > {NOON}"),
        ("'2026-01-31T13:00:00+01:00' < a.at", f"{NOON} < a.at"),
        ("a.at BETWEEN '2026-01-31 12:00' AND '2026-01-31 12:00:00.000001'", f"a.at BETWEEN {NOON} AND {NOON + 1}"),
        ("a.at IN ('2026-01-31 12:00', 5)", f"a.at IN ({NOON}, 5)"),
        ("a.at['2026-01-31 12:00'] = b.at", f"a.at[{NOON}] = b.at"),
        ("(a.at > '2026-01-31 12:00') = TRUE", f"(a.at > {NOON}) = TRUE"),
        ("a.at + 5 > '2026-01-31 12:00'", f"a.at + 5 > {NOON}"),
        ("b.at - a.at > 5", "b.at - a.at > 5"),
        ("a.at > T", f"a.at > {NOON}"),
        ("a.at > D", f"a.at > {NOON - 12 * 3600 * 10**6}"),
        ("a.s > '2026-01-31 12:00:00'", "a.s > '2026-01-31 12:00:00'"),
    ],
)
def test_times_are_microseconds(written: str, printed: str) -> None:
    assert conditions(written, T=datetime(2026, 1, 31, 12), D=date(2026, 1, 31)) == [printed]


def test_equivalence_tests_may_fix_a_time() -> None:
    assert bound("PATTERN SEQ(A a, B b) WHERE [at = '2026-01-31 12:00']").fixed == (("at", s.Literal(NOON)),)


@pytest.mark.parametrize("condition", ["a.at > 2.5", "a.at * 2 > 1", "a.blob = 1", "a.at + b.at > 1", "-a.at > 1"])
def test_times_are_no_numbers(condition: str) -> None:
    with pytest.raises(QueryError) as raised:
        conditions(condition)
    assert raised.value.code == "type-mismatch"


# --- where conditions go ----------------------------------------------------------------------------------------------


def placed(where: str) -> list[tuple[str, int, Phase]]:
    query = bound(f"PATTERN SEQ(A a, G+ g[], B b) WHERE {where}")
    return [(expression_text(c.expression), c.place, c.phase) for c in query.conjuncts]


def test_a_condition_is_tested_where_all_it_mentions_is_known() -> None:
    where = "b.x > 1 AND a.x > 1 AND b.x > a.x AND g.x > a.x AND g[1].x > 1 AND g[i].x > g[i-1].x AND g.LEN > 2"
    assert placed(where) == [
        ("b.x > 1", 2, Phase.BEGIN),
        ("a.x > 1", 0, Phase.BEGIN),
        ("b.x > a.x", 2, Phase.BEGIN),
        ("g.x > a.x", 1, Phase.TAKE),
        ("g[1].x > 1", 1, Phase.BEGIN),
        ("g[i].x > g[i-1].x", 1, Phase.TAKE),
        ("g.LEN > 2", 1, Phase.CLOSE),
    ]
    assert placed("sum(g[].x) > b.x AND count(g) > 1 AND g[g.LEN].x > 1 AND g[i].x > max(g[..i-1].x) AND 1 = 1") == [
        ("sum(g[].x) > b.x", 2, Phase.BEGIN),
        ("count(g) > 1", 1, Phase.CLOSE),
        ("g[g.LEN].x > 1", 1, Phase.CLOSE),
        ("g[i].x > max(g[..i-1].x)", 1, Phase.TAKE),
        ("1 = 1", 0, Phase.BEGIN),
    ]


def test_equivalence_tests_under_or_become_comparisons() -> None:
    query = bound("PATTERN SEQ(A a, B b, !(C c), D d) WHERE [id] OR a.x > 1")
    assert query.equivalence == ()
    (branch, other) = query.branches
    assert [expression_text(part) for part in branch.positive] == ["a.id = b.id", "a.id = d.id", "b.id = d.id"]
    assert [expression_text(part) for part in branch.passed_by("c")] == ["a.id = c.id", "b.id = c.id", "d.id = c.id"]
    assert other.passed_by("c") == ()


def test_equivalence_tests_under_or_tie_a_lone_group_together() -> None:
    query = bound("PATTERN SEQ(G+ g[]) WHERE [id = 3] OR g.x > 1")
    assert [expression_text(conjunct.expression) for conjunct in query.conjuncts] == [
        "g.id = g[1].id OR g.x > 1",
        "g.id = 3 OR g.x > 1",
    ]


def test_returned_values_of_a_group_are_lists() -> None:
    query = bound("PATTERN SEQ(A a, G+ g[]) RETURN a, g, g.x AS xs, g[].x AS ys, g[1].x AS x, max(g.x) AS top")
    assert [(name, expression_text(node)) for name, node in query.returns or ()] == [
        ("a", "a"),
        ("g", "g"),
        ("xs", "g[].x"),
        ("ys", "g[].x"),
        ("x", "g[1].x"),
        ("top", "max(g.x)"),
    ]


@pytest.mark.parametrize("item", ["g.x + 1", "g[].x * 2", "abs(g.x)", "a.x + g.x"])
def test_returned_values_of_a_group_are_not_computed_with(item: str) -> None:
    with pytest.raises(QueryError) as raised:
        bound(f"PATTERN SEQ(A a, G+ g[]) RETURN {item} AS r")
    assert raised.value.code == "group-outside-aggregate"


def test_columns_that_predicates_cannot_use_can_be_returned_and_tested_for_null() -> None:
    assert bound("PATTERN SEQ(A a, B b) WHERE a.blob IS NULL RETURN b.blob").attributes() == {"blob"}

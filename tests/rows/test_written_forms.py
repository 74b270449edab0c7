"""What people write in a clause beyond the standard: sorted aggregates, structs, JSON, keys that are computed."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import QueryError

ROWS = pa.table(
    {
        "ts": [1, 2, 3, 4, 5, 6],
        "key": ["a", "b", "A", "a", "B", "b"],
        "x": [3, 1, None, 2, 5, 1],
        "s": ["c", "a", "b", None, "e", "d"],
        "of": [{"id": 1, "at": {"t": 6 - n}} for n in range(3)] + [{"id": 2, "at": {"t": 6 - n}} for n in range(3, 6)],
        "json": [f'{{"a": {{"b": {n}}}, "c": ["x", "y"]}}' for n in range(6)],
    }
)


def matched(clause: str, dialect: str = "spark", table: Any = ROWS, **options: Any) -> list[dict[str, Any]]:
    """The rows of a clause, which the engine and the reference agree about."""
    found: list[dict[str, Any]] = cepheid.match(table, clause, dialect=dialect, **options).to_pylist()
    assert found == cepheid.match(table, clause, dialect=dialect, engine="reference", **options).to_pylist()
    return found


def measured(measure: str, dialect: str = "spark", where: str = "x > 0 OR x IS NULL") -> Any:
    """A measure over one match with all rows."""
    clause = f"MATCH_RECOGNIZE (ORDER BY ts MEASURES {measure} AS v PATTERN (A+) DEFINE A AS {where})"
    (row,) = matched(clause, dialect)
    return row["v"]


@pytest.mark.parametrize(
    ("measure", "dialect", "expected"),
    [
        ("array_agg(ts ORDER BY x)", "spark", [3, 2, 6, 4, 1, 5]),
        ("array_agg(ts ORDER BY x DESC)", "spark", [5, 1, 4, 2, 6, 3]),
        ("array_agg(ts ORDER BY x)", "duckdb", [2, 6, 4, 1, 5, 3]),
        ("array_agg(ts ORDER BY x NULLS FIRST)", "trino", [3, 2, 6, 4, 1, 5]),
        ("array_agg(A.ts ORDER BY A.x DESC NULLS LAST, A.ts DESC)", "spark", [5, 1, 4, 6, 2, 3]),
        ("array_agg(x ORDER BY ts DESC)", "trino", [1, 5, 2, None, 1, 3]),
        ("array_agg(x ORDER BY ts DESC)", "spark", [1, 5, 2, 1, 3]),
        ("array_agg(DISTINCT x ORDER BY x)", "spark", [1, 2, 3, 5]),
        ("string_agg(s, '-' ORDER BY s DESC)", "duckdb", "e-d-c-b-a"),
        ("listagg(s, ',') WITHIN GROUP (ORDER BY s)", "snowflake", "a,b,c,d,e"),
        ("first_value(s ORDER BY x DESC)", "spark", "e"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY x)", "spark", 2.0),
        ("percentile_disc(0.5) WITHIN GROUP (ORDER BY x)", "postgres", 2),
        ("array_agg(ts) FILTER (WHERE x > 1)", "spark", [1, 4, 5]),
        ("array_agg(ts ORDER BY x DESC) FILTER (WHERE x > 1)", "duckdb", [5, 1, 4]),
        ("max_by(s, x) FILTER (WHERE x < 5)", "spark", "c"),
        ("collect_list(s ORDER BY x) FILTER (WHERE ts < 0)", "spark", []),
        ("array_agg(s) FILTER (WHERE ts < 0)", "postgres", None),
    ],
)
def test_aggregates_take_order_and_filter(measure: str, dialect: str, expected: Any) -> None:
    assert measured(measure, dialect) == expected


def test_a_sorted_aggregate_in_a_condition() -> None:
    clause = (
        "MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n, LAST(ts) AS t "
        "PATTERN (A+) DEFINE A AS first_value(ts ORDER BY x DESC NULLS LAST) = 1)"
    )
    assert matched(clause) == [{"n": 4, "t": 4}]


@pytest.mark.parametrize(
    ("measure", "code"),
    [
        ("FIRST(x ORDER BY ts)", "aggregate-order"),
        ("upper(s ORDER BY s)", "aggregate-order"),
        ("array_agg(DISTINCT x ORDER BY ts)", "aggregate-order"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY x DESC)", "aggregate-order"),
        ("upper(s) FILTER (WHERE x > 1)", "aggregate-filter"),
        ("sum(x) OVER (PARTITION BY s)", "window-function"),
        ("(SELECT max(x) FROM t)", "subquery"),
        ("json -> 'a'", "json-path"),
        ("json ->> x", "json-path"),
        ("struct()", "arguments"),
        ("struct(x AS a, ts AS a)", "duplicate-column"),
    ],
)
def test_forms_that_are_errors(measure: str, code: str) -> None:
    with pytest.raises(QueryError) as told:
        measured(measure)
    assert told.value.code == code


@pytest.mark.parametrize(
    ("measure", "dialect", "expected"),
    [
        ("struct(FIRST(x) AS lo, LAST(x) AS hi)", "spark", {"lo": 3, "hi": 1}),
        ("struct(FIRST(x), s, 1)", "spark", {"col1": 3, "s": "d", "col3": 1}),
        ("named_struct('lo', FIRST(x), 'none', NULL)", "spark", {"lo": 3, "none": None}),
        ("{'lo': FIRST(x), hi: [1, 2]}", "duckdb", {"lo": 3, "hi": [1, 2]}),
        ("struct_pack(lo := FIRST(x))", "duckdb", {"lo": 3}),
        ("array_agg(struct(ts, x)) FILTER (WHERE x > 2)", "spark", [{"ts": 1, "x": 3}, {"ts": 5, "x": 5}]),
    ],
)
def test_structs(measure: str, dialect: str, expected: Any) -> None:
    assert measured(measure, dialect) == expected


@pytest.mark.parametrize(
    ("measure", "dialect", "expected"),
    [
        ("LAST(json) ->> '$.a.b'", "duckdb", "5"),
        ("json -> 'a' ->> 'b'", "postgres", "5"),
        ("json -> 'c' ->> 1", "postgres", "y"),
        ("JSON_VALUE(json, '$.a.b' RETURNING INTEGER NULL ON ERROR)", "oracle", 5),
        ("(json ->> 'a') || '!'", "spark", '{"b":5}!'),
        ("array_agg(json ->> '$.a.b' ORDER BY ts DESC)", "spark", ["5", "4", "3", "2", "1", "0"]),
    ],
)
def test_parts_of_json(measure: str, dialect: str, expected: Any) -> None:
    assert measured(measure, dialect) == expected
    assert measured("count(*)", dialect, where="json -> 'a' ->> 'b' IS NOT NULL") == 6


@pytest.mark.parametrize(("dialect", "expected"), [("duckdb", 1), ("trino", 1), ("spark", 2), ("postgres", 1)])
def test_the_first_index_is_the_dialects(dialect: str, expected: int) -> None:
    assert measured("array_agg(ts)[1]", dialect) == expected


BODY = "MEASURES array_agg(ts) AS v PATTERN (A+)"


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("PARTITION BY upper(key) ORDER BY ts", {"A": [1, 3, 4], "B": [2, 5, 6]}),
        ("PARTITION BY upper(t.key) ORDER BY t.ts DESC", {"A": [4, 3, 1], "B": [6, 5, 2]}),
        ("PARTITION BY of.id ORDER BY of.at.t", {1: [3, 2, 1], 2: [6, 5, 4]}),
        ("PARTITION BY t.of.id ORDER BY t.of.at.t", {1: [3, 2, 1], 2: [6, 5, 4]}),
        ("PARTITION BY ts % 2 ORDER BY abs(x - 2), -ts", {1: [3, 1, 5], 0: [4, 6, 2]}),
    ],
)
def test_keys_are_computed(keys: str, expected: dict[Any, list[int]]) -> None:
    clause = f"MATCH_RECOGNIZE ({keys} {BODY})"
    found = matched(clause)
    assert {next(iter(row.values())): row["v"] for row in found} == expected
    for table in (ROWS.to_pandas(), pl.from_arrow(ROWS.drop_columns("of"))):
        if "of." not in keys:
            again = cepheid.match(table, clause)
            assert len(again) == len(found)
            assert list(again.columns) == list(found[0])


def test_computed_keys_among_all_columns() -> None:
    clause = (
        "MATCH_RECOGNIZE (PARTITION BY of.id ORDER BY -ts MEASURES MATCH_NUMBER() AS n ALL ROWS PER MATCH PATTERN (A))"
    )
    found = matched(clause)
    assert list(found[0]) == ["id", "n", "ts", "key", "x", "s", "of", "json"]
    assert [row["ts"] for row in found] == [3, 2, 1, 6, 5, 4]


@pytest.mark.parametrize("key", ["1", "sum(x)", "PREV(x)", "MATCH_NUMBER()"])
def test_keys_concern_one_row(key: str) -> None:
    with pytest.raises(QueryError, match="expected a column name"):
        matched(f"MATCH_RECOGNIZE (PARTITION BY {key} ORDER BY ts {BODY})")


def test_a_window_over_a_computed_time() -> None:
    table = pa.table({"at": ["2026-01-01 00:00:00", "2026-01-01 00:00:50", "2026-01-01 00:02:00"], "n": [1, 2, 3]})
    clause = (
        "MATCH_RECOGNIZE (ORDER BY CAST(at AS TIMESTAMP) MEASURES array_agg(n) AS v "
        "PATTERN (A+) WITHIN INTERVAL '1' MINUTE)"
    )
    assert matched(clause, table=table) == [{"v": [1, 2]}, {"v": [3]}]


def test_names_of_the_table() -> None:
    clause = (
        "MATCH_RECOGNIZE (PARTITION BY Ticks.key ORDER BY Ticks.ts MEASURES LAST(Ticks.x) AS v, Ticks.of.id AS w "
        "PATTERN (A+) DEFINE A AS Ticks.x > 1)"
    )
    assert matched(clause) == [
        {"key": "a", "v": 2, "w": 2},
        {"key": "B", "v": 5, "w": 2},
    ]
    with pytest.raises(QueryError, match="no label 'C'"):
        matched("MATCH_RECOGNIZE (ORDER BY ts MEASURES C.x AS v PATTERN (A))")


@pytest.mark.parametrize("cut", range(7))
@pytest.mark.parametrize("key", ["upper(key)", "of.id", "t.of.id"])
def test_computed_keys_of_live_queries(key: str, cut: int) -> None:
    clause = (
        f"MATCH_RECOGNIZE (PARTITION BY {key} ORDER BY t.ts MEASURES array_agg(x ORDER BY t.x DESC) AS v, "
        "LAST(json) ->> '$.a.b' AS j PATTERN (A B) WITHIN 10)"
    )
    live = cepheid.live(clause, ROWS.schema)
    found = live.send(ROWS.slice(0, cut)).to_pylist()
    live = cepheid.live(clause, ROWS.schema, state=live.save())
    found += live.send(ROWS.slice(cut)).to_pylist() + live.finish().to_pylist()
    expected = matched(clause)
    assert sorted(map(str, found)) == sorted(map(str, expected))
    assert expected


@pytest.mark.parametrize("cut", range(7))
def test_the_time_of_a_live_query_is_computed(cut: int) -> None:
    rows = ROWS.take([5, 4, 3, 2, 1, 0])
    clause = (
        "MATCH_RECOGNIZE (PARTITION BY of.id ORDER BY of.at.t MEASURES array_agg(ts) AS v, MATCH_ROWTIME() AS t "
        "PATTERN (A B) WITHIN 10)"
    )
    expected = matched(clause, table=rows)
    live = cepheid.live(clause, rows.schema)
    found = live.send(rows.slice(0, cut)).to_pylist()
    for event in rows.slice(cut).to_pylist():
        found += live.send(event)
    assert live.advance(3) == [] or cut == 6
    last = live.finish()
    found += last if isinstance(last, list) else last.to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, expected))
    assert [row["v"] for row in expected] == [[6, 5], [3, 2]]

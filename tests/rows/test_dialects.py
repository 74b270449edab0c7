"""A dialect is a set of overrides: what each system means otherwise than Spark."""

from __future__ import annotations

import json
import math
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import CepheidError, QueryError

TABLE = pa.table({"id": [1, 2, 3], "x": [-7, None, 7], "s": ["ab", None, "b"]})


def measured(measure: str, dialect: str, order: str = "id") -> list[Any]:
    clause = f"MATCH_RECOGNIZE (ORDER BY {order} MEASURES FINAL {measure} AS v PATTERN (A+) DEFINE A AS TRUE)"
    found: list[Any] = cepheid.match(TABLE, clause.replace("FINAL FIRST", "FIRST"), dialect=dialect)["v"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("FIRST(x // 2)", -3),
        ("FIRST(x / 2)", -3.5),
        ("FIRST(x // 2.0)", -3.5),
        ("list(x)", [-7, None, 7]),
        ("arg_max(s, id)", "b"),
        ("FIRST(len(s))", 2),
        ("FIRST(prefix(s, 'a'))", True),
        ("FIRST(suffix(s, 'a'))", False),
        ("FIRST(regexp_matches(s, '^.b'))", True),
    ],
)
def test_duckdb(expression: str, expected: Any) -> None:
    assert measured(expression, "duckdb") == [expected]


def test_nulls_come_last_in_duckdb() -> None:
    assert measured("array_agg(x)", "duckdb", "x") == measured("array_agg(x)", "trino", "x") == [[-7, 7, None]]
    assert measured("array_agg(x)", "duckdb", "x DESC") == [[7, -7, None]]
    assert measured("array_agg(id)", "oracle", "x DESC") == [[2, 3, 1]]
    assert measured("array_agg(id)", "spark", "x DESC") == [[3, 1, 2]]


@pytest.mark.parametrize("name", ["log(x)", "concat(s, s)", "weekday(s)", "date_diff(x, x)"])
def test_functions_that_mean_something_else_are_refused(name: str) -> None:
    with pytest.raises(QueryError, match="means something else in duckdb"):
        measured(f"FIRST({name})", "duckdb")


def test_what_one_dialect_has_others_refuse() -> None:
    with pytest.raises(CepheidError, match="unexpected"):
        measured("FIRST(x // 2)", "trino")
    with pytest.raises(QueryError, match="no function") as refused:
        measured("FIRST(len(s))", "oracle")
    assert refused.value.hint == "use length, or dialect='duckdb'"


def test_json_in_every_language() -> None:
    table = pa.table({"ts": [1], "s": ['{"a": {"b": 2}, "c": "x"}']})
    for name, path, expected in (
        ("json_value", "$.a.b", "2"),
        ("json_value", "$.a", None),
        ("json_extract_scalar", "$.c", "x"),
        ("get_json_object", "$.a", '{"b":2}'),
    ):
        call = f"{name}(a.s, '{path}')"
        clause = f"MATCH_RECOGNIZE (ORDER BY ts MEASURES {call} AS v PATTERN (A) DEFINE A AS TRUE)"
        texts = cepheid.match(table, f"PATTERN a RETURN {call} AS v", type=None)["v"].to_pylist()
        assert texts == cepheid.match(table, clause)["v"].to_pylist() == [expected]


ANSWERS = json.loads((Path(__file__).parent / "answers_of_duckdb.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("expression", "expected"), ANSWERS)
def test_duckdb_2_0_says_the_same(expression: str, expected: Any) -> None:
    """The file has what DuckDB 2.0 answers to `SELECT expression`: times as text, decimals as numbers."""
    clause = f"MATCH_RECOGNIZE (ORDER BY id MEASURES {expression} AS v PATTERN (A))"
    found = cepheid.match(TABLE.slice(0, 1), clause, dialect="duckdb")["v"][0].as_py()
    if isinstance(found, date):
        found = found.isoformat()
    if isinstance(found, float | Decimal):
        assert math.isclose(found, expected)
    else:
        assert found == expected

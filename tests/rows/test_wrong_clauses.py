"""What the standard forbids is refused, and the error points at it."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cepheid
import cepheid.sql
from cepheid.errors import CepheidError, QueryError
from rows.row_cases import by_the_engine, matched, values

PATTERN = "PATTERN (A B+) SUBSET U = (A, B)"


@pytest.mark.parametrize(
    ("clause", "code", "marked"),
    [
        (f"{PATTERN} DEFINE C AS true", "unknown-label", "C"),
        (f"{PATTERN} DEFINE U AS true", "unknown-label", "U"),
        (f"{PATTERN} DEFINE A AS true, A AS false", "label-defined-twice", "A"),
        (f"MEASURES C.value AS m {PATTERN} DEFINE A AS true", "unknown-label", "C"),
        (f"MEASURES CLASSIFIER(X) AS m {PATTERN} DEFINE A AS true", "unknown-label", "X"),
        (f"MEASURES CLASSIFIER(A, B) AS m {PATTERN} DEFINE A AS true", "arguments", "CLASSIFIER(A, B)"),
        (f"MEASURES value AS m, id AS m {PATTERN} DEFINE A AS true", "duplicate-measure", "m"),
        (f"MEASURES value {PATTERN} DEFINE A AS true", "measure-name", "value"),
        (f"MEASURES sum(A.value + B.value) AS m {PATTERN} DEFINE A AS true", "two-labels", "sum(A.value + B.value)"),
        (f"MEASURES LAST(A.value + value) AS m {PATTERN} DEFINE A AS true", "two-labels", "LAST(A.value + value)"),
        (f"MEASURES max_by(A.value, id) AS m {PATTERN} DEFINE A AS true", "two-labels", "max_by(A.value, id)"),
        (f"{PATTERN} DEFINE A AS LAST(PREV(value)) > 1", "navigation-nesting", "PREV(value)"),
        (f"{PATTERN} DEFINE A AS PREV(NEXT(value)) > 1", "navigation-nesting", "NEXT(value)"),
        (f"{PATTERN} DEFINE A AS FIRST(LAST(value)) > 1", "navigation-nesting", "LAST(value)"),
        (f"{PATTERN} DEFINE A AS PREV(LAST(value) + 1) > 1", "navigation-nesting", "LAST(value)"),
        (f"{PATTERN} DEFINE A AS LAST(sum(value)) > 1", "navigation-nesting", "sum(value)"),
        (f"{PATTERN} DEFINE A AS sum(LAST(value)) > 1", "aggregate-nesting", "LAST(value)"),
        (f"{PATTERN} DEFINE A AS sum(sum(value)) > 1", "aggregate-nesting", "sum(value)"),
        (f"{PATTERN} DEFINE A AS LAST(1) > 1", "navigation-argument", "LAST(1)"),
        (f"{PATTERN} DEFINE A AS CLASSIFIER() RLIKE '('", "bad-argument", "'('"),
        (f"{PATTERN} DEFINE A AS regexp_extract('x', '[', 1) = 'x'", "bad-argument", "'['"),
        (f"MEASURES rlike(CLASSIFIER(), '*') AS m {PATTERN} DEFINE A AS true", "bad-argument", "'*'"),
        (f"MEASURES CLASSIFIER() LIKE 'a!b' ESCAPE '!' AS m {PATTERN} DEFINE A AS true", "bad-argument", "'a!b'"),
        (f"{PATTERN} DEFINE A AS PREV(value, -1) > 1", "navigation-offset", "-1"),
        (f"{PATTERN} DEFINE A AS PREV(value, id) > 1", "navigation-offset", "id"),
        (f"{PATTERN} DEFINE A AS FINAL LAST(value) > 1", "final-in-define", "FINAL LAST"),
        (f"MEASURES FINAL PREV(value) AS m {PATTERN} DEFINE A AS true", "processing-mode", "PREV"),
        (f"MEASURES RUNNING abs(value) AS m {PATTERN} DEFINE A AS true", "processing-mode", "abs"),
        (f"MEASURES sum(*) AS m {PATTERN} DEFINE A AS true", "star", "*"),
        (f"MEASURES nosuch(value) AS m {PATTERN} DEFINE A AS true", "unknown-function", "nosuch"),
        (f"{PATTERN} DEFINE A AS valu > 1", "unknown-column", "valu"),
        (f"AFTER MATCH SKIP TO X {PATTERN} DEFINE A AS true", "unknown-label", "X"),
        ("PATTERN (A B+) SUBSET A = (B) DEFINE A AS true", "duplicate-label", "A"),
        ("PATTERN (A B+) SUBSET U = (A, X) DEFINE A AS true", "unknown-label", "X"),
        ("PATTERN (A B+) DEFIN A AS true", "syntax", "DEFIN"),
        ("MEASURES value AS m DEFINE A AS true", "syntax", "DEFINE"),
        ("PATTERN (A{3,2}) DEFINE A AS true", "quantifier-range", "{3,2}"),
        ("PATTERN (A**) DEFINE A AS true", "second-quantifier", "*"),
        ("PATTERN (()) DEFINE A AS true", "no-label", "()"),
        ("PATTERN (A) MEASURES value AS m DEFINE A AS true", "clause-order", "MEASURES"),
        ("SEEK PATTERN (A) DEFINE A AS true", "search-mode", "SEEK"),
        ("ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A {- B -}) DEFINE A AS true", "exclusion", "{- B -}"),
        ("PATTERN (A) WITHIN 5 DEFINE A AS true", "within", "5"),
        ("ORDER BY id PATTERN (A) WITHIN INTERVAL '5' MINUTE DEFINE A AS true", "within", "INTERVAL '5' MINUTE"),
        ("ORDER BY id MEASURES value AS id ALL ROWS PER MATCH PATTERN (A) DEFINE A AS true", "duplicate-column", "id"),
        ("PATTERN (A) DEFINE A AS 'x' > 1", "types", "'x' > 1"),
        ("PATTERN (A) DEFINE A AS value + 1", "types", "value + 1"),
        ("PATTERN (A B) DEFINE B AS A.value + 1", "types", "A.value + 1"),
        ("PATTERN (A) DEFINE A AS (SELECT 1) = value", "subquery", "SELECT"),
        ("PATTERN (A) DEFINE A AS value = 'open", "open-string", "'"),
    ],
)
def test_errors_point_at_the_place(clause: str, code: str, marked: str) -> None:
    text = f"MATCH_RECOGNIZE ({clause})"
    with pytest.raises(QueryError) as caught:
        by_the_engine(text, values(1, 2, 3))
    assert caught.value.code == code
    assert caught.value.start is not None
    assert caught.value.end is not None
    assert text[caught.value.start : caught.value.end] == marked


@pytest.mark.parametrize("text", [r"A AS s = 'it\'s'", "A AS s = 'it", 'A AS "s = 1'])
def test_a_clause_with_an_open_string_is_a_clause(text: str) -> None:
    with pytest.raises(cepheid.QueryError, match="is never closed"):
        cepheid.query(f"/* a */ -- b\n match_recognize (ORDER BY ts PATTERN (A) DEFINE {text})")


def test_many_comments_before_something_else_are_read_once() -> None:
    with pytest.raises(cepheid.QueryError):
        cepheid.query("/**/ --\n" * 1000 + "SELECT match_recognize")


def test_options_of_event_queries_are_refused() -> None:
    clause = "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS true)"
    with pytest.raises(CepheidError, match="no option 'time'"):
        cepheid.match(values(1), clause, time="id")
    with pytest.raises(CepheidError, match="engine 'runs'"):
        cepheid.match(values(1), clause, engine="runs")


def test_every_kind_of_table_gives_its_kind_back() -> None:
    clause = "MATCH_RECOGNIZE (ORDER BY id MEASURES sum(value) AS total PATTERN (A+) DEFINE A AS value < 3)"
    table = values(1, 2, 3)
    assert cepheid.match(table, clause).to_pylist() == [{"total": 3}]
    assert cepheid.match(table, clause, engine="reference").to_pylist() == [{"total": 3}]
    assert cepheid.match(table.to_pandas(), clause)["total"].tolist() == [3]
    polars = pytest.importorskip("polars")
    assert cepheid.match(polars.from_arrow(table), clause)["total"].to_list() == [3]
    assert isinstance(cepheid.query(clause), cepheid.RowQuery)


def test_large_strings_and_dictionaries() -> None:
    table = pa.table({"id": [1, 2], "kind": pa.array(["x", "y"], pa.large_string()).dictionary_encode()})
    clause = "ORDER BY id MEASURES FIRST(kind) AS first, LAST(kind) AS last PATTERN (A B) DEFINE B AS B.kind > A.kind"
    assert matched(clause, table) == [("x", "y")]


DEEP = {
    "parentheses": "(" * 3_000 + "value > 0" + ")" * 3_000,
    "open parentheses": "(" * 90_000,
    "CASE": "CASE WHEN value > 0 THEN " * 1_000 + "true" + " END" * 1_000,
    "calls": "abs(" * 3_000 + "value" + ")" * 3_000 + " > 0",
    "NOT": "NOT " * 5_000 + "true",
    "minus": "- " * 5_000 + "value > 0",
    "sums": "+".join(["value"] * 3_000) + " > 0",
    "texts": "||".join(["'x'"] * 3_000) + " <> ''",
    "casts": "value" + "::int" * 3_000 + " > 0",
    "elements": "array(value)" + "[0]" * 3_000 + " > 0",
    "comparisons": "value" + " = 1" * 3_000,
    "repeated operands": "value" + " BETWEEN 0 AND 1" * 60,
    "repeated operands of CASE": "CASE " * 20
    + "value"
    + " WHEN 1 THEN 1 WHEN 2 THEN 2 WHEN 3 THEN 3 END" * 20
    + " = 1",
    "types": "CAST(value AS " + "array<" * 3_000 + "int" + ">" * 3_000 + ") IS NULL",
    "lambdas": "transform(array(value), x -> " * 1_000 + "x" + ")" * 1_000 + " IS NULL",
}


@pytest.mark.some(5)
@pytest.mark.parametrize("condition", DEEP.values(), ids=DEEP)
@pytest.mark.parametrize("clause", ["PATTERN (A) DEFINE A AS {}", "MEASURES {} AS m PATTERN (A) DEFINE A AS true"])
def test_deep_nesting_is_refused(clause: str, condition: str) -> None:
    with pytest.raises(QueryError) as caught:
        cepheid.match(values(1), f"MATCH_RECOGNIZE (ORDER BY id {clause.format(condition)})")
    assert caught.value.code == "too-deep"


def test_long_lists_of_conditions_are_not_deep() -> None:
    for condition in (
        " OR ".join(["value = 1"] * 3_000),
        " AND ".join(["value > 0"] * 3_000),
        "(" * 50 + "value > 0" + ")" * 50,
    ):
        clause = f"ORDER BY id MEASURES count(*) AS n PATTERN (A) DEFINE A AS {condition}"
        assert matched(clause, values(1)) == [(1,)]


def test_a_dialect_that_nobody_speaks() -> None:
    clause = "MATCH_RECOGNIZE (ORDER BY id MEASURES count(*) AS n PATTERN (A) DEFINE A AS true)"
    for dialect in ("nonsense", "", None, 3):
        with pytest.raises(CepheidError, match="spark, databricks, flink, trino"):
            cepheid.match(values(1), clause, dialect=dialect)
        with pytest.raises(
            CepheidError, match="dialect is an option of MATCH_RECOGNIZE clauses; leave it out here"
        ):  # it is read already
            cepheid.match(values(1), cepheid.query(clause), dialect=dialect)
        with pytest.raises(CepheidError, match="no dialect"):
            cepheid.sql.query(None, f"SELECT * FROM t {clause}", dialect)
    with pytest.raises(CepheidError, match="did you mean trino"):
        cepheid.match(values(1), clause, dialect="trno")
    assert cepheid.match(values(1), clause, dialect="Trino").to_pylist() == [{"n": 1}]

"""What other systems write, and what they print: expressions, keys, names and options beyond the standard's core."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from cepheid.errors import CepheidError, QueryError
from rows.row_cases import bound, matched, values

DAYS = [datetime(2024, 1, 31), datetime(2024, 2, 29), datetime(2024, 3, 1), datetime(2024, 5, 1)]
EVENTS = pa.table({"id": [1, 2, 3, 4], "at": DAYS, "s": [{"x": n, "Name": "k" * n} for n in (5, 6, 4, 7)]})


@pytest.mark.parametrize(
    ("pattern", "labels"),
    [
        ("()* | B", [None] * 4),
        ("B | ()*", [None, "B", "B", None]),
        ("(B ()*)*", [None, "B", "B", None]),
        ("^+ | B", [None, "B", "B"]),
        ("$+ | B", ["B", "B"]),
        ("B A $+", ["B", "A"]),
        ("^* A B", ["A", "B"]),
        ("A {- B -}+ A?", ["A", "A"]),
        ("{- A {- B+ -} -} A", ["A"]),
        ("A B{,}?", ["A", "A", "A", "A"]),
        ("PERMUTE(A, B, C{2})", ["C", "C", "B", "A"]),
    ],
)
def test_patterns_of_nothing_and_of_edges(pattern: str, labels: list[str | None]) -> None:
    known = "" if "A" in pattern else " | A{99}"
    clause = f"""ORDER BY id MEASURES CLASSIFIER() AS label ALL ROWS PER MATCH PATTERN ({pattern}{known})
    DEFINE B AS value < PREV(value)""" + (", C AS value > 75" if "C" in pattern else "")
    assert [row[1] for row in matched(clause, values(90, 80, 70, 70))] == labels


def test_labels_that_decide_by_what_they_sum_up() -> None:
    """Numbers parted into two heaps of the same weight."""
    clause = """ORDER BY id MEASURES array_agg(CLASSIFIER()) AS labels PATTERN (^(L | R)* (END_L | END_R)$)
    DEFINE END_L AS sum(L.value) + value = sum(R.value), END_R AS sum(R.value) + value = sum(L.value)"""
    ((labels,),) = matched(clause, values(1, 2, 3, 4, 5, 6, 7))
    left = sum(n for n, label in enumerate(labels, 1) if label.endswith("L"))
    assert left == 14


def test_the_last_of_many_ways() -> None:
    asked = " AND ".join(f"FIRST(CLASSIFIER(), {n}) = 'B'" for n in range(6))
    clause = f"ORDER BY id MEASURES array_agg(CLASSIFIER()) AS labels PATTERN ((A | B)+ E) DEFINE E AS {asked}"
    assert matched(clause, values(*range(7))) == [(["B"] * 6 + ["E"],)]
    clause = clause.replace(asked, "array_agg(CLASSIFIER()) = ARRAY['B', 'A', 'B', 'E']")
    assert matched(clause, values(1, 2, 3, 4)) == [(["B", "A", "B", "E"],)]


def test_aggregates_of_labels_and_numbers_of_matches() -> None:
    clause = """ORDER BY id MEASURES MATCH_NUMBER() AS n, array_agg(CLASSIFIER()) AS labels PATTERN ((A | B){3})
    DEFINE A AS max(id - MATCH_NUMBER()) > 1 AND max(CLASSIFIER()) = 'B', B AS min(lower(CLASSIFIER())) = 'b'"""
    assert matched(clause, values(*range(6))) == [(1, ["B", "B", "A"]), (2, ["B", "A", "A"])]


def test_a_column_with_the_name_of_a_label() -> None:
    table = pa.table({"id": [1, 2, 3, 4], "A": ["p", "q", None, "s"]})
    clause = """ORDER BY id MEASURES count(A.A) AS n, count(A) AS m, count(A.*) AS o, count() AS p
    ALL ROWS PER MATCH PATTERN (A B A A) DEFINE A AS true"""
    assert [row[1:5] for row in matched(clause, table)] == [(1, 1, 1, 1), (1, 2, 1, 2), (1, 2, 2, 3), (2, 3, 3, 4)]


@pytest.mark.parametrize(
    "keys",
    ["ORDER BY id ASC, id DESC", "PARTITION BY id ORDER BY id", "PARTITION BY id, id ORDER BY id, ID"],
)
def test_a_key_written_twice_is_one_column(keys: str) -> None:
    clause = f"{keys} MEASURES CLASSIFIER() AS c ALL ROWS PER MATCH PATTERN (A) DEFINE A AS true"
    assert matched(clause, values(7)) == [(1, "A", 7)]
    assert bound(clause, values(7)).output_columns == ("id", "c", "value")


def test_fields_of_structs() -> None:
    clause = """ORDER BY id MEASURES A.s.x AS first, LAST(s.name) AS last, sum(s.x) AS total, max(B.s.x) AS most
    PATTERN (A B+) DEFINE B AS B.s.x > A.s.x"""
    assert matched(clause, EVENTS) == [(5, "kkkkkk", 11, 6), (4, "kkkkkkk", 11, 7)]
    with pytest.raises(QueryError, match="no label 't'"):
        matched("ORDER BY id PATTERN (A) DEFINE A AS t.x > 1", EVENTS)
    with pytest.raises(QueryError, match="is not possible"):
        matched("ORDER BY id MEASURES A.s.nothing AS n PATTERN (A) DEFINE A AS true", EVENTS)


def test_months_and_years() -> None:
    clause = "ORDER BY id MEASURES count(*) AS n, A.at + INTERVAL '1' MONTH AS later PATTERN (A B*) DEFINE B AS {}"
    within = "at <= A.at + INTERVAL '1' MONTH"
    assert matched(clause.format(within), EVENTS) == [
        (2, datetime(2024, 2, 29)),
        (1, datetime(2024, 4, 1)),
        (1, datetime(2024, 6, 1)),
    ]
    for same in ("at - INTERVAL '0-1' YEAR TO MONTH <= A.at", "at <= INTERVAL '1' MONTH + A.at"):
        assert len(matched(clause.format(same), EVENTS)) == 3
    with pytest.raises(QueryError, match="no fixed length"):
        matched(clause.format("at - A.at < INTERVAL '1' MONTH"), EVENTS)
    with pytest.raises(QueryError, match="no fixed length"):
        matched("ORDER BY at PATTERN (A) WITHIN INTERVAL '1' YEAR DEFINE A AS true", EVENTS)


@pytest.mark.parametrize(
    "interval",
    [
        "INTERVAL '1 12:00:00' DAY TO SECOND",
        "INTERVAL '1 12:00:00.0' DAY(3) TO SECOND(3)",
        "INTERVAL '36' HOUR",
        "INTERVAL 36 HOURS",
        "INTERVAL '1 day, 12 hours'",
        "INTERVAL '36:00' HOUR TO MINUTE",
        "INTERVAL '36' HOUR(3)",
    ],
)
def test_intervals(interval: str) -> None:
    table = pa.table({"at": [datetime(2024, 1, 1), datetime(2024, 1, 2, 12), datetime(2024, 1, 4, 1)]})
    clause = f"ORDER BY at MEASURES count(*) AS n PATTERN (A B*) DEFINE B AS at - PREV(at) <= {interval}"
    assert matched(clause, table) == [(2,), (1,)]


def test_the_time_of_the_query() -> None:
    clause = "ORDER BY at MEASURES count(*) AS n PATTERN (A+) DEFINE A AS at < CURRENT_TIMESTAMP AND at < current_date"
    assert matched(clause, EVENTS, "flink") == [(4,)]


def test_rowtime_of_a_match() -> None:
    clause = "ORDER BY at MEASURES MATCH_ROWTIME(at) AS t, MATCH_ROWTIME() AS u PATTERN (A B) DEFINE A AS true"
    assert matched(clause, EVENTS, "flink") == [(DAYS[1], DAYS[1]), (DAYS[3], DAYS[3])]
    with pytest.raises(QueryError, match="MATCH_ROWTIME takes"):
        matched("ORDER BY at MEASURES MATCH_ROWTIME(A.at) AS t PATTERN (A) DEFINE A AS true", EVENTS)


def test_sums_of_labels_with_unknown_values() -> None:
    prices = [10, 10, None, None, 3, 3, 3, 3, 2]
    table = pa.table({"id": list(range(1, 10)), "name": list("azbcdcccc"), "price": prices})
    clause = """ORDER BY id MEASURES sum(A.price) AS s, count(A.id) AS a, count(A.price) AS p, count(*) AS n,
    count(price) AS m, LAST(id) AS e PATTERN (A+ C) DEFINE A AS sum(A.price) < 30, C AS C.name = 'c'"""
    assert matched(clause, table, "flink") == [(29, 7, 5, 8, 6, 8)]


def test_averages_of_whole_numbers_in_flink() -> None:
    clause = "ORDER BY id MEASURES avg(A.value) AS a, count(*) AS n PATTERN (A+ B) DEFINE A AS avg(A.value) < 3"
    assert matched(clause, values(1, 4, 2, 6, 9), "flink") == [(2, 4)]
    assert matched(clause, values(1, 4, 2, 6, 9), "trino") == [(pytest.approx(7 / 3), 4)]
    assert matched(clause, values(1.0, 4.5), "flink") == [(1.0, 2)]


def test_what_bigquery_writes() -> None:
    clause = """ORDER BY id MEASURES min(id) began, max(id) ended, MATCH_ROW_NUMBER() AS n
    PATTERN (low+ | mid+ any_+) DEFINE low AS value < 3, mid AS value = 1, any_ AS value IS NOT NULL
    OPTIONS (use_longest_match = {})"""
    table = values(1, 2, 1, 5, 6, None)
    assert matched(clause.format("false"), table, "bigquery") == [(1, 3, 3)]
    assert matched(clause.format("true"), table, "bigquery") == [(1, 5, 5)]
    overlapping = clause.replace("PATTERN", "AFTER MATCH SKIP TO NEXT ROW PATTERN").format("true")
    assert matched(overlapping, table, "bigquery") == [(1, 5, 5), (2, 3, 2), (3, 5, 3)]
    shortest = "ORDER BY id MEASURES count(*) AS n PATTERN (a |) DEFINE a AS value > 5"
    assert matched(shortest, table, "bigquery") == [(0,), (0,), (0,), (0,), (1,), (0,)]


def test_names_and_keys_of_snowflake() -> None:
    clause = "ORDER BY id MEASURES max(value) most, count(*) AS n PATTERN (a+) DEFINE a AS value > LAG(value, 1)"
    assert matched(clause, values(1, 2, 3), "snowflake") == [(3, 2)]
    with pytest.raises(QueryError, match="a measure without a name"):
        matched(clause, values(1, 2, 3), "oracle")


def test_arrays_and_their_nulls() -> None:
    clause = "ORDER BY id MEASURES array_agg(value) AS v, array_agg(B.value) AS w PATTERN (A+ B?) DEFINE B AS value > 5"
    assert matched(clause, values(1, None, 2), "trino") == [([1, None, 2], None)]
    assert matched(clause, values(1, None, 2), "spark") == [([1, 2], [])]


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        ("collect_set(value)", [4, 1, 3]),
        ("approx_count_distinct(value)", 3),
        ("median(value)", 3.5),
        ("percentile(value, 0.25)", 2.5),
        ("approx_percentile(value, 0.5)", 3),
        ("mode(value)", 4),
        ("first_value(value)", 4),
        ("last_value(id)", 5),
        ("corr(id, -id)", -1.0),
        ("covar_pop(id, id)", 2.0),
        ("covar_samp(id, id)", 2.5),
        ("skewness(id)", 0.0),
        ("kurtosis(id)", -1.3),
        ("bit_or(id)", 7),
        ("bit_xor(id)", 1),
        ("listagg(value, '-')", "4-1-3-4"),
        ("count(DISTINCT value)", 3),
    ],
)
def test_aggregates(aggregate: str, expected: Any) -> None:
    clause = f"ORDER BY id MEASURES {aggregate} AS a PATTERN (A+) DEFINE A AS true"
    ((found,),) = matched(clause, values(4, 1, None, 3, 4), "spark")
    assert found == (pytest.approx(expected) if isinstance(expected, float) else expected)


def test_averages_of_decimals_are_decimals() -> None:
    table = pa.table({"id": [1, 2, 3], "p": [Decimal("10.10"), Decimal("10.20"), Decimal("10.30")]})
    ((mean,),) = matched("ORDER BY id MEASURES avg(p) AS a PATTERN (A+) DEFINE A AS true", table)
    assert isinstance(mean, Decimal)
    assert mean == Decimal("10.2")


@pytest.mark.parametrize(
    ("clause", "dialect", "code", "marked"),
    [
        ("MEASURES count(DISTINCT value) AS m PATTERN (A) DEFINE A AS true", "trino", "distinct", "count"),
        ("MEASURES LAST(DISTINCT value) AS m PATTERN (A) DEFINE A AS true", "spark", "distinct", "LAST"),
        (
            "MEASURES max(value) FILTER (WHERE true) AS m PATTERN (A) DEFINE A AS true",
            "trino",
            "aggregate-filter",
            "FILTER",
        ),
        ("MEASURES max(value) OVER () AS m PATTERN (A) DEFINE A AS true", "trino", "window-function", "OVER"),
        ("MEASURES lower(value ORDER BY id) AS m PATTERN (A) DEFINE A AS true", "trino", "aggregate-order", "ORDER"),
        ("MEASURES lower(A.*) AS m PATTERN (A) DEFINE A AS true", "trino", "star", "A.*"),
        ("MEASURES min(A.*) AS m PATTERN (A) DEFINE A AS true", "trino", "star", "A.*"),
        ("MEASURES count(X.*) AS m PATTERN (A) DEFINE A AS true", "trino", "unknown-label", "X"),
        ("MEASURES PREV() AS m PATTERN (A) DEFINE A AS true", "trino", "arguments", "PREV()"),
        ("MEASURES PREV(value, 'x') AS m PATTERN (A) DEFINE A AS true", "trino", "navigation-offset", "'x'"),
        (
            "MEASURES PREV(value, 3000000000) AS m PATTERN (A) DEFINE A AS true",
            "trino",
            "navigation-offset",
            "3000000000",
        ),
        ("MEASURES PREV(LAST('x')) AS m PATTERN (A) DEFINE A AS true", "trino", "navigation-argument", "LAST('x')"),
        (
            "MEASURES LAST(A.value + length(CLASSIFIER())) AS m PATTERN (A) DEFINE A AS true",
            "trino",
            "two-labels",
            None,
        ),
        ("MEASURES FINAL MATCH_NUMBER() AS m PATTERN (A) DEFINE A AS true", "trino", "processing-mode", "MATCH_NUMBER"),
        ("MEASURES MATCH_NUMBER(A) AS m PATTERN (A) DEFINE A AS true", "trino", "arguments", "MATCH_NUMBER(A)"),
        ("MEASURES CLASSIFIER(A.value) AS m PATTERN (A) DEFINE A AS true", "trino", "arguments", "A.value"),
        ('MEASURES "LAST"(value) AS m PATTERN (A) DEFINE A AS true', "trino", "measure-name", '"LAST"'),
        ("PARTITION BY sum(id) PATTERN (A) DEFINE A AS true", "trino", "not-a-column", "sum(id)"),
        ("ORDER BY PREV(id) PATTERN (A) DEFINE A AS true", "trino", "not-a-column", "PREV(id)"),
        ("PATTERN (A{0}) DEFINE A AS true", "trino", "quantifier-range", "{0}"),
        ("PATTERN (A{,0}) DEFINE A AS true", "trino", "quantifier-range", "{,0}"),
        ("PATTERN (A{3000000000,}) DEFINE A AS true", "trino", "quantifier-range", "{3000000000,}"),
        ('PATTERN (a) DEFINE "a" AS true', "trino", "unknown-label", '"a"'),
        ('PATTERN (A "a") DEFINE A AS true, a AS false', "trino", "label-defined-twice", "a"),
        ("PATTERN (A B) SUBSET S = (A), S = (B) DEFINE A AS true", "trino", "duplicate-label", "S"),
        ("PATTERN (A |) DEFINE A AS true", "trino", "syntax", ")"),
        ("PATTERN (A) DEFINE A AS A.value", "trino", "types", None),
        ("MEASURES transform(array_agg(value), x -> x + 1) AS m PATTERN (A) DEFINE A AS true", "spark", None, None),
    ],
)
def test_what_is_wrong_is_refused(clause: str, dialect: str, code: str | None, marked: str | None) -> None:
    with pytest.raises(QueryError) as caught:
        matched(clause, values(1, 2), dialect)
    assert code is None or caught.value.code == code
    text, start, end = caught.value.text, caught.value.start, caught.value.end
    assert text is not None
    assert marked is None or text[start:end] == marked


def test_labels_with_the_signs_of_anchors() -> None:
    clause = 'PARTITION BY id AFTER MATCH SKIP TO LAST "^" PATTERN (A B* "$") SUBSET "^" = (A, "$") DEFINE "$" AS true'
    assert bound(clause, values(1)).skip_labels == {"A", "$"}


def test_a_statement_needs_a_table() -> None:
    from cepheid.runners.sql.statement import first_clause, refuse_window_patterns

    with pytest.raises(QueryError, match="without a table"):
        first_clause("MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS true)", "spark")
    with pytest.raises(CepheidError, match="in a recursive query"):
        first_clause(
            "WITH RECURSIVE t AS (SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS true)) SELECT 1", "spark"
        )
    with pytest.raises(QueryError, match="in a window"):
        refuse_window_patterns("SELECT c OVER (ROWS UNBOUNDED PRECEDING PATTERN (A+) DEFINE A AS true) FROM t")
    text = "SELECT * FROM VALUES (1, 2), (3, 4) AS t(a, b) MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS true)"
    found = first_clause(text, "spark")
    assert found is not None
    assert text[found.source : found.keyword] == "VALUES (1, 2), (3, 4) AS t(a, b) "


def test_dates_and_lengths() -> None:
    table = pa.table({"d": [date(2024, 1, 1), date(2024, 1, 3)], "id": [1, 2]})
    clause = (
        "ORDER BY d MEASURES LAST(d) - FIRST(d) AS took, d + INTERVAL '1' YEAR AS next PATTERN (A B) DEFINE A AS true"
    )
    assert matched(clause, table) == [(timedelta(days=2), date(2025, 1, 3))]

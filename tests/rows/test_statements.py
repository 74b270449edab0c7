"""Clauses as other systems' manuals explain them, with the rows they give."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from cepheid.engine.search.row_pattern.conditions import prepare
from cepheid.engine.search.row_pattern.run import arranged
from cepheid.errors import DataError, QueryError
from rows.row_cases import bound, matched, values

LABELLED = "ORDER BY id MEASURES match_number() AS match, LAST(value) AS val, classifier() AS label ALL ROWS PER MATCH"
FALLING = "DEFINE B AS B.value < PREV(B.value), C AS C.value > PREV(C.value)"


def test_v_shape() -> None:
    found = matched(f"{LABELLED} PATTERN (A B+ C+) {FALLING}", values(90, 80, 70, 80, 90, 50, 40, 60))
    assert [row[0] for row in found] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [(row[1], row[3]) for row in found[:5]] == list(zip([1] * 5, "ABBCC", strict=True))
    assert [(row[1], row[3]) for row in found[5:]] == list(zip([2] * 3, "ABC", strict=True))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("B*", [(1, 1, None), (2, 2, "B"), (3, 2, "B"), (4, 2, "B")]),
        ("B*?", [(1, 1, None), (2, 2, None), (3, 3, None), (4, 4, None)]),
        ("B+", [(2, 1, "B"), (3, 1, "B"), (4, 1, "B")]),
        ("B+?", [(2, 1, "B"), (3, 2, "B"), (4, 3, "B")]),
        ("B?", [(1, 1, None), (2, 2, "B"), (3, 3, "B"), (4, 4, "B")]),
        ("B{2,}", [(2, 1, "B"), (3, 1, "B"), (4, 1, "B")]),
        ("B{2,}?", [(2, 1, "B"), (3, 1, "B")]),
        ("B{,2}", [(1, 1, None), (2, 2, "B"), (3, 2, "B"), (4, 3, "B")]),
        ("B{5}", []),
        ("^A", [(1, 1, "A")]),
        ("A^", []),
        ("A$", [(4, 1, "A")]),
        ("() | A", [(1, 1, None), (2, 2, None), (3, 3, None), (4, 4, None)]),
        ("(()|B)*", [(1, 1, None), (2, 2, None), (3, 3, None), (4, 4, None)]),
        ("^+ | B", [(1, 1, None), (2, 2, "B"), (3, 3, "B"), (4, 4, "B")]),
        ("B A $+", [(3, 1, "B"), (4, 1, "A")]),
    ],
)
def test_patterns(pattern: str, expected: list[tuple[int, int, str | None]]) -> None:
    found = matched(f"{LABELLED} PATTERN ({pattern}) DEFINE {_defined(pattern)}", values(90, 80, 70, 70))
    assert [(row[0], row[1], row[3]) for row in found] == expected


def _defined(pattern: str) -> str:
    return "B AS B.value <= PREV(B.value)" if "B" in pattern else "A AS true"


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("FIRST(B.value)", [None, None, 3, 3, 3]),
        ("RUNNING FIRST(B.value)", [None, None, 3, 3, 3]),
        ("FINAL FIRST(B.value)", [3, 3, 3, 3, 3]),
        ("FIRST(value, 2)", [None, None, 3, 3, 3]),
        ("FIRST(B.value, 1)", [None, None, None, 4, 4]),
        ("NEXT(FIRST(B.value))", [None, None, 4, 4, 4]),
        ("PREV(FIRST(B.value, 1), 2)", [None, None, None, 2, 2]),
        ("PREV(FINAL FIRST(B.value))", [2, 2, 2, 2, 2]),
        ("FIRST(CLASSIFIER(B))", [None, None, "B", "B", "B"]),
        ("FIRST(CLASSIFIER(U), 1)", [None, None, None, "B", "B"]),
        ("FIRST(B.value) IS NULL", [True, True, False, False, False]),
        ("coalesce(FIRST(C.value), -1)", [-1, -1, -1, -1, 5]),
    ],
)
def test_running_first_is_null_until_it_is_reached(measure: str, expected: list[object]) -> None:
    clause = f"ORDER BY id MEASURES {measure} AS m ALL ROWS PER MATCH PATTERN (A+ B+ C) SUBSET U = (B, C)"
    found = matched(f"{clause} DEFINE A AS value < 3, B AS value < 5", values(1, 2, 3, 4, 5))
    assert [row[1] for row in found] == expected
    only = matched(
        f"{clause.replace('ALL ROWS', 'ONE ROW')} DEFINE A AS value < 3, B AS value < 5", values(1, 2, 3, 4, 5)
    )
    assert [row[0] for row in only] == [expected[-1]]  # at the last row everything has been reached


def test_exclusions_leave_rows_out_of_the_output_alone() -> None:
    found = matched(f"{LABELLED} PATTERN (A {{- B+ -}} C+) {FALLING}", values(90, 80, 70, 80, 90, 50, 40, 60))
    assert [row[0] for row in found] == [1, 4, 5, 6, 8]


def test_permute_prefers_the_order_it_is_written_in() -> None:
    clause = f"{LABELLED} PATTERN (PERMUTE(B, C)) DEFINE B AS value < PREV(value), C AS value < PREV(value)"
    assert [(row[0], row[3]) for row in matched(clause, values(90, 80, 70, 70))] == [(2, "B"), (3, "C")]


@pytest.mark.parametrize(
    ("rows", "pattern", "expected"),
    [
        ("ONE ROW PER MATCH", "B*", [(1, None), (2, 70), (3, None)]),
        ("", "B+", [(1, 70)]),
        ("ALL ROWS PER MATCH", "B*", [(1, None), (2, 80), (2, 70), (3, None)]),
        ("ALL ROWS PER MATCH OMIT EMPTY MATCHES", "B*", [(2, 80), (2, 70)]),
        ("ALL ROWS PER MATCH WITH UNMATCHED ROWS", "B+", [(None, None), (1, 80), (1, 70), (None, None)]),
    ],
)
def test_rows_per_match(rows: str, pattern: str, expected: list[tuple[int | None, int | None]]) -> None:
    measures = "ORDER BY id MEASURES match_number() AS match, LAST(value) AS val"
    found = matched(f"{measures} {rows} PATTERN ({pattern}) DEFINE B AS value < PREV(value)", values(90, 80, 70, 70))
    assert [row[-3:-1] if rows.startswith("ALL") else row for row in found] == expected


@pytest.mark.parametrize(
    ("skip", "expected"),
    [
        ("PAST LAST ROW", [1, 2, 3, 4]),
        ("TO NEXT ROW", [1, 2, 3, 4, 2, 3, 4, 4, 5, 6]),
        ("TO FIRST C", [1, 2, 3, 4, 4, 5, 6]),
        ("TO LAST B", [1, 2, 3, 4, 4, 5, 6]),
        ("TO B", [1, 2, 3, 4, 4, 5, 6]),
        ("TO U", [1, 2, 3, 4, 4, 5, 6]),
    ],
)
def test_where_the_search_goes_on(skip: str, expected: list[int]) -> None:
    clause = f"{LABELLED} AFTER MATCH SKIP {skip} PATTERN (A B+ C+ D?) SUBSET U = (C, D) {FALLING}, D AS false"
    assert [row[0] for row in matched(clause, values(90, 80, 70, 80, 70, 80))] == expected


@pytest.mark.parametrize("label", ["A", "D"])
def test_skips_that_cannot_be(label: str) -> None:
    clause = f"{LABELLED} AFTER MATCH SKIP TO {label} PATTERN (A B+ C+ D?) {FALLING}, D AS false"
    with pytest.raises(DataError, match="AFTER MATCH SKIP"):
        matched(clause, values(90, 80, 70, 80, 70, 80))


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("value", [10, 20, 30]),
        ("FINAL LAST(value)", [30, 30, 30]),
        ("FIRST(value)", [10, 10, 10]),
        ("FINAL LAST(value, 2)", [10, 10, 10]),
        ("FIRST(value, 2)", [None, None, 30]),
        ("LAST(value, 10)", [None, None, None]),
        ("PREV(value)", [None, 10, 20]),
        ("NEXT(value)", [20, 30, None]),
        ("NEXT(FIRST(value), 2)", [30, 30, 30]),
        ("PREV(LAST(value, 1), 1)", [None, None, 10]),
        ("NEXT(CLASSIFIER())", ["A", "A", None]),
        ("sum(value)", [10, 30, 60]),
        ("FINAL sum(value) - sum(value)", [50, 30, 0]),
        ("array_agg(lower(CLASSIFIER()))", [["a"], ["a", "a"], ["a", "a", "a"]]),
        ("count(A.*) * 100 + FINAL count(*)", [103, 203, 303]),
        ("max_by(id, -value)", [1, 1, 1]),
        ("avg(value)", [10.0, 15.0, 20.0]),
        ("lower(LAST(CLASSIFIER())) || '_label'", ["a_label"] * 3),
        ("CAST(value AS varchar)", ["10", "20", "30"]),
        ("value / 20", [0, 1, 1]),
    ],
)
def test_measures(measure: str, expected: list[object]) -> None:
    clause = f"ORDER BY id MEASURES {measure} AS measure ALL ROWS PER MATCH PATTERN (A+) DEFINE A AS true"
    assert [row[1] for row in matched(clause, values(10, 20, 30))] == expected


def test_a_condition_on_rows_with_another_label() -> None:
    clause = "ORDER BY value MEASURES CLASSIFIER() AS label ALL ROWS PER MATCH PATTERN ((A | B)* X)"
    table = pa.table({"value": [1, 2, 3, 4, 5, 6]})
    condition = "value = PREV(LAST(A.value), 3) + FIRST(A.value) + PREV(LAST(B.value), 2)"
    assert [row[1] for row in matched(f"{clause} DEFINE X AS {condition}", table)] == list("BAAABX")


def test_quoted_labels_keep_their_case() -> None:
    clause = 'ORDER BY id MEASURES CLASSIFIER() AS label ALL ROWS PER MATCH PATTERN (a "b"+ C+)'
    define = 'DEFINE "b" AS "b".value < PREV("b".value), C AS C.value > PREV(C.value)'
    for dialect in ("trino", "spark"):
        assert [row[1] for row in matched(f"{clause} {define}", values(90, 80, 70, 80), dialect)] == list("AbbC")


def test_sums_in_balance() -> None:
    clause = """ORDER BY id MEASURES CLASSIFIER() AS label, sum(A.value) AS a, sum(B.value) AS b ALL ROWS PER MATCH
    PATTERN ((A | B)*) DEFINE A AS sum(A.value) - A.value <= sum(B.value)"""
    found = matched(clause, values(4, 6, 10, 1, 1, 1, 10, 5, 1))
    assert "".join(row[1] for row in found) == "BABAAAABA"
    assert found[-1][2:4] == (20, 19)


def test_columns_of_the_result() -> None:
    table = pa.table({"id": [1], "part": ["p"], "value": [9]})
    clause = "PARTITION BY part ORDER BY id MEASURES CLASSIFIER() AS label {} PATTERN (A) DEFINE A AS true"
    assert bound(clause.format("ONE ROW PER MATCH"), table).output_columns == ("part", "label")
    assert bound(clause.format("ALL ROWS PER MATCH"), table).output_columns == ("part", "id", "label", "value")


def test_orders_and_nulls() -> None:
    table = pa.table({"a": [2, None, 1, 2], "b": [1.5, 0.5, None, 2.5], "n": [0, 1, 2, 3]})
    for order, expected in (
        ("a, b DESC", [1, 2, 3, 0]),
        ("a DESC NULLS FIRST, b", [1, 0, 3, 2]),
        ("a NULLS LAST, b", [2, 0, 3, 1]),
    ):
        clause = f"ORDER BY {order} MEASURES array_agg(n) AS seen PATTERN (A+) DEFINE A AS true"
        assert matched(clause, table, "spark") == [(expected,)]


def test_sessions_of_a_user() -> None:
    """A new session begins after half an hour without a click."""
    minutes = [0, 10, 50, 55, 200]
    table = pa.table({"user": ["u"] * 5, "at": [datetime(2026, 1, 1 + m // 1440, m // 60, m % 60) for m in minutes]})
    clause = """PARTITION BY user ORDER BY at MEASURES FIRST(at) AS began, count(*) AS clicks
    PATTERN (A B*) DEFINE B AS at - PREV(at) < INTERVAL '30' MINUTE"""
    assert [row[2] for row in matched(clause, table, "spark")] == [2, 2, 1]


def test_a_window() -> None:
    """Flink's WITHIN: from the first to the last row less than so long."""
    days = [date(2026, 1, day) for day in (1, 2, 5, 6, 7)]
    table = pa.table({"day": days, "price": [20, 17, 9, 5, 30]})
    clause = """ORDER BY day MEASURES A.price - C.price AS fall PATTERN (A B* C) WITHIN INTERVAL '3' DAY
    DEFINE B AS B.price > A.price - 10, C AS C.price < A.price - 10"""
    assert matched(clause, table, "flink") == []
    assert matched(clause.replace("'3'", "'5'"), table, "flink") == [(11,)]


def test_decimals_on_the_way() -> None:
    prices = [Decimal(text) for text in ("10.50", "10.49", "10.40", "10.41", "3.00")]
    table = pa.table({"id": [1, 2, 3, 4, 5], "price": pa.array(prices, pa.decimal128(10, 2))})
    clause = """ORDER BY id MEASURES min(price) AS low, sum(DOWN.price) AS total PATTERN (A DOWN+ UP)
    DEFINE DOWN AS price < LAST(price, 1) AND price > 10, UP AS price > min(DOWN.price)"""
    assert matched(clause, table) == [(Decimal("10.40"), Decimal("20.89"))]
    assert not prepare(bound(clause, table), arranged(bound(clause, table), table)).predicate.as_python


def test_a_result_needs_a_column() -> None:
    with pytest.raises(QueryError, match="no column"):
        matched("PATTERN (A) DEFINE A AS true", values(1))
    assert matched("MEASURES count(*) AS n PATTERN (A+) DEFINE A AS true", values(1, 2)) == [(2,)]

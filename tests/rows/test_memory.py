"""What led to nothing is remembered under what the conditions ahead read: the same answers, in polynomial time."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.engine.search.row_pattern import run
from rows.row_cases import by_the_book, by_the_engine, outcome, values
from strategies.rows import ON_PATHS, ON_ROWS, clauses, tables

# Without a memory the first six take 2 to the number of rows, the others its third or fourth power.
SHAPES = (
    "PATTERN ((A+)+ B) DEFINE B AS FIRST(A.value) < 0",
    "PATTERN ((A*)* B) DEFINE B AS FIRST(A.value) < 0",
    "PATTERN ((A | B)+ C) DEFINE C AS count(A.value) < 0",
    "PATTERN ((A | B)+ C) DEFINE C AS PREV(CLASSIFIER()) = 'Z'",
    "PATTERN ((A | B)+ C) DEFINE C AS max(A.value) < 0",
    "PATTERN ((A | B | (A B))+ C) DEFINE C AS LAST(A.value, 1) < 0",
    "PATTERN (A+ C+ B) DEFINE B AS LAST(A.value, 1) < 0",
    "PATTERN (A* C* D* B) DEFINE B AS count(A.value) < 0",
    "PATTERN (A+ B) DEFINE B AS MATCH_NUMBER() < 0",
    # These run as Python.
    "PATTERN ((A | B)+ C) DEFINE C AS array_agg(CLASSIFIER()) = ARRAY['Z']",
    "PATTERN ((A+)+ B) DEFINE B AS array_agg(A.value) = ARRAY[-1]",
    "PATTERN ((A | B)+ C) DEFINE C AS CAST(LAST(A.value) AS varchar) || CLASSIFIER() = 'none'",
)
# Conditions in Python, and counts and sums that are compared with constants.
MORE = (
    "array_agg(CLASSIFIER()) <> ARRAY['A', 'B']",
    "array_agg(CLASSIFIER()) = ARRAY['B', 'A', 'B']",
    "array_agg(B.value) = ARRAY[1, 2]",
    "upper(LAST(A.kind, 1)) = 'X'",
    "concat(FIRST(B.kind), PREV(CLASSIFIER())) <> 'xA'",
    "count(*) < 3",
    "count(B.value) IN (1, 3)",
    "sum(A.value) BETWEEN 2 AND 5",
    "sum(value) <> 4",
)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory is used from the second failure on."""
    monkeypatch.setattr(run, "FAILURES", 1)
    monkeypatch.setattr(run, "FAILURES_PER_ROW", 0)


DISTINCT = ("count(DISTINCT A.value) <> {}", "sum(DISTINCT value) > {}")
DISTINCT += ("count(DISTINCT kind) + count(DISTINCT B.kind) > {}",)


@pytest.mark.usefixtures("always")
@given(
    clauses((*ON_ROWS[:3], *ON_PATHS, "LAST(A.value, 2) < value", "sum(B.value) < 5", "avg(value) <= 2")), tables(12)
)
def test_answers_with_a_memory(clause: str, table: pa.Table) -> None:
    assert outcome(by_the_engine, clause, table) == outcome(by_the_book, clause, table)


@pytest.mark.usefixtures("always")
@given(clauses((*ON_ROWS[:2], *MORE)), tables(12))
def test_answers_with_a_memory_of_conditions_in_python(clause: str, table: pa.Table) -> None:
    assert outcome(by_the_engine, clause, table) == outcome(by_the_book, clause, table)


@pytest.mark.some(3)
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_with_a_memory(shape: str) -> None:
    table = values(*(number * 7 % 5 for number in range(9)))
    for clause in (shape, shape.replace("< 0", "< 2").replace("'Z'", "'B'")):
        clause = f"ORDER BY id MEASURES count(*) AS n AFTER MATCH SKIP TO NEXT ROW {clause}"
        assert by_the_engine(clause, table) == by_the_book(clause, table)


@pytest.mark.usefixtures("always")
@given(tables(12), st.sampled_from(DISTINCT), st.integers(0, 3), st.sampled_from(("", "ALL ROWS PER MATCH")))
def test_distinct_values_with_a_memory(table: pa.Table, condition: str, number: int, rows: str) -> None:
    shape = f"PATTERN ((A | B)+ C) DEFINE A AS value > 0, C AS {condition.format(number)}"
    measures = "count(*) AS n, count(DISTINCT kind) AS k, count(DISTINCT A.value) AS v, collect_set(kind) AS s"
    clause = f"ORDER BY id MEASURES {measures} {rows} AFTER MATCH SKIP TO NEXT ROW {shape}"
    assert by_the_engine(clause, table, "spark") == by_the_book(clause, table, "spark")


@pytest.mark.parametrize("shape", SHAPES)
def test_searches_end(shape: str) -> None:
    table = values(*(number * 7 % 5 for number in range(60)))
    assert by_the_engine(f"ORDER BY id MEASURES count(*) AS n {shape}", table) == []

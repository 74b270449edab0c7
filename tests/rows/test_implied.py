"""Windows, first rows and repetitions that a clause implies: the same answers, without searching in vain."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.engine.search.row_pattern.implied import implied_window, on_start, without_start_conditions
from rows.row_cases import bound, by_the_book, by_the_engine, matched, values
from strategies.rows import QUANTIFIERS

TABLE = pa.table({"id": [1], "t": pa.array([1], pa.timestamp("us", "UTC")), "value": [1]})


@pytest.mark.parametrize(
    ("order", "pattern", "condition", "window"),
    [
        ("id", "R Z* M", "M.id - R.id <= 30", 31),
        ("id", "R Z* M", "id - FIRST(id) < 30 AND value > 1", 30),
        ("id", "R Z* M", "R.id + 30 >= M.id", 31),
        ("id", "R Z* M", "M.id < 30 + FIRST(R.id)", 30),
        ("id", "R Z* M", "M.id BETWEEN R.id AND R.id + 5", 6),
        ("t", "R Z* M", "M.t - R.t <= INTERVAL '1' SECOND", timedelta(seconds=1, microseconds=1)),
        ("id", "R+ Z* M", "M.id - FIRST(R.id) <= 30", 31),
        ("id", "R+ Z* M", "M.id - R.id <= 30", None),  # the last R
        ("id", "R Z* M?", "M.id - R.id <= 30", None),  # a match may end with another row
        ("id", "Z? R M", "M.id - R.id <= 30", None),  # or begin with one
        ("id DESC", "R Z* M", "M.id - R.id <= 30", None),
        ("value", "R Z* M", "M.id - R.id <= 30", None),
        ("id", "R Z* M", "R.id - M.id <= 30", None),
        ("id", "R Z* M", "M.id - R.id <= 30 OR value = 1", None),
        ("id", "R Z* M", "PREV(M.id) - R.id <= 30", None),
    ],
)
def test_windows(order: str, pattern: str, condition: str, window: int | timedelta | None) -> None:
    clause = bound(f"ORDER BY {order} MEASURES R.id AS r PATTERN ({pattern}) DEFINE M AS {condition}", TABLE)
    assert implied_window(clause) == window


@pytest.mark.parametrize(
    ("pattern", "condition", "hoisted"),
    [
        ("A+ B", "FIRST(value) < 0", True),
        ("A+ B", "FIRST(A.value) < PREV(FIRST(A.value))", True),
        ("A C* B", "A.value < 0", True),
        ("A+ B", "A.value < 0", False),  # the last A
        ("A+ B?", "FIRST(value) < 0", False),  # a match without B
        ("A+ B", "FIRST(value, 1) < 0", False),
        ("A+ B", "FIRST(value) < value", False),
        ("A+ B", "FIRST(value) < MATCH_NUMBER()", False),
    ],
)
def test_conditions_on_the_first_row(pattern: str, condition: str, hoisted: bool) -> None:
    clause = bound(f"ORDER BY id MEASURES A.id AS r PATTERN ({pattern}) DEFINE B AS {condition}", TABLE)
    assert len(on_start(clause)) == hoisted
    assert (without_start_conditions(clause).conditions != clause.conditions) == hoisted


@pytest.mark.parametrize("skip", ["TO NEXT ROW", "PAST LAST ROW"])
@pytest.mark.parametrize(
    "rest",
    [
        "PATTERN (R Z* B Z* M) DEFINE R AS value = 0, B AS value = 1, M AS value = 2 AND M.id - R.id <= 6",
        "PATTERN (R Z*? M) DEFINE M AS M.value > R.value AND M.id < R.id + 4",
        "PATTERN (A+ B) DEFINE B AS FIRST(value) = 1 AND value = 0",
        "PATTERN ((A | C)+? B) DEFINE A AS value > 0, B AS FIRST(value) <= 1 AND FIRST(A.value) IS NOT NULL",
        "PATTERN (A C* B) DEFINE B AS A.value = PREV(A.value) AND value > A.value",
    ],
)
def test_answers(rest: str, skip: str) -> None:
    value = [1, 0, 1, 2, 0, 0, 1, 2, 2, 0, 1, 1, 0, 2]
    table = pa.table({"id": np.cumsum([1, 0, 2, 1, 1, 3, 0, 1, 2, 2, 1, 0, 1, 4]), "value": value})
    clause = f"ORDER BY id, value MEASURES FIRST(id) AS b, LAST(id) AS e, count(*) AS n AFTER MATCH SKIP {skip} {rest}"
    assert matched(clause, table)


def test_a_time_that_is_null_is_no_error() -> None:
    table = pa.table({"id": pa.array([1, 2, None, 3]), "value": [0, 1, 2, 2]})
    rest = "PATTERN (R Z* M) DEFINE R AS value = 0, M AS value = 2 AND M.id - R.id <= 6"
    assert matched(f"ORDER BY id MEASURES LAST(id) AS e {rest}", table) == [(3,)]


parts = st.tuples(st.sampled_from("AAAB"), st.sampled_from(QUANTIFIERS)).map("".join)


@given(
    st.lists(parts, min_size=2, max_size=5),
    st.sampled_from(("value < 2", "value > LAST(A.value, 1) OR count(A.*) < 3")),
    st.sampled_from(("", "AFTER MATCH SKIP TO NEXT ROW")),
    st.lists(st.integers(0, 2), min_size=1, max_size=9),
)
def test_neighbours_that_repeat_one_label(repeated: list[str], condition: str, skip: str, numbers: list[int]) -> None:
    shape = f"PATTERN ({' '.join(repeated)} A?) DEFINE A AS {condition}"
    clause = f"ORDER BY id MEASURES FIRST(id) AS b, array_agg(CLASSIFIER()) AS l {skip} {shape}"
    table = values(*numbers)
    assert by_the_engine(clause, table) == by_the_book(clause, table)

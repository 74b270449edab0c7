"""Forms that people write: FILTER, no DEFINE, measures that name earlier ones."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import CepheidError
from cepheid.language import functions
from rows.row_cases import matched, values

TABLE = values(3, 1, 2, 5, 0, 4)


def test_aggregates_with_a_filter() -> None:
    measures = "sum(value) FILTER (WHERE value > 2) AS s, count(*) FILTER (WHERE value < 3) AS c, "
    measures += "count(B.*) FILTER (WHERE B.value = 5) AS b, FINAL max(value) FILTER (WHERE id < 3) AS m, "
    measures += "avg(B.value) FILTER (WHERE B.value > 9) AS none, count(DISTINCT value) FILTER (WHERE id > 1) AS d"
    assert matched(f"ORDER BY id MEASURES {measures} PATTERN (A B+)", TABLE, "spark") == [(12, 3, 1, 3, None, 5)]


def test_filters_in_conditions() -> None:
    condition = "B AS count(B.*) FILTER (WHERE B.value > 1) < 3"
    assert matched(f"ORDER BY id MEASURES LAST(id) AS e PATTERN (A B*) DEFINE {condition}", TABLE, "spark") == [
        (5,),
        (6,),
    ]


@pytest.mark.parametrize("define", ["", "DEFINE B AS true"])
def test_define_may_be_left_out(define: str) -> None:
    clause = f"ORDER BY id MEASURES FIRST(id) AS b, LAST(id) AS e PATTERN (A B{{2}}) {define}"
    assert matched(clause, TABLE) == [(1, 3), (4, 6)]


def test_measures_that_name_earlier_ones() -> None:
    measures = "sum(value) AS s, count(*) AS n, s / n AS mean, upper('x') AS id2, mean * 2 AS twice"
    assert matched(f"ORDER BY id MEASURES {measures} PATTERN (A B)", TABLE, "spark") == [
        (4, 2, 2.0, "X", 4.0),
        (7, 2, 3.5, "X", 7.0),
        (4, 2, 2.0, "X", 4.0),
    ]


def test_a_column_comes_before_a_measure_of_its_name() -> None:
    measures = "sum(A.value) AS part, value + 1 AS other"
    assert matched(f"ORDER BY id MEASURES {measures} PATTERN (A B B)", TABLE, "spark") == [(3, 3), (5, 5)]


def test_if_without_an_otherwise_and_like_with_its_own_escape() -> None:
    measures = "if(value > 2, value) AS i, 'a%' LIKE 'a!%' ESCAPE '!' AS y, 'ab' LIKE 'a!%' ESCAPE '!' AS n"
    assert matched(f"ORDER BY id MEASURES {measures} PATTERN (A)", values(3, 1), "spark") == [
        (3, True, False),
        (None, True, False),
    ]


def test_a_function_of_the_user_goes_first_and_gets_the_floats_it_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_USER", {})

    @cepheid.function
    def radians(x: float) -> float:
        return x if isinstance(x, float) else -1.0

    assert matched("ORDER BY id MEASURES radians(value) AS r PATTERN (A)", values(3, 1), "spark") == [(3.0,), (1.0,)]
    query = "PATTERN SEQ(* a) RETURN radians(a.value) AS r"
    assert cepheid.match(values(3, 1), query, type=None, time="id").column("r").to_pylist() == [3.0, 1.0]


@pytest.mark.parametrize(
    "condition",
    [
        "concat(LAST(A.id), LAST(B.value)) = '11'",
        "concat(LAST(A.id), '-', LAST(B.value) / 2) = '1-0.5'",
        "concat(A.id = 1, count(B.value)) = 'true1'",
        "concat_ws('-', LAST(A.id), LAST(B.value)) = '1-1'",
        "upper(concat(A.id, B.value, 'x')) = '11X'",
    ],
)
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_other_values_become_texts_in_conditions(condition: str, engine: str) -> None:
    clause = f"MATCH_RECOGNIZE (ORDER BY id MEASURES LAST(id) AS e PATTERN (A B) DEFINE B AS {condition})"
    assert cepheid.match(TABLE, clause, engine=engine).to_pylist() == [{"e": 2}]


@pytest.mark.parametrize("order", ["nothing", "nothing DESC, id", "id, nothing NULLS FIRST"])
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_column_without_values_orders_nothing(order: str, engine: str) -> None:
    table = TABLE.append_column("nothing", pa.nulls(len(TABLE)))
    measures = "LAST(id) AS e, max(nothing) AS most, min_by(id, nothing) AS least"
    clause = f"MATCH_RECOGNIZE (ORDER BY {order} MEASURES {measures} PATTERN (A B C))"
    expected = [{"e": end, "most": None, "least": None} for end in (3, 6)]
    assert cepheid.match(table, clause, engine=engine).to_pylist() == expected


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("ORDER BY pair MEASURES LAST(id) AS e", "rows cannot be ordered by struct"),
        ("ORDER BY id MEASURES max(pair) AS e", "MAX of struct"),
        ("ORDER BY id MEASURES min_by(id, pair) AS e", "MIN_BY of struct"),
    ],
)
def test_structs_have_no_order(clause: str, message: str) -> None:
    table = TABLE.append_column("pair", pa.array([{"x": 1}] * len(TABLE)))
    with pytest.raises(CepheidError, match=message):
        cepheid.match(table, f"MATCH_RECOGNIZE ({clause} PATTERN (A B))")

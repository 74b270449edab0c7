"""Forms that people write: FILTER, no DEFINE, measures that name earlier ones."""

from __future__ import annotations

import pytest

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

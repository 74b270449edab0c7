"""Answers written by hand that the drawn cases of `make test` are too few to give: each notices a change of an engine
(see tests/verification/mutate.py). The rows hold one value each; an answer is the value of `MEASURES` of each match.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.search.row_pattern import run
from cepheid.errors import QueryError
from cepheid.runners.stream.rows import RowStream
from rows.row_cases import bound

FROM_TO = "FIRST(id) AS begin, LAST(id) AS ended"
ANSWERS = [
    ("PATTERN (A+) DEFINE A AS NEXT(value) > value", FROM_TO, [1, 2, 1, 5, 3], [(1, 1), (3, 3)]),
    ("PATTERN (A+) DEFINE A AS NEXT(value, 2) > value", FROM_TO, [1, 2, 1, 5, 3], [(2, 3)]),
    ("PATTERN (A+) DEFINE A AS NEXT(value) IS NULL", FROM_TO, [7], [(1, 1)]),
    ("PATTERN (A+) DEFINE A AS PREV(value) < value", FROM_TO, [1, 2, 1, 5, 3], [(2, 2), (4, 4)]),
    ("PATTERN (A+) DEFINE A AS true", "var_pop(A.value) AS v, stddev_pop(A.value) AS s", [1, 3, 5, 7], [(5.0, 5**0.5)]),
    ("PATTERN (A+) DEFINE A AS true", "variance(A.value) AS v, stddev(A.value) AS s", [2, 6], [(8.0, 8**0.5)]),
]
# What failed from one first row need not fail from another.
BY_FIRST = [
    ("PATTERN (A+ C) DEFINE C AS value > FIRST(A.value)", [5, 1, 3], [(2, 3)]),
    ("PATTERN (A+ B+ C) DEFINE C AS value > FIRST(A.value)", [5, 4, 3, 1, 2, 1, 3], [(4, 7)]),
]
# The same of what aggregates in Python have seen.
BY_HISTORY = [
    ("PATTERN ((B | A)+ C) DEFINE C AS array_agg(B.value) = ARRAY[1, 2]", [2, 1, 2, 1], [(1, 4)]),
    ("PATTERN ((B | A)+ C) DEFINE C AS array_agg(A.value) = ARRAY[2, 1]", [2, 1, 2, 1], [(1, 4)]),
    ("PATTERN ((A | B)+ C) DEFINE C AS count(DISTINCT CLASSIFIER()) = 3", [1, 2, 3], [(1, 3)]),
    (
        "PATTERN ((A | B)+ C) DEFINE C AS min(DISTINCT A.value) = 2 OR array_agg(CLASSIFIER()) = ARRAY['Z']",
        [1, 2, 1, 2, 3],
        [(1, 5)],
    ),
]


def found(values: list[int], clause: str, measures: str, engine: str) -> list[tuple[Any, ...]]:
    table = pa.table({"id": range(1, len(values) + 1), "value": values})
    matches = cepheid.match(table, f"MATCH_RECOGNIZE (ORDER BY id MEASURES {measures} {clause})", engine=engine)
    return [tuple(row.values()) for row in matches.to_pylist()]


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize(("clause", "measures", "values", "expected"), ANSWERS)
def test_small_answers(clause: str, measures: str, values: list[int], expected: list[Any], engine: str) -> None:
    assert found(values, clause, measures, engine) == expected


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize(("clause", "values", "expected"), [*BY_FIRST, *BY_HISTORY])
def test_what_failed_is_remembered_with_what_conditions_read(
    clause: str, values: list[int], expected: list[Any], engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "FAILURES", 1)  # remembered from the second failure on
    monkeypatch.setattr(run, "FAILURES_PER_ROW", 0)
    assert found(values, clause, FROM_TO, engine) == expected


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("value", [2, 4, 3, 1]),
        ("value DESC", [1, 3, 2, 4]),
        ("value NULLS LAST", [3, 1, 2, 4]),
        ("value DESC NULLS FIRST", [2, 4, 1, 3]),
    ],
)
def test_rows_without_a_value_come_first_or_last(order: str, expected: list[int], engine: str) -> None:
    table = pa.table({"id": [1, 2, 3, 4], "value": pa.array([5, None, 3, None], pa.int64())})
    clause = f"ORDER BY {order}, id MEASURES array_agg(id) AS ids PATTERN (A+) DEFINE A AS true"
    assert cepheid.match(table, f"MATCH_RECOGNIZE ({clause})", engine=engine)["ids"].to_pylist() == [expected]


@pytest.mark.parametrize("function", ["sum", "avg"])
def test_texts_have_no_sum(function: str) -> None:
    table = pa.table({"id": [1, 2], "kind": ["1", "2"]})
    clause = f"MATCH_RECOGNIZE (ORDER BY id MEASURES {function}(A.kind) AS total PATTERN (A+) DEFINE A AS true)"
    with pytest.raises(QueryError, match="of string is not possible"):
        cepheid.match(table, clause)


def test_a_partition_whose_rows_are_gone_has_begun() -> None:
    schema = pa.schema({"id": pa.int64(), "key": pa.int64(), "value": pa.int64()})
    clause = "PARTITION BY key ORDER BY id MEASURES FIRST(id) AS begin PATTERN (^ A B) WITHIN 5 DEFINE B AS value = 2"
    stream = RowStream(bound(clause, schema.empty_table()), schema)
    begins: list[int] = []
    for at, key, value in ((1, 1, 1), (50, 2, 1), (51, 2, 2), (100, 1, 1), (101, 1, 2), (150, 2, 0)):
        begins += stream.send(pa.table({"id": [at], "key": [key], "value": [value]}, schema))["begin"].to_pylist()
    assert begins == [50]


def test_more_choices_than_there_is_room_for_at_first() -> None:
    """A choice for each row, of which none is marked yet: conditions say what would have to be remembered."""
    values = [1] * 1100 + [2]
    clause = "PATTERN ((A | C)* B) DEFINE B AS value = 2, C AS FIRST(A.value) < 5"
    assert found(values, clause, FROM_TO, "auto") == [(1, 1101)]

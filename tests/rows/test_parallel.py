"""Threads find what one search finds: partitions side by side, and one partition cut by time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.engine.kernels.compile import COMPILES
from cepheid.engine.search.row_pattern import parallel
from cepheid.engine.search.row_pattern.needed import needed_labels
from cepheid.engine.search.row_pattern.run import match_table
from cepheid.engine.values import compiled
from cepheid.errors import DataError
from cepheid.language.match_recognize.parse import parse_clause
from rows.row_cases import bound, by_the_book, by_the_engine, values
from strategies.rows import ON_PATHS, ON_ROWS, clauses, tables


@pytest.fixture(autouse=True)
def _small_pieces() -> Iterator[None]:
    before, parallel.PIECE = parallel.PIECE, 2
    yield
    parallel.PIECE = before


@pytest.mark.skipif(not COMPILES, reason="conditions are plain Python anyway")
def test_conditions_that_threads_call_too_often_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "MOST_CALLS", 3)
    table = pa.table({"t": range(40), "x": [number * 7 % 5 for number in range(40)]})
    clause = (
        "MATCH_RECOGNIZE (ORDER BY t MEASURES A.t AS a, LAST(B.t) AS b AFTER MATCH SKIP TO NEXT ROW "
        "PATTERN (A B+) WITHIN 9 DEFINE B AS B.x > A.x + 1 - 1)"
    )
    assert in_threads(clause, table, 2) == by_the_book(clause, table)


def in_threads(clause: str, table: pa.Table, threads: int) -> list[tuple[object, ...]]:
    found = match_table(bound(clause, table), table, threads)
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


@given(clauses(ON_ROWS + ON_PATHS), tables(), st.integers(2, 4))
def test_partitions_side_by_side(clause: str, table: pa.Table, threads: int) -> None:
    try:
        expected = by_the_book(clause, table)
    except DataError:
        return
    assert in_threads(clause, table, threads) == expected


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=40),
    st.sampled_from(["A+ B", "A B*? C", "A* B", "(A | B)+ C?", "A B? A", "(A | ())"]),
    st.sampled_from(["PAST LAST ROW", "TO NEXT ROW"]),
    st.integers(1, 8),
    st.sampled_from(["A AS value > 0", "B AS value < PREV(value), C AS value > A.value", "B AS sum(value) < 5"]),
)
def test_one_partition_cut_by_time(
    steps: list[tuple[int, int]], pattern: str, skip: str, window: int, define: str
) -> None:
    table = pa.table({"id": np.cumsum([step for step, _ in steps]), "value": [value for _, value in steps]})
    known = "".join(f" ({label}{{9}})??" for label in "ABC" if label not in pattern)
    clause = f"""ORDER BY id MEASURES count(*) AS n, MATCH_NUMBER() AS number, FIRST(id) AS began
    AFTER MATCH SKIP {skip} PATTERN ({pattern}{known}) WITHIN {window} DEFINE {define}"""
    assert in_threads(clause, table, 4) == by_the_book(clause, table)


def test_a_label_that_every_match_has() -> None:
    pattern = parse_clause("MATCH_RECOGNIZE (PATTERN (A* (B | C B) D{0,2} {- E -}+) DEFINE A AS true)").pattern
    assert needed_labels(pattern) == {"B", "E"}
    clause = "ORDER BY id MEASURES LAST(id) AS ended PATTERN (A X* B) WITHIN 4 DEFINE B AS value = 1"
    table = values(0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1)
    assert by_the_engine(clause, table) == by_the_book(clause, table) == [(7,), (14,)]

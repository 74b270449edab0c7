"""Matches whose window passes before they are complete: OPTIONS (output_partial = true)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import QueryError

CLAUSE = """MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts
  MEASURES MATCH_NUMBER() AS n, A.ts AS a, B.ts AS b, C.ts AS c, count(*) AS size
  {rows} AFTER MATCH SKIP TO NEXT ROW PATTERN (A X*? B X*? C) WITHIN 10
  DEFINE A AS kind = 'a', B AS kind = 'b', C AS kind = 'c' OPTIONS (output_partial = true))"""


def table(text: str) -> pa.Table:
    """Rows such as `a1 b5`."""
    words = text.split()
    return pa.table(
        {"ts": [int(word[1:]) for word in words], "kind": [word[0] for word in words], "k": [1] * len(words)}
    )


def found(rows: pa.Table, engine: str = "auto") -> list[tuple[Any, ...]]:
    matched = cepheid.match(rows, CLAUSE.format(rows=""), engine=engine)
    return [tuple(row.values())[1:] for row in matched.to_pylist()]


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("a1 b2 c3", [(1, 1, 2, 3, 3)]),
        ("a1 z2 b3 z4 z20", [(None, 1, 3, None, 4)]),
        ("a1 z2 b3 z4", [(None, 1, 3, None, 4)]),
        ("a1 b2 a5 c12 b13 z30", [(None, 1, 2, None, 3), (None, 5, 13, None, 3)]),
        ("a1 b2 c20 a21 b22 c23", [(None, 1, 2, None, 2), (1, 21, 22, 23, 3)]),
        ("b1 c2", []),
    ],
)
def test_what_times_out_is_reported(rows: str, expected: list[Any], engine: str) -> None:
    assert found(table(rows), engine) == expected


def test_rows_that_do_not_fit_are_no_partial_match() -> None:
    clause = (
        "MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n PATTERN (A B C) WITHIN 10 "
        "DEFINE A AS kind = 'a', B AS kind = 'b', C AS kind = 'c' OPTIONS (output_partial = true))"
    )
    assert cepheid.match(table("a1 b2 z3 z20"), clause).num_rows == 0
    assert cepheid.match(table("a1 b2 c20"), clause)["n"].to_pylist() == [2]
    repeated = clause.replace("A B C", "A B{3} C")
    for engine in ("auto", "reference"):
        assert cepheid.match(table("a1 b2 b3"), repeated, engine=engine)["n"].to_pylist() == [3]


@pytest.mark.parametrize("cut", range(6))
def test_a_live_query_reports_it_when_the_window_has_passed(cut: int) -> None:
    rows = table("a1 b2 z3 a9 c30")
    live = cepheid.live(CLAUSE.format(rows=""), rows.schema)
    parts = [live.send(rows.slice(0, cut)), live.send(rows.slice(cut)), live.finish()]
    assert [tuple(row.values())[1:] for part in parts for row in part.to_pylist()] == found(rows)
    live = cepheid.live(CLAUSE.format(rows=""), rows.schema)
    assert live.send(rows.slice(0, 4)).num_rows == 0
    assert live.advance(9).num_rows == 0
    assert live.advance(11)["a"].to_pylist() == [1]


def test_all_rows_of_a_partial_match() -> None:
    matched = cepheid.match(table("a1 b2 z3 z20"), CLAUSE.format(rows="ALL ROWS PER MATCH"))
    assert [(row["ts"], row["n"], row["size"]) for row in matched.to_pylist()] == [
        (1, None, 1),
        (2, None, 2),
        (3, None, 3),
    ]
    assert cepheid.match(table("a1 b2 z3 z20"), CLAUSE.format(rows=""), output="count") == 1


@pytest.mark.parametrize(("rows", "within"), [("", ""), ("ALL ROWS PER MATCH WITH UNMATCHED ROWS", "WITHIN 5")])
def test_it_needs_a_window_and_no_unmatched_rows(rows: str, within: str) -> None:
    with pytest.raises(QueryError, match="output_partial with") as told:
        cepheid.query(f"MATCH_RECOGNIZE (ORDER BY ts {rows} PATTERN (A B) {within} OPTIONS (output_partial = true))")
    assert told.value.code == "clause-option"

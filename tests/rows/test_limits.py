"""Limits of MATCH_RECOGNIZE: how many matches there may be, in both engines and in streams."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import CepheidError, LimitError
from cepheid.language.match_recognize.bind import Columns, bind_clause
from cepheid.language.match_recognize.parse import parse_clause
from cepheid.plan.options import Limits
from cepheid.runners.stream.rows import RowStream

ONE = """MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES a.x AS y {rows} PATTERN ({pattern}) {within}
    DEFINE a AS x > 0)"""


def table(count: int) -> pa.Table:
    return pa.table({"ts": range(count), "k": [n % 2 for n in range(count)], "x": [1] * count})


@pytest.mark.parametrize("engine", ["preferred", "reference"])
@pytest.mark.parametrize("rows", ["", "ALL ROWS PER MATCH"])
def test_matches_are_counted(engine: str, rows: str) -> None:
    text = ONE.format(rows=rows, pattern="a a", within="")
    assert cepheid.match(table(40), text, engine=engine, max_matches=20).num_rows == (40 if rows else 20)
    with pytest.raises(LimitError, match="the clause reached max_matches=19"):
        cepheid.match(table(40), text, engine=engine, max_matches=19)


def test_rows_without_a_match_are_none() -> None:
    text = ONE.format(rows="ALL ROWS PER MATCH WITH UNMATCHED ROWS", pattern="a a a", within="")
    assert cepheid.match(table(8), text, max_matches=2).num_rows == 8


def test_a_stream_counts_the_matches_of_a_step() -> None:
    clause = parse_clause(ONE.format(rows="", pattern="a", within="WITHIN 3"), "spark")
    bound = bind_clause(clause, Columns(("ts", "k", "x"), frozenset()))
    stream = RowStream(bound, table(1).schema, limits=Limits(max_matches=5))
    with pytest.raises(LimitError, match="max_matches=5"):
        stream.send(table(20))
    timed = RowStream(bound, table(1).schema, limits=Limits(timeout=0.0))
    with pytest.raises(cepheid.TimeoutReached):
        timed.send(table(20))


def test_partial_matches_are_refused_by_name() -> None:
    with pytest.raises(CepheidError, match="max_partial_matches: a row pattern follows one partial match at a time"):
        cepheid.match(table(4), ONE.format(rows="", pattern="a", within=""), max_partial_matches=5)


def test_the_reference_is_too_deep_for_long_matches() -> None:
    text = ONE.format(rows="", pattern="a+", within="")
    with pytest.raises(LimitError, match="recurses once"):
        cepheid.match(table(4000), text, engine="reference")


@pytest.mark.parametrize("within", ["", "WITHIN 1000"])
def test_the_rows_of_all_matches_are_counted(within: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cepheid.engine.search.row_pattern.run.MOST_TAKEN", 1_000)
    text = ONE.format(rows="AFTER MATCH SKIP TO NEXT ROW", pattern="a+", within=within).replace("PARTITION BY k", "")
    assert cepheid.match(table(44), text).num_rows == 44
    with pytest.raises(LimitError, match="the matches have more than 1,000 rows in all"):
        cepheid.match(table(45), text)

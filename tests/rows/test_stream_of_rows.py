"""What a stream of rows returns when, what it keeps and what it cannot do; contract/rows.py cuts it anywhere."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import CepheidError, QueryError
from cepheid.runners.stream.rows import RowStream
from rows.row_cases import bound


def test_matches_come_out_as_soon_as_they_are_settled() -> None:
    table = pa.table({"id": [1, 2, 3, 4, 5], "value": [5, 4, 6, 7, 1]})
    clause = "ORDER BY id MEASURES LAST(id) AS ended PATTERN (A B+ C) WITHIN 10 DEFINE B AS value < PREV(value)"
    stream = RowStream(bound(clause, table), table.schema)
    assert [stream.send(table.slice(at, 1)).num_rows for at in range(5)] == [0, 0, 0, 1, 0]
    assert stream.state.rows.num_rows == 2  # a row that a match may begin with, and one that PREV may look at


def test_a_window_bounds_what_is_kept() -> None:
    schema = pa.schema({"id": pa.int64(), "value": pa.int64()})
    clause = "ORDER BY id MEASURES LAST(id) AS ended PATTERN (A X* C) WITHIN 5 DEFINE C AS value = 1"
    stream = RowStream(bound(clause, schema.empty_table()), schema)
    for at in range(100):
        assert stream.send(pa.table({"id": [at], "value": [0]}, schema)).num_rows == 0
        assert stream.state.rows.num_rows <= 6


def test_what_a_stream_cannot_do() -> None:
    table = pa.table({"id": [1], "value": [1]})
    with pytest.raises(CepheidError, match="without WITHIN"):
        RowStream(bound("ORDER BY id PATTERN (A+) DEFINE A AS true", table), table.schema)
    with pytest.raises(QueryError, match="no last row"):
        RowStream(bound("ORDER BY id PATTERN (A$) WITHIN 5 DEFINE A AS true", table), table.schema)
    with pytest.raises(CepheidError, match="ORDER BY"):
        RowStream(bound("PATTERN (A) DEFINE A AS true", table), table.schema, max_rows=5)


def test_partitions_without_rows_leave_nothing_behind() -> None:
    schema = pa.schema({"id": pa.int64(), "key": pa.int64(), "value": pa.int64()})
    clause = "PARTITION BY key ORDER BY id MEASURES {} PATTERN (A B) WITHIN 5 DEFINE B AS value > 5"
    for measure, left in (("LAST(id) AS ended", 10), ("MATCH_NUMBER() AS n", 100)):
        stream = RowStream(bound(clause.format(measure), schema.empty_table()), schema)
        for at in range(100):
            stream.send(pa.table({"id": [at], "key": [at], "value": [0]}, schema))
        assert len(stream.state.resume) <= left


@pytest.mark.parametrize("zeros", [(-0.0, 0.0, 0.0), (0.0, -0.0)])
def test_both_zeros_are_one_partition(zeros: tuple[float, ...]) -> None:
    rows = [{"ts": at, "k": zeros[at % len(zeros)], "x": 1 + at % 2} for at in range(12)]
    table = pa.Table.from_pylist(rows, pa.schema({"ts": pa.int64(), "k": pa.float64(), "x": pa.int64()}))
    clause = "MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts PATTERN (A B) DEFINE A AS x = 1, B AS x = 2)"
    assert cepheid.match(table, clause).num_rows == cepheid.match(table, clause, engine="reference").num_rows == 6
    single, whole = cepheid.live(clause, table.schema, max_rows=9), cepheid.live(clause, table.schema, max_rows=9)
    assert sum(len(single.send(row)) for row in rows) + len(single.finish()) == 6
    assert len(whole.send(table)) + len(whole.finish()) == 6

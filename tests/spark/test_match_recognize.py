"""Row patterns on Spark: whole statements, clauses in all places, other systems' dialects."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import cepheid
import cepheid.sql
from cepheid.errors import QueryError

pytestmark = pytest.mark.spark

TICKS = "(VALUES (1, 90), (2, 80), (3, 70), (4, 80), (5, 90), (6, 50), (7, 40), (8, 60)) t(id, value)"
V_SHAPE = "PATTERN (A B+ C+) DEFINE B AS B.value < PREV(B.value), C AS C.value > PREV(C.value)"


def rows(spark: Any, statement: str, dialect: str = "spark") -> list[tuple[Any, ...]]:
    return [tuple(row) for row in cepheid.sql.query(spark, statement, dialect).collect()]


def test_a_statement_of_trino(spark: Any) -> None:
    clause = f"MATCH_RECOGNIZE (ORDER BY id MEASURES MATCH_NUMBER() AS n, sum(value) / 7 AS s {V_SHAPE})"
    assert rows(spark, f"SELECT n, s FROM {TICKS} {clause} AS m ORDER BY n", "trino") == [(1, 58), (2, 21)]


def test_clauses_in_queries_before_the_select_and_in_joins(spark: Any) -> None:
    statement = f"""
    WITH ticks AS (SELECT * FROM {TICKS}),
         falls AS (SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY id MEASURES FIRST(id) AS began {V_SHAPE}) AS f)
    SELECT falls.began, m.top FROM falls
    JOIN ticks MATCH_RECOGNIZE (ORDER BY id MEASURES LAST(id) AS ended, max(value) AS top {V_SHAPE}) m
      ON m.ended > falls.began  -- MATCH_RECOGNIZE ( in a comment
    WHERE 'MATCH_RECOGNIZE (' <> '' ORDER BY 1, 2"""
    assert rows(spark, statement) == [(1, 60), (1, 90), (6, 60)]


def test_a_clause_over_a_clause(spark: Any) -> None:
    inner = f"(SELECT * FROM {TICKS} MATCH_RECOGNIZE (ORDER BY id MEASURES LAST(id) AS e, count(*) AS n {V_SHAPE}))"
    outer = "MATCH_RECOGNIZE (ORDER BY e MEASURES array_agg(n) AS sizes PATTERN (A+) DEFINE A AS n > 0)"
    assert rows(spark, f"SELECT sizes FROM {inner} {outer}") == [([5, 3],)]


def test_queries_inside_of_a_clause(spark: Any) -> None:
    clause = "MATCH_RECOGNIZE (ORDER BY id MEASURES count(*) AS n PATTERN (A+) DEFINE A AS value > (SELECT 65))"
    assert rows(spark, f"SELECT n FROM {TICKS} {clause} m") == [(5,)]


def test_partitions_of_a_table(spark: Any) -> None:
    table = pa.table({"k": ["a", "b", None] * 40, "t": list(range(120)), "v": [i % 7 for i in range(120)]})
    measures = "MEASURES sum(v) AS s, LAST(t) AS t"
    clause = f"MATCH_RECOGNIZE (PARTITION BY k ORDER BY t {measures} PATTERN (A B+) DEFINE B AS v > PREV(v))"
    expected = cepheid.match(table, clause, engine="reference")
    found = cepheid.match(spark.createDataFrame(table.to_pandas()), clause, partitions=3)
    assert found.columns == expected.column_names
    key = str
    assert sorted(map(tuple, found.collect()), key=key) == sorted(
        zip(*(column.to_pylist() for column in expected.columns), strict=True), key=key
    )


def test_errors_point_into_the_statement(spark: Any) -> None:
    statement = f"SELECT * FROM {TICKS} MATCH_RECOGNIZE (PATTERN (A B) DEFINE B AS B.valu > 1)"
    with pytest.raises(QueryError) as caught:
        rows(spark, statement)
    assert caught.value.text is not None
    assert caught.value.text[caught.value.start : caught.value.end] == "valu"


def test_functions_that_only_spark_has(spark: Any) -> None:
    clause = """MATCH_RECOGNIZE (ORDER BY id
    MEASURES hex(LAST(B.value)) AS h, sum(bit_count(value)) AS bits, hex(A.value + 1) || '!' AS first,
             hex(PREV(FIRST(value, 1), 1)) AS p
    PATTERN (A B+) DEFINE B AS crc32(string(B.value)) > 0 AND soundex('x') = soundex('x') OR value < PREV(value))"""
    with pytest.raises(QueryError, match="soundex"):  # it concerns no row at all
        rows(spark, f"SELECT * FROM {TICKS} {clause}")
    clause = clause.replace("AND soundex('x') = soundex('x')", "")
    bits = sum(value.bit_count() for value in (90, 80, 70, 80, 90, 50, 40, 60))
    assert rows(spark, f"SELECT * FROM {TICKS} {clause}") == [("3C", bits, "5B!", "5A")]


def test_a_stream(spark: Any, tmp_path: Any) -> None:
    """Files that come one after the other; a last row far ahead lets the watermark pass all others."""
    clause = """MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES FIRST(v) AS f, LAST(v) AS l, MATCH_NUMBER() AS n
    PATTERN (A B+) WITHIN INTERVAL '1' MINUTE DEFINE B AS v > PREV(v))"""
    made = "SELECT timestamp_seconds(id * 7) AS ts, IF(id % 3 = 0, 'a', 'b') AS k, id * 5 % 11 AS v FROM range({}, {})"
    folder = str(tmp_path / "in")
    batch = spark.sql(made.format(0, 60))
    expected = sorted(map(tuple, cepheid.match(batch, clause).collect()))
    for low, high in ((0, 13), (13, 40), (40, 60), (100_000, 100_001)):
        spark.sql(made.format(low, high)).coalesce(1).write.mode("append").parquet(folder)
    source = spark.readStream.schema(batch.schema).option("maxFilesPerTrigger", 1).parquet(folder)
    found = cepheid.match(source, clause, delay="20 seconds", shards=2)
    writer = found.writeStream.format("memory").queryName("row_stream").outputMode("append")
    query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert sorted(map(tuple, spark.sql("SELECT * FROM row_stream").collect())) == expected

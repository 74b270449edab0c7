"""Columns of a user's table may be called anything, and so may those that are made beside them."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid
import cepheid.flink
import cepheid.metrics
from cepheid.errors import DataError
from spark.test_stream import cut, events, put, reading, rows, run

NAMES = ("__bad", "__shard", "__SLICE", "__reason", "__chunk", "__events", "__row", "_0", "_1", "shard", "packed")
QUERY = "PATTERN SEQ(A a, B b) WHERE [`__bad`] AND a.`__shard` < b.`__shard` WITHIN 40"
NO_KEY = "PATTERN SEQ(A a, B b, C c) WHERE a.`__SLICE` < b.`__SLICE` AND b.`__bad` < c.`__bad` WITHIN 20"
TOTALS = "PATTERN SEQ(A a, B b) WHERE [`_1`] WITHIN 40 SUMMARISE count(*) AS n, avg(a._0) AS m, max(b._0) AS x BY `_1`"
CLAUSE = """MATCH_RECOGNIZE (PARTITION BY `__bad` ORDER BY ts MEASURES FIRST(A.x) AS `_0`,
soundex(LAST(B.type)) AS `_1`, CLASSIFIER() AS cepheid_part_0
ONE ROW PER MATCH PATTERN (A B+) DEFINE A AS type = 'A', B AS B.x > A.x)"""


def awkward(n: int) -> pa.Table:
    """Events with columns that are called as ours."""
    table = events(n)
    for name in NAMES:
        table = table.append_column(name, table["id"] if name in ("__bad", "_1") else table["x"])
    return table.append_column("computed 0", table["x"])


def test_batches_over_columns_with_any_name(spark):
    table = awkward(60)
    df = spark.createDataFrame(table)
    for text, options in ((QUERY, {"hot_keys": "auto"}), (NO_KEY, {"slices": 3}), (TOTALS, {})):
        assert rows(cepheid.match(df, text, **options).toArrow()) == rows(cepheid.match(table, text))
    found = cepheid.match(df, CLAUSE)
    assert found.columns == ["__bad", "_0", "_1", "cepheid_part_0"]
    local = cepheid.match(table, CLAUSE.replace("soundex(LAST(B.type))", "LAST(B.type)")).to_pylist()
    assert sorted((row["__bad"], row["_0"]) for row in found.collect()) == sorted(
        (row["__bad"], row["_0"]) for row in local
    )
    assert local


@pytest.mark.slow
def test_streams_over_columns_with_any_name(spark, tmp_path):
    """With records that cannot be events among them; and two matches in one streaming query, which nobody named."""
    table = awkward(60)
    cut(tmp_path / "in", table, 2, delay=5)
    wrong = table.slice(0, 1).set_column(0, "ts", pa.array([None], pa.int64()))
    put(tmp_path / "in", 7, wrong)
    df = reading(spark, tmp_path / "in", spark.createDataFrame(table).schema)
    options = {"delay": 5, "bad_records": "set aside", "aside": str(tmp_path / "aside"), "dedupe": ["__row", "type"]}
    again = "PATTERN SEQ(B b, C c) WHERE [`__bad`] WITHIN 30 RETURN c.x AS x"
    first = cepheid.match(df, QUERY, **options).select("match_start", "match_end")
    second = cepheid.match(df, again, delay=5, bad_records="drop").select("match_start", "match_end")
    query = run(first.unionAll(second), tmp_path)
    expected = [
        row
        for text, own in ((QUERY, {"dedupe": ["__row", "type", "ts"]}), (again, {}))
        for row in cepheid.match(table, text, **own).select(["match_start", "match_end"]).to_pylist()
    ]
    assert rows(pq.read_table(tmp_path / "out")) == sorted(map(str, expected))
    assert len(list((tmp_path / "aside").iterdir())) == 1
    names = {name for progress in query.recentProgress for name in cepheid.metrics.observed(progress)}
    assert len(names) == 2


def test_columns_that_differ_in_case_alone(spark):
    table = pa.table({"ts": [1, 2], "type": ["A", "B"], "v": [1, 1], "V": [2, 2]})
    df = spark.createDataFrame(table)
    text = "PATTERN SEQ(A a, B b) WHERE [v] WITHIN 9 RETURN a.V AS x"
    clause = "MATCH_RECOGNIZE (ORDER BY ts MEASURES FIRST(A.v) AS x PATTERN (A) DEFINE A AS type = 'A')"
    step = cepheid.flink.Pattern.begin("a").where("type = 'A'")
    for query in (text, clause, step):
        with pytest.raises(DataError, match="'v' and 'V' differ in case alone") as error:
            cepheid.match(df, query)
        assert "spark.sql.caseSensitive" in str(error.value)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert [row["x"] for row in cepheid.match(df, text).collect()] == [2]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")

"""Bad records on Spark: the same policies as for tables in memory, and the same matches."""

import pytest

import cepheid

PAIR = "PATTERN SEQ(A a, C c) WHERE [id] WITHIN 9 minutes"
TIMES = ["2026-01-01 10:00:00", "2026-01-01 10:05:00", "garbage", None, "2026-01-01 10:07:00"]
ROWS = list(zip(TIMES, ["A", "C", "A", "A", "C"], [1, 1, 1, 1, None], ["1,5", "2,0", "3", "4", "x"], strict=True))
COLUMNS = "ts string, type string, id long, price string"


@pytest.mark.slow
def test_policies(spark, tmp_path):
    df = spark.createDataFrame(ROWS, COLUMNS)
    with pytest.raises(Exception, match="garbage"):
        cepheid.match(df, PAIR).count()
    assert cepheid.match(df, PAIR, bad_records="drop").count() == 1
    found = cepheid.match(df, PAIR, bad_records="set aside", aside=str(tmp_path / "bad"))
    assert found.count() == 1
    aside = {row["ts"]: row["reason"] for row in spark.read.parquet(str(tmp_path / "bad")).collect()}
    assert aside == {
        "garbage": "ts is NULL, or not a time",
        None: "ts is NULL, or not a time",
        "2026-01-01 10:07:00": "id is NULL, and it is a key of the query",
    }
    with pytest.raises(cepheid.CepheidError, match="aside is a path"):
        cepheid.match(df, PAIR, bad_records="set aside", aside=print)


@pytest.mark.slow
def test_numbers_and_duplicates(spark):
    df = spark.createDataFrame([*ROWS[:2], ROWS[1]], COLUMNS)
    dear = PAIR.replace("WITHIN", "AND c.price > 1.9 WITHIN")
    assert cepheid.match(df, dear, decimal=",").count() == 2
    assert cepheid.match(df, dear, decimal=",", dedupe=["ts", "type", "id"]).count() == 1
    stream = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "'A' AS type", "value AS id")
    assert cepheid.match(stream, PAIR, delay="1 second", dedupe="id").isStreaming
    with pytest.raises(cepheid.CepheidError, match="did you mean 'id'"):
        cepheid.match(stream, PAIR, delay="1 second", dedupe="ids")
    with pytest.raises(cepheid.CepheidError, match="aside is a path"):
        cepheid.match(stream, PAIR, delay="1 second", bad_records="set aside", aside=print)

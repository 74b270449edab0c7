"""Flink patterns on Spark: tables and streams give what a table in memory gives."""

from __future__ import annotations

from typing import Any

import pytest

import cepheid
from cepheid.errors import DataError
from cepheid.flink import AfterMatchSkipStrategy, Pattern

pytestmark = pytest.mark.spark

SKIP = AfterMatchSkipStrategy.skip_past_last_event()
LOOP = Pattern.begin("start", skip=SKIP).where("v % 3 = 0").followed_by("more").where("v > start.v").one_or_more()
PATTERN = LOOP.followed_by("end").where("v % 5 = 1").within("1 minute")
MADE = "SELECT timestamp_seconds(id * 7) AS ts, IF(id % 3 = 0, 'a', 'b') AS k, id * 5 % 11 AS v FROM range({}, {})"


def rows(found: Any) -> list[str]:
    return sorted(str(row.asDict(recursive=True)) for row in found.collect())


@pytest.mark.slow
def test_a_table(spark: Any) -> None:
    df = spark.sql(MADE.format(0, 90))
    expected = cepheid.match(df.toPandas(), PATTERN, partition_by="k", partial=True)
    found = cepheid.match(df, PATTERN, partition_by="k", partial=True, partitions=3)
    assert found.columns == list(expected.columns)
    assert found.count() == len(expected) > 5
    taken = sorted((row["start"]["v"], len(row["more"]), row["timed_out"]) for row in found.collect())
    assert taken == sorted(
        (start["v"], len(more), timed_out)
        for start, more, timed_out in zip(expected["start"], expected["more"], expected["timed_out"], strict=True)
    )


@pytest.mark.slow
def test_functions_of_the_user_reach_workers(spark: Any) -> None:
    @cepheid.function(name="is_odd_number", result=bool)
    def is_odd(value: int) -> bool:
        return value % 2 == 1

    pattern = Pattern.begin("a").where("is_odd_number(v)").next("b").where("v > a.v")
    df = spark.sql(MADE.format(0, 30))
    expected = cepheid.match(df.toPandas(), pattern, partition_by="k")
    assert cepheid.match(df, pattern, partition_by="k").count() == len(expected) > 2


@pytest.mark.slow
def test_a_stream(spark: Any, tmp_path: Any) -> None:
    """Files that come one after the other; a last event far ahead lets the watermark pass all others."""
    folder = str(tmp_path / "in")
    batch = spark.sql(MADE.format(0, 60))
    expected = rows(cepheid.match(batch, PATTERN, partition_by="k"))
    for low, high in ((0, 13), (13, 40), (40, 60), (100_000, 100_001)):
        spark.sql(MADE.format(low, high)).coalesce(1).write.mode("append").parquet(folder)
    source = spark.readStream.schema(batch.schema).option("maxFilesPerTrigger", 1).parquet(folder)
    found = cepheid.match(source, PATTERN, partition_by="k", delay="20 seconds", shards=2)
    writer = found.writeStream.format("memory").queryName("flink_stream").outputMode("append")
    query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert rows(spark.sql("SELECT * FROM flink_stream")) == expected


@pytest.mark.slow
def test_a_stream_needs_a_delay(spark: Any) -> None:
    source = spark.readStream.format("rate").load().withColumnRenamed("timestamp", "ts")
    with pytest.raises(DataError, match="how much later"):
        cepheid.match(source, Pattern.begin("a").where("value > 3"))


@pytest.mark.slow
def test_limits_hold_in_tasks(spark: Any) -> None:
    found = cepheid.match(spark.sql(MADE.format(0, 90)), PATTERN, partition_by="k", max_matches=1, timeout=600)
    with pytest.raises(Exception, match="the pattern reached max_matches=1"):
        found.collect()

"""OUTPUT PARTIAL on Spark gives what it gives on a table in memory."""

from __future__ import annotations

from typing import Any

import pytest

import cepheid

pytestmark = pytest.mark.spark

QUERY = "PATTERN SEQ(O a, P b, S c) WHERE skip_till_next_match { [id] } WITHIN 1 minute OUTPUT PARTIAL"


def test_a_table(spark: Any) -> None:
    kind = "element_at(array('O', 'P', 'S', 'X'), CAST(id * 7 DIV 4 % 4 AS INT) + 1) AS type"
    df = spark.sql(f"SELECT timestamp_seconds(id * 7) AS ts, {kind}, id % 3 AS id FROM range(120)")
    expected = cepheid.match(df.toPandas(), QUERY)
    found = cepheid.match(df, QUERY).toPandas()
    assert list(found.columns) == list(expected.columns)
    names = ["match_start", "timed_out", "waiting_for", "given_up"]
    assert sorted(map(str, found[names].values.tolist())) == sorted(map(str, expected[names].values.tolist()))
    assert found["timed_out"].nunique() == 2


ROUNDS = "PATTERN SEQ(O a, (P b, S c){2}, X d) WHERE skip_till_next_match { [id] } WITHIN 2 minutes OUTPUT PARTIAL"


@pytest.mark.slow
@pytest.mark.parametrize("query", [QUERY, ROUNDS])
def test_a_stream(spark: Any, tmp_path: Any, query: str) -> None:
    """In a stream runs are given up when the watermark has passed their window."""
    kind = "element_at(array('O', 'P', 'S', 'X'), CAST(id * 7 DIV 4 % 4 AS INT) + 1) AS type"
    text = f"SELECT timestamp_seconds(id * 7) AS ts, {kind}, id % 3 AS id FROM range(60)"
    end = "SELECT timestamp_seconds(100000) AS ts, 'Y' AS type, 0L AS id"
    for number, part in enumerate([f"{text} WHERE id < 25", f"{text} WHERE id >= 25", end]):
        spark.sql(part).coalesce(1).write.parquet(str(tmp_path / f"part{number}"))
        (file,) = (tmp_path / f"part{number}").glob("*.parquet")
        (tmp_path / "events").mkdir(exist_ok=True)
        file.rename(tmp_path / "events" / f"{number}.parquet")
    df = spark.readStream.schema("ts timestamp, type string, id long").option("maxFilesPerTrigger", 1)
    df = df.parquet(str(tmp_path / "events"))
    out, at = str(tmp_path / "out"), str(tmp_path / "checkpoint")
    stream = cepheid.match(df, query, delay="0 seconds").writeStream.format("parquet")
    running = stream.option("path", out).option("checkpointLocation", at).trigger(availableNow=True).start()
    running.awaitTermination(200)
    assert running.exception() is None
    found = spark.read.parquet(out).toPandas()
    expected = cepheid.match(spark.sql(text).toPandas(), query)
    names = ["match_start", "timed_out", "waiting_for", "given_up"]
    assert sorted(map(str, found[names].values.tolist())) == sorted(map(str, expected[names].values.tolist()))
    assert found["timed_out"].any()

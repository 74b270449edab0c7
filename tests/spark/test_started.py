"""Starts of streams are heard: each gets its settings, whatever happened to other streams of its session."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming import StreamingQueryListener

import cepheid

EVENTS = "SELECT timestamp_seconds(id) AS ts, IF(id % 2 = 0, 'A', 'B') AS type, id AS v FROM range(20)"
TEXT = "PATTERN SEQ(A a, B b) WITHIN 2 seconds RETURN b.ts AS ended"


class Slow(StreamingQueryListener):
    """A listener of the user's that is still busy with a start when others have heard of it."""

    def onQueryStarted(self, event: Any) -> None:
        time.sleep(1)

    def onQueryProgress(self, event: Any) -> None: ...
    def onQueryTerminated(self, event: Any) -> None: ...


@pytest.fixture
def stream(spark: Any, tmp_path: Path) -> Any:
    spark.sql(EVENTS).write.parquet(str(tmp_path / "in"))
    return spark.readStream.schema(spark.sql(EVENTS).schema).parquet(str(tmp_path / "in"))


def run(found: Any, folder: Path) -> int:
    rows: list[Any] = []
    writer = found.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
    writer.option("checkpointLocation", str(folder)).trigger(availableNow=True).start().awaitTermination()
    return len(rows)


def listeners(session: Any) -> list[Any]:
    return list(session.streams._jsqm.listListeners())


def test_a_stream_that_is_refused_takes_no_listener_with_it(spark: Any, stream: Any, tmp_path: Path) -> None:
    """Spark removes listeners that are interrupted while they hear of a start."""
    refused = stream.withWatermark("ts", "1 second").dropDuplicatesWithinWatermark(["ts"])
    found = cepheid.match(refused, TEXT).withWatermark("ended", "1 second")
    slow = Slow()
    spark.streams.addListener(slow)
    try:
        before = len(listeners(spark))
        with pytest.raises(StreamingQueryException, match="watermark in front of the match"):
            run(found, tmp_path / "refused")
        assert len(listeners(spark)) == before
    finally:
        spark.streams.removeListener(slow)
    assert run(cepheid.match(stream, TEXT, delay=0), tmp_path / "c") > 0


def test_a_listener_that_is_gone_is_added_again(spark: Any, stream: Any, tmp_path: Path) -> None:
    session = spark.newSession()
    cepheid.match(session.readStream.schema(stream.schema).parquet(str(tmp_path / "in")), TEXT, delay=0)
    for each in listeners(session):
        session.streams._jsqm.removeListener(each)
    unheard = cepheid.match(session.readStream.schema(stream.schema).parquet(str(tmp_path / "in")), TEXT, delay=0)
    assert len(listeners(session)) == 1
    assert run(unheard, tmp_path / "c") > 0

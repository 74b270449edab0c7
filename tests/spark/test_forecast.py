"""FORECAST and `cepheid.forecast` on Spark give what they give on a table in memory."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import cepheid
from cepheid import DataError, Exponential, Gamma, Model, forecast

pytestmark = pytest.mark.spark

MODEL = Model(gaps={"b": Exponential(20, happens=0.8), "c": Gamma(2, 12, happens=0.9), "n": Exponential(60, 0.5)})
QUERY = "PATTERN SEQ(O a, P? b, S c) WHERE [id] WITHIN 1 minute"
REPORTS = f"{QUERY} FORECAST 60%"
ABSENCE = "PATTERN SEQ(O a, !(X n)) WHERE [id] WITHIN 1 minute FORECAST 80%"
NAMES = ("match_start", "match_end", "forecast_at", "waiting_for", "probability", "expected", "earliest", "latest")
KIND = "element_at(array('O', 'P', 'S', 'X'), CAST(id * 7 DIV 4 % 4 AS INT) + 1) AS type"


def events(count: int) -> str:
    return f"SELECT timestamp_seconds(id * 7) AS ts, {KIND}, id % 3 AS id FROM range({count})"


def rows(found: Any, names: tuple[str, ...] = NAMES) -> list[str]:
    return sorted(str([round(each, 9) if isinstance(each, float) else str(each) for each in row])
                  for row in found[list(names)].values.tolist())  # fmt: skip


def test_tables(spark: Any) -> None:
    df = spark.sql(events(90))
    local = df.toPandas()
    for query in (REPORTS, ABSENCE):
        expected = cepheid.match(local, query, model=MODEL)
        found = cepheid.match(df, query, model=MODEL).toPandas()
        assert list(found.columns) == list(expected.columns)
        assert rows(found) == rows(expected)
        assert len(found)
    zone = ZoneInfo(spark.conf.get("spark.sql.session.timeZone"))
    moment = datetime(1970, 1, 1, 0, 5, tzinfo=UTC).astimezone(zone).replace(tzinfo=None)  # as Spark shows it
    for at in (None, moment):
        expected = forecast(local, QUERY, model=MODEL, at=at)
        found = forecast(df, QUERY, model=MODEL, at=at).toPandas()
        assert rows(found) == rows(expected)
        assert len(found)


@pytest.mark.slow
def test_a_stream_that_is_restarted(spark: Any, tmp_path: Any) -> None:
    """Two queries at once: what is awaited, and an absence that lasts."""
    (tmp_path / "events").mkdir()
    queries = {"paid": REPORTS, "calm": ABSENCE}

    def arrive(number: int, text: str) -> None:
        spark.sql(text).coalesce(1).write.parquet(str(tmp_path / f"part{number}"))
        (file,) = (tmp_path / f"part{number}").glob("*.parquet")
        file.rename(tmp_path / "events" / f"{number}.parquet")

    def run() -> None:
        df = spark.readStream.schema("ts timestamp, type string, id long").parquet(str(tmp_path / "events"))
        stream = cepheid.match(df, queries, model=MODEL, delay="7 seconds").writeStream.format("parquet")
        stream = stream.option("path", str(tmp_path / "out")).option("checkpointLocation", str(tmp_path / "state"))
        running = stream.trigger(availableNow=True).start()
        running.awaitTermination(200)
        assert running.exception() is None

    text = events(60)
    arrive(0, f"{text} WHERE id < 29 OR id = 30")
    run()
    arrive(1, f"{text} WHERE id = 29 OR id > 30")  # one comes late, by less than the delay
    arrive(2, "SELECT timestamp_seconds(100000) AS ts, 'Y' AS type, 0L AS id")
    run()
    found = spark.read.parquet(str(tmp_path / "out"))
    local = spark.sql(text).toPandas()
    for name, query in queries.items():
        own = found.where(f"query = '{name}'").select("match_start", "match_end", f"{name}.*").toPandas()
        expected = cepheid.match(local, query, model=MODEL)
        assert rows(own) == rows(expected)
        assert len(own)


def test_a_stream_has_no_one_instant(spark: Any, tmp_path: Any) -> None:
    (tmp_path / "events").mkdir()
    df = spark.readStream.schema("ts timestamp, type string, id long").parquet(str(tmp_path / "events"))
    with pytest.raises(DataError, match="takes a table, not a stream"):
        forecast(df, QUERY, model=MODEL)

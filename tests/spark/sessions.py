"""One small stream in four languages, run in a session as a batch, as a stream or with a restart, beside local answers.

As a driver of its own it does so through Spark Connect: python sessions.py FOLDER
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import cepheid
import cepheid.flink
import cepheid.sql

ZONE = "spark.sql.session.timeZone"
BEGIN = datetime(2026, 3, 8, 3, 0, tzinfo=UTC)  # New York's clocks are put forward at 07:00
ROWS, FILES = 48, 3
DELAY = "30 minutes"
PATTERN = """PATTERN SEQ(A a, B b) WHERE [id] AND hour(a.ts) != 5 AND b.ts >= '2026-03-08 01:10:00' WITHIN 70 minutes
RETURN a.x AS a, b.x AS b, hour(b.ts) AS h, date_trunc('day', b.ts) AS day"""
CLAUSE = """MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts
MEASURES FIRST(A.x) AS a, LAST(B.x) AS b, hour(LAST(B.ts)) AS h, CAST(LAST(B.ts) AS string) AS shown
ONE ROW PER MATCH PATTERN (A B+?) WITHIN INTERVAL '70' MINUTE
DEFINE A AS type = 'A' AND ts >= TIMESTAMP '2026-03-08 01:10:00', B AS type = 'B' AND B.x > A.x)"""
STEPS = (
    cepheid.flink.Pattern.begin("a")
    .where("type = 'A' AND hour(ts) != 5")
    .followed_by("b")
    .where("type = 'B' AND ts >= '2026-03-08 01:10:00'")
    .within("70 minutes")
)
LANGUAGES = ("pattern", "rows", "flink", "sql")
MODES = ("batch", "stream", "restart")


def events(kind: str) -> pa.Table:
    """Events over the night when clocks are put: instants ("ltz"), or what clocks show ("ntz")."""
    times = pa.array([BEGIN + timedelta(minutes=10 * step) for step in range(ROWS)], pa.timestamp("us", "UTC"))
    table = {"ts": times if kind == "ltz" else times.cast(pa.timestamp("us"))}
    types = [("A", "B", "C", "B")[step * 7 % 4] for step in range(ROWS)]
    return pa.table({**table, "type": types, "id": [step // 2 % 3 for step in range(ROWS)], "x": list(range(ROWS))})


def written(folder: Path, kind: str, numbers: range) -> None:
    """Files of the stream, each seen at once and after the ones before; behind the last one lies the end of time."""
    folder.mkdir(parents=True, exist_ok=True)
    table, size = events(kind), ROWS // FILES
    for number in numbers:
        part = table.slice(number * size, size)
        if number == FILES:
            later = pc.add(table["ts"].slice(0, 1), pa.scalar(timedelta(days=9)))
            part = table.slice(0, 1).set_column(0, "ts", later).set_column(1, "type", pa.array(["end"]))
        path = folder / f".{number}"
        pq.write_table(part, path)
        os.utime(path, (1_700_000_000 + number,) * 2)
        path.rename(folder / f"{number:05}.parquet")


def matched(language: str, events: Any, **options: Any) -> Any:
    """What a language finds, in memory or on Spark."""
    if language == "flink":
        return cepheid.match(events, STEPS, partition_by="id", **options)
    return cepheid.match(events, PATTERN if language == "pattern" else CLAUSE, **options)


def by_statement(session: Any, events: Any) -> Any:
    """A whole statement with the clause in it; what stands outside reads literals as the clause does."""
    events.createOrReplaceTempView("sessions_events")
    outside = "WHERE TIMESTAMP '2026-03-08 01:10:00' < CAST(shown AS timestamp)"
    return cepheid.sql.query(session, f"SELECT * FROM sessions_events {CLAUSE} {outside}")


def expected(language: str, kind: str, zone: str) -> list[tuple[Any, ...]]:
    """The local answer in the session's zone."""
    return answers(matched("rows" if language == "sql" else language, events(kind), tz=zone if kind == "ltz" else None))


def answers(found: pa.Table) -> list[tuple[Any, ...]]:
    """Rows that can be compared: instants as such, whatever zone they are shown in."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return tuple((name, plain(each)) for name, each in value.items())
        return value.timestamp() if isinstance(value, datetime) and value.tzinfo is not None else str(value)

    return sorted(tuple(plain(value) for value in row.values()) for row in found.to_pylist())


def batch(session: Any, languages: Sequence[str], kind: str, folder: Path) -> dict[str, pa.Table]:
    """The answers of batches."""
    written(folder / "in", kind, range(FILES))
    df = session.read.parquet(str(folder / "in"))
    found = {name: by_statement(session, df) if name == "sql" else matched(name, df) for name in languages}
    return {name: rows.toArrow() for name, rows in found.items()}


def stream(session: Any, languages: Sequence[str], kind: str, folder: Path) -> dict[str, pa.Table]:
    """The answers of streams in four micro-batches, one after another."""
    written(folder / "in", kind, range(FILES + 1))
    for language in languages:
        run(session, language, folder)
    return {language: result(session, folder / language) for language in languages}


def restart(session: Any, languages: Sequence[str], kind: str, folder: Path) -> dict[str, pa.Table]:
    """The same with a stop after two micro-batches."""
    for files in (range(2), range(2, FILES + 1)):
        written(folder / "in", kind, files)
        for language in languages:
            run(session, language, folder)
    return {language: result(session, folder / language) for language in languages}


def run(session: Any, language: str, folder: Path) -> None:
    """Runs a stream to the end of its files."""
    schema = session.read.parquet(str(folder / "in")).schema
    df = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    if language == "sql":
        found = by_statement(session, df.withWatermark("ts", DELAY))
    else:
        found = matched(language, df, delay=DELAY)
    writer = found.writeStream.format("parquet").option("path", str(folder / language / "out"))
    writer = writer.option("checkpointLocation", str(folder / language / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


def result(session: Any, folder: Path) -> pa.Table:
    return session.read.parquet(str(folder / "out")).toArrow()


Run = Callable[[Any, Sequence[str], str, Path], dict[str, pa.Table]]
RUN: dict[str, Run] = {"batch": batch, "stream": stream, "restart": restart}


def main(folder: Path) -> None:
    """Through Spark Connect; prints a line for each answer that agrees."""
    from pyspark.sql import SparkSession

    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    settings = {ZONE: "America/New_York", "spark.sql.streaming.stateStore.providerClass": provider}
    settings |= {"spark.sql.shuffle.partitions": "2", "spark.local.dir": str(folder / "local")}
    builder = SparkSession.builder.remote("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    for mode in MODES:
        for language, found in RUN[mode](session, LANGUAGES, "ltz", folder / mode).items():
            agrees = answers(found) == expected(language, "ltz", "America/New_York") and found.num_rows > 0
            print(mode, language, "agrees" if agrees else "differs", flush=True)
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

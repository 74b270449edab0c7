"""The cells of the matrix whose runner is Spark: batches, streams, SQL, and batches through Spark Connect."""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import cepheid
import cepheid.sql
from cepheid.errors import CepheidError
from verification.matrix import Case, Cell, OnSpark, in_memory, rows_of

ZONE = "America/New_York"
ROWS_OF_A_FILE = 6
# Spark waits 10 or 15 seconds for its own processes, which a busy machine may not be able to start by then.
BUSY = ("failed to connect back", "CANNOT_OPEN_SOCKET", "exited unexpectedly", "Could not connect")
ATTEMPTS = 3


@contextmanager
def session_for(runner: str) -> Iterator[OnSpark]:
    """A session as users have it, in a zone whose clocks are put, and the function that runs cells in it."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_AUTH_SOCKET_TIMEOUT", "300")
    logging.getLogger("SQLQueryContextLogger").disabled = True  # it prints the errors that we read
    folder = Path(tempfile.mkdtemp())
    builder = (
        SparkSession.builder.remote("local[2]") if runner == "Connect" else SparkSession.builder.master("local[2]")
    )
    settings = {"spark.sql.session.timeZone": ZONE, "spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}
    settings |= {"spark.ui.showConsoleProgress": "false", "spark.local.dir": str(folder / "local")}
    # Cells are small, and Java's second compiler would take longer than all of them.
    settings["spark.driver.extraJavaOptions"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    if runner != "Connect":
        session.sparkContext.setLogLevel("OFF")
    try:
        yield lambda cell, case: run(session, cell, case, folder / "cell")
    finally:
        session.stop()
        shutil.rmtree(folder, ignore_errors=True)


def run(session: Any, cell: Cell, case: Case, folder: Path) -> list[str]:
    """What a cell finds; errors that Spark reports for us are ours. What no table in memory can run is not tried."""
    in_memory(cell._replace(runner="local", engine="auto"), case, 0)
    for attempt in range(ATTEMPTS):
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "in").mkdir(parents=True)
        try:
            return RUN[cell.runner](session, cell, case, folder)
        except PySparkException as error:
            ours = re.search(r"(?:QueryError|EngineError|DataError|LimitError|CepheidError): (.*)", str(error))
            if ours:
                raise CepheidError(ours[1]) from error
            if attempt == ATTEMPTS - 1 or not any(each in str(error) for each in BUSY):
                raise AssertionError(f"{error}"[:1500]) from None
    raise AssertionError("attempts do not end")


def written(case: Case, folder: Path, low: int, high: int) -> None:
    """Some rows as files of a stream, each seen after the ones before."""
    for start in range(low, high, ROWS_OF_A_FILE):
        file = folder / f"{start:05}.parquet"
        pq.write_table(case.table.slice(start, min(ROWS_OF_A_FILE, high - start)), file)
        os.utime(file, (1_700_000_000 + start,) * 2)


def batch(session: Any, cell: Cell, case: Case, folder: Path) -> list[str]:
    """A DataFrame that is read from files."""
    written(case, folder / "in", 0, len(case.table))
    df = session.read.parquet(str(folder / "in"))
    if cell.output in ("count", "compressed"):
        found = cepheid.match(df, case.query, output=cell.output, **case.options)
        return rows_of(found if isinstance(found, int) else found.all().toArrow())
    return rows_of(cepheid.match(df, case.query, **case.options).toArrow())


def stream(session: Any, cell: Cell, case: Case, folder: Path) -> list[str]:
    """A stream of several micro-batches, which is stopped and goes on half way if the runner says so."""
    rows = len(case.table)
    half = rows // 2 // ROWS_OF_A_FILE * ROWS_OF_A_FILE
    parts = [(0, rows)] if cell.runner == "Spark stream" or not half else [(0, half), (half, rows)]
    if cell.output in ("count", "compressed"):
        raise CepheidError("output= is for tables, and a stream returns rows")
    for low, high in parts:
        written(case, folder / "in", low, high)
        schema = session.read.parquet(str(folder / "in")).schema
        df = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
        delay = 3 if cell.data == "integer times" else "3 minutes"
        found = cepheid.match(df, case.query, delay=delay, **case.options)
        writer = found.writeStream.format("parquet").option("path", str(folder / "out"))
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
    return rows_of(session.read.schema(found.schema).parquet(str(folder / "out")).toArrow())


def sql(session: Any, cell: Cell, case: Case, folder: Path) -> list[str]:
    """A statement: a table function with the query's text, or a SELECT with the clause."""
    if not isinstance(case.query, str):
        raise CepheidError("a Flink pattern is built in Python: SQL has no text for it")
    if cell.output in ("count", "compressed"):
        raise CepheidError("output= is for calls: a statement says SELECT count(*)")
    written(case, folder / "in", 0, len(case.table))
    session.read.parquet(str(folder / "in")).createOrReplaceTempView("events")
    if cell.language == "clause":
        return rows_of(cepheid.sql.query(session, f"SELECT * FROM events {case.query}").toArrow())
    options = dict(case.options)
    if "model" in options:
        options["model"].save(folder / "model.json")
        options["model"] = str(folder / "model.json")
    cepheid.sql.register(session)
    named = ", ".join(f"{name} => '{value}'" for name, value in options.items())
    text = case.query.replace("'", "''")
    return rows_of(session.sql(f"SELECT * FROM match_table(TABLE(events), '{text}', {named})").toArrow())


RUN = {"Spark batch": batch, "Spark stream": stream, "Spark stream, restarted": stream, "SQL": sql, "Connect": batch}

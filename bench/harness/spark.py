"""A Spark session for experiments, and Spark SQL's own way to a sequence: joining the stream with itself."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from bench.harness.calls import match_digest
from bench.harness.experiment import Contestant, Outcome, Unavailable

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "6g",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
PARTITIONS = 4  # of a shuffle, for each core: what a task holds at a time then fits the caches


@cache
def scratch() -> str:
    """A folder for what Spark writes, removed at the end."""
    folder = tempfile.mkdtemp(prefix="cepheid-bench-")
    atexit.register(shutil.rmtree, folder, True)
    return folder


_sessions: dict[int, Any] = {}


def session(cores: int) -> Any:
    """The session with so many cores; a process has one JVM, so asking for other cores stops the one before."""
    if cores in _sessions:
        return _sessions[cores]
    try:
        from pyspark.sql import SparkSession
    except ImportError as problem:
        raise Unavailable(f"no PySpark: {problem}") from None
    for old in _sessions.values():
        old.stop()
    _sessions.clear()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]").appName("cepheid bench")
    settings = {**SETTINGS, "spark.local.dir": scratch(), "spark.sql.shuffle.partitions": str(PARTITIONS * cores)}
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        _sessions[cores] = builder.getOrCreate()
    except Exception as problem:
        raise Unavailable(f"Spark does not start: {problem}") from None
    _sessions[cores].sparkContext.setLogLevel("ERROR")
    return _sessions[cores]


def self_join(
    name: str, table: pa.Table, types: Sequence[str], keys: Sequence[str], window: int, cores: int = 1
) -> Contestant:
    """SEQ(types...) WHERE [keys] WITHIN window as an n-way join in Spark SQL, over a table that Spark has in memory."""
    spark = session(cores)
    columns = ["ts", "type", *keys]
    frame = spark.createDataFrame(table.select(columns)).cache()
    frame.count()
    view = f"events_{abs(hash((name, table.num_rows, tuple(keys), len(types))))}"
    frame.createOrReplaceTempView(view)
    statement = join_statement(view, types, keys, window)
    return Contestant(
        name,
        lambda: spark.sql(statement).toArrow(),
        table.num_rows,
        lambda result: Outcome(result.num_rows, match_digest(result)),
    )


def join_statement(view: str, types: Sequence[str], keys: Sequence[str], window: int) -> str:
    """The join, with every condition an optimiser can use: keys, order, and the window from the first to each.

    >>> print(join_statement("s", ["A", "B"], ["k"], 10))
    SELECT e1.ts AS e1, e2.ts AS e2, e1.ts AS match_start, e2.ts AS match_end FROM (SELECT * FROM s WHERE type = 'A') e1
    JOIN (SELECT * FROM s WHERE type = 'B') e2 ON e2.k = e1.k AND e2.ts > e1.ts AND e2.ts < e1.ts + 10
    """
    last = len(types)
    chosen = [f"e{place}.ts AS e{place}" for place in range(1, last + 1)]
    chosen += ["e1.ts AS match_start", f"e{last}.ts AS match_end"]
    sources = [f"(SELECT * FROM {view} WHERE type = '{name}') e{place}" for place, name in enumerate(types, start=1)]
    text = f"SELECT {', '.join(chosen)} FROM {sources[0]}"
    for place in range(2, last + 1):
        same = [f"e{place}.{key} = e1.{key}" for key in keys]
        order = [f"e{place}.ts > e{place - 1}.ts", f"e{place}.ts < e1.ts + {window}"]
        text += f"\nJOIN {sources[place - 1]} ON {' AND '.join(same + order)}"
    return text

"""A driver of its own: the same calls through Spark Connect or on a cluster. Prints one line per call that agrees.

python elsewhere.py connect|cluster FOLDER [MASTER]
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import cepheid
from cepheid.disk_cache import folders
from cepheid.runners.spark.session import SETTINGS, start_session

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [id] AND a.x < b.x AND b.x < c.x WITHIN 60"
KEYLESS = "PATTERN SEQ(A a, B b, !(C c)) WHERE a.x = b.x WITHIN 30"


def session(kind: str, folder: Path, master: str):
    settings = {"spark.sql.shuffle.partitions": "2", "spark.local.dir": str(folder / "local")}
    if kind == "cluster":
        return start_session(master, **settings, **{"spark.driver.memory": "1g", "spark.executor.memory": "1g"})
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote("local[2]")
    for name, value in {**SETTINGS, **settings}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def events(n: int = 600) -> pa.Table:
    rng = np.random.default_rng(3)
    columns = {"ts": np.arange(n), "type": rng.choice(["A", "B", "C"], n), "id": rng.integers(0, 10, n)}
    return pa.table({**columns, "x": rng.integers(0, 50, n)})


def rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


def agree(what: str, found: pa.Table, expected: pa.Table) -> None:
    print(what, "agrees" if rows(found) == rows(expected) and expected.num_rows else "differs", flush=True)


def compiled() -> set[tuple[str, int]]:
    """The files in which compiled kernels of these queries are kept, each with when it was written."""
    found = [path for place in folders() for name in ("stacks", "candidates") for path in place.glob(f"*.{name}.*")]
    assert found
    return {(str(path), path.stat().st_mtime_ns) for path in found}


def main(kind: str, folder: Path, master: str) -> None:
    table = events()
    warm = [cepheid.match(table, QUERY), cepheid.match(table, KEYLESS)]
    before = compiled()
    spark = session(kind, folder, master)
    spark.createDataFrame(table.to_pandas()).repartition(3).write.parquet(str(folder / "events"))
    df = spark.read.parquet(str(folder / "events"))
    agree("batch", cepheid.match(df, QUERY).toArrow(), cepheid.match(table, QUERY))
    agree("slices", cepheid.match(df, KEYLESS, slices=3).toArrow(), cepheid.match(table, KEYLESS))
    cepheid.sql.register(spark)
    df.createOrReplaceTempView("events")
    statement = f"SELECT * FROM match_table(TABLE(events), '{QUERY}')"
    agree("sql", spark.sql(statement).toArrow(), cepheid.match(table, QUERY))
    stream = spark.readStream.schema(df.schema).parquet(str(folder / "events"))
    writer = cepheid.match(stream, QUERY, delay=0).writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    found = spark.read.parquet(str(folder / "out")).toArrow()
    agree("stream", found, cepheid.match(table.slice(0, 599), QUERY))  # the last instant is not complete
    # Workers found all kernels compiled: that happens once for a node, not for each of them.
    print("cache", "agrees" if warm and compiled() == before else "differs", flush=True)
    spark.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        place = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(made)
        main(sys.argv[1], place, sys.argv[3] if len(sys.argv) > 3 else "local-cluster[2,1,1024]")

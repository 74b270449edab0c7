"""Cepheid on Spark, two cores: against the same pipelines with nothing in the engine's place, and against Flink CEP.

Every number is a ratio to one of the same run: what the engine costs on top of reading, shuffling and the way to Python
and back; what a tenth query costs on top of the first; what keys cost a stream in which they are idle.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import cepheid
from bench.flink.baseline import Sequence, measure
from bench.flink.installation import FlinkUnavailable
from bench.measure import print_table, save
from cepheid.plan.physical import Plan
from cepheid.runners import spark_batch, spark_stream
from cepheid.runners.options import Options
from cepheid.runners.spark import spark_plan
from cepheid.runners.spark_pack import PACKED
from cepheid.runners.spark_session import arrow_schema, start_session
from cepheid.simulate.sase import sase_events

CORES = 2
RETURNED = " RETURN a.ts AS first, b.ts AS second, c.ts AS third"
SASE = "PATTERN SEQ(T0 a, T1 b, T2 c) WHERE [attr1] WITHIN 10000" + RETURNED
DENSE = "PATTERN SEQ(T0 a, T1 b, T2 c) WHERE [attr1] WITHIN 1000" + RETURNED


def seconds(call: Callable[[], Any], repeat: int = 3) -> float:
    """The shortest of several runs, after one that warms up."""
    call()
    taken = []
    for _ in range(repeat):
        begun = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def write_events(folder: Path, events: int, files: int, **options: Any) -> Path:
    """SASE's stream as Parquet files, in order of time."""
    folder.mkdir(parents=True)
    size = events // files
    for number in range(files):
        table = sase_events(size, seed=number, **options).events
        later = pa.array(table["ts"].to_numpy() + number * size)
        path = folder / f"{number:03}.parquet"
        pq.write_table(table.set_column(0, "ts", later), path)
        os.utime(path, (1_700_000_000 + number,) * 2)
    return folder


def sink(df: Any) -> Callable[[], None]:
    """Runs a job and throws its result away."""
    return lambda: df.write.format("noop").mode("overwrite").save()


def planned(df: Any, text: str) -> Plan:
    """The plan of a query over a table."""
    return spark_plan(cepheid.query(text), arrow_schema(df), Options())


def identity(df: Any, plan: Plan) -> Any:
    """The pipeline of a batch with a function in the engine's place that hands back what it gets."""
    keys = spark_batch.distribution_keys(plan.bound)
    shipped = spark_batch.ship(plan, arrow_schema(df))
    names = shipped.plan.bound.schema.names
    events = spark_batch.relevant_events(df, [plan], keys).select(*names)

    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    return events.repartition(*keys).mapInArrow(same, events.schema)


def batches(spark: Any, folder: Path, quick: bool) -> dict[str, float]:
    """Every event relevant: what the engine costs on top of the pipeline."""
    events = 400_000 if quick else 4_000_000
    df = spark.read.parquet(str(write_events(folder / "dense", events, 4, types=3)))
    plan = planned(df, DENSE)
    bare, whole = seconds(sink(identity(df, plan))), seconds(sink(spark_batch.match_batch(df, plan)))
    rows = [["identity", events / bare, 1.0], ["Cepheid", events / whole, bare / whole]]
    print_table("Batch, every event relevant", ["in the engine's place", "events/s", "of identity"], rows)
    return {"identity": events / bare, "cepheid": events / whole, "ratio": bare / whole}


def workload(spark: Any, folder: Path, quick: bool) -> dict[str, float]:
    """SASE's workload from Parquet to Parquet, 3 of 20 types relevant; and Flink CEP on as many cores."""
    events = 1_000_000 if quick else 20_000_000
    df = spark.read.parquet(str(write_events(folder / "sase", events, 4 if quick else 8)))
    out = str(folder / "matches")
    taken = seconds(lambda: cepheid.match(df, SASE).write.mode("overwrite").parquet(out))
    ours, matches = events / taken, spark.read.parquet(out).count()
    rows: list[list[Any]] = [["Cepheid", events, ours, matches, 1.0]]
    numbers = {"events_per_second": ours}
    try:
        table = sase_events(500_000, seed=1).events
        flink = measure(Sequence(), table, max_events=100_000 if quick else 500_000)
        rate = CORES * flink.events_per_second  # generous: as if a second slot doubled it
        rows.append([f"Flink CEP, {CORES} slots", flink.events, rate, flink.matches, ours / rate])
        numbers |= {"flink_events_per_second": rate, "times_flink": ours / rate}
    except FlinkUnavailable as problem:
        print(f"Flink is not measured: {problem}")
    print_table("SASE's workload, Parquet to Parquet", ["engine", "events", "events/s", "matches", "ours / it"], rows)
    return numbers


def many(spark: Any, folder: Path) -> dict[str, float]:
    """Ten queries in one pass against one of them."""
    df = spark.read.parquet(str(folder / "sase"))
    text = "PATTERN SEQ(T{0} a, T{1} b, T{2} c) WHERE [attr1] WITHIN 10000" + RETURNED
    queries = {f"q{n}": text.format(n, n + 1, n + 2) for n in range(10)}
    plans = {name: planned(df, text) for name, text in queries.items()}
    one = seconds(sink(spark_batch.match_batch(df, plans["q0"])), 2)
    ten = seconds(sink(spark_batch.match_batch(df, plans)), 2)
    print_table("Ten queries in one pass", ["queries", "seconds", "times one"], [[1, one, 1.0], [10, ten, ten / one]])
    return {"one": one, "ten": ten, "ratio": ten / one}


def streamed(df: Any, folder: Path) -> float:
    """Events per second of a stream over its files, without the first micro-batches, which warm up."""
    shutil.rmtree(folder, ignore_errors=True)
    writer = df.writeStream.format("noop").option("checkpointLocation", str(folder))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    told = [progress for progress in query.recentProgress if progress["numInputRows"] > 0][2:]
    return sum(one["numInputRows"] for one in told) / sum(one["durationMs"]["triggerExecution"] for one in told) * 1000


def streams(spark: Any, folder: Path, quick: bool) -> dict[str, float]:
    """The packed pipeline with a step that counts in the engine's place, and with the engine; few and many keys."""
    batch = 100_000 if quick else 500_000
    numbers: dict[str, float] = {}
    for keys in (1_000, 20_000):
        place = write_events(folder / f"stream{keys}", 8 * batch, 8, domains=(keys, 20, 10, 100, 10_000), types=4)
        schema = spark.read.parquet(str(place)).schema
        df = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(place))
        text = DENSE.replace("1000", str(keys))  # as many events of each key in a window
        numbers[f"cepheid, {keys} keys"] = streamed(cepheid.match(df, text, delay=0), folder / "checkpoint")
        if keys == 1_000:
            plan = planned(df, text)
            counted = _counted(df, plan)
            numbers["identity, 1000 keys"] = streamed(counted, folder / "checkpoint")
    numbers["ratio"] = numbers["cepheid, 1000 keys"] / numbers["identity, 1000 keys"]
    rows = [[name, value] for name, value in numbers.items()]
    print_table(f"Streams, micro-batches of {batch:,}", ["pipeline", "events/s"], rows)
    return numbers


def _counted(df: Any, plan: Plan) -> Any:
    """The pipeline of a stream with a step that only unpacks and counts."""
    from bench._spark_count import Count

    options = spark_stream.stream_options({"delay": 0})
    shipped = spark_stream.ship(plan, arrow_schema(df))
    keys = spark_batch.distribution_keys(plan.bound)
    packed = spark_stream.packed_events(df, [shipped.plan], keys, options.shards, options)
    assert packed.columns == [part.split()[0] for part in PACKED.split(", ")]
    return packed.groupBy("shard").transformWithStateInPandas(Count(), "shard int, events bigint", "Append", "None")


def main(quick: bool) -> dict[str, Any]:
    """All of it, in one session of two cores."""
    folder = Path(tempfile.mkdtemp(prefix="cepheid-bench-"))
    settings = {"spark.sql.shuffle.partitions": CORES, "spark.driver.memory": "4g", "spark.local.dir": str(folder)}
    spark = start_session(f"local[{CORES}]", **settings)
    try:
        numbers = {
            "batch": batches(spark, folder, quick),
            "workload": workload(spark, folder, quick),
            "many": many(spark, folder),
            "streams": streams(spark, folder, quick),
        }
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
    save("spark", numbers)
    return numbers

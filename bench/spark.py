"""Cepheid on Spark, two cores: against the same pipelines with nothing in the engine's place, and against Flink CEP.

Every number is a ratio to one of the same run: what the engine costs on top of reading, shuffling and the way to Python
and back; what a tenth query costs on top of the first; what keys cost a stream in which they are idle.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import cepheid
from bench.flink import baseline
from bench.flink.installation import FlinkUnavailable
from bench.measure import RESULTS, plot_lines, print_table, save
from cepheid.plan.physical import Plan
from cepheid.runners.options import Options, StreamOptions
from cepheid.runners.spark import batch as spark_batch
from cepheid.runners.spark import stream as spark_stream
from cepheid.runners.spark.match import spark_plan
from cepheid.runners.spark.pack import PACKED
from cepheid.runners.spark.session import arrow_schema, start_session
from cepheid.simulate.sase import sase_events

CORES = 2
PARTITIONS = 8  # of a shuffle: a few for each core; what a task holds at a time then fits the caches
SMALL, LARGE = 1_000_000, 20_000_000  # events of SASE's workload
WARM_UP = 4  # micro-batches, while the JVM compiles and workers start
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
    keys = plan.exchange.keys
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


def sase_files(folder: Path, quick: bool) -> Path:
    """SASE's stream, written once."""
    place = folder / "sase"
    return place if place.exists() else write_events(place, SMALL if quick else LARGE, 4 if quick else 8)


def workload(spark: Any, folder: Path, quick: bool) -> dict[str, float]:
    """SASE's workload from Parquet to Parquet, 3 of 20 types relevant; and Flink CEP on as many cores."""
    events = SMALL if quick else LARGE
    df = spark.read.parquet(str(sase_files(folder, quick)))
    out = str(folder / "matches")
    taken = seconds(lambda: cepheid.match(df, SASE).write.mode("overwrite").parquet(out))
    ours, matches = events / taken, spark.read.parquet(out).count()
    rows: list[list[Any]] = [["Cepheid", events, ours, matches, 1.0]]
    numbers: dict[str, Any] = {"events_per_second": ours}
    table = sase_events(500_000, seed=1).events
    for name, prefilter in (("Flink CEP, all events", False), ("Flink CEP, relevant types only", True)):
        try:
            query = baseline.Sequence(prefilter=prefilter)
            count = 100_000 if quick else 500_000
            tried = [baseline.measure(query, table, max_events=count, slots=slots) for slots in (1, CORES)]
        except FlinkUnavailable as problem:
            print(f"Flink is not measured: {problem}")
            break
        # The better of the two: one slot keeps both cores busy, too, with the source beside it. From memory, not files.
        rates = [flink.events_per_second for flink in tried]
        rate, flink = max(rates), tried[0]
        rows.append([f"{name}, {CORES} cores", flink.events, rate, flink.matches, ours / rate])
        by_slots = dict(zip(("1 slot", f"{CORES} slots"), rates, strict=True))
        numbers[name] = {"events_per_second": rate, "times_slower": ours / rate, **by_slots}
    print_table("SASE's workload, Parquet to Parquet", ["engine", "events", "events/s", "matches", "ours / it"], rows)
    return numbers


def many(spark: Any, folder: Path, quick: bool) -> dict[str, Any]:
    """Ten queries in one pass against one of them; the fewer types they share, the more events they need."""
    df = spark.read.parquet(str(sase_files(folder, quick)))
    text = "PATTERN SEQ(T{0} a, T{1} b, T{2} c) WHERE [attr1] WITHIN {3}" + RETURNED
    one = seconds(sink(spark_batch.match_batch(df, planned(df, text.format(0, 1, 2, 10_000)))))
    rows: list[list[Any]] = [[1, 3, one, 1.0]]
    numbers: dict[str, Any] = {"one": one}
    for types in (6, 12):
        texts = [text.format(*[(n + k) % types for k in range(3)], 10_000 - 500 * n) for n in range(10)]
        ten = seconds(
            sink(spark_batch.match_batch(df, {f"q{n}": planned(df, text) for n, text in enumerate(texts)})), 2
        )
        rows.append([10, types, ten, ten / one])
        numbers[f"ten of {types} types"] = {"seconds": ten, "ratio": ten / one}
    print_table("Ten queries in one pass", ["queries", "types of 20", "seconds", "times one"], rows)
    return numbers


def warm_progress(df: Any, folder: Path) -> list[Any]:
    """What Spark tells of the micro-batches of a stream over its files, without the first ones, which warm up."""
    shutil.rmtree(folder, ignore_errors=True)
    writer = df.writeStream.format("noop").option("checkpointLocation", str(folder))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return [progress for progress in query.recentProgress if progress["numInputRows"] > 0][WARM_UP:]


def read_stream(spark: Any, place: Path) -> Any:
    """A stream that takes one file in each micro-batch, and shuffles it to as many tasks as there are cores."""
    spark.conf.set("spark.sql.shuffle.partitions", CORES)
    schema = spark.read.parquet(str(place)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(place))


def streams(spark: Any, folder: Path, quick: bool) -> dict[str, Any]:
    """The packed pipeline with a step that counts in the engine's place, and with the engine."""
    batch, files = (100_000, 6) if quick else (500_000, 12)
    df = read_stream(spark, write_events(folder / "stream", files * batch, files, types=4))
    pipelines = {"identity": _counted(df, planned(df, DENSE)), "cepheid": cepheid.match(df, DENSE, delay=0)}
    rates: dict[str, list[float]] = {name: [] for name in pipelines}
    for _ in range(1 if quick else 2):  # in turns: what comes later finds a warmer JVM
        for name, pipeline in pipelines.items():
            told = warm_progress(pipeline, folder / "checkpoint")
            taken = sum(one["durationMs"]["triggerExecution"] for one in told) / 1000
            rates[name].append(sum(one["numInputRows"] for one in told) / taken)
    best = {name: max(found) for name, found in rates.items()}
    ratio = best["cepheid"] / best["identity"]
    rows = [["identity", best["identity"], 1.0], ["Cepheid", best["cepheid"], ratio]]
    title = f"Streams, micro-batches of {batch:,} events"
    print_table(title, ["in the engine's place", "events/s", "of identity"], rows)
    return {**best, "ratio": ratio, "events_per_micro_batch": batch}


def idle_keys(spark: Any, folder: Path, quick: bool) -> dict[str, Any]:
    """The same stream of a thousand busy keys, with more and more keys in the state that nothing comes for."""
    batch, files = (50_000, 6) if quick else (200_000, 9)
    text = (
        "PATTERN SEQ(T0 a, T1 b, T2 c) WHERE [attr1] AND a.attr4 < 10 AND b.attr4 < 10 AND c.attr4 < 10"
        f" AND b.ts - a.ts < 2000 AND c.ts - b.ts < 2000 WITHIN {2 * files * batch}" + RETURNED
    )
    taken: dict[int, float] = {}
    retained: dict[int, int] = {}
    for idle in (0, 100_000, 1_000_000, 1_000_000, 100_000, 0):  # and back, since what comes later finds a warmer JVM
        place = folder / f"idle{idle}"
        if not place.exists():
            write_events(place, files * batch, files, types=4)
            add_idle_keys(place / "000.parquet", idle)
        told = warm_progress(cepheid.match(read_stream(spark, place), text, delay=0), folder / "checkpoint")
        middle = float(np.median([one["durationMs"]["triggerExecution"] for one in told])) / 1000
        taken[idle] = min(middle, taken.get(idle, middle))
        retained[idle] = told[-1]["observedMetrics"]["cepheid"]["retained"]
    rows = [[1_000, idle, retained[idle], taken[idle], taken[idle] / taken[0]] for idle in taken]
    columns = ["busy keys", "idle keys", "events retained", "seconds per micro-batch", "times none"]
    print_table(f"Idle keys, micro-batches of {batch:,} events", columns, rows)
    x = ("idle keys in the state (thousands)", [idle / 1000 for idle in taken])
    title = f"1,000 busy keys, {batch:,} events at a time"
    plot_lines("spark_idle_keys", title, x, "seconds per micro-batch", {"": list(taken.values())})
    seconds_by_keys = {str(idle): value for idle, value in taken.items()}
    return {"seconds": seconds_by_keys, "ratio": taken[1_000_000] / taken[0], "events_per_micro_batch": batch}


def add_idle_keys(path: Path, keys: int) -> None:
    """Begins a file of events with one of each further key, which may begin a match, and nothing follows it."""
    if not keys:
        return
    events, stamp = pq.read_table(path), path.stat().st_mtime
    first = sase_events(keys, types=1, seed=99).events
    zeros = np.zeros(keys, np.int64)
    for name, values in {"ts": zeros, "attr1": np.arange(keys) + 1_000_000, "attr4": zeros}.items():
        first = first.set_column(first.column_names.index(name), name, pa.array(values))
    pq.write_table(pa.concat_tables([first.cast(events.schema), events]), path)
    os.utime(path, (stamp, stamp))


def _counted(df: Any, plan: Plan) -> Any:
    """The pipeline of a stream with a step that only unpacks and counts."""
    from bench._spark_count import Count

    options = StreamOptions(delay=0)
    shipped = spark_stream.ship(spark_stream.sharded(plan, options), arrow_schema(df))
    packed = spark_stream.packed_events(df, [shipped.plan], options)
    assert packed.columns == [part.split()[0] for part in PACKED.split(", ")]
    return packed.groupBy("shard").transformWithStateInPandas(Count(), "shard int, events bigint", "Append", "None")


PARTS: dict[str, Callable[[Any, Path, bool], dict[str, Any]]] = {
    "batch": batches,
    "workload": workload,
    "many": many,
    "streams": streams,
    "idle_keys": idle_keys,
}


def main(quick: bool, parts: Sequence[str] = tuple(PARTS)) -> dict[str, Any]:
    """All of it, or some parts, in one session of two cores; numbers of other parts stay as they were."""
    folder = Path(tempfile.mkdtemp(prefix="cepheid-bench-"))
    settings = {"spark.sql.shuffle.partitions": PARTITIONS, "spark.driver.memory": "4g", "spark.local.dir": str(folder)}
    spark = start_session(f"local[{CORES}]", **settings)
    kept = RESULTS / "spark.json"
    before = json.loads(kept.read_text()) if kept.exists() else {}
    numbers = {name: before[name] for name in PARTS if name in before}
    try:
        for name in parts:
            numbers[name] = PARTS[name](spark, folder, quick)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
    if not quick:
        save("spark", {name: numbers[name] for name in PARTS if name in numbers}, CORES)
    return numbers


if __name__ == "__main__":
    main("--quick" in sys.argv, [name for name in sys.argv[1:] if name != "--quick"] or tuple(PARTS))

"""Cepheid on Spark over streams: throughput beside pipelines without an engine, and latency at fixed rates.

"identity" is stateless: filter, shuffle, to Python and back. "count by key" is Spark's own stateful aggregation over
the same shuffle: what keeping state costs without any Python.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import cepheid
from bench.experiments.sizes import points, sized
from bench.experiments.spark_batch import KEYED, TYPES, identity
from bench.harness.experiment import Case, Contestant, Experiment, Outcome, Verdict, available
from bench.harness.spark import scratch, session
from bench.harness.summary import Summary
from bench.rivals.latency import flink_at_rate, rate_events
from cepheid.simulate import sase_events

WARM_UP = 3  # micro-batches, while the JVM compiles and workers start
CORES = 2
STREAM = "PATTERN SEQ(T0 a, T1 b, T2 c) WHERE [attr1] WITHIN 10000"
INTERVAL = 0.5  # seconds between files of a live stream
START = 120.0  # seconds that a stream has at most to its first micro-batch


def stream_files(batch: int, files: int) -> Path:
    """Files of one micro-batch each, in order of time."""
    folder = Path(scratch()) / f"stream-{batch}-{files}"
    if not folder.exists():
        folder.mkdir()
        for number in range(files):
            table = sase_events(batch, seed=number).events
            path = folder / f"{number:04}.parquet"
            pq.write_table(table.set_column(0, "ts", pa.array(table["ts"].to_numpy() + number * batch)), path)
            os.utime(path, (1_700_000_000 + number,) * 2)
    return folder


def progress(frame: Any, mode: str = "append") -> list[Any]:
    """What Spark says of the micro-batches of a stream, without the first ones."""
    checkpoint = Path(scratch()) / "checkpoint"
    shutil.rmtree(checkpoint, ignore_errors=True)
    writer = frame.writeStream.format("noop").outputMode(mode).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    told = [each for each in query.recentProgress if each["numInputRows"] > 0]
    return told[WARM_UP:] if len(told) > WARM_UP else told[-1:]


def measured(told: Sequence[Any]) -> Outcome:
    """The seconds of all micro-batches after the first, apart to all events of the stream."""
    seconds = sum(each["durationMs"]["triggerExecution"] for each in told) / 1000
    rows = sum(each["numInputRows"] for each in told)
    each = [one["durationMs"]["triggerExecution"] / 1000 for one in told]
    return Outcome(seconds=seconds, metrics={"rate": rows / seconds, "seconds_per_micro_batch": float(np.median(each))})


def throughput(size: str) -> Sequence[Case]:
    """Micro-batches of several sizes, as fast as it goes."""
    files = sized(size, 2, 6, 8)
    batches = points(size, (20_000, 200_000, 1_000_000), (50_000,), (5_000,))

    def make(batch: int) -> Sequence[Contestant]:
        spark = session(CORES)
        spark.conf.set("spark.sql.shuffle.partitions", CORES)
        place = stream_files(batch, files)
        schema = spark.read.parquet(str(place)).schema
        frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(place))
        relevant = frame.where(frame["type"].isin(*TYPES))
        counted = max(1, files - WARM_UP) * batch
        makers = {
            "identity": lambda: progress(identity(frame, ["ts", "type", "attr1"], "attr1")),
            "count by key": lambda: progress(relevant.groupBy("attr1").count(), "update"),
            "Cepheid": lambda: progress(cepheid.match(frame, KEYED, delay=0)),
        }
        return [Contestant(name, run, counted, measured, False, 2, warms_itself=True) for name, run in makers.items()]

    return [Case(batch, lambda batch=batch: make(batch)) for batch in batches]


def judge_throughput(summary: Summary) -> Verdict:
    x = summary.xs("Cepheid")[-1]
    share = summary.ratio("Cepheid", "identity", x)
    state = summary.ratio("Cepheid", "count by key", x)
    number = (
        f"{summary.value('Cepheid', x):,.0f} events/s in micro-batches of {x:,}: {share:.0%} of stateless identity, "
        f"{state:.0%} of Spark's own stateful count; micro-batches of {summary.xs('Cepheid')[0]:,}: "
        f"{summary.value('Cepheid', summary.xs('Cepheid')[0]):,.0f} events/s"
    )
    return Verdict(number, share > 0.3)


# --- idle keys ----------------------------------------------------------------------------------------------------

IDLE = (
    "PATTERN SEQ(T0 a, T1 b, T2 c) WHERE [attr1] AND a.attr4 < 10 AND b.attr4 < 10 AND c.attr4 < 10"
    " AND b.ts - a.ts < 2000 AND c.ts - b.ts < 2000 WITHIN {window} RETURN a.ts AS first, b.ts AS second, c.ts AS third"
)


def idle_files(batch: int, files: int, idle: int) -> Path:
    """The stream with one event of each further key in front, which may begin a match, and nothing follows it."""
    folder = Path(scratch()) / f"idle-{batch}-{files}-{idle}"
    if folder.exists():
        return folder
    folder.mkdir()
    for path in sorted(stream_files(batch, files).glob("*.parquet")):
        table = pq.read_table(path)
        if idle and path.name.startswith("0000."):
            first = sase_events(idle, types=1, seed=99).events
            zeros = np.zeros(idle, np.int64)
            for name, values in {"ts": zeros, "attr1": np.arange(idle) + 1_000_000, "attr4": zeros}.items():
                first = first.set_column(first.column_names.index(name), name, pa.array(values))
            table = pa.concat_tables([first.cast(table.schema), table])
        pq.write_table(table, folder / path.name)
        os.utime(folder / path.name, (path.stat().st_mtime,) * 2)
    return folder


def idle_keys(size: str) -> Sequence[Case]:
    """A thousand busy keys, and more and more in the state that nothing comes for."""
    batch, files = {"smoke": (5_000, 2), "quick": (50_000, 6), "full": (200_000, 7)}[size]

    def make(idle: int) -> Sequence[Contestant]:
        spark = session(CORES)
        spark.conf.set("spark.sql.shuffle.partitions", CORES)
        place = idle_files(batch, files, idle)
        schema = spark.read.parquet(str(place)).schema
        frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(place))
        text = IDLE.format(window=2 * files * batch)
        counted = max(1, files - WARM_UP) * batch
        run = Contestant(
            "Cepheid", lambda: progress(cepheid.match(frame, text, delay=0)), counted, measured, False, 2, True
        )
        return [run]

    return [
        Case(idle, lambda idle=idle: make(idle)) for idle in points(size, (0, 100_000, 1_000_000), (0, 100_000), (0,))
    ]


def judge_idle(summary: Summary) -> Verdict:
    low, high = summary.xs()[0], summary.xs()[-1]
    seconds = [summary.value("Cepheid", x, of="seconds_per_micro_batch") for x in (low, high)]
    number = f"{seconds[0]:.2f} s a micro-batch without idle keys, {seconds[1]:.2f} s with {high:,}"
    return Verdict(number, seconds[1] < 1.5 * seconds[0])


# --- fixed rates --------------------------------------------------------------------------------------------------


def produce(folder: Path, rate: int, stop: threading.Event) -> None:
    """Writes a file every half second, its events stamped with the moment at which it appears."""
    size, number, begun = max(1, int(rate * INTERVAL)), 0, time.time()
    ready = [rate_events(size, seed) for seed in range(4)]
    while not stop.is_set():
        table = ready[number % len(ready)]
        table = table.set_column(0, "ts", pa.array(table["ts"].to_numpy() + number * size))
        table = table.append_column("arrived", pa.array(np.full(size, time.time_ns() // 1_000_000)))
        hidden = folder / f".{number:06}.parquet"
        pq.write_table(table, hidden)
        hidden.rename(folder / f"{number:06}.parquet")
        number += 1
        stop.wait(max(0.0, begun + number * INTERVAL - time.time()))


def live_stream(rate: int, seconds: float) -> Outcome:
    """Latency from the arrival of a match's last event to the match, in milliseconds, and whether Spark keeps up."""
    spark = session(CORES)
    spark.conf.set("spark.sql.shuffle.partitions", CORES)
    place, checkpoint = (
        Path(scratch()) / f"live-{time.time_ns()}",
        Path(scratch()) / f"live-checkpoint-{time.time_ns()}",
    )
    place.mkdir()
    schema = rate_events(1, seed=0).append_column("arrived", pa.array([0]))
    frame = spark.readStream.schema(spark.createDataFrame(schema).schema).parquet(str(place))
    matches = cepheid.match(frame, STREAM + " RETURN c.arrived AS arrived", delay=0)
    seen: list[np.ndarray[Any, Any]] = []
    begun: list[float] = []

    def keep(found: Any, number: int) -> None:
        arrived = found.select("arrived").toArrow()["arrived"].to_numpy()
        if begun and time.time() - begun[0] > seconds / 3:  # the JVM warms up before
            seen.append(time.time_ns() / 1e6 - arrived)

    stop = threading.Event()
    producer = threading.Thread(target=produce, args=(place, rate, stop))
    producer.start()
    query = matches.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint)).start()
    try:
        warm = time.time()
        while not [each for each in query.recentProgress if each["numInputRows"] > 0] and time.time() - warm < START:
            time.sleep(0.2)  # Python workers start with the first micro-batch
        before = len(query.recentProgress)
        begun.append(time.time())
        time.sleep(seconds)
        told = [each for each in query.recentProgress[before:] if each["numInputRows"] > 0]
    finally:
        stop.set()
        producer.join()
        query.stop()
    read = sum(each["numInputRows"] for each in told)
    latencies = np.concatenate(seen) if seen else np.array([np.nan])
    if not latencies.size:
        latencies = np.array([np.nan])
    p50, p95, p99 = np.percentile(latencies, (50, 95, 99))
    metrics = {"p50_ms": p50, "p95_ms": p95, "p99_ms": p99, "keeps_up": read / (rate * seconds), "rate": float(rate)}
    shutil.rmtree(place, ignore_errors=True)
    return Outcome(seconds=seconds, metrics={name: float(value) for name, value in metrics.items()})


def live_in_process(rate: int, seconds: float) -> Outcome:
    """The same query as a live one in this process: whatever is due goes in as one table, matches come out at once."""
    size = max(rate, 20_000)  # events that come over and over
    block = rate_events(size, seed=0).select(["ts", "type", "attr1"])
    times = block["ts"].to_numpy() - block["ts"][0].as_py()
    stream = cepheid.query(STREAM).live(block.schema)
    latencies: list[np.ndarray[Any, Any]] = []
    sent, total, begun = 0, int(rate * seconds), time.perf_counter()
    while sent < total and (now := time.perf_counter() - begun) < 1.5 * seconds:
        place = sent % size
        count = min(int(now * rate) - sent, size - place, total - sent)
        if count <= 0:
            time.sleep(0.0005)
            continue
        piece = block.slice(place, count).set_column(0, "ts", pa.array(times[place : place + count] + sent - place))
        found = stream.send(piece)
        sent += count
        spent = time.perf_counter() - begun
        if spent > seconds / 3 and found.num_rows:
            latencies.append(1000 * (spent - (found["match_end"].to_numpy() + 1) / rate))
    spent = time.perf_counter() - begun
    p50, p95, p99 = np.percentile(np.concatenate(latencies or [np.array([np.nan])]), (50, 95, 99))
    metrics = {"p50_ms": p50, "p95_ms": p95, "p99_ms": p99, "keeps_up": sent / (rate * spent), "rate": float(rate)}
    return Outcome(seconds=spent, metrics={name: float(value) for name, value in metrics.items()})


def rates(size: str) -> Sequence[Case]:
    """Fixed rates, up to what two cores cannot keep up with; Flink CEP beside it at the same rates."""
    chosen = points(size, (1_000, 10_000, 100_000, 300_000), (1_000, 10_000), (1_000,))
    seconds = {"smoke": 12.0, "quick": 20.0, "full": 16.0}[size]

    def make(rate: int) -> Sequence[Contestant]:
        def at_rate(name: str, run: Callable[[int, float], Outcome]) -> Contestant:
            call = partial(run, rate, seconds)
            return Contestant(name, call, int(rate * seconds), lambda outcome: outcome, False, 1, warms_itself=True)

        ours = [at_rate("Cepheid on Spark", live_stream), at_rate("Cepheid live, one process", live_in_process)]
        return [*ours, *available([lambda: flink_at_rate(rate, seconds)])]

    return [Case(rate, lambda rate=rate: make(rate)) for rate in chosen]


def judge_rates(summary: Summary) -> Verdict:
    words = []
    for name in summary.contestants():
        parts = [
            f"{x:,}/s p50 {summary.value(name, x, of='p50_ms'):,.0f} p99 {summary.value(name, x, of='p99_ms'):,.0f} ms"
            f"{'' if summary.value(name, x, of='keeps_up') > 0.8 else ' (falls behind)'}"
            for x in summary.xs(name)
        ]
        words.append(f"{name}: " + ", ".join(parts))
    why = "a micro-batch costs about 0.7 s whatever it holds, and a match waits for the watermark of the next one"
    return Verdict("; ".join(words), None, why)


EXPERIMENTS = (
    Experiment(
        "spark-stream",
        "Spark: streaming throughput",
        "Micro-batches beside pipelines without an engine",
        "the engine costs little beside the micro-batch",
        "events of a micro-batch",
        throughput,
        judge_throughput,
        also=("seconds_per_micro_batch",),
        cores=2,
        weight=5.0,
        log_x=True,
        needs=("spark",),
        mode="Spark stream, files of one micro-batch",
        yardsticks=("identity", "count by key"),
    ),
    Experiment(
        "spark-idle",
        "Spark: idle keys",
        "Keys in the state that nothing comes for",
        "they cost a stream nothing",
        "idle keys",
        idle_keys,
        judge_idle,
        y="seconds_per_micro_batch",
        cores=2,
        weight=3.0,
        log_y=False,
        needs=("spark",),
        mode="Spark stream, files of one micro-batch",
        less_is_better=True,
    ),
    Experiment(
        "spark-rates",
        "Spark: streaming at fixed rates",
        "Latency from an event's arrival to its match",
        "Flink answers each event at once; micro-batches do not",
        "events per second offered",
        rates,
        judge_rates,
        y="p50_ms",
        also=("p95_ms", "p99_ms", "keeps_up"),
        cores=2,
        weight=5.0,
        log_x=True,
        needs=("spark",),
        mode="Spark stream from files every half second; live queries in one process",
        less_is_better=True,
    ),
)

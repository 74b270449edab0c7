"""What a micro-batch costs beside pipelines without an engine: `python -m bench.streams cost`.

Contestants take turns in one session: "identity" (filter, shuffle, to Python and back), the same with every event and
neither filter nor shuffle, "count by key" (Spark's own stateful aggregation over the same shuffle), one query, one that
lets only events move the clock that concern it (as the filter of identity and count does), and a hundred queries that
share a stream. A stateless filter stands beside them. Each reads the same files, one for each micro-batch; the first
micro-batches of every turn are left out. `python -m bench.streams spark` adds a trickle: so many events a second, in
micro-batches as they come, by the clock and in processor time.

Processor time is that of the JVM and the Python workers together (this process only looks on): on a machine with other
work it says more than the clock does.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import functions

import cepheid
from bench.experiments.spark_batch import KEYED, TYPES, identity
from bench.experiments.spark_stream import stream_files
from bench.harness.spark import session
from bench.latency import TEXT, measure, processor_seconds, source

IDENTITY, EVERY, COUNT = "identity", "identity, every event", "count by key"
FILTER, ONE, MANY = "filter", "Cepheid", "Cepheid, 100 queries"
OTHER_TYPES = "Cepheid, 100 queries of other types"
RELEVANT = "Cepheid, clock='relevant'"
WARM_UP = 3  # micro-batches of a turn
CORES = 2


@dataclass
class Cost:
    """Of one contestant: what each of its turns cost for a micro-batch, in milliseconds."""

    processor: list[float] = field(default_factory=list)
    jvm: list[float] = field(default_factory=list)
    workers: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)


def contestants(frame: Any, names: Sequence[str]) -> dict[str, Callable[[], tuple[Any, str]]]:
    """The streams by name, each with its output mode."""
    queries = {f"q{number}": KEYED.replace("10000", str(10_000 - number)) for number in range(100)}
    known: dict[str, Callable[[], tuple[Any, str]]] = {
        IDENTITY: lambda: (identity(frame, ["ts", "type", "attr1"], "attr1"), "append"),
        EVERY: lambda: (every_event(frame, ["ts", "type", "attr1"]), "append"),
        FILTER: lambda: (frame.where(frame["type"].isin(*TYPES)).select("ts", "type", "attr1"), "append"),
        COUNT: lambda: (frame.where(frame["type"].isin(*TYPES)).groupBy("attr1").count(), "update"),
        ONE: lambda: (cepheid.match(frame, KEYED, delay=0), "append"),
        RELEVANT: lambda: (cepheid.match(frame, KEYED, delay=0, clock="relevant"), "append"),
        MANY: lambda: (cepheid.match(frame, queries, delay=0), "append"),
        OTHER_TYPES: lambda: (cepheid.match(frame, {f"q{n}": of_types(n) for n in range(100)}, delay=0), "append"),
    }
    return {name: known[name] for name in names}


def of_types(number: int) -> str:
    """The query over three other types."""
    types = [f"T{(7 * number + place * (1 + number // 20)) % 20}" for place in range(3)]
    return KEYED.replace("T0 a, T1 b, T2 c", "{} a, {} b, {} c".format(*types))


def every_event(frame: Any, columns: Sequence[str]) -> Any:
    """All events to Python and back, with NULL where the query needs the time alone, as a match sends them."""
    needed = frame["type"].isin(*TYPES)
    sent = frame.select(columns[0], *[functions.when(needed, frame[name]).alias(name) for name in columns[1:]])
    return sent.mapInArrow(lambda batches: batches, sent.schema)


def one_turn(frame: Any, mode: str, files: int) -> tuple[dict[str, float], float]:
    """The processor milliseconds of a micro-batch of a stream, and the median of what it took, after the first."""
    with tempfile.TemporaryDirectory() as folder:
        writer = frame.writeStream.format("noop").outputMode(mode).option("checkpointLocation", folder)
        query = writer.start()

        def last() -> int:
            if not query.isActive and query.exception() is not None:
                raise query.exception()
            return int((query.lastProgress or {"batchId": -1})["batchId"])

        while last() < WARM_UP - 1:
            time.sleep(0.01)
        before, begun = processor_seconds(), last()
        while last() < files - 1:
            time.sleep(0.01)
        after, ended = processor_seconds(), last()
        took = [each["durationMs"]["triggerExecution"] for each in query.recentProgress if each["batchId"] > begun]
        query.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return {name: 1000 * (after[name] - before[name]) / (ended - begun) for name in after}, float(np.median(took))


def measured(batch: int, files: int, rounds: int, names: Sequence[str]) -> dict[str, Cost]:
    """What the contestants cost, in turns; a first round, in which the JVM compiles, does not count."""
    spark = session(CORES)
    spark.conf.set("spark.sql.shuffle.partitions", CORES)
    place: Path = stream_files(batch, files)
    schema = spark.read.parquet(str(place)).schema
    frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(place))
    costs = {name: Cost() for name in names}
    for turn in range(rounds + 1):
        for name, make in contestants(frame, names).items():
            spent, took = one_turn(*make(), files)
            if turn:
                cost = costs[name]
                cost.processor.append(spent["jvm"] + spent["workers"])
                cost.jvm.append(spent["jvm"])
                cost.workers.append(spent["workers"])
                cost.wall.append(took)
    return costs


def run_cost(sizes: Sequence[int], files: int, rounds: int, names: Sequence[str]) -> None:
    """Prints a table: medians over the rounds, and ratios within rounds."""
    print(
        "| events of a micro-batch | stream | processor ms | JVM | workers | ms | identity's processor time / its own |"
    )
    print("|---|---|---|---|---|---|---|")
    for batch in sizes:
        costs = measured(batch, files, rounds, names)
        for name, cost in costs.items():
            middle = [np.median(each) for each in (cost.processor, cost.jvm, cost.workers, cost.wall)]
            told = " | ".join(f"{each:,.0f}" for each in middle)
            share = np.array(costs[IDENTITY].processor) / np.array(cost.processor)
            print(f"| {batch:,} | {name} | {told} | {np.median(share):.2f} ({share.min():.2f} to {share.max():.2f}) |")


ALL = (IDENTITY, EVERY, FILTER, COUNT, ONE, RELEVANT, MANY, OTHER_TYPES)
ASKED = (IDENTITY, FILTER, COUNT, ONE, RELEVANT, MANY)


def run_trickle(rate: int, seconds: float) -> None:
    """Prints a table of streams that get so many events a second, one after the other in one session."""
    spark = session(CORES)
    print("| events/s | stream | micro-batch ms | processor ms of it | processor ms of a second | times the filter |")
    print("|---|---|---|---|---|---|")
    with source(spark, rate) as events:
        queries = {f"q{number}": TEXT.replace("1500", str(1500 - number)) for number in range(100)}
        streams = {
            FILTER: lambda: events.where("id >= 0").selectExpr("ts AS at"),
            IDENTITY: lambda: events.repartition("id").mapInArrow(lambda batches: batches, events.schema),
            COUNT: lambda: events.groupBy("id").count(),
            ONE: lambda: cepheid.match(events, TEXT, delay=0),
            MANY: lambda: cepheid.match(events, queries, delay=0),
        }
        floor = np.nan
        for name, make in streams.items():
            found = measure(make(), seconds, 8, "noop", "update" if name == COUNT else "append")
            whole, spent = found.phase("triggerExecution"), found.spent["jvm"] + found.spent["workers"]
            floor = whole if name == FILTER else floor
            told = f"{whole:,.0f} | {spent:,.0f} | {spent * len(found.progress) / seconds:,.0f} | {whole / floor:.1f}"
            print(f"| {rate:,} | {name} | {told} |", flush=True)

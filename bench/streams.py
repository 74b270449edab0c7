"""What a stream costs: `python -m bench.streams queries | soak | load | latency`, with others of the same run.

- `queries`: the processor time of a micro-batch with 1, 10, 100 and 300 queries that share a state, without Spark.
- `soak`: memory over many micro-batches with windows that pass, and the slope of it with its error, without Spark;
  with `--spark` that of the driver, its JVM and the Python workers.
- `load`: one giant key, a million tiny ones, bursts, silence, disorder: throughput, state, books and a batch beside it;
  without Spark, or with `--spark`.
- `latency`: from the arrival of an event to its match at some rates, beside a stateless query on the same session: in
  less than 6 minutes where nothing else runs.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.stream_load import run_load
from bench.stream_soak import run_spark_soak
from bench.stream_steps import run_queries, run_soak

WARM = 15  # micro-batches before anything is measured


def run_latency(rates: list[int], seconds: float, shards: int | None) -> None:
    """Percentiles from the time of a match's last event to the match, beside those of a filter on the same events.

    Every event completes one match, with the event of its key a second before. The source gives out a second of events
    when it is over, so that an event waits half a second on average before any query can see it. Beside the times is
    the processor time of the JVM and of its Python workers for one micro-batch, which a busy machine changes little.
    """
    import cepheid
    from cepheid.runners.spark.session import start_session

    session = start_session("local[2]")
    text = "PATTERN SEQ(A a, A b) WHERE [id] WITHIN 1500 milliseconds RETURN b.ts AS at"
    for rate in rates:
        source = session.readStream.format("rate").option("rowsPerSecond", rate).load()
        events = source.selectExpr("timestamp AS ts", "'A' AS type", f"value % {rate} AS id")
        asked = {} if shards is None else {"shards": shards}
        results = {
            "stateless": events.where("id >= 0").selectExpr("ts AS at"),
            "match": cepheid.match(events, text, delay=0, **asked).select("at"),
        }
        floor = None
        for name, result in results.items():
            measured = measure(result, seconds)
            floor = floor or measured
            ratio = f"p50 {measured.p50 / floor.p50:.1f} and a micro-batch {measured.batch / floor.batch:.1f} times"
            told = "" if floor is measured else f"; {ratio} the stateless one"
            print(f"{rate:6,} events/s {name:9} {measured.told}{told}", flush=True)
    session.stop()


@dataclass(frozen=True)
class Measured:
    """What was measured of one stream."""

    p50: float  # seconds from an event to its result
    batch: float  # milliseconds of a micro-batch
    told: str


def measure(result: Any, seconds: float) -> Measured:
    """Runs a stream for some time after it has warmed up."""
    waits: list[float] = []

    def write(batch: Any, _: int) -> None:
        found = batch.toArrow()
        now = time.time()
        waits.extend(now - each.timestamp() for each in found["at"].to_pylist())

    query = result.writeStream.foreachBatch(write).start()

    def last() -> int:  # the whole list of progresses would be costly to ask for
        return int((query.lastProgress or {"batchId": -1})["batchId"])

    while last() < WARM:  # the first micro-batches start everything
        time.sleep(0.2)
    waits.clear()
    before, begun = processor_seconds(), last()
    time.sleep(seconds)
    after, count = processor_seconds(), max(1, last() - begun)
    batches = [each["durationMs"] for each in query.recentProgress if each["batchId"] > begun]
    query.stop()
    kept = np.array(waits)
    middle = {key: int(np.median([each.get(key, 0) for each in batches])) for key in (batches[-1] if batches else {})}
    p50, p95, p99 = np.percentile(kept, [50, 95, 99]) if len(kept) else (np.nan,) * 3
    spent = {name: round(1000 * (after[name] - before[name]) / count) for name in after}
    told = f"{len(kept):,} rows of {len(batches)} micro-batches, p50 {p50:.2f} s, p95 {p95:.2f} s, p99 {p99:.2f} s"
    told += f"; processor time of a micro-batch, ms: {spent}; a micro-batch, ms: {middle}"
    return Measured(float(p50), float(middle.get("triggerExecution", 0) or 1), told)


def processor_seconds() -> dict[str, float]:
    """The processor time so far of this process, of the JVM below it and of the Python workers below that."""
    ticks, parents, names, spent = os.sysconf("SC_CLK_TCK"), {}, {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                head, tail = (entry / "stat").read_text().rsplit(")", 1)
            except OSError:
                continue
            fields, number = tail.split(), int(entry.name)
            parents[number], names[number] = int(fields[1]), head.split("(", 1)[1]
            spent[number] = (int(fields[11]) + int(fields[12])) / ticks
    own = os.getpid()
    found = {"driver": spent[own], "jvm": 0.0, "workers": 0.0}
    for number in spent:
        above = number
        while above not in (own, 0) and above in parents:
            above = parents[above]
        if above == own and number != own:
            found["jvm" if names[number] == "java" else "workers"] += spent[number]
    return found


def main() -> None:
    """Runs one of the programs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=["queries", "soak", "load", "latency"])
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--events", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=600, help="the soak ends after these, wherever it is")
    parser.add_argument("--spacing", type=int, default=1, help="milliseconds of event time between events of the soak")
    parser.add_argument("--spark", action="store_true", help="soak and load on Spark itself")
    parser.add_argument("--rates", type=int, nargs="+", default=[1, 100, 10_000])
    parser.add_argument("--seconds", type=float, default=25)
    parser.add_argument("--shards", type=int, help="of the matched stream; without it, as many as match takes")
    chosen = parser.parse_args()
    match chosen.program:
        case "queries":
            run_queries(chosen.batches, chosen.events)
        case "soak" if chosen.spark:
            run_spark_soak(chosen.batches, chosen.events, chosen.minutes)
        case "soak":
            run_soak(chosen.batches, chosen.events, chosen.minutes, chosen.spacing)
        case "load":
            run_load(chosen.spark)
        case _:
            run_latency(chosen.rates, chosen.seconds, chosen.shards)


if __name__ == "__main__":
    main()

"""What a stream costs: `python -m bench.streams queries | soak | latency`. Numbers stand beside others of the same run.

- `queries`: the processor time of a micro-batch with 1, 10, 100 and 300 queries that share a state, without Spark.
- `soak`: memory over many micro-batches with windows that pass, and the slope of it with its error, without Spark.
- `latency`: from the arrival of an event to its match at some rates, beside a stateless query on the same session: in
  less than 6 minutes where nothing else runs.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.runners.stream.changing import Asked, Serving
from cepheid.runners.stream.clock import Clock
from cepheid.runners.stream.state import Step

COLUMNS = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("id", pa.int64()), ("x", pa.int64())])
WINDOW = 2_000
WARM = 15  # micro-batches before anything is measured
PAIR = "PATTERN SEQ({} a, {} b) WHERE [id] AND a.x > b.x + {} WITHIN {}"


@dataclass
class InMemory:
    """A store in dictionaries."""

    chunks: dict[int, bytes] = field(default_factory=dict)
    codes: dict[int, bytes] = field(default_factory=dict)
    ends: dict[int, bytes] = field(default_factory=dict)

    def read(self, number: int) -> bytes:
        return self.chunks[number]

    def write(self, number: int, chunk: bytes) -> None:
        self.chunks[number] = chunk

    def remove(self, number: int) -> None:
        del self.chunks[number]

    def keys(self, number: int) -> bytes:
        return self.codes[number]

    def write_keys(self, number: int, keys: bytes) -> None:
        self.codes[number] = keys

    def remove_keys(self, number: int) -> None:
        del self.codes[number]

    def ended(self, query: int) -> bytes | None:
        return self.ends.get(query)

    def end(self, query: int, ended: bytes) -> None:
        self.ends[query] = ended

    def forget(self, query: int) -> None:
        self.ends.pop(query, None)


def arriving(rng: np.random.Generator, start: int, count: int) -> pa.Table:
    """Some events, one step apart."""
    kinds = rng.choice(["A", "B", "C", "D"], count)
    columns = [np.arange(start, start + count), kinds, rng.integers(0, 50, count), rng.integers(0, 100, count)]
    return pa.table(columns, schema=COLUMNS)


def served(count: int, last: str = "B") -> tuple[Step, Any]:
    """A step that serves so many queries over the same two types, each with a condition of its own."""
    serving = Serving(COLUMNS, {"time": "ts", "type": "type"}, ("id",), 1, Step((), (), 0, schema=COLUMNS))
    asked = {f"q{number}": Asked(PAIR.format("A", last, 95 - number % 5, WINDOW)) for number in range(count)}
    return serving.ready(asked)


def run_queries(batches: int, events: int) -> None:
    """The processor time of a micro-batch by the number of queries: of those that find something, and of others."""
    print(f"{batches} micro-batches of {events} events, window {WINDOW}, seed 16; processor time")
    for last, told in (("B", "that find matches"), ("Z", "that wait for an event that does not come")):
        base = None
        for count in (1, 10, 100, 300):
            middle, found = stepped(*served(count, last), batches, events)
            base = base or middle
            more = (middle - base) / max(1, count - 1)
            print(f"{count:4} queries {told}: {middle:8.1f} ms, {more:6.2f} ms per further query, {found:,} matches")


def stepped(step: Step, fingerprint: Any, batches: int, events: int) -> tuple[float, int]:
    """The median of the milliseconds of processor time of a micro-batch, and all matches."""
    rng, clock, store, times, found = np.random.default_rng(16), Clock.read(None, fingerprint), InMemory(), [], 0
    for number in range(batches):
        table = arriving(rng, number * events, events)
        begin = time.process_time()
        outcome = step.run(Clock.read(clock.text(fingerprint), fingerprint), store, [table], (number + 1) * events)
        times.append(time.process_time() - begin)
        clock, found = outcome.clock, found + outcome.matches
    return float(np.median(times[batches // 4 :])) * 1000, found


def run_soak(batches: int, events: int, minutes: float) -> None:
    """Memory over micro-batches: its slope, with the error of that. One step of time is a millisecond."""
    begun = time.monotonic()
    step, fingerprint = served(5)
    rng, clock, store, seen = np.random.default_rng(16), Clock.read(None, fingerprint), InMemory(), []
    for number in range(batches):
        table = arriving(rng, number * events, events)
        outcome = step.run(Clock.read(clock.text(fingerprint), fingerprint), store, [table], (number + 1) * events)
        clock = outcome.clock
        if number % 20 == 0:
            seen.append((number, resident_bytes(), outcome.retained, outcome.state_bytes))
        if time.monotonic() - begun > 60 * minutes:
            batches = number + 1
            break
    seen = seen[len(seen) // 4 :]  # what everything takes to start does not count
    x, memory, retained, state = (np.array(column, float) for column in zip(*seen, strict=True))
    passed, windows = batches * events / 60_000, batches * events / WINDOW
    print(f"{batches:,} micro-batches of {events} events: {passed:.0f} minutes, {windows:,.0f} windows passed, seed 16")
    for name, values in (("memory, bytes", memory), ("retained events", retained), ("state, bytes", state)):
        slope, error = slope_of(x, values)
        print(f"{name:16} mean {values.mean():14,.0f}, slope {slope:9.2f} ± {error:.2f} per micro-batch")
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


def resident_bytes() -> int:
    """The memory of this process."""
    with open("/proc/self/statm") as told:
        return int(told.read().split()[1]) * resource.getpagesize()


def slope_of(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The slope of a line through points, and its standard error."""
    slope, cut = np.polyfit(x, y, 1)
    left = y - (slope * x + cut)
    return float(slope), float(np.sqrt((left**2).sum() / (len(x) - 2) / ((x - x.mean()) ** 2).sum()))


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
    parser.add_argument("program", choices=["queries", "soak", "latency"])
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--events", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=600, help="the soak ends after these, wherever it is")
    parser.add_argument("--rates", type=int, nargs="+", default=[1, 100, 10_000])
    parser.add_argument("--seconds", type=float, default=25)
    parser.add_argument("--shards", type=int, help="of the matched stream; without it, as many as match takes")
    chosen = parser.parse_args()
    match chosen.program:
        case "queries":
            run_queries(chosen.batches, chosen.events)
        case "soak":
            run_soak(chosen.batches, chosen.events, chosen.minutes)
        case _:
            run_latency(chosen.rates, chosen.seconds, chosen.shards)


if __name__ == "__main__":
    main()

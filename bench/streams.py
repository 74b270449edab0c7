"""What a stream costs: `python -m bench.streams queries | soak | latency`. Numbers stand beside others of the same run.

- `queries`: the processor time of a micro-batch with 1, 10, 100 and 300 queries that share a state, without Spark.
- `soak`: memory over many micro-batches with windows that pass, and the slope of it with its error, without Spark.
- `latency`: from the arrival of an event to its match at some rates, beside a stateless query on the same session
  (bench/latency.py, which has more).
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from bench.latency import run_rates
from cepheid.runners.stream.changing import Asked, Serving
from cepheid.runners.stream.clock import Clock
from cepheid.runners.stream.state import Step

COLUMNS = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("id", pa.int64()), ("x", pa.int64())])
WINDOW = 2_000
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


def main() -> None:
    """Runs one of the programs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=["queries", "soak", "latency"])
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--events", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=600, help="the soak ends after these, wherever it is")
    parser.add_argument("--rates", type=int, nargs="+", default=[1, 100, 10_000])
    parser.add_argument("--seconds", type=float, default=15)
    chosen = parser.parse_args()
    match chosen.program:
        case "queries":
            run_queries(chosen.batches, chosen.events)
        case "soak":
            run_soak(chosen.batches, chosen.events, chosen.minutes)
        case _:
            run_rates(chosen.rates, chosen.seconds)


if __name__ == "__main__":
    main()

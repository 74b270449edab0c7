"""Streaming steps without Spark: what further queries cost, and memory over many micro-batches."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.runners.stream.changing import SearchRequest, Serving
from cepheid.runners.stream.clock import Clock
from cepheid.runners.stream.remembered import run_step
from cepheid.runners.stream.state import StreamStep

COLUMNS = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("id", pa.int64()), ("x", pa.int64())])
WINDOW = 2_000
SASE_WINDOW = 10_000
THREE = "PATTERN SEQ({} a, {} b, {} c) WHERE [id] AND a.x > {} WITHIN {}"
PAIR = "PATTERN SEQ({} a, {} b) WHERE [id] AND a.x > b.x + {} WITHIN {}"


@dataclass
class InMemory:
    """A store in dictionaries."""

    chunks: dict[int, bytes] = field(default_factory=dict)
    codes: dict[int, bytes] = field(default_factory=dict)
    ends: dict[int, bytes] = field(default_factory=dict)
    remembered: dict[int, Any] = field(default_factory=dict)

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


def arriving(rng: np.random.Generator, start: int, count: int, spacing: int = 1) -> pa.Table:
    """Some events, so many steps of time apart."""
    kinds = rng.choice(["A", "B", "C", "D"], count)
    columns = [
        spacing * np.arange(start, start + count),
        kinds,
        rng.integers(0, 50, count),
        rng.integers(0, 100, count),
    ]
    return pa.table(columns, schema=COLUMNS)


def served(count: int, last: str = "B", window: int = WINDOW) -> tuple[StreamStep, Any]:
    """A step that serves so many queries over the same two types, each with a condition of its own."""
    asked = {f"q{number}": SearchRequest(PAIR.format("A", last, 95 - number % 5, window)) for number in range(count)}
    return serving(("id",)).ready(asked)


def serving(keys: tuple[str, ...]) -> Serving:
    """What serves queries over the events."""
    return Serving(COLUMNS, {"time": "ts", "type": "type"}, keys, 1, StreamStep((), (), 0, schema=COLUMNS))


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


def run_sase(batches: int, events: int) -> None:
    """The same for sequences of three of 20 types with 1,000 keys, which differ in what the name of the row says.

    One query, ten and a hundred take their steps in turns.
    """
    print(f"{batches} micro-batches of {events} events, 20 types, 1,000 keys, window {SASE_WINDOW}; processor time")
    counts = (1, 10, 100)
    for name, text in ALIKE.items():
        steps = []
        for count in counts:
            asked = {f"q{number}": SearchRequest(text(number)) for number in range(count)}
            steps.append(steps_of(*serving(("id",)).ready(asked), batches, events, arriving_of_20_types))
        seen = np.array(list(zip(*steps, strict=True))[batches // 4 :])  # by micro-batch and number of queries
        times = np.median(seen[:, :, 0], axis=0)
        for count, time_of_step, found in zip(counts, times.tolist(), seen[:, :, 1].sum(axis=0).tolist(), strict=True):
            told = f"{time_of_step:8.2f} ms, {time_of_step / times[0]:5.1f} times one, {found:,.0f} matches"
            print(f"{name:20} {count:4} queries: {told}", flush=True)


def of_types(number: int) -> str:
    """A sequence of three types."""
    types = [f"T{(7 * number + place * (1 + number // 20)) % 20}" for place in range(3)]
    return THREE.format(*types, number % 10, SASE_WINDOW - number)


def of_next_match(text: str) -> str:
    """The same query under skip_till_next_match."""
    return text.replace("WHERE ", "WHERE skip_till_next_match(a, b, c) { ").replace(" WITHIN", " } WITHIN")


def of_constant(number: int) -> str:
    """A sequence of the same three types, with a condition of its own."""
    return THREE.format("T1", "T2", "T3", number, SASE_WINDOW)


ALIKE: dict[str, Callable[[int], str]] = {
    "types": of_types,
    "types, next match": lambda number: of_next_match(of_types(number)),
    "windows": lambda number: THREE.format("T1", "T2", "T3", 0, SASE_WINDOW - number),
    "windows, RETURN": lambda number: (
        THREE.format("T1", "T2", "T3", 0, SASE_WINDOW - number) + " RETURN a.ts AS f, c.ts AS l"
    ),
    "a.x > c": of_constant,
    "a.x > c, next match": lambda number: of_next_match(of_constant(number)),
    "a.x = c": lambda number: of_constant(number).replace(">", "="),
    "a.x = c, next match": lambda number: of_next_match(of_constant(number).replace(">", "=")),
}


def arriving_of_20_types(rng: np.random.Generator, start: int, count: int) -> pa.Table:
    """Some events of SASE's workload."""
    kinds = np.array([f"T{number}" for number in range(20)])[rng.integers(0, 20, count)]
    columns = [np.arange(start, start + count), kinds, rng.integers(0, 1_000, count), rng.integers(0, 100, count)]
    return pa.table(columns, schema=COLUMNS)


def stepped(step: StreamStep, fingerprint: Any, batches: int, events: int) -> tuple[float, int]:
    """The median of the milliseconds of processor time of a micro-batch, and all matches."""
    times, found = zip(*steps_of(step, fingerprint, batches, events, arriving), strict=True)
    return float(np.median(times[batches // 4 :])), sum(found)


def steps_of(
    step: StreamStep,
    fingerprint: Any,
    batches: int,
    events: int,
    make: Callable[[np.random.Generator, int, int], pa.Table],
) -> Iterator[tuple[float, int]]:
    """Of one micro-batch after the other, the milliseconds of processor time and the matches."""
    rng, clock, store = np.random.default_rng(16), Clock.read(None, fingerprint), InMemory()
    for number in range(batches):
        table = make(rng, number * events, events)
        begin = time.process_time()
        clock = Clock.read(clock.text(fingerprint), fingerprint)
        outcome = run_step(step, clock, store, [table], (number + 1) * events)
        took, clock = time.process_time() - begin, outcome.clock
        yield 1000 * took, outcome.matches


def run_soak(batches: int, events: int, minutes: float, spacing: int) -> None:
    """Memory over micro-batches: its slope, with the error of that; and what windows of other lengths keep.

    One step of time is a millisecond. With a larger spacing an hour passes in fewer micro-batches; the window is longer
    by the same factor, so that it holds as many events.
    """
    seen = soaked(batches, events, minutes, spacing, WINDOW * spacing)
    batches = seen[-1][0] + 1
    x, memory, retained, state = (np.array(column, float) for column in zip(*seen[len(seen) // 4 :], strict=True))
    passed, windows = batches * events * spacing / 60_000, batches * events / WINDOW
    print(f"{batches:,} micro-batches of {events} events: {passed:.0f} minutes, {windows:,.0f} windows passed, seed 16")
    for name, values in (("memory, bytes", memory), ("retained events", retained), ("state, bytes", state)):
        slope, error = slope_of(x, values)
        print(f"{name:16} mean {values.mean():14,.0f}, slope {slope:9.2f} ± {error:.2f} per micro-batch")
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")
    for factor in (1, 2, 4):
        shorter = soaked(4 * factor * WINDOW // events, events, minutes, spacing, factor * WINDOW * spacing)
        kept = np.array([each[2:] for each in shorter[len(shorter) // 2 :]], float).mean(axis=0)
        per = kept / (factor * WINDOW)
        told = f"keeps {kept[0]:8,.0f}: {per[0]:.2f} of them, {per[1]:.1f} bytes for each in the window"
        print(f"a window of {factor * WINDOW:6,} events {told}")


def soaked(batches: int, events: int, minutes: float, spacing: int, window: int) -> list[tuple[int, int, int, int]]:
    """Now and then the number of the micro-batch, the memory, the retained events and their bytes."""
    begun, seen = time.monotonic(), []
    step, fingerprint = served(5, window=window)
    rng, clock, store = np.random.default_rng(16), Clock.read(None, fingerprint), InMemory()
    for number in range(batches):
        table = arriving(rng, number * events, events, spacing)
        newest = spacing * (number + 1) * events
        outcome = step.run(Clock.read(clock.text(fingerprint), fingerprint), store, [table], newest)
        clock = outcome.clock
        if number % 20 == 0 or number == batches - 1:
            seen.append((number, resident_bytes(), outcome.retained, outcome.state_bytes))
        if time.monotonic() - begun > 60 * minutes:
            break
    return seen


def resident_bytes(process: int | str = "self") -> int:
    """The memory of a process."""
    with open(f"/proc/{process}/statm") as told:
        return int(told.read().split()[1]) * resource.getpagesize()


def slope_of(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The slope of a line through points, and its standard error."""
    slope, cut = np.polyfit(x, y, 1)
    left = y - (slope * x + cut)
    return float(slope), float(np.sqrt((left**2).sum() / (len(x) - 2) / ((x - x.mean()) ** 2).sum()))

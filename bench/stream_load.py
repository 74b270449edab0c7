"""Loads that are hard on a stream: one giant key, a million tiny ones, bursts, silence, disorder and duplicates.

Each is run in micro-batches, its books are balanced against what is known of the events that were made, and its matches
are counted beside those of a batch over the events that count.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import cepheid
from bench.stream_steps import InMemory
from cepheid.metrics import observed
from cepheid.runners.stream.changing import SearchRequest, Serving
from cepheid.runners.stream.clock import Clock
from cepheid.runners.stream.state import StreamStep

COLUMNS = pa.schema([(name, pa.int64()) for name in ("ts", "id", "x", "n")] + [("type", pa.string())])
NAME = "pairs"
PAIRS = "PATTERN SEQ(A a, B b) WHERE [id] AND a.x > b.x + {} WITHIN {}"
END = 10**12  # a time after all others


@dataclass(frozen=True)
class Load:
    """Micro-batches of events, and the query that looks at them."""

    name: str
    batches: Sequence[pa.Table]
    window: int
    above: int = 90  # how much more the first of a pair has: the more, the fewer matches
    delay: int = 0

    @property
    def text(self) -> str:
        return PAIRS.format(self.above, self.window)


@dataclass
class Books:
    """What became of the records, and what it took."""

    counts: Counter[str] = field(default_factory=Counter)
    most: tuple[int, int] = (0, 0)  # retained events and bytes of state at the worst moment
    slowest: float = 0.0  # seconds of a micro-batch
    seconds: float = 0.0


def some_events(rng: np.random.Generator, times: np.ndarray, keys: int, first: int, kinds: str = "AB") -> pa.Table:
    count = len(times)
    numbers = [times, rng.integers(0, keys, count), rng.integers(0, 100, count), np.arange(first, first + count)]
    return pa.table([*numbers, rng.choice(list(kinds), count)], schema=COLUMNS)


def even(sizes: Sequence[int], keys: int, kinds: str = "AB") -> list[pa.Table]:
    """Micro-batches of these sizes, an event a step of time."""
    rng, first, found = np.random.default_rng(16), 0, []
    for size in sizes:
        found.append(some_events(rng, np.arange(first, first + size), keys, first, kinds))
        first += size
    return found


def disordered(sizes: Sequence[int], keys: int, delay: int) -> list[pa.Table]:
    """A tenth of the events comes later than it happened, half of these too late; a tenth comes twice."""
    rng, whole = np.random.default_rng(17), pa.concat_tables(even(sizes, keys))
    count = whole.num_rows
    arrival = np.arange(count) + np.where(rng.random(count) < 0.1, rng.integers(0, 2 * delay, count), 0)
    twice = np.flatnonzero(rng.random(count) < 0.1)
    rows = np.concatenate([np.arange(count), twice])
    arrivals = np.concatenate([arrival, arrival[twice] + rng.integers(1, delay, len(twice))])
    came = whole.take(pa.array(rows[np.argsort(arrivals, kind="stable")]))
    edges = np.cumsum([0, *sizes[:-1]])
    return [came.slice(a, size) for a, size in zip(edges, [*sizes[:-1], came.num_rows - edges[-1]], strict=True)]


def silent(batches: int, size: int) -> list[pa.Table]:
    """Nine of ten micro-batches are empty or hold nothing that a query names."""
    found = even([size] * (batches // 5), 100)
    others = even([size] * (batches // 5), 100, "C")
    made = []
    for busy, idle in zip(found[::2], others[1::2], strict=True):
        made += [busy, *[busy.slice(0, 0)] * 4, idle, *[busy.slice(0, 0)] * 4]
    return made


def loads(scale: int) -> dict[str, Callable[[], Load]]:
    """All loads; on Spark, where a micro-batch costs more, there are fewer micro-batches."""
    burst = [200] * (20 * scale)
    burst[::10] = [20_000] * len(burst[::10])
    return {
        "even": lambda: Load("an even load, 1,000 keys", even([10_000] * (4 * scale), 1_000), 20_000),
        "giant": lambda: Load("one giant key", even([10_000] * (4 * scale), 1), 2_000, above=97),
        "tiny": lambda: Load("a million tiny keys", even([100_000] * (4 * scale), 1_000_000), 1_000_000, above=50),
        "bursts": lambda: Load("bursts of 100 times the usual", even(burst, 1_000), 20_000),
        "silence": lambda: Load("9 of 10 micro-batches idle", silent(20 * scale, 2_000), 20_000),
        "disorder": lambda: Load(
            "disorder and duplicates", disordered([5_000] * (4 * scale), 100, 1_000), 10_000, 90, 1_000
        ),
    }


def run_load(spark: bool) -> None:
    """Runs all of them."""
    print(f"{'on Spark' if spark else 'the streaming step, processor time'}; seeds 16 and 17")
    for make in loads(2 if spark else 5).values():
        load = make()
        books = on_spark(load) if spark else in_steps(load)
        came = sum(batch.num_rows for batch in load.batches)
        expected, known = expectation(load)
        print(
            f"{load.name}: {came:,} events in {len(load.batches)} micro-batches, {came / books.seconds:,.0f} events/s,"
        )
        events, size = books.most
        print(f"    slowest {1000 * books.slowest:,.0f} ms, kept at most {events:,} events, {size:,} bytes")
        told = {name: books.counts[name] for name in known}
        print(f"    {told}, {books.counts['matches']:,} matches; a batch finds {expected:,}", flush=True)
        assert told == known, (told, known)
        assert books.counts["matches"] == expected


def expectation(load: Load) -> tuple[int, dict[str, int]]:
    """The matches of a batch over the events that count, and the books as they must be: told without any stream."""
    seen, until, newest, counts, kept = set[int](), None, None, Counter[str](), []
    for batch in load.batches:
        if not batch.num_rows:
            continue
        times, numbers = batch["ts"].to_numpy(), batch["n"].to_numpy()
        relevant = np.isin(batch["type"].to_numpy(zero_copy_only=False), ["A", "B"])
        late = relevant & (times <= until) if until is not None else np.zeros(len(times), bool)
        twice = np.zeros(len(times), bool)
        if load.delay:
            for place in np.flatnonzero(relevant & ~late):
                twice[place] = numbers[place] in seen
                seen.add(int(numbers[place]))
        used = relevant & ~late & ~twice
        counts.update(read=len(times), irrelevant=int((~relevant).sum()), late=int(late.sum()))
        counts.update(duplicates=int(twice.sum()), used=int(used.sum()), shed=0, malformed=0)
        kept.append(batch.filter(pa.array(used)))
        newest = max(int(times.max()), newest if newest is not None else int(times.max()))
        until = newest - load.delay - 1
    found = cepheid.match(pa.concat_tables(kept), load.text)
    return found.num_rows, dict(counts)


def in_steps(load: Load) -> Books:
    """The load in steps of one shard, without Spark."""
    dedupe = ("n",) if load.delay else ()
    serving = Serving(
        COLUMNS,
        {"time": "ts", "type": "type"},
        ("id",),
        1,
        StreamStep((), (), load.delay, schema=COLUMNS, dedupe=dedupe),
    )
    step, fingerprint = serving.ready({NAME: SearchRequest(load.text)})
    clock, store, books = Clock.read(None, fingerprint), InMemory(), Books()
    for batch in [*load.batches, None]:
        newest = END if batch is None else int(batch["ts"].to_numpy().max()) if batch.num_rows else None
        begin = time.process_time()
        relevant = [] if batch is None else [batch.filter(pa.compute.is_in(batch["type"], pa.array(["A", "B"])))]
        outcome = step.run(Clock.read(clock.text(fingerprint), fingerprint), store, relevant, newest)
        took, clock = time.process_time() - begin, outcome.clock
        books.seconds, books.slowest = books.seconds + took, max(books.slowest, took)
        books.most = max(books.most, (outcome.retained, outcome.state_bytes))
        came = 0 if batch is None else batch.num_rows
        books.counts.update(read=came, irrelevant=came - outcome.events, matches=outcome.matches, shed=outcome.shed)
        # Of the query, counted by the types of what came, and not as what is left over.
        used, late, twice = (
            sum(count for _, count in told) for told in (outcome.used_by, outcome.late_by, outcome.duplicates_by)
        )
        books.counts.update(used=used, late=late, duplicates=twice, malformed=0)
    return books


def on_spark(load: Load) -> Books:
    """The load on Spark, a file a micro-batch; the books are those of its metrics."""
    from cepheid.runners.spark.session import start_session

    session = start_session(
        "local[2]", **{"spark.driver.memory": "2g", "spark.sql.streaming.numRecentProgressUpdates": 1000}
    )
    with tempfile.TemporaryDirectory() as folder:
        end = load.batches[0].slice(0, 1).set_column(0, COLUMNS.field("ts"), pa.array([END]))
        end = end.set_column(4, COLUMNS.field("type"), pa.array(["end"]))
        for number, batch in enumerate([*load.batches, end]):
            file = Path(folder) / f"{number:05}.parquet"
            pq.write_table(batch, file)
            os.utime(file, (1_700_000_000 + number,) * 2)  # Spark reads files in the order of their milliseconds
        schema = "ts long, id long, x long, n long, type string"
        stream = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
        result = cepheid.match(stream, {NAME: load.text}, delay=load.delay, **({"dedupe": "n"} if load.delay else {}))
        with tempfile.TemporaryDirectory() as place:
            writer = result.writeStream.format("noop").option("checkpointLocation", place)
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
            return books_of(query.recentProgress)


def books_of(progress: Sequence[dict]) -> Books:
    """The books as the metrics of a stream tell them, without the last event, which only ends the time of others."""
    books = Books()
    for each in progress:
        told = next(iter(observed(each).values()), None)
        if told is None or told["read"] is None:
            continue
        names = ("read", "irrelevant", "malformed", "used", "late", "duplicates", "shed", "matches")
        books.counts.update({name: told[name] or 0 for name in names})
        took = each["durationMs"]["triggerExecution"] / 1000
        books.seconds, books.slowest = books.seconds + took, max(books.slowest, took)
        books.most = max(books.most, (told["retained"], told["state_bytes"]))
    books.counts.subtract(read=1, irrelevant=1)
    return books

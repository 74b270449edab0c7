"""Cepheid on Spark over tables: beside the same pipeline with nothing in the engine's place, on one core and on two.

"identity" filters and projects as the query allows, shuffles by key and goes to Python and back: what is left of its
rate is the engine's. Events come from Parquet files, matches go to Parquet files (identity's rows go nowhere).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import cepheid
from bench.experiments.sizes import points, sized
from bench.harness.experiment import Case, Contestant, Experiment, Outcome, Verdict
from bench.harness.spark import scratch, session
from bench.harness.summary import Summary
from cepheid.simulate import sase_events

TYPES = ("T0", "T1", "T2")
RETURNED = " RETURN a.ts AS first, b.ts AS second, c.ts AS third"
KEYED = "PATTERN SEQ(T0 a, T1 b, T2 c) WHERE [attr1] WITHIN 10000" + RETURNED
WITHOUT_KEY = (
    "PATTERN SEQ(T0 a, T1 b, T2 c) WHERE a.attr5 < 1000 AND b.attr5 < 1000 AND c.attr5 < 1000 WITHIN 1000" + RETURNED
)
PART = 1_000_000  # events of a file
REPEATS = 3


def event_files(
    name: str, events: int, keys: Callable[[np.random.Generator, int], Any] | None = None, **more: Any
) -> Path:
    """SASE's stream as Parquet files in order of time, written once."""
    folder = Path(scratch()) / f"{name}-{events}"
    if folder.exists():
        return folder
    folder.mkdir()
    size = min(PART, -(-events // 4))
    for number, begin in enumerate(range(0, events, size)):
        table = sase_events(min(size, events - begin), seed=number, **more).events
        table = table.set_column(0, "ts", pa.array(table["ts"].to_numpy() + begin))
        if keys is not None:
            # Not the seed of the events: keys drawn alike would follow from the types.
            drawn = keys(np.random.default_rng(10_000 + number), table.num_rows)
            table = table.set_column(table.column_names.index("attr1"), "attr1", pa.array(drawn.astype(np.int64)))
        path = folder / f"{number:04}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_700_000_000 + number,) * 2)
    return folder


def identity(frame: Any, columns: Sequence[str], key: str | None) -> Any:
    """The pipeline without an engine."""

    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    events = frame.where(frame["type"].isin(*TYPES)).select(*columns)
    events = events.repartition(key) if key is not None else events.repartition(1)
    return events.mapInArrow(same, events.schema)


def batch_contestants(cores: int, files: Path, text: str, key: str | None, events: int) -> Sequence[Contestant]:
    """Identity, and the query from Parquet to Parquet."""
    spark = session(cores)
    frame = spark.read.parquet(str(files))
    out = str(Path(scratch()) / "matches")
    columns = ["ts", "type", key] if key is not None else ["ts", "type", "attr5"]

    def ours() -> int:
        cepheid.match(frame, text).write.mode("overwrite").parquet(out)
        return int(spark.read.parquet(out).count())

    return [
        Contestant(
            "identity",
            lambda: identity(frame, columns, key).write.format("noop").mode("overwrite").save(),
            events,
            agrees=False,
            most_repeats=REPEATS,
        ),
        Contestant("Cepheid", ours, events, lambda found: Outcome(found), most_repeats=REPEATS),
    ]


def by_size(size: str) -> Sequence[Case]:
    """More and more events, on one core and on two. CEPHEID_BENCH_MOST adds a larger stream, if the disk bears it."""
    sizes = [*points(size, (1_000_000, 4_000_000, 20_000_000), (200_000,), (20_000,))]
    if size == "full" and os.environ.get("CEPHEID_BENCH_MOST"):
        sizes.append(int(os.environ["CEPHEID_BENCH_MOST"]))

    def make(cores: int, events: int) -> Sequence[Contestant]:
        return batch_contestants(cores, event_files("sase", events), KEYED, "attr1", events)

    kinds = (2,) if size == "smoke" else (1, 2)
    return [Case(n, lambda c=c, n=n: make(c, n), f"{c} cores") for c in kinds for n in sizes]


def judge_size(summary: Summary) -> Verdict:
    words = []
    for series in summary.series():
        x = summary.xs("Cepheid", series)[-1]
        share = summary.ratio("Cepheid", "identity", x, series)
        words.append(
            f"{series}: {summary.value('Cepheid', x, series):,.0f} events/s at {x:,} events, {share:.0%} of identity"
        )
    x = summary.xs("Cepheid", summary.series()[-1])[-1]
    gain = summary.value("Cepheid", x, "2 cores") / summary.value("Cepheid", x, "1 cores")
    return Verdict("; ".join(words) + f"; two cores x{gain:.2f} of one", gain > 1.3)


def by_keys(size: str) -> Sequence[Case]:
    """Few, many, skewed and no keys, on two cores."""
    events = sized(size, 20_000, 200_000, 4_000_000)

    def skewed(rng: np.random.Generator, count: int) -> Any:
        return np.minimum(rng.zipf(1.2, count), 100_000) - 1

    kinds: dict[str, tuple[str, Callable[[], Path], str | None]] = {
        "10 keys": (KEYED, lambda: event_files("few", events, lambda rng, n: rng.integers(0, 10, n)), "attr1"),
        "1,000 keys": (KEYED, lambda: event_files("sase", events), "attr1"),
        "100,000 keys": (
            KEYED,
            lambda: event_files("many", events, lambda rng, n: rng.integers(0, 100_000, n)),
            "attr1",
        ),
        "skewed keys (Zipf 1.2)": (KEYED, lambda: event_files("skewed", events, skewed), "attr1"),
        "no key": (WITHOUT_KEY, lambda: event_files("sase", events), None),
    }
    short = {"10 keys", "skewed keys (Zipf 1.2)"}  # a window of 10,000 events holds too many matches of one key

    def make(text: str, files: Callable[[], Path], key: str | None, name: str) -> Sequence[Contestant]:
        words = text.replace("WITHIN 10000", "WITHIN 100") if name in short else text
        return batch_contestants(2, files(), words, key, events)

    return [Case(name, lambda name=name, kind=kind: make(*kind, name)) for name, kind in kinds.items()]


def judge_keys(summary: Summary) -> Verdict:
    share = {x: summary.ratio("Cepheid", "identity", x) for x in summary.xs()}
    words = ", ".join(
        f"{x} {summary.value('Cepheid', x):,.0f} events/s ({part:.0%} of identity)" for x, part in share.items()
    )
    return Verdict(words, min(share.values()) > 0.3)


def by_queries(size: str) -> Sequence[Case]:
    """Queries from 1 to 100 in one pass: each of three of twelve types, with a window of its own."""
    counts = points(size, (1, 3, 10, 30, 100), (1, 3, 10), (1, 3))
    events = sized(size, 20_000, 200_000, 1_000_000)

    def make(count: int) -> Sequence[Contestant]:
        spark = session(2)
        frame = spark.read.parquet(str(event_files("sase", events)))
        text = "PATTERN SEQ(T{0} a, T{1} b, T{2} c) WHERE [attr1] WITHIN {3}" + RETURNED
        texts = {
            f"q{n}": text.format(n % 12, (n + 1 + n // 12 % 5) % 12, (n + 6 + n // 60) % 12, 10_000 - 50 * n)
            for n in range(count)
        }
        queries = {name: cepheid.query(words) for name, words in texts.items()}

        def sink(found: Any) -> None:
            found.write.format("noop").mode("overwrite").save()

        together = Contestant(
            "one pass", lambda: sink(cepheid.match(frame, queries)), events, agrees=False, most_repeats=REPEATS
        )
        if count > 3:
            return [together]
        return [
            together,
            Contestant(
                "one by one",
                lambda: [sink(cepheid.match(frame, query)) for query in queries.values()],
                events,
                agrees=False,
                most_repeats=REPEATS,
            ),
        ]

    return [Case(count, lambda count=count: make(count)) for count in counts]


def judge_queries(summary: Summary) -> Verdict:
    first = summary.value("one pass", 1, of="seconds")
    words = ", ".join(
        f"{x}: x{summary.value('one pass', x, of='seconds') / first:.1f}" for x in summary.xs("one pass")[1:]
    )
    last = summary.xs("one pass")[-1]
    more = (summary.value("one pass", last, of="seconds") - first) / (float(last) - 1)
    number = f"times the cost of one query: {words}; a further query costs {more / first:.1%} of the first"
    return Verdict(number, more < 0.5 * first)


EXPERIMENTS = (
    Experiment(
        "spark-batch",
        "Spark: batch end to end",
        "Parquet to Parquet beside the identity pipeline",
        "the engine costs little beside reading, shuffling and the way to Python",
        "events",
        by_size,
        judge_size,
        cores=2,
        weight=4.0,
        log_x=True,
        needs=("spark",),
        mode="Spark batch, Parquet to Parquet",
        yardsticks=("identity",),
    ),
    Experiment(
        "spark-keys",
        "Spark: keys",
        "Few, many, skewed and no keys",
        "every kind of key keeps most of the identity pipeline's rate",
        "keys",
        by_keys,
        judge_keys,
        cores=2,
        weight=3.0,
        needs=("spark",),
        mode="Spark batch, Parquet to Parquet",
        yardsticks=("identity",),
    ),
    Experiment(
        "spark-queries",
        "Spark: many queries",
        "Queries from 1 to 100 in one pass",
        "a further query costs a fraction of the first",
        "queries",
        by_queries,
        judge_queries,
        y="seconds",
        cores=2,
        weight=3.0,
        log_x=True,
        needs=("spark",),
        mode="Spark batch, Parquet to nowhere",
        ours=("one pass",),
        less_is_better=True,
    ),
)

"""Today's rivals: the same stream, the same query, matches compared before times.

Two queries over SASE's stream. "any": every combination (skip till any match), which CORE and joins can say. "next":
the next event of each type (skip till next match), which Flink SQL, Siddhi and window functions can say.
Streaming engines get events one by one from memory and answer each at once; Cepheid, DuckDB, Spark SQL and pandas get
them as a table, and "Cepheid live" gets them as they come, a hundred at a time or one by one, and answers each time.
Cepheid's stream on Spark is beside Flink's in spark-rates. Clocks of other processes run from the first event to the
last match, so that their start is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

import cepheid
from bench.experiments.sizes import points, sized
from bench.harness.calls import cepheid_call, inspect_result
from bench.harness.experiment import Case, Contestant, Experiment, Outcome, Unavailable, Verdict, available
from bench.harness.spark import join_statement, self_join, session
from bench.harness.store import ROOT
from bench.harness.summary import Summary
from bench.rivals import setup
from bench.rivals.by_hand import any_match_pandas, next_match_pandas, next_match_statement
from bench.rivals.process import REPEATS, in_process
from cepheid.simulate import sase_events, stock_ticks

TYPES = ("T0", "T1", "T2")
KEY, WINDOW = "attr1", 10_000
WORKERS = ROOT / "bench" / "rivals"
OURS = "Cepheid"
LIVE, ONE_BY_ONE = "Cepheid live, 100 at a time", "Cepheid live, one by one"
SINGLE = {"smoke": 500, "quick": 5_000, "full": 10_000}  # events for what takes them one by one in Python


def text(strategy: str, window: int = WINDOW) -> str:
    """The query in Cepheid's words."""
    names = [f"e{place}" for place in range(1, len(TYPES) + 1)]
    parts = ", ".join(f"{kind} {name}" for kind, name in zip(TYPES, names, strict=True))
    return f"PATTERN SEQ({parts}) WHERE [{KEY}] AND skip_till_{strategy}_match({', '.join(names)}) WITHIN {window}"


def stream(events: int, size: str) -> pa.Table:
    """SASE's stream: 20 types, 1,000 keys; fewer keys in the smoke run, so that there are matches to compare."""
    return sase_events(events, domains=(20 if size == "smoke" else 1_000, 20, 10, 100, 10_000), seed=1).events


def flink_cep(name: str, table: pa.Table, workload: Any, slots: int = 1, agrees: bool = True) -> Contestant:
    """Flink CEP by bench/flink; it says how many matches it found, not which."""
    from bench.flink.baseline import measure
    from bench.flink.installation import FlinkUnavailable

    setup.flink()

    def run() -> Any:
        try:
            return measure(workload, table, max_events=table.num_rows, slots=slots)
        except FlinkUnavailable as problem:
            raise Unavailable(str(problem)) from None

    return Contestant(
        name,
        run,
        table.num_rows,
        lambda result: Outcome(result.matches, seconds=result.seconds),
        agrees,
        REPEATS,
        warms_itself=True,
    )


def duckdb(table: pa.Table, statement: str) -> Contestant:
    """DuckDB with one thread."""
    command = [str(setup.duckdb()), str(WORKERS / "duckdb_worker.py")]
    return in_process("DuckDB", command, table, {"statement": statement, "threads": 1})


def live(name: str, table: pa.Table, words: str, piece: int) -> Contestant:
    """Cepheid as a stream in this process: events come in pieces, matches go out after each."""
    query = cepheid.query(words)
    pieces = [table.slice(begin, piece) for begin in range(0, table.num_rows, piece)]

    def run() -> pa.Table:
        stream = query.live(table.schema)
        found = [stream.send(each) for each in pieces]
        return pa.concat_tables([*found, stream.finish()])

    return Contestant(name, run, table.num_rows, inspect_result, most_repeats=REPEATS)


def opencep(table: pa.Table) -> Contestant:
    """OpenCEP from a checkout of its public source; it joins in Python, so it gets the shortest stream only."""
    request = {"checkout": str(setup.opencep_source()), "types": TYPES, "key": KEY, "window": WINDOW}
    return in_process("OpenCEP", [sys.executable, str(WORKERS / "opencep_worker.py")], table, request)


def core(table: pa.Table) -> Contestant:
    """CORE, offline."""
    command = [str(setup.core()), str(WORKERS / "core_worker.py")]
    return in_process("CORE", command, table, {"types": TYPES, "key": KEY, "window": WINDOW})


def pandas(call: Callable[..., pa.Table], table: pa.Table) -> Contestant:
    """pandas by hand."""
    return Contestant("pandas by hand", lambda: call(table, TYPES, KEY, WINDOW), table.num_rows, inspect_result)


def any_match(size: str) -> Sequence[Case]:
    """Every combination."""
    from bench.flink.baseline import Sequence as FlinkSequence

    lengths = points(size, (50_000, 500_000), (20_000,), (3_000,))

    def make(events: int) -> Sequence[Contestant]:
        table = stream(events, size)
        small = table.select(["ts", "type", KEY])
        few = small.slice(0, SINGLE[size])
        return available(
            [
                lambda: cepheid_call(OURS, table, text("any")),
                lambda: live(LIVE, small, text("any"), 100),
                lambda: core(small),
                *(
                    [lambda: live(ONE_BY_ONE, few, text("any"), 1), lambda: opencep(few)]
                    if events == lengths[0]
                    else []
                ),
                lambda: flink_cep("Flink CEP", table, FlinkSequence(prefilter=False)),
                lambda: flink_cep("Flink CEP, relevant types only", table, FlinkSequence()),
                lambda: flink_cep("Flink CEP, relevant types only, 2 slots", table, FlinkSequence(), slots=2),
                lambda: duckdb(small, join_statement("events", TYPES, [KEY], WINDOW)),
                lambda: self_join("Spark SQL self-join", table, TYPES, [KEY], WINDOW),
                lambda: pandas(any_match_pandas, table),
            ]
        )

    return [Case(events, lambda events=events: make(events)) for events in lengths]


def spark_window(table: pa.Table) -> Contestant:
    """Window functions in Spark SQL."""
    spark = session(1)
    frame = spark.createDataFrame(table.select(["ts", "type", KEY])).cache()
    frame.count()
    frame.createOrReplaceTempView("next_events")
    statement = next_match_statement("next_events", TYPES, KEY, WINDOW)
    return Contestant(
        "Spark SQL window functions", lambda: spark.sql(statement).toArrow(), table.num_rows, inspect_result
    )


def next_match(size: str) -> Sequence[Case]:
    """The next event of each type."""
    from bench.rivals.java import flink_sql, siddhi

    lengths = points(size, (50_000, 500_000), (20_000,), (3_000,))

    def make(events: int) -> Sequence[Contestant]:
        table = stream(events, size)
        small = table.select(["ts", "type", KEY])
        few = small.slice(0, SINGLE[size])
        return available(
            [
                lambda: cepheid_call(OURS, table, text("next")),
                lambda: live(LIVE, small, text("next"), 100),
                *([lambda: live(ONE_BY_ONE, few, text("next"), 1)] if events == lengths[0] else []),
                lambda: flink_sql(small, TYPES, KEY, WINDOW),
                lambda: flink_sql(small, TYPES, KEY, WINDOW, slots=2),
                lambda: siddhi(small, TYPES, KEY, WINDOW),
                lambda: duckdb(small, next_match_statement("events", TYPES, KEY, WINDOW)),
                lambda: spark_window(table),
                lambda: pandas(next_match_pandas, table),
            ]
        )

    return [Case(events, lambda events=events: make(events)) for events in lengths]


def kleene(size: str) -> Sequence[Case]:
    """SASE+'s rising prices, windows in time (Flink counts no events per key)."""
    from bench.experiments.sase_plus import STRATEGIES
    from bench.experiments.sase_plus import text as template
    from bench.flink.baseline import Kleene

    events = sized(size, 2_000, 20_000, 100_000)

    def make(short: str, strategy: str) -> Sequence[Contestant]:
        table = stock_ticks(events, seed=1).events
        words = template(f"p2 {short}", 1_000).replace(" EVENTS", "")
        return available(
            [
                lambda: cepheid_call(OURS, table, words),
                lambda: flink_cep("Flink CEP", table, Kleene(iterator="p2", strategy=strategy, window=1_000)),
            ]
        )

    return [Case(f"p2 {short}", lambda s=short, t=strategy: make(s, t)) for short, strategy in STRATEGIES.items()]


def judge(summary: Summary) -> Verdict:
    """Ours against each, at the longest stream that it ran; is ours the first?"""
    words, first = [], True
    for name in summary.contestants():
        if name == OURS:
            continue
        x = summary.xs(name)[-1]
        if name.startswith(OURS):
            words.append(f"{name} {summary.value(name, x):,.0f} events/s")
            continue
        ratio = summary.ratio(OURS, name, x)
        first &= ratio >= 1
        words.append(f"x{ratio:,.1f} of {name}")
    x = summary.xs(OURS)[-1]
    label = x if isinstance(x, str) else f"{x:,} events"
    return Verdict(f"Cepheid {summary.value(OURS, x):,.0f} events/s ({label}): " + ", ".join(words), first)


MODE = "batch over a table in memory; live in pieces; Flink, CORE, Siddhi and OpenCEP stream"
CLAIM = "Cepheid is the first of those that find the same matches"
EXPERIMENTS = (
    Experiment(
        "rivals-any",
        "Rivals: every combination",
        "SASE's query, skip till any match",
        CLAIM,
        "events",
        any_match,
        judge,
        weight=2.0,
        needs=("spark", "rivals"),
        notes="Flink CEP and CORE stream; Flink says only how many matches it found.",
        mode=MODE,
    ),
    Experiment(
        "rivals-next",
        "Rivals: the next event of each type",
        "SASE's query, skip till next match",
        CLAIM,
        "events",
        next_match,
        judge,
        weight=2.0,
        needs=("spark", "rivals"),
        mode=MODE,
    ),
    Experiment(
        "rivals-kleene",
        "Rivals: Kleene plus",
        "SASE+'s rising prices",
        CLAIM,
        "query",
        kleene,
        judge,
        needs=("rivals",),
        mode=MODE,
    ),
)

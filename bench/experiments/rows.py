"""Row patterns beside Flink SQL: one statement, the same rows, results compared before times.

V-shapes over many keys, a funnel under a window, and a pattern that never ends well. Both get the clause with the same
pattern and conditions; Flink knows no PREV and no greedy quantifier at the end, so the V-shape ends with the row that
falls again. Flink gets rows one by one from memory, in event time, with two slots; Cepheid a table, with two threads.
Flink's clock runs from the first row to the last result, after a run over 100,000 rows. Beside the seconds of the clock
are those that the processor worked, of all threads, which other work on the machine changes little.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import cepheid
from bench.experiments.sizes import points, sized
from bench.flink.installation import JAVA_OPTIONS
from bench.harness.experiment import Case, Contestant, Experiment, Outcome, Unavailable, Verdict, available
from bench.harness.summary import Summary
from bench.rivals import setup
from bench.rivals.java import compiled, tool
from bench.rivals.process import REPEATS, TIMEOUT

OURS, FLINK = "Cepheid", "Flink SQL MATCH_RECOGNIZE"
V_SHAPE = """PARTITION BY k ORDER BY {time} MEASURES FIRST(A.ts) AS began, LAST(UP.ts) AS ended
ONE ROW PER MATCH AFTER MATCH SKIP TO FIRST E PATTERN (A DOWN+ UP+ E)
DEFINE DOWN AS (LAST(DOWN.price, 1) IS NULL AND DOWN.price < A.price) OR DOWN.price < LAST(DOWN.price, 1),
  UP AS (LAST(UP.price, 1) IS NULL AND UP.price > LAST(DOWN.price)) OR UP.price > LAST(UP.price, 1),
  E AS E.price <= LAST(UP.price)"""
WITH_PREV = """PARTITION BY k ORDER BY {time} MEASURES FIRST(ts) AS began, LAST(UP.ts) AS ended
ONE ROW PER MATCH AFTER MATCH SKIP TO FIRST E PATTERN (A DOWN+ UP+ E)
DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price), E AS price <= PREV(price)"""
FUNNEL = """PARTITION BY k ORDER BY {time} MEASURES A.ts AS began, C.ts AS ended
ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A X* B Y* C) WITHIN {window}
DEFINE A AS A.price < 2, X AS X.price <= 90, B AS B.price > 90, Y AS Y.price NOT BETWEEN 40 AND 45,
  C AS C.price BETWEEN 40 AND 45"""
FAILING = """PARTITION BY k ORDER BY {time} MEASURES FIRST(A.ts) AS began, E.ts AS ended
ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A+ B+ C+ E)
DEFINE A AS A.kind = 0, B AS B.kind = 1, C AS C.kind = 2, E AS E.kind = 4"""
WINDOW = 2_000_000  # milliseconds
MOST = 300_000  # rows for Flink, which takes seconds for them
FAILING_MOST = 300  # and of the failing pattern, where its time grows with the cube of the rows
WARM = 100_000
WORK = "processor_seconds"


def ticks(rows: int, keys: int = 10_000) -> pa.Table:
    """Prices without any order, of many keys."""
    random = np.random.default_rng(1)
    price, k = random.random(rows) * 100, random.integers(0, keys, rows)
    return pa.table({"ts": np.arange(rows), "k": k, "kind": np.zeros(rows, np.int64), "price": price})


def phases(rows: int) -> pa.Table:
    """A..A B..B C..C D in one partition: every start of the failing pattern runs to the end."""
    kind = np.repeat(np.arange(4), [rows // 3, rows // 3, rows - 2 * (rows // 3) - 1, 1])
    zeros = np.zeros(rows, np.int64)
    return pa.table({"ts": np.arange(rows), "k": zeros, "kind": kind, "price": zeros.astype(float)})


def ours(name: str, table: pa.Table, clause: str, agrees: bool = True) -> Contestant:
    """The clause over a table in memory."""
    query = cepheid.query(f"MATCH_RECOGNIZE ({clause.format(time='ts', window=WINDOW)})")

    def run() -> tuple[pa.Table, float]:
        begun = time.process_time()
        result = query.match(table)
        return result, time.process_time() - begun

    return Contestant(name, run, table.num_rows, inspect, agrees)


def inspect(answer: tuple[pa.Table, float]) -> Outcome:
    """How many results, the sum of their first and last times, and the processor's work."""
    result, work = answer
    total = sum(int(pc.sum(result[name]).as_py() or 0) for name in ("began", "ended"))
    return Outcome(result.num_rows, str(total), metrics={WORK: work})


def flink(table: pa.Table, clause: str, slots: int = 2) -> Contestant:
    """Flink SQL over the same rows."""
    jars = setup.flink() / f"flink-{setup.FLINK}" / "pyflink" / "lib"
    classes = compiled("FlinkSqlRows", jars)
    interval = f"INTERVAL '{WINDOW // 1000}' SECOND(6)"
    statement = f"SELECT * FROM ticks MATCH_RECOGNIZE ({clause.format(time='rowtime', window=interval)})"
    columns = [table[name].to_numpy().astype("<i8") for name in ("ts", "k", "kind")]
    columns.append(table["price"].to_numpy().astype("<f8").view("<i8"))
    numbers = np.concatenate([np.array([table.num_rows], "<i8"), *columns])

    def run() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            rows, query = Path(folder) / "rows.bin", Path(folder) / "query.sql"
            numbers.tofile(rows)
            query.write_text(statement, encoding="utf-8")
            path = f"{classes}{os.pathsep}{jars / '*'}"
            command = [tool("java"), "-Xmx4g", *JAVA_OPTIONS, "-cp", path, "FlinkSqlRows"]
            options = [str(rows), str(query), str(slots), str(WARM)]
            try:
                done = subprocess.run(
                    [*command, *options], capture_output=True, text=True, check=False, timeout=TIMEOUT
                )
            except subprocess.TimeoutExpired:
                raise Unavailable(f"did not finish in {TIMEOUT:.0f} s") from None
            answers = [line for line in done.stdout.splitlines() if line.startswith("{")]
            if done.returncode != 0 or not answers:
                raise Unavailable(f"failed: {(done.stderr or done.stdout).strip()[-500:]}")
            answer: dict[str, Any] = json.loads(answers[-1])
            return answer

    def look(answer: dict[str, Any]) -> Outcome:
        return Outcome(answer["matches"], str(answer["sum"]), answer["seconds"], {WORK: answer["work"]})

    return Contestant(FLINK, run, table.num_rows, look, most_repeats=REPEATS, warms_itself=True)


def compared(clause: str, size: str, also: str | None = None) -> Sequence[Case]:
    """One statement over more and more rows of 10,000 keys, ours and, over the fewest, Flink's."""
    lengths = points(size, (300_000, 1_000_000, 10_000_000), (300_000,), (20_000,))

    def make(rows: int) -> Sequence[Contestant]:
        table = ticks(rows, sized(size, 200, 10_000, 10_000))
        makers = [lambda: ours(OURS, table, clause)]
        if rows <= MOST:
            makers.append(lambda: flink(table, clause))
        if also is not None:
            makers.insert(1, lambda: ours(f"{OURS}, with PREV", table, also))
        return available(makers)

    return [Case(rows, lambda rows=rows: make(rows)) for rows in lengths]


def failing(size: str) -> Sequence[Case]:
    """A pattern that fails from every row; Flink keeps every part of a match and is left out where it is too slow."""
    lengths = points(size, (300, 1_000_000, 3_000_000, 10_000_000), (300, 1_000_000), (100,))

    def make(rows: int) -> Sequence[Contestant]:
        table = phases(rows)
        makers = [lambda: ours(OURS, table, FAILING)]
        if rows <= FAILING_MOST:
            makers.append(lambda: flink(table, FAILING))
        return available(makers)

    return [Case(rows, lambda rows=rows: make(rows)) for rows in lengths]


def judge(summary: Summary) -> Verdict:
    """At least twenty times Flink's throughput at the most rows that it ran?"""
    if FLINK not in summary.contestants():
        return Verdict("Flink did not run", None)
    x = summary.xs(FLINK)[-1]
    ratio = summary.ratio(OURS, FLINK, x)
    work = summary.ratio(FLINK, OURS, x, of=WORK)
    number = f"x{ratio:,.0f} of Flink SQL at {x:,} rows: {summary.value(OURS, x):,.0f} rows/s; x{work:,.0f} by work"
    return Verdict(number, ratio >= 20)


def judge_growth(summary: Summary) -> Verdict:
    """Is the time per row the same over most rows as over few?"""
    xs = [x for x in summary.xs(OURS) if isinstance(x, int | float) and x >= 100_000]
    if len(xs) < 2:
        return judge(summary)
    kept = summary.value(OURS, xs[-1]) / summary.value(OURS, xs[0])
    words = f"rows/s at {xs[-1]:,} rows are x{kept:.2f} of those at {xs[0]:,}"
    return Verdict(f"{words}; {judge(summary).number}", kept > 0.5)


CLAIM = "at least 20 times the throughput of Flink SQL, and the same results"
EXPERIMENTS = (
    Experiment(
        "rows-v-shape",
        "Row patterns: V-shapes of 10,000 keys",
        "MATCH_RECOGNIZE, falling and rising prices",
        CLAIM,
        "rows",
        lambda size: compared(V_SHAPE, size, WITH_PREV),
        judge,
        also=(WORK,),
        cores=2,
        weight=2.0,
        needs=("rivals",),
        mode="batch over a table in memory; Flink streams",
    ),
    Experiment(
        "rows-funnel",
        "Row patterns: a funnel under a window",
        "MATCH_RECOGNIZE with WITHIN",
        CLAIM,
        "rows",
        lambda size: compared(FUNNEL, size),
        judge,
        also=(WORK,),
        cores=2,
        weight=2.0,
        needs=("rivals",),
        mode="batch over a table in memory; Flink streams",
    ),
    Experiment(
        "rows-failing",
        "Row patterns: A+ B+ C+ E that never ends well",
        "MATCH_RECOGNIZE, a pattern that fails from every row",
        "linear growth; at least 20 times the throughput of Flink SQL",
        "rows",
        failing,
        judge_growth,
        log_x=True,
        also=(WORK,),
        cores=2,
        needs=("rivals",),
        notes="Flink runs on 300 rows: it keeps every part of a match.",
        mode="batch over a table in memory; Flink streams",
    ),
)

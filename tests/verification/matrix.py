"""The matrix of what is verified. A cell is a language, engine, output, uncertainty, kind of data, table and runner.

`Cell` says what is run, `outcome_of` runs it over drawn events and compares it with the reference evaluator on a
pyarrow table in memory. A cell agrees, or it is refused with a clear error, which is recorded as the reason; anything
else is a failure. test_matrix.py runs cells in the suite, areas.py in long runs, and page.py prints the record.
"""

from __future__ import annotations

import random
import re
import warnings
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import pandas
import polars
import pyarrow as pa

import cepheid
from cepheid.engine.engines import ENGINES, FLINK_ENGINES, ROW_ENGINES
from cepheid.errors import CepheidError
from cepheid.flink import Pattern

LANGUAGES: dict[str, tuple[str, ...]] = {
    "query text": ("auto", *ENGINES),
    "clause": ("auto", *ROW_ENGINES),
    "Flink pattern": ("auto", *FLINK_ENGINES),
}
OUTPUTS = ("rows", "count", "compressed", "NON-OVERLAP", "MAXIMAL", "PARTIAL", "SUMMARISE", "FORECAST")
OUTPUTS_OF = {"query text": OUTPUTS, "clause": ("rows", "count"), "Flink pattern": ("rows", "count", "PARTIAL")}
UNCERTAINTIES = ("none", "missing", "imprecise", "existence")
DATA = ("plain", "NULL keys", "ties", "extremes", "zones", "integer times", "odd names", "empty")
TABLES = ("pyarrow", "pandas", "polars", "polars lazy")
IN_MEMORY = ("local", "live, one at a time", "live, tables", "live, restored")
ON_SPARK = ("Spark batch", "Spark stream", "Spark stream, restarted", "SQL")
RUNNERS = (*IN_MEMORY, *ON_SPARK, "Connect")


class Cell(NamedTuple):
    """One place of the matrix."""

    language: str = "query text"
    engine: str = "auto"
    output: str = "rows"
    uncertainty: str = "none"
    data: str = "plain"
    table: str = "pyarrow"
    runner: str = "local"


# --- what is asked --------------------------------------------------------------------------------------------------

TEXTS = (
    "PATTERN SEQ(A a, B b) WHERE [{key}] AND a.x <= b.x {within}",
    "PATTERN SEQ(A a, !(C c), B b) WHERE [{key}] {within}",
    "PATTERN SEQ(A a, B b, !(C c)) WHERE [{key}] {within}",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match(a, b[], c) {{ [{key}] AND b[i].x >= 1 }} {within}",
    "PATTERN SEQ(A a, B+ b[]) WHERE [{key}] {within}",
    "PATTERN SEQ(A a, (B b | C c), D? d) WHERE [{key}] {within}",
    "PATTERN SEQ(A a, B b, C c) WHERE [{key}] AND a.s != c.s {within}",
    "PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) {{ [{key}] }} {within}",
)
TAILS = {
    "NON-OVERLAP": " OUTPUT NON-OVERLAP",
    "MAXIMAL": " OUTPUT MAXIMAL",
    "PARTIAL": " OUTPUT PARTIAL",
    "SUMMARISE": " SUMMARISE count(*) AS n, min(a.x) AS x",
    "FORECAST": " FORECAST 20%",
}
CLAUSES = (
    """MEASURES FIRST(A.n) AS a, LAST(B.n) AS b, count(B.x) AS m {rows} PATTERN (A B+) {within}
    DEFINE A AS {type} = 'A', B AS {type} = 'B'""",
    """MEASURES A.n AS a, LAST(B.n) AS b, CLASSIFIER() AS c {rows} PATTERN (A (B | C)*? D?) {within}
    DEFINE A AS {type} = 'A', B AS {type} = 'B' AND B.x >= A.x, C AS {type} = 'C', D AS {type} = 'D'""",
    """MEASURES A.n AS a, sum(B.x) AS x, MATCH_NUMBER() AS m {rows} AFTER MATCH SKIP TO NEXT ROW
    PATTERN (A B{{1,2}}) {within} DEFINE A AS {type} IN ('A', 'D'), B AS B.x > PREV(B.x) OR B.s = A.s""",
)
PLACE = {"existence": {"existence": "chance"}, "imprecise": {"lower": "low", "upper": "high"}}


def cells() -> list[Cell]:
    """All cells. Engines are combined with everything in memory; tables and other runners with what `auto` chooses."""
    found = [
        Cell(language, engine, output, uncertainty, data)
        for language, engines in LANGUAGES.items()
        for engine in engines
        for output in OUTPUTS_OF[language]
        for uncertainty in (UNCERTAINTIES if language == "query text" else ("none",))
        for data in DATA
    ]
    plain = [cell for cell in found if cell.engine == "auto"]
    found += [cell._replace(table=table) for table in TABLES[1:] for cell in plain]
    found += [cell._replace(runner=runner) for runner in RUNNERS[1:] for cell in plain]
    listed = [cell for cell in found if cell.runner == "local" and cell.table == "pyarrow" and cell.output == "rows"]
    found += [cell._replace(runner=runner) for runner in IN_MEMORY[1:] for cell in listed if cell.engine != "auto"]
    return found


class Case(NamedTuple):
    """A query, its options and its events."""

    query: Any
    options: dict[str, Any]
    table: pa.Table


def drawn_case(cell: Cell, seed: int, variant: int) -> Case:
    """A query of the cell's kind over drawn events; `variant` chooses the query."""
    rng = random.Random(f"{seed} {cell[:5]}")
    names = {"key": "k", "type": "type", "ts": "ts"}
    if cell.data == "odd names":
        names = {"key": "der Schlüssel", "type": "Event Type", "ts": "at.time"}
    table = drawn_events(rng, cell, names)
    key, kind = (name if name.isidentifier() else f"`{name}`" for name in (names["key"], names["type"]))
    options: dict[str, Any] = {"time": names["ts"]}
    if cell.data == "ties" and cell.uncertainty not in PLACE and cell.language != "clause":
        options["tiebreak"] = "n"
    length = rng.randint(4, 8)
    within = f"{length}" if cell.data == "integer times" else f"{length} minutes"
    if cell.language == "query text":
        options["type"] = names["type"]
        options |= PLACE.get(cell.uncertainty, {})
        tail = TAILS.get(cell.output, "")
        if cell.output == "SUMMARISE" and variant // len(TEXTS) % 2:  # a stream has no end, so it needs intervals
            tail += f" EVERY {within}"
        if cell.uncertainty == "missing" or cell.output == "FORECAST":
            options["model"] = model_of(cell.data == "integer times")
            tail = " THRESHOLD 0.05" + tail if cell.uncertainty == "missing" and cell.output != "FORECAST" else tail
        if cell.uncertainty == "imprecise" and cell.data != "integer times":
            options["unit"] = "1 minute"
        if cell.uncertainty in PLACE:
            tail = " CONFIDENCE 0.1" + tail
        return Case(TEXTS[variant % len(TEXTS)].format(key=key, within=f"WITHIN {within}") + tail, options, table)
    if cell.language == "clause":
        rows = "ALL ROWS PER MATCH" if rng.random() < 0.3 else "ONE ROW PER MATCH"
        unit = f"WITHIN {length}" if cell.data == "integer times" else f"WITHIN INTERVAL '{length}' MINUTE"
        time = names["ts"] if names["ts"].isidentifier() else f"`{names['ts']}`"
        body = CLAUSES[variant % len(CLAUSES)].format(rows=rows, type=kind, within=unit)
        return Case(f"MATCH_RECOGNIZE (PARTITION BY {key} ORDER BY {time}, n {body})", {}, table)
    options |= {"partition_by": names["key"]}
    first = Pattern.begin("a").where(f"{kind} = 'A'")
    second = rng.choice([first.next("b"), first.followed_by("b"), first.followed_by_any("b")]).where(f"{kind} = 'B'")
    if rng.random() < 0.5:
        second = second.one_or_more()
    third = second.followed_by("c").where(f"{kind} = 'C' AND x >= 0") if rng.random() < 0.5 else second
    options["partial"] = cell.output == "PARTIAL"
    return Case(third.within(length if cell.data == "integer times" else within), options, table)


def model_of(integer_times: bool) -> cepheid.Model:
    """Losses and gaps of the drawn streams: in minutes, or in steps of integer times."""
    mean = 2 if integer_times else 120_000_000
    gaps = {name: cepheid.Exponential(mean=mean) for name in "abcd"}
    return cepheid.Model(loss=0.2, gaps=gaps)


BEGIN = datetime(2026, 3, 8, 6, 50, tzinfo=UTC)  # New York's clocks are put forward ten minutes later
MOST_EVENTS = {"imprecise": 10, "existence": 13}  # the reference goes through all worlds
EXTREMES = (-(2**63), 2**63 - 1, -1, 0, 1, 2**53 + 1, None)


def drawn_events(rng: random.Random, cell: Cell, names: dict[str, str]) -> pa.Table:
    """Events in the order of their times, which differ unless ties are asked for; the last ones belong to nothing."""
    most = MOST_EVENTS.get(cell.uncertainty, 18)
    number = 0 if cell.data == "empty" else rng.randint(most // 2, most)
    minutes: list[int] = []
    for _ in range(number):
        step = rng.choice([0, 1, 1, 2]) if cell.data == "ties" else rng.choice([1, 1, 1, 2])
        minutes.append((minutes[-1] if minutes else 0) + step)
    last = minutes[-1] if minutes else 0
    minutes += [last + 600, last + 1200]
    types = [rng.choice("AABBCD") for _ in range(number)] + ["end", "end"]
    keys = [rng.choice([1, 2, None] if cell.data == "NULL keys" else [1, 1, 2]) for _ in range(number)] + [1, 2]
    values = [rng.choice(EXTREMES if cell.data == "extremes" else (0, 1, 2, 3)) for _ in range(number)] + [0, 0]
    texts = [rng.choice(["", "é", "a b", "nan", None] if cell.data == "extremes" else ["p", "q"]) for _ in minutes]
    zone = "America/New_York" if cell.data == "zones" else "UTC"
    columns: dict[str, pa.Array] = {
        names["ts"]: times(minutes, cell, zone),
        names["type"]: pa.array(types, pa.string()),
        names["key"]: pa.array(keys, pa.int64()),
        "x": pa.array(values, pa.int64()),
        "s": pa.array(texts, pa.string()),
        "n": pa.array(range(len(minutes)), pa.int64()),
    }
    if cell.uncertainty == "imprecise":
        low = [minute - rng.choice([0, 1]) for minute in minutes]
        columns |= {"low": times(low, cell, zone), "high": times([a + 1 for a in minutes], cell, zone)}
    if cell.uncertainty == "existence":
        columns["chance"] = pa.array([rng.choice([1.0, 0.8, 0.5]) for _ in minutes], pa.float64())
    return pa.table(columns)


def times(minutes: list[int], cell: Cell, zone: str) -> pa.Array:
    """The times of events: instants in a zone, or plain integers."""
    if cell.data == "integer times":
        return pa.array(minutes, pa.int64())
    return pa.array([BEGIN + timedelta(minutes=each) for each in minutes], pa.timestamp("us", zone))


# --- what is found --------------------------------------------------------------------------------------------------


def rows_of(found: Any) -> list[str]:
    """The rows of a result of any kind, in a form that can be compared; a count is a row, too."""
    if isinstance(found, int):
        return [str(found)]
    if isinstance(found, polars.DataFrame):
        found = found.to_arrow()
    if isinstance(found, pandas.DataFrame):
        found = pa.Table.from_pandas(found, preserve_index=False)
    listed = found.to_pylist() if isinstance(found, pa.Table) else found
    return sorted(str(plain(row)) for row in listed)


def plain(value: Any) -> Any:
    """A value without what differs between tables: zones that instants are shown in, and the last digits of numbers."""
    if isinstance(value, dict):
        return [(name, plain(each)) for name, each in sorted(value.items())]
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, datetime):
        return (value.replace(tzinfo=value.tzinfo or UTC) - BEGIN).total_seconds()
    return round(value, 5) + 0.0 if isinstance(value, float) else value


def expected_rows(cell: Cell, case: Case) -> list[str]:
    """What the reference evaluator finds."""
    engine = "forecast" if cell.output == "FORECAST" else "reference"
    counts = {"output": "count"} if cell.output == "count" and cell.language == "clause" else {}
    found = cepheid.match(case.table, case.query, engine=engine, **counts, **case.options)
    return [str(len(found))] if cell.output == "count" and not counts else rows_of(found)


def in_memory(cell: Cell, case: Case, seed: int) -> list[str]:
    """What the cell's runner finds, without Spark."""
    options = dict(case.options)
    if cell.engine != "auto":
        options["engine"] = cell.engine
    if cell.runner == "local":
        table: Any = case.table
        if cell.table == "pandas":
            table = case.table.to_pandas(types_mapper=pandas.ArrowDtype)
        elif cell.table.startswith("polars"):
            table = polars.from_arrow(case.table)
            table = table.lazy() if cell.table == "polars lazy" else table
        if cell.output in ("count", "compressed"):
            found = cepheid.match(table, case.query, output=cell.output, **options)
            return rows_of(found.all() if cell.output == "compressed" else found)
        return rows_of(cepheid.match(table, case.query, **options))
    if cell.output in ("count", "compressed"):
        raise CepheidError("output= is for tables, and a live query returns rows")
    return rows_from_live(cell, case, options, random.Random(seed))


def rows_from_live(cell: Cell, case: Case, options: dict[str, Any], rng: random.Random) -> list[str]:
    """What a live query finds: events one at a time, in tables, or saved and restored between tables."""
    if cell.uncertainty == "imprecise":  # an event may begin before the one that came before it
        options["delay"] = 3 if cell.data == "integer times" else "3 minutes"
    live = cepheid.live(case.query, case.table.schema, **options)
    found: list[Any] = []
    if cell.runner == "live, one at a time":
        for event in case.table.to_pylist():
            found += live.send(event)
        found += live.finish()
        return rows_of([row if isinstance(row, dict) else dict(row) for row in found])
    cuts = [0, *sorted(rng.randint(0, len(case.table)) for _ in range(3)), len(case.table)]
    for low, high in pairwise(cuts):
        found += pa_rows(live.send(case.table.slice(low, high - low)))
        if cell.runner == "live, restored":
            live = cepheid.live(case.query, case.table.schema, state=live.save(), **options)
    return rows_of(found + pa_rows(live.finish()))


def pa_rows(found: Any) -> list[Any]:
    """Rows of what a live query returned."""
    return list(found) if isinstance(found, list) else found.to_pylist()


OnSpark = Callable[[Cell, Case], list[str]]


class Outcome(NamedTuple):
    """What became of a cell: it agrees, is refused for a reason, or differs."""

    state: str  # agrees, refused, differs
    detail: str = ""
    matches: int = 0


def outcome_of(cell: Cell, seed: int, on_spark: OnSpark | None = None) -> Outcome:
    """Runs a cell over the case of a seed: a query that the cell can run, or why most of its queries are refused."""
    reasons: Counter[str] = Counter()
    for variant in range(len(TEXTS) * (2 if cell.output == "SUMMARISE" else 1)):
        outcome = _outcome(cell, drawn_case(cell, seed, seed + variant), seed, on_spark)
        if outcome.state != "refused":
            return outcome
        reasons[re.sub(r"^line \d+, column \d+: ", "", outcome.detail)] += 1
    return Outcome("refused", reasons.most_common(1)[0][0])


def _outcome(cell: Cell, case: Case, seed: int, on_spark: OnSpark | None) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = in_memory(cell, case, seed) if on_spark is None else on_spark(cell, case)
        except CepheidError as error:
            return Outcome("refused", f"{error}".splitlines()[0])
        expected = expected_rows(cell, case)
    if found == expected:
        return Outcome("agrees", matches=len(expected))
    return Outcome("differs", f"{cell} seed {seed}\n{case.query}\n{case.options}\nfound {found}\nexpected {expected}")

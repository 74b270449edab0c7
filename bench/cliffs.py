"""Cliffs: queries a step beside the smooth road, each with its growth, and the smooth query measured in the same run.

`python -m bench cliffs` measures every row, from light to heavy.
What is shown is the ratio to the smooth query, by processor time: times alone say what the machine does, ratios what
the query does.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import cepheid
from bench.cliff_rows import Call, Point, Row, keyed_events, match, mixed_events, row_of
from bench.measure import on_one_core, print_table, save
from bench.row_shapes import COUNTED_ROWS, SHAPES, SMOOTH, rows
from cepheid.flink import Pattern
from cepheid.simulate.imprecise import imprecise_query, imprecise_series

BUDGET = 20.0  # seconds for one call

EQUALITIES = {
    "a.id = b.id AND b.ref = c.ref": ("SEQ(A a, B b, C c)", "any", "SEQ(A a, B b, C c)"),
    "a.id = c.id AND b.ref = a.ref": ("SEQ(A a, B b, C c)", "any", "SEQ(A a, B b, C c)"),
    "a.id = b[i].id": ("SEQ(A a, B+ b[])", "next", "SEQ(A a, B+ b[])"),
    "a.ref = b[1].id AND b[i].id = b[i-1].ref": ("SEQ(A a, B+ b[])", "next", "SEQ(A a, B+ b[])"),
}


def equalities() -> Iterator[Row]:
    """Equality that is no full equivalence test, beside [id]: by events, keys and window."""
    for condition, (pattern, strategy, smooth) in EQUALITIES.items():
        points = []
        sizes = [
            ("events", 10_000, 2_000, 10_000),
            ("events", 30_000, 2_000, 10_000),
            ("events", 100_000, 2_000, 10_000),
        ]
        sizes += [("keys", 30_000, keys, 10_000) for keys in (200, 20_000)]
        sizes += [("window", 30_000, 2_000, window) for window in (1_000, 30_000)]
        for axis, events, keys, window in sizes:
            table = keyed_events(events, keys)
            texts = [
                f"PATTERN {shape} WHERE skip_till_{strategy}_match {{ {test} }} WITHIN {window}"
                for shape, test in ((pattern, condition), (smooth, "[id]"))
            ]
            size = {"events": events, "keys": keys, "window": window}[axis]
            points.append(Point(axis, size, events, match(table, texts[0]), match(table, texts[1])))
        yield Row(condition, points)


def construction() -> Iterator[Row]:
    """Two equivalence tests, compared while matches are built: the coarse one first, beside the fine one first."""
    points = []
    for events in (10_000, 30_000, 100_000):
        random = np.random.default_rng(1)
        types = np.array(["A", "B", "C"])[random.integers(0, 3, events)]
        table = pa.table(
            {
                "ts": np.arange(events),
                "type": types,
                "lo": random.integers(0, 3, events),
                "hi": random.integers(0, 2_000, events),
            }
        )
        calls = [
            match(table, f"PATTERN SEQ(A a, B b, C c) WHERE [{keys}] WITHIN 10000", equivalence="construction")
            for keys in ("lo, hi", "hi, lo")
        ]
        points.append(Point("events", events, events, *calls))
    yield Row("[lo, hi] by construction", points)


def several_places(events: int, delta: int, window: int, components: int, regular: bool = True) -> Point:
    """Next match of components that all take every tenth event; beside it, components that take others each.

    Without regular distances no two matches look alike, so that each is judged.
    """
    table = imprecise_series(events, half_width=delta).events
    if not regular:
        random = np.random.default_rng(1)
        off, narrower = random.integers(-4, 5, events), random.integers(0, min(delta, 2) + 1, events)
        for name, sign in (("lower", 1), ("upper", -1)):
            shifted = np.asarray(table.column(name)) + off + sign * narrower
            table = table.set_column(table.schema.get_field_index(name), name, pa.array(shifted))
    calls = []
    for divisors in ((10,) * components, (32, 37, 41, 43, 47)[:components]):
        text = imprecise_query(divisors=divisors, window=window)
        names = ", ".join(f"e{place}" for place in range(1, components + 1))
        text = text.replace(" WITHIN", f" AND skip_till_next_match({names}) WITHIN")
        calls.append(match(table, text, lower="lower", upper="upper"))
    return Point("delta", delta, events, *calls)


def imprecise() -> Iterator[Row]:
    """Imprecise times, next match, one event fits several places: by how far times may be off, window and length."""
    sizes = ((5, 20_000), (10, 20_000), (20, 20_000), (30, 10_000), (40, 10_000), (60, 5_000))
    yield Row("imprecise, several places", [several_places(events, delta, 100, 3) for delta, events in sizes])
    sizes = ((5, 10_000), (10, 5_000), (20, 2_000), (40, 500))
    points = [several_places(events, delta, 100, 3, regular=False) for delta, events in sizes]
    yield Row("the same at irregular distances", points)
    points = []
    for delta, events in ((5, 10_000), (20, 10_000)):
        irregular, regular = (several_places(events, delta, 100, 3, regular=each) for each in (False, True))
        points.append(Point("delta", delta, events, irregular.cliff, regular.cliff))
    yield Row("irregular beside regular distances", points)
    points = [
        replace(several_places(2_000, 20, window, 3), axis="window", size=window) for window in (50, 100, 200, 400)
    ]
    yield Row("the same by window", points)
    lengths = ((2, 5_000), (3, 2_000), (4, 500), (5, 200))
    points = [replace(several_places(events, 10, 100, n, False), axis="components", size=n) for n, events in lengths]
    yield Row("the same by components", points)
    points = []
    for samples in (20, 40, 80):
        random = np.random.default_rng(1)
        table = pa.table(
            {
                "ts": np.arange(samples) * 50,
                "type": ["CPU"] * samples,
                "node": [1] * samples,
                "value": random.random(samples),
            }
        )
        texts = [
            "PATTERN SEQ(CPU a, CPU b, CPU c) "
            f"WHERE skip_till_{how}_match {{ [node] AND a.value < b.value }} WITHIN 400"
            for how in ("next", "any")
        ]
        points.append(Point("samples", samples, samples, *(match(table, text, uncertainty=75) for text in texts)))
    yield Row("CPU, 50 apart, off by 75", points)


def outputs() -> Iterator[Row]:
    """MAXIMAL and NON-OVERLAP beside all matches, or counted."""
    points = []
    for length in (10, 30, 60):
        table = pa.table({"ts": range(length + 1), "type": ["A"] * length + ["B"]})
        text = "PATTERN SEQ(A+ a[], B b)"
        points.append(
            Point(
                "length", length, length + 1, match(table, text + " OUTPUT MAXIMAL"), match(table, text, output="count")
            )
        )
    yield Row("n times A, B: MAXIMAL beside counting", points)
    points = []
    for events in (4_000, 16_000, 64_000):
        random = np.random.default_rng(1)
        table = pa.table(
            {
                "ts": np.arange(events),
                "type": np.array(list("ABCDEFGHIJ"))[random.integers(0, 10, events)],
                "x": random.random(events),
            }
        )
        text = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { } WITHIN 200"
        points.append(Point("events", events, events, match(table, text + " OUTPUT MAXIMAL"), match(table, text)))
    yield Row("Kleene, next match, MAXIMAL beside ALL", points)
    points = []
    for events in (500, 2_000, 8_000, 32_000):
        random = np.random.default_rng(1)
        kinds = np.where(np.arange(events) % 100 == 99, "B", "A")
        table = pa.table({"ts": np.arange(events), "type": kinds, "x": random.random(events)})
        text = "PATTERN SEQ(A+ a[], B b) WHERE a[i].x > a[i-1].x WITHIN 100000 SUMMARISE approximate_count(*) AS n"
        smooth = "PATTERN SEQ(A a, B b) WITHIN 100000 SUMMARISE approximate_count(*) AS n"
        calls = match(table, text), match(table, smooth)
        points.append(Point("events", events, events, *calls))
    yield Row("rising A+, B, counted", points)


def counted() -> Iterator[Row]:
    """Counting beside listing the same matches."""
    for text in (
        "SEQ(A a, B b) WHERE a.y < b.y - 950 WITHIN 2000",
        "SEQ(A a, !(C c), B b) WHERE a.id = b.id WITHIN 2000",
        "SEQ(A a, B b, D d) WHERE a.y < b.y - 950 AND b.y > d.y + 950 WITHIN 2000",
    ):
        yield row_of(f"counted: {text}", (10_000, 20_000), text, text, output="count")


def given_up() -> Iterator[Row]:
    """OUTPUT PARTIAL beside all matches."""
    for text in ("SEQ(A a, B? b, C{2,3} c[], D d) WITHIN 20", "SEQ(A a, B b, C c, D d) WITHIN 20"):
        yield row_of(f"PARTIAL: {text}", (2_000, 4_000), text + " OUTPUT PARTIAL", text)


def ruled_out() -> Iterator[Row]:
    """A bound on the sum of a group, in windows that hold ever more groups."""
    points = []
    for window in (40, 60, 100):
        table = mixed_events(3_000)
        text = "PATTERN SEQ(D a, B+ b[], C c) WHERE a.y < c.y - 700 AND {} < 500 WITHIN " + str(window)
        plain = text.replace("{} < 500", "a.id = c.id").replace("B+ b[]", "B b")
        calls = match(table, text.format("sum(b[].y)")), match(table, plain)
        points.append(Point("window", window, 3_000, *calls))
    yield Row("sum of a group below a bound", points)


def many_matches() -> Iterator[Row]:
    """Some 5 million matches, around a tenth of max_matches, beside half of them."""
    text = "SEQ(A a, B b) WHERE a.x < b.x WITHIN "
    yield row_of("about 5 million matches", (38_000, 42_000, 46_000), text + "4000", text + "2000")


def texts() -> Iterator[Row]:
    """Conditions on texts of two events."""
    for condition in ("a.s LIKE b.u", "concat(a.s, b.s) LIKE '%name1name2%'", "(a.s LIKE b.u OR a.y < b.y - 990)"):
        text = f"SEQ(A a, B b) WHERE {condition} WITHIN 400"
        yield row_of(f"texts: {condition}", (2_000, 4_000), text, "SEQ(A a, B b) WHERE a.s = b.s WITHIN 400")


def limits() -> Iterator[Row]:
    """A limit that is reached, with what explains it, beside the count of the matches in a short window."""
    points = []
    for events in (12_500, 25_000, 50_000):
        table = mixed_events(events)
        table = table.set_column(0, "ts", pa.array(np.sort(np.random.default_rng(2).integers(0, events, events))))
        text = "PATTERN SEQ(A a, (B b, C c)+, D d) WHERE skip_till_next_match { } WITHIN "

        def explained(table: pa.Table = table, text: str = text) -> int:
            try:
                return int(cepheid.match(table, text + "100000000", max_matches=1000).num_rows)
            except cepheid.LimitError:
                return 0

        points.append(Point("events", events, events, explained, match(table, text + "100", output="count")))
    yield Row("a limit that is reached", points)


def any_orders() -> Iterator[Row]:
    """AND of ever more components; from some number on it is refused."""
    random = np.random.default_rng(1)
    table = pa.table({"ts": range(300), "type": np.array(list("ABCDEFGHIJ"))[random.integers(0, 10, 300)]})
    points = []
    for number in (6, 7, 8, 9):
        names = ", ".join(f"{kind} {kind.lower()}" for kind in "ABCDEFGHIJ"[:number])
        calls = (match(table, f"PATTERN {operator}({names}) WITHIN 20") for operator in ("AND", "SEQ"))
        points.append(Point("components", number, 300, *calls))
    yield Row("AND beside SEQ", points)


def whole_groups() -> Iterator[Row]:
    """Next match with a condition on a whole group, beside the same pattern without it."""
    for pattern, condition in (
        ("SEQ(A a, (B b, C c)+, D d)", "sum(b[].x) < 2"),
        ("SEQ(A a, B{2,4} b[], C? c, D d)", "sum(b[].x) < 2"),
        ("SEQ(A a, (B b | C c)+, D d)", "b[b.LEN].x > a.x"),
    ):
        texts = [f"{pattern} WHERE skip_till_next_match {{ {each} }} WITHIN 40" for each in (condition, "a.x > 0")]
        yield row_of(f"{pattern}, {condition}", (2_000, 4_000, 8_000), *texts)


def unsure_events() -> Iterator[Row]:
    """Events that may not have happened: optional and Kleene parts, beside the plain sequence."""
    for pattern in ("SEQ(A a, B? b, C+ c[], D d)", "SEQ(A a, (B b | C c), D d)"):
        points = []
        for events in (4_000, 8_000, 16_000):
            table = mixed_events(events)
            table = table.append_column("p", pa.array(0.5 + np.asarray(table.column("x")) / 2))
            texts = [f"PATTERN {each} WITHIN 10" for each in (pattern, "SEQ(A a, B b, C c, D d)")]
            points.append(Point("events", events, events, *(match(table, text, existence="p") for text in texts)))
        yield Row(f"existence: {pattern}", points)


def summaries() -> Iterator[Row]:
    """Totals where the window ends inside a partition, beside a window that only ties events."""
    for condition in ("a.id = b.id", "a.x < b.x", "a.x < c.x"):
        points = []
        for events in (2_000, 4_000, 8_000):
            table = mixed_events(events)
            text = f"PATTERN SEQ(A a, B b, C c) WHERE {{}} WITHIN {events // 2} SUMMARISE count(*) AS n, sum(c.y) AS t"
            calls = match(table, text.format(condition)), match(table, text.format("a.x > 0"))
            points.append(Point("events", events, events, *calls))
        yield Row(f"SUMMARISE: {condition}", points)


def several_groups() -> Iterator[Row]:
    """Several Kleene groups with aggregates under NON-OVERLAP, beside one group."""
    text = "SEQ({}, D d) WHERE skip_till_next_match {{ {} }} WITHIN 200 OUTPUT NON-OVERLAP"
    cliff = text.format("A+ a[], B+ b[], C+ c[]", "a[i].x > avg(a[..i-1].x) AND b[i].y < avg(b[..i-1].y)")
    smooth = text.format("A+ a[], B b, C c", "a[i].x > avg(a[..i-1].x)")
    yield row_of("several groups, NON-OVERLAP", (5_000, 10_000, 20_000), cliff, smooth)


def diagnoses() -> Iterator[Row]:
    """`why` beside the query itself."""
    points = []
    for events in (2_000, 4_000, 8_000):
        table = mixed_events(events)
        query = cepheid.query("PATTERN SEQ(A a, B b, C c) WHERE [id] AND a.x < b.x WITHIN 100")

        def explained(query: Any = query, table: pa.Table = table) -> int:
            return len(str(query.why(table)))

        points.append(Point("events", events, events, explained, partial(query.match, table)))
    yield Row("why", points)


def user_functions() -> Iterator[Row]:
    """A Flink pattern whose condition calls a user's function, as compiled code or as Python, beside one without."""

    @cepheid.function(compiled=True)
    def doubled(y: int) -> int:
        return 2 * y

    @cepheid.function
    def twice(y: int) -> int:
        return 2 * y

    for name in ("doubled", "twice"):
        points = []
        for events in (5_000, 10_000, 20_000):
            table = mixed_events(events)
            begin = Pattern.begin("a").where("type = 'A'").followed_by("b")
            calls = []
            for condition in (f"{name}(y) > {name}(a.y) + 1800", "2 * y > 2 * a.y + 1800"):
                calls.append(partial(cepheid.match, table, begin.where(condition).within(50), time="ts"))
            points.append(Point("events", events, events, *calls))
        yield Row(f"Flink pattern, a user's function {'as Python' * (name == 'twice')}", points)


def row_patterns() -> Iterator[Row]:
    """Row patterns that look back at their path (bench/row_shapes.py), beside one that does not."""
    for name, (clause, sizes) in SHAPES.items():
        points = []
        for size in sizes:
            calls = (match(rows(size), f"MATCH_RECOGNIZE ({COUNTED_ROWS} {each})") for each in (clause, SMOOTH))
            points.append(Point("rows", size, size, *calls))
        yield Row(f"rows: {name}", points)


def followed_by() -> Iterator[Row]:
    """ "An A, later a B" as a clause, beside the same as query text; one row for each A in both."""
    clause = (
        "MATCH_RECOGNIZE ({} ORDER BY ts MEASURES A.ts AS a, B.ts AS b AFTER MATCH SKIP TO NEXT ROW PATTERN ({}) {}"
    )
    clause += " DEFINE A AS type = 'A', B AS type = 'B'{})"
    text = "PATTERN SEQ({}) WHERE skip_till_next_match {{ {} }} WITHIN {} RETURN a.ts AS x, b.ts AS y"
    for key, window, third in (
        ("id", "", ""),
        ("id", "WITHIN 500", ""),
        ("", "WITHIN 50", ""),
        ("id", "WITHIN 5000", "C"),
    ):
        points = []
        for events in (50_000, 100_000, 200_000):
            table = mixed_events(events)
            pattern = f"A X*? B{' X*? C' if third else ''}"
            parts = f"A a, B b{', C c' if third else ''}"
            last = ", C AS type = 'C'" if third else ""
            one = clause.format(f"PARTITION BY {key}" if key else "", pattern, window, last)
            other = text.format(parts, f"[{key}]" if key else "", window.removeprefix("WITHIN ") or "ALL")
            points.append(Point("events", events, events, match(table, one), match(table, other)))
        yield Row(f"{pattern} by {key or 'nothing'} {window}, a clause beside query text", points)


def explained_limits() -> Iterator[Row]:
    """Far more matches than may be listed, with a tie and a window, beside the same in a short window."""
    points = []
    for events in (5_000, 10_000, 20_000):
        table = mixed_events(events)
        text = "PATTERN SEQ(A a, B+ b[], C c) WHERE a.id = c.id AND a.x < c.x WITHIN "

        def explained(table: pa.Table = table, text: str = text) -> int:
            try:
                return int(cepheid.match(table, text + "2000", max_matches=1_000_000).num_rows)
            except cepheid.LimitError:
                return 0

        points.append(Point("events", events, events, explained, match(table, text + "40")))
    yield Row("a tie and a window, before an explosion is explained", points)


FIRST = """
import sys
import numpy as np
import pyarrow as pa
import cepheid
random = np.random.default_rng(1)
times = np.cumsum(random.integers(1, 5, 1_000))
kinds, keys = np.array(list("ABC"))[random.integers(0, 3, 1_000)], random.integers(0, 5, 1_000)
events = pa.table({"ts": times, "type": kinds, "id": keys, "x": random.random(1_000)})
model = cepheid.Model(loss=0.1, gaps={name: cepheid.Exponential(mean=10) for name in "bc"})
text, options = {
    "sequence": ("SEQ(A a, B b, C c) WHERE [id] AND a.x < b.x WITHIN 40", {}),
    "Kleene": ("SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { [id] AND b[i].x > b[i-1].x } WITHIN 40", {}),
    "imprecise": ("SEQ(A a, B b, C c) WHERE [id] WITHIN 20", {"uncertainty": 2}),
    "missing": ("SEQ(A a, B b, C c) WHERE [id] WITHIN 40 THRESHOLD 0.05", {"model": model}),
}[sys.argv[1]]
print(cepheid.match(events, "PATTERN " + text, **options).num_rows)
"""


def first_answers() -> Iterator[Row]:
    """The first match of a process on an installation with nothing compiled, beside one with all of it compiled."""

    def first(kind: str, cold: bool) -> Call:
        def run() -> int:
            with tempfile.TemporaryDirectory() as folder:
                cache = {"NUMBA_CACHE_DIR": folder, "CEPHEID_COMPILE": ""} if cold else {}
                command = [sys.executable, "-W", "ignore", "-c", FIRST, kind]
                return int(subprocess.run(command, env={**os.environ, **cache}, check=True, stdout=-1).stdout)

        return run

    for kind in ("sequence", "Kleene", "imprecise", "missing"):
        points = [Point("events", 1_000, 1_000, first(kind, True), first(kind, False))]
        yield Row(f"first answer, cold: {kind}", points)


def streams() -> Iterator[Row]:
    """NON-OVERLAP in a Spark stream of three files, beside the same events as one table; needs Spark."""
    from bench.harness.spark import session

    text = "PATTERN SEQ(A+ a[], B b) WITHIN 100000 OUTPUT NON-OVERLAP"
    points = []
    for length in (30, 300, 3_000):
        kinds = ["A"] * length + ["B"] + ["A"] * 8 + ["B"]
        table = pa.table({"ts": range(len(kinds)), "type": kinds})

        def streamed(table: pa.Table = table) -> int:
            spark = session(2)
            with tempfile.TemporaryDirectory() as folder:
                place, third = Path(folder), -(-table.num_rows // 3)
                (place / "in").mkdir()
                for part in range(3):
                    pq.write_table(table.slice(part * third, third), place / "in" / f"{part}.parquet")
                schema = spark.createDataFrame(table.slice(0, 1)).schema
                source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(place / "in"))
                writer = cepheid.match(source, text, delay=0).writeStream.format("parquet")
                writer = writer.option("checkpointLocation", str(place / "checkpoint")).option(
                    "path", str(place / "out")
                )
                writer.trigger(availableNow=True).start().awaitTermination()
                return int(spark.read.parquet(str(place / "out")).count())

        points.append(Point("length", length, table.num_rows, streamed, match(table, text)))
    yield Row("NON-OVERLAP, a stream in three files beside a table", points)


ROWS = (
    equalities,
    construction,
    imprecise,
    outputs,
    counted,
    given_up,
    ruled_out,
    many_matches,
    texts,
    limits,
    any_orders,
    whole_groups,
    unsure_events,
    summaries,
    several_groups,
    diagnoses,
    user_functions,
    row_patterns,
    followed_by,
    explained_limits,
    first_answers,
    streams,
)


def spent() -> float:
    """Processor seconds of this process and of those that it started: other work on the machine does not count."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def timed(call: Call | None) -> tuple[float, int]:
    """The better of two runs, and how many matches there are; the first run may have compiled something."""
    if call is None:
        return float("nan"), 0
    best, found = float("inf"), 0
    for _ in range(2):
        begin = spent()
        result = call()
        best = min(best, spent() - begin)
        found = result if isinstance(result, int) else result.num_rows
        if best > BUDGET:
            break
    return best, found


def measure(row: Row) -> list[dict[str, Any]]:
    """Every point of a row, as far as the budget goes."""
    found: list[dict[str, Any]] = []
    for point in row.points:
        try:
            seconds, matches = timed(point.cliff)
        except cepheid.CepheidError as error:
            found.append({"row": row.name, "axis": point.axis, "size": point.size, "error": str(error)[:100]})
            continue
        smooth, _ = timed(point.smooth)
        found.append(
            {
                "row": row.name,
                "axis": point.axis,
                "size": point.size,
                "events/s": round(point.events / seconds),
                "smooth events/s": round(point.events / smooth),
                "times the time": round(seconds / smooth, 2),
                "seconds": round(seconds, 3),
                "matches": matches,
            }
        )
    return found


def main(names: Sequence[str] = ()) -> None:
    """Measures the rows whose function is named (all, if none is), prints and saves them."""
    on_one_core()
    results = []
    for made in ROWS:
        if names and made.__name__ not in names:
            continue
        for row in made():
            found = measure(row)
            results += found
            columns = ["axis", "size", "events/s", "smooth events/s", "times the time", "seconds", "matches", "error"]
            print_table(row.name, columns, [[point.get(column, "") for column in columns] for point in found])
    save("cliffs", {"points": results})


if __name__ == "__main__":
    main()

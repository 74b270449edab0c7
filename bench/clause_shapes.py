"""24 shapes of MATCH_RECOGNIZE beside DuckDB's window functions and pandas-match-recognize, in one run.

`python -m bench clauses` prints the processor time of a row for each shape, and how much longer the peers take. A peer
is left out if it is not installed, if it has no such form, or if it does not find as many matches (it says so then).
DuckDB has no MATCH_RECOGNIZE in a release; its window functions stand in where they can say the same.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import cepheid
from bench.measure import on_one_core, print_table, save

ROWS, FEW_ROWS = 200_000, 2_000  # pandas-match-recognize takes milliseconds for a row of some shapes
DOWN_UP = "D AS price < PREV(price), U AS price > PREV(price)"
FUNNEL = "V AS kind = 0, C AS kind = 1, P AS kind = 2"
CRIME = "R AS kind = 0, B AS kind = 1 AND abs(B.x - R.x) < 20, M AS kind = 2 AND abs(M.x - R.x) < 20"
BY_KEY = "OVER (PARTITION BY k ORDER BY id)"
LAGGED = f"SELECT id, k, price, id - lag(id) {BY_KEY} AS gap, price - lag(price) {BY_KEY} AS rise FROM t"
AHEAD = f"SELECT rise, lead(rise) {BY_KEY} AS ahead FROM ({LAGGED})"
KINDS = f"SELECT kind, lead(kind) {BY_KEY} AS ahead FROM t"


class Shape(NamedTuple):
    """What stands behind MEASURES, and the same with DuckDB's window functions: how many rows it gives."""

    clause: str
    duckdb: str | None = None


def runs_of(condition: str) -> str:
    """How many runs of rows have a condition, by DuckDB: a run begins where the row before does not have it."""
    flags = f"SELECT ({condition}) AS h, lag({condition}) {BY_KEY} AS b FROM ({LAGGED})"
    return f"SELECT count(*) FROM ({flags}) WHERE h AND NOT coalesce(b, false)"


SHAPES: dict[str, Shape] = {
    "scan": Shape("PATTERN (A+) DEFINE A AS TRUE", "SELECT count(DISTINCT k) FROM t"),
    "filter": Shape("PATTERN (A) DEFINE A AS price > 990", "SELECT count(*) FROM t WHERE price > 990"),
    "sessions": Shape(
        "PATTERN (A B*) DEFINE B AS id - PREV(id) <= 300",
        f"SELECT count(*) FILTER (WHERE gap IS NULL OR gap > 300) FROM ({LAGGED})",
    ),
    "runs above": Shape("PATTERN (A+) DEFINE A AS price > 300", runs_of("price > 300")),
    "rising": Shape("PATTERN (U+) DEFINE U AS price > PREV(price)", runs_of("coalesce(rise > 0, false)")),
    "V": Shape(f"PATTERN (A D+ U+) DEFINE {DOWN_UP}"),
    "W": Shape(f"PATTERN (A D+ U+ D+ U+) DEFINE {DOWN_UP}"),
    "peak": Shape(
        "PATTERN (A) DEFINE A AS price > PREV(price) AND price > NEXT(price)",
        f"SELECT count(*) FROM ({AHEAD}) WHERE rise > 0 AND ahead < 0",
    ),
    "pair": Shape(
        "PATTERN (V C) DEFINE V AS kind = 0, C AS kind = 1",
        f"SELECT count(*) FROM ({KINDS}) WHERE kind = 0 AND ahead = 1",
    ),
    "funnel": Shape(f"PATTERN (V X*? C X*? P) WITHIN 5000 DEFINE {FUNNEL}"),
    "followed by": Shape(
        "AFTER MATCH SKIP TO NEXT ROW PATTERN (V X*? P) WITHIN 5000 DEFINE V AS kind = 0, P AS kind = 2"
    ),
    "alternation": Shape(f"PATTERN ((V | C)+ P) DEFINE {FUNNEL}"),
    "bounded": Shape("PATTERN (A{3,5} B) DEFINE A AS price > 300, B AS price <= 300"),
    "optional": Shape(f"PATTERN (V C? P) DEFINE {FUNNEL}"),
    "permute": Shape(f"PATTERN (PERMUTE(V, C, P)) DEFINE {FUNNEL}"),
    "exclusion": Shape("ALL ROWS PER MATCH PATTERN (A {- D+ -} U) DEFINE " + DOWN_UP),
    "all rows": Shape(f"ALL ROWS PER MATCH PATTERN (A D+ U+) DEFINE {DOWN_UP}"),
    "unmatched rows": Shape("ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A) DEFINE A AS price > 500"),
    "next row": Shape(f"AFTER MATCH SKIP TO NEXT ROW PATTERN (A D+ U+) DEFINE {DOWN_UP}"),
    "above the first": Shape("PATTERN (A B+) DEFINE B AS price > A.price"),
    "sum so far": Shape("PATTERN (A+ B) DEFINE A AS sum(price) < 5000, B AS kind = 2"),
    "crime": Shape(f"AFTER MATCH SKIP TO NEXT ROW PATTERN (R Z* B Z* M) DEFINE {CRIME} AND M.id - R.id <= 3000"),
    "no match": Shape("PATTERN (A+ B+ C) DEFINE A AS price > 100, B AS price > 200, C AS price < 0"),
    "rare end": Shape("PATTERN (A X*? B) DEFINE A AS kind = 0, B AS price = 1000", None),
}


def table(count: int) -> pa.Table:
    """Rows of some keys in order: a price that wanders, one of four kinds, and a number."""
    random = np.random.default_rng(7)
    price = np.clip(np.abs(np.cumsum(random.integers(-9, 10, count)) % 2_000 - 1_000), 1, 1_000)
    columns = {"id": np.cumsum(random.integers(1, 20, count)), "k": random.integers(0, 20, count), "price": price}
    return pa.table({**columns, "kind": random.integers(0, 4, count), "x": random.integers(0, 1_000, count)})


def clause_of(shape: Shape) -> str:
    """The whole clause."""
    return f"MATCH_RECOGNIZE (PARTITION BY k ORDER BY id MEASURES count(*) AS n {shape.clause})"


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Processor time of a call, the best of three after one that warms up; one if it takes long."""
    found, best = call(), math.inf
    for _ in range(3):
        begin = time.process_time()
        found = call()
        best = min(best, time.process_time() - begin)
        if best > 2:
            break
    return best, found


def peer(name: str) -> Any:
    """A package that may not be installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def by_pandas(module: Any, shape: Shape, rows: pa.Table) -> tuple[float, Any] | str:
    """What pandas-match-recognize takes for a shape, or what is wrong."""
    frame = rows.to_pandas()
    text = f"SELECT * FROM t {clause_of(shape)}"
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            logging.disable(logging.CRITICAL)
            begin = time.process_time()
            found = module.match_recognize(text, frame)
        return time.process_time() - begin, len(found)
    except Exception as error:
        return f"error: {type(error).__name__}"


def measured(name: str, rows: pa.Table, few: pa.Table, duckdb: Any, pandas: Any) -> dict[str, Any]:
    """One line of the table."""
    shape = SHAPES[name]
    own, found = seconds(lambda: cepheid.match(rows, clause_of(shape), timeout=60))
    line = {
        "shape": name,
        "result rows": found.num_rows,
        "µs a row": round(own / ROWS * 1e6, 3),
        "DuckDB": "",
        "pandas": "",
    }
    if duckdb is not None and shape.duckdb is not None:
        duckdb.register("t", rows)
        other, ((number,),) = seconds(lambda: duckdb.execute(shape.duckdb).fetchall())
        line["DuckDB"] = f"{other / own:.2f} x" if number == found.num_rows else f"other rows: {number:,}"
    if pandas is not None:
        answer = by_pandas(pandas, shape, few)
        if isinstance(answer, str):
            line["pandas"] = answer
        else:
            expected = cepheid.match(few, clause_of(shape)).num_rows
            times = answer[0] / FEW_ROWS / (own / ROWS)
            line["pandas"] = f"{times:,.0f} x" if answer[1] == expected else f"other rows: {answer[1]:,}"
    return line


def main() -> None:
    """Measures all shapes, prints and saves them."""
    on_one_core()
    duckdb, pandas = peer("duckdb"), peer("pandas_match_recognize")
    connection = None if duckdb is None else duckdb.connect(config={"threads": 1})
    rows, few = table(ROWS), table(FEW_ROWS)
    found = [measured(name, rows, few, connection, pandas) for name in SHAPES]
    columns = list(found[0])
    title = f"MATCH_RECOGNIZE over {ROWS:,} rows: processor time of a row, and how many times that the peers take"
    print_table(title, columns, [[row[column] for column in columns] for row in found])
    save("clauses", {"rows": found})


if __name__ == "__main__":
    main()

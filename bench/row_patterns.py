"""Row patterns in memory: V-shapes, a funnel with a window, and a pattern that fails, at growing sizes.

`python -m bench.row_patterns 1000000 10000000` prints rows per second, one line per workload and size.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import pyarrow as pa

import cepheid

V_SHAPE = """MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts
MEASURES FIRST(price) AS high, LAST(DOWN.price) AS low, LAST(UP.price) AS back
PATTERN (A DOWN+ UP+) DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price))"""
FUNNEL = """MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.ts AS began, C.ts AS ended
PATTERN (A X*? B Y*? C) WITHIN 2000000 DEFINE A AS price < 2, B AS price > 98, C AS price BETWEEN 40 AND 45)"""
PATHS = """MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES avg(A.price) AS mean, B.price AS price
PATTERN (A+ B) DEFINE A AS avg(A.price) < 40)"""
FAILING = """MATCH_RECOGNIZE (ORDER BY ts MEASURES A.ts AS began
PATTERN (A+ B+ C+ E) DEFINE A AS kind = 'A', B AS kind = 'B', C AS kind = 'C', E AS kind = 'E')"""


def ticks(rows: int, keys: int = 10_000) -> pa.Table:
    """Prices without any order, of many keys."""
    random = np.random.default_rng(1)
    return pa.table({"k": random.integers(0, keys, rows), "ts": np.arange(rows), "price": random.random(rows) * 100})


def phases(rows: int) -> pa.Table:
    """A..A B..B C..C D: every start of the failing pattern runs to the end."""
    kinds = np.repeat(np.array(["A", "B", "C", "D"]), [rows // 3, rows // 3, rows - 2 * (rows // 3) - 1, 1])
    return pa.table({"ts": np.arange(rows), "kind": kinds})


def main() -> None:
    """Prints a line per workload and size."""
    sizes = [int(given) for given in sys.argv[1:]] or [1_000_000]
    workloads = (("V-shape", V_SHAPE, ticks), ("funnel", FUNNEL, ticks), ("paths", PATHS, ticks))
    for name, clause, make in (*workloads, ("A+ B+ C+ E", FAILING, phases)):
        cepheid.match(make(1000), clause)  # compiles, or reads what was compiled
        for size in sizes:
            table = make(size)
            wall, used = time.perf_counter(), time.process_time()
            found = cepheid.match(table, clause)
            wall, used = time.perf_counter() - wall, time.process_time() - used
            rate = f"{size / wall / 1e6:6.2f} M rows/s, {size / used / 1e6:6.2f} M rows per second of processor"
            print(f"{name:<12}{size:>12,} rows  {rate}  {found.num_rows:,} results", flush=True)


if __name__ == "__main__":
    main()

"""Row patterns that look back at their path: how the time grows with the rows, beside a pattern that does not.

`python -m bench shapes` measures each shape at three sizes. The smooth pattern, `A+ B` with a condition on one row,
is measured over as many rows in the same run. The exponent says by which power of the rows the time grows.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pyarrow as pa

import cepheid
from bench.measure import on_one_core, print_table, save

COUNTED_ROWS = "ORDER BY id MEASURES count(*) AS n"
SMOOTH = "PATTERN (A+ B) DEFINE B AS value < 0"
CRIME = (
    "AFTER MATCH SKIP TO NEXT ROW PATTERN (R Z* B Z* M) DEFINE R AS value = 0, B AS value = 1 AND abs(B.x - R.x) < 20, "
    "M AS value = 2 AND abs(M.x - R.x) < 20 AND M.id - R.id <= 30"
)
SHAPES: dict[str, tuple[str, tuple[int, ...]]] = {
    "(A+)+ B, FIRST": ("PATTERN ((A+)+ B) DEFINE B AS FIRST(A.value) < 0", (2_000, 4_000, 8_000)),
    "(A*)* B, FIRST": ("PATTERN ((A*)* B) DEFINE B AS FIRST(A.value) < 0", (2_000, 4_000, 8_000)),
    "(A|B)+ C, count": ("PATTERN ((A | B)+ C) DEFINE C AS count(A.value) < 0", (200, 400, 800)),
    "(A|B)+ C, CLASSIFIER": ("PATTERN ((A | B)+ C) DEFINE C AS PREV(CLASSIFIER()) = 'Z'", (2_000, 4_000, 8_000)),
    "A+ C+ B, LAST": ("PATTERN (A+ C+ B) DEFINE B AS LAST(A.value, 1) < 0", (2_000, 4_000, 8_000)),
    "A* C* D* B, count": ("PATTERN (A* C* D* B) DEFINE B AS count(A.value) < 0", (100, 200, 400)),
    "A+ B, MATCH_NUMBER": ("PATTERN (A+ B) DEFINE B AS MATCH_NUMBER() < 0", (8_000, 16_000, 32_000)),
    "A+ B, FIRST": ("PATTERN (A+ B) DEFINE B AS FIRST(value) < 0", (8_000, 16_000, 32_000)),
    "R Z* B Z* M": (CRIME, (5_000, 10_000, 20_000)),
    "A? ... A? A ... A": (f"PATTERN ({'A? ' * 2_000 + 'A ' * 2_000}) DEFINE A AS value >= 0", (2_000, 4_000, 8_000)),
    "(A|B)+ C, labels": ("PATTERN ((A | B)+ C) DEFINE C AS array_agg(CLASSIFIER()) = ARRAY['Z']", (100, 200, 400)),
    "(A|B)+ C, DISTINCT": ("PATTERN ((A | B)+ C) DEFINE C AS count(DISTINCT A.value) > 5", (50, 100, 200)),
    "(A+)+ B, list": ("PATTERN ((A+)+ B) DEFINE B AS array_agg(A.value) = ARRAY[-1]", (50, 100, 200)),
}


def rows(count: int, seed: int = 1) -> pa.Table:
    """Rows in order, each with one of five values and one of many."""
    random = np.random.default_rng(seed)
    return pa.table(
        {"id": np.arange(count), "value": random.integers(0, 5, count), "x": random.integers(0, 1_000, count)}
    )


def seconds(clause: str, table: pa.Table) -> float:
    """Processor time of one call, the best of three; one if it takes long."""
    best = math.inf
    for _ in range(3):
        begin = time.process_time()
        cepheid.match(table, f"MATCH_RECOGNIZE ({COUNTED_ROWS} {clause})", timeout=60)
        best = min(best, time.process_time() - begin)
        if best > 2:
            break
    return best


def main() -> None:
    """Measures all shapes, prints and saves them."""
    on_one_core()
    found: list[dict[str, Any]] = []
    for name, (clause, sizes) in SHAPES.items():
        seconds(clause, rows(sizes[-1]))
        times = [seconds(clause, rows(size)) for size in sizes]
        smooth = seconds(SMOOTH, rows(sizes[-1]))
        found.append(
            {
                "shape": name,
                "rows": sizes[-1],
                "seconds": round(times[-1], 3),
                "µs a row": round(times[-1] / sizes[-1] * 1e6, 2),
                "times the smooth": round(times[-1] / smooth, 1),
                "exponent": round(math.log(times[-1] / times[-2], sizes[-1] / sizes[-2]), 2),
            }
        )
    columns = list(found[0])
    print_table("Row patterns that look back", columns, [[row[column] for column in columns] for row in found])
    save("shapes", {"rows": found})


if __name__ == "__main__":
    main()

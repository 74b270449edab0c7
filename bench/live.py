"""Live queries: events a second in batches of 100, and the time of a single event, beside a batch in the same run.

`python -m bench live` prints a table; 1,000 keys, SEQ of 3 over 6 types, window 5,000.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

import cepheid

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN 5000"
WARM = 5_000  # events before anything is measured
SINGLE = 10_000


def events_of(number: int) -> pa.Table:
    """A stream of events."""
    draw = np.random.default_rng(1)
    kinds, ids = draw.choice(list("ABCDEF"), number), draw.integers(0, 1000, number)
    return pa.table({"ts": np.arange(number), "type": kinds, "id": ids})


def rate(call: object, number: int) -> float:
    """Events a second of a call."""
    begin = time.perf_counter()
    assert callable(call)
    call()
    return number / (time.perf_counter() - begin)


def main(quick: bool = False) -> None:
    """Measures and prints."""
    number = 50_000 if quick else 200_000
    table = events_of(number)
    rows = table.to_pylist()
    cepheid.match(table, QUERY)
    batch = rate(lambda: cepheid.match(table, QUERY), number)
    live = cepheid.live(QUERY, table.schema)
    pieces = [table.slice(start, 100) for start in range(0, number, 100)]
    for piece in pieces[: WARM // 100]:
        live.send(piece)
    tables = rate(lambda: [live.send(piece) for piece in pieces[WARM // 100 :]], number - WARM)
    live = cepheid.live(QUERY, table.schema)
    live.send(rows[:WARM])
    lists = rate(lambda: [live.send(rows[start : start + 100]) for start in range(WARM, number, 100)], number - WARM)
    live = cepheid.live(QUERY, table.schema)
    live.send(rows[:WARM])
    spent = []
    for row in rows[WARM : WARM + SINGLE]:
        begin = time.perf_counter()
        live.send(row)
        spent.append(1000 * (time.perf_counter() - begin))
    median, late = np.percentile(spent, [50, 99])
    print("| what | events a second | of a batch |\n|---|---|---|")
    for name, found in (("a batch of all", batch), ("tables of 100", tables), ("lists of 100", lists)):
        print(f"| {name} | {found:,.0f} | {found / batch:.1%} |")
    print(f"\nsingle events: median {median:.2f} ms, 99th percentile {late:.2f} ms")

"""Live queries: events a second in batches of 100, and the time of a single event, beside a batch in the same run.

`python -m bench live` prints a table for each strategy; 1,000 keys, SEQ of 3 over 6 types, window 5,000. Under
skip_till_next_match also one key: the window holds 2,500 candidates of it, which nobody wants to look at again.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

import cepheid

ANY = "PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN 5000"
NEXT = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c) { [id] } WITHIN 5000"
WARM = 5_000  # events before anything is measured
SINGLE = 10_000


def events_of(number: int, keys: int) -> pa.Table:
    """A stream of events."""
    draw = np.random.default_rng(1)
    kinds, ids = draw.choice(list("ABCDEF"), number), draw.integers(0, keys, number)
    return pa.table({"ts": np.arange(number), "type": kinds, "id": ids})


def rate(call: object, number: int) -> float:
    """Events a second of a call."""
    begin = time.perf_counter()
    assert callable(call)
    call()
    return number / (time.perf_counter() - begin)


def main(quick: bool = False) -> None:
    """Measures and prints."""
    for name, query, keys in (
        ("every combination", ANY, 1000),
        ("next match", NEXT, 1000),
        ("next match, one key", NEXT, 1),
    ):
        print(f"\n{name}\n")
        measure(query, events_of(50_000 if quick else 200_000, keys))


def measure(query: str, table: pa.Table) -> None:
    """Measures and prints one query."""
    number, rows = table.num_rows, table.to_pylist()
    cepheid.match(table, query)
    batch = rate(lambda: cepheid.match(table, query), number)
    live = cepheid.live(query, table.schema)
    pieces = [table.slice(start, 100) for start in range(0, number, 100)]
    for piece in pieces[: WARM // 100]:
        live.send(piece)
    tables = rate(lambda: [live.send(piece) for piece in pieces[WARM // 100 :]], number - WARM)
    live = cepheid.live(query, table.schema)
    live.send(rows[:WARM])
    lists = rate(lambda: [live.send(rows[start : start + 100]) for start in range(WARM, number, 100)], number - WARM)
    live = cepheid.live(query, table.schema)
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

"""Live queries: events a second in batches of 100, and the time of a single event, beside a batch in the same run.

`python -m bench live` prints a table for each strategy; 1,000 keys, SEQ of 3 over 6 types, window 5,000. Under
skip_till_next_match also one key: the window holds 2,500 candidates of it, which nobody wants to look at again.

A last table sends single dicts of SASE's workload (20 types, 1,000 keys, window 10,000) to queries of several kinds,
beside the loop that a programmer writes by hand for the first of them. Times are processor time there.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from typing import Any

import numpy as np
import pyarrow as pa

import cepheid

ANY = "PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN 5000"
NEXT = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c) { [id] } WITHIN 5000"
WARM = 5_000  # events before anything is measured
SINGLE = 10_000


SINGLES = {
    "any match": "PATTERN SEQ(T0 a, T1 b, T2 c) WHERE [k] AND a.price < b.price AND b.price < c.price WITHIN 10000",
    "next match": "PATTERN SEQ(T0 a, T1 b, T2 c) WHERE skip_till_next_match(a, b, c) { [k] } WITHIN 10000",
    "negation": "PATTERN SEQ(T0 a, !(T3 d), T1 b, T2 c) WHERE [k] WITHIN 10000",
    "Kleene": "PATTERN SEQ(T0 a, T1+ b[], T2 c) WHERE skip_till_next_match(a, b[], c) { [k] } WITHIN 10000",
    "contiguity": "PATTERN SEQ(T0 a, T1 b, T2 c) WHERE partition_contiguity(a, b, c) { [k] } WITHIN 10000",
    "optional part": "PATTERN SEQ(T0 a, T1? b, T2 c) WHERE [k] WITHIN 10000",
    "no key": "PATTERN SEQ(T0 a, T1 b, T2 c) WHERE a.price < b.price AND b.price < c.price WITHIN 100",
    "count window": "PATTERN SEQ(T0 a, T1 b, T2 c) WHERE [k] WITHIN 20 EVENTS",
}


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

    singles(30_000 if quick else 100_000)


def singles(number: int) -> None:
    """Single dicts beside a loop written by hand."""
    draw = np.random.default_rng(3)
    kinds, keys, prices = draw.integers(0, 20, number), draw.integers(0, 1000, number), draw.random(number)
    rows = [
        {"ts": at, "type": f"T{kind}", "k": int(key), "price": float(price)}
        for at, (kind, key, price) in enumerate(zip(kinds, keys, prices, strict=True))
    ]
    print("\nsingle dicts, SASE's workload\n\n| query | events a second | of the loop | matches |\n|---|---|---|---|")
    begin = time.process_time()
    found = by_hand(rows)
    loop = number / (time.process_time() - begin)
    print(f"| the loop, any match | {loop:,.0f} | 1 | {found:,} |")
    for name, query in SINGLES.items():
        live = cepheid.live(query, {"ts": int, "type": str, "k": int, "price": float})
        used = rows if name not in ("no key", "count window") else rows[: number // 5]
        found = sum(len(live.send(row)) for row in used[:WARM])
        begin = time.process_time()
        found += sum(len(live.send(row)) for row in used[WARM:])
        each = (len(used) - WARM) / (time.process_time() - begin)
        print(f"| {name} | {each:,.0f} | {each / loop:.3f} | {found + len(live.finish()):,} |")


def by_hand(rows: list[dict[str, Any]]) -> int:
    """The loop that a programmer writes for the first query alone."""
    first: dict[int, deque[dict[str, Any]]] = defaultdict(deque)
    second: dict[int, deque[dict[str, Any]]] = defaultdict(deque)
    found = 0
    for event in rows:
        kind, key = event["type"], event["k"]
        if kind == "T0":
            first[key].append(event)
        elif kind == "T1":
            if first.get(key):
                second[key].append(event)
        elif kind == "T2" and second.get(key):
            for queue in (first[key], second[key]):
                while queue and queue[0]["ts"] < event["ts"] - 10_000:
                    queue.popleft()
            for middle in second[key]:
                if middle["price"] < event["price"]:
                    early = (each for each in first[key] if each["ts"] < middle["ts"])
                    found += sum(each["price"] < middle["price"] for each in early)
    return found


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

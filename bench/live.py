"""Live queries beside the loop that a programmer writes by hand, in one run: single dicts, and tables of several sizes.

`python -m bench live` prints events a second for every shape of query and every size of table, on SASE's workload (20
types, 1,000 keys, window 10,000); how the cost of an event grows with the window, the keys, the queries and the length
of the pattern; how long `send` takes at a given rate; what memory does over a long stream; and every shape with one
key, ten and 1,000 beside a batch of the same events. Then a batch in the same run, with lists and tables of 100, and
other engines. Times are processor time, except those of `send` at a rate and those of other engines.
"""

from __future__ import annotations

import gc
import os
import resource
import time
from collections import defaultdict, deque
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import cepheid
from bench.live_rivals import beside_rivals

ANY = "PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN 5000"
NEXT = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c) { [id] } WITHIN 5000"
WARM = 5_000  # events before anything is measured
ROUNDS = 3  # the best of which counts, for the loop and for live queries
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
    "missing events": "PATTERN SEQ(T0 a, T1 b, T2 c) WHERE [k] WITHIN 10000 THRESHOLD 0.05",
    "UNTIL": "PATTERN SEQ(T0 a, T1+ b[] UNTIL b.price > 0.9, T2 c) "
    "WHERE skip_till_next_match(a, b[], c) { [k] } WITHIN 10000",
    "strict contiguity": "PATTERN SEQ(T0 a, T1 b) WHERE strict_contiguity(a, b) { [k] } WITHIN 10000",
    "NON-OVERLAP": "PATTERN SEQ(T0 a, T1 b, T2 c) WHERE [k] WITHIN 10000 OUTPUT NON-OVERLAP",
    "MAXIMAL": "PATTERN SEQ(T0 a, T1+ b[], T2 c) WHERE [k] WITHIN 10000 OUTPUT MAXIMAL",
    "SUMMARISE": "PATTERN SEQ(T0 a, T1 b, T2 c) WHERE [k] WITHIN 10000 SUMMARISE count(*) AS n EVERY 10000",
}
LOSSES = cepheid.Model(loss=0.1, gaps={name: cepheid.Exponential(mean=5000) for name in "abc"})
OPTIONS: dict[str, dict[str, Any]] = {
    "missing events": {"model": LOSSES},
    "tiebreak by a column": {"tiebreak": "k"},
    "tiebreak by row": {"tiebreak": "row"},
    "timeout": {"timeout": 10.0},
}
SHAPES = SINGLES | {name: SINGLES["any match"] for name in OPTIONS if name not in SINGLES}


def events_of(number: int, keys: int) -> pa.Table:
    """A stream of events."""
    draw = np.random.default_rng(1)
    kinds, ids = draw.choice(list("ABCDEF"), number), draw.integers(0, keys, number)
    return pa.table({"ts": np.arange(number), "type": kinds, "id": ids})


def rate(call: object, number: int) -> float:
    """Events a second of a call, by processor time."""
    begin = time.process_time()
    assert callable(call)
    call()
    return number / (time.process_time() - begin)


def main(quick: bool = False) -> None:
    """Measures and prints."""
    os.environ.setdefault("CEPHEID_COMPILE", "always")  # a first call waits for its kernels: no later one compiles them
    number = 30_000 if quick else 200_000
    table = workload(number)
    shapes(table)
    growth(number)
    delays(5_000 if quick else 50_000)
    memory(200_000 if quick else 10_000_000)
    few_keys(20_000 if quick else 100_000)
    for name, query, keys in (
        ("every combination", ANY, 1000),
        ("next match", NEXT, 1000),
        ("next match, one key", NEXT, 1),
    ):
        print(f"\n{name}\n")
        measure(query, events_of(50_000 if quick else 200_000, keys))
    beside_rivals(table, SINGLES)


SCHEMA = {"ts": int, "type": str, "k": int, "price": float}
SIZES = (1, 10, 100, 1_000, 10_000)  # rows of a table; 1: a dict


def workload(number: int, keys: int = 1000, first: int = 0) -> pa.Table:
    """SASE's: 20 types, so many keys."""
    draw = np.random.default_rng(3 + first)
    names = np.array([f"T{kind}" for kind in range(20)])
    return pa.table(
        {
            "ts": np.arange(first, first + number),
            "type": names[draw.integers(0, 20, number)].astype(object),
            "k": draw.integers(0, keys, number),
            "price": draw.random(number),
        }
    )


def sent(live: Any, pieces: list[Any]) -> tuple[float, int]:
    """Processor time for each event of the last four fifths of the pieces, and matches.

    Python collects garbage meanwhile. What was there before is collected first: a look at the whole heap takes longer
    than some of what is measured, and would fall into any of it.
    """
    warm = max(1, len(pieces) // 5)
    found = sum(len(live.send(piece)) for piece in pieces[:warm])
    gc.collect()
    begin = time.process_time()
    found += sum(len(live.send(piece)) for piece in pieces[warm:])
    spent = time.process_time() - begin
    return spent / sum(1 if isinstance(piece, dict) else len(piece) for piece in pieces[warm:]), found


def in_pieces(table: pa.Table, size: int) -> list[Any]:
    """Dicts, or tables of a size."""
    if size == 1:
        return table.to_pylist()  # type: ignore[no-any-return]
    return [table.slice(start, size) for start in range(0, table.num_rows, size)]


def opened(name: str, query: str) -> Any:
    """A live query."""
    return cepheid.live(query, SCHEMA, **OPTIONS.get(name, {}))


def shapes(table: pa.Table) -> None:
    """Every shape of query and every size of table, beside the loop."""
    rows = table.to_pylist()
    for name, query in SHAPES.items():  # kernels are loaded or compiled before anything is measured
        warm = opened(name, query)
        for piece in (*rows[:WARM], table.slice(WARM, 100)):
            warm.send(piece)
    best, loop, found = dict[tuple[str, int], float](), 0.0, dict[str, int]()
    for _ in range(ROUNDS):
        for name, query in SHAPES.items():
            gc.collect()
            loop = max(loop, rate(partial(by_hand, rows), len(rows)))
            for size in SIZES:
                live = opened(name, query)
                each, matches = sent(live, rows if size == 1 else in_pieces(table, size))
                best[name, size] = min(best.get((name, size), each), each)
                found[name] = matches + len(live.finish())
    print(f"\nThousand events a second, and the share of the loop's {loop / 1e3:,.0f} (any match); best of {ROUNDS}\n")
    print("| query | a dict | 10 | 100 | 1,000 | 10,000 | matches |\n|---|---|---|---|---|---|---|")
    for name in SHAPES:
        cells = [f"{1 / best[name, size] / 1e3:,.0f} ({1 / best[name, size] / loop:.2f})" for size in SIZES]
        print(f"| {name} | {' | '.join(cells)} | {found[name]:,} |")


def growth(number: int) -> None:
    """Microseconds an event as single dicts, against one thing at a time."""
    any_match = SINGLES["any match"]
    print("\nMicroseconds an event, as single dicts\n\n| against | values | microseconds |\n|---|---|---|")
    by_window = [any_match.replace("10000", str(window)) for window in (100, 1_000, 10_000, 100_000)]
    told("window", (100, 1_000, 10_000, 100_000), [(query, workload(number)) for query in by_window])
    told(
        "keys",
        (1, 10, 100, 1_000),
        [(any_match.replace("10000", "1000"), workload(number, k)) for k in (1, 10, 100, 1000)],
    )
    told("components", (2, 3, 5, 8), [(_of_length(length), workload(number)) for length in (2, 3, 5, 8)])
    table = workload(number // 4)
    several = [({f"q{each}": _of_types(each) for each in range(count)}, table) for count in (1, 10, 100, 1000)]
    told("queries", (1, 10, 100, 1_000), several)


def told(against: str, values: tuple[int, ...], runs: list[tuple[Any, pa.Table]]) -> None:
    """One row of the table."""
    spent = [sent(cepheid.live(query, SCHEMA), in_pieces(table, 1))[0] * 1e6 for query, table in runs]
    print(
        f"| {against} | {', '.join(f'{value:,}' for value in values)} | {', '.join(f'{each:.2f}' for each in spent)} |"
    )


def _of_length(length: int) -> str:
    parts = ", ".join(f"T{place} v{place}" for place in range(length))
    return f"PATTERN SEQ({parts}) WHERE [k] WITHIN 10000"


def _of_types(number: int) -> str:
    """A query of three of 300 types: of 1,000 of them ten mention the type of an event."""
    first, second, third = (f"T{(3 * number + place) % 300}" for place in range(3))
    return f"PATTERN SEQ({first} a, {second} b, {third} c) WHERE [k] WITHIN {1_000 + number}"


def delays(number: int) -> None:
    """How long `send` of a dict takes, where events come at a rate; by the clock on the wall."""
    rows = workload(number + WARM).to_pylist()
    print("\nMicroseconds that `send` of a dict takes\n\n| events a second | p50 | p99 | p99.9 |\n|---|---|---|---|")
    for rate in (1_000, 10_000, 100_000):
        live = cepheid.live(SINGLES["any match"], SCHEMA)
        for row in rows[:WARM]:
            live.send(row)
        gc.collect()
        spent, due = [], time.perf_counter()
        for row in rows[WARM : WARM + min(number, 5 * rate)]:
            due += 1 / rate
            while time.perf_counter() < due:
                pass
            begin = time.perf_counter()
            live.send(row)
            spent.append(1e6 * (time.perf_counter() - begin))
        median, late, latest = np.percentile(spent, [50, 99, 99.9])
        print(f"| {rate:,} | {median:.1f} | {late:.1f} | {latest:.1f} |")


def memory(number: int) -> None:
    """The most memory that the process has held, as a stream goes on."""
    live = cepheid.live(SINGLES["any match"], SCHEMA)
    peaks, chunk = [], 100_000
    for first in range(0, number, chunk):
        table = workload(chunk, first=first)
        for start in range(0, chunk, 1_000):
            live.send(table.slice(start, 1_000))
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    early, late = peaks[min(2, len(peaks) - 1)], peaks[-1]
    begun = min(3, len(peaks)) * chunk
    print(f"\nMost memory held: {early:,.0f} MB after {begun:,} events, {late:,.0f} MB after {number:,}")
    print(f"events kept: {live.numbers.retained:,}")


# The window for one key, for ten and for 1,000: a longer one has more matches than anyone wants to look at.
FEW_KEYS = {
    "any match": (300, 3_000, 10_000),
    "next match": (10_000, 10_000, 10_000),
    "negation": (300, 3_000, 10_000),
    "Kleene": (200, 2_000, 10_000),
    "contiguity": (10_000, 10_000, 10_000),
    "optional part": (100, 1_000, 10_000),
    "no key": (100,),
    "count window": (20, 20, 20),
    "missing events": (60, 300, 10_000),
}


def few_keys(number: int) -> None:
    """Every shape with one key, ten and 1,000: how much slower than a batch of the same events."""
    print("\nThousand events a second, and how many times slower than a batch\n")
    print("| query | keys | window | a batch | 1,000 | 100 | a dict | matches |\n|---|---|---|---|---|---|---|---|")
    for name, windows in FEW_KEYS.items():
        for keys, window in zip((1, 10, 1_000), windows, strict=False):
            query, table = SINGLES[name].replace("WITHIN 10000", f"WITHIN {window}"), workload(number, keys)
            model = LOSSES if "THRESHOLD" in query else None
            found = cepheid.match(table, query, model=model).num_rows
            batch = rate(partial(cepheid.match, table, query, model=model), number)
            cells = []
            for size in (1_000, 100, 1):
                each, _ = sent(opened(name, query), in_pieces(table if size > 1 else table.slice(0, 20_000), size))
                cells.append(f"{1 / each / 1e3:,.0f} ({batch * each:.1f})")
            print(f"| {name} | {keys:,} | {window:,} | {batch / 1e3:,.0f} | {' | '.join(cells)} | {found:,} |")


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

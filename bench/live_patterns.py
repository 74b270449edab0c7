"""Live row patterns and Flink patterns beside the loops that a programmer writes by hand for them, in one run.

`python -m bench live` prints, after its other tables, events a second for single dicts and tables of several sizes,
and how the cost of an event grows with the window. Times are processor time.

Each loop collects what its pattern shows of a match, and leaves out matches that are longer than the window.
"""

from __future__ import annotations

import gc
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import cepheid
from bench.live import ROUNDS, SCHEMA, SIZES, in_pieces, sent, workload
from cepheid.flink import Pattern

PRICES = {"ts": int, "k": int, "price": float}
V_SHAPE = """MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES FIRST(A.ts) AS begins, LAST(C.ts) AS ends
    PATTERN (A B+ C+) WITHIN {window} DEFINE B AS price < PREV(price), C AS price > PREV(price))"""
ALL_ROWS = """MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES CLASSIFIER() AS label, MATCH_NUMBER() AS number
    ALL ROWS PER MATCH
    PATTERN (A B+ C+) WITHIN {window} DEFINE B AS price < PREV(price), C AS price > PREV(price))"""
NEIGHBOURS = """MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.ts AS begins, A.type AS one, B.type AS other,
    B.price - A.price AS risen PATTERN (A B) WITHIN {window} DEFINE A AS type < 'T15', B AS type > 'T15')"""
SEQUENCE = """MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.ts AS begins, C.ts AS ends
    PATTERN (A X*? B Y*? C) WITHIN {window} DEFINE A AS type = 'T0', B AS type = 'T1', C AS type = 'T2')"""
FEWEST = {1: 100_000, 10: 50_000, 100: 100_000, 1_000: 200_000, 10_000: 200_000}


def followed_by(window: int) -> Pattern:
    """Three types, one after the other."""
    first = Pattern.begin("a").where("type = 'T0'").followed_by("b").where("type = 'T1'")
    return first.followed_by("c").where("type = 'T2'").within(window)


def any_following(window: int) -> Pattern:
    """The same in every combination."""
    first = Pattern.begin("a").where("type = 'T0'").followed_by_any("b").where("type = 'T1'")
    return first.followed_by_any("c").where("type = 'T2'").within(window)


def not_followed_by(window: int) -> Pattern:
    """A first type and a third one, and none of a second type in between."""
    first = Pattern.begin("a").where("type = 'T0'").not_followed_by("b").where("type = 'T1'")
    return first.followed_by("c").where("type = 'T2'").within(window)


def prices(number: int, keys: int = 10) -> pa.Table:
    """Prices of some keys."""
    draw = np.random.default_rng(5)
    return pa.table({"ts": np.arange(number), "k": draw.integers(0, keys, number), "price": draw.random(number)})


def v_shapes_by_hand(rows: list[dict[str, Any]], window: int = 10_000) -> int:
    """The loop for the row pattern, prices that fall, then rise: when each match begins and ends."""
    state: dict[int, list[Any]] = {}  # by key: the last price and its time, how far a match is, when it begins
    found: list[tuple[int, int]] = []
    for row in rows:
        price, now = row["price"], row["ts"]
        own = state.get(row["k"])
        if own is None:
            state[row["k"]] = [price, now, 0, now]
            continue
        last, then, at, begun = own
        if at == 2:
            if price <= last:
                if then - begun < window:
                    found.append((begun, then))
                at = 0
        elif price < last:
            if at == 0:
                begun = then
            at = 1
        elif at == 1:
            at = 2 if price > last else 0
        own[:] = price, now, at, begun
    return len(found) + sum(at == 2 and then - begun < window for _, then, at, begun in state.values())


def v_rows_by_hand(rows: list[dict[str, Any]]) -> int:
    """The loop for all rows of these matches: the rows of a match, each with its label."""
    state: dict[int, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    shown: list[tuple[str, dict[str, Any]]] = []
    for row in rows:
        path = state[row["k"]]
        if not path:
            path.append(("A", row))
            continue
        label, last = path[-1][0], path[-1][1]["price"]
        if label != "C" and row["price"] < last:
            path.append(("B", row))
        elif label != "A" and row["price"] > last:
            path.append(("C", row))
        else:
            if label == "C":
                shown += path
            path[:] = [("A", row)]
    return len(shown) + sum(len(path) for path in state.values() if path[-1][0] == "C")


def v_shapes_of_all_by_hand(rows: list[dict[str, Any]], window: int = 10_000) -> int:
    """The loop for the row pattern without a key."""
    found: list[tuple[int, int]] = []
    at, begun, then, last = 0, 0, 0, float("-inf")
    for row in rows:
        price, now = row["price"], row["ts"]
        if at == 2:
            if price <= last:
                if then - begun < window:
                    found.append((begun, then))
                at = 0
        elif price < last:
            if at == 0:
                begun = then
            at = 1
        elif at == 1:
            at = 2 if price > last else 0
        last, then = price, now
    return len(found) + (at == 2 and then - begun < window)


def neighbours_by_hand(rows: list[dict[str, Any]]) -> int:
    """The loop for neighbours with some types."""
    before: dict[int, dict[str, Any]] = {}
    found: list[tuple[int, str, str, float]] = []
    for row in rows:
        key, last = row["k"], before.get(row["k"])
        if last is not None and last["type"] < "T15" and row["type"] > "T15":
            found.append((last["ts"], last["type"], row["type"], row["price"] - last["price"]))
        before[key] = row
    return len(found)


def any_by_hand(rows: list[dict[str, Any]], window: int = 10_000) -> int:
    """The loop for every combination."""
    firsts: dict[int, list[dict[str, Any]]] = defaultdict(list)
    pairs: dict[int, list[tuple[dict[str, Any], dict[str, Any]]]] = defaultdict(list)
    found: list[tuple[dict[str, Any], ...]] = []
    for event in rows:
        kind, key, now = event["type"], event["k"], event["ts"]
        if kind == "T0":
            firsts[key].append(event)
        elif kind == "T1":
            firsts[key] = [first for first in firsts[key] if now - first["ts"] < window]
            pairs[key] += [(first, event) for first in firsts[key]]
        elif kind == "T2":
            pairs[key] = [pair for pair in pairs[key] if now - pair[0]["ts"] < window]
            found += [(*pair, event) for pair in pairs[key]]
    return len(found)


def not_followed_by_hand(rows: list[dict[str, Any]], window: int = 10_000) -> int:
    """The loop for a first and a third event without a second one in between."""
    firsts: dict[int, list[dict[str, Any]]] = defaultdict(list)
    found: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for event in rows:
        kind, key = event["type"], event["k"]
        if kind == "T0":
            firsts[key].append(event)
        elif kind == "T1":
            firsts.pop(key, None)
        elif kind == "T2" and key in firsts:
            found += [(first, event) for first in firsts.pop(key) if event["ts"] - first["ts"] < window]
    return len(found)


def followed_by_hand(rows: list[dict[str, Any]], window: int = 10_000) -> int:
    """The loop for the Flink pattern: each first event takes the next second one, and then the next third one."""
    firsts: dict[int, list[dict[str, Any]]] = defaultdict(list)
    seconds: dict[int, list[tuple[dict[str, Any], dict[str, Any]]]] = defaultdict(list)
    found: list[tuple[dict[str, Any], ...]] = []
    for event in rows:
        kind, key = event["type"], event["k"]
        if kind == "T0":
            firsts[key].append(event)
        elif kind == "T1":
            if firsts.get(key):
                seconds[key] += [(first, event) for first in firsts.pop(key)]
        elif kind == "T2" and seconds.get(key):
            found += [(*pair, event) for pair in seconds.pop(key) if event["ts"] - pair[0]["ts"] < window]
    return len(found)


def shapes(quick: bool) -> None:
    """Every size of table, beside the loop for the same pattern."""
    print("| pattern | loop, thousand events/s | a dict | 10 | 100 | 1,000 | 10,000 | matches |")
    print("|---|---|---|---|---|---|---|---|")
    cases: list[tuple[str, Any, dict[str, Any], Any, Callable[..., pa.Table], Callable[..., int]]] = [
        ("row pattern", V_SHAPE.format(window=10_000), {}, PRICES, prices, v_shapes_by_hand),
        ("row pattern, all rows", ALL_ROWS.format(window=10_000), {}, PRICES, prices, v_rows_by_hand),
        (
            "row pattern, no key",
            V_SHAPE.format(window=10_000).replace("PARTITION BY k", ""),
            {},
            PRICES,
            prices,
            v_shapes_of_all_by_hand,
        ),
        ("row pattern, texts", NEIGHBOURS.format(window=10_000), {}, SCHEMA, workload, neighbours_by_hand),
        ("Flink pattern", followed_by(10_000), {"partition_by": ["k"]}, SCHEMA, workload, followed_by_hand),
        ("Flink, any", any_following(10_000), {"partition_by": ["k"]}, SCHEMA, workload, any_by_hand),
        ("Flink, not", not_followed_by(10_000), {"partition_by": ["k"]}, SCHEMA, workload, not_followed_by_hand),
    ]
    for name, query, options, schema, made, loop in cases:
        rows = made(200_000).to_pylist()
        by_hand, expected = best_of(partial(looped, loop, rows))
        cells, found = [], 0
        for size in SIZES:
            number = FEWEST[size] // (10 if quick else 1)
            pieces = in_pieces(made(number), size)
            each, found = best_of(partial(in_turn, query, schema, options, pieces))
            cells.append(f"{1 / each / 1e3:,.0f} ({by_hand / each:.3f})")
        told = f"{found:,}" if quick or found == expected else f"{found:,} (loop: {expected:,})"
        print(f"| {name} | {1 / by_hand / 1e3:,.0f} | {' | '.join(cells)} | {told} |")


def best_of(measured: Callable[[], tuple[float, int]]) -> tuple[float, int]:
    """The least that something takes in several turns, and what it found; garbage is collected before each."""
    turns = []
    for _ in range(ROUNDS):
        gc.collect()
        turns.append(measured())
    return min(turns)


def looped(loop: Callable[..., int], rows: list[dict[str, Any]]) -> tuple[float, int]:
    """Processor time of a loop for each row, and the matches."""
    begin = time.process_time()
    found = loop(rows)
    return (time.process_time() - begin) / len(rows), found


def in_turn(query: Any, schema: Any, options: dict[str, Any], pieces: list[Any]) -> tuple[float, int]:
    """The same of a live query."""
    live = cepheid.live(query, schema, **options)
    each, found = sent(live, pieces)
    return each, found + len(live.finish())


def windows(quick: bool) -> None:
    """Microseconds a dict, against the window in events."""
    print("\nMicroseconds of a dict\n\n| pattern | window 100 | 1,000 | 10,000 | 100,000 |\n|---|---|---|---|---|")
    number = 10_000 if quick else 50_000
    cases: list[tuple[str, Callable[[int], Any], dict[str, Any], Any, Callable[..., pa.Table]]] = [
        ("row pattern, prices that fall and rise", lambda w: V_SHAPE.format(window=w), {}, PRICES, prices),
        ("row pattern, three types", lambda w: SEQUENCE.format(window=w), {}, SCHEMA, workload),
        ("Flink pattern", followed_by, {"partition_by": ["k"]}, SCHEMA, workload),
    ]
    for name, query, options, schema, made in cases:
        cells = []
        for window in (100, 1_000, 10_000, 100_000):
            each, _ = sent(cepheid.live(query(window), schema, **options), in_pieces(made(number), 1))
            cells.append(f"{1e6 * each:.1f}")
        print(f"| {name} | {' | '.join(cells)} |")


def main(quick: bool = False) -> None:
    """Measures and prints."""
    shapes(quick)
    windows(quick)

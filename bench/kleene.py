"""SASE+'s template (its section 6, table 1) through the public call, one core.

    PATTERN SEQ(STOCK+ a[], STOCK b) WHERE ES{ [symbol] AND a[1].price % 500 = 0 AND P AND b.volume < 150 } WITHIN W

with P true (p1), rising (p2) or above an aggregate (p3), by partition contiguity and skip till next match. Windows
count the events of a partition, as the paper's do. The merging of runs and the backtracking algorithm are compared.
"""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

import cepheid
from bench.flink.baseline import Kleene, measure
from bench.flink.installation import FlinkUnavailable
from bench.measure import best_seconds, on_one_core, plot_lines, print_table, save
from cepheid.simulate.stocks import stock_ticks

ITERATORS = {
    "p1": "TRUE",
    "p2": "a[i].price > a[i-1].price",
    "p3 max": "a[i].price > max(a[..i-1].price)",
    "p3 min": "a[i].price > min(a[..i-1].price)",
    "p3 avg": "a[i].price > avg(a[..i-1].price)",
}
STRATEGIES = {"s2": "partition_contiguity", "s3": "skip_till_next_match"}
TEMPLATE = (
    "PATTERN SEQ(Stock+ a[], Stock b) WHERE {strategy}(a[], b) "
    "{{ [symbol] AND a[1].price % 500 = 0 AND {iterator} AND b.volume < 150 }} WITHIN {window} EVENTS"
)


def text(iterator: str, strategy: str, window: int) -> str:
    """The template, filled in."""
    return TEMPLATE.format(strategy=STRATEGIES[strategy], iterator=ITERATORS[iterator], window=window)


def counting(quick: bool) -> dict[str, Any]:
    """Events per second when matches are counted or kept compressed."""
    numbers: dict[str, Any] = {}
    rows = []
    for window in (500,) if quick else (500, 1000, 2000):
        table = stock_ticks(100_000 if quick else 2 * 200 * window, seed=1).events
        for iterator in ITERATORS:
            for strategy in STRATEGIES:
                query = cepheid.query(text(iterator, strategy, window))
                counted, matches = best_seconds(lambda q=query, t=table: q.match(t, output="count"))
                packed, _ = best_seconds(lambda q=query, t=table: q.match(t, output="compressed"))
                alone, _ = best_seconds(lambda q=query, t=table: q.match(t, output="count", merge=False))
                speed = table.num_rows / counted
                rows.append([window, iterator, strategy, speed, table.num_rows / packed, alone / counted, matches])
                numbers[f"{iterator} {strategy} W={window}"] = {
                    "events_per_second_counting": speed,
                    "events_per_second_compressed": table.num_rows / packed,
                    "gain_of_merging": alone / counted,
                    "matches": matches,
                }
    print_table(
        "Counting and compressing",
        ["window", "P", "ES", "events/s counted", "events/s compressed", "merging gains", "matches"],
        rows,
    )
    return numbers


def enumerating(quick: bool) -> dict[str, Any]:
    """Time against output complexity: the number of events in all matches (SASE+ figure 8c)."""
    lines: dict[str, list[float]] = {}
    numbers: dict[str, Any] = {}
    sizes: list[float] = []
    rows = []
    windows = (100, 200) if quick else (250, 500, 750, 1000)
    for iterator in ("p1", "p2", "p3 min"):
        nanoseconds = []
        sizes = []
        for window in windows:
            table = stock_ticks(20_000 if quick else 100_000, seed=1).events
            query = cepheid.query(text(iterator, "s3", window))
            seconds, found = best_seconds(lambda q=query, t=table: q.match(t, engine="runs"))
            complexity = int(pc.sum(pc.list_value_length(found["a"])).as_py() or 0) + found.num_rows
            sizes.append(float(complexity))
            nanoseconds.append(1e9 * seconds / max(1, complexity))
            rows.append([iterator, window, found.num_rows, complexity, seconds, nanoseconds[-1]])
        lines[iterator] = nanoseconds
        numbers[iterator] = {"complexity": sizes, "ns_per_event_of_output": nanoseconds}
    plot_lines("kleene_output", "Enumerating: cost per event of output", ("window", windows), "ns", lines)
    print_table(
        "Enumerating (skip till next match)",
        ["P", "window", "matches", "events in matches", "seconds", "ns per event of output"],
        rows,
    )
    return numbers


def against_others(quick: bool) -> dict[str, Any]:
    """The same matches by backtracking, and by Flink CEP (windows in time, since Flink counts no events per key)."""
    table = stock_ticks(20_000 if quick else 100_000, seed=1).events
    numbers: dict[str, Any] = {}
    rows = []
    for strategy in STRATEGIES:
        query = cepheid.query(text("p2", strategy, 500))
        ours, _ = best_seconds(lambda q=query: q.match(table, engine="runs"))
        back, _ = best_seconds(lambda q=query: q.match(table, engine="backtrack"))
        rows.append(["backtracking", strategy, table.num_rows / ours, table.num_rows / back, back / ours])
        numbers[f"backtrack p2 {strategy}"] = back / ours
        timed = cepheid.query(text("p2", strategy, 1000).replace(" EVENTS", ""))
        ours, found = best_seconds(lambda q=timed: q.match(table))
        try:
            flink = measure(Kleene(iterator="p2", strategy=STRATEGIES[strategy], window=1000), table)
        except FlinkUnavailable as problem:
            print(f"Flink is not measured: {problem}")
            continue
        speed = table.num_rows / ours
        rows.append(["Flink CEP", strategy, speed, flink.events_per_second, speed / flink.events_per_second])
        numbers[f"flink p2 {strategy}"] = {"times": speed / flink.events_per_second, "matches": found.num_rows}
    print_table("p2 against others", ["other", "ES", "ours, events/s", "other, events/s", "ours / other"], rows)
    return numbers


def main(quick: bool = False) -> dict[str, Any]:
    """All of it; the numbers are kept in bench/results/kleene.json."""
    on_one_core()
    numbers = {
        "counting": counting(quick),
        "enumerating": enumerating(quick),
        "others": against_others(quick),
    }
    save("kleene", numbers)
    return numbers


if __name__ == "__main__":
    main()

"""TIME's measurements: points against intervals, the event-based methods against each other, and its cluster query.

The stream is the paper's: values 1 to 1000 over and over, one event a time unit, each known to `delta` either side.
The paper does not say which divisors it used. Most curves use 32, 37, 41, pairwise without a common multiple up to
1000, so that an event fits one place only, as the paper's sorting needs; the same divisor three times is the hard case
in which every event that fits one place fits all. Throughput counts all events, matching or not, and the whole of
`find`: preparation, search, confidence and output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import cepheid
from bench.measure import best_seconds, on_one_core, plot_lines, print_table, save
from cepheid.engine.data.matches import Matches
from cepheid.engine.data.table import EventTable, ordered
from cepheid.engine.data.timed import prepare
from cepheid.engine.find import find
from cepheid.engine.search.intervals.run import chosen_method
from cepheid.language.schema import Schema
from cepheid.plan.physical import Plan
from cepheid.simulate.cluster import SAMPLE_PERIOD, cluster_log
from cepheid.simulate.imprecise import imprecise_query, imprecise_series

# Divisors by pattern length: smaller ones for longer patterns, so that they still have matches, as in the paper.
DIVISORS: Mapping[int, tuple[int, ...]] = {
    2: (37, 41),
    3: (32, 37, 41),
    4: (23, 29, 31, 37),
    5: (19, 23, 29, 31, 37),
    6: (17, 19, 23, 29, 31, 37),
}
THREE = DIVISORS[3]
HARD = (10, 10, 10)
METHODS = ("any-state", "sorted", "selectivity", "query-order")
WAYS = ("points", *METHODS)
ENOUGH = 0.1  # seconds that one measurement takes at least, unless the stream would become too long
TOO_SLOW = 2_000  # events per second: a curve that has fallen below is not followed further


def query(divisors: Sequence[int], window: int, strategy: str) -> str:
    """The paper's query template with an event selection strategy."""
    names = ", ".join(f"e{place}" for place in range(1, len(divisors) + 1))
    text = imprecise_query(divisors=divisors, window=window)
    return text.replace(" WITHIN", f" AND skip_till_{strategy}_match({names}) WITHIN")


def plan_for(bound: Any, way: str) -> Plan:
    """Points, or intervals by one of the methods."""
    return Plan(bound, "points") if way == "points" else Plan(bound, "intervals", options={"method": way})


def prepared_for(text: str, delta: int, way: str, size: int) -> tuple[Plan, EventTable]:
    """The plan for a query and a stream of so many events."""
    table = imprecise_series(size, half_width=delta).events
    bound = cepheid.query(text).bind(Schema.from_arrow(table.schema, lower="lower", upper="upper"))
    return plan_for(bound, way), ordered(table, bound.schema)


def measured(text: str, delta: int, way: str, size: int, repeat: int = 1) -> tuple[float, Matches]:
    """Events per second and what was found in so many events."""
    plan, events = prepared_for(text, delta, way, size)
    seconds, matches = best_seconds(partial(find, plan, events), repeat=repeat)
    return size / seconds, matches


@cache
def throughput(text: str, delta: int, way: str, most: int) -> tuple[float, float]:
    """Events per second, and matches per event, on a stream long enough to make the time worth measuring."""
    size = 1_000
    while True:
        speed, matches = measured(text, delta, way, size)
        longer = min(most, int(1.5 * ENOUGH * speed))
        if size / speed >= ENOUGH or longer < 2 * size:
            return speed, len(matches) / size
        size = min(longer, 20 * size)


def curves(
    title: str,
    name: str,
    x: tuple[str, Sequence[Any]],
    ways: Sequence[str],
    case: Callable[[Any], tuple[str, int]],
    most: int,
    log_x: bool = False,
) -> dict[str, Any]:
    """One figure: throughput of each way for each value of x; `case` gives query and delta."""
    speeds: dict[str, list[float]] = {way: [] for way in ways}
    found: list[float] = []
    for value in x[1]:
        text, delta = case(value)
        for way in ways:
            if way == "points" and min(speeds[way], default=TOO_SLOW) < TOO_SLOW:
                continue
            speed, matches = throughput(text, delta, way, most)
            speeds[way].append(speed)
        found.append(matches)
    rows = [
        [value, *(speeds[way][index] if index < len(speeds[way]) else "" for way in ways), found[index]]
        for index, value in enumerate(x[1])
    ]
    print_table(f"{title}: events per second", [x[0], *ways, "matches per event"], rows)
    missing = float("nan")
    lines = {way: [*values, *([missing] * (len(x[1]) - len(values)))] for way, values in speeds.items()}
    plot_lines(f"imprecise_{name}", title, x, "events per second", lines, log_x=log_x, log_y=True)
    return {x[0]: list(x[1]), "events_per_second": speeds, "matches_per_event": found}


def figures(quick: bool) -> dict[str, Any]:
    """The curves of the paper's figures 4(a) to 4(e) and 5(a) to 5(c)."""
    most = 20_000 if quick else 1_000_000
    deltas = (1, 5) if quick else (1, 5, 10, 20, 30, 40, 50)
    lengths = (2, 3, 4) if quick else (2, 3, 4, 5, 6)
    windows = (10, 100) if quick else (10, 50, 100, 150, 200)
    # More and more events for the first component, fewer and fewer for the last: 1 in 128 ... 1 in 8, and back.
    firsts = (128, 32, 8) if quick else (128, 64, 32, 16, 8)

    def by_delta(strategy: str) -> Callable[[Any], tuple[str, int]]:
        return lambda delta: (query(THREE, 100, strategy), delta)

    def by_length(strategy: str) -> Callable[[Any], tuple[str, int]]:
        return lambda length: (query(DIVISORS[length], 100, strategy), 5)

    def by_share(share: float) -> tuple[str, int]:
        return query((round(1 / share), 37, round(1024 * share)), 100, "any"), 5

    def by_window(window: int) -> tuple[str, int]:
        return query(THREE, window, "any"), 5

    delta, length, window = ("delta", deltas), ("length", lengths), ("window", windows)
    share = ("share of the first", [1 / first for first in firsts])
    some = ("points", "any-state", "query-order")
    return {
        "4a": curves("Points and intervals, any match (4a)", "4a", delta, some, by_delta("any"), most),
        "4b": curves("Methods, any match (4b)", "4b", delta, METHODS, by_delta("any"), most),
        "4c": curves("Methods by pattern length (4c)", "4c", length, METHODS, by_length("any"), most),
        "4d": curves("Methods by frequency (4d)", "4d", share, METHODS, by_share, most, log_x=True),
        "4e": curves("Points and intervals, next match (4e)", "4e", delta, WAYS, by_delta("next"), most),
        "5a": curves("Points and intervals by window (5a)", "5a", window, some, by_window, most),
        "5b": curves("Points and intervals by length (5b)", "5b", length, some, by_length("any"), most),
        "5c": curves("Next match by pattern length (5c)", "5c", length, WAYS, by_length("next"), most),
    }


def headline(quick: bool) -> dict[str, Any]:
    """Throughput at delta = 5 on a long stream, and what a match costs as delta grows."""
    size = 20_000 if quick else 500_000
    rows = []
    for divisors in (THREE, HARD):
        for strategy in ("any", "next"):
            speed, matches = measured(query(divisors, 100, strategy), 5, "auto", size, repeat=1 if quick else 3)
            rows.append([str(divisors), strategy, size, len(matches), speed])
    print_table(
        "Throughput at delta = 5, confidence included",
        ["divisors", "strategy", "events", "matches", "events per second"],
        rows,
    )
    cost = []
    for delta in (1, 5) if quick else (1, 5, 10, 20, 50):
        speed, share = throughput(query(HARD, 100, "any"), delta, "query-order", size)
        cost.append([delta, 1e9 / speed / share, share])
    print_table("Any match, divisors (10, 10, 10)", ["delta", "ns per match", "matches per event"], cost)
    return {
        "throughput_at_delta_5": [
            dict(zip(("divisors", "strategy", "events", "matches", "events_per_second"), row, strict=True))
            for row in rows
        ],
        "cost_by_delta": [dict(zip(("delta", "ns_per_match", "matches_per_event"), row, strict=True)) for row in cost],
    }


def choice(quick: bool) -> dict[str, Any]:
    """How far the method that is chosen is from the fastest, over a grid of workloads."""
    size = 10_000 if quick else 40_000
    rows = []
    for strategy in ("any", "next"):
        for delta in (5,) if quick else (1, 5, 10):
            for divisors in (THREE, (8, 37, 128), (128, 37, 8), (37, 8, 128), (37, 128, 8), (4, 100, 250)):
                text = query(divisors, 100, strategy)
                speeds = {way: measured(text, delta, way, size, repeat=1 if quick else 5)[0] for way in METHODS}
                best, chosen = max(METHODS, key=lambda way: speeds[way]), choice_for(text, delta, size)
                ratio = speeds[best] / speeds[chosen]
                rows.append([strategy, delta, str(divisors), best, speeds[best], chosen, speeds[chosen], ratio])
    names = ["strategy", "delta", "divisors", "fastest", "events/s", "chosen", "its events/s", "times slower"]
    print_table("The method that is chosen against the fastest", names, rows)
    return {"worst": max(row[-1] for row in rows), "grid": [dict(zip(names, row, strict=True)) for row in rows]}


def choice_for(text: str, delta: int, size: int) -> str:
    """The method that is chosen for a query on the stream."""
    plan, events = prepared_for(text, delta, "auto", size)
    return chosen_method(plan, prepare(plan, events))


def pruning(quick: bool) -> dict[str, Any]:
    """What CONFIDENCE c and TOP k save."""
    size = 10_000 if quick else 100_000
    rows = []
    for strategy, delta in (("any", 20), ("next", 20)):
        for ending in ("", " CONFIDENCE 50%", " CONFIDENCE 90%", " OUTPUT TOP 100 BY CONFIDENCE"):
            speed, matches = measured(query(THREE, 100, strategy) + ending, delta, "auto", size)
            rows.append([strategy, ending.strip() or "all", speed, matches.counters["judged"], len(matches)])
    names = ["strategy", "asked for", "events/s", "judged", "reported"]
    print_table("Pruning at delta = 20", names, rows)
    return {"grid": [dict(zip(names, row, strict=True)) for row in rows]}


# --- the cluster --------------------------------------------------------------------------------------------------


def cluster(quick: bool) -> dict[str, Any]:
    """TIME's query 1 on a simulated trace: which task maxed out the CPU of its node?"""
    simulated = cluster_log(5_000 if quick else 450_000, seed=7)
    table, truth = simulated.events, simulated.truth
    assert truth is not None
    speeds = {}
    bound = cepheid.query(simulated.query).bind(Schema.from_arrow(table.schema, lower="lower", upper="upper"))
    events = ordered(table, bound.schema)
    beginning = ordered(table.slice(0, 100_000), bound.schema)  # enough for the passes that keep runs: they are slow
    for way in ("auto", *METHODS):
        some = beginning if way in ("any-state", "sorted") else events
        seconds, _ = best_seconds(partial(find, plan_for(bound, way), some), repeat=1)
        speeds[way] = len(some) / seconds
    matches = find(plan_for(bound, "auto"), events)
    rows = [[way, speed] for way, speed in speeds.items()]
    print_table(f"Query 1 on a cluster trace of {len(table):,} events", ["method", "events per second"], rows)
    real = truth.filter(truth["satisfies_query"])
    wanted = causes(real["taskId"], pc.divide(real["peak"], SAMPLE_PERIOD))
    found = []
    # Midpoints of two samples are a whole period apart, which is the window: none is found unless it is doubled.
    for name, text in (("", simulated.query), (", window doubled", simulated.query.replace("150", "300"))):
        plain = cepheid.query(text).bind(Schema.from_arrow(table.schema))
        exact = ordered(table, plain.schema)
        midpoints = find(Plan(plain, "sequence"), exact)
        found.append(scored(f"midpoints as if exact{name}", wanted, claimed(exact.table, midpoints), len(midpoints)))
    assert matches.confidence is not None
    for least in (0.0, 0.05, 0.1, 0.2, 0.3):
        sure = matches.take(np.flatnonzero(matches.confidence >= least))
        found.append(scored(f"confidence >= {least}", wanted, claimed(events.table, sure), len(sure)))
    print_table(
        f"Of {len(wanted):,} tasks that maxed out a CPU as the query says",
        ["", "found", "share found", "claimed", "share of claims true", "matches"],
        [list(row.values()) for row in found],
    )
    return {
        "events": len(table),
        "events_per_second": speeds,
        "true_causes": len(wanted),
        "found": found,
    }


def causes(tasks: Any, periods: Any) -> set[tuple[int, int]]:
    """Each cause: a task and the sampling period in which the load peaked."""
    return set(zip(tasks.to_pylist(), periods.to_pylist(), strict=True))


def claimed(table: pa.Table, matches: Matches) -> set[tuple[int, int]]:
    """What the matches say: the task that started, and the period of the high sample."""
    tasks = table["taskId"].take(pa.array(matches.chosen[0].rows))
    periods = pc.divide(table["ts"].take(pa.array(matches.chosen[1].rows)), SAMPLE_PERIOD)
    return causes(tasks, periods)


def scored(name: str, wanted: set[Any], claims: set[Any], matches: int) -> Mapping[str, Any]:
    """How many of the true causes are found, and how much of what is claimed is true."""
    hits = len(wanted & claims)
    return {
        "by": name,
        "found": hits,
        "share_found": hits / max(len(wanted), 1),
        "claimed": len(claims),
        "share_true": hits / max(len(claims), 1),
        "matches": matches,
    }


def main(quick: bool = False) -> dict[str, Any]:
    """All measurements; numbers and plots go to bench/results."""
    on_one_core()
    numbers = {
        "headline": headline(quick),
        "cluster": cluster(quick),
        "choice": choice(quick),
        "pruning": pruning(quick),
        "figures": figures(quick),
    }
    if not quick:
        save("imprecise", numbers)
    return numbers


if __name__ == "__main__":
    main()

"""Live queries beside engines that take events as they come, in one run: a part of `python -m bench live`.

Each engine gets the same events, one by one from memory, and its clock runs from the first event to the last match. A
rival that is not set up (`python -m bench rivals`) is named with the reason. Flink CEP runs as its users run it: a job
in event time in a local cluster with one slot (bench/flink/FlinkJob.java), the better of two runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

import cepheid
from bench.experiments.rivals import KEY, TYPES, WINDOW, core, stream, text
from bench.experiments.rows import V_SHAPE, ticks
from bench.experiments.rows import WINDOW as V_WINDOW
from bench.experiments.rows import flink as flink_sql_rows
from bench.flink.installation import FlinkUnavailable
from bench.flink_patterns import FlinkDriver, Part, builder, higher, step
from bench.harness.experiment import Contestant, Unavailable

SIZES = (1, 100, 1_000)  # rows of a table; 1: a dict
# What is not compared here, and why.
NOT_SAID = {
    "count window": "windows of time only in the patterns of Flink CEP and Siddhi; CORE counts the events of all keys",
    "missing events": "in no other engine",
}
A = step("a", "T0", "next")


def following(contiguity: str) -> list[Part]:
    """The three types of SASE's workload, one after the other."""
    return [A, step("b", "T1", contiguity), step("c", "T2", contiguity)]


def rising(parts: list[Part]) -> list[Part]:
    """The same with prices that rise."""
    return [parts[0], higher(parts[1], "a"), higher(parts[2], "b")]


# The shapes of bench/live.py as Flink's patterns. A greedy group of Flink's does not go on after a match, as one of
# query text does: it has fewer matches.
BY_FLINK: dict[str, list[Part]] = {
    "any match": rising(following("followed_by_any")),
    "next match": following("followed_by"),
    "negation": [A, step("d", "T3", "not_followed_by"), *following("followed_by_any")[1:]],
    "Kleene": [A, step("b", "T1", rounds="one_or_more", greedy=True), step("c", "T2")],
    "contiguity": following("next"),
    "optional part": [A, step("b", "T1", "followed_by_any", optional=True), step("c", "T2", "followed_by_any")],
    "no key": rising(following("followed_by_any")),
}
WINDOWS = {"no key": 100}  # of time; 10,000 for the others


def beside_rivals(table: pa.Table, queries: Mapping[str, str]) -> None:
    """Prints the table: every query of SASE's workload, a row pattern and a pattern of Flink's beside other engines."""
    print(f"\nThousand events a second by the clock on the wall, {table.num_rows:,} events, beside other engines\n")
    print("| query | engine | thousand events a second | matches |\n|---|---|---|---|")
    beside_flink_cep(table, queries)
    beside_others(table.num_rows)
    beside_flink_sql(table.num_rows)
    for query, why in NOT_SAID.items():
        print(f"| {query} | | {why} | |")


def beside_flink_cep(table: pa.Table, queries: Mapping[str, str]) -> None:
    """Queries of query text, and the same as patterns of Flink's, beside Flink CEP."""
    names = pa.table({"ts": table["ts"], "name": table["type"], "price": table["price"], "key": table["k"]})
    try:
        driver = FlinkDriver(names)
    except FlinkUnavailable as problem:
        print(f"| all | Flink CEP | {problem} | |")
        return
    try:
        for name, chain in BY_FLINK.items():
            window = WINDOWS.get(name, 10_000)
            print_live(name, table, queries[name])
            keyed = {} if name == "no key" else {"partition_by": "key"}
            pattern = builder([*chain[:-1], {**chain[-1], "window": window}], "no_skip")
            print_live(f"{name}, as a Flink pattern", names, pattern, type=None, **keyed)
            task = {"chain": [*chain[:-1], {**chain[-1], "window": window}], "skip": "no_skip", "job": True}
            answers = [driver.ask({**task, **({"keyed": True} if keyed else {})}) for _ in range(2)]
            seconds = min(each["seconds"] for each in answers)
            print_row(name, "Flink CEP", table.num_rows / seconds, answers[0]["count"])
    finally:
        driver.close()


def beside_others(events: int) -> None:
    """CORE finds all combinations, Flink SQL and Siddhi the next ones."""
    from bench.rivals.java import flink_sql, siddhi

    small = stream(events, "quick").select(["ts", "type", KEY])
    rivals: dict[str, dict[str, Callable[[], Contestant]]] = {
        "any": {"CORE": lambda: core(small)},
        "next": {
            "Flink SQL MATCH_RECOGNIZE": lambda: flink_sql(small, TYPES, KEY, WINDOW),
            "Siddhi": lambda: siddhi(small, TYPES, KEY, WINDOW),
        },
    }
    for strategy, engines in rivals.items():
        name = f"{strategy} match, no other condition"
        print_live(name, small, text(strategy))
        for rival, make in engines.items():
            print_outcome(name, rival, make, events)


def beside_flink_sql(events: int) -> None:
    """A row pattern beside Flink SQL."""
    rows = ticks(events, 10_000)
    clause = V_SHAPE.format(time="ts", window=V_WINDOW)
    print_live("row pattern, V-shape", rows, f"MATCH_RECOGNIZE ({clause})", max_rows=1_000)
    print_outcome("row pattern, V-shape", "Flink SQL MATCH_RECOGNIZE", lambda: flink_sql_rows(rows, V_SHAPE, 1), events)


def print_live(name: str, table: pa.Table, query: Any, **options: Any) -> None:
    """A live query with single dicts and with small tables."""
    for size in SIZES:
        seconds, found, sent = live_seconds(table, query, size, **options)
        how = "one dict at a time" if size == 1 else f"{size:,} at a time"
        print_row(name, f"Cepheid live, {how}", sent / seconds, found)


def print_row(name: str, engine: str, rate: float, matches: int) -> None:
    """One row of the table."""
    print(f"| {name} | {engine} | {rate / 1e3:,.0f} | {matches:,} |", flush=True)


def live_seconds(table: pa.Table, query: Any, size: int, **options: Any) -> tuple[float, int, int]:
    """Seconds, matches and events of a live query; half of the events come before the clock is looked at."""
    live, rows = cepheid.live(query, table.schema, **options), table.num_rows
    pieces = table.to_pylist() if size == 1 else [table.slice(begin, size) for begin in range(0, rows, size)]
    half = len(pieces) // 2
    found = sum(len(live.send(piece)) for piece in pieces[:half])
    begin = time.perf_counter()
    found += sum(len(live.send(piece)) for piece in pieces[half:])
    spent = time.perf_counter() - begin
    return spent, found + len(live.finish()), rows - half * size


def print_outcome(name: str, rival: str, make: Callable[[], Contestant], events: int) -> None:
    """A rival's speed and matches, or why there are none."""
    try:
        contestant = make()
        outcome = contestant.inspect(contestant.run())
    except Unavailable as problem:
        print(f"| {name} | {rival} | {str(problem).splitlines()[0][:150]} | |", flush=True)
        return
    assert outcome.seconds is not None
    assert outcome.matches is not None
    print_row(name, rival, events / outcome.seconds, outcome.matches)

"""Live queries beside engines that take events as they come, in one run: a part of `python -m bench live`.

Each engine gets the same events, one by one from memory, and its clock runs from the first event to the last match. A
rival that is not set up (`python -m bench rivals`) is named with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa

import cepheid
from bench.experiments.rivals import KEY, TYPES, WINDOW, core, flink_cep, stream, text
from bench.harness.experiment import Contestant, Unavailable

SIZES = (1, 100, 1_000)  # rows of a table; 1: a dict
# What is not compared here, and why.
NOT_SAID = {
    "negation, contiguity, optional part, no key": "Flink CEP can say them; bench/flink has no driver for these",
    "Kleene": "beside Flink CEP in `python -m bench run rivals`",
    "count window": "windows of time only in the patterns of Flink CEP and Siddhi; CORE counts the events of all keys",
    "missing events": "in no other engine",
}


def beside_rivals(events: int) -> None:
    """Prints the table."""
    from bench.flink.baseline import Sequence
    from bench.rivals.java import flink_sql, siddhi

    table = stream(events, "quick")
    small = table.select(["ts", "type", KEY])
    rivals: dict[str, dict[str, Callable[[], Contestant]]] = {
        "any": {
            "CORE": lambda: core(small),
            "Flink CEP": lambda: flink_cep("Flink CEP", table, Sequence(prefilter=False)),
            "Flink CEP, relevant types only": lambda: flink_cep("Flink CEP", table, Sequence()),
        },
        "next": {
            "Flink SQL MATCH_RECOGNIZE": lambda: flink_sql(small, TYPES, KEY, WINDOW),
            "Siddhi": lambda: siddhi(small, TYPES, KEY, WINDOW),
        },
    }
    print(f"\nThousand events a second by the clock on the wall, {events:,} events, beside other engines\n")
    print("| query | engine | thousand events a second | matches |\n|---|---|---|---|")
    for strategy, engines in rivals.items():
        for size in SIZES:
            seconds, found, sent = live_seconds(small, text(strategy), size)
            how = "one dict at a time" if size == 1 else f"{size:,} at a time"
            print(f"| {strategy} match | Cepheid live, {how} | {sent / seconds / 1e3:,.0f} | {found:,} |", flush=True)
        for name, make in engines.items():
            print(f"| {strategy} match | {name} | {outcome_of(make, events)} |", flush=True)
    for query, why in NOT_SAID.items():
        print(f"| {query} | | {why} | |")


def live_seconds(table: pa.Table, query: str, size: int) -> tuple[float, int, int]:
    """Seconds, matches and events of a live query; half of the events come before the clock is looked at."""
    live, rows = cepheid.live(query, table.schema), table.num_rows
    pieces = table.to_pylist() if size == 1 else [table.slice(begin, size) for begin in range(0, rows, size)]
    half = len(pieces) // 2
    found = sum(len(live.send(piece)) for piece in pieces[:half])
    begin = time.perf_counter()
    found += sum(len(live.send(piece)) for piece in pieces[half:])
    spent = time.perf_counter() - begin
    return spent, found + len(live.finish()), rows - half * size


def outcome_of(make: Callable[[], Contestant], events: int) -> str:
    """A rival's speed and matches, or why there are none."""
    try:
        contestant = make()
        outcome = contestant.inspect(contestant.run())
    except Unavailable as problem:
        return f"{str(problem).splitlines()[0][:150]} | "
    assert outcome.seconds is not None
    return f"{events / outcome.seconds / 1e3:,.0f} | {outcome.matches:,}"

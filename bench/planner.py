"""The planner's choice beside every engine named by hand, on drawn queries and streams.

`python -m bench planner --draws 200` draws queries as `bench search` does, runs each with `engine="auto"` and with
every engine that can run it, and prints the queries for which another engine takes the least of the time. Times are of
the processor, the better of two or more runs; what is below a hundredth of a second is not compared. Where a query
reaches a limit, its stream is drawn again with a quarter of the events. Where another engine seems to be faster, it and
`auto` are measured again, in turns.

`--kind imprecise` draws queries over imprecise times instead, by how far times may be off, density, window and
strategy, and runs every method of `intervals` and the engine `points`. `--kind existence` does so for events at known
times that may not have happened. `--kind shifting` draws streams whose middle, which the planner looks at, is unlike
the rest: other frequencies of types, and a hot key elsewhere.

Row patterns, Flink's patterns and queries over missing events have one engine each besides the reference.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import cepheid
from bench.draws import draw_sequence, draw_stream
from bench.measure import on_one_core, print_table, save

EVENTS = 20_000
MATCHES = 300_000
SECONDS = 5.0  # for one engine
SHORT = 0.01  # seconds that are not compared
ALLOWED = 1.3  # times the best engine
SMALLEST = 300  # events, below which nothing is drawn again
ENGINES = ("sequence", "runs", "lazy-tree", "lazy-chain", "states")
METHODS = ("query-order", "selectivity", "sorted", "any-state")

Options = dict[str, Any]


@dataclass(frozen=True)
class Compared:
    """One drawn query: what `auto` took, and the best engine."""

    seed: int
    events: int
    text: str
    auto: float
    best: float
    engine: str

    @property
    def ratio(self) -> float:
        """How many times as long as the best engine."""
        return max(self.auto, SHORT) / max(self.best, SHORT)


def seconds_of(call: Callable[[], Any], runs: int = 3) -> float:
    """The shortest of some runs after a first one that may compile; infinite where the engine refuses or gives up."""
    best = float("inf")
    try:
        call()
        for _ in range(runs):
            begin = time.process_time()
            call()
            best = min(best, time.process_time() - begin)
            if best > 1.0:
                break
    except cepheid.CepheidError:
        return float("inf")
    return best


def shifted(table: pa.Table, seed: int) -> pa.Table:
    """The same events with types that come round in the middle of the table, and one key for most of the others."""
    rng, events = np.random.default_rng(seed), table.num_rows
    inside = np.abs(np.arange(events) - events / 2) < 0.2 * events
    types, codes = np.unique(table.column("type").to_numpy(zero_copy_only=False), return_inverse=True)
    codes = np.where(inside, (codes + 1) % len(types), codes)
    keys = np.where(inside | (rng.random(events) < 0.4), np.asarray(table.column("id")), 0)
    return table.set_column(1, "type", pa.array(types[codes])).set_column(2, "id", pa.array(keys))


def draw_imprecise(draw: random.Random, events: int) -> tuple[pa.Table, str, int]:
    """A stream and a query whose matches are a few for each event, and how far times may be off."""
    types, gap, delta = (
        draw.choice([2, 3, 5, 10]),
        draw.choice([1, 2, 5, 10, 30]),
        draw.choice([0, 1, 1, 2, 3, 5, 10, 20]),
    )
    table, _ = draw_stream(draw, events)
    rng = np.random.default_rng(draw.randrange(2**32))
    gaps = rng.integers(0, 2 * gap + 1, events) if draw.random() < 0.7 else np.full(events, gap)
    kinds = np.array([f"T{number}" for number in range(types)])[rng.integers(0, types, events)]
    table = table.set_column(0, "ts", pa.array(np.cumsum(gaps))).set_column(1, "type", pa.array(kinds))
    length, group = draw.choice([2, 3, 3, 4]), draw.choice([0, 0, 0, 0, 1])
    parts = [f"T{draw.randrange(min(types, 3))}{'+' * (place == group > 0)} {'abcd'[place]}" for place in range(length)]
    parts[group] += "[]" * (group > 0)
    conditions = draw.choice([[], ["[id]"], ["a.x < b.x"] if group == 0 else ["b[i].x > b[i-1].x"]])
    if draw.random() < 0.3:
        parts.insert(1, f"!(T{draw.randrange(min(types, 3))} n)")
        conditions = [*conditions, *draw.choice([[], ["a.x < n.x"], ["(a.x < n.x OR n.y > 900)"]])]
    strategy = draw.choice(["skip_till_any_match", "skip_till_next_match", "skip_till_next_match"])
    window = gap * types * draw.choice([1, 2]) + delta
    least = draw.choice(["", "", "", " CONFIDENCE 0.5"])
    where = f"{strategy} {{ {' AND '.join(conditions)} }}"
    return table, f"PATTERN SEQ({', '.join(parts)}) WHERE {where} WITHIN {window}{least}", delta


def drawn(seed: int, events: int, kind: str) -> tuple[pa.Table, str, Options]:
    """A stream of so many events, a query, and the options that both need."""
    draw = random.Random(seed)
    fixed: Options = {"timeout": SECONDS, "max_matches": MATCHES}
    if kind in ("imprecise", "existence"):
        table, text, delta = draw_imprecise(draw, events)
        if kind == "imprecise":
            return table, text, fixed | {"uncertainty": delta}
        chances = np.random.default_rng(seed).choice([0.5, 0.9, 1.0], events)
        return table.append_column("p", pa.array(chances)), text, fixed | {"existence": "p"}
    table, _ = draw_stream(draw, events)
    text = draw_sequence(draw).text
    return shifted(table, seed) if kind == "shifting" else table, text, fixed


@dataclass(frozen=True)
class Drawn:
    """A stream, a query, and the options that both need."""

    table: pa.Table
    text: str
    fixed: Options

    def seconds(self, options: Options, runs: int = 3) -> float:
        """How long an engine takes."""
        return seconds_of(lambda: cepheid.match(self.table, self.text, **options, **self.fixed), runs)


def compare(seed: int, events: int, kind: str = "precise") -> Compared | None:
    """One draw, with as many events as `auto` can run; None where it refuses the query."""
    ways: dict[str, Options] = {engine: {"engine": engine} for engine in ENGINES}
    if kind in ("imprecise", "existence"):
        ways = {method: {"method": method} for method in METHODS} | {"points": {"engine": "points"}}
    query = Drawn(*drawn(seed, events, kind))
    auto = query.seconds({})
    while not np.isfinite(auto):
        events //= 4
        if events < SMALLEST:
            return None
        query = Drawn(*drawn(seed, events, kind))
        auto = query.seconds({})
    run, text = query.seconds, query.text
    times = {way: run(options) for way, options in ways.items()}
    auto = min(auto, run({}))  # conditions that were new ran as Python at first
    best = min(times, key=lambda engine: times[engine])
    if max(auto, SHORT) > ALLOWED * max(times[best], SHORT):
        again = [(run({}, 1), run(ways[best], 1)) for _ in range(5)]
        auto, times[best] = (min(each) for each in zip(*again, strict=True))
    return Compared(seed, events, text, auto, min(times[best], auto), best if times[best] < auto else "auto")


def main(
    draws: int = 200, seed: int = 0, events: int = EVENTS, minutes: float = 60.0, kind: str = "precise"
) -> list[Compared]:
    """Draws, prints the worst choices, and saves them all."""
    on_one_core()
    until = time.perf_counter() + 60.0 * minutes
    found, tried = [], 0
    for number in range(draws):
        if time.perf_counter() > until:
            break
        tried += 1
        compared = compare(seed + number, events, kind)
        if compared is not None:
            found.append(compared)
    ranked = sorted(found, key=lambda each: -each.ratio)
    columns = ["seed", "events", "times the best", "auto, s", "best, s", "best engine", "query"]
    rows = [[each.seed, each.events, each.ratio, each.auto, each.best, each.engine, each.text] for each in ranked[:15]]
    over = sum(each.ratio > ALLOWED for each in found)
    print_table(
        f"{kind}: {len(found)} of {tried} compared, {over} take more than {ALLOWED} times the best engine",
        columns,
        rows,
    )
    save(
        "planner" if kind == "precise" else f"planner-{kind}",
        {"drawn": tried, "compared": len(found), "over": over, "worst": [asdict(each) for each in ranked[:30]]},
    )
    return ranked


if __name__ == "__main__":
    main()

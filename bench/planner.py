"""The planner's choice beside every engine named by hand, on drawn queries and streams.

`python -m bench planner --draws 200` draws queries as `bench search` does, runs each with `engine="auto"` and with
every engine that can run it, and prints the queries for which another engine takes the least of the time. Times are of
the processor, the better of two or more runs; what is below a hundredth of a second is not compared.

`--imprecise` draws queries over imprecise times instead, by how far times may be off, density, window and strategy, and
runs every method of `intervals` and the engine `points`.
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
ENGINES = ("sequence", "runs", "lazy-tree", "lazy-chain", "states")
METHODS = ("query-order", "selectivity", "sorted", "any-state")

Options = dict[str, Any]


@dataclass(frozen=True)
class Compared:
    """One drawn query: what `auto` took, and the best engine."""

    seed: int
    text: str
    auto: float
    best: float
    engine: str

    @property
    def ratio(self) -> float:
        """How many times as long as the best engine."""
        return max(self.auto, SHORT) / max(self.best, SHORT)


def seconds_of(call: Callable[[], Any]) -> float:
    """The shortest of some runs after a first one that may compile; infinite where the engine refuses or gives up."""
    best = float("inf")
    try:
        call()
        for _ in range(3):
            begin = time.process_time()
            call()
            best = min(best, time.process_time() - begin)
            if best > 1.0:
                break
    except cepheid.CepheidError:
        return float("inf")
    return best


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


def compare(seed: int, events: int, imprecise: bool = False) -> Compared | None:
    """One draw; None where `auto` reaches a limit."""
    draw = random.Random(seed)
    ways: dict[str, Options] = {engine: {"engine": engine} for engine in ENGINES}
    fixed: Options = {"timeout": SECONDS, "max_matches": MATCHES}
    if imprecise:
        table, text, delta = draw_imprecise(draw, events)
        fixed["uncertainty"] = delta
        ways = {method: {"method": method} for method in METHODS} | {"points": {"engine": "points"}}
    else:
        table, _ = draw_stream(draw, events)
        text = draw_sequence(draw).text

    def run(**options: Any) -> float:
        return seconds_of(lambda: cepheid.match(table, text, **options, **fixed))

    auto = run()
    if not np.isfinite(auto):
        return None
    times = {way: run(**options) for way, options in ways.items()}
    auto = min(auto, run())  # conditions that were new ran as Python at first
    best = min(times, key=lambda engine: times[engine])
    return Compared(seed, text, auto, min(times[best], auto), best if times[best] < auto else "auto")


def main(
    draws: int = 200, seed: int = 0, events: int = EVENTS, minutes: float = 60.0, imprecise: bool = False
) -> list[Compared]:
    """Draws, prints the worst choices, and saves them all."""
    on_one_core()
    until = time.perf_counter() + 60.0 * minutes
    found = []
    for number in range(draws):
        if time.perf_counter() > until:
            break
        compared = compare(seed + number, events, imprecise)
        if compared is not None:
            found.append(compared)
    ranked = sorted(found, key=lambda each: -each.ratio)
    columns = ["seed", "times the best", "auto, s", "best, s", "best engine", "query"]
    rows = [[each.seed, each.ratio, each.auto, each.best, each.engine, each.text] for each in ranked[:15]]
    over = sum(each.ratio > ALLOWED for each in found)
    print_table(f"{len(found)} compared, {over} take more than {ALLOWED} times the best engine", columns, rows)
    save(
        "planner-imprecise" if imprecise else "planner",
        {"compared": len(found), "over": over, "worst": [asdict(each) for each in ranked[:30]]},
    )
    return ranked


if __name__ == "__main__":
    main()

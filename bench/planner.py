"""The planner's choice beside every engine named by hand, on drawn queries and streams.

`python -m bench planner --draws 200` draws queries as `bench search` does, runs each with `engine="auto"` and with
every engine that can run it, and prints the queries for which another engine takes the least of the time. Times are of
the processor, the better of two or more runs; what is below a hundredth of a second is not compared.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import cepheid
from bench.measure import on_one_core, print_table, save
from bench.search import draw_query, draw_stream

EVENTS = 20_000
MATCHES = 300_000
SECONDS = 5.0  # for one engine
SHORT = 0.01  # seconds that are not compared
ALLOWED = 1.3  # times the best engine
ENGINES = ("sequence", "runs", "lazy-tree", "lazy-chain", "states")


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


def compare(seed: int, events: int) -> Compared | None:
    """One draw; None where `auto` reaches a limit."""
    draw = random.Random(seed)
    table, _ = draw_stream(draw, events)
    text = draw_query(draw)

    def run(engine: str) -> float:
        return seconds_of(lambda: cepheid.match(table, text, engine=engine, timeout=SECONDS, max_matches=MATCHES))

    auto = run("auto")
    if not np.isfinite(auto):
        return None
    times = {engine: run(engine) for engine in ENGINES}
    auto = min(auto, run("auto"))  # conditions that were new ran as Python at first
    best = min(times, key=lambda engine: times[engine])
    return Compared(seed, text, auto, min(times[best], auto), best if times[best] < auto else "auto")


def main(draws: int = 200, seed: int = 0, events: int = EVENTS, minutes: float = 60.0) -> list[Compared]:
    """Draws, prints the worst choices, and saves them all."""
    on_one_core()
    until = time.perf_counter() + 60.0 * minutes
    found = []
    for number in range(draws):
        if time.perf_counter() > until:
            break
        compared = compare(seed + number, events)
        if compared is not None:
            found.append(compared)
    ranked = sorted(found, key=lambda each: -each.ratio)
    columns = ["seed", "times the best", "auto, s", "best, s", "best engine", "query"]
    rows = [[each.seed, each.ratio, each.auto, each.best, each.engine, each.text] for each in ranked[:15]]
    over = sum(each.ratio > ALLOWED for each in found)
    print_table(f"{len(found)} compared, {over} take more than {ALLOWED} times the best engine", columns, rows)
    save("planner", {"compared": len(found), "over": over, "worst": [asdict(each) for each in ranked[:30]]})
    return ranked


if __name__ == "__main__":
    main()

"""A search for cliffs nobody thought of: drawn queries over drawn streams, and the slowest for what they give.

`python -m bench search --minutes 10` draws a shape of query and a stream of 100,000 events (or `--events`), runs it
with a budget of seconds, and ranks what it saw by nanoseconds of the processor per event read and event listed: work
that grows with the result is no cliff. What reached its budget counts with the time that it took. The kinds of query
take turns (bench/draws.py), or `--kind` names one. Every draw is named by its seed, so that `--seed N --draws 1` runs
it again.

`--grow` runs each draw with twice the events, too, and prints those whose time grows more than 4.5 times while their
results do not.
"""

from __future__ import annotations

import json
import random
import resource
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import cepheid
from bench.draws import KINDS, draw_stream
from bench.measure import RESULTS, on_one_core, print_table

EVENTS = 100_000
SECONDS = 5.0  # for one query
MATCHES = 500_000
FEW_MATCHES = 10_000  # of a query that has too many to list them in its time
STEEP = 4.5  # times the time for twice the events
SHORT = 0.05  # seconds: what takes less is not asked how it grows
COMPILING = 2.0  # seconds: longer than the conditions of a query take to compile
MEMORY = 8 << 30  # bytes: a search of hours shall not end with the machine


@dataclass(frozen=True)
class Seen:
    """What one draw took."""

    seed: int
    kind: str
    text: str
    stream: str
    outcome: str  # done, or what stopped it
    seconds: float  # of the processor
    matches: int
    events: int = EVENTS
    listed: int = 0  # events in all matches together: some have hundreds

    @property
    def cost(self) -> float:
        """Nanoseconds for each event that was read, and for each that was listed."""
        return 1e9 * self.seconds / (self.events + self.listed)


def events_in(found: pa.Table) -> int:
    """How many events and values the matches hold together."""
    listed: int = found.num_rows
    for column in found.columns:
        if pa.types.is_list(column.type):
            listed += int(pc.sum(pc.list_value_length(column)).as_py() or 0)
        elif pa.types.is_struct(column.type):
            listed += len(column)
    if "taken" in found.column_names:  # the rows of a match of a clause
        listed += int(pc.sum(found.column("taken")).as_py() or 0)
    return listed


class Spent(KeyboardInterrupt):
    """A query has used its seconds of the processor; it stops as it stops for Ctrl-C."""


def interrupt(*_: object) -> None:
    """What the timer of the processor calls."""
    raise Spent


def timed(call: Callable[[], Any], seconds: float) -> tuple[float, str, int, int]:
    """What a call took of the processor, how it ended, and how many matches and events it listed.

    The processor's time limits it, not the clock: other work on the machine does not end a query.
    """
    begin = time.process_time()
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds, 0.2)
        try:
            found = call()
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except Spent:
        return time.process_time() - begin, "timeout", 0, 0
    except (cepheid.CepheidError, MemoryError) as error:
        why = (str(error) or "MemoryError").splitlines()[0][:90]
        return time.process_time() - begin, f"refused: {why}", 0, 0
    except Exception as error:  # a fault, such as what numba makes of a lack of memory: listed at the end
        return time.process_time() - begin, f"fault: {type(error).__name__}: {error}"[:90], 0, 0
    taken = time.process_time() - begin
    if isinstance(found, int):
        return taken, "done", found, 0
    facts = json.loads((found.schema.metadata or {}).get(b"cepheid", b"{}"))
    return taken, "cut short" if facts.get("truncated") else "done", found.num_rows, events_in(found)


def run(seed: int, seconds: float, events: int = EVENTS, kind: str = "") -> Seen:
    """One draw. Runs after the first one count: the first, and over few events the second, compiles conditions."""
    draw, kind = random.Random(seed), kind or list(KINDS)[seed % len(KINDS)]
    table, stream = draw_stream(draw, events)
    drawn = KINDS[kind](draw)
    options = {"max_matches": MATCHES, **drawn.options}
    if kind in ("sequence", "expression") and "SUMMARISE" not in drawn.text:
        options["truncate"] = True
    found = timed(partial(cepheid.match, table, drawn.query, **options), COMPILING + seconds)
    if found[1] == "timeout" and "truncate" in options:  # it may be that there is no end to what it lists
        options["max_matches"] = FEW_MATCHES
    if found[1] in ("done", "cut short") or options["max_matches"] == FEW_MATCHES:
        found = timed(partial(cepheid.match, table, drawn.query, **options), seconds)
        if found[1] in ("done", "cut short") and found[0] < COMPILING:
            found = min(found, timed(partial(cepheid.match, table, drawn.query, **options), seconds))
    taken, outcome, matches, listed = found
    return Seen(seed, kind, drawn.text, stream, outcome, taken, matches, events, listed)


@dataclass(frozen=True)
class Growth:
    """One draw with some events and with twice as many."""

    once: Seen
    twice: Seen

    @property
    def time(self) -> float:
        """How many times as long twice the events take; 1 if it was not tried."""
        return self.twice.seconds / self.once.seconds

    @property
    def result(self) -> float:
        """How many times as many events are read and listed."""
        return (self.twice.events + self.twice.listed) / (self.once.events + self.once.listed)

    @property
    def steep(self) -> bool:
        """Does the time grow faster than twice the events and their results explain?"""
        done = self.once.outcome == "done" and self.twice.outcome in ("done", "timeout")
        return done and self.time > STEEP and self.time > STEEP / 2 * self.result


def spread(title: str, values: Sequence[float]) -> str:
    """The middle and the tail of some values."""
    parts = ", ".join(f"p{part} {np.percentile(values, part):.2f}" for part in (50, 90, 99)) if values else "none"
    return f"{title}: {parts}, max {max(values, default=0):.1f}"


def report(found: Sequence[Growth]) -> None:
    """Prints the spread of what was seen, the slowest, and what grows steeply."""
    seen = [each.once for each in found if not each.once.outcome.startswith(("refused", "fault"))]
    for each in found:
        for one in (each.once, each.twice):
            if one.outcome.startswith("fault"):
                print(f"seed {one.seed}, {one.events} events: {one.outcome}")
    print(f"\n{len(found)} drawn:", dict(Counter(each.once.outcome.partition(":")[0] for each in found)))
    for kind in ("", *KINDS):
        these = [each for each in seen if each.kind.startswith(kind)]
        print(f"{kind or 'all'} ({len(these)}), microseconds of the processor")
        print("  " + spread("an event read", [1e6 * each.seconds / each.events for each in these]))
        print("  " + spread("an event read or listed", [each.cost / 1e3 for each in these]))
    rows: list[list[Any]] = [
        [each.seed, each.outcome, each.seconds, each.matches, each.cost, f"{each.text}   ({each.stream})"]
        for each in sorted(seen, key=lambda each: -each.cost)[:25]
    ]
    columns = ["seed", "outcome", "seconds", "matches", "ns per event read or listed", "query"]
    print_table("The slowest for what they give", columns, rows or [[""] * 6])
    rows = [
        [each.once.seed, each.once.seconds, each.twice.seconds, each.time, each.result, each.once.text]
        for each in sorted(found, key=lambda each: -each.time)
        if each.steep
    ]
    columns = ["seed", "seconds", "seconds of twice", "times the time", "times the result", "query"]
    print_table("Steep for twice the events", columns, rows or [[""] * 6])


def main(
    minutes: float = 5.0,
    seed: int = 0,
    draws: int = 1_000_000,
    seconds: float = SECONDS,
    events: int = EVENTS,
    growing: bool = False,
    kind: str = "",
) -> list[Growth]:
    """Draws until the time is over; saves each as it comes, and prints what they were like."""
    on_one_core()
    signal.signal(signal.SIGPROF, interrupt)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for warm in ("SEQ(T0 a, T1 b)", "SEQ(T0 a, T1+ b[])"):  # compile first
        cepheid.match(draw_stream(random.Random(0), 5_000)[0], f"PATTERN {warm} WHERE [id] WITHIN 100")
    until, found = time.perf_counter() + 60.0 * minutes, list[Growth]()
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "search.jsonl").open("w") as kept:
        while time.perf_counter() < until and len(found) < draws:
            number = seed + len(found)
            once = run(number, seconds, events, kind)
            again = growing and once.outcome == "done" and once.seconds > SHORT
            found.append(Growth(once, run(number, 5 * seconds, 2 * events, kind) if again else once))
            kept.write(json.dumps([asdict(found[-1].once), asdict(found[-1].twice)]) + "\n")
            kept.flush()
    report(found)
    return found


if __name__ == "__main__":
    main()

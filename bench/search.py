"""A search for cliffs nobody thought of: drawn queries over drawn streams, and the slowest for what they give.

`python -m bench search --minutes 10` draws a shape of query and a stream of 100,000 events (or `--events`), runs it
with a budget of seconds, and ranks what it saw by nanoseconds of the processor per event read and event listed: work
that grows with the result is no cliff. Every draw is named by its seed, so that `--seed N --draws 1` runs it again.

`--grow` runs each draw with twice the events, too, and prints those whose time grows more than 4.5 times while their
results do not.
"""

from __future__ import annotations

import json
import random
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import cepheid
from bench.measure import RESULTS, on_one_core, print_table

EVENTS = 100_000
SECONDS = 5.0  # for one query
MATCHES = 2_000_000
STEEP = 4.5  # times the time for twice the events
SHORT = 0.02  # seconds
COMPILING = 1.0  # seconds: longer than the conditions of a query take to compile


@dataclass(frozen=True)
class Seen:
    """What one draw took."""

    seed: int
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


def draw_stream(draw: random.Random, events: int = EVENTS) -> tuple[pa.Table, str]:
    """Events of a few types with keys, numbers and times that may coincide."""
    types, keys, gap = draw.choice([3, 5, 20]), draw.choice([5, 100, 2_000, 50_000]), draw.choice([1, 1, 5])
    rng = np.random.default_rng(draw.randrange(2**32))
    frequent = rng.random(types) ** draw.choice([0.5, 3.0])
    kinds = rng.choice(types, events, p=frequent / frequent.sum())
    skewed = draw.random() < 0.3
    chosen = rng.zipf(1.3, events) % keys if skewed else rng.integers(0, keys, events)
    table = pa.table(
        {
            "ts": np.sort(rng.integers(0, events * gap, events)),
            "type": np.array([f"T{number}" for number in range(types)])[kinds],
            "id": chosen,
            "ref": rng.integers(0, keys, events),
            "x": rng.normal(size=events),
            "y": rng.integers(0, 1_000, events),
        }
    )
    return table, f"{types} types, {keys} keys{' skewed' if skewed else ''}, {gap} apart"


def draw_query(draw: random.Random) -> str:
    """A query that somebody could write: ties of several kinds, groups, negation, strategies, outputs."""
    length, names = draw.choice([2, 3, 3, 4]), "abcd"
    strategy = draw.choice(["skip_till_any_match", "skip_till_next_match", "skip_till_next_match"])
    parts, groups, conditions = [], set(), []
    for place in range(length):
        name = names[place]
        if draw.random() < 0.25:
            groups.add(name)
            parts.append(f"T{draw.randrange(3)}+ {name}[]")
        else:
            parts.append(f"T{draw.randrange(3)} {name}")
    if draw.random() < 0.2:
        parts.insert(draw.randrange(1, length), f"!(T{draw.randrange(3)} n)")
        conditions += draw.choice([[], [f"n.id = {_event(draw, names[0], groups)}.id"]])
    if draw.random() < 0.4:
        conditions.append(draw.choice(["[id]", "[id]", "[id, ref]"]))
    for _ in range(draw.choice([0, 1, 1, 2])):
        one, two = draw.sample(range(length), 2)
        left, right = _event(draw, names[one], groups), _event(draw, names[two], groups)
        conditions.append(draw.choice([f"{left}.id = {right}.ref", f"{left}.id = {right}.id", f"{left}.x < {right}.x"]))
    for name in sorted(groups):
        rising = [
            f"{name}[i].x > {name}[i-1].x",
            f"{name}[i].id = {name}[i-1].ref",
            f"{name}[i].y < avg({name}[..i-1].y)",
        ]
        conditions += draw.choice([[], rising[:1], rising[1:2], rising[2:]])
    if draw.random() < 0.4:
        conditions.append(f"{_event(draw, names[0], groups)}.y < {draw.choice([10, 200])}")
    window = draw.choice(["100", "1000", "10000", "200 EVENTS"])
    output = draw.choice(["", "", "", "", " OUTPUT NON-OVERLAP", " OUTPUT MAXIMAL"])
    where = " AND ".join(conditions)
    return f"PATTERN SEQ({', '.join(parts)}) WHERE {strategy} {{ {where} }} WITHIN {window}{output}"


def _event(draw: random.Random, name: str, groups: set[str]) -> str:
    return name + draw.choice(["[1]", f"[{name}.LEN]"]) if name in groups else name


def events_in(found: pa.Table) -> int:
    """How many events the matches hold together."""
    columns = [column for name, column in zip(found.column_names, found.columns, strict=True) if len(name) == 1]
    return sum(
        int(pc.sum(pc.list_value_length(column)).as_py() or 0) if pa.types.is_list(column.type) else len(column)
        for column in columns
    )


def run(seed: int, seconds: float, events: int = EVENTS) -> Seen:
    """One draw. What is quick is run twice, since the first run compiles the conditions of the query."""
    draw = random.Random(seed)
    table, stream = draw_stream(draw, events)
    text = draw_query(draw)
    taken, matches, listed, outcome = 0.0, 0, 0, "done"
    for _ in range(2):
        begin = time.process_time()
        try:
            found = cepheid.match(table, text, timeout=seconds, max_matches=MATCHES, truncate=True)
            matches, listed = found.num_rows, events_in(found)
            outcome = "cut short" if json.loads(found.schema.metadata[b"cepheid"])["truncated"] else "done"
        except cepheid.TimeoutReached:
            outcome = "timeout"
        except cepheid.CepheidError as error:
            outcome = f"refused: {str(error).splitlines()[0][:60]}"
        taken = time.process_time() - begin
        if taken > COMPILING:
            break
    return Seen(seed, text, stream, outcome, taken, matches, events, listed)


@dataclass(frozen=True)
class Growth:
    """One draw with some events and with twice as many."""

    once: Seen
    twice: Seen

    @property
    def time(self) -> float:
        """How many times as long twice the events take; what is too short to be measured counts as SHORT."""
        return max(self.twice.seconds, SHORT) / max(self.once.seconds, SHORT)

    @property
    def result(self) -> float:
        """How many times as many events are read and listed."""
        return (self.twice.events + self.twice.listed) / (self.once.events + self.once.listed)

    @property
    def steep(self) -> bool:
        """Does the time grow faster than twice the events and their results explain?"""
        return self.time > STEEP and self.time > STEEP / 2 * self.result


def grow(minutes: float, seed: int, draws: int, seconds: float, events: int) -> list[Growth]:
    """Draws with some events and with twice as many, until the time is over; prints what grows steeply."""
    until, found = time.perf_counter() + 60.0 * minutes, list[Growth]()
    while time.perf_counter() < until and len(found) < draws:
        number = seed + len(found)
        once = run(number, seconds, events)
        found.append(Growth(once, run(number, 5 * seconds, 2 * events) if once.outcome == "done" else once))
    done = [each for each in found if each.once.outcome == each.twice.outcome == "done"]
    costs = [1e6 * each.twice.seconds / each.twice.events for each in done]
    at = ", ".join(f"p{part} {np.percentile(costs, part):.1f}" for part in (50, 90, 99)) if done else ""
    rows = [
        [each.once.seed, each.once.seconds, each.twice.seconds, each.time, each.result, each.once.text]
        for each in sorted(done, key=lambda each: -each.time)
        if each.steep
    ]
    columns = ["seed", "seconds", "seconds of twice", "times the time", "times the result", "query"]
    print_table(
        f"{len(found)} drawn, {len(done)} done; microseconds an event: {at}; steep:", columns, rows or [[""] * 6]
    )
    return found


def main(
    minutes: float = 5.0, seed: int = 0, draws: int = 1_000_000, seconds: float = SECONDS, events: int = EVENTS
) -> list[Seen]:
    """Draws until the time is over; prints the slowest and saves them all."""
    on_one_core()
    for warm in ("SEQ(T0 a, T1 b)", "SEQ(T0 a, T1+ b[])"):  # compile first
        cepheid.match(draw_stream(random.Random(0))[0].slice(0, 5_000), f"PATTERN {warm} WHERE [id] WITHIN 100")
    until = time.perf_counter() + 60.0 * minutes
    found: list[Seen] = []
    while time.perf_counter() < until and len(found) < draws:
        found.append(run(seed + len(found), seconds, events))
    ranked = sorted(found, key=lambda seen: -seen.cost)
    rows: list[list[Any]] = [
        [seen.seed, seen.outcome, seen.seconds, seen.matches, seen.cost, f"{seen.text}   ({seen.stream})"]
        for seen in ranked[:15]
    ]
    columns = ["seed", "outcome", "seconds", "matches", "ns per event read or listed", "query"]
    print_table(f"{len(found)} drawn; the slowest for what they give", columns, rows)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "search.json").write_text(json.dumps([asdict(seen) for seen in ranked[:50]], indent=1) + "\n")
    return ranked


if __name__ == "__main__":
    main()

"""Totals over matches beside listing them: throughput and memory, and how both grow with the window and the events.

Four types in equal shares, one event per unit of time, values at random. "totals" counts the matches and adds up a
column for every hundred thousand units of time; "listing" finds the same matches as rows, where there are few enough.
`grown_mb` is by how much the peak memory of the process grew in a run: totals run first, so that what listing needs
beyond them shows.
"""

from __future__ import annotations

import resource
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from bench.experiments.sizes import points, sized
from bench.harness.calls import cepheid_call
from bench.harness.experiment import Case, Contestant, Experiment, Outcome, Verdict
from bench.harness.summary import Summary

PATTERNS = {"sequence": "SEQ(A a, B b, C c)", "Kleene": "SEQ(A a, B+ b[], C c)"}
RISING = "PATTERN SEQ(A+ a[], B b) WHERE a[i].x > a[i-1].x WITHIN 100000 SUMMARISE approximate_count(*) AS n"
KEYS = 1_000


def stream(events: int, kinds: str = "ABCD") -> pa.Table:
    """Events at random."""
    random = np.random.default_rng(1)
    return pa.table(
        {
            "ts": np.arange(events),
            "type": random.choice(list(kinds), events),
            "id": random.integers(0, KEYS, events),
            "x": random.integers(0, 1_000, events),
        }
    )


def peak_mb() -> float:
    """The most memory that this process has taken."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def with_memory(contestant: Contestant) -> Contestant:
    """The same, which also says by how much the peak memory grew."""
    grown: list[float] = []

    def run() -> Any:
        before = peak_mb()
        found = contestant.run()
        grown.append(peak_mb() - before)
        return found

    def inspect(result: Any) -> Outcome:
        seen = contestant.inspect(result)
        return replace(seen, metrics={**seen.metrics, "grown_mb": max(grown)})

    return replace(contestant, run=run, inspect=inspect)


def by_window(size: str) -> Sequence[Case]:
    """The same events with longer and longer windows; listing only where keys part them."""
    events = sized(size, 5_000, 200_000, 400_000)
    windows = points(size, (100, 1_000, 10_000, 100_000), (1_000, 10_000), (50, 500))

    def make(name: str, keyed: bool, window: int) -> Sequence[Contestant]:
        table = stream(events)
        where = "WHERE [id]" if keyed else ""
        text = f"PATTERN {PATTERNS[name]} {where} WITHIN {window}"
        count = "approximate_count(*)" if name == "Kleene" else "count(*)"
        totals = f"{text} SUMMARISE {count} AS n, max(b.x) AS top EVERY 100000"
        found = [with_memory(cepheid_call("totals", table, totals, agrees=False))]
        if keyed and window <= 10_000:
            found.append(with_memory(cepheid_call("listing", table, text, agrees=False)))
        return found

    return [
        Case(
            window,
            lambda name=name, keyed=keyed, window=window: make(name, keyed, window),
            series=f"{name}, {'by key' if keyed else 'all events'}",
        )
        for name in PATTERNS
        for keyed in (True, False)
        for window in windows
    ]


def judge_windows(summary: Summary) -> Verdict:
    """How much slower totals become with the window, and how they stand beside listing."""
    xs = summary.xs()
    series = "sequence, all events"
    slow, fast = (summary.value("totals", x, series, of="seconds") for x in (xs[-1], xs[0]))
    number = f"{series}: a window {xs[-1] / xs[0]:,.0f} times as long takes x{slow / fast:.1f} the time"
    return Verdict(number, slow / fast < 5)


def by_events(size: str) -> Sequence[Case]:
    """Rising groups in a window that holds everything: pairs of events are compared."""
    numbers = points(size, (500, 1_000, 2_000, 4_000, 8_000), (500, 1_000, 2_000), (100, 200))

    def make(events: int) -> Sequence[Contestant]:
        return [with_memory(cepheid_call("totals", stream(events, "AAAAAAAAAB"), RISING))]

    return [Case(events, lambda events=events: make(events)) for events in numbers]


def judge_rising(summary: Summary) -> Verdict:
    """Seconds and memory at the largest size, and the growth of both."""
    xs = summary.xs()
    low, high = (summary.value("totals", x, of="seconds") for x in (xs[-2], xs[-1]))
    memory = summary.value("totals", xs[-1], of="grown_mb")
    number = f"{xs[-1]:,} events: {high:.2f} s, x{high / low:.1f} of {xs[-2]:,}; peak memory grew by {memory:.0f} MB"
    return Verdict(number, memory < 100)


EXPERIMENTS = (
    Experiment(
        "totals-windows",
        "Totals: SUMMARISE",
        "Totals beside listing, by the length of the window",
        "totals cost no listing: their time hardly depends on how many matches there are",
        "window",
        by_window,
        judge_windows,
        also=("seconds", "grown_mb"),
        log_x=True,
        ours=("totals", "listing"),
    ),
    Experiment(
        "totals-rising",
        "Totals: SUMMARISE",
        "Counting the rising subsequences of one window, by events",
        "seconds and memory linear in the events where listing takes all memory",
        "events",
        by_events,
        judge_rising,
        also=("seconds", "grown_mb"),
        log_x=True,
        ours=("totals", "listing"),
    ),
)

"""AYAC has no experiments of its own: what its design promises, measured.

Throughput, memory, thresholds and the bounds that prune by them on its own example, shoplifting; what is found and how
much of it is true as loss grows, on routes past six readers; its printed query form beside the typed one.
Calibration of the probabilities is in bench/missing.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import cepheid
from bench.experiments.sizes import points, sized
from bench.harness.calls import cepheid_call, inspect_result
from bench.harness.experiment import Case, Contestant, Experiment, Outcome, Verdict
from bench.harness.summary import Summary
from cepheid.simulate.retail import retail_visits
from cepheid.simulate.route import route_visits

PLAIN = "PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag_id] WITHIN 43200"
PRINTED = (
    "SEQUENCE(a, !b, c) WHERE a.type = 'Shelf' AND b.type = 'Register' AND c.type = 'Exit'"
    " AND a.tag_id[b.tag_id] = b.tag_id AND a.tag_id[c.tag_id] = c.tag_id WITHIN 43200"
)
LOSS = 0.1


def model() -> Any:
    """Losses and gaps of the shop."""
    gaps = {"b": cepheid.Exponential(mean=1200, happens=0.95), "c": cepheid.Exponential(mean=2400)}
    return cepheid.Model(loss=LOSS, gaps=gaps)


@cache
def shop(events: int, per_day: int) -> pa.Table:
    """Day after day of the same shop, so that only the length of the stream grows."""
    day = retail_visits(per_day, loss=LOSS, exit_clock="shelf", seed=3).events
    length = int(day["ts"][-1].as_py()) + 100_000
    days = -(-events // day.num_rows)
    parts = [day.set_column(0, "ts", pc.add(day["ts"], number * length)) for number in range(days)]
    return pa.concat_tables(parts).combine_chunks().slice(0, events)


def quietly(contestant: Contestant) -> Contestant:
    """Without the warning that low thresholds cost much: that is what is measured."""

    def run() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return contestant.run()

    return Contestant(contestant.name, run, contestant.events, contestant.inspect, contestant.agrees)


def by_length(size: str) -> Sequence[Case]:
    """The cost of an event as the stream grows, with missing events allowed and without."""
    lengths = points(size, (50_000, 200_000, 800_000, 3_000_000), (10_000, 40_000), (1_000, 2_000))

    def make(events: int) -> Sequence[Contestant]:
        table = shop(events, sized(size, 500, 5_000, 10_000))
        return [
            cepheid_call("every event seen", table, PLAIN, agrees=False),
            quietly(cepheid_call("missing events", table, f"{PLAIN} THRESHOLD 0.05", agrees=False, model=model())),
        ]

    return [Case(events, lambda events=events: make(events)) for events in lengths]


def judge_length(summary: Summary) -> Verdict:
    low, high = summary.xs()[0], summary.xs()[-1]
    rates = [summary.value("missing events", x) for x in (low, high)]
    cost = summary.ratio("every event seen", "missing events", high)
    peak = summary.value("missing events", high, of="peak_mb")
    number = (
        f"{rates[1]:,.0f} events/s at {high:,} events (x{rates[1] / rates[0]:.2f} of that at {low:,}); missing events "
        f"cost x{cost:.1f} of the query that takes every event as seen; peak {peak:.0f} MB"
    )
    return Verdict(number, rates[1] > 0.5 * rates[0])


def by_threshold(size: str) -> Sequence[Case]:
    """What the threshold prunes: partial matches that no continuation can lift above it are dropped."""
    thresholds = points(size, (0.9, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001), (0.5, 0.05, 0.01))

    def make(threshold: float) -> Sequence[Contestant]:
        live, fitted = route(sized(size, 1_000, 4_000, 40_000), 0.1)
        shopping = shop(sized(size, 1_000, 20_000, 400_000), sized(size, 500, 5_000, 10_000))
        text = f"THRESHOLD {threshold}"
        return [
            quietly(cepheid_call("shop", shopping, f"{PLAIN} {text}", agrees=False, model=model())),
            quietly(cepheid_call("six readers", live.events, f"{live.query} {text}", agrees=False, model=fitted)),
        ]

    return [Case(threshold, lambda threshold=threshold: make(threshold)) for threshold in thresholds]


def judge_threshold(summary: Summary) -> Verdict:
    low, high = summary.xs()[0], summary.xs()[-1]
    slower = {name: summary.value(name, high) / summary.value(name, low) for name in summary.contestants()}
    words = ", ".join(f"{name} x{ratio:.1f} slower at {low} than at {high}" for name, ratio in slower.items())
    dropped = summary.value("six readers", 0.05 if 0.05 in summary.xs() else low, of="dropped_by_bound")
    return Verdict(f"{words}; bounds dropped {dropped:,.0f} partial matches at 0.05", slower["six readers"] > 1)


@cache
def route(parcels: int, loss: float) -> tuple[Any, Any]:
    """Parcels past six readers, and a model fitted on another history."""
    past, live = route_visits(parcels, loss=loss, seed=1), route_visits(parcels, loss=loss, seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return live, cepheid.fit(past.events, live.query)


def arrivals(live: Any) -> Callable[[pa.Table], Outcome]:
    """Share of the true arrivals that were found, and of the reported ones that were true."""
    true = set(live.truth.filter(live.truth["arrived"])["parcel"].to_pylist())

    def inspect(result: pa.Table) -> Outcome:
        parts = [pc.struct_field(result[f"v{place}"].combine_chunks(), "parcel") for place in range(6)]
        said = pc.coalesce(*parts)
        parcels = set(said.to_pylist())
        hits = len(parcels & true)
        found = inspect_result(result)
        metrics = {"recall": hits / max(1, len(true)), "precision": hits / max(1, len(parcels))}
        if "probability" in result.column_names and result.num_rows:
            happened = np.isin(said.to_numpy(zero_copy_only=False), list(true)).astype(float)
            metrics["brier"] = float(np.mean((result["probability"].to_numpy() - happened) ** 2))
        return Outcome(found.matches, found.digest, metrics=metrics)

    return inspect


def by_loss(size: str) -> Sequence[Case]:
    """What is found as readers lose more and more."""
    parcels = sized(size, 1_000, 4_000, 20_000)

    def make(loss: float) -> Sequence[Contestant]:
        live, fitted = route(parcels, loss)
        wanted: dict[str, tuple[str, dict[str, Any]]] = {"every event seen": (live.query, {})}
        for threshold in (0.2, 0.05):
            text = f"{live.query} THRESHOLD {threshold} OUTPUT MAXIMAL"
            wanted[f"threshold {threshold}"] = (text, {"model": fitted, "scoring": "posterior"})
        calls = {name: cepheid_call(name, live.events, text, **more) for name, (text, more) in wanted.items()}
        inspect = arrivals(live)
        return [quietly(Contestant(name, call.run, call.events, inspect, agrees=False)) for name, call in calls.items()]

    return [
        Case(loss, lambda loss=loss: make(loss)) for loss in points(size, (0.02, 0.05, 0.1, 0.2, 0.3, 0.4), (0.05, 0.2))
    ]


def judge_loss(summary: Summary) -> Verdict:
    words, holds = [], True
    for loss in summary.xs():
        plain, ours = (summary.value(name, loss, of="recall") for name in ("every event seen", "threshold 0.05"))
        right = summary.value("threshold 0.05", loss, of="precision")
        words.append(
            f"{loss:.0%} lost: {plain:.0%} found if every event must be seen, {ours:.0%} at 0.05 ({right:.0%} true)"
        )
        holds &= ours >= plain
    return Verdict("; ".join(words), holds)


def printed_form(size: str) -> Sequence[Case]:
    """The query as the paper prints it, untyped and with defaults, beside types and an equivalence test."""
    lengths = points(size, (50_000, 200_000), (10_000,), (1_000,))

    def make(events: int) -> Sequence[Contestant]:
        table = shop(events, sized(size, 500, 5_000, 10_000))
        more = {"model": model()}
        return [
            quietly(cepheid_call("typed, [tag_id]", table, f"{PLAIN} THRESHOLD 0.05", **more)),
            quietly(cepheid_call("as printed", table, f"{PRINTED} THRESHOLD 0.05", type=None, **more)),
        ]

    return [Case(events, lambda events=events: make(events)) for events in lengths]


def judge_form(summary: Summary) -> Verdict:
    x = summary.xs()[-1]
    ratio = summary.ratio("as printed", "typed, [tag_id]", x)
    why = (
        "" if ratio > 0.5 else "its equalities with defaults are not recognised as one equivalence test: no partitions"
    )
    return Verdict(
        f"the printed form runs at x{ratio:.2f} of the typed one, the same matches ({x:,} events)", ratio > 0.5, why
    )


EXPERIMENTS = (
    Experiment(
        "ayac-length",
        "AYAC, no experiments: throughput and memory",
        "Missing events, by the length of the stream",
        "arrival queues are pruned by the window, so that an event's cost does not depend on the stream",
        "events",
        by_length,
        judge_length,
        also=("peak_mb",),
        log_x=True,
        ours=("every event", "missing"),
    ),
    Experiment(
        "ayac-threshold",
        "AYAC section 2.2: thresholds and bounds",
        "Missing events, by threshold",
        "a very low threshold can degrade performance even if not many matches are produced",
        "threshold",
        by_threshold,
        judge_threshold,
        also=("dropped_by_bound", "matches"),
        log_x=True,
        ours=("shop", "six"),
    ),
    Experiment(
        "ayac-loss",
        "AYAC, no experiments: quality against loss",
        "What is found of arrivals past six readers",
        "complex events are detected although simple events are missing",
        "loss",
        by_loss,
        judge_loss,
        y="recall",
        also=("precision", "brier", "events_per_second"),
        log_y=False,
        ours=("threshold",),
    ),
    Experiment(
        "ayac-form",
        "AYAC section 2.2: the printed query form",
        "Untyped components and defaults",
        "one untyped form replaces types and ANY",
        "events",
        printed_form,
        judge_form,
        ours=("typed", "as printed"),
    ),
)

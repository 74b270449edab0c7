"""Imprecise times beyond the paper's figures: the choice of the method, what pruning saves, and what is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bench.experiments.sizes import points, sized
from bench.experiments.time import METHODS, ONE_PLACE, options_for, query, series
from bench.harness.calls import cepheid_call, inspect_result
from bench.harness.experiment import Case, Contestant, Experiment, Outcome, Verdict
from bench.harness.summary import Summary
from cepheid.simulate.cluster import SAMPLE_PERIOD, cluster_log

GRID = ((32, 37, 41), (8, 37, 128), (128, 37, 8), (37, 8, 128), (37, 128, 8), (4, 100, 250))
ASKED = ("", " CONFIDENCE 50%", " CONFIDENCE 90%", " OUTPUT TOP 100 BY CONFIDENCE")


def choice(size: str) -> Sequence[Case]:
    """A grid of workloads: every method, and what the package chooses."""
    events = sized(size, 500, 10_000, 20_000)

    def make(strategy: str, delta: int, values: tuple[int, ...]) -> Sequence[Contestant]:
        text = query(values, 100, strategy)
        return [cepheid_call(way, series(events, delta), text, **options_for(way)) for way in (*METHODS, "auto")]

    return [
        Case(f"{values} delta {delta}", lambda s=strategy, d=delta, v=values: make(s, d, v), f"{strategy} match")
        for strategy in ("any", "next")
        for delta in points(size, (1, 10), (5,), (2,))
        for values in points(size, GRID, GRID[:3])
    ]


def judge_choice(summary: Summary) -> Verdict:
    ratios = []
    for fit in summary.series():
        for x in summary.xs(series=fit):
            best = max(summary.value(way, x, fit) for way in METHODS)
            ratios.append(best / summary.value("auto", x, fit))
    return Verdict(
        f"the fastest method is x{max(ratios):.2f} of what is chosen at worst, over {len(ratios)} workloads",
        max(ratios) < 1.5,
    )


def pruning(size: str) -> Sequence[Case]:
    """CONFIDENCE c and TOP k at delta = 20."""
    events = sized(size, 500, 10_000, 100_000)

    def make(strategy: str, ending: str) -> Sequence[Contestant]:
        text = query(ONE_PLACE[3], 100, strategy) + ending
        return [cepheid_call("auto", series(events, 20 if size != "smoke" else 3), text, **options_for("auto"))]

    return [
        Case(ending.strip() or "all", lambda s=strategy, e=ending: make(s, e), f"{strategy} match")
        for strategy in ("any", "next")
        for ending in ASKED
    ]


def judge_pruning(summary: Summary) -> Verdict:
    words = []
    for fit in summary.series():
        gains = [
            f"{x} x{summary.value('auto', x, fit) / summary.value('auto', 'all', fit):.1f}"
            for x in summary.xs(series=fit)
            if x != "all"
        ]
        words.append(f"{fit}: " + ", ".join(gains))
    return Verdict("; ".join(words), None)


@cache
def traced(tasks: int) -> Any:
    """The cluster's log with its truth."""
    return cluster_log(tasks, seed=7)


def causes(log: Any) -> Callable[[pa.Table], Outcome]:
    """Share of the true causes that are found, and of the claims that are true: a task and the period of the peak."""
    real = log.truth.filter(log.truth["satisfies_query"])
    periods = pc.divide(real["peak"], SAMPLE_PERIOD).to_pylist()
    wanted = set(zip(real["taskId"].to_pylist(), periods, strict=True))

    def inspect(result: pa.Table) -> Outcome:
        tasks = pc.struct_field(result["a"].combine_chunks(), "taskId").to_pylist()
        samples = pc.struct_field(result["b"].combine_chunks(), "ts")
        claims = set(zip(tasks, pc.divide(samples, SAMPLE_PERIOD).to_pylist(), strict=True))
        hits = len(claims & wanted)
        found = inspect_result(result)
        return Outcome(
            found.matches,
            found.digest,
            metrics={"share_found": hits / max(1, len(wanted)), "share_true": hits / max(1, len(claims))},
        )

    return inspect


def found_causes(size: str) -> Sequence[Case]:
    """Which tasks maxed out a CPU: intervals at several confidences, and midpoints taken as if they were exact."""
    tasks = sized(size, 300, 3_000, 40_000)

    def make(least: float) -> Sequence[Contestant]:
        log = traced(tasks)
        call = cepheid_call("intervals", log.events, log.query, confidence=least, **options_for("auto"))
        found = [Contestant(call.name, call.run, call.events, causes(log), agrees=False)]
        if least == 0.0:
            # Midpoints of two samples are a whole period apart, as long as the window: none is found unless it doubles.
            for name, text in (
                ("midpoints", log.query),
                ("midpoints, window doubled", log.query.replace("150", "300")),
            ):
                plain = cepheid_call(name, log.events, text)
                found.append(Contestant(name, plain.run, plain.events, causes(log), agrees=False))
        return found

    return [Case(least, lambda least=least: make(least)) for least in (0.0, 0.05, 0.1, 0.2, 0.3)]


def judge_causes(summary: Summary) -> Verdict:
    words = [
        f"confidence >= {x}: {summary.value('intervals', x, of='share_found'):.0%} found, "
        f"{summary.value('intervals', x, of='share_true'):.0%} of claims true"
        for x in summary.xs("intervals")
    ]
    plain = [
        f"{name} {summary.value(name, 0.0, of='share_found'):.0%} found"
        for name in summary.contestants()
        if "mid" in name
    ]
    best = max(summary.value("intervals", x, of="share_found") for x in summary.xs("intervals"))
    return Verdict("; ".join([*words, *plain]), best > 0.5)


EXPERIMENTS = (
    Experiment(
        "time-choice",
        "Imprecise times: the chosen method",
        "What is chosen against the fastest",
        "the choice is near the fastest",
        "workload",
        choice,
        judge_choice,
        ours=("auto",),
    ),
    Experiment(
        "time-pruning",
        "Imprecise times: CONFIDENCE and TOP",
        "What pruning saves",
        "TIME names thresholds and ranking as future work",
        "asked for",
        pruning,
        judge_pruning,
        ours=("auto",),
    ),
    Experiment(
        "time-causes",
        "TIME section 5.2: what is found",
        "Tasks that maxed out a CPU",
        "these queries require uncertainty intervals",
        "confidence",
        found_causes,
        judge_causes,
        y="share_found",
        also=("share_true", "events_per_second"),
        log_y=False,
        ours=("intervals",),
    ),
)

"""TIME's figures 4(a) to 4(f) and 5(a) to 5(c) (its section 5 and appendix E).

The stream is the paper's: values 1 to 1000 over and over, one event a time unit, each known to `delta` either side.
The paper does not say which divisors it used. "one place": 32, 37, 41, pairwise without a common multiple up to 1000,
so that an event fits one place only, as the paper's sorting needs. "several places": the same divisor each time, so
that every event that fits one place fits all. Rates count all events and the whole call, confidences included.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from bench.experiments.sizes import points, sized
from bench.harness.calls import cepheid_call
from bench.harness.experiment import Case, Contestant, Experiment, Verdict
from bench.harness.summary import Summary
from cepheid.simulate.cluster import cluster_log
from cepheid.simulate.imprecise import imprecise_query, imprecise_series

# Divisors by pattern length: smaller ones for longer patterns, so that they still have matches, as in the paper.
ONE_PLACE: Mapping[int, tuple[int, ...]] = {
    2: (37, 41),
    3: (32, 37, 41),
    4: (23, 29, 31, 37),
    5: (19, 23, 29, 31, 37),
    6: (17, 19, 23, 29, 31, 37),
}
SEVERAL: Mapping[int, int] = {2: 20, 3: 25, 4: 25, 5: 25, 6: 25}
BOUNDS = {"lower": "lower", "upper": "upper"}
METHODS = ("any-state", "sorted", "selectivity", "query-order")
BASIC = ("points", "any-state")
OURS = ("auto", *METHODS)  # which of them is chosen is the question of time-choice
FAIR_SECONDS = 0.25  # one run takes about this long; streams are as long as that allows
LENGTHS = (1_000, 5_000, 20_000, 100_000, 500_000, 1_000_000)
TOO_SLOW = 5_000  # events per second: a curve that has fallen below is not followed further
FITS = ("one place", "several places")


def divisors(fit: str, length: int = 3) -> tuple[int, ...]:
    """The divisors of a pattern."""
    return ONE_PLACE[length] if fit == "one place" else (SEVERAL[length],) * length


def query(values: Sequence[int], window: int, strategy: str) -> str:
    """The paper's template with an event selection strategy."""
    names = ", ".join(f"e{place}" for place in range(1, len(values) + 1))
    return imprecise_query(divisors=values, window=window).replace(
        " WITHIN", f" AND skip_till_{strategy}_match({names}) WITHIN"
    )


def options_for(way: str) -> dict[str, Any]:
    """Points, or intervals by one of the methods, or what the package chooses."""
    if way == "points":
        return {"engine": "points", **BOUNDS}
    return dict(BOUNDS) if way == "auto" else {"engine": "intervals", "method": way, **BOUNDS}


@cache
def series(events: int, delta: int) -> pa.Table:
    """The stream."""
    return imprecise_series(events, half_width=delta).events


class Sweep:
    """One curve per way. Each way gets a stream as long as it can read in the time that is fair."""

    def __init__(self, size: str, ways: Sequence[str]) -> None:
        self.most = sized(size, 1_000, 20_000, 1_000_000)
        self.ways = ways
        self.slow: set[tuple[str, str]] = set()
        self.warm: set[tuple[str, str]] = set()

    def make(self, fit: str, text: str, delta: int) -> Sequence[Contestant]:
        """The contestants of a case. All of them read the shortest stream, too, and must agree there."""
        chosen = []
        for way in self.ways:
            if (fit, way) in self.slow:
                continue
            chosen.append(self.fitting(fit, way, text, delta))
        return chosen

    def fitting(self, fit: str, way: str, text: str, delta: int) -> Contestant:
        """The longest stream that takes no longer than is fair; longer ones are tried as long as they promise to be."""
        for place, events in enumerate(LENGTHS):
            call = cepheid_call(way, series(events, delta), text, **options_for(way))
            longer = LENGTHS[place + 1] if place + 1 < len(LENGTHS) else self.most + 1
            if longer > self.most:
                return call
            if (fit, way) not in self.warm:  # the first one loads what was compiled
                self.warm.add((fit, way))
                call.run()
            begun = time.process_time()
            call.run()
            spent = time.process_time() - begun
            if events / spent < TOO_SLOW:
                self.slow.add((fit, way))
            if spent * longer / events > FAIR_SECONDS:
                return call
        return call


def figure(
    xs: Callable[[str], Sequence[Any]], case: Callable[[str, Any], tuple[str, int]], ways: Sequence[str]
) -> Callable[[str], Sequence[Case]]:
    """The cases of a figure: `case` gives the query and delta for a fit and a point of the axis."""

    def cases(size: str) -> Sequence[Case]:
        sweep = Sweep(size, ways)
        return [Case(x, lambda fit=fit, x=x: sweep.make(fit, *case(fit, x)), fit) for fit in FITS for x in xs(size)]

    return cases


def deltas(size: str) -> Sequence[int]:
    """The half uncertainty interval, 1 to 50."""
    return points(size, (1, 5, 10, 20, 30, 40, 50), (1, 5, 10), (1, 3))


def lengths(size: str) -> Sequence[int]:
    """The pattern's length, 2 to 6."""
    return points(size, (2, 3, 4, 5, 6), (2, 3, 4), (2, 3))


def windows(size: str) -> Sequence[int]:
    """The window, 10 to 200."""
    return points(size, (10, 50, 100, 150, 200), (10, 100), (10, 50))


def shares(size: str) -> Sequence[float]:
    """The share of events that fit the first component; the last one's is 1/1024 of the inverse."""
    return points(size, (1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8), (1 / 128, 1 / 32, 1 / 8))


def by_delta(strategy: str) -> Callable[[str, Any], tuple[str, int]]:
    return lambda fit, delta: (query(divisors(fit), 100, strategy), delta)


def by_length(strategy: str) -> Callable[[str, Any], tuple[str, int]]:
    return lambda fit, length: (query(divisors(fit, length), 100, strategy), 5)


def by_share(fit: str, share: float) -> tuple[str, int]:
    first, last = round(1 / share), round(1024 * share)
    # Powers of two share their multiples: events that fit the rarer end fit the other end, too.
    middle = 37 if fit == "one place" else 32
    return query((first, middle, last), 100, "any"), 5


def by_window(fit: str, window: int) -> tuple[str, int]:
    return query(divisors(fit), window, "any"), 5


# --- the cluster --------------------------------------------------------------------------------------------------

NODE = "b.nodeId = a.nodeId"
CLUSTER = {
    "query 1": """PATTERN SEQ(TaskStart a, CPU b, TaskFinish c, CPU d)
        WHERE a.taskId = c.taskId AND b.nodeId = a.nodeId AND d.nodeId = a.nodeId
        AND b.value > 95% AND d.value <= 70% AND skip_till_any_match(a, b, c, d) WITHIN 150""",
    "query 2": """PATTERN SEQ(CPU b, TaskStart a, CPU d) WHERE b.nodeId = a.nodeId AND d.nodeId = a.nodeId
        AND b.value <= 70% AND d.value > 95% AND skip_till_any_match(b, a, d) WITHIN 300""",
    "query 3": """PATTERN SEQ(TaskStart a, CPU b, TaskFinish c) WHERE a.taskId = c.taskId AND b.nodeId = a.nodeId
        AND b.value > 95% AND skip_till_any_match(a, b, c) WITHIN 300""",
    "query 4": """PATTERN SEQ(CPU b, TaskFinish c, CPU d) WHERE b.nodeId = c.nodeId AND d.nodeId = c.nodeId
        AND b.value > 95% AND d.value <= 70% AND skip_till_any_match(b, c, d) WITHIN 300""",
}


def cluster(size: str) -> Sequence[Case]:
    """Figure 4(f): four queries over a simulated Hadoop log merged with load samples."""
    tasks = sized(size, 200, 3_000, 40_000)

    @cache
    def log(count: int) -> pa.Table:
        return cluster_log(count, seed=7).events

    def make(text: str) -> Sequence[Contestant]:
        slow = log(tasks // 10)
        return [
            cepheid_call("auto", log(tasks), text, **options_for("auto")),
            cepheid_call("query-order", log(tasks), text, **options_for("query-order")),
            *(cepheid_call(way, slow, text, **options_for(way)) for way in ("any-state", "sorted", "selectivity")),
        ]

    return [Case(name, lambda text=text: make(text)) for name, text in CLUSTER.items()]


# --- verdicts -----------------------------------------------------------------------------------------------------


def kept(summary: Summary, way: str, fit: str) -> str:
    """A curve in words: its rate at both ends."""
    xs = summary.xs(way, fit)
    rates = [summary.value(way, x, fit) for x in (xs[0], xs[-1])]
    return f"{way} {rates[0]:,.0f} at {xs[0]:.3g} to {rates[1]:,.0f} at {xs[-1]:.3g}"


def judge_points(summary: Summary) -> Verdict:
    """Points fall, events do not: the better event-based method against points at the far end of points' curve."""
    words, ahead = [], []
    for fit in summary.series():
        far = summary.xs("points", fit)[-1]
        best = max((w for w in summary.contestants(fit) if w != "points"), key=lambda w: summary.value(w, far, fit))
        ahead.append(summary.ratio(best, "points", far, fit))
        words.append(
            f"{fit}: {kept(summary, 'points', fit)}; {kept(summary, best, fit)} (x{ahead[-1]:.0f} at {far:.3g})"
        )
    return Verdict("; ".join(words), ahead[0] > 1, "several places: more runs for intervals, too")


def judge_methods(best: str) -> Callable[[Summary], Verdict]:
    """Which method leads at the far end, and whether it is the paper's."""

    def judge(summary: Summary) -> Verdict:
        words, holds = [], []
        for fit in summary.series():
            paper = ("any-state", "sorted", "selectivity")
            far = summary.xs("any-state", fit)[-1]
            first = max(paper, key=lambda way: summary.value(way, far, fit))
            over = summary.ratio("query-order", first, far, fit)
            gain = summary.ratio(first, "any-state", far, fit)
            words.append(
                f"{fit}, at {far:.3g}: {first} leads the paper's methods, x{gain:.1f} of any-state; "
                f"query-order (ours) x{over:.1f} of it"
            )
            holds.append(first == best)
        return Verdict("; ".join(words), holds[0])

    return judge


def judge_cluster(summary: Summary) -> Verdict:
    """Rates, and the methods against any-state."""
    words, holds = [], True
    for x in summary.xs():
        gain = {way: summary.ratio(way, "any-state", x) for way in ("sorted", "selectivity")}
        words.append(
            f"{x}: {summary.value('auto', x):,.0f} events/s; sorted x{gain['sorted']:.1f}, "
            f"selectivity x{gain['selectivity']:.1f} of any-state"
        )
        holds &= gain["selectivity"] > 1
    return Verdict("; ".join(words), holds)


def _figure(name: str, title: str, claim: str, x: str, cases: Any, judge: Any, **more: Any) -> Experiment:
    number = name.removeprefix("time-")
    more = {"ours": OURS, **more}
    return Experiment(name, f"TIME figure {number[0]}({number[1]})", title, claim, x, cases, judge, **more)


WAYS = ("points", *METHODS)
EXPERIMENTS = (
    _figure(
        "time-4a",
        "Points and intervals, any match",
        "points fall fast with delta; the event-based method does not depend on it",
        "delta",
        figure(deltas, by_delta("any"), (*BASIC, "query-order")),
        judge_points,
    ),
    _figure(
        "time-4b",
        "Event-based methods, any match",
        "sorting is best, selectivity between, any-state falls linearly",
        "delta",
        figure(deltas, by_delta("any"), METHODS),
        judge_methods("sorted"),
    ),
    _figure(
        "time-4c",
        "Event-based methods by pattern length",
        "any-state loses quickly with the length, sorting least, selectivity like any-state",
        "length",
        figure(lengths, by_length("any"), METHODS),
        judge_methods("sorted"),
    ),
    _figure(
        "time-4d",
        "Event-based methods by frequency",
        "with more events for the first component selectivity is best, sorting only slightly ahead of any-state",
        "share of the first",
        figure(shares, by_share, METHODS),
        judge_methods("selectivity"),
        log_x=True,
    ),
    _figure(
        "time-4e",
        "Points and intervals, next match",
        "points drop earlier than under any match; event-based methods to 1,000 to 2,000 events/s",
        "delta",
        figure(deltas, by_delta("next"), WAYS),
        judge_points,
    ),
    _figure(
        "time-4f",
        "Cluster monitoring, four queries",
        "sorting and selectivity well ahead of any-state, selectivity ahead; much higher than 778 events/s",
        "query",
        cluster,
        judge_cluster,
        notes="The paper prints query 1 only; the others are of the same kind over the simulated log.",
    ),
    _figure(
        "time-5a",
        "Points and intervals by window",
        "the event-based method is ahead at every window",
        "window",
        figure(windows, by_window, (*BASIC, "query-order")),
        judge_points,
    ),
    _figure(
        "time-5b",
        "Points and intervals by length",
        "both are sensitive to the length, points much more",
        "length",
        figure(lengths, by_length("any"), (*BASIC, "query-order")),
        judge_points,
    ),
    _figure(
        "time-5c",
        "Next match by pattern length",
        "event-based methods work better than points as the length grows",
        "length",
        figure(lengths, by_length("next"), WAYS),
        judge_points,
    ),
)

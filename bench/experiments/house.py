"""Every engine on a workload of its own, to compare two versions of the package: `python -m bench compare`.

These claim nothing about papers. Each case is one call of the public interface, so that the inside may move.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

import cepheid
from bench.experiments.sizes import sized
from bench.harness.calls import cepheid_call
from bench.harness.experiment import Case, Contestant, Experiment, Verdict
from bench.harness.summary import Summary
from cepheid.simulate import sase_events, stock_ticks
from cepheid.simulate.cluster import cluster_log
from cepheid.simulate.correlated import correlated_stocks, correlation_query
from cepheid.simulate.imprecise import imprecise_query, imprecise_series
from cepheid.simulate.retail import retail_visits
from cepheid.simulate.route import route_visits

SASE = "PATTERN SEQ(T0 a, T1 b, T2 c) WHERE [attr1] WITHIN 10000"
SASE_QUERIES = {
    "sequence": SASE,
    "filter": "PATTERN T0 a WHERE a.attr3 < 3",
    "no key": "PATTERN SEQ(T0 a, T1 b, T2 c) WHERE a.attr5 < 200 AND b.attr5 < 200 AND c.attr5 < 200 WITHIN 1000",
    "two keys, inequality": "PATTERN SEQ(T0 a, T1 b, T2 c) WHERE [attr1, attr2] AND a.attr3 < c.attr3 WITHIN 100000",
    "five long": "PATTERN SEQ(T0 a, T1 b, T2 c, T3 d, T4 e) WHERE [attr1] WITHIN 10000",
    "negation between": "PATTERN SEQ(T0 a, !(T3 n), T1 b, T2 c) WHERE [attr1] WITHIN 10000",
    "negation at the end": "PATTERN SEQ(T0 a, T1 b, !(T2 n)) WHERE [attr1] WITHIN 10000",
    "any of types": "PATTERN SEQ(ANY(T0, T1) a, T2 b) WHERE [attr1] AND a.attr3 < b.attr3 WITHIN 5000",
    "dense": "PATTERN SEQ(T0 a, T1 b) WHERE [attr2] WITHIN 300",
}
KLEENE = (
    "PATTERN SEQ(Stock+ a[], Stock b) WHERE {strategy}(a[], b) "
    "{{ [symbol] AND a[1].price % 500 = 0 AND {iterator} AND b.volume < 150 }} WITHIN {window} EVENTS"
)
ITERATORS = {"p1": "TRUE", "p2": "a[i].price > a[i-1].price", "p3": "a[i].price > min(a[..i-1].price)"}
STRATEGIES = {"s2": "partition_contiguity", "s3": "skip_till_next_match"}
THRESHOLD = "PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag_id] WITHIN 43200 THRESHOLD 0.05"


def one(x: str, name: str, make: Callable[[], tuple[pa.Table, str, dict[str, Any]]]) -> Case:
    """A case with one call."""

    def contestants() -> Sequence[Contestant]:
        table, text, options = make()
        return [cepheid_call(name, table, text, **options)]

    return Case(x, contestants)


def sequences(size: str) -> Sequence[Case]:
    """SASE's stream, the sequence engine."""
    events = sized(size, 5_000, 200_000, 1_000_000)
    return [
        one(name, "auto", lambda text=text: (sase_events(events, seed=1).events, text, {}))
        for name, text in SASE_QUERIES.items()
    ]


def kleene(size: str) -> Sequence[Case]:
    """SASE+'s template: rows, counts, backtracking and NON-OVERLAP."""
    events, window = sized(size, 2_000, 20_000, 100_000), sized(size, 50, 500, 500)
    cases = []
    for short, strategy in STRATEGIES.items():
        for iterator, condition in ITERATORS.items():
            text = KLEENE.format(strategy=strategy, iterator=condition, window=window)

            def contestants(text: str = text) -> Sequence[Contestant]:
                table = stock_ticks(events, seed=1).events
                return [
                    cepheid_call("rows", table, text),
                    cepheid_call("count", table, text, output="count"),
                    cepheid_call("backtrack", table, text, engine="backtrack"),
                    cepheid_call("non-overlap", table, text + " OUTPUT NON-OVERLAP", agrees=False),
                ]

            cases.append(Case(f"{iterator} {short}", contestants))
    return cases


def lazy(size: str) -> Sequence[Case]:
    """LAZY's stream: every engine that fills components in some order."""
    events = sized(size, 1_000, 10_000, 40_000)

    def contestants(share: float) -> Sequence[Contestant]:
        table, text = correlated_stocks(events, rare_frequency=share, seed=1).events, correlation_query(window=200)
        return [
            cepheid_call(engine, table, text, engine=engine)
            for engine in ("sequence", "lazy-chain", "lazy-tree", "auto")
        ]

    return [Case(share, lambda share=share: contestants(share)) for share in (0.01, 1.0)]


def imprecise(size: str) -> Sequence[Case]:
    """TIME's series and its cluster."""
    events = sized(size, 500, 20_000, 100_000)
    bounds = {"lower": "lower", "upper": "upper"}
    cases = []
    for strategy in ("any", "next"):
        for divisors in ((32, 37, 41), (10, 10, 10)):
            text = imprecise_query(divisors=divisors, window=100)
            text = text.replace(" WITHIN", f" AND skip_till_{strategy}_match(e1, e2, e3) WITHIN")
            most = events if divisors[0] > 10 else events // 10
            cases.append(
                one(f"{strategy} {divisors}", "auto", lambda t=text, n=most: (imprecise_series(n).events, t, bounds))
            )
    tasks = sized(size, 300, 6_800, 40_000)
    log = cluster_log(tasks, seed=7)
    return [*cases, one("cluster", "auto", lambda: (log.events, log.query, bounds))]


def missing(size: str) -> Sequence[Case]:
    """AYAC's shop and a route past six readers."""
    tags = sized(size, 1_000, 20_000, 100_000)

    def shop() -> tuple[pa.Table, str, dict[str, Any]]:
        model = cepheid.Model(loss=0.1, gaps={"b": cepheid.Exponential(mean=1200), "c": cepheid.Exponential(mean=2400)})
        return retail_visits(tags, loss=0.1, exit_clock="shelf", seed=3).events, THRESHOLD, {"model": model}

    def route() -> tuple[pa.Table, str, dict[str, Any]]:
        live = route_visits(max(tags // 4, 1_000), loss=0.1, seed=3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return live.events, live.query + " THRESHOLD 0.05", {"model": cepheid.fit(live.events, live.query)}

    return [one("shop", "auto", shop), one("route", "auto", route)]


START = """
import time; begun = time.perf_counter()
import cepheid, pyarrow as pa
events = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "C"], "id": [7, 7, 7], "x": [1.0, 2.0, 3.0]})
cepheid.match(events, "PATTERN SEQ(A a, C c) WHERE [id] AND a.x < c.x WITHIN 5")
cold = time.perf_counter() - begun; begun = time.perf_counter()
cepheid.match(events, "PATTERN SEQ(A a, B b, C c) WHERE [id] AND a.x + 1 < c.x AND b.x > a.x * 0.5 WITHIN 9")
print(cold, time.perf_counter() - begun)
"""


def start(size: str) -> Sequence[Case]:
    """A cold process whose kernels are compiled and kept; and a new query in a warm process."""

    def run(which: int) -> float:
        done = subprocess.run([sys.executable, "-c", START], check=True, capture_output=True, text=True)
        return float(done.stdout.split()[which])

    from bench.harness.experiment import Outcome

    def contestants() -> Sequence[Contestant]:
        return [
            Contestant(name, lambda which=which: run(which), 3, lambda seconds: Outcome(seconds=seconds))
            for which, name in enumerate(("cold process", "new query, warm process"))
        ]

    return [Case("first result", contestants)]


def spark(size: str) -> Sequence[Case]:
    """A batch and a stream on Spark, two cores."""
    from bench.experiments.spark_batch import KEYED, batch_contestants, event_files
    from bench.experiments.spark_stream import throughput

    events = sized(size, 20_000, 200_000, 2_000_000)

    def batch() -> Sequence[Contestant]:
        return batch_contestants(2, event_files("sase", events), KEYED, "attr1", events)[1:]

    def stream() -> Sequence[Contestant]:
        return throughput("smoke" if size == "smoke" else "quick")[0].make()[-1:]

    return [Case("batch", batch), Case("stream", stream)]


def nothing_claimed(summary: Summary) -> Verdict:
    """For comparisons only."""
    return Verdict(f"{len(summary.rows)} cases", None)


EXPERIMENTS = (
    *tuple(
        Experiment(f"house-{name}", "house", title, "", "case", cases, nothing_claimed)
        for name, title, cases in (
            ("sequences", "Sequence engine", sequences),
            ("kleene", "Run engine", kleene),
            ("lazy", "Lazy engines", lazy),
            ("imprecise", "Imprecise times", imprecise),
            ("missing", "Missing events", missing),
            ("start", "First result", start),
        )
    ),
    Experiment("house-spark", "house", "Spark", "", "case", spark, nothing_claimed, cores=2, needs=("spark",)),
)

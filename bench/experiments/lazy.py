"""LAZY's figures 7 to 10 (its section 7): evaluations as the paper counts them, and the time they take.

Stocks that carry their price history, three in sequence, neighbours correlated. Eager is the run engine, which fills
components in the order of the sequence as events come. `sequence`, the package's default, fills them backwards from
the last and is the one to beat. "tree, counters" is the paper's tree: it knows only the counters of its input buffer;
"tree" also learns how selective conditions were; "auto" is what a user gets, who names no engine.
An evaluation is one candidate looked at on a take edge, after its own conditions, in all engines alike.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import cepheid
from bench.experiments.sizes import points, sized
from bench.harness.calls import cepheid_call, inspect_result
from bench.harness.experiment import Case, Contestant, Experiment, Verdict
from bench.harness.summary import Summary
from cepheid.simulate.correlated import correlated_stocks, correlation_query

WINDOW = 200  # events, one per unit of time: twenty prices, ten events a minute
CHAINS = ["".join(order) for order in itertools.permutations("abc")]
ENGINES: dict[str, dict[str, Any]] = {
    "eager (runs)": {"engine": "runs"},
    "sequence": {"engine": "sequence"},
    **{f"chain {chain}": {"engine": "lazy-chain", "order": tuple(chain)} for chain in CHAINS},
    "tree, counters": {"engine": "lazy-tree", "learn": False},
    "tree": {"engine": "lazy-tree"},
    "auto": {},
}


def every_engine(table: pa.Table, text: str) -> Sequence[Contestant]:
    """All ways to run the query."""
    return [cepheid_call(name, table, text, **options) for name, options in ENGINES.items()]


def by_frequency(size: str) -> Sequence[Case]:
    """Figure 7: c is rarer and rarer beside a and b."""
    events = sized(size, 1_000, 10_000, 20_000)
    shares = points(size, (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0), (0.01, 0.1, 1.0))

    def make(share: float) -> Sequence[Contestant]:
        stream = correlated_stocks(events, rare_frequency=share, seed=1).events
        return every_engine(stream, correlation_query(window=WINDOW))

    return [Case(share, lambda share=share: make(share)) for share in shares]


def judge_7(summary: Summary) -> Verdict:
    """Evaluations and times at the rare end, against eager and against the default."""
    low = summary.xs()[0]

    def ratio(over: str, of: str) -> float:
        return summary.value(over, low, of=of) / summary.value("tree", low, of=of)

    best = min(CHAINS, key=lambda chain: summary.value(f"chain {chain}", low, of="evaluations"))
    number = (
        f"at f_c = {low}: the tree makes x{ratio('eager (runs)', 'evaluations'):,.0f} fewer evaluations than eager in "
        f"x{ratio('eager (runs)', 'seconds'):.1f} less time; beside sequence x{ratio('sequence', 'evaluations'):,.1f} "
        f"fewer evaluations at x{ratio('sequence', 'seconds'):.2f} of its rate. Best chain: {best}. "
        f"auto runs at x{1 / ratio('auto', 'seconds'):.2f} of the tree's rate"
    )
    return Verdict(number, best[0] == "c" and ratio("eager (runs)", "evaluations") > 10)


def by_place(size: str) -> Sequence[Case]:
    """Figure 8: the rarest event last, in the middle, first."""
    events = sized(size, 1_000, 10_000, 20_000)

    def make(order: str) -> Sequence[Contestant]:
        stream = correlated_stocks(events, rare_frequency=0.01, seed=1).events
        return every_engine(stream, correlation_query(window=WINDOW, order=order))

    return [Case(f"SEQ({', '.join(order)})", lambda order=order: make(order)) for order in ("abc", "acb", "cba")]


def judge_8(summary: Summary) -> Verdict:
    """Does the order of the sequence matter to lazy engines, and does eager gain when the rarest is first?"""
    last, first = "SEQ(a, b, c)", "SEQ(c, b, a)"
    counted = partial(summary.value, of="evaluations")
    eager = counted("eager (runs)", last) / counted("eager (runs)", first)
    tree = max(counted("tree", x) for x in summary.xs()) / min(counted("tree", x) for x in summary.xs())
    backwards = counted("sequence", first) / counted("sequence", last)
    number = (
        f"eager makes x{eager:,.0f} fewer evaluations on SEQ(c, b, a) than on SEQ(a, b, c); the tree's differ by "
        f"x{tree:.1f} at most; `sequence`, which goes backwards, makes x{backwards:,.0f} more there"
    )
    return Verdict(number, eager > 5 and tree < 5)


def by_size(size: str) -> Sequence[Case]:
    """Figure 9: the peak of partial matches, on inputs of several sizes."""
    sizes = points(size, (5_000, 10_000, 20_000), (5_000, 10_000), (500, 1_000))

    def make(events: int) -> Sequence[Contestant]:
        stream = correlated_stocks(events, rare_frequency=0.05, seed=1).events
        return every_engine(stream, correlation_query(window=WINDOW))

    return [Case(events, lambda events=events: make(events)) for events in sizes]


def judge_9(summary: Summary) -> Verdict:
    """Peaks of instances."""
    high = summary.xs()[-1]
    peak = {name: summary.value(name, high, of="peak_partial_matches") for name in summary.contestants()}
    number = ", ".join(
        f"{name} {peak[name]:,.0f}"
        for name in ("eager (runs)", "chain abc", "chain cab", "tree")
        if peak[name] == peak[name]
    )
    best = min(peak[f"chain {chain}"] for chain in CHAINS)
    return Verdict(
        f"partial matches at a time on {high:,} events: {number}",
        peak["tree"] <= 2 * best and peak["tree"] < peak["eager (runs)"],
    )


def shifting(size: str) -> Sequence[Case]:
    """Figure 10: the rarest event changes; every engine goes through the stream interval by interval, as it comes.

    An interval is given the events of one window before it, and a match counts where it ends.
    """
    interval, interval = {"smoke": (900, 300), "quick": (6_000, 2_000), "full": (20_000, 5_000)}[size]
    events = 3 * interval
    kept: dict[str, pa.Table] = {}

    def part(begin: int) -> pa.Table:
        if "stream" not in kept:
            kept["stream"] = correlated_stocks(events, rare_frequency=0.05, switch_every=interval, seed=1).events
        first = max(0, begin - WINDOW)
        return kept["stream"].slice(first, begin + interval - first).combine_chunks()

    def make(begin: int) -> Sequence[Contestant]:
        table, query = part(begin), cepheid.query(correlation_query(window=WINDOW))

        def run(options: dict[str, Any]) -> pa.Table:
            found = query.match(table, **options)
            return found.filter(pc.greater_equal(found["match_end"], begin)).replace_schema_metadata(
                found.schema.metadata
            )

        return [Contestant(name, partial(run, options), interval, inspect_result) for name, options in ENGINES.items()]

    return [Case(begin + interval, lambda begin=begin: make(begin)) for begin in range(0, events, interval)]


def judge_10(summary: Summary) -> Verdict:
    """The tree against the best chain, over the whole stream."""
    total = {
        name: {of: sum(summary.value(name, x, of=of) for x in summary.xs()) for of in ("evaluations", "seconds")}
        for name in summary.contestants()
    }
    chain = min((name for name in total if name.startswith("chain")), key=lambda name: total[name]["evaluations"])
    ratios = {
        name: tuple(total[chain][of] / total[name][of] for of in ("evaluations", "seconds"))
        for name in ("tree, counters", "tree", "sequence", "auto")
    }
    number = f"beside the best chain ({chain}) over the whole stream, evaluations and time: " + ", ".join(
        f"{name} x{fewer:.2f} fewer, x{faster:.2f} faster" for name, (fewer, faster) in ratios.items()
    )
    return Verdict(number, ratios["tree, counters"][0] > 1)


COUNTED = ("seconds", "peak_partial_matches")
OURS = ("auto",)
NOTES = "All engines are Cepheid's own; 'auto' is what a user gets, who names none."
EXPERIMENTS = (
    Experiment(
        "lazy-7",
        "LAZY figure 7",
        "Evaluations by the frequency of the rarest event",
        "chains that start with c and the tree one to three orders of magnitude ahead of eager; the tree ahead",
        "f_c",
        by_frequency,
        judge_7,
        y="evaluations",
        also=COUNTED,
        log_x=True,
        weight=2.5,
        less_is_better=True,
        first_by="seconds",
        ours=OURS,
        notes=NOTES,
    ),
    Experiment(
        "lazy-8",
        "LAZY figure 8",
        "Evaluations by the place of the rarest event",
        "lazy engines do not depend on the sequence order; eager improves on SEQ(c, b, a)",
        "pattern",
        by_place,
        judge_8,
        y="evaluations",
        also=("seconds",),
        less_is_better=True,
        first_by="seconds",
        ours=OURS,
        notes=NOTES,
    ),
    Experiment(
        "lazy-9",
        "LAZY figure 9",
        "Partial matches held at a time",
        "chains that start with c and the tree hold the fewest instances, eager and chains that start with a the most",
        "events",
        by_size,
        judge_9,
        y="peak_partial_matches",
        also=("seconds", "peak_mb"),
        less_is_better=True,
        first_by="seconds",
        ours=OURS,
        notes=NOTES,
    ),
    Experiment(
        "lazy-10",
        "LAZY figure 10",
        "The rarest event changes",
        "the tree adapts and stays ahead of every chain, whose gain goes when the frequencies change",
        "events",
        shifting,
        judge_10,
        y="evaluations",
        also=("seconds",),
        weight=2.0,
        less_is_better=True,
        first_by="seconds",
        ours=OURS,
        notes=NOTES,
    ),
)

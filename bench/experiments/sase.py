"""SASE's experiments 1 to 6 (its section 5) and those it only summarises: windows and negation.

The stream is the paper's: 20 types, attributes uniform, one event an instant. Techniques are compared inside one
kernel (bench/baselines/stacks.py), with Cepheid's own call, preparation and output included, beside them.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from bench.baselines.stacks import (
    AIS,
    MULTI_PAIS,
    NO_STACKS,
    Technique,
    result_digest_table,
    scan_and_construct,
)
from bench.experiments.sizes import points, sized
from bench.harness.calls import cepheid_call, match_digest
from bench.harness.experiment import Case, Contestant, Experiment, Outcome, Verdict
from bench.harness.spark import self_join
from bench.harness.summary import Summary
from cepheid.simulate import sase_events

NAMES = ("e1", "e2", "e3", "e4", "e5", "e6")
OURS = "Cepheid"
KERNEL = "The paper's plans are compared inside one kernel, which has this query built in and writes row numbers only."
PLANS = ("Basic", "AIS", "Selection", "Multi-PAIS", "Dynamic", "all in", "simple", "after", "in ", "negation", "no neg")


def pattern(length: int, where: str, window: int, negative: str = "") -> str:
    """SEQ over the first types."""
    parts = [f"T{place} {NAMES[place]}" for place in range(length)]
    if negative:
        parts.insert(length - 1, negative)
    condition = f" WHERE {where}" if where else ""
    return f"PATTERN SEQ({', '.join(parts)}){condition} WITHIN {window}"


def stream(events: int, first: int = 1_000, second: int = 20, types: int = 20) -> pa.Table:
    """SASE's stream with the domains of the first two attributes."""
    return sase_events(events, types=types, domains=(first, second, 10, 100, 10_000), seed=1).events


def by_technique(name: str, table: pa.Table, technique: Technique, length: int = 3, **query: object) -> Contestant:
    """A plan of the paper's, in the kernel for comparisons."""
    types = tuple(f"T{place}" for place in range(length))
    window = int(query.pop("window", 10_000))  # type: ignore[call-overload]

    def inspect(result: object) -> Outcome:
        found = result_digest_table(result, table, NAMES[:length])  # type: ignore[arg-type]
        metrics = {"constructed": float(result.constructed)}  # type: ignore[attr-defined]
        if result.truncated:  # type: ignore[attr-defined]
            return Outcome(metrics={**metrics, "truncated": 1.0})
        return Outcome(found.num_rows, match_digest(found), metrics=metrics)

    return Contestant(
        name, lambda: scan_and_construct(table, types, window, technique, **query), table.num_rows, inspect
    )


# --- experiments 1 and 2: stacks ----------------------------------------------------------------------------------


def stacks_case(events: int, domain: int, window: int) -> Sequence[Contestant]:
    """Basic against AIS. As in the paper, V1^(2/3) times the types stand for the test on attr1, which is left out."""
    simulated = stream(events, types=round(20 * domain ** (2 / 3)))
    real = stream(events, first=domain)
    text = pattern(3, "", window)
    none, ais = Technique(stacks=NO_STACKS), Technique(stacks=AIS)
    return [
        by_technique("Basic (no stacks)", simulated, none, window=window, first=None),
        by_technique("AIS", simulated, ais, window=window, first=None),
        cepheid_call("Cepheid, same stream", simulated, text),
        cepheid_call("Cepheid, [attr1] evaluated", real, pattern(3, "[attr1]", window), agrees=False),
        cepheid_call(
            "Cepheid runs, [attr1] evaluated", real, pattern(3, "[attr1]", window), engine="runs", agrees=False
        ),
    ]


def domains_1(size: str) -> Sequence[Case]:
    """Figure 8: V1 from 100 to 10,000, light first; as long a stream as Basic can read at V1 = 100 in seconds."""
    events = sized(size, 2_000, 20_000, 50_000)
    domains = points(size, (10_000, 5_000, 2_000, 1_000, 500, 200, 100), (10_000, 1_000, 100))
    return [Case(v, lambda v=v: stacks_case(events, v, 10_000)) for v in domains]


def windows_2(size: str) -> Sequence[Case]:
    """Figure 9: W from 10,000 to 100,000 with V1 = 10,000."""
    events = sized(size, 2_000, 50_000, 200_000)
    windows = points(size, (10_000, 20_000, 40_000, 60_000, 80_000, 100_000), (10_000, 100_000))
    return [Case(w, lambda w=w: stacks_case(events, 10_000, w)) for w in windows]


def judge_1(summary: Summary) -> Verdict:
    low = summary.ratio("AIS", "Basic (no stacks)", 100)
    high = summary.ratio("AIS", "Basic (no stacks)", 10_000)
    ours = summary.ratio("Cepheid, same stream", "Basic (no stacks)", 100)
    number = (
        f"AIS x{low:.1f} of Basic at V1 = 100, x{high:.1f} at 10,000; Cepheid with preparation and output x{ours:.1f}"
    )
    return Verdict(number, low > 3 and low > high, "compiled, a step over an event costs about a nanosecond")


def judge_2(summary: Summary) -> Verdict:
    fall = {name: summary.value(name, 10_000) / summary.value(name, 100_000) for name in ("Basic (no stacks)", "AIS")}
    number = f"from W = 10,000 to 100,000 Basic slows x{fall['Basic (no stacks)']:.1f}, AIS x{fall['AIS']:.1f}"
    return Verdict(number, fall["Basic (no stacks)"] > fall["AIS"])


# --- experiment 3: the second equivalence test --------------------------------------------------------------------

STRATEGIES = {
    "Selection": Technique(second_early=False),
    "Multi-PAIS": Technique(stacks=MULTI_PAIS, second_early=False),
    "Dynamic Filtering": Technique(),
}


def second_case(events: int, first: int, second: int) -> Sequence[Contestant]:
    """Three places for [attr2], and Cepheid's two."""
    table, text = stream(events, first, second), pattern(3, "[attr1, attr2]", 10_000)
    return [
        *(by_technique(name, table, technique, second="attr2") for name, technique in STRATEGIES.items()),
        cepheid_call("Cepheid, both in the scan", table, text),
        cepheid_call("Cepheid, equivalence='construction'", table, text, equivalence="construction"),
    ]


def second_tests_3(size: str) -> Sequence[Case]:
    """Figure 10: V1 from 10 to 10,000, V2 = 20 and 5."""
    events = sized(size, 1_000, 20_000, 60_000)
    domains = points(size, (10_000, 2_000, 500, 200, 100, 50, 20, 10), (10_000, 500, 100, 20))
    return [
        Case(v, lambda v=v, second=second: second_case(events, v, second), f"V2 = {second}")
        for second in (20, 5)
        for v in domains
    ]


def judge_3(summary: Summary) -> Verdict:
    low, high = summary.xs("Selection", "V2 = 20")[0], summary.xs("Selection", "V2 = 20")[-1]
    over = summary.ratio("Dynamic Filtering", "Selection", low, "V2 = 20")
    multi = summary.ratio("Multi-PAIS", "Selection", low, "V2 = 20")
    same = summary.ratio("Dynamic Filtering", "Selection", high, "V2 = 20")
    ours = summary.ratio("Cepheid, both in the scan", "Cepheid, equivalence='construction'", low, "V2 = 20")
    built = [summary.value(name, low, "V2 = 20", "constructed") for name in STRATEGIES]
    number = (
        f"at V1 = {low}: Dynamic Filtering x{over:.1f} of Selection, Multi-PAIS x{multi:.1f}; at {high}: x{same:.1f}. "
        f"Constructed at {low}: {built[0]:,.0f}, {built[1]:,.0f}, {built[2]:,.0f}. "
        f"Cepheid partitions by both tests at once: x{ours:.1f} of its own dynamic filtering there"
    )
    why = (
        "" if multi < 1 else "Multi-PAIS is not the slowest here: reading a stack of numbers costs little when compiled"
    )
    return Verdict(number, over > 1.2 and over > multi and 0.6 < same < 1.7, why)


# --- experiment 4 and what the paper summarises -------------------------------------------------------------------


def predicates_4(size: str) -> Sequence[Case]:
    """Simple predicates and an inequality, early or in Selection."""
    events = sized(size, 1_000, 20_000, 100_000)

    def make(share: int) -> Sequence[Contestant]:
        table = stream(events, 50)
        simple = table["attr4"].to_numpy() < share
        where = (
            "[attr1] AND " + " AND ".join(f"{name}.attr4 < {share}" for name in NAMES[:3]) + " AND e1.attr3 < e3.attr3"
        )
        text, query = pattern(3, where, 10_000), {"simple": simple, "inequality": "attr3"}
        plans = {
            "all in Selection": Technique(simple_early=False, inequality_early=False),
            "simple early": Technique(inequality_early=False),
            "simple and inequality early": Technique(),
        }
        return [
            *(by_technique(name, table, plan, **query) for name, plan in plans.items()),
            cepheid_call(OURS, table, text),
        ]

    return [Case(share, lambda share=share: make(share)) for share in points(size, (10, 20, 50, 80), (10, 50))]


def judge_4(summary: Summary) -> Verdict:
    x = summary.xs()[0]
    simple = summary.ratio("simple early", "all in Selection", x)
    inequality = summary.ratio("simple and inequality early", "simple early", x)
    number = f"simple predicates ({x} % pass) early: x{simple:.1f}; then the inequality early: x{inequality:.2f}"
    return Verdict(number, simple > 1.1 and inequality < 2)


def basic_plan(size: str) -> Sequence[Case]:
    """The initial experiment: no predicate in the scan at all. On few events, since it builds every sequence."""
    events = sized(size, 500, 2_000, 4_000)

    def make(count: int) -> Sequence[Contestant]:
        table, text = stream(count, 100), pattern(3, "[attr1, attr2] AND e1.attr3 < e3.attr3", 5_000)
        return [
            cepheid_call("Cepheid, pushdown=False", table, text, pushdown=False, max_matches=10**8),
            cepheid_call(OURS, table, text),
        ]

    return [Case(count, lambda count=count: make(count)) for count in (events // 4, events // 2, events)]


def judge_basic(summary: Summary) -> Verdict:
    x = summary.xs()[-1]
    ratio = summary.ratio(OURS, "Cepheid, pushdown=False", x)
    return Verdict(
        f"pushed down x{ratio:,.0f} faster on {x:,} events, and the distance grows with the stream", ratio > 3
    )


WINDOW_PLACES = {
    "after construction (WD)": Technique(window_in_scan=False, window_in_construction=False),
    "in the scan": Technique(window_in_construction=False),
    "in construction": Technique(window_in_scan=False),
    "in scan and construction": Technique(),
}


def window_places(size: str) -> Sequence[Case]:
    """Windows in three places: selection only, scan, construction."""
    events = sized(size, 1_000, 10_000, 40_000)

    def make(window: int) -> Sequence[Contestant]:
        table = stream(events, 100)
        return [
            *(by_technique(name, table, plan, window=window) for name, plan in WINDOW_PLACES.items()),
            cepheid_call(OURS, table, pattern(3, "[attr1]", window)),
        ]

    return [
        Case(window, lambda window=window: make(window))
        for window in points(size, (300, 1_000, 3_000, 10_000), (300, 3_000))
    ]


def judge_windows(summary: Summary) -> Verdict:
    x = summary.xs()[0]
    gains = {name: summary.ratio(name, "after construction (WD)", x) for name in WINDOW_PLACES}
    number = ", ".join(f"{name} x{gain:.1f}" for name, gain in gains.items() if gain != 1.0) + f" at W = {x}"
    return Verdict(number, gains["in scan and construction"] >= 0.9 * max(gains.values()))


def negation(size: str) -> Sequence[Case]:
    """Negation after the window operator, as in the paper, and pushed into construction, as it only suggests."""
    events = sized(size, 1_000, 20_000, 100_000)

    def make(domain: int) -> Sequence[Contestant]:
        table = stream(events, domain)
        # The negative component stands between the second and the third.
        query = {"negative": ("T9", 1)}
        text = pattern(3, "[attr1]", 10_000, "!(T9 n)")
        return [
            by_technique("no negation", table, Technique()),
            by_technique("negation after construction", table, Technique(negation_early=False), **query),
            by_technique("negation in construction", table, Technique(), **query),
            cepheid_call(OURS, table, text),
        ]

    def apart(domain: int) -> Sequence[Contestant]:
        first, *others = make(domain)
        return [Contestant(first.name, first.run, first.events, first.inspect, agrees=False), *others]

    return [
        Case(domain, lambda domain=domain: apart(domain))
        for domain in points(size, (10_000, 1_000, 200, 100, 50), (10_000, 100))
    ]


def judge_negation(summary: Summary) -> Verdict:
    low, high = summary.xs()[0], summary.xs()[-1]
    cost = {x: summary.ratio("no negation", "negation after construction", x) for x in (low, high)}
    pushed = summary.ratio("negation in construction", "negation after construction", low)
    number = (
        f"negation costs x{cost[high]:.2f} at V1 = {high:,} and x{cost[low]:.2f} at {low}; pushed down x{pushed:.1f}"
    )
    return Verdict(number, pushed > 1)


# --- experiments 5 and 6: a relational stream processor -----------------------------------------------------------


def joins_case(events: int, length: int, domain: int, keys: int) -> Sequence[Contestant]:
    """Cepheid and the n-way join that a relational system makes of it."""
    table, names = stream(events, domain), [f"attr{number}" for number in range(1, keys + 1)]
    types = [f"T{place}" for place in range(length)]
    return [
        cepheid_call(OURS, table, pattern(length, f"[{', '.join(names)}]", 10_000)),
        self_join("Spark SQL self-join", table, types, names, 10_000),
    ]


def lengths_5(size: str) -> Sequence[Case]:
    """Figure 11: L from 2 to 6 with V1 = 100."""
    events = sized(size, 2_000, 20_000, 100_000)
    return [Case(n, lambda n=n: joins_case(events, n, 100, 1)) for n in points(size, (2, 3, 4, 5, 6), (2, 3, 4))]


def domains_6(size: str) -> Sequence[Case]:
    """Figure 12: V1 from 10,000 to 10, with one and with two equivalence tests."""
    events = sized(size, 2_000, 20_000, 100_000)
    domains = points(size, (10_000, 3_000, 1_000, 300, 100, 30), (10_000, 1_000, 100))
    return [
        Case(v, lambda v=v, keys=keys: joins_case(events, 3, v, keys), f"{keys} equivalence tests")
        for keys in (1, 2)
        for v in domains
    ]


def judge_5(summary: Summary) -> Verdict:
    falls, number = {}, []
    for name in (OURS, "Spark SQL self-join"):
        xs = summary.xs(name)
        falls[name] = summary.value(name, xs[-1]) / summary.value(name, xs[0])
        number.append(f"{name} keeps {falls[name]:.2f} of its rate from L = {xs[0]} to {xs[-1]}")
    x = summary.xs("Spark SQL self-join")[-1]
    number.append(f"Cepheid x{summary.ratio(OURS, 'Spark SQL self-join', x):,.0f} of the join at L = {x}")
    return Verdict("; ".join(number), falls[OURS] > falls["Spark SQL self-join"])


def judge_6(summary: Summary) -> Verdict:
    number, holds = [], True
    for series in summary.series():
        x = summary.xs("Spark SQL self-join", series)[0]
        top = summary.xs(series=series)[-1]
        kept = {
            name: summary.value(name, x, series) / summary.value(name, top, series) for name in summary.contestants()
        }
        number.append(
            f"{series}: at V1 = {x} Cepheid keeps {kept[OURS]:.2f} of the rate at {top:,},"
            f" the join {kept['Spark SQL self-join']:.2f}"
            f" (Cepheid x{summary.ratio(OURS, 'Spark SQL self-join', x, series):,.0f})"
        )
        holds &= kept[OURS] >= kept["Spark SQL self-join"]
    why = (
        ""
        if holds
        else "Cepheid's rate at V1 = 10,000 is so high that writing the matches weighs more at the other end"
    )
    return Verdict("; ".join(number), holds, why)


EXPERIMENTS = (
    Experiment(
        "sase-1",
        "SASE figure 8 (experiment 1)",
        "Active instance stacks, by domain size",
        "AIS x18 of Basic at V1 = 100, about equal at 10,000",
        "V1",
        domains_1,
        judge_1,
        log_x=True,
        notes=KERNEL,
        yardsticks=PLANS,
    ),
    Experiment(
        "sase-2",
        "SASE figure 9 (experiment 2)",
        "Active instance stacks, by window",
        "Basic falls much faster with W than AIS",
        "W",
        windows_2,
        judge_2,
        notes=KERNEL,
        yardsticks=PLANS,
    ),
    Experiment(
        "sase-3",
        "SASE figure 10 (experiment 3)",
        "Where to test a second attribute",
        "Dynamic Filtering ahead below V1 = 500, Multi-PAIS even behind Selection, all alike above",
        "V1",
        second_tests_3,
        judge_3,
        log_x=True,
        weight=2.0,
        notes=KERNEL,
        yardsticks=PLANS,
    ),
    Experiment(
        "sase-4",
        "SASE experiment 4",
        "Simple and other predicates pushed down",
        "simple predicates pushed down always help; then other predicates in Selection cost little",
        "percent that pass",
        predicates_4,
        judge_4,
        notes=KERNEL,
        yardsticks=PLANS,
    ),
    Experiment(
        "sase-basic",
        "SASE section 5.3, initial experiment",
        "Nothing pushed down",
        "without one equivalence test in the scan the experiment could not be completed",
        "events",
        basic_plan,
        judge_basic,
    ),
    Experiment(
        "sase-windows",
        "SASE section 5.3, other experiments",
        "Windows in three places",
        "pushing windows to both scan and construction is effective",
        "W",
        window_places,
        judge_windows,
        log_x=True,
        notes=KERNEL,
        yardsticks=PLANS,
    ),
    Experiment(
        "sase-negation",
        "SASE section 5.3, other experiments",
        "Negation pushed down or not",
        "modest cost where few sequences remain, more otherwise: one might push it down",
        "V1",
        negation,
        judge_negation,
        log_x=True,
        notes=KERNEL,
        yardsticks=PLANS,
    ),
    Experiment(
        "sase-5",
        "SASE figure 11 (experiment 5)",
        "Sequence length against an n-way join",
        "TelegraphCQ falls below 0.01 of its rate at L >= 5, SASE keeps 0.5 at L = 6",
        "L",
        lengths_5,
        judge_5,
        needs=("spark",),
    ),
    Experiment(
        "sase-6",
        "SASE figure 12 (experiment 6)",
        "Domain size against an n-way join",
        "TelegraphCQ falls much faster than SASE as V1 shrinks; a second test helps SASE more",
        "V1",
        domains_6,
        judge_6,
        log_x=True,
        weight=2.0,
        needs=("spark",),
    ),
)

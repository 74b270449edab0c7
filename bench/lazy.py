"""LAZY's measurements: how many candidates each order of evaluation looks at (its figures 7 to 10).

The stream and the query are the paper's: stocks that carry their price history, three in sequence, neighbours
correlated. Eager is the run engine, which fills components in the order of the sequence as events come. Evaluations
are counted alike in all engines: one for each candidate looked at on a take edge, after its own conditions.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import cepheid
from bench.measure import plot_lines, print_table, save
from cepheid.engine.data.table import EventTable, ordered
from cepheid.engine.find import find
from cepheid.language.bound import BoundQuery
from cepheid.language.schema import Schema
from cepheid.plan.physical import Plan
from cepheid.simulate.correlated import correlated_stocks, correlation_query

WINDOW = 200  # events, one per unit of time: twenty prices, ten events a minute
CHAINS = ["".join(order) for order in itertools.permutations("abc")]
COUNTERS = {"evaluations": "evaluations", "peaks": "peak_partial_matches"}
Counts = dict[str, dict[str, int]]


def plans(bound: BoundQuery) -> dict[str, Plan]:
    """Eager, every chain, the tree, and the tree by the paper's counters alone."""
    place = bound.place_of
    chains = {chain: tuple(place[name] for name in chain) for chain in CHAINS}
    return {
        "eager": Plan(bound, "runs"),
        **{f"chain {name}": Plan(bound, "lazy-chain", order=order) for name, order in chains.items()},
        "tree, counters only": Plan(bound, "lazy-tree", options={"learn": False}),
        "tree": Plan(bound, "lazy-tree"),
    }


def prepared(simulated: Any, text: str) -> tuple[BoundQuery, EventTable]:
    """The query and the events, as engines take them."""
    bound = cepheid.query(text).bind(Schema.from_arrow(simulated.events.schema))
    return bound, ordered(simulated.events, bound.schema)


def counted(simulated: Any, text: str) -> Counts:
    """What every engine counts on one stream; all of them must find the same number of matches."""
    bound, events = prepared(simulated, text)
    found = {name: find(plan, events) for name, plan in plans(bound).items()}
    assert len({len(matches) for matches in found.values()}) == 1
    return {key: {n: m.counters[counter] for n, m in found.items()} for key, counter in COUNTERS.items()}


def best_chain(evaluations: Mapping[str, int]) -> tuple[int, str]:
    """The chain with the fewest evaluations."""
    return min((count, name) for name, count in evaluations.items() if name.startswith("chain"))


def frequencies(quick: bool) -> dict[str, Any]:
    """Figures 7 and 9: c is made rarer and rarer beside a and b."""
    events = 5_000 if quick else 40_000
    shares = [0.01, 0.1, 1.0] if quick else [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0]
    text = correlation_query(window=WINDOW)
    measured = [counted(correlated_stocks(events, rare_frequency=share, seed=1), text) for share in shares]
    names = list(measured[0]["evaluations"])
    for key, title in (("evaluations", "Evaluations"), ("peaks", "Partial matches held at a time")):
        rows = [[name, *(each[key][name] for each in measured)] for name in names]
        print_table(f"{title}, by the frequency of c beside a and b ({events:,} events)", ["", *map(str, shares)], rows)
    plot_lines(
        "lazy_frequency",
        "Lazy evaluation of SEQ(a, b, c)",
        ("frequency of c beside a and b", shares),
        "evaluations",
        {name: [each["evaluations"][name] for each in measured] for name in names},
        log_x=True,
        log_y=True,
    )
    plot_lines(
        "lazy_memory",
        "Partial matches of SEQ(a, b, c)",
        ("frequency of c beside a and b", shares),
        "held at a time",
        {name: [each["peaks"][name] for each in measured] for name in names},
        log_x=True,
        log_y=True,
    )
    low = measured[0]["evaluations"]
    gain = low["eager"] / low["tree"]
    worst = max(each["evaluations"]["tree"] / best_chain(each["evaluations"])[0] for each in measured)
    print(f"\nAt {shares[0]}: {gain:,.0f} times fewer evaluations than eager. Tree / best chain, at worst: {worst:.2f}")
    return {
        "events": events,
        "frequency_of_c": shares,
        **{key: {name: [each[key][name] for each in measured] for name in names} for key in COUNTERS},
        "eager_over_tree_at_the_low_end": gain,
        "tree_over_best_chain_at_worst": worst,
    }


def places(quick: bool) -> dict[str, Any]:
    """Figure 8: the rarest event first, in the middle, last."""
    events, share = (5_000, 0.01) if quick else (40_000, 0.01)
    stream = correlated_stocks(events, rare_frequency=share, seed=1)
    measured = {
        order: counted(stream, correlation_query(window=WINDOW, order=order))["evaluations"]
        for order in ("abc", "acb", "cba")
    }
    rows = [[name, *(each[name] for each in measured.values())] for name in measured["abc"]]
    titles = ["", *(f"SEQ({', '.join(order)})" for order in measured)]
    print_table(f"Evaluations, by the place of the rarest ({events:,} events, c at {share})", titles, rows)
    return {"events": events, "frequency_of_c": share, "evaluations": measured}


def shifting(quick: bool) -> dict[str, Any]:
    """Figure 10: the rarest event changes every so many events."""
    stretch, interval = (3_000, 1_000) if quick else (100_000, 10_000)
    events = 3 * stretch
    stream = correlated_stocks(events, rare_frequency=0.05, switch_every=stretch, seed=1)
    bound, ranked = prepared(stream, correlation_query(window=WINDOW))
    counts: dict[str, list[int]] = {name: [] for name in plans(bound)}
    whole = {name: find(plans(bound)[name], ranked).counters["evaluations"] for name in ("eager", "tree")}
    for begin in range(0, events, interval):
        # The events of one interval, and of the window before it; each match is found where it ends.
        first = max(0, begin - WINDOW)
        part = ordered(ranked.table.slice(first, begin + interval - first), bound.schema)
        for name, plan in plans(bound).items():
            counts[name].append(find(plan, part, begin - 1, None).counters["evaluations"])
    totals = {name: sum(each) for name, each in counts.items()}
    best, chain = best_chain(totals)
    rows = [[name, total, total / best] for name, total in totals.items()]
    title = f"Evaluations while the rarest event changes every {stretch:,} of {events:,} events"
    print_table(title, ["", "evaluations", f"beside {chain}"], rows)
    plot_lines(
        "lazy_shifting",
        f"The rarest event changes every {stretch:,} events",
        ("events", [begin + interval for begin in range(0, events, interval)]),
        f"evaluations per {interval:,} events",
        counts,
        log_y=True,
    )
    return {
        "events": events,
        "stretch": stretch,
        "interval": interval,
        "evaluations_per_interval": counts,
        "evaluations": totals,
        "evaluations_in_one_call": whole,
        "tree_over_best_chain": totals["tree"] / best,
    }


def main(quick: bool = False) -> dict[str, Any]:
    """Prints tables, keeps numbers and plots in bench/results."""
    numbers = {"frequencies": frequencies(quick), "places": places(quick), "shifting": shifting(quick)}
    save("lazy", numbers)
    return numbers


if __name__ == "__main__":
    main()

"""What lazy engines save on streams of some thousand events, in numbers of evaluations."""

from __future__ import annotations

import itertools
from typing import Any

import cepheid
from cepheid.engine.data.table import ordered
from cepheid.engine.find import find
from cepheid.language.schema import Schema
from cepheid.plan.physical import Plan
from cepheid.simulate.correlated import correlated_stocks


def counters(stream: Any, engine: str, **plan: Any) -> dict[str, int]:
    bound = cepheid.query(stream.query).bind(Schema.from_arrow(stream.events.schema))
    return dict(find(Plan(bound, engine, **plan), ordered(stream.events, bound.schema)).counters)


def test_the_tree_is_as_good_as_the_best_chain_and_better_when_the_rarest_changes() -> None:
    steady = correlated_stocks(1_500, rare_frequency=0.05, history=5, seed=1)
    shifting = correlated_stocks(3_600, rare_frequency=0.05, switch_every=600, history=5, seed=1)
    for stream, share in ((steady, 1.1), (shifting, 0.6)):
        orders = itertools.permutations(range(3))
        chains = [counters(stream, "lazy-chain", order=order)["evaluations"] for order in orders]
        assert counters(stream, "lazy-tree")["evaluations"] <= share * min(chains)
    assert counters(shifting, "lazy-tree")["segments"] >= 6
    assert counters(steady, "lazy-tree")["states"] <= 5

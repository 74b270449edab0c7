"""How many combinations an evaluation order considers: the cost that LAZY section 7 counts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from cepheid.language.bound import BoundQuery, Conjunct
from cepheid.plan.equalities import indexable
from cepheid.plan.statistics import DEFAULT_SELECTIVITY, Statistics

MAX_ORDERS = 5040  # up to seven components every order is priced; beyond that, rarest first


def considered(bound: BoundQuery, statistics: Statistics, order: Sequence[int]) -> float:
    """Combinations considered per window and partition, if components are filled in this order.

    Filling a component multiplies by how many of its events lie in the window; each condition that becomes
    testable keeps its share. The order of time between events halves the choices at every step after the first.
    Where an equality finds events by value, only those that it keeps are looked at: of several, by the most selective.
    """
    total, alive = 0.0, 1.0
    chosen: set[str] = set()
    by_value = frozenset(indexable(bound))
    for step, place in enumerate(order):
        rate = statistics.per_window[place]
        alive *= rate * (0.5 if step else 1.0)
        before = set(chosen)
        chosen.add(bound.positives[place].variable)
        kept, looked_at = 1.0, 1.0
        for number, conjunct in enumerate(bound.conjuncts):
            if _testable(conjunct, chosen) and not _testable(conjunct, before):
                share = statistics.selectivity.get(number, DEFAULT_SELECTIVITY)
                kept *= share
                looked_at = min(looked_at, share) if conjunct in by_value else looked_at
        total += alive * looked_at
        alive *= kept
    return total


def _testable(conjunct: Conjunct, chosen: set[str]) -> bool:
    return conjunct.own or conjunct.variables <= chosen


def eager_order(bound: BoundQuery) -> tuple[int, ...]:
    """The order of the sequence engine: backwards from the last component (SASE section 4.1)."""
    return tuple(reversed(range(len(bound.positives))))


def cheapest_order(bound: BoundQuery, statistics: Statistics) -> tuple[tuple[int, ...], float]:
    """The order that considers the fewest combinations (LAZY section 5), and how many those are."""
    places = range(len(bound.positives))
    rarest_first = tuple(sorted(places, key=lambda place: statistics.per_window[place]))
    count = 1
    for place in places:
        count *= place + 1
    orders = permutations(places) if count <= MAX_ORDERS else iter([rarest_first])
    best = min(orders, key=lambda order: considered(bound, statistics, order))
    return best, considered(bound, statistics, best)

"""How many events an engine tests: the cost that LAZY section 7 counts, for each order and for runs that are merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, prod
from typing import NamedTuple

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.plan.equalities import indexable
from cepheid.plan.statistics import DEFAULT_SELECTIVITY, Statistics

MOST_COMPONENTS = 7  # up to so many every order is priced; beyond that, rarest first


class _Condition(NamedTuple):
    """A condition between components."""

    places: frozenset[int]
    share: float  # of combinations that it keeps
    by_value: bool  # an equality: an index finds the events that it keeps


def _conditions(bound: BoundQuery, statistics: Statistics) -> list[_Condition]:
    """Those that some order can test early. What is asked of one event alone is in the rates."""
    indexed = frozenset(indexable(bound))
    found = [
        _Condition(
            frozenset(bound.place_of[name] for name in conjunct.variables),
            statistics.selectivity.get(number, DEFAULT_SELECTIVITY),
            conjunct in indexed,
        )
        for number, conjunct in enumerate(bound.conjuncts)
        if not conjunct.own and conjunct.variables and conjunct.variables <= bound.place_of.keys()
    ]
    return [each for each in found if each.share < 1.0] + _absences(bound, statistics)


def _absences(bound: BoundQuery, statistics: Statistics) -> list[_Condition]:
    """Negated components between two events that are tied to none by value.

    If so many of them are met in a window, their number in a part of it is anything up to that. Where no condition ties
    them at all, an event that they kill ends the search, so that only what survives is looked at.
    """
    found = []
    for number, negation in enumerate(bound.negations, len(bound.positives)):
        parts = [part for branch in bound.branches for part in branch.passed_by(negation.component.variable)]
        ties = [part for part in parts if len(s.variables_of(part)) > 1]
        untied = all(same_key(bound, part) for part in ties)
        if untied and negation.after is not None and negation.before is not None and number < len(statistics.met):
            around = frozenset((negation.after, negation.before))
            found.append(_Condition(around, 1.0 / (1.0 + statistics.met[number]), not ties))
    return found


def same_key(bound: BoundQuery, condition: s.Expression) -> bool:
    """Is it an equality that all events of a partition pass?"""
    match condition:
        case s.Comparison(operator="=", left=s.Attribute(name=left), right=s.Attribute(name=right)):
            return left == right and left in bound.equivalence
    return False


def _step(
    conditions: Sequence[_Condition], statistics: Statistics, filled: frozenset[int], place: int, alive: float
) -> tuple[float, float]:
    """Events that are tested to fill one more place of so many partial matches, and the partial matches after that.

    Events follow each other in the window: the more are chosen, the less room is there for one more. Where an equality
    finds events by value, only those that it keeps are tested: of several, by the most selective.
    """
    alive *= statistics.met_by_others[place] / len(filled) if filled else statistics.candidates_of[place]
    kept, tested = statistics.agreeing if filled else 1.0, 1.0
    after = filled | {place}
    for condition in conditions:
        if place in condition.places and condition.places <= after:
            kept *= condition.share
            tested = min(tested, condition.share) if condition.by_value else tested
    return alive * tested, alive * kept


def _considered(conditions: Sequence[_Condition], statistics: Statistics, order: Sequence[int]) -> float:
    total, alive = 0.0, 1.0
    for step, place in enumerate(order):
        tested, alive = _step(conditions, statistics, frozenset(order[:step]), place, alive)
        total += tested
    return total


def _cheapest_order(
    conditions: Sequence[_Condition], statistics: Statistics, places: range
) -> tuple[tuple[int, ...], float]:
    """How many partial matches are alive depends on the first place and on the set of the others, not on their order.

    So the best order of a set is the best order of some smaller set and one place more.
    """
    if len(places) > MOST_COMPONENTS:
        order = tuple(sorted(places, key=lambda place: statistics.candidates_of[place]))
        return order, _considered(conditions, statistics, order)
    reached: dict[tuple[int, frozenset[int]], tuple[float, tuple[int, ...], float]] = {}
    for place in places:
        tested, alive = _step(conditions, statistics, frozenset(), place, 1.0)
        reached[place, frozenset((place,))] = tested, (place,), alive
    for _ in places[1:]:
        longer: dict[tuple[int, frozenset[int]], tuple[float, tuple[int, ...], float]] = {}
        for (first, filled), (total, order, before) in reached.items():
            for place in (each for each in places if each not in filled):
                tested, alive = _step(conditions, statistics, filled, place, before)
                found, key = (total + tested, (*order, place), alive), (first, filled | {place})
                longer[key] = min(found, longer.get(key, found))
        reached = longer
    cost, order, _ = min(reached.values())
    return order, cost


class RunWork(NamedTuple):
    """What the run engine does in the whole table."""

    tested: float
    matches: float


def _forwards(
    conditions: Sequence[_Condition], statistics: Statistics, rates: Sequence[float], merges: bool
) -> RunWork:
    numbers = statistics.candidates_of
    total, waiting = numbers[0], 1.0
    for place in range(1, len(numbers)):
        waiting *= rates[place - 1] / place * (statistics.agreeing if place > 1 else 1.0)
        now = [each for each in conditions if max(each.places) == place]
        found = min((each.share for each in now if each.by_value), default=1.0)
        alike = _told_apart(conditions, rates, place) if merges else inf
        total += numbers[place] * min(waiting * found, alike)
        waiting *= prod(each.share for each in now)
    return RunWork(total, numbers[-1] * waiting * (statistics.agreeing if len(numbers) > 1 else 1.0))


def _told_apart(conditions: Sequence[_Condition], rates: Sequence[float], place: int) -> float:
    """Runs that an event of this place is tested against: those that no later condition tells apart are merged.

    What only equalities read is merged by value, and found by value where the equality is tested now.
    """
    runs = 1.0
    for other in range(place):
        reading = [each for each in conditions if other in each.places and max(each.places) >= place]
        values = [1.0 / each.share for each in reading if each.by_value]
        known = rates[other] if len(values) < len(reading) else min([rates[other], *values])
        looked_up = [each.share for each in reading if each.by_value and max(each.places) == place]
        runs *= max(known * min(looked_up), 1.0) if looked_up else known if reading else 1.0
    return runs


@dataclass(frozen=True)
class Work:
    """What engines do for a query in the whole table. Each number is computed once, when an engine asks for it."""

    bound: BoundQuery
    statistics: Statistics

    @cached_property
    def _conditions(self) -> list[_Condition]:
        return _conditions(self.bound, self.statistics)

    @cached_property
    def backwards(self) -> float:
        """Events tested in the order of the sequence engine: backwards from the last component (SASE section 4.1)."""
        return _considered(self._conditions, self.statistics, tuple(reversed(range(len(self.bound.positives)))))

    @property
    def stacked(self) -> float:
        """The share of the last component's events behind which every other component has one: the others are not
        stacked."""
        return prod(min(rate, 1.0) for rate in self.statistics.met_by_others[: len(self.bound.positives) - 1])

    @cached_property
    def cheapest_order(self) -> tuple[tuple[int, ...], float]:
        """The order that tests the fewest events (LAZY section 5), and how many those are."""
        return _cheapest_order(self._conditions, self.statistics, range(len(self.bound.positives)))

    @cached_property
    def runs(self) -> RunWork:
        """Events that are tested against runs, first component first, and the matches that are written down.

        With OUTPUT NON-OVERLAP a match ends all runs of its partition, so runs are no older than the last match: there
        are as few as in a window that holds one match.
        """
        bound, statistics = self.bound, self.statistics
        rates, places = statistics.met_by_others, len(bound.positives)
        merges = not bound.negations  # where something must not happen in between, few runs are alike
        work = _forwards(self._conditions, statistics, rates, merges)
        prunes = bound.output.mode is s.OutputMode.NON_OVERLAP and not bound.postponed and statistics.agreeing == 1.0
        in_a_window = work.matches * rates[places - 1] / max(statistics.candidates_of[places - 1], 1.0)
        if not prunes or in_a_window <= 1.0:
            return work
        shorter = in_a_window ** (-1.0 / places)
        return _forwards(self._conditions, statistics, [rate * shorter for rate in rates], merges)

    @cached_property
    def matches(self) -> float:
        """How many matches there are, overlapping or not."""
        return _forwards(self._conditions, self.statistics, self.statistics.met_by_others, False).matches

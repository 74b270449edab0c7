"""Where each condition is tested, decided once for every search: by the events it needs and the order they come in.

A search either follows the pattern (no order given: conditions stand where the automaton of SASE+ section 3.2 puts
them), or fills the places in another order (stacks go backwards, intervals by selectivity), or in any order (lazy):
then each condition stands alone and says which places it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cepheid.engine.data.candidates import first_conditions, own_conditions
from cepheid.engine.program.missing import has_default
from cepheid.engine.program.tables import BEGIN, CLOSE, OUTSIDE, TAKE
from cepheid.language import syntax as s
from cepheid.language.bind import place_conjunct
from cepheid.language.bound import BoundQuery, Branch, Conjunct, Negation
from cepheid.plan import placement
from cepheid.plan.automaton import QueryAutomaton
from cepheid.plan.automaton import Test as EdgeTest

Order = tuple[int, ...] | Literal["any"] | None


@dataclass(frozen=True)
class Test:
    """Conditions that are tested together, the groups each of whose elements they must hold for, the places needed."""

    conditions: tuple[s.Expression, ...]
    walks: tuple[tuple[int, bool], ...]  # the place of a group; is it walked from the second element on?
    needs: int  # bit p: place p


@dataclass(frozen=True)
class PlacedNegation:
    """A negated component with its neighbours, the places it needs, when it is judged, and what it kills with."""

    negation: Negation
    needs: int
    judged_at: int
    group: int
    linked: bool = False


@dataclass(frozen=True)
class Placed:
    """All tests by moment, all negations by disjunct."""

    judged: bool
    branches: int
    moments: tuple[tuple[Test, ...], ...]
    negations: tuple[PlacedNegation, ...]

    def tests(self) -> Iterable[Test]:
        """All tests, in the order of the moments."""
        return (test for moment in self.moments for test in moment)


def place_conditions(bound: BoundQuery, order: Order, push: bool, variants: bool) -> Placed:
    """Puts every condition of a query where a search that fills places in an order can test it."""
    return _Placing(bound, order, push, variants).place()


def place_on_edges(bound: BoundQuery, automaton: QueryAutomaton) -> Placed:
    """The conditions of a pattern that is an expression: those of each edge and of what it passes, and of each end."""
    placing = _Placing(bound, None, True, False)
    outside = dict(automaton.outside)
    nothing: list[tuple[Test, ...]] = [()] * (3 * len(bound.positives))
    moments = nothing + [placing.edge_tests(outside.get(name, ())) for name in placing.negated]
    for state in automaton.states:
        for edge in state.takes:
            moments = [*moments, placing.edge_tests(edge.guard)]
            moments += [placing.edge_tests(tests) for _, tests in edge.forbids]
        end = automaton.end(state)
        moments.append(placing.edge_tests(end.guard) if end is not None else ())
    # Edges say where negated components are judged, not places; those outside are judged on complete matches.
    negations = [
        replace(placed, judged_at=OUTSIDE if name in outside else -1)
        for name, placed in zip(placing.negated, placing.negations(placing.branches[0]), strict=True)
    ]
    return Placed(False, 1, tuple(moments), tuple(negations))


class _Placing:
    def __init__(self, bound: BoundQuery, order: Order, push: bool, variants: bool) -> None:
        self.bound, self.order, self.push, self.variants = bound, order, push, variants
        self.branches = placement.decisive_branches(bound)
        self.judged = placement.judged_by_branch(self.branches)
        self.last = len(bound.positives) - 1
        self.everything = (1 << len(bound.positives)) - 1
        self.negated = [negation.component.variable for negation in bound.negations]

    def place(self) -> Placed:
        moments = self.followed() if self.order is None else self.ordered(self.order)
        for index in range(len(self.negated)):
            moments.append(self.negation_tests(self.branches[0], index) if not self.judged else ())
        negations = self.negations(self.branches[0])
        if self.judged:
            negations = tuple(placed for branch in self.branches for placed in self.negations(branch))
            for branch in self.branches:
                parts = [place_conjunct(part, list(self.bound.positives)) for part in branch.positive]
                moments.append(self.tests(parts))
                moments += [self.negation_tests(branch, index) for index in range(len(self.negated))]
        return Placed(self.judged, len(self.branches), tuple(moments), negations)

    def needs(self, expressions: Iterable[s.Expression]) -> int:
        """The places that conditions mention; those of defaults only count where events may be missing."""
        found: set[str] = set()
        for expression in expressions:
            if self.variants:
                found |= {node.variable for node in s.walk(expression) if isinstance(node, s.Reference | s.Length)}
            else:
                found |= s.variables_of(expression)
        return sum(1 << place for name, place in self.bound.place_of.items() if name in found)

    def tests(self, conjuncts: Sequence[Conjunct], at_hand: str | None = None) -> tuple[Test, ...]:
        """The tests of one moment: one for all plain conditions together, one for each that goes over groups.

        Where the search picks tests by what they need, or a variant of each by what is missing, all stand alone.
        """
        found: list[Test] = []
        plain: list[s.Expression] = []
        for conjunct in conjuncts:
            walked = sorted(conjunct.every - {at_hand}, key=lambda name: (self.bound.place_of[name], name))
            if not walked and not self.variants and self.order != "any":
                plain.append(conjunct.expression)
                continue
            walks = tuple((self.bound.place_of[name], name in conjunct.from_second) for name in walked)
            found.append(Test((conjunct.expression,), walks, self.needs([conjunct.expression])))
        if plain:
            found.insert(0, Test(tuple(plain), (), self.needs(plain)))
        return tuple(found)

    def edge_tests(self, tests: Iterable[EdgeTest]) -> tuple[Test, ...]:
        """The tests of an edge, but for what is decided beforehand."""
        done = {part for each in self.bound.components for part in own_conditions(self.bound, each)}
        done |= {part for each in self.bound.positives for part in first_conditions(self.bound, each)}
        found: list[Test] = []
        plain = tuple(test.expression for test in tests if not test.walked and test.expression not in done)
        if plain:
            found.append(Test(plain, (), self.needs(plain)))
        for test in tests:
            if test.walked:
                walks = tuple((self.bound.place_of[name], False) for name in test.walked)
                found.append(Test((test.expression,), walks, self.needs([test.expression])))
        return tuple(found)

    # positive components

    def undecided(self, conjuncts: Iterable[Conjunct]) -> list[Conjunct]:
        """Without the conditions that were tested beforehand, over whole columns."""
        return [conjunct for conjunct in conjuncts if not self.decided(conjunct)]

    def decided(self, conjunct: Conjunct) -> bool:
        if not conjunct.own or (self.variants and has_default(conjunct.expression)):
            return False
        component = self.bound.positives[conjunct.place]
        done = own_conditions(self.bound, component) + first_conditions(self.bound, component)
        return conjunct.expression in done

    def followed(self) -> list[tuple[Test, ...]]:
        """The moments of the places when a search follows the pattern."""
        moments: list[tuple[Test, ...]] = []
        for place, component in enumerate(self.bound.positives):
            moments.append(self.tests(self.undecided(placement.begin_conjuncts(self.bound, place)), component.variable))
            moments.append(self.tests(self.undecided(placement.take_conjuncts(self.bound, place)), component.variable))
            moments.append(self.tests(placement.close_conjuncts(self.bound, place)))
        return moments

    def ordered(self, order: tuple[int, ...] | Literal["any"]) -> list[tuple[Test, ...]]:
        """The moments when places are filled in an order: a Kleene group is judged when it is complete."""
        moments: list[list[Conjunct]] = [[] for _ in range(3 * len(self.bound.positives))]
        for conjunct in self.undecided(self.bound.conjuncts):
            if order == "any":
                moments[BEGIN].append(conjunct)
                continue
            place = self.last_of(self.needs([conjunct.expression]), order)
            moment = CLOSE if self.bound.positives[place].kleene else BEGIN
            moments[3 * place + moment].append(conjunct)
        assert not any(moments[TAKE::3])
        return [self.tests(conjuncts) for conjuncts in moments]

    def last_of(self, needs: int, order: tuple[int, ...]) -> int:
        """The place with which all that is needed is filled."""
        if not self.push:
            return order[-1]
        return next((place for place in reversed(order) if needs & (1 << place)), order[0])

    # negated components

    def negation_conjuncts(self, branch: Branch, index: int) -> list[Conjunct]:
        """What an event of a negated component must pass; what several of them share stands at the last of these."""
        component = self.bound.negations[index].component
        done = own_conditions(self.bound, component) if not self.judged else []
        components = [*self.bound.positives, *(negation.component for negation in self.bound.negations)]
        later = set(self.negated[index + 1 :])
        return [
            place_conjunct(part, components)
            for part in branch.passed_by(component.variable)
            if part not in done and not s.variables_of(part) & later
        ]

    def negation_tests(self, branch: Branch, index: int) -> tuple[Test, ...]:
        return self.tests(self.negation_conjuncts(branch, index))

    def negations(self, branch: Branch) -> tuple[PlacedNegation, ...]:
        """The negated components of a disjunct. Those that a condition links kill, and are judged, together."""
        linked = placement.linked_negations(self.bound, branch)
        placed = [self.negation(branch, index, linked) for index in range(len(self.negated))]
        return tuple(self.together(one, [other for other in placed if other.group == one.group]) for one in placed)

    def negation(self, branch: Branch, index: int, linked: dict[str, int]) -> PlacedNegation:
        bound, negation = self.bound, self.bound.negations[index]
        ends = {0, self.last} if negation.after is None or negation.before is None else set()
        near = {place for place in (negation.after, negation.before) if place is not None}
        needs = self.needs(conjunct.expression for conjunct in self.negation_conjuncts(branch, index))
        needs |= sum(1 << place for place in ends | near)
        # Where attributes may be absent, a later event may still say what an absent one should be.
        if self.judged or bound.may_lack:
            needs = self.everything
        group = linked[negation.component.variable]
        return PlacedNegation(negation, needs, placement.judging_place(bound, negation, self.branches), group)

    def together(self, placed: PlacedNegation, group: Sequence[PlacedNegation]) -> PlacedNegation:
        needs = 0
        for member in group:
            needs |= member.needs
        judged_at = max(member.judged_at for member in group)
        if isinstance(self.order, tuple):
            judged_at = self.last_of(needs, self.order)
        return replace(placed, needs=needs, judged_at=judged_at, linked=len(group) > 1)

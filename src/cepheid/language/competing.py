"""skip_till_next_match for patterns that are expressions: the linear patterns compete for every event.

A run stands for all linear patterns that agree with what it took, and does not pass an event that one of them could
take. So the matches of one linear pattern are those of skip_till_any_match without any such event in between: each kind
of event that may not be passed is a negated component in front of the step before which it must not lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.linear import Competitor, Linear, Step, Writer
from cepheid.language.normal import disjuncts
from cepheid.language.unchosen import FALSE, TRUE

NEXT = s.Strategy.SKIP_TILL_NEXT


class Competition:
    """The linear patterns of a query, and what each of them tests at its steps."""

    def __init__(self, bound: BoundQuery, patterns: Sequence[Linear]) -> None:
        self.bound = bound
        self.negated = frozenset(component.variable for component in bound.components if component.negative)
        self.positive = [self.without_negated(linear) for linear in patterns]
        tests = (self.tests(linear) for linear in self.positive)
        self.known = [(linear, test) for linear, test in zip(self.positive, tests, strict=True) if test is not None]

    def without_negated(self, linear: Linear) -> Linear:
        """The positive steps: negation is judged when a match is complete, and takes no part in the competition."""
        return tuple(step for step in linear if step.variable not in self.negated)

    def tests(self, linear: Linear) -> dict[int, list[s.Expression]] | None:
        """What is tested at each step; None if it cannot hold."""
        writer = Writer(self.bound, linear)
        found: dict[int, list[s.Expression]] = {}
        for conjunct in self.bound.conjuncts:
            if s.variables_of(conjunct.expression) & self.negated:
                continue
            for expression, moment in writer.written(conjunct.expression, False):
                found.setdefault(moment, []).append(expression)
        for expression, moment in writer.gap_conditions():
            found.setdefault(moment, []).append(expression)
        return None if any(FALSE in each for each in found.values()) else found

    def competing_events(self, linear: Linear) -> Iterator[Competitor]:
        """The events that a match of a linear pattern must not have passed."""
        own = self.without_negated(linear)
        numbers = [number for number, step in enumerate(linear) if step.variable not in self.negated]
        own_tests = self.tests(own) or {}
        names = Writer(self.bound, own).names
        seen: set[object] = set()
        for place in range(1, len(own)):
            variables = [step.variable for step in own[:place]]
            if self.bound.reached_by(own[place].variable, own[place].variable in variables) is not NEXT:
                continue
            agreeing = [
                (other, tests)
                for other, tests in self.known
                if len(other) > place and [step.variable for step in other[:place]] == variables
            ]
            further = [(other, tests) for other, tests in agreeing if _begins_round(other, place)]
            # Where a further round could begin, only what fills it ends the run.
            for other, tests in further or agreeing:
                held = {expression for step in range(place) for expression in own_tests.get(step, ())}
                before = [e for step in range(place) for e in tests.get(step, ()) if e not in held]
                for conditions in self.readings(other[place], tests.get(place, []), before, [*names[:place]]):
                    key = (place, other[place].variable, conditions)
                    if key not in seen:
                        seen.add(key)
                        yield self.competitor(numbers[place], len(seen), other[place], conditions)

    def readings(
        self, step: Step, here: list[s.Expression], before: list[s.Expression], names: list[str]
    ) -> Iterator[tuple[s.Expression, ...]]:
        """Each way in which an event can pass what a pattern tests, the event being called `*`."""

        def renamed(node: s.Expression) -> s.Expression:
            if isinstance(node, s.Reference) and node.variable not in names:
                return s.Reference("*", span=node.span)
            return s.rebuild(node, renamed)

        clauses = [renamed(expression) for expression in (*before, *here)]
        for literals in disjuncts(s.And(tuple(clauses)) if clauses else None):
            values = [_constant(literal) for literal in literals]
            if False not in values:
                yield tuple(literal for literal, value in zip(literals, values, strict=True) if value is None)

    def competitor(self, before: int, number: int, step: Step, conditions: tuple[s.Expression, ...]) -> Competitor:
        """A negated component for one kind of event."""
        name = f"{step.variable} passed {number}"

        def named(node: s.Expression) -> s.Expression:
            if isinstance(node, s.Reference) and node.variable == "*":
                return s.Reference(name, span=node.span)
            return s.rebuild(node, named)

        component = next(each for each in self.bound.components if each.variable == step.variable)
        negated = replace(component, variable=name, negative=True, kleene=False, named=True, gap=None)
        written = (named(condition) for condition in conditions)
        return Competitor(before, negated, tuple(self.about(name, condition) for condition in written))

    def about(self, name: str, condition: s.Expression) -> s.Expression:
        """The condition as one that mentions the event, so that it decides whether the event counts."""
        if name in s.variables_of(condition):
            return condition
        there = s.IsNull(s.Attribute(s.Reference(name), self.bound.schema.time), negated=True)
        return s.Comparison("=", s.And((condition, there)), TRUE)


def _begins_round(linear: Linear, place: int) -> bool:
    """Is the step a further round of a repeated part that the step before it is in?"""
    before, here = dict(linear[place - 1].rounds), dict(linear[place].rounds)
    return any(here.get(name) == number + 1 for name, number in before.items())


def _constant(node: s.Expression) -> bool | None:
    """The value of a condition between numbers, such as one on the number of rounds; None: it depends on events."""
    match node:
        case s.Literal(value=bool() as value):
            return value
        case s.Comparison(operator=sign, left=s.Literal(value=int() as left), right=s.Literal(value=int() as right)):
            outcomes = {"=": left == right, "!=": left != right, "<": left < right, "<=": left <= right}
            return {**outcomes, ">": left > right, ">=": left >= right}[sign]
    return None

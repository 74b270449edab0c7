"""Which conditions of a query become cases of its compiled function, the same for every engine."""

from __future__ import annotations

from cepheid.engine.data.candidates import own_conditions
from cepheid.engine.values.compiled import Case, Slot
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery


def slots_of(bound: BoundQuery) -> tuple[dict[str, int], Slot]:
    """Where the event of each component is kept: positives in the order of the pattern, then negated ones."""
    count = len(bound.positives)
    slots = {component.variable: place for place, component in enumerate(bound.positives)}
    slots |= {negation.component.variable: count + j for j, negation in enumerate(bound.negations)}

    def slot(reference: s.Reference) -> str:
        return f"at[{slots[reference.variable]}]"

    return slots, slot


def negative_conditions(bound: BoundQuery) -> list[list[s.Expression]]:
    """For each negated component the conditions that tie it to other events, if there is one disjunct only."""
    if len(bound.branches) > 1:
        return [[] for _ in bound.negations]
    found = []
    for negation in bound.negations:
        own = own_conditions(bound, negation.component)
        passed = bound.branches[0].passed_by(negation.component.variable)
        found.append([part for part in passed if part not in own])
    return found


def branch_cases(bound: BoundQuery, slot: Slot) -> list[Case]:
    """For each of several disjuncts its positive part and what its negated events must pass."""
    if len(bound.branches) == 1:
        return []
    cases = []
    for branch in bound.branches:
        cases.append(Case(branch.positive, slot))
        cases += [Case(branch.passed_by(negation.component.variable), slot) for negation in bound.negations]
    return cases


def any_variables(bound: BoundQuery) -> frozenset[str]:
    """The components that take events of several types, whose attributes may be absent."""
    return frozenset(component.variable for component in bound.components if component.any)

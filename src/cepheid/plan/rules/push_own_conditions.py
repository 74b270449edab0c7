"""Conditions on one event move into the scan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery, Conjunct

if TYPE_CHECKING:
    from cepheid.plan.physical import Plan


def push_own_conditions(plan: Plan) -> Plan:
    """Conditions on one event move into the scan (SASE section 4.2), where local tables, Spark and streams test them.

    >>> from cepheid.plan.examples import example, show
    >>> before = example("PATTERN SEQ(A a, B b) WHERE a.x > 1 AND a.x < b.x WITHIN 9")
    >>> show(before, "select", "scan")
    select    a.x > 1 AND a.x < b.x
    scan      A a, B b
    >>> show(push_own_conditions(before), "select", "scan")
    select    a.x < b.x
    scan      A a (a.x > 1), B b
    """
    bound, scan = plan.bound, plan.scan
    takes = tuple(replace(each, conditions=tuple(own_conditions(bound, each.component))) for each in scan.takes)
    tested = {part for each in takes for part in each.conditions}
    rest = tuple(conjunct for conjunct in plan.match.conditions_at_the_end if conjunct.expression not in tested)
    return replace(plan, scan=replace(scan, takes=takes), match=replace(plan.match, conditions_at_the_end=rest))


def own_conditions(bound: BoundQuery, component: s.Component) -> list[s.Expression]:
    """The conditions that concern an event of this component alone."""
    variable = component.variable
    fixed: list[s.Expression] = [
        s.Comparison("=", s.Attribute(s.Reference(variable), name), value) for name, value in bound.fixed
    ]
    if component.negative:
        if len(bound.branches) > 1:
            return fixed
        return fixed + [p for p in bound.branches[0].passed_by(variable) if s.variables_of(p) == {variable}]
    return fixed + [
        c.expression for c in bound.conjuncts if c.own and c.variables == {variable} and _each(c, component)
    ]


def _each(conjunct: Conjunct, component: s.Component) -> bool:
    """Not `a[1].x > 3`: that concerns the first element of a Kleene group only."""
    return not component.kleene or component.variable in conjunct.every

"""UNTIL where events come one after the other: an event that ends a group is a candidate like others.

A batch looks up where each group ends before it searches. Here nobody knows that yet, so a plain sequence becomes what
an expression with UNTIL is: the event that ends a group is a negated component between two events of the group
(`plan/ends.py`). What can be said of that event alone is tested when it comes.
"""

from __future__ import annotations

from dataclasses import replace

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.kept import kept_with_query
from cepheid.language.missing import TRUE
from cepheid.plan.ends import about_end, end_of, with_ends
from cepheid.plan.operators import Takes
from cepheid.plan.physical import Plan


def with_ending_events(plan: Plan) -> Plan:
    """The plan with the events that end groups as components; the same plan if it has no UNTIL."""
    bound = plan.bound
    if not bound.untils:
        return plan
    ended, takes = _ended(bound)
    every_event = bound.contiguous or (bound.window is not None and bound.window.events)
    scan = replace(plan.scan, takes=(*plan.scan.takes, *takes), every_event=every_event)
    return replace(plan, scan=scan, match=replace(plan.match, bound=ended))


@kept_with_query
def _ended(bound: BoundQuery) -> tuple[BoundQuery, tuple[Takes, ...]]:
    """The query, and what events that end its groups have to pass by themselves: that is not asked again later."""
    takes, untils = list[Takes](), list[tuple[str, s.Expression]]()
    for variable, condition in bound.untils:
        ending = about_end(condition, variable)
        if s.variables_of(ending) != {end_of(variable)}:
            untils.append((variable, condition))
            continue
        untils.append((variable, TRUE))
        name = _type_of(ending, bound)
        component = s.Component(end_of(variable), None if name is None else (name,), negative=True)
        takes.append(Takes(component, () if name is not None else (ending,)))
    own = {each.component.variable: each.component for each in takes}
    ended = with_ends(replace(bound, untils=tuple(untils)))
    components = tuple(own.get(each.variable, each) for each in ended.components)
    return replace(ended, syntax=replace(ended.syntax, components=components)), tuple(takes)


def _type_of(condition: s.Expression, bound: BoundQuery) -> str | None:
    """The type of the events that pass a condition, if it says nothing else."""
    match condition:
        case s.Comparison(operator="=", left=s.Attribute(name=name), right=s.Literal(value=str() as kind)):
            return kind if name == bound.schema.type and not bound.schema.ignore_case else None
    return None

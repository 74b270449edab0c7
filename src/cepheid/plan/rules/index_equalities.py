"""Equalities that find candidates by value."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cepheid.plan.equalities import indexable

if TYPE_CHECKING:
    from cepheid.plan.physical import Plan


def index_equalities(plan: Plan) -> Plan:
    """Equalities between events find candidates by value, where it is not the whole window that must be looked through.

    An equivalence test parts all events (SASE section 4.2.1); an equality that ties only some components, or different
    attributes, parts the candidates of one component at a time. The condition itself is tested all the same.

    >>> from cepheid.plan.examples import example, show
    >>> from cepheid.plan.rules.push_conditions import push_conditions
    >>> before = push_conditions(example("PATTERN SEQ(A a, B b, C c) WHERE a.id = b.id AND b.x = c.y WITHIN 9"))
    >>> show(index_equalities(before), "match")
    match     by skip_till_any_match; a.id = b.id AND b.x = c.y; candidates by value of a.id = b.id, b.x = c.y
    """
    if plan.is_lossy or plan.is_imprecise or not plan.push_predicates:
        return plan
    found = indexable(plan.bound)
    return replace(plan, match=replace(plan.match, indexed=found)) if found else plan

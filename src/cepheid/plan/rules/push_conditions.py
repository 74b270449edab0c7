"""What is left to select is tested during construction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cepheid.plan.physical import Plan


def push_conditions(plan: Plan) -> Plan:
    """What is left to select is tested during construction, as soon as its events are chosen (SASE section 4.2).

    >>> from cepheid.plan.examples import example, show
    >>> before = example("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9")
    >>> show(before, "select", "match")
    select    a.x < b.x
    match     by skip_till_any_match
    >>> show(push_conditions(before), "select", "match")
    match     by skip_till_any_match; a.x < b.x
    """
    match = plan.match
    return replace(
        plan,
        match=replace(
            match,
            compared=match.compared + match.compared_at_the_end,
            conditions=match.conditions + match.conditions_at_the_end,
            compared_at_the_end=(),
            conditions_at_the_end=(),
        ),
    )

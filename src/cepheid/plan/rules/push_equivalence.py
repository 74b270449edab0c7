"""Equivalence tests part the events in the scan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cepheid.plan.physical import Plan


def push_equivalence(plan: Plan) -> Plan:
    """Equivalence tests part the events in the scan (SASE section 4.2.1: partitioned instance stacks).

    All of them together make one key: unlike the paper's Multi-PAIS that loses nothing, and the partitions cost no
    memory of their own, since events of one key simply lie side by side.

    >>> from cepheid.plan.examples import example, show
    >>> before = example("PATTERN SEQ(A a, B b) WHERE [id, s] WITHIN 9")
    >>> show(before, "select", "match")
    select    [id, s]
    match     by skip_till_any_match
    >>> show(push_equivalence(before), "select", "match")
    match     by skip_till_any_match; partitioned by [id, s]
    """
    match = plan.match
    return replace(
        plan, match=replace(match, partition=match.partition + match.compared_at_the_end, compared_at_the_end=())
    )

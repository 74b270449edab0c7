"""All equivalence tests but one wait until matches are built."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cepheid.plan.physical import Plan


def compare_keys(plan: Plan) -> Plan:
    """One test parts the events, the others are compared during construction (SASE section 4.2.2).

    >>> from cepheid.plan.examples import example, show
    >>> from cepheid.plan.rules.push_equivalence import push_equivalence
    >>> before = push_equivalence(example("PATTERN SEQ(A a, B b) WHERE [id, s] WITHIN 9"))
    >>> show(compare_keys(before), "match")
    match     by skip_till_any_match; partitioned by [id]; [s]
    """
    match = plan.match
    return replace(plan, match=replace(match, partition=match.partition[:1], compared=match.partition[1:]))

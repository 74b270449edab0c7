"""The window is tested in scan and construction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cepheid.plan.physical import Plan


def push_window(plan: Plan) -> Plan:
    """The window is tested in scan and construction (SASE section 4.3, SASE+ section 3.2 step 5).

    >>> from cepheid.plan.examples import example, show
    >>> before = example("PATTERN SEQ(A a, B b) WITHIN 9")
    >>> show(before, "within", "match")
    within    9 steps of ts
    match     by skip_till_any_match
    >>> show(push_window(before), "within", "match")
    match     by skip_till_any_match; within 9 steps of ts
    """
    if plan.bound.window is None:
        return plan
    return replace(plan, match=replace(plan.match, window_pushed=True))

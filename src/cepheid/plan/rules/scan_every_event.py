"""Strategies that look at events which no component could take need all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cepheid.language.bound import BoundQuery

if TYPE_CHECKING:
    from cepheid.plan.physical import Plan


def scan_every_event(plan: Plan) -> Plan:
    """Contiguity and windows that count events look at every event, so that the scan must not drop any.

    >>> from cepheid.plan.examples import example, show
    >>> before = example("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 9 EVENTS")
    >>> show(scan_every_event(before), "scan")
    scan      A a, B b; every event is used
    """
    return replace(plan, scan=replace(plan.scan, every_event=looks_at_all_events(plan.bound)))


def looks_at_all_events(bound: BoundQuery) -> bool:
    """Does the result depend on events that no component could take (contiguity, UNTIL, windows that count events)?"""
    return bound.contiguous or bool(bound.untils) or (bound.window is not None and bound.window.events)

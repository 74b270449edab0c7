"""Only columns that something mentions are read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cepheid.language import syntax as s

if TYPE_CHECKING:
    from cepheid.plan.physical import Plan


def prune_columns(plan: Plan) -> Plan:
    """Only the columns that conditions, order and output mention are read; all of them if whole events are returned.

    >>> from cepheid.plan.examples import example, show
    >>> before = example("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 9 RETURN a.x")
    >>> show(before, "scan")
    scan      A a, B b
    >>> show(prune_columns(before), "scan")
    scan      A a, B b; columns ts, type, id, x
    """
    bound, schema = plan.bound, plan.bound.schema
    returns = plan.transform.returns
    whole = (returns is None and bound.summary is None) or any(
        isinstance(expression, s.Reference) for _, expression in returns or ()
    )
    # NON-OVERLAP and TOP order concurrent events by all their values, so that arrival does not matter.
    if whole or plan.output.mode in (s.OutputMode.NON_OVERLAP, s.OutputMode.TOP):
        return replace(plan, scan=replace(plan.scan, columns=schema.names))
    needed = {*bound.attributes(), *schema.tiebreak, schema.time, schema.type, schema.lower, schema.upper}
    needed |= {schema.existence, plan.options.probabilities}
    columns = tuple(name for name in schema.names if name in needed)
    return replace(plan, scan=replace(plan.scan, columns=columns))

"""What parts the events so that tasks, shards and slices of time can be matched independently."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.plan.operators import Spread

if TYPE_CHECKING:
    from cepheid.plan.physical import Plan


def spread_events(plan: Plan) -> Plan:
    """Events are parted by the attributes of the equivalence tests or, without these, by time (docs/design.md).

    >>> from cepheid.plan.examples import example, show
    >>> from cepheid.plan.rules.bound_retention import bound_retention
    >>> show(spread_events(bound_retention(example("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 9"))), "exchange")
    exchange  by key [id]
    >>> show(spread_events(bound_retention(example("PATTERN SEQ(A a, B b) WITHIN 9"))), "exchange")
    exchange  by slices of time, each with the events of 8 steps of ts before it
    """
    exchange = plan.exchange
    keys = distribution_keys(plan.bound)
    # NON-OVERLAP and TOP compare all matches of a partition.
    alone = (s.OutputMode.ALL, s.OutputMode.MAXIMAL, s.OutputMode.PARTIAL)
    sliceable = exchange.retention.reach is not None and plan.output.mode in alone
    spread = Spread.KEYS if keys else Spread.TIME if sliceable else Spread.NOTHING
    return replace(plan, exchange=replace(exchange, spread=spread, keys=keys, sliceable=sliceable))


def distribution_keys(bound: BoundQuery) -> tuple[str, ...]:
    """The attributes by which events can be parted without losing a match; empty if there are none.

    Strict contiguity looks across partitions, and an event of an ANY component may lack the attribute and so belong
    to every partition.
    """
    if bound.strict or bound.may_lack:
        return ()
    return bound.equivalence

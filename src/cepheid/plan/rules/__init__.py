"""Rewrite rules: each takes a plan and returns one that does the same with less work, one file each.

The optimiser is the tuple RULES, applied in order. A rule that finds nothing returns the plan unchanged. What a rule
moves into an operator is what execution does there: nothing decides it a second time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cepheid.plan.rules.bound_retention import bound_retention
from cepheid.plan.rules.compare_keys import compare_keys
from cepheid.plan.rules.hash_queues import hash_queues
from cepheid.plan.rules.index_equalities import index_equalities
from cepheid.plan.rules.prune_columns import prune_columns
from cepheid.plan.rules.push_conditions import push_conditions
from cepheid.plan.rules.push_equivalence import push_equivalence
from cepheid.plan.rules.push_own_conditions import push_own_conditions
from cepheid.plan.rules.push_window import push_window
from cepheid.plan.rules.recognise_equivalence import recognise_equivalence
from cepheid.plan.rules.scan_every_event import scan_every_event
from cepheid.plan.rules.spread_events import spread_events

if TYPE_CHECKING:
    from cepheid.plan.physical import Plan

Rule = Callable[["Plan"], "Plan"]

WHERE_EVENTS_GO: tuple[Rule, ...] = (scan_every_event, prune_columns, bound_retention, spread_events)
RULES: tuple[Rule, ...] = (
    recognise_equivalence,
    push_own_conditions,
    push_equivalence,
    push_window,
    push_conditions,
    hash_queues,
    index_equalities,
    *WHERE_EVENTS_GO,
)
# equivalence="construction": one test parts the events, the others wait for construction.
CONSTRUCTION: tuple[Rule, ...] = (*RULES[:3], compare_keys, *RULES[3:])
# pushdown=False: SASE's basic plan, which tests everything but single events at the end.
BASIC: tuple[Rule, ...] = (push_own_conditions, *WHERE_EVENTS_GO)
# Plans whose equivalence tests the caller has placed.
PLACED: tuple[Rule, ...] = (push_own_conditions, push_window, push_conditions, index_equalities, *WHERE_EVENTS_GO)


def optimise(plan: Plan, rules: tuple[Rule, ...] = RULES) -> Plan:
    """The plan after all rules."""
    for rule in rules:
        plan = rule(plan)
    return plan

"""From a bound query to a physical plan: rules, then cost, then the engine; hints go first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cepheid.errors import EngineError, closest
from cepheid.language.bound import BoundQuery
from cepheid.plan.cost import cheapest_order, considered, eager_order
from cepheid.plan.logical import LogicalPlan, to_logical
from cepheid.plan.physical import Limits, Plan
from cepheid.plan.rules import RULES, optimise, push_own_conditions
from cepheid.plan.statistics import Statistics

# The lazy engines pay for their freedom of order: they are chosen only if they save more than this factor.
LAZY_GAIN = 4.0
LIMITS = ("max_matches", "max_partial_matches", "truncate")
HINTS = frozenset({"order", "pushdown", "equivalence", *LIMITS})


def plan_query(
    bound: BoundQuery,
    statistics: Statistics | None = None,
    *,
    engine: str = "auto",
    refusals: Mapping[str, str | None],
    model: Any = None,
    scoring: str = "exact",
    hints: Mapping[str, Any] | None = None,
) -> Plan:
    """The physical plan. `refusals` says for each engine why it cannot run the query (None: it can).

    Hints: `order` (variables, for the lazy chain), `pushdown=False` (SASE's basic plan), `equivalence` ("scan" or
    "construction"), and the limits.
    """
    hints = dict(hints or {})
    logical = logical_plan(bound, hints)
    bound = logical.bound
    name, order, reasons, estimates = _engine(bound, statistics, engine, refusals, hints, model)
    limits = replace(Limits(), **{key: hints[key] for key in LIMITS if hints.get(key) is not None})
    return Plan(
        bound,
        name,
        partition=logical.scan_partition,
        compared=logical.construct_compared + logical.select_equivalence,
        push_predicates=not logical.select_conditions,
        push_window=not logical.within,
        order=order,
        limits=limits,
        model=model,
        scoring=scoring,
        reasons=(*logical.notes, *reasons),
        estimates=estimates,
        options={key: value for key, value in hints.items() if key not in HINTS},
    )


def logical_plan(bound: BoundQuery, hints: Mapping[str, Any]) -> LogicalPlan:
    """The logical plan after the rules that the hints allow."""
    basic = to_logical(bound)
    if hints.get("pushdown") is False:
        return push_own_conditions(basic)
    plan = optimise(basic, RULES)
    where = hints.get("equivalence", "scan")
    if where == "construction":
        # SASE section 4.2.2, dynamic filtering: one test splits the stacks, the others wait for construction.
        return replace(plan, scan_partition=plan.scan_partition[:1], construct_compared=plan.scan_partition[1:])
    if where != "scan":
        raise EngineError(f"equivalence='{where}' is neither 'scan' nor 'construction'")
    return plan


def _engine(
    bound: BoundQuery,
    statistics: Statistics | None,
    engine: str,
    refusals: Mapping[str, str | None],
    hints: Mapping[str, Any],
    model: Any,
) -> tuple[str, tuple[int, ...] | None, tuple[str, ...], dict[str, float]]:
    order = _given_order(bound, hints.get("order"))
    if engine != "auto":
        if engine not in refusals:
            guess = closest(engine, refusals)
            known = f"did you mean '{guess}'?" if guess else f"the engines are {', '.join(sorted(refusals))}"
            raise EngineError(f"no engine '{engine}'; {known}")
        why = refusals[engine]
        if why is not None:
            able = [name for name, reason in refusals.items() if reason is None and name != "reference"]
            raise EngineError(f"engine '{engine}' cannot run this query: {why}; {' or '.join(able) or 'none'} can")
        if order is None and engine == "lazy-chain" and statistics is not None:
            order = cheapest_order(bound, statistics)[0]
        return engine, order, (f"engine '{engine}' was asked for",), {}
    if bound.schema.lower is not None:
        why = refusals.get("intervals")
        if why is not None:
            raise EngineError(f"with imprecise times: {why}", hint="engine='reference' may run it, on a small stream")
        lossy = model is not None or bound.syntax.threshold is not None
        return "intervals", None, ("times are intervals" + (", and events may be missing" if lossy else ""),), {}
    if model is not None or bound.syntax.threshold is not None:
        return "queues", None, ("events may be missing",), {}
    if refusals.get("sequence") is not None:
        return "runs", None, (f"the sequence engine cannot run it: {refusals['sequence']}",), {}
    if order is not None:
        return "lazy-chain", order, ("an order was asked for",), {}
    if statistics is None or "lazy-tree" not in refusals or len(bound.positives) < 2:
        return "sequence", None, ("a sequence of single events",), {}
    eager = considered(bound, statistics, eager_order(bound))
    best, least = cheapest_order(bound, statistics)
    estimates = {"combinations per window, backwards": eager, "combinations per window, best order": least}
    if eager > LAZY_GAIN * max(least, 1.0):
        names = ", ".join(bound.positives[place].variable for place in best)
        reason = f"filling {names} in this order considers {eager / max(least, 1e-9):.0f} times fewer combinations"
        return "lazy-tree", best, (reason,), estimates
    return "sequence", None, ("a sequence of single events, and no other order is much cheaper",), estimates


def _given_order(bound: BoundQuery, names: Any) -> tuple[int, ...] | None:
    if names is None:
        return None
    variables = [component.variable for component in bound.positives]
    if sorted(names) != sorted(variables):
        raise EngineError(f"order={list(names)} must name each of {', '.join(variables)} once")
    return tuple(variables.index(name) for name in names)

"""Plans that the engines at hand can run: asks each engine, measures where it helps, and lets the planner choose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cepheid.engine import abilities
from cepheid.engine.data.table import EventTable
from cepheid.engine.find import ENGINES
from cepheid.engine.statistics import measure
from cepheid.language.bound import BoundQuery
from cepheid.plan.choose import plan_query
from cepheid.plan.logical import to_logical
from cepheid.plan.physical import Plan
from cepheid.plan.rules import optimise
from cepheid.plan.statistics import Statistics

KNOWS_MISSING = ("reference", "queues", "intervals")  # engines that a loss model is for
WORTH_MEASURING = 2_000  # events; below this every order is fast


def make_plan(
    bound: BoundQuery,
    events: EventTable | None = None,
    *,
    engine: str = "auto",
    model: Any = None,
    scoring: str = "exact",
    hints: Mapping[str, Any] | None = None,
) -> tuple[Plan, Statistics | None]:
    """The plan for a query, with the statistics it was chosen by, if any were measured."""
    abilities.check_top(bound)
    refusals = {name: known.refuses(bound) for name, known in ENGINES.items()}
    if model is not None:
        refusals |= {name: "it takes every event as seen" for name in ENGINES if name not in KNOWS_MISSING}
        refusals["intervals"] = refusals["intervals"] or abilities.imprecise_missing(bound)
    statistics = None
    orders_matter = engine in ("auto", "lazy-chain", "lazy-tree") and refusals.get("sequence") is None
    if events is not None and orders_matter and len(bound.positives) > 1 and len(events) >= WORTH_MEASURING:
        statistics = measure(optimise(to_logical(bound)).bound, events)
    plan = plan_query(bound, statistics, engine=engine, refusals=refusals, model=model, scoring=scoring, hints=hints)
    return plan, statistics

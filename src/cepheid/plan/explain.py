"""Plans as text: what is done where, by which engine and why, with estimates and, after a run, actual counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.printing import to_text
from cepheid.plan.choose import logical_plan
from cepheid.plan.logical import describe, to_logical
from cepheid.plan.physical import Plan
from cepheid.plan.statistics import Statistics


def explain(
    plan: Plan,
    original: BoundQuery,
    *,
    hints: Mapping[str, Any] | None = None,
    statistics: Statistics | None = None,
    automaton: str | None = None,
    actual: Mapping[str, Any] | None = None,
) -> str:
    """The whole story of a query, section by section."""
    sections = [
        ("Query", to_text(original.syntax).splitlines()),
        ("Logical plan (as written)", _indented(describe(to_logical(original)))),
        ("Logical plan (after the rules)", _indented(describe(logical_plan(original, hints or {})))),
        ("Physical plan", physical_lines(plan)),
    ]
    if automaton:
        sections.append(("Automaton", automaton.splitlines()))
    if statistics is not None:
        sections.append(("Estimates", _estimates(plan, statistics)))
    if actual is not None:
        sections.append(("Actual", [f"{_words(name):<38}{_number(value)}" for name, value in actual.items()]))
    return "\n\n".join("\n".join([title, *(f"  {line}" for line in lines)]) for title, lines in sections)


def _indented(lines: list[str]) -> list[str]:
    """Each operator reads from the one below it."""
    return [("  " * depth + line) for depth, line in enumerate(lines)]


def physical_lines(plan: Plan) -> list[str]:
    """The engine, why it, and what is done where."""
    bound = plan.bound
    lines = [f"engine      {plan.engine}"]
    lines += [f"because     {reason}" for reason in plan.reasons]
    lines.append(f"strategy    {strategy_text(bound)}")
    if plan.partition:
        lines.append(f"partition   by {', '.join(plan.partition)}, in the scan")
    if plan.compared:
        lines.append(f"compare     {', '.join(plan.compared)}, during construction")
    if bound.window is not None:
        lines.append(f"window      {'in scan and construction' if plan.push_window else 'at the end'}")
    lines.append(f"conditions  {'as soon as their events are chosen' if plan.push_predicates else 'at the end'}")
    if plan.order is not None:
        lines.append(f"order       {', '.join(bound.positives[place].variable for place in plan.order)}")
    if bound.postponed:
        lines.append("decision    postponed until the window has passed (negation at the end)")
    return lines


def strategy_text(bound: BoundQuery) -> str:
    """The strategy, and whether it was written or is the default."""
    written = bound.syntax.selection is not None
    return bound.strategy.value if written else f"{s.Strategy.SKIP_TILL_ANY.value} (the default)"


def _estimates(plan: Plan, statistics: Statistics) -> list[str]:
    lines = [f"{'events':<38}{_number(statistics.events)}", f"{'partitions':<38}{_number(statistics.partitions)}"]
    for component, rate in zip(plan.bound.positives, statistics.per_window, strict=False):
        lines.append(f"{component.variable + ' per window':<38}{rate:.3g}")
    lines += [f"{name:<38}{value:.3g}" for name, value in plan.estimates.items()]
    return lines


def _words(name: str) -> str:
    return name.replace("_", " ")


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)

"""The logical plan: SASE's operators (section 3.1), bottom up, before anything is pushed anywhere.

    scan -> construct -> select -> within -> negate -> transform

Each operator holds what it does; the rules in `rules.py` move work from the upper ones into the lower ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery, Conjunct
from cepheid.language.printing import component_text, expression_text, window_text


@dataclass(frozen=True)
class LogicalPlan:
    """What each operator does. Empty operators do nothing and are not shown."""

    bound: BoundQuery
    scan_filters: tuple[Conjunct, ...] = ()  # conditions on one event, tested in the scan
    scan_partition: tuple[str, ...] = ()  # equivalence attributes that split the stacks (PAIS)
    scan_window: bool = False  # entries outside the window never get onto a stack
    construct_compared: tuple[str, ...] = ()  # equivalence attributes compared while sequences are built
    construct_conditions: tuple[Conjunct, ...] = ()
    construct_window: bool = False
    select_equivalence: tuple[str, ...] = ()
    select_conditions: tuple[Conjunct, ...] = ()
    within: bool = False
    notes: tuple[str, ...] = field(default=())  # what the rules did, in words


def to_logical(bound: BoundQuery) -> LogicalPlan:
    """The basic plan of SASE section 3.1: build all sequences, then select, then window, then negation."""
    return LogicalPlan(
        bound,
        select_equivalence=bound.equivalence,
        select_conditions=bound.conjuncts,
        within=bound.window is not None,
    )


def describe(plan: LogicalPlan) -> list[str]:
    """The operators as text, the last one first, each line one operator."""
    bound = plan.bound
    window = _window(bound)
    lines = [f"transform  {_returned(bound)}"]
    if bound.syntax.output.mode is not s.OutputMode.ALL:
        lines.append(f"output     {bound.syntax.output.mode.value}")
    for negation in bound.negations:
        lines.append(
            f"negate     {component_text(negation.component)} {_where_negated(bound, negation.after, negation.before)}"
        )
    if plan.within:
        lines.append(f"within     {window}")
    if plan.select_conditions or plan.select_equivalence:
        lines.append(f"select     {_conditions(plan.select_equivalence, plan.select_conditions)}")
    construct = [f"by {bound.strategy.value}"]
    if plan.construct_compared or plan.construct_conditions:
        construct.append(_conditions(plan.construct_compared, plan.construct_conditions))
    if plan.construct_window:
        construct.append(f"within {window}")
    lines.append(f"construct  {'; '.join(construct)}")
    scan = [f"({', '.join(component_text(component) for component in bound.positives)})"]
    if plan.scan_partition:
        scan.append(f"partitioned by [{', '.join(plan.scan_partition)}]")
    if plan.scan_filters or bound.fixed:
        fixed = [f"[{name} = {expression_text(value)}]" for name, value in bound.fixed]
        scan.append(" AND ".join([*fixed, *(expression_text(c.expression) for c in plan.scan_filters)]))
    if plan.scan_window:
        scan.append(f"within {window}")
    lines.append(f"scan       {'; '.join(scan)}")
    return lines


def _window(bound: BoundQuery) -> str:
    if bound.window is None:
        return "no window"
    asked = bound.syntax.within
    if asked is not None and asked.unit not in (None, "events") and not isinstance(asked.length, s.Name):
        return window_text(asked)  # 12 hours says more than so many microseconds
    return (
        f"{bound.window.length} events"
        if bound.window.events
        else f"{bound.window.length} steps of {bound.schema.time}"
    )


def _returned(bound: BoundQuery) -> str:
    if bound.returns is None:
        return ", ".join(component.variable for component in bound.positives)
    return ", ".join(f"{expression_text(expression)} AS {name}" for name, expression in bound.returns)


def _where_negated(bound: BoundQuery, after: int | None, before: int | None) -> str:
    if after is None:
        assert before is not None
        return f"between the window's opening and {bound.positives[before].variable}"
    if before is None:
        return f"between {bound.positives[after].variable} and the window's end (postponed)"
    return f"between {bound.positives[after].variable} and {bound.positives[before].variable}"


def _conditions(names: tuple[str, ...], conjuncts: tuple[Conjunct, ...]) -> str:
    parts = [f"[{', '.join(names)}]"] if names else []
    return " AND ".join([*parts, *(expression_text(conjunct.expression) for conjunct in conjuncts)])

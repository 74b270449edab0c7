"""What happens when a query produces more than it may: an error that says so, or a result that says it was cut."""

from __future__ import annotations

from cepheid.errors import LimitError
from cepheid.language.printing import component_text
from cepheid.plan.physical import Plan

FEW_OVERLAPPING = 10  # matches for each event, that are listed to choose those that do not overlap
MOST_PLACES = 6  # events that one condition may mention if each of them may be missing
MAX_BRANCHES = 12  # disjuncts that negation is judged by at imprecise times: all their subsets are looked at


def check_limit(plan: Plan, name: str, reached: bool) -> bool:
    """True if the result was cut short on request; a LimitError if it was not asked for."""
    if not reached:
        return False
    if plan.limits.truncate:
        return True
    value = getattr(plan.limits, name)
    kleene = [component for component in plan.bound.positives if component.kleene]
    hint = "make the window shorter or the conditions tighter"
    if kleene and plan.bound.strategy.value == "skip_till_any_match":
        hint = f"{component_text(kleene[0])} under skip_till_any_match takes every subset; use skip_till_next_match"
    raise LimitError(
        f"the query reached {name}={value}; raise the limit, or pass truncate=True for a part of the result", hint=hint
    )

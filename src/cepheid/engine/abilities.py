"""Which engine can run which query. Apart from the engines, so that asking loads no kernel.

Each function says why an engine cannot run a query, or None if it can.
"""

from __future__ import annotations

from cepheid.errors import QueryError
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.printing import expression_text

MOST_PLACES = 6  # events that one condition may mention if each of them may be missing
MAX_BRANCHES = 12  # disjuncts that negation is judged by at imprecise times: all their subsets are looked at


def check_top(bound: BoundQuery) -> None:
    """TOP k BY CONFIDENCE says nothing where every match is certain."""
    if bound.syntax.output.mode is s.OutputMode.TOP and bound.schema.lower is None:
        hint = "pass lower='...' and upper='...', or leave OUTPUT out"
        raise QueryError("TOP k BY CONFIDENCE needs imprecise times", hint=hint, code="top-without-confidence")


def anything(bound: BoundQuery) -> str | None:
    """The reference runs every query, if slowly."""
    return None


def precise(bound: BoundQuery) -> str | None:
    """The run engines: every strategy and Kleene plus, over streams that are exact."""
    if bound.schema.lower is not None:
        return "it takes every time as precise"
    if bound.syntax.threshold is not None:
        return "it takes every event as seen"
    return "it judges negated components one by one" if bound.has_tied_negations else None


def sequences(bound: BoundQuery) -> str | None:
    """The sequence engine and the lazy ones: single events, in any combination."""
    if bound.has_kleene:
        return "it does not know Kleene plus"
    if bound.strategy is not s.Strategy.SKIP_TILL_ANY:
        return f"it selects events by skip_till_any_match, not {bound.strategy.value}"
    return precise(bound)


def missing(bound: BoundQuery) -> str | None:
    """The queues engine: events that nobody saw."""
    return "its times are points, not intervals" if bound.schema.lower is not None else unseen(bound)


def unseen(bound: BoundQuery) -> str | None:
    """What missing events ask of a query, whatever its times are."""
    if bound.contiguous:
        return f"{bound.strategy.value} asks for events without gaps, and a missing event is a gap"
    if bound.has_tied_negations:
        return "where events may be missing, negated components are judged one by one, and a condition ties some"
    if bound.window is None or bound.window.events:
        return "missing events need a window of time"
    names = set(bound.place_of)
    conditions = [conjunct.expression for conjunct in bound.conjuncts]
    for branch in bound.branches:
        conditions += [*branch.positive, *(part for _, parts in branch.negative for part in parts)]
    for condition in conditions:
        mentioned = {node.variable for node in s.walk(condition) if isinstance(node, s.Reference | s.Length)}
        if len(mentioned & names) > MOST_PLACES:
            return f"'{expression_text(condition)}' mentions more than {MOST_PLACES} components that may be missing"
    return None


def imprecise(bound: BoundQuery) -> str | None:
    """The engines for times that are only known to an interval."""
    if bound.schema.lower is None or bound.schema.upper is None:
        return "it is for imprecise times; pass lower='...' and upper='...'"
    if bound.window is not None and bound.window.events:
        return "WITHIN n EVENTS counts events in order, and imprecise times do not say which"
    if bound.syntax.output.mode is s.OutputMode.NON_OVERLAP:
        return "NON-OVERLAP needs to know which match ended first, and imprecise times do not say"
    if bound.has_tied_negations:
        return "a condition ties negated components together, and imprecise times do not say which of their events meet"
    return imprecise_missing(bound) if bound.syntax.threshold is not None else None


def points(bound: BoundQuery) -> str | None:
    """The same by point events, one for each instant of an event that was seen."""
    return "it takes every event as seen" if bound.syntax.threshold is not None else imprecise(bound)


def imprecise_missing(bound: BoundQuery) -> str | None:
    """Imprecise times and missing events together: narrower than either alone."""
    if bound.syntax.output.mode is s.OutputMode.TOP:
        return "TOP k BY CONFIDENCE is not defined where events are missing: use THRESHOLD or CONFIDENCE"
    if bound.negations and len(bound.branches) > MAX_BRANCHES:
        told = f"the condition has {len(bound.branches)} alternatives"
        return f"{told}; with negation and imprecise time at most {MAX_BRANCHES} are judged"
    return unseen(bound)

"""A condition on how long a match lasts is a shorter window: `c.ts - a.ts < 30` of `SEQ(A a, B b, C c) WITHIN 1000`.

No engine goes on with what began too early for its window, and all of them know that before the last event is there.
The condition itself is tested when the last event comes, after all that a window of 1,000 holds was put together. The
matches are the same. Contiguity, negation at either end and OUTPUT are left as they are: they ask for the window.
"""

from __future__ import annotations

from dataclasses import replace

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery, BoundWindow, Conjunct
from cepheid.language.kept import kept_with_query
from cepheid.language.schema import DataType
from cepheid.plan.physical import Plan

_SKIPPING = frozenset({s.Strategy.SKIP_TILL_ANY, s.Strategy.SKIP_TILL_NEXT})
_OF_FIRST = (s.Element.SINGLE, s.Element.FIRST, s.Element.CURRENT)
_OF_LAST = (s.Element.SINGLE, s.Element.LAST, s.Element.CURRENT)


def with_shorter_window(plan: Plan) -> Plan:
    """The plan with the window that its conditions leave, if that is shorter and changes nothing else."""
    bound = plan.bound
    if plan.engine == "reference" or plan.is_lossy or plan.is_imprecise or not (plan.push_window and _fits(bound)):
        return plan
    shorter = _shortened(bound)
    return plan if shorter is None else replace(plan, match=replace(plan.match, bound=shorter))


def _fits(bound: BoundQuery) -> bool:
    timed = bound.window is not None and not bound.window.events
    plain = bound.is_linear and bound.strategies <= _SKIPPING and not bound.schema.lacks
    inside = all(each.after is not None and each.before is not None for each in bound.negations)
    return timed and plain and inside and not bound.given_up and bound.output.mode is s.OutputMode.ALL


@kept_with_query
def _shortened(bound: BoundQuery) -> BoundQuery | None:
    """The query with a shorter window; the same object for the same query, since programs hang on it.

    >>> from cepheid.plan.examples import example
    >>> text = "PATTERN SEQ(A a, B+ b[], C c) WHERE c.ts - a.ts <= 30 AND c.ts - b[i].ts < 7 WITHIN 99"
    >>> _shortened(example(text).bound).window
    BoundWindow(length=31, events=False)
    """
    assert bound.window is not None
    lengths = [length for conjunct in bound.conjuncts if (length := _length(bound, conjunct)) is not None]
    shortest = min(lengths, default=bound.window.length)
    return replace(bound, window=BoundWindow(shortest)) if 0 < shortest < bound.window.length else None


def _length(bound: BoundQuery, conjunct: Conjunct) -> int | None:
    """The window that a condition stands for: one on the times of the first and the last event, in whole numbers."""
    match conjunct.expression:
        case s.Comparison(
            operator="<" | "<=" as sign, left=s.Arithmetic() as span, right=s.Literal(value=int() as most)
        ):
            included = sign == "<="
        case s.Comparison(
            operator=">" | ">=" as sign, left=s.Literal(value=int() as most), right=s.Arithmetic() as span
        ):
            included = sign == ">="
        case _:
            return None
    first, last = bound.positives[0].variable, bound.positives[-1].variable
    time = bound.schema.time
    match span:
        case s.Arithmetic(
            operator="-",
            left=s.Attribute(of=s.Reference(element=behind) as end, name=later, default=None),
            right=s.Attribute(of=s.Reference(element=before) as begin, name=earlier, default=None),
        ):
            whole = not isinstance(most, bool) and bound.schema.type_of(time) is DataType.INT
            ends = (begin.variable, end.variable) == (first, last) and before in _OF_FIRST and behind in _OF_LAST
            if whole and ends and later == earlier == time and not conjunct.from_second:
                return most + included
    return None

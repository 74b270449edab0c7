"""Equalities that tie all components together are an equivalence test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery, Conjunct
from cepheid.language.missing import without_missing

if TYPE_CHECKING:
    from cepheid.plan.physical import Plan

Edge = tuple[str, str]  # two variables whose values are equal

MOST_MISSABLE = 8  # components: all sets of those that were seen are looked at


def recognise_equivalence(plan: Plan) -> Plan:
    """Equalities of one attribute that tie all components together are an equivalence test (SASE section 2.2.1).

    >>> from cepheid.plan.examples import example, show
    >>> before = example("PATTERN SEQ(A a, !(B b), C c) WHERE a.id = b.id AND a.id = c.id WITHIN 9")
    >>> show(before, "select")
    select    a.id = c.id
    >>> show(recognise_equivalence(before), "select")
    select    [id]

    Where events may be missing, that must be so whichever of them were seen (AYAC section 5.2: hashed queues).

    >>> before = example("PATTERN SEQ(A a, C c) WHERE a.id[c.id] = c.id WITHIN 9 THRESHOLD 0.1")
    >>> show(recognise_equivalence(before), "select")
    select    [id]
    """
    bound = plan.bound
    if not bound.is_linear:
        return plan  # a condition says nothing where one of its variables was not chosen
    if len(bound.branches) != 1 or len(bound.components) < 2 or bound.contiguous or bound.has_kleene:
        return plan
    if bound.may_lack or bound.mixed:
        return plan
    if bound.output.mode is s.OutputMode.NON_OVERLAP or (bound.window is not None and bound.window.events):
        return plan  # there the equivalence test also says what a partition is
    lossy = plan.is_lossy
    if lossy and (len(bound.positives) > MOST_MISSABLE or bound.strategy is not s.Strategy.SKIP_TILL_ANY):
        return plan
    equalities = {part: name for part in equality_candidates(bound) if (name := equated_attribute(part, lossy))}
    found: list[str] = []
    for name in sorted(set(equalities.values())):
        parts = [part for part, attribute in equalities.items() if attribute == name]
        tied = all(
            ties_all(bound, edges_without(parts, absent), absent, keyed=lossy)
            for absent in (sets_of_missing(plan) if lossy else [frozenset[str]()])
        )
        if name not in bound.equivalence and tied:
            found.append(name)
    if not found:
        return plan
    gone = {part for part, name in equalities.items() if name in found}
    match = replace(
        plan.match,
        bound=without_equalities(bound, gone, tuple(found)),
        compared_at_the_end=(*plan.match.compared_at_the_end, *found),
        conditions_at_the_end=tuple(c for c in plan.match.conditions_at_the_end if c.expression not in gone),
    )
    reason = f"the equalities on {', '.join(found)} are an equivalence test"
    return replace(plan, match=match, reasons=(*plan.reasons, reason))


def equality_candidates(bound: BoundQuery) -> list[s.Expression]:
    """All conjuncts of the condition, those on negated components included."""
    negative = (part for _, parts in bound.branches[0].negative for part in parts)
    return [*(conjunct.expression for conjunct in bound.conjuncts), *negative]


def equated_attribute(node: s.Expression, defaults: bool) -> str | None:
    """The attribute that `x.id = y.id` compares; with defaults, that of `x.id[y.id] = y.id`, too (AYAC section 2.2)."""
    match node:
        case s.Comparison(operator="=", left=s.Attribute() as left, right=s.Attribute() as right):
            sides = {*_chain(left), *_chain(right)}
            if None in sides or len({name for side in sides if side for _, name in [side]}) > 1:
                return None
            plain = left.default is None and right.default is None
            if (plain and left.of.variable != right.of.variable) or (defaults and not plain):
                return left.name
    return None


def _chain(attribute: s.Attribute) -> Iterator[tuple[str, str] | None]:
    """The variables and attributes that may stand for it, the defaults included; None where something else may."""
    yield attribute.of.variable, attribute.name
    if isinstance(attribute.default, s.Attribute):
        yield from _chain(attribute.default)
    elif attribute.default is not None:
        yield None


def edges_without(parts: Iterable[s.Expression], absent: frozenset[str]) -> list[Edge]:
    """What equalities tie together where some events are missing; an event to itself where it only must be known."""
    edges = []
    for part in parts:
        match without_missing(part, absent) if absent else part:
            case s.Comparison(left=s.Attribute(of=left), right=s.Attribute(of=right)):
                edges.append((left.variable, right.variable))
    return edges


def sets_of_missing(plan: Plan) -> Iterator[frozenset[str]]:
    """Every set of positive components that may be missing together."""
    names = [component.variable for component in plan.bound.positives]
    for number in range(len(names)):
        for absent in combinations(names, number):
            if names[-1] not in absent or (plan.options.missing_last and names[0] not in absent):
                yield frozenset(absent)


def ties_all(bound: BoundQuery, edges: list[Edge], absent: frozenset[str], keyed: bool) -> bool:
    """Do equalities tie all components together that were seen?

    The positive ones must be tied without the negated ones: an event without a value fails an equality with a positive
    event, but an equality with a negated one that is unknown only spares the match. One event alone must be compared
    with itself: only then does it need a value, as an equivalence test asks (`keyed`). Under skip_till_next_match each
    must be tied to one before it, since what an event could take is decided then.
    """
    seen = [component.variable for component in bound.positives if component.variable not in absent]
    positive = set(seen)
    if len(seen) == 1:
        tied_up = keyed and (seen[0], seen[0]) in edges
    elif bound.strategy is s.Strategy.SKIP_TILL_ANY:
        reached, grown = {seen[0]}, True
        while grown:
            more = {name for edge in edges if set(edge) <= positive and set(edge) & reached for name in edge}
            grown = not more <= reached
            reached |= more
        tied_up = reached == positive
    else:
        tied_up = all(
            any(
                {left, right} <= {*seen[: place + 1]} and here in (left, right) and left != right
                for left, right in edges
            )
            for place, here in enumerate(seen)
            if place
        )
    negated = {name for edge in edges for name in edge if set(edge) & positive and name not in positive}
    return tied_up and all(negation.component.variable in negated for negation in bound.negations)


def without_equalities(bound: BoundQuery, gone: Set[s.Expression], names: tuple[str, ...]) -> BoundQuery:
    """The query without some equalities, and with an equivalence test of some names instead."""

    def kept(parts: tuple[s.Expression, ...]) -> tuple[s.Expression, ...]:
        return tuple(part for part in parts if part not in gone)

    def stays(conjunct: Conjunct) -> bool:
        return conjunct.expression not in gone

    branch = bound.branches[0]
    simpler = replace(
        branch,
        positive=kept(branch.positive),
        negative=tuple((variable, kept(parts)) for variable, parts in branch.negative),
    )
    return replace(
        bound,
        equivalence=(*bound.equivalence, *names),
        conjuncts=tuple(filter(stays, bound.conjuncts)),
        branches=(simpler,),
    )

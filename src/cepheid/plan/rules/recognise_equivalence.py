"""Equalities that tie all components together are an equivalence test."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery, Conjunct

if TYPE_CHECKING:
    from cepheid.plan.physical import Plan


def recognise_equivalence(plan: Plan) -> Plan:
    """Equalities of one attribute that tie all components together are an equivalence test (SASE section 2.2.1).

    >>> from cepheid.plan.examples import example, show
    >>> before = example("PATTERN SEQ(A a, !(B b), C c) WHERE a.id = b.id AND a.id = c.id WITHIN 9")
    >>> show(before, "select")
    select    a.id = c.id
    >>> show(recognise_equivalence(before), "select")
    select    [id]
    """
    bound = plan.bound
    if bound.pattern is not None:
        return plan  # a condition says nothing where one of its variables was not chosen
    if len(bound.branches) != 1 or len(bound.components) < 2 or bound.contiguous or bound.has_kleene:
        return plan
    if any(component.any for component in bound.components) or plan.score.lossy:
        return plan
    if bound.syntax.output.mode is s.OutputMode.NON_OVERLAP or (bound.window is not None and bound.window.events):
        return plan  # there the equivalence test also says what a partition is
    equalities = {part: pair for part in _literals(bound) if (pair := _equality(part)) is not None}
    found: list[str] = []
    for name in sorted({name for name, _, _ in equalities.values()}):
        edges = [(left, right) for attribute, left, right in equalities.values() if attribute == name]
        if name not in bound.equivalence and _ties_all(bound, edges):
            found.append(name)
    if not found:
        return plan
    gone = {part for part, (name, _, _) in equalities.items() if name in found}
    match = replace(
        plan.match,
        bound=_without(bound, gone, tuple(found)),
        compared_at_the_end=(*plan.match.compared_at_the_end, *found),
        conditions_at_the_end=tuple(c for c in plan.match.conditions_at_the_end if c.expression not in gone),
    )
    reason = f"the equalities on {', '.join(found)} are an equivalence test"
    return replace(plan, match=match, reasons=(*plan.reasons, reason))


def _literals(bound: BoundQuery) -> list[s.Expression]:
    negative = (part for _, parts in bound.branches[0].negative for part in parts)
    return [*(conjunct.expression for conjunct in bound.conjuncts), *negative]


def _equality(node: s.Expression) -> tuple[str, str, str] | None:
    """`x.id = y.id` as (id, x, y)."""
    match node:
        case s.Comparison(
            operator="=",
            left=s.Attribute(of=s.Reference(variable=left), name=name, default=None),
            right=s.Attribute(of=s.Reference(variable=right), name=other, default=None),
        ) if name == other and left != right:
            return name, left, right
    return None


def _ties_all(bound: BoundQuery, edges: list[tuple[str, str]]) -> bool:
    """Do equalities tie all components together?

    The positive ones must be tied without the negated ones: an event without a value fails an equality with a positive
    event, but an equality with a negated one that is unknown only spares the match.
    """
    positive = {component.variable for component in bound.positives}
    reached, grown = {bound.positives[0].variable}, len(positive) > 1
    while grown:
        grown = False
        for left, right in edges:
            if {left, right} <= positive and (left in reached) != (right in reached):
                reached |= {left, right}
                grown = True
    tied = {name for edge in edges for name in edge if set(edge) & positive}
    return len(positive) > 1 and reached == positive and all(n.component.variable in tied for n in bound.negations)


def _without(bound: BoundQuery, gone: set[s.Expression], names: tuple[str, ...]) -> BoundQuery:
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

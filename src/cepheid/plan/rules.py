"""Rewrite rules: each takes a logical plan and returns one that does the same with less work.

The optimiser is the tuple RULES, applied in order. A rule that finds nothing returns the plan unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery, Conjunct
from cepheid.plan.logical import LogicalPlan

Rule = Callable[[LogicalPlan], LogicalPlan]


def recognise_equivalence(plan: LogicalPlan) -> LogicalPlan:
    """Equalities of one attribute that tie all components together are an equivalence test (SASE section 2.2.1).

    >>> from cepheid.plan.examples import example
    >>> before = example("PATTERN SEQ(A a, !(B b), C c) WHERE a.id = b.id AND a.id = c.id WITHIN 9")
    >>> before.select_equivalence, recognise_equivalence(before).select_equivalence
    ((), ('id',))
    """
    bound = plan.bound
    if len(bound.branches) != 1 or len(bound.components) < 2 or bound.contiguous or bound.has_kleene:
        return plan
    if any(component.any for component in bound.components) or bound.syntax.threshold is not None:
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
    return replace(
        plan,
        bound=_without(bound, gone, tuple(found)),
        select_equivalence=(*plan.select_equivalence, *found),
        select_conditions=tuple(c for c in plan.select_conditions if c.expression not in gone),
        notes=(*plan.notes, f"the equalities on {', '.join(found)} are an equivalence test"),
    )


def push_own_conditions(plan: LogicalPlan) -> LogicalPlan:
    """Conditions on one event move into the scan (SASE section 4.2).

    >>> from cepheid.plan.examples import example
    >>> after = push_own_conditions(example("PATTERN SEQ(A a, B b) WHERE a.x > 1 AND a.x < b.x WITHIN 9"))
    >>> len(after.scan_filters), len(after.select_conditions)
    (1, 1)
    """
    own = tuple(conjunct for conjunct in plan.select_conditions if conjunct.own)
    rest = tuple(conjunct for conjunct in plan.select_conditions if not conjunct.own)
    return replace(plan, scan_filters=plan.scan_filters + own, select_conditions=rest)


def push_equivalence(plan: LogicalPlan) -> LogicalPlan:
    """Equivalence tests split the stacks in the scan (SASE section 4.2.1: partitioned instance stacks).

    All of them together make one key: unlike the paper's Multi-PAIS that loses nothing, and the partitions cost no
    memory of their own, since events of one key simply lie side by side.

    >>> from cepheid.plan.examples import example
    >>> push_equivalence(example("PATTERN SEQ(A a, B b) WHERE [id, s] WITHIN 9")).scan_partition
    ('id', 's')
    """
    return replace(plan, scan_partition=plan.select_equivalence, select_equivalence=())


def push_window(plan: LogicalPlan) -> LogicalPlan:
    """The window is tested in scan and construction (SASE section 4.3, SASE+ section 3.2 step 5).

    >>> from cepheid.plan.examples import example
    >>> after = push_window(example("PATTERN SEQ(A a, B b) WITHIN 9"))
    >>> after.within, after.scan_window, after.construct_window
    (False, True, True)
    """
    if not plan.within:
        return plan
    return replace(plan, within=False, scan_window=True, construct_window=True)


def push_conditions(plan: LogicalPlan) -> LogicalPlan:
    """What is left to select is tested during construction, as soon as its events are chosen.

    >>> from cepheid.plan.examples import example
    >>> after = push_conditions(example("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9"))
    >>> len(after.construct_conditions), len(after.select_conditions)
    (1, 0)
    """
    return replace(
        plan,
        construct_compared=plan.construct_compared + plan.select_equivalence,
        construct_conditions=plan.construct_conditions + plan.select_conditions,
        select_equivalence=(),
        select_conditions=(),
    )


RULES: tuple[Rule, ...] = (
    recognise_equivalence,
    push_own_conditions,
    push_equivalence,
    push_window,
    push_conditions,
)


def optimise(plan: LogicalPlan, rules: tuple[Rule, ...] = RULES) -> LogicalPlan:
    """The plan after all rules."""
    for rule in rules:
        plan = rule(plan)
    return plan


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

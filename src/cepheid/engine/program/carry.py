"""Which queries have totals that can be carried along: all that a condition reads is at hand where it is tested.

A search for totals (GRETA, VLDB 2017; COGRA, SIGMOD 2019) knows of the matches so far only the last event, and the
first where it goes on from one first event at a time. So a condition may mention the event at hand, the one selected
right before it, and the first one of the match.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cepheid.engine.data.arrays import Int64Rows
from cepheid.engine.program.tables import AFTER_PLACE, BEFORE_PLACE, BEGIN, CLOSE, TAKE, Program
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery, Conjunct, Negation
from cepheid.language.printing import expression_text
from cepheid.plan import placement

AT_HAND, BEFORE, FIRST, LOST = "at hand", "before", "first", "lost"
NOTHING, TO_FIRST, TO_BEFORE = range(3)  # what ties an event: nothing, at most the first one, or the one before it


@dataclass(frozen=True)
class Carrying:
    """Can the totals of a query be carried along? Why not, or whether each first event needs a search of its own."""

    refused: str | None
    needs_first: bool = False


def carrying(bound: BoundQuery) -> Carrying:
    """How the totals of a query can be had without listing its matches.

    >>> from cepheid.plan.examples import example
    >>> carrying(example("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x").bound)
    Carrying(refused=None, needs_first=False)
    >>> carrying(example("PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x").bound).needs_first
    True
    >>> carrying(example("PATTERN SEQ(A a, B b, C c, D d) WHERE b.x < d.x").bound).refused
    'b.x < d.x reads an event that is neither the first nor the one before'
    """
    if bound.strategies != {s.Strategy.SKIP_TILL_ANY}:
        return Carrying(f"{bound.strategy_text} looks at events that are not selected")
    if bound.output.mode is not s.OutputMode.ALL:
        return Carrying(f"OUTPUT {bound.output.mode.value} compares matches one by one")
    needs_first = any(negation.after is None or negation.before is None for negation in bound.negations)
    for conjunct, kinds in _tests(bound):
        if LOST in kinds:
            text = expression_text(conjunct.expression)
            return Carrying(f"{text} reads an event that is neither the first nor the one before")
        needs_first |= FIRST in kinds
    if bound.negations and placement.judged_by_branch(placement.decisive_branches(bound)):
        return Carrying("negation is evaluated per alternative of the condition, on complete matches")
    if bound.has_tied_negations:
        return Carrying("a condition relates negated components to each other")
    return Carrying(None, needs_first)


def _tests(bound: BoundQuery) -> Iterator[tuple[Conjunct, set[str]]]:
    """Every condition at every moment it is tested at, with where what it reads is found."""
    for place, component in enumerate(bound.positives):
        moments = (
            (BEGIN, placement.begin_conjuncts(bound, place)),
            (TAKE, placement.take_conjuncts(bound, place)),
            (CLOSE, placement.close_conjuncts(bound, place)),
        )
        for moment, conjuncts in moments:
            for conjunct in conjuncts:
                walked = conjunct.every - {component.variable}
                yield conjunct, {LOST} if walked else reads(bound, conjunct.expression, place, moment)
    for branch in placement.decisive_branches(bound):
        for negation in bound.negations:
            for conjunct in placement.negation_conjuncts(bound, negation, branch):
                yield conjunct, _negation_reads(bound, conjunct, negation)


def reads(bound: BoundQuery, expression: s.Expression, place: int, moment: int) -> set[str]:
    """Where the events are found that an expression reads when it is tested at a moment of a place."""
    found = set()
    for of, element in _elements(expression):
        at = bound.place_of.get(of, -1)
        single = at >= 0 and not bound.positives[at].kleene
        if at == place and not (moment == TAKE and element is s.Element.FIRST):
            read = _own(moment, element, single)
        elif at == place - 1 and moment == BEGIN and (single or element is s.Element.LAST):
            read = BEFORE
        else:
            read = LOST
        if read == LOST and at == 0 and (single or element is s.Element.FIRST):
            read = FIRST
        found.add(read)
    return found


def ties(bound: BoundQuery, program: Program) -> Int64Rows:
    """By place what its first event and its further ones are tied to."""
    found = np.zeros((program.places, 2), np.int64)
    for place in range(program.places):
        for column, moment, conjuncts in ((0, BEGIN, placement.begin_conjuncts), (1, TAKE, placement.take_conjuncts)):
            if program.moments[3 * place + moment] < program.moments[3 * place + moment + 1]:
                kinds = [reads(bound, each.expression, place, moment) for each in conjuncts(bound, place)]
                found[place, column] = TO_BEFORE if any(BEFORE in each for each in kinds) else TO_FIRST
    inside = program.negations[:, [AFTER_PLACE, BEFORE_PLACE]].min(axis=1) >= 0
    found[program.negations[inside, BEFORE_PLACE], 0] = TO_BEFORE
    return found


def _own(moment: int, element: s.Element | None, single: bool) -> str:
    """Where an element of the component itself is found."""
    if element is None or element in (s.Element.BEFORE, s.Element.ALL):
        return LOST
    if single or moment == BEGIN:
        return AT_HAND
    if moment == TAKE:
        return BEFORE if element is s.Element.PREVIOUS else AT_HAND
    return AT_HAND if element is s.Element.LAST else LOST


def _negation_reads(bound: BoundQuery, conjunct: Conjunct, negation: Negation) -> set[str]:
    if conjunct.every - {negation.component.variable}:
        return {LOST}
    inside = negation.after is not None and negation.before is not None
    # At an edge of the pattern it is judged on the complete match, whose last event is at hand.
    before = negation.after if inside else len(bound.positives) - 1
    found = set()
    for of, element in _elements(conjunct.expression):
        if of == negation.component.variable:
            found.add(AT_HAND)
            continue
        at = bound.place_of.get(of, -1)
        single = at >= 0 and not bound.positives[at].kleene
        if at == before and (single or element is s.Element.LAST):
            found.add(BEFORE)
        elif inside and at == negation.before and (single or element is s.Element.FIRST):
            found.add(AT_HAND)
        else:
            found.add(FIRST if at == 0 and (single or element is s.Element.FIRST) else LOST)
    return found


def _elements(expression: s.Expression) -> Iterator[tuple[str, s.Element | None]]:
    """Each mention of a variable with the element meant; None: the group as a whole."""
    for node in s.walk(expression):
        if isinstance(node, s.Length):
            yield node.variable, None
        elif isinstance(node, s.Reference):
            yield node.variable, node.element

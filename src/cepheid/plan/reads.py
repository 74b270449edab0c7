"""What later edges can still read of a run: runs that agree on it are equivalent from there on (SASE+ 5.2.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.bind import place_conjunct
from cepheid.language.bound import BoundQuery, Branch, Conjunct
from cepheid.plan.placement import begin_conjuncts, close_conjuncts, judging_place, negation_conjuncts, take_conjuncts


class Which(Enum):
    """What of a component's events an edge reads."""

    FIRST = "first"  # the first (or only) event
    LAST = "last"  # the one taken last
    NEW = "new"  # the one at hand
    GROUP = "group"  # each of them in turn: only the whole history will do


@dataclass(frozen=True)
class Read:
    """A value that a condition reads of a component: an attribute, an aggregate or, without either, the instant."""

    place: int
    which: Which
    attribute: str | None = None
    aggregate: s.Expression | None = None  # an aggregate or a length over the events so far


def pending_reads(bound: BoundQuery, place: int, branches: tuple[Branch, ...], closed: bool = False) -> frozenset[Read]:
    """What may still be read of the events chosen so far by a run that has filled `place`.

    A Kleene group may take further events unless it is `closed`.
    """
    found: set[Read] = set()
    kleene = bound.positives[place].kleene and not closed
    own = bound.positives[place].variable
    last = len(bound.positives) - 1
    if kleene:
        for conjunct in take_conjuncts(bound, place):
            found |= set(reads_of(bound, conjunct, own))
        for conjunct in close_conjuncts(bound, place):
            # The group is judged again only after a further event, which is then its last.
            found |= {r for r in reads_of(bound, conjunct) if not (r.place == place and r.which is Which.LAST)}
    for later in range(place + 1, last + 1):
        variable = bound.positives[later].variable
        for conjunct in begin_conjuncts(bound, later) + take_conjuncts(bound, later):
            found |= set(reads_of(bound, conjunct, variable))
        for conjunct in close_conjuncts(bound, later):
            found |= set(reads_of(bound, conjunct))
    for branch in branches:
        for part in branch.positive:
            found |= set(reads_of(bound, place_conjunct(part, list(bound.positives))))
        for negation in bound.negations:
            if judging_place(bound, negation, branches) <= place:
                continue
            if negation.after is not None:
                found.add(Read(negation.after, Which.LAST))
            if negation.before is not None:
                found.add(Read(negation.before, Which.FIRST))
            for conjunct in negation_conjuncts(bound, negation, branch):
                found |= set(reads_of(bound, conjunct))
    if kleene and place == last:
        found -= {r for r in found if r.place == place and r.which is Which.LAST and not _previous(bound, place, r)}
    return frozenset(r for r in found if r.place <= place and r.which is not Which.NEW)


def _previous(bound: BoundQuery, place: int, read: Read) -> bool:
    """Is the last event of an open group read as `a[i-1]` when the next is taken?"""
    own = bound.positives[place].variable
    return any(read in reads_of(bound, conjunct, own) for conjunct in take_conjuncts(bound, place))


def reads_of(bound: BoundQuery, conjunct: Conjunct, at_hand: str | None = None) -> Iterator[Read]:
    """What a condition reads; `at_hand` is the variable whose event is being begun or taken."""

    def group(variable: str) -> bool:
        return variable in conjunct.every and variable != at_hand

    pending: list[s.Expression] = [conjunct.expression]
    while pending:
        node = pending.pop()
        match node:
            case s.Length(variable=variable):
                yield Read(bound.place_of[variable], Which.FIRST, aggregate=node)
            case s.Call(function=function, arguments=(argument,)) if function.lower() in AGGREGATES:
                (variable,) = s.variables_of(argument)
                before = any(isinstance(n, s.Reference) and n.element is s.Element.BEFORE for n in s.walk(argument))
                walked = before and group(variable)
                yield Read(bound.place_of[variable], Which.GROUP if walked else Which.FIRST, aggregate=node)
            case s.Attribute(of=of, name=name) if of.variable in bound.place_of:
                yield Read(bound.place_of[of.variable], _which(bound, of, group(of.variable)), attribute=name)
            case s.Attribute():
                continue  # of the negated event itself
            case _:
                pending.extend(s.children(node))


def _which(bound: BoundQuery, of: s.Reference, walked: bool) -> Which:
    if not bound.positives[bound.place_of[of.variable]].kleene:
        return Which.FIRST
    match of.element:
        case s.Element.FIRST:
            return Which.FIRST
        case s.Element.LAST:
            return Which.LAST
        case s.Element.PREVIOUS:
            return Which.GROUP if walked else Which.LAST
        case _:
            return Which.GROUP if walked else Which.NEW

"""Equalities between two events: what finds candidates by value, where they lie in an index, instead of one by one."""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery, Conjunct, Phase
from cepheid.language.schema import DataType
from cepheid.plan.automaton import QueryEdge
from cepheid.plan.placement import begin_conjuncts, take_conjuncts

# Values that have one representation each, so that equal ones have equal codes.
_EVERY_ELEMENT = (s.Element.SINGLE, s.Element.CURRENT)


@dataclass(frozen=True)
class Link:
    """An equality seen from the event that is looked for: its attribute, and the event and attribute it must equal."""

    conjunct: Conjunct
    sought: str  # the attribute of the event that is looked for
    known: s.Reference
    attribute: str  # of the known event


def compared_events(bound: BoundQuery, conjunct: Conjunct) -> tuple[s.Attribute, s.Attribute] | None:
    """The two sides of `a.id = b.ref`, if both are plain attributes of positive components and of one type.

    Where attributes may be absent a comparison can hold though the values differ, and values of two types may be equal
    without looking alike: no index knows that.
    """
    match conjunct.expression:
        case s.Comparison(
            operator="=", left=s.Attribute(default=None) as left, right=s.Attribute(default=None) as right
        ):
            kinds = {bound.schema.type_of(side.name) for side in (left, right)}
            known = {left.of.variable, right.of.variable} <= bound.place_of.keys()
            if (
                not known
                or bound.may_lack
                or len(kinds) > 1
                or kinds & {None, DataType.LIST, DataType.OTHER, DataType.DECIMAL}
            ):
                return None
            return (left, right) if left.of != right.of else None
    return None


def indexable(bound: BoundQuery) -> tuple[Conjunct, ...]:
    """The equalities that an index can serve: between two components, or two events of one group."""
    if not bound.is_linear or bound.contiguous:
        return ()
    links = [
        link
        for place in range(len(bound.positives))
        for step in (begin_links, take_links)
        for link in step(bound, place)
    ]
    found = {link.conjunct for link in links}
    return tuple(conjunct for conjunct in bound.conjuncts if conjunct in found)


def begin_links(bound: BoundQuery, place: int) -> list[Link]:
    """The equalities that tell by value which event can be the first (or only) one of a component."""
    variable = bound.positives[place].variable
    return [link for c in begin_conjuncts(bound, place) if (link := _link(bound, c, variable, False)) is not None]


def take_links(bound: BoundQuery, place: int) -> list[Link]:
    """The same for every further event of a Kleene group."""
    variable = bound.positives[place].variable
    if not bound.positives[place].kleene:
        return []
    return [link for c in take_conjuncts(bound, place) if (link := _link(bound, c, variable, True)) is not None]


def edge_links(bound: BoundQuery, edge: QueryEdge) -> list[tuple[str, s.Reference, str]]:
    """The equalities that tell by value which event can take an edge of an expression's automaton.

    Each is the attribute of that event, the known event, and the attribute of this.
    """
    found: list[tuple[str, s.Reference, str]] = []
    for test in edge.guard:
        match test.expression:
            case s.Comparison(operator="=", left=s.Attribute(default=None) as left, right=s.Attribute() as right):
                kinds = {bound.schema.type_of(side.name) for side in (left, right)}
                alike = len(kinds) == 1 and not kinds & {None, DataType.LIST, DataType.OTHER}
                for own, other in ((left, right), (right, left)) if alike and right.default is None else ():
                    at_hand = own.of.variable == edge.variable and own.of.element in _EVERY_ELEMENT
                    itself = other.of.variable == edge.variable
                    earlier = not itself or other.of.element in (s.Element.PREVIOUS, s.Element.FIRST)
                    if at_hand and earlier and not (itself and edge.first):
                        found.append((own.name, other.of, other.name))
    return found


def _link(bound: BoundQuery, conjunct: Conjunct, variable: str, takes: bool) -> Link | None:
    sides = compared_events(bound, conjunct)
    if sides is None or conjunct.phase is Phase.CLOSE:
        return None
    for own, other in (sides, sides[::-1]):
        at_hand = (*_EVERY_ELEMENT,) if takes else (*_EVERY_ELEMENT, s.Element.FIRST)
        if own.of.variable != variable or own.of.element not in at_hand:
            continue
        if other.of.variable == variable:
            fits = takes and other.of.element in (s.Element.PREVIOUS, s.Element.FIRST)
        elif bound.positives[bound.place_of[other.of.variable]].kleene:
            # What holds for every element of an earlier group holds for its last one.
            every = other.of.element in _EVERY_ELEMENT and other.of.variable in conjunct.every
            fits = every or other.of.element in (s.Element.FIRST, s.Element.LAST)
        else:
            fits = True
        if fits and not conjunct.from_second - {variable}:
            return Link(conjunct, own.name, other.of, other.name)
    return None

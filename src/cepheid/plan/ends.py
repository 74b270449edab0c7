"""UNTIL for runs: between two events of a group nothing may have come that ends it.

While a run waits for the next event of a group, what it took does not change. So `B+ b[] UNTIL cond` says that between
an event of the group and the next one, which is part of that interval, no event passes the condition with what was
taken so far. The event that would end the group is a negated component of any type, and edges that take a further event
of the group say that it must not have come.
"""

from __future__ import annotations

from dataclasses import replace

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.kept import kept_with_query

_PREFIX = "the end of "


def end_of(variable: str) -> str:
    """The name of the event that ends a group; no variable of a query has a space in its name."""
    return _PREFIX + variable


def is_end(variable: str) -> bool:
    """Is it the name of an event that ends a group?"""
    return variable.startswith(_PREFIX)


def with_ends(bound: BoundQuery) -> BoundQuery:
    """The query with a negated component for each event that ends a group; the same object for the same query."""
    if not bound.untils or any(is_end(component.variable) for component in bound.components):
        return bound
    return _with_ends(bound)


@kept_with_query
def _with_ends(bound: BoundQuery) -> BoundQuery:
    ended = {variable for variable, _ in bound.untils}
    components: list[s.Component] = []
    for component in bound.components:
        if component.variable in ended:  # in front of its group: behind the last one it would wait for the window's end
            components.append(s.Component(end_of(component.variable), None, negative=True))
        components.append(component)
    return replace(bound, syntax=replace(bound.syntax, components=tuple(components)))


def about_end(node: s.Expression, variable: str) -> s.Expression:
    """UNTIL's condition with the event at hand, which goes by the group's name, by a name of its own."""
    if isinstance(node, s.Reference) and node.variable == variable and node.element in s.AT_HAND:
        return s.Reference(end_of(variable), span=node.span)
    return s.rebuild(node, lambda inner: about_end(inner, variable))

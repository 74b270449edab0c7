"""UNTIL: what its condition may name. `b` is the event at hand, which ends the group `B+ b[]`.

It may be compared with events that were taken before the group, and with the group so far: b[1], b[i-1] is the last one
taken, b[..i-1] all of them, inside of aggregates.
"""

from __future__ import annotations

from collections.abc import Iterator

from cepheid.language import syntax as s
from cepheid.language.pattern import Single, children, is_list, labels_of, walk

_SO_FAR = (s.Element.FIRST, s.Element.PREVIOUS, s.Element.BEFORE)


def until_problems(query: s.QuerySyntax, component: s.Component) -> Iterator[tuple[str, s.Node, str, str | None]]:
    """What the condition that ends a group cannot mean."""
    name = component.variable
    names = [each.variable for each in query.components]
    by_name = {each.variable: each for each in query.components}
    for node in s.walk(component.until) if component.until is not None else ():
        match node:
            case s.Equivalence():
                hint = f"{name} is the current event: write {name}.x"
                yield "UNTIL is a condition on the current event", node, "until-of-several", hint
            case s.Length(variable=variable) if variable == name:
                hint = f"write count({name}[..i-1]) for the number of events so far"
                yield f"'{name}' is not complete where UNTIL is evaluated", node, "until-of-several", hint
            case s.Reference(variable=variable, element=element) if variable == name:
                if element not in (*s.AT_HAND, *_SO_FAR):
                    hint = f"{name} is the current event, {name}[i-1] the last one taken, {name}[..i-1] all so far"
                    yield f"'{name}' is not complete where UNTIL is evaluated", node, "until-of-several", hint
            case s.Reference(variable=variable) | s.Length(variable=variable) if variable in by_name:
                if by_name[variable].negative:
                    hint = "name positive components"
                    yield f"'{variable}' is the event that must not happen", node, "until-of-several", hint
                elif names.index(variable) > names.index(name):
                    hint = f"name events that come before {name} in the pattern"
                    yield f"'{variable}' comes after the place where UNTIL is evaluated", node, "until-of-several", hint


def follows_runs(query: s.QuerySyntax) -> bool:
    """Does it take the runs themselves to say where a group ends?"""
    if any(component.looks_back for component in query.components):
        return True
    groups = [node for node in walk(query.pattern) if is_list(node)]
    within = {
        label for node in groups for part in children(node) if not isinstance(part, Single) for label in labels_of(part)
    }
    return any(component.until is not None and component.variable in within for component in query.components)

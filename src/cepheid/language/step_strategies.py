"""Event selection strategies for single steps beside the query's own (docs/semantics.md, "Strategies")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cepheid.errors import QueryError
from cepheid.language import syntax as s

_WHOLE = frozenset({s.Element.SINGLE, s.Element.ALL})
_FIRST = frozenset({s.Element.SINGLE, s.Element.FIRST, s.Element.ALL})
_FURTHER = frozenset({s.Element.CURRENT, s.Element.ALL})


def with_own_strategy(query: s.QuerySyntax) -> s.QuerySyntax:
    """Of the strategies written as conjuncts, the one that names all variables or none becomes the query's own.

    >>> from cepheid.language.sase.parse import parse
    >>> query = parse("PATTERN SEQ(A a, B b) WHERE strict_contiguity(b) AND skip_till_next_match(a, b)")
    >>> query.selection.strategy.value, [each.strategy.value for each in query.step_selections]
    ('skip_till_next_match', ['strict_contiguity'])
    """
    own, kept = query.selection, []
    for selection in query.step_selections:
        if not _names_all(query, selection):
            kept.append(selection)
            continue
        if own is not None:
            start, end = selection.span
            hint = "leave one out, or let it name some of the variables"
            message = "a second event selection strategy"
            raise QueryError(message, start=start, end=end, hint=hint, code="duplicate-strategy")
        names = tuple(dict.fromkeys(step.variable for step in selection.steps))
        own = s.Selection(selection.strategy, names, span=selection.span)
    return replace(query, selection=own, step_selections=tuple(kept))


def _names_all(query: s.QuerySyntax, selection: s.StepSelection) -> bool:
    positive = {component.variable for component in query.components if not component.negative}
    named = {step.variable for step in selection.steps if step.element in _WHOLE}
    return not selection.steps or (named >= positive and all(step.element in _WHOLE for step in selection.steps))


def step_strategies(query: s.QuerySyntax) -> Iterator[tuple[str, bool, s.Strategy]]:
    """The steps that do not follow the query's own strategy: the variable, is it its further events, and by which.

    >>> from cepheid.language.sase.parse import parse
    >>> list(step_strategies(parse("PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match(b[])")))[1][:2]
    ('b', True)
    """
    own = query.selection.strategy if query.selection else s.Strategy.SKIP_TILL_ANY
    lists = {component.variable for component in query.components if component.kleene}
    for selection in query.step_selections:
        for step in selection.steps:
            if step.element in _FIRST and selection.strategy is not own:
                yield step.variable, False, selection.strategy
            if step.element in _FURTHER and step.variable in lists and selection.strategy is not own:
                yield step.variable, True, selection.strategy


def step_problems(query: s.QuerySyntax) -> Iterator[tuple[str, s.Node, str, str | None]]:
    """What is wrong with the strategies for single steps; that the variables exist is looked at elsewhere."""
    by_name = {component.variable: component for component in query.components}
    governed: set[tuple[str, bool]] = set()
    for selection in query.step_selections:
        for step in selection.steps:
            name, element = step.variable, step.element
            if name not in by_name:
                continue
            if by_name[name].negative:
                hint = "name positive components"
                yield f"'{name}' is the event that must not happen", step, "bad-strategy", hint
                continue
            if element not in _FIRST | _FURTHER:
                hint = f"write {name}[1] for the first event of the group, {name}[i] for the further ones, {name}[]"
                yield "a strategy applies to single events", step, "bad-strategy", hint
                continue
            if element is not s.Element.SINGLE and not by_name[name].kleene:
                yield f"'{name}' is a single event", step, "not-kleene", f"write {name}"
                continue
            places = {(name, further) for further in (False, True) if element in (_FURTHER if further else _FIRST)}
            if places & governed:
                yield f"two strategies for '{name}'", step, "duplicate-strategy", "leave one out"
            governed |= places

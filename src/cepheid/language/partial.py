"""OUTPUT PARTIAL: matches, and runs whose window passed before they were complete.

A run that took p1 to pk and waited for p(k+1) until its window had passed is a match of SEQ(p1, ..., pk, !(p(k+1))):
absence at the end says just that. So the query stands for several: itself, and one for each step that a run may wait
for. A group that is still open is one that has reached any of its lengths, as groups at the end of a pattern do.
Where that says too little (rounds, numbers of events, contiguity, gaps), an engine follows the runs themselves: then
there is one query for each set of variables that a run may wait for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from cepheid.language import partial_expressions as p
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.transitions import TooManyTransitionsError, awaited_sets
from cepheid.language.until import follows_runs

COMPLETE = "complete"
WAITING = "waiting for "
COLUMNS = ("timed_out", "waiting_for", "given_up")
_OF_ONE = frozenset({s.Element.SINGLE, s.Element.FIRST, s.Element.CURRENT})
_OF_CLOSED = frozenset({s.Element.ALL, s.Element.LAST})


def partial_queries(query: s.QuerySyntax) -> dict[str, s.QuerySyntax]:
    """The queries that one with OUTPUT PARTIAL stands for, by name.

    >>> from cepheid.language.printing import to_text
    >>> from cepheid.language.sase.parse import parse
    >>> queries = partial_queries(parse("PATTERN SEQ(Order a, Ship b) WHERE [id] WITHIN 9 OUTPUT PARTIAL"))
    >>> print(to_text(queries["waiting for b"]))
    PATTERN SEQ(Order a, !(Ship b))
    WHERE [id]
    WITHIN 9
    """
    found = {COMPLETE: replace(query, output=s.Output())}
    if _needs_runs(query):
        negated = frozenset(component.variable for component in query.components if component.negative)
        for waiting in dict.fromkeys(awaited_sets(query.pattern, negated).values()):
            output = s.Output(s.OutputMode.PARTIAL, waiting=waiting)
            found[WAITING + " or ".join(waiting)] = replace(query, sequence=True, output=output)
        return found
    if not query.is_linear:
        for beginning in p.beginnings(query):
            name = f"{WAITING}{' or '.join(beginning.awaited)} after {', '.join(beginning.taken)}"
            found[name] = begun_query(query, beginning)
        return found
    places = [place for place, component in enumerate(query.components) if not component.negative]
    for before, place in pairwise(places):
        awaited = query.components[place]
        found[WAITING + awaited.variable] = _waiting(query, before, place)
    return found


def begun_query(query: s.QuerySyntax, beginning: p.Beginning) -> s.QuerySyntax:
    """The runs of an expression that began so; a group that is open at their end may be of any length."""
    by_name = {component.variable: component for component in query.components}
    group = by_name[beginning.taken[-1]]

    def about(part: s.Expression, variable: str) -> s.Expression | None:
        awaited = by_name[variable]
        if not awaited.kleene:
            return part
        return None if _is_later(part, awaited) else _of_one(part, variable)

    kept = [
        part for part in p.conditions_of(query.where) if not (group.kleene and _speaks_of_closed(part, group.variable))
    ]
    where = None if not kept else kept[0] if len(kept) == 1 else s.And(tuple(kept))
    return p.partial_query(replace(query, where=where), beginning, about)


def waited_for(name: str) -> str:
    """What the runs of one of the queries waited for.

    >>> waited_for("waiting for b or c after a"), waited_for("waiting for b")
    ('b or c', 'b')
    """
    return name.removeprefix(WAITING).partition(" after ")[0]


def with_length(query: s.QuerySyntax, parameters: Mapping[str, Any]) -> s.QuerySyntax:
    """The query with a window whose length is a number, not a parameter."""
    within = query.within
    if within is None or not isinstance(within.length, s.Name):
        return query
    return replace(query, within=replace(within, length=parameters.get(within.length.name, within.length)))


def partial_problems(query: s.QuerySyntax) -> Iterator[tuple[str, s.Node, str, str | None]]:
    """What OUTPUT PARTIAL cannot mean in a query, or not yet."""
    output = query.output
    if output.mode is not s.OutputMode.PARTIAL or output.waiting is not None:
        return
    if query.within is None or query.within.unit == "events":
        hint = "add WITHIN 1 hour, for example: a partial match times out when the window has passed"
        yield "OUTPUT PARTIAL needs a window of time", output, "bad-partial", hint
    if _needs_runs(query):
        try:
            awaited_sets(query.pattern, frozenset(each.variable for each in query.components if each.negative))
        except TooManyTransitionsError:
            hint = "write one query for each alternative"
            yield "OUTPUT PARTIAL of a pattern with very many states", output, "bad-partial", hint
    if query.step_selections:
        hint = "use one strategy for all steps, or use cepheid.flink"
        yield "OUTPUT PARTIAL with strategies for single steps", output, "bad-partial", hint
    if query.threshold is not None or query.confidence is not None:
        hint = "leave THRESHOLD and CONFIDENCE out"
        yield "OUTPUT PARTIAL needs events that are certain", output, "bad-partial", hint
    if query.returns is not None or query.summary is not None:
        hint = "leave RETURN and SUMMARISE out, and compute with the rows"
        yield "OUTPUT PARTIAL returns events", output, "bad-partial", hint
    for component in query.components:
        if component.variable in COLUMNS:
            hint = "choose another variable"
            yield f"'{component.variable}' is a column of this result", component, "bad-partial", hint


def _needs_runs(query: s.QuerySyntax) -> bool:
    """Is what was given up more than what is followed by the absence of the next event?"""
    if query.selection is not None and query.selection.strategy in s.CONTIGUOUS:
        return True
    if any(component.gap is not None for component in query.components) or follows_runs(query):
        return True
    if query.is_linear:
        return False
    if any(p.endless_groups(query.pattern)) or len(p.linear_variables(query.pattern)) > p.MOST_LINEAR or _twice(query):
        return True
    return any(len(each.ended_by) > 1 and all(each.ended_by) for each in p.beginnings(query))


def _twice(query: s.QuerySyntax) -> bool:
    """Can two linear patterns begin with the same events, with something else that must not happen between them?"""
    negated = {component.variable for component in query.components if component.negative}
    taken = [tuple(name for name in each.taken if name not in negated) for each in p.beginnings(query)]
    return len(set(taken)) < len(taken)


def _waiting(query: s.QuerySyntax, before: int, place: int) -> s.QuerySyntax:
    """The runs that took everything up to one place, and waited for the next until the window had passed."""
    awaited = query.components[place]
    absent = replace(awaited, negative=True, kleene=False, until=None)
    coming = frozenset(each.variable for each in query.components[place:] if not each.negative)
    between = frozenset(each.variable for each in query.components[before + 1 : place])
    depend = p.depending(query, between, coming)
    held_back = (each for each in query.components[:place] if each.variable not in depend)
    components = (*held_back, absent)
    open_group = query.components[before].variable if query.components[before].kleene else None
    known = frozenset(component.variable for component in components)
    kept = known_conditions(query, known, open_group, awaited)
    where = None if not kept else kept[0] if len(kept) == 1 else s.And(kept)
    selection = query.selection
    if selection is not None:
        variables = tuple(name for name in selection.variables if name in known)
        selection = replace(selection, variables=variables)
    held = query.in_order(components)
    return replace(held, sequence=True, where=where, selection=selection, output=s.Output())


def known_conditions(
    query: s.QuerySyntax, known: frozenset[str], open_group: str | None = None, awaited: s.Component | None = None
) -> tuple[s.Expression, ...]:
    """The conditions on some variables, one of which may be a group that is open, or one that has not begun."""
    return tuple(
        _of_one(part, awaited.variable) if awaited is not None and awaited.kleene else part
        for part in p.conditions_of(query.where)
        if _is_known(part, known)
        and not _speaks_of_closed(part, open_group)
        and not (awaited is not None and _is_later(part, awaited))
    )


def _is_known(part: s.Expression, known: frozenset[str]) -> bool:
    return isinstance(part, s.Equivalence) or s.variables_of(part) <= known


def _speaks_of_closed(part: s.Expression, group: str | None) -> bool:
    """Does it speak of a group as a whole, which a group that is open is not yet?"""
    for node in s.walk(part):
        if isinstance(node, s.Length) and node.variable == group:
            return True
        if isinstance(node, s.Reference) and node.variable == group and node.element in _OF_CLOSED:
            return True
        if isinstance(node, s.Call) and node.function.lower() in AGGREGATES:
            plain = [inner for inner in s.walk(node) if isinstance(inner, s.Reference) and inner.variable == group]
            if any(inner.element is s.Element.SINGLE for inner in plain):
                return True
    return False


def _is_later(part: s.Expression, awaited: s.Component) -> bool:
    """Does it speak of further events of a group that has not begun?"""
    if not awaited.kleene:
        return False
    for node in s.walk(part):
        if isinstance(node, s.Length) and node.variable == awaited.variable:
            return True
        if isinstance(node, s.Reference) and node.variable == awaited.variable and node.element not in _OF_ONE:
            return True
    return _speaks_of_closed(part, awaited.variable)


def _of_one(part: s.Expression, variable: str) -> s.Expression:
    """`b[1].x` and `b[i].x` of a group that has not begun are those of its first event."""
    if isinstance(part, s.Reference) and part.variable == variable:
        return replace(part, element=s.Element.SINGLE)
    return s.rebuild(part, lambda inner: _of_one(inner, variable))

"""The steps of a pattern with alternatives, one query for each component: what a history must tell of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from cepheid.language import syntax as s
from cepheid.language.partial import known_conditions
from cepheid.language.partial_expressions import linear_variables
from cepheid.language.pattern import AnyOrder, Choice, Pattern, Repeat, walk


def has_alternatives(pattern: Pattern) -> bool:
    """Has a pattern alternatives?"""
    return any(isinstance(node, Choice) for node in walk(pattern))


def steps_of_alternatives(query: s.QuerySyntax) -> dict[str, s.QuerySyntax] | str:
    """For each component but the first, a sequence of what comes before it and itself; or why there is none.

    >>> from cepheid.language.printing import to_text
    >>> from cepheid.language.sase.parse import parse
    >>> steps = steps_of_alternatives(parse("PATTERN SEQ(A a, (B b | C c), D d) WHERE [id] WITHIN 9"))
    >>> [to_text(step).splitlines()[0] for step in steps.values()]
    ['PATTERN SEQ(A a, B b)', 'PATTERN SEQ(ANY(B, C) b, D d)', 'PATTERN SEQ(A a, C c)']
    """
    if any(component.negative for component in query.components):
        return "negated components together with alternatives"
    if any(isinstance(node, Repeat | AnyOrder) for node in walk(query.pattern)):
        return "groups, optional parts or AND together with alternatives"
    by_name = {component.variable: component for component in query.components}
    before: dict[str, dict[str, None]] = {}
    for linear in linear_variables(query.pattern):
        for source, target in pairwise(linear):
            before.setdefault(target, {})[source] = None
    found = {}
    for name, sources in before.items():
        first = by_name[next(iter(sources))]
        if len(sources) > 1:
            types = [by_name[each].types for each in sources]
            reported = any(s.variables_of(part) & set(sources) for part in known_conditions(query, frozenset(by_name)))
            if reported or None in types:
                return f"conditions on what comes before {name!r}, which is one of several"
            first = replace(first, types=tuple(kind for each in types for kind in each or ()), any=True)
        where = known_conditions(query, frozenset({first.variable, name}))
        found[name] = replace(
            query.in_order(tuple(replace(each, gap=None) for each in (first, by_name[name]))),
            sequence=True,
            where=None if not where else where[0] if len(where) == 1 else s.And(where),
            selection=None,
            forecast=None,
        )
    return found

"""Components by a condition instead of a type: DEFINE, and types read without regard to case.

Both become conditions on the one event of a component, so that all that is done with such conditions (the scan before
matching, push-down, `why`) is done with these, in every engine and runner.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from cepheid.language import syntax as s
from cepheid.language.normal import negation_normal_form
from cepheid.language.schema import Schema


def with_definitions(
    query: s.QuerySyntax, schema: Schema, parameters: Collection[str]
) -> tuple[s.QuerySyntax, tuple[s.Expression, ...]]:
    """The query with defined components open to any type, and the conditions that their events pass instead.

    >>> from cepheid.language.sase.parse import parse
    >>> from cepheid.language.printing import expression_text
    >>> from cepheid.language.schema import DataType
    >>> schema = Schema((("ts", DataType.INT), ("amount", DataType.INT)), "ts")
    >>> query = parse("PATTERN SEQ(small a, small b) DEFINE small AS amount < 10")
    >>> [expression_text(condition) for condition in with_definitions(query, schema, ())[1]]
    ['a.amount < 10', 'b.amount < 10']
    """
    known = {definition.name: definition.condition for definition in query.definitions}
    components, conditions = [], []
    for component in query.components:
        names = component.types or component.defined
        if not any(name in known for name in names) and not (schema.ignore_case and names):
            components.append(component)
            continue
        tests = [_test(name, known, component, schema, parameters) for name in names]
        test = tests[0] if len(tests) == 1 else s.Or(tuple(tests), span=component.span)
        if component.negative and _is_split(test):
            # As a value it stays whole: an OR in WHERE would have to be passed by no event, disjunct by disjunct.
            test = s.Comparison("=", test, s.Literal(True), span=component.span)
        wild = component.any and not any(name in known for name in names)
        components.append(replace(component, types=None, defined=tuple(names), any=wild))
        conditions.append(test)
    return replace(query, components=tuple(components)), tuple(conditions)


def _is_split(test: s.Expression) -> bool:
    return any(isinstance(node, s.Or) for node in s.walk(negation_normal_form(test)))


def _test(
    name: str, known: dict[str, s.Expression], component: s.Component, schema: Schema, parameters: Collection[str]
) -> s.Expression:
    event = s.Reference(component.variable, span=component.span)
    if name in known:
        return _about(known[name], name, event, schema, parameters)
    kind = s.Attribute(event, schema.type or "type", span=component.span)
    if not schema.ignore_case:
        return s.Comparison("=", kind, s.Literal(name), span=component.span)
    lowered = s.Call("lower", (s.Call("coalesce", (kind, s.Literal(""))),), span=component.span)
    return s.Comparison("=", lowered, s.Literal(name.lower()), span=component.span)


def _about(
    node: s.Expression, name: str, event: s.Reference, schema: Schema, parameters: Collection[str]
) -> s.Expression:
    """A condition with its bare attributes as those of an event."""
    match node:
        case s.Name(name=word) if word not in parameters and schema.type_of(word) is not None:
            return s.Attribute(replace(event, span=node.span), word, span=node.span)
        case s.Attribute(of=s.Reference(variable=variable)) if variable != name:
            # `user.id` reads like the attribute of a variable; here it is one that is nested
            return s.Attribute(replace(event, span=node.span), f"{variable}.{node.name}", span=node.span)
        case s.Attribute():
            return replace(node, of=event)
    return s.rebuild(node, lambda inner: _about(inner, name, event, schema, parameters))

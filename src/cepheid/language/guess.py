"""A schema guessed from a query alone, so that it can be explained before there is data."""

from __future__ import annotations

from cepheid.language import syntax as s
from cepheid.language.functions import find_function
from cepheid.language.schema import DataType, Schema


def guessed_schema(query: s.QuerySyntax) -> Schema:
    """Columns that the query mentions, with types that fit how it uses them.

    >>> from cepheid.language.sase.parse import parse
    >>> dict(guessed_schema(parse("PATTERN SEQ(A a, B b) WHERE [id = 'x'] AND a.n < b.n WITHIN 1 hour")).columns)["id"]
    <DataType.STRING: 'string'>
    """
    where = [query.where] if query.where is not None else []
    defined = [_of_an_event(definition.condition) for definition in query.definitions]
    ends = [component.until for component in query.components if component.until is not None]
    expressions = [*where, *defined, *ends, *query.values()]
    nodes = [node for expression in expressions for node in s.walk(expression)]
    known: dict[str, DataType] = {}
    pairs: list[tuple[str, str]] = []
    for node in nodes:
        match node:
            case s.Attribute(name=name):
                known.setdefault(name, DataType.INT)
            case s.Equivalence(tests=tests):
                for name, value in tests:
                    known.setdefault(name, DataType.INT)
                    _note(known, pairs, s.Attribute(s.Reference(""), name), value)
            case s.Comparison(left=left, right=right):
                _note(known, pairs, left, right)
                _note(known, pairs, right, left)
            case s.Membership(operand=operand, values=tuple() as values):
                for value in values:
                    _note(known, pairs, operand, value)
            case s.Call(function=function, arguments=arguments) if (called := find_function(function)) is not None:
                for place, inner in enumerate(arguments):
                    accepted = called.accepted(place)
                    if isinstance(inner, s.Attribute) and len(accepted) == 1:
                        known |= {inner.name: next(iter(accepted))}
    for _ in pairs:
        for left_name, right_name in pairs:
            if DataType.STRING in (known.get(left_name), known.get(right_name)):
                known[left_name] = known[right_name] = DataType.STRING
    single = len(query.components) == 1
    known |= {node.name: DataType.STRING for node in nodes if single and isinstance(node, s.Name)}
    timed = query.within is not None and query.within.unit not in (None, "events")
    every = query.summary.every if query.summary is not None else None
    timed = timed or (every is not None and every.unit is not None)
    timed = timed or known.get("ts") in (DataType.STRING, DataType.TIME)  # compared with a date, or asked for its hour
    timed = timed or any(isinstance(node, s.Duration) for node in nodes)
    known.pop("type", None)
    known["ts"] = DataType.TIME if timed else DataType.INT
    names = {definition.name for definition in query.definitions}
    typed = any(not names >= set(component.types) for component in query.components if component.types is not None)
    columns = (*known.items(), *((("type", DataType.STRING),) if typed else ()))
    return Schema(columns, "ts", "type" if typed else None, "microseconds" if timed else None)


def _of_an_event(node: s.Expression) -> s.Expression:
    """A definition with its bare words as attributes."""
    if isinstance(node, s.Name):
        return s.Attribute(s.Reference(""), node.name, span=node.span)
    return s.rebuild(node, _of_an_event)


def _note(
    known: dict[str, DataType], pairs: list[tuple[str, str]], left: s.Expression, right: s.Expression | None
) -> None:
    if not isinstance(left, s.Attribute):
        return
    if isinstance(right, s.Literal) and isinstance(right.value, str):
        known[left.name] = DataType.STRING
    elif isinstance(right, s.Literal) and isinstance(right.value, float):
        known[left.name] = DataType.FLOAT
    elif isinstance(right, s.Attribute):
        pairs.append((left.name, right.name))

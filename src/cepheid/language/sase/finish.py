"""After the tree of a query is there: what its words mean, and limits that later passes rely on."""

from __future__ import annotations

from dataclasses import replace

from cepheid.errors import QueryError
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.step_strategies import with_own_strategy as own_strategy_apart


def check_expressions(query: s.QuerySyntax, text: str) -> None:
    """Refuses expressions nested deeper than later passes can follow, and numbers that no column can hold."""
    for expression in (*query.conditions(), *query.values()):
        deep = s.deeper_than(expression, s.MAX_DEPTH)
        if deep is not None:
            message = f"expressions are nested more than {s.MAX_DEPTH} levels deep"
            hint = "write fewer parentheses and NOTs, or compute a part as a column before"
            raise QueryError(message, text=text, start=deep.span[0], end=deep.span[1], code="too-deep", hint=hint)


def aggregate_all_before(query: s.QuerySyntax) -> s.QuerySyntax:
    """`max(a[i-1].price)` means `max(a[..i-1].price)`.

    SASE+ table 1 prints it so and explains it as all events selected before; one event needs no aggregate.
    """

    def change(node: s.Expression, shorthand: bool) -> s.Expression:
        if isinstance(node, s.Reference) and node.element is s.Element.PREVIOUS and shorthand:
            return replace(node, element=s.Element.BEFORE)
        if isinstance(node, s.Call) and node.function.lower() in AGGREGATES:
            elements = {inner.element for inner in s.walk(node) if isinstance(inner, s.Reference)}
            shorthand = elements <= {s.Element.PREVIOUS, s.Element.SINGLE}
        return s.rebuild(node, lambda inner: change(inner, shorthand))

    where = change(query.where, False) if query.where is not None else None
    return replace(query.with_values(lambda value: change(value, False)), where=where)


def with_own_strategy(query: s.QuerySyntax, text: str) -> s.QuerySyntax:
    """Of the strategies written as conjuncts, the one that names all variables or none is the query's own."""
    try:
        return own_strategy_apart(query)
    except QueryError as error:
        start, end = error.start or 0, error.end or 0
        raise QueryError(error.message, text=text, start=start, end=end, hint=error.hint, code=error.code) from None


def name_all_in_selection(query: s.QuerySyntax) -> s.QuerySyntax:
    """A strategy without variables (SASE+ table 1) is over all of them."""
    if query.selection is None or query.selection.variables:
        return query
    names = tuple(component.variable for component in query.components)
    return replace(query, selection=replace(query.selection, variables=names))


def resolve_bare_words(query: s.QuerySyntax) -> s.QuerySyntax:
    """`SEQ(x, !(y), z)` declares untyped variables (AYAC), `SEQ(E1, E2)` names types (SASE's templates).

    A bare word is a variable if the query mentions it as one, and a type otherwise. A filter query's only
    component is a type (SASE, Q1); its event is then called `event`.
    """
    if all(component.named for component in query.components):
        return query
    mentioned = s.mentioned_words(query)
    resolved = []
    for component in query.components:
        if not component.named:
            if component.variable in mentioned and not component.any:
                component = replace(component, named=True, types=None)
            elif not query.sequence:
                component = replace(component, variable="event")
        resolved.append(component)
    return replace(query, components=tuple(resolved)) if query.sequence else query.in_order(tuple(resolved))

"""Every error of a query text, without running it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from cepheid.errors import QueryError, closest
from cepheid.language import syntax as s
from cepheid.language.bind import bind
from cepheid.language.check import problems, resolve
from cepheid.language.match_recognize.parse import is_clause, parse_clause
from cepheid.language.sase.parse import parse
from cepheid.language.schema import Schema
from cepheid.runners.options import Options
from cepheid.runners.rows import bound_to
from cepheid.runners.ties import in_row_order


def errors_of(
    text: str,
    table: pa.Table | None = None,
    roles: Mapping[str, object] | None = None,
    parameters: Mapping[str, object] | None = None,
) -> Iterator[QueryError]:
    """The errors of a query text: of its syntax; else all of its structure; else all against a table.

    `roles` say which columns of the table mean what, as `match` takes them.

    >>> [error.code for error in errors_of("PATTERN SEQ(A a, B b) WHERE c.x = 1")]
    ['unknown-variable']
    """
    if is_clause(text):
        yield from _errors_of_clause(text, table)
        return
    try:
        syntax = parse(text)
        if any(s.deeper_than(e, s.MAX_DEPTH) is not None for e in _expressions(syntax)):
            raise QueryError(f"expressions are nested more than {s.MAX_DEPTH} levels deep", code="too-deep")
        syntax = resolve(syntax)
    except QueryError as error:
        yield error
        return
    structural = list(problems(syntax, text))
    yield from structural
    if structural or table is None or roles is None:
        return
    options, columns = in_row_order(Options.from_keywords(roles), table.schema)
    known = options.roles()
    known["types"] = types_in(table, options.type)
    schema = Schema.from_arrow(columns, **known)
    yield from _errors_against(syntax, schema, parameters, text)


def _errors_of_clause(text: str, table: pa.Table | None) -> Iterator[QueryError]:
    """Those of its syntax; else every name that no column has; else the first of its meaning."""
    try:
        clause = parse_clause(text, "spark")
    except QueryError as error:
        yield error
        return
    if table is None:
        return
    columns, names = table.schema, table.column_names
    while True:
        try:
            bound_to(clause, columns)
            return
        except QueryError as error:
            missing = re.fullmatch("no column '(.*)'", error.message) if error.code == "unknown-column" else None
            if missing is None:
                if len(columns) == len(names):  # otherwise it may be about a column that was put in
                    yield error
                return
            guess = closest(missing[1], names)
            hint = f"did you mean '{guess}'?" if guess else f"the columns are {', '.join(names[:12])}"
            where: dict[str, Any] = {"text": error.text, "start": error.start, "end": error.end}
            yield QueryError(error.message, **where, hint=hint, code=error.code)
            columns = columns.append(pa.field(missing[1], pa.null()))  # which fits everywhere


def _errors_against(
    syntax: s.QuerySyntax, schema: Schema, parameters: Mapping[str, object] | None, text: str
) -> Iterator[QueryError]:
    """Every error against the columns and types of a table: what one is about is left out to find the next."""
    put_in: list[tuple[int, int]] = []  # the places of conditions with NULL for attributes that no column has
    while True:
        try:
            bind(syntax, schema, parameters, text)
            return
        except QueryError as error:
            found = error
        place = found.start
        if found.code == "unknown-attribute" or place is None or not any(a <= place < b for a, b in put_in):
            yield found
        missing = re.fullmatch("no event type '(.*)'", found.message) if found.code == "unknown-type" else None
        if missing is not None and schema.types is not None:
            schema = replace(schema, types=schema.types | {missing[1]})
            continue
        if found.code == "unknown-attribute":
            known, put_in = _with_null(syntax, found, put_in)
            if known != syntax:
                syntax = known
                continue
        smaller = _without(syntax, found)
        if smaller is None:
            return
        syntax = smaller


def _with_null(
    syntax: s.QuerySyntax, error: QueryError, put_in: list[tuple[int, int]]
) -> tuple[s.QuerySyntax, list[tuple[int, int]]]:
    """The query with NULL for the attribute that an error is about, so that others in its condition are found, too."""

    def with_null(node: s.Expression) -> s.Expression:
        if isinstance(node, s.Attribute) and node.span == (error.start, error.end):
            return s.Literal(None, span=node.span)
        return s.rebuild(node, with_null)

    where = None if syntax.where is None else with_null(syntax.where)
    items = [replace(item, expression=with_null(item.expression)) for item in syntax.returns or ()]
    places = [part.span for part in (*s.conjoined(syntax.where), *items) if part.span[0] <= (error.start or 0)]
    holding = [span for span in places if (error.start or 0) < span[1]]
    return replace(syntax, where=where, returns=tuple(items) or None), [*put_in, *holding]


def _without(syntax: s.QuerySyntax, error: QueryError) -> s.QuerySyntax | None:
    """The query without the condition, the returned value or the clause that an error points into."""
    place = error.start
    if place is None:
        return None

    def inside(node: s.Node) -> bool:
        return node.span[0] <= place < node.span[1]

    parts = s.conjoined(syntax.where)
    if any(map(inside, parts)):
        kept = [each for part in parts for each in (_other_tests(part, error) if inside(part) else [part])]
        where = s.And(tuple(kept)) if len(kept) > 1 else kept[0] if kept else None
        return replace(syntax, where=where, summary=None)  # BY names attributes that conditions must have tested
    if any(map(inside, syntax.returns or ())):
        return replace(syntax, returns=tuple(item for item in syntax.returns or () if not inside(item)) or None)
    if syntax.within is not None and inside(syntax.within):
        return replace(syntax, within=None)
    if syntax.summary is not None and inside(syntax.summary):
        return replace(syntax, summary=None)
    return None


def _other_tests(part: s.Expression, error: QueryError) -> list[s.Expression]:
    """Of an equivalence test, the attributes that the error is not about: they all stand at one place."""
    if not isinstance(part, s.Equivalence):
        return []
    tests = tuple((name, value) for name, value in part.tests if f"'{name}'" not in error.message)
    return [replace(part, tests=tests)] if 0 < len(tests) < len(part.tests) else []


def _expressions(query: s.QuerySyntax) -> list[s.Expression]:
    returned = [item.expression for item in query.returns or ()]
    return [query.where, *returned] if query.where is not None else returned


def types_in(table: pa.Table, type: str | None) -> frozenset[str] | None:
    """The event types that occur in a table; None if they are not known."""
    if type is None or type not in table.column_names or table.num_rows == 0:
        return None
    return frozenset(str(name) for name in table.column(type).unique().to_pylist() if name is not None)

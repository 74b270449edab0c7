"""Every error of a query text, without running it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from cepheid.errors import QueryError
from cepheid.language import syntax as s
from cepheid.language.bind import bind
from cepheid.language.check import problems, resolve
from cepheid.language.sase.parse import parse
from cepheid.language.schema import Schema
from cepheid.runners.options import Options
from cepheid.runners.ties import in_row_order


def errors_of(
    text: str,
    table: pa.Table | None = None,
    roles: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Iterator[QueryError]:
    """The errors of a query text: of its syntax; else all of its structure; else the first against a table.

    `roles` say which columns of the table mean what, as `match` takes them.

    >>> [error.code for error in errors_of("PATTERN SEQ(A a, B b) WHERE c.x = 1")]
    ['unknown-variable']
    """
    try:
        syntax = parse(text)
        if any(s.deeper_than(e, s.MAX_DEPTH) is not None for e in _expressions(syntax)):
            raise QueryError(f"expressions nested more than {s.MAX_DEPTH} deep", code="too-deep")
        syntax = resolve(syntax)
    except QueryError as error:
        yield error
        return
    structural = list(problems(syntax, text))
    yield from structural
    if structural or table is None or roles is None:
        return
    options, columns = in_row_order(Options.from_keywords(roles), table.schema)
    try:
        schema = Schema.from_arrow(columns, types=types_in(table, options.type), **options.roles())
        bind(syntax, schema, parameters, text)
    except QueryError as error:
        yield error


def _expressions(query: s.QuerySyntax) -> list[s.Expression]:
    returned = [item.expression for item in query.returns or ()]
    return [query.where, *returned] if query.where is not None else returned


def types_in(table: pa.Table, type: str | None) -> frozenset[str] | None:
    """The event types that occur in a table; None if they are not known."""
    if type is None or type not in table.column_names or table.num_rows == 0:
        return None
    return frozenset(str(name) for name in table.column(type).unique().to_pylist() if name is not None)

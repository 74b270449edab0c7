"""Attributes inside structs: `a.user.id` is read as a column of its own, which is made where the events come in."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.language import syntax as s
from cepheid.language.schema import field_of


def paths_in(query: s.QuerySyntax) -> frozenset[str]:
    """The names with dots that a query mentions: nested attributes, or columns whose names have dots.

    >>> from cepheid.language.sase.parse import parse
    >>> text = "PATTERN SEQ(A a, late b) DEFINE late AS shop.hour > 20 WHERE [user.id] AND a.x.y > 3"
    >>> sorted(paths_in(parse(text)))
    ['shop.hour', 'user.id', 'x.y']
    """
    variables = {component.variable for component in query.components}
    found = set(query.summary.by) if query.summary is not None else set()
    for expression in (*query.conditions(), *query.values()):
        for node in s.walk(expression):
            match node:
                case s.Attribute(of=s.Reference(variable=variable), name=name):
                    found |= {name} if variable in variables else {f"{variable}.{name}"}
                case s.Equivalence(tests=tests):
                    found |= {name for name, _ in tests}
    return frozenset(name for name in found if "." in name)


def missing_paths(schema: pa.Schema, queries: Iterable[s.QuerySyntax]) -> list[str]:
    """The nested attributes that queries mention and that are no columns yet."""
    mentioned = sorted({path for query in queries for path in paths_in(query)})
    return [path for path in mentioned if path not in schema.names and field_of(schema, path) is not None]


def with_nested(table: pa.Table, queries: Iterable[s.QuerySyntax]) -> pa.Table:
    """The table with a column for each nested attribute that the queries mention.

    >>> from cepheid.language.sase.parse import parse
    >>> table = pa.table({"ts": [1], "user": [{"id": 7}]})
    >>> with_nested(table, [parse("PATTERN SEQ(A a, B b) WHERE [user.id]")])["user.id"].to_pylist()
    [7]
    """
    return with_paths(table, missing_paths(table.schema, queries))


def with_paths(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """The table with those of the named columns that are fields of its structs."""
    for path in names:
        if path not in table.column_names and field_of(table.schema, path) is not None:
            first, *rest = path.split(".")
            table = table.append_column(path, pc.struct_field(table.column(first), rest))
    return table


def with_fields(schema: pa.Schema, queries: Iterable[s.QuerySyntax]) -> pa.Schema:
    """The same for a schema."""
    for path in missing_paths(schema, queries):
        field = field_of(schema, path)
        assert field is not None
        schema = schema.append(field.with_name(path))
    return schema

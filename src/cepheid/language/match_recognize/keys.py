"""A clause beside the names of a table's columns: which names with dots are fields of structs, and which are columns.

`t.x` is the column x if t is a name of the table, and the field x if t is a column. A statement tells the table's name;
a clause alone tells it by writing it in PARTITION BY or ORDER BY.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from cepheid.language.match_recognize import syntax as m
from cepheid.language.match_recognize.check import rebuilt, walk


def with_columns(clause: m.Clause, columns: Sequence[str]) -> m.Clause:
    """The clause over a table with these columns: table names are left out, keys that are columns are their names."""
    known = {name.lower() for name in columns}
    tables = clause.tables | {name for key in clause.keys for name in _table_of(key.expression, known)}
    if not tables and not clause.keys:
        return clause

    def plain(reference: m.Reference) -> m.Expression:
        first, *fields = (reference.column, *reference.fields)
        if reference.label is not None or first.name.lower() in known:
            return reference
        if fields and first.name.upper() in tables:
            return replace(reference, column=fields[0], fields=tuple(fields[1:]))
        return replace(reference, column=named.get(first.name, first))

    keys: list[m.KeyExpression] = []
    named: dict[str, m.Identifier] = {}  # what stands in the place of a key
    for key in clause.keys:
        if key.name in columns:  # it is computed already
            keys.append(key)
            continue
        expression = _each(key.expression, lambda reference: _without_tables(reference, known))
        if isinstance(expression, m.Reference) and not expression.fields:
            named[key.name] = expression.column
            continue
        name = key.name
        if isinstance(expression, m.Reference) and key.shown and expression.fields[-1].name.lower() not in known:
            name = expression.fields[-1].name
        named[key.name] = m.Identifier(name, True, key.span)
        keys.append(replace(key, name=name, expression=expression))
    return replace(
        clause,
        keys=tuple(keys),
        tables=frozenset(),
        partition_by=tuple(named.get(each.name, each) for each in clause.partition_by),
        order_by=tuple(replace(each, column=named.get(each.column.name, each.column)) for each in clause.order_by),
        measures=tuple(replace(each, expression=_each(each.expression, plain)) for each in clause.measures),
        definitions=tuple(replace(each, condition=_each(each.condition, plain)) for each in clause.definitions),
    )


def _table_of(expression: m.Expression, columns: set[str]) -> set[str]:
    """The names before a dot in a key that are no columns, but stand before one: `t.x`."""
    dotted = [part for part in walk(expression) if isinstance(part, m.Reference) and part.fields]
    return {
        part.column.name.upper()
        for part in dotted
        if part.column.name.lower() not in columns and part.fields[0].name.lower() in columns
    }


def _without_tables(reference: m.Reference, columns: set[str]) -> m.Reference:
    """A name with dots from its first column on; the last name if none is a column."""
    names = (reference.column, *reference.fields)
    first = next((place for place, name in enumerate(names) if name.name.lower() in columns), len(names) - 1)
    return replace(reference, column=names[first], fields=names[first + 1 :])


def _each(expression: m.Expression, change: Callable[[m.Reference], m.Expression]) -> m.Expression:
    if isinstance(expression, m.Reference):
        return change(expression)
    return rebuilt(expression, lambda part: _each(part, change))

"""The types of decimals in a clause: how many digits the result of an operator on them has, as Spark counts them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from cepheid.engine.search.row_pattern.columns import read
from cepheid.engine.search.row_pattern.computed_keys import with_keys
from cepheid.engine.search.row_pattern.points import aggregate_type
from cepheid.engine.values.columnwise import applied
from cepheid.engine.values.operators import Column as Values
from cepheid.engine.values.operators import constant
from cepheid.language import syntax as s
from cepheid.language.library.scalars import CHOOSING
from cepheid.language.match_recognize import bound as b


def typed(clause: b.BoundClause, schema: pa.Schema) -> b.BoundClause:
    """The clause over a table of this schema; a QueryError points at operands that do not fit."""
    empty = with_keys(schema.empty_table(), clause.keys, clause.text)
    conditions = {label: _typed(condition, empty, clause.text)[0] for label, condition in clause.conditions.items()}
    measures = tuple((name, _typed(measure, empty, clause.text)[0]) for name, measure in clause.measures)
    return replace(clause, conditions=conditions, measures=measures)


def _typed(node: s.Expression, table: pa.Table, text: str) -> tuple[s.Expression, Values]:
    """An expression with the types of its decimals, and its values over no row at all."""
    match node:
        case s.Literal(value=value):
            return node, constant(value)
        case b.Column(name=name):
            return node, read(table.column(name))
        case b.RowLabel():
            return node, pa.array([], pa.string())
        case b.MatchNumber() | b.SequenceNumber():
            return node, pa.array([], pa.int64())
        case b.Navigate(inner=inner):
            found, values = _typed(inner, table, text)
            return replace(node, inner=found), pa.array([], values.type)
        case b.Aggregated(arguments=arguments):
            parts = [_typed(argument, table, text) for argument in arguments]
            kind = aggregate_type(node, [values.type for _, values in parts], text)
            return replace(node, arguments=tuple(part for part, _ in parts)), pa.array([], kind)
    parts = [_typed(part, table, text) for part in s.children(node)]
    rest = iter([part for part, _ in parts])
    found = s.rebuild(node, lambda _: next(rest))
    columns = [values for _, values in parts]
    values = applied(found, columns, text)
    if isinstance(found, s.Call | s.Arithmetic):
        return replace(found, target=_target(found, columns, values.type)), values
    return found, values


def _target(node: s.Call | s.Arithmetic, parts: list[Values], kind: pa.DataType) -> str | None:
    """The type to which results are brought: decimals, and one of several types."""
    chooses = isinstance(node, s.Call) and node.function in CHOOSING
    if pa.types.is_decimal(kind) and not (isinstance(node, s.Call) and node.function in ("cast", "struct field")):
        return f"decimal({kind.precision},{kind.scale})"
    if not chooses or len({part.type for part in parts}) < 2:
        return None
    return "double" if pa.types.is_floating(kind) else "timestamp" if pa.types.is_timestamp(kind) else None

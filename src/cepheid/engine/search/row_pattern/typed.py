"""The types of decimals in a clause: how many digits the result of an operator on them has, as Spark counts them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from cepheid.engine.search.row_pattern.columnwise import Values, applied, constant, read
from cepheid.engine.search.row_pattern.computed_keys import with_keys
from cepheid.engine.search.row_pattern.points import aggregate_type
from cepheid.language.match_recognize.bound import (
    Aggregated,
    Apply,
    Bound,
    BoundClause,
    Column,
    Constant,
    Navigate,
    RowLabel,
)
from cepheid.language.match_recognize.functions import FUNCTIONS
from cepheid.language.match_recognize.scalars import CALCULATING, CHOOSING

# What may have decimals as its results.
_DECIMAL = CALCULATING | CHOOSING | FUNCTIONS.keys() | {"whole /"}


def typed(clause: BoundClause, schema: pa.Schema) -> BoundClause:
    """The clause over a table of this schema; a QueryError points at operands that do not fit."""
    empty = with_keys(schema.empty_table(), clause.keys, clause.text)
    conditions = {label: _typed(condition, empty, clause.text)[0] for label, condition in clause.conditions.items()}
    measures = tuple((name, _typed(measure, empty, clause.text)[0]) for name, measure in clause.measures)
    return replace(clause, conditions=conditions, measures=measures)


def _typed(node: Bound, table: pa.Table, text: str) -> tuple[Bound, Values]:
    """An expression with the types of its decimals, and its values over no row at all."""
    match node:
        case Constant(value=value):
            return node, constant(value)
        case Column(name=name):
            return node, read(table.column(name))
        case RowLabel():
            return node, pa.array([], pa.string())
        case Navigate(inner=inner):
            found, values = _typed(inner, table, text)
            return replace(node, inner=found), pa.array([], values.type)
        case Aggregated(arguments=arguments):
            parts = [_typed(argument, table, text) for argument in arguments]
            kind = aggregate_type(node, [values.type for _, values in parts], text)
            return replace(node, arguments=tuple(part for part, _ in parts)), pa.array([], kind)
        case Apply(arguments=arguments):
            parts = [_typed(argument, table, text) for argument in arguments]
            found = replace(node, arguments=tuple(part for part, _ in parts))
            values = applied(found, [each for _, each in parts], 0, text)
            if pa.types.is_decimal(values.type) and node.function in _DECIMAL:
                found = replace(found, target=f"decimal({values.type.precision},{values.type.scale})")
            elif node.function in CHOOSING and len({each.type for _, each in parts}) > 1:
                target = "double" if pa.types.is_floating(values.type) else None
                found = replace(found, target="timestamp" if pa.types.is_timestamp(values.type) else target)
            return found, values
    return node, pa.array([], pa.int64())

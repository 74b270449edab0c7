"""Conditions of one row, judged by Spark before the shuffle: a flag travels instead of the strings it was made of.

Only conditions on strings are moved, and only where nothing else needs their columns: that spares the shuffle and the
way to Python. What Spark and the engine might compute differently (numbers, times) stays with the engine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cepheid.language.free_names import free_name
from cepheid.language.match_recognize import syntax as m
from cepheid.language.match_recognize.check import walk
from cepheid.runners.spark.row_expressions import ColumnWriter

_OPERATORS = frozenset({"=", "!=", "<", "<=", ">", ">=", "in", "is null", "and", "or", "not"})


def with_flags(df: Any, clause: m.Clause) -> tuple[Any, m.Clause]:
    """The table with a flag for each condition that was moved, and the clause that reads them."""
    strings = {name.lower() for name, kind in df.dtypes if kind == "string"}
    moved = {number for number, each in enumerate(clause.definitions) if _is_movable(each, strings)}
    if not moved or clause.rows is not m.Rows.ONE or clause.dialect not in ("spark", "databricks"):
        return df, clause
    others = [each.expression for each in clause.measures]
    others += [each.condition for number, each in enumerate(clause.definitions) if number not in moved]
    needed = {name for each in others for name in _columns(each)}
    needed |= {each.name.lower() for each in (*clause.partition_by, *(key.column for key in clause.order_by))}
    definitions, flag = list(clause.definitions), free_name("computed flag ", df.columns)
    writer = ColumnWriter(df, clause.text)
    for number in sorted(moved):
        each = definitions[number]
        if not _columns(each.condition) & needed:
            name = f"{flag}{number}"
            df = df.withColumn(name, writer.column(each.condition))
            reference = m.Reference(each.label, m.Identifier(name, True, each.span), each.span)
            definitions[number] = replace(each, condition=reference)
    return df, replace(clause, definitions=tuple(definitions))


def _columns(expression: m.Expression) -> set[str]:
    return {part.column.name.lower() for part in walk(expression) if isinstance(part, m.Reference)}


def _is_movable(definition: m.Definition, strings: set[str]) -> bool:
    """Is it about strings of the row at hand and nothing else?"""
    own = definition.label.canonical
    for part in walk(definition.condition):
        match part:
            case m.Operation(operator="like", operands=(_, m.Literal(value=str() as pattern))) if "\\" not in pattern:
                continue  # Spark refuses a backslash before other signs than those of patterns
            case m.Operation(operator=operator) if operator in _OPERATORS:
                continue
            case m.Literal(value=str() | None):
                continue
            case m.Reference(label=label, column=column, fields=()) if column.name.lower() in strings:
                if label is None or label.canonical == own:
                    continue
        return False
    return isinstance(definition.condition, m.Operation)

"""Kinds of events: conditions that speak of one event alone are judged over whole columns, before the walk."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.values.columnwise import condition
from cepheid.engine.values.plain import value_column
from cepheid.language import syntax as s
from cepheid.language.flink.conditions import HERE
from cepheid.language.schema import DataType, Schema
from cepheid.plan.flink_automaton import FlinkAutomaton

_AT_HAND = s.Reference(HERE)
FEW, ROOMY = 1 << 6, 1 << 14  # kinds of events that are numbered with gaps: in the end, and on the way


def kinds_of_events(automaton: FlinkAutomaton, table: pa.Table) -> tuple[Int64s, npt.NDArray[np.uint8]]:
    """A kind for each event, and per kind and atom whether it holds; of those that look back, nothing is said.

    Events of one kind agree in all conditions that speak of one event alone.
    """
    rows = table.num_rows
    simple = {number: atom.expression for number, atom in enumerate(automaton.atoms) if atom.is_simple}
    texts = _texts_asked_for(simple.values(), automaton.schema)
    asked: dict[s.Expression, tuple[Int64s, int]] = {}  # where codes are a number, the expression holds
    kind, number = np.zeros(rows, np.int64), 1
    for name, among in texts.items():
        codes = _text_codes(table.column(name), among)
        asked |= {
            s.Comparison("=", s.Attribute(_AT_HAND, name), s.Literal(text)): (codes, at) for text, at in among.items()
        }
        kind, number = _crossed(kind, number, codes, len(among) + 1)
    for expression in simple.values():
        if expression not in asked:
            holds = simple_holds(expression, table).astype(np.int64)
            asked[expression] = holds, 1
            kind, number = _crossed(kind, number, holds, 2)
    if number > FEW:
        kind, number = _dense(kind, number)
    example = np.zeros(number if rows else 0, np.int64)
    example[kind] = np.arange(rows)
    truths = np.zeros((len(example), len(automaton.atoms)), np.uint8)
    for atom, expression in simple.items():
        codes, code = asked[expression]
        truths[:, atom] = codes[example] == code
    return kind, truths


def _texts_asked_for(expressions: Iterable[s.Expression], schema: Schema) -> dict[str, dict[str, int]]:
    """The columns that are compared with several texts, `column = 'text'`, and a number for each of these."""
    found: dict[str, dict[str, int]] = {}
    for expression in expressions:
        match expression:
            case s.Comparison(
                operator="=", left=s.Attribute(name=name, default=None), right=s.Literal(value=str(text))
            ):
                if schema.type_of(name) is DataType.STRING:
                    among = found.setdefault(name, {})
                    among.setdefault(text, len(among))
    return {name: among for name, among in found.items() if len(among) > 1}


def _text_codes(column: pa.ChunkedArray, among: dict[str, int]) -> Int64s:
    """The number of the text that each value is; of others, the next one."""
    column = value_column(column)
    found = pc.fill_null(pc.index_in(column, value_set=pa.array(list(among), column.type)), len(among))
    codes: Int64s = found.to_numpy().astype(np.int64)
    return codes


def _crossed(kind: Int64s, number: int, codes: Int64s, base: int) -> tuple[Int64s, int]:
    """Kinds that are divided further by codes below a base."""
    kind, number = kind * base + codes if number > 1 else codes, number * base
    return _dense(kind, number) if number > ROOMY else (kind, number)


def _dense(codes: Int64s, number: int) -> tuple[Int64s, int]:
    """Codes below a number as numbers without gaps, and how many there are."""
    present = np.bincount(codes, minlength=number) > 0
    place = np.cumsum(present) - 1
    return place[codes], int(present.sum())


def simple_holds(expression: s.Expression, table: pa.Table) -> npt.NDArray[np.bool_]:
    """Where a condition on the event at hand holds."""
    found = condition(expression, lambda node: value_column(table.column(node.name)))  # type: ignore[attr-defined]
    if isinstance(found, pa.Scalar):
        return np.full(table.num_rows, bool(found.as_py()))
    return np.asarray(found).astype(bool)

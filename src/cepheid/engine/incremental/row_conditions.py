"""Conditions on rows alone that kernels judge row by row, as rows come: no table is made of a single row.

What a condition says about one column of texts is remembered by text. All others are compiled, together with those that
look at the path: for each label there is a second case, of its conditions on rows alone, and one for the first row.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.columns import Columns, fill
from cepheid.engine.search.row_pattern.arrange import Arranged, arrange
from cepheid.engine.search.row_pattern.conditions import concerns_rows_alone, judged, over_rows
from cepheid.engine.search.row_pattern.implied import at_hand, on_start, without_start_conditions
from cepheid.engine.search.row_pattern.lowering import row_values
from cepheid.engine.search.row_pattern.path_state import PathState
from cepheid.engine.search.row_pattern.run import needed_columns
from cepheid.engine.values.compiled import Predicate
from cepheid.engine.values.python_first import python_first
from cepheid.language import syntax as s
from cepheid.language.match_recognize.bound import BoundClause, Column, Navigate, RowLabel
from cepheid.language.schema import DataType, Schema

MOST_LABELS, MOST_TEXTS = 30, 10_000
_PLAIN = {DataType.INT: (pa.int64(),), DataType.FLOAT: (pa.float64(),), DataType.BOOL: (pa.bool_(),)}


@dataclass
class OfRows:
    """The conditions of a clause, and the columns that they read."""

    clause: BoundClause
    judge: PathState
    predicate: Predicate
    tested: int  # labels with conditions to be judged, as bits; the bit behind them: the first row of a match
    by_text: dict[str, list[tuple[int, str, s.Expression]]]  # by column: the bit, the label and the condition
    sources: list[str]  # the columns of the table, as the predicate has them
    known: dict[str, dict[Any, int]] = field(default_factory=dict)

    def columns(self, table: pa.Table) -> Columns:
        """What the predicate reads of a table."""
        attributes = self.predicate.layout.attributes
        values = {
            name: row_values(Column(source), table, self.clause.text)
            for (name, _, _), source in zip(attributes, self.sources, strict=True)
        }
        schema = Schema(tuple((name, kind) for name, kind, _ in attributes), attributes[0][0] if attributes else "")
        rows = np.arange(table.num_rows)
        return fill(self.predicate.layout, pa.table(values or {"column": pa.nulls(len(rows))}), rows, schema)

    def texts(self, table: pa.Table) -> Int64s:
        """What texts say about the rows of a table: the labels they may have, as bits."""
        found = np.full(table.num_rows, -1, np.int64)
        for name in self.by_text:
            encoded = pc.dictionary_encode(table.column(name).combine_chunks(), null_encoding="encode")
            bits = np.array([self.of_text(name, value) for value in encoded.dictionary.to_pylist()], np.int64)
            if len(bits):
                found &= bits[encoded.indices.to_numpy(zero_copy_only=False)]
        return found

    def text_dicts(self) -> dict[str, dict[Any, int]]:
        """What texts say, by column, as far as that is known."""
        return {name: self.known.setdefault(name, {}) for name in self.by_text}

    @property
    def attributes(self) -> list[tuple[str, DataType, None]]:
        """The columns of the table that the predicate reads, and their types."""
        kinds = [kind for _, kind, _ in self.predicate.layout.attributes]
        return [(name, kind, None) for name, kind in zip(self.sources, kinds, strict=True)]

    def of_text(self, name: str, value: Any) -> int:
        """What one text says, as bits; those that it says nothing about are set."""
        known = self.known.setdefault(name, {})
        bits = known.get(value)
        if bits is None:
            table = pa.table({name: pa.array([value], pa.string())})
            rows = Arranged(table, np.array([0, 1], np.int64), np.empty(0, np.int64))
            bits = -1
            for bit, label, condition in self.by_text[name]:
                if not over_rows(self.clause, rows, condition, label)[0]:
                    bits &= ~(1 << bit)
            if len(known) >= MOST_TEXTS:
                known.clear()
            known[value] = bits
        return bits


def of_rows(clause: BoundClause, schema: pa.Schema) -> OfRows | None:
    """The conditions of a clause that kernels judge row by row; None: some have no such form."""
    if len(clause.labels) > MOST_LABELS or clause.zone is not None:
        return None
    own = {label: f"row of {label}" for label in (*clause.labels, "")}  # "": the first row of a match
    left: dict[str, list[s.Expression]] = {}
    by_text: dict[str, list[tuple[int, str, s.Expression]]] = {}
    tested = 0
    rest = without_start_conditions(clause)
    for bit, label in enumerate((*clause.labels, "")):
        condition = rest.conditions.get(label)
        parts = on_start(clause) if not label else s.conjoined(condition)
        for part in parts:
            if label and not concerns_rows_alone(part, label):
                left.setdefault(label, []).append(part)
            elif (name := _one_text(part, schema)) is not None:
                by_text.setdefault(name, []).append((bit, label, part))
            elif any(isinstance(node, RowLabel) for node in s.walk(part)):
                return None
            else:
                left.setdefault(own[label], []).append(at_hand(part))
                tested |= 1 << bit
    wider = replace(rest, labels=(*clause.labels, *own.values()))
    empty = arrange(clause, schema.empty_table(), needed_columns(clause)).table
    with python_first(False):
        judge, predicate, seen = judged(wider, empty, left, 0)
    if seen is not None and (seen.opaque or predicate.form is not None or predicate.layout.read):
        return None
    sources = _sources(predicate, seen.sources if seen is not None else {}, empty.schema)
    if sources is None:
        return None
    return OfRows(clause, judge, predicate, tested, by_text, sources)


def _one_text(condition: s.Expression, schema: pa.Schema) -> str | None:
    """The one column that a condition reads at the row at hand, if it holds texts."""
    names = {node.name for node in s.walk(condition) if isinstance(node, Column)}
    here = all(node.shift == 0 for node in s.walk(condition) if isinstance(node, Navigate))
    name = next(iter(names)) if len(names) == 1 and here else None
    return name if name is not None and schema.field(name).type == pa.string() else None


def _sources(predicate: Predicate, sources: dict[str, s.Expression], schema: pa.Schema) -> list[str] | None:
    """The columns of the table that the predicate reads as they are; None: some are computed, or of other types."""
    found = []
    for name, kind, expression in predicate.layout.attributes:
        source = sources.get(name)
        if expression is not None or not isinstance(source, Column):
            return None
        if schema.field(source.name).type not in _PLAIN.get(kind, ()):
            return None
        found.append(source.name)
    return found

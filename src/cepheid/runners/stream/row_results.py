"""Rows of the result of a row pattern, made by kernels of the rows that were sent (engine/incremental/row_measures.py).

A measure that is more than a column of a row, a number or a label is computed from such values.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.incremental import row_measures as m
from cepheid.engine.incremental.arrow_memory import Exported
from cepheid.engine.incremental.result_rows import (
    COLUMNS,
    COLUMNS_AT,
    PART_RELEASE,
    PARTS,
    PARTS_AT,
    RELEASE_OF_PART,
    made_batch,
    width_of,
)
from cepheid.engine.incremental.row_core import RowCore
from cepheid.engine.incremental.row_push import FOUND, STEPS_FOUND
from cepheid.engine.search.row_pattern.program import TAKE, Program
from cepheid.engine.values.columnwise import value as column_of
from cepheid.engine.values.operators import whole
from cepheid.language import syntax as s
from cepheid.language.match_recognize.bound import (
    Aggregated,
    BoundClause,
    Column,
    Labels,
    MatchNumber,
    Navigate,
    RowLabel,
    SequenceNumber,
)
from cepheid.language.match_recognize.syntax import Rows as RowsPerMatch
from cepheid.runners.stream.event_log import Event, EventLog
from cepheid.runners.stream.row_values import Values, scalar_measure

MANY_ROWS = 4_096  # of matches, each of which is a row of the result: a search for labels row by row may take long
FEW = 64  # rows of the result that are computed as plain Python
_NUMBERS = {MatchNumber: m.MATCH_NUMBER, SequenceNumber: m.ROW_NUMBER}
_SIGNS = {"+": m.PLUS, "-": m.MINUS, "*": m.TIMES}


class Leaf(NamedTuple):
    """A value that a kernel finds or computes: what it is, and of which column or of which others."""

    spec: tuple[int, ...]
    labels: Labels
    column: str | None
    kind: pa.DataType
    operands: tuple[s.Expression, ...] = ()
    sign: int = 0


class RowResults:
    """Makes rows of the result."""

    def __init__(
        self,
        clause: BoundClause,
        program: Program,
        log: pa.Schema,
        result: pa.Schema,
        leaves: dict[s.Expression, Leaf],
    ) -> None:
        self.clause, self.result, self.leaves = clause, result, list(leaves.values())
        self.places_of = {node: place for place, node in enumerate(leaves)}
        measures = dict(clause.measures)
        self.nodes = [measures.get(name, Column(name)) for name in result.names]
        self.is_plain = self.nodes == list(leaves)[: len(self.nodes)]  # others are what these are computed of
        names = result.names if self.is_plain else [str(place) for place in range(len(leaves))]
        self.schema = (
            result if self.is_plain else pa.schema([*zip(names, (each.kind for each in self.leaves), strict=True)])
        )
        computed = [node for node in self.nodes if node not in leaves]
        self._read = {self.places_of[leaf] for node in computed for leaf in _leaves_of(node)}  # to compute others
        self._read |= {place for place, leaf in enumerate(self.leaves) if leaf.operands}
        self._scalars = None if self.is_plain else self._as_scalars()
        self._ask(program)
        self._describe(log, names)
        entries = (m.measure_values, m.make_values, m.measure_dicts)
        self._measure_values, self._make, self._measure_dicts = (each.direct() for each in entries)

    def _as_scalars(self) -> list[Callable[[Values], Any]] | None:
        """What the columns of the result compute from the values of a row; None: Arrow computes some of them."""
        leaves, text = self.schema.empty_table(), self.clause.text
        pairs = zip(self.nodes, self.result, strict=True)
        found = [scalar_measure(node, field.type, self.places_of, leaves, text) for node, field in pairs]
        known = [each for each in found if each is not None]
        return known if len(known) == len(found) else None

    def _ask(self, program: Program) -> None:
        """Says what `measured` is to find."""
        clause = self.clause
        taken = zip(program.kind.tolist(), program.label.tolist(), strict=True)
        labels = [clause.labels[label] if kind == TAKE else None for kind, label in taken]
        specs = np.array([leaf.spec for leaf in self.leaves], np.int64)
        counts = [[leaf.labels is None or label in leaf.labels for label in labels] for leaf in self.leaves]
        sets, excluded = np.array(counts, np.uint8), program.excluded.astype(np.int32)
        self._kept: list[Any] = [specs, sets, excluded]
        self.asked = asked = np.zeros(m.ASKED_SIZE, np.int64)
        asked[m.VALUES], asked[m.STEPS_OF_PROGRAM] = len(self.leaves), len(labels)
        asked[m.SPECS_AT], asked[m.SETS_AT], asked[m.EXCLUDED_AT] = (each.ctypes.data for each in self._kept)
        asked[m.EACH_ROW] = int(clause.rows is not RowsPerMatch.ONE)
        asked[m.OMITS_EMPTY] = int(clause.rows is RowsPerMatch.ALL_OMIT_EMPTY)
        self._asked_at, self._each_row = int(asked.ctypes.data), bool(asked[m.EACH_ROW])

    def _describe(self, log: pa.Schema, names: list[str]) -> None:
        """Says where values are copied from, and what they are called."""
        columns = np.zeros((len(self.leaves), m.OF_RESULT), np.int64)
        for row, leaf in zip(columns, self.leaves, strict=True):
            width, place = width_of(leaf.kind), 0 if leaf.column is None else log.get_field_index(leaf.column)
            assert width is not None, "others are not copied"
            left, right = (self.places_of[each] for each in leaf.operands) if leaf.operands else (0, 0)
            row[:] = leaf.spec[0], place, width, pa.types.is_floating(leaf.kind), left, right, leaf.sign
        own = [(id(name), id(leaf.column)) for name, leaf in zip_longest(names, self.leaves)]
        labels = pa.record_batch({"label": pa.array(self.clause.labels, pa.string())})
        memory, texts = Exported(labels), list(self.clause.labels)
        addresses = np.array(own, np.int64)
        self._kept += [columns, addresses, names, labels, memory, texts]
        self.head = head = np.zeros(m.SHOWN_SIZE, np.int64)
        head[COLUMNS], head[COLUMNS_AT], head[PART_RELEASE] = len(columns), columns.ctypes.data, RELEASE_OF_PART
        head[m.NAMES_AT], head[m.NAMES], head[m.NOTHING] = memory.at, id(texts), id(None)
        head[m.COLUMN_NAMES_AT], head[m.COLUMNS_SHOWN] = addresses.ctypes.data, len(names)
        self._numbers, self._head_at = head.data, int(head.ctypes.data)  # which Python writes in half the time
        self._make_room(FEW)

    @classmethod
    def of(cls, clause: BoundClause, program: Program, log: pa.Schema, result: pa.Schema) -> RowResults | None:
        """None: some measures are more than values that kernels find."""
        leaves: dict[s.Expression, Leaf] = {}
        operands: dict[s.Expression, Leaf] = {}
        measures = dict(clause.measures)
        for name in result.names:
            if name not in measures:
                leaves[Column(name)] = Leaf((m.OWN_ROW, 0, 0, 0, 0), None, name, log.field(name).type)
                continue
            found = {node: _leaf(node, log) for node in _leaves_of(measures[name])}
            known = {node: leaf for node, leaf in found.items() if leaf is not None}
            if len(known) < len(found):
                return None
            whole = _arithmetic(measures[name], known)
            if whole is not None:
                leaves[measures[name]] = whole
            (leaves if whole is None else operands).update(known)
        leaves |= {node: leaf for node, leaf in operands.items() if node not in leaves}
        if not leaves or any(not _is_copied(leaf.kind) for leaf in leaves.values()):
            return None
        nodes = [measures.get(name, Column(name)) for name in result.names]
        if any(leaves[node].kind != field.type for node, field in zip(nodes, result, strict=True) if node in leaves):
            return None
        return cls(clause, program, log, result, leaves)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def fits(self, core: RowCore) -> bool:
        """Can what is found be shown by kernels?"""
        return not self._each_row or core.numbers_of_batch[STEPS_FOUND] <= MANY_ROWS

    def telling(self, core: RowCore, most: int) -> Int64s | None:
        """What the kernel needs that makes the rows of up to so many matches; None: Python computes some columns."""
        made = np.zeros(m.TELLING_SIZE, np.int64)
        made[m.BATCH_OF_SEARCH], made[m.ASKED_OF_RESULT] = core.batch_at, self._asked_at
        made[m.HEAD_OF_RESULT], made[m.MOST_FOUND] = self._head_at, most
        return made if self.is_plain else None

    def table(self, core: RowCore, log: EventLog) -> pa.Table:
        """What is found as a table."""
        self._look_at(core)
        head = self._numbers
        head[PARTS], head[PARTS_AT] = log.places()
        words = self._measure_values(core.batch_at, self._asked_at, self._head_at)
        if not head[m.ROWS_SHOWN]:
            return self.result.empty_table()
        if words < 0:
            return self._computed(pa.RecordBatch.from_pylist(self._one_by_one(log), self.schema))
        return self._computed(made_batch(self.head, words, self.schema, self._make_batch))

    def _make_batch(self) -> int:
        filled: int = self._make(self._head_at)
        return filled

    def dicts(self, core: RowCore, log: EventLog) -> list[Event]:
        """What is found as dicts."""
        self._look_at(core)
        made, dicts, head = list[Event](), log.dicts, self._numbers
        head[m.FIRST_DICT], head[m.DICTS] = log.rows if dicts is None else log.starts[-1], id(dicts)
        if self._measure_dicts(made, core.batch_at, self._asked_at, self._head_at) < 0:
            made = self._one_by_one(log)
        if self.is_plain:
            return made
        if self._scalars is not None and len(made) <= FEW:
            columns = [*zip(self.result.names, self._scalars, strict=True)]
            values = [[*row.values()] for row in made]
            return [{name: compute(row) for name, compute in columns} for row in values]
        return self._computed(pa.RecordBatch.from_pylist(made, self.schema)).to_pylist()  # type: ignore[no-any-return]

    def _look_at(self, core: RowCore) -> None:
        """Makes room for what is found."""
        batch = core.numbers_of_batch
        most = batch[FOUND] + batch[STEPS_FOUND] if self._each_row else batch[FOUND]
        if most > len(self._shown):
            self._make_room(2 * most)

    def _make_room(self, rows: int) -> None:
        """Room for so many rows of the result, and for where their values lie; it is used during a call alone."""
        values = len(self.leaves)
        self._shown, self._found = np.zeros((rows, values), np.int64), np.zeros((rows * values, 2), np.int64)
        self.head[m.ROWS_SHOWN_AT], self.head[m.VALUES_FOUND_AT] = self._shown.ctypes.data, self._found.ctypes.data
        self.head[m.ROWS_ROOM] = rows

    def _one_by_one(self, log: EventLog) -> list[Event]:
        """The same for rows that came as dicts and in tables."""
        made = []
        for places in self._shown[: self._numbers[m.ROWS_SHOWN]].tolist():
            row: list[Any] = [None] * len(places)
            for at, (leaf, place) in enumerate(zip(self.leaves, places, strict=True)):
                if place >= 0 and leaf.column is not None:
                    value = log.value(place, leaf.column)
                    row[at] = value if value == value else None  # what is not a number is NULL
                elif place >= 0:
                    row[at] = self.clause.labels[place] if leaf.spec[0] == m.LABEL else place
            for at, leaf in enumerate(self.leaves):
                if leaf.operands:
                    left, right = (row[self.places_of[each]] for each in leaf.operands)
                    value = None if left is None or right is None else m.computed(leaf.sign, left, right)
                    row[at] = value if value == value else None
            made.append(dict(zip(self.schema.names, row, strict=False)))
        return made

    def _computed(self, leaves: pa.RecordBatch) -> pa.Table:
        """The rows of the result, of the values that they are computed from."""
        if self.is_plain:
            return pa.Table.from_batches([leaves])
        columns, number = leaves.columns, leaves.num_rows
        scalars, values, found = self._scalars if number <= FEW else None, list[Values](), []
        if scalars is not None:
            unused = [None] * number
            lists = [each.to_pylist() if place in self._read else unused for place, each in enumerate(columns)]
            values = [*zip(*lists, strict=True)]
        for place, (node, field) in enumerate(zip(self.nodes, self.result, strict=True)):
            if node in self.places_of:
                own = columns[self.places_of[node]]
            elif scalars is not None:
                own = pa.array([*map(scalars[place], values)], field.type)
            else:
                own = column_of(node, lambda leaf: columns[self.places_of[leaf]], self.clause.text)
                own = whole(own, number)
            found.append(pa.nulls(number, field.type) if pa.types.is_null(own.type) else own)
        return pa.Table.from_arrays(found, schema=self.result)


def _leaves_of(node: s.Expression) -> list[s.Expression]:
    """The parts of a measure that are of rows."""
    if isinstance(node, Navigate | Aggregated | MatchNumber | SequenceNumber):
        return [node]
    return [leaf for child in s.children(node) for leaf in _leaves_of(child)]


def _leaf(node: s.Expression, log: pa.Schema) -> Leaf | None:
    if isinstance(node, MatchNumber | SequenceNumber):
        return Leaf((_NUMBERS[type(node)], 0, 0, 0, 0), None, None, pa.int64())
    if isinstance(node, Aggregated):
        plain = not node.arguments and not node.distinct and not node.filtered
        return Leaf((m.COUNT, 0, 0, 0, node.final), node.labels, None, pa.int64()) if plain else None
    if not isinstance(node, Navigate):
        return None
    spec = (node.first, node.offset, node.shift, node.final)
    if isinstance(node.inner, Column):
        name = node.inner.name
        return Leaf((m.OTHER_ROW, *spec), node.labels, name, log.field(name).type)
    return Leaf((m.LABEL, *spec), node.labels, None, pa.string()) if isinstance(node.inner, RowLabel) else None


def _arithmetic(node: s.Expression, leaves: dict[s.Expression, Leaf]) -> Leaf | None:
    """A sum, a difference or a product of two columns of rows that are fractions, which a kernel computes."""
    if not isinstance(node, s.Arithmetic) or node.target is not None or node.operator not in _SIGNS:
        return None
    operands = (node.left, node.right)
    if any(each not in leaves or leaves[each].column is None for each in operands):
        return None
    if any(leaves[each].kind != pa.float64() for each in operands):
        return None
    return Leaf((m.ARITHMETIC, 0, 0, 0, 0), None, None, pa.float64(), operands, _SIGNS[node.operator])


def _is_copied(kind: pa.DataType) -> bool:
    """Do kernels copy such values as they are?"""
    changes = pa.types.is_large_string(kind) or (pa.types.is_floating(kind) and kind != pa.float64())
    return width_of(kind) is not None and not changes

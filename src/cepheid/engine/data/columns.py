"""The columns that compiled predicates read: plain arrays, one row per attribute.

Whole numbers, times and booleans are int64 (never through float), numbers float64, strings the rank in a shared
sorted dictionary, lists slices of one flat array. NULL is a mask. The layout depends on the query and the schema
only, so that a compiled predicate serves every batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.arrays import Float64Rows, Float64s, Int64Rows, Int64s, Uint8Rows
from cepheid.engine.data.shared import is_shared, once
from cepheid.engine.values.columnwise import lacking_by_type, value
from cepheid.engine.values.interpreted import kept
from cepheid.engine.values.plain import value_column
from cepheid.engine.values.python_first import numbered
from cepheid.language import syntax as s
from cepheid.language.schema import DataType, Schema


class Columns(NamedTuple):
    """What a compiled predicate reads; see `ColumnLayout` for which row is which."""

    whole: Int64Rows
    number: Float64Rows
    null: Uint8Rows
    literal: Int64s  # the ranks of string literals
    flat: Float64s  # all lists, one after the other
    edge: Int64Rows  # rows 2k and 2k + 1: where list k begins and ends in `flat`


# A compiled predicate: the case, the rows of the chosen events by slot, whole and other aggregates, and the columns.
PredicateCall: TypeAlias = Callable[[int, Int64s, Int64s, Float64s, Columns], bool]

LACKING = 2  # in `null`, of an attribute that the event's type does not have, as the call said; 1: another NULL


@dataclass(frozen=True)
class ColumnLayout:
    """Which attribute lies in which row. An attribute may be derived: an expression over one event."""

    attributes: tuple[tuple[str, DataType, s.Expression | None], ...]
    literals: tuple[str, ...] = ()
    read: tuple[str, ...] = ()  # columns that conditions read as Python values, where they cannot be compiled
    form: int | None = None  # the number of a Python function that stands for the compiled one

    def null_row(self, name: str) -> int:
        """The row of an attribute's NULL mask."""
        return [known for known, _, _ in self.attributes].index(name)

    def type_of(self, name: str) -> DataType:
        """The type of an attribute, derived ones included."""
        return next(kind for known, kind, _ in self.attributes if known == name)

    def value_row(self, name: str) -> int:
        """The row of an attribute's values among those of its storage."""
        kind = storage(self.type_of(name))
        same = [known for known, other, _ in self.attributes if storage(other) == kind]
        return same.index(name)


def storage(kind: DataType) -> str:
    """Where values of a type are kept."""
    match kind:
        case DataType.FLOAT:
            return "number"
        case DataType.LIST:
            return "list"
        case _:
            return "whole"


def fill(layout: ColumnLayout, table: pa.Table, rows: npt.NDArray[np.int64], schema: Schema) -> Columns:
    """The arrays for some rows of a table."""
    if not is_shared():
        return _filled(layout, table, rows, schema)
    return once(rows, (repr(layout), schema.lacks), lambda: _filled(layout, table, rows, schema))


def _filled(layout: ColumnLayout, table: pa.Table, rows: npt.NDArray[np.int64], schema: Schema) -> Columns:
    absent = rows < 0  # where all values are NULL
    taken = table.select(_needed(layout, schema)).take(pa.array(rows, mask=absent) if absent.any() else pa.array(rows))
    return _arrays(layout, taken, len(rows), schema)


def fill_with_absent(layout: ColumnLayout, table: pa.Table, schema: Schema) -> Columns:
    """The arrays for a whole table, and behind it a row in which all is NULL, for an event that is absent."""
    needed = table.select(_needed(layout, schema))
    chunks = [[*column.chunks, pa.nulls(1, column.type)] for column in needed.columns]
    taken = pa.table([pa.chunked_array(each) for each in chunks], names=needed.column_names)
    return _arrays(layout, taken, table.num_rows + 1, schema)


def _arrays(layout: ColumnLayout, taken: pa.Table, n: int, schema: Schema) -> Columns:
    columns: list[tuple[DataType, pa.Array]] = []
    for name, kind, expression in layout.attributes:
        if expression is None:
            column = value_column(taken.column(name))
        else:
            column = value(expression, lambda node: value_column(taken.column(node.name)))  # type: ignore[attr-defined]
        columns.append((kind, column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column))
    null = np.zeros((len(columns), n), np.uint8)
    for row, (_, column) in enumerate(columns):
        if column.null_count:
            null[row] = column.is_null().to_numpy(zero_copy_only=False)
    lacking = lacking_by_type(taken, schema)
    for row, (name, _, expression) in enumerate(layout.attributes):
        if lacking is not None and expression is None and schema.types_lacking(name):
            null[row][lacking(s.Attribute(s.Reference(""), name)).to_numpy()] = LACKING
    dictionary = _dictionary([column for kind, column in columns if kind is DataType.STRING], layout.literals)
    whole = [_whole(kind, column, dictionary) for kind, column in columns if storage(kind) == "whole"]
    floats = [column.cast(pa.float64(), safe=False) for kind, column in columns if storage(kind) == "number"]
    number = [pc.fill_null(column, 0.0).to_numpy() for column in floats]
    flat, edge = _lists([column for kind, column in columns if storage(kind) == "list"], n)
    filled = Columns(
        _stacked(whole, n, np.int64),
        _stacked(number, n, np.float64),
        null,
        kept(_ranks_of(layout.literals, dictionary), dictionary, taken, layout.read),
        flat,
        edge,
    )
    return filled if layout.form is None else numbered(layout.form, filled)


def _needed(layout: ColumnLayout, schema: Schema) -> list[str]:
    names = {name for name, _, expression in layout.attributes if expression is None}
    for _, _, expression in layout.attributes:
        if expression is not None:
            names |= {node.name for node in s.walk(expression) if isinstance(node, s.Attribute)}
    if schema.lacks and schema.type is not None:
        names.add(schema.type)
    names |= set(layout.read)
    return [name for name in schema.names if name in names]


def _stacked(rows: Sequence[npt.NDArray[Any]], n: int, kind: type[np.generic]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(np.stack(rows), kind) if rows else np.zeros((0, n), kind)


def _whole(kind: DataType, column: pa.Array, dictionary: pa.Array) -> npt.NDArray[np.int64]:
    if kind is DataType.STRING:
        ranks = pc.fill_null(pc.index_in(column.cast(pa.string()), value_set=dictionary), 0).to_numpy()
        values = ranks.astype(np.int64)
    elif kind is DataType.DECIMAL:  # their order; what is compared with others is derived from them
        values = pc.rank(column, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    elif kind is DataType.BOOL:
        values = pc.fill_null(column, False).to_numpy(zero_copy_only=False).astype(np.int64)
    elif kind in (
        DataType.OTHER,
        DataType.TEXTS,
        DataType.MAP,
    ):  # a struct, a map: only whether it is NULL can be asked
        values = np.zeros(len(column), np.int64)
    else:
        values = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    return values  # type: ignore[no-any-return]


def _dictionary(columns: Sequence[pa.Array], literals: Sequence[str]) -> pa.Array:
    """All strings that occur, in events or in the query, sorted, so that ranks compare as the strings do."""
    parts = [column.cast(pa.string()).unique() for column in columns]
    unique = pa.chunked_array([*parts, pa.array(literals, pa.string())]).unique().drop_null()
    # By bytes, as UTF-8 and Arrow compare; for valid text that is the order of code points, Python's too.
    return unique.take(pc.sort_indices(unique))


def _ranks_of(literals: Sequence[str], dictionary: pa.Array) -> npt.NDArray[np.int64]:
    ranks = pc.index_in(pa.array(literals, pa.string()), value_set=dictionary).to_numpy()
    return ranks.astype(np.int64)  # type: ignore[no-any-return]


def _lists(columns: Sequence[pa.Array], n: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    flats, edges, base = [], [], 0
    for column in columns:
        if not pa.types.is_large_list(column.type):
            column = column.cast(pa.large_list(pa.float64()))
        offsets = column.offsets.to_numpy()
        values = pc.fill_null(column.values.cast(pa.float64()), np.nan).to_numpy()
        edges += [offsets[:-1] + base, offsets[1:] + base]
        flats.append(values)
        base += len(values)
    flat = np.concatenate(flats) if flats else np.empty(0, np.float64)
    return flat, _stacked(edges, n, np.int64)

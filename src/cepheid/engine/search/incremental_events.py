"""What can be said of an event alone, worked out once, when it comes: for live queries, which look at it again.

Which components could it fill, which key has it, and what do conditions read of it? In small tables that is done value
by value: a call of Arrow costs more than a hundred values do. In larger ones each distinct type and key is looked at
once, and queries that read the same table share the types, the keys and the answers to equal conditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.candidates import first_conditions
from cepheid.engine.data.columns import ColumnLayout, Columns, fill
from cepheid.engine.data.keys import combined, key_codes
from cepheid.engine.data.shared import once, told_of_any
from cepheid.engine.values.columnwise import condition
from cepheid.engine.values.plain import value_column
from cepheid.language import syntax as s
from cepheid.plan.physical import Plan

COMPARED = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_boolean,
)
FEW = 100  # events; of fewer, each is looked at by itself


class Arrived(NamedTuple):
    """The candidates among some events."""

    rows: Int64s  # in the table that they came in
    keys: Int64s  # the number of the key of each
    mask: Int64s  # which components each could fill, as bits
    begins: Int64s  # which components each could be the first event of
    columns: Columns | None  # what conditions read; None: nothing


class Reader:
    """Reads events as they come, and numbers their keys from 0 on."""

    def __init__(self, plan: Plan, layout: ColumnLayout, keys: Sequence[str], schema: pa.Schema) -> None:
        self._plan, self._layout, self._keys = plan, layout, tuple(keys)
        self._coded = not all(any(test(schema.field(name).type) for test in COMPARED) for name in keys)
        self._number_of: dict[Any, int] = {}  # the number of each key
        bound = plan.bound
        self._components = [*bound.positives, *(negation.component for negation in bound.negations)]
        self._any_type = sum(1 << place for place, each in enumerate(self._components) if each.types is None)
        named = {name for each in self._components for name in each.types or ()}
        self._of_type = {name: _filled_by(name, self._components) for name in named}
        tested = [(place, each) for place, each in enumerate(self._components)]
        if bound.schema.lacks:
            tested = []  # what a type lacks counts as true: the engine looks at it
        self._conditions = [
            (place, each, part) for place, each in tested for part in plan.scan.conditions_of(each.variable)
        ]
        positives = [(place, each) for place, each in tested if place < len(bound.positives)]
        self._firsts = [(place, each, part) for place, each in positives for part in first_conditions(bound, each)]

    @property
    def numbers(self) -> dict[Any, int]:
        """The number of each key; who adds a key gives it the next one."""
        return self._number_of

    def mask_of_type(self, name: str | None) -> int:
        """Which components events of a type can fill."""
        return self._of_type.get(name, self._any_type) if name is not None else self._any_type

    @property
    def types(self) -> frozenset[str]:
        """The types that components name."""
        return frozenset(self._of_type)

    @property
    def keys(self) -> int:
        """How many keys there are."""
        return len(self._number_of) if self._keys else 1

    def read(self, table: pa.Table, every_event: bool = False) -> Arrived:
        """The candidates of a table; or all of its events, where they count though they fill no component."""
        mask = self._mask_of(table)
        rows = np.arange(len(mask)) if every_event else np.flatnonzero(mask)
        keys = self._keys_of(table, rows)
        if len(keys) and keys.min() < 0:
            rows, keys = rows[keys >= 0], keys[keys >= 0]
        columns = None
        if self._layout.attributes and len(rows):
            columns = fill(self._layout, table, rows, self._plan.bound.schema)
        begins = self._passing(table, mask, self._firsts)[rows] if self._firsts else None
        mask = mask[rows]
        return Arrived(rows, keys, mask, mask if begins is None else begins, columns)

    def keep_keys(self, left: Int64s) -> None:
        """Forgets all other keys; those that stay are numbered anew, in this order."""
        if self._keys:
            values = list(self._number_of)
            self._number_of = {values[key]: number for number, key in enumerate(left.tolist())}

    def _mask_of(self, table: pa.Table) -> Int64s:
        """Which components each event can fill, as in `candidates`."""
        name = self._plan.bound.schema.type
        if name is None:
            mask = np.full(table.num_rows, self._any_type, np.int64)
        elif table.num_rows <= FEW:
            mask = np.array([self.mask_of_type(kind) for kind in table.column(name).to_pylist()], np.int64)
        else:
            kinds, places = once(table, ("distinct", (name,)), lambda: _distinct(table, (name,)))
            mask = np.array([self.mask_of_type(kind) for kind in kinds], np.int64)[places]
        return self._passing(table, mask, self._conditions)

    def _passing(
        self, table: pa.Table, mask: Int64s, conditions: Sequence[tuple[int, s.Component, s.Expression]]
    ) -> Int64s:
        """Which components each event can fill by conditions on it alone."""
        for place, component, part in conditions:
            key = "passed", told_of_any(part), component.any
            fits = once(table, key, partial(_passed, table, part, component.any))
            mask = np.where(fits, mask, mask & ~(1 << place))
        return mask

    def _keys_of(self, table: pa.Table, rows: Int64s) -> Int64s:
        """The number of the key of each of some events, a new key gets the next; -1: a part of it is NULL."""
        names = self._keys
        if not names:
            return np.zeros(len(rows), np.int64)
        if self._coded:  # two keys may have one code: their events are searched together
            return self.numbers_of(key_codes(table, names)[rows].tolist())
        if table.num_rows <= FEW:
            each = _keys(table, names)
            return self.numbers_of([each[row] for row in rows.tolist()])
        values, places = once(table, ("distinct", names), lambda: _distinct(table, names))
        here = places[rows]
        numbers = np.full(len(values), -1, np.int64)
        numbers[here] = 0
        occurring = np.flatnonzero(numbers == 0)
        numbers[occurring] = self.numbers_of([values[place] for place in occurring.tolist()])
        return numbers[here]

    def numbers_of(self, values: Sequence[Any]) -> Int64s:
        """The number of each key."""
        known = self._number_of
        keys = list(map(known.get, values))
        if None in keys:
            for place, value in enumerate(values):
                if keys[place] is None:
                    keys[place] = -1 if _is_null(value) else known.setdefault(value, len(known))
        return np.array(keys, np.int64)


def _passed(table: pa.Table, part: s.Expression, any: bool) -> Any:
    """Which events meet a condition on one event: a row of them, or one answer for all."""
    passed = condition(part, lambda node: value_column(table.column(node.name)), any, None)  # type: ignore[attr-defined]
    return passed.as_py() if isinstance(passed, pa.Scalar) else passed.to_numpy(zero_copy_only=False)


def _distinct(table: pa.Table, names: Sequence[str]) -> tuple[list[Any], Int64s]:
    """The distinct values of some columns together, and which of them each event has."""
    parts = []
    for name in names:
        encoded = pc.dictionary_encode(table.column(name)).combine_chunks()
        parts.append(pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64))
    _, first, places = np.unique(combined(parts, table.num_rows), return_index=True, return_inverse=True)
    return _keys(table.select(list(names)).take(pa.array(first)), names), places


def _keys(table: pa.Table, names: Sequence[str]) -> list[Any]:
    """The key of each event."""
    attributes = [_values(table.column(name)) for name in names]
    return attributes[0] if len(attributes) == 1 else list(zip(*attributes, strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a key, equal where SQL says that they are."""
    if pa.types.is_integer(column.type) and not column.null_count:
        return column.to_numpy().tolist()  # type: ignore[no-any-return]
    return column.to_pylist()  # type: ignore[no-any-return]


def _is_null(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_is_null, value))
    return value is None or bool(value != value)  # NaN counts as NULL


def _filled_by(name: str, components: Sequence[s.Component]) -> int:
    """The components that take events of a type, as bits."""
    return sum(1 << place for place, each in enumerate(components) if each.types is None or name in each.types)

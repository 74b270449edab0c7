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

OneEventTest = tuple[int, s.Component, s.Expression]  # the place of a component, the component, and a condition
COMPARED = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_boolean,
)
FEW = 100  # events; of fewer, each is looked at by itself
MANY_KEYS = 1_000  # that lie in memory before it is looked which are needed


class Arrived(NamedTuple):
    """The candidates among some events."""

    rows: Int64s  # in the table that they came in
    keys: Int64s  # the number of the key of each
    mask: Int64s  # which components each could fill, as bits
    begins: Int64s  # which components each could be the first event of
    columns: Columns | None  # what conditions read; None: nothing


class KeyNumbers:
    """One numbering of keys for all queries of a step; each query numbers those that it has seen for itself."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.number_of: dict[Any, int] = {}
        self._kept = 0  # keys that were left when it was last looked which are needed

    def __len__(self) -> int:
        return len(self.number_of)

    def of_rows(self, table: pa.Table, rows: Int64s) -> Int64s:
        """The number of the key of each of some events, a new key gets the next; -1: a part of it is NULL."""
        return _numbers_of_rows(self.number_of, table, self.names, rows)

    def forget(self, readers: Sequence[Reader]) -> None:
        """Forgets keys that no query has, if there are many."""
        if len(self) <= max(MANY_KEYS, 2 * self._kept):
            return
        used = np.zeros(len(self), bool)
        for reader in readers:
            used[reader.shared_numbers()] = True
        numbers = np.cumsum(used) - 1
        values = list(self.number_of)
        self.number_of = {values[key]: number for number, key in enumerate(np.flatnonzero(used).tolist())}
        self._kept = len(self)
        for reader in readers:
            reader.renumber(numbers)


class Reader:
    """Reads events as they come, and numbers their keys from 0 on."""

    def __init__(
        self,
        plan: Plan,
        layout: ColumnLayout,
        keys: Sequence[str],
        schema: pa.Schema,
        shared: KeyNumbers | None = None,
    ) -> None:
        self._plan, self._layout, self._keys = plan, layout, tuple(keys)
        self._coded = not all(any(test(schema.field(name).type) for test in COMPARED) for name in keys)
        self._number_of: dict[Any, int] = {}  # the number of each key, unless the queries of a step share a numbering
        self.shared = None if self._coded else shared
        self.own = np.empty(0, np.int64)  # by the number that queries share, the one that a key has here; -1: none
        self.of_own = np.empty(0, np.int64)  # the other way round, and room for more
        self.known = 0  # how many keys have a number here
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
        """The number of each key; who adds a key gives it the next one, so that the numbers are no longer shared."""
        if self.shared is not None:
            values = list(self.shared.number_of)
            self._number_of = {values[key]: number for number, key in enumerate(self.shared_numbers().tolist())}
            self.shared = None
        return self._number_of

    @property
    def tests(self) -> tuple[Sequence[OneEventTest], Sequence[OneEventTest]]:
        """The conditions on one event: of all events of a component, and of its first."""
        return self._conditions, self._firsts

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
        if self.shared is not None:
            return self.known
        return len(self._number_of) if self._keys else 1

    def shared_numbers(self) -> Int64s:
        """The numbers that queries share, of the keys that have one here, in the order of these."""
        return self.of_own[: self.known]

    def renumber(self, numbers: Int64s) -> None:
        """The shared numbers are others now."""
        of_own = numbers[self.shared_numbers()]
        self.own, self.of_own = np.empty(0, np.int64), of_own
        self.make_room_for_keys(0)
        self.own[of_own] = np.arange(self.known)

    def make_room_for_keys(self, more: int) -> None:
        """Room for all keys that have a shared number, and for so many more of them here."""
        assert self.shared is not None
        if len(self.shared) > len(self.own):
            own = np.full(2 * len(self.shared), -1, np.int64)
            own[: len(self.own)] = self.own
            self.own = own
        if self.known + more > len(self.of_own):
            of_own = np.zeros(2 * (self.known + more), np.int64)
            of_own[: self.known] = self.shared_numbers()
            self.of_own = of_own

    def read(self, table: pa.Table, every_event: bool = False, of_no_key: int | None = None) -> Arrived:
        """The candidates of a table; or all of its events, where they count though they fill no component.

        `of_no_key`: the mask of events whose key is NULL; None: these do not count.
        """
        mask = self._mask_of(table)
        rows = np.arange(len(mask)) if every_event else np.flatnonzero(mask)
        keys = self._keys_of(table, rows)
        if len(keys) and keys.min() < 0:
            if of_no_key is None:
                rows, keys = rows[keys >= 0], keys[keys >= 0]
            else:
                mask[rows[keys < 0]] = of_no_key
                keys = np.maximum(keys, 0)
        columns = None
        if self._layout.attributes and len(rows):
            columns = fill(self._layout, table, rows, self._plan.bound.schema)
        begins = self._passing(table, mask, self._firsts)[rows] if self._firsts else None
        mask = mask[rows]
        return Arrived(rows, keys, mask, mask if begins is None else begins, columns)

    def keep_keys(self, left: Int64s) -> None:
        """Forgets all other keys; those that stay are numbered anew, in this order."""
        if self.shared is not None:
            self.own[self.shared_numbers()] = -1
            of_own = self.shared_numbers()[left]
            self.of_own, self.known = of_own, len(of_own)
            self.own[of_own] = np.arange(self.known)
        elif self._keys:
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

    def _passing(self, table: pa.Table, mask: Int64s, conditions: Sequence[OneEventTest]) -> Int64s:
        """Which components each event can fill by conditions on it alone."""
        for place, component, part in conditions:
            fits = passed(table, part, component.any)
            mask = np.where(fits, mask, mask & ~(1 << place))
        return mask

    def _keys_of(self, table: pa.Table, rows: Int64s) -> Int64s:
        """The number of the key of each of some events, a new key gets the next; -1: a part of it is NULL."""
        names = self._keys
        if not names:
            return np.zeros(len(rows), np.int64)
        if self._coded:  # two keys may have one code: their events are searched together
            return _numbers_of(self._number_of, key_codes(table, names)[rows].tolist())
        if self.shared is not None:
            return self._numbered_here(self.shared.of_rows(table, rows))
        return _numbers_of_rows(self._number_of, table, names, rows)

    def _numbered_here(self, shared: Int64s) -> Int64s:
        """The numbers that keys have here; a new one gets the next."""
        self.make_room_for_keys(len(shared))
        keys = shared[shared >= 0]
        new = np.unique(keys[self.own[keys] < 0])
        end = self.known + len(new)
        self.own[new], self.of_own[self.known : end] = np.arange(self.known, end), new
        self.known = end
        found = np.full(len(shared), -1, np.int64)
        found[shared >= 0] = self.own[keys]
        return found


def _numbers_of_rows(known: dict[Any, int], table: pa.Table, names: Sequence[str], rows: Int64s) -> Int64s:
    if table.num_rows <= FEW:
        each = _keys(table, names)
        return _numbers_of(known, [each[row] for row in rows.tolist()])
    values, places = once(table, ("distinct", tuple(names)), lambda: _distinct(table, names))
    here = places[rows]
    numbers = np.full(len(values), -1, np.int64)
    numbers[here] = 0
    occurring = np.flatnonzero(numbers == 0)
    numbers[occurring] = _numbers_of(known, [values[place] for place in occurring.tolist()])
    return numbers[here]


def _numbers_of(known: dict[Any, int], values: Sequence[Any]) -> Int64s:
    """The number of each key, a new one gets the next; -1: a part of it is NULL."""
    keys = list(map(known.get, values))
    if None in keys:
        for place, value in enumerate(values):
            if keys[place] is None:
                keys[place] = -1 if _is_null(value) else known.setdefault(value, len(known))
    return np.array(keys, np.int64)


def passed(table: pa.Table, part: s.Expression, any: bool) -> Any:
    """Which events meet a condition on one event: a row of them, or one answer for all."""
    return once(table, ("passed", told_of_any(part), any), partial(_passed, table, part, any))


def _passed(table: pa.Table, part: s.Expression, any: bool) -> Any:
    passed = condition(part, lambda node: value_column(table.column(node.name)), any, None)  # type: ignore[attr-defined]
    return passed.as_py() if isinstance(passed, pa.Scalar) else passed.to_numpy(zero_copy_only=False)


def _distinct(table: pa.Table, names: Sequence[str]) -> tuple[list[Any], Int64s]:
    """The distinct values of some columns together, and which of them each event has."""
    parts = []
    for name in names:
        encoded = pc.dictionary_encode(table.column(name)).combine_chunks()
        parts.append(pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64))
    if len(parts) == 1:
        values = _values(pa.chunked_array([encoded.dictionary]))
        return ([*values, None], parts[0]) if encoded.null_count else (values, parts[0])
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

"""Which events could fill which component, laid out for kernels: partitions side by side, each in order.

Everything that concerns one event alone is decided here, over whole columns: its type, its own predicates, the
values that equivalence tests fix (SASE section 4.2: simple predicates pushed into the scan).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from numba import types

from cepheid.engine.data.columns import INT64S
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.table import EventTable
from cepheid.engine.values.columnwise import condition, value_column
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.plan.physical import Plan

Int64s = npt.NDArray[np.int64]
WILD = -1  # the code of an absent attribute on a component declared with ANY: equal to everything


@dataclass(frozen=True)
class Candidates:
    """Events that could take part, partition by partition, each partition in order of time."""

    rows: Int64s  # their rows in the event table
    time: Int64s
    instant: Int64s  # rank of the order key in the whole table
    ordinal: Int64s  # rank of the instant among those that contiguity looks at
    position: Int64s  # how many events of the same equivalence-test values precede (WITHIN n EVENTS)
    due: Int64s  # when a match that starts here is decided, if decisions wait for the window to pass
    mask: Int64s  # bit c: the event can fill component c; positives first, then the negated ones
    starts: Int64s  # partition k is starts[k] : starts[k + 1]
    compared: npt.NDArray[np.int64]  # codes of the attributes that construction compares, one row each
    scanned: int  # events looked at, for explain

    def __len__(self) -> int:
        return len(self.rows)


def candidates(plan: Plan, events: EventTable) -> Candidates:
    """The events of the table that could fill some component of the query."""
    bound = plan.bound
    components = [*bound.positives, *(negation.component for negation in bound.negations)]
    rows, codes = _of_some_type(bound, events.table, components)
    table = events.table.select(_columns_needed(bound)) if rows is not None else events.table
    if rows is None:
        rows = np.arange(len(events))
    elif len(table.column_names) and len(rows) < len(events):
        table = table.take(pa.array(rows))
    mask = _mask(bound, table, rows, codes, components)
    partitioned, compared, wild = plan.partition, plan.compared, False
    if bound.schema.lacks and any(component.any for component in components):
        absent = _null_keys(table, bound.equivalence, len(rows))
        declared = sum(1 << place for place, component in enumerate(components) if component.any)
        wild = bool(np.any(absent & ((mask & declared) != 0)))
        mask = np.where(absent, mask & declared, mask)
    if wild:
        partitioned, compared = (), bound.equivalence
    key, kept = _partition_codes(table, partitioned, mask != 0)
    partitions = int(key.max(initial=-1)) + 1
    if not kept.all():
        rows, mask, key, table = rows[kept], mask[kept], key[kept], _some(table, kept)
    order, starts = group_by_code(key, partitions)
    codes_compared = [_codes(table.column(name), WILD) for name in compared]
    if not wild:
        valid = np.ones(len(rows), bool)
        for code in codes_compared:
            valid &= code != WILD
        mask = np.where(valid, mask, 0)
    stacked = np.stack(codes_compared)[:, order] if codes_compared else np.zeros((0, len(order)), np.int64)
    rows = rows[order]
    position, due = _deadlines(bound, events, rows)
    return Candidates(
        rows,
        events.time[rows],
        events.instant[rows],
        _ordinals(bound, events)[rows] if bound.contiguous else events.instant[rows],
        position,
        due,
        np.ascontiguousarray(mask[order]),
        starts,
        np.ascontiguousarray(stacked),
        len(events),
    )


def own_conditions(bound: BoundQuery, component: s.Component) -> list[s.Expression]:
    """The conditions that concern an event of this component alone."""
    variable = component.variable
    fixed: list[s.Expression] = [
        s.Comparison("=", s.Attribute(s.Reference(variable), name), value) for name, value in bound.fixed
    ]
    if component.negative:
        if len(bound.branches) > 1:
            return fixed
        return fixed + [p for p in bound.branches[0].passed_by(variable) if s.variables_of(p) == {variable}]
    return fixed + [
        c.expression for c in bound.conjuncts if c.own and c.variables == {variable} and _each(c, component)
    ]


def first_conditions(bound: BoundQuery, component: s.Component) -> list[s.Expression]:
    """The conditions that concern the first event of a Kleene group alone, such as `a[1].x > 3`."""
    variable = component.variable
    return [
        conjunct.expression
        for conjunct in bound.conjuncts
        if component.kleene and conjunct.own and conjunct.variables == {variable} and variable not in conjunct.every
    ]


def _each(conjunct: Any, component: s.Component) -> bool:
    """Not `a[1].x > 3`: that concerns the first element of a Kleene group only."""
    return not component.kleene or component.variable in conjunct.every


def _of_some_type(
    bound: BoundQuery, table: pa.Table, components: list[s.Component]
) -> tuple[Int64s | None, npt.NDArray[np.int32] | None]:
    """The rows whose type occurs in the query, with the number of their type; None where any type will do."""
    if bound.schema.type is None or all(component.types is None for component in components):
        return None, None
    codes = _type_codes(table.column(bound.schema.type), components)
    if any(component.types is None for component in components):
        return None, codes
    rows = np.flatnonzero(codes >= 0)
    return rows, codes[rows]


def _type_codes(column: pa.ChunkedArray, components: list[s.Component]) -> npt.NDArray[np.int32]:
    """For each row which of the query's types it has; -1: none of them."""
    names = _type_names(components, column.type)
    if not pa.types.is_dictionary(column.type):
        found = pc.fill_null(pc.index_in(column, value_set=names), -1)
        return found.to_numpy().astype(np.int32, copy=False)  # type: ignore[no-any-return]
    encoded = column.combine_chunks()
    known = pc.fill_null(pc.index_in(encoded.dictionary, value_set=names), -1).to_numpy()
    places = pc.fill_null(encoded.indices.cast(pa.int32()), len(known)).to_numpy()
    codes: npt.NDArray[np.int32] = np.append(known, -1).astype(np.int32)[places]
    return codes


def _type_names(components: list[s.Component], kind: pa.DataType) -> pa.Array:
    names = list(dict.fromkeys(name for component in components for name in component.types or ()))
    return pa.array(names, kind.value_type if pa.types.is_dictionary(kind) else kind)


def _columns_needed(bound: BoundQuery) -> list[str]:
    return [name for name in bound.schema.names if name in bound.attributes()]


def _some(table: pa.Table, kept: npt.NDArray[np.bool_]) -> pa.Table:
    return table if kept.all() or not table.num_columns else table.filter(pa.array(kept))


def _mask(
    bound: BoundQuery,
    table: pa.Table,
    rows: Int64s,
    codes: npt.NDArray[np.int32] | None,
    components: list[s.Component],
) -> Int64s:
    columns: dict[str, Any] = {}

    def resolve(node: Any) -> Any:
        if node.name not in columns:
            columns[node.name] = value_column(table.column(node.name))
        return columns[node.name]

    names = list(dict.fromkeys(name for component in components for name in component.types or ()))
    of_type = np.zeros(len(names) + 1, np.int64)  # the components that take each type; the last one is any other
    for place, component in enumerate(components):
        taken = [names.index(name) for name in component.types] if component.types is not None else slice(None)
        of_type[taken] |= 1 << place
    mask: Int64s = of_type[codes] if codes is not None else np.full(len(rows), of_type[-1])
    for place, component in enumerate(components):
        for part in own_conditions(bound, component):
            passed = condition(part, resolve, component.any)
            fits = passed.as_py() if isinstance(passed, pa.Scalar) else passed.to_numpy(zero_copy_only=False)
            mask = np.where(fits, mask, mask & ~(1 << place))
    return mask


def _null_keys(table: pa.Table, names: tuple[str, ...], n: int) -> npt.NDArray[np.bool_]:
    absent = np.zeros(n, bool)
    for name in names:
        column = value_column(table.column(name))
        if column.null_count:
            absent |= column.is_null().to_numpy()
    return absent


def _partition_codes(
    table: pa.Table, names: tuple[str, ...], relevant: npt.NDArray[np.bool_]
) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    """A dense number for each partition, and which events stay: relevant ones with a known key."""
    if not names:
        return np.zeros(len(relevant), np.int64), relevant
    key = np.zeros(len(relevant), np.int64)
    for name in names:
        code = _codes(table.column(name), -1)
        relevant = relevant & (code >= 0)
        key = key * (int(code.max(initial=0)) + 1) + np.maximum(code, 0)
        if key.max(initial=0) > 4 * len(key) + 1024:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
    return key, relevant


def _codes(column: pa.ChunkedArray, null: int) -> Int64s:
    """A small whole number for each distinct value; numbers in a narrow range are their own codes."""
    column = value_column(column)
    if pa.types.is_integer(column.type) and not column.null_count and len(column):
        values = column.to_numpy()
        low, high = int(values.min()), int(values.max())
        if high - low <= 4 * len(values) + 1024:
            return values - low  # type: ignore[no-any-return]
    encoded = pc.dictionary_encode(column)
    indices = encoded.combine_chunks().indices if isinstance(encoded, pa.ChunkedArray) else encoded.indices
    codes: Int64s = pc.fill_null(indices, null).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


@numba.njit(types.UniTuple(INT64S, 2)(INT64S, types.int64), cache=True)
def group_by_code(codes: Int64s, number: int) -> tuple[Int64s, Int64s]:
    """A stable counting sort: the order that puts equal codes side by side, and where each code starts."""
    starts = np.zeros(number + 1, np.int64)
    for code in codes:
        starts[code + 1] += 1
    for code in range(number):
        starts[code + 1] += starts[code]
    order = np.empty(len(codes), np.int64)
    free = starts.copy()
    for index in range(len(codes)):
        order[free[codes[index]]] = index
        free[codes[index]] += 1
    return order, starts


def _ordinals(bound: BoundQuery, events: EventTable) -> Int64s:
    """Numbers the instants that contiguity looks at: two events are contiguous iff theirs differ by one."""
    if bound.strategy is s.Strategy.STRICT_CONTIGUITY or not bound.equivalence:
        return events.instant
    return rank_within(*partitions(bound, events), events.instant)[0]


def _deadlines(bound: BoundQuery, events: EventTable, rows: Int64s) -> tuple[Int64s, Int64s]:
    """The position of each candidate, and when a match that starts there is decided; empty where not needed."""
    nothing = np.zeros(0, np.int64)
    if bound.window is None:
        return nothing, nothing
    if not bound.window.events:
        return nothing, events.time[rows] + bound.window.length if bound.postponed else nothing
    order, starts = partitions(bound, events)
    position = rank_within(order, starts, events.instant)[1]
    due = passed_at(order, starts, position, events.time, bound.window.length) if bound.postponed else nothing
    return position[rows], due[rows] if bound.postponed else nothing


def partitions(bound: BoundQuery, events: EventTable) -> tuple[Int64s, Int64s]:
    """All events, relevant or not, by their equivalence-test values."""
    key = np.zeros(len(events), np.int64)
    for name in bound.equivalence:
        code = _codes(events.table.column(name), -1) + 1  # NULL is a partition of its own, which no match is in
        key = np.unique(key * (int(code.max(initial=0)) + 1) + code, return_inverse=True)[1].astype(np.int64)
    return group_by_code(key, int(key.max(initial=-1)) + 1)


@numba.njit(types.UniTuple(INT64S, 2)(INT64S, INT64S, INT64S), cache=True)
def rank_within(order: Int64s, starts: Int64s, instant: Int64s) -> tuple[Int64s, Int64s]:
    """For each event, the rank of its instant in its partition, and how many events of it precede."""
    ranks, preceding = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    for part in range(len(starts) - 1):
        rank, before = -1, 0
        previous = np.int64(-1)
        for index in range(starts[part], starts[part + 1]):
            event = order[index]
            if instant[event] != previous:
                rank += 1
                before = index - starts[part]
                previous = instant[event]
            ranks[event], preceding[event] = rank, before
    return ranks, preceding


# The times may be Arrow's own memory, which is read only.
@numba.njit(INT64S(INT64S, INT64S, INT64S, types.Array(types.int64, 1, "C", readonly=True), types.int64), cache=True)
def passed_at(order: Int64s, starts: Int64s, position: Int64s, time: Int64s, length: int) -> Int64s:
    """For each event, when the event comes that lies `length` positions on; NEVER if none does."""
    due = np.empty(len(order), np.int64)
    for part in range(len(starts) - 1):
        ahead = starts[part]
        for index in range(starts[part], starts[part + 1]):
            event = order[index]
            while ahead < starts[part + 1] and position[order[ahead]] < position[event] + length:
                ahead += 1
            due[event] = time[order[ahead]] if ahead < starts[part + 1] else NEVER
    return due

"""Which events could fill which component, laid out for kernels: partitions side by side, each in order.

Everything that concerns one event alone is decided here, over whole columns: its type, its own predicates, the
values that equivalence tests fix (SASE section 4.2: simple predicates pushed into the scan).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.arrays import Int64s, ReadOnlyInt64s
from cepheid.engine.data.keys import NULL_CODE, codes, combined, grouped, partition_numbers
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.shared import is_shared, once, told_of_any
from cepheid.engine.data.table import EventTable
from cepheid.engine.kernels.compile import kernel
from cepheid.engine.values.columnwise import Resolve, condition, lacking_by_type
from cepheid.engine.values.plain import columns_of, value_column
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.plan.physical import Plan
from cepheid.plan.rules.push_own_conditions import own_conditions

__all__ = ["Candidates", "candidates", "first_conditions", "own_conditions", "partitions", "regrouped"]

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
    if not is_shared():
        return _candidates(plan, events)
    return once(events, signature(plan), lambda: _candidates(plan, events))


def signature(plan: Plan) -> tuple[object, ...]:
    """What decides which events are candidates, and how they lie: plans that agree in it have the same ones."""
    bound = plan.bound
    taken = tuple(
        (each.types, each.any, tuple(map(told_of_any, plan.scan.conditions_of(each.variable))))
        for each in _components(bound)
    )
    window = bound.window if bound.window is not None and (bound.window.events or bound.postponed) else None
    looks_at = (bound.strategy, bound.postponed) if bound.contiguous or window is not None else ()
    schema = bound.schema.type, bound.schema.lacks
    return taken, bound.equivalence, plan.partition, plan.compared, window, looks_at, schema


def _candidates(plan: Plan, events: EventTable) -> Candidates:
    bound = plan.bound
    components = _components(bound)
    rows, type_codes = _of_some_type(bound, events.table, components)
    table = events.table.select(_columns_needed(bound)) if rows is not None else events.table
    if rows is None:
        rows = np.arange(len(events))
    elif len(table.column_names) and len(rows) < len(events):
        table = table.take(pa.array(rows))
    lacking = lacking_by_type(table, bound.schema)
    mask = _mask(plan, events, table, len(rows), type_codes, lacking)
    partitioned, compared, wild = plan.partition, plan.compared, False
    if lacking is not None:
        absent, nowhere = _null_keys(table, bound.equivalence, lacking, len(rows))
        mask = np.where(nowhere, 0, mask)
        wild = bool(np.any(absent & (mask != 0)))
    if wild:
        partitioned, compared = (), bound.equivalence
    key, kept = partition_numbers(table, partitioned, mask != 0)
    if not kept.all():
        rows, mask, key, table = rows[kept], mask[kept], key[kept], _some(table, kept)
    order, starts = grouped(key)
    codes_compared = [codes(table.column(name), WILD) for name in compared]
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


def regrouped(found: Candidates, table: pa.Table, names: Sequence[str]) -> tuple[Candidates, bool]:
    """The same candidates in smaller partitions, by the values of attributes, too; and whether all have a value.

    An event without a value is a partition by itself.
    """
    several, valued = len(found.starts) > 2, True
    parts = [np.repeat(np.arange(len(found.starts) - 1), np.diff(found.starts))] if several else []
    for name in names:
        code = codes(table.column(name))[found.rows]
        unknown = code == NULL_CODE
        if unknown.any():
            code, valued = np.where(unknown, code.max(initial=0) + np.cumsum(unknown), code), False
        parts.append(code)
    order, starts = grouped(combined(parts, len(found)))

    def some(values: Int64s) -> Int64s:
        return values[order] if len(values) else values

    smaller = replace(
        found,
        rows=found.rows[order],
        time=found.time[order],
        instant=found.instant[order],
        ordinal=found.ordinal[order],
        position=some(found.position),
        due=some(found.due),
        mask=found.mask[order],
        starts=starts,
        compared=np.ascontiguousarray(found.compared[:, order]),
    )
    return smaller, valued


def first_conditions(bound: BoundQuery, component: s.Component) -> list[s.Expression]:
    """The conditions that concern the first event of a Kleene group alone, such as `a[1].x > 3`."""
    variable = component.variable
    return [
        conjunct.expression
        for conjunct in bound.conjuncts
        if component.kleene and conjunct.own and conjunct.variables == {variable} and variable not in conjunct.every
    ]


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
    needed = set(bound.attributes()) | ({bound.schema.type} if bound.schema.lacks else set())
    return [name for name in bound.schema.names if name in needed]


def _some(table: pa.Table, kept: npt.NDArray[np.bool_]) -> pa.Table:
    return table if kept.all() or not table.num_columns else table.filter(pa.array(kept))


def _mask(
    plan: Plan,
    events: EventTable,
    table: pa.Table,
    n: int,
    codes: npt.NDArray[np.int32] | None,
    lacking: Resolve | None,
) -> Int64s:
    components, resolve = _components(plan.bound), columns_of(table)

    def test(part: s.Expression, any: bool) -> Any:
        passed = condition(part, resolve, any, lacking)
        return passed.as_py() if isinstance(passed, pa.Scalar) else passed.to_numpy(zero_copy_only=False)

    names = list(dict.fromkeys(name for component in components for name in component.types or ()))
    of_type = np.zeros(len(names) + 1, np.int64)  # the components that take each type; the last one is any other
    for place, component in enumerate(components):
        taken = [names.index(name) for name in component.types] if component.types is not None else slice(None)
        of_type[taken] |= 1 << place
    mask: Int64s = of_type[codes] if codes is not None else np.full(n, of_type[-1])
    rows = frozenset(names) if all(component.types is not None for component in components) else None
    for place, component in enumerate(components):
        for part in plan.scan.conditions_of(component.variable):
            key = told_of_any(part), component.any, rows, plan.bound.schema.lacks
            fits = once(events, key, partial(test, part, component.any))
            mask = np.where(fits, mask, mask & ~(1 << place))
    return mask


def _components(bound: BoundQuery) -> list[s.Component]:
    return [*bound.positives, *(negation.component for negation in bound.negations)]


def _null_keys(
    table: pa.Table, names: tuple[str, ...], lacking: Resolve, n: int
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which events are of every partition, since their type lacks an attribute of the equivalence test; and which are
    of none, since one is NULL that their type has."""
    absent, nowhere = np.zeros(n, bool), np.zeros(n, bool)
    for name in names:
        column = value_column(table.column(name))
        if column.null_count:
            null, said = column.is_null().to_numpy(), lacking(s.Attribute(s.Reference(""), name))
            lacks = np.full(n, False) if isinstance(said, pa.Scalar) else said.to_numpy()
            absent |= null & lacks
            nowhere |= null & ~lacks
    return absent, nowhere


def _ordinals(bound: BoundQuery, events: EventTable) -> Int64s:
    """Numbers the instants that contiguity looks at: two events are contiguous iff theirs differ by one."""
    if s.Strategy.PARTITION_CONTIGUITY not in bound.strategies or not bound.equivalence:
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
    # NULL is a value of its own here: a partition that no match is in.
    parts = [codes(events.table.column(name)) for name in bound.equivalence]
    return grouped(combined(parts, len(events)))


@kernel
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
@kernel
def passed_at(order: Int64s, starts: Int64s, position: Int64s, time: ReadOnlyInt64s, length: int) -> Int64s:
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

"""Totals in parts: what workers, slices of time and steps of a stream find each for themselves, and how it adds up.

A part is a row of sums for a group (its BY values and its bucket), under names of its own. Parts of a group are added
up; what was asked for is made of them at the end, since an average of averages is none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.matches import NEVER, Matches
from cepheid.engine.data.table import EventTable, times_of
from cepheid.engine.data.totals import GroupTotals, total_listed
from cepheid.errors import LimitError
from cepheid.language.bound import BoundQuery, BoundSummary, BoundTotal
from cepheid.language.free_names import free_name
from cepheid.language.totals import BUCKET
from cepheid.plan.physical import Plan
from cepheid.runners.totals import EXACT, MORE_DIGITS, find_totals, totals_schema, totals_table

WIDE = pa.decimal256(76, 0)  # sums of 38 digits fit, so that too large a one is seen before it is cut
_ADDED = {"count": "sum", "approximate_count": "sum", "sum": "sum", "min": "min", "max": "max"}


def in_parts(summary: BoundSummary) -> BoundSummary:
    """The same in totals that can be added up: an average is made of a sum and a count."""
    totals: list[BoundTotal] = []
    for number, total in enumerate(summary.totals):
        name, known = part_names(summary, number)
        if total.function == "avg":
            totals.append(replace(total, name=name, function="sum"))
            totals.append(replace(total, name=known, function="count"))
        else:
            totals.append(replace(total, name=name))
    return replace(summary, totals=tuple(totals))


def part_names(summary: BoundSummary, number: int) -> tuple[str, str]:
    """The columns of a total's parts, beside those of its groups: its own, and that of the count under an average.

    >>> part_names(BoundSummary((), by=("id",)), 1), part_names(BoundSummary((), by=("_1",)), 1)
    (('_1', '_1_known'), ('__1', '__1_known'))
    """
    prefix = "_" if not any(name.startswith("_") for name in summary.by) else free_name("__", summary.by)
    return f"{prefix}{number}", f"{prefix}{number}_known"


def find_parts(plan: Plan, events: EventTable, after: int | None, until: int | None) -> pa.Table:
    """The parts of the matches with after < completion <= until."""
    return _table(plan.bound, events, find_totals(plan, in_parts(_summary(plan.bound)), events, after, until))


def parts_of(bound: BoundQuery, events: EventTable, matches: Matches) -> pa.Table:
    """The parts of matches that are listed."""
    return _table(bound, events, total_listed(bound, in_parts(_summary(bound)), events, lambda: matches))


def _table(bound: BoundQuery, events: EventTable, found: GroupTotals) -> pa.Table:
    summary = _summary(bound)
    parts = in_parts(summary)
    return totals_table(bound, events, found, parts, [_original(part.name, summary) for part in parts.totals])


def added_up(tables: Iterable[pa.Table], summary: BoundSummary) -> pa.Table:
    """The parts of each group as one row. There must be at least one table, which may be empty.

    >>> summary = BoundSummary((BoundTotal("n", "count"), BoundTotal("top", "max", "a")), by=("id",))
    >>> part = pa.table({"id": [1, 2, 1], "_0": pa.array([5, 6, 7], EXACT), "_1": [3, 2, None]})
    >>> added_up([part, part], summary).sort_by("id").to_pydict()
    {'id': [1, 2], '_0': [Decimal('24'), Decimal('12')], '_1': [3, 2]}
    """
    parts = in_parts(summary)
    table = pa.concat_tables([each.replace_schema_metadata() for each in tables])
    kinds = table.schema
    keys = group_columns(summary)
    wide = pa.schema([field if field.name in keys else _widened(field) for field in kinds])
    table = table.cast(wide)
    for name in keys:
        if pa.types.is_floating(kinds.field(name).type):  # Arrow tells -0.0 from 0.0, which is the same key
            zeroed = pc.add(table.column(name), pa.scalar(0.0, kinds.field(name).type))
            table = table.set_column(table.schema.get_field_index(name), kinds.field(name), zeroed)
    grouped = table.group_by(keys, use_threads=False).aggregate(
        [(total.name, _ADDED[total.function]) for total in parts.totals]
    )
    for total in parts.totals:
        if pa.types.is_decimal(kinds.field(total.name).type):
            _check_digits(grouped.column(f"{total.name}_{_ADDED[total.function]}"), _original(total.name, summary))
    arrays = [grouped.column(name) for name in keys]
    arrays += [grouped.column(f"{total.name}_{_ADDED[total.function]}") for total in parts.totals]
    names = [*keys, *(total.name for total in parts.totals)]
    return pa.table([array.cast(kinds.field(name).type) for array, name in zip(arrays, names, strict=True)], names)


def _widened(field: pa.Field) -> pa.Field:
    """The same with room for the digits of sums."""
    if not pa.types.is_decimal(field.type):
        return field
    return field.with_type(pa.decimal256(WIDE.precision, field.type.scale))


def finished(bound: BoundQuery, parts: pa.Table, events: pa.Schema) -> pa.Table:
    """What was asked for, of parts that are added up: by bucket, then by group."""
    summary = _summary(bound)
    schema = totals_schema(bound, summary, events)
    keys = group_columns(summary)
    if summary.every is not None:
        parts = parts.sort_by([(BUCKET, "ascending")])
    columns: list[pa.ChunkedArray | pa.Array] = [parts.column(name) for name in keys]
    for number, total in enumerate(summary.totals):
        name, known_as = part_names(summary, number)
        column = parts.column(name)
        if total.function == "avg":
            known = parts.column(known_as).cast(pa.float64())
            column = pc.if_else(pc.greater(known, 0.0), pc.divide(column.cast(pa.float64()), known), None)
        elif total.function == "count":
            column = pc.fill_null(column, pa.scalar(0, EXACT))
        elif total.function == "approximate_count":
            column = pc.fill_null(column, 0.0)
        columns.append(column)
    arrays = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def closed_by(parts: pa.Table, summary: BoundSummary, until: int) -> tuple[pa.Table, pa.Table]:
    """The parts whose buckets are over when all matches that complete by `until` are known; and the others."""
    if until == NEVER:
        return parts, parts.slice(0, 0)
    if summary.every is None or not parts.num_rows:
        return parts.slice(0, 0), parts
    known = parts.column(BUCKET).is_valid().to_numpy()  # NULL: of matches that are known at the end of time
    over = np.zeros(parts.num_rows, bool)
    over[known] = times_of(parts.filter(pa.array(known)), BUCKET) <= until - summary.every + 1
    return parts.filter(pa.array(over)), parts.filter(pa.array(~over))


def group_columns(summary: BoundSummary) -> list[str]:
    """The columns that tell groups apart."""
    return [*summary.by, *([BUCKET] if summary.every is not None else [])]


def parts_schema(bound: BoundQuery, events: pa.Schema) -> pa.Schema:
    """The columns of parts."""
    return totals_schema(bound, in_parts(_summary(bound)), events)


def _summary(bound: BoundQuery) -> BoundSummary:
    assert bound.summary is not None
    return bound.summary


def _original(name: str, summary: BoundSummary) -> str:
    return next(total.name for number, total in enumerate(summary.totals) if name in part_names(summary, number))


def _check_digits(sums: pa.ChunkedArray, name: str) -> None:
    largest = pc.max(pc.abs(sums)).as_py()
    if largest is not None and largest >= 10**38:
        raise LimitError(f"{name} has more than 38 digits: about {float(largest):.1e}", hint=MORE_DIGITS)

"""Row patterns in streams: rows are released in order, and a match comes out once no later row can change it.

Each partition is searched from where it stopped, up to the first row whose match depends on rows that are still to
come. What stays is the rows from there on, and as many before them as PREV looks back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from cepheid.engine.search.row_pattern.arrange import Arranged
from cepheid.engine.search.row_pattern.conditions import prepare
from cepheid.engine.search.row_pattern.run import (
    Openness,
    Positions,
    arranged,
    assemble,
    find_matches,
    needed_columns,
    program_of,
)
from cepheid.errors import CepheidError, LimitError, QueryError
from cepheid.language import pattern as p
from cepheid.language import syntax as s
from cepheid.language.match_recognize.bound import BoundClause, MatchNumber, Navigate
from cepheid.language.match_recognize.limits import MOST_MATCHES, check_matches

Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class Resume:
    """Where a partition's search goes on, counted from its first retained row."""

    begin: int = 0
    number: int = 1
    matched: int = -1
    whole: bool = True


@dataclass(frozen=True)
class Retained:
    """What a stream keeps: rows that may still matter, and where each partition's search goes on."""

    rows: pa.Table
    resume: dict[Key, Resume] = field(default_factory=dict)


def check_stream(clause: BoundClause, limit: int | None) -> None:
    """Raises if a stream could never decide, or would keep everything."""
    if not clause.order_by or clause.order_by[0].descending:
        raise CepheidError("a row pattern over a stream needs ORDER BY with an ascending time", hint="ORDER BY ts")
    for node in p.walk(clause.pattern):
        if isinstance(node, p.End):
            start, end = node.span
            message = "a stream has no last row"
            raise QueryError(message, text=clause.text or None, start=start, end=end, code="end-of-stream")
    if clause.within is None and limit is None:
        hint = "add WITHIN, or pass max_rows=... as the limit of open rows per partition"
        raise CepheidError("this clause cannot run on a stream: without WITHIN it may keep every row", hint=hint)


def nothing_retained(clause: BoundClause, schema: pa.Schema) -> Retained:
    """The state before the first row."""
    return Retained(schema.empty_table().select(list(needed_columns(clause))))


def step(
    clause: BoundClause,
    state: Retained,
    released: pa.Table,
    horizon: int,
    *,
    last: bool = False,
    limit: int | None = None,
    most: int = MOST_MATCHES,
) -> tuple[pa.Table, Retained]:
    """The rows that are decided now, and what stays. All rows up to the horizon are there; `last`: no more come."""
    table = pa.concat_tables([state.rows, released.select(state.rows.column_names)])
    rows = arranged(clause, table)
    keys = keys_of(clause, rows)
    positions = _positions(rows, [state.resume.get(key, Resume()) for key in keys])
    numbers = positions.number.copy()
    program = program_of(clause)
    openness = None if last else Openness(horizon, reach(_conditions(clause))[1], reach(_measures(clause))[1])
    found = find_matches(clause, program, rows, prepare(clause, rows), positions, openness)
    check_matches(found.number, most)
    result = assemble(clause, program, rows, found, numbers)
    return result, _retained(clause, state, rows, keys, positions, limit)


def reach(expressions: list[s.Expression]) -> tuple[int, int]:
    """How many rows PREV looks back at most, and NEXT ahead."""
    shifts = [node.shift for each in expressions for node in s.walk(each) if isinstance(node, Navigate)]
    return -min([0, *shifts]), max([0, *shifts])


def _conditions(clause: BoundClause) -> list[s.Expression]:
    return list(clause.conditions.values())


def _measures(clause: BoundClause) -> list[s.Expression]:
    return [expression for _, expression in clause.measures]


def keys_of(clause: BoundClause, rows: Arranged) -> list[Key]:
    """The values of PARTITION BY, partition by partition."""
    if not clause.partition_by:
        return [()] * (len(rows.bounds) - 1)
    first = rows.table.select(list(clause.partition_by)).take(pa.array(rows.bounds[:-1]))
    return list(zip(*(column.to_pylist() for column in first.columns), strict=True))


def _positions(rows: Arranged, resume: list[Resume]) -> Positions:
    low = rows.bounds[:-1]
    return Positions(
        low + np.array([each.begin for each in resume], np.int64).reshape(-1),
        np.array([each.number for each in resume], np.int64).reshape(-1),
        low + np.array([each.matched for each in resume], np.int64).reshape(-1),
        np.array([each.whole for each in resume], np.uint8).reshape(-1),
    )


def remembers(clause: BoundClause) -> bool:
    """Does it matter of a partition whose rows are gone how many matches it had, or that it had rows at all?"""
    numbered = any(isinstance(node, MatchNumber) for each in _every(clause) for node in s.walk(each))
    return numbered or any(isinstance(node, p.Start) for node in p.walk(clause.pattern))


def _every(clause: BoundClause) -> list[s.Expression]:
    return [*_conditions(clause), *_measures(clause)]


def _retained(
    clause: BoundClause,
    state: Retained,
    rows: Arranged,
    keys: list[Key],
    positions: Positions,
    limit: int | None,
) -> Retained:
    back = reach(_every(clause))[0]
    resume = dict(state.resume)
    low, high = rows.bounds[:-1], rows.bounds[1:]
    kept_from = np.maximum(positions.begin - back, low)
    if limit is not None and len(low) and int((high - kept_from).max()) > limit:
        hint = "add WITHIN, or allow more with max_rows"
        raise LimitError(f"more than {limit:,} rows of a partition are undecided", hint=hint)
    for number, key in enumerate(keys):
        start = int(kept_from[number])
        resume[key] = Resume(
            int(positions.begin[number]) - start,
            int(positions.number[number]),
            max(int(positions.matched[number]) - start, -1),
            bool(positions.whole[number]) and start == low[number],
        )
    sizes = high - kept_from
    if not remembers(clause):  # then a partition without rows leaves nothing behind
        resume = {key: resume[key] for key, size in zip(keys, sizes.tolist(), strict=True) if size}
    offsets = np.cumsum(sizes) - sizes
    indices = np.repeat(kept_from - offsets, sizes) + np.arange(int(sizes.sum()))
    kept = rows.table.select(state.rows.column_names).take(pa.array(indices))
    return Retained(kept.cast(state.rows.schema), resume)

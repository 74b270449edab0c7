"""Totals over matches: what is added up for each event (lanes), under which group it counts, and the sums.

A total is made of lanes. Lane 0 counts matches; an exact lane adds whole numbers, a rough one fractions, a rank lane
keeps the least rank of a value (of its negative, for the greatest). Searches know lanes only, so that a new function
over matches is a line here and none in a kernel. Exact sums are Python integers; beside each stands its approximation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.arrays import Float64s, Int64s
from cepheid.engine.data.keys import codes, combined
from cepheid.engine.data.matches import MISSING, NEVER, Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.values.columnwise import value
from cepheid.engine.values.plain import value_column
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery, BoundSummary, BoundTotal
from cepheid.language.schema import DataType
from cepheid.language.typing import type_of

NO_RANK = np.iinfo(np.int64).max
LIMB = 30  # bits of a piece of an exact sum: products of two pieces and sums of many fit 64 bits
PIECE = (1 << LIMB) - 1
COUNT_ALL = BoundSummary((BoundTotal("count(*)", "count"),))  # what output="count" asks for


@dataclass(frozen=True)
class Ranked:
    """Values with their ranks: the value of rank r (from 1) is values[r - 1]."""

    values: pa.Array
    greatest: bool

    def of(self, least: int) -> object:
        """The value that a lane kept; None if there was none."""
        if least == NO_RANK:
            return None
        return self.values[(-least if self.greatest else least) - 1].as_py()


@dataclass(frozen=True)
class Lanes:
    """What each event adds, by lane; a column for each event."""

    exact: npt.NDArray[np.int64]
    exact_place: Int64s  # whose events count in it
    rough: npt.NDArray[np.float64]
    rough_place: Int64s
    rank: npt.NDArray[np.int64]  # NO_RANK where the value is unknown
    rank_place: Int64s
    ranked: tuple[Ranked, ...]
    made_of: tuple[tuple[int, ...], ...]  # for each total its lanes: the known values, then what is added or ranked
    fractions: tuple[bool, ...]  # for each total: are fractions added, so that its sum is a rough lane?

    def at(self, rows: Int64s) -> Lanes:
        """The same for some of the events."""
        return Lanes(
            np.ascontiguousarray(self.exact[:, rows]),
            self.exact_place,
            np.ascontiguousarray(self.rough[:, rows]),
            self.rough_place,
            np.ascontiguousarray(self.rank[:, rows]),
            self.rank_place,
            self.ranked,
            self.made_of,
            self.fractions,
        )


def lanes_of(bound: BoundQuery, summary: BoundSummary, events: EventTable) -> Lanes:
    """The lanes that the totals of a query are made of."""
    exact: list[tuple[int, Int64s]] = []
    rough: list[tuple[int, Float64s]] = []
    rank: list[tuple[int, Int64s]] = []
    ranked: list[Ranked] = []
    made_of: list[tuple[int, ...]] = []
    fractions = []
    for total in summary.totals:
        fractions.append(adds_fractions(bound, total))
        if total.variable is None:
            made_of.append(())
            continue
        place = bound.place_of[total.variable]
        column = None if total.argument is None else _column(total.argument, events)
        known = np.ones(len(events), np.int64) if column is None else column.is_valid().to_numpy(zero_copy_only=False)
        lanes = [len(exact)]
        exact.append((place, known.astype(np.int64)))
        if total.function in ("sum", "avg"):
            assert column is not None
            if fractions[-1]:
                lanes.append(len(rough))
                rough.append((place, pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False)))
            else:
                lanes.append(len(exact))
                exact.append((place, pc.fill_null(column, 0).to_numpy(zero_copy_only=False)))
        elif total.function in ("min", "max"):
            assert column is not None
            lanes.append(len(rank))
            places, values = _ranks(column, greatest=total.function == "max")
            rank.append((place, places))
            ranked.append(values)
        made_of.append(tuple(lanes))
    return Lanes(
        _stack([values for _, values in exact], len(events), np.int64),
        np.array([place for place, _ in exact], np.int64),
        _stack([values for _, values in rough], len(events), np.float64),
        np.array([place for place, _ in rough], np.int64),
        _stack([values for _, values in rank], len(events), np.int64),
        np.array([place for place, _ in rank], np.int64),
        tuple(ranked),
        tuple(made_of),
        tuple(fractions),
    )


def adds_fractions(bound: BoundQuery, total: BoundTotal) -> bool:
    """Is a total a sum or an average of fractions?"""
    summed = total.function in ("sum", "avg") and total.argument is not None
    return summed and type_of(total.argument, bound.schema) is DataType.FLOAT  # type: ignore[arg-type]


Value = TypeVar("Value", np.int64, np.float64)


def _stack(rows: Sequence[npt.NDArray[Value]], size: int, kind: type[Value]) -> npt.NDArray[Value]:
    found = np.zeros((len(rows), size), kind)
    for row, values in enumerate(rows):
        found[row] = values
    return found


def _column(argument: s.Expression, events: EventTable) -> pa.Array:
    """The values of an expression over each event."""

    def resolve(node: s.Expression) -> pa.ChunkedArray:
        assert isinstance(node, s.Attribute)
        return value_column(events.table.column(node.name))

    found = value(argument, resolve)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _ranks(column: pa.Array, greatest: bool) -> tuple[Int64s, Ranked]:
    values = pc.unique(pc.drop_null(column))
    values = values.take(pc.sort_indices(values))
    places = pc.index_in(column, value_set=values)
    ranks = pc.fill_null(pc.add(places.cast(pa.int64()), 1), 0).to_numpy(zero_copy_only=False)
    signed = -ranks if greatest else ranks
    return np.where(ranks == 0, NO_RANK, signed), Ranked(values, greatest)


@dataclass(frozen=True)
class Groups:
    """Where matches count: the group of each event that can complete (or begin) one; -1: outside of what is asked."""

    group: Int64s
    rows: Int64s  # for each group a row of the table that holds its BY values
    bucket: Int64s  # for each group when its bucket begins; NEVER: the end of the table


def groups_of(summary: BoundSummary, events: EventTable, rows: Int64s, completion: Int64s, wanted: Int64s) -> Groups:
    """The groups of matches that have an event each at these rows and complete at these times; `wanted` has 0 or 1."""
    key = combined([codes(events.table.column(name)) for name in summary.by], len(events))[rows]
    bucket = np.zeros(len(rows), np.int64)
    if summary.every is not None:
        bucket = np.where(completion == NEVER, NEVER, completion // summary.every * summary.every)
    group = np.full(len(rows), -1, np.int64)
    chosen = np.flatnonzero(wanted)
    pairs = np.stack([key[chosen], bucket[chosen]])
    _, first, inverse = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
    group[chosen] = inverse.reshape(-1)
    return Groups(group, rows[chosen][first], bucket[chosen][first])


@dataclass(frozen=True)
class GroupTotals:
    """The sums of all lanes for each group that has matches."""

    lanes: Lanes
    rows: Int64s
    bucket: Int64s
    exact: list[list[int]]  # for each group the number of matches, then its exact lanes
    near: npt.NDArray[np.float64]  # the same approximately, then the rough lanes
    least: npt.NDArray[np.int64]
    counters: dict[str, int]

    def __len__(self) -> int:
        return len(self.rows)


def total_listed(
    bound: BoundQuery, summary: BoundSummary, events: EventTable, find: Callable[[], Matches]
) -> GroupTotals:
    """The totals of matches that are listed, for queries whose totals cannot be had otherwise."""
    matches, lanes = find(), lanes_of(bound, summary, events)
    first = matches.first_rows(in_order=bound.is_linear)
    groups = groups_of(summary, events, first, matches.completion, np.ones(len(matches), np.int64))
    number = len(groups.rows)
    exact = [np.bincount(groups.group, minlength=number).astype(object)]
    near = []
    least = np.full((number, len(lanes.rank)), NO_RANK, np.int64)
    flat = [_elements(matches, place) for place in range(len(matches.chosen))]
    for lane, place in enumerate(lanes.exact_place):
        match, row = flat[place]
        exact.append(_added(lanes.exact[lane, row], groups.group[match], number))
    for lane, place in enumerate(lanes.rough_place):
        match, row = flat[place]
        near.append(np.bincount(groups.group[match], lanes.rough[lane, row], minlength=number))
    for lane, place in enumerate(lanes.rank_place):
        match, row = flat[place]
        np.minimum.at(least[:, lane], groups.group[match], lanes.rank[lane, row])
    columns = [sums.astype(np.float64) for sums in exact] + near
    return GroupTotals(
        lanes,
        groups.rows,
        groups.bucket,
        [[int(sums[group]) for sums in exact] for group in range(number)],
        np.stack(columns, axis=1),
        least,
        {**matches.counters, "listed": len(matches)},
    )


def _elements(matches: Matches, place: int) -> tuple[Int64s, Int64s]:
    """The matches and the rows of all events that fill a place."""
    chosen = matches.chosen[place]
    sizes = np.ones(len(matches), np.int64) if chosen.offsets is None else np.diff(chosen.offsets)
    match = np.repeat(np.arange(len(matches)), sizes)
    seen = chosen.rows != MISSING
    return match[seen], chosen.rows[seen]


def _added(values: Int64s, group: Int64s, number: int) -> npt.NDArray[np.object_]:
    """Exact sums by group: in pieces that do not overflow, put together as Python integers."""
    sums = np.zeros(number, object)
    for piece in range(3):
        pieces = values >> (LIMB * piece)
        if piece < 2:
            pieces = pieces & PIECE
        added = np.zeros(number, np.int64)
        np.add.at(added, group, pieces)
        sums = sums + (added.astype(object) << (LIMB * piece))
    return sums

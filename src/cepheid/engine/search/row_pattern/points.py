"""MEASURES: what is seen from places in matches, for all places at once.

Where a navigation leads is arithmetic on counts: the positions of a set of labels in all paths lie in one array, and
how many of them lie before a position is a cumulative sum.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.arrays import Bools, Float64s, Int64s
from cepheid.engine.data.matches import COMPLETE, Matches
from cepheid.engine.kernels.compile import kernel
from cepheid.engine.search.row_pattern.columns import read
from cepheid.engine.values.columnwise import value as column_of
from cepheid.engine.values.operators import Column as Values
from cepheid.engine.values.operators import fitting, listed, whole, without_nan
from cepheid.engine.values.plain import sum_may_overflow
from cepheid.errors import QueryError
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES as EVERYWHERE
from cepheid.language.match_recognize.aggregates import AGGREGATES, aggregate_of
from cepheid.language.match_recognize.bound import (
    Aggregated,
    Column,
    Labels,
    MatchNumber,
    Navigate,
    RowLabel,
    SequenceNumber,
)


@dataclass(frozen=True)
class Occurrences:
    """The positions of a set of labels."""

    places: Int64s
    before: Int64s  # for each position of all paths, and one more at the end: how many of them lie before it


@dataclass
class Points:
    """Places in matches: `of` is the match, `at` the position in all paths of the row at hand, -1 in an empty match."""

    table: pa.Table
    labels: tuple[str, ...]
    matches: Matches  # with the numbers of these labels
    number: Int64s  # of each match in its partition
    within: tuple[Int64s, Int64s]  # where the match's partition begins and ends
    of: Int64s
    at: Int64s
    text: str = ""
    known: dict[Labels, Occurrences] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert self.matches.labels is not None
        assert self.matches.start is not None
        self.label, self.start = self.matches.labels, self.matches.start
        self.offset = self.matches.in_order.bounds

    def numbers(self, of: Int64s) -> pa.Array:
        """The numbers of some matches; a partial one has none."""
        waiting = self.matches.waiting
        return pa.array(self.number[of], mask=None if waiting is None else waiting[of] != COMPLETE)

    def __len__(self) -> int:
        return len(self.of)

    def value(self, expression: s.Expression) -> pa.Array:
        """The values of a measure, one per point."""
        return whole(column_of(expression, self.resolve, self.text), len(self))

    def resolve(self, node: s.Expression) -> Values:
        match node:
            case MatchNumber():
                return self.numbers(self.of)
            case SequenceNumber():
                return pa.array(self.at - self.offset[self.of] + 1, mask=self.at < 0)
            case Navigate():
                return self.at_rows(node.inner, self.rows_of(node), self.of)
            case Aggregated():
                return self.aggregate(node)
        raise TypeError(f"{node} is outside any row")

    def occurrences(self, labels: Labels) -> Occurrences:
        if labels is None and None not in self.known:
            every = np.arange(len(self.label) + 1)
            self.known[None] = Occurrences(every[:-1], every)
        if labels not in self.known:
            wanted = np.array([labels is None or name in labels for name in self.labels], bool)
            self.known[labels] = Occurrences(*occurring(self.label, wanted))
        return self.known[labels]

    def span(self, labels: Labels, final: bool) -> tuple[Int64s, Int64s]:
        """For each point, which occurrences of the labels it sees: from one to before the other."""
        found = self.occurrences(labels)
        first = found.before[self.offset[self.of]]
        if final:
            return first, found.before[self.offset[self.of + 1]]
        return first, np.where(self.at < 0, first, found.before[np.maximum(self.at, -1) + 1])

    def rows_of(self, node: Navigate) -> Int64s:
        """The row that a navigation leads to from each point, -1 for none."""
        found = self.occurrences(node.labels)
        first, last = self.span(node.labels, node.final)
        index = first + node.offset if node.first else last - 1 - node.offset
        valid = (index >= first) & (index < last)
        if not len(found.places):
            return np.full(len(self), -1, np.int64)
        place = found.places[index if valid.all() else np.where(valid, index, 0)]
        row = place + (self.start - self.offset[:-1])[self.of] + node.shift
        if node.shift:
            low, high = self.within
            valid &= (row >= low[self.of]) & (row < high[self.of])
        return np.where(valid, row, -1)

    def at_rows(self, inner: s.Expression, rows: Int64s, of: Int64s) -> Values:
        """An expression at one row for each of some matches; NULL without a row."""
        absent = rows < 0
        indices = pa.array(rows, mask=absent) if absent.any() else pa.array(rows)

        def resolve(node: s.Expression) -> Values:
            match node:
                case Column(name=name):
                    return read(self.table.column(name)).take(indices)
                case RowLabel():
                    return self.label_at(rows, of)
                case MatchNumber():
                    return self.numbers(of)
            raise TypeError(f"{node} cannot be evaluated at a row")

        values = column_of(inner, resolve, self.text)
        if absent.any() and not isinstance(inner, Column):
            values = pc.if_else(pa.array(absent), pa.scalar(None, values.type), whole(values, len(rows)))
        return values

    def label_at(self, rows: Int64s, of: Int64s) -> pa.Array:
        position = rows - self.start[of] + self.offset[of]
        inside = (rows >= self.start[of]) & (position < self.offset[of + 1])
        if not len(self.label):
            return pa.nulls(len(rows), pa.string())
        codes = self.label[np.where(inside, position, 0)]
        names = pa.array(self.labels, pa.string())
        return names.take(pa.array(codes, mask=~inside))

    # aggregates

    def aggregate(self, node: Aggregated) -> pa.Array:
        first, last = self.span(node.labels, node.final)
        if not node.arguments:
            return pa.array(last - first)
        found = self.occurrences(node.labels)
        of = np.searchsorted(self.offset, found.places, "right") - 1
        rows = self.start[of] + found.places - self.offset[of]
        values = [whole(self.at_rows(part, rows, of), len(rows)) for part in node.arguments]
        kind = aggregate_type(node, [value.type for value in values], self.text)
        plain = not (node.order or node.filtered)
        if plain and node.distinct and node.function == "count" and _is_one_way(values[0].type):
            codes = pc.fill_null(values[0].dictionary_encode().indices.cast(pa.int64()), -1)
            return pa.array(different_values(np.array(codes.to_numpy(zero_copy_only=False)), first, last))
        if plain and not node.distinct:
            done = _vectorised(node.function, values, first, last, kind)
            if done is not None:
                return done
        call = aggregate_of(node)
        lists = list(zip(*(listed(value) for value in values), strict=True))
        each = [fitting(call(lists[begin:end]), kind) for begin, end in zip(first, last, strict=True)]
        return pa.array(each, kind)


_COMPARING = ("min", "max", "min_by", "max_by")


def _is_one_way(kind: pa.DataType) -> bool:
    """Are two values of a type equal only if Arrow has them in the same way? 0.0 and -0.0 are not."""
    tests = (pa.types.is_integer, pa.types.is_string, pa.types.is_boolean, pa.types.is_date, pa.types.is_timestamp)
    return any(test(kind) for test in tests)


def _of_spread(function: str, spread: float, count: int) -> float | None:
    """A deviation or a variance from the sum of squared distances (`language/aggregates.py`)."""
    less = 0 if function.endswith("_pop") else 1
    if count <= less:
        return None
    variance = spread / (count - less)
    return float(variance**0.5) if function.startswith("stddev") else variance


def aggregate_type(node: Aggregated, kinds: list[pa.DataType], text: str) -> pa.DataType:
    """The type of an aggregate's values; an error where it cannot be computed."""
    if not node.arguments:
        return pa.int64()
    result, kind = AGGREGATES[node.function].result, kinds[0]
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    compares = node.function in _COMPARING and (pa.types.is_struct(kinds[-1]) or pa.types.is_map(kinds[-1]))
    adds = result in ("sum", "average", "double")
    if compares or (adds and not (number or pa.types.is_duration(kind) or pa.types.is_null(kind))):
        start, end = node.span
        message = f"{node.function.upper()} of {kinds[-1] if compares else kind} is not possible"
        raise QueryError(message, text=text or None, start=start, end=end, code="types")
    if isinstance(result, int):
        return kinds[result]
    if result == "list":
        return pa.list_(kind)
    if result == "sum":
        if pa.types.is_decimal(kind):
            return pa.decimal128(min(kind.precision + 10, 38), kind.scale)
        return pa.int64() if pa.types.is_integer(kind) else kind if pa.types.is_duration(kind) else pa.float64()
    if result == "average":
        if pa.types.is_decimal(kind):  # as Spark has it: four digits more behind the point
            scale = min(kind.scale + 4, 38)
            return pa.decimal128(min(kind.precision + 4, 38), scale)
        return kind if pa.types.is_duration(kind) else pa.float64()
    named: dict[Any, pa.DataType] = {"bigint": pa.int64(), "double": pa.float64(), "boolean": pa.bool_()}
    return named.get(result, pa.string())


def _vectorised(function: str, values: list[pa.Array], first: Int64s, last: Int64s, kind: pa.DataType) -> Any:
    """Common aggregates without Python's loops; None if it is not one of them."""
    value = values[0]
    known = np.array(value.is_valid().to_numpy(zero_copy_only=False))
    if function == "count":
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(known)])
        return pa.array(before[last] - before[first])
    if function == "collect_list":
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(known)])
        kept = value.filter(pa.array(known))
        sizes = before[last] - before[first]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        taken = np.repeat(before[first] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), kept.take(pa.array(taken)))
    if function == "array_agg":
        sizes = last - first
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        taken = np.repeat(first - offsets[:-1], sizes) + np.arange(offsets[-1])
        empty = np.append(sizes == 0, False)
        places = pa.array(offsets.astype(np.int32), mask=empty) if empty.any() else pa.array(offsets.astype(np.int32))
        return pa.ListArray.from_arrays(places, value.take(pa.array(taken)))
    number = pa.types.is_integer(value.type) or pa.types.is_floating(value.type)
    if function in ("sum", "avg", "mean") and number and not sum_may_overflow(value, last - first):
        counts = np.empty(len(first), np.int64)
        if pa.types.is_integer(value.type):
            whole_numbers = pc.fill_null(value.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
            sums: npt.NDArray[Any] = whole_sums(np.array(whole_numbers), known, first, last, counts)
        else:
            reals = pc.fill_null(value.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
            sums = real_sums(np.array(reals), known, first, last, counts)
        if function == "sum":
            return without_nan(pa.array(sums, kind, mask=counts == 0))
        return without_nan(pa.array(sums.astype(np.float64) / np.maximum(counts, 1), mask=counts == 0))
    if number and function in EVERYWHERE and "spread" in EVERYWHERE[function].keeps:
        reals = pc.fill_null(value.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        counts = np.empty(len(first), np.int64)
        spread = spreads(np.array(reals), known & ~np.isnan(reals), first, last, counts)
        found = [_of_spread(function, *each) for each in zip(spread.tolist(), counts.tolist(), strict=True)]
        return without_nan(pa.array(found, kind))
    if function in _COMPARING:
        by = values[-1]
        if any(test(by.type) for test in (pa.types.is_boolean, pa.types.is_list, pa.types.is_null)):
            return None
        ranks = pc.rank(by, sort_keys="ascending", tiebreaker="dense").cast(pa.int64()).to_numpy(zero_copy_only=False)
        valid = np.array(by.is_valid().to_numpy(zero_copy_only=False))
        largest = function.startswith("max")
        chosen = extremes(np.array(ranks), valid, first, last, largest)
        return value.take(pa.array(chosen, mask=chosen < 0))
    return None


@kernel
def occurring(labels: Int64s, wanted: Bools) -> tuple[Int64s, Int64s]:
    """The positions of the labels that are wanted, and for each position and the end how many of them lie before it."""
    places, before, count = np.empty(len(labels), np.int64), np.empty(len(labels) + 1, np.int64), 0
    for position in range(len(labels)):
        before[position] = count
        places[count] = position
        count += wanted[labels[position]]
    before[len(labels)] = count
    return places[:count].copy(), before


@kernel
def whole_sums(values: Int64s, known: Bools, first: Int64s, last: Int64s, counts: Int64s) -> Int64s:
    """The sum of values[first:last] for each point; how many of them are known goes to `counts`."""
    sums = np.zeros(len(first), np.int64)
    total, count, begin, end = 0, 0, -1, -1
    for point in range(len(first)):
        if first[point] != begin or last[point] < end:
            total, count, begin, end = 0, 0, first[point], first[point]
        for index in range(end, last[point]):
            if known[index]:
                total += values[index]
                count += 1
        end = max(end, last[point])
        sums[point], counts[point] = total, count
    return sums


@kernel
def real_sums(values: Float64s, known: Bools, first: Int64s, last: Int64s, counts: Int64s) -> Float64s:
    """The same for numbers with a fraction, added up from the first to the last."""
    sums = np.zeros(len(first), np.float64)
    total, count, begin, end = 0.0, 0, -1, -1
    for point in range(len(first)):
        if first[point] != begin or last[point] < end:
            total, count, begin, end = 0.0, 0, first[point], first[point]
        for index in range(end, last[point]):
            if known[index]:
                total = values[index] if count == 0 else total + values[index]
                count += 1
        end = max(end, last[point])
        sums[point], counts[point] = total, count
    return sums


@kernel
def spreads(values: Float64s, known: Bools, first: Int64s, last: Int64s, counts: Int64s) -> Float64s:
    """The sum of squared distances from the mean, by Welford's recurrence, from the first to the last."""
    found = np.zeros(len(first), np.float64)
    mean, spread, count, begin, end = 0.0, 0.0, 0, -1, -1
    for point in range(len(first)):
        if first[point] != begin or last[point] < end:
            mean, spread, count, begin, end = 0.0, 0.0, 0, first[point], first[point]
        for index in range(end, last[point]):
            if known[index]:
                count += 1
                if count == 1:
                    mean = values[index]
                else:
                    distance = values[index] - mean
                    mean += distance / count
                    spread += distance * (values[index] - mean)
        end = max(end, last[point])
        found[point], counts[point] = spread, count
    return found


@kernel
def different_values(codes: Int64s, first: Int64s, last: Int64s) -> Int64s:
    """How many different codes there are in first:last for each point; -1 is none."""
    found = np.zeros(len(first), np.int64)
    seen = np.full(len(codes) + 1, -1, np.int64)  # for each code, the run of points that has met it last
    count, run, begin, end = 0, -1, -1, -1
    for point in range(len(first)):
        if first[point] != begin or last[point] < end:
            count, run, begin, end = 0, run + 1, first[point], first[point]
        for index in range(end, last[point]):
            if codes[index] >= 0 and seen[codes[index]] != run:
                seen[codes[index]] = run
                count += 1
        end = max(end, last[point])
        found[point] = count
    return found


@kernel
def extremes(ranks: Int64s, known: Bools, first: Int64s, last: Int64s, largest: bool) -> Int64s:
    """Which of the values first to last is the smallest or largest, the earliest of equal ones; -1 for none."""
    chosen = np.full(len(first), -1, np.int64)
    best, begin, end = -1, -1, -1
    for point in range(len(first)):
        if first[point] != begin or last[point] < end:
            best, begin, end = -1, first[point], first[point]
        for index in range(end, last[point]):
            if known[index] and (best < 0 or (ranks[index] > ranks[best] if largest else ranks[index] < ranks[best])):
                best = index
        end = max(end, last[point])
        chosen[point] = best
    return chosen

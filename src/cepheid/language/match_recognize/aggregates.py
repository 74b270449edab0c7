"""Aggregates over the rows of a label, as plain functions of their values."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import partial, reduce

from cepheid.language.aggregates import AGGREGATES as EVERYWHERE
from cepheid.language.library.decimals import EXACT
from cepheid.language.library.operators import known, ordered
from cepheid.language.library.scalars import Value, text_of
from cepheid.language.match_recognize.bound import Aggregated
from cepheid.language.schema import DataType


@dataclass(frozen=True)
class Aggregate:
    """A function of the rows of a label: `call` takes the arguments' values, row by row, NULLs included."""

    name: str
    call: Callable[[Sequence[tuple[Value, ...]]], Value]
    least: int
    most: int
    result: str | int


def _known(rows: Sequence[tuple[Value, ...]]) -> list[Value]:
    """The first arguments that are not NULL."""
    return [row[0] for row in rows if row[0] is not None]


def _over(call: Callable[[list[Value]], Value], least: int = 1) -> Callable[[Sequence[tuple[Value, ...]]], Value]:
    """An aggregate over values that are not NULL: NULL if there are too few."""

    def aggregate(rows: Sequence[tuple[Value, ...]]) -> Value:
        values = _known(rows)
        try:
            return known(call(values)) if len(values) >= least else None
        except (ArithmeticError, ValueError):  # infinite values
            return None

    return aggregate


def _sum(values: list[Value]) -> Value:
    """NULL where a whole sum does not fit 64 bits."""
    return known(_total(values))


def _total(values: list[Value]) -> Value:
    total = values[0]
    for value in values[1:]:
        total = EXACT.add(total, value) if isinstance(total, Decimal) else total + value
    return total


def _average(values: list[Value]) -> Value:
    total = _total(values)
    if isinstance(total, Decimal):
        return EXACT.divide(total, len(values))
    return total / len(values) if isinstance(total, timedelta) else float(total) / len(values)


def _by(largest: bool) -> Callable[[Sequence[tuple[Value, ...]]], Value]:
    """The first argument where the second is largest; the earliest of equal ones."""

    def aggregate(rows: Sequence[tuple[Value, ...]]) -> Value:
        judged = [row for row in rows if row[1] is not None]
        if not judged:
            return None
        return (max if largest else min)(judged, key=lambda row: ordered(row[1]))[0]

    return aggregate


def _distinct(values: list[Value]) -> list[Value]:
    """Each value once, in the order of their first appearance."""
    return [row[0] for row in _each_once([(value,) for value in values])]


def _percentile(rows: Sequence[tuple[Value, ...]]) -> Value:
    """The value below which such a part of the values lies, between two of them in proportion."""
    values = sorted(_known(rows))
    if not values:
        return None
    at = float(rows[0][1]) * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return known(float(values[low]) + (at - low) * (float(values[high]) - float(values[low])))


def _percentile_value(rows: Sequence[tuple[Value, ...]]) -> Value:
    """The smallest value that such a part of the values does not pass: what Spark approximates."""
    values = sorted(_known(rows), key=ordered)
    return values[max(math.ceil(float(rows[0][1]) * len(values)), 1) - 1] if values else None


def _mode(values: list[Value]) -> Value:
    try:
        often = Counter(map(ordered, values))
    except TypeError:  # lists and structs have no hash
        told = [ordered(value) for value in values]
        return max(_distinct(values), key=lambda value: told.count(ordered(value)))
    return max(_distinct(values), key=lambda value: often[ordered(value)])


def _moments(values: list[Value], power: int) -> float | None:
    """The standardised moment of the third (skewness) or fourth power; NULL where all values are the same."""
    numbers = [float(value) for value in values]
    mean = sum(numbers) / len(numbers)
    spread = sum((number - mean) ** 2 for number in numbers) / len(numbers)
    return (
        sum((number - mean) ** power for number in numbers) / len(numbers) / spread ** (power / 2) if spread else None
    )


def _excess(moment: float | None) -> float | None:
    return None if moment is None else moment - 3.0


def _together(least: int, divide: Callable[[float, float, float, int], float | None]) -> Callable[..., Value]:
    """Of two values per row: their summed product and squares around the means, and how many rows have both."""

    def aggregate(rows: Sequence[tuple[Value, ...]]) -> Value:
        pairs = [(float(one), float(other)) for one, other in rows if one is not None and other is not None]
        if len(pairs) < least:
            return None
        means = [sum(pair[at] for pair in pairs) / len(pairs) for at in (0, 1)]
        around = [(one - means[0], other - means[1]) for one, other in pairs]
        product, first, second = (sum(a[i] * a[j] for a in around) for i, j in ((0, 1), (0, 0), (1, 1)))
        return known(divide(product, first, second, len(pairs)))

    return aggregate


def _correlation(product: float, first: float, second: float, count: int) -> float | None:
    return product / math.sqrt(first * second) if first and second else None


def _folded(operate: Callable[[int, int], int]) -> Callable[[Sequence[tuple[Value, ...]]], Value]:
    return _over(lambda values: reduce(operate, values))


def _joined(rows: Sequence[tuple[Value, ...]]) -> Value:
    values = _known(rows)
    separator = rows[0][1] if rows and len(rows[0]) > 1 else ""
    return text_of(separator).join(text_of(value) for value in values) if values else None


_AGGREGATES: tuple[Aggregate, ...] = (
    Aggregate("count", lambda rows: len(_known(rows)), 1, 1, "bigint"),
    Aggregate("count_if", lambda rows: sum(row[0] is True for row in rows), 1, 1, "bigint"),
    Aggregate("sum", _over(_sum), 1, 1, "sum"),
    Aggregate("avg", _over(_average), 1, 1, "average"),
    Aggregate("mean", _over(_average), 1, 1, "average"),
    Aggregate("min", _over(partial(min, key=ordered)), 1, 1, 0),
    Aggregate("max", _over(partial(max, key=ordered)), 1, 1, 0),
    Aggregate("max_by", _by(True), 2, 2, 0),
    Aggregate("min_by", _by(False), 2, 2, 0),
    Aggregate("array_agg", lambda rows: [row[0] for row in rows] or None, 1, 1, "list"),
    Aggregate("collect_list", lambda rows: _known(rows), 1, 1, "list"),
    Aggregate("any_value", _over(lambda values: values[0]), 1, 1, 0),
    Aggregate("arbitrary", _over(lambda values: values[0]), 1, 1, 0),
    Aggregate("bool_and", _over(all), 1, 1, "boolean"),
    Aggregate("every", _over(all), 1, 1, "boolean"),
    Aggregate("bool_or", _over(any), 1, 1, "boolean"),
    Aggregate("some", _over(any), 1, 1, "boolean"),
    Aggregate("string_agg", _joined, 1, 2, "string"),
    Aggregate("listagg", _joined, 1, 2, "string"),
    Aggregate("collect_set", lambda rows: _distinct(_known(rows)), 1, 1, "list"),
    Aggregate("approx_count_distinct", lambda rows: len(_distinct(_known(rows))), 1, 2, "bigint"),
    Aggregate("approx_distinct", lambda rows: len(_distinct(_known(rows))), 1, 2, "bigint"),
    Aggregate("median", lambda rows: _percentile([(row[0], 0.5) for row in rows]), 1, 1, "double"),
    Aggregate("percentile", _percentile, 2, 2, "double"),
    Aggregate("percentile_cont", _percentile, 2, 2, "double"),
    Aggregate("percentile_disc", _percentile_value, 2, 2, 0),
    Aggregate("approx_percentile", _percentile_value, 2, 3, 0),
    Aggregate("percentile_approx", _percentile_value, 2, 3, 0),
    Aggregate("mode", _over(_mode), 1, 1, 0),
    Aggregate("first_value", lambda rows: rows[0][0] if rows else None, 1, 1, 0),
    Aggregate("last_value", lambda rows: rows[-1][0] if rows else None, 1, 1, 0),
    Aggregate("corr", _together(1, _correlation), 2, 2, "double"),
    Aggregate("covar_pop", _together(1, lambda product, _a, _b, count: product / count), 2, 2, "double"),
    Aggregate("covar_samp", _together(2, lambda product, _a, _b, count: product / (count - 1)), 2, 2, "double"),
    Aggregate("skewness", _over(lambda values: _moments(values, 3)), 1, 1, "double"),
    Aggregate("kurtosis", _over(lambda values: _excess(_moments(values, 4))), 1, 1, "double"),
    Aggregate("bit_and", _folded(operator.and_), 1, 1, 0),
    Aggregate("bit_or", _folded(operator.or_), 1, 1, 0),
    Aggregate("bit_xor", _folded(operator.xor), 1, 1, 0),
    Aggregate("try_sum", _over(_sum), 1, 1, "sum"),
    Aggregate("try_avg", _over(_average), 1, 1, "average"),
)
# What all languages share: aggregates of numbers that are doubles. Others have more types here, or several arguments.
_SHARED = tuple(
    Aggregate(name, _over(aggregate.of), 1, 1, "double")
    for name, aggregate in EVERYWHERE.items()
    if aggregate.result is DataType.FLOAT
)
AGGREGATES: dict[str, Aggregate] = {aggregate.name: aggregate for aggregate in (*_SHARED, *_AGGREGATES)}


# --- over the rows of a match --------------------------------------------------------------------------------------


def aggregate_of(node: Aggregated) -> Callable[[Sequence[tuple[Value, ...]]], Value]:
    """What an aggregate computes from its arguments' values, row by row."""
    if not node.arguments:
        return len
    call = AGGREGATES[node.function].call
    if not (node.distinct or node.order or node.filtered):
        return call
    values = len(node.arguments) - len(node.order) - node.filtered

    def aggregate(rows: Sequence[tuple[Value, ...]]) -> Value:
        chosen = [row for row in rows if row[-1] is True] if node.filtered else list(rows)
        kept = [row[:values] for row in _sorted(chosen, values, node.order)]
        return call(_each_once(kept) if node.distinct else kept)

    return aggregate


def _sorted(rows: list[tuple[Value, ...]], first: int, order: Sequence[tuple[bool, bool]]) -> list[tuple[Value, ...]]:
    """Rows by their keys, which begin at a place; rows with equal keys stay in their order."""
    for at, (descending, nulls_first) in reversed(list(enumerate(order, first))):
        unknown = [row for row in rows if row[at] is None]
        rest = [row for row in rows if row[at] is not None]
        rest.sort(key=lambda row: ordered(row[at]), reverse=descending)
        rows = unknown + rest if nulls_first else rest + unknown
    return rows


def _each_once(rows: list[tuple[Value, ...]]) -> list[tuple[Value, ...]]:
    """Each row once, in the order of their first appearance; lists and structs have no hash and are compared."""
    kept: list[tuple[Value, ...]] = []
    seen: set[tuple[Value, ...]] = set()
    others: list[tuple[Value, ...]] = []
    for row in rows:
        told = tuple(map(ordered, row))
        try:
            known = told in seen
            seen.add(told)
        except TypeError:
            known = told in others
            others.append(told)
        if not known:
            kept.append(row)
    return kept

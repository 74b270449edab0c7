"""Functions of values by their names: one call for operators, CAST, built-in and user functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cepheid.language.functions import find_function
from cepheid.language.library.growth import bounded_text
from cepheid.language.library.operators import ordered
from cepheid.language.match_recognize.aggregates import AGGREGATES
from cepheid.language.match_recognize.bound import Aggregated, Apply
from cepheid.language.match_recognize.functions import FUNCTIONS, called
from cepheid.language.match_recognize.scalars import (
    CALCULATING,
    CHOOSING,
    OPERATORS,
    Value,
    arithmetic,
    cast,
    decimal_parts,
    divide_whole,
    field_of,
    instant_in,
    type_parts,
)
from cepheid.language.zones import zone_info


def function_of(node: Apply) -> Callable[..., Value]:
    """What an application computes from the values of its arguments.

    >>> function_of(Apply("+", ()))(1, None) is None
    True
    """
    if node.target is not None and node.function in CALCULATING:  # a decimal
        return arithmetic(node.function, decimal_parts(type_parts(node.target)[1]))
    if node.target is not None and node.function == "whole /":
        return divide_whole(decimal_parts(type_parts(node.target)[1]))
    if node.target is not None and node.function in CHOOSING:  # of several types
        return _as_type(function_of(Apply(node.function, ())), node.target)
    if node.function in OPERATORS:
        return bounded_text(node.function, OPERATORS[node.function])
    if node.function == "cast":
        target = str(node.target)
        return lambda value: cast(value, target)
    if node.function == "zoned":
        return instant_in(zone_info(str(node.target)))
    if node.function == "named_struct":
        return lambda *values: dict(zip(values[::2], values[1::2], strict=True))
    if node.function == "field":
        name = str(node.target)
        return lambda value: field_of(value, name)
    known = FUNCTIONS.get(node.function)
    if known is not None:
        call = bounded_text(known.name, called(known))
        return call if node.target is None else _as_type(call, node.target)
    own = find_function(node.function)
    assert own is not None
    return _strict(own.call)


def _as_type(call: Callable[..., Value], target: str) -> Callable[..., Value]:
    """A function whose results are brought to one type."""
    return lambda *values: cast(call(*values), target)


def _strict(call: Callable[..., Value]) -> Callable[..., Value]:
    def function(*values: Value) -> Value:
        return None if any(value is None for value in values) else call(*values)

    return function


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
        return call(_distinct(kept) if node.distinct else kept)

    return aggregate


def _sorted(rows: list[tuple[Value, ...]], first: int, order: Sequence[tuple[bool, bool]]) -> list[tuple[Value, ...]]:
    """Rows by their keys, which begin at a place; rows with equal keys stay in their order."""
    for at, (descending, nulls_first) in reversed(list(enumerate(order, first))):
        unknown = [row for row in rows if row[at] is None]
        rest = [row for row in rows if row[at] is not None]
        rest.sort(key=lambda row: ordered(row[at]), reverse=descending)
        rows = unknown + rest if nulls_first else rest + unknown
    return rows


def _distinct(rows: list[tuple[Value, ...]]) -> list[tuple[Value, ...]]:
    kept: list[tuple[Value, ...]] = []
    seen: list[tuple[Value, ...]] = []
    for row in rows:
        told = tuple(map(ordered, row))
        if told not in seen:
            seen.append(told)
            kept.append(row)
    return kept

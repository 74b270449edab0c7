"""Functions of values by their names: one call for operators, CAST, built-in and user functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cepheid.language.functions import find_function
from cepheid.language.library.growth import bounded_text
from cepheid.language.match_recognize.aggregates import AGGREGATES
from cepheid.language.match_recognize.bound import Aggregated, Apply
from cepheid.language.match_recognize.functions import FUNCTIONS
from cepheid.language.match_recognize.scalars import OPERATORS, Value, cast, field_of


def function_of(node: Apply) -> Callable[..., Value]:
    """What an application computes from the values of its arguments.

    >>> function_of(Apply("+", ()))(1, None) is None
    True
    """
    if node.function in OPERATORS:
        return bounded_text(node.function, OPERATORS[node.function])
    if node.function == "cast":
        target = str(node.target)
        return lambda value: cast(value, target)
    if node.function == "field":
        name = str(node.target)
        return lambda value: field_of(value, name)
    known = FUNCTIONS.get(node.function)
    if known is not None:
        call = bounded_text(known.name, known.call)
        return call if known.nulls else _strict(call)
    own = find_function(node.function)
    assert own is not None
    return _strict(own.call)


def _strict(call: Callable[..., Value]) -> Callable[..., Value]:
    def function(*values: Value) -> Value:
        return None if any(value is None for value in values) else call(*values)

    return function


def aggregate_of(node: Aggregated) -> Callable[[Sequence[tuple[Value, ...]]], Value]:
    """What an aggregate computes from its arguments' values, row by row."""
    if not node.arguments:
        return len
    call = AGGREGATES[node.function].call
    if not node.distinct:
        return call

    def distinct(rows: Sequence[tuple[Value, ...]]) -> Value:
        kept: list[tuple[Value, ...]] = []
        for row in rows:
            if row not in kept:
                kept.append(row)
        return call(kept)

    return distinct

"""Measures of a row pattern that are computed from values of rows, one row of the result at a time.

Arrow takes a hundred microseconds for a column, however short it is: what few rows show is computed as plain Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from cepheid.engine.values.columnwise import value as column_of
from cepheid.language import syntax as s
from cepheid.language.evaluate import function_of
from cepheid.language.library.operators import known

Values: TypeAlias = Sequence[Any]  # of one row: those that measures are computed from
_SIMPLE = frozenset({pa.int64(), pa.float64(), pa.string(), pa.bool_()})  # whose values are the same as Python's


def scalar_measure(
    node: s.Expression, kind: pa.DataType, places: Mapping[s.Expression, int], leaves: pa.Table, text: str
) -> Callable[[Values], Any] | None:
    """What a measure of a type computes from the values of a row; None: one of them is no plain number or text.

    `leaves` is a table of these values, of any length.
    """
    empty = leaves.slice(0, 0)

    def computed(part: s.Expression) -> Callable[[Values], Any] | None:
        place = places.get(part)
        if place is None and isinstance(part, s.Literal):
            return _always(part.value)
        if (empty.column(place).type if place is not None else _type_of(part)) not in _SIMPLE:
            return None
        if place is not None:
            return _value_at(place)
        parts = [computed(each) for each in s.children(part)]
        plain = [each for each in parts if each is not None]
        return _applied(function_of(part), plain) if len(plain) == len(parts) else None

    def _type_of(part: s.Expression) -> pa.DataType:
        return column_of(part, lambda leaf: empty.column(places[leaf]).combine_chunks(), text).type

    found = computed(node) if kind in _SIMPLE else None
    return _as_double(found) if found is not None and kind == pa.float64() and node not in places else found


def _always(value: object) -> Callable[[Values], Any]:
    return lambda row: value


def _value_at(place: int) -> Callable[[Values], Any]:
    return lambda row: row[place]


def _applied(call: Callable[..., Any], parts: list[Callable[[Values], Any]]) -> Callable[[Values], Any]:
    if len(parts) == 2:
        left, right = parts
        return lambda row: call(left(row), right(row))
    return lambda row: call(*(part(row) for part in parts))


def _as_double(found: Callable[[Values], Any]) -> Callable[[Values], Any]:
    def double(row: Values) -> Any:
        value = found(row)
        return None if value is None else known(float(value))

    return double

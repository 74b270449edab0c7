"""Conditions that differ in a constant, evaluated together: a column takes the place of the constant."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.values.columnwise import condition
from cepheid.engine.values.operators import Column
from cepheid.language import syntax as s
from cepheid.language.schema import DataType, Schema
from cepheid.language.typing import type_of

CONSTANT = s.Name("constant")  # what stands for it where two conditions are compared
AT_ONCE = 1 << 20  # answers
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>", "!=": "!="}
_COMPARED = {DataType.INT: (int, float), DataType.FLOAT: (int, float), DataType.STRING: (str,)}
_PLAIN = s.Attribute | s.Reference | s.Literal | s.Arithmetic | s.Negative | s.Comparison


class WithConstant(NamedTuple):
    """A comparison with one constant: what it is but for the constant, which is on the right, and the constant."""

    shape: s.Comparison
    value: Any
    is_whole: bool  # are whole numbers compared, or summed, with it?

    @property
    def name(self) -> str:
        """Conditions of one name differ in nothing but the constant."""
        return f"{self.shape!r} {type(self.value).__name__}"


def with_constant(node: s.Expression, schema: Schema) -> WithConstant | None:
    """A comparison of numbers or texts in which there is one constant; None: it is no such one.

    >>> price = s.Attribute(s.Reference("a"), "price")
    >>> schema = Schema((("ts", DataType.INT), ("price", DataType.FLOAT)), "ts")
    >>> with_constant(s.Comparison("<", s.Literal(3), price), schema).shape.operator
    '>'
    """
    if not isinstance(node, s.Comparison) or node.operator not in _FLIPPED:
        return None
    inside = list(s.walk(node))
    literals = [each for each in inside if isinstance(each, s.Literal)]
    if len(literals) != 1 or not all(isinstance(each, _PLAIN) for each in inside):
        return None
    if any(isinstance(each, s.Attribute) and each.default is not None for each in inside):
        return None
    (literal,), value = literals, literals[0].value
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if literal in s.walk(node.left):
        node = s.Comparison(_FLIPPED[node.operator], node.right, node.left)
    kinds = [type_of(side, schema) for side in (node.left, node.right)]
    if not all(kind in _COMPARED and isinstance(value, _COMPARED[kind]) for kind in kinds):
        return None
    shape = s.Comparison(node.operator, node.left, _with_hole(node.right, literal))
    return WithConstant(shape, value, DataType.INT in (kinds if node.right == literal else kinds[1:]))


def _with_hole(node: s.Expression, literal: s.Literal) -> s.Expression:
    return CONSTANT if node == literal else s.rebuild(node, lambda inner: _with_hole(inner, literal))


def answers(
    shape: s.Comparison, values: Sequence[Any], rows: int, column: Callable[[Any], Column]
) -> npt.NDArray[np.bool_]:
    """For each constant, of which rows the condition holds; `column` has the values of an attribute."""
    constants = pa.array(values, pa.string() if isinstance(values[0], str) else None)
    found = np.empty((len(values), rows), bool)
    at_once = max(1, AT_ONCE // max(1, rows))
    for begin in range(0, len(values), at_once):
        number = min(at_once, len(values) - begin)
        of_row = pa.array(np.tile(np.arange(rows), number))
        of_value = pa.array(np.repeat(np.arange(begin, begin + number), rows))

        def resolve(node: Any, of_row: pa.Array = of_row, of_value: pa.Array = of_value) -> Column:
            return constants.take(of_value) if node == CONSTANT else column(node).take(of_row)

        held = condition(shape, resolve)
        held = held.combine_chunks() if isinstance(held, pa.ChunkedArray) else held
        found[begin : begin + number] = held.to_numpy(zero_copy_only=False).reshape(number, rows)
    return found

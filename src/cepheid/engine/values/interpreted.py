"""Conditions that kernels have no form of: text of several events, lists of strings, functions that stay in Python.

Kernels know row numbers and arrays of numbers. Such a condition needs the values themselves, so the columns it reads
are kept beside the arrays, under a number that travels as the last literal; the number goes when the arrays do.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.values.columnwise import value, value_column
from cepheid.language import syntax as s

_numbers = itertools.count()
_columns: dict[int, dict[str, Any]] = {}  # the columns of a filled layout, by its number


def kept(ranks: npt.NDArray[np.int64], table: pa.Table, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """The ranks of literals, with the number behind them under which these columns of the table are kept."""
    if not names:
        return ranks
    number = next(_numbers)
    _columns[number] = {name: value_column(table.column(name)) for name in names}
    numbered = np.append(ranks, number)
    weakref.finalize(numbered, _columns.pop, number, None)
    return numbered


@dataclass(frozen=True)
class Interpreted:
    """A condition as a function of the number of the columns, of rows, and of aggregates and whether these are NULL.

    It gives 1 where the condition holds, 0 where it does not and 2 where it is unknown.
    """

    condition: s.Expression
    references: tuple[s.Reference, ...]  # whose rows come first
    aggregates: tuple[s.Expression, ...]  # whose values come then, each with whether it is NULL

    def __call__(self, number: int, *given: Any) -> int:
        columns = _columns[int(number)]
        rows = dict(zip(self.references, given, strict=False))
        values = given[len(self.references) :]
        known = {
            aggregate: None if values[2 * place + 1] else values[2 * place]
            for place, aggregate in enumerate(self.aggregates)
        }
        found = value(self.condition, partial(_resolved, columns, rows, known)).as_py()
        return 2 if found is None else int(found)


def _resolved(
    columns: dict[str, Any], rows: dict[s.Reference, Any], known: dict[s.Expression, Any], node: s.Expression
) -> Any:
    if isinstance(node, s.Attribute):
        return columns[node.name][int(rows[node.of])]
    found = known[node]
    return pa.scalar(found.item() if hasattr(found, "item") else found)


@dataclass(frozen=True)
class CalledAsPython:
    """A function of numbers that is called with Python's own, and gives None for NULL."""

    apply: Any
    kinds: tuple[type, ...]
    result: type

    def __call__(self, *arguments: Any) -> Any:
        found = self.apply(*(kind(each) for kind, each in zip(self.kinds, arguments, strict=True)))
        found = found.item() if hasattr(found, "item") else found
        if found is None or found != found or (self.result is int and not -(2**63) <= found < 2**63):
            return None
        return found

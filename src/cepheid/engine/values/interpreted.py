"""Conditions that kernels have no form of: text of several events, lists of strings, functions that stay in Python.

Kernels know row numbers and arrays of numbers. Such a condition needs the values themselves, so the columns it reads
are kept beside the arrays, under a number that travels as the last literal; the number goes when the arrays do.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.values.columnwise import value
from cepheid.engine.values.plain import ARROW_KINDS, value_column
from cepheid.language import syntax as s
from cepheid.language.schema import DataType

MOST_ANSWERS = 200_000  # that are kept for one condition over one table
MOST_CHOICES = 4_000_000  # of different values, up to which a condition has a byte for each...
CHOICES_OF_A_ROW = 100  # ... and for each row so many
UNKNOWN = 255

_numbers = itertools.count()


@dataclass(frozen=True)
class Answers:
    """What was answered for the values that a condition reads: a byte for each choice of different values."""

    condition: Interpreted
    reads: tuple[tuple[int, int, list[int]], ...]  # which row, how many different values, and by row the value's number
    known: bytearray


@dataclass(frozen=True)
class Kept:
    """The columns of a filled layout, small numbers for their values, and what was answered for these.

    A condition over single values takes Arrow tens of microseconds, and pairs of events mostly repeat values.
    """

    columns: dict[str, Any]
    texts: pa.Array  # of which arrays hold the ranks
    codes: dict[str, list[int] | None] = field(default_factory=dict)  # None: of a kind without codes
    answers: dict[tuple[Any, ...], int] = field(default_factory=dict)
    tables: dict[int, Answers | None] = field(default_factory=dict)  # None: by the values themselves

    def table(self, condition: Interpreted) -> Answers | None:
        """The answers to a condition, where it reads nothing but a few different values."""
        if id(condition) not in self.tables:
            self.tables[id(condition)] = self._new_table(condition)
        return self.tables[id(condition)]

    def _new_table(self, condition: Interpreted) -> Answers | None:
        reads, size = [], 1
        if condition.aggregates:
            return None
        for attribute in condition.attributes:
            codes = self.coded(attribute.name)
            if codes is None:
                return None
            different = max(codes, default=0) + 1
            reads.append((condition.references.index(attribute.of), different, codes))
            size *= different
            if size > min(MOST_CHOICES, CHOICES_OF_A_ROW * len(codes)):
                return None
        return Answers(condition, tuple(reads), bytearray([UNKNOWN]) * size)

    def key(self, attributes: Sequence[s.Attribute], rows: dict[s.Reference, Any]) -> tuple[int, ...] | None:
        """What the values are that a condition reads, as numbers; None where that takes the values themselves."""
        found = []
        for attribute in attributes:
            codes = self.coded(attribute.name)
            if codes is None:
                return None
            found.append(codes[int(rows[attribute.of])])
        return tuple(found)

    def coded(self, name: str) -> list[int] | None:
        """A number for the value of each row: 0 for NULL."""
        if name not in self.codes:
            self.codes[name] = _coded(self.columns[name])
        return self.codes[name]


_columns: dict[int, Kept] = {}  # by the number of a filled layout


def _coded(column: Any) -> list[int] | None:
    try:
        encoded = pc.dictionary_encode(column)
    except pa.ArrowNotImplementedError:
        return None
    indices = encoded.combine_chunks().indices if isinstance(encoded, pa.ChunkedArray) else encoded.indices
    found: list[int] = (pc.fill_null(indices, -1).to_numpy(zero_copy_only=False).astype(np.int64) + 1).tolist()
    return found


def kept(ranks: npt.NDArray[np.int64], texts: pa.Array, table: pa.Table, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """The ranks of literals, with the number behind them under which texts and columns of the table are kept."""
    if not names:
        return ranks
    number = next(_numbers)
    _columns[number] = Kept({name: value_column(table.column(name)) for name in names}, texts)
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
    kinds: tuple[DataType, ...]  # of these values; a text is its rank
    text: str = ""  # of the condition: 1, 1.0 and TRUE are equal, and not the same

    @cached_property
    def attributes(self) -> tuple[s.Attribute, ...]:
        """What it reads of single events."""
        found = (node for node in s.walk(self.condition) if isinstance(node, s.Attribute))
        return tuple(dict.fromkeys(node for node in found if node.of in self.references))

    def __call__(self, number: int, *given: Any) -> int:
        kept = _columns[int(number)]
        table = kept.table(self)
        if table is None:
            return self.remembered(kept, given)
        place = 0
        for which, different, codes in table.reads:
            place = place * different + codes[given[which]]
        answer = table.known[place]
        if answer == UNKNOWN:
            answer = table.known[place] = self.answer(kept, dict(zip(self.references, given, strict=True)), ())
        return answer

    def remembered(self, kept: Kept, given: Sequence[Any]) -> int:
        """The same for many different values, or with aggregates."""
        rows = dict(zip(self.references, given, strict=False))
        values = given[len(self.references) :]
        read = kept.key(self.attributes, rows)
        key = None if read is None else (id(self), read, values)
        if key is not None and key in kept.answers:
            return kept.answers[key]
        answer = self.answer(kept, rows, values)
        if key is not None and len(kept.answers) < MOST_ANSWERS:
            kept.answers[key] = answer
        return answer

    def answer(self, kept: Kept, rows: dict[s.Reference, Any], values: Sequence[Any]) -> int:
        """1, 0 or 2, by Arrow."""
        known = {
            aggregate: _scalar(kept, kind, None if values[2 * place + 1] else values[2 * place])
            for place, (aggregate, kind) in enumerate(zip(self.aggregates, self.kinds, strict=True))
        }
        found = value(self.condition, partial(_resolved, kept.columns, rows, known)).as_py()
        return 2 if found is None else int(found)


def _scalar(kept: Kept, kind: DataType, found: object) -> pa.Scalar:
    """What an aggregate is worth, as columns have such values; None: NULL."""
    if found is not None:
        found = found.item() if hasattr(found, "item") else found
        found = (
            kept.texts[found].as_py() if kind is DataType.STRING else bool(found) if kind is DataType.BOOL else found
        )
    return pa.scalar(found, ARROW_KINDS.get(kind, pa.null()))


def _resolved(
    columns: dict[str, Any], rows: dict[s.Reference, Any], known: dict[s.Expression, pa.Scalar], node: s.Expression
) -> Any:
    return columns[node.name][int(rows[node.of])] if isinstance(node, s.Attribute) else known[node]


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

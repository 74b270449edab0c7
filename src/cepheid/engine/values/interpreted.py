"""Conditions that kernels have no form of: text of several events, lists of strings, functions that stay in Python.

Kernels know row numbers and arrays of numbers. Such a condition needs the values themselves, so the columns it reads
are kept beside the arrays, under a number that travels as the last literal; the number goes when the arrays do.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.values.columnwise import value
from cepheid.engine.values.plain import ARROW_KINDS, value_column
from cepheid.errors import CepheidError
from cepheid.language import syntax as s
from cepheid.language.functions import find_function
from cepheid.language.schema import DataType

MOST_ANSWERS = 200_000  # that are kept for one condition over one table
MOST_CHOICES = 4_000_000  # of different values, up to which a condition has a byte for each...
CHOICES_OF_A_ROW = 100  # ... and for each row so many
ASKED = 2  # once one choice of so many was asked for, further ones are answered together with their neighbours...
ASKED_OF_FEW = 8  # ... of so many where there are fewer choices than rows...
TOGETHER = 1024  # ... up to so many at once, which takes a half (LIKE) to a hundredth of the time one by one
UNKNOWN = 255

_numbers = itertools.count()


@dataclass(frozen=True)
class Coded:
    """The different values of a column, NULL first, and by row the number of the value."""

    different: pa.Array
    codes: npt.NDArray[np.int64]

    @cached_property
    def rows(self) -> list[int]:
        """The same numbers, quicker to read one by one."""
        found: list[int] = self.codes.tolist()
        return found


@dataclass
class Answers:
    """What was answered for the values that a condition reads: a byte for each choice of different values."""

    condition: Interpreted
    reads: tuple[tuple[int, Coded], ...]  # which row, and the column
    known: npt.NDArray[np.uint8]
    asked: int = 0

    def place(self, given: Sequence[Any]) -> int:
        """Which byte is of these rows."""
        place = 0
        for which, column in self.reads:
            place = place * len(column.different) + column.rows[given[which]]
        return place

    def ask(self, kept: Kept, place: int, rows: dict[s.Reference, Any]) -> int:
        """The answer for these rows; where most choices seem to occur, also for other values of what is read last."""
        self.asked += 1
        few = len(self.known) <= len(self.reads[0][1].codes)
        if self.asked * (ASKED_OF_FEW if few else ASKED) > len(self.known) and self.condition.is_built_in:
            first = place - place % len(self.reads[-1][1].different) % TOGETHER
            with suppress(CepheidError):  # what is too much for many rows may do for one
                found = self.together(kept, place, first, rows)
                self.known[first : first + len(found)] = found
        if self.known[place] == UNKNOWN:
            self.known[place] = self.condition.answer(kept, rows, ())
        return int(self.known[place])

    def together(self, kept: Kept, place: int, first: int, rows: dict[s.Reference, Any]) -> npt.NDArray[np.uint8]:
        """The answers from a place on, for the values of what is read last, by Arrow."""
        last, different = self.condition.attributes[-1], self.reads[-1][1].different
        values = different.slice(first - (place - place % len(different)), TOGETHER)

        def column(node: s.Expression) -> pa.Array:
            assert isinstance(node, s.Attribute)
            return values if node == last else pa.repeat(kept.columns[node.name][int(rows[node.of])], len(values))

        found = value(self.condition.condition, column)
        found = pa.repeat(found, len(values)) if isinstance(found, pa.Scalar) else found
        answers: npt.NDArray[np.uint8] = pc.fill_null(found.cast(pa.uint8()), 2).to_numpy(zero_copy_only=False)
        return answers


@dataclass(frozen=True)
class Kept:
    """The columns of a filled layout, small numbers for their values, and what was answered for these.

    A condition over single values takes Arrow tens of microseconds, and pairs of events mostly repeat values.
    """

    columns: dict[str, Any]
    texts: pa.Array  # of which arrays hold the ranks
    codes: dict[str, Coded | None] = field(default_factory=dict)  # None: of a kind without codes
    answers: dict[tuple[object, ...], int] = field(default_factory=dict)
    tables: dict[int, Answers | None] = field(default_factory=dict)  # None: by the values themselves

    def table(self, condition: Interpreted) -> Answers | None:
        """The answers to a condition, where it reads nothing but a few different values."""
        if id(condition) not in self.tables:
            self.tables[id(condition)] = self._new_table(condition)
        return self.tables[id(condition)]

    def _new_table(self, condition: Interpreted) -> Answers | None:
        reads, size = [], 1
        if condition.aggregates or not condition.attributes:
            return None
        for attribute in condition.attributes:
            column = self.coded(attribute.name)
            if column is None:
                return None
            reads.append((condition.references.index(attribute.of), column))
            size *= len(column.different)
            if size > min(MOST_CHOICES, CHOICES_OF_A_ROW * len(column.codes)):
                return None
        return Answers(condition, tuple(reads), np.full(size, UNKNOWN, np.uint8))

    def key(self, attributes: Sequence[s.Attribute], rows: dict[s.Reference, Any]) -> tuple[int, ...] | None:
        """What the values are that a condition reads, as numbers; None where that takes the values themselves."""
        found = []
        for attribute in attributes:
            column = self.coded(attribute.name)
            if column is None:
                return None
            found.append(column.rows[int(rows[attribute.of])])
        return tuple(found)

    def coded(self, name: str) -> Coded | None:
        """A number for the value of each row: 0 for NULL."""
        if name not in self.codes:
            self.codes[name] = _coded(self.columns[name])
        return self.codes[name]


_columns: dict[int, Kept] = {}  # by the number of a filled layout


def _coded(column: Any) -> Coded | None:
    try:
        encoded = pc.dictionary_encode(column)
    except pa.ArrowNotImplementedError:
        return None
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
    return Coded(pa.concat_arrays([pa.nulls(1, column.type), encoded.dictionary]), codes)


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

    @cached_property
    def is_built_in(self) -> bool:
        """Does it call no function of the user's, which would see values that do not occur together?"""
        names = (node.function for node in s.walk(self.condition) if isinstance(node, s.Call))
        return not any(function is None or function.user for function in map(find_function, names))

    def __call__(self, number: int, *given: object) -> int:
        kept = _columns[int(number)]
        table = kept.table(self)
        if table is None:
            return self.remembered(kept, given)
        place = table.place(given)
        answer = int(table.known[place])
        return answer if answer != UNKNOWN else table.ask(kept, place, dict(zip(self.references, given, strict=True)))

    def remembered(self, kept: Kept, given: Sequence[object]) -> int:
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

    def answer(self, kept: Kept, rows: dict[s.Reference, Any], values: Sequence[object]) -> int:
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


class Lookups(NamedTuple):
    """A case of a predicate that tests conditions on single events: with the slots of these events and the answer."""

    case: int
    alone: bool  # does the case test nothing else?
    conditions: tuple[tuple[Interpreted, tuple[int, ...], int], ...]


def lookup_tables(lookups: Sequence[Lookups], number: int) -> npt.NDArray[np.int64]:
    """What `in_object_mode.judged_by_number` reads to look answers up, for the columns of this number.

    By case a place, or 0. There: whether there is more to test, and how many conditions follow. Of each: the byte at
    which its answers begin, how many rows there are, the answer for which it holds, how much it reads, and of each read
    the slot and the place of what a row adds to that byte. Conditions without a table are left to Python. The
    number of cases comes last but one.
    """
    kept = _columns[number]
    cases = max((each.case for each in lookups), default=-1) + 1
    numbers, tables = [0] * cases, dict[int, Answers]()
    unplaced: list[tuple[int, int, int]] = []  # where a place is missing; of which table, and of which read
    for case, alone, conditions in lookups:
        tabled = [(table, slots, wanted) for each, slots, wanted in conditions if (table := kept.table(each))]
        if tabled:
            numbers[case] = len(numbers)
            numbers += [int(not alone or len(tabled) < len(conditions)), len(tabled)]
        for table, slots, wanted in tabled:
            tables[id(table)] = table
            unplaced.append((len(numbers), id(table), -1))
            numbers += [0, len(table.reads[0][1].codes), wanted, len(table.reads)]
            for read, (which, _) in enumerate(table.reads):
                unplaced.append((len(numbers) + 1, id(table), read))
                numbers += [slots[which], 0]
    size, parts, places = len(numbers), list[npt.NDArray[np.int64]](), dict[tuple[int, int], int]()
    for key, table in tables.items():
        factor = len(table.known)
        for read, (_, column) in enumerate(table.reads):
            factor //= len(column.different)
            places[key, read] = size
            parts.append(column.codes * factor)
            size += len(column.codes)
        places[key, -1] = 8 * size
        parts.append(np.full(-(-len(table.known) // 8), -1, np.int64))  # nothing but UNKNOWN
        size += len(parts[-1])
    for at, key, read in unplaced:
        numbers[at] = places[key, read]
    found = np.concatenate([np.array(numbers, np.int64), *parts, [cases if tables else 0, 0]])
    for key, table in tables.items():
        table.known = found.view(np.uint8)[places[key, -1] :][: len(table.known)]
    return found


@dataclass(frozen=True)
class CalledAsPython:
    """A function of numbers that is called with Python's own, and gives None for NULL."""

    apply: Any
    kinds: tuple[type, ...]
    result: type

    def __call__(self, *arguments: object) -> Any:
        found = self.apply(*(kind(each) for kind, each in zip(self.kinds, arguments, strict=True)))
        found = found.item() if hasattr(found, "item") else found
        if found is None or found != found or (self.result is int and not -(2**63) <= found < 2**63):
            return None
        return found

"""Conditions on the path that have no compiled form: plain Python over the rows' values, called by the search."""

from __future__ import annotations

import itertools
import weakref
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cepheid.budget import checkpoint
from cepheid.engine.data.arrays import Int64s
from cepheid.engine.search.row_pattern.path_state import HIGH, LOW, NUMBER, ROW, START
from cepheid.engine.values.operators import listed
from cepheid.language import syntax as s
from cepheid.language.evaluate import function_of
from cepheid.language.library.operators import known
from cepheid.language.match_recognize import bound as b
from cepheid.language.match_recognize.aggregates import aggregate_of

_numbers = itertools.count()
_columns: dict[int, dict[str, list[Any]]] = {}  # of the tables that are searched

_conditions: weakref.WeakValueDictionary[tuple[Any, ...], PathCondition] = weakref.WeakValueDictionary()


def number_of(table: pa.Table, conditions: list[s.Expression], holder: object) -> int:
    """The number under which conditions find the values of a table, as long as there is a holder of it."""
    number = next(_numbers)
    names = {name for condition in conditions for name in b.columns_of(condition)}
    _columns[number] = {name: listed(table.column(name)) for name in names}
    weakref.finalize(holder, _columns.pop, number, None)
    return number


@dataclass(frozen=True, eq=False)
class PathCondition:
    """A condition as a function of the whole numbers that the search hands over.

    They begin as `judge.py` says. At `table` is the number of the table, and behind it are the labels of the path.
    """

    condition: s.Expression
    labels: tuple[str, ...]
    table: int

    def __call__(self, counted: Int64s) -> bool:
        checkpoint()
        start, row = int(counted[START]), int(counted[ROW])
        first = self.table + 1
        path = [self.labels[label] for label in counted[first : first + row - start + 1].tolist()]
        columns = _columns[int(counted[self.table])]
        view = _View(columns, path, start, int(counted[LOW]), int(counted[HIGH]), int(counted[NUMBER]))
        return view.value(self.condition) is True


def path_condition(condition: s.Expression, labels: tuple[str, ...], table: int) -> PathCondition:
    """The function of a condition, the same one for the same condition. By its text: 1, 1.0 and TRUE are equal."""
    key = (repr(condition), labels, table)
    found = _conditions.get(key)
    if found is None:
        found = _conditions[key] = PathCondition(condition, labels, table)
    return found


@dataclass
class _View:
    """What a condition sees: the columns, and the path up to the row at hand."""

    columns: dict[str, list[Any]]
    path: list[str]  # the labels of the rows from `start` on
    start: int
    low: int
    high: int
    number: int

    def value(self, expression: s.Expression) -> Any:
        match expression:
            case s.Literal(value=value):
                return value
            case b.MatchNumber():
                return self.number
            case b.SequenceNumber():
                return len(self.path)
            case b.Navigate():
                places = self.places(expression.labels)
                if expression.offset >= len(places):
                    return None
                place = places[expression.offset] if expression.first else places[-1 - expression.offset]
                row = self.start + place + expression.shift
                return self.at(expression.inner, row) if self.low <= row < self.high else None
            case b.Aggregated(arguments=arguments):
                rows = [self.start + place for place in self.places(expression.labels)]
                return aggregate_of(expression)([tuple(self.at(part, row) for part in arguments) for row in rows])
        return function_of(expression)(*(self.value(part) for part in s.children(expression)))

    def places(self, labels: b.Labels) -> list[int]:
        return [place for place, label in enumerate(self.path) if labels is None or label in labels]

    def at(self, expression: s.Expression, row: int) -> Any:
        match expression:
            case s.Literal(value=value):
                return value
            case b.Column(name=name):
                return known(self.columns[name][row])
            case b.RowLabel():
                return self.path[row - self.start] if 0 <= row - self.start < len(self.path) else None
            case b.MatchNumber():
                return self.number
        return function_of(expression)(*(self.at(part, row) for part in s.children(expression)))

"""Conditions for the kernel: kinds of events where they speak of one event, postfix code where they look back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.matches import Int64s
from cepheid.engine.search.flink import machine as m
from cepheid.engine.search.flink.operations import is_aggregate, is_of_one_event, references_in, spelled_out
from cepheid.engine.values import columnwise
from cepheid.language import syntax as s
from cepheid.language.flink.conditions import HERE, Atom
from cepheid.language.library.decimal_columns import as_doubles
from cepheid.language.library.decimals import precision_of
from cepheid.language.schema import DataType, Schema
from cepheid.language.typing import type_of
from cepheid.plan.flink_automaton import FlinkAutomaton

_AT_HAND = s.Reference(HERE)
FEW, ROOMY = 1 << 6, 1 << 14  # kinds of events that are numbered with gaps: in the end, and on the way
EXACT = 2**53  # whole numbers up to here are floating numbers, too
DIGITS = 15  # decimals of so many digits compare as the floating numbers next to them do
_BINARY = {"+": m.ADD, "-": m.SUBTRACT, "*": m.MULTIPLY, "/": m.DIVIDE, "%": m.REMAINDER}
_BINARY |= {"=": m.EQUAL, "!=": m.UNEQUAL, "<": m.LESS, "<=": m.AT_MOST, ">": m.MORE, ">=": m.AT_LEAST}
_AGGREGATES = {"count": m.COUNT, "sum": m.SUM, "avg": m.AVERAGE, "min": m.LEAST, "max": m.GREATEST}
_NUMBERED = (DataType.INT, DataType.FLOAT, DataType.TIME, DataType.DATE, DataType.BOOL)
_AGGREGATES |= {"first": m.FIRST_VALUE, "last": m.LAST_VALUE}


class NotCompiled(Exception):
    """A condition that the kernel cannot judge; the reference can."""


def compile_conditions(automaton: FlinkAutomaton, table: pa.Table) -> m.Conditions:
    """The atoms that look back, for the events of a table, which are in order."""
    code = _Code(automaton, table)
    for atom in automaton.atoms:
        code.add(atom)
    return m.Conditions(
        np.array(code.first, np.int64),
        np.array(code.lines, np.int64).reshape(-1, 3),
        np.array(code.each or [-1], np.int64),
        np.array(code.own or [-1], np.int64),
        np.array(code.constants, np.float64),
        np.array(code.values, np.float64).reshape(len(code.values), table.num_rows),
    )


def kinds_of_events(automaton: FlinkAutomaton, table: pa.Table) -> tuple[Int64s, npt.NDArray[np.uint8]]:
    """A kind for each event, and per kind and atom whether it holds; of those that look back, nothing is said.

    Events of one kind agree in all conditions that speak of one event alone.
    """
    rows = table.num_rows
    simple = {number: atom.expression for number, atom in enumerate(automaton.atoms) if atom.is_simple}
    texts = _texts_asked_for(simple.values(), automaton.schema)
    asked: dict[s.Expression, tuple[Int64s, int]] = {}  # where codes are a number, the expression holds
    kind, number = np.zeros(rows, np.int64), 1
    for name, among in texts.items():
        codes = _text_codes(table.column(name), among)
        asked |= {
            s.Comparison("=", s.Attribute(_AT_HAND, name), s.Literal(text)): (codes, at) for text, at in among.items()
        }
        kind, number = _crossed(kind, number, codes, len(among) + 1)
    for expression in simple.values():
        if expression not in asked:
            holds = simple_holds(expression, table).astype(np.int64)
            asked[expression] = holds, 1
            kind, number = _crossed(kind, number, holds, 2)
    if number > FEW:
        kind, number = _dense(kind, number)
    example = np.zeros(number if rows else 0, np.int64)
    example[kind] = np.arange(rows)
    truths = np.zeros((len(example), len(automaton.atoms)), np.uint8)
    for atom, expression in simple.items():
        codes, code = asked[expression]
        truths[:, atom] = codes[example] == code
    return kind, truths


def _texts_asked_for(expressions: Iterable[s.Expression], schema: Schema) -> dict[str, dict[str, int]]:
    """The columns that are compared with several texts, `column = 'text'`, and a number for each of these."""
    found: dict[str, dict[str, int]] = {}
    for expression in expressions:
        match expression:
            case s.Comparison(
                operator="=", left=s.Attribute(name=name, default=None), right=s.Literal(value=str(text))
            ):
                if schema.type_of(name) is DataType.STRING:
                    among = found.setdefault(name, {})
                    among.setdefault(text, len(among))
    return {name: among for name, among in found.items() if len(among) > 1}


def _text_codes(column: pa.ChunkedArray, among: dict[str, int]) -> Int64s:
    """The number of the text that each value is; of others, the next one."""
    column = columnwise.value_column(column)
    found = pc.fill_null(pc.index_in(column, value_set=pa.array(list(among), column.type)), len(among))
    codes: Int64s = found.to_numpy().astype(np.int64)
    return codes


def _crossed(kind: Int64s, number: int, codes: Int64s, base: int) -> tuple[Int64s, int]:
    """Kinds that are divided further by codes below a base."""
    kind, number = kind * base + codes if number > 1 else codes, number * base
    return _dense(kind, number) if number > ROOMY else (kind, number)


def _dense(codes: Int64s, number: int) -> tuple[Int64s, int]:
    """Codes below a number as numbers without gaps, and how many there are."""
    present = np.bincount(codes, minlength=number) > 0
    place = np.cumsum(present) - 1
    return place[codes], int(present.sum())


def simple_holds(expression: s.Expression, table: pa.Table) -> npt.NDArray[np.bool_]:
    """Where a condition on the event at hand holds."""
    found = columnwise.condition(expression, lambda node: columnwise.value_column(table.column(node.name)))  # type: ignore[attr-defined]
    if isinstance(found, pa.Scalar):
        return np.full(table.num_rows, bool(found.as_py()))
    return np.asarray(found).astype(bool)


@dataclass
class _Code:
    """The code of all atoms that look back, and the columns that it reads."""

    automaton: FlinkAutomaton
    table: pa.Table
    first: list[int] = field(default_factory=lambda: [0])
    lines: list[tuple[int, int, int]] = field(default_factory=list)
    each: list[int] = field(default_factory=list)
    own: list[int] = field(default_factory=list)
    constants: list[float] = field(default_factory=list)
    values: list[npt.NDArray[np.float64]] = field(default_factory=list)
    known: dict[tuple[s.Expression, int], int] = field(default_factory=dict)
    quantified: str | None = None

    def add(self, atom: Atom) -> None:
        """The next atom; a simple one has no code."""
        steps = list(self.automaton.lists)
        self.quantified = None
        if not atom.is_simple:
            for node in s.walk(atom.expression):
                if isinstance(node, s.Arithmetic | s.Negative) and not is_of_one_event(node):
                    self.largest(node)
            self.expression(spelled_out(atom.expression))
        self.first.append(len(self.lines))
        self.each.append(-1 if self.quantified is None else steps.index(self.quantified))
        self.own.append(steps.index(atom.own) if atom.from_second and atom.own in steps else -1)

    def expression(self, node: s.Expression) -> None:
        """Code that leaves the value of an expression."""
        if is_of_one_event(node):
            self.of_event(node, *references_in(node))
            return
        match node:
            case s.Literal(value=value):
                if isinstance(value, str) or (isinstance(value, int) and abs(value) > EXACT):
                    raise NotCompiled
                if isinstance(value, Decimal) and precision_of(value)[0] > DIGITS:
                    raise NotCompiled
                self.lines.append((m.CONSTANT, 0, len(self.constants)))
                self.constants.append(float("nan") if value is None else float(value))
            case s.Length(variable=variable):
                self.lines.append((m.COUNT, self.step(variable), -1))
            case s.Call(function=function, arguments=(argument,)) if is_aggregate(node):
                self.aggregate(function.lower(), argument)
            case s.Call(function=function, arguments=(left, right)) if function.lower() == "coalesce":
                self.both(left, right, m.COALESCE)
            case s.Comparison(operator=operator, left=left, right=right):
                if is_of_one_event(left) and type_of(left, self.automaton.schema) is DataType.STRING:
                    self.texts(left, right)
                else:
                    self.expression(left)
                    self.expression(right)
                self.lines.append((_BINARY[operator], 0, 0))
            case s.Arithmetic(operator=operator, left=left, right=right):
                self.both(left, right, _BINARY[operator])
            case s.Negative(operand=operand):
                self.one(operand, m.MINUS)
            case s.Not(operand=operand):
                self.one(operand, m.NOT)
            case s.IsNull(operand=operand, negated=negated):
                self.one(operand, m.IS_NULL)
                if negated:
                    self.lines.append((m.NOT, 0, 0))
            case s.Between(operand=operand, low=low, high=high, negated=negated):
                self.both(operand, low, m.AT_LEAST)
                self.both(operand, high, m.AT_MOST)
                self.lines.append((m.AND, 0, 0))
                if negated:
                    self.lines.append((m.NOT, 0, 0))
            case s.And(operands=operands) | s.Or(operands=operands):
                self.expression(operands[0])
                for operand in operands[1:]:
                    self.expression(operand)
                    self.lines.append((m.AND if isinstance(node, s.And) else m.OR, 0, 0))
            case _:
                raise NotCompiled

    def largest(self, node: s.Expression) -> int:
        """How large a whole number may be, with or without its sign; NotCompiled where floating numbers are not exact.

        Decimals that are computed from several events are never exact.
        """
        kind = type_of(node, self.automaton.schema)
        if kind is DataType.DECIMAL:
            raise NotCompiled
        if kind is DataType.FLOAT:
            return 0
        found = 0
        match node:
            case s.Literal(value=int(value)):
                found = abs(value)
            case s.Arithmetic(operator=operator, left=left, right=right):
                one, other = self.largest(left), self.largest(right)
                found = one * other if operator == "*" else one if operator == "%" else one + other
            case s.Negative(operand=operand):
                found = self.largest(operand)
            case s.Length():
                found = self.table.num_rows
            case s.Call(function=function, arguments=(argument,)) if is_aggregate(node):
                counts = self.table.num_rows if function.lower() in ("count", "sum") else 1
                found = counts * (1 if isinstance(argument, s.Reference) else self.of_column(argument))
            case _ if is_of_one_event(node):
                found = self.of_column(node)
        if found > EXACT:
            raise NotCompiled
        return found

    def of_column(self, node: s.Expression) -> int:
        column = _whole(self.computed(_at_hand(node)))
        if isinstance(column, pa.Scalar):
            column = pa.array([column.as_py()], column.type)
        if not pa.types.is_integer(column.type):
            return 1
        ends = pc.min_max(column).as_py()
        return int(max(abs(ends["min"] or 0), abs(ends["max"] or 0)))

    def one(self, operand: s.Expression, operation: int) -> None:
        self.expression(operand)
        self.lines.append((operation, 0, 0))

    def both(self, left: s.Expression, right: s.Expression, operation: int) -> None:
        self.expression(left)
        self.expression(right)
        self.lines.append((operation, 0, 0))

    def step(self, name: str) -> int:
        return list(self.automaton.lists).index(name)

    def of_event(self, node: s.Expression, reference: s.Reference) -> None:
        """An expression over one event: computed for all events beforehand."""
        if type_of(node, self.automaton.schema) is DataType.STRING:
            raise NotCompiled
        self.lines.append((*self.which(reference), self.column(node)))

    def which(self, reference: s.Reference) -> tuple[int, int]:
        """Which event is meant."""
        if reference.variable == HERE:
            return m.AT_HAND, 0
        step = self.step(reference.variable)
        if reference.element is s.Element.FIRST:
            return m.FIRST, step
        if reference.element is s.Element.LAST or not self.automaton.lists[reference.variable]:
            return m.LAST, step
        if self.quantified not in (None, reference.variable):
            raise NotCompiled
        self.quantified = reference.variable
        return m.EACH, step

    def aggregate(self, function: str, argument: s.Expression) -> None:
        if function not in _AGGREGATES:
            raise NotCompiled
        (variable,) = s.variables_of(argument)
        counted = isinstance(argument, s.Reference)
        if not counted and type_of(argument, self.automaton.schema) not in _NUMBERED:
            raise NotCompiled
        column = -1 if counted else self.column(argument)
        self.lines.append((_AGGREGATES[function], self.step(variable), column))

    def column(self, node: s.Expression) -> int:
        """The values of an expression over one event, for all events."""
        canonical = _at_hand(node)
        key = (canonical, 0)
        if key not in self.known:
            self.known[key] = len(self.values)
            self.values.append(_floats(self.computed(canonical), self.table.num_rows))
        return self.known[key]

    def computed(self, node: s.Expression) -> Any:
        return columnwise.value(node, lambda inner: columnwise.value_column(self.table.column(inner.name)))  # type: ignore[attr-defined]

    def texts(self, left: s.Expression, right: s.Expression) -> None:
        """Two texts of different events: their ranks among all texts of both."""
        sides: list[tuple[s.Expression, s.Reference]] = []
        for side in (left, right):
            if not is_of_one_event(side):
                raise NotCompiled
            (reference,) = references_in(side)
            sides.append((side, reference))
        columns = [_whole(self.computed(_at_hand(side))) for side, _ in sides]
        together = pa.concat_arrays([column.cast(pa.string()) for column in columns])
        ranks = _floats(pc.rank(together, sort_keys="ascending", tiebreaker="dense"), len(together))
        ranks[np.asarray(together.is_null())] = np.nan
        for number, (_, reference) in enumerate(sides):
            self.lines.append((*self.which(reference), len(self.values)))
            self.values.append(ranks[number * self.table.num_rows : (number + 1) * self.table.num_rows])


def _at_hand(node: s.Expression) -> s.Expression:
    if isinstance(node, s.Reference):
        return s.Reference(HERE)
    return s.rebuild(node, _at_hand)


def _whole(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _floats(column: Any, rows: int) -> npt.NDArray[np.float64]:
    """Numbers and truths as floating numbers, NaN for NULL."""
    column = _whole(column)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if pa.types.is_integer(column.type) and rows:
        ends = pc.min_max(column).as_py()
        if max(abs(ends["min"] or 0), abs(ends["max"] or 0)) > EXACT:
            raise NotCompiled
    if pa.types.is_decimal(column.type) and rows:  # of few digits they compare as the doubles next to them
        ends = pc.min_max(column).as_py()
        largest = max(abs(ends["min"] or 0), abs(ends["max"] or 0))
        if Decimal(largest).scaleb(column.type.scale) >= 10**DIGITS:
            raise NotCompiled
        column = as_doubles(column)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise NotCompiled
    floats = column.cast(pa.float64())
    return np.array(pc.fill_null(floats, float("nan")), np.float64)

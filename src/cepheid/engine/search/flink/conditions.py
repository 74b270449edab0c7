"""Conditions for the kernel: over whole columns where they speak of one event, as postfix code where they look back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.search.flink import machine as m
from cepheid.engine.search.flink.operations import is_aggregate, is_of_one_event, references_in, spelled_out
from cepheid.engine.values import columnwise
from cepheid.language import syntax as s
from cepheid.language.flink.conditions import HERE, Atom
from cepheid.language.schema import DataType
from cepheid.language.typing import type_of
from cepheid.plan.flink_automaton import Action, All, Always, FlinkAutomaton, Formula, Judged, Not, Some, State

EXACT = 2**53  # whole numbers up to here are floating numbers, too
_BINARY = {"+": m.ADD, "-": m.SUBTRACT, "*": m.MULTIPLY, "/": m.DIVIDE, "%": m.REMAINDER}
_BINARY |= {"=": m.EQUAL, "!=": m.UNEQUAL, "<": m.LESS, "<=": m.AT_MOST, ">": m.MORE, ">=": m.AT_LEAST}
_AGGREGATES = {"count": m.COUNT, "sum": m.SUM, "avg": m.AVERAGE, "min": m.LEAST, "max": m.GREATEST}
_NUMBERED = (DataType.INT, DataType.FLOAT, DataType.TIME, DataType.BOOL)
_AGGREGATES |= {"first": m.FIRST_VALUE, "last": m.LAST_VALUE}


class NotCompiled(Exception):
    """A condition that the kernel cannot judge; the reference can."""


def formulas_of(automaton: FlinkAutomaton) -> list[Formula]:
    """The distinct conditions on edges."""
    return list(dict.fromkeys(edge.formula for state in automaton.states for edge in state.edges))


def compile_conditions(automaton: FlinkAutomaton, table: pa.Table) -> m.Conditions:
    """The conditions of an automaton over the events of a table, which are in order."""
    rows, atoms = table.num_rows, automaton.atoms
    holds = np.zeros((rows, max(len(atoms), 1)), np.uint8)
    code = _Code(automaton, table)
    for number, atom in enumerate(atoms):
        if atom.is_simple:
            holds[:, number] = simple_holds(atom, table)
        code.add(atom)
    formulas = formulas_of(automaton)
    looks_back = np.array([any(not atoms[atom].is_simple for atom in atoms_in(each)) for each in formulas], np.uint8)
    judged = np.zeros((rows, max(len(formulas), 1)), np.uint8)
    parts: list[int] = []
    first = [0]
    for number, formula in enumerate(formulas):
        if looks_back[number]:
            parts += postfix(formula)
        else:
            judged[:, number] = over_rows(formula, holds)
        first.append(len(parts))
    return m.Conditions(
        judged,
        looks_back if len(formulas) else np.zeros(1, np.uint8),
        np.array(first, np.int64),
        np.array(parts, np.int64),
        holds,
        np.array([not atom.is_simple for atom in atoms] or [False], np.uint8),
        np.array(code.first, np.int64),
        np.array(code.lines, np.int64).reshape(-1, 3),
        np.array(code.each or [-1], np.int64),
        np.array(code.own or [-1], np.int64),
        np.array(code.constants, np.float64),
        np.array(code.values, np.float64).reshape(len(code.values), rows),
    )


def simple_holds(atom: Atom, table: pa.Table) -> npt.NDArray[np.uint8]:
    """Where a condition on the event at hand holds."""
    found = columnwise.condition(atom.expression, lambda node: columnwise.value_column(table.column(node.name)))  # type: ignore[attr-defined]
    if isinstance(found, pa.Scalar):
        return np.full(table.num_rows, bool(found.as_py()), np.uint8)
    return np.asarray(found).astype(np.uint8)


def atoms_in(formula: Formula) -> list[int]:
    """The numbers of the atoms of a formula."""
    match formula:
        case Always():
            return []
        case Judged(atom=atom):
            return [atom]
        case Not(inner=inner):
            return atoms_in(inner)
        case All(left=left, right=right) | Some(left=left, right=right):
            return [*atoms_in(left), *atoms_in(right)]


def postfix(formula: Formula) -> list[int]:
    """A formula for the kernel."""
    match formula:
        case Judged(atom=atom):
            return [atom]
        case Not(inner=inner):
            return [*postfix(inner), m.NEGATE]
        case All(left=Always(), right=right):
            return postfix(right)
        case All(left=left, right=Always()):
            return postfix(left)
        case All(left=left, right=right):
            return [*postfix(left), *postfix(right), m.BOTH]
        case Some(left=left, right=right):
            return [*postfix(left), *postfix(right), m.EITHER]
    return [m.TRUE]


def over_rows(formula: Formula, holds: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Where a formula of simple atoms holds."""
    match formula:
        case Judged(atom=atom):
            return holds[:, atom]
        case Not(inner=inner):
            return 1 - over_rows(inner, holds)
        case All(left=left, right=right):
            return over_rows(left, holds) & over_rows(right, holds)
        case Some(left=left, right=right):
            return over_rows(left, holds) | over_rows(right, holds)
    return np.ones(len(holds), np.uint8)


def activity(automaton: FlinkAutomaton, holds: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Per event a bit for each state in which a run may do something else with it than to wait on.

    What is judged on the way counts as doing something, unless the event itself already rules it out.
    """
    active = np.zeros(len(holds), np.int64)
    for state in automaton.states:
        reached: list[tuple[State, npt.NDArray[np.bool_]]] = [(state, np.ones(len(holds), bool))]
        does = np.zeros(len(holds), bool)
        waits = np.full(len(holds), state.start)
        while reached:
            at, where = reached.pop()
            for edge in at.edges:
                maybe, surely = possible(edge.formula, automaton.atoms, holds)
                if edge.action is Action.PROCEED:
                    if (where & maybe).any():
                        reached.append((edge.target, where & maybe))
                elif edge.action is Action.IGNORE and (edge.target is state or state.start):
                    waits |= surely & (at is state)
                else:
                    does |= where & maybe
        active |= (does | ~waits).astype(np.int64) << min(state.number, m.BITS)
    return active


def possible(
    formula: Formula, atoms: tuple[Atom, ...], holds: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Where a formula may hold, and where it surely does."""
    match formula:
        case Judged(atom=atom):
            if atoms[atom].is_simple:
                return holds[:, atom] == 1, holds[:, atom] == 1
            return np.ones(len(holds), bool), np.zeros(len(holds), bool)
        case Not(inner=inner):
            maybe, surely = possible(inner, atoms, holds)
            return ~surely, ~maybe
        case All(left=left, right=right):
            one, other = possible(left, atoms, holds), possible(right, atoms, holds)
            return one[0] & other[0], one[1] & other[1]
        case Some(left=left, right=right):
            one, other = possible(left, atoms, holds), possible(right, atoms, holds)
            return one[0] | other[0], one[1] | other[1]
    return np.ones(len(holds), bool), np.ones(len(holds), bool)


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
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise NotCompiled
    floats = column.cast(pa.float64())
    return np.array(pc.fill_null(floats, float("nan")), np.float64)

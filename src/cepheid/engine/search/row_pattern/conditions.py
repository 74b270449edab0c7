"""DEFINE, made ready for the search: what concerns rows alone is judged over whole columns, the rest on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.data.columns import ColumnLayout, fill
from cepheid.engine.search.row_pattern.arrange import Arranged
from cepheid.engine.search.row_pattern.as_python import number_of, path_condition
from cepheid.engine.search.row_pattern.columns import flags, read
from cepheid.engine.search.row_pattern.implied import on_start, without_start_conditions
from cepheid.engine.search.row_pattern.lowering import History, Lowering, Seen, UnfitError, merged
from cepheid.engine.search.row_pattern.path_state import PathState
from cepheid.engine.search.row_pattern.points import aggregate_type
from cepheid.engine.values.columnwise import value
from cepheid.engine.values.compiled import Case, Predicate, compile_cases, no_predicate
from cepheid.engine.values.python_first import FEW_EVENTS, python_first
from cepheid.errors import QueryError
from cepheid.language import pattern as p
from cepheid.language import syntax as s
from cepheid.language.match_recognize import bound as b

BY_COLUMN, ALWAYS, BY_PATH = 0, 1, 2


@dataclass(frozen=True)
class Conditions:
    """Per label: how it is judged, and over which rows it may hold as far as rows alone decide."""

    how: npt.NDArray[np.uint8]
    holds: npt.NDArray[np.uint8]
    on_the_way: dict[str, list[s.Expression]]  # what is left to judge, for labels BY_PATH
    judge: PathState
    predicate: Predicate  # which judges that
    seen: Seen | None  # what it reads of the path; None: nothing
    begins: npt.NDArray[np.uint8]  # per row: may a match begin there? Empty: at every row

    @property
    def opaque(self) -> bool:
        """Do some conditions run as Python functions of the whole path?"""
        return self.seen is not None and self.seen.opaque


def concerns_rows_alone(expression: s.Expression, label: str) -> bool:
    """Does the condition of a label depend on nothing but the row at hand and its neighbours?"""
    match expression:
        case b.Navigate(labels=labels, first=first, offset=offset, inner=inner, shift=shift):
            here = not first and offset == 0 and (labels is None or label in labels)
            parts = list(s.walk(inner))
            return (
                here
                and not any(isinstance(part, b.MatchNumber) for part in parts)
                and (shift == 0 or not any(isinstance(part, b.RowLabel) for part in parts))
            )
        case b.Aggregated() | b.MatchNumber() | b.SequenceNumber() | b.Column() | b.RowLabel():
            return False
    return all(concerns_rows_alone(part, label) for part in s.children(expression))


def path_labels(clause: b.BoundClause) -> frozenset[str]:
    """The labels whose condition looks at the path."""
    return frozenset(
        label for label, condition in clause.conditions.items() if not concerns_rows_alone(condition, label)
    )


def start_labels(clause: b.BoundClause) -> frozenset[str]:
    """Those of them whose condition looks at nothing of the path but where it began: not at which label a row got."""
    pattern, first = clause.pattern, None
    if isinstance(pattern, p.Sequence) and isinstance(pattern.parts[0], p.Single):
        label = pattern.parts[0].label
        if sum(isinstance(node, p.Single) and node.label == label for node in p.walk(pattern)) == 1:
            first = label
    return frozenset(label for label in path_labels(clause) if _sees_start(clause.conditions[label], label, first))


def number_labels(clause: b.BoundClause) -> frozenset[str]:
    """Those of them whose condition looks at the row and the number of the match alone."""
    return frozenset(label for label in path_labels(clause) if _sees_number(clause.conditions[label], label))


def _sees_number(expression: s.Expression, label: str) -> bool:
    if isinstance(expression, b.MatchNumber) or concerns_rows_alone(expression, label):
        return True
    if isinstance(expression, b.Navigate | b.Aggregated | b.SequenceNumber):
        return False
    return all(_sees_number(each, label) for each in s.children(expression))


def _sees_start(expression: s.Expression, label: str, first: str | None) -> bool:
    """Does a condition depend on the row, the first row of the match and its number alone?

    `first` is a label that the first row of every match has, and no other row.
    """
    if any(isinstance(node, b.RowLabel) for node in s.walk(expression)):
        return False
    match expression:
        case b.Navigate(labels=labels, first=from_start, offset=offset):
            here = labels is not None and label in labels and not from_start and offset == 0
            return labels is None or here or (first is not None and labels == {first})
        case b.Aggregated(labels=labels):
            return labels is None
    return all(_sees_start(part, label, first) for part in s.children(expression))


def prepare(clause: b.BoundClause, rows: Arranged, compiled: bool = False) -> Conditions:
    """The conditions over these rows; over few of them, what looks at the path runs as Python first."""
    length = rows.table.num_rows
    first = [over_rows(clause, rows, conjunct, "") for conjunct in on_start(clause)]
    begins = np.bitwise_and.reduce(first) if first else np.ones(0, np.uint8)
    clause = without_start_conditions(clause)
    holds = np.ones((len(clause.labels), length), np.uint8)
    how = np.full(len(clause.labels), ALWAYS, np.uint8)
    left: dict[str, list[s.Expression]] = {}
    for number, label in enumerate(clause.labels):
        condition = clause.conditions.get(label)
        if condition is None:
            continue
        how[number] = BY_COLUMN
        rest = []
        for conjunct in s.conjoined(condition):
            if concerns_rows_alone(conjunct, label):
                holds[number] &= over_rows(clause, rows, conjunct, label)
            else:
                check_truth(clause, conjunct, rows.table)
                rest.append(merged(conjunct))
        if rest:
            how[number] = BY_PATH
            left[label] = rest
    longest = int(np.diff(rows.bounds).max()) if len(rows.bounds) > 1 else 0
    with python_first(length <= FEW_EVENTS and not compiled):
        return Conditions(how, holds, left, *judged(clause, rows.table, left, longest), begins)


def over_rows(clause: b.BoundClause, rows: Arranged, condition: s.Expression, label: str) -> npt.NDArray[np.uint8]:
    """1 for the rows of which a condition holds that concerns rows alone."""
    length = rows.table.num_rows

    def resolve(node: s.Expression) -> Any:
        assert isinstance(node, b.Navigate)
        return value(node.inner, lambda inner: at_rows(inner, node.shift), clause.text)

    def at_rows(node: s.Expression, shift: int) -> Any:
        if isinstance(node, b.RowLabel):
            return pa.scalar(label)
        assert isinstance(node, b.Column)
        return shifted(read(rows.table.column(node.name)), rows.bounds, shift)

    try:
        return flags(value(condition, resolve, clause.text), length)
    except pa.ArrowTypeError:
        raise _no_truth(clause, condition) from None


def _no_truth(clause: b.BoundClause, condition: s.Expression) -> QueryError:
    message = "a condition is true or false"
    return QueryError(message, text=clause.text or None, start=condition.span[0], end=condition.span[1], code="types")


def check_truth(clause: b.BoundClause, condition: s.Expression, table: pa.Table) -> None:
    """Raises if a condition that looks at the path has operands that do not fit: tried on no row at all."""
    empty = table.schema.empty_table()

    def resolve(node: s.Expression) -> Any:
        match node:
            case b.Navigate(inner=b.RowLabel()):
                return pa.array([], pa.string())
            case b.Navigate(inner=inner):
                return value(inner, resolve, clause.text)
            case b.Column(name=name):
                return read(empty.column(name))
            case b.RowLabel():
                return pa.array([], pa.string())
            case b.Aggregated():
                kinds = [value(argument, resolve, clause.text).type for argument in node.arguments]
                return pa.array([], aggregate_type(node, kinds, clause.text))
        return pa.array([], pa.int64())

    kind = value(condition, resolve, clause.text).type
    if not pa.types.is_boolean(kind) and not pa.types.is_null(kind):
        raise _no_truth(clause, condition)


def shifted(column: pa.Array, bounds: npt.NDArray[np.int64], shift: int) -> pa.Array:
    """The values of the rows so far behind or ahead in the same partition; NULL where there is none."""
    if shift == 0 or len(column) == 0:
        return column
    length, steps = len(column), min(abs(shift), len(column))
    gap = pa.nulls(steps, column.type)
    pieces = [gap, column.slice(0, length - steps)] if shift < 0 else [column.slice(steps), gap]
    moved = pa.concat_arrays(pieces)
    crossing = np.zeros(length + 1, bool)  # rows whose neighbour lies in another partition
    for step in range(steps):
        edges = bounds[:-1] + step if shift < 0 else bounds[1:] - 1 - step
        inside = edges < bounds[1:] if shift < 0 else edges >= bounds[:-1]
        crossing[edges[inside]] = True
        if not inside.any():
            break
    mask = pa.array(crossing[:length])
    return pa.compute.if_else(mask, pa.scalar(None, column.type), moved) if crossing[:length].any() else moved


def judged(
    clause: b.BoundClause, table: pa.Table, left: Mapping[str, Sequence[s.Expression]], longest: int
) -> tuple[PathState, Predicate, Seen | None]:
    """What the search keeps and hands over for the conditions on the path of some labels, and their predicate."""
    if not left:
        return _idle_judge(), no_predicate(), None
    lowering = Lowering(table, clause.labels, clause.text)
    entry = np.zeros((len(clause.labels), 2), np.int64)
    asks: list[tuple[int, ...]] = []
    lowered: list[tuple[s.Expression, ...]] = []
    opaque: list[list[s.Expression]] = []  # those that have no compiled form
    reads: list[frozenset[tuple[int, str]]] = []
    numbers: list[bool] = []
    histories: list[tuple[History, ...]] = []
    for number, label in enumerate(clause.labels):
        lowering.asks, lowering.reads, lowering.numbers, lowering.histories = [], set(), False, {}
        fits: list[s.Expression] = []
        opaque.append([])
        for condition in left.get(label, ()):
            try:
                fits.append(lowering.lowered(condition))
            except UnfitError:
                opaque[-1].append(condition)
                lowering.note(condition)
        lowered.append(tuple(fits))
        entry[number] = len(asks), len(asks) + len(lowering.asks)
        asks += lowering.asks
        reads.append(frozenset(lowering.reads))
        numbers.append(lowering.numbers)
        histories.append(tuple(lowering.histories))
    cases = [
        Case(
            conditions,
            lambda of: f"at[{of.variable}]",
            lowering.fragments.__getitem__,
            tuple(path_condition(each, clause.labels, lowering.counted) for each in rest),
        )
        for conditions, rest in zip(lowered, opaque, strict=True)
    ]
    read = [name for *_, name in lowering.aggregates if name]
    predicate = compile_cases(cases, lowering.schema, literals=clause.labels, also=read, filled=True)
    judge = _judge(lowering, predicate.layout, entry, asks, longest)
    everything = [condition for rest in opaque for condition in rest]
    if everything:
        judge.counted[lowering.counted] = number_of(table, everything, judge.sets)
    sources = {name: inner for inner, (name, _) in lowering.columns.items()}
    seen = Seen(tuple(reads), tuple(numbers), lowering.values, sources, tuple(histories), bool(everything))
    return judge, predicate, seen


@lru_cache(maxsize=1)
def _idle_judge() -> PathState:
    """A judge with nothing to judge."""
    nothing = Lowering(pa.table({}), (), "", sets=[])
    return _judge(nothing, ColumnLayout(()), np.zeros((1, 2), np.int64), [], 0)


def _judge(
    lowering: Lowering,
    layout: ColumnLayout,
    entry: npt.NDArray[np.int64],
    asks: list[tuple[int, ...]],
    longest: int,
) -> PathState:
    rows = np.append(np.arange(lowering.table.num_rows), -1)
    table = pa.table(lowering.values or {"column": pa.nulls(len(rows) - 1)})
    sets, names, kept = lowering.sets, lowering.labels, lowering.aggregates
    aggregates = [
        (keep, group, real, layout.value_row(name) if name else 0, layout.null_row(name) if name else 0)
        for keep, group, real, name in kept
    ]
    counted = np.zeros(lowering.counted + 1 + longest, np.int64)
    return PathState(
        int(bool(lowering.labels)),
        np.array(asks, np.int64).reshape(len(asks), 6),
        entry,
        np.array([[group is None or name in group for name in names] for group in sets], np.uint8).reshape(
            len(sets), len(names)
        ),
        np.array(aggregates, np.int64).reshape(len(kept), 5),
        np.zeros((longest, len(sets)), np.int64),
        np.zeros((len(sets), longest), np.int64),
        counted[lowering.counted + 1 :],
        np.zeros((longest, len(kept)), np.int64),
        np.zeros((longest, len(kept)), np.float64),
        np.zeros((longest, len(kept)), np.int64),
        np.zeros(len(lowering.rows), np.int64),
        counted,
        np.zeros(len(kept), np.float64),
        fill(layout, table, rows, lowering.schema),
    )

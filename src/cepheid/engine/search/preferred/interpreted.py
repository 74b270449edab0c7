"""The same search in plain Python, for conditions that the compiled machine cannot judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.budget import checkpoint
from cepheid.engine.search.preferred.conditions import BY_PATH, Conditions
from cepheid.engine.search.preferred.kernel import (
    SKIP_FIRST,
    SKIP_NEXT,
    SKIP_PAST_LAST,
    UNMATCHED,
    UNSETTLED,
    Mode,
    Rows,
)
from cepheid.engine.search.preferred.program import (
    AT_END,
    AT_START,
    JUMP,
    LOOP,
    REMEMBER,
    SPLIT,
    TAKE,
    Int32s,
    Int64s,
    Program,
)
from cepheid.engine.values.columnwise import listed
from cepheid.language.library.operators import known
from cepheid.language.match_recognize.bound import (
    Aggregated,
    Apply,
    Bound,
    BoundClause,
    Column,
    Constant,
    Labels,
    MatchNumber,
    Navigate,
    RowLabel,
    SequenceNumber,
)
from cepheid.language.match_recognize.evaluate import aggregate_of, function_of


@dataclass
class _View:
    """What a condition sees: the columns, and the path up to the row at hand."""

    columns: dict[str, list[Any]]
    labels: list[str]
    path: list[str]  # the labels of the rows from `start` on
    start: int
    low: int
    high: int
    number: int

    def value(self, expression: Bound) -> Any:
        match expression:
            case Constant(value=value):
                return value
            case MatchNumber():
                return self.number
            case SequenceNumber():
                return len(self.path)
            case Navigate():
                places = self.places(expression.labels)
                if expression.offset >= len(places):
                    return None
                place = places[expression.offset] if expression.first else places[-1 - expression.offset]
                row = self.start + place + expression.shift
                return self.at(expression.inner, row) if self.low <= row < self.high else None
            case Aggregated(arguments=arguments):
                rows = [self.start + place for place in self.places(expression.labels)]
                return aggregate_of(expression)([tuple(self.at(part, row) for part in arguments) for row in rows])
            case Apply(arguments=arguments):
                return function_of(expression)(*(self.value(argument) for argument in arguments))
        raise TypeError(f"{expression} is outside any row")

    def places(self, labels: Labels) -> list[int]:
        return [place for place, label in enumerate(self.path) if labels is None or label in labels]

    def at(self, expression: Bound, row: int) -> Any:
        match expression:
            case Constant(value=value):
                return value
            case Column(name=name):
                return known(self.columns[name][row])
            case RowLabel():
                return self.path[row - self.start] if 0 <= row - self.start < len(self.path) else None
            case MatchNumber():
                return self.number
            case Apply(arguments=arguments):
                return function_of(expression)(*(self.at(argument, row) for argument in arguments))
        raise TypeError(f"{expression} cannot be evaluated at a row")


@dataclass(frozen=True)
class _Search:
    """All that an attempt needs."""

    program: Program
    rows: Rows
    mode: Mode
    labels: tuple[str, ...]
    conditions: Conditions
    columns: dict[str, list[Any]]

    def attempt(self, start: int, low: int, high: int, number: int, whole: bool) -> list[int] | int:
        """The steps that took the rows of the preferred match at `start`, or UNMATCHED, or UNSETTLED."""
        program = self.program
        path: list[int] = []
        registers = [-1] * program.registers
        choices: list[tuple[int, int, list[int]]] = []
        step = 0
        best: list[int] | int = UNMATCHED
        while True:
            checkpoint()
            kind, row, failed = program.kind[step], start + len(path), False
            if kind == TAKE and self.unsettled(start, row, high):
                return UNSETTLED
            if kind == TAKE:
                if self.may_take(step, path, start, low, high, number):
                    path.append(step)
                    step += 1
                else:
                    failed = True
            elif kind in (SPLIT, LOOP):
                if kind == LOOP and program.label[step] >= 0 and registers[program.label[step]] == row:
                    step = program.exit[step]
                else:
                    choices.append((program.right[step], len(path), list(registers)))
                    step = program.left[step]
            elif kind == JUMP:
                step = program.left[step]
            elif kind in (AT_START, AT_END):
                failed = row != (low if kind == AT_START else high) or (kind == AT_START and not whole)
                step += 1
            elif kind == REMEMBER:
                registers[program.label[step]] = row
                step += 1
            elif not self.mode.longest:
                return path
            else:
                best = list(path) if not isinstance(best, list) or len(path) > len(best) else best
                failed = True
            if failed:
                if not choices:
                    return best
                step, length, registers = choices.pop()
                del path[length:]

    def unsettled(self, start: int, row: int, high: int) -> bool:
        """Does it depend on rows that are still to come whether the row can be taken?"""
        mode, time = self.mode, self.rows.time
        if not mode.open or row < high - mode.ahead:
            return False
        if row >= high:
            return mode.within == 0 or mode.horizon < time[start] + mode.within - 1
        return mode.within == 0 or time[row] - time[start] < mode.within

    def may_take(self, step: int, path: list[int], start: int, low: int, high: int, number: int) -> bool:
        row = start + len(path)
        if row >= high:
            return False
        if self.mode.within > 0 and self.rows.time[row] - self.rows.time[start] >= self.mode.within:
            return False
        label = self.program.label[step]
        if not self.rows.holds[label, row]:
            return False
        if self.rows.always[label] != BY_PATH:
            return True
        names = [self.labels[self.program.label[taken]] for taken in (*path, step)]
        view = _View(self.columns, list(self.labels), names, start, low, high, number)
        return view.value(self.conditions.on_the_way[self.labels[label]]) is True


def search_interpreted(
    program: Program, rows: Rows, mode: Mode, clause: BoundClause, table: pa.Table, conditions: Conditions
) -> tuple[Int64s, Int64s, Int32s, int]:
    """The same as `kernel.search`."""
    columns = {name: listed(table.column(name)) for name in table.column_names}
    job = _Search(program, rows, mode, clause.labels, conditions, columns)
    starts: list[int] = []
    lengths: list[int] = []
    steps: list[int] = []
    failure = 0
    for partition, (low, high) in enumerate(zip(rows.bounds[:-1].tolist(), rows.bounds[1:].tolist(), strict=True)):
        start, matched = int(rows.begin[partition]), int(rows.matched[partition])
        number = int(rows.number[partition])
        while start < min(high, int(rows.until[partition])) and not failure:
            path = job.attempt(start, low, high, number, bool(rows.whole[partition]))
            if path == UNSETTLED:
                break
            if not isinstance(path, list):
                if mode.unmatched and start > matched:
                    starts.append(start)
                    lengths.append(UNMATCHED)
                start += 1
                continue
            if mode.open and path and start + len(path) + mode.shown_ahead > high:
                break
            starts.append(start)
            lengths.append(len(path))
            steps += path
            number += 1
            if not path:
                start += 1
                continue
            matched = max(matched, start + len(path) - 1)
            onward = _next_start(program, mode, path, start)
            if onward < 0:
                failure = -onward
            start = onward
        rows.begin[partition], rows.matched[partition], rows.number[partition] = start, matched, number
    return np.array(starts, np.int64), np.array(lengths, np.int64), np.array(steps, np.int32), failure


def _next_start(program: Program, mode: Mode, path: list[int], start: int) -> int:
    if mode.skip == SKIP_PAST_LAST:
        return start + len(path)
    if mode.skip == SKIP_NEXT:
        return start + 1
    places = [place for place, step in enumerate(path) if mode.skip_labels[program.label[step]]]
    if not places:
        return -1
    place = places[0] if mode.skip == SKIP_FIRST else places[-1]
    return start + place if place > 0 else -2

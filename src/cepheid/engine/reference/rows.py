"""Row patterns by the book: backtracking in the order of preference, row by row (ISO/IEC 19075-5, sections 4 to 7).

Plain and slow. Where the standard leaves a choice it is made as Trino makes it: an iteration of an unbounded
quantifier that takes no row ends the repetition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cmp_to_key
from typing import TypeAlias

import pyarrow as pa

from cepheid.budget import checkpoint
from cepheid.errors import DataError, LimitError
from cepheid.language import pattern as p
from cepheid.language import syntax as s
from cepheid.language.evaluate import function_of
from cepheid.language.library.operators import known, ordered
from cepheid.language.library.scalars import Value, arithmetic
from cepheid.language.match_recognize import bound as b
from cepheid.language.match_recognize.aggregates import aggregate_of
from cepheid.language.match_recognize.limits import MOST_MATCHES, check_matches
from cepheid.language.match_recognize.syntax import Rows, SkipTo
from cepheid.language.zone_labels import labelled_table

Row: TypeAlias = dict[str, Value]
Path: TypeAlias = tuple[tuple[str, bool], ...]  # the label of each row of a match, and whether the row is excluded
Onward: TypeAlias = Callable[[p.Pattern, Path], Iterator[Path]]  # the ways on from a path through a pattern


@dataclass(frozen=True)
class Moment:
    """A place in a match from which an expression is seen; `position` is that of the row at hand, -1 without one."""

    rows: Sequence[Row]  # of the partition
    start: int
    path: Path
    position: int
    number: int | None  # None: of a match that is not complete
    cut: list[Path] | None = None  # paths that the window or the end of the partition cut off, if they are wanted


def find(clause: b.BoundClause, table: pa.Table, threads: int = 1, most: int = MOST_MATCHES) -> list[list[Value]]:
    """The result over a table, whose instants are shown in the clause's zone; one thread does it all."""
    shown = table if clause.zone is None else labelled_table(table, clause.zone)
    try:
        return match_rows(clause, [_with_keys(clause, row) for row in shown.to_pylist()], most)
    except RecursionError:
        hint = "use engine='auto', or fewer rows"
        raise LimitError("the reference engine recurses once for each row of a match", hint=hint) from None


def _with_keys(clause: b.BoundClause, row: Row) -> Row:
    """A row with the keys of PARTITION BY and ORDER BY that are computed from it."""
    alone = Moment([row], 0, (), -1, 0)
    return row | {key.name: _at_row(key.value, alone, 0) for key in clause.keys}


def match_rows(clause: b.BoundClause, rows: Sequence[Row], most: int = MOST_MATCHES) -> list[list[Value]]:
    """The result, row by row, its columns in the order of `clause.output_columns`; at most so many matches."""
    partitions: dict[tuple[Value, ...], list[Row]] = {}
    for row in rows:
        partitions.setdefault(tuple(ordered(row[name]) for name in clause.partition_by), []).append(row)
    found: list[list[Value]] = []
    matches = 0
    for part in partitions.values():
        numbers = _Numbers(matches, most)
        found += _match_partition(clause, _sorted(part, clause.order_by), numbers)
        matches = numbers.found
    return found


@dataclass
class _Numbers:
    """How many matches there are so far, in all partitions."""

    found: int
    most: int

    def one_more(self) -> None:
        self.found += 1
        check_matches(self.found, self.most)


def _sorted(rows: list[Row], keys: Sequence[b.SortKey]) -> list[Row]:
    def compare(left: Row, right: Row) -> int:
        for key in keys:
            one, other = ordered(left[key.column]), ordered(right[key.column])
            if one is None or other is None:
                order = 0 if one is other else -1 if (one is None) == key.nulls_first else 1
            else:
                order = (one > other) - (one < other)
                order = -order if key.descending else order
            if order:
                return order
        return 0

    return sorted(rows, key=cmp_to_key(compare))


def _match_partition(clause: b.BoundClause, rows: list[Row], numbers: _Numbers) -> Iterator[list[Value]]:
    start, number, matched = 0, 1, -1  # `matched`: the last row that a match has taken
    while start < len(rows):
        cut: list[Path] = []
        at = Moment(rows, start, (), -1, number, cut if clause.partial else None)
        ways = _ways(clause, rows, clause.pattern, at, False)
        path = max(ways, key=len, default=None) if clause.longest else next(ways, None)
        if path is None:
            if cut:
                numbers.one_more()
                yield from _reported(clause, Moment(rows, start, cut[0], -1, None))
            elif clause.rows is Rows.ALL_WITH_UNMATCHED and start > matched:
                yield _output(clause, Moment(rows, start, (), -1, number), rows[start], measured=False)
            start += 1
            continue
        numbers.one_more()
        if not path:
            if clause.rows is not Rows.ALL_OMIT_EMPTY:
                yield _output(clause, Moment(rows, start, (), -1, number), rows[start])
            start, number = start + 1, number + 1
            continue
        yield from _reported(clause, Moment(rows, start, path, -1, number))
        matched = max(matched, start + len(path) - 1)
        start, number = _skip(clause, start, path), number + 1


def _reported(clause: b.BoundClause, at: Moment) -> Iterator[list[Value]]:
    """The rows of the result for a match that has rows."""
    if clause.rows is Rows.ONE:
        yield _output(clause, replace(at, position=len(at.path) - 1), at.rows[at.start])
        return
    for position, (_, excluded) in enumerate(at.path):
        if not excluded:
            yield _output(clause, replace(at, position=position), at.rows[at.start + position])


def _skip(clause: b.BoundClause, start: int, path: Path) -> int:
    """Where the search goes on after a match (section 4.12)."""
    if clause.skip is SkipTo.PAST_LAST_ROW:
        return start + len(path)
    if clause.skip is SkipTo.NEXT_ROW:
        return start + 1
    assert clause.skip_labels is not None
    places = [place for place, (label, _) in enumerate(path) if label in clause.skip_labels]
    if not places:
        raise DataError("AFTER MATCH SKIP: no row of the match has the label to skip to")
    place = places[0] if clause.skip is SkipTo.FIRST else places[-1]
    if place == 0:
        raise DataError("AFTER MATCH SKIP: it would go back to the first row of the match")
    return start + place


# --- the ways to match, the preferred one first --------------------------------------------------------------------


def _ways(clause: b.BoundClause, rows: Sequence[Row], pattern: p.Pattern, at: Moment, excluded: bool) -> Iterator[Path]:
    """The paths that go on from `at.path` through the pattern, in the order of preference."""

    def onward(part: p.Pattern, path: Path) -> Iterator[Path]:
        return _ways(clause, rows, part, replace(at, path=path), excluded)

    checkpoint()
    path = at.path
    match pattern:
        case p.Single(label=label):
            taken: Path = (*path, (label, excluded))
            here = Moment(rows, at.start, taken, len(path), at.number)
            if not _in_reach(clause, here):
                if at.cut is not None and path:
                    at.cut.append(path)
            elif _may_take(clause, label, here):
                yield taken
        case p.Sequence(parts=parts):
            yield from _sequence(onward, parts, path)
        case p.Choice(parts=parts):
            for part in parts:
                yield from onward(part, path)
        case p.AnyOrder():
            yield from onward(p.orders(pattern), path)
        case p.Excluded(part=part):
            yield from _ways(clause, rows, part, at, True)
        case p.Repeat():
            room = len(rows) - at.start - len(path)
            if at.cut is not None or p.may_be_empty(pattern.part) or pattern.least <= room:
                yield from _repeat(onward, pattern, path, room)
        case p.Start():
            if at.start + len(path) == 0:
                yield path
        case p.End():
            if at.start + len(path) == len(rows):
                yield path
        case p.Empty():
            yield path


def _sequence(onward: Onward, parts: tuple[p.Pattern, ...], path: Path) -> Iterator[Path]:
    if not parts:
        yield path
        return
    for longer in onward(parts[0], path):
        yield from _sequence(onward, parts[1:], longer)


def _repeat(onward: Onward, repeat: p.Repeat, path: Path, room: int) -> Iterator[Path]:
    """So often, one after the other: n of them, then up to m - n more or, without an upper bound, any number.

    There is room for so many further rows.
    """
    # Rounds beyond one for each row take nothing.
    least = min(repeat.least, room + 1)
    if repeat.most is not None:
        required = (repeat.part,) * least
        for longer in _sequence(onward, required, path):
            yield from _up_to(onward, repeat, min(repeat.most - repeat.least, room + 1), longer)
    elif repeat.least == 0:
        if not repeat.greedy:
            yield path
        yield from _loop(onward, repeat, path)
        if repeat.greedy:
            yield path
    else:
        for longer in _sequence(onward, (repeat.part,) * (least - 1), path):
            yield from _loop(onward, repeat, longer)


def _up_to(onward: Onward, repeat: p.Repeat, count: int, path: Path) -> Iterator[Path]:
    if not repeat.greedy or count == 0:
        yield path
    if count > 0:
        for longer in onward(repeat.part, path):
            yield from _up_to(onward, repeat, count - 1, longer)
    if repeat.greedy and count > 0:
        yield path


def _loop(onward: Onward, repeat: p.Repeat, path: Path) -> Iterator[Path]:
    """At least once; an iteration that takes nothing is the last."""
    for longer in onward(repeat.part, path):
        if not repeat.greedy or len(longer) == len(path):
            yield longer
        if len(longer) > len(path):
            yield from _loop(onward, repeat, longer)
        if repeat.greedy and len(longer) > len(path):
            yield longer


def _in_reach(clause: b.BoundClause, at: Moment) -> bool:
    """Is there such a row, and is it within the window?"""
    row = at.start + at.position
    if row >= len(at.rows):
        return False
    if clause.within is None:
        return True
    time = clause.order_by[0].column
    first, last = at.rows[at.start][time], at.rows[row][time]
    return first is not None and last is not None and _steps(arithmetic("-")(last, first)) < clause.within


def _may_take(clause: b.BoundClause, label: str, at: Moment) -> bool:
    condition = clause.conditions.get(label)
    return condition is None or value_of(condition, at) is True


def _steps(length: Value) -> Value:
    return length.total_seconds() * 1e6 if hasattr(length, "total_seconds") else length


# --- values -------------------------------------------------------------------------------------------------------


def value_of(expression: s.Expression, at: Moment) -> Value:
    """The value of an expression, seen from a place in a match."""
    match expression:
        case s.Literal(value=value):
            return value
        case b.MatchNumber():
            return at.number
        case b.SequenceNumber():
            return at.position + 1 if at.position >= 0 else None
        case b.Navigate():
            return _navigated(expression, at)
        case b.Aggregated():
            places = _places(expression.labels, at, whole=expression.final)
            rows = [tuple(_at_row(part, at, at.start + place) for part in expression.arguments) for place in places]
            return aggregate_of(expression)(rows)
        case b.Column() | b.RowLabel():
            raise TypeError(f"{expression} is outside any row")
    return function_of(expression)(*(value_of(part, at) for part in s.children(expression)))


def _places(labels: b.Labels, at: Moment, *, whole: bool) -> list[int]:
    """The positions with such a label, up to the row at hand or in the whole match."""
    end = len(at.path) if whole else at.position + 1
    return [place for place in range(end) if labels is None or at.path[place][0] in labels]


def _navigated(node: b.Navigate, at: Moment) -> Value:
    places = _places(node.labels, at, whole=node.final)
    if node.offset >= len(places):
        return None
    place = places[node.offset] if node.first else places[-1 - node.offset]
    row = at.start + place + node.shift
    return _at_row(node.inner, at, row) if 0 <= row < len(at.rows) else None


def _at_row(expression: s.Expression, at: Moment, row: int) -> Value:
    """The value of an expression whose columns are those of one row."""
    match expression:
        case s.Literal(value=value):
            return value
        case b.Column(name=name):
            return known(at.rows[row][name])
        case b.RowLabel():
            return at.path[row - at.start][0] if 0 <= row - at.start < len(at.path) else None
        case b.MatchNumber():
            return at.number
        case b.Navigate() | b.Aggregated() | b.SequenceNumber():
            raise TypeError(f"{expression} cannot be evaluated at a row")
    return function_of(expression)(*(_at_row(part, at, row) for part in s.children(expression)))


def _output(clause: b.BoundClause, at: Moment, row: Row, measured: bool = True) -> list[Value]:
    values = dict(row)
    measures = {name: value_of(expression, at) if measured else None for name, expression in clause.measures}
    return [measures[name] if name in measures else values[name] for name in clause.output_columns]

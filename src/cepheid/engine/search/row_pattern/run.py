"""A clause over a table: rows in order, the search, and the result's columns as the standard has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.budget import paced
from cepheid.engine.data.arrays import Int32s, Int64s
from cepheid.engine.data.matches import COMPLETE, NEVER, UNMATCHED, Following, Matches
from cepheid.engine.search.row_pattern.arrange import Arranged, arrange
from cepheid.engine.search.row_pattern.conditions import (
    Conditions,
    number_labels,
    path_labels,
    prepare,
    start_labels,
)
from cepheid.engine.search.row_pattern.implied import without_start_conditions
from cepheid.engine.search.row_pattern.kernel import (
    MOST_TAKEN,
    NEEDS_MEMORY,
    NO_SUCH_LABEL,
    TOO_MANY_ROWS,
    Mode,
    Rows,
    scratch_for,
    search,
)
from cepheid.engine.search.row_pattern.kernel import UNMATCHED as IN_NO_MATCH
from cepheid.engine.search.row_pattern.memory import memory_for, no_memory
from cepheid.engine.search.row_pattern.needed import beginnings, upcoming_rare
from cepheid.engine.search.row_pattern.parallel import Part, can_be_cut, cuts, joined, pieces, side_by_side
from cepheid.engine.search.row_pattern.path_state import with_own_room
from cepheid.engine.search.row_pattern.points import Points
from cepheid.engine.search.row_pattern.program import KEYED, Program, compile_pattern
from cepheid.engine.values.python_first import TooManyCallsError
from cepheid.errors import CepheidError, DataError, LimitError, QueryError
from cepheid.language.kept import kept_with_query
from cepheid.language.match_recognize.bound import BoundClause, columns_of
from cepheid.language.match_recognize.limits import MOST_MATCHES, check_matches
from cepheid.language.match_recognize.syntax import Rows as RowsPerMatch
from cepheid.language.match_recognize.syntax import SkipTo

Result = TypeVar("Result")

FAILURES, FAILURES_PER_ROW = 10_000, 8  # of a search before it uses a memory under keys
_SKIPS = {SkipTo.PAST_LAST_ROW: 0, SkipTo.NEXT_ROW: 1, SkipTo.FIRST: 2, SkipTo.LAST: 3}


def row_matches(start: Int64s, length: Int64s, step: Int64s | Int32s) -> Matches:
    """What the search found, in order; `length` is 0 of empty matches. `step` is the one that took each row of all.

    A match is known where the search says so: no time of its rows tells.
    """
    waiting = None
    if (length < 0).any():
        waiting = np.select([length >= 0, length == IN_NO_MATCH], [COMPLETE, UNMATCHED], 0)
        length = np.where(length < IN_NO_MATCH, IN_NO_MATCH - length, length)
    sizes = np.maximum(length, 0)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    known = np.full(len(start), NEVER)
    return Matches((Following(start, offsets),), known, labels=step.astype(np.int64), waiting=waiting, start=start)


def needed_columns(clause: BoundClause) -> tuple[str, ...]:
    """The table's columns that the result depends on, in the table's order."""
    computed = {key.name for key in clause.keys}
    own = tuple(name for name in clause.columns if name not in computed)
    if clause.rows is not RowsPerMatch.ONE:
        return own
    read = {name for condition in clause.conditions.values() for name in columns_of(condition)}
    read |= {name for _, measure in clause.measures for name in columns_of(measure)}
    read |= {*clause.partition_by, *(key.column for key in clause.order_by)}
    read |= {name for key in clause.keys for name in columns_of(key.value)}
    return tuple(name for name in own if name in read) or own[:1]


def arranged(clause: BoundClause, table: pa.Table) -> Arranged:
    """The rows of a table in the order of the clause, with the columns it needs."""
    return arrange(clause, table, needed_columns(clause))


def match_table(clause: BoundClause, table: pa.Table, threads: int = 1, most: int = MOST_MATCHES) -> pa.Table:
    """The result of a clause over a whole table; at most so many matches."""
    program = program_of(clause)
    return pa.concat_tables(
        _each_piece(clause, table, threads, most, lambda piece, found: assemble(clause, program, piece, found))
    )


def count_matches(clause: BoundClause, table: pa.Table, threads: int = 1, most: int = MOST_MATCHES) -> int:
    """How many matches a clause reports over a whole table: empty ones count unless it omits them."""
    no_empty = clause.rows is RowsPerMatch.ALL_OMIT_EMPTY

    def number(_: Arranged, found: Matches) -> int:
        return int(np.count_nonzero(np.diff(found.in_order.bounds))) if no_empty else found.number

    return sum(_each_piece(clause, table, threads, most, number))


def _each_piece(
    clause: BoundClause, table: pa.Table, threads: int, most: int, made: Callable[[Arranged, Matches], Result]
) -> list[Result]:
    """What is made of the matches in each piece of a table; at most so many in all."""
    rows = arranged(clause, table)
    program = program_of(clause)
    matches: list[int] = []  # of the pieces that are done

    def work(piece: Arranged) -> Result:
        conditions = prepare(clause, piece)
        found = find_matches(clause, program, piece, conditions, from_the_start(piece), threads=threads)
        matches.append(found.number)
        check_matches(sum(matches), most)
        return made(piece, found)

    return side_by_side(work, pieces(rows, threads))


@dataclass(frozen=True)
class Positions:
    """Where the search of each partition begins; after it, where it stopped."""

    begin: Int64s
    number: Int64s
    matched: Int64s
    whole: npt.NDArray[np.uint8]


def from_the_start(rows: Arranged) -> Positions:
    """All partitions from their first row on."""
    low = rows.bounds[:-1]
    return Positions(low.copy(), np.ones(len(low), np.int64), low - 1, np.ones(len(low), np.uint8))


@dataclass(frozen=True)
class Openness:
    """Streams: more rows may come, but none up to the horizon."""

    horizon: int
    ahead: int
    shown_ahead: int


@kept_with_query
def program_of(clause: BoundClause) -> Program:
    """The program of the clause's pattern."""
    clause = without_start_conditions(clause)
    labels = path_labels(clause), start_labels(clause), number_labels(clause)
    return compile_pattern(clause.pattern, clause.labels, *labels)


def find_matches(
    clause: BoundClause,
    program: Program,
    rows: Arranged,
    conditions: Conditions,
    positions: Positions,
    openness: Openness | None = None,
    threads: int = 1,
) -> Matches:
    """The matches of all partitions; `positions` are moved on to where the search stopped."""
    ending = (1, openness.horizon, openness.ahead, openness.shown_ahead) if openness else (0, 0, 0, 0)
    mode = Mode(
        rows.within,
        *skip_mode(clause),
        int(clause.rows is RowsPerMatch.ALL_WITH_UNMATCHED),
        *ending,
        int(clause.longest),
        partial=int(clause.partial),
        most_taken=MOST_TAKEN,
    )
    where = (positions.begin, positions.number, positions.matched)
    upcoming = upcoming_rare(clause, conditions, rows.bounds)
    seen = (rows.bounds, rows.time, conditions.how, conditions.holds)
    inputs = Rows(*seen, *where, positions.whole, rows.bounds[1:], upcoming, beginnings(clause, conditions))
    cut = threads > 1 and openness is None and can_be_cut(clause, rows)
    longest = int(np.diff(rows.bounds).max()) if len(rows.bounds) > 1 else 0
    size = (int(rows.bounds[-1]), len(rows.bounds), longest, clause.longest or clause.partial)
    before = [each.copy() for each in where]

    def searched(judged: Conditions) -> tuple[Int64s, Int64s, Int64s | Int32s, int]:
        if cut:
            return (*_find_in_parts(clause, program, inputs, mode, judged, threads), 0)
        return _searched(program, inputs, mode, judged, size)

    try:
        found = searched(conditions)
    except TooManyCallsError:
        for array, values in zip(where, before, strict=True):
            array[:] = values
        found = searched(prepare(clause, rows, compiled=True))
    start, length, step, failure = found
    if failure:
        raise search_failed(failure)
    return row_matches(start, length, step)


def skip_mode(clause: BoundClause) -> tuple[int, npt.NDArray[np.uint8]]:
    """Where the search goes on after a match, and per label whether that is where."""
    labels = np.array([label in (clause.skip_labels or ()) for label in clause.labels], np.uint8)
    return _SKIPS[clause.skip], labels


def search_failed(failure: int) -> CepheidError:
    """The error of a search that could not go on."""
    if failure == TOO_MANY_ROWS:
        hint = "add WITHIN, use reluctant quantifiers such as X*?, or AFTER MATCH SKIP PAST LAST ROW"
        return LimitError(f"the matches have more than {MOST_TAKEN:,} rows in all", hint=hint)
    why = "no row of a match has the label to skip to"
    if failure != NO_SUCH_LABEL:
        why = "it would go back to the first row of a match, and find it again"
    hint = "use SKIP PAST LAST ROW or SKIP TO NEXT ROW, or another label"
    return DataError(f"AFTER MATCH SKIP: {why}", hint=hint)


def _searched(
    program: Program, rows: Rows, mode: Mode, conditions: Conditions, size: tuple[int, int, int, bool]
) -> tuple[Int64s, Int64s, Int32s, int]:
    """What the search finds; it begins again with a memory under keys if it fails too often without one."""
    judge, call = conditions.judge, conditions.predicate.call
    keyed = conditions.seen is not None and program.memory.min(initial=0) <= KEYED
    # A condition in Python takes longer than an entry.
    failures = max(1, FAILURES // 10) if conditions.opaque else FAILURES
    allowance = failures + FAILURES_PER_ROW * size[0] if keyed else 0
    before = [each.copy() for each in (rows.begin, rows.number, rows.matched)]
    allowed = mode._replace(allowance=allowance)
    found = search(program, rows, allowed, judge, call, no_memory(), scratch_for(program, *size))
    if found[3] != NEEDS_MEMORY or conditions.seen is None:
        return found
    for array, values in zip((rows.begin, rows.number, rows.matched), before, strict=True):
        array[:] = values
    memory = memory_for(program, judge, conditions.seen, rows.bounds)
    return search(program, rows, mode, judge, call, memory, scratch_for(program, *size))


def _find_in_parts(
    clause: BoundClause, program: Program, inputs: Rows, mode: Mode, conditions: Conditions, threads: int
) -> tuple[Int64s, Int64s, Int64s]:
    """The matches of one large partition under a window, searched by several threads."""
    low, high = int(inputs.bounds[0]), int(inputs.bounds[1])

    def part(begin: int, until: int) -> Part:
        reach = int(np.searchsorted(inputs.time, inputs.time[until - 1] + mode.within)) + 1
        longest = min(reach, high) - begin + 1
        own = inputs._replace(
            begin=np.array([begin]), number=np.array([1]), matched=np.array([low - 1]), until=np.array([until])
        )
        size = (longest + 1, 1, longest, clause.longest)
        own_room = replace(conditions, judge=with_own_room(conditions.judge, longest))
        start, length, step, failure = _searched(program, own, mode._replace(base=begin), own_room, size)
        if failure:
            raise search_failed(failure)
        return Part(start, length, step.astype(np.int64), int(own.begin[0]))

    places = cuts(low, high, threads)
    found = side_by_side(lambda place: part(*place), places)
    kept = joined(found, [end for _, end in places], clause.skip, part)
    start, length, step = (
        np.concatenate([getattr(each, name) for each in kept]) for name in ("start", "length", "step")
    )
    return start, length, step


def assemble(
    clause: BoundClause, program: Program, rows: Arranged, found: Matches, first_number: Int64s | None = None
) -> pa.Table:
    """The result's rows: one per match, or one per row of a match. Numbers go on from those of each partition."""
    if not clause.output_columns:
        hint = "name a measure: MEASURES count(*) AS rows"
        raise QueryError("the result has no column", text=None, hint=hint, code="no-columns")
    of, at, row = _places(clause, program, found)
    unmatched = of < 0
    seen = np.flatnonzero(~unmatched)
    assert found.start is not None
    assert found.labels is not None
    partition = np.searchsorted(rows.bounds, found.start, "right") - 1
    numbers = _numbers(partition, np.ones(len(found), bool) if found.waiting is None else found.waiting == COMPLETE)
    if first_number is not None:
        numbers = numbers + first_number[partition] - 1
    named = replace(found, labels=program.label[found.labels].astype(np.int64))
    within = (rows.bounds[partition], rows.bounds[partition + 1])
    points = Points(rows.table, clause.labels, named, numbers, within, of[seen], at[seen], clause.text)
    scattered = None
    if unmatched.any():
        scattered = np.full(len(of), -1, np.int64)
        scattered[seen] = np.arange(len(seen))
    measures = {}
    for name, expression in paced(clause.measures):
        values = points.value(expression)
        if scattered is not None:
            values = values.take(pa.array(scattered, mask=unmatched))
        measures[name] = pa.array([None] * len(of), pa.string()) if pa.types.is_null(values.type) else values
    indices = pa.array(row)
    columns, names = [], clause.output_columns
    for name in paced(names):
        values = measures[name] if name in measures else rows.table.column(name).take(indices)
        columns.append(values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values)
    return pa.Table.from_arrays(columns, names=list(names))


def _places(clause: BoundClause, program: Program, found: Matches) -> tuple[Int64s, Int64s, Int64s]:
    """For each row of the result: its match (-1: none), its place in the rows of all matches, its row."""
    start, steps, offset, match = found.start, found.labels, found.in_order.bounds, np.arange(len(found))
    assert start is not None
    assert steps is not None
    length = np.diff(offset)
    if clause.rows is RowsPerMatch.ONE:
        return match, np.where(length > 0, offset[1:] - 1, -1), start
    omitted = (length == 0) & (clause.rows is RowsPerMatch.ALL_OMIT_EMPTY)
    sizes = np.where(omitted, 0, np.maximum(length, 1))  # an empty match and a row without one are shown, too
    of = np.repeat(match, sizes)
    within = np.arange(len(of)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    at = np.where(length[of] > 0, offset[of] + within, -1)
    kept = np.ones(len(of), bool)
    taken = at >= 0
    kept[taken] = program.excluded[steps[at[taken]]] == 0
    of, at, row = of[kept], at[kept], (start[of] + within)[kept]
    return of if found.waiting is None else np.where(found.waiting[of] == UNMATCHED, -1, of), at, row


def _numbers(partition: Int64s, is_match: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Int64s:
    """The number of each match in its partition, from 1."""
    total = np.cumsum(is_match)
    if not len(partition):
        return total.astype(np.int64)
    first = np.searchsorted(partition, partition, "left")
    return (total - total[first] + is_match[first]).astype(np.int64)


def result_schema(clause: BoundClause, schema: pa.Schema) -> pa.Schema:
    """The schema of the result, without running anything: that of an empty table."""
    return match_table(clause, schema.empty_table()).schema

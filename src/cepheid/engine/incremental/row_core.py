"""The incremental search of a row pattern: the rows of each partition in arrays that grow, and its unfinished attempt.

The rows themselves lie elsewhere: here each has a number. All of it follows from the rows that are kept and the place
where the search of each partition stands, so it can be dropped and made again at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.budget import checkpoint
from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.columns import storage
from cepheid.engine.data.matches import Matches
from cepheid.engine.incremental import row_push as r
from cepheid.engine.incremental.row_conditions import of_rows
from cepheid.engine.incremental.row_parts import NewParts, Part, Standing, write_table
from cepheid.engine.kernels.compile import is_interpreted
from cepheid.engine.kernels.memory import address_of
from cepheid.engine.search.row_pattern.arrange import Arranged, window_times
from cepheid.engine.search.row_pattern.conditions import Conditions, prepare
from cepheid.engine.search.row_pattern.finalized import Key, Resume, reach
from cepheid.engine.search.row_pattern.implied import needed_labels, on_start
from cepheid.engine.search.row_pattern.kernel import BEST
from cepheid.engine.search.row_pattern.needed import RARE
from cepheid.engine.search.row_pattern.path_state import KEEP_SET, KEEP_SUM
from cepheid.engine.search.row_pattern.program import KEYED, Program
from cepheid.engine.search.row_pattern.run import (
    FAILURES,
    FAILURES_PER_ROW,
    arranged,
    program_of,
    row_matches,
    search_failed,
    skip_mode,
)
from cepheid.errors import LimitError
from cepheid.language.match_recognize.bound import BoundClause
from cepheid.language.match_recognize.syntax import Rows as RowsPerMatch
from cepheid.language.schema import DataType

FIRST_ROOM, SCRATCH_ROOM, RESULT_ROOM = 16, 32, 64
_FOR_ATTEMPTS = (r.CHOICES, r.TRAIL_AT, r.MARKS_AT, r.UNDO)


class NotIncrementalError(Exception):
    """The search has no incremental form: it needs a memory under keys, or values are too large for what it keeps."""


class Matched(NamedTuple):
    """What is found: for each match its partition, first row, length and number; and the steps that took rows."""

    places: npt.NDArray[np.int64]
    steps: npt.NDArray[np.int32]


def refusal(clause: BoundClause, schema: pa.Schema) -> str | None:
    """Why the rows of a clause are searched anew at each step; None: they are not."""
    if clause.keys:
        return "its keys are computed"
    if clause.partial:
        return "it reports partial matches"
    if any(pa.types.is_floating(schema.field(name).type) for name in clause.partition_by):
        return "a key has a type that Python does not compare as SQL does"
    conditions = _conditions(clause, schema)
    if conditions.opaque:
        return "its conditions on the path are not compiled"
    kept = conditions.judge.aggregates.tolist()
    if any(keep == KEEP_SET for keep, *_ in kept):
        return "its conditions on the path count different values, whose numbers depend on all rows"
    if any(keep == KEEP_SUM and not real for keep, _, real, *_ in kept):
        return "its conditions on the path add whole numbers, and a sum may pass 64 bits"
    layout = conditions.predicate.layout
    kinds = [kind for _, kind, _ in layout.attributes]
    if any(kind in (DataType.STRING, DataType.DECIMAL) or storage(kind) == "list" for kind in kinds):
        return "its conditions on the path compare texts, decimals or lists"
    if layout.read or conditions.predicate.form is not None:
        return "its conditions on the path are not compiled"
    return None


def _conditions(clause: BoundClause, schema: pa.Schema) -> Conditions:
    return prepare(clause, arranged(clause, schema.empty_table()), compiled=True)


class RowCore:
    """The partitions of a clause."""

    def __init__(self, clause: BoundClause, schema: pa.Schema) -> None:
        self.clause, self.schema = clause, schema
        self.program: Program = program_of(clause)
        conditions = [*clause.conditions.values()]
        measures = [expression for _, expression in clause.measures]
        self.looks_back, self.ahead = reach(conditions)
        self.back, self.shown_ahead = reach([*conditions, *measures])[0], reach(measures)[1]
        self.interpreted = is_interpreted()
        self.within = int(arranged(clause, schema.empty_table()).within)
        self.conditions = _conditions(clause, schema)
        self.of_rows = of_rows(clause, schema) if not self.ahead else None  # conditions that kernels judge row by row
        if self.of_rows is not None:
            judge, predicate = self.of_rows.judge, self.of_rows.predicate
            self.conditions = replace(self.conditions, judge=judge, predicate=predicate)
        self.parts: dict[Key, Part] = {}
        self.by_number: list[Part] = []
        self.keys: list[Key] = []
        self.numbers: dict[Any, int] = {}  # of partitions: by the one value of a key, or by all of them
        self.tables: list[npt.NDArray[Any]] = []
        entries = (r.push_rows, r.pass_windows, r.drop, r.forget, r.renumber)
        calls = [each.plain() if self.interpreted else each.direct() for each in entries]
        self.push_rows, self.pass_windows, self.drop, self._forget, self._renumber = calls
        self.starts = bool(on_start(clause))  # do conditions say at which rows a match may begin?
        self.needed = -2  # not known yet: the rarest label that every match has
        self.template = self._template()
        self._new: tuple[int, NewParts] | None = None
        self.batch = np.zeros(r.BATCH_SIZE, np.int64)
        self.numbers_of_batch, self.batch_at = self.batch.data, int(self.batch.ctypes.data)
        self.batch[r.BACK] = self.back
        self.gathered = np.zeros(0, np.int64)
        self._place_heads(np.zeros(16, np.int64), np.zeros((16, 2), np.int64))
        self._results(np.zeros((RESULT_ROOM, 4), np.int64), np.zeros(4 * RESULT_ROOM, np.int32))

    # --- rooms ------------------------------------------------------------------------------------------------------

    def _template(self) -> Int64s:
        """What all partitions share."""
        clause, judge, program = self.clause, self.conditions.judge, self.program
        head = np.zeros(r.HEAD_SIZE, np.int64)
        skip, labels = skip_mode(clause)
        head[r.SKIP], head[r.UNMATCHED_TOO] = skip, int(clause.rows is RowsPerMatch.ALL_WITH_UNMATCHED)
        head[r.WITHIN] = self.within
        head[r.AHEAD], head[r.SHOWN_AHEAD], head[r.LONGEST] = self.ahead, self.shown_ahead, int(clause.longest)
        head[r.REGISTER_COUNT], head[r.BITS], head[r.LASTING] = program.registers, program.bits, program.lasting
        head[r.ACTIVE], head[r.FIXED] = judge.active, len(judge.counted) - len(judge.labels)
        head[r.PREDICATE_AT] = address_of(self.conditions.predicate.call)
        keyed = self.conditions.seen is not None and program.memory.min(initial=0) <= KEYED
        head[r.ALLOWANCE] = FAILURES + FAILURES_PER_ROW if keyed else 0
        head[r.MATCH], head[r.MATCHED] = 1, -1
        shared: list[npt.NDArray[Any]] = [*program[:7], self.conditions.how, labels]
        shared += [judge.asks, judge.entry, judge.sets, judge.aggregates]
        shared += [judge.columns.literal, judge.at.copy(), judge.running.copy(), np.zeros(0, np.int64)]
        sets, kept, fixed = judge.sets.shape[0], judge.aggregates.shape[0], int(head[r.FIXED])
        counted = np.append(judge.counted[:fixed], 0)
        shared += [np.zeros((1, sets), np.int64), np.zeros((sets, 1), np.int64), counted]
        shared += [np.zeros((1, kept), kind) for kind in (np.int64, np.float64, np.int64)]
        if self.of_rows is not None:
            head[r.LABELS], head[r.TESTED] = len(clause.labels), self.of_rows.tested
        for number, table in enumerate(shared):
            write_table(head, r.TABLES + 3 * number, table)
        self.tables = shared
        return head

    def _part(self) -> Part:
        if self._new is None or self._new[0] != self.needed:
            self._new = self.needed, self._new_parts()
        return Part(self._new[1])

    def _new_parts(self) -> NewParts:
        judge, room, program = self.conditions.judge, FIRST_ROOM, self.program
        counted = np.zeros(int(self.template[r.FIXED]) + room, np.int64)
        counted[: self.template[r.FIXED]] = judge.counted[: self.template[r.FIXED]]
        columns, head = judge.columns, self.template.copy()
        sets, aggregates = judge.sets.shape[0], judge.aggregates.shape[0]
        null = np.zeros((columns.null.shape[0], room), np.uint8)
        null[:, -1:] = 1
        wanted: dict[int, npt.NDArray[Any]] = {
            r.COUNTED: counted,
            r.TIME: np.zeros(room, np.int64),
            r.UPCOMING: np.zeros(room if self.needed >= 0 else 0, np.int64),
            r.BEGINS: np.zeros(room if self.starts else 0, np.uint8),
            r.NUMBERS: np.zeros(room, np.int64),
            r.TEXTS: np.zeros(room if self.of_rows is not None else 0, np.int64),
            r.HOLDS: np.zeros((len(self.clause.labels), room), np.uint8),
            r.NULL: null,
            r.DEAD: np.zeros((room + 1, max((program.bits + 7) // 8, 1)), np.uint8),
            r.WHOLE: np.zeros((columns.whole.shape[0], room), np.int64),
            r.NUMBER: np.zeros((columns.number.shape[0], room), np.float64),
            r.COUNTS: np.zeros((room, sets), np.int64),
            r.PLACES: np.zeros((sets, room), np.int64),
            r.KEPT_I: np.zeros((room, aggregates), np.int64),
            r.KEPT_F: np.zeros((room, aggregates), np.float64),
            r.KEPT_N: np.zeros((room, aggregates), np.int64),
            r.PATH: np.zeros(room, np.int32),
            r.BEST_PATH: np.zeros(room if self.clause.longest else 0, np.int32),
            r.CHOICES: np.zeros((SCRATCH_ROOM, 4), np.int64),
            r.TRAIL_AT: np.zeros(SCRATCH_ROOM, np.int64),
            r.MARKS_AT: np.zeros(SCRATCH_ROOM, np.int64),
            r.UNDO: np.zeros(2 * SCRATCH_ROOM, np.int64),
            r.REGISTERS: np.full(max(program.registers, 1), -1, np.int64),
            r.STATE: np.zeros(BEST + 1, np.int64),
            r.IS_WHOLE: np.ones(1, np.uint8),
            r.NO_COUNTERS: np.zeros(2, np.int64),
        }
        head[r.ROOM], head[r.NEEDED] = room, max(self.needed, -1)
        return NewParts(head, wanted)

    def _results(self, out: npt.NDArray[np.int64], steps: npt.NDArray[np.int32]) -> None:
        self.out, self.steps = out, steps
        write_table(self.batch, r.IN_BATCH + 3 * r.OUT, out)
        write_table(self.batch, r.IN_BATCH + 3 * r.STEPS, steps)

    def _place_heads(self, heads: Int64s, queue: npt.NDArray[np.int64]) -> None:
        self.heads, self.queue = heads, queue
        write_table(self.batch, r.IN_BATCH + 3 * r.ALL_HEADS, heads)
        write_table(self.batch, r.IN_BATCH + 3 * r.QUEUE, queue)
        gathered = np.zeros(len(heads), np.int64)
        gathered[: len(self.gathered)] = self.gathered
        self.gathered = gathered
        write_table(self.batch, r.IN_BATCH + 3 * r.GATHERED_PARTS, gathered)

    # --- partitions -------------------------------------------------------------------------------------------------

    def new_part(self, key: Key) -> Part:
        """Begins with a partition."""
        part, number = self._part(), len(self.by_number)
        if number >= len(self.heads):
            heads, queue = np.zeros(2 * number, np.int64), np.zeros((2 * number, 2), np.int64)
            heads[:number], queue[:number] = self.heads, self.queue
            self._place_heads(heads, queue)
        self.parts[key] = part
        self._number(key, part, number)
        return part

    def _number(self, key: Key, part: Part, number: int) -> None:
        self.heads[number], part.head[r.OWN_NUMBER], part.head[r.QUEUED] = part.at, number, 0
        self.numbers[key[0] if len(key) == 1 else key] = number
        self.by_number.append(part)
        self.keys.append(key)

    def number_parts(self) -> None:
        """Numbers all partitions anew, and puts those into the queue whose windows pass."""
        self.by_number, self.keys, self.numbers = [], [], {}
        deadlines = []
        for number, (key, part) in enumerate(self.parts.items()):
            self._number(key, part, number)
            if self.within and part.begin < part.size:
                deadlines.append((int(part.tables[r.TIME][part.begin]) + self.within - 1, number))
                part.head[r.QUEUED] = 1
        self.batch[r.WAITING_PARTS] = len(deadlines)
        self.queue[: len(deadlines)] = np.array(sorted(deadlines), np.int64).reshape(-1, 2)

    # --- rows -------------------------------------------------------------------------------------------------------

    def load(self, rows: Arranged, keys: Sequence[Key], resume: dict[Key, Resume], numbers: Int64s) -> None:
        """Begins with rows that were there, and the places where the search of each partition goes on."""
        found = self._evaluated(rows, keys, numbers, None)
        sizes = np.diff(rows.bounds)
        known = {key: place for place, key in enumerate(keys)}
        for key, place in resume.items():
            part = self.new_part(key)
            at = known.get(key)
            if at is not None:
                part.grow(max(int(part.head[r.ROOM]), 2 * int(sizes[at]) + 2))
            part.head[r.BEGIN], part.head[r.MATCH], part.head[r.MATCHED] = place.begin, place.number, place.matched
            part.tables[r.IS_WHOLE][0] = place.whole
        for key in keys:
            if key not in self.parts:
                self.new_part(key).grow(2 * int(sizes[known[key]]) + 2)
        # No row is known to decide anything: the search looks at them with the next rows.
        for key, at in known.items():
            part, low, high = self.parts[key], int(rows.bounds[at]), int(rows.bounds[at + 1])
            self._lay_down(part, found, low, high)
        self.number_parts()

    def _lay_down(self, part: Part, found: _Evaluated, low: int, high: int) -> None:
        size = high - low
        for number, table in ((r.HOLDS, found.holds), (r.NULL, found.null)):
            part.tables[number][:, :size] = table[:, low:high]
        part.tables[r.WHOLE][:, :size] = found.whole[:, low:high]
        part.tables[r.NUMBER][:, :size] = found.number[:, low:high]
        part.tables[r.TIME][:size], part.tables[r.NUMBERS][:size] = found.time[low:high], found.numbers[low:high]
        if len(part.tables[r.BEGINS]):
            part.tables[r.BEGINS][:size] = found.begins[low:high]
        if len(part.tables[r.UPCOMING]):
            part.tables[r.UPCOMING][:size] = r.FAR
        if len(part.tables[r.TEXTS]):
            part.tables[r.TEXTS][:size] = found.texts[low:high]
        part.head[r.HIGH] = size

    def _evaluated(
        self, rows: Arranged, keys: Sequence[Key], numbers: Int64s, take: Callable[[Int64s], pa.Table] | None
    ) -> _Evaluated:
        """Conditions on rows alone, over new rows; with those before them that they look at."""
        if self.of_rows is not None:
            return self._unjudged(rows, keys, numbers, take is not None)
        count = len(keys)
        begins, ends = rows.bounds[:-1].copy(), rows.bounds[1:].copy()
        edges = np.stack([begins, ends], axis=1)
        over = np.zeros(count, np.int64)
        known = [self.parts[key].size if key in self.parts and take is not None else 0 for key in keys]
        into = np.array(known, np.int64)
        around = self.looks_back + self.ahead
        if take is not None and around and any(known):
            before = [min(around, size) for size in known]
            over = np.minimum(np.array(before, np.int64), self.ahead)
            own = [
                self.parts[key].numbers(size - some, size)
                for key, size, some in zip(keys, known, before, strict=True)
                if some
            ]
            context = take(np.concatenate(own)).cast(rows.table.schema)
            shift = np.cumsum(before)
            order: list[int] = []
            for place in range(count):
                order += range(int(shift[place]) - before[place], int(shift[place]))
                order += range(int(shift[-1] + begins[place]), int(shift[-1] + ends[place]))
            chosen = np.array(order, np.int64)
            whole = pa.concat_tables([context, rows.table]).take(pa.array(chosen))
            bounds = np.concatenate([[0], np.cumsum(np.array(before) + ends - begins)])
            numbers = np.concatenate([*own, numbers])[chosen]
            rows = Arranged(whole, bounds, rows.time[:0], rows.within)
            ends = bounds[1:]
            edges = np.stack([bounds[:-1] + np.array(before) - over, ends], axis=1)
            into = into - over
        conditions = prepare(self.clause, rows, compiled=True)
        if conditions.opaque:
            raise NotIncrementalError
        if self.needed == -2:
            self._choose_needed(conditions.holds)
        columns, length = conditions.judge.columns, rows.table.num_rows
        time = window_times(rows.table, self.clause) if self.within else np.zeros(length, np.int64)
        width = (columns.whole.shape[0], columns.number.shape[0], columns.null.shape[0])
        if not conditions.on_the_way:
            shapes = ((width[0], length), np.int64), ((width[1], length), np.float64), ((width[2], length), np.uint8)
            whole_, number, null = (np.zeros(shape, kind) for shape, kind in shapes)
        else:
            whole_, number, null = columns.whole, columns.number, columns.null
        return _Evaluated(
            np.ascontiguousarray(edges.reshape(-1)),
            into,
            time,
            conditions.begins,
            numbers,
            conditions.holds,
            null,
            whole_,
            number,
            numbers,
        )

    def _unjudged(self, rows: Arranged, keys: Sequence[Key], numbers: Int64s, goes_on: bool) -> _Evaluated:
        """New rows with what texts say about them; kernels judge the rest."""
        assert self.of_rows is not None
        if self.needed == -2:
            self._choose_needed(prepare(self.clause, rows, compiled=True).holds)
        length, columns = rows.table.num_rows, self.of_rows.columns(rows.table)
        into = [self.parts[key].size if goes_on and key in self.parts else 0 for key in keys]
        time = window_times(rows.table, self.clause) if self.within else np.zeros(length, np.int64)
        edges = np.stack([rows.bounds[:-1], rows.bounds[1:]], axis=1)
        return _Evaluated(
            np.ascontiguousarray(edges.reshape(-1)),
            np.array(into, np.int64),
            time,
            np.zeros(length, np.uint8),
            numbers,
            np.zeros((len(self.clause.labels), length), np.uint8),
            columns.null,
            columns.whole,
            columns.number,
            self.of_rows.texts(rows.table),
        )

    def _choose_needed(self, holds: npt.NDArray[np.uint8]) -> None:
        """Which label that every match has is rare? With few rows nobody knows, and any one will do."""
        clause = self.clause
        wanted = needed_labels(clause.pattern)
        labels = [at for at, label in enumerate(clause.labels) if label in wanted and label in clause.conditions]
        counts = {at: int(np.count_nonzero(holds[at])) for at in labels}
        rarest = min(counts, key=counts.__getitem__, default=-1)
        self.needed = rarest if rarest >= 0 and counts[rarest] <= RARE * max(holds.shape[1], 1) else -1

    def push(
        self,
        rows: Arranged,
        keys: Sequence[Key],
        numbers: Int64s,
        take: Callable[[Int64s], pa.Table],
        horizon: int | None,
    ) -> Matched:
        """Takes in new rows in order, and lets time pass; None: no more will come."""
        found = self._evaluated(rows, keys, numbers, take)
        touched = [self.parts[key] if key in self.parts else self.new_part(key) for key in keys]
        edges, into = found.edges, found.into
        if horizon is None:
            every = dict.fromkeys(keys)
            late = [part for key, part in self.parts.items() if part.begin < part.size and key not in every]
            touched += late
            edges = np.concatenate([edges, np.zeros(2 * len(late), np.int64)])
            into = np.concatenate([into, np.array([part.size for part in late], np.int64)])
        heads = np.array([part.at for part in touched], np.int64)
        batch = self.batch
        batch[r.OPEN], batch[r.HORIZON] = int(horizon is not None), 0 if horizon is None else horizon
        batch[r.FOUND] = batch[r.STEPS_FOUND] = batch[r.WORK] = 0
        held: list[npt.NDArray[Any]] = [heads, edges, into, *found[2:]]
        for number, table in enumerate(held):
            write_table(batch, r.IN_BATCH + 3 * number, table)
        returned = self.push_rows(batch, 0)
        while returned != r.ALL_DONE:
            if returned != r.PAUSED:
                at = int(batch[r.DONE])
                self._make_way(returned, touched[at], edges[2 * at : 2 * at + 2], into[at : at + 1])
            checkpoint()
            returned = self.push_rows(batch, int(batch[r.DONE]))
        while (returned := self.pass_windows(batch)) != r.ALL_DONE:
            self.make_way(returned)
        return self.found_alone()

    def make_way(self, returned: int) -> None:
        """Makes room for the partition that a step stopped at, or raises an error."""
        self._make_way(returned, self.by_number[self.batch[r.DONE]], _ONE_ROW, np.zeros(1, np.int64))

    @property
    def matches_found(self) -> int:
        """How many matches are found since the last call."""
        return int(np.count_nonzero(self.out[: self.batch[r.FOUND], 2] >= 0))

    def found_alone(self) -> Matched:
        """What is found since the last call."""
        batch = self.batch
        number, taken = int(batch[r.FOUND]), int(batch[r.STEPS_FOUND])
        batch[r.FOUND] = batch[r.STEPS_FOUND] = 0
        return Matched(self.out[:number].copy(), self.steps[:taken].copy())

    def _make_way(self, returned: int, part: Part, edges: Int64s, into: Int64s) -> None:
        """Makes room for a partition, or raises an error."""
        if returned >= r.SKIPS:
            raise search_failed(returned - r.SKIPS)
        if returned == r.NEEDS_MEMORY:
            raise NotIncrementalError
        if returned == r.TOO_MANY_OPEN:
            raise too_many_open(int(self.batch[r.MOST_OPEN]))
        if returned == r.NEEDS_ROWS:
            needed = part.size + int(edges[1] - edges[0]) + self.ahead + 2
            unused = max(part.begin - self.back - self.ahead, 0)
            if self.batch[r.FOUND]:  # what is found is told by places of rows
                unused = 0
            if 2 * unused >= part.size and unused:
                self.shorten(part, unused)
                into -= unused
                needed -= unused
            if needed > int(part.head[r.ROOM]):
                part.grow(2 * needed)
        elif returned == r.NEEDS_SCRATCH:
            for number in _FOR_ATTEMPTS:
                before = part.tables[number]
                part.place(number, np.zeros((2 * len(before), *before.shape[1:]), np.int64))
        elif returned == r.NEEDS_RESULTS:
            out = np.zeros((2 * len(self.out), 4), np.int64)
            steps = np.zeros(2 * len(self.steps) + 2 * part.size, np.int32)
            out[: len(self.out)], steps[: len(self.steps)] = self.out, self.steps
            self._results(out, steps)

    # --- time -------------------------------------------------------------------------------------------------------

    def earliest(self) -> int | None:
        """No window passes before."""
        return int(self.queue[0, 0]) if self.batch[r.WAITING_PARTS] else None

    # --- what is kept -----------------------------------------------------------------------------------------------

    def kept(self, part: Part) -> int:
        """The first row of a partition that a later match may need."""
        return max(part.begin - self.back, 0)

    def shorten(self, part: Part, rows: int) -> None:
        """Forgets the first rows of a partition."""
        if rows:
            self.drop(part.head, rows)

    def forget(self, rows: int, remembers: bool) -> tuple[npt.NDArray[np.bool_], Standing]:
        """Forgets what no later match needs; which of so many rows are left, and where each partition goes on.

        A partition without rows stays for a while: most of them have rows again soon.
        """
        which, stands = np.zeros(rows, np.uint8), np.zeros((len(self.by_number), r.OF_STANDING), np.int64)
        self._forget(self.batch, which, stands)
        standing = Standing(self.keys.copy(), stands, remembers)
        idle = [] if remembers else np.flatnonzero(stands[:, r.HAD_ROWS] == 0).tolist()
        if 4 * len(idle) > len(self.keys):
            for number in idle:
                del self.parts[self.keys[number]]
            self.number_parts()
        kept = which.view(np.bool_)
        self._renumber(self.batch, len(self.by_number), np.cumsum(kept) - 1)
        return kept, standing

    def check_limit(self, keys: Sequence[Key], limit: int | None) -> None:
        """An error if too many rows of a partition are undecided."""
        if limit is None:
            return
        for key in keys:
            part = self.parts[key]
            if part.size - self.kept(part) > limit:
                raise too_many_open(limit)

    def found_rows(self, found: Matched) -> tuple[Int64s, Int64s, Matches, Int64s]:
        """The rows that matches and measures need: their numbers, bounds, the matches in them, their numbers."""
        pieces, starts, bounds = [], [], [0]
        for partition, start, length, _ in found.places.tolist():
            part = self.by_number[partition]
            low = max(start - self.back, 0)
            high = min(start + max(length, 1) + self.shown_ahead, part.size)
            pieces.append(part.numbers(low, high))
            starts.append(bounds[-1] + start - low)
            bounds.append(bounds[-1] + high - low)
        matches = row_matches(np.array(starts, np.int64), found.places[:, 2].copy(), found.steps)
        return np.concatenate(pieces), np.array(bounds, np.int64), matches, found.places[:, 3].copy()


_ONE_ROW = np.array([0, 1], np.int64)


def too_many_open(limit: int) -> LimitError:
    """The error for too many rows of a partition that are undecided."""
    hint = "add WITHIN, or allow more with max_rows"
    return LimitError(f"more than {limit:,} rows of a partition are undecided", hint=hint)


class _Evaluated(NamedTuple):
    """New rows with their conditions: from and to where each partition's lie, and where they go; then by row."""

    edges: Int64s
    into: Int64s
    time: Int64s
    begins: npt.NDArray[np.uint8]
    numbers: Int64s
    holds: npt.NDArray[np.uint8]
    null: npt.NDArray[np.uint8]
    whole: npt.NDArray[np.int64]
    number: npt.NDArray[np.float64]
    texts: Int64s

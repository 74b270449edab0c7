"""The streaming step with its state in memory: what a live query runs for every event or table that is sent.

It finds what the step over stored chunks finds (state.py), and can be written as such a state. Two things make it fast
enough for single events: nothing is encoded between steps, and where keys part the events (idle_keys.py) a step looks
only at the events of keys for which a last event has come.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.shared import sharing
from cepheid.engine.data.table import ordered
from cepheid.engine.retention import retained
from cepheid.plan.physical import Plan
from cepheid.runners.arrow_bytes import encoded
from cepheid.runners.drift import look_at_arrivals
from cepheid.runners.stream import totals
from cepheid.runners.stream.carried import Pending
from cepheid.runners.stream.clock import Chunk, Clock
from cepheid.runners.stream.identity import Fingerprint, Known
from cepheid.runners.stream.idle_keys import key_codes
from cepheid.runners.stream.saved import Saved
from cepheid.runners.stream.state import Outcome, StreamStep
from cepheid.runners.worker_plans import WorkerPlan

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
LEAST = 2_000  # events after which it is worth the while to look which have expired
PIECES = 8  # tables that lie side by side before they are joined


@dataclass
class Ends:
    """What NON-OVERLAP carries, by query. Chunks do not lie here, but in the step itself."""

    by_query: dict[int, bytes] = field(default_factory=dict)

    def ended(self, query: int) -> bytes | None:
        """Where the last matches of a query ended."""
        return self.by_query.get(query)

    def end(self, query: int, ended: bytes) -> None:
        """Puts down where the last matches of a query ended."""
        self.by_query[query] = ended

    def forget(self, query: int) -> None:
        """The query is no longer there."""
        self.by_query.pop(query, None)


@dataclass(frozen=True)
class ChunkCache:
    """What a resident keeps after a step, so that it can go back there: nothing changes any of it."""

    pieces: Sequence[pa.Table]
    number: int  # of the pieces; what later steps put behind them is none of it
    rows: int
    until: int | None
    newest: int | None
    ends: Mapping[int, bytes]
    above: tuple[ChunkCache, ...] = ()  # of queries that read the matches

    def __len__(self) -> int:
        return self.rows + sum(map(len, self.above))

    @property
    def nbytes(self) -> int:
        """The size of the events."""
        own: int = sum(piece.nbytes for piece in self.pieces[: self.number])
        return own + sum(each.nbytes for each in self.above)


class Resident:
    """A stream's state in memory: the events that a later match may need, and the clock."""

    def __init__(self, step: StreamStep, schema: pa.Schema, fingerprint: Fingerprint) -> None:
        self.step, self.schema, self.fingerprint = step, schema, fingerprint
        self.searching = step  # the queries that search again what is kept
        self.until: int | None = None  # all events up to here have been seen
        self.newest: int | None = None
        self.ends = Ends()
        self.queries: Mapping[str, Known] = fingerprint.begun()
        self.kept = 0  # events that were left when it was last looked which have expired
        self.pieces: list[pa.Table] = []  # one after the other, all events that are kept, as they came
        self._times = self._keys = Growing(np.empty(0, np.int64))  # the time of each of them, and the code of its key
        self._rows: defaultdict[int, list[int]] = defaultdict(list)  # by the code of a key, where its events stand
        self._waiting: Int64s = np.empty(0, np.int64)  # possible last events after `until`
        self._types = types_of_events(step.plans, step.plans)
        self._at: ChunkCache | None = None  # where it stands, unless a step was begun since
        self.lay_down(schema.empty_table(), None)

    def __len__(self) -> int:
        return len(self._times)

    @property
    def shipments(self) -> tuple[WorkerPlan, ...]:
        """Those of all queries, by their numbers."""
        return self.step.shipments

    def held(self) -> ChunkCache:
        """What is kept, to go back to. That costs next to nothing: the pieces are not copied."""
        ends = dict(self.ends.by_query)
        self._at = ChunkCache(self.pieces, len(self.pieces), len(self), self.until, self.newest, ends)
        return self._at

    def begin(self, held: ChunkCache) -> None:
        """Begins a step from what is held: if one was begun since, and did not come to its end, it never was."""
        if self._at is not held:
            self.go_back(held)
        self._at = None

    def go_back(self, held: ChunkCache) -> None:
        """Makes everything anew that is made of the events."""
        self.until, self.newest, self.ends = held.until, held.newest, Ends(dict(held.ends))
        table = pa.concat_tables([self.schema.empty_table(), *held.pieces[: held.number]]).combine_chunks()
        self.lay_down(table, held.until)

    def take(self, fresh: pa.Table | None, until: int | None = None) -> Outcome:
        """Takes in new events and, if these or `until` move the watermark, finds what completes by it."""
        late, count = None, 0
        if fresh is not None and fresh.num_rows:
            count = fresh.num_rows
            begins = self.step.begins(fresh)
            latest = int(begins.max())
            if self.until is not None and int(begins.min()) <= self.until:
                behind = begins <= self.until
                late, fresh, begins = fresh.filter(pa.array(behind)), fresh.filter(pa.array(~behind)), begins[~behind]
            self.newest = latest if self.newest is None else max(self.newest, latest)
            self.append(fresh, begins)
        if self.newest is not None:
            seen = self.newest - self.step.delay - 1
            until = seen if until is None else max(seen, until)
        after, results = self.until, tuple[tuple[int, pa.RecordBatch], ...]()
        if until is not None and (after is None or until > after):
            self.until = until
            clock = Clock(until, queries=self.queries)
            results = (*self.found(after, until), *self.step.closed(self.ends, clock, until))
            if len(self) > max(LEAST, 2 * self.kept):
                self.forget()
        if count and fresh is not None:
            look_at_arrivals(self.step.plans, fresh)
        return Outcome(Clock(self.until, self.newest), results, late, events=count, retained=len(self))

    # --- finding ----------------------------------------------------------------------------------------------------

    def found(self, after: int | None, until: int) -> tuple[tuple[int, pa.RecordBatch], ...]:
        """The matches that complete in the interval."""
        if self.step.keys:
            rows = self._rows_of_busy_keys(after, until)
            if not len(rows):
                return ()
            table = self.table().take(pa.array(rows))
        else:
            if not len(self):
                return ()
            table = self.table()
        events = ordered(table, self.step.plans[0].bound.schema)
        pending = Pending(self.ends)
        with sharing():
            results = tuple(self.searching.found(pending, events, Clock(after, queries=self.queries), until))
        pending.keep()
        return results

    def _rows_of_busy_keys(self, after: int | None, until: int) -> Int64s:
        """The rows of keys of which an event has been released that may be the last of a match."""
        waiting = self._waiting
        times = self._times.values()[waiting]
        released = waiting[times <= until]
        self._waiting = waiting[times > until]
        keys = dict.fromkeys(self._keys.values()[released].tolist())
        rows = [row for key in keys for row in self._rows[key]]
        chosen: Int64s = np.array(rows, np.int64)
        begins = self._times.values()[chosen]
        inside = begins <= until
        if after is not None:
            inside &= begins > self.step.gone(after)
        chosen = chosen[inside]
        chosen.sort()  # as they came, so that equal times keep their order
        return chosen

    # --- the events -------------------------------------------------------------------------------------------------

    def append(self, fresh: pa.Table, begins: Int64s) -> None:
        """Puts new events beside those that are kept."""
        if not fresh.num_rows:
            return
        if self._types is not None:
            every, last, name = self._types
            kinds = fresh.column(name)
            wanted = pc.is_in(kinds, value_set=every).to_numpy()
            if not wanted.all():
                fresh, begins = fresh.filter(pa.array(wanted)), begins[wanted]
                kinds = fresh.column(name)
            if not fresh.num_rows:
                return
            ending = pc.is_in(kinds, value_set=last).to_numpy()
        else:
            ending = np.ones(fresh.num_rows, bool)
        start = len(self)
        self.pieces.append(fresh)
        self._times.extend(begins)
        if self.step.keys:
            keys = _codes(fresh, self.step.keys)
            self._keys.extend(keys)
            self._waiting = np.concatenate([self._waiting, start + np.flatnonzero(ending)])
            rows = self._rows
            for row, key in enumerate(keys.tolist(), start):
                rows[key].append(row)

    def table(self) -> pa.Table:
        """All events that are kept, as they came."""
        if len(self.pieces) > 1:
            if len(self.pieces) > PIECES:
                # The large one is copied only when the small ones have become as large.
                small = pa.concat_tables(self.pieces[1:]).combine_chunks()
                large = self.pieces[0]
                grown = 2 * small.num_rows > large.num_rows
                self.pieces = [pa.concat_tables([large, small]).combine_chunks()] if grown else [large, small]
            return pa.concat_tables(self.pieces)
        return self.pieces[0]

    def sources(self) -> list[tuple[StreamStep, pa.Table, int | None]]:
        """What is kept of which queries' events, and up to when all of them have been seen."""
        return [(self.step, self.table(), self.until)]

    def forget(self) -> None:
        """Leaves out what no later match can need."""
        assert self.until is not None
        if not len(self):
            return
        events = ordered(self.table(), self.step.plans[0].bound.schema)
        keep = np.zeros(len(events), bool)
        for plan in self.step.plans:
            keep |= retained(plan, events, self.until)
        self.lay_down(events.table.filter(pa.array(keep)).combine_chunks(), self.until)

    def lay_down(self, table: pa.Table, until: int | None) -> None:
        """Begins anew with these events."""
        self.pieces = [table]
        begins = self.step.begins(table)
        self._times, self._keys = Growing(begins), Growing(np.empty(0, np.int64))
        self._rows = defaultdict(list)
        self._waiting = np.empty(0, np.int64)
        self.kept = table.num_rows
        if not self.step.keys or not table.num_rows:
            return
        keys = _codes(table, self.step.keys)
        self._keys = Growing(keys)
        ending = np.ones(table.num_rows, bool)
        if self._types is not None:
            ending = pc.is_in(table.column(self._types[2]), value_set=self._types[1]).to_numpy()
        self._waiting = np.flatnonzero(ending & (begins > until)) if until is not None else np.flatnonzero(ending)
        for row, key in enumerate(keys.tolist()):
            self._rows[key].append(row)

    # --- keeping ----------------------------------------------------------------------------------------------------

    def save(self) -> bytes:
        """The state as an Arrow table of what a shard on Spark keeps: the clock, chunks of events, and ends."""
        if self.until is not None:
            self.forget()
        packed = encoded(self.table().combine_chunks())
        chunks = (Chunk(0, len(self), len(packed)),) if len(self) else ()
        clock = Clock(self.until, self.newest, None, chunks, queries=self.queries).text(self.fingerprint)
        return Saved(json.loads(clock), {chunk.number: packed for chunk in chunks}, self.ends.by_query).packed()

    def restore(self, state: bytes) -> None:
        """Goes on from a state that was saved by the same query over the same columns."""
        saved = Saved.read(state)
        clock = Clock.read(json.dumps(saved.clock), self.fingerprint)
        self.until, self.newest, self.queries = clock.until, clock.newest, clock.queries
        gone = {*clock.gone, *map(totals.slot, clock.gone)}
        self.ends = Ends({place: ended for place, ended in saved.ended.items() if place not in gone})
        tables = [self.step.fitted(table) for table in saved.events()]
        self.lay_down(pa.concat_tables([self.schema.empty_table(), *tables]).combine_chunks(), clock.until)

    def finish(self) -> Outcome:
        """The end of time: what is decided by nothing coming any more."""
        outcome = self.take(None, NEVER)
        self.until = NEVER
        return replace(outcome, retained=0)


class Growing:
    """A row of numbers that grows at its end without being copied each time."""

    def __init__(self, values: Int64s) -> None:
        self._values, self._length = values, len(values)

    def __len__(self) -> int:
        return self._length

    def values(self) -> Int64s:
        """The numbers."""
        return self._values[: self._length]

    def extend(self, more: Int64s) -> None:
        """Puts more at the end."""
        length = self._length + len(more)
        if length > len(self._values):
            larger = np.empty(max(2 * length, 1024), np.int64)
            larger[: self._length] = self.values()
            self._values = larger
        self._values[self._length : length] = more
        self._length = length


_NULL = -(2**63)  # the code of an event without a key; a key with this number is looked at in vain, now and then


def _codes(table: pa.Table, attributes: Sequence[str]) -> Int64s:
    """A number for each event, equal where all the attributes are; a whole number is its own (see `key_codes`)."""
    if len(attributes) == 1:
        column = table.column(attributes[0])
        if column.type == pa.int64():
            values: Int64s = (column.fill_null(_NULL) if column.null_count else column).to_numpy()
            return values
    return key_codes(table, attributes).view(np.int64)


def types_of_events(plans: Sequence[Plan], searching: Sequence[Plan]) -> tuple[pa.Array, pa.Array, str] | None:
    """The event types that are needed at all, those of last events of some, and their column; None: all are needed."""
    name = plans[0].bound.schema.type
    needed = [plan.scan.types for plan in plans]
    lasts = [component.types for plan in searching for component in plan.bound.lasts]
    if name is None or any(types is None for types in lasts) or any(types is None for types in needed):
        return None
    every = sorted(frozenset().union(*(types or () for types in needed)))
    last = sorted(frozenset().union(*(types or () for types in lasts)))
    return pa.array(every, pa.string()), pa.array(last, pa.string()), name

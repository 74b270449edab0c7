"""What a stream keeps: the retained events of a shard in chunks, and the clock. One step turns it into the next.

A step is `find` over the interval between the old and the new watermark (docs/design.md); the state is a table and
nothing else. It is kept in chunks, since rewriting a whole window in every micro-batch would cap the throughput: a
step adds a chunk for what is new, drops those that have expired, and rewrites those of which little is left. Chunks
of keys that nothing comes for are not even read (idle_keys.py). Nothing here knows Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.budget import within_budget
from cepheid.engine.choose import decide
from cepheid.engine.data.candidates import candidates
from cepheid.engine.data.keys import Codes, key_codes
from cepheid.engine.data.matches import Matches
from cepheid.engine.data.shared import sharing
from cepheid.engine.data.table import EventTable, ordered, times_of
from cepheid.engine.find import find, last_ends
from cepheid.engine.kernels.stop import briefly
from cepheid.engine.output.overlap import Ended
from cepheid.engine.retention import reach, retained
from cepheid.engine.statistics import MANY_EVENTS
from cepheid.errors import DataError, LimitError, TimeoutReached
from cepheid.language import syntax as s
from cepheid.language.free_names import free_name
from cepheid.language.zone_labels import labelled
from cepheid.plan.operators import AUTO
from cepheid.plan.physical import Plan
from cepheid.runners.arrow_bytes import encoded
from cepheid.runners.checksums import decoded_state
from cepheid.runners.drift import look_at_arrivals
from cepheid.runners.events_of_each import events_of_each, types_of
from cepheid.runners.stream import totals
from cepheid.runners.stream.budget import FAIL, SEARCH, TIME, Budget
from cepheid.runners.stream.carried import Carried, Pending
from cepheid.runners.stream.clock import Chunk, Clock, split_late
from cepheid.runners.stream.identity import ALONE, Known
from cepheid.runners.stream.idle_keys import any_awake, can_sleep, packed_codes, parting_attributes
from cepheid.runners.total_parts import find_parts, parts_of
from cepheid.runners.worker_plans import WorkerPlan, result_batches

SMALL = 1 << 20  # bytes; of smaller chunks some are joined...
MANY = 8  # ...when there are more of them than this
LARGE = 8 << 20  # bytes; a longer table makes several chunks
BRIEF = 1e5  # combinations of events; fewer are tried in less time than a thread takes to start
FEW = 1000  # events; of fewer it does not matter whether they are read
SMALLEST = 16  # events; a search of fewer that meets a limit is an error whatever may be shed
FRESH = -1  # the chunk of events that have just come

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Store(Carried, Protocol):
    """Where chunks lie, by number, with the keys of those asleep."""

    @property
    def remembered(self) -> dict[int, Any]:
        """What this process remembers of the very state that lies here, for the next step to use up or to ignore."""

    def read(self, number: int) -> bytes: ...
    def write(self, number: int, chunk: bytes) -> None: ...
    def remove(self, number: int) -> None: ...
    def keys(self, number: int) -> bytes: ...
    def write_keys(self, number: int, keys: bytes) -> None: ...
    def remove_keys(self, number: int) -> None: ...


@dataclass(frozen=True)
class Gathered:
    """The events that a step looks at, in order."""

    events: EventTable
    chunks: Int64s  # the chunk that each lies in
    busy: Codes | None  # the keys with events that have not been looked at yet
    joined: Sequence[Chunk]  # chunks that are written as one
    read: Collection[int]  # the chunks that were read


@dataclass(frozen=True)
class Outcome:
    """What a step found, and the numbers that a listener sees."""

    clock: Clock
    results: tuple[tuple[int, pa.RecordBatch], ...] = ()  # the number of the query, and some of its matches
    late: pa.Table | None = None
    events: int = 0  # that came; they are used, late, duplicates or shed
    retained: int = 0
    duplicates: int = 0
    unasked: int = 0  # events that came while there was no query
    shed: int = 0  # events that were given up, those that came earlier included
    lost: float = 0.0  # an estimate of the matches that they would have been part of
    used_by: tuple[tuple[int, int], ...] = ()  # by the number of the query, the new events of its types...
    late_by: tuple[tuple[int, int], ...] = ()  # ...those that were late...
    duplicates_by: tuple[tuple[int, int], ...] = ()  # ...and those that had come before
    shed_by: tuple[tuple[int, int], ...] = ()  # by the number of the query, the events of its types that were given up
    shed_for: tuple[tuple[str, int], ...] = ()  # by the bound that was met, the events that were given up

    @property
    def matches(self) -> int:
        """How many matches were found."""
        return sum(batch.num_rows for _, batch in self.results)

    @property
    def used(self) -> int:
        """Events that count; less than none if more were given up that came earlier."""
        late = 0 if self.late is None else self.late.num_rows
        return self.events - self.duplicates - self.shed - self.unasked - late

    @property
    def state_bytes(self) -> int:
        """How large the retained events are."""
        return sum(chunk.size for chunk in self.clock.chunks)


@dataclass(frozen=True)
class StreamStep:
    """What is the same in every step of a stream."""

    shipments: tuple[WorkerPlan, ...]
    numbers: tuple[int, ...]  # of the queries
    delay: int  # how much later than the newest event others may come, in steps of the time column
    plans: tuple[Plan, ...] = field(default=(), compare=False)
    schema: pa.Schema | None = None  # of the events, where the queries, and so the columns, may have changed
    dedupe: tuple[str, ...] = ()  # columns in which duplicates agree, the time apart
    budget: Budget = field(default_factory=Budget)

    def run(self, clock: Clock, store: Store, fresh: Sequence[pa.Table], newest: int | None) -> Outcome:
        """Takes in new events and, if that moves the watermark, reports what completes by the new one."""
        newest, until = clock.moved(newest, self.delay)
        arrived, late = self.in_time(pa.concat_tables(fresh) if fresh else None, clock.until)
        count = sum(table.num_rows for table in fresh)
        moved = until != clock.until
        for place in clock.gone:
            store.forget(place)
            store.forget(totals.slot(place))
        clock = replace(clock, newest=newest, steps=clock.steps + 1, gone=())
        awake = tuple(chunk for chunk in clock.chunks if not chunk.asleep)
        joined = to_join(awake)
        tables = self.read(store, awake if moved or self.dedupe else joined)
        came_by = self.used_by(arrived) if self.dedupe else ()
        arrived, duplicates = self.without_duplicates(arrived, tables.values())
        if arrived is not None and arrived.num_rows:
            tables[FRESH] = arrived
            look_at_arrivals(self.plans, arrived)
        busy = self.busy_keys(tables, clock.until) if moved else None
        if moved and until is not None:
            woken = [chunk for chunk in clock.chunks if chunk.asleep and self.wakes(store, chunk, busy)]
            clock = self.without_expired(store, clock, woken, until)
            asleep = [chunk for chunk in clock.chunks if chunk.asleep]
            joined += to_join(asleep)
            tables |= self.read(store, [c for c in asleep if c in woken or c in joined or self.half_gone(c, until)])
        used_by = self.used_by(arrived)
        told = Outcome(clock, late=late, events=count, duplicates=duplicates, used_by=used_by)
        twice = tuple((number, came - dict(used_by).get(number, 0)) for number, came in came_by)
        told = replace(told, late_by=self.used_by(late), duplicates_by=twice)
        if not tables or until is None:
            results = self.closed(store, clock, until) if moved and until is not None else ()
            return replace(told, clock=replace(clock, until=until), results=results, retained=_rows(clock.chunks))
        return self.finished(told, store, Gathered(*self.gathered(tables), busy, joined, tables.keys()), moved, until)

    def finished(self, told: Outcome, store: Store, gathered: Gathered, moved: bool, until: int) -> Outcome:
        """The second half of a step: what is found in the events, and which of them stay."""
        with sharing():
            return self.decided_and_kept(told, store, gathered, moved, until)

    def decided_and_kept(self, told: Outcome, store: Store, gathered: Gathered, moved: bool, until: int) -> Outcome:
        """The same; what several queries need of the events is worked out once."""
        clock, events = told.clock, gathered.events
        gone, given_up = np.zeros(len(events), bool), dict[str, Mask]()
        results: tuple[tuple[int, pa.RecordBatch], ...] = ()
        if moved:
            results, given_up = self.found_within_limits(store, events, clock, until)
            gone = np.logical_or.reduce(list(given_up.values()))
            results = (*results, *self.closed(store, clock, until))
        keep = np.zeros(len(events), bool)
        for plan in self.plans:
            keep |= retained(plan, events, until)
        reasons = given_up | self.budget.shed(events, keep & ~gone, self.plans[0].bound.equivalence, clock.steps)
        gone = np.logical_or.reduce([gone, *reasons.values()])
        keep &= ~gone
        idle = np.zeros(len(events), bool)
        if gathered.busy is not None and self.keys:
            idle = ~np.isin(key_codes(events.table, self.keys), gathered.busy)
        holed = {int(number) for number in np.unique(gathered.chunks[gone])}  # chunks that must not keep what is gone
        joined = [*gathered.joined, *(c for c in clock.chunks if c.number in holed and c not in gathered.joined)]
        stored = tuple(self.stored(store, replace(gathered, joined=joined), clock, keep, idle))
        matches, shed = sum(batch.num_rows for _, batch in results), int(gone.sum())
        clock = replace(clock, until=until, chunks=stored, found=clock.found + matches)
        late = 0 if told.late is None else told.late.num_rows
        clock = replace(clock, used=clock.used + told.events - told.duplicates - late)
        lost = shed * clock.found / max(1, clock.used)
        told = replace(told, clock=clock, results=results, retained=_rows(stored), shed=shed, lost=lost)
        if not shed:
            return told
        by_reason = tuple((reason, int(rows.sum())) for reason, rows in reasons.items() if rows.any())
        return replace(told, shed_by=self.used_by(events.table.filter(pa.array(gone))), shed_for=by_reason)

    def in_time(self, arrived: pa.Table | None, until: int | None) -> tuple[pa.Table | None, pa.Table | None]:
        """The new events that time has not passed yet, and those that are late."""
        return (None, None) if arrived is None else split_late(arrived, self.begins(arrived), until)

    def without_duplicates(self, arrived: pa.Table | None, kept: Collection[pa.Table]) -> tuple[pa.Table | None, int]:
        """The new events that did not come before, and how many did.

        A duplicate has the time of the first: if that has passed it is late, otherwise the first waits in the state.
        """
        if not self.dedupe or arrived is None or not arrived.num_rows:
            return arrived, 0
        schema = self.plans[0].bound.schema
        names = [*self.dedupe, *(name for name in (schema.time,) if name not in self.dedupe)]
        waiting = pa.concat_tables([*(table.select(names) for table in kept), arrived.select(names)])
        row = free_name("__row", names)
        numbered = waiting.append_column(row, pa.array(np.arange(waiting.num_rows)))
        first = numbered.group_by(names, use_threads=False).aggregate([(row, "min")]).column(f"{row}_min")
        before = waiting.num_rows - arrived.num_rows
        rows = np.sort(first.to_numpy()) - before
        rows = rows[rows >= 0]
        return arrived.take(pa.array(rows)), arrived.num_rows - len(rows)

    def used_by(self, arrived: pa.Table | None) -> tuple[tuple[int, int], ...]:
        """How many of some events are of the types that each query names."""
        if arrived is None or not arrived.num_rows:
            return ()
        name = self.plans[0].bound.schema.type
        if name is None:
            return tuple((number, arrived.num_rows) for number in self.numbers)
        places, named, every = self._types
        counts = np.zeros(len(places) + 1, np.int64)
        for kind in pc.value_counts(arrived.column(name)).to_pylist():
            counts[places.get(kind["values"], len(places))] += kind["counts"]
        found = np.where(every, arrived.num_rows, named @ counts)
        return tuple(zip(self.numbers, found.tolist(), strict=True))

    @cached_property
    def _types(self) -> tuple[dict[str | None, int], Int64s, Mask]:
        """The types that queries name, with their places; which of these each names; and which look at all events."""
        types = [types_of(plan.bound) for plan in self.plans]
        places: dict[str | None, int] = {}
        for name in sorted(frozenset().union(*(own for own in types if own is not None))):
            places[name] = len(places)
        named = np.zeros((len(types), len(places) + 1), np.int64)
        for row, own in zip(named, types, strict=True):
            row[[places[name] for name in own or ()]] = 1
        return places, named, np.array([own is None for own in types])

    def found_within_limits(
        self, store: Carried, events: EventTable, clock: Clock, until: int
    ) -> tuple[tuple[tuple[int, pa.RecordBatch], ...], dict[str, Mask]]:
        """The matches of all queries, and what was given up for them: where a limit is met and the policy allows it,
        the step is taken again with fewer events."""
        given_up = {reason: np.zeros(len(events), bool) for reason in (SEARCH, TIME)}
        for allowed in self.budget.attempts():
            gone = given_up[SEARCH] | given_up[TIME]
            left = events
            if gone.any():
                left = EventTable(events.table.filter(pa.array(~gone)), events.time[~gone], events.instant[~gone])
            pending = Pending(store)
            try:
                with within_budget(allowed, None):
                    results = tuple(self.found(pending, left, clock, until))
            except LimitError as error:
                if self.budget.policy == FAIL or len(left) < SMALLEST:
                    raise
                in_time = allowed is not None and isinstance(error, TimeoutReached)
                halved = self.budget.halve(~gone, events, self.plans[0].bound.equivalence, clock.steps)
                given_up[TIME if in_time else SEARCH] |= halved
                continue
            pending.keep()
            return results, given_up
        raise AssertionError("attempts do not end")

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The attributes by which keys can sleep, if they can."""
        return parting_attributes([worker_plan.plan for worker_plan in self.shipments])

    def gone(self, until: int) -> int:
        """The latest time that no match completing after `until` can need."""
        return until - max(reach(plan) or 0 for plan in self.plans)

    def without_expired(self, store: Store, clock: Clock, woken: Sequence[Chunk], until: int) -> Clock:
        """Forgets, unread, chunks of keys that sleep on and whose events have all expired."""
        stay = []
        for chunk in clock.chunks:
            if chunk.newest is not None and chunk.newest <= self.gone(until) and chunk not in woken:
                store.remove(chunk.number)
                store.remove_keys(chunk.number)
            else:
                stay.append(chunk)
        return replace(clock, chunks=tuple(stay))

    def busy_keys(self, tables: dict[int, pa.Table], after: int | None) -> Codes | None:
        """The codes of keys with events that have not been looked at yet."""
        if not self.keys:
            return None
        new = [
            table if after is None else table.filter(pa.array(self.begins(table) > after)) for table in tables.values()
        ]
        return np.unique(np.concatenate([np.empty(0, np.uint64), *(key_codes(table, self.keys) for table in new)]))

    def wakes(self, store: Store, chunk: Chunk, busy: Codes | None) -> bool:
        """Does one of the sleeping keys of a chunk have new events?"""
        return busy is None or any_awake(store.keys(chunk.number), busy)

    def half_gone(self, chunk: Chunk, until: int) -> bool:
        """Has half of a chunk of sleeping keys expired, so that it should be written anew?"""
        return chunk.middle is not None and chunk.middle <= self.gone(until)

    def ready(self) -> StreamStep:
        """The same with plans that can run in this process."""
        return replace(self, plans=tuple(worker_plan.unpacked() for worker_plan in self.shipments))

    def for_shards(self, planned: int, shards: int) -> StreamStep:
        """The same where there are so many shards, rather than as many as were planned: each has its part."""
        most = self.budget.max_bytes
        return replace(self, budget=replace(self.budget, max_bytes=most and max(1, most * planned // shards)))

    def looks_back(self) -> bool:
        """Must a step know where earlier matches ended (NON-OVERLAP), or what they add up to (SUMMARISE)?"""
        modes = [worker_plan.plan.bound.output.mode for worker_plan in self.shipments]
        return s.OutputMode.NON_OVERLAP in modes or self.adds_up()

    def adds_up(self) -> bool:
        """Are totals asked for, so that buckets wait for their end even where no event does?"""
        return self._adds_up

    @cached_property
    def _adds_up(self) -> bool:
        return any(worker_plan.plan.bound.summary is not None for worker_plan in self.shipments)

    def known(self, clock: Clock, number: int, worker_plan: WorkerPlan) -> Known:
        """What the state knows of a query."""
        return clock.queries.get(worker_plan.name or ALONE, Known(number, {}))

    def closed(self, store: Carried, clock: Clock, until: int) -> tuple[tuple[int, pa.RecordBatch], ...]:
        """The totals of buckets that are over, of queries that ask for totals."""
        if not self._adds_up:
            return ()
        queries = zip(self.numbers, self.shipments, strict=True)
        places = [self.known(clock, number, worker_plan).place for number, worker_plan in queries]
        return tuple(totals.closed(store, places, self.numbers, self.shipments, self.plans, until))

    def begins(self, table: pa.Table) -> Int64s:
        """The time from which an event can matter: its lower bound, if times are imprecise."""
        schema = self.plans[0].bound.schema
        return times_of(table, schema.lower or schema.time)

    def read(self, store: Store, chunks: Sequence[Chunk]) -> dict[int, pa.Table]:
        """The events of some chunks, by their number."""
        return {chunk.number: self.fitted(decoded_state(store.read(chunk.number))) for chunk in chunks}

    def fitted(self, table: pa.Table) -> pa.Table:
        """Stored events in the columns of today: queries that need more, or less, may have come."""
        if self.schema is None or table.schema.equals(self.schema):
            return table
        for column in table.schema:
            place = self.schema.get_field_index(column.name)
            if place >= 0 and labelled(self.schema.field(place).type) != labelled(column.type):
                message = f"the checkpoint holds events whose '{column.name}' is {column.type}"
                raise DataError(f"{message}, and it is {self.schema.field(place).type} now", hint="cast it as it was")
        columns = [
            table.column(column.name).cast(column.type)  # of instants, the zone may be another
            if column.name in table.column_names
            else pa.nulls(table.num_rows, column.type)
            for column in self.schema
        ]
        return pa.table(columns, schema=self.schema)

    def gathered(self, tables: dict[int, pa.Table]) -> tuple[EventTable, Int64s]:
        """All events in order, with the chunk that each lies in."""
        chunk = free_name("__chunk", next(iter(tables.values())).column_names)
        marked = [
            table.append_column(chunk, pa.array(np.full(table.num_rows, number))) for number, table in tables.items()
        ]
        events = ordered(pa.concat_tables(marked), self.plans[0].bound.schema)
        chunks = events.table.column(chunk).to_numpy()
        return replace(events, table=events.table.drop_columns([chunk])), chunks

    def found(
        self, store: Carried, events: EventTable, clock: Clock, until: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The matches that complete after the clock's time, of every query; those of SUMMARISE are only added up."""
        after = clock.until
        seen = int(np.searchsorted(events.time, until, side="right"))
        released = EventTable(events.table.slice(0, seen), events.time[:seen], events.instant[:seen])
        if self.plans[0].bound.schema.is_imprecise:  # in order of time, but released by the lower bound
            inside = pa.array(self.begins(events.table) <= until)
            released = ordered(events.table.filter(inside), self.plans[0].bound.schema)
        of_each = events_of_each([plan.bound for plan in self.plans], released)
        for number, worker_plan, plan, own in zip(self.numbers, self.shipments, self.plans, of_each, strict=True):
            known = self.known(clock, number, worker_plan)
            if known.since is not None:
                own = self.later(own, known.since)
            ended = None
            if plan.bound.output.mode is s.OutputMode.NON_OVERLAP:
                ended = read_ended(store.ended(known.place))
            elif plan.bound.summary is not None:
                totals.carry(store, known.place, plan, find_parts(plan, own, after, until))
                continue
            elif not self.may_complete(plan, own, after):
                continue
            matches = self.searched(plan, own, after, until, ended)
            if ended is not None:
                store.end(known.place, write_ended(plan, {**ended, **last_ends(plan, own, matches)}, until))
            if plan.bound.summary is not None:
                totals.carry(store, known.place, plan, parts_of(plan.bound, own, matches))
                continue
            for batch in result_batches(plan.bound, own, matches, worker_plan.schema):
                yield number, batch

    def may_complete(self, plan: Plan, own: EventTable, after: int | None) -> bool:
        """Can a match complete after a time? Most queries of many wait for an event that has not come."""
        if after is None or plan.bound.summary is not None or not can_sleep(plan):
            return True
        if not len(own) or own.time[-1] <= after:
            return False
        found, place_of = candidates(plan, own), plan.bound.place_of
        lasts = sum(1 << place_of[component.variable] for component in plan.bound.lasts)
        return bool((found.mask[found.time > after] & lasts).any())

    def searched(self, plan: Plan, own: EventTable, after: int | None, until: int, ended: Ended | None) -> Matches:
        """The matches of one query; a small search is not worth a thread of its own, nor statistics."""
        if len(own) >= MANY_EVENTS:
            return find(plan, own, after, until, ended)
        place = next(number for number, each in enumerate(self.plans) if each is plan)
        plan, brief = self.decided[place], False
        if plan.bound.is_linear_of_singles and not plan.bound.schema.is_imprecise:
            sizes = np.diff(candidates(plan, own).starts).astype(np.float64)
            brief = float((sizes ** len(plan.bound.positives)).sum()) <= BRIEF
        with briefly(brief):
            return find(plan, own, after, until, ended)

    @cached_property
    def decided(self) -> tuple[Plan, ...]:
        """The plans with the engines that they get where there are too few events to measure any."""
        nothing = np.empty(0, np.int64)
        few = EventTable(pa.table({}), nothing, nothing)
        return tuple(decide(plan, few) if plan.engine == AUTO else plan for plan in self.plans)

    def later(self, events: EventTable, since: int) -> EventTable:
        """The events after a time."""
        inside = self.begins(events.table) > since
        if inside.all():
            return events
        instant = events.instant[inside]
        ranks = np.cumsum(np.diff(instant, prepend=instant[:1]) != 0)
        return EventTable(events.table.filter(pa.array(inside)), events.time[inside], ranks)

    def stored(self, store: Store, gathered: Gathered, clock: Clock, keep: Mask, idle: Mask) -> Iterator[Chunk]:
        """The chunks after a step: those that stay, and new ones for the rest of the retained events."""
        events, chunks = gathered.events, gathered.chunks
        moving = {FRESH}
        for chunk in clock.chunks:
            if chunk.number not in gathered.read:
                yield chunk
                continue
            inside = keep & (chunks == chunk.number)
            left, resting = int(inside.sum()), int((inside & idle).sum())
            # Most of its keys fell asleep, or woke up.
            turned = 2 * resting < left if chunk.asleep else resting >= FEW and 2 * resting >= left
            if left == 0 or 2 * left < chunk.rows or chunk in gathered.joined or turned:
                moving.add(chunk.number)
                store.remove(chunk.number)
                if chunk.asleep:
                    store.remove_keys(chunk.number)
            else:
                yield chunk
        rewritten = keep & np.isin(chunks, list(moving))
        resting_there = rewritten & idle
        if resting_there.sum() < FEW:
            resting_there[:] = False
        number = 1 + max((chunk.number for chunk in clock.chunks), default=-1)
        for rows, asleep in ((rewritten & ~resting_there, False), (resting_there, True)):
            for chunk in self.written(store, number, events, rows, asleep):
                yield chunk
                number += 1

    def written(self, store: Store, number: int, events: EventTable, rows: Mask, asleep: bool) -> Iterator[Chunk]:
        """Writes some events as new chunks, numbered from `number` on."""
        table, times = events.table.filter(pa.array(rows)).combine_chunks(), events.time[rows]
        parts = max(1, -(-table.nbytes // LARGE))
        size = max(1, -(-table.num_rows // parts))
        for start in range(0, table.num_rows, size):
            part, when = table.slice(start, size), times[start : start + size]
            packed = encoded(part)
            store.write(number, packed)
            chunk = Chunk(number, part.num_rows, len(packed))
            if asleep:
                keys = packed_codes(key_codes(part, self.keys))
                store.write_keys(number, keys)
                middle, newest = int(when[len(when) // 2]), int(when[-1])
                chunk = replace(chunk, size=len(packed) + len(keys), middle=middle, newest=newest)
            yield chunk
            number += 1


def to_join(chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
    """Where there are many small chunks, those to write as one: the smallest, and larger ones up to twice their sum.

    So an event is written again only when its chunk has grown by half, and not whenever a few bytes have come.

    >>> sizes = [9000, *[10] * MANY, 25]
    >>> [chunk.size for chunk in to_join([Chunk(number, 1, size) for number, size in enumerate(sizes)])]
    [10, 10, 10, 10, 10, 10, 10, 10, 25]
    """
    small = sorted((chunk for chunk in chunks if chunk.size < SMALL), key=lambda chunk: chunk.size)
    if len(small) <= MANY:
        return ()
    count, total = 2, small[0].size + small[1].size
    while count < len(small) and small[count].size <= 2 * total:
        total += small[count].size
        count += 1
    return tuple(small[:count])


def write_ended(plan: Plan, ended: Ended, until: int) -> bytes:
    """What NON-OVERLAP carries as a table: the values of each partition, then the order key of its last end.

    An end so long ago that no later match can begin before it goes.
    """
    back = reach(plan)
    kept = [[*part, *key] for part, key in ended.items() if back is None or key[0] > until - back]
    names = [f"key{number}" for number in range(len(plan.bound.equivalence))]
    names += [f"end{number}" for number in range(1 + len(plan.bound.schema.tiebreak))]
    return encoded(pa.table({name: [row[place] for row in kept] for place, name in enumerate(names)}))


def read_ended(packed: bytes | None) -> Ended:
    """The same, read back."""
    if packed is None:
        return {}
    table = decoded_state(packed)
    keys = sum(name.startswith("key") for name in table.column_names)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return {row[:keys]: row[keys:] for row in rows}


def _rows(chunks: Sequence[Chunk]) -> int:
    return sum(chunk.rows for chunk in chunks)

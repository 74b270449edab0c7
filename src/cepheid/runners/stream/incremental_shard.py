"""The streaming step with its state in memory: what a live query runs for every event or table that is sent.

It finds what the step over stored chunks finds (state.py), and can be written as such a state: a log of the events that
a later match may need, and the clock. Beside it stands a search for each query (engine/incremental), which is made of
the same events, dropped and made again at will. So a step costs what its new events cost, and the events of keys of
which a match may have become known. Queries that no kernel goes on with search a table of these events (`_replayed`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import itemgetter

import numpy as np
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.shared import sharing
from cepheid.engine.data.table import ordered
from cepheid.engine.incremental.alike import Group, Likeness, groups_of, what_is_asked
from cepheid.engine.incremental.core import BEGINNING, Core
from cepheid.engine.incremental.intake import Intake
from cepheid.engine.incremental.linking import UNTIL
from cepheid.engine.incremental.pushed_matches import Found, PushedMatches, Replayed, joined
from cepheid.engine.incremental.result_blocks import BlockRows
from cepheid.engine.incremental.result_rows import ResultRows, is_ready
from cepheid.engine.search.incremental_events import FEW, Arrived, KeyNumbers
from cepheid.plan.explain import retained_text
from cepheid.runners.arrow_bytes import encoded
from cepheid.runners.drift import look_at_arrivals
from cepheid.runners.stream import totals
from cepheid.runners.stream.carried import Carried, Pending
from cepheid.runners.stream.carrying import Carrying, carrying, with_events
from cepheid.runners.stream.clock import Chunk, Clock
from cepheid.runners.stream.event_log import Event, EventLog, Mark
from cepheid.runners.stream.identity import Fingerprint, Known
from cepheid.runners.stream.saved import Saved
from cepheid.runners.stream.state import Outcome, StreamStep
from cepheid.runners.worker_plans import MATCHES_AT_ONCE, WorkerPlan, result_batches

LEAST = 2_000  # events after which it is worth the while to look which have expired


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
    """What is kept after a step, to go back to: a place in the log, whose events become tables only if asked for."""

    log: EventLog
    mark: Mark
    until: int | None
    newest: int | None
    ends: Mapping[int, bytes]
    above: tuple[ChunkCache, ...] = ()  # of queries that read the matches

    def __len__(self) -> int:
        return self.mark.rows + sum(map(len, self.above))

    def tables(self) -> list[pa.Table]:
        """The events."""
        return self.log.tables(self.mark)

    @property
    def nbytes(self) -> int:
        """The size of the events."""
        own: int = sum(table.nbytes for table in self.tables())
        return own + sum(each.nbytes for each in self.above)


class Resident:
    """A stream's state in memory: the clock, a log of events, and a search for each query."""

    def __init__(self, step: StreamStep, schema: pa.Schema, fingerprint: Fingerprint) -> None:
        self.step, self.schema, self.fingerprint = step, schema, fingerprint
        self.until: int | None = None  # all events up to here have been seen
        self.newest: int | None = None
        self.ends = Ends()
        self.queries: Mapping[str, Known] = fingerprint.begun()
        self.kept = 0  # events that were left when it was last looked which have expired
        self.cores: list[Core] = []
        self.groups: list[Group] = []  # the queries that each of them serves
        self.taken = np.zeros(0, bool)  # which events of the last table some query may need
        self._row_column = step.plans[0].bound.schema.row_column if step.plans else None
        self.log = EventLog(schema, lambda events: pa.Table.from_pylist(events, schema), self._row_column)
        self.carrying: dict[int, Carrying] = {}  # what queries carry besides events whose searches go on
        self._at: ChunkCache | None = None  # where it stands, unless a step was begun since
        self.lay_down(schema.empty_table(), None)
        self.carrying = {
            number: carrying(core.plan, step.shipments[number])
            for number, core in self.search_of.items()
            if core.form.gives_way
        }

    def __len__(self) -> int:
        return self.log.rows

    def read_events_by(self, as_table: Callable[[list[Event]], pa.Table]) -> None:
        """Says how dicts become a table."""
        self.log._as_table = as_table

    @property
    def shipments(self) -> tuple[WorkerPlan, ...]:
        """Those of all queries, by their numbers."""
        return self.step.shipments

    @property
    def searches(self) -> list[Core]:
        """Those of all queries, by their numbers."""
        return [self.search_of[number] for number in sorted(self.search_of)]

    def held(self) -> ChunkCache:
        """What is kept, to go back to. That costs next to nothing: no event is copied."""
        self._at = ChunkCache(self.log, self.log.mark(), self.until, self.newest, dict(self.ends.by_query))
        return self._at

    def begin(self, held: ChunkCache) -> None:
        """Begins a step from what is held: if one was begun since, and did not come to its end, it never was."""
        if self._at is not held:
            self.go_back(held)
        self._at = None

    def go_back(self, held: ChunkCache) -> None:
        """Makes everything anew that is made of the events."""
        self.until, self.newest, self.ends = held.until, held.newest, Ends(dict(held.ends))
        table = pa.concat_tables([self.schema.empty_table(), *held.tables()]).combine_chunks()
        for number, carried in self.carrying.items():
            carried.go_back(held.until)
            carried.add_up(self.search_of[number], lambda rows: table.take(pa.array(rows)))
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
            results = (*self.found(after, until), *self.closed(until))
            if len(self) > max(LEAST, 2 * self.kept):
                self.forget()
        if count and fresh is not None:
            look_at_arrivals(self.step.plans, fresh)
        return Outcome(Clock(self.until, self.newest), results, late, events=count, retained=len(self))

    # --- events -----------------------------------------------------------------------------------------------------

    def append(self, fresh: pa.Table, begins: Int64s) -> None:
        """Prepares new events, and keeps those that can take part."""
        if not fresh.num_rows:
            return
        if fresh.num_rows <= FEW or not self.intake.is_ready(fresh.num_rows):
            self.add(fresh, begins, self.read(fresh))
            return
        self.taken = wanted = self.intake.take(fresh, begins)
        if wanted.any():
            self.intake.number(self.log.rows + np.cumsum(wanted) - 1)
            self.log.add_table(fresh, None if wanted.all() else np.flatnonzero(wanted))

    def read(self, table: pa.Table) -> list[Arrived]:
        """The candidates of each query among some events; what several queries need of these is worked out once."""
        with sharing():
            return [core.read(table) for core in self.cores]

    def add(self, fresh: pa.Table, begins: Int64s, arrived: Sequence[Arrived]) -> None:
        """Keeps the candidates of a table."""
        self.taken = wanted = np.zeros(fresh.num_rows, bool)
        for each in arrived:
            wanted[each.rows] = True
        if not wanted.any():
            return
        numbers = self.log.rows + np.cumsum(wanted) - 1
        self.log.add_table(fresh, None if wanted.all() else np.flatnonzero(wanted))
        for core, each in zip(self.cores, arrived, strict=True):
            core.append(each, begins[each.rows], numbers[each.rows])

    def table(self) -> pa.Table:
        """All events that are kept, as they came."""
        return self.log.table()

    def sources(self) -> list[tuple[StreamStep, pa.Table, int | None]]:
        """What is kept of which queries' events, and up to when all of them have been seen."""
        return [(self.step, self.table(), self.until)]

    def lay_down(self, table: pa.Table, until: int | None) -> None:
        """Begins anew with these events."""
        if self._row_column is not None:
            table = table.sort_by(self._row_column)  # searches take events as they came
        self.log = EventLog(self.schema, self.log._as_table, self._row_column)
        shared: dict[tuple[str, ...], KeyNumbers] = {}
        searches: list[tuple[Group, Core]] = []
        for group in groups_of(self.step.plans, self._asked, list(map(self.known_since, range(len(self._asked))))):
            core = self._search(group, shared)
            split = core.form.replays and len(group.numbers) > 1
            searches += [(each, self._search(each, shared)) for each in group.alone()] if split else [(group, core)]
        searches.sort(key=lambda each: each[0].numbers[0])  # where each has its own, places are numbers
        self.groups, self.cores = [group for group, _ in searches], [core for _, core in searches]
        pairs = zip(self.cores, self.groups, strict=True)
        self.search_of = {number: core for core, group in pairs for number in group.numbers}
        self.intake = Intake(self.cores, list(shared.values()))
        begins = self.step.begins(table)
        arrived = self.read(table) if table.num_rows else []
        for number, (core, each) in enumerate(zip(self.cores, arrived, strict=False)):
            since = self.known_since(self.groups[number].numbers[0])
            if since is not None and bool((begins[each.rows] <= since).any()):
                later = table.filter(pa.array(begins > since))
                rows = np.flatnonzero(begins > since)
                again = core.read(later)
                arrived[number] = again._replace(rows=rows[again.rows])
        if table.num_rows:
            self.add(table, begins, arrived)
        for core in self.cores:
            core.know(BEGINNING if until is None else until)
        self.kept = len(self)

    def _search(self, group: Group, shared: dict[tuple[str, ...], KeyNumbers]) -> Core:
        return Core(group.searched, self.schema, partial(self._replayed, group.numbers[0]), shared)

    @cached_property
    def _asked(self) -> list[Likeness | None]:
        plans = self.step.plans
        return [what_is_asked(plan) for plan in plans] if len(plans) > 1 else [None] * len(plans)

    def known_since(self, number: int) -> int | None:
        """A query that came later has not been shown what was before."""
        worker_plan = self.step.shipments[number]
        return self.queries[worker_plan.name or next(iter(self.queries))].since if self.queries else None

    def forget(self) -> None:
        """Leaves out what no later match can need."""
        assert self.until is not None
        if not len(self):
            return
        self._add_up()
        for carried in self.carrying.values():
            carried.forget()
        if self.intake.can_drop(len(self)):
            needed = self.intake.needed(self.until, len(self))
            self.log.keep(needed)
            self.intake.drop(self.until, np.cumsum(needed) - 1)
            self.kept = len(self)
            return
        keep = np.zeros(len(self), bool)
        stay = []
        for core in self.cores:
            own = core.needed(self.until, self.table)
            keep[core.rows[own]] = True
            stay.append(own)
        numbers = np.cumsum(keep) - 1
        self.log.keep(keep)
        for core, own in zip(self.cores, stay, strict=True):
            core.keep(own, numbers)
        self.kept = len(self)

    # --- finding ----------------------------------------------------------------------------------------------------

    def found(self, after: int | None, until: int) -> tuple[tuple[int, pa.RecordBatch], ...]:
        """The matches that complete in the interval."""
        return tuple(self.told(self.of_queries(self.intake.step(until))))

    def of_queries(self, found: Sequence[tuple[int, list[Found]]]) -> list[tuple[int, list[Found]]]:
        """What searches found and queries report, by the number of the query."""
        if self.carrying:
            found = [(place, self._reported(place, results)) for place, results in found]
        if len(self.groups) == len(self.step.plans):
            return [each for each in found if each[1]]
        told: list[tuple[int, list[Found]]] = []
        for place, results in found:
            group = self.groups[place]
            if len(group.numbers) == 1:
                told += [(group.numbers[0], results)] if results else []
            elif results:
                pushed = joined([each for each in results if isinstance(each, PushedMatches)])
                own = group.picked(pushed, self.cores[place], self.log, self.schema)
                told += [(number, [matches]) for number, matches in own]
        return sorted(told, key=itemgetter(0))

    def _reported(self, place: int, results: list[Found]) -> list[Found]:
        """What a query reports of what its search found."""
        carried = self.carrying.get(self.groups[place].numbers[0])
        pushed = [each for each in results if isinstance(each, PushedMatches)]
        if carried is None or not pushed:
            return results
        core = self.cores[place]
        told = carried.told(joined(pushed), core, self.log, int(core.head[UNTIL]))
        others: list[Found] = [each for each in results if isinstance(each, Replayed)]
        return others if told is None else [told, *others]

    @property
    def closes(self) -> int:
        """When the next bucket of a query is over whose search goes on."""
        return min((each.totals.closes for each in self.carrying.values() if each.totals is not None), default=NEVER)

    def closed(self, until: int) -> tuple[tuple[int, pa.RecordBatch], ...]:
        """The totals of buckets that are over, of queries that ask for totals."""
        if not self.step.adds_up():
            return ()
        found, clock = list[tuple[int, pa.RecordBatch]](), Clock(until, queries=self.queries)
        for number, step in enumerate(self._alone):
            if number not in self.carrying:
                found += step.closed(self.ends, clock, until)
            elif (sums := self.carrying[number].totals) is not None:
                batches = sums.closed(self.search_of[number], self.log.take, until)
                self.carrying[number].changed |= bool(batches)
                found += [(self.step.numbers[number], batch) for batch in batches]
        return tuple(found)

    def _add_up(self) -> None:
        for number, carried in self.carrying.items():
            carried.add_up(self.search_of[number], self.log.take)

    def _place(self, number: int) -> int:
        """Under which number a state has what a query carries."""
        step = self.step
        return step.known(Clock(None, queries=self.queries), step.numbers[number], step.shipments[number]).place

    def carry_from(self, store: Carried) -> None:
        """Goes on from what a state carries for queries whose search goes on."""
        for number, carried in self.carrying.items():
            carried.read(store, self._place(number))

    def carry_to(self, store: Carried, until: int | None, every: bool = False) -> None:
        """Puts down what changed of it, or all."""
        self._add_up()
        for number, carried in self.carrying.items():
            if every or carried.changed:
                carried.write(store, self._place(number), until)
            if not every:
                carried.changed = False

    def _replayed(self, number: int, rows: Int64s, after: int, until: int) -> list[pa.RecordBatch]:
        """What the engine of a query finds in a table of some events, as the step over stored chunks does."""
        step = self._alone[number]
        events = ordered(self.log.take(np.sort(rows)), step.plans[0].bound.schema)
        clock = Clock(None if after == BEGINNING else after, queries=self.queries)
        carried = self.carrying.get(number)
        if carried is not None:
            before, place = Ends(), self._place(number)
            carried.write_ends(before, place, after)
            pending = Pending(before)
            found = [batch for _, batch in step.found(pending, events, clock, until)]
            carried.searched_again(before, pending, place, until)
            return found
        pending = Pending(self.ends)
        found = [batch for _, batch in step.found(pending, events, clock, until)]
        pending.keep()
        return found

    @cached_property
    def _alone(self) -> list[StreamStep]:
        """The step of each query by itself."""
        step = self.step
        return [
            replace(step, shipments=(worker_plan,), numbers=(number,), plans=(plan,))
            for worker_plan, number, plan in zip(step.shipments, step.numbers, step.plans, strict=True)
        ]

    def told(self, found: Sequence[tuple[int, list[Found]]]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of the results of queries."""
        made = self._made_together(found) if len(found) > 1 else {}
        for number, results in found:
            place = self.step.numbers[number]
            if number in made:
                yield place, made[number]
                continue
            pushed = [each for each in results if isinstance(each, PushedMatches)]
            yield from ((place, batch) for each in results if isinstance(each, Replayed) for batch in each.batches)
            if pushed:
                yield from ((place, batch) for batch in self._told(number, joined(pushed)))

    def _made_together(self, found: Sequence[tuple[int, list[Found]]]) -> dict[int, pa.RecordBatch]:
        """The rows of queries whose results look alike, made as one batch and cut: a batch costs more than few rows."""
        alike: dict[Hashable, list[tuple[int, PushedMatches]]] = {}
        for number, results in found:
            one = results[0]
            if self._looks[number] is not None and len(results) == 1 and isinstance(one, PushedMatches):
                alike.setdefault((self._looks[number], one.sizes is None), []).append((number, one))
        made: dict[int, pa.RecordBatch] = {}
        for each in alike.values():
            numbers, pushed = zip(*each, strict=True)
            sizes, start = [len(one.known) for one in pushed], 0
            if len(each) < 2 or sum(sizes) > MATCHES_AT_ONCE:
                continue
            (batch,) = self._told(numbers[0], joined(pushed))
            for number, size in zip(numbers, sizes, strict=True):
                made[number] = batch.slice(start, size)
                start += size
        return made

    @cached_property
    def _looks(self) -> list[int | None]:
        """A number for what the rows of each query are made of; None: they are made by themselves."""
        known: dict[Hashable, int] = {}
        found: list[int | None] = []
        for plan, worker_plan in zip(self.step.plans, self.step.shipments, strict=True):
            bound = plan.bound
            events = tuple((each.variable, each.kleene) for each in bound.positives)
            shown = repr(bound.returns), worker_plan.schema, repr(worker_plan.plan.bound.schema)
            plain = bound.summary is None and bound.forecast is None and not plan.is_lossy
            look = (events, bound.is_linear, *shown)
            found.append(known.setdefault(look, len(known)) if plain else None)
        return found

    @cached_property
    def rows_of(self) -> list[ResultRows | None]:
        """What makes the rows of each query that shows the events of its matches as they are."""
        found: list[ResultRows | None] = []
        for plan, worker_plan in zip(self.step.plans, self.step.shipments, strict=True):
            bound, groups = plan.bound, [each.kleene for each in plan.bound.positives]
            names = worker_plan.plan.bound.schema.whole_names
            own = None
            if bound.returns is None and bound.summary is None:
                own = ResultRows(self.schema, worker_plan.schema, bound.schema.time, names, groups, bound.is_linear)
            found.append(own if own is not None and own.fits else None)
        return found

    @property
    def tells_as_found(self) -> bool:
        """Are matches rows of the result as the search finds them: do no others decide on them, and has it no name?"""
        return len(self.step.plans) == 1 and self.step.shipments[0].name is None and not self.carrying

    @cached_property
    def blocks(self) -> BlockRows | None:
        """What makes small results, where matches are told as they are found."""
        rows = self.rows_of[0] if self.tells_as_found else None
        return None if rows is None else BlockRows(rows, self.cores[0].sized)

    def small_table(self) -> pa.Table | None:
        """What the search of the only query has found, if that is little; None: it is made in another way."""
        if self.blocks is None:
            return None
        core = self.cores[0]
        if core.form.by_queues:
            return self.blocks.table(self.log.places(), core.at, core.chances())
        return self.blocks.table(self.log.places(), core.at)

    def batch_of(self, number: int, results: Sequence[Found]) -> pa.RecordBatch | None:
        """The rows of the result of a query that a kernel makes at once; None: they are made in another way."""
        rows_of, pushed = self.rows_of[number], results[0]
        if len(results) > 1 or rows_of is None or type(pushed) is not PushedMatches:
            return None
        if len(pushed.known) > MATCHES_AT_ONCE or not is_ready(len(pushed.events)):
            return None
        return rows_of.batch(self.log.places(), pushed)

    def _told(self, number: int, pushed: PushedMatches) -> Sequence[pa.RecordBatch]:
        """The rows of the result of a query."""
        plan, worker_plan = self.step.plans[number], self.step.shipments[number]
        batch = self.batch_of(number, [pushed])
        if batch is not None:
            return [batch]
        # Few of the events are in matches: only these are taken out of the log.
        events, matches = with_events(plan, self.search_of[number].matches(pushed), self.log.take)
        return list(result_batches(plan.bound, events, matches, worker_plan.schema))

    # --- keeping ----------------------------------------------------------------------------------------------------

    def save(self) -> bytes:
        """The state as an Arrow table of what a shard on Spark keeps: the clock, chunks of events, and ends."""
        if self.until is not None:
            self.forget()
        packed = encoded(self.table().combine_chunks())
        chunks = (Chunk(0, len(self), len(packed)),) if len(self) else ()
        clock = Clock(self.until, self.newest, None, chunks, queries=self.queries).text(self.fingerprint)
        carried = Ends(dict(self.ends.by_query))
        self.carry_to(carried, self.until, every=True)
        return Saved(json.loads(clock), {chunk.number: packed for chunk in chunks}, carried.by_query).packed()

    def restore(self, state: bytes) -> None:
        """Goes on from a state that was saved by the same query over the same columns."""
        saved = Saved.read(state)
        clock = Clock.read(json.dumps(saved.clock), self.fingerprint)
        self.until, self.newest, self.queries = clock.until, clock.newest, clock.queries
        gone = {*clock.gone, *map(totals.slot, clock.gone)}
        carried = Ends({place: ended for place, ended in saved.ended.items() if place not in gone})
        self.carry_from(carried)
        own = {self._place(number) for number in self.carrying}
        own |= {totals.slot(place) for place in own}
        self.ends = Ends({place: ended for place, ended in carried.by_query.items() if place not in own})
        tables = [self.step.fitted(table) for table in saved.events()]
        self.lay_down(pa.concat_tables([self.schema.empty_table(), *tables]).combine_chunks(), clock.until)

    def finish(self) -> Outcome:
        """The end of time: what is decided by nothing coming any more."""
        outcome = self.take(None, NEVER)
        self.until = NEVER
        return replace(outcome, retained=0)


def how_it_is_searched(search: Core) -> list[str]:
    """Says when a call searches which events again: by kernels, or by the engine, and why."""
    form = search.form
    moments = form.moments
    when = "for which an event came that may end a match" if moments.ends else "with a first event"
    if moments.deadline:
        when = f"{when}, or whose window has passed" if moments.ends else f"{when} whose window has passed"
    if not form.replays:
        return [f"incremental: a call searches the keys {when}"]
    told = retained_text(form.plan)
    if moments.always:
        return [f"replayed: every call searches again {told}", f"because {form.why}"]
    return [f"replayed: a call searches again {told}, of the keys {when}", f"because {form.why}"]

"""The streaming step with searches that go on where they stopped (engine/incremental), in memory.

A step costs what its new events cost, and the events of keys of which a match may have come to its end. What is saved
are the events alone: all else is made again from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.matches import MISSING, NEVER, Chosen, Matches
from cepheid.engine.data.shared import sharing
from cepheid.engine.data.table import EventTable, times_of
from cepheid.engine.incremental.core import BEGINNING, Core
from cepheid.engine.incremental.intake import Intake
from cepheid.engine.search.incremental_events import FEW, Arrived, KeyNumbers
from cepheid.runners.stream.event_log import Event, EventLog, Mark
from cepheid.runners.stream.identity import Fingerprint
from cepheid.runners.stream.incremental_shard import ChunkCache, Ends, Resident
from cepheid.runners.stream.shown_events import shown_at_once
from cepheid.runners.stream.state import Outcome, StreamStep
from cepheid.runners.worker_plans import MATCHES_AT_ONCE, WorkerPlan, result_batches

MOST_HELD = 50  # rows of tables that lie in memory for each event that is kept


@dataclass(frozen=True)
class HeldLog(ChunkCache):
    """What is kept after a step: a place in the log, whose events become tables only if somebody asks for them."""

    log: EventLog | None = None
    mark: Mark | None = None

    def tables(self) -> list[pa.Table]:
        """The events."""
        assert self.log is not None
        assert self.mark is not None
        return self.log.tables(self.mark)

    @property
    def nbytes(self) -> int:
        """The size of the events."""
        return sum(table.nbytes for table in self.tables())


class ResidentIncremental(Resident):
    """A stream's state in memory: a log of events, and a search for each query."""

    def __init__(self, step: StreamStep, schema: pa.Schema, fingerprint: Fingerprint) -> None:
        self.cores: list[Core] = []
        self.taken = np.zeros(0, bool)  # which events of the last table some query may need
        self.log = EventLog(schema, lambda events: pa.Table.from_pylist(events, schema))
        super().__init__(step, schema, fingerprint)

    def read_events_by(self, as_table: Callable[[list[Event]], pa.Table]) -> None:
        """Says how dicts become a table."""
        self.log._as_table = as_table

    def __len__(self) -> int:
        return self.log.rows

    def held(self) -> ChunkCache:
        """What is kept, to go back to."""
        mark = self.log.mark()
        ends = dict(self.ends.by_query)
        self._at = HeldLog((), 0, mark.rows, self.until, self.newest, ends, log=self.log, mark=mark)
        return self._at

    def go_back(self, held: ChunkCache) -> None:
        """Makes everything anew that is made of the events."""
        assert isinstance(held, HeldLog)
        self.until, self.newest, self.ends = held.until, held.newest, Ends(dict(held.ends))
        table = pa.concat_tables([self.schema.empty_table(), *held.tables()]).combine_chunks()
        self.lay_down(table, held.until)

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

    def lay_down(self, table: pa.Table, until: int | None) -> None:
        """Begins anew with these events."""
        self.log = EventLog(self.schema, self.log._as_table)
        shared = {plan.partition: KeyNumbers(plan.partition) for plan in self.step.plans if plan.partition}
        self.cores = [Core(plan, shared.get(plan.partition)) for plan in self.step.plans]
        self.intake = Intake(self.cores, list(shared.values()))
        begins = self.step.begins(table)
        arrived = self.read(table) if table.num_rows else []
        for number, (core, each) in enumerate(zip(self.cores, arrived, strict=False)):
            since = self.known_since(number)
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

    def known_since(self, number: int) -> int | None:
        """A query that came later has not been shown what was before."""
        worker_plan = self.step.shipments[number]
        return self.queries[worker_plan.name or next(iter(self.queries))].since if self.queries else None

    def forget(self) -> None:
        """Leaves out what no later match can need."""
        assert self.until is not None
        if not len(self):
            return
        if self.intake.is_ready(len(self)) and self.intake.can_drop():
            needed = self.intake.needed(self.until, len(self))
            self.log.keep(needed)
            self.intake.drop(np.cumsum(needed) - 1)
            self.kept = len(self)
            return
        keep = np.zeros(len(self), bool)
        stay = []
        for core in self.cores:
            own = core.needed(self.until)
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
        found: dict[int, Matches] = {}
        for number, core in enumerate(self.cores):
            pushed = core.step(until)
            if pushed:
                found[number] = core.matches(pushed)
        return tuple(self.told(found))

    def told(self, found: Mapping[int, Matches]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of the results of queries."""
        at_once = shown_at_once(self.log, self.schema, found, self.step.shipments)
        for number, matches in found.items():
            if number in at_once:
                yield self.step.numbers[number], at_once[number]
            else:
                yield from self._told(number, matches)

    def _told(self, number: int, matches: Matches) -> list[tuple[int, pa.RecordBatch]]:
        """The rows of the result of a query."""
        plan, worker_plan = self.step.plans[number], self.step.shipments[number]
        place = self.step.numbers[number]
        if plan.bound.returns is None and len(matches) <= MATCHES_AT_ONCE:
            batch = self._events_of(worker_plan, matches)
            if batch is not None:
                return [(place, batch)]
        # Few of the events are in matches: only these are taken out of the log.
        rows = np.unique(np.concatenate([chosen.rows for chosen in matches.chosen]))
        rows = rows[rows != MISSING]
        events = self.log.take(rows)
        order = np.argsort(self.step.begins(events), kind="stable")  # they lie as they came
        places = np.empty(len(rows), np.int64)
        places[order] = np.arange(len(rows))
        renumbered = tuple(Chosen(_places(rows, places, chosen.rows), chosen.offsets) for chosen in matches.chosen)
        in_order = EventTable(events.take(pa.array(order)), order, order)
        found = result_batches(plan.bound, in_order, replace(matches, chosen=renumbered), worker_plan.schema)
        return [(place, batch) for batch in found]

    def _events_of(self, worker_plan: WorkerPlan, matches: Matches) -> pa.RecordBatch | None:
        """The rows of matches that are shown as their events; None if the result has other types than the events."""
        names, clock = worker_plan.plan.bound.schema.names, worker_plan.plan.bound.schema.time
        chosen = [each.rows[each.rows != MISSING] for each in matches.chosen]
        kind = self.schema.field(clock).type
        if kind != pa.int64() and not pa.types.is_timestamp(kind):
            return None
        taken = dict(zip(self.schema.names, self.log.arrays(np.concatenate(chosen)), strict=True))
        columns = [taken[name] for name in names]
        times = times_of(pa.table({clock: taken[clock]}), clock)
        first, last = np.full(len(matches), NEVER), np.full(len(matches), BEGINNING)
        shown, start = [], 0
        for each, rows in zip(matches.chosen, chosen, strict=True):
            own, when = [column.slice(start, len(rows)) for column in columns], times[start : start + len(rows)]
            start += len(rows)
            inside, begins, ends = slice(None), when, when
            if each.offsets is not None:
                if not np.diff(each.offsets).all():
                    return None
                begins, ends = when[each.offsets[:-1]], when[each.offsets[1:] - 1]
                offsets = pa.array(each.offsets, pa.int32())
                shown.append(pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(own, names)))
            elif len(rows) < len(matches):
                there = each.rows != MISSING
                places = pa.array(np.cumsum(there) - 1, mask=~there)
                inside, own = there, [column.take(places) for column in own]
                shown.append(pa.StructArray.from_arrays(own, names, mask=pa.array(~there)))
            else:
                shown.append(pa.StructArray.from_arrays(own, names))
            first[inside] = np.minimum(first[inside], begins)
            last[inside] = np.maximum(last[inside], ends)
        arrays = [*(pa.array(each, pa.int64()).view(kind) for each in (first, last)), *shown]
        if [array.type for array in arrays] != worker_plan.schema.types:
            return None
        return pa.RecordBatch.from_arrays(arrays, schema=worker_plan.schema)

    def finish(self) -> Outcome:
        """The end of time: what is decided by nothing coming any more."""
        outcome = self.take(None, NEVER)
        self.until = NEVER
        return replace(outcome, retained=0)


def _places(rows: Int64s, places: Int64s, chosen: Int64s) -> Int64s:
    """The places of chosen rows among some rows, which are in order."""
    found: Int64s = places[np.minimum(np.searchsorted(rows, chosen), len(rows) - 1)]
    return np.where(chosen == MISSING, MISSING, found)

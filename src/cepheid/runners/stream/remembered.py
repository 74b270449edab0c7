"""A streaming step that goes on with the search of the step before, where this process still has it.

The state in the store stays what it is: chunks of retained events and the clock (state.py). Beside it, a process may
remember the search that has seen them (`Store.remembered`); whoever keeps the store hands it out only with the very
state that it belongs to. Such a step costs what its new events cost, however long the window is: chunks are removed,
or written anew, by the times of their events, and none is read to be searched again. Where nothing is remembered, the
search is made again from the chunks. Nothing here knows Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from cepheid.engine.data.table import ordered
from cepheid.engine.incremental.queries import refusal
from cepheid.engine.retention import reach
from cepheid.remembered import Remembered
from cepheid.runners.stream import totals
from cepheid.runners.stream.budget import Budget
from cepheid.runners.stream.clock import Chunk, Clock
from cepheid.runners.stream.identity import Fingerprint
from cepheid.runners.stream.incremental import SEARCH, Stepper
from cepheid.runners.stream.incremental_shard import Resident
from cepheid.runners.stream.state import Outcome, Store, StreamStep, to_join

MOST_BYTES = 32 << 20  # of retained events; a search over more takes too much memory beside them


_GOING_ON = Remembered[bool](most=16)  # of steps, whether their searches can go on


@dataclass
class RememberedSearch:
    """A search that has seen all events of a state, and when the events of each chunk lie."""

    search: Resident
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)  # the times of the middle event and of the last


def run_step(step: Stepper, clock: Clock, store: Store, fresh: Sequence[pa.Table], newest: int | None) -> Outcome:
    """A step with the search that is remembered or, where it cannot go on, over the retained events."""
    if not isinstance(step, StreamStep):
        return step.run(clock, store, fresh, newest)
    found = store.remembered.pop(SEARCH, None)
    if not fits(clock) or not (found or _GOING_ON.of(step, lambda: goes_on(step))):
        return step.run(clock, store, fresh, newest)
    remembered = rebuilt(step, clock, store) if found is None else found
    return run_remembered(step, clock, store, fresh, newest, remembered)


def fits(clock: Clock) -> bool:
    """Are there so few retained events that a search can lie in memory beside them?"""
    return sum(chunk.size for chunk in clock.chunks) <= MOST_BYTES


def goes_on(step: StreamStep) -> bool:
    """Can the search of a step go on, and do times alone say which events it needs?"""
    if not step.plans or step.schema is None or step.dedupe or step.budget != Budget():
        return False
    return all(reach(plan) is not None and refusal(plan, step.schema) is None for plan in step.plans)


def rebuilt(step: StreamStep, clock: Clock, store: Store) -> RememberedSearch:
    """The search that has seen the events of the store."""
    assert step.schema is not None
    tables = step.read(store, clock.chunks)
    search = Resident(step, step.schema, Fingerprint(1))
    search.until, search.newest, search.queries = clock.until, clock.newest, clock.queries
    search.lay_down(pa.concat_tables([step.schema.empty_table(), *tables.values()]).combine_chunks(), clock.until)
    search.carry_from(store)
    spans = {}
    for number, table in tables.items():
        times = np.sort(step.begins(table))
        spans[number] = int(times[len(times) // 2]), int(times[-1])
    return RememberedSearch(search, spans)


def run_remembered(
    step: StreamStep,
    clock: Clock,
    store: Store,
    fresh: Sequence[pa.Table],
    newest: int | None,
    remembered: RememberedSearch,
) -> Outcome:
    """The step, and what is remembered after it."""
    newest, until = clock.moved(newest, step.delay)
    arrived, late = step.in_time(pa.concat_tables(fresh) if fresh else None, clock.until)
    count = sum(table.num_rows for table in fresh)
    for place in clock.gone:
        store.forget(place)
        store.forget(totals.slot(place))
    search = remembered.search
    results = search.take(None if arrived is None else step.fitted(arrived), until).results
    search.carry_to(store, until)
    chunks = tuple(stored(step, clock, store, arrived, until, remembered))
    matches, behind = sum(batch.num_rows for _, batch in results), 0 if late is None else late.num_rows
    after = replace(clock, newest=newest, until=until, steps=clock.steps + 1, gone=(), chunks=chunks)
    after = replace(after, found=clock.found + matches, used=clock.used + count - behind)
    store.remembered[SEARCH] = remembered
    told = Outcome(after, results, late, events=count, retained=sum(chunk.rows for chunk in chunks))
    return replace(told, used_by=step.used_by(arrived), late_by=step.used_by(late))


def stored(
    step: StreamStep,
    clock: Clock,
    store: Store,
    arrived: pa.Table | None,
    until: int | None,
    remembered: RememberedSearch,
) -> Iterator[Chunk]:
    """The chunks after a step: those that stay, and new ones for new events and for chunks half of which has gone."""
    schema, spans = step.plans[0].bound.schema, remembered.spans
    gone = None if until is None else step.gone(until)
    joined, moving = to_join(clock.chunks), list[Chunk]()
    for chunk in clock.chunks:
        middle, last = spans[chunk.number]
        if gone is not None and last <= gone:
            removed(store, chunk, spans)
        elif chunk in joined or (gone is not None and middle <= gone):
            moving.append(chunk)
        else:
            yield chunk
    tables = list(step.read(store, moving).values())
    for chunk in moving:
        removed(store, chunk, spans)
    new = taking_part(step, arrived, remembered.search)
    if new is not None and new.num_rows:
        tables.append(new)
    if not tables:
        return
    events = ordered(pa.concat_tables(tables), schema)
    keep = np.ones(len(events), bool) if gone is None else events.time > gone
    number, at = 1 + max((chunk.number for chunk in clock.chunks), default=-1), 0
    times = events.time[keep]
    for chunk in step.written(store, number, events, keep, asleep=False):
        own = times[at : at + chunk.rows]
        spans[chunk.number] = int(own[len(own) // 2]), int(own[-1])
        at += chunk.rows
        yield chunk


def removed(store: Store, chunk: Chunk, spans: dict[int, tuple[int, int]]) -> None:
    """Takes a chunk out of the store."""
    del spans[chunk.number]
    store.remove(chunk.number)
    if chunk.asleep:
        store.remove_keys(chunk.number)


def taking_part(step: StreamStep, arrived: pa.Table | None, search: Resident) -> pa.Table | None:
    """Those of some new events, which the search has taken in, that some query may need."""
    if arrived is None or not arrived.num_rows or any(plan.scan.every_event for plan in step.plans):
        return arrived
    return arrived if search.taken.all() else arrived.filter(pa.array(search.taken))

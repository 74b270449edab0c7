"""Queries over the matches of others in one step: what one finds, the next takes in, with no sink in between.

A level knows that all its events up to a time have come from the watermarks of what it reads: a match is known no
later than a window after its end, and most at their end. Its retained matches lie in the same state, apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from cepheid.runners.composition import matches_as_events, united
from cepheid.runners.options import Options
from cepheid.runners.stream import totals
from cepheid.runners.stream.clock import Clock
from cepheid.runners.stream.identity import Known
from cepheid.runners.stream.incremental import Stepper
from cepheid.runners.stream.remembered import run_step
from cepheid.runners.stream.state import Outcome, Store, StreamStep

APART = 1 << 40  # numbers of chunks between one level and the next


@dataclass(frozen=True)
class Level:
    """A query that reads the matches of others."""

    name: str
    sources: tuple[tuple[str, int], ...]  # the names of those, and their numbers
    step: StreamStep  # its `delay` is how long after their end those matches may become known
    options: Options
    lateness: tuple[int, ...] = ()  # the same of each source, by the source's clock, where `delay` is by the events'


@dataclass(frozen=True)
class StoreApart:
    """The chunks of one level, in the store of all."""

    store: Store
    base: int

    @property
    def remembered(self) -> dict[int, Any]:
        """What this process remembers of the level."""
        own: dict[int, Any] = self.store.remembered.setdefault(self.base, {})
        return own

    def read(self, number: int) -> bytes:
        """The chunk of a number."""
        return self.store.read(self.base + number)

    def write(self, number: int, chunk: bytes) -> None:
        """Puts a chunk under a number."""
        self.store.write(self.base + number, chunk)

    def remove(self, number: int) -> None:
        """Forgets a chunk."""
        self.store.remove(self.base + number)

    def keys(self, number: int) -> bytes:
        """The codes of the keys in a chunk."""
        return self.store.keys(self.base + number)

    def write_keys(self, number: int, keys: bytes) -> None:
        """Puts down the codes of the keys in a chunk."""
        self.store.write_keys(self.base + number, keys)

    def remove_keys(self, number: int) -> None:
        """Forgets the codes of a chunk."""
        self.store.remove_keys(self.base + number)

    def ended(self, query: int) -> bytes | None:
        """Where the last matches of a query ended."""
        return self.store.ended(self.base + query)

    def end(self, query: int, ended: bytes) -> None:
        """Puts down where the last matches of a query ended."""
        self.store.end(self.base + query, ended)

    def forget(self, query: int) -> None:
        """A query is no longer there."""
        self.store.forget(self.base + query)


def run_composed(
    step: Stepper, levels: Sequence[Level], clock: Clock, store: Store, fresh: Sequence[pa.Table], newest: int | None
) -> Outcome:
    """A step of the queries that read events, and of those that read their matches, level by level."""
    outcome = run_step(step, clock, store, fresh, newest)
    results, clocks, retained = list(outcome.results), going_on(levels, clock, store), outcome.retained
    # Up to when the matches of each query are known.
    known: dict[int, int | None] = dict.fromkeys(step.numbers, outcome.clock.until)
    for level in levels:
        names = {number: name for name, number in level.sources}
        came = [
            matches_as_events(names[number], pa.Table.from_batches([batch]), level.options)
            for number, batch in results
            if number in names
        ]
        schema = level.step.schema
        assert schema is not None
        come = [united([schema.empty_table(), *came]).select(schema.names).cast(schema)] if came else []
        until = [known[number] for number in names]
        late = level.lateness or (level.step.delay,) * len(until)
        passed = [each - own for each, own in zip(until, late, strict=True) if each is not None]
        seen = None if len(passed) < len(until) else min(passed) + level.step.delay + 1
        before = clocks[level.name]
        below = run_step(level.step, before, StoreApart(store, before.apart * APART), come, seen)
        clocks[level.name] = replace(below.clock, queries=before.queries)
        known[level.step.numbers[0]] = below.clock.until
        results += below.results
        retained += below.retained
    return replace(outcome, clock=replace(outcome.clock, levels=clocks), results=tuple(results), retained=retained)


def going_on(levels: Sequence[Level], clock: Clock, store: Store) -> dict[str, Clock]:
    """The clocks of the levels. Those that begin anew read the matches that come out from now on; what they kept, and
    what those that are gone kept, is forgotten."""
    stay, places = staying(levels, clock), places_of(clock)
    for name, old in clock.levels.items():
        if name not in stay:
            forget(old, StoreApart(store, places[name] * APART))
    free, found = 1 + max(places.values(), default=0), {}
    for level in levels:
        place = places[level.name] if level.name in stay else free
        free += level.name not in stay
        own = clock.levels[level.name] if level.name in stay else Clock()
        known = own.queries or {level.name: Known(level.step.numbers[0], {})}
        found[level.name] = replace(own, apart=place, queries=known)
    return found


def staying(levels: Sequence[Level], clock: Clock) -> set[str]:
    """The levels that go on: they are the same, and so is what they read."""
    begun, found = set(clock.begun), set()
    for level in levels:
        if level.name in clock.levels and not begun & {level.name, *(name for name, _ in level.sources)}:
            found.add(level.name)
        else:
            begun.add(level.name)
    return found


def places_of(clock: Clock) -> dict[str, int]:
    """Where the chunks of each level lie; earlier versions laid them down in the order of the levels."""
    return {name: each.apart or place for place, (name, each) in enumerate(clock.levels.items(), 1)}


def forget(clock: Clock, store: StoreApart) -> None:
    """Removes what a level kept."""
    for chunk in clock.chunks:
        store.remove(chunk.number)
        if chunk.asleep:
            store.remove_keys(chunk.number)
    for known in clock.queries.values():
        store.forget(known.place)
        store.forget(totals.slot(known.place))

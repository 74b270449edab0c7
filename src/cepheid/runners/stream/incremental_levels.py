"""Queries over the matches of others in memory: what one finds, the next takes in (composed.py, without a store)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from cepheid.engine.choose import make_plan
from cepheid.engine.data.matches import NEVER
from cepheid.engine.incremental.core import Core
from cepheid.errors import CepheidError
from cepheid.language.schema import Schema
from cepheid.runners.composition import (
    events_schema,
    lateness,
    matches_as_events,
    options_of_matches,
    united,
)
from cepheid.runners.options import Options
from cepheid.runners.stream.clock import Clock
from cepheid.runners.stream.composed import APART, Level, places_of, staying
from cepheid.runners.stream.identity import Fingerprint, fingerprint
from cepheid.runners.stream.incremental_shard import ChunkCache, Resident
from cepheid.runners.stream.saved import Saved
from cepheid.runners.stream.state import Outcome, StreamStep
from cepheid.runners.worker_plans import WorkerPlan, ship_here


class ResidentLevels(Resident):
    """Queries that read events, and above them those that read their matches, level by level."""

    def __init__(self, step: StreamStep, schema: pa.Schema, known: Fingerprint, levels: Sequence[Level]) -> None:
        super().__init__(step, schema, known)
        self.levels = [(level, _resident(level)) for level in levels]

    @property
    def shipments(self) -> tuple[WorkerPlan, ...]:
        """Those of all queries, by their numbers."""
        return (*self.step.shipments, *(level.step.shipments[0] for level, _ in self.levels))

    @property
    def searches(self) -> list[Core]:
        """Those of all queries, by their numbers."""
        return [*super().searches, *(core for _, above in self.levels for core in above.searches)]

    def held(self) -> ChunkCache:
        """What all levels keep, to go back to."""
        self._at = replace(super().held(), above=tuple(above.held() for _, above in self.levels))
        return self._at

    def go_back(self, held: ChunkCache) -> None:
        """Makes everything anew that is made of the events and the matches."""
        super().go_back(held)
        for (_, above), own in zip(self.levels, held.above, strict=True):
            above.go_back(own)

    def sources(self) -> list[tuple[StreamStep, pa.Table, int | None]]:
        """What is kept of the events of all levels."""
        return [*super().sources(), *(source for _, above in self.levels for source in above.sources())]

    def take(self, fresh: pa.Table | None, until: int | None = None) -> Outcome:
        """Takes in new events; their matches are events for the levels above."""
        outcome = super().take(fresh, until)
        results, retained = list(outcome.results), outcome.retained
        known: dict[int, int | None] = dict.fromkeys(self.step.numbers, self.until)
        for level, above in self.levels:
            names = {number: name for name, number in level.sources}
            came = [
                matches_as_events(names[number], pa.Table.from_batches([batch]), level.options)
                for number, batch in results
                if number in names
            ]
            come = None
            if came:
                come = united([above.schema.empty_table(), *came]).select(above.schema.names).cast(above.schema)
            told = [(known[number], late) for number, late in zip(names, level.lateness, strict=True)]
            passed = [each if each == NEVER else each - late for each, late in told if each is not None]
            found = above.take(come, min(passed) if len(passed) == len(told) else None)
            known[level.step.numbers[0]] = above.until
            results += found.results
            retained += found.retained
        return replace(outcome, results=tuple(results), retained=retained)

    def save(self) -> bytes:
        """The state of all levels in one, as a shard on Spark would lay it down."""
        saved = Saved.read(super().save())
        clock, chunks, ended = dict(saved.clock), dict(saved.chunks), dict(saved.ended)
        clock["levels"] = {}
        for place, (level, above) in enumerate(self.levels, 1):
            own = Saved.read(above.save())
            kept = {key: value for key, value in own.clock.items() if key in _OF_LEVEL}
            clock["levels"][level.name] = {**kept, "queries": {}, "levels": {}}
            chunks |= {place * APART + number: chunk for number, chunk in own.chunks.items()}
            ended |= {place * APART + number: each for number, each in own.ended.items()}
        return Saved(clock, chunks, ended).packed()

    def restore(self, state: bytes) -> None:
        """Goes on from a state that was saved by the same queries."""
        saved = Saved.read(state)
        clock = Clock.read(json.dumps(saved.clock), self.fingerprint)
        own = {**saved.clock, "levels": {}}
        super().restore(Saved(own, _between(saved.chunks, 0), _between(saved.ended, 0)).packed())
        stay, places = staying([level for level, _ in self.levels], clock), places_of(clock)
        for level, above in self.levels:
            if level.name in stay:
                place = places[level.name]
                text = replace(clock.levels[level.name], apart=0, queries=above.queries).text(above.fingerprint)
                parts = _between(saved.chunks, place), _between(saved.ended, place)
                above.restore(Saved(json.loads(text), *parts).packed())


_OF_LEVEL = ("until", "newest", "arrived", "chunks", "steps", "used", "found")


def _between(parts: Mapping[int, bytes], place: int) -> dict[int, bytes]:
    """The parts of one level, as it numbers them: events and ends from 0 on, sums below (totals.py)."""
    own = {number - place * APART: part for number, part in parts.items()}
    return {number: part for number, part in own.items() if -APART // 2 <= number < APART // 2}


def _resident(level: Level) -> Resident:
    schema = level.step.schema
    assert schema is not None
    return Resident(level.step, schema, fingerprint(level.step.shipments, 1))


def local_levels(queries: Mapping[str, Any], shipments: Sequence[WorkerPlan], options: Options) -> list[Level]:
    """The levels of queries that read others' matches, in an order in which each comes after what it reads."""
    if options.lower is not None or options.existence is not None:
        raise CepheidError("in a live query, FROM needs matches of events with exact times", hint="match a table")
    known = {worker_plan.name or "": worker_plan for worker_plan in shipments}
    numbers = {name: number for number, name in enumerate(known)}
    own, levels = options_of_matches(options), []
    behind = dict.fromkeys(known, 0)  # how far the clock of a query is behind that of the events
    for name, query in queries.items():
        sources = query.sources
        schema = events_schema({source: known[source].schema for source in sources}, options)
        plan, _ = make_plan(query.bind(Schema.from_arrow(schema, **own.roles())), None, own)
        why = plan.exchange.retention.for_ever
        if why is not None:
            raise CepheidError(f"query '{name}' cannot run live: {why}", hint="add WITHIN, or match a table")
        late = [each for each in (lateness(known[source].plan) for source in sources) if each is not None]
        if len(late) < len(sources):
            raise CepheidError(f"the delay of the matches that '{name}' reads depends on the number of events")
        worker_plan = ship_here(plan, schema, name)
        narrow = pa.schema([column for column in schema if column.name in worker_plan.plan.bound.schema.names])
        number = numbers[name] = len(numbers)
        behind[name] = max(behind[source] + each for source, each in zip(sources, late, strict=True))
        step = StreamStep((worker_plan,), (number,), behind[name], plans=(worker_plan.plan,), schema=narrow)
        levels.append(Level(name, tuple((source, numbers[source]) for source in sources), step, options, tuple(late)))
        known[name] = worker_plan
    return levels

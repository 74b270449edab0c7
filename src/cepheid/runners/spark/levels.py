"""Queries over the matches of others in a Spark stream: each runs in the shards of what it reads (FROM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from cepheid.engine.choose import make_plan
from cepheid.errors import CepheidError
from cepheid.language.checked import CheckedQuery
from cepheid.language.schema import Schema
from cepheid.plan.physical import Plan
from cepheid.runners.composition import events_schema, lateness, options_of_matches, returned_keys
from cepheid.runners.options import Options
from cepheid.runners.spark.worker_plan import ship
from cepheid.runners.stream.composed import Level
from cepheid.runners.stream.state import StreamStep
from cepheid.runners.worker_plans import WorkerPlan


@dataclass(frozen=True)
class Source:
    """A query whose matches others read."""

    schema: pa.Schema  # of its result
    lateness: int | None  # how long after its end a match may become known; None: it cannot be said
    keys: tuple[str, ...]  # what partitions its events
    returned: tuple[str, ...] | None  # the names under which it returns those; None: it does not return one
    number: int
    group: int = 0  # which of the states it runs in
    behind: int = 0  # how far its clock is behind that of the events

    @classmethod
    def of_plan(cls, worker_plan: WorkerPlan, number: int, group: int, keys: Sequence[str] | None = None) -> Source:
        """A query of query text; `keys` partition what it reads, unless that is events."""
        plan = worker_plan.plan
        keys = tuple(plan.exchange.keys if keys is None else keys)
        return cls(worker_plan.schema, lateness(plan), keys, returned_keys(plan, keys), number, group)


def levels_of(
    composed: Mapping[str, CheckedQuery], sources: Mapping[str, Source], spread: Sequence[bool], options: Options
) -> list[list[Level]]:
    """For each group of queries that share a state, those that read their matches, in order.

    `spread` says of each group whether it may have several shards.
    """
    found: list[list[Level]] = [[] for _ in spread]
    if not composed:
        return found
    if options.lower is not None or options.uncertainty is not None or options.existence is not None:
        raise CepheidError("on a stream, FROM needs matches of events with exact times", hint="match a batch")
    known, reading = dict(sources), options_of_matches(options)
    for name, query in composed.items():
        read = [known[source] for source in query.sources]
        group = read[0].group
        if any(each.group != group for each in read):
            raise CepheidError(f"query '{name}' reads queries with different keys", hint="give them the same")
        schema = events_schema({source: known[source].schema for source in query.sources}, options)
        plan = make_plan(query.bind(Schema.from_arrow(schema, **reading.roles())), None, reading, decide_later=True)[0]
        _check_level(name, plan, read, spread[group])
        worker_plan = ship(plan, schema, name)
        narrow = pa.schema([column for column in schema if column.name in worker_plan.plan.bound.schema.names])
        late = tuple(each.lateness or 0 for each in read)
        behind = max(each.behind + own for each, own in zip(read, late, strict=True))
        step = StreamStep((worker_plan,), (len(known),), behind, schema=narrow)
        level = Level(name, tuple((source, known[source].number) for source in query.sources), step, options, late)
        found[group].append(level)
        source = Source.of_plan(worker_plan, len(known), group, read[0].returned or ())
        known[name] = replace(source, behind=behind)
    ordered = [level for of_group in found for level in of_group]
    numbers = {name: source.number for name, source in sources.items()}
    numbers |= {level.name: len(sources) + place for place, level in enumerate(ordered)}
    return [[_renumbered(level, numbers) for level in of_group] for of_group in found]


def _renumbered(level: Level, numbers: Mapping[str, int]) -> Level:
    step = replace(level.step, numbers=(numbers[level.name],))
    return replace(level, step=step, sources=tuple((name, numbers[name]) for name, _ in level.sources))


def _check_level(name: str, plan: Plan, sources: Sequence[Source], spread: bool) -> None:
    """Does everything that a query reads lie where it runs, and is it known when all of it has come?"""
    why = plan.exchange.retention.for_ever
    if why is not None:
        raise CepheidError(f"query '{name}' cannot run on a stream: {why}", hint="add WITHIN, or match a batch")
    for source in sources:
        if source.lateness is None:
            raise CepheidError(f"the delay of the matches that '{name}' reads depends on the number of events")
        if spread and (source.returned is None or not set(source.returned) <= set(plan.bound.equivalence)):
            listed = ", ".join(source.keys)
            hint = f"RETURN {listed} in what it reads and test [{listed}] in it, or pass shards=1"
            raise CepheidError(
                f"query '{name}' may match across [{listed}], by which the stream is partitioned", hint=hint
            )

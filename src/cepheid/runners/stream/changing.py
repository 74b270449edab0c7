"""Queries that come and go while a stream runs: what their table says, and the step that serves those of today.

A row of the table names a query, gives its text and options, and says whether it is enabled; the newest row of a name
counts. A query works from the micro-batch its row arrives in: it finds what a batch over the events after `since`
finds, the newest time that had been seen by then. A row that is wrong is reported and changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from cepheid.engine.choose import make_plan
from cepheid.errors import CepheidError, DataError
from cepheid.language.bind import bind
from cepheid.language.check import check
from cepheid.language.sase.parse import parse
from cepheid.language.schema import Schema
from cepheid.plan.options import PlanOptions, options_of
from cepheid.plan.physical import Plan
from cepheid.remembered import Remembered
from cepheid.runners.checksums import CHECKPOINT, checked_text, text_with_checksum
from cepheid.runners.options import Options
from cepheid.runners.stream.clock import Clock
from cepheid.runners.stream.identity import Fingerprint, aspects
from cepheid.runners.stream.state import Outcome, Store, StreamStep
from cepheid.runners.worker_plans import WorkerPlan, ship_here

_plans = Remembered[WorkerPlan](most=1_000)  # of this worker


@dataclass(frozen=True)
class SearchRequest:
    """A query as its table has it."""

    text: str
    options: str = "{}"  # as JSON, so that it can be compared and stored


@dataclass(frozen=True)
class Serving:
    """What is the same whatever queries there are: the events, how they are spread, and what a step may keep."""

    schema: pa.Schema
    roles: Mapping[str, Any]
    keys: tuple[str, ...]
    shards: int
    step: StreamStep  # without queries

    def worker_plan(self, name: str, asked: SearchRequest) -> WorkerPlan:
        """The plan of a query; an error says what is wrong with it."""
        known = (name, asked.text, asked.options, str(self.schema) + str(self.roles))
        return _plans.get(known, lambda: ship_here(self.plan(asked), self.schema, name))

    def plan(self, asked: SearchRequest) -> Plan:
        """The plan of a query over all columns."""
        bound = bind(
            check(parse(asked.text), asked.text), Schema.from_arrow(self.schema, **self.roles), text=asked.text
        )
        if bound.summary is not None:
            raise CepheidError("SUMMARISE is for tables, not for queries that are added and removed while running")
        missing = [key for key in self.keys if key not in bound.equivalence]
        if missing:
            listed = ", ".join(self.keys)
            hint = f"add [{listed}] to WHERE, or run it in a stream of its own"
            raise CepheidError(
                f"the stream is partitioned by [{listed}], and this query may match across them", hint=hint
            )
        plan, _ = make_plan(bound, None, read_plan_options(json.loads(asked.options)), decide_later=True)
        if plan.exchange.retention.for_ever is not None:
            raise CepheidError(
                f"this query cannot run on a stream: {plan.exchange.retention.for_ever}", hint="add WITHIN"
            )
        return plan

    def fingerprint(self, shipments: Iterable[WorkerPlan]) -> Fingerprint:
        """What the state belongs to."""
        return Fingerprint(self.shards, self.keys, {each.name or "": aspects(each.plan) for each in shipments})

    def ready(self, queries: Mapping[str, SearchRequest]) -> tuple[StreamStep, Fingerprint]:
        """The step that serves some queries."""
        shipments = tuple(self.worker_plan(name, asked) for name, asked in queries.items())
        plans = tuple(each.plan for each in shipments)
        step = replace(self.step, shipments=shipments, numbers=tuple(range(len(shipments))), plans=plans)
        return step, self.fingerprint(shipments)


def read_plan_options(given: Mapping[str, object]) -> Options:
    """The options of one query; those of the stream are the same for all."""
    known = options_of(PlanOptions)
    for name in given:
        if name not in known:
            raise CepheidError(f"'{name}' is not an option of a single query", hint=f"there are {', '.join(known)}")
    if "model" in given:
        from cepheid.model.loss_model import model_from_json  # most queries have none

        given = {**given, "model": model_from_json(given["model"])}
    return Options.from_keywords(given)


@dataclass(frozen=True)
class Registered:
    """The queries of today, and what was wrong with rows that came."""

    queries: Mapping[str, SearchRequest] = field(default_factory=dict)
    errors: tuple[tuple[str | None, str], ...] = ()  # the name, and what is wrong

    def text(self) -> str:
        """As it is stored."""
        told = {name: [asked.text, asked.options] for name, asked in self.queries.items()}
        return text_with_checksum(json.dumps(told))

    @classmethod
    def read(cls, text: str | None) -> Registered:
        """As it was stored."""
        try:
            told = json.loads(checked_text(text or "{}", "the list of queries in the checkpoint", CHECKPOINT))
            return cls({str(name): SearchRequest(str(query), str(options)) for name, (query, options) in told.items()})
        except (ValueError, TypeError, AttributeError):
            raise DataError("the queries in the checkpoint cannot be read", hint=CHECKPOINT) from None

    def changed(self, rows: Sequence[Mapping[str, object]], serving: Serving) -> Registered:
        """The queries after some rows of the table, in this order."""
        queries, errors = dict(self.queries), list(self.errors)
        for row in rows:
            name = row.get("name")
            try:
                if not isinstance(name, str) or not name:
                    raise DataError("a row of the table of queries has no name", hint="name it")
                if row.get("enabled") is False:
                    queries.pop(name, None)
                    continue
                asked = read_row(row)
                serving.worker_plan(name, asked)
                queries[name] = asked
            except (CepheidError, ValueError, RecursionError) as error:
                errors.append((name if isinstance(name, str) else None, str(error)))
        return Registered(queries, tuple(errors))


def read_row(row: Mapping[str, object]) -> SearchRequest:
    """A query from a row of the table: options may be a mapping, JSON, or nothing."""
    text, options = row.get("text"), row.get("options") or {}
    if not isinstance(text, str):
        raise DataError("the query has no text", hint="give it one, or enabled=false to remove it")
    if isinstance(options, str):
        options = json.loads(options)
    if not isinstance(options, Mapping):
        raise DataError(f"options={options!r} is not an object", hint='as in {"scoring": "paper"}')
    return SearchRequest(text, json.dumps(options, sort_keys=True))


def idle_step(step: StreamStep, clock: Clock, store: Store, fresh: Sequence[pa.Table], newest: int | None) -> Outcome:
    """What a step is when there is no query: time goes on, and nothing is kept."""
    newest = max((time for time in (clock.newest, newest) if time is not None), default=None)
    until = clock.until
    if newest is not None:
        until = max(newest - step.delay - 1, until if until is not None else newest - step.delay - 1)
    for chunk in clock.chunks:
        store.remove(chunk.number)
        if chunk.asleep:
            store.remove_keys(chunk.number)
    for place in clock.gone:
        store.forget(place)
    clock = replace(clock, until=until, newest=newest, chunks=(), steps=clock.steps + 1, gone=())
    return Outcome(clock, events=sum(table.num_rows for table in fresh), unasked=sum(t.num_rows for t in fresh))


def as_rows(name: str, batch: pa.RecordBatch) -> pa.Table:
    """Matches of any query as rows of one kind: when they start and end, and the rest as JSON."""
    shared = ("match_start", "match_end")
    rest = pa.Table.from_batches([batch]).drop_columns(list(shared))
    told = [json.dumps(row, default=_plain) for row in rest.to_pylist()]
    return pa.table(
        {
            "query": pa.array([name] * batch.num_rows, pa.string()),
            **{each: batch.column(each) for each in shared},
            "match": pa.array(told, pa.string()),
            "error": pa.nulls(batch.num_rows, pa.string()),
        }
    )


def as_errors(errors: Sequence[tuple[str | None, str]], schema: pa.Schema) -> pa.Table:
    """What was wrong with rows of the table, as rows of the result."""
    columns: dict[str, list[Any]] = {name: [None] * len(errors) for name in schema.names}
    columns |= {"query": [name for name, _ in errors], "error": [told for _, told in errors]}
    return pa.table(columns, schema=schema)


def result_columns(schema: pa.Schema, time: str) -> pa.Schema:
    """The columns of the result of queries that come and go."""
    kind = schema.field(time).type
    text = pa.string()
    fields = [("query", text), ("match_start", kind), ("match_end", kind), ("match", text), ("error", text)]
    return pa.schema(fields)


def _plain(value: object) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)

"""What a stream, a live query or a Spark worker runs: the plan over the columns it needs, and the result's schema."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from cepheid.engine.data.matches import Matches
from cepheid.engine.data.table import EventTable
from cepheid.language.bound import BoundQuery
from cepheid.language.functions import function
from cepheid.plan.physical import Plan
from cepheid.runners import many
from cepheid.runners.results import assemble, result_schema
from cepheid.runners.totals import totals_schema

MATCHES_AT_ONCE = 50_000  # result rows that are put together at a time
_registered: set[bytes] = set()  # a worker runs many tasks; registering again would compile again


@dataclass(frozen=True)
class WorkerPlan:
    """A plan on its way to workers; `schema` is that of its result, in the Arrow types that Spark expects."""

    plan: Plan
    schema: pa.Schema
    name: str | None = None  # of the query, where there are several
    functions: tuple[bytes, ...] = ()  # the user's, pickled: (name, result type, callable, whether it is vouched for)
    events: pa.Schema | None = None  # of the events that it gets

    def unpacked(self) -> Plan:
        """The plan, in a process that knows the user's functions it calls."""
        register_functions(self.functions)
        return self.plan


def as_named(plans: Plan | Mapping[str, Plan]) -> dict[str | None, Plan]:
    """One plan without a name, or several with theirs."""
    return {None: plans} if isinstance(plans, Plan) else dict(plans.items())


def common_result(shipments: Iterable[WorkerPlan]) -> pa.Schema:
    """The schema of the result of all these plans together."""
    shipped = list(shipments)
    if shipped[0].name is None:
        return shipped[0].schema
    return many.common_schema({worker_plan.name or "": worker_plan.schema for worker_plan in shipped})


def result_rows(worker_plan: WorkerPlan, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of one plan's result as rows of the common result."""
    if worker_plan.name is not None:
        return many.dressed(worker_plan.name, batch, schema)
    return many.widened(dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows, schema)


def result_table(
    worker_plans: Sequence[WorkerPlan], found: Iterable[tuple[int, pa.RecordBatch]], schema: pa.Schema
) -> pa.Table:
    """Rows of the results of some plans, by their numbers, as the common result: those of plans with names in order."""
    together: dict[str, list[pa.RecordBatch]] = {}
    batches = []
    for number, batch in found:
        name = worker_plans[number].name
        if name is not None:
            together.setdefault(name, []).append(batch)
        else:
            batches.append(batch if len(worker_plans) == 1 else result_rows(worker_plans[number], batch, schema))
    if together:
        batches.append(many.dressed_together(together, schema))
    return pa.Table.from_batches(batches, schema)


def ship_here(plan: Plan, events: pa.Schema, name: str | None = None) -> WorkerPlan:
    """The plan, narrowed to the columns that it and its output need, for events of an Arrow schema.

    It is for this process, which knows the user's functions; the result keeps Arrow's types.
    """
    names = plan.scan.columns
    bound = plan.bound
    columns = tuple((name, kind) for name, kind in bound.schema.columns if name in names)
    narrow = replace(bound, schema=replace(bound.schema, columns=columns))
    narrowed = replace(plan, match=replace(plan.match, bound=narrow))
    own = pa.schema([column for column in events if column.name in names])
    if bound.summary is not None:
        return WorkerPlan(narrowed, totals_schema(narrowed.bound, bound.summary, own), name, events=own)
    found = result_schema(narrowed.bound, own, probability=plan.is_lossy, confidence=plan.is_imprecise)
    return WorkerPlan(narrowed, found, name, events=own)


def result_batches(
    bound: BoundQuery, events: EventTable, matches: Matches, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The result rows as Spark takes them, some at a time, so that a flood of matches does not fill memory."""
    for start in range(0, len(matches), MATCHES_AT_ONCE):
        some = matches.take(np.arange(start, min(start + MATCHES_AT_ONCE, len(matches))))
        yield from as_batches(assemble(bound, events.table, some), schema)


def as_batches(table: pa.Table, schema: pa.Schema) -> Iterable[pa.RecordBatch]:
    """A table's rows in exactly the types of a schema: Spark compares them to the letter."""
    batches: list[pa.RecordBatch] = table.select(schema.names).cast(schema).combine_chunks().to_batches()
    return batches


def register_functions(shipped: Iterable[bytes]) -> None:
    """Makes the user's functions known in this process; once, since a new one would be compiled anew."""
    for packed in shipped:
        if packed not in _registered:
            name, result, call, compiled = pickle.loads(packed)
            function(name=name, result=result, compiled=compiled)(call)
            _registered.add(packed)

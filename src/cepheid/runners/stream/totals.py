"""SUMMARISE in a stream: sums of the buckets that are still open are carried along; a bucket comes out when it is over.

A bucket is over when the watermark has passed its end: then every match that counts in it is known, its row is
appended once and never changed. Without EVERY there is one bucket, which is over at the end of time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from cepheid.engine.data.matches import NEVER
from cepheid.language.zone_labels import labelled_table
from cepheid.plan.physical import Plan
from cepheid.runners.arrow_bytes import encoded
from cepheid.runners.checksums import decoded_state
from cepheid.runners.stream.carried import Carried
from cepheid.runners.total_parts import added_up, closed_by, finished, parts_schema
from cepheid.runners.worker_plans import WorkerPlan, as_batches


def carry(store: Carried, place: int, plan: Plan, fresh: pa.Table) -> None:
    """Adds parts that a step found to those that are carried."""
    summary = plan.bound.summary
    assert summary is not None
    held = store.ended(slot(place))
    tables = [fresh] if held is None else [decoded_state(held), labelled_table(fresh)]
    store.end(slot(place), encoded(added_up(tables, summary).combine_chunks()))


def closed(
    store: Carried,
    places: Sequence[int],
    numbers: Sequence[int],
    shipments: Sequence[WorkerPlan],
    plans: Sequence[Plan],
    until: int,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of all buckets that are over; parts of them, where other shards have parts, too."""
    for place, number, worker_plan, plan in zip(places, numbers, shipments, plans, strict=True):
        if plan.bound.summary is None:
            continue
        held = store.ended(slot(place))
        batches, others = closed_of(None if held is None else decoded_state(held), plan, worker_plan, until)
        if others is not None:
            store.end(slot(place), encoded(others.combine_chunks()))
        for batch in batches:
            yield number, batch


def closed_of(
    parts: pa.Table | None, plan: Plan, worker_plan: WorkerPlan, until: int
) -> tuple[list[pa.RecordBatch], pa.Table | None]:
    """The rows of all buckets of a query that are over, and the parts of the others; None: these are as they were."""
    summary = plan.bound.summary
    assert summary is not None
    assert worker_plan.events is not None
    if parts is None:
        if until < NEVER or summary.by or summary.every is not None:
            return [], None
        parts = added_up([parts_schema(plan.bound, worker_plan.events).empty_table()], summary)  # as in SQL: one row
    over, others = closed_by(parts, summary, until)
    if not over.num_rows:
        return [], None
    over = added_up([over], summary)  # of a state that was put together from several shards
    if whole_here(plan):
        return list(as_batches(finished(plan.bound, over, worker_plan.events), worker_plan.schema)), others
    return over.combine_chunks().to_batches(), others


def whole_here(plan: Plan) -> bool:
    """Do all matches of a group come out of one shard?"""
    summary, exchange = plan.bound.summary, plan.exchange
    return summary is None or (exchange.shards or 1) == 1 or set(exchange.keys) <= set(summary.by)


def slot(place: int) -> int:
    """Where the sums of a query lie among what is carried: beside the ends of its matches."""
    return -1 - place


def is_slot(number: int) -> bool:
    """Do sums lie there?"""
    return number < 0

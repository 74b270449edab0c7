"""The outcome of shards as rows of the result again.

Nothing here needs the engine but sums of several shards, so that the worker that unpacks starts without it
(tests/spark/test_light_workers.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.runners.arrow_bytes import decoded
from cepheid.runners.many import as_result, dressed_together, widened
from cepheid.runners.spark.settled import settle
from cepheid.runners.spark.short_errors import short_errors

if TYPE_CHECKING:
    from cepheid.runners.worker_plans import WorkerPlan

CELLS_AT_ONCE = 500_000  # of the common result of several queries, which has a column for each, in one batch
LATE = -1  # the `query` of late events...
LATE_EVENT = "late_event"  # ...and the column that they come out in


def unpacker(
    names: Sequence[str | None], schema: pa.Schema, parted: Mapping[int, WorkerPlan] | None = None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a worker does with the outcome of shards, whose queries have these names, if any.

    Of those that are `parted`, each shard has a part of the totals.
    """

    @short_errors
    def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        parts: dict[int, list[pa.Table]] = {}  # of totals, from all shards
        together: dict[str, list[pa.RecordBatch]] = {}  # rows of queries with names
        cells = 0
        for batch in batches:
            for query, packed in zip(
                batch.column("query").to_pylist(), batch.column("packed").to_pylist(), strict=True
            ):
                table = decoded(packed)
                if parted and query in parted:
                    parts.setdefault(query, []).append(table)
                    continue
                for part in table.to_batches():
                    if query == LATE:
                        yield widened({LATE_EVENT: part.column(LATE_EVENT)}, part.num_rows, schema)
                    elif (name := names[query]) is None:
                        yield as_result(None, part, schema)
                    else:
                        together.setdefault(name, []).append(part)
                        cells += part.num_rows * len(schema)
                if cells > CELLS_AT_ONCE:
                    yield dressed_together(together, schema)
                    together, cells = {}, 0
        if together:
            yield dressed_together(together, schema)
        for query, tables in parts.items():
            assert parted
            for part in totals_of(parted[query], tables):
                yield as_result(names[query], part, schema)

    return unpack


def totals_of(worker_plan: WorkerPlan, parts: Sequence[pa.Table]) -> Iterable[pa.RecordBatch]:
    """The totals of a query, added up from those of shards."""
    from cepheid.runners.total_parts import added_up, finished
    from cepheid.runners.worker_plans import as_batches

    bound = worker_plan.plan.bound
    assert bound.summary is not None
    assert worker_plan.events is not None
    return as_batches(finished(bound, added_up(parts, bound.summary), worker_plan.events), worker_plan.schema)

"""Events on their way to the shards of a stream: many rows packed into one, since Spark regroups rows one by one.

A stateless pass packs each task's events by shard, as Arrow IPC bytes. Every shard gets a row from every task, events
or not, with the newest time the task has seen: so all shards share one clock, in the very batch that moves it, and
Spark's own filter for late rows, which would drop a packed row with all its events, has nothing to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.table import times_of
from cepheid.language.free_names import free_name
from cepheid.runners.arrow_bytes import decoded, encoded
from cepheid.runners.many import dressed, dressed_together, widened
from cepheid.runners.spark.settled import settle
from cepheid.runners.spark.shards import shards_here
from cepheid.runners.spark.short_errors import short_errors
from cepheid.runners.stream.budget import REASONS
from cepheid.runners.stream.totals import whole_here
from cepheid.runners.total_parts import added_up, finished
from cepheid.runners.worker_plans import WorkerPlan, as_batches, result_rows

BEAT = -1  # the shard of what is not an event at all, only a time
PACKED = "shard int, newest bigint, events binary, read bigint, irrelevant bigint, malformed bigint, bad string"
# What a shard tells of a step, besides matches. Sums of these, but for the last four, are Spark's observed metrics.
SHED_FOR = {reason: f"shed_for_{reason}" for reason in REASONS}
COUNTS = (
    "read",
    "irrelevant",
    "malformed",
    "events",
    "used",
    "late",
    "duplicates",
    "shed",
    "matches",
    *SHED_FOR.values(),
)
LEVELS = ("retained", "state_bytes", "newest", "watermark")
RUN_POOL = ("used", "late", "duplicates", "shed")  # what becomes of events of the types that a query names
OF_QUERIES = (*RUN_POOL, "matches")  # what is told of each query with a name, too...
OWN = {name: f"own_{name}" for name in OF_QUERIES}  # ...in columns of their own
CELLS_AT_ONCE = 500_000  # of the common result of several queries, which has a column for each, in one batch
LATE = -1  # the `query` of late events...
LATE_EVENT = "late_event"  # ...and the column that they come out in
TOTAL = -2  # the `query` of the numbers of a shard as a whole


@dataclass(frozen=True)
class Marks:
    """The columns of our own beside those of the events, under names that no event has."""

    shard: str  # NULL: the event matters to no query, but it moves the clock
    bad: str | None = None  # what is wrong with a record that cannot be an event, and the record, as JSON; or NULL

    @classmethod
    def beside(cls, columns: Sequence[str], bad: str | None) -> Marks:
        """Names for events of these columns, among which is that of bad records, if there may be any."""
        return cls(free_name("__shard", columns), bad)


def outcome_columns(named: bool) -> str:
    """What a shard tells: matches, packed, and numbers, which are 0 in rows that do not tell them.

    So they only have to be added up, and are never NULL: in every task of every micro-batch Spark writes, and compiles
    or finds again, the code that does it.
    """
    numbers = (*COUNTS, *LEVELS, *(OWN.values() if named else ()))
    columns = ", ".join(f"{name} bigint NOT NULL" for name in numbers)
    return f"query int NOT NULL, packed binary, lost double NOT NULL, {columns}"


def packer(
    columns: Sequence[str], clock: str, marks: Marks, planned: int, adopts: bool = False
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a worker does with the events of one task; `clock` is the column that holds the time.

    Where the checkpoint decides how many shards there are (`adopts`), their numbers are still to be divided by that.
    """

    @short_errors
    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        shards = shards_here(planned) if adopts else planned
        held = [batch.rename_columns(list(columns)) for batch in batches]
        table = pa.Table.from_batches(held) if held else None
        if table is None or not table.num_rows:
            return
        yield packed_rows(table, clock, marks, shards)

    return pack


def packed_rows(table: pa.Table, clock: str, marks: Marks, shards: int) -> pa.RecordBatch:
    """A row for each shard; the first one also tells of what belongs to none."""
    bad: list[str] = []
    if marks.bad is not None:
        wrong = table.column(marks.bad).is_valid()
        bad = table.column(marks.bad).filter(wrong).to_pylist()
        table = table.filter(pc.invert(wrong)).drop_columns([marks.bad])
    newest = int(times_of(table, clock).max()) if table.num_rows else None
    numbers = table.column(marks.shard)
    beats = pc.sum(pc.equal(numbers, BEAT)).as_py() or 0
    read = table.num_rows - beats + len(bad)
    # Most events may concern no query: their times are all that is needed of them.
    packed = shard_by_shard(table.filter(numbers.is_valid()) if numbers.null_count else table, marks.shard, shards)
    first = {"read": read, "irrelevant": numbers.null_count, "malformed": len(bad)}
    rest = [0] * (shards - 1)
    arrays = [
        pa.array(range(shards), pa.int32()),
        pa.array([newest] * shards, pa.int64()),
        pa.array([packed.get(shard) for shard in range(shards)], pa.binary()),
        *(pa.array([value, *rest], pa.int64()) for value in first.values()),
        pa.array(["\n".join(bad) or None, *[None] * (shards - 1)], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(arrays, ["shard", "newest", "events", *first, "bad"])


def shard_by_shard(table: pa.Table, name: str, shards: int) -> dict[int, bytes]:
    """The events of each shard that has any, packed; a column of this name holds the shards."""
    shard = table.column(name).fill_null(BEAT).to_numpy()
    shard = np.where(shard == BEAT, shards, shard % shards)
    if shards < np.iinfo(np.int16).max:
        shard = shard.astype(np.int16)  # which NumPy sorts in one pass over the digits
    events = table.drop_columns([name])
    order = np.argsort(shard, kind="stable")
    counts = np.bincount(shard, minlength=shards + 1)[:shards]
    order = order[: int(counts.sum())]  # those of no shard come last
    if not len(order):
        return {}
    events = events.take(pa.array(order)).combine_chunks()
    starts = np.concatenate([[0], np.cumsum(counts)])
    return {
        number: encoded(events.slice(int(starts[number]), int(counts[number])))
        for number in np.flatnonzero(counts).tolist()
    }


def unpacker(
    shipments: Sequence[WorkerPlan], schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a worker does with the outcome of shards: rows of the result again."""

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
                if query != LATE and not whole_here(shipments[query].plan):
                    parts.setdefault(query, []).append(table)
                    continue
                for part in table.to_batches():
                    if query == LATE:
                        yield widened({LATE_EVENT: part.column(LATE_EVENT)}, part.num_rows, schema)
                    elif shipments[query].name is None:
                        yield result_rows(shipments[query], part, schema)
                    else:
                        together.setdefault(shipments[query].name or "", []).append(part)
                        cells += part.num_rows * len(schema)
                if cells > CELLS_AT_ONCE:
                    yield dressed_together(together, schema)
                    together, cells = {}, 0
        if together:
            yield dressed_together(together, schema)
        for query, tables in parts.items():
            worker_plan = shipments[query]
            bound = worker_plan.plan.bound
            assert bound.summary is not None
            assert worker_plan.events is not None
            for part in as_batches(
                finished(bound, added_up(tables, bound.summary), worker_plan.events), worker_plan.schema
            ):
                yield result_rows(worker_plan, part, schema)

    return unpack


def plain_unpacker(schema: pa.Schema) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The same for the outcome of one pattern, which is rows of the result, or late events, as it is."""

    @short_errors
    def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        for batch in batches:
            for packed in batch.column("packed").to_pylist():
                for part in decoded(packed).to_batches():
                    columns = dict(zip(part.schema.names, part.columns, strict=True))
                    yield widened(columns, part.num_rows, schema)

    return unpack


def named_unpacker(
    names: Sequence[str], schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The same for the outcome of a pattern and of the queries that read it, as rows of their common result."""

    @short_errors
    def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        for batch in batches:
            packed = zip(batch.column("query").to_pylist(), batch.column("packed").to_pylist(), strict=True)
            for query, part in ((query, part) for query, each in packed for part in decoded(each).to_batches()):
                late = {LATE_EVENT: part.column(LATE_EVENT)} if query == LATE else None
                if late is not None:
                    yield widened(late, part.num_rows, schema)
                else:
                    yield dressed(names[query], part, schema)

    return unpack


def as_structs(table: pa.Table, name: str) -> pa.Table:
    """A table of one column that holds the rows of another as structs."""
    columns = [column.combine_chunks() for column in table.columns]
    return pa.table({name: pa.StructArray.from_arrays(columns, table.column_names)})

"""Events on their way to the shards of a stream: many rows packed into one, since Spark regroups rows one by one.

A stateless pass packs each task's events by shard, as Arrow IPC bytes. Every shard gets a row from every task, events
or not, with the newest time the task has seen: so all shards share one clock, in the very batch that moves it, and
Spark's own filter for late rows, which would drop a packed row with all its events, has nothing to judge.

Nothing here needs the engine, so that the worker that packs starts without it (tests/spark/test_light_workers.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.table import times_of
from cepheid.language.free_names import free_name
from cepheid.runners.arrow_bytes import encoded
from cepheid.runners.spark.settled import settle
from cepheid.runners.spark.shards import shards_here
from cepheid.runners.spark.short_errors import short_errors

BEAT = -1  # the shard of what is not an event at all, only a time
PACKED = "shard int, newest bigint, events binary, read bigint, irrelevant bigint, malformed bigint, bad string"


@dataclass(frozen=True)
class Marks:
    """The columns of our own beside those of the events, under names that no event has."""

    shard: str  # NULL: the event matters to no query, but it moves the clock
    bad: str | None = None  # what is wrong with a record that cannot be an event, and the record, as JSON; or NULL

    @classmethod
    def beside(cls, columns: Sequence[str], bad: str | None) -> Marks:
        """Names for events of these columns, among which is that of bad records, if there may be any."""
        return cls(free_name("__shard", columns), bad)


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

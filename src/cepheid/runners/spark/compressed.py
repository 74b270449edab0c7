"""Compressed results on Spark: workers keep what they found as shared structures, and list it where it is read.

A row of the table holds the structure of one piece of the events (`packed`) and how many matches it stands for
(`matches`, as digits: there may be more than any number type holds).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from cepheid.budget import within_budget
from cepheid.engine.choose import Choice, chosen
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.table import EventTable, ordered
from cepheid.engine.engines import ENGINES, of_runs
from cepheid.engine.find import BEGINNING
from cepheid.engine.jit_fallback import answer
from cepheid.engine.limits import check_limit
from cepheid.plan.physical import Plan
from cepheid.runners.arrow_bytes import decoded, encoded
from cepheid.runners.compressed import check_compressible
from cepheid.runners.events_of_each import with_type_codes
from cepheid.runners.options import BatchOptions
from cepheid.runners.pieces import pieces
from cepheid.runners.results import assemble
from cepheid.runners.spark.batch import addressable, relevant_events, spread, spread_as_asked
from cepheid.runners.spark.session import DataFrame, arrow_schema, spark_schema
from cepheid.runners.spark.short_errors import short_errors
from cepheid.runners.spark.slices import Slices
from cepheid.runners.spark.spelling import quoted
from cepheid.runners.spark.worker_plan import ship
from cepheid.runners.worker_plans import WorkerPlan, as_batches

PACKED = pa.schema([("matches", pa.string()), ("packed", pa.binary())])


@dataclass(frozen=True)
class SparkCompressed:
    """All matches of a query on Spark as shared structures, one for each piece of the events.

    `frame` is the Spark table that holds them: persist it to search once and read often. `count` is exact and lists
    nothing; `first(n)` and `all()` are Spark tables of matches, made by the workers that read them.
    """

    frame: DataFrame
    worker_plan: WorkerPlan

    @property
    def count(self) -> int:
        """How many matches there are; starts a job."""
        return sum(int(row["matches"]) for row in self.frame.select("matches").collect())

    def first(self, number: int) -> DataFrame:
        """Some matches, as rows."""
        return self._rows(number).limit(number)

    def all(self) -> DataFrame:
        """All matches, as rows."""
        return self._rows(None)

    def _rows(self, number: int | None) -> DataFrame:
        return self.frame.mapInArrow(_lister(self.worker_plan, number), spark_schema(self.worker_plan.schema))


def compress_batch(df: DataFrame, plan: Plan, options: BatchOptions) -> SparkCompressed:
    """The matches of a plan in a Spark table, compressed."""
    check_compressible(plan)
    plan = chosen(spread_as_asked(plan, options), Choice(of_runs(plan.bound)))
    worker_plan = ship(plan, arrow_schema(df))
    columns = [name for name in df.columns if name in worker_plan.plan.bound.schema.names]
    events = relevant_events(df, [plan], plan.exchange.keys).select(*[quoted(name) for name in columns])
    parted, slices = spread(events, [plan])
    work = _compressor(worker_plan, slices, options.memory, tuple(parted.columns))
    return SparkCompressed(addressable(parted).mapInArrow(work, spark_schema(PACKED)), worker_plan)


def _compressor(
    worker_plan: WorkerPlan, slices: Slices | None, memory: int, columns: tuple[str, ...]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    @short_errors
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = worker_plan.unpacked()
        keys = [*plan.exchange.keys, *([slices.column] if slices is not None else [])]
        named = (batch.rename_columns(list(columns)) for batch in batches)
        for piece in pieces(named, [plan], keys, memory):
            for part in slices.parts(piece) if slices is not None else [piece]:
                events = ordered(with_type_codes(part.events, plan.bound.schema.type), plan.bound.schema)
                matches, packed = compressed(plan, events, part.after, part.until)
                if matches:
                    yield pa.RecordBatch.from_arrays([pa.array([str(matches)]), pa.array([packed])], schema=PACKED)

    return work


def compressed(plan: Plan, events: EventTable, after: int | None, until: int | None) -> tuple[int, bytes]:
    """How many matches there are in the interval, and all of them, packed."""
    from cepheid.engine.search import runs

    low, high = BEGINNING if after is None else after, NEVER if until is None else until
    with within_budget(plan.limits.timeout, plan.limits.max_bytes):
        module = ENGINES["runs"].module
        found = answer(module, len(events), lambda: runs.find_compressed(plan, events, low, high))
    used = np.unique(found.entries[:, 0])
    used = used[used >= 0]
    taking_part = events.table.take(pa.array(found.prepared.candidates.rows[used]))
    parts = [taking_part, pa.table({"event": used}), _as_table(found.entries), _as_table(found.accepted)]
    return found.count(), encoded(pa.table({"part": pa.array([encoded(part) for part in parts], pa.binary())}))


def listed(plan: Plan, packed: bytes, number: int | None) -> pa.Table:
    """The matches that were packed, or some of them, as rows."""
    from cepheid.engine.search.runs.compressed import listed_matches

    parts = [decoded(part) for part in decoded(packed).column("part").to_pylist()]
    events, used, entries, accepted = parts
    numbers = used.column("event").to_numpy()
    row_of = np.zeros(int(numbers[-1]) + 1, np.int64)
    row_of[numbers] = np.arange(len(numbers))
    most = plan.limits.max_matches
    wanted = most if number is None else min(number, most)
    matches, cut = listed_matches(plan.bound, _as_rows(entries), _as_rows(accepted), row_of, wanted)
    check_limit(plan, "max_matches", cut and (number is None or number > most))
    return assemble(plan.bound, events, replace(matches, truncated=cut))


def _lister(
    worker_plan: WorkerPlan, number: int | None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    @short_errors
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = worker_plan.unpacked()
        for batch in batches:
            for packed in batch.column("packed").to_pylist():
                yield from as_batches(listed(plan, packed, number), worker_plan.schema)

    return work


def _as_table(rows: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> pa.Table:
    return pa.table({str(column): rows[:, column] for column in range(rows.shape[1])})


def _as_rows(table: pa.Table) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.ascontiguousarray(np.stack([column.to_numpy() for column in table.columns], axis=1))

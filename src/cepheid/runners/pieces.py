"""Cuts the events of one Spark partition into pieces that fit memory, so that no match is lost or found twice.

All events of a key stay together as long as they fit. A key that does not fit is cut by completion intervals: the
piece for (after, until] gets the events within reach of it (docs/design.md).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.matches import Matches
from cepheid.engine.data.table import EventTable, times_of
from cepheid.engine.find import find, last_ends
from cepheid.engine.output.overlap import Ended
from cepheid.language import syntax as s
from cepheid.plan.physical import Plan
from cepheid.runners.drift import look_now_and_then
from cepheid.runners.options import MEMORY
from cepheid.runners.ties import looking_for_ties

BUCKETS = 16  # files that too large a partition is dealt to
MAX_DEALS = 4  # how often keys are dealt before they are cut by time; 16**4 buckets part any two keys


@dataclass(frozen=True)
class Piece:
    """Events, and the completion interval for which they are all that is needed; None: the end of time."""

    events: pa.Table
    after: int | None = None
    until: int | None = None


def found(plan: Plan, events: EventTable, piece: Piece, ended: Ended | None) -> tuple[Matches, Ended | None]:
    """The matches of a piece; and where the last of them ended, if the next piece must know (NON-OVERLAP).

    `ended` is what the piece before gave, if this one goes on from it.
    """
    look_now_and_then(plan, events)
    with looking_for_ties(plan, events):
        return _found(plan, events, piece, ended)


def _found(plan: Plan, events: EventTable, piece: Piece, ended: Ended | None) -> tuple[Matches, Ended | None]:
    if plan.bound.output.mode is not s.OutputMode.NON_OVERLAP or (piece.after is None and piece.until is None):
        return find(plan, events, piece.after, piece.until), None
    before = {} if piece.after is None or ended is None else ended
    matches = find(plan, events, piece.after, piece.until, before)
    return matches, {**before, **last_ends(plan, events, matches)}


def pieces(
    batches: Iterable[pa.RecordBatch], plans: Sequence[Plan], keys: Sequence[str], memory: int = MEMORY
) -> Iterator[Piece]:
    """The events in pieces of at most `memory` bytes where the query allows it; `keys` part independent events."""
    source = iter(batches)
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in source:
        held.append(batch)
        size += batch.nbytes
        if size > memory:
            break
    else:
        if held:
            yield Piece(pa.Table.from_batches(held))
        return
    with tempfile.TemporaryDirectory(prefix="cepheid-") as folder:
        yield from _dealt(chain(held, source), plans, keys, memory, Path(folder), deal=0)


def _dealt(
    batches: Iterable[pa.RecordBatch], plans: Sequence[Plan], keys: Sequence[str], memory: int, folder: Path, deal: int
) -> Iterator[Piece]:
    """Deals events to files by their key, and takes up the files one after another."""
    for path in _deal(batches, keys, folder, deal):
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_file(source).read_all()  # stays on disk until it is read
            if table.nbytes <= memory:
                yield Piece(table)
            elif keys and deal + 1 < MAX_DEALS and not _one_key(table, keys):
                yield from _dealt(table.to_batches(), plans, keys, memory, folder, deal + 1)
            elif can_cut(table, plans):
                yield from cut_by_time(table, plans, -(-2 * table.nbytes // memory))
            else:
                yield Piece(table)
            del table
        path.unlink()


def _deal(batches: Iterable[pa.RecordBatch], keys: Sequence[str], folder: Path, deal: int) -> list[Path]:
    writers: dict[int, tuple[Path, pa.ipc.RecordBatchFileWriter]] = {}
    place = Path(tempfile.mkdtemp(dir=folder))
    for batch in batches:
        bucket = (key_hashes(batch, keys) // BUCKETS**deal) % BUCKETS
        order = np.argsort(bucket, kind="stable")
        dealt, bucket = batch.take(pa.array(order)), bucket[order]
        edges = np.flatnonzero(np.r_[True, bucket[1:] != bucket[:-1], True]) if len(bucket) else np.zeros(1, int)
        for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            number = int(bucket[start])
            if number not in writers:
                path = place / f"{number}.arrow"
                writers[number] = path, pa.ipc.new_file(str(path), batch.schema)
            writers[number][1].write_batch(dealt.slice(start, stop - start))
    for _, writer in writers.values():
        writer.close()
    return [path for path, _ in writers.values()]


def key_hashes(batch: pa.RecordBatch, keys: Sequence[str]) -> Int64s:
    """A number for each event that is the same for equal keys; it means nothing outside this process."""
    mixed = np.zeros(batch.num_rows, np.uint64)
    for name in keys:
        encoded = pc.dictionary_encode(batch.column(name), null_encoding="encode")
        hashes = np.array([hash(value) & 0xFFFFFFFFFFFFFFFF for value in encoded.dictionary.to_pylist()], np.uint64)
        mixed = mixed * np.uint64(31) + hashes[encoded.indices.to_numpy()]
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    hashes64: Int64s = (mixed >> np.uint64(32)).astype(np.int64)
    return hashes64


def _one_key(table: pa.Table, keys: Sequence[str]) -> bool:
    return all(len(pc.unique(table.column(name).slice(0, 100_000))) == 1 for name in keys) and all(
        pc.count_distinct(table.column(name), mode="all").as_py() == 1 for name in keys
    )


def can_cut(table: pa.Table, plans: Sequence[Plan]) -> bool:
    """Can these events be matched interval by interval? TOP compares all matches of a partition."""
    for plan in plans:
        bound = plan.bound
        if bound.output.mode is s.OutputMode.TOP or bound.window is None:
            return False
        counted = bound.window.events  # per partition
        if counted and (bound.schema.is_imprecise or not _one_key(table, bound.equivalence)):
            return False
    return True


def cut_by_time(table: pa.Table, plans: Sequence[Plan], parts: int) -> Iterator[Piece]:
    """Events as completion intervals with what is within reach of each."""
    begins, ends = lifetimes(table, plans[0])
    for plan in plans[1:]:
        ends = np.maximum(ends, lifetimes(table, plan)[1])
    if parts < 2 or not len(begins):
        yield Piece(table)
        return
    ranks = np.linspace(0, len(begins) - 1, parts + 1)[1:-1].astype(np.int64)
    cuts = np.unique(np.sort(begins)[ranks]).tolist()
    for after, until in zip([None, *cuts], [*cuts, None], strict=True):
        inside = np.ones(len(begins), bool)
        if after is not None:
            inside &= ends > after
        if until is not None:
            inside &= begins <= until
        yield Piece(table.take(pa.array(np.flatnonzero(inside))), after, until)


def lifetimes(table: pa.Table, plan: Plan) -> tuple[Int64s, Int64s]:
    """For each event, the first and the last completion instant at which a match may need it."""
    schema = plan.bound.schema
    begins = times_of(table, schema.lower or schema.time)
    retention = plan.exchange.retention
    back = retention.reach
    if back is not None:
        latest = begins
        if schema.upper is not None:
            latest = times_of(table, schema.upper)
            back += int((latest - begins).max(initial=0))
        return begins, latest + back
    # WITHIN n EVENTS, all of one key: an event is needed until that many have come after its time. Events of one time
    # may share a position, so the first one after the time of the n-th is the first that surely lies n positions on.
    assert retention.events is not None
    times = np.sort(begins)
    nth = np.searchsorted(times, begins, side="right") + retention.events
    known = nth < len(times)
    nth[known] = np.searchsorted(times, times[nth[known]], side="right")
    known = nth < len(times)
    last = np.full(len(begins), np.iinfo(np.int64).max)
    last[known] = times[nth[known]]
    return begins, last

"""A row pattern over a stream, without Spark: rows in, decided rows out."""

from __future__ import annotations

import struct

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.budget import within_budget
from cepheid.engine.search.preferred.arrange import Int64s, window_times
from cepheid.engine.search.preferred.released import Resume, Retained, check_stream, nothing_retained, step
from cepheid.errors import DataError
from cepheid.language.match_recognize.bound import BoundClause
from cepheid.plan.options import Limits
from cepheid.runners.arrow_bytes import encoded

VERSION = 1  # of the saved state
_HEAD = "<iqiqqqq"  # version, watermark and whether there is one, late rows, three lengths


class RowStream:
    """Takes rows as they come, at most `delay` steps late, and gives back what no later row can change.

    Times are those of the first column of ORDER BY: whole numbers, or microseconds.
    """

    def __init__(
        self,
        clause: BoundClause,
        schema: pa.Schema,
        delay: int = 0,
        max_rows: int | None = None,
        limits: Limits | None = None,
    ) -> None:
        check_stream(clause, max_rows)
        self.clause = clause
        self.delay = delay
        self.max_rows = max_rows
        self.limits = limits or Limits()  # of each step
        self.state: Retained = nothing_retained(clause, schema)
        self.waiting = schema.empty_table()  # rows that the watermark has not passed
        self.watermark: int | None = None
        self.late = 0

    def __len__(self) -> int:
        return int(self.state.rows.num_rows + self.waiting.num_rows)

    def send(self, rows: pa.Table) -> pa.Table:
        """Takes in rows, and gives what is decided by them; those that come too late are counted and left out."""
        times = self.keep(rows)
        newest = int(times.max()) - self.delay if len(times) else self.watermark
        return self.advance(newest) if newest is not None else self._decided(self.waiting.slice(0, 0), -(2**62))

    def keep(self, rows: pa.Table) -> Int64s:
        """Keeps rows until the watermark passes them; the times of those that are not too late."""
        times = window_times(rows, self.clause)
        if self.watermark is not None:
            timely = times >= self.watermark
            self.late += int((~timely).sum())
            rows, times = rows.filter(pa.array(timely)), times[timely]
        self.waiting = pa.concat_tables([self.waiting, rows])
        return times

    def advance(self, watermark: int) -> pa.Table:
        """Time has passed: no row before the watermark will come."""
        self.watermark = watermark if self.watermark is None else max(watermark, self.watermark)
        passed = pc.less(pa.array(window_times(self.waiting, self.clause)), self.watermark)
        released, self.waiting = self.waiting.filter(passed), self.waiting.filter(pc.invert(passed))
        return self._decided(released, self.watermark - 1)

    def finish(self) -> pa.Table:
        """No more rows will come: decides everything."""
        released, self.waiting = self.waiting, self.waiting.slice(0, 0)
        return self._decided(released, 0, last=True)

    def _decided(self, released: pa.Table, horizon: int, *, last: bool = False) -> pa.Table:
        most = self.limits.max_matches
        with within_budget(self.limits.timeout, self.limits.max_bytes):
            result, self.state = step(
                self.clause, self.state, released, horizon, last=last, limit=self.max_rows, most=most
            )
        return result

    def earliest_decision(self) -> int | None:
        """The time at which something is decided even if no row comes: a row is released, or a window passes."""
        found = [int(times.min()) + 1] if len(times := window_times(self.waiting, self.clause)) else []
        if self.clause.within is not None and self.state.rows.num_rows:
            found.append(int(window_times(self.state.rows, self.clause).min()) + self.clause.within + 1)
        return min(found, default=None)

    def save(self) -> bytes:
        """What the stream knows, as bytes: tables of rows and numbers, nothing else."""
        names = [f"key {number}" for number in range(len(self.clause.partition_by))]
        kinds = [self.state.rows.schema.field(name).type for name in self.clause.partition_by]
        keys, places = list(self.state.resume), list(self.state.resume.values())
        columns = [pa.array([key[at] for key in keys], kind) for at, kind in enumerate(kinds)]
        columns += [pa.array([getattr(place, name) for place in places], kind) for name, kind in _PLACE.items()]
        resume = pa.Table.from_arrays(columns, names=[*names, *_PLACE])
        parts = [encoded(table) for table in (self.state.rows, self.waiting, resume)]
        known = self.watermark is not None
        head = struct.pack(_HEAD, VERSION, self.watermark or 0, int(known), self.late, *(len(part) for part in parts))
        return head + b"".join(parts)

    def restore(self, saved: bytes) -> None:
        """Goes on from a saved state of the same clause."""
        version, watermark, known, self.late, *lengths = struct.unpack_from(_HEAD, saved)
        if version != VERSION:
            raise DataError(f"the state is of version {version}, not {VERSION}", hint="start from a new checkpoint")
        self.watermark = watermark if known else None
        tables, at = [], struct.calcsize(_HEAD)
        for length in lengths:
            tables.append(pa.ipc.open_stream(saved[at : at + length]).read_all())
            at += length
        rows, self.waiting, resume = tables
        keys = [column.to_pylist() for column in resume.columns[: len(self.clause.partition_by)]]
        places = zip(*(resume.column(name).to_pylist() for name in _PLACE), strict=True)
        every = zip(*keys, strict=True) if keys else iter([()] * resume.num_rows)
        self.state = Retained(rows, {tuple(key): Resume(*place) for key, place in zip(every, places, strict=True)})


_PLACE = {"begin": pa.int64(), "number": pa.int64(), "matched": pa.int64(), "whole": pa.bool_()}

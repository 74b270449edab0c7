"""A row pattern over a stream, without Spark: rows in, decided rows out."""

from __future__ import annotations

import pyarrow as pa

from cepheid.budget import within_budget
from cepheid.engine.cold import answer
from cepheid.engine.search.preferred.arrange import window_times
from cepheid.engine.search.preferred.released import Resume, Retained, check_stream, nothing_retained, step
from cepheid.engine.search.preferred.run import result_schema
from cepheid.language.match_recognize.bound import BoundClause
from cepheid.plan.options import Limits
from cepheid.runners.stream.saved import packed_search, read_search, reading
from cepheid.runners.stream.searches import Int64s, SearchStream

KERNEL = "search.preferred.run"  # what is compiled
VERSION = 1  # of the saved state
_HEAD = "<iqiqqqq"  # version, watermark and whether there is one, late rows, three lengths


class RowStream(SearchStream):
    """A row pattern over rows as they come. Its time is the first column of ORDER BY."""

    def __init__(
        self,
        clause: BoundClause,
        schema: pa.Schema,
        delay: int = 0,
        max_rows: int | None = None,
        limits: Limits | None = None,
    ) -> None:
        check_stream(clause, max_rows)
        super().__init__(schema, answer(KERNEL, 0, lambda: result_schema(clause, schema)), delay)
        self.clause, self.max_rows = clause, max_rows
        self.limits = limits or Limits()  # of each step
        self.state: Retained = nothing_retained(clause, schema)

    def __len__(self) -> int:
        return int(self.state.rows.num_rows + self.waiting.num_rows)

    @property
    def time(self) -> str:
        """The first column of ORDER BY."""
        return self.clause.order_by[0].column

    @property
    def retained(self) -> pa.Table:
        """The rows from which a match may go on, and those that they look back at."""
        return self.state.rows

    def times(self, events: pa.Table) -> Int64s:
        """The times of rows."""
        return window_times(events, self.clause)

    def decided(self, released: pa.Table, end: int | None) -> pa.Table:
        """The rows of the result that are decided when the watermark has passed some rows."""

        def known() -> tuple[pa.Table, Retained]:
            return step(
                self.clause,
                self.state,
                released,
                0 if end is None else end - 1,
                last=end is None,
                limit=self.max_rows,
                most=self.limits.max_matches,
            )

        with within_budget(self.limits.timeout, self.limits.max_bytes):
            result, self.state = answer(KERNEL, released.num_rows, known)
        return result

    def earliest_decision(self) -> int | None:
        """The time at which something is decided even if no row comes: a row is released, or a window passes."""
        found = [int(times.min()) + 1] if len(times := self.times(self.waiting)) else []
        if self.clause.within is not None and self.state.rows.num_rows:
            found.append(int(self.times(self.state.rows).min()) + self.clause.within + 1)
        return min(found, default=None)

    def save(self) -> bytes:
        """What the stream knows, as bytes: tables of rows and numbers, nothing else."""
        names = [f"key {number}" for number in range(len(self.clause.partition_by))]
        kinds = [self.state.rows.schema.field(name).type for name in self.clause.partition_by]
        keys, places = list(self.state.resume), list(self.state.resume.values())
        columns = [pa.array([key[at] for key in keys], kind) for at, kind in enumerate(kinds)]
        columns += [pa.array([getattr(place, name) for place in places], kind) for name, kind in _PLACE.items()]
        resume = pa.Table.from_arrays(columns, names=[*names, *_PLACE])
        numbers = (VERSION, self.watermark or 0, int(self.watermark is not None), self.late)
        return packed_search(_HEAD, numbers, (self.state.rows, self.waiting, resume))

    def restore(self, saved: bytes) -> None:
        """Goes on from a saved state of the same clause."""
        with reading("a row pattern over these columns"):
            (watermark, known, late), (rows, waiting, resume) = read_search(_HEAD, VERSION, 3, saved)
            keys = [column.to_pylist() for column in resume.columns[: len(self.clause.partition_by)]]
            places = zip(*(resume.column(name).to_pylist() for name in _PLACE), strict=True)
            every = zip(*keys, strict=True) if keys else iter([()] * resume.num_rows)
            rows = rows.cast(self.state.rows.schema)  # the zones of instants are labels
            state = Retained(rows, {tuple(key): Resume(*place) for key, place in zip(every, places, strict=True)})
            waiting = waiting.select(self.waiting.schema.names).cast(self.waiting.schema)
        self.watermark, self.late, self.waiting, self.state = watermark if known else None, late, waiting, state


_PLACE = {"begin": pa.int64(), "number": pa.int64(), "matched": pa.int64(), "whole": pa.bool_()}

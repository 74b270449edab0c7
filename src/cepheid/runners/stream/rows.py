"""A row pattern over a stream, without Spark: rows in, decided rows out."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from cepheid.budget import within_budget
from cepheid.engine.engines import ROW_ENGINES
from cepheid.engine.jit_fallback import answer
from cepheid.engine.search.row_pattern.arrange import window_times
from cepheid.engine.search.row_pattern.computed_keys import with_keys
from cepheid.engine.search.row_pattern.finalized import Resume, Retained, check_stream, nothing_retained, step
from cepheid.engine.search.row_pattern.run import result_schema
from cepheid.language.match_recognize.bound import BoundClause
from cepheid.plan.options import Limits
from cepheid.runners.stream.searches import Int64s, SearchStream

KERNEL = ROW_ENGINES["preferred"].module  # what is compiled


class RowStream(SearchStream):
    """A row pattern over rows as they come. Its time is the first column of ORDER BY."""

    whose = "a row pattern"
    state: Retained

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
        self.state = nothing_retained(clause, schema)

    def __len__(self) -> int:
        return int(self.state.rows.num_rows + self.waiting.num_rows)

    @property
    def time(self) -> str:
        """The first column of ORDER BY."""
        return self.clause.order_by[0].column

    @property
    def computed_time(self) -> pa.Field | None:
        """The first key of ORDER BY, if it is no column."""
        if self.time in self.schema.names:
            return None
        return with_keys(self.schema.empty_table(), self.clause.keys, self.clause.text).schema.field(self.time)

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

    def parts(self) -> tuple[pa.Table, dict[str, int | None]]:
        """Where the search of each partition goes on."""
        names = [f"key {number}" for number in range(len(self.clause.partition_by))]
        columns = with_keys(self.state.rows.schema.empty_table(), self.clause.keys, self.clause.text).schema
        kinds = [columns.field(name).type for name in self.clause.partition_by]
        keys, places = list(self.state.resume), list(self.state.resume.values())
        values = [pa.array([key[at] for key in keys], kind) for at, kind in enumerate(kinds)]
        values += [pa.array([getattr(place, name) for place in places], kind) for name, kind in _PLACE.items()]
        return pa.Table.from_arrays(values, names=[*names, *_PLACE]), {}

    def resumed(self, retained: pa.Table, part: pa.Table, numbers: Mapping[str, int | None]) -> Retained:
        """The rows, and where the search of each partition goes on."""
        keys = [column.to_pylist() for column in part.columns[: len(self.clause.partition_by)]]
        places = zip(*(part.column(name).to_pylist() for name in _PLACE), strict=True)
        every = zip(*keys, strict=True) if keys else iter([()] * part.num_rows)
        return Retained(retained, {tuple(key): Resume(*place) for key, place in zip(every, places, strict=True)})


_PLACE = {"begin": pa.int64(), "number": pa.int64(), "matched": pa.int64(), "whole": pa.bool_()}

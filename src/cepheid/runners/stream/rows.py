"""A row pattern over a stream, without Spark: rows in, decided rows out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import pyarrow as pa

from cepheid.budget import within_budget
from cepheid.engine.engines import ROW_ENGINES
from cepheid.engine.incremental.row_core import NotIncrementalError, RowCore, refusal
from cepheid.engine.jit_fallback import answer
from cepheid.engine.search.row_pattern.arrange import window_times
from cepheid.engine.search.row_pattern.computed_keys import with_keys
from cepheid.engine.search.row_pattern.finalized import Resume, Retained, check_stream, nothing_retained, step
from cepheid.engine.search.row_pattern.run import arranged, program_of, result_schema
from cepheid.language.match_recognize.bound import BoundClause
from cepheid.plan.options import Limits
from cepheid.runners.stream.pushed import Place
from cepheid.runners.stream.row_results import RowResults
from cepheid.runners.stream.rows_pushed import PushedRows, RowTakesEvents
from cepheid.runners.stream.searches import MANY, OF_A_STEP, Int64s, SearchStream

KERNEL = ROW_ENGINES["preferred"].module  # what is compiled
PUSHING = "incremental.row_step"  # the same where the search stays in memory
LARGE = 5_000  # new rows that may be more than what is kept
Known: TypeAlias = Callable[[], tuple[pa.Table | None, Retained | Place]]


class RowStream(SearchStream):
    """A row pattern over rows as they come. Its time is the first column of ORDER BY."""

    whose = "a row pattern"
    state: Retained | Place
    pushed: PushedRows | None = None  # once there are enough rows

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
        self.may_push: bool | None = None  # None: nobody knows yet
        self.seen = 0

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

    def held_by(self, state: Retained) -> pa.Table:
        """The rows from which a match may go on, and those that they look back at."""
        return state.rows

    def times(self, events: pa.Table) -> Int64s:
        """The times of rows."""
        return window_times(events, self.clause)

    def decided(self, released: pa.Table, end: int | None) -> pa.Table:
        """The rows of the result that are decided when the watermark has passed some rows."""

        if self._may_push() and not self._is_large(released):
            try:
                return self._decided(PUSHING, released, lambda: self._pushed(released, end))
            except NotIncrementalError:
                self.may_push, self.state = False, self._retained()
        return self._decided(KERNEL, released, lambda: self._walked(released, end))

    def _decided(self, module: str, released: pa.Table, known: Known) -> pa.Table:
        self.seen += max(released.num_rows, OF_A_STEP)
        with within_budget(self.limits.timeout, self.limits.max_bytes):
            result, self.state = answer(module, released.num_rows, known)
        return self.result.empty_table() if result is None else result

    def _walked(self, released: pa.Table, end: int | None) -> tuple[pa.Table | None, Retained | Place]:
        """Searches all rows that are kept, from where the search of each partition stands."""
        horizon, most = 0 if end is None else end - 1, self.limits.max_matches
        return step(self.clause, self._retained(), released, horizon, last=end is None, limit=self.max_rows, most=most)

    def _pushed(self, released: pa.Table, end: int | None) -> tuple[pa.Table | None, Retained | Place]:
        """Goes on with the search that is in memory."""
        if self.pushed is None:
            self.pushed = PushedRows(self.clause, self.schema, self.max_rows, self.limits.max_matches)
        pushed, state = self.pushed, self.state
        pushed.go_to(state if isinstance(state, Place) else pushed.place_of(state.rows, state.resume, None))
        result = pushed.push(released.select(pushed.narrow.names), None if end is None else end - 1)
        pushed.tidy()
        return result, pushed.stands()

    def _may_push(self) -> bool:
        """Does the search stay in memory? Conditions on the path are compiled for that, which is worth it later on."""
        if self.may_push is None and self.seen >= MANY:
            self.may_push = refusal(self.clause, self.schema) is None
        return self.may_push is True

    def _is_large(self, released: pa.Table) -> bool:
        """Are there so many new rows that a search of all that are kept costs less than going on in memory?"""
        state = self.state
        kept = self.pushed.kept if isinstance(state, Place) and self.pushed is not None else len(self)
        return bool(released.num_rows >= LARGE and released.num_rows > 2 * kept)

    def takes_events(self) -> RowTakesEvents | None:
        """What takes in single rows from here on."""
        pushed, limited = self.pushed, self.limits.timeout or self.limits.max_bytes
        if limited or pushed is None or not isinstance(self.state, Place) or len(self.clause.order_by) > 1:
            return None
        core = pushed.core
        if core is None or core.interpreted or core.of_rows is None:
            return None
        pushed.go_to(self.state)
        pushed.at = self.state
        return RowTakesEvents(pushed, self.result)

    def replays(self) -> str | None:
        """Why all rows that are kept are searched again at each step."""
        return refusal(self.clause, self.schema)

    def reads_tables_alone(self) -> str | None:
        """Why single rows are made a table before they are searched."""
        if self.limits.timeout or self.limits.max_bytes:
            return "a limit of time or memory holds for each call"
        if len(self.clause.order_by) > 1:
            return "ORDER BY has several columns"
        core = RowCore(self.clause, self.schema)
        if core.ahead:
            return "a condition looks at later rows"
        return "a condition on a row is not compiled for single rows" if core.of_rows is None else None

    def computes_rows(self) -> str | None:
        """Why rows of the result are not made by kernels."""
        narrow = arranged(self.clause, self.schema.empty_table()).table.schema
        if RowResults.of(self.clause, program_of(self.clause), narrow, self.result) is None:
            return "a measure aggregates values, or has a type that kernels do not copy"
        return None

    def earliest_decision(self) -> int | None:
        """The time at which something is decided even if no row comes: a row is released, or a window passes."""
        found = [int(times.min()) + 1] if len(times := self.times(self.waiting)) else []
        state = self.state
        if isinstance(state, Place):
            assert self.pushed is not None
            due = self.pushed.earliest(state)
            found += [due + 1] if due is not None else []
        elif self.clause.within is not None and state.rows.num_rows:
            found.append(int(self.times(state.rows).min()) + self.clause.within + 1)
        return min(found, default=None)

    def parts(self) -> tuple[pa.Table, dict[str, int | None]]:
        """Where the search of each partition goes on."""
        names = [f"key {number}" for number in range(len(self.clause.partition_by))]
        state = self._retained()
        columns = with_keys(state.rows.schema.empty_table(), self.clause.keys, self.clause.text).schema
        kinds = [columns.field(name).type for name in self.clause.partition_by]
        keys, places = list(state.resume), list(state.resume.values())
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

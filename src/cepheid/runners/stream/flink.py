"""A Flink pattern over a stream, without Spark: events in, matches out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.budget import within_budget
from cepheid.engine.data.flink_runs import Reported
from cepheid.engine.data.table import times_of
from cepheid.engine.engines import FLINK_ENGINES
from cepheid.engine.jit_fallback import answer
from cepheid.engine.kernels.stop import briefly
from cepheid.engine.search.flink.finalized import Retained, compacted, nothing_retained, step
from cepheid.engine.search.flink.machine import LATEST
from cepheid.engine.search.flink.run import Search, result_schema
from cepheid.errors import EngineError
from cepheid.plan.flink_automaton import FlinkAutomaton
from cepheid.plan.flink_limits import LIMITS
from cepheid.plan.options import Limits
from cepheid.runners.stream.searches import Int64s, SearchStream

BRIEF = 20_000  # runs times events that take less time than to start a thread


class FlinkStream(SearchStream):
    """A Flink pattern over events as they come."""

    whose = "a Flink pattern"
    numbers = ("nearest",)
    state: Retained

    def __init__(
        self,
        automaton: FlinkAutomaton,
        schema: pa.Schema,
        delay: int = 0,
        partition_by: Sequence[str] = (),
        partial: bool = False,
        limits: Limits = LIMITS,
    ) -> None:
        super().__init__(schema, result_schema(automaton, schema, partial), delay)
        self.automaton = automaton
        self.partition_by, self.partial, self.limits = tuple(partition_by), partial, limits
        self.search = Search(automaton)
        self.state = nothing_retained(schema)

    def __len__(self) -> int:
        return int(self.state.events.num_rows + self.waiting.num_rows)

    @property
    def time(self) -> str:
        """The time column."""
        return self.automaton.schema.time

    @property
    def retained(self) -> pa.Table:
        """The events of runs that go on."""
        return self.state.events

    def times(self, events: pa.Table) -> Int64s:
        """The times of events."""
        return times_of(events, self.time)

    def decided(self, released: pa.Table, end: int | None) -> pa.Table:
        """The matches that are known when the watermark has passed some events."""
        if end is not None and not released.num_rows and self.state.nearest > end:
            return self.result.empty_table()

        def known() -> tuple[pa.Table | None, Retained]:
            with briefly(released.num_rows * (1 + len(self.state.runs.partition)) < BRIEF):
                return step(self.search, self.state, released, end, self.partition_by, self.partial, self.limits)

        with within_budget(self.limits.timeout, self.limits.max_bytes):
            result, self.state = answer(FLINK_ENGINES["automaton"].module, released.num_rows, known)
        return self.result.empty_table() if result is None else result

    def earliest_decision(self) -> int | None:
        """The watermark at which something is known even if no event comes."""
        times = self.times(self.waiting)
        found = min([self.state.nearest, *([int(times.min()) + 1] if len(times) else [])])
        return None if found == LATEST else found

    def parts(self) -> tuple[pa.Table, dict[str, int | None]]:
        """The runs that are open, and the next deadline."""
        self.state = compacted(self.state)
        runs = self.state.runs
        offsets = pa.array(runs.first, pa.int64())
        columns = {
            "partition": pa.array(runs.partition),
            "state": pa.array(runs.waiting),
            "complete": pa.array(runs.given_up),
            "event": pa.LargeListArray.from_arrays(offsets, pa.array(runs.row)),
            "step": pa.LargeListArray.from_arrays(offsets, pa.array(runs.step)),
        }
        return pa.table(columns), {"nearest": int(self.state.nearest)}

    def resumed(self, retained: pa.Table, part: pa.Table, numbers: Mapping[str, int | None]) -> Retained:
        """The events, the runs that are open, and the next deadline."""
        taken = [part.column(name).combine_chunks() for name in ("event", "step")]
        columns = [
            part.column("partition").to_numpy(),
            np.concatenate([[0], np.cumsum(pc.list_value_length(taken[0]).to_numpy(zero_copy_only=False))]),
            *(column.flatten().to_numpy() for column in taken),
            part.column("state").to_numpy(),
            part.column("complete").to_numpy(),
        ]
        nearest = numbers["nearest"]
        if nearest is None:
            raise ValueError("no deadline")
        return Retained(retained, Reported(*(np.array(each, np.int64) for each in columns)), nearest)


def check_compiled(automaton: FlinkAutomaton) -> None:
    """An error if the kernel, which streams need, cannot judge the conditions."""
    refused = FLINK_ENGINES["automaton"].supports(automaton)
    if refused is not None:
        hint = "match a table with engine='reference', or write the condition more simply"
        raise EngineError(f"the compiled automaton, which streams need, cannot run this pattern: {refused}", hint=hint)

"""A Flink pattern over a stream, without Spark: events in, matches out."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.budget import within_budget
from cepheid.engine.cold import answer
from cepheid.engine.data.table import times_of
from cepheid.engine.kernels.stop import briefly
from cepheid.engine.search.flink.conditions import NotCompiled, compile_conditions
from cepheid.engine.search.flink.machine import LATEST, Reported
from cepheid.engine.search.flink.moves import Moves
from cepheid.engine.search.flink.released import Retained, compacted, nothing_retained, step
from cepheid.engine.search.flink.run import result_schema
from cepheid.errors import DataError, EngineError
from cepheid.plan.flink_automaton import FlinkAutomaton
from cepheid.plan.flink_limits import LIMITS
from cepheid.plan.options import Limits
from cepheid.runners.arrow_bytes import encoded

BRIEF = 20_000  # runs times events that take less time than to start a thread
VERSION = 1  # of the saved state
_HEAD = "<iqiqqqqq"  # version, watermark and whether there is one, late events, the next deadline, three lengths


class FlinkStream:
    """Takes events as they come, at most `delay` steps late, and gives back the matches that are known.

    Times are those of the time column: whole numbers, or microseconds.
    """

    def __init__(
        self,
        automaton: FlinkAutomaton,
        schema: pa.Schema,
        delay: int = 0,
        partition_by: Sequence[str] = (),
        partial: bool = False,
        limits: Limits = LIMITS,
    ) -> None:
        self.automaton, self.schema, self.delay = automaton, schema, delay
        self.partition_by, self.partial, self.limits = tuple(partition_by), partial, limits
        self.moves = Moves(automaton)
        self.result = result_schema(automaton, schema, partial)
        self.state: Retained = nothing_retained(schema)
        self.waiting = schema.empty_table()  # events that the watermark has not passed
        self.watermark: int | None = None
        self.late = 0
        self.on_late: Callable[[pa.Table], object] | None = None

    def __len__(self) -> int:
        return int(self.state.events.num_rows + self.waiting.num_rows)

    def send(self, events: pa.Table) -> pa.Table:
        """Takes in events, and gives what is known by them; those that come too late are counted and left out."""
        times = self.keep(events)
        newest = int(times.max()) - self.delay if len(times) else self.watermark
        return self.advance(newest) if newest is not None else self.result.empty_table()

    def keep(self, events: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Keeps events until the watermark passes them; the times of those that are not too late."""
        times = times_of(events, self.automaton.schema.time)
        if self.watermark is not None:
            timely = times >= self.watermark
            late = int((~timely).sum())
            self.late += late
            if late and self.on_late is not None:
                self.on_late(events.filter(pa.array(~timely)))
            events, times = events.filter(pa.array(timely)), times[timely]
        self.waiting = pa.concat_tables([self.waiting, events])
        return times

    def advance(self, watermark: int) -> pa.Table:
        """Time has passed: no event before the watermark will come."""
        self.watermark = watermark if self.watermark is None else max(watermark, self.watermark)
        passed = pc.less(pa.array(times_of(self.waiting, self.automaton.schema.time)), self.watermark)
        released, self.waiting = self.waiting.filter(passed), self.waiting.filter(pc.invert(passed))
        if not released.num_rows and self.state.nearest > self.watermark:
            return self.result.empty_table()
        return self._known(released, self.watermark)

    def finish(self) -> pa.Table:
        """No more events will come."""
        released, self.waiting = self.waiting, self.waiting.slice(0, 0)
        return self._known(released, None)

    def _known(self, released: pa.Table, end: int | None) -> pa.Table:
        def known() -> tuple[pa.Table | None, Retained]:
            with briefly(released.num_rows * (1 + len(self.state.runs.partition)) < BRIEF):
                return step(self.moves, self.state, released, end, self.partition_by, self.partial, self.limits)

        try:
            with within_budget(self.limits.timeout, self.limits.max_bytes):
                result, self.state = answer("search.flink.kernel", released.num_rows, known)
        except NotCompiled:
            raise not_compiled() from None
        return self.result.empty_table() if result is None else result

    def earliest_decision(self) -> int | None:
        """The watermark at which something is known even if no event comes."""
        times = times_of(self.waiting, self.automaton.schema.time)
        found = min([self.state.nearest, *([int(times.min()) + 1] if len(times) else [])])
        return None if found == LATEST else found

    def save(self) -> bytes:
        """What the stream knows, as bytes: tables of events and numbers, nothing else."""
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
        parts = [encoded(table) for table in (self.state.events, self.waiting, pa.table(columns))]
        known = self.watermark is not None
        sizes = (len(part) for part in parts)
        head = struct.pack(_HEAD, VERSION, self.watermark or 0, int(known), self.late, self.state.nearest, *sizes)
        return head + b"".join(parts)

    def restore(self, saved: bytes) -> None:
        """Goes on from a saved state of the same pattern."""
        version, watermark, known, self.late, nearest, *lengths = struct.unpack_from(_HEAD, saved)
        if version != VERSION:
            raise DataError(f"the state is of version {version}, not {VERSION}", hint="start from a new checkpoint")
        self.watermark = watermark if known else None
        tables, at = [], struct.calcsize(_HEAD)
        for length in lengths:
            tables.append(pa.ipc.open_stream(saved[at : at + length]).read_all())
            at += length
        events, self.waiting, runs = tables
        taken = [runs.column(name).combine_chunks() for name in ("event", "step")]
        numbers = [
            runs.column("partition").to_numpy(),
            np.concatenate([[0], np.cumsum(pc.list_value_length(taken[0]).to_numpy(zero_copy_only=False))]),
            *(column.flatten().to_numpy() for column in taken),
            runs.column("state").to_numpy(),
            runs.column("complete").to_numpy(),
        ]
        self.state = Retained(events, Reported(*(np.array(part, np.int64) for part in numbers)), nearest)


def check_compiled(automaton: FlinkAutomaton, schema: pa.Schema) -> None:
    """An error if the kernel cannot judge the conditions over events of a schema."""
    try:
        compile_conditions(automaton, schema.empty_table())
    except NotCompiled:
        raise not_compiled() from None


def not_compiled() -> EngineError:
    """The kernel of streams cannot judge a condition."""
    hint = "match a table with engine='reference', or write the condition more simply"
    return EngineError("a condition is beyond the compiled automaton, which streams need", hint=hint)

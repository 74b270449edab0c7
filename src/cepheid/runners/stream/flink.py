"""A Flink pattern over a stream, without Spark: events in, matches out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.budget import within_budget
from cepheid.engine.data.flink_runs import Reported
from cepheid.engine.data.table import in_plain_types, ordered, times_of
from cepheid.engine.engines import FLINK_ENGINES
from cepheid.engine.incremental.flink_core import FlinkCore, refusal
from cepheid.engine.incremental.flink_dicts import DictKinds, reads_dicts
from cepheid.engine.jit_fallback import answer
from cepheid.engine.kernels.stop import briefly
from cepheid.engine.search.flink.conditions import places
from cepheid.engine.search.flink.finalized import Retained, compacted, nothing_retained, step
from cepheid.engine.search.flink.machine import LATEST
from cepheid.engine.search.flink.run import Search
from cepheid.errors import EngineError
from cepheid.language.schema import Schema
from cepheid.plan.flink_automaton import FlinkAutomaton
from cepheid.plan.flink_limits import LIMITS
from cepheid.plan.options import Limits
from cepheid.runners.results import assemble_steps, steps_schema
from cepheid.runners.stream.flink_pushed import FlinkTakesEvents, PushedFlink
from cepheid.runners.stream.pushed import Place
from cepheid.runners.stream.searches import MANY, OF_A_STEP, Int64s, SearchStream

PUSHING = "incremental.flink_step"  # what is compiled where runs stay in memory
BRIEF = 20_000  # runs times events that take less time than to start a thread


class FlinkStream(SearchStream):
    """A Flink pattern over events as they come."""

    whose = "a Flink pattern"
    numbers = ("nearest",)
    state: Retained | Place
    pushed: PushedFlink | None = None  # once there are enough events

    def __init__(
        self,
        automaton: FlinkAutomaton,
        schema: pa.Schema,
        delay: int = 0,
        partition_by: Sequence[str] = (),
        partial: bool = False,
        limits: Limits = LIMITS,
    ) -> None:
        super().__init__(schema, steps_schema(automaton, schema, partial), delay)
        self.automaton = automaton
        self.partition_by, self.partial, self.limits = tuple(partition_by), partial, limits
        self.search = Search(automaton)
        self.state = nothing_retained(schema)
        self.kinds: DictKinds | None = None  # of single events
        self.may_push: bool | None = None  # None: nobody knows yet
        self.seen = 0

    @property
    def time(self) -> str:
        """The time column."""
        return self.automaton.schema.time

    def held_by(self, state: Retained) -> pa.Table:
        """The events of runs that go on."""
        return state.events

    @property
    def _nearest(self) -> int:
        """No run is given up before."""
        state = self.state
        if not isinstance(state, Place):
            return state.nearest
        assert self.pushed is not None
        return self.pushed.nearest(state)

    def times(self, events: pa.Table) -> Int64s:
        """The times of events."""
        return times_of(events, self.time)

    def decided(self, released: pa.Table, end: int | None) -> pa.Table:
        """The matches that are known when the watermark has passed some events."""
        if end is not None and not released.num_rows and self._nearest > end:
            return self.result.empty_table()
        self.seen += max(released.num_rows, OF_A_STEP)
        pushes = self._may_push()
        known, module = (self._pushed, PUSHING) if pushes else (self._walked, FLINK_ENGINES["automaton"].module)
        with within_budget(self.limits.timeout, self.limits.max_bytes):
            result, self.state = answer(module, released.num_rows, lambda: known(released, end))
        return self.result.empty_table() if result is None else result

    def _walked(self, released: pa.Table, end: int | None) -> tuple[pa.Table | None, Retained | Place]:
        """Takes the runs up anew."""
        state = self._retained()
        with briefly(released.num_rows * (1 + len(state.runs.partition)) < BRIEF):
            found, after = step(self.search, state, released, end, self.partition_by, self.partial, self.limits)
        return assemble_steps(self.automaton, *found, self.partial) if len(found[1]) else None, after

    def _pushed(self, released: pa.Table, end: int | None) -> tuple[pa.Table | None, Retained | Place]:
        """Goes on with the runs that are in memory."""
        if self.pushed is None:
            self.pushed = PushedFlink(self.search, self.schema, self.partition_by, self.partial, self.limits)
        pushed, state = self.pushed, self.state
        pushed.go_to(state if isinstance(state, Place) else pushed.place_of(state.events, state.runs, None))
        released, times = in_order(released, self.automaton.schema)
        pushed.push(released, times)
        pushed.let_pass(LATEST if end is None else end)
        found = pushed.found()
        pushed.tidy()
        return found, pushed.stands()

    def _may_push(self) -> bool:
        """Do runs stay in memory? Conditions that look back are compiled for that, which is worth it later on."""
        if self.may_push is None and (self.seen >= MANY or not places(self.automaton)):
            self.may_push = self.replays() is None
        return self.may_push is True

    def replays(self) -> str | None:
        """Why the runs are taken up anew at each step."""
        if not in_plain_types(self.schema.empty_table()).schema.equals(self.schema):
            return "some columns have types that are converted first"
        return refusal(self.search, self.schema, self.partition_by)

    def reads_tables_alone(self) -> str | None:
        """Why single events are made a table before runs take them."""
        if self.limits.timeout or self.limits.max_bytes:
            return "a limit of time or memory holds for each call"
        if self.automaton.schema.tiebreak:
            return "a column breaks ties"
        core = FlinkCore(self.search, self.partition_by, self.partial, self.limits)
        reads = reads_dicts(core, DictKinds(self.search, self.schema), self.schema)
        return None if reads else "conditions read more than numbers, truth values and one column of texts each"

    def computes_rows(self) -> str | None:
        """Why rows of the result are not made by kernels."""
        return "partial matches are reported" if self.partial else None

    def takes_events(self) -> FlinkTakesEvents | None:
        """What takes in single events from here on."""
        pushed, limited = self.pushed, self.limits.timeout or self.limits.max_bytes
        if limited or pushed is None or not isinstance(self.state, Place) or self.automaton.schema.tiebreak:
            return None
        core = pushed.core
        if core is None or core.interpreted:
            return None
        if self.kinds is None:
            self.kinds = DictKinds(self.search, self.schema)
        if not reads_dicts(core, self.kinds, self.schema):
            return None
        pushed.go_to(self.state)
        pushed.at = self.state
        return FlinkTakesEvents(pushed, self.kinds, self.result)

    def earliest_decision(self) -> int | None:
        """The watermark at which something is known even if no event comes."""
        times = self.times(self.waiting)
        found = min([self._nearest, *([int(times.min()) + 1] if len(times) else [])])
        return None if found == LATEST else found

    def parts(self) -> tuple[pa.Table, dict[str, int | None]]:
        """The runs that are open, and the next deadline."""
        if not isinstance(self.state, Place):
            self.state = compacted(self.state)
        state = self._retained()
        runs = state.runs
        offsets = pa.array(runs.first, pa.int64())
        columns = {
            "partition": pa.array(runs.partition),
            "state": pa.array(runs.waiting),
            "complete": pa.array(runs.given_up),
            "event": pa.LargeListArray.from_arrays(offsets, pa.array(runs.row)),
            "step": pa.LargeListArray.from_arrays(offsets, pa.array(runs.step)),
        }
        return pa.table(columns), {"nearest": int(state.nearest)}

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


def in_order(events: pa.Table, schema: Schema) -> tuple[pa.Table, Int64s]:
    """Events in order of time, those of one instant as they came, and their times."""
    times = times_of(events, schema.time)
    if not schema.tiebreak and bool((times[1:] >= times[:-1]).all()):
        return events, times
    sorted_events = ordered(events, schema)
    return sorted_events.table, np.asarray(sorted_events.time, np.int64)


def check_compiled(automaton: FlinkAutomaton) -> None:
    """An error if the kernel, which streams need, cannot judge the conditions."""
    refused = FLINK_ENGINES["automaton"].supports(automaton)
    if refused is not None:
        hint = "match a table with engine='reference', or write the condition more simply"
        raise EngineError(f"the compiled automaton, which streams need, cannot run this pattern: {refused}", hint=hint)

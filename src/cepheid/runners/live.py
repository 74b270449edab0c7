"""`cepheid.live`: a query over events as they come, without Spark. Events in, matches out, in milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.choose import make_plan
from cepheid.engine.find import automaton_text
from cepheid.engine.incremental.queries import decided
from cepheid.errors import CepheidError, DataError
from cepheid.language.checked import CheckedQuery
from cepheid.language.durations import whole_steps
from cepheid.language.schema import Schema
from cepheid.plan.explain import explain
from cepheid.plan.physical import Plan
from cepheid.runners import live_fast
from cepheid.runners.composition import check_sources, in_order, lateness
from cepheid.runners.languages import LiveStart
from cepheid.runners.live_door import Mark, door_for
from cepheid.runners.live_events import EventReader, as_schema, most_ahead, with_times
from cepheid.runners.live_face import LiveFace, LiveState, Numbers, StepResult
from cepheid.runners.many import check_names
from cepheid.runners.nested import with_fields
from cepheid.runners.options import Options, refuse_output
from cepheid.runners.stream.identity import fingerprint
from cepheid.runners.stream.incremental_levels import ResidentLevels, local_levels
from cepheid.runners.stream.incremental_shard import ChunkCache, Resident, how_it_is_searched
from cepheid.runners.stream.state import Outcome, StreamStep
from cepheid.runners.ties import in_row_order
from cepheid.runners.worker_plans import common_result, result_table, ship_here

T = TypeVar("T")


class Live(LiveFace):
    """A query at work: `send` it events, in any table or one by one, and get the matches that are complete.

    A match is known when no event that may still come can change it: `delay` says how much older than the newest event
    others may be when they come; `advance` and `finish` say that time has passed though nothing came.
    """

    def __init__(self, resident: Resident, reader: EventReader) -> None:
        super().__init__(reader, resident.held(), resident.step.plans)
        self.resident = resident
        self._shipments = resident.shipments
        self._result = common_result(self._shipments)
        composed = isinstance(resident, ResidentLevels)
        self._fast = live_fast.door_for(resident, reader, self._result)
        if self._fast is not None and not self._fast.readable:
            self._fast = None
        waits = not composed and self._fast is None
        self._door = door_for(resident.step.plans, reader, resident.step.delay) if waits else None
        self._state = self._state._replace(mark=Mark())
        self._opened: LiveState | None = None  # the state that the short way goes on from

    # --- the short way (live_fast.py) ---------------------------------------------------------------------------------

    def send(self, events: Any) -> Any:
        """Takes in events and returns the matches that are known now, as a table of the same kind.

        An event as a mapping, or a list of them, gives a list of mappings. If it raises an error, nothing of it
        happened, and the same events can be sent again.
        """
        fast = self._fast
        if fast is None:
            return self._sent_the_long_way(events)
        if type(events) is dict:
            found: list[Any] = []
            try:
                left = fast.call(events, found, fast.at, 0)
                if left == 0:
                    return found
            except BaseException:
                fast.undo(self, events)
                raise
            if left > 0:
                return fast._alone(self, events, is_in=True)
        self._check_alone()
        return fast._alone(self, events)

    def _is_open(self) -> bool:
        """Can events come the short way?"""
        fast, state = self._fast, self._state
        assert fast is not None
        if self._opened is state and not fast.is_overtaken:
            if fast.is_broken:
                fast.mend()
            if not fast.is_crowded():
                return True
            state = self._latest()
        if state.finished or not fast.open(state.held, state.ties, state.numbers.events):
            return False
        self._opened = state
        return True

    def _latest(self) -> LiveState:
        """All that is known now, with what came the short way."""
        fast, state = self._fast, self._state
        if fast is None or self._opened is not state:
            return state
        tied = fast.closed()
        if not fast.events:
            return state
        held, ties = self.resident.held(), state.ties
        tables = [self.reader.read([each]).table if type(each) is dict else each for each in tied]
        ties = ties.pass_by(fast.events - sum(table.num_rows for table in tables))
        if tables:
            ties = ties.take(pa.concat_tables([table.select(ties.names) for table in tables]), None, held.until)
        numbers = state.numbers
        numbers = replace(numbers, events=numbers.events + fast.events, matches=numbers.matches + fast.matches)
        self._state = LiveState(held, ties, numbers, back=fast.back or state.back, mark=state.mark)
        return self._state

    # --- single events: those that decide nothing wait (live_door.py) ------------------------------------------------

    def _sent_the_long_way(self, events: Any) -> Any:
        door = self._door
        if door is None:
            return super().send(events)
        self._check_alone()
        if type(events) is dict and not self._state.finished and self._lock.acquire(blocking=False):
            before = None
            try:
                state = self._state
                if door.is_closed:
                    door.open(state.held.newest, state.held.until)
                before = door.place
                waits = door.waits(events, state.held.until, state.mark)
                self._lock.release()
                if waits:
                    return []
            except BaseException:  # such as Ctrl-C
                if before is not None:
                    door.go_back(before)
                if self._is_at_work:
                    self._lock.release()
                raise
            if waits is False:
                return self._alone(self._open(lambda state: self._caught_up(state, [events])), catch_up=False)
        door.close()
        return super().send(events)

    def advance(self, time: Any) -> Any:
        """Says that nothing at or before a time will come any more, and returns what that decides."""
        if self._door is not None:
            self._door.close()
        return super().advance(time)

    @property
    def numbers(self) -> Numbers:
        """How many events, late events and matches there were, and what is kept of them."""
        waits = self._door is not None or self._fast is not None
        if waits and not self._is_at_work:
            self._alone(lambda state: (state, None))
        return super().numbers

    def _alone(self, step: Callable[[LiveState], tuple[LiveState, T]], catch_up: bool = True) -> T:
        if self._door is None or not catch_up:
            return super()._alone(step)

        def after_those_that_wait(state: LiveState) -> tuple[LiveState, T]:
            state, told = self._caught_up(state)
            assert not len(told), "buffered events are not decided"
            return step(state)

        return super()._alone(after_those_that_wait)

    def _caught_up(self, state: LiveState, more: Sequence[Any] = ()) -> tuple[LiveState, Any]:
        """The state after the events that wait, and some more; and what they decide."""
        assert self._door is not None
        events, passed, mark = self._door.unseen(state.mark)
        if not events and not more:
            return state, ()
        after, told = self._sent(state, [*events, *more])
        numbers = replace(after.numbers, events=after.numbers.events + passed)
        return after._replace(numbers=numbers, mark=mark), told

    def lateness_of(self, name: str) -> int | None:
        """How long after its end a match of a query may become known."""
        levels = self.resident.levels if isinstance(self.resident, ResidentLevels) else ()
        behind = {level.step.numbers[0]: level.step.delay for level, _ in levels}  # the clock of the events
        number = next(number for number, each in enumerate(self._shipments) if each.name in (name, None))
        own = lateness(self._shipments[number].plan)
        return None if own is None else own + behind.get(number, 0)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the matches."""
        return self._result

    @property
    def _clock(self) -> str:
        schema = self.resident.step.plans[0].bound.schema
        return schema.lower or schema.time

    def _take(self, held: ChunkCache, events: pa.Table) -> tuple[ChunkCache, StepResult]:
        self.resident.begin(held)
        return self._found(self.resident.take(events))

    def _pass(self, held: ChunkCache, until: int) -> tuple[ChunkCache, StepResult]:
        self.resident.begin(held)
        return self._found(self.resident.take(None, until))

    def _end(self, held: ChunkCache) -> tuple[ChunkCache, StepResult]:
        self.resident.begin(held)
        return self._found(self.resident.finish())

    def _packed(self, held: ChunkCache) -> tuple[ChunkCache, bytes]:
        self.resident.begin(held)
        packed = self.resident.save()
        return self.resident.held(), packed

    def explain(self) -> str:
        """The plan of each query, and how a call searches: where it stopped, or what is kept again, and why."""
        told = []
        for worker_plan, search in zip(self._shipments, self.resident.searches, strict=True):
            plan = decided(worker_plan.plan)
            name = "" if worker_plan.name is None else f"{worker_plan.name}\n\n"
            how = {"Live": how_it_is_searched(search)}
            told.append(name + explain(plan, plan.bound, automaton=automaton_text(plan), more=how))
        return "\n\n".join(told)

    def forecast(self, at: Any = None) -> Any:
        """All partial matches that are open at an instant, with the probability that they complete, and when.

        They are those of all events that were sent (`cepheid.forecast`). `at` is the newest time that is known unless
        it is given. Of several queries those with FORECAST count; if none has it, all do.
        """
        from cepheid.runners.forecast import open_partial_matches

        def step(state: LiveState) -> tuple[LiveState, Any]:
            kept: ChunkCache = state.held
            known = [each for each in (kept.newest, kept.until) if each is not None]
            moment = max(known, default=0) if at is None else self.reader.steps_of(at, self._clock)
            if kept.until is not None and moment < kept.until:
                message = f"{at!r} is before the watermark, and events of that time may have expired"
                raise DataError(message, hint="leave `at` out, or forecast a table of the events with cepheid.forecast")
            self.resident.begin(kept)
            found = state.back(open_partial_matches(self.resident.sources(), moment))
            return state._replace(held=self.resident.held()), found

        return self._alone(self._open(step))

    def _found(self, outcome: Outcome) -> tuple[ChunkCache, StepResult]:
        found = result_table(self._shipments, outcome.results, self._result)
        return self.resident.held(), StepResult(found, outcome.late)


def live_query(
    query: CheckedQuery | Mapping[str, CheckedQuery], schema: Any, start: LiveStart, keywords: Mapping[str, Any]
) -> Live:
    """A live query, or several with names, over events of a schema; see `cepheid.live`."""
    options = Options.from_keywords(keywords)
    if options.uncertainty is not None:
        hint = "send events with the columns of their bounds, and pass lower='...' and upper='...'"
        raise CepheidError("a live query does not make bounds from one time column", hint=hint)
    if options.aside is not None and not callable(options.aside):
        hint = "for example aside=bad.append, which gets a table whenever there are some"
        raise CepheidError("a live query gives bad records to a function, and aside is a path", hint=hint)
    refuse_output(options, "a live query")
    given = as_schema(schema)
    clocks = tuple(name for name in (options.time, options.lower, options.upper) if name is not None)
    columns = with_times(schema, given, clocks, options.time_format, options.tz)
    check_zone(columns, options)
    named = query if isinstance(query, Mapping) else {}
    queries: dict[str | None, CheckedQuery] = dict(named.items()) if isinstance(query, Mapping) else {None: query}
    if isinstance(query, Mapping):
        check_names(query)
    plans: dict[str | None, Plan] = {}
    whole = with_fields(columns, [one.syntax for one in queries.values()])
    options, whole = in_row_order(options, whole)
    composed = {name: named[name] for name in in_order(named) if named[name].sources}
    for name, one in queries.items():
        if name in composed:
            continue
        check_sources(one)
        bound = one.bind(Schema.from_arrow(whole, **options.roles()))
        plan, _ = make_plan(bound, None, options)
        why = plan.exchange.retention.for_ever
        if why is not None:
            raise CepheidError(f"this query cannot run live: {why}", hint="add WITHIN, or match a table")
        plans[name] = plan
    shipments = tuple(ship_here(plan, whole, name) for name, plan in plans.items())
    needed = {name for worker_plan in shipments for name in worker_plan.plan.bound.schema.names}
    narrow = pa.schema([column for column in whole if column.name in needed])
    steps = whole_steps(start.delay, shipments[0].plan.bound.schema, "delay")
    step = StreamStep(
        shipments, tuple(range(len(shipments))), steps, plans=tuple(each.plan for each in shipments), schema=narrow
    )
    resident: Resident
    if composed:
        levels = local_levels(composed, shipments, options)
        of_all = (*shipments, *(level.step.shipments[0] for level in levels))
        resident = ResidentLevels(step, narrow, fingerprint(of_all, 1), levels)
    else:
        resident = Resident(step, narrow, fingerprint(shipments, 1))
    if start.state is not None:
        resident.restore(start.state)
    ahead = most_ahead(start.max_ahead, shipments[0].plan.bound.schema)
    first = _next_row(resident, options)
    reader = EventReader(given, columns, narrow, clocks, next(iter(queries.values())), options, ahead, first)
    return Live(resident, reader)


def _next_row(resident: Resident, options: Options) -> int:
    """The number of the next event, after all that are kept: those of times to come are among them."""
    if options.row_column is None or not len(resident):
        return 0
    return 1 + int(pc.max(resident.table().column(options.row_column)).as_py())


def check_zone(columns: pa.Schema, options: Options) -> None:
    """An error for a zone that would have to be put on times that come without one."""
    for name in (options.time, options.lower, options.upper):
        if options.tz is not None and name is not None and name in columns.names:
            kind = columns.field(name).type
            if pa.types.is_timestamp(kind) and kind.tz is None:
                hint = f"give '{name}' the type pa.timestamp('{kind.unit}', tz={options.tz!r})"
                raise DataError(f"column '{name}' has no zone, and a live query takes times as they are", hint=hint)

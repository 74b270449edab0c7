"""What every live query offers besides finding matches: one call at a time, and each call is atomic.

All that a live query knows is one value, `_state`, which nothing changes. A call works out the next one, and putting
that in its place is the last thing it does: an error, a limit or Ctrl-C before that leaves everything as it was.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from cepheid.budget import within_budget
from cepheid.errors import CepheidError
from cepheid.plan.physical import Plan
from cepheid.runners.live_events import EventReader
from cepheid.runners.ties import LiveTies

T = TypeVar("T")


@dataclass(frozen=True)
class Numbers:
    """What a live query has seen so far."""

    events: int = 0
    late: int = 0  # came after time had passed them, and were left out
    matches: int = 0
    retained: int = 0  # events in memory, those included that a later match turns out not to need
    state_bytes: int = 0  # that they take
    watermark: int | None = None  # all matches that complete by then are known; in steps of the time column
    ties: int = 0  # events up to there that share time and key with another: these do not follow each other
    bad: int = 0  # records that were left out, since they cannot be events (`bad_records`, `max_ahead`)


class StepResult(NamedTuple):
    """What a step found."""

    table: pa.Table
    late: pa.Table | None = None


class LiveState(NamedTuple):
    """All that a live query knows."""

    held: Any  # the events, and what its search made of them
    ties: LiveTies
    numbers: Numbers = Numbers()
    finished: bool = False
    back: Callable[[pa.Table], Any] = lambda table: table  # to the kind of table that came last
    mark: Any = None  # how many of the events that waited have been looked at (live_door.py)


class LiveFace(ABC):
    """A query at work, of whatever kind: what `cepheid.live` returns, and `cepheid.Live` names for type checkers."""

    def __init__(self, reader: EventReader, held: Any, plans: Sequence[Plan] = ()) -> None:
        self.reader = reader
        self._state = LiveState(held, LiveTies.of(plans))
        # It knows its thread: a signal handler or a finalizer may call a live query in the midst of another call.
        self._lock = threading.RLock()
        self.on_late: Callable[[pa.Table], object] | None = None  # gets events that came too late

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of the matches."""

    def lateness_of(self, name: str) -> int | None:
        """How long after its end a match of a query may become known, in steps of the time column; None: no one knows.

        Of several queries, `name` is the one that is meant.
        """
        return None

    @property
    def held(self) -> Any:
        """The events that are kept, and what the search made of them."""
        return self._state.held

    @property
    def numbers(self) -> Numbers:
        """How many events, late events and matches there were, and what is kept of them."""
        state = self._state
        held, until = state.held, None if state.finished else state.held.until
        ties = state.ties.count(held.until)
        return replace(state.numbers, retained=len(held), state_bytes=held.nbytes, watermark=until, ties=ties)

    def send(self, events: Any) -> Any:
        """Takes in events and returns the matches that are known now, as a table of the same kind.

        An event as a mapping, or a list of them, gives a list of mappings. If it raises an error, nothing of it
        happened, and the same events can be sent again.
        """

        return self._alone(self._open(lambda state: self._sent(state, events)))

    def _sent(self, state: LiveState, events: Any) -> tuple[LiveState, Any]:
        """The state after some events, and what they decide."""
        seen = state.numbers
        read = self.reader.read(events, seen.events)
        held, found = self._take(state.held, read.table)
        ties = state.ties.take(read.table, None if found.late is None else state.held.until, held.until)
        seen = Numbers(seen.events + read.table.num_rows, seen.late, seen.matches, bad=seen.bad + read.bad)
        told = self._told(LiveState(held, ties, seen, back=read.back, mark=state.mark), found)
        read.set_aside()
        return told

    def advance(self, time: Any) -> Any:
        """Says that nothing at or before a time will come any more, and returns what that decides."""

        def step(state: LiveState) -> tuple[LiveState, Any]:
            held, found = self._pass(state.held, self.reader.steps_of(time, self._clock))
            return self._told(state._replace(held=held), found)

        return self._alone(self._open(step))

    def finish(self) -> Any:
        """Says that nothing will come any more, as at the end of a table, and returns what that decides."""

        def step(state: LiveState) -> tuple[LiveState, Any]:
            held, found = self._end(state.held)
            state.ties.count(held.until)
            return self._told(state._replace(held=held, finished=True), found)

        return self._alone(self._open(step))

    def explain(self) -> str:
        """The plan of each query, and how a call searches: where it stopped, or what is kept again, and why."""
        raise CepheidError("this live query cannot say how it searches", hint="query text can")

    def forecast(self, at: Any = None) -> Any:
        """All partial matches that are open at an instant, with the probability that they complete, and when."""
        raise CepheidError("this live query has no forecast", hint="forecast a query text without OUTPUT PARTIAL")

    def save(self) -> bytes:
        """All that is needed to go on later or elsewhere: `cepheid.live(..., state=...)`."""

        def step(state: LiveState) -> tuple[LiveState, bytes]:
            held, packed = self._packed(state.held)
            return state._replace(held=held), packed

        return self._alone(step)

    async def matches(self, source: AsyncIterable[Any], *, finish: bool = False) -> AsyncIterator[Any]:
        """The matches of an asynchronous source of events, as they become known.

        That the source ends says nothing about time: another may go on where it stopped. `finish=True` says that
        nothing will come any more, as `finish()` does.
        """
        async for events in source:
            found = self.send(events)
            if len(found):
                yield found
        if finish:
            found = self.finish()
            if len(found):
                yield found

    # --- what the kinds of live queries do in their own ways ---------------------------------------------------------

    @property
    @abstractmethod
    def _clock(self) -> str:
        """The column that time is told by."""

    @abstractmethod
    def _take(self, held: Any, events: pa.Table) -> tuple[Any, StepResult]:
        """What is held after some events, and what they decide."""

    @abstractmethod
    def _pass(self, held: Any, until: int) -> tuple[Any, StepResult]:
        """The same after time has passed."""

    @abstractmethod
    def _end(self, held: Any) -> tuple[Any, StepResult]:
        """The same at the end of time."""

    @abstractmethod
    def _packed(self, held: Any) -> tuple[Any, bytes]:
        """What is held as bytes, and what is held after that: what no later match needs may have gone."""

    def _shown(self, found: pa.Table) -> pa.Table:
        """What was found as the result has it."""
        return found

    # --- one call at a time, whole or not at all ---------------------------------------------------------------------

    def _told(self, state: LiveState, found: StepResult) -> tuple[LiveState, Any]:
        """The state with what was found counted, and that as the user gets it."""
        told = state.back(self._shown(found.table))
        if not found.table.num_rows and found.late is None:
            return state, told
        seen, late = state.numbers, 0
        if found.late is not None:
            late = found.late.num_rows
            if self.on_late is not None:
                self.on_late(found.late)
        numbers = replace(seen, late=seen.late + late, matches=seen.matches + found.table.num_rows)
        return state._replace(numbers=numbers), told

    def _open(self, step: Callable[[LiveState], tuple[LiveState, T]]) -> Callable[[LiveState], tuple[LiveState, T]]:
        def checked(state: LiveState) -> tuple[LiveState, T]:
            if state.finished:
                raise CepheidError("this live query is finished", hint="make another with cepheid.live(...)")
            with within_budget(self.reader.options.timeout, self.reader.options.max_bytes):
                return step(state)

        return checked

    def _latest(self) -> LiveState:
        """All that is known now."""
        return self._state

    @property
    def _is_at_work(self) -> bool:
        """Is this thread in the midst of a call?"""
        owned: bool = self._lock._is_owned()  # type: ignore[attr-defined]  # as threading.Condition asks it
        return owned

    def _check_alone(self) -> None:
        if self._is_at_work:
            hint = "call it after the other call has returned, not in a function or a signal handler that runs in it"
            raise CepheidError("a live query was called during another call", hint=hint)

    def _alone(self, step: Callable[[LiveState], tuple[LiveState, T]]) -> T:
        """Takes a step while no other is taken; it happens with the assignment to `_state`, or not at all."""
        self._check_alone()
        before = after = None
        try:
            with self._lock:
                before = self._latest()
                after, told = step(before)
                self._state = after
            return told
        except BaseException:
            if before is not None and after is not None:  # Ctrl-C came between the assignment and the end of the call
                with self._lock:
                    if self._state is after:
                        self._state = before
            raise

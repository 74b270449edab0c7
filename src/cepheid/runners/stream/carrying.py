"""What a search in memory carries from step to step besides events: ends of NON-OVERLAP, and sums of SUMMARISE.

A search that goes on finds all new matches of a step. Here it is decided which of them are reported, and which only
count. What is carried can be packed as a state has it, and taken back if a step did not come to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.matches import MISSING, NEVER, Chosen, Matches
from cepheid.engine.data.table import EventTable, times_of
from cepheid.engine.find import last_ends
from cepheid.engine.incremental.core import BEGINNING, Core
from cepheid.engine.incremental.pushed_matches import PushedMatches, joined, some_of
from cepheid.engine.output.maximal import are_maximal
from cepheid.engine.output.overlap import Partition, non_overlapping
from cepheid.engine.retention import reach
from cepheid.language import syntax as s
from cepheid.language.totals import BUCKET
from cepheid.language.zone_labels import labelled_table
from cepheid.plan.physical import Plan
from cepheid.runners.arrow_bytes import encoded
from cepheid.runners.checksums import decoded_state
from cepheid.runners.stream import totals
from cepheid.runners.stream.carried import Carried
from cepheid.runners.stream.event_log import EventLog
from cepheid.runners.stream.state import read_ended, write_ended
from cepheid.runners.total_parts import added_up, parts_of
from cepheid.runners.worker_plans import WorkerPlan

FEW = 64  # matches that are compared one by one
MOST_WAITING = 10_000  # matches that wait to be added up
MOST_STEPS = 4  # that can be taken back

Take = Callable[[Int64s], pa.Table]  # some events, by their numbers


def with_events(plan: Plan, matches: Matches, take: Take) -> tuple[EventTable, Matches]:
    """The events of matches in order of time, and the matches as rows of these."""
    rows = np.unique(np.concatenate([chosen.rows for chosen in matches.chosen]))
    rows = rows[rows != MISSING]
    events = take(rows)
    time = times_of(events, plan.bound.schema.lower or plan.bound.schema.time)
    order = np.argsort(time, kind="stable")  # they lie as they came
    places = np.empty(len(rows), np.int64)
    places[order] = np.arange(len(rows))
    renumbered = tuple(Chosen(_places(rows, places, chosen.rows), chosen.offsets) for chosen in matches.chosen)
    instant = np.cumsum(np.diff(time[order], prepend=time[order][:1]) != 0)
    in_order = EventTable(events.take(pa.array(order)), time[order], instant)
    return in_order, replace(matches, chosen=renumbered)


def _places(rows: Int64s, places: Int64s, chosen: Int64s) -> Int64s:
    """The places of chosen rows among some rows, which are in order."""
    found: Int64s = places[np.minimum(np.searchsorted(rows, chosen), len(rows) - 1)]
    return np.where(chosen == MISSING, MISSING, found)


class Steps:
    """What was before each change that the last few steps made."""

    def __init__(self) -> None:
        self._steps: list[tuple[int, list[Any]]] = []  # the time of each step, and what was before
        self._lost = BEGINNING  # the time of the last step that cannot be taken back

    def note(self, until: int, before: Any) -> None:
        """Notes what was before a change in the step to a time."""
        if not self._steps or self._steps[-1][0] != until:
            if len(self._steps) == MOST_STEPS:
                self._lost = self._steps.pop(0)[0]
            self._steps.append((until, []))
        self._steps[-1][1].append(before)

    def back(self, until: int | None) -> Iterator[Any]:
        """What was before each change since a time, the latest first."""
        until = BEGINNING if until is None else until
        assert until >= self._lost, "these steps are not known any more"
        while self._steps and self._steps[-1][0] > until:
            yield from reversed(self._steps[-1][1])
            self._steps.pop()

    @property
    def oldest(self) -> int:
        """The time before which nothing is taken back."""
        return self._lost


class CarriedEnds:
    """Where the last reported match of each partition ended."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._names = plan, plan.bound.equivalence
        self._ends: dict[Partition, int] = {}
        self._steps = Steps()

    def reported(self, found: PushedMatches, core: Core, log: EventLog, until: int) -> PushedMatches:
        """The matches that begin behind the one that was reported before them."""
        chosen = self._of_few(found, core, log) if len(found.known) <= FEW else None
        which, ends = self._of_many(found, core, log) if chosen is None else chosen
        self.end(ends, until)
        return found if which.all() else some_of(found, which)

    def end(self, ends: dict[Partition, int], until: int) -> None:
        """Matches were reported that end there."""
        for key, end in ends.items():
            self._steps.note(until, (key, self._ends.get(key)))
            self._ends[key] = end

    def _of_few(
        self, found: PushedMatches, core: Core, log: EventLog
    ) -> tuple[npt.NDArray[np.bool_], dict[Partition, int]] | None:
        """Which matches are reported, and where these end; None: values of events have to decide."""
        moments = core.times_of(found)
        first, last = (each.tolist() for each in core.spans(found, moments))
        rows, times = found.events.tolist(), moments.tolist()
        number, at = len(found.known), 0
        sizes = [[1] * (len(rows) // number)] * number if found.sizes is None else found.sizes.tolist()
        keys, ranks = list[Partition](), list[tuple[Any, ...]]()
        for match, of_places in enumerate(sizes):
            keys.append(tuple([log.value(rows[at], name) for name in self._names]))
            groups = []
            for size in of_places:
                groups.append(times[at : at + size])
                at += size
            ranks.append((last[match], -first[match], groups))
        which, ends = np.zeros(number, bool), dict[Partition, int]()
        best: dict[Partition, tuple[Any, ...]] = {}
        for match in sorted(range(number), key=ranks.__getitem__):
            key = keys[match]
            ended = ends[key] if key in ends else self._ends.get(key, BEGINNING)
            if first[match] > ended:
                which[match], ends[key], best[key] = True, last[match], ranks[match]
            elif best.get(key) == ranks[match]:
                return None
        return which, ends

    def _of_many(
        self, found: PushedMatches, core: Core, log: EventLog
    ) -> tuple[npt.NDArray[np.bool_], dict[Partition, int]]:
        """The same of any number of matches."""
        bound = self._plan.bound
        events, matches = with_events(self._plan, core.matches(found), log.take)
        first, last = (each(in_order=bound.is_linear) for each in (matches.first_rows, matches.last_rows))
        ended = {key: (end,) for key, end in self._ends.items()}
        kept = non_overlapping(bound, events, matches, first, last, ended)
        which = np.zeros(len(found.known), bool)
        which[kept] = True
        ends = last_ends(self._plan, events, matches.take(kept))
        return which, {key: end[0] for key, end in ends.items()}

    def forget(self) -> None:
        """Forgets ends that no later match can begin before."""
        back = reach(self._plan)
        if back is not None and self._steps.oldest > BEGINNING + back:
            self._ends = {key: end for key, end in self._ends.items() if end > self._steps.oldest - back}

    def go_back(self, until: int | None) -> None:
        """Takes back all steps after a time."""
        for key, end in self._steps.back(until):
            if end is None:
                self._ends.pop(key, None)
            else:
                self._ends[key] = end

    def read(self, packed: bytes | None) -> None:
        """Goes on from a state."""
        self._ends, self._steps = {key: end[0] for key, end in read_ended(packed).items()}, Steps()

    def packed(self, until: int) -> bytes | None:
        """As a state has it; None: there is nothing to carry."""
        ended = {key: (end,) for key, end in self._ends.items()}
        return write_ended(self._plan, ended, until) if ended else None


class _Sums(NamedTuple):
    parts: pa.Table | None = None
    waiting: tuple[PushedMatches, Any] | None = None  # matches that are not added up yet, and those before them
    number: int = 0  # of these
    closes: int = NEVER  # when the next bucket is over


class CarriedTotals:
    """The sums of open buckets. Matches wait until somebody asks for sums, or for the room of their events."""

    def __init__(self, plan: Plan, worker_plan: WorkerPlan) -> None:
        assert plan.bound.summary is not None
        self._plan, self._worker_plan, self._summary = plan, worker_plan, plan.bound.summary
        self._sums, self._steps = _Sums(), Steps()

    @property
    def closes(self) -> int:
        """When the next bucket is over."""
        return self._sums.closes

    def add(self, found: PushedMatches, core: Core, take: Take, until: int) -> None:
        """Matches count from now on."""
        self._steps.note(until, self._sums)
        before, closes = self._sums, self._closing(int(found.known.min()))
        number = before.number + len(found.known)
        self._sums = _Sums(before.parts, (found, before.waiting), number, min(before.closes, closes))
        if number > MOST_WAITING:
            self.add_up(core, take)

    def add_parts(self, parts: pa.Table, until: int) -> None:
        """Sums of other matches are added."""
        self._steps.note(until, self._sums)
        self._sums = self._with(parts)

    def add_up(self, core: Core, take: Take) -> None:
        """Adds up the matches that wait."""
        if self._sums.waiting is None:
            return
        found, waiting = list[PushedMatches](), self._sums.waiting
        while waiting is not None:
            found.append(waiting[0])
            waiting = waiting[1]
        events, matches = with_events(self._plan, core.matches(joined(found[::-1])), take)
        self._sums = self._with(parts_of(self._plan.bound, events, matches))._replace(waiting=None, number=0)

    def _with(self, parts: pa.Table) -> _Sums:
        fresh, before = labelled_table(parts.replace_schema_metadata()), self._sums.parts
        added = fresh if before is None else added_up([before, fresh], self._summary)
        return self._sums._replace(parts=added, closes=min(self._sums.closes, self._next_closing(fresh)))

    def closed(self, core: Core, take: Take, until: int) -> list[pa.RecordBatch]:
        """The rows of all buckets that are over."""
        if until < self.closes:
            return []
        self.add_up(core, take)
        batches, others = totals.closed_of(self._sums.parts, self._plan, self._worker_plan, until)
        self._steps.note(until, self._sums)
        left = self._sums.parts if others is None else others
        self._sums = _Sums() if left is None or not left.num_rows else _Sums(left, closes=self._next_closing(left))
        return batches

    def _closing(self, time: int) -> int:
        """When the bucket of a time is over."""
        every = self._summary.every
        return NEVER if every is None or time == NEVER else time // every * every + every - 1

    def _next_closing(self, parts: pa.Table) -> int:
        if self._summary.every is None or not parts.num_rows:
            return NEVER
        known = parts.filter(parts.column(BUCKET).is_valid())  # NULL: the end of time
        return int(times_of(known, BUCKET).min()) + self._summary.every - 1 if known.num_rows else NEVER

    def go_back(self, until: int | None) -> None:
        """Takes back all steps after a time."""
        for sums in self._steps.back(until):
            self._sums = sums

    def read(self, packed: bytes | None) -> None:
        """Goes on from a state."""
        self._sums, self._steps = _Sums(), Steps()
        if packed is not None:
            self._sums = self._with(decoded_state(packed))

    def packed(self) -> bytes | None:
        """As a state has it, where no matches wait; None: there is nothing to carry."""
        assert self._sums.waiting is None
        return None if self._sums.parts is None else encoded(self._sums.parts.combine_chunks())


@dataclass
class Carrying:
    """What one query carries."""

    plan: Plan
    ends: CarriedEnds | None = None
    totals: CarriedTotals | None = None
    maximal: bool = False
    changed: bool = field(default=False, compare=False)  # since it was last written

    def told(self, found: PushedMatches, core: Core, log: EventLog, until: int) -> PushedMatches | None:
        """Those of the new matches of a step that are reported; None: there are none."""
        if self.maximal:
            found = some_of(found, are_maximal(core.matches(found)))
        if self.ends is not None:
            found = self.ends.reported(found, core, log, until)
        self.changed |= bool(len(found.known))
        if self.totals is not None and len(found.known):
            self.totals.add(found, core, log.take, until)
        return found if self.totals is None and len(found.known) else None

    def searched_again(self, before: Carried, after: Carried, place: int, until: int) -> None:
        """Takes over what a search of a table has put down in another store; `before` is what it began with."""
        self.changed = True
        if self.ends is not None:
            known, now = read_ended(before.ended(place)), read_ended(after.ended(place))
            self.ends.end({key: end[0] for key, end in now.items() if known.get(key) != end}, until)
        parts = after.ended(totals.slot(place))
        if self.totals is not None and parts is not None:
            self.totals.add_parts(decoded_state(parts), until)

    def add_up(self, core: Core, take: Take) -> None:
        """Events get other numbers: what refers to them is worked out before."""
        if self.totals is not None:
            self.totals.add_up(core, take)

    def forget(self) -> None:
        """Forgets what no later match can need."""
        if self.ends is not None:
            self.ends.forget()

    def go_back(self, until: int | None) -> None:
        """Takes back all steps after a time."""
        for each in (self.ends, self.totals):
            if each is not None:
                each.go_back(until)

    def read(self, store: Carried, place: int) -> None:
        """Goes on from a state."""
        if self.ends is not None:
            self.ends.read(store.ended(place))
        if self.totals is not None:
            self.totals.read(store.ended(totals.slot(place)))

    def write(self, store: Carried, place: int, until: int | None) -> None:
        """Puts everything down as a state has it; no matches wait to be added up."""
        if until is not None:
            self.write_ends(store, place, until)
        if self.totals is not None:
            _put(store, totals.slot(place), self.totals.packed())

    def write_ends(self, store: Carried, place: int, until: int) -> None:
        """Puts down where the last matches ended."""
        if self.ends is not None:
            _put(store, place, self.ends.packed(until))


def _put(store: Carried, number: int, packed: bytes | None) -> None:
    if packed is not None:
        store.end(number, packed)
    elif store.ended(number) is not None:
        store.forget(number)


def carrying(plan: Plan, worker_plan: WorkerPlan) -> Carrying:
    """What a query carries whose search goes on."""
    mode = plan.output.mode
    return Carrying(
        plan,
        CarriedEnds(plan) if mode is s.OutputMode.NON_OVERLAP else None,
        CarriedTotals(plan, worker_plan) if plan.bound.summary is not None else None,
        mode is s.OutputMode.MAXIMAL,
    )

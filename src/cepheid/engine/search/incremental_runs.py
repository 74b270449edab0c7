"""The run engine over events that stay: runs are kept, too, and wait for the events that come (runs/keeping.py).

The events lie in order here: those that have been shown to runs, and behind them, as they came, those that wait until
time has passed them. All that runs know follows from the events that were shown: whatever happens to them, a stop in
the middle of a search or a limit that was met, they can be made again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.layout import BEGINS, MASK, TIME, Events
from cepheid.engine.data.matches import Chosen, Matches
from cepheid.engine.kernels.compile import is_interpreted
from cepheid.engine.kernels.handing import with_known_addresses
from cepheid.engine.kernels.stop import briefly
from cepheid.engine.program.compile import CompiledProgram, compile_runs
from cepheid.engine.program.graph import FILLED, FINAL, Graph
from cepheid.engine.program.tables import KEYS_FROM, MERGEABLE
from cepheid.engine.search.incremental_events import Growing, GrowingColumns, Reader, can_be_read_once
from cepheid.engine.search.runs.by_value import Waits
from cepheid.engine.search.runs.enumerate import FOUND, Listed, nothing_listed
from cepheid.engine.search.runs.keeping import KEPT_FACTS, KEY, ROW, KeptState, Shown, no_runs, show
from cepheid.engine.search.runs.moves import OVERFLOW, SLOTS_USED, Widths
from cepheid.engine.search.runs.prepare import matches_of
from cepheid.engine.search.runs.scan import NOTHING_REACHED, RUNS_REACHED, Machine
from cepheid.language import syntax as s
from cepheid.plan.lowering import automaton_of
from cepheid.plan.physical import Plan

BRIEF = 1_000_000  # runs that could be looked at; fewer take less time than starting a thread that can be stopped
MANY_WAITING = 1_000  # events that wait for one that can end a match
NO_WAITS = Waits(np.zeros((0, 5), np.int64), np.zeros((0, 0), np.int64), 0)  # no runs are found by value
_NO_PARTITIONS = np.zeros(1, np.int64)


def can_keep_runs(plan: Plan, schema: pa.Schema) -> bool:
    """Can runs be kept: do they select by skip_till_next_match, and nothing depends on more than the events of a key?

    Under skip_till_any_match sequences have stacks, and groups so many runs that it does not pay to keep them.
    """
    bound = plan.bound
    if plan.engine not in ("runs", "states") or bound.negations or bound.untils or plan.limits.truncate:
        return False
    if bound.strategies != {s.Strategy.SKIP_TILL_NEXT}:
        return False
    if plan.engine == "states" and isinstance(automaton_of(bound), str):
        return False
    return can_be_read_once(plan, schema, compile_runs(plan.bound)[0].layout)


class TooMany(Exception):
    """There are more runs or matches than may be: those of one key alone may not be too many."""

    def __init__(self, runs: bool) -> None:
        super().__init__("too many runs" if runs else "too many matches")
        self.runs = runs


class _Form(NamedTuple):
    """What does not change from step to step."""

    machine: Machine
    widths: Widths
    merging: bool


class KeptRuns:
    """The candidates of a query as they come, and its runs."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        compiled, graph = compile_runs(plan.bound)
        self._reader = Reader(plan, compiled.layout)
        self._facts = Growing(np.empty((KEPT_FACTS, 0), np.int64))
        self._columns = GrowingColumns(compiled.layout)
        self._shown = 0  # events that runs have seen; those behind them wait
        final = graph.states[:-1, FINAL] > 0  # the components that a match can end with, as bits
        self._ending = int(np.bitwise_or.reduce(1 << graph.states[:-1, FILLED][final]))
        self._form = _form(plan, compiled, graph)
        self._predicates: dict[bool, Any] = {}  # while kernels are cold, conditions are plain Python, too
        self._kept: KeptState | None = None
        self._single = plan.engine == "runs" and not plan.bound.has_kleene

    def __len__(self) -> int:
        return len(self._facts)

    @property
    def time(self) -> Int64s:
        """The time of each event, in the order of its number."""
        facts = self._facts.values()
        times = np.empty(len(self), np.int64)
        times[facts[ROW]] = facts[TIME]
        return times

    def append(self, table: pa.Table, time: Int64s) -> Int64s:
        """Takes in events, numbered in the order they come; says which rows of the table are candidates."""
        arrived = self._reader.read(table)
        rows = arrived.rows
        if len(rows):
            start = len(self)
            facts = np.zeros((KEPT_FACTS, len(rows)), np.int64)
            facts[TIME], facts[KEY], facts[MASK] = time[rows], arrived.keys, arrived.mask
            facts[BEGINS], facts[ROW] = arrived.begins, np.arange(start, start + len(rows))
            self._facts.extend(facts)
            self._columns.extend(arrived.columns)
        return rows

    def released(self, after: int, until: int) -> Matches | None:
        """The matches with after < completion <= until, all events up to `until` have come.

        Events that can end no match wait until one comes that can, and are shown with it.
        """
        number = self._in_order(until)
        if not number:
            return None
        waiting = self._facts.values()[:, self._shown : self._shown + number]
        ending = waiting[MASK] & self._ending != 0
        if number < MANY_WAITING and not bool((ending & (waiting[TIME] > after)).any()):
            return None
        kept = no_runs(self._form.widths, self._form.merging) if self._kept is None else self._kept
        first, last = self._shown, self._shown + number
        self.make_again()  # if anything happens
        listed, kept = self._search(kept, Shown(first, last, after, until, *self._limits))
        reached = int(kept.state[OVERFLOW])
        if reached != NOTHING_REACHED:
            raise TooMany(reached == RUNS_REACHED)
        self._kept, self._shown = kept, last
        return self._matches(listed)

    def make_again(self) -> None:
        """Forgets all runs: at the next step all events are shown to new ones."""
        self._kept, self._shown = None, 0

    def rows_between(self, after: int, until: int) -> Int64s:
        """The numbers of the events with after < time <= until, as they came."""
        facts = self._facts.values()
        return np.sort(facts[ROW, (facts[TIME] > after) & (facts[TIME] <= until)])

    def keep(self, which: npt.NDArray[np.bool_]) -> None:
        """Forgets all other events, by their numbers; those that stay are numbered anew, and so are their keys."""
        here = which[self._facts.values()[ROW]]
        self._facts.keep(here)
        self._columns.keep(here)
        facts = self._facts.values()
        facts[ROW] = (np.cumsum(which) - 1)[facts[ROW]]
        left, keys = np.unique(facts[KEY], return_inverse=True)
        if self.plan.partition:
            facts[KEY] = keys
            self._reader.keep_keys(left)
        self.make_again()

    # --- the kernel ------------------------------------------------------------------------------------------------

    @property
    def _limits(self) -> tuple[int, int]:
        return self.plan.limits.max_partial_matches, self.plan.limits.max_matches

    def _in_order(self, until: int) -> int:
        """How many of the waiting events time has passed by `until`; these lie in order then."""
        waiting = self._facts.values()[:, self._shown :]
        times = waiting[TIME]
        if not len(times):
            return 0
        if not bool((times[1:] > times[:-1]).all()):
            order = np.lexsort((waiting[KEY], times))
            waiting[:] = waiting[:, order]
            self._columns.move(self._shown, order)
        return int(np.searchsorted(waiting[TIME], until, side="right"))

    def _search(self, kept: KeptState, shown: Shown) -> tuple[Listed, KeptState]:
        facts = self._facts.room
        kept = _with_room(kept, facts.shape[1], self._reader.keys, len(self._form.machine.graph.states) - 1)
        compared = facts[KEY : KEY + 1] if self._form.merging else facts[:0]
        events = Events(facts, _NO_PARTITIONS, compared, True)
        brief = (shown.last - shown.first) * (int(kept.state[SLOTS_USED]) + shown.last - shown.first) <= BRIEF
        with briefly(brief):
            found: tuple[Listed, KeptState] = show(
                events,
                self._form.machine,
                self._columns.all(),
                self._predicate(),
                NO_WAITS,
                self._form.widths,
                kept,
                nothing_listed(len(self.plan.bound.positives)),
                shown,
            )
        return found

    def _predicate(self) -> Any:
        interpreted = is_interpreted()
        if interpreted not in self._predicates:
            self._predicates[interpreted] = with_known_addresses(compile_runs(self.plan.bound)[0].predicate.call)
        return self._predicates[interpreted]

    def _matches(self, listed: Listed) -> Matches | None:
        found = int(listed.filled[FOUND])
        if not found:
            return None
        rows = self._facts.values()[ROW]
        if not self._single:
            return matches_of(self.plan.bound, listed, np.ascontiguousarray(rows))
        places = len(self.plan.bound.positives)
        chosen = rows[listed.events[: found * places].reshape(found, places)]
        return Matches(tuple(Chosen(chosen[:, place]) for place in range(places)), listed.known[:found].copy())


def _form(plan: Plan, compiled: CompiledProgram, graph: Graph) -> _Form:
    program = compiled.program
    merging = bool(plan.options.get("merge", True)) and bool(program.place[:, MERGEABLE].any())
    keys = int(np.diff(program.place[:, KEYS_FROM]).max(initial=0))
    widths = Widths(int(merging), compiled.slots, compiled.whole, compiled.number, 3 + keys if merging else 0)
    return _Form(Machine(program, graph), widths, merging)


def _with_room(kept: KeptState, events: int, keys: int, states: int) -> KeptState:
    """The same with room for as many events and keys."""
    if len(kept.marks) < events:
        marks = np.zeros((events, 2), np.int64)
        marks[: len(kept.marks)] = kept.marks
        kept = kept._replace(marks=marks)
    if len(kept.ends) < keys:
        ends = np.full((max(2 * keys, 64), states, 2), -1, np.int64)
        if len(kept.ends):
            ends[: len(kept.ends)] = kept.ends
        kept = kept._replace(ends=ends)
    return kept

"""A Flink pattern whose runs stay in memory from one step to the next (engine/incremental/flink_core.py).

The events that did something lie in a log. A place in it, and the runs at an earlier place, are all that there is to
know of a search: the rest is made again from them where it is lost, or where a step is taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.engine.data.flink_runs import NOBODY, Reported
from cepheid.engine.data.matches import Int64s
from cepheid.engine.data.table import times_of
from cepheid.engine.incremental.flink_core import FlinkCore
from cepheid.engine.kernels.compile import is_interpreted
from cepheid.engine.search.flink.finalized import Retained, compacted, nearest_deadline
from cepheid.engine.search.flink.run import Search
from cepheid.plan.options import Limits
from cepheid.runners.stream.event_log import EventLog, Mark

LEAST = 1000  # events in the log before those that no run needs are dropped


class Place(NamedTuple):
    """How far a search has come: a place in a log, and the runs at its first so many events."""

    log: EventLog
    mark: Mark
    runs: Reported
    base: int
    until: int | None  # time has passed up to here

    def __len__(self) -> int:
        return self.mark.rows

    def table(self) -> pa.Table:
        """The events."""
        return pa.concat_tables([self.log._schema.empty_table(), *self.log.tables(self.mark)])

    @property
    def nbytes(self) -> int:
        """The size of the events."""
        return sum(table.nbytes for table in self.log.tables(self.mark))


class PushedFlink:
    """The search at work. A place is where it stands, or it goes back there first."""

    def __init__(self, search: Search, schema: pa.Schema, keys: Sequence[str], partial: bool, limits: Limits) -> None:
        self.search, self.schema, self.keys, self.partial, self.limits = search, schema, tuple(keys), partial, limits
        self.time = search.automaton.schema.time
        self.log = self.new_log()
        self.core: FlinkCore | None = None
        self.runs, self.base, self.kept = NOBODY, 0, 0
        self.until: int | None = None
        self.at: Place | None = None

    def new_log(self) -> EventLog:
        """A log without events."""
        return EventLog(self.schema, lambda events: pa.Table.from_pylist(events, self.schema))

    def place_of(self, state: Retained, until: int | None) -> Place:
        """The place that a saved state is."""
        log = self.new_log()
        log.add_table(state.events, None)
        return Place(log, log.mark(), state.runs, state.events.num_rows, until)

    def go_to(self, place: Place) -> FlinkCore:
        """Stands at a place; whoever goes on from there says where to with `stands`."""
        core = self.core
        if self.at is not place or core is None or core.interpreted != is_interpreted():
            core = self._made_again(place)
        self.at = None
        return core

    def _made_again(self, place: Place) -> FlinkCore:
        core = FlinkCore(self.search, self.keys, self.partial, self.limits)
        table = place.table().combine_chunks()
        held, more = table.slice(0, place.base), table.slice(place.base)
        core.load(place.runs, core.keys_of(place.runs, held), times_of(held, self.time), core.columns_of(held))
        self.log = EventLog(self.schema, place.log._as_table)
        self.log.add_table(held, None)
        if more.num_rows:
            self.log.add_table(more, core.push_table(more, times_of(more, self.time)))
        if place.until is not None:
            core.let_pass(place.until)
        core.found()  # known before
        self.core, self.runs, self.base, self.until = core, place.runs, place.base, place.until
        self.kept = len(self.log)
        return core

    def stands(self) -> Place:
        """The place where the search stands now."""
        self.at = Place(self.log, self.log.mark(), self.runs, self.base, self.until)
        return self.at

    def push(self, table: pa.Table, times: Int64s) -> None:
        """Takes in events in order of time."""
        assert self.core is not None
        taken = self.core.push_table(table, times)
        if len(taken):
            self.log.add_table(table, None if len(taken) == table.num_rows else taken)

    def let_pass(self, until: int) -> None:
        """Time has passed."""
        assert self.core is not None
        self.until = until
        self.core.let_pass(until)

    def tidy(self) -> None:
        """Forgets what no run needs, now and then."""
        assert self.core is not None
        self.core.tidy()
        if self.log.rows > max(LEAST, 2 * self.kept):
            self.forget()

    def forget(self) -> None:
        """Leaves out the events that no run took, and keys without runs."""
        core = self.core
        assert core is not None
        core.tidy(now=True)
        runs, keys = core.runs()
        used = np.unique(runs.row)
        which = np.zeros(self.log.rows, bool)
        which[used] = True
        fresh = FlinkCore(self.search, self.keys, self.partial, self.limits)
        self.runs = runs._replace(row=np.searchsorted(used, runs.row))
        fresh.load(self.runs, keys, core.times(used), core.columns(used))
        log = EventLog(self.schema, self.log._as_table)
        log.parts, log.starts, log.rows = list(self.log.parts), list(self.log.starts), self.log.rows
        log.keep(which)
        self.core, self.log, self.base, self.kept = fresh, log, len(used), len(used)

    def found(self) -> tuple[pa.Table, Reported] | None:
        """The events of what was found, and the runs over these; None: nothing."""
        assert self.core is not None
        found = self.core.found()
        if found is None:
            return None
        rows, places = np.unique(found.row, return_inverse=True)
        return self.log.take(rows), found._replace(row=places.reshape(-1))

    def retained(self, place: Place) -> Retained:
        """The runs at a place, and the events that they took."""
        core = self.go_to(place)
        runs, _ = core.runs()
        self.at = place
        automaton, table = self.search.automaton, self.log.table()
        state = compacted(Retained(table, Reported(*(np.ascontiguousarray(each, np.int64) for each in runs))))
        return Retained(state.events, state.runs, nearest_deadline(automaton, state))

    def nearest(self, place: Place) -> int:
        """No run is given up before, from a place on."""
        nearest = self.go_to(place).nearest()
        self.at = place
        return nearest

"""A Flink pattern whose runs stay in memory from one step to the next (engine/incremental/flink_core.py)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cepheid.engine.data.flink_runs import NOBODY, Reported
from cepheid.engine.data.matches import Int64s
from cepheid.engine.data.table import times_of
from cepheid.engine.incremental.flink_core import FlinkCore
from cepheid.engine.search.flink.finalized import Retained, compacted, nearest_deadline
from cepheid.engine.search.flink.run import Search
from cepheid.plan.options import Limits
from cepheid.runners.stream.pushed import Place, PushedSearch


class PushedFlink(PushedSearch):
    """The runs at work. The log has the events that did something."""

    core: FlinkCore
    saved: Reported

    def __init__(self, search: Search, schema: pa.Schema, keys: Sequence[str], partial: bool, limits: Limits) -> None:
        super().__init__(schema, NOBODY)
        self.search, self.keys, self.partial, self.limits = search, tuple(keys), partial, limits
        self.time = search.automaton.schema.time

    def made_again(self, place: Place, held: pa.Table, more: pa.Table) -> FlinkCore:
        """The runs over the first events, and the others taken in since."""
        core = FlinkCore(self.search, self.keys, self.partial, self.limits)
        runs: Reported = place.saved
        core.load(runs, core.keys_of(runs, held), times_of(held, self.time), core.columns_of(held))
        self.log.add_table(held, None)
        if more.num_rows:
            self.log.add_table(more, core.push_table(more, times_of(more, self.time)))
        if place.until is not None:
            core.let_pass(place.until)
        core.found()  # known before
        return core

    def push(self, table: pa.Table, times: Int64s) -> None:
        """Takes in events in order of time."""
        taken = self.core.push_table(table, times)
        if len(taken):
            self.log.add_table(table, None if len(taken) == table.num_rows else taken)

    def let_pass(self, until: int) -> None:
        """Time has passed."""
        self.until = until
        self.core.let_pass(until)

    def tidy(self) -> None:
        """Forgets what no run needs, now and then."""
        self.core.tidy()
        super().tidy()

    def forget(self) -> None:
        """Leaves out the events that no run took, and keys without runs."""
        core = self.core
        core.tidy(now=True)
        runs, keys = core.runs()
        used = np.unique(runs.row)
        which = np.zeros(self.log.rows, bool)
        which[used] = True
        fresh = FlinkCore(self.search, self.keys, self.partial, self.limits)
        self.saved = runs._replace(row=np.searchsorted(used, runs.row))
        fresh.load(self.saved, keys, core.times(used), core.columns(used))
        self.log.keep(which)
        self.core = fresh

    def found(self) -> tuple[pa.Table, Reported] | None:
        """The events of what was found, and the runs over these; None: nothing."""
        found = self.core.found()
        if found is None:
            return None
        rows, places = np.unique(found.row, return_inverse=True)
        return self.log.take(rows), found._replace(row=places.reshape(-1))

    def retained(self, place: Place) -> Retained:
        """The runs at a place, and the events that they took."""
        runs, _ = self.go_to(place).runs()
        self.at = place
        automaton, table = self.search.automaton, self.log.table()
        state = compacted(Retained(table, Reported(*(np.ascontiguousarray(each, np.int64) for each in runs))))
        return Retained(state.events, state.runs, nearest_deadline(automaton, state))

    def nearest(self, place: Place) -> int:
        """No run is given up before, from a place on."""
        nearest: int = self.go_to(place).nearest()
        self.at = place
        return nearest

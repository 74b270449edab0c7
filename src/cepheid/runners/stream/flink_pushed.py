"""A Flink pattern whose runs stay in memory from one step to the next (engine/incremental/flink_core.py)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.flink_runs import NOBODY, Reported, matches_of
from cepheid.engine.data.table import times_of
from cepheid.engine.incremental.flink_core import FlinkCore
from cepheid.engine.incremental.flink_dicts import DictKinds, FlinkDicts
from cepheid.engine.search.flink.finalized import Retained, compacted, nearest_deadline
from cepheid.engine.search.flink.run import Search
from cepheid.plan.options import Limits
from cepheid.runners.results import assemble_steps
from cepheid.runners.stream import pushed as at_least
from cepheid.runners.stream.event_log import Event
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

    def found(self) -> pa.Table | None:
        """The rows of the result that are found; None: there are none."""
        found = self.core.found()
        return None if found is None else self.assembled(found)

    def assembled(self, found: Reported) -> pa.Table:
        """The rows of the result."""
        rows, places = np.unique(found.row, return_inverse=True)
        table = self.log.take(rows)
        matches = matches_of(found._replace(row=places.reshape(-1)), times_of(table, self.time))
        return assemble_steps(self.search.automaton, table, matches, self.partial)

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


class FlinkTakesDicts:
    """Takes in single events, and makes rows of the result as dicts."""

    def __init__(self, pushed: PushedFlink, kinds: DictKinds) -> None:
        self.pushed, self.kinds = pushed, kinds
        automaton = pushed.search.automaton
        self.time, self.steps = automaton.schema.time, list(automaton.lists.items())
        self.names = pushed.schema.names
        self._look()

    def _look(self) -> None:
        """The search is new, or events were forgotten."""
        pushed = self.pushed
        self.dicts = FlinkDicts(pushed.core, self.kinds)
        self.most = max(at_least.LEAST, 2 * pushed.kept)

    def step(self, event: Event, time: int, until: int) -> list[Event] | None:
        """Takes an event in, and lets time pass; the rows of the result that are decided, None: none."""
        pushed = self.pushed
        returned = self.dicts.step(event, time, until)
        pushed.until = until
        if not returned:
            return None
        log = pushed.log
        if returned & 1:
            log.add_events().append(event)
        found = self._rows() if returned & 2 else None
        if log.rows > self.most or pushed.core.grew:
            pushed.core.grew = False
            pushed.tidy()
            self._look()
        return found

    def pass_by(self, until: int) -> list[Event] | None:
        """Lets time pass."""
        self.pushed.let_pass(until)
        return self._rows()

    def _rows(self) -> list[Event] | None:
        pushed = self.pushed
        found = pushed.core.found()
        if found is None:
            return None
        rows = found.row.tolist()
        if pushed.partial or not pushed.log.are_dicts(rows):
            table: list[Event] = pushed.assembled(found).to_pylist()
            return table
        steps, first, made, names = found.step.tolist(), found.first.tolist(), [], self.names
        for low, high in pairwise(first):
            events = [pushed.log.event(row) for row in rows[low:high]]
            shown = [{name: event.get(name) for name in names} for event in events]
            row: Event = {"match_start": shown[0][self.time], "match_end": shown[-1][self.time]}
            for number, (step, many) in enumerate(self.steps):
                own = [event for event, at in zip(shown, steps[low:high], strict=True) if at == number]
                row[step] = own if many else own[0] if own else None
            made.append(row)
        return made

"""A Flink pattern whose runs stay in memory from one step to the next (engine/incremental/flink_core.py)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.flink_runs import NOBODY, Reported, matches_of
from cepheid.engine.data.table import times_of
from cepheid.engine.incremental.dict_door import MOST_ROWS
from cepheid.engine.incremental.flink_core import FlinkCore
from cepheid.engine.incremental.flink_dicts import DictKinds, attributes_of
from cepheid.engine.incremental.flink_push import REPORTED_RUNS
from cepheid.engine.incremental.flink_step import event_is_idle, event_key_begun, event_step
from cepheid.engine.incremental.pattern_events import PatternEvents, Step
from cepheid.engine.incremental.result_rows import ResultRows
from cepheid.engine.search.flink.finalized import Retained, compacted, nearest_deadline
from cepheid.engine.search.flink.run import Search
from cepheid.plan.options import Limits
from cepheid.runners.results import assemble_steps
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


class FlinkTakesEvents:
    """Takes in single events, and makes rows of the result."""

    def __init__(self, pushed: PushedFlink, kinds: DictKinds, result: pa.Schema) -> None:
        self.pushed, self.kinds = pushed, kinds
        automaton = pushed.search.automaton
        self.time, self.steps = automaton.schema.time, list(automaton.lists.items())
        self.names = pushed.schema.names
        groups = list(automaton.lists.values())
        self.rows = ResultRows(pushed.schema, result, self.time, self.names, groups, linear=False)

    def begin(self, events: PatternEvents) -> None:
        """Says what a step is, now that the search is another one."""
        core = self.pushed.core
        self.events = events
        step = Step(
            event_step,
            core.head,
            core.numbers,
            core.key_names,
            self.kinds.known,
            0,
            self.kinds.alone,
            has_kinds=True,
            attributes=attributes_of(core),
            is_idle=event_is_idle,
            begin_key=event_key_begun,
        )
        events.look_at(step)
        if not core.key_names:
            self.learn_kind(0)
            core.key_number(())

    def until_of(self, watermark: int) -> int:
        """Up to where time has passed."""
        return watermark

    def learn_texts(self, event: Event) -> None:
        """Finds out what the texts of an event say."""
        for name in self.kinds.known:
            self.kinds.learn(name, event.get(name))

    def learn_kind(self, bits: int) -> None:
        """A kind of events that is new."""
        core = self.pushed.core
        kind = core.kind_number(self.kinds.truths(bits))
        self.events.add_kind(bits, kind, core.begins[kind], core.matters[kind])

    def learn_key(self, event: Event) -> None:
        """A key that is new."""
        names = self.pushed.core.key_names
        self.pushed.core.key_number(event.get(names[0]) if len(names) == 1 else tuple(map(event.get, names)))

    def make_way(self, hinders: int) -> None:
        """Makes room, or raises an error."""
        if hinders:
            self.pushed.core.make_way(hinders)
            self.events.door[MOST_ROWS] = 0  # it is worth a look whether all of it is needed
        else:
            self.pushed.core.make_room(1)

    def found(self, as_table: bool) -> Any:
        """The rows of the result that are found, as dicts or as a table."""
        pushed = self.pushed
        if as_table and self.rows.fits and not pushed.partial and pushed.core.head[REPORTED_RUNS]:
            batch = self.rows.batch(pushed.log.places(), pushed.core.matches(len(self.steps)))
            if batch is not None:
                pushed.core.forget_reported()
                return pa.Table.from_batches([batch])
        found = pushed.core.found()
        if found is None:
            return []
        rows = found.row.tolist()
        if as_table:
            return pushed.assembled(found)
        if pushed.partial or not pushed.log.are_dicts(rows):
            return pushed.assembled(found).to_pylist()
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

"""A row pattern whose search stays in memory from one step to the next (engine/incremental/row_core.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.incremental.row_core import Matched, RowCore
from cepheid.engine.search.row_pattern.arrange import Arranged
from cepheid.engine.search.row_pattern.finalized import Key, Resume, Retained, keys_of, remembers
from cepheid.engine.search.row_pattern.run import arranged, assemble
from cepheid.language import syntax as s
from cepheid.language.match_recognize.bound import BoundClause, Column, MatchNumber, Navigate
from cepheid.language.match_recognize.limits import check_matches
from cepheid.language.match_recognize.syntax import Rows as RowsPerMatch
from cepheid.runners.stream import pushed as at_least
from cepheid.runners.stream.event_log import Event, EventLog
from cepheid.runners.stream.pushed import Place, PushedSearch


class PushedRows(PushedSearch):
    """The search at work. The log has the rows of all partitions, in the order in which they were searched."""

    core: RowCore
    saved: dict[Key, Resume]

    def __init__(self, clause: BoundClause, schema: pa.Schema, limit: int | None, most: int) -> None:
        self.narrow = arranged(clause, schema.empty_table()).table.schema
        super().__init__(self.narrow, {})
        self.clause, self.columns, self.limit, self.most = clause, schema, limit, most
        self.remembers = remembers(clause)

    def made_again(self, place: Place, held: pa.Table, more: pa.Table) -> RowCore:
        """The search over the first rows, and the others taken in since."""
        core = RowCore(self.clause, self.columns)
        rows = arranged(self.clause, held)
        self.log.add_table(rows.table, None)
        core.load(rows, keys_of(self.clause, rows), place.saved, np.arange(held.num_rows))
        if more.num_rows or place.until is not None:
            self._taken(core, more, place.until)
        return core

    def _taken(self, core: RowCore, released: pa.Table, horizon: int | None) -> Any:
        rows = arranged(self.clause, released)
        keys, first = keys_of(self.clause, rows), self.log.rows
        numbers = np.arange(first, first + rows.table.num_rows)
        if rows.table.num_rows:
            self.log.add_table(rows.table, None)
        return core.push(rows, keys, numbers, self.log.take, horizon)

    def push(self, released: pa.Table, horizon: int | None) -> pa.Table | None:
        """Takes in rows and lets time pass; the rows of the result that are decided, or None."""
        core = self.core
        found, keys = self._taken(core, released, horizon)
        self.until = horizon
        core.check_limit(keys, self.limit)
        number = int(np.count_nonzero(found.places[:, 2] >= 0))
        check_matches(number, self.most)
        return self.assembled(found, keys) if len(found.places) else None

    def assembled(self, found: Matched, keys: Sequence[Key]) -> pa.Table:
        """The rows of the result."""
        core = self.core
        rows, bounds, matches, numbers = core.found_rows(found, keys)
        over = Arranged(self.log.take(rows), bounds, np.empty(0, np.int64), core.within)
        return assemble(self.clause, core.program, over, matches, numbers)

    def forget(self) -> None:
        """Leaves out the rows that no later match needs, and partitions without rows."""
        core, which = self.core, np.zeros(self.log.rows, bool)
        resume: dict[Key, Resume] = {}
        for key, part in list(core.parts.items()):
            kept = core.kept(part)
            if kept == part.size and not self.remembers:
                del core.parts[key]
                continue
            which[part.numbers(kept, part.size)] = True
            resume[key] = part.resume(kept)
            core.shorten(part, kept)
        numbers = np.cumsum(which) - 1
        for part in core.parts.values():
            own = part.numbers(0, part.size)
            own[:] = numbers[own]
        self.log.keep(which)
        self.saved = resume

    def retained(self, place: Place) -> Retained:
        """The rows that a later match may need, and where the search of each partition goes on."""
        core: RowCore = self.go_to(place)
        self.at = place
        rows, resume = [np.zeros(0, np.int64)], {}
        for key, part in core.parts.items():
            kept = core.kept(part)
            if kept < part.size or self.remembers:
                rows.append(part.numbers(kept, part.size))
                resume[key] = part.resume(kept)
        table = self.log.take(np.concatenate(rows))
        plain = self.columns.empty_table().select(table.column_names).schema
        return Retained(table.cast(plain), resume)

    def earliest(self, place: Place) -> int | None:
        """No window passes before, from a place on."""
        earliest: int | None = self.go_to(place).earliest()
        self.at = place
        return earliest


class RowTakesDicts:
    """Takes in single rows, and makes rows of the result as dicts."""

    def __init__(self, pushed: PushedRows) -> None:
        self.pushed, self.keys = pushed, pushed.clause.partition_by
        self.key = self.keys[0] if len(self.keys) == 1 else None
        self.measures = DictMeasures.of(pushed.clause)
        self.most = max(at_least.LEAST, 2 * pushed.kept)

    def step(self, event: Event, time: int, until: int) -> list[Event] | None:
        """Takes a row in, and lets time pass; the rows of the result that are decided, None: none."""
        pushed = self.pushed
        core, log = pushed.core, pushed.log
        dicts = log.add_events()
        number = log.rows
        dicts.append(event)
        key = (event.get(self.key),) if self.key is not None else tuple([event.get(name) for name in self.keys])
        found: list[Event] | None = None
        if core.step(key, event, time, number, until - 1):
            found = self._rows(core.found_alone(), key)
        pushed.until = until - 1
        if pushed.limit is not None:
            core.check_limit([key], pushed.limit)
        more = self.pass_by(until)
        if number >= self.most:
            pushed.tidy()
            self.most = max(at_least.LEAST, 2 * pushed.kept)
        return found if more is None else [*(found or ()), *more]

    def pass_by(self, until: int) -> list[Event] | None:
        """Lets time pass."""
        pushed, found = self.pushed, list[Event]()
        core, pushed.until = pushed.core, until - 1
        if not core.due or core.due[0][0] > until - 1:
            return None
        for key in core.pass_by(until - 1):
            found += self._rows(core.found_alone(), key)
        return found

    def _rows(self, found: Matched, key: Key) -> list[Event]:
        pushed = self.pushed
        check_matches(int(np.count_nonzero(found.places[:, 2] >= 0)), pushed.most)
        if not len(found.places):
            return []
        if self.measures is not None:
            rows = self.measures.rows(pushed.core, pushed.log, found, key)
            if rows is not None:
                return rows
        table: list[Event] = pushed.assembled(found, [key]).to_pylist()
        return table


class DictMeasures:
    """Measures of matches that are shown in one row, straight from the dicts that were sent."""

    def __init__(self, clause: BoundClause) -> None:
        self.clause, self.names = clause, clause.output_columns
        self.measures = dict(clause.measures)

    @classmethod
    def of(cls, clause: BoundClause) -> DictMeasures | None:
        """None: some measures are more than a column of a row of the match, or the match is shown in several rows."""
        plain = all(
            isinstance(each, MatchNumber)
            or (isinstance(each, Navigate) and isinstance(each.inner, Column) and not each.shift)
            for _, each in clause.measures
        )
        return cls(clause) if plain and clause.rows is RowsPerMatch.ONE else None

    def rows(self, core: RowCore, log: EventLog, found: Matched, key: Key) -> list[Event] | None:
        """Rows of the result; None: some rows of the matches did not come as dicts."""
        made, taken, part = [], 0, core.parts[key]
        labels, steps = self.clause.labels, found.steps.tolist()
        of_key = dict(zip(self.clause.partition_by, key, strict=True))
        for _, start, length, number in found.places.tolist():
            rows = part.numbers(start, start + max(length, 0)).tolist()
            if not log.are_dicts(rows):
                return None
            events = [log.event(row) for row in rows]
            path = [labels[core.program.label[step]] for step in steps[taken : taken + length]]
            taken += length
            values = {**of_key}
            for name, measure in self.measures.items():
                values[name] = number if isinstance(measure, MatchNumber) else _at(measure, events, path)
            made.append({name: values[name] for name in self.names})
        return made


def _at(measure: s.Expression, events: list[Event], path: list[str]) -> Any:
    """A column at the row that FIRST or LAST means; None if there is no such row."""
    assert isinstance(measure, Navigate)
    assert isinstance(measure.inner, Column)
    chosen = [at for at, label in enumerate(path) if measure.labels is None or label in measure.labels]
    if measure.offset >= len(chosen):
        return None
    return events[chosen[measure.offset if measure.first else -1 - measure.offset]].get(measure.inner.name)

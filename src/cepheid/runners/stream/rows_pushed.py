"""A row pattern whose search stays in memory from one step to the next (engine/incremental/row_core.py)."""

from __future__ import annotations

from operator import is_
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.incremental import row_push as r
from cepheid.engine.incremental import row_step
from cepheid.engine.incremental.pattern_events import PatternEvents, Step
from cepheid.engine.incremental.row_core import Matched, RowCore
from cepheid.engine.incremental.row_measures import told_dicts
from cepheid.engine.incremental.row_parts import Standing
from cepheid.engine.search.row_pattern.arrange import Arranged
from cepheid.engine.search.row_pattern.finalized import Key, Resume, Retained, keys_of, remembers
from cepheid.engine.search.row_pattern.run import arranged, assemble
from cepheid.language.match_recognize.bound import BoundClause
from cepheid.language.match_recognize.limits import check_matches
from cepheid.runners.stream.event_log import Event
from cepheid.runners.stream.pushed import Place, PushedSearch
from cepheid.runners.stream.row_results import RowResults


class PushedRows(PushedSearch):
    """The search at work. The log has the rows of all partitions, in the order in which they were searched."""

    core: RowCore
    saved: dict[Key, Resume] | Standing

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
        resume = place.saved.resume() if isinstance(place.saved, Standing) else place.saved
        core.load(rows, keys_of(self.clause, rows), resume, np.arange(held.num_rows))
        if more.num_rows or place.until is not None:
            self._taken(core, more, place.until)
        return core

    def _taken(self, core: RowCore, released: pa.Table, horizon: int | None) -> Any:
        rows = arranged(self.clause, released)
        keys, first = keys_of(self.clause, rows), self.log.rows
        numbers = np.arange(first, first + rows.table.num_rows)
        if rows.table.num_rows:
            self.log.add_table(rows.table, None)
        found = core.push(rows, keys, numbers, self.log.take, horizon)
        core.check_limit(keys, self.limit)
        return found

    def push(self, released: pa.Table, horizon: int | None) -> pa.Table | None:
        """Takes in rows and lets time pass; the rows of the result that are decided, or None."""
        core = self.core
        found = self._taken(core, released, horizon)
        self.until = horizon
        number = int(np.count_nonzero(found.places[:, 2] >= 0))
        check_matches(number, self.most)
        return self.assembled(found) if len(found.places) else None

    def assembled(self, found: Matched) -> pa.Table:
        """The rows of the result."""
        core = self.core
        rows, bounds, matches, numbers = core.found_rows(found)
        over = Arranged(self.log.take(rows), bounds, np.empty(0, np.int64), core.within)
        return assemble(self.clause, core.program, over, matches, numbers)

    def forget(self) -> None:
        """Leaves out the rows that no later match needs, and partitions without rows."""
        which, self.saved = self.core.forget(self.log.rows, self.remembers)
        self.log.keep(which)

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


class RowTakesEvents:
    """Takes in single rows, and makes rows of the result."""

    def __init__(self, pushed: PushedRows, result: pa.Schema) -> None:
        self.pushed, self.keys = pushed, pushed.clause.partition_by
        self._begun: tuple[Any, ...] = ()
        self.results = RowResults.of(pushed.clause, pushed.core.program, pushed.narrow, result)

    def begin(self, events: PatternEvents) -> None:
        """Says what a step is, now that the search is another one."""
        core, of_rows = self.pushed.core, self.pushed.core.of_rows
        assert of_rows is not None
        core.batch[r.MOST_OPEN] = self.pushed.limit or 0
        if not self.keys and () not in core.parts:
            core.new_part(())
        before, self._begun = self._begun, (events, core, core.numbers)
        if len(before) == 3 and all(map(is_, before, self._begun)):
            return  # only rows were forgotten
        telling = None if self.results is None else self.results.telling(core, self.pushed.most)
        events.look_at(
            Step(
                row_step.row_step,
                core.batch,
                core.numbers,
                self.keys,
                of_rows.text_dicts(),
                -1,
                None,
                has_kinds=False,
                attributes=of_rows.attributes,
                gathers=True,
                put=row_step.rows_put,
                tell=None if telling is None else told_dicts,
                of_telling=telling,
            )
        )

    def until_of(self, watermark: int) -> int:
        """Up to where time has passed."""
        return watermark - 1

    def learn_texts(self, event: Event) -> None:
        """Finds out what the texts of a row say."""
        of_rows = self.pushed.core.of_rows
        assert of_rows is not None
        for name in of_rows.by_text:
            of_rows.of_text(name, event.get(name))

    def learn_kind(self, bits: int) -> None:
        """Rows have no kinds."""
        raise AssertionError(bits)

    def learn_key(self, event: Event) -> None:
        """A partition that is new."""
        self.pushed.core.new_part(tuple(map(event.get, self.keys)))

    def make_way(self, hinders: int) -> None:
        """Makes room, or raises an error."""
        self.pushed.core.make_way(-hinders)

    def found(self, as_table: bool) -> Any:
        """The rows of the result that are decided, as dicts or as a table."""
        pushed = self.pushed
        core = pushed.core
        if core.numbers_of_batch[r.FOUND] > pushed.most:
            check_matches(core.matches_found, pushed.most)
        results = self.results
        if results is not None and results.fits(core):
            return results.table(core, pushed.log) if as_table else results.dicts(core, pushed.log)
        found = core.found_alone()
        if not len(found.places):
            return []
        table = pushed.assembled(found)
        return table if as_table else table.to_pylist()

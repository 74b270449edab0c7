"""A search that stays in memory from one step to the next, and the place in a log of events that a step leads to.

A place in the log, and what the search saved at an earlier place, are all that there is to know of a search: the rest
is made again from them where it is lost, or where a step is taken back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from cepheid.engine.kernels.compile import is_interpreted
from cepheid.runners.stream.event_log import EventLog, Mark

LEAST = 4000  # events in the log before those that nobody needs are dropped


class Place(NamedTuple):
    """How far a search has come: a place in a log, and what the search saved at its first so many events."""

    log: EventLog
    mark: Mark
    saved: Any
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


Noted: TypeAlias = tuple[Any, ...]  # a place, before anybody asks for it


class PushedSearch(ABC):
    """The search at work. A place is where it stands, or it goes back there first."""

    core: Any = None
    at: Place | None = None
    until: int | None = None
    base = kept = 0

    def __init__(self, schema: pa.Schema, saved: object) -> None:
        self.schema, self.saved = schema, saved
        self.log = self.new_log()

    def new_log(self) -> EventLog:
        """A log without events."""
        return EventLog(self.schema, lambda events: pa.Table.from_pylist(events, self.schema))

    def place_of(self, events: pa.Table, saved: object, until: int | None) -> Place:
        """The place that a saved state is."""
        log = self.new_log()
        log.add_table(events.select(self.schema.names).cast(self.schema), None)  # the zones of instants are labels
        return Place(log, log.mark(), saved, events.num_rows, until)

    def go_to(self, place: Place) -> Any:
        """Stands at a place; whoever goes on from there says where to with `stands`."""
        if self.at is not place or self.core is None or self.core.interpreted != is_interpreted():
            table = place.table().combine_chunks()
            self.log = EventLog(self.schema, place.log._as_table)
            self.saved, self.base, self.until = place.saved, place.base, place.until
            self.core = self.made_again(place, table.slice(0, place.base), table.slice(place.base))
            self.kept = len(self.log)
        self.at = None
        return self.core

    def stands(self) -> Place:
        """The place where the search stands now."""
        self.at = Place(self.log, self.log.mark(), self.saved, self.base, self.until)
        return self.at

    def noted(self) -> Noted:
        """Where the search stands, for `place_at`."""
        log = self.log
        return log, log.parts, len(log.parts), log.rows, self.saved, self.base, self.until

    def place_at(self, noted: Noted) -> Place:
        """The place where the search stood."""
        log, parts, number, rows, saved, base, until = noted
        return Place(log, Mark(parts, number, rows), saved, base, until)

    @abstractmethod
    def made_again(self, place: Place, held: pa.Table, more: pa.Table) -> Any:
        """The search with what was saved over the first events, and the others taken in since; the log has them."""

    @abstractmethod
    def retained(self, place: Place) -> Any:
        """The state as it is saved, at a place."""

    def tidy(self) -> None:
        """Forgets what nobody needs, now and then."""
        if self.log.rows > max(LEAST, 2 * self.kept):
            self.log = self.log.copy()  # so that places in the old one stay what they are
            self.forget()
            self.base = self.kept = self.log.rows

    @abstractmethod
    def forget(self) -> None:
        """Leaves out of the log what nobody needs, and saves where the search stands."""

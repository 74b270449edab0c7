"""Says that events of one time do not follow each other, where that may cost matches, and how to put them in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.data.shared import sharing
from cepheid.engine.data.table import EventTable, ordered, times_of
from cepheid.engine.data.ties import count_ties, may_tie, order_matters
from cepheid.engine.jit_fallback import answer
from cepheid.errors import TiesWarning, warn
from cepheid.language.bound import BoundQuery
from cepheid.language.schema import ROW
from cepheid.plan.physical import Plan
from cepheid.runners.options import Options

Result = TypeVar("Result")
_LOOKED_AT = 10_000  # events of a live query that are looked at together, once there are so many


@dataclass(frozen=True)
class Ties:
    """Events that share time and key with another one that could stand beside them in a match."""

    events: int
    among: int
    keys: tuple[str, ...] = ()
    order: str | None = "row order"  # what tiebreak="row" stands for; None: nothing

    def __str__(self) -> str:
        shared = " and ".join(["time", *(f"'{name}'" for name in self.keys)])
        message = f"{self.events:,} of {self.among:,} events share their {shared} with another event"
        what = "events with the same time do not follow each other, so no match has one after the other"
        rows = "" if self.order is None else f"tiebreak='{ROW}' for {self.order}, or "
        return f"{message}: {what}; pass {rows}tiebreak='...' with a column that orders them"


def ties_of(plan: Plan, events: EventTable) -> Ties | None:
    """The events of a table that are tied, if there are any."""
    if not may_tie(plan.bound, events):
        return None
    number = answer("data.keys", len(events), lambda: count_ties(plan, events), once=True)
    return Ties(number, len(events), plan.bound.equivalence) if number else None


def with_ties(plan: Plan, events: EventTable, run: Callable[[], Result]) -> tuple[Result, Ties | None]:
    """What a search returns, and the ties among its events, which are counted with what it has worked out."""
    if not may_tie(plan.bound, events):
        return run(), None
    with sharing():
        return run(), ties_of(plan, events)


def warn_of_ties(found: Sequence[Ties | None]) -> None:
    """One warning for a call, of the query that has most of them."""
    ties = [each for each in found if each is not None]
    if ties:
        warn(str(max(ties, key=lambda each: each.events)), TiesWarning)


@contextmanager
def looking_for_ties(plan: Plan, events: EventTable) -> Iterator[None]:
    """In a worker of Spark: ties among the events of the searches in this block are said once in a process.

    What a worker warns of is in its log, and on the terminal where Spark runs locally.
    """
    if _Worker.told or not may_tie(plan.bound, events):
        yield
        return
    with sharing():
        yield
        found = ties_of(plan, events)
    if found is not None:
        _Worker.told = True
        warn_of_ties([replace(found, order=None)])


class _Worker:
    told = False


# --- tiebreak="row" ---------------------------------------------------------------------------------------------------


def in_row_order(options: Options, schema: pa.Schema) -> tuple[Options, pa.Schema]:
    """With tiebreak="row", the column that is made for it: its name takes the place of "row", unless that is a column.

    >>> options, schema = in_row_order(Options(tiebreak=("row",)), pa.schema([("ts", pa.int64())]))
    >>> options.tiebreak, schema.names
    (('__row',), ['ts', '__row'])
    """
    if ROW not in options.tiebreak or ROW in schema.names:
        return options, schema
    name = f"__{ROW}"
    while name in schema.names:
        name = f"_{name}"
    tiebreak = tuple(name if each == ROW else each for each in options.tiebreak)
    return replace(options, tiebreak=tiebreak, row_column=name), schema.append(pa.field(name, pa.int64()))


def with_rows(table: pa.Table, options: Options, rows: npt.NDArray[np.int64] | None = None) -> pa.Table:
    """The table with that column, if it is wanted: where each row stood."""
    if options.row_column is None:
        return table
    rows = np.arange(table.num_rows) if rows is None else rows
    return table.append_column(options.row_column, pa.array(rows, pa.int64()))


# --- live -------------------------------------------------------------------------------------------------------------


class _Counted(NamedTuple):
    """What is known of the ties of a live query: how many there are, and the events that were not looked at."""

    counts: tuple[int, ...]  # by query
    seen: int  # events
    rows: int  # of them, that wait to be looked at...
    waiting: list[pa.Table]  # ...in so many tables...
    number: int  # ...of these: what was put behind them later is none of it

    def add(self, came: int, timely: pa.Table) -> _Counted:
        """With some events more, without copying those that wait."""
        waiting = self.waiting if len(self.waiting) == self.number else self.waiting[: self.number]
        waiting.append(timely)
        return _Counted(self.counts, self.seen + came, self.rows + timely.num_rows, waiting, self.number + 1)


class _Watch:
    """The queries whose events are looked at, and whether the warning was given."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.plans = [plan for plan in plans if order_matters(plan.bound)]
        self.names = _columns(plan.bound for plan in self.plans)
        self.told = False


class LiveTies:
    """Counts the ties of a live query as time passes them, many events at a time, and warns once.

    New events make another one, so that one can go back to what was before them.
    """

    def __init__(self, watch: _Watch, counted: _Counted) -> None:
        self._watch, self._counted = watch, counted

    @classmethod
    def of(cls, plans: Sequence[Plan]) -> LiveTies:
        """Before the first event."""
        watch = _Watch(plans)
        return cls(watch, _Counted((0,) * len(watch.plans), 0, 0, [], 0))

    @property
    def counts(self) -> bool:
        """Is there a query that asks which of two events came first?"""
        return bool(self._watch.plans)

    @property
    def names(self) -> Sequence[str]:
        """The columns that decide of an event whether it is tied."""
        return self._watch.names

    def pass_by(self, events: int) -> LiveTies:
        """With some events more, of which none is tied."""
        counted = self._counted
        return LiveTies(self._watch, counted._replace(seen=counted.seen + events))

    def take(self, table: pa.Table, late: int | None, until: int | None) -> LiveTies:
        """With some events more, those apart that are late: at or before a time, if there are any.

        They are looked at when there are as many again as before, up to a bound.
        """
        plans = self._watch.plans
        if not plans or not table.num_rows:
            return self
        timely = table.select(self._watch.names)
        if late is not None:
            timely = timely.filter(pa.array(times_of(timely, plans[0].bound.schema.time) > late))
        counted = self._counted.add(table.num_rows, timely)
        after = LiveTies(self._watch, counted)
        if counted.rows >= min(_LOOKED_AT, counted.seen - counted.rows):
            after.count(until)
        return after

    def count(self, until: int | None) -> int:
        """How many there are up to a time, after which events of the same time may still come."""
        known, plans = self._counted, self._watch.plans
        if known.rows and until is not None:
            events = ordered(pa.concat_tables(known.waiting[: known.number]), plans[0].bound.schema)
            passed = int(np.searchsorted(events.time, until, side="right"))
            rest = events.table.slice(passed)
            looked_at = EventTable(events.table.slice(0, passed), events.time[:passed], events.instant[:passed])
            found = [ties_of(plan, looked_at) for plan in plans]
            counts = tuple(
                count if ties is None else count + ties.events for count, ties in zip(known.counts, found, strict=True)
            )
            known = _Counted(counts, known.seen, rest.num_rows, [rest.combine_chunks()], 1)
            self._counted = known
            self._tell(found)
        return max(known.counts, default=0)

    def _tell(self, found: Sequence[Ties | None]) -> None:
        ties = next((each for each in found if each is not None), None)
        if ties is not None and not self._watch.told:
            self._watch.told = True
            warn_of_ties([replace(ties, among=self._counted.seen, order="the order in which they come")])


def _columns(bounds: Iterable[BoundQuery]) -> list[str]:
    """What decides of an event whether it is tied."""
    needed: dict[str, None] = {}
    for bound in bounds:
        roles = [bound.schema.time, bound.schema.type]
        needed |= dict.fromkeys([*filter(None, roles), *sorted(bound.attributes())])
    return list(needed)

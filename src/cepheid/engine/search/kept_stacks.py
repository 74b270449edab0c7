"""The sequence engine over events that stay: what can be said of an event alone is worked out once, when it comes.

A live query looks at the same events again with every step. Here each is tested, laid out and given the number of its
key on arrival; a step picks those of some keys, side by side as the kernel wants them, and constructs (stacks.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.data.columns import ColumnLayout, Columns
from cepheid.engine.data.layout import BEGINS, INSTANT, MASK, PRECISE_FACTS, TIME, Events
from cepheid.engine.data.matches import NEVER, Chosen, Int64s, Matches
from cepheid.engine.data.value_index import no_index
from cepheid.engine.kernels.handing import with_known_addresses
from cepheid.engine.kernels.stop import briefly
from cepheid.engine.limits import check_limit
from cepheid.engine.program.compile import compile_program
from cepheid.engine.search.kept_events import Growing, GrowingColumns, Reader, can_be_read_once
from cepheid.engine.search.stacks import OVERFLOW, Asked, construct
from cepheid.plan.physical import Plan

BRIEF = 200_000  # sequences that could be looked at; fewer take less time than starting a thread that can be stopped
FEW = 16  # events of a key
# What is kept of an event: its time, the number of its key, the components it could fill, and those it could begin.
WHEN, WHOSE, FILLING, FIRST = range(4)


def can_keep_stacks(plan: Plan, schema: pa.Schema) -> bool:
    """Is this a plain query: sequences of one key, nothing that depends on more than the events of a match?"""
    if plan.engine != "sequence" or not plan.partition:
        return False
    return can_be_read_once(plan, schema, _compiled(plan).layout)


def _compiled(plan: Plan) -> Any:
    order = tuple(range(len(plan.bound.positives) - 1, -1, -1))  # construction walks backwards
    return compile_program(plan.bound, order=order, push=plan.push_predicates)


class KeptStacks:
    """The candidates of a plain query as they come, numbered from 0 on."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._of_key: list[list[int]] = []  # the candidates of each key
        # Of each candidate its time and the components it could fill, again, as Python reads them faster.
        self._when: list[int] = []
        self._filling: list[int] = []
        places = len(plan.bound.positives)
        self.last = 1 << (places - 1)  # the components that a match can end with
        self.all = (1 << places) - 1  # the components of a match
        layout = self.layout()
        self._reader = Reader(plan, layout)
        self._facts = Growing(np.empty((4, 0), np.int64))
        self._columns = GrowingColumns(layout)

    def layout(self) -> ColumnLayout:
        """What conditions read of an event."""
        layout: ColumnLayout = _compiled(self.plan).layout
        return layout

    def __len__(self) -> int:
        return len(self._facts)

    @property
    def time(self) -> Int64s:
        """The time of each candidate."""
        times: Int64s = self._facts.values()[WHEN]
        return times

    @property
    def key(self) -> Int64s:
        """The number of the key of each candidate."""
        keys: Int64s = self._facts.values()[WHOSE]
        return keys

    def append(self, table: pa.Table, time: Int64s) -> tuple[Int64s, npt.NDArray[np.bool_]]:
        """Takes in events; says which rows of the table are candidates, and which of these can end a match."""
        arrived = self._reader.read(table)
        rows = arrived.rows
        if not len(rows):
            return rows, np.empty(0, bool)
        start = len(self)
        self._facts.extend(np.stack((time[rows], arrived.keys, arrived.mask, arrived.begins)))
        self._columns.extend(arrived.columns)
        own = self._of_key
        while len(own) < self._reader.keys:
            own.append([])
        self._when += time[rows].tolist()
        self._filling += arrived.mask.tolist()
        for row, key in enumerate(arrived.keys.tolist(), start):
            own[key].append(row)
        return rows, arrived.mask & self.last != 0

    def keep(self, which: npt.NDArray[np.bool_]) -> None:
        """Forgets all other candidates; those that stay are numbered anew, and so are their keys."""
        self._facts.keep(which)
        self._columns.keep(which)
        left, keys = np.unique(self.key, return_inverse=True)
        self._facts.values()[WHOSE] = keys
        self._reader.keep_keys(left)
        order = np.argsort(keys, kind="stable")
        rows = order.tolist()
        edges = [0, *np.cumsum(np.bincount(keys, minlength=len(left))).tolist()]
        self._when, self._filling = self._facts.values()[WHEN].tolist(), self._facts.values()[FILLING].tolist()
        self._of_key = [rows[begin:end] for begin, end in pairwise(edges)]

    def find(self, keys: Iterable[int], after: int, until: int, oldest: int) -> Matches | None:
        """The matches of some keys with after < completion <= until; no event of theirs lies before `oldest`."""
        rows = [row for key in keys for row in self._in_reach(key, oldest)]
        if not rows:
            return None
        chosen = np.array(rows, np.int64)
        known = self._facts.values()[:, chosen]
        inside = (known[WHEN] <= until) & (known[WHEN] >= oldest)
        if not inside.all():
            chosen, known = chosen[inside], known[:, inside]
        time, key = known[WHEN], known[WHOSE]
        changes = key[1:] != key[:-1]
        if bool(((time[1:] < time[:-1]) & ~changes).any()):
            order = np.lexsort((time, key))
            chosen, known = chosen[order], known[:, order]
            time, key = known[WHEN], known[WHOSE]
            changes = key[1:] != key[:-1]
        starts = np.concatenate([_ZERO, np.flatnonzero(changes) + 1, [len(chosen)]])
        facts = np.zeros((PRECISE_FACTS, len(chosen)), np.int64)
        facts[TIME], facts[MASK], facts[BEGINS] = time, known[FILLING], known[FIRST]
        facts[INSTANT, 1:] = np.cumsum(changes | (time[1:] != time[:-1]))
        events = Events(facts, starts, np.zeros((0, len(chosen)), np.int64), True)
        longest = float(np.diff(starts).max(initial=0))
        brief = len(chosen) * longest ** (len(self.plan.bound.positives) - 1) <= BRIEF
        with briefly(brief and not self.plan.bound.has_kleene):
            return self.search(events, self._columns.picked(chosen), chosen, (after, until))

    def _in_reach(self, key: int, oldest: int) -> list[int]:
        """The candidates of a key; none if some component has none. Few are looked at one by one, many not at all."""
        rows, times, seen = self._of_key[key], self._when, 0
        if len(rows) <= FEW:
            for row in rows:
                if times[row] >= oldest:
                    seen |= self._filling[row]
            if seen & self.all != self.all:
                return []
        return [row for row in rows if times[row] >= oldest]

    def search(self, events: Events, columns: Columns, rows: Int64s, interval: tuple[int, int]) -> Matches:
        """The matches among the events of these rows."""
        plan, places = self.plan, len(self.plan.bound.positives)
        compiled = _compiled(plan)
        found, completion, counters = construct(
            events,
            compiled.program,
            columns,
            with_known_addresses(compiled.predicate.call),
            no_index(places, len(rows)),
            Asked(*interval, plan.limits.max_matches, plan.push_window, plan.push_predicates, NEVER),
        )
        check_limit(plan, "max_matches", bool(counters[OVERFLOW]))
        return Matches(tuple(Chosen(rows[found[:, place]]) for place in range(places)), completion)


_ZERO = np.zeros(1, np.int64)

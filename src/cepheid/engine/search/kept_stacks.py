"""The sequence engine over events that stay: what can be said of an event alone is worked out once, when it comes.

A live query looks at the same events again with every step. Here each is tested, laid out and given the number of its
key on arrival; a step picks those of some keys, side by side as the kernel wants them, and constructs (stacks.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.data.layout import BEGINS, INSTANT, MASK, PRECISE_FACTS, TIME, Events
from cepheid.engine.data.matches import Chosen, Int64s, Matches
from cepheid.engine.data.value_index import no_index
from cepheid.engine.kernels.stop import briefly
from cepheid.engine.limits import check_limit
from cepheid.engine.program.compile import compile_program
from cepheid.engine.search.kept_events import Growing, GrowingColumns, Reader, can_be_read_once
from cepheid.engine.search.stacks import OVERFLOW, Asked, construct
from cepheid.plan.physical import Plan

BRIEF = 200_000  # sequences that could be looked at; fewer take less time than starting a thread that can be stopped


def can_keep_stacks(plan: Plan, schema: pa.Schema) -> bool:
    """Is this a plain query: sequences of one key, nothing that depends on more than the events of a match?"""
    if plan.engine != "sequence" or not plan.partition or plan.bound.pattern is not None:
        return False
    return can_be_read_once(plan, schema, _compiled(plan).layout)


def _compiled(plan: Plan) -> Any:
    order = tuple(range(len(plan.bound.positives) - 1, -1, -1))  # construction walks backwards
    return compile_program(plan.bound, order=order, push=plan.push_predicates)


class KeptStacks:
    """The candidates of a plain query as they come, numbered from 0 on."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rows: list[list[int]] = []  # the candidates of each key
        self._last = 1 << (len(plan.bound.positives) - 1)
        layout = _compiled(plan).layout
        self._reader = Reader(plan, layout)
        nothing = np.empty((1, 0), np.int64)
        self._time, self._key, self._mask = Growing(nothing), Growing(nothing), Growing(nothing)
        self._columns = GrowingColumns(layout)

    def __len__(self) -> int:
        return len(self._time)

    @property
    def time(self) -> Int64s:
        """The time of each candidate."""
        times: Int64s = self._time.values()[0]
        return times

    @property
    def key(self) -> Int64s:
        """The number of the key of each candidate."""
        keys: Int64s = self._key.values()[0]
        return keys

    def append(self, table: pa.Table, time: Int64s) -> tuple[Int64s, npt.NDArray[np.bool_]]:
        """Takes in events; says which rows of the table are candidates, and which of these can end a match."""
        arrived = self._reader.read(table)
        rows = arrived.rows
        if not len(rows):
            return rows, np.empty(0, bool)
        start = len(self)
        self._time.extend(time[rows])
        self._key.extend(arrived.keys)
        self._mask.extend(arrived.mask)
        self._columns.extend(arrived.columns)
        own = self.rows
        while len(own) < self._reader.keys:
            own.append([])
        for row, key in enumerate(arrived.keys.tolist(), start):
            own[key].append(row)
        return rows, arrived.mask & self._last != 0

    def keep(self, which: npt.NDArray[np.bool_]) -> None:
        """Forgets all other candidates; those that stay are numbered anew, and so are their keys."""
        for part in (self._time, self._key, self._mask):
            part.keep(which)
        self._columns.keep(which)
        left, keys = np.unique(self.key, return_inverse=True)
        self._key = Growing(keys.astype(np.int64).reshape(1, -1))
        self._reader.keep_keys(left)
        self.rows = [[] for _ in left]
        for row, key in enumerate(keys.tolist()):
            self.rows[key].append(row)

    def find(self, keys: Sequence[int], after: int, until: int, oldest: int) -> Matches:
        """The matches of some keys with after < completion <= until; no event of theirs lies before `oldest`."""
        chosen = np.array([row for key in keys for row in self.rows[key]], np.int64)
        time = self.time[chosen]
        inside = (time <= until) & (time >= oldest)
        if not inside.all():
            chosen, time = chosen[inside], time[inside]
        key = self.key[chosen]
        changes = key[1:] != key[:-1]
        if bool(np.any((time[1:] < time[:-1]) & ~changes)):
            order = np.lexsort((time, key))
            chosen, time, key = chosen[order], time[order], key[order]
            changes = key[1:] != key[:-1]
        starts = np.concatenate([[0], np.flatnonzero(changes) + 1, [len(chosen)]])
        facts = np.zeros((PRECISE_FACTS, len(chosen)), np.int64)
        facts[TIME] = time
        facts[INSTANT, 1:] = np.cumsum(changes | (time[1:] != time[:-1]))
        facts[MASK] = facts[BEGINS] = self._mask.values()[0, chosen]
        events = Events(facts, starts, np.zeros((0, len(chosen)), np.int64), True)
        columns = self._columns.picked(chosen)
        places = len(self.plan.bound.positives)
        brief = float((np.diff(starts).astype(np.float64) ** places).sum()) <= BRIEF
        compiled = _compiled(self.plan)
        asked = Asked(after, until, self.plan.limits.max_matches, self.plan.push_window, self.plan.push_predicates)
        with briefly(brief):
            found, completion, counters = construct(
                events, compiled.program, columns, compiled.predicate.call, no_index(places, len(chosen)), asked
            )
        check_limit(self.plan, "max_matches", bool(counters[OVERFLOW]))
        return Matches(tuple(Chosen(chosen[found[:, place]]) for place in range(places)), completion)

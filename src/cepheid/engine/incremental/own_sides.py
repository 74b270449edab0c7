"""The memory of places where events lie side by side: one for all keys with few events, and those of single keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.layout import PRECISE_FACTS
from cepheid.engine.incremental import side_by_side as side
from cepheid.engine.incremental.linking import (
    MATCHED,
    MATCHES,
    NEEDED,
    OWN_SIDE,
    SEARCH,
    SIDE,
    SIDE_AT,
    SIDE_EVENTS_AT,
    SIDE_NULL_AT,
    SIDE_NUMBER_AT,
    SIDE_ROOM,
    SIDE_STARTS_AT,
    SIDE_WHOLE_AT,
    SIDES,
    SIDES_AT,
)

MOST_SIDES = 1_000  # keys that have a place for themselves; the others are laid out anew for each search
FIRST_RUNS, FIRST_ENTRIES = 64, 256
# The arrays of the first place, in its row and in `head`.
_IN_ROW = [side.AT, side.EVENT_ROOM, side.WHOLES, side.FRACTIONS, side.NULLS, side.EVENTS, side.STARTS]
_IN_HEAD = [SIDE_AT, SIDE_ROOM, SIDE_WHOLE_AT, SIDE_NUMBER_AT, SIDE_NULL_AT, SIDE_EVENTS_AT, SIDE_STARTS_AT]


class Sides:
    """The places of a query. The tables say what its columns are."""

    def __init__(self, *columns: Any) -> None:
        self._columns = columns
        self._table = np.zeros((2, side.OF_SIDE), np.int64)
        self._kept: dict[int, tuple[Any, ...]] = {}  # what lies at the addresses, by place

    def make(self, head: Int64s, number: int, events: int, own: tuple[Any, ...]) -> tuple[Any, ...]:
        """Makes a place for so many events, and for what belongs to its search alone."""
        facts, chosen = np.zeros((PRECISE_FACTS, events), np.int64), np.zeros(events, np.int64)
        starts = np.zeros(events + 1, np.int64)
        columns: list[Any] = [np.zeros((len(table), events), table.dtype) for table in self._columns]
        if number >= len(self._table):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)])
        row = self._table[number]
        row[side.AT], row[side.EVENT_ROOM], row[side.LAID] = facts.ctypes.data, events, 0
        row[side.WHOLES], row[side.FRACTIONS], row[side.NULLS] = (column.ctypes.data for column in columns)
        row[side.EVENTS], row[side.STARTS] = chosen.ctypes.data, starts.ctypes.data
        head[SIDES_AT], head[SIDES] = self._table.ctypes.data, max(1, head[SIDES])
        if number == 0:
            head[_IN_HEAD] = row[_IN_ROW]
        self._kept[number] = made = (facts, chosen, starts, *columns, *own)
        return made

    def give(self, head: Int64s, key: Int64s, words_of: Callable[[tuple[int, int, int]], int]) -> None:
        """Gives a key a place for itself, or a larger one; `words_of` says how much memory its search keeps."""
        number = int(key[OWN_SIDE])
        if number == 0 and head[SIDES] > MOST_SIDES:
            key[OWN_SIDE] = -1
            return
        if number == 0:
            number = int(head[SIDES])
            head[SIDES] += 1
        events, runs, entries = 2 * int(head[NEEDED]), FIRST_RUNS, FIRST_ENTRIES
        if number in self._kept:
            row = self._table[number]
            fits = 3 * int(head[NEEDED]) <= 2 * row[side.EVENT_ROOM]
            if fits and row[side.RUNS_NEEDED] <= row[side.RUNS] and row[side.ENTRIES_NEEDED] <= row[side.ENTRIES]:
                row[side.LAID], key[OWN_SIDE] = 0, number
                return
            events = max(events, int(row[side.EVENT_ROOM]))
            runs, entries = max(runs, int(row[side.RUNS_NEEDED])), max(entries, int(row[side.ENTRIES_NEEDED]))
        state = np.zeros(words_of((events, runs, entries)), np.int64)
        self.make(head, number, events, (state,))
        row = self._table[number]
        row[side.STATE_AT], row[side.RUNS], row[side.ENTRIES] = state.ctypes.data, runs, entries
        row[side.RUNS_NEEDED], row[side.ENTRIES_NEEDED] = runs, entries
        key[OWN_SIDE] = number

    def give_up(self, head: Int64s, key: Int64s) -> None:
        """The key at hand has no place for itself any more, and the matches that it has in this search do not count."""
        if head[SIDE] == 0:
            return
        row = self._table[head[SIDE]]
        row[side.LAID], key[OWN_SIDE] = 0, -1
        if row[side.OF_SEARCH] == head[SEARCH]:
            head[MATCHES], head[MATCHED] = row[side.MATCHES_BEFORE], row[side.MATCHED_BEFORE]

    def drop(self, head: Int64s, keys: Int64Rows) -> None:
        """Events or keys get other numbers: no key has a place for itself."""
        keys[:, OWN_SIDE], head[SIDES] = 0, 1
        self._kept = {number: kept for number, kept in self._kept.items() if number == 0}

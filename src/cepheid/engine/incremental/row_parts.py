"""The partitions of a row pattern: the rows of each in arrays that grow, and an attempt that ran out of rows.

A new partition is one copy of memory: its numbers and all of its tables lie in one piece, until a table grows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.incremental import row_push as r
from cepheid.engine.search.row_pattern.finalized import Key, Resume
from cepheid.engine.search.row_pattern.run import FAILURES, FAILURES_PER_ROW

_BY_ROW = (r.HOLDS, r.NULL, r.WHOLE, r.NUMBER)  # a row of the table for each column
_ALONG = (r.TIME, r.UPCOMING, r.BEGINS, r.NUMBERS, r.TEXTS)
_BY_POSITION = (r.COUNTS, r.KEPT_I, r.KEPT_F, r.KEPT_N, r.PATH, r.BEST_PATH, r.DEAD)


class _Laid(NamedTuple):
    """Where a table lies in the memory of a partition: from which word to which, and its form."""

    first: int
    end: int
    kind: npt.DTypeLike
    shape: tuple[int, ...]


class NewParts:
    """What a partition is like that has no rows yet."""

    def __init__(self, head: Int64s, tables: Mapping[int, npt.NDArray[Any]]) -> None:
        self.laid: dict[int, _Laid] = {}
        own, at = head.copy(), len(head)
        pieces: list[Int64s] = [own]
        for number, table in tables.items():
            words = np.zeros(-(-table.nbytes // 8), np.int64)
            words.view(np.uint8)[: table.nbytes] = np.frombuffer(table.tobytes(), np.uint8)
            pieces.append(words)
            self.laid[number] = _Laid(at, at + len(words), table.dtype, table.shape)
            rows = 1 if table.ndim == 1 else table.shape[0]
            own[r.TABLES + 3 * number : r.TABLES + 3 * number + 3] = 8 * at, rows, table.shape[-1]
            at += len(words)
        own[r.SELF] = 0
        self.words = np.concatenate(pieces)
        self.addresses = np.array([r.SELF, *(r.TABLES + 3 * number for number in tables)], np.int64)


class _Tables(dict[int, npt.NDArray[Any]]):
    """The tables of a partition: those that were asked for or have grown."""

    def __init__(self, words: Int64s, laid: Mapping[int, _Laid]) -> None:
        self.words, self.laid = words, laid

    def __missing__(self, number: int) -> npt.NDArray[Any]:
        first, end, kind, shape = self.laid[number]
        size = int(np.prod(shape))
        table = self.words[first:end].view(kind)[:size].reshape(shape)
        self[number] = table
        return table


class Standing(NamedTuple):
    """Where the search of each partition goes on, as `forgotten` says; few ever ask for it."""

    keys: list[Key]
    stands: npt.NDArray[np.int64]
    remembers: bool  # partitions without rows, too

    def resume(self) -> dict[Key, Resume]:
        """The same by key."""
        found = zip(self.keys, self.stands.tolist(), strict=True)
        return {
            key: Resume(begin, match, matched, bool(whole))
            for key, (_, rows, begin, match, matched, whole) in found
            if rows or self.remembers
        }


class Part:
    """A partition: its rows, where its search stands, and an attempt that ran out of rows."""

    def __init__(self, new: NewParts) -> None:
        words = new.words.copy()
        self.head: Int64s = words[: r.HEAD_SIZE]
        self.at = int(words.ctypes.data)
        words[new.addresses] += self.at
        self.tables: dict[int, npt.NDArray[Any]] = _Tables(words, new.laid)

    def place(self, number: int, table: npt.NDArray[Any]) -> None:
        """Puts a table where kernels find it."""
        self.tables[number] = table
        write_table(self.head, r.TABLES + 3 * number, table)

    @property
    def size(self) -> int:
        """How many rows there are."""
        return int(self.head[r.HIGH])

    @property
    def begin(self) -> int:
        """The first row at which a match may begin that is not known yet."""
        return int(self.head[r.BEGIN])

    def numbers(self, low: int, high: int) -> Int64s:
        """The numbers of some of the rows."""
        numbers: Int64s = self.tables[r.NUMBERS][low:high]
        return numbers

    def resume(self, start: int) -> Resume:
        """Where the search goes on, counted from a row."""
        head = self.head
        matched = max(int(head[r.MATCHED]) - start, -1)
        whole = bool(self.tables[r.IS_WHOLE][0]) and start == 0
        return Resume(int(head[r.BEGIN]) - start, int(head[r.MATCH]), matched, whole)

    def grow(self, room: int) -> None:
        """Room for so many rows."""
        for number in _BY_ROW:
            before = self.tables[number]
            after = np.zeros((before.shape[0], room), before.dtype)
            after[:, : before.shape[1]] = before
            if number == r.NULL and len(after):
                after[:, before.shape[1] - 1], after[:, -1] = 0, 1  # the last row is one in which all is NULL
            self.place(number, after)
        places = self.tables[r.PLACES]
        wider = np.zeros((places.shape[0], room), np.int64)
        wider[:, : places.shape[1]] = places
        self.place(r.PLACES, wider)
        for number in (*_ALONG, *_BY_POSITION, r.COUNTED):
            before = self.tables[number]
            more = room - int(self.head[r.ROOM])
            if len(before) or number not in (r.UPCOMING, r.BEGINS, r.BEST_PATH, r.TEXTS):
                after = np.zeros((len(before) + more, *before.shape[1:]), before.dtype)
                after[: len(before)] = before
                self.place(number, after)
        self.head[r.ROOM] = room
        if self.head[r.ALLOWANCE]:
            self.head[r.ALLOWANCE] = FAILURES + FAILURES_PER_ROW * room


def write_table(head: Int64s, at: int, table: npt.NDArray[Any]) -> None:
    """Writes where a table is, and its size."""
    rows = 1 if table.ndim == 1 else table.shape[0]
    head[at : at + 3] = table.ctypes.data, rows, table.shape[-1]

"""Several threads: partitions are searched side by side, and one large partition under a window is cut by time.

A cut partition is searched from every cut on as if a search could begin there. Where the search before it goes on
past the cut, it is followed until it stands at a row at which the search behind the cut stood, too: from there on
both find the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.kernels.stop import guarded
from cepheid.engine.search.row_pattern.arrange import Arranged
from cepheid.language import syntax as s
from cepheid.language.match_recognize.bound import BoundClause, MatchNumber
from cepheid.language.match_recognize.syntax import Rows as RowsPerMatch
from cepheid.language.match_recognize.syntax import SkipTo

PIECE = 100_000  # rows for which a thread is worth its while
T = TypeVar("T")


def side_by_side(work: Callable[[Any], T], parts: list[Any]) -> list[T]:
    """The work of each part, in threads of its own; all of it can be stopped at once."""
    if len(parts) == 1:
        return [work(parts[0])]
    found: list[T] = guarded(_in_threads)(work, parts)
    return found


def _in_threads(work: Callable[[Any], T], parts: list[Any]) -> list[T]:
    with ThreadPoolExecutor(len(parts)) as pool:
        waiting = [pool.submit(copy_context().run, work, part) for part in parts]
        return [each.result() for each in waiting]


def pieces(rows: Arranged, threads: int) -> list[Arranged]:
    """The partitions in as many pieces as threads, of about as many rows each."""
    total = int(rows.bounds[-1]) if len(rows.bounds) else 0
    count = min(threads, total // PIECE)
    if count < 2:
        return [rows]
    wanted = np.linspace(0, total, count + 1)[1:-1]
    edges = np.unique(np.concatenate([[0], np.searchsorted(rows.bounds, wanted), [len(rows.bounds) - 1]]))
    return [_piece(rows, int(first), int(last)) for first, last in pairwise(edges)]


def _piece(rows: Arranged, first: int, last: int) -> Arranged:
    low, high = int(rows.bounds[first]), int(rows.bounds[last])
    time = rows.time[low:high] if len(rows.time) else rows.time
    return replace(rows, table=rows.table.slice(low, high - low), bounds=rows.bounds[first : last + 1] - low, time=time)


def can_be_cut(clause: BoundClause, rows: Arranged) -> bool:
    """May a partition be cut: does where a match ends depend on where it begins alone, and lie within a window?"""
    simple = (
        clause.skip in (SkipTo.PAST_LAST_ROW, SkipTo.NEXT_ROW) and clause.rows is not RowsPerMatch.ALL_WITH_UNMATCHED
    )
    counted = any(isinstance(node, MatchNumber) for each in clause.conditions.values() for node in s.walk(each))
    return bool(rows.within) and not clause.partial and simple and not counted and len(rows.bounds) == 2


@dataclass(frozen=True)
class Part:
    """What a search from one row up to another has found, and the row at which it stood then."""

    start: Int64s
    length: Int64s
    step: Int64s
    stood: int


def cuts(low: int, high: int, threads: int) -> list[tuple[int, int]]:
    """A partition in about equal parts.

    >>> cuts(0, 400_000, 2)
    [(0, 200000), (200000, 400000)]
    """
    count = max(min(threads, (high - low) // PIECE), 1)
    edges = np.linspace(low, high, count + 1).astype(int).tolist()
    return list(pairwise(edges))


def joined(parts: list[Part], ends: list[int], skip: SkipTo, search: Callable[[int, int], Part]) -> list[Part]:
    """What one search from the first row on would have found; `search` looks for matches from one row up to another."""
    kept = [parts[0]]
    stood = parts[0].stood
    for part, end in zip(parts[1:], ends[1:], strict=True):
        for found in _followed(part, stood, end, skip, search):
            kept.append(found)
            stood = found.stood
    return kept


def _followed(part: Part, stood: int, end: int, skip: SkipTo, search: Callable[[int, int], Part]) -> Iterator[Part]:
    """The search that stands at a row, until it meets the one that found `part`; then what that one found there."""
    lengths = np.maximum(part.length, 1) if skip is SkipTo.PAST_LAST_ROW else np.ones(len(part.length), np.int64)
    while stood < end:
        before = int(np.searchsorted(part.start, stood, "right")) - 1
        inside = before >= 0 and part.start[before] < stood < part.start[before] + lengths[before]
        if not inside:
            first = int(np.searchsorted(part.start, stood, "left"))
            taken = int(np.maximum(part.length[:first], 0).sum())
            yield Part(part.start[first:], part.length[first:], part.step[taken:], part.stood)
            return
        found = search(stood, min(int(part.start[before] + lengths[before]), end))
        stood = found.stood
        yield found

"""Matches as an engine returns them: row numbers, never rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.engine.data.arrays import Float64s, Int64s

NEVER = np.iinfo(np.int64).max  # a completion instant that only the end of the table reaches
MISSING = -1  # the row of an event that no reader saw
COMPLETE, UNMATCHED = -1, -2  # where others say what a partial match waits for: a match; a row that is in none


@dataclass(frozen=True)
class Chosen:
    """The events that fill one positive component, for all matches: one row each, or a list of rows (Kleene)."""

    rows: Int64s
    offsets: Int64s | None = None  # Kleene: match m holds rows[offsets[m]:offsets[m + 1]]

    def first(self) -> Int64s:
        """The first row of each match; MISSING where a whole group is missing."""
        return self.rows if self.offsets is None else self._at(self.offsets[:-1], np.diff(self.offsets) == 0)

    def last(self) -> Int64s:
        """The last row of each match; MISSING where a whole group is missing."""
        return self.rows if self.offsets is None else self._at(self.offsets[1:] - 1, np.diff(self.offsets) == 0)

    def _at(self, positions: Int64s, empty: npt.NDArray[np.bool_]) -> Int64s:
        if not empty.any():
            return self.rows[positions]
        found = np.full(len(positions), MISSING, np.int64)
        found[~empty] = self.rows[positions[~empty]]
        return found

    @property
    def bounds(self) -> Int64s:
        """The offsets of lists of rows."""
        assert self.offsets is not None
        return self.offsets

    def take(self, which: Int64s) -> Chosen:
        """The same for some of the matches."""
        if self.offsets is None:
            return Chosen(self.rows[which])
        offsets, places = some_lists(self.offsets, which)
        return Chosen(self.rows[places], offsets)


class Following(Chosen):
    """Lists of rows that follow each other, from `begin` on. They are listed if somebody asks."""

    def __init__(self, begin: Int64s, offsets: Int64s) -> None:
        object.__setattr__(self, "begin", begin)
        object.__setattr__(self, "offsets", offsets)

    @cached_property
    def rows(self) -> Int64s:
        """All rows, list by list."""
        begin: Int64s = vars(self)["begin"]
        return np.repeat(begin - self.bounds[:-1], np.diff(self.bounds)) + np.arange(self.bounds[-1])


def some_lists(offsets: Int64s, which: Int64s) -> tuple[Int64s, Int64s]:
    """Some of the lists that offsets bound: the offsets of these, and where their elements lie."""
    sizes = np.diff(offsets)[which]
    own = np.concatenate([[0], np.cumsum(sizes)])
    return own, np.arange(own[-1]) - np.repeat(own[:-1] - offsets[which], sizes)


@dataclass(frozen=True)
class Forecasts:
    """What is forecast of partial matches: which part of the pattern they hold, and when they complete."""

    beginning: Int64s  # by number (language/forecasts.py)
    expected: Int64s  # the median of the completion instant, if it completes
    earliest: Int64s  # and its 90% interval
    latest: Int64s

    def take(self, which: Int64s) -> Forecasts:
        """Some of them, in the order asked for."""
        return Forecasts(self.beginning[which], self.expected[which], self.earliest[which], self.latest[which])


@dataclass(frozen=True)
class Matches:
    """All matches that a search was asked for, in every language.

    Query text has a group of events for each component. Where events have labels (row patterns, Flink patterns), one
    group holds all events of a match in their order, and `labels` says which step took each of them.
    """

    chosen: tuple[Chosen, ...]  # one per positive component
    completion: Int64s  # when each match is known; NEVER: at the end of the table
    labels: Int64s | None = None  # by event of all matches
    waiting: Int64s | None = None  # what a partial match waits for, by number; COMPLETE, UNMATCHED; None: all complete
    start: Int64s | None = None  # row patterns: the row at which it begins, even if it has no rows
    probability: Float64s | None = None  # missing events (AYAC)
    confidence: Float64s | None = None  # imprecise time (TIME)
    earliest: Int64s | None = None
    latest: Int64s | None = None
    forecasts: Forecasts | None = None  # of partial matches (FORECAST); they are known when they are reported
    counters: dict[str, int] = field(default_factory=dict)
    truncated: bool = False

    def __len__(self) -> int:
        return len(self.completion)

    def take(self, which: Int64s) -> Matches:
        """Some of the matches, in the order asked for."""

        def some(values: Any) -> Any:
            return None if values is None else values[which]

        labels = self.labels
        if labels is not None:
            labels = labels[some_lists(self.in_order.bounds, which)[1]]
        return replace(
            self,
            chosen=tuple(group.take(which) for group in self.chosen),
            completion=self.completion[which],
            labels=labels,
            waiting=some(self.waiting),
            start=some(self.start),
            probability=some(self.probability),
            confidence=some(self.confidence),
            earliest=some(self.earliest),
            latest=some(self.latest),
            forecasts=None if self.forecasts is None else self.forecasts.take(which),
        )

    @property
    def number(self) -> int:
        """How many there are: partial matches count, rows in none do not."""
        return len(self) if self.waiting is None else int(np.count_nonzero(self.waiting != UNMATCHED))

    @property
    def in_order(self) -> Chosen:
        """All events of each match in their order, where they have labels."""
        (group,) = self.chosen
        return group

    def by_label(self, many: Sequence[bool]) -> tuple[Chosen, ...]:
        """The events of each label, for all matches: one each, or a list of which so many are in each match."""
        group, labels, found = self.in_order, self.labels, list[Chosen]()
        assert labels is not None
        order = np.argsort(labels.astype(np.int16), kind="stable")
        rows, of = group.rows[order], np.repeat(np.arange(len(self)), np.diff(group.bounds))[order]
        edges = np.searchsorted(labels[order], np.arange(len(many) + 1)).tolist()
        for several, low, high in zip(many, edges, edges[1:], strict=False):
            if several:
                sizes = np.bincount(of[low:high], minlength=len(self))
                found.append(Chosen(rows[low:high], np.concatenate([[0], np.cumsum(sizes)])))
            elif high - low == len(self):
                found.append(Chosen(rows[low:high]))
            else:
                one = np.full(len(self), MISSING, np.int64)
                one[of[low:high]] = rows[low:high]
                found.append(Chosen(one))
        return tuple(found)

    def first_rows(self, *, in_order: bool) -> Int64s:
        """The row of the first event of each match that was seen.

        `in_order`: components follow each other. Otherwise any may hold it, and rows in the order of time decide.
        """
        if not in_order:
            rows = np.stack([group.first() for group in self.chosen])
            return np.asarray(np.where(rows == MISSING, NEVER, rows).min(axis=0))
        return self._seen(group.first() for group in self.chosen)

    def last_rows(self, *, in_order: bool) -> Int64s:
        """The same for the last event."""
        if not in_order:
            return np.asarray(np.stack([group.last() for group in self.chosen]).max(axis=0))
        return self._seen(group.last() for group in reversed(self.chosen))

    def _seen(self, choices: Iterable[Int64s]) -> Int64s:
        found = np.full(len(self), MISSING, np.int64)
        for rows in choices:
            found = np.where(found == MISSING, rows, found)
        return found

    def groups(self) -> list[tuple[tuple[int, ...], ...]]:
        """Each match as plain tuples of row numbers; for tests and small results."""
        parts = []
        for group in self.chosen:
            rows = group.rows.tolist()
            ends = range(len(rows) + 1) if group.offsets is None else group.offsets.tolist()
            parts.append([tuple(row for row in rows[low:high] if row != MISSING) for low, high in pairwise(ends)])
        return list(zip(*parts, strict=True))


def joined(first: Matches, second: Matches) -> Matches:
    """The matches of two searches over the same events, none of which both found."""
    chosen = []
    for one, two in zip(first.chosen, second.chosen, strict=True):
        offsets = None
        if one.offsets is not None and two.offsets is not None:
            offsets = np.concatenate([one.offsets, two.offsets[1:] + len(one.rows)])
        chosen.append(Chosen(np.concatenate([one.rows, two.rows]), offsets))
    probability = None
    if first.probability is not None and second.probability is not None:
        probability = np.concatenate([first.probability, second.probability])
    work = first.counters.keys() - {"scanned", "candidates"}
    return replace(
        first,
        chosen=tuple(chosen),
        completion=np.concatenate([first.completion, second.completion]),
        probability=probability,
        counters=first.counters | {name: first.counters[name] + second.counters.get(name, 0) for name in work},
        truncated=first.truncated or second.truncated,
    )


def from_groups(
    groups: Sequence[Sequence[Sequence[int]]], completion: Sequence[float], kleene: Sequence[bool]
) -> Matches:
    """Matches from plain tuples of row numbers, an empty one standing for a missing event."""
    chosen = []
    for place, many in enumerate(kleene):
        parts = [match[place] for match in groups]
        if many:
            offsets = np.cumsum([0, *(len(part) for part in parts)], dtype=np.int64)
            rows = np.array([row for part in parts for row in part], np.int64)
            chosen.append(Chosen(rows, offsets))
        else:
            chosen.append(Chosen(np.array([part[0] if part else MISSING for part in parts], np.int64)))
    known = [NEVER if value == float("inf") else int(value) for value in completion]
    return Matches(tuple(chosen), np.array(known, np.int64))


def sortable(values: Iterable[object]) -> tuple[object, ...]:
    """Values as a sort key, NULL first; NaN is NULL."""
    return tuple((value is not None and value == value, _plain(value)) for value in values)


def _plain(value: object) -> Any:
    if isinstance(value, list | tuple):
        return sortable(value)
    if isinstance(value, dict):
        return sortable([part for name in sorted(value) for part in (name, value[name])])
    return 0 if value is None or value != value else value

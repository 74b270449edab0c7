"""Compressed output (SASE+ section 4.2): all matches as one shared structure, with counts and a way to list them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush

import numpy as np

from cepheid.budget import checkpoint, paced
from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.matches import Matches
from cepheid.engine.kernels.stop import guarded
from cepheid.engine.limits import check_limit
from cepheid.engine.search.runs.buffer import EARLIEST, ENTRY, EVENT, JOINED, KNOWN, MATCHES, UNNEEDED
from cepheid.engine.search.runs.enumerate import CUT, list_matches, nothing_listed
from cepheid.engine.search.runs.moves import COUNTLESS
from cepheid.engine.search.runs.prepare import Prepared, matches_of
from cepheid.language.bound import BoundQuery


@dataclass(frozen=True)
class CompressedMatches:
    """Matches that share their events instead of each listing its own.

    `entries` is a directed acyclic graph, one row for each entry: an event with its predecessor (-1: none), its place
    in the pattern and the latest event that a path from here can begin with; or, where the event is -1, two entries
    that stand for the matches of both. `accepted` has a row for each accepting entry: the entry, the earliest event
    its matches may begin with, how many they are, and when they are known. Every path from there back to a beginning
    that is not too early is a match. Events are numbered by candidate; `candidates.rows` gives their table rows.
    """

    prepared: Prepared
    entries: Int64Rows
    accepted: Int64Rows
    state: Int64s = field(repr=False)
    truncated: bool = False

    @property
    def counters(self) -> dict[str, int]:
        """What the engine counted."""
        return {**self.prepared.counters(self.state), "entries": len(self.entries), "accepting": len(self.accepted)}

    def count(self) -> int:
        """How many matches there are, exactly, without listing them."""
        return sum(self._exact())

    def counts(self) -> tuple[Int64s, list[int]]:
        """How many matches end with which event: table rows, and for each of them an exact number of matches."""
        ends = self.prepared.candidates.rows[self.entries[self.accepted[:, ENTRY], EVENT]]
        rows, places = np.unique(ends, return_inverse=True)
        counts = [0] * len(rows)
        for place, number in zip(places.tolist(), self._exact(), strict=True):
            counts[place] += number
        return rows, counts

    def enumerate(self, limit: int | None = None) -> Matches:
        """All matches, or the first `limit` of them; more than max_matches are an error, as everywhere."""
        most = self.prepared.plan.limits.max_matches
        wanted = most if limit is None else min(limit, most)
        bound, rows = self.prepared.plan.bound, self.prepared.candidates.rows
        found, cut = listed_matches(bound, self.entries, self.accepted, rows, wanted)
        asked_for = limit is not None and limit <= most
        truncated = self.truncated or (check_limit(self.prepared.plan, "max_matches", cut and not asked_for))
        return replace(found, counters=self.prepared.counters(self.state), truncated=truncated)

    def _exact(self) -> list[int]:
        """The number of matches of each accepting entry; those past 63 bits are counted again, without a bound."""
        counts: list[int] = self.accepted[:, MATCHES].tolist()
        rows: dict[int, list[int]] = {}
        for row, number in enumerate(counts):
            if number == COUNTLESS:
                rows.setdefault(int(self.accepted[row, ENTRY]), []).append(row)
        for entry, tally in self._tallies(rows) if rows else ():
            for row in rows[entry]:
                earliest = int(self.accepted[row, EARLIEST])
                counts[row] = sum(paths for began, paths in tally.items() if began >= earliest)
        return counts

    def _tallies(self, rows: dict[int, list[int]]) -> Iterator[tuple[int, dict[int, int]]]:
        """How many paths to accepting entries began with which event; `rows` are where each is accepted.

        Only entries on these paths are looked at, and of each only beginnings that no window cuts off.
        """
        needed = self._needed(rows)
        last: dict[int, int] = {}  # the last entry that goes on from each
        ways = [(entry, *self.entries[entry].tolist()) for entry in paced(sorted(needed))]
        for entry, event, left, right, _ in ways:
            for used in (left, right) if event == JOINED else (left,):
                last[used] = entry
        tallies: dict[int, dict[int, int]] = {}
        for entry, event, left, right, _ in paced(ways):
            if event == JOINED:
                tally = _without(tallies.get(left, {}), needed[entry])
                for began, paths in tallies.get(right, {}).items():
                    if began >= needed[entry]:
                        tally[began] = tally.get(began, 0) + paths
            else:
                tally = tallies.get(left, {}) if left >= 0 else {event: 1}
            tallies[entry] = tally
            if entry in rows:
                yield entry, tally
            for used in (left, right if event == JOINED else -1, entry):
                if used in tallies and last.get(used, entry) <= entry:
                    del tallies[used]

    def _needed(self, rows: dict[int, list[int]]) -> dict[int, int]:
        """The entries on the paths that lead to accepting ones, and the earliest beginning that each is asked for."""
        needed = {entry: int(self.accepted[those, EARLIEST].min()) for entry, those in rows.items()}
        pending = [-entry for entry in needed]  # from the last one back, since a path only goes back
        heapify(pending)
        while pending:
            checkpoint()
            entry = -heappop(pending)
            event, left, right, latest = self.entries[entry].tolist()
            if latest < needed[entry]:
                del needed[entry]
                continue
            for before in (left, right) if event == JOINED else (left,):
                if before >= 0:
                    if before not in needed:
                        heappush(pending, -before)
                    needed[before] = min(needed.get(before, UNNEEDED), needed[entry])
        return needed

    def known(self) -> Int64s:
        """When the matches of each accepting entry are known."""
        known: Int64s = self.accepted[:, KNOWN]
        return known


def _without(tally: dict[int, int], earliest: int) -> dict[int, int]:
    """A tally without what began too early."""
    return {began: paths for began, paths in tally.items() if began >= earliest}


def listed_matches(
    bound: BoundQuery, entries: Int64Rows, accepted: Int64Rows, row_of: Int64s, most: int
) -> tuple[Matches, bool]:
    """The matches that accepting entries stand for, at most so many; and whether there are more."""
    listed = guarded(list_matches)(
        nothing_listed(len(bound.positives)),
        np.ascontiguousarray(entries),
        np.ascontiguousarray(accepted),
        len(accepted),
        most,
    )
    return matches_of(bound, listed, row_of), bool(listed.filled[CUT])

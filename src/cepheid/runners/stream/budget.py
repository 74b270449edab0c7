"""How much a stream may keep, and what goes first when that is not enough.

A budget bounds the bytes of retained events of a shard and the events of one key; the limits on partial matches and on
the time of a search bound the work of a step. When a bound is met the policy says what happens, and what is shed is
counted, with an estimate of the matches that it would have been part of: as many per event as came of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cepheid.engine.data.keys import Codes, key_codes
from cepheid.engine.data.table import EventTable
from cepheid.errors import LimitError
from cepheid.runners.options import POLICIES

Mask = npt.NDArray[np.bool_]
FAIL, OLDEST, LARGEST, SAMPLE = POLICIES
# The bounds that make events go.
KEY_EVENTS, STATE_BYTES, SEARCH, TIME = REASONS = ("key_events", "state_bytes", "search", "time")


@dataclass(frozen=True)
class Budget:
    """What one shard may keep; None: as much as it takes."""

    max_bytes: int | None = None
    max_key_events: int | None = None
    policy: str = FAIL
    max_seconds: float | None = None  # that the searches of one step may take, all queries and attempts together

    def attempts(self) -> Iterator[float | None]:
        """How long each attempt at a step may take: every next one gets half of the time that is left.

        >>> allowed = Budget(max_seconds=2.0).attempts()
        >>> next(allowed), next(allowed), next(Budget().attempts())
        (1.0, 0.5, None)
        """
        left = self.max_seconds
        while True:
            if left is not None:
                left /= 2
            yield left

    def shed(self, events: EventTable, keep: Mask, keys: Sequence[str], seed: int) -> dict[str, Mask]:
        """By the bound that is met, True for the events that must go, so that the kept ones fit."""
        if self.max_key_events is None and self.max_bytes is None:
            return {}
        found: dict[str, Mask] = {}
        codes = key_codes(events.table, keys) if keys else np.zeros(len(events), np.uint64)
        if self.max_key_events is not None:
            counts = counted(codes, keep)
            many = keep & (counts > self.max_key_events)
            if many.any():
                self.check(f"a key has {counts[many].max():,} events", "max_key_events", self.max_key_events)
                most = self.max_key_events
                found[KEY_EVENTS] = many if self.policy == LARGEST else beyond(self.order(many, seed), codes, most)
                keep = keep & ~found[KEY_EVENTS]
        if self.max_bytes is not None and keep.any():
            per_event = max(1.0, events.table.nbytes / len(events))
            allowed = int(self.max_bytes / per_event)
            if int(keep.sum()) > allowed:
                message = f"a shard keeps about {int(keep.sum() * per_event):,} bytes"
                self.check(message, "max_state_bytes", self.max_bytes)
                found[STATE_BYTES] = self.first_to_go(keep, codes, allowed, seed)
        return found

    def halve(self, keep: Mask, events: EventTable, keys: Sequence[str], seed: int) -> Mask:
        """Half of the events, by the policy: for a step that took too long or held too much."""
        codes = key_codes(events.table, keys) if keys else np.zeros(len(events), np.uint64)
        return self.first_to_go(keep, codes, int(keep.sum()) // 2, seed)

    def check(self, told: str, option: str, value: int) -> None:
        """An error, if that is the policy."""
        if self.policy == FAIL:
            hint = f"raise {option}, narrow the window, or allow load shedding: when_full='{OLDEST}'"
            raise LimitError(f"{told}, and {option} allows {value:,}", hint=hint)

    def order(self, rows: Mask, seed: int) -> npt.NDArray[np.int64]:
        """Some rows, those first that should stay longest."""
        places = np.flatnonzero(rows)
        if self.policy == SAMPLE:
            return np.random.default_rng(seed).permutation(places)
        return places[::-1]  # events are in order of time

    def first_to_go(self, keep: Mask, codes: Codes, allowed: int, seed: int) -> Mask:
        """All kept events but `allowed` ones."""
        gone = np.zeros(len(keep), bool)
        if self.policy == LARGEST:
            found, counts = np.unique(codes[keep], return_counts=True)
            order = np.argsort(-counts, kind="stable")
            left = int(keep.sum()) - np.cumsum(counts[order])
            most = 1 + int(np.searchsorted(-left, -allowed))  # as few keys as will do
            return keep & np.isin(codes, found[order[:most]])
        gone[self.order(keep, seed)[allowed:]] = True
        return gone


def counted(codes: Codes, keep: Mask) -> npt.NDArray[np.int64]:
    """For each event, how many events of its key are kept."""
    _, inverse = np.unique(codes, return_inverse=True)
    counts = np.bincount(inverse[keep], minlength=int(inverse.max(initial=-1)) + 1)
    found: npt.NDArray[np.int64] = counts[inverse]
    return found


def beyond(places: npt.NDArray[np.int64], codes: Codes, allowed: int) -> Mask:
    """True for those of some places before which as many of the same key come as are allowed.

    >>> beyond(np.array([4, 3, 1, 0]), np.array([7, 7, 8, 7, 7], np.uint64), 2).tolist()
    [True, True, False, False, False]
    """
    order = np.argsort(codes[places], kind="stable")
    of_key = codes[places][order]
    first = np.searchsorted(of_key, of_key)
    gone = np.zeros(len(codes), bool)
    gone[places[order][np.arange(len(order)) - first >= allowed]] = True
    return gone

"""OUTPUT MAXIMAL: without matches whose events are a proper part of another reported one's, place by place."""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import numpy as np
import numpy.typing as npt

from cepheid.engine.matches import MISSING, Matches


def maximal(matches: Matches) -> Matches:
    """The matches that no other one contains."""
    if len(matches) < 2:
        return matches
    if any(group.offsets is not None for group in matches.chosen):
        kept = _maximal_groups(matches)
    else:
        kept = _maximal_rows(np.stack([group.rows for group in matches.chosen], axis=1))
    return matches.take(np.flatnonzero(kept))


def _maximal_rows(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """One event or none per component: a match is contained in another that agrees wherever it saw an event."""
    places = np.arange(rows.shape[1])
    seen = ((rows != MISSING) << places).sum(axis=1)
    kept = np.ones(len(rows), bool)
    kinds = np.unique(seen)
    for small, large in product(kinds, kinds):
        if small == large or small & large != small:
            continue
        shared = places[(small >> places) & 1 == 1]
        inner, outer = np.flatnonzero(seen == small), np.flatnonzero(seen == large)
        kept[inner[np.isin(_keys(rows[inner][:, shared]), _keys(rows[outer][:, shared]))]] = False
    return kept


def _keys(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.void]:
    """Each row as one value that can be compared."""
    whole = np.ascontiguousarray(rows)
    return whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1]))).ravel()


def _maximal_groups(matches: Matches) -> npt.NDArray[np.bool_]:
    """Kleene groups: compared as sets, among matches that share the first event that was seen last."""
    groups = [tuple(frozenset(group) for group in match) for match in matches.groups()]
    holding: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, match in enumerate(groups):
        for place, group in enumerate(match):
            for event in group:
                holding[place, event].append(number)
    kept = np.ones(len(groups), bool)
    for number, match in enumerate(groups):
        place = max(index for index, group in enumerate(match) if group)
        for other in holding[place, min(match[place])]:
            larger = groups[other]
            if larger != match and all(small <= large for small, large in zip(match, larger, strict=True)):
                kept[number] = False
                break
    return kept

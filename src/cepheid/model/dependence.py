"""Do stops depend on each other, or do their losses? Which of them are missing together on a trip.

A model takes every stop to happen, and to be lost, independently of the others. Then it does not matter for one stop
which of the others were seen on the same trip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy import special

from cepheid.model.check import FEWEST, MISSING_TOGETHER, Comparison
from cepheid.model.gap import Floats

LOST_TOGETHER = "their losses are correlated within a trip"
LEFT_OUT_TOGETHER = "the stops depend on each other, and are left out together"
LEFT_OUT_IN_TURN = "the stops depend on each other, and one is left out where the other is not"
DEPENDENT = "the stops, or their losses, depend on each other"


def compare_together(names: Sequence[str], counts: Mapping[tuple[int, int], float]) -> list[Comparison]:
    """Every pair and every triple of stops.

    `counts` says how many trips there were by (stratum, mask of the stops that were seen); what is alike within a
    stratum, an hour of the day, may differ between them. The last stop of a triple is compared with what was seen of
    both others, so that three stops of which each two are independent are told, too.
    """
    table = _Table.of(counts)
    stops = range(len(names))
    groups = [*combinations(stops, 2), *combinations(stops, 3)]
    return _all([_compared(table, names, others, last) for *others, last in groups])


def compare_apart(names: Sequence[str], counts: Mapping[tuple[int, int], float]) -> list[Comparison]:
    """Every pair of stops between which another one was seen, and the first two.

    A model that knows what happens between two stops that were seen takes these to part what lies on either side.
    What was seen between a pair is a stratum of its own.
    """
    found = []
    for first, last in combinations(range(len(names)), 2):
        inside = (1 << last) - (1 << (first + 1))
        if not inside and first > 0:
            continue
        apart: dict[tuple[int, int], float] = {}
        for (stratum, mask), number in counts.items():
            if mask & inside or not inside:
                apart[(stratum << len(names)) + (mask & inside), mask] = number
        found.append(_compared(_Table.of(apart), names, [first], last))
    return _all(found)


def _all(found: Sequence[Comparison | None]) -> list[Comparison]:
    """Those that there are. The more there are, the less each one of them counts (Bonferroni)."""
    known = [each for each in found if each is not None]
    return [replace(each, unlikely=min(each.unlikely * len(known), 1.0)) for each in known]


@dataclass(frozen=True)
class _Table:
    """Trips by stratum and by which stops were seen."""

    strata: int
    place: npt.NDArray[np.int64]
    masks: npt.NDArray[np.int64]
    trips: Floats

    @classmethod
    def of(cls, counts: Mapping[tuple[int, int], float]) -> _Table:
        strata, place = np.unique([stratum for stratum, _ in counts], return_inverse=True)
        masks = np.array([mask for _, mask in counts], np.int64)
        return cls(len(strata), place, masks, np.array(list(counts.values())))

    def by_stratum(self, kept: npt.NDArray[np.bool_]) -> Floats:
        return np.asarray(np.bincount(self.place, self.trips * kept, self.strata), np.float64)

    def gone(self, stop: int) -> npt.NDArray[np.bool_]:
        return np.asarray((self.masks >> stop) & 1 == 0)


def _compared(table: _Table, names: Sequence[str], others: Sequence[int], last: int) -> Comparison | None:
    """Is a stop missing as often whatever was seen of some others? The case in which that is least likely."""
    if table.trips.sum() < FEWEST:
        return None
    everything, gone = table.by_stratum(np.ones(len(table.trips), bool)), table.gone(last)
    cells = []
    for missing in range(1 if len(others) == 1 else 0, 1 << len(others)):
        here = np.ones(len(table.trips), bool)
        for bit, stop in enumerate(others):
            here &= table.gone(stop) == bool(missing >> bit & 1)
        numbers = _cell(everything, table.by_stratum(here), table.by_stratum(gone), table.by_stratum(here & gone))
        if numbers is not None:
            cells.append((*numbers, missing))
    if not cells:
        return None
    unlikely, expected, observed, number, missing = min(cells)
    return Comparison(
        MISSING_TOGETHER,
        names[last],
        expected / number,
        observed / number,
        number,
        abs(observed - expected) / number,
        min(unlikely * len(cells), 1.0),
        given=_told([names[stop] for stop in others], missing),
        others=tuple(names[stop] for stop in others),
    )


def _cell(trips: Floats, here: Floats, gone: Floats, both: Floats) -> tuple[float, float, float, float] | None:
    """Is a stop gone as often here as on all trips? How unlikely by chance, expected and observed, of how many.

    The strata are added up as Mantel and Haenszel do.
    """
    kept = trips > 1.0
    trips, here, gone, both = trips[kept], here[kept], gone[kept], both[kept]
    number = float(here.sum())
    if number < FEWEST:
        return None
    expected, observed = float((here * gone / trips).sum()), float(both.sum())
    variance = float((here * gone * (trips - here) * (trips - gone) / (trips**2 * (trips - 1.0))).sum())
    if variance < 1.0:  # too few to say anything
        return None
    unlikely = float(2.0 * special.ndtr(-abs(observed - expected) / np.sqrt(variance)))
    return unlikely, expected, observed, number


def _told(names: Sequence[str], missing: int) -> str:
    """Which of some stops were seen."""
    seen = " and ".join(repr(name) for bit, name in enumerate(names) if not missing >> bit & 1)
    unseen = " and ".join(repr(name) for bit, name in enumerate(names) if missing >> bit & 1)
    return " and ".join(part for part in (seen and f"with {seen}", unseen and f"without {unseen}") if part)


def with_reasons(comparisons: Sequence[Comparison], always: Set[str], longer: bool | None) -> list[Comparison]:
    """The same with what the deviations mean, as the least likely pair tells it.

    A stop that `always` happens is missing only because it was lost. Of others, the length of trips tells: `longer`
    says whether those without several stops took longer than predicted, since stops that were lost took their time.
    """
    pairs = [each for each in comparisons if each.deviates and len(each.others) == 1]
    worst = min(pairs, key=lambda each: each.unlikely, default=None)
    reason = DEPENDENT
    if worst is not None:
        more = worst.observed > worst.predicted
        if more and always & {worst.component, *worst.others}:
            reason = LOST_TOGETHER
        elif longer is not None and more:
            reason = LOST_TOGETHER if longer else LEFT_OUT_TOGETHER
        elif longer:
            reason = LEFT_OUT_IN_TURN
    return [replace(each, reason=reason) if each.deviates else each for each in comparisons]

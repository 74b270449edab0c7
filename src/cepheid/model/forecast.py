"""How likely is a partial match to complete, and when? (docs/semantics.md, forecasts)

A partial match took its last event at time 0 and waits for positive components m1..mn, with negated components between
them; nothing of them was seen until u, and the window ends at R. A history says which of them happen, and when. What
happened before u was not seen. Each factor of a history depends on the time between two of its positive components, so
the sums over histories are chains:

    complete_j(u, x) = ε ∫_0^u own_j(s) complete_(j+1)(u - s, x - s) ds + ∫_u^x own_j(s) rest_(j+1)(x - s) ds
    rest_j(y)        = ∫_0^y own_j(s) rest_(j+1)(y - s) ds
    unseen_j(u)      = Σ_r ε_r ∫_0^u comes_(j,r)(s) unseen_r(u - s) ds + (the next one comes after u, or never)

where own_j is the density of m(j+1) after m(j) with no negated component between them, comes_(j,r) that of m(r) as the
next one that happens at all, negated ones unseen. The forecast is complete_0(u, R) / unseen_0(u). The completion
instant has the distribution complete_0(u, x) / complete_0(u, R).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.interpolate import PchipInterpolator

from cepheid.errors import ModelError
from cepheid.model.chain import landmarks_of, quantiles
from cepheid.model.gap import Floats, GapDistribution
from cepheid.model.segments import SegmentItem, split

Function = Callable[[Floats], Floats]

GRID = 192  # points in time; with them forecasts are right to about 1e-4 (tests/model/test_forecast.py)
PART = 512  # windows that are looked at together: their columns fit a cache
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)
_SHARES = (*np.linspace(0.02, 0.98, 25), 1e-4, 1e-3, 0.005, 0.995, 0.999, 0.9999)
_SMALL = 1e-280  # what divides: a history that the model calls impossible says nothing


@dataclass(frozen=True)
class Forecast:
    """What is known of partial matches, one element each: times count from the last event that was taken."""

    probability: Floats
    expected: Floats  # the median of the completion instant, given that it completes
    earliest: Floats  # and its 90% interval
    latest: Floats


@dataclass(frozen=True, eq=False)
class ForecastTable:
    """The forecasts of all partial matches that wait for the same components, for every u and R up to the window.

    `chances[i, k]` is the probability of being complete by grid[k], given that nothing was seen until grid[i]. Where
    the match is complete only with the end of the window (`at_end`), k stands for that end.
    """

    grid: Floats
    chances: Floats
    at_end: bool

    def probability(self, elapsed: Floats, remaining: Floats) -> Floats:
        """The forecast after `elapsed`, where the window ends `remaining` after the last event."""
        return np.clip(self._at(*self._row(elapsed), np.asarray(remaining, np.float64)), 0.0, 1.0)

    def forecast(self, elapsed: Floats, remaining: Floats) -> Forecast:
        """The forecast, with the median and the 90% interval of the completion instant."""
        # Times are whole steps, so that many partial matches have the same two.
        pairs = np.stack([np.asarray(elapsed, np.float64), np.asarray(remaining, np.float64)]).view(np.int64)
        order = np.lexsort(pairs)
        new = np.concatenate([[True], (np.diff(pairs[:, order], axis=1) != 0).any(axis=0)])[: len(order)]
        which = np.empty(len(order), np.int64)
        which[order] = np.cumsum(new) - 1
        found = self._forecast(*pairs[:, order[new]].view(np.float64))
        return Forecast(*(getattr(found, name)[which] for name in ("probability", "expected", "earliest", "latest")))

    def _forecast(self, elapsed: Floats, remaining: Floats) -> Forecast:
        chance = self.probability(elapsed, remaining)
        if self.at_end:
            return Forecast(chance, remaining.copy(), remaining.copy(), remaining.copy())
        row, share = self._row(elapsed)
        instants = [self._instant(row, share, chance * part, remaining) for part in (0.5, 0.05, 0.95)]
        return Forecast(chance, *instants)

    def reached(self, remaining: Floats, threshold: float) -> Floats:
        """After which time without news the forecast reaches a threshold for the first time; infinity: never."""
        remaining = np.asarray(remaining, np.float64)
        found = np.full(len(remaining), np.inf)
        different, which = np.unique(remaining, return_inverse=True)
        instants = np.empty(len(different))
        for begin in range(0, len(different), PART):
            part = different[begin : begin + PART]
            column, share = _place(self.grid, part)
            values = (1.0 - share) * self.chances[:, column] + share * self.chances[:, column + 1]
            values = np.where(self.grid[:, None] <= part, values, -1.0)
            instants[begin : begin + PART] = self._crossing(values, part, threshold)
        found[:] = instants[which]
        return found

    def _crossing(self, values: Floats, remaining: Floats, threshold: float) -> Floats:
        high = values >= threshold
        first = high.argmax(axis=0)
        columns = np.arange(values.shape[1])
        after = values[first, columns]
        before = values[np.maximum(first - 1, 0), columns]
        step = np.where(after > before, (threshold - before) / np.maximum(after - before, 1e-300), 1.0)
        low = self.grid[np.maximum(first - 1, 0)]
        instant = np.where(first == 0, 0.0, low + np.clip(step, 0.0, 1.0) * (self.grid[first] - low))
        return np.where(high.any(axis=0), instant, np.inf)

    def _row(self, elapsed: Floats) -> tuple[np.ndarray, Floats]:
        return _place(self.grid, np.asarray(elapsed, np.float64))

    def _at(self, row: np.ndarray, share: Floats, x: Floats) -> Floats:
        column, along = _place(self.grid, x)
        return self._blend(row, share, column, along)

    def _blend(self, row: np.ndarray, share: Floats, column: np.ndarray, along: Floats) -> Floats:
        """Linear between the points of the grid; on the diagonal, where chances have an edge, on triangles."""
        table = self.chances
        corner, right = table[row, column], table[row, column + 1]
        below, opposite = table[row + 1, column], table[row + 1, column + 1]
        flat = (1 - share) * ((1 - along) * corner + along * right) + share * ((1 - along) * below + along * opposite)
        upper = corner + along * (right - corner) + share * (opposite - right)
        lower = corner + share * (below - corner) + along * (opposite - below)
        return np.asarray(np.where(row == column, np.where(along >= share, upper, lower), flat))

    def _instant(self, row: np.ndarray, share: Floats, target: Floats, remaining: Floats) -> Floats:
        """When the chance of being complete reaches the target, by halving the columns."""
        flat, width = self.chances.ravel(), len(self.grid)
        above = row * width

        def at(column: np.ndarray) -> Floats:
            place = above + column
            upper = flat[place]
            return np.asarray(upper + share * (flat[place + width] - upper))

        low, high = np.zeros(len(row), np.int64), np.full(len(row), width - 1)
        for _ in range(int(np.ceil(np.log2(width))) + 1):
            middle = (low + high) // 2
            reached = at(middle) >= target
            high, low = np.where(reached, middle, high), np.where(reached, low, np.minimum(middle + 1, high))
        before = np.maximum(high - 1, 0)
        left, right = at(before), at(before + 1)
        part = np.clip((target - left) / np.maximum(right - left, 1e-300), 0.0, 1.0)
        return np.asarray(np.minimum(self.grid[before] + part * np.diff(self.grid)[before], remaining))


@dataclass(frozen=True)
class Continuation:
    """One way in which a partial match may go on: how often it is taken, and what is awaited then.

    A continuation that does not complete (none of some alternatives happens) counts among all histories alone.
    """

    share: float
    items: tuple[SegmentItem, ...]
    completes: bool = True


def forecast_table(items: tuple[SegmentItem, ...], window: float, seen: bool = False) -> ForecastTable:
    """The forecasts of partial matches that wait for these components, for windows of at most this length.

    Items of kind "missing" are the positive components that are awaited. With `seen` all of them must be seen as well.
    """
    if not items:
        raise ModelError("a match that waits for nothing has no forecast")
    return mixed_table((Continuation(1.0, items),), window, seen)


@lru_cache(maxsize=256)
def mixed_table(continuations: tuple[Continuation, ...], window: float, seen: bool = False) -> ForecastTable:
    """The same where there are several continuations: the weights of their histories add up."""
    grid = _grid([item.gap for each in continuations for item in each.items], window)
    weights, unseen = np.zeros((len(grid), len(grid))), np.zeros(len(grid))
    at_end = False
    for each in continuations:
        chain = _Chain(each.items, grid, seen)
        unseen += each.share * chain.unseen(0)
        if each.completes:
            weights += each.share * chain.complete(0)
            at_end |= bool(chain.groups[-1])
    chances = np.clip(weights / np.maximum(unseen, _SMALL)[:, None], 0.0, 1.0)
    # What the model calls impossible by then has no history at all: its last forecast stands.
    last = int(np.flatnonzero(unseen > 1e-250)[-1])
    chances[last + 1 :] = chances[last]
    return ForecastTable(grid, chances, at_end)


class _Chain:
    """The sums over histories on one grid of times."""

    def __init__(self, items: Sequence[SegmentItem], grid: Floats, seen: bool) -> None:
        self.positives, self.groups = split(items)
        self.grid, self.seen = grid, seen
        width = np.diff(self.grid)
        self.points = self.grid[:-1, None] + width[:, None] * (_NODES + 1.0) / 2.0
        self._rest: dict[int, Function] = {}

    # --- the match's own history ---------------------------------------------------------------------------------

    def _chance(self, item: SegmentItem) -> float:
        return item.goes_on * (1.0 - item.loss if self.seen else 1.0)

    def own(self, j: int) -> Floats:
        """The chance that the next positive component comes in a cell, by point, with nothing negated before it."""
        item = self.positives[j]
        return self._chance(item) * self._masses(item.gap) * self._absent(j, self.points)

    def _absent(self, j: int, t: Floats) -> Floats:
        waited = self._waited(j)
        result = np.ones_like(t)
        for each in self.groups[j]:
            result = result * (1.0 - each.gap.happens if each is waited else each.gap.survival(t))
        return result

    def rest(self, j: int) -> Function:
        """The chance that m(j+1)..mn all come within a time after m(j)."""
        if j not in self._rest:
            self._rest[j] = self._made_rest(j)
        return self._rest[j]

    def _made_rest(self, j: int) -> Function:
        if j == len(self.positives):
            return lambda t: self._absent(j, t)
        if not self.groups[j] and not any(self.groups[j + 1 :]) and j == len(self.positives) - 1:
            item = self.positives[j]
            return lambda t: self._chance(item) * item.gap.cdf(t)
        return _interpolated(self.grid, self._sums(self.own(j), self.rest(j + 1)))

    def complete(self, j: int) -> Floats:
        """complete_j on the grid: rows are u, columns x. Left of the diagonal everything happened unseen."""
        if j == len(self.positives):
            return np.broadcast_to(self.rest(j)(self.grid), (len(self.grid), len(self.grid))).copy()
        own = self.own(j)
        later = self._later(own, self.rest(j + 1))
        loss = 0.0 if self.seen else self.positives[j].loss
        if loss == 0.0:
            return later
        return later + loss * self._before(own, j + 1)

    def _later(self, own: Floats, rest: Function) -> Floats:
        """∫_u^x own(s) rest(x - s) ds for all u and x of the grid."""
        size = len(self.grid)
        table = np.zeros((size, size))
        for k in range(1, size):
            cells = (own[:k] * rest(np.maximum(self.grid[k] - self.points[:k], 0.0))).sum(axis=1)
            table[:k, k] = np.cumsum(cells[::-1])[::-1]
        return table

    def _before(self, own: Floats, j: int) -> Floats:
        """∫_0^u own(s) complete_j(u - s, x - s) ds; where x < u, everything is complete, and unseen, by x."""
        size = len(self.grid)
        inner = self._complete_at(j)
        unseen = float(np.prod([item.loss for item in self.positives[j:]]))
        table = np.broadcast_to(unseen * self._sums(own, self.rest(j)), (size, size)).copy()
        table[0] = 0.0  # nothing has happened yet
        for i in range(1, size):
            s, masses = self.points[:i].ravel(), own[:i].ravel()
            some = masses > 0.0
            s, masses = s[some], masses[some]
            table[i, i:] = inner(self.grid[i] - s, self.grid[i:, None] - s) @ masses
        return table

    def _complete_at(self, j: int) -> Callable[[Floats, Floats], Floats]:
        """complete_j for any u, and rows of x that are not before it."""
        rest = self.rest(j)
        if j == len(self.positives):
            return lambda u, x: rest(x)
        if j == len(self.positives) - 1 and not any(self.groups[j:]):
            # rest is the share that comes by then; of what came by u, what was seen does not count.
            fine = np.unique(np.concatenate([self.grid, self.points.ravel()]))
            known, kept = rest(fine), 1.0 - self.positives[j].loss
            return lambda u, x: np.interp(x, fine, known) - kept * rest(u)
        table = ForecastTable(self.grid, self.complete(j), False)

        def between(u: Floats, x: Floats) -> Floats:
            row, share = table._row(u)
            return table._at(np.broadcast_to(row, x.shape), np.broadcast_to(share, x.shape), x)

        return between

    # --- all histories in which nothing was seen ---------------------------------------------------------------------

    def unseen(self, j: int) -> Floats:
        """unseen_j on the grid."""
        if j == len(self.positives):
            return self._hidden(self.groups[j], self.grid)
        total = np.zeros(len(self.grid))
        bypassed = 1.0
        for r in range(j, len(self.positives)):
            item = self.positives[r]
            waited = self._waited(r)
            between = [each for group in self.groups[j : r + 1] for each in group if each is not waited]
            hidden = self._hidden(between, self.grid)
            goes_on = bypassed * item.goes_on
            comes = self._comes(item, waited)
            if item.loss > 0.0 and goes_on > 0.0:
                density = goes_on * item.loss * comes * self._hidden(between, self.points)
                total += self._sums(density, _interpolated(self.grid, self.unseen(r + 1)))
            total += hidden * (goes_on * self._not_yet(item, waited) + bypassed * (1.0 - item.goes_on))
            bypassed = goes_on * (1.0 - item.gap.happens)
        every = [each for group in self.groups[j:] for each in group]
        return total + bypassed * self._hidden(every, self.grid)

    def _waited(self, j: int) -> SegmentItem | None:
        """The negated component before m(j+1) that it waits for, where it happens."""
        if j >= len(self.positives):
            return None
        return next((each for each in self.groups[j] if each.onward is not None), None)

    def _comes(self, item: SegmentItem, waited: SegmentItem | None) -> Floats:
        """The chance that a component comes in a cell, by point; through a negated one it waits for, or past it."""
        if waited is None or waited.onward is None:
            return self._masses(item.gap)
        through = self._sums(waited.loss * self._masses(waited.gap), waited.onward.cdf)
        inside = _interpolated(self.grid, through)
        share = _WEIGHTS / 2.0
        masses = np.maximum(np.diff(inside(self.grid)), 0.0)[:, None] * share
        return (1.0 - waited.gap.happens) * self._masses(item.gap) + masses

    def _not_yet(self, item: SegmentItem, waited: SegmentItem | None) -> Floats:
        """The chance that a component happens, but not by the times of the grid."""
        if waited is None or waited.onward is None:
            return _remaining(item.gap, self.grid)
        onward = waited.onward
        after = self._sums(waited.loss * self._masses(waited.gap), lambda t: _remaining(onward, t))
        return np.asarray(
            (1.0 - waited.gap.happens) * _remaining(item.gap, self.grid)
            + after
            + _remaining(waited.gap, self.grid) * onward.happens
        )

    @staticmethod
    def _hidden(items: Sequence[SegmentItem], t: Floats) -> Floats:
        result = np.ones_like(t)
        for each in items:
            result = result * (each.loss * each.gap.cdf(t) + each.gap.survival(t))
        return result

    # --- integrals on the grid -----------------------------------------------------------------------------------

    def _masses(self, gap: GapDistribution) -> Floats:
        """The probability of each cell, shared among its points by the density; exact for each cell as a whole."""
        exact = np.maximum(gap.survival(self.grid[:-1]) - gap.survival(self.grid[1:]), 0.0)
        density = np.asarray(gap.pdf(self.points)) * _WEIGHTS
        density = np.where(np.isfinite(density), density, 0.0)
        sums = density.sum(axis=1)
        even = np.broadcast_to(_WEIGHTS / 2.0, density.shape)
        shares = np.where(sums[:, None] > 0.0, density / np.maximum(sums, 1e-300)[:, None], even)
        return np.asarray(exact[:, None] * shares)

    def _sums(self, masses: Floats, rest: Function) -> Floats:
        """∫_0^t density(s) rest(t - s) ds for all t of the grid."""
        found = np.zeros(len(self.grid))
        for k in range(1, len(self.grid)):
            found[k] = (masses[:k] * rest(self.grid[k] - self.points[:k])).sum()
        return found


def _remaining(gap: GapDistribution, t: Floats) -> Floats:
    """The chance that an event comes after t: it happens, but has not by then."""
    return np.maximum(gap.survival(t) - (1.0 - gap.happens), 0.0)


def _interpolated(grid: Floats, values: Floats) -> Function:
    between = PchipInterpolator(grid, values, extrapolate=True)
    return lambda t: np.asarray(between(np.clip(t, 0.0, grid[-1])))


def _grid(gaps: Sequence[GapDistribution], window: float, size: int = GRID) -> Floats:
    """Times at which forecasts are computed: dense where one of the gaps is."""
    hard = {0.0, window}
    for gap in gaps:
        hard |= landmarks_of(gap, window).kinks
    soft = {each for gap in gaps for each in quantiles(gap, _SHARES, window)}
    points = np.array(sorted(hard | soft))
    fill = np.linspace(0.0, window, max(size // 4, 8))
    points = np.unique(np.concatenate([points, fill]))
    points = points[np.concatenate([[True], np.diff(points) > 1e-9 * window])]
    while len(points) < size:
        width = np.diff(points)
        # Cells are halved where they are wide, beside their distance from the beginning and beside the window.
        order = np.argsort(-width * (1.0 / (points[1:] + 0.01 * window) + 2.0 / window))
        chosen = order[: max(min(size - len(points), len(width) // 2), 1)]
        points = np.unique(np.concatenate([points, (points[chosen] + points[chosen + 1]) / 2.0]))
    return np.append(points[points < window], window)


def _place(grid: Floats, x: Floats) -> tuple[np.ndarray, Floats]:
    """The cell of each x, and its place in it."""
    cell = np.clip(np.searchsorted(grid, x, side="right") - 1, 0, len(grid) - 2)
    return cell, np.clip((x - grid[cell]) / (grid[cell + 1] - grid[cell]), 0.0, 1.0)

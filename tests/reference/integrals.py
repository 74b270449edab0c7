"""The scores of a gap straight from their definition, by nested numerical integration: slow, and written apart from
the package's own scores so that the two can disagree."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy.integrate import quad

from cepheid.model import GapDistribution

Array = npt.NDArray[np.float64]
Item = tuple[str, float, GapDistribution]  # "missing" or "negative", loss, gap

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(14)


def integrated(
    items: Sequence[Item],
    span: float,
    scoring: str = "exact",
    following: GapDistribution | None = None,
    leading: bool = False,
    onward: Mapping[int, GapDistribution] | None = None,
) -> float:
    """The score of a gap of length `span` with these components in it.

    For a posterior, `following` is the gap of the event seen behind it, and `onward` says for the place of a negative
    among the items how long after it the next positive comes.
    """
    if scoring == "exact":
        return _over(items, span, lambda e, F: (1 - F) / (e * F + 1 - F), early=False)
    places = range(len(items))
    weights = {
        happened: _weight(items, frozenset(happened), span, following, leading, onward or {})
        for size in range(len(items) + 1)
        for happened in itertools.combinations(places, size)
    }
    own = tuple(place for place in places if items[place][0] == "missing")
    total = math.fsum(weights.values())
    return weights[own] / total if total > 1e-7 else math.nan  # no history explains the length


def _weight(
    items: Sequence[Item],
    happened: frozenset[int],
    span: float,
    following: GapDistribution | None,
    leading: bool,
    onward: Mapping[int, GapDistribution],
) -> float:
    """w(H): the items in these places happened, all unseen, and the others did not."""
    positives = [place for place, item in enumerate(items) if item[0] == "missing"]
    stops = [place for place in positives if place in happened]
    entry = items[positives[0]][2] if leading and positives else None
    gaps = [each[2] for each in items] + ([following] if following else []) + list(onward.values())

    def arrives(place: int | None, s: Array, begins: bool) -> Array:
        gap = following if place is None else items[place][2]
        assert gap is not None
        return entry.pdf(s) / entry.happens * gap.happens if begins and entry else gap.pdf(s)

    def interval(low: int, high: int | None, s: Array, begins: bool) -> Array:
        """The factors between two neighbours of the history: the negatives, and the positives that did not happen."""
        end = len(items) if high is None else high
        inside = range(low + 1, end)
        absent = [items[place] for place in inside if items[place][0] == "missing"]
        last_group = [place for place in inside if all(items[p][0] == "negative" for p in range(place, end))]
        waited = next((place for place in last_group if place in onward and not leading), None)
        if high is None and following is None:
            waited, total = None, _not_yet(absent, s)
        else:
            total = np.full_like(s, math.prod(1.0 - gap.happens for _, _, gap in absent))
        for place in inside:
            kind, loss, gap = items[place]
            if kind == "negative" and place != waited:
                total = total * (loss * gap.cdf(s) if place in happened else 1.0 - gap.cdf(s))
        if high is None and following is None:
            return total
        if waited is None:
            return total * arrives(high, s, begins)
        _, loss, gap = items[waited]
        if waited not in happened:
            return total * (1.0 - gap.happens) * arrives(high, s, begins)
        return total * loss * _summed(lambda u, left: gap.pdf(u) * onward[waited].pdf(left), s, gaps)

    def rest(index: int, left: Array) -> Array:
        low = stops[index - 1] if index else -1
        if index == len(stops):
            return interval(low, None, left, index == 0)
        high = stops[index]
        return items[high][1] * _summed(
            lambda s, remains: interval(low, high, s, index == 0) * rest(index + 1, remains), left, gaps
        )

    return float(rest(0, np.array([span], np.float64))[0])


def _not_yet(missing: Sequence[Item], s: Array) -> Array:
    """The next positive that happens at all comes later than s, or none does."""
    total, bypassed = np.zeros_like(s), 1.0
    for _, _, gap in missing:
        total = total + bypassed * (gap.happens - gap.cdf(s))
        bypassed *= 1.0 - gap.happens
    return total + bypassed


def _summed(function: Callable[[Array, Array], Array], spans: Array, gaps: Iterable[GapDistribution]) -> Array:
    """∫ function(s, span - s) ds from 0 to each span: Gauss-Legendre between all kinks, finely near both ends."""
    kinks = sorted({0.0} | {kink for gap in gaps for kink in gap.kinks()})
    sums = np.unique([a + b for a in kinks for b in kinks])
    column = spans[:, None]
    near = np.array([0.0, 0.003, 0.03, 0.15, 0.4, 0.7, 0.9, 1.0])
    cuts = np.concatenate([sums + 0.0 * column, column - sums, near * column], axis=1)
    cuts = np.sort(np.clip(cuts, 0.0, column), axis=1)
    row, place = np.nonzero(np.diff(cuts, axis=1) > 1e-12)
    low, half = cuts[row, place], np.diff(cuts, axis=1)[row, place] / 2.0
    s = low[:, None] + half[:, None] * (_NODES + 1.0)
    values = function(s.ravel(), np.maximum(spans[row, None] - s, 0.0).ravel()).reshape(s.shape)
    return np.bincount(row, half * (values @ _WEIGHTS), len(spans))


def _over(items: Sequence[Item], span: float, factor, early: bool) -> float:  # type: ignore[no-untyped-def]
    """Integrates over the time of the first missing event, then over those of the rest; `early` adds, at each missing
    event, the case that it did not happen in what is left of the gap."""
    negatives = []
    for index, (kind, loss, gap) in enumerate(items):
        if kind == "negative":
            negatives.append((loss, gap))
            continue
        rest = items[index + 1 :]

        def density(s: float, loss: float = loss, gap: GapDistribution = gap, rest: Sequence[Item] = rest) -> float:
            before = math.prod(factor(e, float(g.cdf(s))) for e, g in negatives)
            return loss * float(gap.pdf(s)) * before * _over(rest, span - s, factor, early)

        kinks = sorted({kink for each in items for kink in each[2].kinks() if 0.0 < kink < span})
        edges = [0.0, *kinks, span]
        total = sum(
            quad(density, low, high, epsabs=1e-10, epsrel=1e-9, limit=200)[0] for low, high in itertools.pairwise(edges)
        )
        if early:
            stops = 1 - float(gap.cdf(span))
            total += stops * math.prod(factor(e, float(g.cdf(span))) for e, g in negatives)
        return total
    return math.prod(factor(e, float(g.cdf(span))) for e, g in negatives)

"""The scores of a gap straight from their definition, by nested numerical integration: slow, and written apart from
the package's own scores so that the two can disagree."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from scipy.integrate import quad

from cepheid.model import GapDistribution

Item = tuple[str, float, GapDistribution]  # "missing" or "negative", loss, gap


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
    return weights[own] / math.fsum(weights.values())


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

    def arrives(place: int | None, s: float, begins: bool) -> float:
        gap = following if place is None else items[place][2]
        assert gap is not None
        return float(entry.pdf(s)) / entry.happens * gap.happens if begins and entry else float(gap.pdf(s))

    def stretch(low: int, high: int | None, s: float, begins: bool) -> float:
        """The factors between two neighbours of the history: the negatives, and the positives that did not happen."""
        end = len(items) if high is None else high
        inside = range(low + 1, end)
        total = math.prod(1.0 - items[place][2].happens for place in inside if items[place][0] == "missing")
        last_group = [place for place in inside if all(items[p][0] == "negative" for p in range(place, end))]
        ends_in_event = high is not None or following is not None
        waited = next((place for place in last_group if place in onward and ends_in_event and not leading), None)
        for place in inside:
            kind, loss, gap = items[place]
            if kind == "negative" and place != waited:
                total *= loss * float(gap.cdf(s)) if place in happened else 1.0 - float(gap.cdf(s))
        if high is None and following is None:
            return (
                total
                / max(math.prod(1 - items[p][2].happens for p in inside if items[p][0] == "missing"), 1e-300)
                * (_not_yet([items[p] for p in inside if items[p][0] == "missing"], s))
            )
        if waited is None:
            return total * arrives(high, s, begins)
        if waited not in happened:
            return total * (1.0 - items[waited][2].happens) * arrives(high, s, begins)
        _, loss, gap = items[waited]
        return total * loss * _quad(lambda u: float(gap.pdf(u) * onward[waited].pdf(s - u)), s, (gap, onward[waited]))

    def rest(index: int, left: float) -> float:
        low = stops[index - 1] if index else -1
        if index == len(stops):
            return stretch(low, None, left, index == 0)
        high = stops[index]
        gaps = [each[2] for each in items] + ([following] if following else [])

        def inside(s: float) -> float:
            value = stretch(low, high, s, index == 0)
            return value * rest(index + 1, left - s) if value else 0.0

        return items[high][1] * _quad(inside, left, gaps)

    return rest(0, span)


def _not_yet(missing: Sequence[Item], s: float) -> float:
    """The next positive that happens at all comes later than s, or none does."""
    total, bypassed = 0.0, 1.0
    for _, _, gap in missing:
        total += bypassed * (gap.happens - float(gap.cdf(s)))
        bypassed *= 1.0 - gap.happens
    return total + bypassed


def _quad(function: Callable[[float], float], span: float, gaps: Iterable[GapDistribution]) -> float:
    kinks = {kink for gap in gaps for kink in gap.kinks()}
    sums = kinks | {a + b for a in kinks for b in kinks}
    edges = sorted({0.0, span} | {e for k in sums for e in (k, span - k) if 0.0 < e < span})
    return math.fsum(
        quad(function, low, high, epsabs=1e-13, epsrel=1e-9, limit=100)[0]
        for low, high in itertools.pairwise(edges)
        if high - low > 1e-12
    )


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

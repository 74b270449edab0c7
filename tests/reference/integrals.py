"""The scores of a gap straight from their definition, by nested numerical integration: slow, and written apart from
the package's own scores so that the two can disagree."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from scipy.integrate import quad

from cepheid.model import GapDistribution

Item = tuple[str, float, GapDistribution]  # "missing" or "negative", loss, gap


def integrated(items: Sequence[Item], span: float, scoring: str = "exact") -> float:
    """The score of a gap of length `span` with these components in it."""
    if scoring == "exact":
        return _over(items, span, lambda e, F: (1 - F) / (e * F + 1 - F), early=False)
    happened = _over(items, span, lambda e, F: 1 - F, early=False)
    return happened / _over(items, span, lambda e, F: e * F + 1 - F, early=True)


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

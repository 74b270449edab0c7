"""How often is an event lost when no sequence proves a loss? An estimate by expectation maximisation (EM).

A trip goes from a start to an end, both seen. In between, the middle event may have been seen, lost, or it never
happened: a tag that was not read at the register was missed there, or was carried past it. What tells the two apart is
the length of the trip. With p = the probability that the middle happens and ε = its loss, a trip

    with the middle seen     has density  p (1 - ε) before(s) after(T - s)
    without it               has density  p ε (before * after)(T) + (1 - p) skip(T)

where `before` and `after` are the gaps around the middle and `skip` is the length of trips that leave it out. Loss does
not depend on times, so trips with the middle seen are a fair sample of `before` and `after`; EM apportions the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy import special

from cepheid.errors import ModelError
from cepheid.model.distributions import Exponential, Gamma, LogNormal
from cepheid.model.fit import CLEARLY_BETTER, FEWEST_GAPS, fit_from_statistics, start_from_moments
from cepheid.model.gap import Floats, GapDistribution
from cepheid.model.gap_doubt import gap_doubt, sum_cdf
from cepheid.model.gap_statistics import Moments, Trips, bin_edges

SKIP_FAMILIES: tuple[type[GapDistribution], ...] = (Gamma, LogNormal, Exponential)
_MOST_ROUNDS = 2000
_SETTLED = 1e-6
_EDGE = 1e-6
_GRID = 20
_PROFILE_ROUNDS = 40
# A share of lost ones that may be anything from 0.1 to 0.9, say, is no estimate.
_WIDEST = 0.8

Interval = tuple[float, float]


@dataclass(frozen=True)
class TripFit:
    """What EM found: loss and `happens` with confidence intervals, and the gaps; `gap` is the middle's own.

    The intervals count three chances: which middles happened and were seen, how the lengths of the others fell, and how
    well the middles that were seen tell the gaps themselves.
    """

    loss: float
    loss_interval: tuple[float, float]
    happens: float
    happens_interval: tuple[float, float]
    gap: GapDistribution
    after: GapDistribution
    skip: GapDistribution
    log_likelihood: float


def fit_trips(
    trips: Trips,
    skip: GapDistribution | None = None,
    *,
    skip_families: Sequence[type[GapDistribution]] = SKIP_FAMILIES,
    confidence: float = 0.95,
    bypass: bool = False,
    loss: float | None = None,
    fewest: float = FEWEST_GAPS,
    resolution: float = 0.0,
    component: str | None = None,
) -> TripFit:
    """Estimate loss, `happens` and gap of the middle component.

    With `bypass`, a trip that leaves the middle out takes as long as one needs from the middle on: the gap `after`, as
    docs/semantics.md has it. `skip` fixes the length of such trips otherwise, if it is known; if not, the best of
    `skip_families` is found along the way. A `loss` that is known is taken as given: then only the rest is estimated.
    """
    where = f" of {component!r}" if component else ""
    if not 0.0 < confidence < 1.0:
        raise ModelError(f"confidence={confidence!r} is outside (0, 1)", hint="use 0.95, for example")
    if trips.unseen.count < fewest:
        raise ModelError(
            f"the history is too short to estimate the loss{where}: {trips.unseen.count:g} trips without it, "
            f"at least {fewest:g} are needed",
            hint="give more history or state the loss yourself",
        )
    before = fit_from_statistics(trips.before, fewest=fewest, resolution=resolution, component=component)
    after = fit_from_statistics(trips.after, fewest=fewest, resolution=resolution, component=component)
    data = _prepare(trips, before, after)
    skip = after if bypass else skip
    if loss is not None:
        return _with_known_loss(data, loss, before, after, skip, skip_families, confidence)
    families: Sequence[type[GapDistribution]] = (type(skip),) if skip is not None else skip_families
    found = max((_climb(data, family, skip) for family in families), key=lambda each: each.log_likelihood)
    doubt = gap_doubt(trips, before, after, found.lost_share, found.skip, bypass)
    spread = _spread(data, found, families, skip, (confidence, doubt))
    if spread is None:
        raise ModelError(
            f"the history does not show whether events{where} were lost or never happened: "
            "trips without them look alike in both cases",
            hint="state the loss yourself, or use that of readers with known losses",
        )
    gap = cast(GapDistribution, replace(cast(Any, before), happens=found.happens))
    return TripFit(found.loss, spread[0], found.happens, spread[1], gap, after, found.skip, found.log_likelihood)


@dataclass(frozen=True)
class _Data:
    """Trips without the middle: counts per bin, and each bin's probability if the middle happened."""

    seen: float
    counts: Floats
    lower: Floats
    upper: Floats
    log_middle: Floats
    through_middle: Floats


@dataclass(frozen=True)
class _Found:
    lost_share: float
    loss: float
    happens: float
    skip: GapDistribution
    log_likelihood: float


def _with_known_loss(
    data: _Data,
    loss: float,
    before: GapDistribution,
    after: GapDistribution,
    skip: GapDistribution | None,
    families: Sequence[type[GapDistribution]],
    confidence: float,
) -> TripFit:
    """What is left to estimate where the loss is known: how often the middle happens, and the trips that skip it."""
    unseen = float(data.counts.sum())
    share = data.seen / (data.seen + unseen)
    happens = min(share / (1.0 - loss), 1.0)
    lost = min(max(happens * loss / max(1.0 - share, 1e-12), _EDGE), 1.0 - _EDGE)
    if skip is not None:
        found = _found(data, lost, skip)
    else:
        tried = [(_skip_with(data, family, lost), family) for family in families]
        found = max((_found(data, lost, each) for each, _ in tried), key=lambda each: each.log_likelihood)
    z = float(special.ndtri(0.5 + confidence / 2.0))
    spread = z * math.sqrt(share * (1.0 - share) / (data.seen + unseen)) / (1.0 - loss)
    gap = cast(GapDistribution, replace(cast(Any, before), happens=happens))
    interval = max(happens - spread, 0.0), min(happens + spread, 1.0)
    return TripFit(loss, (loss, loss), happens, interval, gap, after, found.skip, found.log_likelihood)


def _skip_with(data: _Data, family: type[GapDistribution], lost: float) -> GapDistribution:
    """The length of trips without the middle, where so many of the others lost theirs."""
    skip = _fit_skip(data, family, np.ones(len(data.counts)))
    for _ in range(_PROFILE_ROUNDS):
        skip = _fit_skip(data, family, 1.0 - _lost_given_length(data, lost, skip))
    return skip


def _prepare(trips: Trips, before: GapDistribution, after: GapDistribution) -> _Data:
    lower, upper = bin_edges(np.array([b for b, _ in trips.unseen.bins], dtype=np.int64))
    counts = np.array([count for _, count in trips.unseen.bins])
    total = sum_cdf(before, after, np.append(lower, upper))
    through_middle = np.maximum(np.diff(total.reshape(2, -1), axis=0)[0], 1e-300)
    return _Data(trips.before.count, counts, lower, upper, np.log(lower * upper) / 2.0, through_middle)


def _climb(data: _Data, family: type[GapDistribution], fixed: GapDistribution | None) -> _Found:
    """EM from several beginnings, since the likelihood may have more than one summit; the highest wins."""
    found = [_climb_from(data, family, fixed, lost_share) for lost_share in (0.1, 0.5, 0.9)]
    return max(found, key=lambda each: each.log_likelihood)


def _climb_from(data: _Data, family: type[GapDistribution], fixed: GapDistribution | None, lost: float) -> _Found:
    # Which trips are likely lost ones is first judged by their length alone, against a skip fitted to all of them.
    skip = fixed if fixed is not None else _fit_skip(data, family, np.ones(len(data.counts)))
    for _ in range(_MOST_ROUNDS):
        was_lost = _lost_given_length(data, lost, skip)
        share = float((data.counts * was_lost).sum() / data.counts.sum())
        if fixed is None:
            skip = _fit_skip(data, family, 1.0 - was_lost)
        if abs(share - lost) < _SETTLED:
            break
        lost = min(max(share, _EDGE), 1.0 - _EDGE)
    return _found(data, lost, skip)


def _lost_given_length(data: _Data, lost: float, skip: GapDistribution) -> Floats:
    """For each bin of trips without the middle, the probability that it happened and was lost."""
    through, around = lost * data.through_middle, (1.0 - lost) * _bin_masses(skip, data)
    return np.asarray(through / (through + around))


def _found(data: _Data, lost: float, skip: GapDistribution) -> _Found:
    """Loss and happens, given the share of unseen middles that were lost."""
    unseen = float(data.counts.sum())
    happened = data.seen + lost * unseen
    loss, happens = lost * unseen / happened, happened / (data.seen + unseen)
    return _Found(lost, loss, happens, skip, _log_likelihood(data, loss, happens, skip))


def _fit_skip(data: _Data, family: type[GapDistribution], weights: Floats) -> GapDistribution:
    shares = np.maximum(data.counts * weights, 1e-12)
    moments = Moments(
        count=float(shares.sum()),
        total=float(shares @ np.exp(data.log_middle)),
        total_log=float(shares @ data.log_middle),
        total_log_square=float(shares @ data.log_middle**2),
        smallest=float(data.lower[0]),
        largest=float(data.upper[-1]),
    )
    return start_from_moments(family, moments)


def _bin_masses(gap: GapDistribution, data: _Data) -> Floats:
    return np.maximum(gap.cdf(data.upper) - gap.cdf(data.lower), 1e-300)


def _log_likelihood(data: _Data, loss: float, happens: float, skip: GapDistribution) -> float:
    """Of seen and unseen trips; the densities of seen ones do not change and are left out."""
    masses = happens * loss * data.through_middle + (1.0 - happens) * _bin_masses(skip, data)
    return data.seen * math.log(happens * (1.0 - loss)) + float((data.counts * np.log(masses)).sum())


def _spread(
    data: _Data,
    found: _Found,
    families: Sequence[type[GapDistribution]],
    fixed: GapDistribution | None,
    sureness: tuple[float, float],
) -> tuple[Interval, Interval] | None:
    """Confidence intervals of loss and happens, None if nearly every split into lost and left out explains the trips.

    The share that was lost may be any whose best likelihood, over all families, comes near enough to the summit: a
    likelihood with several summits must not give a narrow interval around one of them. `sureness` is the confidence,
    and how far the share is off, by one deviation, because the gaps themselves are estimates.
    """
    confidence, doubt = sureness
    z = float(special.ndtri(0.5 + confidence / 2.0))
    enough = found.log_likelihood - z * z / 2.0
    if fixed is None and _alike(data) >= found.log_likelihood - CLEARLY_BETTER:
        return None

    def plausible(lost: float) -> bool:
        return any(_best_with(data, family, fixed, found.skip, lost) >= enough for family in families)

    grid = np.linspace(0.0, 1.0, _GRID + 1)
    inside = [share for share in grid if plausible(float(share))]
    low, high = min([*inside, found.lost_share]), max([*inside, found.lost_share])
    low = _border(plausible, low, max(low - 1.0 / _GRID, 0.0))
    high = _border(plausible, high, min(high + 1.0 / _GRID, 1.0))
    low = max(found.lost_share - math.hypot(found.lost_share - low, z * doubt), 0.0)
    high = min(found.lost_share + math.hypot(high - found.lost_share, z * doubt), 1.0)
    if high - low > _WIDEST:
        return None
    return _intervals(data, found, _found(data, low, found.skip), _found(data, high, found.skip), z)


def _alike(data: _Data) -> float:
    """The likelihood if trips without the middle were as long as those with it, for then any split explains them.

    No family of skips need contain that case, and without it EM would take what fits a little worse for proof.
    """
    unseen = float(data.counts.sum())
    share = data.seen / (data.seen + unseen)
    return data.seen * math.log(share) + float((data.counts * np.log((1.0 - share) * data.through_middle)).sum())


def _best_with(
    data: _Data, family: type[GapDistribution], fixed: GapDistribution | None, near: GapDistribution, lost: float
) -> float:
    """The highest likelihood with a given share of lost ones."""
    if fixed is not None:
        return _found(data, lost, fixed).log_likelihood
    starts = [_fit_skip(data, family, np.ones(len(data.counts)))] + ([near] if isinstance(near, family) else [])
    best = -math.inf
    for skip in starts:
        for _ in range(_PROFILE_ROUNDS):
            skip = _fit_skip(data, family, 1.0 - _lost_given_length(data, lost, skip))
        best = max(best, _found(data, lost, skip).log_likelihood)
    return best


def _border(plausible: Callable[[float], bool], inside: float, outside: float) -> float:
    if plausible(outside):
        return outside
    for _ in range(10):
        middle = (inside + outside) / 2.0
        if plausible(middle):
            inside = middle
        else:
            outside = middle
    return outside


def _intervals(data: _Data, found: _Found, low: _Found, high: _Found, z: float) -> tuple[Interval, Interval]:
    """Add the chance in how many middles were seen at all to what the share of lost ones leaves open."""
    unseen = float(data.counts.sum())
    count = data.seen + unseen
    share = unseen / count
    deviation = math.sqrt(share * (1.0 - share) / count)
    by_loss = z * deviation * found.lost_share / found.happens**2
    by_happens = z * deviation * (1.0 - found.lost_share)

    def widen(value: float, below: float, above: float, chance: float) -> Interval:
        return max(value - math.hypot(value - below, chance), 0.0), min(value + math.hypot(above - value, chance), 1.0)

    return (
        widen(found.loss, low.loss, high.loss, by_loss),
        widen(found.happens, low.happens, high.happens, by_happens),
    )

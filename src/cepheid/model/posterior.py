"""How probable is it, given everything that was seen, that a gap's missing events happened? Bayes over its histories.

Between two neighbours that were seen lie positive components m1..mk and negatives around them (docs/semantics.md). A
history says which of them happened, all unseen. Since each factor depends on the interval between two positives of a
history only, the sum over all histories is a chain: with `t` left until q is seen, after
positive j happened,

    rest_j(t) = Π_{i>j} (1 - h_i) d_(j,q)(t) + Σ_{r>j} Π_{j<i<r} (1 - h_i) ε_r ∫ d_(j,r)(s) rest_r(t - s) ds

where d_(j,r)(s) is the density that r comes s after j and nothing is seen of the negatives between them. The history of
the match itself (every positive happened, no negative did) is the same chain without the other terms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

import numpy as np

from cepheid.model.chain import ChainStep, Landmarks, density_breaks, landmarks_of, sum_landmarks
from cepheid.model.convolution import convolve
from cepheid.model.gap import Floats, GapDistribution
from cepheid.model.piecewise import Function, Piecewise, resolve, seed_breaks
from cepheid.model.segments import Ends, SegmentItem, group_landmarks, product_of, split

# Every history is given so small a chance of any length at all. It speaks only where no history explains the length,
# beyond the longest gap of a histogram, say: there the shares alone decide.
UNEXPLAINED = 1e-14
# Histograms have many kinks; each sum of two of them is one more. Beyond this the precision is a table's, not a test's.
_MANY_KINKS = 24
_COARSE = 1e-5
_MOST_PANELS = 300
_EVEN = 0.5  # a loss that every history has alike


@dataclass(frozen=True)
class Posterior:
    """The posterior as a function of the gap's length on [0, W], as `SegmentScore` wants it."""

    fast: Function
    direct: Function
    breaks: Floats
    error: float


@dataclass(frozen=True)
class _Density:
    """A density, or a survival at the end, with where it is not smooth."""

    value: Function
    landmarks: Landmarks


@dataclass(frozen=True)
class _Level:
    """rest_j as polynomials, and where it is not smooth."""

    fast: Piecewise
    landmarks: Landmarks


@dataclass(frozen=True)
class _Histories:
    """What the chain is made of: the gap's positives, the negatives around them, its ends and its length."""

    missing: tuple[SegmentItem, ...]
    groups: tuple[tuple[SegmentItem, ...], ...]
    ends: Ends
    window: float
    tolerance: float
    floor: float


def posterior(items: Sequence[SegmentItem], ends: Ends, window: float, tolerance: float) -> Posterior:
    """The share of the match's own history in all histories, for every length of the gap up to `window`."""
    if ends.shares:
        return _of_known_shares(items, ends, window, tolerance)
    histories, small = _histories(items, ends, window, tolerance)
    happened, unseen = _solved(histories, True), _solved(histories, False)
    return Posterior(
        _ratio(items, small, happened.fast, unseen.fast),
        posterior_at(items, ends, window, tolerance),
        np.unique(np.concatenate([happened.fast.breaks, unseen.fast.breaks])),
        2.0 * (len(histories.missing) + 1) * histories.tolerance,
    )


def posterior_at(items: Sequence[SegmentItem], ends: Ends, window: float, tolerance: float) -> Function:
    """The same, computed anew for each length, which pays for a few lengths only."""
    if ends.shares:
        return _of_known_shares(items, ends, window, tolerance).direct
    histories, small = _histories(items, ends, window, tolerance)
    return _ratio(items, small, _direct(histories, True).value, _direct(histories, False).value)


def _of_known_shares(items: Sequence[SegmentItem], ends: Ends, window: float, tolerance: float) -> Posterior:
    """The posterior where it is known how often each history led to a gap without anything seen in it."""
    assert ends.following is not None
    if ends.leading:  # the window opens at an arbitrary instant: how long ago that is says nothing
        share = ends.shares[-1]
        return Posterior(
            lambda t: np.full_like(t, share), lambda t: np.full_like(t, share), np.array([0.0, window]), 0.0
        )
    following = _certain(ends.following)
    parts: list[tuple[float, _Histories]] = []
    for happened, share in enumerate(ends.shares):
        chosen = [item for place, item in enumerate(items) if happened >> place & 1]
        even = [SegmentItem("missing", _EVEN, _certain(item.gap)) for item in chosen]
        histories, small = _histories(even, Ends(following), window, tolerance)
        parts.append((share / _EVEN ** len(even), histories))
    levels = [_solved(histories, True) for _, histories in parts]

    def ratio(densities: Sequence[Function]) -> Function:
        def value(t: Floats) -> Floats:
            weights = [
                np.maximum(share * density(t), 0.0) + small * known
                for (share, _), density, known in zip(parts, densities, ends.shares, strict=True)
            ]
            return np.clip(weights[-1] / np.maximum(sum(weights), 1e-300), 0.0, 1.0)

        return value

    return Posterior(
        ratio([level.fast for level in levels]),
        ratio([_direct(histories, True).value for _, histories in parts]),
        np.unique(np.concatenate([level.fast.breaks for level in levels])),
        2.0 * (len(items) + 1) * parts[-1][1].tolerance,
    )


def _certain(gap: GapDistribution) -> GapDistribution:
    return cast(GapDistribution, replace(cast(Any, gap), happens=1.0))


def _histories(items: Sequence[SegmentItem], ends: Ends, window: float, tolerance: float) -> tuple[_Histories, float]:
    missing, groups = split(items)
    small = UNEXPLAINED if ends.following is None else UNEXPLAINED / window
    kinks = {k for each in items for k in each.gap.kinks()} | set(ends.following.kinks() if ends.following else ())
    if len(kinks) > _MANY_KINKS:
        tolerance = max(tolerance, _COARSE)
    return _Histories(tuple(missing), tuple(map(tuple, groups)), ends, window, tolerance, small), small


def _ratio(items: Sequence[SegmentItem], small: float, numerator: Function, denominator: Function) -> Function:
    own = every = small
    for item in items:
        happens = item.gap.happens
        own *= item.loss * happens if item.kind == "missing" else 1.0 - happens
        every *= item.loss * happens + 1.0 - happens

    def value(t: Floats) -> Floats:
        all_histories = np.maximum(denominator(t), 0.0) + every
        return np.clip((np.maximum(numerator(t), 0.0) + own) / np.maximum(all_histories, 1e-300), 0.0, 1.0)

    return value


def _level(histories: _Histories, place: int, own: bool) -> _Level:
    """rest_j for j = place; of the match's own history alone, or of all."""
    # The chain from a positive on is the same in every gap that ends alike, so its levels are computed once.
    tail = _Histories(
        histories.missing[place:],
        histories.groups[place:],
        histories.ends if place == 0 else Ends(histories.ends.following),
        histories.window,
        histories.tolerance,
        histories.floor,
    )
    return _solved(tail, own)


@lru_cache(maxsize=512)
def _solved(histories: _Histories, own: bool) -> _Level:
    found = _direct(histories, own)
    return _Level(_resolved(found, histories.window, histories.tolerance, histories.floor), found.landmarks)


def _resolved(found: _Density, window: float, tolerance: float, floor: float) -> Piecewise:
    """Polynomials that are right to `tolerance` of the function itself, wherever it is above the floor."""

    def allowed(points: Floats, values: Floats, widths: Floats) -> Floats:
        sizes = np.abs(values)
        return np.asarray(tolerance * np.maximum(sizes.min(axis=1), np.maximum(1e-3 * sizes.max(axis=1), floor)))

    seeds = seed_breaks(found.landmarks.kinks, found.landmarks.features, window)
    return resolve(found.value, seeds, allowed, _MOST_PANELS)


@lru_cache(maxsize=512)
def _direct(histories: _Histories, own: bool) -> _Density:
    """rest_0 with its integrals, for any length."""
    end = _end(histories, own)
    steps: list[tuple[ChainStep, Floats, _Level]] = []
    landmarks = end.landmarks
    bypassed = 1.0
    for r, item in enumerate(histories.missing, start=1):
        density = _density(histories, r, own)
        weight = bypassed * item.goes_on * item.loss
        if weight > 0.0:
            step = ChainStep(density.value, weight, density.landmarks)
            level = _level(histories, r, own)
            breaks = density_breaks(step, histories.window, histories.floor * histories.window * 1e-3)
            steps.append((step, breaks, level))
            landmarks |= sum_landmarks(density.landmarks, level.landmarks, histories.window)
        bypassed *= item.goes_on * (1.0 - item.gap.happens)
        if own:
            break

    def value(t: Floats) -> Floats:
        total = end.value(t)
        for step, breaks, level in steps:
            total = total + step.weight * convolve(step.density, breaks, level.fast, t)
        return np.asarray(total)

    return _Density(value, landmarks)


def _end(histories: _Histories, own: bool) -> _Density:
    """The case that none of the positives happens: the next seen event comes, or the deadline."""
    missing, groups = histories.missing, histories.groups
    if own and missing:
        return _Density(np.zeros_like, Landmarks())
    if histories.ends.following is not None:
        share = math.prod(each.goes_on * (1.0 - each.gap.happens) for each in missing)
        density = _density(histories, len(missing) + 1, own)
        return _Density(lambda t: share * density.value(t), density.landmarks)
    negatives = [n for group in groups for n in group]
    factor = _absent if own else _unseen
    marks = group_landmarks([*negatives, *missing], histories.window)

    def not_yet(t: Floats) -> Floats:
        # Nothing is seen behind the deadline, so the next positive may also come later, or the trip has ended.
        total, bypassed = np.zeros_like(t), 1.0
        for item in missing:
            ended, later = 1.0 - item.goes_on, item.goes_on * (item.gap.happens - item.gap.cdf(t))
            total = total + bypassed * (ended + later)
            bypassed *= item.goes_on * (1.0 - item.gap.happens)
        return np.asarray((total + bypassed) * product_of(factor, negatives, t))

    return _Density(not_yet, marks)


def _density(histories: _Histories, r: int, own: bool) -> _Density:
    """d_(0,r): positive r (one behind the last: the next seen event) comes t after the gap's beginning."""
    missing, window = histories.missing, histories.window
    following = histories.ends.following
    gap = missing[r - 1].gap if r <= len(missing) else following
    assert gap is not None
    before = [n for group in histories.groups[:r] for n in group]
    waited = (
        None if histories.ends.leading else next((n for n in histories.groups[r - 1] if n.onward is not None), None)
    )
    others = [n for n in before if n is not waited]
    comes, marks = _arrival(gap, missing[0].gap if histories.ends.leading and missing else None, window)
    factor = _absent if own else _unseen
    marks = marks | group_landmarks(others, window)
    if waited is None:
        return _Density(lambda t: comes(t) * product_of(factor, others, t), marks)
    absent = 1.0 - waited.gap.happens
    if own:
        return _Density(lambda t: absent * comes(t) * product_of(factor, others, t), marks)
    through = through_middle(waited.gap, waited.onward or gap, window, histories.tolerance, histories.floor)

    def density(t: Floats) -> Floats:
        return (absent * comes(t) + waited.loss * through.fast(t)) * product_of(factor, others, t)

    return _Density(density, marks | through.landmarks)


def _arrival(gap: GapDistribution, leading: GapDistribution | None, window: float) -> tuple[Function, Landmarks]:
    """When an event comes. The first event of a trip comes when trips begin, whichever component it fills."""
    if leading is None:
        return lambda t: gap.pdf(np.nextafter(t, np.inf)), landmarks_of(gap, window)
    share = gap.happens / max(leading.happens, 1e-300)
    return lambda t: share * leading.pdf(np.nextafter(t, np.inf)), landmarks_of(leading, window)


@lru_cache(maxsize=64)
def through_middle(
    first: GapDistribution, second: GapDistribution, window: float, tolerance: float, floor: float
) -> _Level:
    """The density of the sum of two gaps: an event that waits for another one."""
    step = ChainStep(first.pdf, 1.0, landmarks_of(first, window))
    marks = landmarks_of(second, window)
    rest = _resolved(_Density(second.pdf, marks), window, tolerance, floor)
    breaks = density_breaks(step, window, floor * window * 1e-3)
    total = _Density(lambda t: convolve(step.density, breaks, rest, t), sum_landmarks(step.landmarks, marks, window))
    return _Level(_resolved(total, window, tolerance, floor), total.landmarks)


def _absent(item: SegmentItem, t: Floats) -> Floats:
    return item.gap.survival(t)


def _unseen(item: SegmentItem, t: Floats) -> Floats:
    return item.loss * item.gap.cdf(t) + item.gap.survival(t)

"""How probable is a stretch of a match in which events are missing? The segment scores of docs/semantics.md (AYAC §3).

A segment lies between two observed positive events (or the window's opening and the first, or the last and the
deadline) that are T apart. Its items are the components between them, in order: positives that must have happened
unseen, and negatives that must not have happened at all, each measured from the positive before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from cepheid.errors import ModelError, closest
from cepheid.model.chain import QUANTILES, Chain, Landmarks, Step, landmarks_of, solve, solve_at
from cepheid.model.gap import Floats, GapDistribution
from cepheid.model.piecewise import Function, seed_breaks

Scoring = Literal["exact", "paper", "posterior"]
SCORINGS: tuple[str, ...] = get_args(Scoring)

PRECISION = 1e-9


@dataclass(frozen=True)
class SegmentItem:
    """A component between two observed events: a missing positive or a negative, its loss and its gap."""

    kind: Literal["missing", "negative"]
    loss: float
    gap: GapDistribution

    def __post_init__(self) -> None:
        if self.kind not in ("missing", "negative"):
            raise ModelError(f"a segment item is 'missing' or 'negative', not {self.kind!r}")
        if not (math.isfinite(self.loss) and 0.0 <= self.loss < 1.0):
            raise ModelError(f"loss {self.loss:g} is outside [0, 1)", hint="a component that is never seen has no loss")


Factor = Callable[[SegmentItem, Floats], Floats]


@dataclass(frozen=True)
class SegmentScore:
    """The score of a segment as a function of T on [0, W].

    `fast` evaluates polynomials; `direct` computes the integral anew for each T and serves as their check; `breaks`
    are the panels on which the score is smooth; `error` is how far `fast` may be off.
    """

    fast: Function
    direct: Function
    breaks: Floats
    error: float


def score(items: Sequence[SegmentItem], span: float, scoring: Scoring = "exact") -> float:
    """The score of a segment that spans the time `span`, to about nine digits.

    >>> from cepheid.model.distributions import Exponential
    >>> round(score([SegmentItem("missing", 0.1, Exponential(mean=60))], 60), 6)
    0.063212
    >>> round(score([SegmentItem("missing", 0.1, Exponential(mean=60))], 60, "posterior"), 6)
    0.146633
    """
    _check(items, span, scoring)
    if span == 0.0:
        return 0.0 if any(each.kind == "missing" for each in items) else 1.0
    closed = _closed_form(items, scoring)
    if closed is not None:
        return float(closed(np.array([span]))[0])
    if scoring == "posterior":
        return float(segment_score(items, span, scoring).direct(np.array([span]))[0])
    return min(max(solve_at(_score_chain(items, span, scoring), span, PRECISION), 0.0), 1.0)


def segment_score(
    items: Sequence[SegmentItem], window: float, scoring: Scoring = "exact", tolerance: float = PRECISION
) -> SegmentScore:
    """The score as a function on [0, window]."""
    _check(items, window, scoring)
    if window == 0.0:
        raise ModelError("a window of length 0 holds no segment", hint="WITHIN must be longer than 0")
    closed = _closed_form(items, scoring)
    if closed is not None:
        return _smooth_panels(closed, items, window)
    if scoring == "posterior":
        return _posterior(items, window, tolerance)
    solved = solve(_score_chain(items, window, scoring), window, tolerance)
    return SegmentScore(_clipped(solved.levels[0]), _clipped(solved.at), solved.levels[0].breaks, solved.error)


def score_limit(items: Sequence[SegmentItem], window: float, scoring: Scoring = "exact") -> float:
    """A cheap upper bound of the score on [0, window], to drop hopeless edges before their tables are computed.

    The product of the missing positives' εF(W); a posterior has no such bound, unless it is zero.
    """
    _check(items, window, scoring)
    limit = float(np.prod([each.loss * float(each.gap.cdf(window)) for each in items if each.kind == "missing"]))
    return limit if scoring != "posterior" or limit == 0.0 else 1.0


def absent_given_unseen(item: SegmentItem, t: Floats) -> Floats:
    """S^N (AYAC §3.2): the probability that a negative did not happen within t, given that it was not seen.

    Without loss, what was not seen did not happen, even where the model says that it must have happened by then.
    """
    if item.loss == 0.0:
        return np.ones_like(t)
    survival = item.gap.survival(t)
    return np.asarray(survival / (item.loss * item.gap.cdf(t) + survival))


def _closed_form(items: Sequence[SegmentItem], scoring: Scoring) -> Function | None:
    """The score without integrals, where there is one."""
    missing, groups = _split(items)
    if any(each.loss == 0.0 or each.gap.happens == 0.0 for each in missing):
        return np.zeros_like
    negatives = [each for group in groups for each in group]
    if not missing:
        return lambda t: _product(absent_given_unseen, negatives, t)
    if len(missing) > 1 or (negatives and scoring != "paper"):
        return None
    only = missing[0]
    if scoring == "posterior":
        return lambda t: only.loss * only.gap.cdf(t) / _unseen(only, t)
    # S^P, and as printed in AYAC §3.3 every S^N around it is taken over all of T.
    return lambda t: only.loss * only.gap.cdf(t) * _product(absent_given_unseen, negatives, t)


def _score_chain(items: Sequence[SegmentItem], window: float, scoring: Scoring) -> Chain:
    """The integral of docs/semantics.md as a chain."""
    missing, groups = _split(items)
    if scoring == "paper" and len(missing) == 2 and not any(groups):
        return _printed_pair(missing[0], missing[1], window)
    return _chain(missing, groups, absent_given_unseen, window)


def _printed_pair(first: SegmentItem, second: SegmentItem, window: float) -> Chain:
    """S^PP as printed in AYAC §3.3: both gaps are counted from the segment's beginning."""

    def density(t: Floats) -> Floats:
        return second.gap.pdf(t) * first.gap.cdf(t)

    landmarks = landmarks_of(first.gap, window) | landmarks_of(second.gap, window)
    return Chain((Step(density, first.loss * second.loss, landmarks),), np.ones_like, Landmarks())


def _posterior(items: Sequence[SegmentItem], window: float, tolerance: float) -> SegmentScore:
    """N / D of docs/semantics.md."""
    missing, groups = _split(items)
    # D is at least the product of all losses. With a negative of loss 0 it can vanish: nothing being seen is then
    # impossible under the model, and the score keeps the value it had when it was last possible.
    floor = float(np.prod([each.loss for each in items if each.loss > 0.0]))
    floor *= 1e-12 if any(each.loss == 0.0 for each in items) else 0.5
    unseen = solve(
        _with_early_ends(_chain(missing, groups, _unseen, window), missing, groups),
        window,
        tolerance,
        lambda q, points, values: np.maximum(np.abs(values), floor),
    )
    happened = solve(
        _chain(missing, groups, _absent, window),
        window,
        tolerance,
        lambda q, points, values: np.maximum(unseen.levels[q](points), floor),
    )
    last_possible = _last_above(floor, unseen.levels[0], window)

    def ratio(numerator: Function, denominator: Function) -> Function:
        def value(t: Floats) -> Floats:
            possible = np.minimum(t, last_possible)
            return _clip(numerator(possible) / np.maximum(denominator(possible), floor))

        return value

    breaks = np.unique(np.concatenate([happened.levels[0].breaks, unseen.levels[0].breaks]))
    return SegmentScore(
        ratio(happened.levels[0], unseen.levels[0]),
        ratio(happened.at, unseen.at),
        breaks,
        happened.error + unseen.error,
    )


def _chain(missing: list[SegmentItem], groups: list[list[SegmentItem]], factor: Factor, window: float) -> Chain:
    """The chain in which every negative contributes factor(negative, gap)."""

    def step(item: SegmentItem, before: list[SegmentItem]) -> Step:
        def density(s: Floats) -> Floats:
            return item.gap.pdf(s) * _product(factor, before, s)

        return Step(density, item.loss, landmarks_of(item.gap, window) | _group_landmarks(before, window))

    steps = tuple(step(item, before) for item, before in zip(missing, groups[:-1], strict=True))
    return Chain(steps, lambda t: _product(factor, groups[-1], t), _group_landmarks(groups[-1], window))


def _with_early_ends(chain: Chain, missing: list[SegmentItem], groups: list[list[SegmentItem]]) -> Chain:
    """D's chain: at each missing positive, add the case that it did not happen in the rest of the segment."""

    def stopping(step: Step, item: SegmentItem, before: list[SegmentItem]) -> Step:
        def stops(t: Floats) -> Floats:
            return item.gap.survival(t) * _product(_unseen, before, t)

        return replace(step, local=stops)

    steps = tuple(stopping(*each) for each in zip(chain.steps, missing, groups[:-1], strict=True))
    return replace(chain, steps=steps)


def _absent(item: SegmentItem, t: Floats) -> Floats:
    return item.gap.survival(t)


def _unseen(item: SegmentItem, t: Floats) -> Floats:
    return item.loss * item.gap.cdf(t) + item.gap.survival(t)


def _product(factor: Factor, items: Sequence[SegmentItem], t: Floats) -> Floats:
    result = np.ones_like(t)
    for item in items:
        result *= factor(item, t)
    return result


def _group_landmarks(group: Sequence[SegmentItem], window: float) -> Landmarks:
    # S^N passes 1/2 where F = 1 / (1 + ε), in a layer that is narrow when the loss is small.
    marks = Landmarks()
    for item in group:
        shares = [*QUANTILES, *(1.0 / (1.0 + odds * item.loss) for odds in (0.1, 1.0, 10.0))]
        marks |= landmarks_of(item.gap, window, shares)
    return marks


def _split(items: Sequence[SegmentItem]) -> tuple[list[SegmentItem], list[list[SegmentItem]]]:
    """The missing positives m1..mk, and the negatives N0..Nk before, between and after them."""
    missing: list[SegmentItem] = []
    groups: list[list[SegmentItem]] = [[]]
    for item in items:
        if item.kind == "missing":
            missing.append(item)
            groups.append([])
        else:
            groups[-1].append(item)
    return missing, groups


def _smooth_panels(function: Function, items: Sequence[SegmentItem], window: float) -> SegmentScore:
    marks = _group_landmarks(items, window)
    return SegmentScore(function, function, seed_breaks(marks.kinks, marks.features, window), 1e-14)


def _last_above(floor: float, falling: Function, window: float) -> float:
    """The last time at which a falling function is above the floor."""
    low, high = 0.0, window
    if falling(np.array([high]))[0] > floor:
        return window
    for _ in range(60):
        middle = (low + high) / 2.0
        if falling(np.array([middle]))[0] > floor:
            low = middle
        else:
            high = middle
    return low


def _clip(values: Floats) -> Floats:
    return np.clip(values, 0.0, 1.0)


def _clipped(function: Function) -> Function:
    return lambda t: _clip(function(t))


def _check(items: Sequence[SegmentItem], span: float, scoring: str) -> None:
    if scoring not in SCORINGS:
        near = closest(scoring, SCORINGS) if isinstance(scoring, str) else None
        raise ModelError(
            f"unknown scoring {scoring!r}",
            hint=f"did you mean {near!r}?" if near else f"use one of {', '.join(SCORINGS)}",
        )
    if not (math.isfinite(span) and span >= 0.0):
        raise ModelError(f"a segment cannot span {span:g}", hint="spans and windows are finite and at least 0")
    for item in items:
        if not isinstance(item, SegmentItem):
            raise ModelError(f"{item!r} is no SegmentItem")

"""How probable is an interval of a match in which events are missing? Segment scores of docs/semantics.md (AYAC §3).

A segment lies between two observed positive events (or the window's opening and the first, or the last and the
deadline) that are T apart. Its items are the components between them, in order: positives that must have happened
unseen, and negatives that must not have happened at all, each measured from the positive before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from cepheid.errors import ModelError, closest
from cepheid.model.chain import Chain, ChainStep, Landmarks, landmarks_of, solve, solve_at
from cepheid.model.gap import Floats
from cepheid.model.piecewise import Function, seed_breaks
from cepheid.model.posterior import posterior, posterior_at
from cepheid.model.segments import OPEN_END, Ends, Factor, SegmentItem, group_landmarks, product_of, split

Scoring = Literal["exact", "paper", "posterior"]
SCORINGS: tuple[str, ...] = get_args(Scoring)

PRECISION = 1e-9


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


def score(items: Sequence[SegmentItem], span: float, scoring: Scoring = "exact", ends: Ends = OPEN_END) -> float:
    """The score of a segment that spans the time `span`, to about nine digits. A posterior also needs its `ends`.

    >>> from cepheid.model.distributions import Exponential
    >>> round(score([SegmentItem("missing", 0.1, Exponential(mean=60))], 60), 6)
    0.063212
    >>> stop = SegmentItem("missing", 0.1, Exponential(mean=60, happens=0.8))
    >>> round(score([stop], 60, "posterior", Ends(following=Exponential(mean=60))), 6)
    0.285714
    """
    _check(items, span, scoring)
    if span == 0.0:
        return 0.0 if any(each.kind == "missing" for each in items) else 1.0
    closed = _closed_form(items, scoring, ends)
    if closed is not None:
        return float(closed(np.array([span]))[0])
    if scoring == "posterior":
        return float(posterior_at(items, ends, span, PRECISION)(np.array([span]))[0])
    return min(max(solve_at(_score_chain(items, span, scoring), span, PRECISION), 0.0), 1.0)


def segment_score(
    items: Sequence[SegmentItem],
    window: float,
    scoring: Scoring = "exact",
    tolerance: float = PRECISION,
    ends: Ends = OPEN_END,
) -> SegmentScore:
    """The score as a function on [0, window]."""
    _check(items, window, scoring)
    if window == 0.0:
        raise ModelError("a window of length 0 holds no segment", hint="WITHIN must be longer than 0")
    closed = _closed_form(items, scoring, ends)
    if closed is not None:
        return _smooth_panels(closed, items, window)
    if scoring == "posterior":
        found = posterior(items, ends, window, tolerance)
        return SegmentScore(found.fast, found.direct, found.breaks, found.error)
    solved = solve(_score_chain(items, window, scoring), window, tolerance)
    return SegmentScore(_clipped(solved.levels[0]), _clipped(solved.at), solved.levels[0].breaks, solved.error)


def score_limit(items: Sequence[SegmentItem], window: float, scoring: Scoring = "exact") -> float:
    """A cheap upper bound of the score on [0, window], to drop hopeless edges before their tables are computed.

    The product of the missing positives' εF(W); a posterior has no such bound, unless it is zero.
    """
    _check(items, window, scoring)
    missing = [each for each in items if each.kind == "missing"]
    if scoring == "posterior":
        return 0.0 if any(each.loss == 0.0 or each.gap.happens == 0.0 for each in missing) else 1.0
    return float(np.prod([each.loss * float(each.gap.cdf(window)) for each in missing]))


def absent_given_unseen(item: SegmentItem, t: Floats) -> Floats:
    """S^N (AYAC §3.2): the probability that a negative did not happen within t, given that it was not seen.

    Without loss, what was not seen did not happen, even where the model says that it must have happened by then.
    """
    if item.loss == 0.0:
        return np.ones_like(t)
    survival = item.gap.survival(t)
    return np.asarray(survival / (item.loss * item.gap.cdf(t) + survival))


def _closed_form(items: Sequence[SegmentItem], scoring: Scoring, ends: Ends) -> Function | None:
    """The score without integrals, where there is one."""
    missing, groups = split(items)
    if any(each.loss == 0.0 or each.gap.happens == 0.0 for each in missing):
        return np.zeros_like
    negatives = [each for group in groups for each in group]
    waits = scoring == "posterior" and ends.following is not None and any(n.onward is not None for n in negatives)
    if not missing and not waits:
        # The time of the next event says nothing about a negative that it does not wait for.
        return lambda t: product_of(absent_given_unseen, negatives, t)
    if scoring == "posterior":
        # What always happens has happened, at whatever time the next event was seen.
        sure = ends.following is not None and not negatives and all(each.gap.happens == 1.0 for each in missing)
        return np.ones_like if sure else None
    if len(missing) > 1 or (negatives and scoring != "paper"):
        return None
    only = missing[0]
    # S^P, and as printed in AYAC §3.3 every S^N around it is taken over all of T.
    return lambda t: only.loss * only.gap.cdf(t) * product_of(absent_given_unseen, negatives, t)


def _score_chain(items: Sequence[SegmentItem], window: float, scoring: Scoring) -> Chain:
    """The integral of docs/semantics.md as a chain."""
    missing, groups = split(items)
    if scoring == "paper" and len(missing) == 2 and not any(groups):
        return _printed_pair(missing[0], missing[1], window)
    return _chain(missing, groups, absent_given_unseen, window)


def _printed_pair(first: SegmentItem, second: SegmentItem, window: float) -> Chain:
    """S^PP as printed in AYAC §3.3: both gaps are counted from the segment's beginning."""

    def density(t: Floats) -> Floats:
        return second.gap.pdf(t) * first.gap.cdf(t)

    landmarks = landmarks_of(first.gap, window) | landmarks_of(second.gap, window)
    return Chain((ChainStep(density, first.loss * second.loss, landmarks),), np.ones_like, Landmarks())


def _chain(missing: list[SegmentItem], groups: list[list[SegmentItem]], factor: Factor, window: float) -> Chain:
    """The chain in which every negative contributes factor(negative, gap)."""

    def step(item: SegmentItem, before: list[SegmentItem]) -> ChainStep:
        def density(s: Floats) -> Floats:
            return item.gap.pdf(s) * product_of(factor, before, s)

        return ChainStep(density, item.loss, landmarks_of(item.gap, window) | group_landmarks(before, window))

    steps = tuple(step(item, before) for item, before in zip(missing, groups[:-1], strict=True))
    return Chain(steps, lambda t: product_of(factor, groups[-1], t), group_landmarks(groups[-1], window))


def _smooth_panels(function: Function, items: Sequence[SegmentItem], window: float) -> SegmentScore:
    marks = group_landmarks(items, window)
    return SegmentScore(function, function, seed_breaks(marks.kinks, marks.features, window), 1e-14)


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

"""Compares forecasts with what became of them: in moments spread over a history, and as alarms at thresholds.

Moments lie a window apart where the history is long enough, so that no partial match is looked at twice. They are
chosen without regard to the events: a moment in the life of a match would be chosen more often from those that are
over soon. What was lost cannot be seen to complete, so it is compared how often matches are seen as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.engine.choose import make_plan
from cepheid.engine.data.arrays import Float64s, Int64s
from cepheid.engine.data.matches import MISSING, NEVER, Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.find import find
from cepheid.engine.forecasting import ChunkCache, ended_by, partial_matches, reaching, remaining_of, table_of
from cepheid.engine.scoring.losses import check_missing, gap_scale
from cepheid.errors import ModelError
from cepheid.language.bind import rebound
from cepheid.language.forecasts import LEAST
from cepheid.model.forecast_check import THRESHOLDS, AtThreshold, ForecastCheck, forecast_bins
from cepheid.plan.options import Limits, PlanOptions
from cepheid.plan.physical import Plan

MOST_MOMENTS = 200
FEWEST_MOMENTS = 12
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _Past:
    """Partial matches of one kind that were wholly seen, and what became of them."""

    held: ChunkCache
    some: Int64s  # of the held ones
    ended: Int64s  # when something came for them; NEVER: nothing did while their window was open
    completed: Int64s  # when they were a match; NEVER: they never were
    matches: Int64s  # by match: the number of the held one that it began as, or -1


def check_forecasts(plan: Plan, events: EventTable) -> ForecastCheck:
    """Predicted against observed completion, and what thresholds would have reported."""
    bound = plan.bound
    assert bound.window is not None
    window = bound.window.length
    begins, ends = (int(events.time[0]), int(events.time[-1])) if len(events) else (0, 0)
    span = ends - window - begins
    if span <= 0:
        raise ModelError("the events end before one window has passed, so no forecast can be evaluated")
    model = check_missing(bound, plan.model)
    known = [each for each in partial_matches(plan, events, model, LEAST) if len(each.matches)]
    matches = _matches(plan, events)
    past = [_what_became(plan, events, held, matches) for held in known]
    number = int(np.clip(span // window, FEWEST_MOMENTS, MOST_MOMENTS))
    moments = begins + (np.arange(number) + 0.5) * span / number
    predicted, completed = _looked_at(plan, events, past, moments.astype(np.int64))
    overlap = max(1.0, number * window / span)
    thresholds = tuple(_at_threshold(plan, events, past, matches, each, ends) for each in THRESHOLDS)
    return ForecastCheck(forecast_bins(predicted, completed), thresholds, len(predicted), number, overlap)


def _matches(plan: Plan, events: EventTable) -> Matches:
    """All matches that were wholly seen."""
    bound = plan.bound
    whole = rebound(bound, forecast=None)
    limits: dict[str, Any] = {name: getattr(plan.limits, name) for name in Limits.__dataclass_fields__}
    return find(make_plan(whole, events, PlanOptions(**limits))[0], events)


def _what_became(plan: Plan, events: EventTable, held: ChunkCache, matches: Matches) -> _Past:
    places = [plan.bound.place_of[name] for name in held.beginning.taken]
    begun = np.stack([matches.chosen[place].first() for place in places], axis=1)
    own = np.stack([chosen.first() for chosen in held.matches.chosen], axis=1)
    some = np.flatnonzero((own != MISSING).all(axis=1))
    _, codes = np.unique(np.concatenate([own[some], begun]), axis=0, return_inverse=True)
    codes = codes.ravel()
    mine, theirs = codes[: len(some)], codes[len(some) :]
    first = np.full(codes.max(initial=0) + 1, NEVER, np.int64)
    np.minimum.at(first, theirs, matches.completion)
    places_of = np.full(len(first), -1, np.int64)
    places_of[mine] = np.arange(len(some))
    closes = events.time[held.last[some]] + remaining_of(plan.bound, events, held)[some]
    ended = ended_by(plan, events, held, some, closes)
    return _Past(held, some, ended, first[mine], places_of[theirs])


def _looked_at(plan: Plan, events: EventTable, past: list[_Past], moments: Int64s) -> tuple[Float64s, Bools]:
    """What is forecast of all that are open in some moments, and whether they completed."""
    model, scale = check_missing(plan.bound, plan.model), gap_scale(plan.bound, plan.model)
    predicted, completed = [np.zeros(0)], [np.zeros(0, bool)]
    for each in past:
        table = table_of(plan.bound, model, each.held, seen=True)
        last = events.time[each.held.last[each.some]]
        left = remaining_of(plan.bound, events, each.held)[each.some]
        for at in moments.tolist():
            here = np.flatnonzero((last <= at) & (at < last + left) & (at < each.ended))
            elapsed = (at - last[here]).astype(np.float64) * scale
            predicted.append(table.probability(elapsed, left[here].astype(np.float64) * scale))
            completed.append(each.completed[here] != NEVER)
    return np.concatenate(predicted), np.concatenate(completed)


def _at_threshold(
    plan: Plan, events: EventTable, past: list[_Past], matches: Matches, asked: float, ends: int
) -> AtThreshold:
    """What would have been reported, of all whose window was over with the history."""
    bound, model = plan.bound, check_missing(plan.bound, plan.model)
    assert bound.window is not None
    reports = true = 0
    earliest = np.full(len(matches), NEVER, np.int64)
    for each in past:
        at, reached = reaching(bound, model, events, each.held, table_of(bound, model, each.held), asked)
        begins = events.time[each.held.first[each.some]]
        reported = reached[each.some] & (at[each.some] < each.ended) & (begins + bound.window.length <= ends)
        reports += int(reported.sum())
        true += int((reported & (each.completed != NEVER)).sum())
        if len(each.some):
            own = np.where(reported, at[each.some], NEVER)[each.matches]
            earliest = np.minimum(earliest, np.where(each.matches >= 0, own, NEVER))
    starts = np.stack([np.where(c.first() == MISSING, len(events) - 1, c.first()) for c in matches.chosen]).min(axis=0)
    over = events.time[starts] + bound.window.length <= ends
    early = over & (earliest < matches.completion)
    lead = float(np.median((matches.completion - earliest)[early])) * gap_scale(bound, model) if early.any() else 0.0
    return AtThreshold(asked, reports, true / max(reports, 1), float(early.sum() / max(int(over.sum()), 1)), lead)

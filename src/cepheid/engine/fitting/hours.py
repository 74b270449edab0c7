"""Losses by the hour of the day: from how often a component is seen in each, if it happens as often in all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from cepheid.engine.data.arrays import Float64s
from cepheid.engine.fitting.components import Learned
from cepheid.engine.fitting.history import History
from cepheid.errors import ModelError
from cepheid.language.bound import BoundQuery
from cepheid.model import ByHour, Model
from cepheid.model.loss_kinds import HOURS
from cepheid.model.loss_model import EVERY_OTHER

_ALIKE = 3.5  # standard deviations by which the losses of neighbouring hours may differ by chance
_SLIGHT = 0.01
_HIGHEST = 0.99


def with_losses_by_hour(
    bound: BoundQuery, history: History, model: Model, found: Mapping[str, Learned], stated: Sequence[str]
) -> Model:
    """The same model with a loss for each interval of the day; neighbouring hours that chance tells apart are one.

    Components whose loss no trip tells (the first one, the last one, negated ones) follow the others; stated losses
    stay.
    """
    seen_of: dict[str, Hourly] = {}
    for component in bound.positives:
        name, seen = component.variable, history.of(component.variable)
        learned = found.get(name)
        if learned is None or not learned.share or not seen.seen_by_hour or name in stated:
            continue
        trips = np.array(seen.seen_by_hour) + np.array(seen.unseen_by_hour)
        if trips.any():
            seen_of[name] = Hourly(np.array(seen.seen_by_hour), trips, learned.share)
    if not seen_of:
        raise ModelError(
            "losses by the hour: the history does not determine them for any component",
            hint="pass time_unit='s' (or what the time column counts), and a pattern of three components or more",
        )
    intervals = _intervals([*seen_of.values()])
    if len(intervals) == 1:
        return model
    whole = _lost([*seen_of.values()], [hour for hours in intervals for hour in hours])
    losses = dict(model.loss) if isinstance(model.loss, Mapping) else {EVERY_OTHER: model.loss}
    for name, loss in losses.items():
        if name in stated or not isinstance(loss, float):
            continue
        known = [seen_of[name]] if name in seen_of else [*seen_of.values()]
        own = 1.0 if name in seen_of else loss / max(whole, 1e-12)
        by_hour = np.zeros(HOURS)
        for hours in intervals:
            by_hour[hours] = min(own * _lost(known, hours), _HIGHEST)
        losses[name] = ByHour.from_hours(by_hour.tolist())
    return replace(model, loss=losses, loss_intervals={})


@dataclass(frozen=True)
class Hourly:
    """Of one component, by hour of the day: trips on which it was seen, and all; it happens on a share of them."""

    seen: Float64s
    trips: Float64s
    share: float


def _lost(tables: Sequence[Hourly], hours: list[int]) -> float:
    """How many of those that happened in some hours were lost."""
    happened = sum(float(each.trips[hours].sum()) * each.share for each in tables)
    seen = sum(float(each.seen[hours].sum()) for each in tables)
    return max(1.0 - seen / happened, 0.0) if happened > 0.0 else 0.0


def _intervals(tables: Sequence[Hourly]) -> list[list[int]]:
    """Hours of the day in intervals whose losses differ by more than chance, of some component at least."""
    intervals = [[hour] for hour in range(HOURS)]
    while len(intervals) > 1:
        apart = [_apart(tables, *pair) for pair in pairwise(intervals)]
        closest = int(np.argmin(apart))
        if apart[closest] > _ALIKE:
            break
        intervals[closest : closest + 2] = [intervals[closest] + intervals[closest + 1]]
    return intervals


def _apart(tables: Sequence[Hourly], first: list[int], second: list[int]) -> float:
    """How many standard deviations two intervals differ by; nothing where one has no trips, or they hardly differ."""
    most = 0.0
    for each in tables:
        seen, trips = ([float(counts[hours].sum()) for hours in (first, second)] for counts in (each.seen, each.trips))
        if min(trips) <= 0.0:
            continue
        off = abs(seen[0] / trips[0] - seen[1] / trips[1])
        if off / each.share > _SLIGHT:
            both = sum(seen) / sum(trips)
            spread = np.sqrt(max(both * (1.0 - both), 1e-6) * (1.0 / trips[0] + 1.0 / trips[1]))
            most = max(most, float(off / spread))
    return most

"""Compares a model with a stream: the same counts as a fit gathers, beside what the model says of them."""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.table import EventTable
from cepheid.engine.fitting.history import ComponentHistory, History, gather
from cepheid.engine.worth.losses import check_missing, fixed_attributes, gap_scale, leading_components
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.model import Model
from cepheid.model.check import (
    Check,
    Comparison,
    compare_hours,
    compare_lengths,
    compare_shares,
    gap_at,
    length_edges,
    trip_at,
)
from cepheid.model.gap import Floats, GapDistribution
from cepheid.model.gap_statistics import GapStatistics, bin_edges
from cepheid.model.loss_kinds import HOURS
from cepheid.model.loss_model import AFTER

_FEW_CUT = 0.02


def check_history(bound: BoundQuery, model: Model, history: History) -> Check:
    """What the model predicts of a stream whose counts were gathered, beside what they are."""
    check_missing(bound, model)
    found: list[Comparison] = []
    leading = leading_components(bound)
    trips = _trips_by_hour(history)
    for place, component in enumerate(bound.components):
        seen = history.of(component.variable)
        if component.kleene:
            continue
        by_hour = _losses_by_hour(bound, model, component)
        loss = float(trips @ by_hour / trips.sum())
        if component.variable in leading:
            found += _first(component, model, seen, loss)
            continue
        behind = next((c for c in bound.components[place + 1 :] if not c.negative), None)
        if behind is None:
            found += _last(component, model, seen, loss)
        else:
            found += compare_hours(component.variable, seen.seen_by_hour, seen.unseen_by_hour, 1.0 - by_hour)
            found += _between(component, behind, model, seen, loss)
    return Check(tuple(found))


def _trips_by_hour(history: History) -> Floats:
    """How many trips there were in each hour of the day; as many in every hour where that is not known."""
    counts = np.zeros(HOURS)
    for seen in history.components.values():
        if seen.seen_by_hour:
            counts += np.array(seen.seen_by_hour) + np.array(seen.unseen_by_hour)
    return counts if counts.any() else np.ones(HOURS)


def _losses_by_hour(bound: BoundQuery, model: Model, component: s.Component) -> Floats:
    fixed = fixed_attributes(bound, component)
    return np.array([model.loss_of(component.variable, fixed, hour) for hour in range(HOURS)])


def check_stream(bound: BoundQuery, model: Model, events: EventTable) -> Check:
    """The same, from a table of events."""
    return check_history(bound, model, gather(bound, events, gap_scale(bound, model)))


def _first(component: s.Component, model: Model, seen: ComponentHistory, loss: float) -> list[Comparison]:
    name = component.variable
    if component.negative or not model.knows_share(name):
        return []
    share = model.gaps[name].happens if name in model.gaps else model.happens[name]
    # What came before the stream began cannot be missed: only the later half counts.
    late = max((bin_edges(np.array([b]))[1][0] for b, _ in seen.seen_since.bins), default=0.0) / 2.0
    return compare_shares(name, share * (1.0 - loss), _after(seen.seen_since, late), _after(seen.lost_since, late))


def _after(times: GapStatistics, since: float) -> float:
    lower, _ = bin_edges(np.array([place for place, _ in times.bins], np.int64))
    return float(sum(count for (_, count), low in zip(times.bins, lower, strict=True) if low >= since))


def _last(component: s.Component, model: Model, seen: ComponentHistory, loss: float) -> list[Comparison]:
    name = component.variable
    gap = model.gap_of(name)
    found = []
    if not component.negative:
        cut = sum(count for _, count in seen.gaps.censored)
        if cut <= _FEW_CUT * (seen.gaps.count + seen.gaps.never):  # or those who come soon would count too much
            found += compare_shares(name, gap.happens * (1.0 - loss), seen.gaps.count, seen.gaps.never)
        if not any(key.startswith(f"{name}{AFTER}") for key in model.gaps):
            found += compare_lengths("gap", name, seen.gaps, gap_at(gap, length_edges(seen.gaps)))
    return found


def _between(
    component: s.Component, behind: s.Component, model: Model, seen: ComponentHistory, loss: float
) -> list[Comparison]:
    name, trips = component.variable, seen.trips
    gap = model.gap_of(name)
    onward = model.gaps.get(f"{behind.variable}{AFTER}{name}")
    if component.negative and onward is None:
        return compare_shares(name, _share_by_length(seen, gap, loss), trips.before.count, trips.unseen.count)
    share = gap.happens * (1.0 - loss)
    found = compare_shares(name, share, trips.before.count, trips.unseen.count)
    found += compare_lengths("gap", name, trips.before, gap_at(gap, length_edges(trips.before)))
    around = model.gaps.get(behind.variable)
    waits_for_another = onward is None and any(key.startswith(f"{behind.variable}{AFTER}") for key in model.gaps)
    if around is None or waits_for_another:
        return found
    after = onward or around
    edges = length_edges(seen.lengths)
    found += compare_lengths("trip", name, seen.lengths, trip_at(gap, after, edges))
    edges = length_edges(trips.unseen)
    lost = gap.happens * loss / max(1.0 - share, 1e-12)
    mixture = lost * trip_at(gap, after, edges) + (1.0 - lost) * gap_at(around, edges)
    return found + compare_lengths("trip without", name, trips.unseen, mixture)


def _share_by_length(seen: ComponentHistory, gap: GapDistribution, loss: float) -> float:
    """How many of the trips should have shown a negated component, given how long they took (AYAC's F(T))."""
    bins = dict(seen.lengths.merge(seen.trips.unseen).bins)
    if not bins:
        return 0.0
    lower, upper = bin_edges(np.array(list(bins), np.int64))
    counts = np.array(list(bins.values()))
    return float(counts @ gap.cdf(np.sqrt(lower * upper)) * (1.0 - loss) / counts.sum())

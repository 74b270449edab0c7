"""Compares a model with a stream: the same counts as a fit gathers, beside what the model says of them."""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.table import EventTable
from cepheid.engine.fitting.history import NO_HOUR, ComponentHistory, History, gather
from cepheid.engine.fitting.unseen_intervals import interval_of
from cepheid.engine.scoring.losses import check_missing, fixed_attributes, gap_scale, leading_components
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.model import Model, check
from cepheid.model.chain import quantiles
from cepheid.model.dependence import compare_apart, compare_together, with_reasons
from cepheid.model.gap import Floats, GapDistribution
from cepheid.model.gap_statistics import bin_edges
from cepheid.model.loss_kinds import HOURS
from cepheid.model.loss_model import AFTER

_FEW_CUT = 0.02
_TELLING = 0.01  # how unlikely lengths must be by chance to say why components are missing together
_ALWAYS = 0.98
_HARDLY_ANY = 0.999


def check_history(bound: BoundQuery, model: Model, history: History) -> check.Check:
    """What the model predicts of a stream whose counts were gathered, beside what they are."""
    check_missing(bound, model)
    found: list[check.Comparison] = []
    leading = leading_components(bound)
    trips = _trips_by_hour(history)
    for place, component in enumerate(bound.components):
        seen = history.of(component.variable)
        if component.kleene:
            continue
        by_hour = _losses_by_hour(bound, model, component)
        loss = float(trips @ by_hour / trips.sum())
        if component.variable in leading:
            found += _first(component, bound, model, seen, loss)
            continue
        behind = next((c for c in bound.components[place + 1 :] if not c.negative), None)
        if behind is None:
            found += _last(component, model, seen, loss)
        else:
            found += check.compare_hours(component.variable, seen.seen_by_hour, seen.unseen_by_hour, 1.0 - by_hour)
            found += _between(component, behind, model, seen, loss)
    if model.is_fitted:
        found = [each.between_two_histories() for each in found]
    return check.Check((*found, *_together(bound, model, history)))


def _together(bound: BoundQuery, model: Model, history: History) -> list[check.Comparison]:
    """Which positive components are missing together on trips, and whether the length of these trips says why."""
    names = [component.variable for component in bound.positives[:-1]]
    counts: dict[tuple[int, int], float] = {}
    for (hour, mask), number in history.together.items():
        stratum = hour if model.hours else NO_HOUR  # only a model with losses by the hour expects hours to differ
        counts[stratum, mask] = counts.get((stratum, mask), 0.0) + number
    if not counts:
        return []
    always = {name for name in names if model.knows_share(name) and _share(model, name) > _ALWAYS}
    lengths = [each for ends in history.intervals for each in _interval(bound, model, history, ends)]
    if model.histories:
        return [*with_reasons(compare_apart(names, counts), always, None), *lengths]
    worst = min(lengths, key=lambda each: each.unlikely, default=None)
    longer = None if worst is None or worst.unlikely > _TELLING else worst.observed > worst.predicted
    return with_reasons(compare_together(names, counts), always, longer)


def _share(model: Model, name: str) -> float:
    return model.gaps[name].happens if name in model.gaps else model.happens[name]


def _interval(bound: BoundQuery, model: Model, history: History, ends: tuple[int, int]) -> list[check.Comparison]:
    """How long it took from one component to another where several in between were not seen."""
    interval, lengths = interval_of(bound, model, ends), history.intervals[ends]
    if interval is None or lengths.count < check.FEWEST or (model.histories and not interval.known):
        return []
    name = " and ".join(interval.missing)
    found = check.compare_lengths("trip without", name, lengths, interval.at(check.length_edges(lengths)))
    return [each.between_two_histories() for each in found] if model.is_fitted else found


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


def check_stream(bound: BoundQuery, model: Model, events: EventTable) -> check.Check:
    """The same, from a table of events."""
    return check_history(bound, model, gather(bound, events, gap_scale(bound, model)))


def _first(
    component: s.Component, bound: BoundQuery, model: Model, seen: ComponentHistory, loss: float
) -> list[check.Comparison]:
    name = component.variable
    if component.negative or not model.knows_share(name) or model.hours:  # the hours of the later half may be others
        return []
    share = _share(model, name)
    # What came before the stream began cannot be missed: only what is so late that hardly any gap reaches back there.
    assert bound.window is not None
    window = bound.window.length * gap_scale(bound, model)
    second = next((c.variable for c in bound.positives[1:] if c.variable in model.gaps), None)
    late = min([window, *(quantiles(model.gaps[second], (_HARDLY_ANY,), window) if second else ())])
    return check.compare_shares(
        name, share * (1.0 - loss), seen.seen_since.count_from(late), seen.lost_since.count_from(late)
    )


def _last(component: s.Component, model: Model, seen: ComponentHistory, loss: float) -> list[check.Comparison]:
    name = component.variable
    gap = model.gap_of(name)
    found = []
    if not component.negative:
        cut, share = sum(count for _, count in seen.gaps.censored), gap.happens * (1.0 - loss)
        few = cut <= _FEW_CUT * (seen.gaps.count + seen.gaps.never)
        lengths = check.gap_at(gap, check.length_edges(seen.gaps))
        if few:  # or those who come soon would count too much
            found += check.compare_shares(name, share, seen.gaps.count, seen.gaps.never)
        if not any(key.startswith(f"{name}{AFTER}") for key in model.gaps):
            found += (
                check.compare_lengths("gap", name, seen.gaps, lengths)
                if few
                else check.compare_waits(name, seen.gaps, share * lengths, share)
            )
    return found


def _between(
    component: s.Component, behind: s.Component, model: Model, seen: ComponentHistory, loss: float
) -> list[check.Comparison]:
    name, trips = component.variable, seen.trips
    gap = model.gap_of(name)
    onward = model.gaps.get(f"{behind.variable}{AFTER}{name}")
    if component.negative and onward is None:
        return check.compare_shares(name, _share_by_length(seen, gap, loss), trips.before.count, trips.unseen.count)
    share = gap.happens * (1.0 - loss)
    found = check.compare_shares(name, share, trips.before.count, trips.unseen.count)
    found += check.compare_lengths("gap", name, trips.before, check.gap_at(gap, check.length_edges(trips.before)))
    around = model.gaps.get(behind.variable)
    waits_for_another = onward is None and any(key.startswith(f"{behind.variable}{AFTER}") for key in model.gaps)
    if around is None or waits_for_another:
        return found
    after = onward or around
    edges = check.length_edges(seen.lengths)
    found += check.compare_lengths("trip", name, seen.lengths, check.trip_at(gap, after, edges))
    edges = check.length_edges(trips.unseen)
    lost = gap.happens * loss / max(1.0 - share, 1e-12)
    mixture = lost * check.trip_at(gap, after, edges) + (1.0 - lost) * check.gap_at(around, edges)
    return found + check.compare_lengths("trip without", name, trips.unseen, mixture)


def _share_by_length(seen: ComponentHistory, gap: GapDistribution, loss: float) -> float:
    """How many of the trips should have shown a negated component, given how long they took (AYAC's F(T))."""
    bins = dict(seen.lengths.merge(seen.trips.unseen).bins)
    if not bins:
        return 0.0
    lower, upper = bin_edges(np.array(list(bins), np.int64))
    counts = np.array(list(bins.values()))
    return float(counts @ gap.cdf(np.sqrt(lower * upper)) * (1.0 - loss) / counts.sum())

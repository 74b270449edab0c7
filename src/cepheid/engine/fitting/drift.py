"""A quick look at whether a stream still looks like the history that its model was fitted to.

`model.check` compares everything with care; this is for every call of `match`, and must cost next to nothing. It looks
at the first events only: how often components are seen, and how long their gaps are. A component's trips count if they
began so early that their end must lie among these events, so that short ones are not preferred.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

from cepheid.engine.data.candidates import Candidates, candidates
from cepheid.engine.data.table import EventTable
from cepheid.engine.fitting.history import component_bits, other_positives
from cepheid.engine.fitting.trips import NO_COMPONENT, Moments, Sought, observe
from cepheid.engine.scoring.losses import day_of_losses, fixed_attributes, gap_scale, leading_components
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.model import Model
from cepheid.model.chain import quantiles
from cepheid.model.check import FEWEST, Check, Comparison, compare_shares
from cepheid.model.gap import Floats, GapDistribution
from cepheid.model.loss_kinds import HOURS
from cepheid.model.loss_model import AFTER
from cepheid.plan.physical import Plan

LEAST_LOOKED_AT, MOST_LOOKED_AT = 4_000, 20_000  # events
_SHARE_LOOKED_AT = 20  # one event in so many, else
_HARDLY_ANY_LONGER = 0.999


def drift_warning(bound: BoundQuery, model: Model, events: EventTable, most: int | None = None) -> str | None:
    """A warning with numbers if the beginning of a stream does not look like the history the model is from.

    `most` is how many events are looked at, unless they are a small share of a table.
    """
    if not model.is_fitted or not bound.is_linear_of_singles or not bound.schema.is_timed_exactly:
        return None
    if most is None:
        most = min(max(len(events) // _SHARE_LOOKED_AT, LEAST_LOOKED_AT), MOST_LOOKED_AT)
    first = EventTable(events.table.slice(0, most), events.time[:most], events.instant[:most])
    worst = quick_check(bound, model, first).worst
    if worst is None:
        return None
    return (
        "the stream differs from the data that the model was fitted to, so its probabilities may be off: "
        f"{worst.text}; model.check(events, query) shows all, cepheid.fit learns it anew"
    )


def quick_check(bound: BoundQuery, model: Model, events: EventTable) -> Check:
    """How often components are seen and how long their gaps are, of trips that must have ended among the events."""
    if len(events) == 0 or bound.window is None or bound.window.events:
        return Check(())
    prepared = candidates(Plan(bound, "queues", partition=bound.equivalence), events)
    leading = leading_components(bound)
    waiting = {name.split(AFTER)[0] for name in model.gaps if AFTER in name}
    found: list[Comparison] = []
    for index, component in enumerate(bound.components):
        name = component.variable
        if component.negative or name in leading or name in waiting or name not in model.gaps:
            continue
        behind = next((c for c in bound.components[index + 1 :] if not c.negative), None)
        if behind is not None and (behind.variable in waiting or behind.variable not in model.gaps):
            continue
        found += _compared(bound, model, prepared, component, behind, int(events.time[-1]))
    return Check(tuple(found))


def _compared(
    bound: BoundQuery, model: Model, prepared: Candidates, component: s.Component, behind: s.Component | None, ends: int
) -> list[Comparison]:
    assert bound.window is not None
    bits, scale, name = component_bits(bound), gap_scale(bound, model), component.variable
    place = bound.place_of[name]
    source, target = bits[bound.positives[place - 1].variable], bits[name]
    next_one = NO_COMPONENT if behind is None else bits[behind.variable]
    gap = model.gaps[name]
    window = bound.window.length * scale
    longest = _longest(gap, window) + (0.0 if behind is None else _longest(model.gaps[behind.variable], window))
    reach = min(int(np.ceil(longest / scale)), bound.window.length)
    # Trips that began too late to have ended by now are not opened at all.
    mask = np.where(prepared.time > ends - reach, prepared.mask & ~(1 << source), prepared.mask)
    others = other_positives(bound, bits, source, target, next_one)
    trips = observe(
        Moments(prepared.time, prepared.instant, mask, prepared.starts),
        Sought(source, target, next_one, others, False, False, reach, ends),
    )
    began = prepared.time[(mask >> source) & 1 == 1]
    times = began if behind is None else np.concatenate([trips.seen_middle, trips.unseen_middle])
    share = gap.happens * (1.0 - _loss(bound, model, component, times))
    seen, not_seen = (len(trips.waits), trips.never) if behind is None else (len(trips.before), len(trips.unseen))
    lengths = (trips.waits if behind is None else trips.before) * scale
    return [*compare_shares(name, share, float(seen), float(not_seen)), *_lengths(name, lengths, gap, scale)]


def _loss(bound: BoundQuery, model: Model, component: s.Component, times: Any) -> float:
    """The loss of a component; where it depends on the hour, the mean of the hours of its trips."""
    fixed, day = fixed_attributes(bound, component), day_of_losses(bound, model)
    if not day or not len(times):
        return model.loss_of(component.variable, fixed)
    by_hour = np.array([model.loss_of(component.variable, fixed, hour) for hour in range(HOURS)])
    return float(by_hour[times % day * HOURS // day].mean())


def _lengths(name: str, lengths: Floats, gap: GapDistribution, step: float) -> list[Comparison]:
    """Lengths against a gap. The clock ticks in steps, so a length may have been one more or one less."""
    if len(lengths) < FEWEST:
        return []
    values, counts = np.unique(lengths, return_counts=True)
    shares = np.cumsum(counts) / len(lengths)
    low, high = (gap.cdf(np.maximum(values + off, 0.0)) / max(gap.happens, 1e-12) for off in (-step, step))
    off = float(np.maximum(low - shares, shares - high).max(initial=0.0))
    unlikely = float(special.kolmogorov(np.sqrt(len(lengths)) * off))
    middle = float(np.interp(0.5, np.maximum.accumulate((low + high) / 2.0), values))
    return [Comparison("gap", name, middle, float(np.interp(0.5, shares, values)), len(lengths), off, unlikely)]


@lru_cache(maxsize=256)
def _longest(gap: GapDistribution, window: float) -> float:
    return min([window, *quantiles(gap, (_HARDLY_ANY_LONGER,), window)])

"""From a history to a loss and gap model: which losses are proven, which must be inferred, and what the gaps are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from cepheid.engine.fitting.history import ComponentHistory, History
from cepheid.engine.worth.losses import fixed_attributes, leading_components
from cepheid.errors import ModelError, closest
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.model import (
    Empirical,
    GapDistribution,
    GapStatistics,
    LossEstimate,
    Model,
    estimate_loss,
    fit_from_statistics,
    fit_trips,
    share_by_length,
)
from cepheid.model.chain import quantiles
from cepheid.model.fit import FEWEST_GAPS
from cepheid.model.gap_statistics import bin_edges
from cepheid.model.loss_model import EVERY_OTHER

NEGATIVES = ("pooled", "em")
_HARDLY_ANY = 0.999


def learn(
    bound: BoundQuery,
    history: History,
    *,
    loss: Any = None,
    negatives: str = "pooled",
    unit: str | None = None,
    resolution: float,
    window: float,
) -> Model:
    """The model that a history supports.

    Losses are taken from `loss` where it states them; then from proven losses; a component whose losses cannot be
    proven gets the rate of all proven ones together. For negated components `negatives="em"` infers loss and
    `happens` from the lengths of trips instead, which needs no assumption that readers are alike, but one that the
    trip goes on from the negated event (see docs/missing-events.md). Kleene groups are never missing and need nothing.
    `resolution` is the step of the clock, and the window's length is in the unit of the gaps, too.
    """
    if negatives not in NEGATIVES:
        raise ModelError(f"negatives={negatives!r} is neither 'pooled' nor 'em'")
    components = [component for component in bound.components if not component.kleene]
    stated = _stated(bound, components, loss)
    leading = leading_components(bound)
    for component in components:
        name = component.variable
        if name in history.components and history.of(name).events == 0.0:
            told = f"no event of the history could be {name!r}"
            raise ModelError(told, hint="is its type right, and are its conditions?")
    inferred = {
        c.variable: fit_trips(history.of(c.variable).trips, component=c.variable)
        for c in components
        if c.negative and negatives == "em" and c.variable not in leading and c.variable not in stated
    }
    fitted = {
        c.variable: _seen_gap(c, history.of(c.variable), resolution) for c in components if c.variable not in leading
    }
    proven = _proven(bound, history, window)
    losses: dict[str, float] = {}
    intervals: dict[str, tuple[float, float]] = {}
    gaps: dict[str, GapDistribution] = {}
    for component in components:
        name = component.variable
        if name in stated:
            losses[name] = stated[name]
        elif name in inferred:
            losses[name], intervals[name] = inferred[name].loss, inferred[name].loss_interval
        else:
            estimate = estimate_loss(*proven[name], component=name) if name in proven else _pooled(proven)
            if estimate is None:
                raise _nothing_proven(component)
            losses[name], intervals[name] = estimate.loss, (estimate.low, estimate.high)
        if name in fitted:
            # What is seen is what happens and is not lost.
            gaps[name] = _with_happens(fitted[name], min(1.0, fitted[name].happens / (1.0 - losses[name])))
        elif history.of(name).rest.count >= FEWEST_GAPS:
            gaps[name] = _from_the_opening(history.of(name).rest, window, resolution, name)
    return Model(loss=losses, gaps=gaps, unit=unit, loss_intervals=intervals)


def _seen_gap(component: s.Component, seen: ComponentHistory, resolution: float) -> GapDistribution:
    """The gap after which a component is seen; what was lost counts as what never came.

    A negated component's score asks how likely it happened by the time the next one was seen. Where waits do not tell
    that, since the next one waits for it, the share of trips with it, by their length, does.
    """
    gap = fit_from_statistics(seen.gaps, resolution=resolution, component=component.variable, defective=True)
    if not component.negative:
        return gap
    return share_by_length(seen.lengths, seen.trips.unseen, gap) or gap


def _stated(bound: BoundQuery, components: Sequence[s.Component], loss: Any) -> dict[str, float]:
    """The losses that the caller knows, in any form that a model takes."""
    if loss is None:
        return {}
    model = Model(loss=loss)
    if isinstance(model.loss, Mapping):
        names = [component.variable for component in components]
        for name in model.loss:
            if name not in (*names, EVERY_OTHER):
                guess = closest(name, names)
                hint = f"did you mean {guess!r}?" if guess else f"they are {', '.join(names)}"
                raise ModelError(f"loss names {name!r}, which is no component that may be missing", hint=hint)
        components = [c for c in components if c.variable in model.loss or EVERY_OTHER in model.loss]
    return {c.variable: model.loss_of(c.variable, fixed_attributes(bound, c)) for c in components}


def _from_the_opening(rest: GapStatistics, window: float, resolution: float, name: str) -> Empirical:
    """The first component's clock starts at the window's opening, and the trip ends with it: the rest turned around."""
    fitted = fit_from_statistics(rest, resolution=resolution, component=name)
    edges = np.unique(np.concatenate([np.linspace(0.0, window, 65), np.geomspace(window * 1e-4, window, 193)]))
    masses = np.diff(fitted.cdf(edges))
    return Empirical(tuple(window - edges[::-1]), tuple(masses[::-1] / masses.sum()))


def _with_happens(gap: GapDistribution, happens: float) -> GapDistribution:
    changed: GapDistribution = replace(cast(Any, gap), happens=happens)
    return changed


def _proven(bound: BoundQuery, history: History, window: float) -> dict[str, tuple[float, float]]:
    """How often each component was seen, and not seen, where it must have happened."""
    found = {}
    first = bound.positives[0].variable
    for component in bound.positives:
        name, seen = component.variable, history.of(component.variable)
        counts = (seen.seen, seen.lost)
        if name == first and len(bound.positives) > 1:
            # The first event of a trip is missed for certain only if it came after the history's beginning.
            reach = _longest(history.of(bound.positives[1].variable).gaps, window)
            counts = (_after(seen.seen_since, reach), _after(seen.lost_since, reach))
        if not component.kleene and sum(counts) > 0.0:
            found[name] = counts
    return found


def _longest(gaps: GapStatistics, window: float) -> float:
    """The time that hardly any gap exceeds, at most the window."""
    if gaps.count < FEWEST_GAPS:
        return window
    return min([window, *quantiles(fit_from_statistics(gaps, defective=True), (_HARDLY_ANY,), window)])


def _after(times: GapStatistics, reach: float) -> float:
    lower, _ = bin_edges(np.array([place for place, _ in times.bins], np.int64))
    return float(sum(count for (_, count), low in zip(times.bins, lower, strict=True) if low >= reach))


def _pooled(proven: Mapping[str, tuple[float, float]]) -> LossEstimate | None:
    """The loss of all components whose losses are proven, together."""
    if not proven:
        return None
    return estimate_loss(sum(seen for seen, _ in proven.values()), sum(lost for _, lost in proven.values()))


def _nothing_proven(component: s.Component) -> ModelError:
    return ModelError(
        f"the history proves no loss of any component, so that of {component.variable!r} is not known",
        hint="give a longer history, state it with loss=0.05, or pass negatives='em' if negated events alone get lost",
    )

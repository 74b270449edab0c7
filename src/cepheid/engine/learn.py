"""From a history to a loss and gap model: which losses are proven, which must be inferred, and what the gaps are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np

from cepheid.engine.history import ComponentHistory, History
from cepheid.engine.losses import leading_components
from cepheid.errors import ModelError
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
)
from cepheid.model.fit import FEWEST_GAPS

NEGATIVES = ("pooled", "em")


def learn(
    bound: BoundQuery,
    history: History,
    *,
    loss: float | Mapping[str, float] | None = None,
    negatives: str = "pooled",
    unit: str | None = None,
    resolution: float = 1.0,
    window: float,
) -> Model:
    """The model that a history supports.

    Losses are taken from `loss` where it states them; then from proven losses; a component whose losses cannot be
    proven gets the rate of all proven ones together. For negated components `negatives="em"` infers loss and
    `happens` from the lengths of trips instead, which needs no assumption that readers are alike, but one that the
    trip goes on from the negated event (see docs/missing-events.md).
    """
    if negatives not in NEGATIVES:
        raise ModelError(f"negatives={negatives!r} is neither 'pooled' nor 'em'")
    stated = dict(loss) if isinstance(loss, Mapping) else {}
    common = float(loss) if isinstance(loss, int | float) else None
    pool = _pooled(history) if common is None else None
    losses: dict[str, float] = {}
    intervals: dict[str, tuple[float, float]] = {}
    gaps: dict[str, GapDistribution] = {}
    for component in bound.components:
        name = component.variable
        seen = history.components.get(name, ComponentHistory())
        if name in stated or common is not None:
            losses[name] = stated.get(name, common if common is not None else 0.0)
        elif component.negative and negatives == "em" and name not in leading_components(bound):
            found = fit_trips(seen.trips, component=name)
            losses[name], intervals[name] = found.loss, found.loss_interval
            gaps[name] = _with_happens(found.gap, found.happens)
            continue
        else:
            estimate = _proven(name, seen) or pool
            if estimate is None:
                raise _nothing_proven(component)
            losses[name], intervals[name] = estimate.loss, (estimate.low, estimate.high)
        if name not in leading_components(bound):
            fitted = fit_from_statistics(seen.gaps, resolution=resolution, component=name, defective=True)
            # What is seen is what happens and is not lost.
            gaps[name] = _with_happens(fitted, min(1.0, fitted.happens / (1.0 - losses[name])))
        elif seen.rest.count >= FEWEST_GAPS:
            gaps[name] = _from_the_opening(seen.rest, window, resolution, name)
    return Model(loss=losses, gaps=gaps, unit=unit, loss_intervals=intervals)


def _from_the_opening(rest: GapStatistics, window: float, resolution: float, name: str) -> Empirical:
    """The first component's clock starts at the window's opening, and the trip ends with it: the rest turned around."""
    fitted = fit_from_statistics(rest, resolution=resolution, component=name)
    edges = np.unique(np.concatenate([np.linspace(0.0, window, 65), np.geomspace(window * 1e-4, window, 193)]))
    masses = np.diff(fitted.cdf(edges))
    return Empirical(tuple(window - edges[::-1]), tuple(masses[::-1] / masses.sum()))


def _with_happens(gap: GapDistribution, happens: float) -> GapDistribution:
    changed: GapDistribution = replace(cast(Any, gap), happens=happens)
    return changed


def _proven(name: str, seen: ComponentHistory) -> LossEstimate | None:
    if seen.seen + seen.lost == 0.0:
        return None
    return estimate_loss(seen.seen, seen.lost, component=name)


def _pooled(history: History) -> LossEstimate | None:
    """The loss of all components whose losses are proven, together."""
    seen = sum(each.seen for each in history.components.values())
    lost = sum(each.lost for each in history.components.values())
    return estimate_loss(seen, lost) if seen + lost else None


def _nothing_proven(component: s.Component) -> ModelError:
    return ModelError(
        f"the history proves no loss of any component, so that of {component.variable!r} is not known",
        hint="state it: fit(..., loss=0.05), or pass negatives='em' if only negated events can be lost",
    )

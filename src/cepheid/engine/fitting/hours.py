"""Losses by the hour of the day: from how often a component is seen in each, if it happens as often in all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cepheid.engine.fitting.components import Learned
from cepheid.engine.fitting.history import History
from cepheid.errors import ModelError
from cepheid.language.bound import BoundQuery
from cepheid.model import ByHour, Model
from cepheid.model.loss_kinds import HOURS
from cepheid.model.loss_model import EVERY_OTHER

Floats = npt.NDArray[np.float64]

_ALIKE = 3.5  # standard deviations by which the losses of neighbouring hours may differ by chance
_SLIGHT = 0.01
_HIGHEST = 0.99


def with_losses_by_hour(
    bound: BoundQuery, history: History, model: Model, found: Mapping[str, Learned], stated: Sequence[str]
) -> Model:
    """The same model with a loss for each stretch of the day; neighbouring hours that chance tells apart are one.

    Components whose loss no trip tells (the first one, the last one, negated ones) follow the others; stated losses
    stay.
    """
    tables: dict[str, Floats] = {}
    for component in bound.positives:
        name, seen = component.variable, history.of(component.variable)
        learned = found.get(name)
        if learned is None or learned.share is None or not seen.seen_by_hour or name in stated:
            continue
        counts = np.array([seen.seen_by_hour, seen.unseen_by_hour])
        happened = learned.share * counts.sum(axis=0)
        if happened.sum() > 0.0:
            tables[name] = np.array([np.clip(happened - counts[0], 0.0, None), happened])
    if not tables:
        raise ModelError(
            "losses by the hour: the history does not tell them of any component",
            hint="pass time_unit='s' (or what the time column counts), and a pattern of three components or more",
        )
    stretches = _stretches([*tables.values()])
    pooled = np.sum([*tables.values()], axis=0)
    whole = pooled[0].sum() / pooled[1].sum()
    losses = dict(model.loss) if isinstance(model.loss, Mapping) else {EVERY_OTHER: model.loss}
    for name, loss in losses.items():
        if name in stated or not isinstance(loss, float):
            continue
        counts = tables.get(name, pooled)
        own = 1.0 if name in tables else loss / max(whole, 1e-12)
        by_stretch = [own * counts[0, hours].sum() / max(counts[1, hours].sum(), 1e-12) for hours in stretches]
        by_hour = np.zeros(HOURS)
        for hours, each in zip(stretches, by_stretch, strict=True):
            by_hour[hours] = min(each, _HIGHEST)
        losses[name] = ByHour.from_hours(by_hour.tolist()) if len(stretches) > 1 else loss
    return replace(model, loss=losses, loss_intervals=model.loss_intervals if len(stretches) == 1 else {})


def _stretches(tables: Sequence[Floats]) -> list[list[int]]:
    """Hours of the day in stretches whose losses differ by more than chance, of some component at least."""
    stretches = [[hour] for hour in range(HOURS)]
    while len(stretches) > 1:
        apart = [_apart(tables, *pair) for pair in pairwise(stretches)]
        closest = int(np.argmin(apart))
        if apart[closest] > _ALIKE:
            break
        stretches[closest : closest + 2] = [stretches[closest] + stretches[closest + 1]]
    return stretches


def _apart(tables: Sequence[Floats], first: list[int], second: list[int]) -> float:
    """How many standard deviations two stretches differ by; nothing where one has no trips, or they hardly differ."""
    most = 0.0
    for lost, happened in tables:
        sizes = happened[first].sum(), happened[second].sum()
        if min(sizes) <= 0.0:
            continue
        shares = lost[first].sum() / sizes[0], lost[second].sum() / sizes[1]
        both = (lost[first].sum() + lost[second].sum()) / sum(sizes)
        if abs(shares[0] - shares[1]) > _SLIGHT:
            spread = np.sqrt(max(both * (1.0 - both), 1e-6) * (1.0 / sizes[0] + 1.0 / sizes[1]))
            most = max(most, float(abs(shares[0] - shares[1]) / spread))
    return most

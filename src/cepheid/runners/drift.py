"""Warns, with numbers, of a stream that no longer looks like the history its model was fitted to."""

from __future__ import annotations

import warnings
from typing import Any

from cepheid.engine.data.table import EventTable
from cepheid.errors import CepheidError
from cepheid.plan.physical import Plan

_EVENTS_BETWEEN_LOOKS = 400_000

# By the identity of a model, which is kept beside it: how many more events are matched before the next look.
_waiting: dict[int, tuple[Any, int]] = {}


def look_for_drift(plan: Plan, events: EventTable) -> None:
    """Warns of a drift; a model that one has stated oneself is not judged.

    A look that fails must not keep anyone from matching: what it cannot judge it does not warn of.
    """
    if plan.model is None:
        return
    from cepheid.engine.fitting.drift import drift_warning  # it brings kernels of its own

    try:
        found = drift_warning(plan.bound, plan.model, events)
    except CepheidError:
        return
    if found is not None:
        warnings.warn(found, stacklevel=2)


def look_now_and_then(plan: Plan, events: EventTable) -> None:
    """The same in a worker, which sees one batch after another: at the first one, and again after many events.

    What a worker warns of is in its log, and on the terminal where Spark runs locally.
    """
    if plan.model is None:
        return
    _, left = _waiting.get(id(plan.model), (None, 0))
    if left > 0:
        _waiting[id(plan.model)] = plan.model, left - len(events)
        return
    _waiting[id(plan.model)] = plan.model, _EVENTS_BETWEEN_LOOKS
    look_for_drift(plan, events)

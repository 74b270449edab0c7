"""Warns, with numbers, of a stream that no longer looks like the history its model was fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from cepheid.engine.data.table import EventTable, ordered
from cepheid.errors import CepheidError, ModelWarning, warn
from cepheid.plan.physical import Plan
from cepheid.remembered import Remembered
from cepheid.runners.events_of_each import events_of_each

LOOKED_AT = 20_000  # events of a stream that are looked at together
_EVENTS_BETWEEN_LOOKS = 400_000
_MANY_TABLES = 64


@dataclass
class _Watched:
    """What a process has seen with a model since its last look."""

    arrived: list[pa.Table] = field(default_factory=list)
    rows: int = 0
    waiting: int = 0  # how many more events are matched before the next look


_watched = Remembered[_Watched](most=64)  # by the model


def look_for_drift(plan: Plan, events: EventTable, most: int | None = None) -> None:
    """Warns of a drift; a model that one has stated oneself is not judged.

    A look that fails must not keep anyone from matching: what it cannot judge it does not warn of.
    """
    if not _is_fitted(plan):
        return
    from cepheid.engine.fitting.drift import drift_warning  # it brings kernels of its own

    try:
        found = drift_warning(plan.bound, plan.model, events, most)
    except CepheidError:
        return
    if found is not None:
        warn(found, ModelWarning)


def look_now_and_then(plan: Plan, events: EventTable) -> None:
    """The same in a worker, which gets all events of some keys, piece by piece: at the first one, and now and then.

    What a worker warns of is in its log, and on the terminal where Spark runs locally.
    """
    if not _is_fitted(plan):
        return
    watched = _watched.of(plan.model, _Watched)
    watched.waiting -= len(events)
    if watched.waiting < 0:
        watched.waiting = _EVENTS_BETWEEN_LOOKS
        look_for_drift(plan, events)


def look_at_arrivals(plans: Sequence[Plan], arrived: pa.Table) -> None:
    """The same in a stream: at what arrives, since what is searched at a time are the keys at which something happened.

    Tables are kept until there are enough events in them, and dropped after a look.
    """
    for plan in plans:
        if not _is_fitted(plan):
            continue
        watched = _watched.of(plan.model, _Watched)
        watched.waiting -= arrived.num_rows
        if watched.waiting >= 0:
            continue
        watched.arrived.append(arrived)
        if len(watched.arrived) > _MANY_TABLES:
            watched.arrived = [pa.concat_tables(watched.arrived).combine_chunks()]
        watched.rows += arrived.num_rows
        if watched.rows >= LOOKED_AT:
            events = ordered(pa.concat_tables(watched.arrived), plan.bound.schema)
            watched.arrived, watched.rows, watched.waiting = [], 0, _EVENTS_BETWEEN_LOOKS
            look_for_drift(plan, next(iter(events_of_each([plan.bound], events))), LOOKED_AT)


def _is_fitted(plan: Plan) -> bool:
    # Asked without the class: a query without a model does not wait for the model's package, and scipy, to load.
    return bool(getattr(plan.model, "is_fitted", False))

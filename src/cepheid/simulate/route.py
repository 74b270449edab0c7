"""Parcels on a route past many readers: the longer the pattern, the more a single lost reading costs (AYAC)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cepheid.errors import DataError
from cepheid.simulate.gaps import Gap, draw_gaps
from cepheid.simulate.simulation import Simulation, check_at_least, check_share, names_by_code

STEP = Gap("gamma", mean=600.0, shape=2.0)
ARRIVALS = Gap("exponential", mean=5.0)


def route_visits(
    parcels: int = 100_000,
    *,
    readers: int = 6,
    loss: float | Sequence[float] = 0.15,
    happens: float = 0.9,
    step: Gap = STEP,
    arrivals: Gap = ARRIVALS,
    seed: int = 0,
) -> Simulation:
    """Each parcel passes readers R0, R1, ... in turn and goes on to the next with probability `happens`.

    `loss` is each reader's chance to miss it: one number, or one for each reader. The truth has a row per parcel: how
    many readers it passed, whether it came to the end of the route, and how many of its readings were seen.
    """
    check_at_least("parcels", parcels, 1)
    check_at_least("readers", readers, 2)
    missed = [float(loss)] * readers if isinstance(loss, int | float) else [float(each) for each in loss]
    if len(missed) != readers:
        raise DataError(
            f"simulate: {len(missed)} losses for {readers} readers", hint="give one number, or one for each"
        )
    for each in missed:
        check_share("loss", each)
    check_share("happens", happens)
    rng = np.random.default_rng(seed)
    gaps = np.stack([np.zeros(parcels), *(np.ceil(draw_gaps(rng, step, parcels)) for _ in range(readers - 1))])
    begins = np.floor(np.cumsum(draw_gaps(rng, arrivals, parcels)))
    instants = (begins + np.cumsum(np.maximum(gaps, [[0.0]] + [[1.0]] * (readers - 1)), axis=0)).astype(np.int64)
    goes_on = np.concatenate([np.ones((1, parcels), bool), rng.random((readers - 1, parcels)) < happens])
    passed = np.logical_and.accumulate(goes_on, axis=0)
    seen = passed & (rng.random((readers, parcels)) >= np.array(missed)[:, None])
    reader, parcel = np.nonzero(seen)
    order = np.argsort(instants[reader, parcel], kind="stable")
    reader, parcel = reader[order], parcel[order]
    names = tuple(f"R{place}" for place in range(readers))
    events = pa.table(
        {"ts": instants[reader, parcel], "type": names_by_code(reader, names), "parcel": parcel.astype(np.int64)}
    )
    truth = pa.table(
        {"parcel": np.arange(parcels), "passed": passed.sum(axis=0), "arrived": passed[-1], "seen": seen.sum(axis=0)}
    )
    pattern = ", ".join(f"{name} v{place}" for place, name in enumerate(names))
    window = int(readers * step.mean * 4)
    return Simulation(
        events,
        truth,
        f"{parcels} parcels past {readers} readers, loss {loss}",
        f"PATTERN SEQ({pattern})\nWHERE [parcel]\nWITHIN {window}",
    )

"""The food supply chain: an alert at one site, and every shipment it taints (SASE+ §1, its query 2)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.simulate.simulation import Simulation, check_at_least, check_share, names_by_code

WINDOW = 3 * 3600
"""Three hours; times count seconds."""

SUPPLY_CHAIN_QUERY = f"""PATTERN SEQ(Alert a, Shipment+ b[])
WHERE skip_till_any_match(a, b[]) {{
  a.kind = 'contaminated' AND b[1].from = a.site AND b[i].from = b[i-1].to }}
WITHIN {WINDOW}"""

_ALERT_KINDS = ("contaminated", "recalled", "delayed")


def supply_chain(
    events: int = 100_000,
    *,
    sites: int = 80,
    tiers: int = 4,
    alerts: float = 0.01,
    seconds_between: float = 60.0,
    seed: int = 0,
) -> Simulation:
    """Shipments from each tier of sites to the next (farm, plant, warehouse, shop), and alerts at sites.

    A share `alerts` of the events are alerts; a third of those are of kind 'contaminated' (SASE+ calls the attribute
    `type`; here `type` is the event type). Times are whole seconds and never repeat. Columns that an event's type
    does not have are null. Tiers keep chains shorter than `tiers`, so that all of them can be listed.
    The truth has a row per tainted shipment and the alert that taints it: it leaves, within three hours of the alert,
    a site where the alert or an earlier tainted shipment arrived before it. The sites reached are its `to` column.
    """
    check_at_least("events", events, 1)
    check_at_least("tiers", tiers, 2)
    check_at_least("sites", sites, tiers)
    check_share("alerts", alerts)
    check_at_least("seconds_between", seconds_between, 1.0)
    rng = np.random.default_rng(seed)
    ts = np.cumsum(1 + np.rint(rng.exponential(seconds_between - 1.0, events)).astype(np.int64))
    is_alert = rng.random(events) < alerts
    kind = rng.integers(0, len(_ALERT_KINDS), events)
    site = rng.integers(0, sites, events)

    # Tier k holds the sites from bounds[k] up to bounds[k + 1].
    bounds = np.arange(tiers + 1) * sites // tiers
    tier = rng.integers(0, tiers - 1, events)
    source = rng.integers(bounds[tier], bounds[tier + 1])
    target = rng.integers(bounds[tier + 1], bounds[tier + 2])

    names = [f"site {k}" for k in range(sites)]
    no_alert = pa.array(~is_alert)
    table = pa.table(
        {
            "ts": pa.array(ts),
            "type": names_by_code(is_alert.astype(np.int32), ("Shipment", "Alert")),
            "kind": _blank(names_by_code(kind, _ALERT_KINDS), no_alert),
            "site": _blank(names_by_code(site, names), no_alert),
            "from": _blank(names_by_code(source, names), pa.array(is_alert)),
            "to": _blank(names_by_code(target, names), pa.array(is_alert)),
        }
    )
    alert, shipment = _tainted(
        ts, np.flatnonzero(is_alert & (kind == 0)), np.flatnonzero(~is_alert), site, source, target
    )
    truth = pa.table(
        {
            "alert_ts": pa.array(ts[alert]),
            "site": names_by_code(site[alert], names),
            "shipment_ts": pa.array(ts[shipment]),
            "from": names_by_code(source[shipment], names),
            "to": names_by_code(target[shipment], names),
        }
    )
    description = f"A supply chain of {sites} sites: {truth.num_rows} shipments tainted by contaminated sites"
    return Simulation(table, truth, description, SUPPLY_CHAIN_QUERY)


def _blank(values: pa.Array, where: pa.Array) -> pa.Array:
    return pa.compute.if_else(where, pa.scalar(None, values.type), values)


def _tainted(
    ts: NDArray[np.int64],
    alerts: NDArray[np.int64],
    shipments: NDArray[np.int64],
    site: NDArray[np.int64],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs (alert, tainted shipment), found hop by hop for all alerts at once.

    `reached[k]` is the earliest time at which the place k = (alert, site) is tainted; a round lets every shipment in
    an alert's window that leaves a tainted place taint its target, until a round changes nothing.
    """
    begin = np.searchsorted(ts[shipments], ts[alerts], side="right")
    end = np.searchsorted(ts[shipments], ts[alerts] + WINDOW, side="left")
    candidates = end - begin
    alert_number = np.repeat(np.arange(alerts.size), candidates)
    within = np.arange(candidates.sum()) - np.repeat(np.cumsum(candidates) - candidates, candidates)
    shipment = shipments[np.repeat(begin, candidates) + within]

    # Places are numbered densely among those that occur, so that memory follows the pairs, not alerts x sites.
    sites = int(max(site.max(), source.max(), target.max())) + 1
    keys = np.concatenate(
        (
            np.arange(alerts.size) * sites + site[alerts],
            alert_number * sites + source[shipment],
            alert_number * sites + target[shipment],
        )
    )
    places, place = np.unique(keys, return_inverse=True)
    origin, leaves, enters = np.split(place, (alerts.size, alerts.size + shipment.size))
    reached = np.full(places.size, np.iinfo(np.int64).max)
    reached[origin] = ts[alerts]
    departure = ts[shipment]
    while True:
        tainted = reached[leaves] < departure
        before = reached.copy()
        np.minimum.at(reached, enters[tainted], departure[tainted])
        if np.array_equal(before, reached):
            return alerts[alert_number[tainted]], shipment[tainted]

"""Streams with known truth: one generator per story of the papers, seeded and vectorised."""

from __future__ import annotations

from collections.abc import Callable

from cepheid.simulate.clinic import clinic_doses
from cepheid.simulate.cluster import cluster_log
from cepheid.simulate.correlated import correlated_stocks
from cepheid.simulate.gaps import Gap
from cepheid.simulate.imprecise import imprecise_series
from cepheid.simulate.retail import retail_visits
from cepheid.simulate.route import route_visits
from cepheid.simulate.sase import sase_events
from cepheid.simulate.simulation import Simulation
from cepheid.simulate.stocks import stock_ticks
from cepheid.simulate.stops import stop_visits
from cepheid.simulate.supply_chain import supply_chain

SCENARIOS: dict[str, Callable[..., Simulation]] = {
    "sase": sase_events,
    "stocks": stock_ticks,
    "correlated": correlated_stocks,
    "time": imprecise_series,
    "cluster": cluster_log,
    "rfid": retail_visits,
    "route": route_visits,
    "clinic": clinic_doses,
    "stops": stop_visits,
    "supply-chain": supply_chain,
}
"""Every generator by name. The first argument is the size (events; tasks for cluster, tags for rfid and stops); all
others are keyword arguments with defaults, `seed` among them."""

__all__ = [
    "SCENARIOS",
    "Gap",
    "Simulation",
    "clinic_doses",
    "cluster_log",
    "correlated_stocks",
    "imprecise_series",
    "retail_visits",
    "route_visits",
    "sase_events",
    "stock_ticks",
    "stop_visits",
    "supply_chain",
]

"""Small tables of events to try queries on: `cepheid.examples.logins()` and others. Each call gives the same rows.

>>> from cepheid import examples, match
>>> thefts = match(examples.shoplifting(), "PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag] WITHIN 12 hours")
>>> len(thefts)
3
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

__all__ = ["baggage", "flights", "heartbeats", "logins", "orders", "shoplifting", "warnings"]

DAY = pd.Timestamp("2026-03-02 08:00:00", tz="UTC")


def shoplifting(tags: int = 60) -> pd.DataFrame:
    """Readings of tagged articles in a shop: `ts`, `type` (Shelf, Register, Exit) and `tag`.

    Three of 60 articles leave the shop without passing a register. Times are distinct.

    >>> shoplifting().head(3)[["type", "tag"]].to_dict("records")
    [{'type': 'Shelf', 'tag': 1}, {'type': 'Register', 'tag': 1}, {'type': 'Exit', 'tag': 1}]
    """
    rng = np.random.default_rng(1)
    rows: list[dict[str, Any]] = []
    for tag in range(1, tags + 1):
        picked = tag * 240.0 + rng.uniform(0, 60)
        stolen = tag % 20 == 7
        paid = picked + rng.uniform(300, 1800)
        left = paid + rng.uniform(30, 200)
        rows.append({"at": picked, "type": "Shelf", "tag": tag})
        if not stolen:
            rows.append({"at": paid, "type": "Register", "tag": tag})
        rows.append({"at": left, "type": "Exit", "tag": tag})
        if tag == 1:  # the first visit is short, so that the first rows of the table tell the story
            rows[1]["at"], rows[2]["at"] = picked + 40, picked + 70
    return _table(rows)


def logins(users: int = 40) -> pd.DataFrame:
    """An authentication log: `ts`, `type` (Failed, Accepted), `user` and `host`.

    Two attackers try five or more passwords within a minute before one is accepted. Times are whole seconds, so that
    some events share a time, as in real logs; the order of the rows is the order of arrival.
    """
    rng = np.random.default_rng(2)
    rows: list[dict[str, Any]] = []
    for number in range(users):
        user, host = f"user{number:02d}", f"10.0.0.{number % 12 + 1}"
        at = rng.uniform(0, 6 * 3600)
        for _ in range(int(rng.integers(0, 3))):
            rows.append({"at": at, "type": "Failed", "user": user, "host": host})
            at += rng.uniform(5, 60)
        rows.append({"at": at, "type": "Accepted", "user": user, "host": host})
    for user, host, begins, tries in (("admin", "203.0.113.9", 7_205, 9), ("backup", "198.51.100.4", 15_332, 6)):
        times = begins + np.cumsum(rng.uniform(0.2, 7, tries + 1))
        rows += [{"at": float(at), "type": "Failed", "user": user, "host": host} for at in times[:-1]]
        rows.append({"at": float(times[-1]), "type": "Accepted", "user": user, "host": host})
    return _table(rows, "s")


def flights(aircraft: int = 12) -> pd.DataFrame:
    """Legs of aircraft over two days: `ts`, `type` (Departed, Arrived, Diverted), `aircraft`, `airport`, `delay`.

    `delay` is in minutes. Some aircraft arrive late and depart late again; one lands at another airport.
    """
    rng = np.random.default_rng(3)
    airports = ("ZRH", "LHR", "CDG", "MAD", "VIE", "OSL")
    rows: list[dict[str, Any]] = []
    for number in range(aircraft):
        name, at, place, late = f"HB-{chr(65 + number)}XA", rng.uniform(0, 7200), number % 6, 0.0
        for leg in range(6):
            late = max(0.0, late * 0.6 + rng.exponential(8) + (45 if (number + leg) % 11 == 4 else 0) - 6)
            rows.append(_leg(at + 60 * late, "Departed", name, airports[place], late))
            place = (place + 1 + leg % 3) % 6
            kind = "Diverted" if (number, leg) == (5, 3) else "Arrived"
            late = max(0.0, late + rng.normal(0, 6))
            at += rng.uniform(3600, 9000)
            rows.append(_leg(at + 60 * late, kind, name, airports[place], late))
            at += 3 * 3600 if leg == 2 else rng.uniform(3000, 4800)
    return _table(rows)


def heartbeats(machines: int = 8, hours: int = 3) -> pd.DataFrame:
    """A heartbeat a minute from each machine: `ts`, `type` (Beat, Alarm), `machine` and `temperature`.

    Machine 3 falls silent for twenty minutes; machine 6 grows hot, raises alarms and stops.
    """
    rng = np.random.default_rng(4)
    rows: list[dict[str, Any]] = []
    for machine in range(1, machines + 1):
        for minute in range(60 * hours):
            if (machine == 3 and 80 <= minute < 100) or (machine == 6 and minute >= 150):
                continue
            heat = 0.35 * max(0, minute - 70) if machine == 6 else 0.0
            degrees = round(55 + heat + float(rng.normal(0, 1.2)), 1)
            at = 60 * minute + machine + rng.uniform(0, 0.9)
            rows.append({"at": at, "type": "Beat", "machine": machine, "temperature": degrees})
            if degrees > 78 and minute % 4 == 0:
                rows.append({"at": at + 5, "type": "Alarm", "machine": machine, "temperature": degrees})
    return _table(rows)


def orders(customers: int = 80) -> pd.DataFrame:
    """A shop's orders over a week: `ts`, `type` (View, Cart, Ordered, Paid, Shipped), `customer` and `amount`.

    Fewer customers reach each step than the one before. Some orders are never paid, and a few are shipped unpaid.
    """
    rng = np.random.default_rng(5)
    rows: list[dict[str, Any]] = []
    for customer in range(1, customers + 1):
        at, amount = rng.uniform(0, 5 * 86_400), round(float(rng.lognormal(3.6, 0.7)), 2)
        for kind, share, wait in (
            ("View", 1.0, 0.0),
            ("Cart", 0.7, 600.0),
            ("Ordered", 0.75, 1200.0),
            ("Paid", 0.85, 7200.0),
            ("Shipped", 0.95, 43_200.0),
        ):
            if rng.random() > share:
                if kind != "Paid" or customer % 3:
                    break
                continue
            at += rng.exponential(wait) + (1 if wait else 0)
            rows.append({"at": at, "type": kind, "customer": customer, "amount": amount})
    return _table(rows)


def baggage(bags: int = 1500) -> pd.DataFrame:
    """Bags that change planes, over ten days: `ts`, `type` (Landed, Loaded, Departed), `bag` and `flight`.

    Most bags are loaded within an hour, and the next flight departs after about 75 minutes. One bag in twelve goes
    astray and misses it, and so do a few that come late.
    """
    rng = np.random.default_rng(6)
    rows: list[dict[str, Any]] = []
    for bag in range(1, bags + 1):
        landed, flight = rng.uniform(0, 10 * 86_400), f"CX{int(rng.integers(100, 140))}"
        loaded, departs = landed + rng.gamma(4, 500), landed + rng.gamma(30, 150)
        loaded = np.inf if rng.random() < 1 / 12 else loaded
        moments = [(landed, "Landed"), (departs, "Departed")] + [(loaded, "Loaded")] * (loaded < departs)
        rows += [{"at": at, "type": kind, "bag": bag, "flight": flight} for at, kind in moments]
    return _table(rows)


def warnings(machines: int = 400) -> pd.DataFrame:
    """A month of a plant's machines: `ts`, `type` (Warning, Alarm, Failure) and `machine`.

    Half of the warnings are followed by an alarm, and three of four alarms by a failure.
    """
    rng = np.random.default_rng(7)
    rows: list[dict[str, Any]] = []
    for machine in range(1, machines + 1):
        at = rng.uniform(0, 29 * 86_400)
        for kind, share, wait in (("Warning", 1.0, 0.0), ("Alarm", 0.5, 900.0), ("Failure", 0.75, 1800.0)):
            if rng.random() > share:
                break
            at += rng.gamma(2, wait) if wait else 0.0
            rows.append({"at": at, "type": kind, "machine": machine})
    return _table(rows)


def _leg(at: float, kind: str, aircraft: str, airport: str, late: float) -> dict[str, Any]:
    return {"at": at, "type": kind, "aircraft": aircraft, "airport": airport, "delay": round(late)}


def _table(rows: list[dict[str, Any]], unit: str = "ms") -> pd.DataFrame:
    """The rows in the order of time, with timestamps of the given precision."""
    table = pd.DataFrame(rows).sort_values("at", kind="stable", ignore_index=True)
    moments = (DAY + pd.to_timedelta(table.pop("at"), unit="s")).dt.floor(unit).astype("datetime64[us, UTC]")
    table.insert(0, "ts", moments)
    return table

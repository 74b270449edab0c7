"""The clinic: who took which medicine when, and who took too much antibiotics (SASE §2.3, healthcare)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.simulate.simulation import Simulation, check_at_least, check_share, names_by_code

MEDICINES = ("Antibiotics", "Painkiller", "Insulin", "Statin")
LIMIT = 1_000
"""Milligrams that two doses together must not exceed ..."""
WINDOW = 240
"""... when they lie less than four hours apart; times count minutes."""

CLINIC_QUERY = f"""EVENT SEQ(MEDICINE-TAKEN x, MEDICINE-TAKEN y)
WHERE [name] AND [medicine = 'Antibiotics'] AND x.amount + y.amount > {LIMIT}
WITHIN {WINDOW}"""

_INTERVAL = 480
_JITTER = 60


def clinic_doses(
    events: int = 100_000, *, patients: int | None = None, extra: float = 0.05, antibiotics: float = 0.4, seed: int = 0
) -> Simulation:
    """Every patient takes one prescribed medicine every eight hours, give or take an hour; some doses are repeated.

    A share `extra` of all events is a second dose within four hours of a prescribed one. `antibiotics` is the share
    of patients on antibiotics; the first patient is John, who is one of them. By default one patient per 50 events.
    The truth is every pair of doses that SASE's query describes, for all patients: both antibiotics, the second later
    by less than four hours, together more than 1000 mg.
    """
    check_at_least("events", events, 1)
    check_share("extra", extra)
    check_share("antibiotics", antibiotics)
    count = max(1, events // 50) if patients is None else patients
    check_at_least("patients", count, 1)
    rng = np.random.default_rng(seed)
    repeated = int(events * extra / (1.0 + extra))
    prescribed = events - repeated

    medicine_of = np.where(rng.random(count) < antibiotics, 0, rng.integers(1, len(MEDICINES), count))
    medicine_of[0] = 0
    first_dose = rng.integers(_JITTER, _JITTER + _INTERVAL, count)
    number = np.arange(prescribed)
    patient = number % count
    ts = first_dose[patient] + number // count * _INTERVAL + rng.integers(-_JITTER, _JITTER + 1, prescribed)
    amount = rng.choice((250, 500, 500, 600), prescribed)

    again = rng.choice(prescribed, repeated, replace=False)
    ts = np.concatenate((ts, ts[again] + rng.integers(5, WINDOW, repeated)))
    patient = np.concatenate((patient, patient[again]))
    amount = np.concatenate((amount, rng.choice((250, 500, 750), repeated)))

    order = np.argsort(ts, kind="stable")
    ts, patient, amount = ts[order], patient[order], amount[order]
    names = ["John", *(f"Patient {k}" for k in range(1, count))]
    table = pa.table(
        {
            "ts": pa.array(ts),
            "type": pa.repeat("MEDICINE-TAKEN", events),
            "name": names_by_code(patient, names),
            "medicine": names_by_code(medicine_of[patient], MEDICINES),
            "amount": pa.array(amount),
        }
    )
    first, second = _overdoses(ts, patient, amount, medicine_of[patient] == 0)
    truth = pa.table(
        {
            "name": names_by_code(patient[first], names),
            "first_ts": pa.array(ts[first]),
            "second_ts": pa.array(ts[second]),
            "total": pa.array(amount[first] + amount[second]),
        }
    )
    return Simulation(
        table, truth, f"Doses of {count} patients, {truth.num_rows} overdoses of antibiotics", CLINIC_QUERY
    )


def _overdoses(
    ts: NDArray[np.int64], patient: NDArray[np.int64], amount: NDArray[np.int64], relevant: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row numbers of both doses. Compares each dose with the next of the same patient, the one after, and so on."""
    rows = np.flatnonzero(relevant)
    rows = rows[np.lexsort((ts[rows], patient[rows]))]
    pairs: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = [(rows[:0], rows[:0])]
    for lag in range(1, rows.size):
        earlier, later = rows[:-lag], rows[lag:]
        close = (patient[earlier] == patient[later]) & (ts[later] - ts[earlier] < WINDOW)
        if not close.any():
            break
        over = close & (ts[later] > ts[earlier]) & (amount[earlier] + amount[later] > LIMIT)
        pairs.append((earlier[over], later[over]))
    first, second = (np.concatenate(side) for side in zip(*pairs, strict=True))
    order = np.lexsort((first, second))
    return first[order], second[order]

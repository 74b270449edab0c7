"""The retail store: tagged goods pass shelf, register and exit readers, and readers miss some (AYAC §2.2, SASE Q2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.errors import DataError
from cepheid.simulate.gaps import Gap, draw_gaps
from cepheid.simulate.simulation import (
    Simulation,
    as_function,
    check_at_least,
    check_choice,
    check_share,
    names_by_code,
)

READERS = ("Shelf", "Register", "Exit")
CATEGORIES = ("food", "drinks", "clothing", "toys", "books")
OPENING = np.datetime64("2024-01-01T08:00:00", "us")
"""Second 0 of the store, when times are asked for as timestamps."""

RETAIL_QUERY = """PATTERN SEQ(Shelf x, !(Register y), Exit z)
WHERE [tag_id]
WITHIN {window}"""

ARRIVALS = Gap("exponential", mean=1.0)
TO_REGISTER = Gap("gamma", mean=900.0, shape=2.0)
TO_EXIT = Gap("exponential", mean=60.0)
"""Seconds between tags, from shelf to register, and on to the exit."""

_SECOND = 1_000_000


@dataclass(frozen=True)
class RetailVisits:
    """One visit per tag: picked from a shelf, paid at a register, carried out; thieves skip the register.

    `loss` is each reader's chance to miss a tag: one number, or one per reader name (Shelf, Register, Exit; others
    lose nothing). `theft` is the share that never goes to a register, `stay` the share that never leaves.
    `exit_clock` says what the time to the exit runs from:
    - "register": from the payment, as in a store. A thief takes as long as a customer but does not stop to pay.
    - "shelf": from the shelf, independent of the payment, which happens only if it comes first. Here AYAC's
      assumptions hold exactly (a register visit within T of the shelf has probability F(T), whatever the exit does),
      so the probabilities it reports can be checked against the truth. Give `to_exit` a mean of the order of
      `to_register` then, or most goods leave unpaid.
    Times are whole seconds (each gap rounded up, so at least one), or microsecond timestamps in UTC.

    The truth has a row per tag: when it passed each reader (null: it did not), whether the reading was seen (null:
    there was none), and `stolen`: it left and had not paid.
    """

    tags: int = 100_000
    _: KW_ONLY
    loss: float | Mapping[str, float] = 0.05
    theft: float = 0.02
    stay: float = 0.0
    arrivals: Gap = ARRIVALS
    to_register: Gap = TO_REGISTER
    to_exit: Gap = TO_EXIT
    exit_clock: str = "register"
    timestamps: bool = False
    seed: int = 0

    def __call__(self) -> Simulation:
        """The store."""
        check_at_least("tags", self.tags, 1)
        check_share("theft", self.theft)
        check_share("stay", self.stay)
        check_choice("exit_clock", self.exit_clock, ["register", "shelf"])
        missed = _loss_by_reader(self.loss)
        rng = np.random.default_rng(self.seed)
        unit = _SECOND if self.timestamps else 1
        shelf = np.floor(np.cumsum(draw_gaps(rng, self.arrivals, self.tags)) * unit).astype(np.int64)
        register_gap = _whole_gaps(rng, self.to_register, self.tags, unit)
        exit_gap = _whole_gaps(rng, self.to_exit, self.tags, unit)
        honest = rng.random(self.tags) >= self.theft
        left = rng.random(self.tags) >= self.stay
        if self.exit_clock == "register":
            exit_ = shelf + register_gap + exit_gap
            paid = honest
        else:
            exit_ = shelf + exit_gap
            paid = honest & (~left | (register_gap < exit_gap))
        passed = np.stack((np.ones(self.tags, bool), paid, left))
        instants = np.stack((shelf, shelf + register_gap, exit_))
        seen = passed & (rng.random((3, self.tags)) >= missed[:, None])
        category = rng.integers(0, len(CATEGORIES), self.tags)

        window = "12 hours" if self.timestamps else str(12 * 3600)
        description = f"RFID tags in a store: {self.tags} visits, {int((left & ~paid).sum())} thefts, loss {self.loss}"
        return Simulation(
            _event_table(instants, seen, category, self.timestamps),
            _truth_table(instants, passed, seen, self.timestamps),
            description,
            RETAIL_QUERY.format(window=window),
        )


retail_visits = as_function(RetailVisits)


def _loss_by_reader(loss: float | Mapping[str, float]) -> NDArray[np.float64]:
    if isinstance(loss, Mapping):
        unknown = sorted(set(loss) - set(READERS))
        if unknown:
            raise DataError(
                f"simulate: loss names {unknown[0]!r}, which is not a reader",
                hint=f"the readers are {', '.join(READERS)}",
            )
        shares = [float(loss.get(reader, 0.0)) for reader in READERS]
    else:
        shares = [float(loss)] * len(READERS)
    for reader, share in zip(READERS, shares, strict=True):
        check_share(f"loss at {reader}", share)
    return np.array(shares)


def _whole_gaps(rng: np.random.Generator, gap: Gap, count: int, unit: int) -> NDArray[np.int64]:
    """Gaps in whole units of the time column, of which a second has `unit`; never 0, since a tag moves in order."""
    return np.maximum(1, np.ceil(draw_gaps(rng, gap, count) * unit)).astype(np.int64)


def _event_table(
    instants: NDArray[np.int64], seen: NDArray[np.bool_], category: NDArray[np.int64], timestamps: bool
) -> pa.Table:
    reader, tag = np.nonzero(seen)
    ts = instants[reader, tag]
    order = np.argsort(ts, kind="stable")
    reader, tag = reader[order], tag[order]
    return pa.table(
        {
            "ts": _time_column(ts[order], timestamps),
            "type": names_by_code(reader, READERS),
            "tag_id": pa.array(tag.astype(np.int64, copy=False)),
            "category": names_by_code(category[tag], CATEGORIES),
        }
    )


def _truth_table(
    instants: NDArray[np.int64], passed: NDArray[np.bool_], seen: NDArray[np.bool_], timestamps: bool
) -> pa.Table:
    columns: dict[str, pa.Array] = {
        "tag_id": pa.array(np.arange(instants.shape[1], dtype=np.int64)),
        "stolen": pa.array(passed[2] & ~passed[1]),
    }
    for position, reader in enumerate(("shelf", "register", "exit")):
        columns[f"{reader}_ts"] = _time_column(instants[position], timestamps, missing=~passed[position])
        columns[f"{reader}_seen"] = pa.array(seen[position], mask=~passed[position])
    return pa.table(columns)


def _time_column(instants: NDArray[np.int64], timestamps: bool, missing: NDArray[np.bool_] | None = None) -> pa.Array:
    if not timestamps:
        return pa.array(instants, mask=missing)
    return pa.array(instants + OPENING.astype(np.int64), pa.int64(), mask=missing).cast(pa.timestamp("us", tz="UTC"))

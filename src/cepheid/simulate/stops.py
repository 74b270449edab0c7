"""Tags that pass stops in turn, some of them bypassed, some readings lost: worlds in which every probability is known.

What may be different from world to world: which stops are bypassed, how often each reader loses a tag and whether it
loses more in the evening, how many visits a tag makes, and whether some tags are slower than others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.errors import DataError
from cepheid.simulate.gaps import Gap, draw_gaps
from cepheid.simulate.simulation import Simulation, as_function, check_at_least, check_share, names_by_code

ARRIVALS = Gap("exponential", mean=5.0)
DAY = 86_400
EVENING = 64_800
"""Seconds of a day, and when its evening begins."""

_BETWEEN_VISITS = 3.0  # windows


@dataclass(frozen=True)
class StopVisits:
    """Each tag passes stops S0, S1, ... in turn, `visits` times.

    `loss` is each reader's chance to miss a tag and `bypass` each stop's chance to be left out: one number, or one for
    each stop. A single `bypass` concerns the stops between the first and the last. `steps` are the mean times to each
    stop from the one that the tag stopped at before, gamma distributed with `shape`. A share of `slow` tags takes
    `slowness` times as long everywhere. `evening_loss` is the loss of every reader from 18:00 to midnight, if it is
    another one then. `bypass_again` is the chance to leave out a stop that may be bypassed right behind one that was
    left out, if it is another one then. On a share of `bad_trips` every reader loses `bad_loss`. Times are whole
    seconds. The truth has a row per event that happened: when, where, and whether it was seen.
    """

    tags: int = 100_000
    _: KW_ONLY
    stops: int = 4
    loss: float | Sequence[float] = 0.15
    bypass: float | Sequence[float] = 0.0
    steps: float | Sequence[float] = 600.0
    shape: float = 2.0
    visits: int = 1
    slow: float = 0.0
    slowness: float = 4.0
    evening_loss: float | None = None
    bypass_again: float | None = None
    bad_trips: float = 0.0
    bad_loss: float = 0.7
    arrivals: Gap = ARRIVALS
    seed: int = 0

    def __call__(self) -> Simulation:
        """The world."""
        self._check()
        tags, stops, visits = self.tags, self.stops, self.visits
        loss, bypass, steps = self.loss, self.bypass, self.steps
        inner = [0.0, *[bypass] * (stops - 2), 0.0] if isinstance(bypass, int | float) else bypass
        missed, left_out = _per_stop("loss", loss, stops), _per_stop("bypass", inner, stops)
        means = _per_stop("steps", [steps] * (stops - 1) if isinstance(steps, int | float) else steps, stops - 1, False)
        rng = np.random.default_rng(self.seed)
        window = int(6 * means.sum() * (self.slowness if self.slow else 1.0))
        trips = tags * visits
        tag, visit = np.repeat(np.arange(tags), visits), np.tile(np.arange(visits), tags)
        factor = np.where(rng.random(tags) < self.slow, self.slowness, 1.0)[tag]
        begins = np.floor(np.cumsum(draw_gaps(rng, self.arrivals, tags)))[tag]
        begins += visit * window * (_BETWEEN_VISITS + rng.exponential(1.0, trips))
        stopped = rng.random((stops, trips)) >= left_out[:, None]
        if self.bypass_again is not None:
            again = rng.random((stops, trips)) >= self.bypass_again
            for stop in np.flatnonzero(left_out[1:] > 0.0) + 1:
                stopped[stop] = np.where(stopped[stop - 1], stopped[stop], again[stop])
        # A stop that is left out takes no time: the next one is measured from where the tag stopped before.
        gaps = rng.gamma(self.shape, 1.0 / self.shape, (stops - 1, trips)) * means[:, None] * factor
        begun = np.logical_or.accumulate(stopped, axis=0)
        gaps = np.where(stopped[1:] & begun[:-1], np.maximum(np.ceil(gaps), 1.0), 0.0)
        instants = (begins + np.concatenate([np.zeros((1, trips)), np.cumsum(gaps, axis=0)])).astype(np.int64)
        chance = np.broadcast_to(missed[:, None], instants.shape)
        if self.evening_loss is not None:
            chance = np.where(instants % DAY >= EVENING, self.evening_loss, chance)
        if self.bad_trips:
            chance = np.where(rng.random(trips) < self.bad_trips, self.bad_loss, chance)
        seen = stopped & (rng.random((stops, trips)) >= chance)
        names = tuple(f"S{place}" for place in range(stops))
        pattern = ", ".join(f"{name} v{place}" for place, name in enumerate(names))
        return Simulation(
            _table(instants, seen, tag, names),
            _table(instants, stopped, tag, names, seen),
            f"{tags} tags past {stops} stops, loss {loss}, bypassed {bypass}",
            f"PATTERN SEQ({pattern})\nWHERE [tag]\nWITHIN {window}",
        )

    def _check(self) -> None:
        for name, least in (("tags", 1), ("stops", 2), ("visits", 1)):
            check_at_least(name, getattr(self, name), least)
        for name in ("slow", "evening_loss", "bypass_again", "bad_trips", "bad_loss"):
            check_share(name, getattr(self, name) or 0.0)


stop_visits = as_function(StopVisits)


def _per_stop(name: str, value: float | Sequence[float], count: int, share: bool = True) -> NDArray[np.float64]:
    numbers = [float(value)] * count if isinstance(value, int | float) else [float(each) for each in value]
    if len(numbers) != count:
        raise DataError(f"simulate: {len(numbers)} numbers in {name}, not {count}", hint="give one, or one for each")
    for each in numbers:
        if share:
            check_share(name, each)
        else:
            check_at_least(name, each, 0.0)
    return np.array(numbers)


def _table(
    instants: NDArray[np.int64],
    kept: NDArray[np.bool_],
    tag: NDArray[np.int64],
    names: Sequence[str],
    seen: NDArray[np.bool_] | None = None,
) -> pa.Table:
    stop, trip = np.nonzero(kept)
    order = np.argsort(instants[stop, trip], kind="stable")
    stop, trip = stop[order], trip[order]
    columns = {"ts": instants[stop, trip], "type": names_by_code(stop, names), "tag": tag[trip].astype(np.int64)}
    return pa.table(columns if seen is None else {**columns, "seen": seen[stop, trip]})

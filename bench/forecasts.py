"""Are forecasts true as often as they say, and how long do they take? Simulated trips.

python -m bench.forecasts            every world at moments drawn at random, with the true model and with a fitted one
python -m bench.forecasts speed      forecasts of 100,000 open partial matches; FORECAST beside OUTPUT PARTIAL
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import cepheid
from cepheid import forecast
from cepheid.model import (
    Empirical,
    Exponential,
    Gamma,
    GapDistribution,
    LogNormal,
    Model,
    SegmentItem,
    Uniform,
    Weibull,
)
from cepheid.model.forecast import forecast_table

Floats = npt.NDArray[np.float64]
TRIPS = 40_000
MOMENTS = 24
HORIZON = 40_000.0
BINS = 10


@dataclass(frozen=True)
class World:
    """Trips past components in turn; negated ones are written with a gap of their own, counted from the one before."""

    name: str
    pattern: str  # components by variable, `!` before a negated one
    gaps: dict[str, GapDistribution]
    loss: dict[str, float] = field(default_factory=dict)
    window: int = 600
    holds: bool = True  # does the world keep the model's assumptions?
    slow: float = 0.0  # share of trips in which everything takes three times as long

    @property
    def components(self) -> list[tuple[str, bool]]:
        """Variables in order, and whether they are negated."""
        return [(each.removeprefix("!"), each.startswith("!")) for each in self.pattern.split()]

    @property
    def query(self) -> str:
        """The pattern as a query."""
        named = [(f"{name.upper()} {name}", absent) for name, absent in self.components]
        parts = [f"!({text})" if absent else text for text, absent in named]
        return f"PATTERN SEQ({', '.join(parts)}) WHERE [id] WITHIN {self.window}"

    @property
    def model(self) -> Model:
        """The true one."""
        return Model(loss={**self.loss, "*": 0.0}, gaps=self.gaps)


WORLDS = (
    World("one wait", "a b", {"b": Exponential(200)}),
    World("two waits", "a b c", {"b": Gamma(2, 60), "c": Gamma(3, 50)}),
    World("bypassed stops", "a b c", {"b": Gamma(2, 60, 0.7), "c": Gamma(3, 50, 0.85)}),
    World("losses of 30%", "a b c", {"b": Gamma(2, 60, 0.9), "c": Gamma(3, 50, 0.8)}, {"b": 0.3, "c": 0.3}),
    World("heavy tails", "a b c", {"b": LogNormal(4, 1.2, 0.9), "c": LogNormal(4.3, 1.0)}),
    World("narrow and wide", "a b c d", {"b": Uniform(20, 60), "c": Weibull(1.5, 120), "d": Exponential(90, 0.8)}),
    World("absence at the end", "a !n", {"n": Exponential(400, 0.7)}, {"n": 0.1}),
    World("absence between", "a !n b", {"n": Exponential(500, 0.5), "b": Gamma(3, 60, 0.9)}, {"n": 0.2}),
    World("two-speed gaps", "a b c", {"b": Empirical((0, 30, 90, 240, 360), (0.2, 0.45, 0.05, 0.3)),
                                      "c": Empirical((0, 40, 80, 200, 280), (0.3, 0.3, 0.1, 0.3), 0.9)}),
    World("two speeds", "a b c", {"b": Gamma(2, 60), "c": Gamma(3, 50)}, slow=0.3),
    World("losses and absence", "a b !n c", {"b": Gamma(2, 60), "n": Exponential(300, 0.4), "c": Gamma(3, 50)},
          {"b": 0.2, "c": 0.1, "n": 0.1}),
)  # fmt: skip


@dataclass(frozen=True)
class Trips:
    """When each component of each trip happens (infinity: never), and whether that was seen."""

    times: dict[str, Floats]
    seen: dict[str, npt.NDArray[np.bool_]]

    def events(self) -> pa.Table:
        """What was seen, in the order of time."""
        rows = []
        for name, times in self.times.items():
            ids = np.flatnonzero(np.isfinite(times) & self.seen[name])
            rows.append((times[ids], np.full(len(ids), name.upper()), ids))
        at, kinds, ids = (np.concatenate([row[place] for row in rows]) for place in range(3))
        order = np.argsort(at, kind="stable")
        return pa.table({"ts": at[order].astype(np.int64), "type": kinds[order], "id": ids[order]})


def draw(gap: GapDistribution, size: int, rng: np.random.Generator) -> Floats:
    """Gaps by halving the interval in which their distribution reaches a drawn share."""
    share, low, high = rng.random(size), np.zeros(size), np.full(size, 1e7)
    for _ in range(55):
        middle = (low + high) / 2
        below = gap.cdf(middle) < share
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(share < gap.happens, high, np.inf)


def simulate(world: World, trips: int, rng: np.random.Generator) -> Trips:
    """Trips as the model has them: a component that does not happen takes no time."""
    last = np.sort(rng.uniform(0, HORIZON, trips)).round()
    factor = np.where(rng.random(trips) < world.slow, 3.0, 1.0)
    times: dict[str, Floats] = {}
    seen: dict[str, npt.NDArray[np.bool_]] = {}
    for name, absent in world.components:
        at = last if name == "a" else last + np.maximum(np.ceil(factor * draw(world.gaps[name], trips, rng)), 1.0)
        times[name] = at
        seen[name] = rng.random(trips) >= world.loss.get(name, 0.0)
        if not absent:
            last = np.where(np.isfinite(at), at, last)
    # A negated event behind the next positive one is of no interest, and does not happen in the model.
    order = [name for name, _ in world.components]
    for place, (name, absent) in enumerate(world.components):
        if absent and place + 1 < len(order):
            times[name] = np.where(times[name] < times[order[place + 1]], times[name], np.inf)
    return Trips(times, seen)


def completes(world: World, trips: Trips) -> npt.NDArray[np.bool_]:
    """Which trips are matches, seen or not."""
    positives = [name for name, absent in world.components if not absent]
    whole = np.all([np.isfinite(trips.times[name]) for name in positives], axis=0)
    end = trips.times["a"] + world.window
    whole &= trips.times[positives[-1]] < end
    for place, (name, absent) in enumerate(world.components):
        if absent:
            last = place + 1 == len(world.components)
            until = end if last else trips.times[world.components[place + 1][0]]
            whole &= ~(trips.times[name] < until)
    return np.asarray(whole)


def judged(world: World, model: Model, trips: Trips, moments: Sequence[int]) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """What is forecast of all partial matches in some moments, and what became of them."""
    events, truth = trips.events(), completes(world, trips)
    chances, outcomes = [], []
    for at in moments:
        found = forecast(events, world.query, model=model, at=at)
        chances.append(np.asarray(found["probability"]))
        outcomes.append(truth[np.asarray(found["a"].combine_chunks().field("id"))])
    return np.concatenate(chances), np.concatenate(outcomes)


def calibration_error(chances: Floats, outcomes: npt.NDArray[np.bool_]) -> float:
    """The mean distance of predicted and observed shares, by predicted decile."""
    order = np.argsort(chances)
    parts = np.array_split(order, BINS)
    off = [abs(chances[part].mean() - outcomes[part].mean()) * len(part) for part in parts if len(part)]
    return float(sum(off) / len(chances))


def judge(world: World, trips: int = TRIPS, seed: int = 1, fitted: bool = False) -> tuple[float, int]:
    """The calibration error in a world, and of how many forecasts."""
    rng = np.random.default_rng(seed)
    model = world.model
    if fitted:
        history = simulate(world, trips, rng).events()
        known = {name: world.loss.get(name, 0.0) for name, _ in world.components}
        model = cepheid.fit(history, world.query, loss=known)
    moments = [int(each) for each in rng.uniform(0.1 * HORIZON, 0.95 * HORIZON, MOMENTS)]
    chances, outcomes = judged(world, model, simulate(world, trips, rng), moments)
    return calibration_error(chances, outcomes), len(chances)


def seconds(action: Callable[[], object], times: int = 3) -> float:
    """The best of some runs."""
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        action()
        taken.append(time.perf_counter() - begin)
    return min(taken)


def matched(events: pa.Table, query: str, model: Model | None) -> int:
    """The results of a batch."""
    return len(cepheid.match(events, query, **({} if model is None else {"model": model})))


def streamed(events: pa.Table, query: str, model: Model | None, size: int = 20_000) -> int:
    """The results of a live query that gets events in pieces."""
    live = cepheid.live(query, events.schema, **({} if model is None else {"model": model}))
    found = [live.send(events.slice(begin, size)) for begin in range(0, len(events), size)]
    return sum(len(each) for each in [*found, live.finish()])


def speed() -> None:
    """What 100,000 open partial matches take, and FORECAST beside OUTPUT PARTIAL on the same stream."""
    rng, world, number = np.random.default_rng(1), WORLDS[1], 100_000
    query, model = world.query, world.model
    table = forecast_table(tuple(SegmentItem("missing", 0.0, gap) for gap in model.gaps.values()), float(world.window))
    elapsed, left = rng.uniform(0, 300, number), rng.uniform(300, 600, number)
    print(f"{number:,} partial matches, all different:")
    print(f"  probability and instants {seconds(lambda: table.forecast(elapsed, left)):.2f} s")
    print(f"  when 80% is reached      {seconds(lambda: table.reached(left, 0.8)):.2f} s")
    waiting = {"ts": np.sort(rng.integers(0, 300, number)), "type": ["A"] * number, "id": np.arange(number)}
    open_ones = pa.table(waiting)
    print(f"  cepheid.forecast         {seconds(lambda: forecast(open_ones, query, model=model)):.2f} s")
    print(f"  FORECAST 80%             {seconds(partial(matched, open_ones, query + ' FORECAST 80%', model)):.2f} s")
    events = simulate(world, 60_000, rng).events()
    print(f"{len(events):,} events, FORECAST 80% and OUTPUT PARTIAL:")
    for name, strategy in (("any", "[id]"), ("next", "skip_till_next_match { [id] }")):
        text = query.replace("[id]", strategy)
        for how, action in (("batch", matched), ("live", streamed)):
            one = seconds(partial(action, events, text + " FORECAST 80%", model))
            two = seconds(partial(action, events, text + " OUTPUT PARTIAL", None))
            print(f"  skip_till_{name:4} {how:5} {one:.2f} s and {two:.2f} s: {one / two:.2f} times")


def main() -> None:
    """A line for each world."""
    if sys.argv[1:] == ["speed"]:
        return speed()
    print(f"{'world':22} {'forecasts':>9} {'true model':>11} {'fitted':>8}")
    for world in WORLDS:
        if len(sys.argv) > 1 and sys.argv[1] not in world.name:
            continue
        error, count = judge(world)
        print(f"{world.name:22} {count:9} {error:11.4f} {judge(world, fitted=True)[0]:8.4f}", flush=True)


if __name__ == "__main__":
    main()

"""Are the probabilities of missing events honest? Worlds with known truth: what was said beside what was true.

A model is fitted on one history of a world and judged on another. A match counts where something is missing; it is true
if every event it calls missing happened unseen, in its place, and nothing that it negates did. Each world is judged
three times, with histories that were not looked at while the formulas and the fit were made; the worst one counts.
The same is asked of the intervals of a fit: how many of 200 hold the truth?
"""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import cepheid
from bench.measure import on_one_core, plot_lines, print_table, save
from cepheid.model import Trips, fit_trips
from cepheid.simulate import Simulation, retail_visits, stop_visits
from cepheid.simulate.gaps import Gap

BINS = 10
LEAST = 0.01
# A history to fit on and another one to judge by. Seeds 1 and 2 were used while the fit was made, 7001 to 7006 when the
# length of the histories was chosen; the published results are those of seeds that nobody had looked at before.
SEEDS = ((8001, 8002), (8003, 8004), (8005, 8006))
# How much longer than the judged stream the history is. What is loss and what absence is told from lengths of trips
# alone: with a quarter of this history (half as many trips as are judged) the worst of three was off by 0.025 where the
# assumptions hold and by 0.060 where they do not.
HISTORY = 2
MOST_OFF = {True: 0.02, False: 0.05}  # where the model's assumptions hold, and where they do not


@dataclass(frozen=True)
class World:
    """A world, what one states of it, and whether the model's assumptions hold in it.

    `tags` are as many as give 20,000 unsure matches.
    """

    name: str
    tags: int
    simulate: Callable[..., Simulation]
    arguments: dict[str, Any] = field(default_factory=dict)
    stated: dict[str, Any] = field(default_factory=dict)
    match: dict[str, Any] = field(default_factory=dict)
    assumptions_hold: bool = True
    fewest_missing: int = 1

    def history(self, tags: int, seed: int) -> Simulation:
        return self.simulate(tags, seed=seed, **self.arguments)


SHOP = "PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag_id] WITHIN 43200"
EVENING = {"loss": 0.1, "bypass": 0.25, "evening_loss": 0.5, "arrivals": Gap("exponential", 20.0)}
WORLDS = (
    World("route", 70_000, stop_visits, {"loss": 0.15}),
    World("bypassed stops", 40_000, stop_visits, {"loss": 0.2, "bypass": (0.0, 0.3, 0.2, 0.0)}),
    World("several visits", 10_000, stop_visits, {"loss": 0.2, "bypass": 0.25, "visits": 4, "steps": 300.0}),
    World(
        "two speeds",
        40_000,
        stop_visits,
        {"loss": 0.2, "bypass": 0.25, "slow": 0.4, "slowness": 4.0},
        assumptions_hold=False,
    ),
    World("loss by reader", 45_000, stop_visits, {"loss": (0.05, 0.35, 0.1, 0.2), "bypass": 0.25, "shape": 3.0}),
    World(
        "loss in the evening",
        45_000,
        stop_visits,
        EVENING,
        assumptions_hold=False,
    ),
    World(
        "loss in the evening, by hour",
        45_000,
        stop_visits,
        EVENING,
        {"loss_by_hour": True, "time_unit": "s"},
        {"time_unit": "s"},
    ),
    World(
        "exit waits for the payment",
        90_000,
        retail_visits,
        {
            "loss": 0.15,
            "theft": 0.15,
            "to_register": Gap("gamma", 1200.0, 2.0),
            "to_exit": Gap("exponential", 300.0),
        },
    ),
    World(
        "leading event missing",
        60_000,
        stop_visits,
        {"loss": 0.2, "bypass": (0.2, 0.2, 0.0, 0.0), "steps": (500.0, 700.0, 900.0)},
        {"loss": {"v0": 0.2}},
    ),
    World(
        "last event missing",
        60_000,
        stop_visits,
        {"loss": 0.2, "bypass": (0.0, 0.2, 0.0, 0.3), "steps": (400.0, 800.0, 600.0)},
        match={"missing_last": True},
    ),
    World(
        "two neighbours missing",
        100_000,
        stop_visits,
        {"stops": 5, "loss": 0.4, "bypass": (0.0, 0.2, 0.2, 0.1, 0.0), "steps": (300.0, 600.0, 900.0, 600.0)},
        fewest_missing=2,
    ),
    World("stops left out together", 55_000, stop_visits, {"loss": 0.1, "bypass": 0.2, "bypass_again": 0.7}),
    World(
        "losses that come together",
        48_000,
        stop_visits,
        {"loss": 0.1, "bypass": 0.2, "bad_trips": 0.2, "bad_loss": 0.6},
        assumptions_hold=False,
    ),
)


@dataclass(frozen=True)
class Judged:
    """What was said of each unsure match, whether it was true, and how many of its events were missing."""

    said: npt.NDArray[np.float64]
    true: npt.NDArray[np.float64]
    missing: npt.NDArray[np.int64]


def judge(world: World, tags: int, seeds: tuple[int, int]) -> tuple[Judged, cepheid.Model, Simulation]:
    """Fit on one history, match another."""
    past, live = world.history(HISTORY * tags, seeds[0]), world.history(tags, seeds[1])
    query = SHOP if world.simulate is retail_visits else live.query
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cepheid.fit(past.events, query, **world.stated)
        # A match is maximal among those reported, so nearly all are: those below LEAST are dropped afterwards.
        text = f"{query} THRESHOLD 1e-9 OUTPUT MAXIMAL"
        found = cepheid.match(live.events, text, model=model, scoring="posterior", **world.match)
    judged = _shop(live, found) if query == SHOP else _stops(live, found)
    kept = (judged.missing >= world.fewest_missing) & (judged.said >= LEAST)
    return Judged(judged.said[kept], judged.true[kept], judged.missing[kept]), model, live


def _shop(live: Simulation, found: pa.Table) -> Judged:
    """Thefts: the payment was not seen, and it did not happen."""
    assert live.truth is not None
    tag = pc.struct_field(found["c"].combine_chunks(), "tag_id").to_numpy()
    true = live.truth["stolen"].to_numpy()[tag].astype(float)
    missing = 1 + found["a"].combine_chunks().is_null().to_numpy(zero_copy_only=False)
    return Judged(found["probability"].to_numpy(), true, missing.astype(np.int64))


def _stops(live: Simulation, found: pa.Table) -> Judged:
    """Did every event that a match calls missing happen, in its place?"""
    assert live.truth is not None
    happened: dict[tuple[int, str], list[int]] = defaultdict(list)
    truth = live.truth
    for ts, kind, tag in zip(
        truth["ts"].to_numpy().tolist(), truth["type"].to_pylist(), truth["tag"].to_numpy().tolist(), strict=True
    ):
        happened[tag, kind].append(ts)
    names = [name for name in found.column_names if name.startswith("v") and name[1:].isdigit()]
    columns = [found[name].combine_chunks() for name in names]
    times = [pc.struct_field(each, "ts").fill_null(-1).to_numpy().tolist() for each in columns]
    tags = pc.coalesce(*(pc.struct_field(each, "tag") for each in columns)).to_numpy().tolist()
    said, true, missing = [], [], []
    window = int(live.query.split()[-1])
    for row, probability in enumerate(found["probability"].to_numpy().tolist()):
        seen = [each[row] for each in times]
        gone = sum(ts < 0 for ts in seen)
        if not gone:
            continue
        first = next(ts for ts in seen if ts >= 0)
        said.append(probability)
        true.append(_in_place(happened, tags[row], seen, max(max(seen) - window, -1), first + window))
        missing.append(gone)
    return Judged(np.array(said), np.array(true, float), np.array(missing, np.int64))


def _in_place(
    happened: dict[tuple[int, str], list[int]], tag: int, seen: list[int], opening: int, deadline: int
) -> bool:
    """Is there an event for every missing one, in order between its neighbours that were seen?"""
    now = opening
    for place, ts in enumerate(seen):
        if ts >= 0:
            if ts <= now and place:
                return False
            now = ts
            continue
        known = happened[tag, f"S{place}"]
        at = bisect_right(known, now)
        if place == 0:  # the latest one before the next event that was seen
            limit = next(each for each in seen if each >= 0)
            at = bisect_right(known, limit - 1) - 1
        if not 0 <= at < len(known) or not now < known[at] < deadline:
            return False
        now = known[at]
    return True


def calibration_error(said: npt.NDArray[np.float64], true: npt.NDArray[np.float64]) -> tuple[float, list[float]]:
    """How far reported probabilities are from what was true, bin by bin, weighted; and the share true per bin."""
    place = np.minimum((said * BINS).astype(int), BINS - 1)
    error, curve = 0.0, []
    for each in range(BINS):
        here = place == each
        curve.append(float(true[here].mean()) if here.any() else float("nan"))
        error += abs(float(said[here].mean()) - curve[-1]) * float(here.mean()) if here.any() else 0.0
    return error, curve


def numbers_of(judged: Judged) -> dict[str, Any]:
    """Calibration, all together and by the number of missing events."""

    def of(kept: npt.NDArray[np.bool_]) -> dict[str, Any]:
        said, true = judged.said[kept], judged.true[kept]
        error, curve = calibration_error(said, true)
        brier = float(np.mean((said - true) ** 2))
        mean = {"said": float(said.mean()), "true": float(true.mean())}
        return {"matches": len(said), **mean, "calibration_error": error, "brier": brier, "share_true_by_bin": curve}

    counts = sorted(set(judged.missing.tolist()))
    return {
        "all": of(np.ones(len(judged.said), bool)),
        **{f"{count} missing": of(judged.missing == count) for count in counts},
    }


def coverage(draws: int) -> dict[str, Any]:
    """How many 90% intervals of a fit hold the true loss and the true share of a stop that may be bypassed."""
    found: dict[str, Any] = {}
    for share, loss in ((0.7, 0.2), (0.4, 0.5), (0.9, 0.05), (0.6, 0.35)):
        held = np.zeros(2)
        for seed in range(9_000, 9_000 + draws):
            random = np.random.default_rng(seed)
            happened, lost = random.random(1_500) < share, random.random(1_500) < loss
            before, after = random.gamma(3.0, 20.0, 1_500), random.gamma(4.0, 10.0, 1_500)
            seen = happened & ~lost
            trips = Trips.from_samples(before[seen], after[seen], np.where(happened, before + after, after)[~seen])
            fit = fit_trips(trips, bypass=True, confidence=0.9)
            (low, high), (least, most) = fit.loss_interval, fit.happens_interval
            held += (low <= loss <= high, least <= share <= most)
        found[f"loss {loss}, share {share}"] = {"draws": draws, "loss": held[0] / draws, "share": held[1] / draws}
    rows = [[name, each["draws"], each["loss"], each["share"]] for name, each in found.items()]
    print_table("90% intervals of a fit that hold the truth", ["world", "draws", "of the loss", "of the share"], rows)
    return found


def judge_world(world: World, tags: int, seeds: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """A world's numbers: those of the history on which it was off most, and how far it was off on each."""
    tried = []
    for pair in seeds:
        judged, model, live = judge(world, tags, pair)
        query = SHOP if world.simulate is retail_visits else live.query
        check = model.check(live.events, query, time_unit="s")
        tried.append((numbers_of(judged), check))
    errors = [found["all"]["calibration_error"] for found, _ in tried]
    found, _ = tried[int(np.argmax(errors))]
    worst = [check.worst.text for _, check in tried if check.worst is not None]
    return {
        "assumptions hold": world.assumptions_hold,
        "check": {"fits": [check.fits for _, check in tried], "worst": worst[0] if worst else None},
        "errors": errors,
        "within": max(errors) <= MOST_OFF[world.assumptions_hold],
        "by missing": found,
    }


def main(quick: bool = False) -> dict[str, Any]:
    """All worlds; the numbers are kept in bench/results/calibration.json."""
    on_one_core()
    numbers: dict[str, Any] = {"intervals": coverage(20 if quick else 200)}
    rows = []
    for world in WORLDS:
        numbers[world.name] = judge_world(world, world.tags // 12 if quick else world.tags, SEEDS[: 1 if quick else 3])
        found, errors = numbers[world.name]["by missing"], numbers[world.name]["errors"]
        fits = numbers[world.name]["check"]["fits"]
        for part, each in found.items():
            told = [max(errors), f"{sum(fits)} of {len(fits)}"] if part == "all" else ["", ""]
            row = [world.name, part, each["matches"], each["said"], each["true"], each["calibration_error"]]
            rows.append([*row, *told])
        print(*rows[-len(found)], flush=True)
        middles = list((np.arange(BINS) + 0.5) / BINS)
        curves = {part: each["share_true_by_bin"] for part, each in found.items() if each["matches"] >= 200}
        plot_lines(
            f"calibration_{world.name.replace(' ', '_').replace(',', '')}",
            f"Reliability: {world.name}",
            ("reported probability", middles),
            "share that was true",
            {**curves, "honest": middles},
        )
        save("calibration", numbers)
    columns = ["world", "matches with", "number", "said", "true", "calibration error", "worst of three", "model fits"]
    print_table("What was said beside what was true", columns, rows)
    return numbers


if __name__ == "__main__":
    main()

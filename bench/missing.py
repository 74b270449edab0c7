"""Missing events: are the probabilities honest, what is found that a plain engine misses, and what does it cost?

Models are fitted on one half of a simulated history and judged on another. One core.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import cepheid
from bench.measure import on_one_core, plot_lines, print_table, save
from cepheid.engine.choose import make_plan
from cepheid.engine.data.table import ordered
from cepheid.engine.retention import retained
from cepheid.language.schema import Schema
from cepheid.plan.options import PlanOptions
from cepheid.simulate.gaps import Gap
from cepheid.simulate.retail import retail_visits
from cepheid.simulate.route import route_visits

SHOPLIFTING = "PATTERN SEQ(Shelf a, !(Register b), Exit c) WHERE [tag_id] WITHIN 43200"
LOSSES = (0.05, 0.15, 0.30)
SCORINGS = ("exact", "paper", "posterior")
BINS = 10


TO_REGISTER = Gap("gamma", 1200.0, 2.0)
# Two stores: one leaves when one likes, paid or not, as AYAC assumes; or the exit waits for the payment.
STORES = {"shelf": Gap("gamma", 2400.0, 2.0), "register": Gap("exponential", 300.0)}


def calibration(quick: bool, clock: str = "shelf") -> dict[str, Any]:
    """Expected calibration error and Brier score of each scoring, with a model fitted on another history."""
    tags = (30_000 if quick else 120_000) * (1 if clock == "shelf" else 2)
    store = {"exit_clock": clock, "theft": 0.1, "to_register": TO_REGISTER, "to_exit": STORES[clock]}
    rows, numbers = [], {}
    for loss in LOSSES:
        past = retail_visits(tags // 2, loss=loss, seed=1, **store)
        live = retail_visits(tags, loss=loss, seed=2, **store)
        model = cepheid.fit(past.events, SHOPLIFTING)
        stolen = live.truth["stolen"].to_numpy()
        curves: dict[str, list[float]] = {}
        for scoring in SCORINGS:
            found = cepheid.match(
                live.events, SHOPLIFTING + " THRESHOLD 0.01 OUTPUT MAXIMAL", model=model, scoring=scoring
            )
            said = found["probability"].to_numpy()
            tag = pc.struct_field(found["c"].combine_chunks(), "tag_id").to_numpy()
            true = stolen[tag].astype(float)
            error, curve = calibration_error(said, true)
            brier = float(np.mean((said - true) ** 2))
            rows.append([loss, scoring, len(said), error, brier])
            numbers[f"loss {loss}, {scoring}"] = {"matches": len(said), "calibration_error": error, "brier": brier}
            curves[scoring] = curve
        if clock != "shelf":
            continue
        plot_lines(
            f"missing_reliability_{int(loss * 100)}",
            f"Reliability at {loss:.0%} loss (fitted model)",
            ("reported probability", (np.arange(BINS) + 0.5) / BINS),
            "share that was true",
            {**curves, "honest": list((np.arange(BINS) + 0.5) / BINS)},
        )
    print_table(
        f"Calibration, time to the exit counted from the {clock}",
        ["loss", "scoring", "matches", "calibration error", "Brier"],
        rows,
    )
    return numbers


def calibration_error(said: npt.NDArray[np.float64], true: npt.NDArray[np.float64]) -> tuple[float, list[float]]:
    """How far reported probabilities are from what was true, bin by bin, weighted; and the share true per bin."""
    place = np.minimum((said * BINS).astype(int), BINS - 1)
    error, curve = 0.0, []
    for each in range(BINS):
        here = place == each
        curve.append(float(true[here].mean()) if here.any() else float("nan"))
        error += abs(float(said[here].mean()) - curve[-1]) * float(here.mean()) if here.any() else 0.0
    return error, curve


def recall(quick: bool) -> dict[str, Any]:
    """Routes past six readers: how many arrivals are found, by a plain engine and with missing events allowed."""
    parcels = 5_000 if quick else 40_000
    past, live = route_visits(parcels, loss=0.15, seed=1), route_visits(parcels, loss=0.15, seed=2)
    model = cepheid.fit(past.events, live.query)
    arrived = set(live.truth.filter(live.truth["arrived"])["parcel"].to_pylist())
    rows, numbers = [], {}

    def judge(name: str, found: pa.Table) -> None:
        parts = [pc.struct_field(found[f"v{place}"].combine_chunks(), "parcel") for place in range(6)]
        parcel = set(pc.coalesce(*parts).to_pylist())
        right = len(parcel & arrived)
        said = found["probability"].to_numpy().mean() if "probability" in found.column_names else 1.0
        rows.append([name, len(parcel), right / max(1, len(parcel)), right / len(arrived), float(said)])
        numbers[name] = {"precision": rows[-1][2], "recall": rows[-1][3], "mean_probability": rows[-1][4]}

    judge("plain engine", cepheid.match(live.events, live.query))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for threshold in (0.5, 0.2, 0.05, 0.02):
            for last in (False, True):
                text = f"{live.query} THRESHOLD {threshold} OUTPUT MAXIMAL"
                name = f"threshold {threshold}" + (", last may be missing" if last else "")
                found = cepheid.match(live.events, text, model=model, scoring="posterior", missing_last=last)
                judge(name, found)
    print_table("Arrivals past six readers, 15% loss", ["engine", "reported", "precision", "recall", "mean said"], rows)
    return numbers


def cost(quick: bool) -> dict[str, Any]:
    """Events per second on the shoplifting workload, and how the cost grows."""
    model = cepheid.Model(
        loss=0.1, gaps={"b": cepheid.Exponential(mean=1200, happens=0.95), "c": cepheid.Exponential(mean=2400)}
    )
    numbers: dict[str, Any] = {}

    def rate(repeats: int) -> tuple[float, int, float]:
        table = repeated_store(repeats)
        seconds, found = best_seconds(
            lambda: cepheid.match(table, SHOPLIFTING + " THRESHOLD 0.05", model=model), 2 if quick else 5
        )
        return table.num_rows / seconds, found.num_rows, 1e9 * seconds / table.num_rows

    lengths = [10, 20] if quick else [10, 25, 50, 110]
    measured = [rate(repeats) for repeats in lengths]
    events = [repeated_store(repeats).num_rows for repeats in lengths]
    print_table(
        "Shoplifting: 10,000 tags, threshold 0.05, loss 0.1",
        ["events", "events/s", "matches", "ns per event"],
        [[n, *each] for n, each in zip(events, measured, strict=True)],
    )
    plot_lines(
        "missing_events",
        "Queues engine: stream length",
        ("events", events),
        "ns per event",
        {"": [each[2] for each in measured]},
    )
    numbers["events_per_second"] = measured[-1][0]
    numbers["ns_per_event_by_stream_length"] = dict(zip(map(str, events), (m[2] for m in measured), strict=True))

    states = [2, 3, 4, 5, 6]
    per_event = [of_states(count, 5_000 if quick else 40_000) for count in states]
    print_table("Number of states", ["states", "ns per event"], list(zip(states, per_event, strict=True)))
    plot_lines("missing_states", "Queues engine: states", ("states", states), "ns per event", {"": per_event})
    numbers["ns_per_event_by_states"] = dict(zip(map(str, states), per_event, strict=True))
    return numbers


def best_seconds(call: Callable[[], Any], repeat: int = 5) -> tuple[float, Any]:
    """The least processor time of several runs, after one to warm up: all of it is on one core."""
    result, seconds = call(), []
    for _ in range(repeat):
        begun = time.process_time()
        result = call()
        seconds.append(time.process_time() - begun)
    return min(seconds), result


def memory(quick: bool) -> dict[str, Any]:
    """How many events must be kept for later matches, by the length of the window."""
    tags = 40_000 if quick else 100_000
    table = retail_visits(tags, loss=0.1, exit_clock="shelf", to_exit=STORES["shelf"], seed=3).events
    model = cepheid.Model(loss=0.1, gaps={"b": cepheid.Exponential(mean=1200), "c": cepheid.Exponential(mean=2400)})
    windows = [3600 * hours for hours in ((1, 2, 4, 8) if quick else (1, 2, 4, 8, 12, 16, 20, 24))]
    kept = []
    for window in windows:
        query = cepheid.query(SHOPLIFTING.replace("43200", str(window)) + " THRESHOLD 0.05")
        bound = query.bind(Schema.from_arrow(table.schema))
        events = ordered(table, bound.schema)
        plan, _ = make_plan(bound, events, PlanOptions(model=model))
        kept.append(int(retained(plan, events, int(0.9 * tags)).sum()))
    print_table("Events kept, by window", ["window (s)", "events"], list(zip(windows, kept, strict=True)))
    plot_lines(
        "missing_memory",
        "State for missing events",
        ("window in hours", [w / 3600 for w in windows]),
        "events kept",
        {"": kept},
    )
    return dict(zip(map(str, windows), kept, strict=True))


def of_states(count: int, parcels: int) -> float:
    """Nanoseconds per event of a route past so many readers."""
    live = route_visits(parcels, readers=count, loss=0.1, seed=3)
    model = cepheid.fit(live.events, live.query)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, _ = best_seconds(lambda: cepheid.match(live.events, live.query + " THRESHOLD 0.05", model=model))
    return 1e9 * seconds / live.events.num_rows


def repeated_store(repeats: int) -> pa.Table:
    """Day after day of the same store, 10,000 tags a day."""
    day = retail_visits(10_000, loss=0.1, exit_clock="shelf", seed=3).events
    length = int(day["ts"][-1].as_py()) + 100_000
    days = [day.set_column(0, "ts", pc.add(day["ts"], number * length)) for number in range(repeats)]
    return pa.concat_tables(days).combine_chunks()


def main(quick: bool = False) -> dict[str, Any]:
    """All of it; the numbers are kept in bench/results/missing.json."""
    on_one_core()
    numbers = {
        "calibration": calibration(quick),
        "calibration where the exit waits": calibration(quick, "register"),
        "recall": recall(quick),
        "cost": cost(quick),
        "events kept by window": memory(quick),
    }
    save("missing", numbers)
    return numbers


if __name__ == "__main__":
    main()

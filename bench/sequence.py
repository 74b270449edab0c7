"""SASE's workload through the public call, one core: against Flink CEP, and how the cost grows.

20 event types, a sequence of three, one equivalence test over 1,000 values, a window of 10,000 events (SASE
section 5). Preparation and output are included in our numbers; Flink's are processing only, after warm-up.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import cepheid
from bench.flink.baseline import Sequence, measure
from bench.flink.installation import FlinkUnavailable
from bench.measure import best_seconds, on_one_core, plot_lines, print_table, save
from cepheid.simulate.sase import sase_events

QUERY = "PATTERN SEQ(T0 a, T1 b, T2 c) WHERE [attr1] WITHIN {window}"


def rate(events: int, text: str, domain: int = 1000, **options: Any) -> tuple[float, int]:
    """Events per second and matches of a query over SASE's stream."""
    table = sase_events(events, domains=(domain, 20, 10, 100, 10000), seed=1).events
    query = cepheid.query(text)
    seconds, result = best_seconds(lambda: query.match(table, **options))
    return events / seconds, result.num_rows


def against_flink(quick: bool) -> dict[str, Any]:
    """The headline: the same query on the same stream, ours and Flink CEP's."""
    events = 500_000 if quick else 5_000_000
    table = sase_events(events, seed=1).events
    query = cepheid.query(QUERY.format(window=10_000))
    seconds, result = best_seconds(lambda: query.match(table), 5)
    ours = events / seconds
    rows: list[list[Any]] = [["Cepheid", events, ours, result.num_rows, 1.0]]
    numbers: dict[str, Any] = {"events_per_second": ours, "matches": result.num_rows}
    for name, prefilter in (("Flink CEP, all events", False), ("Flink CEP, relevant types only", True)):
        try:
            flink = measure(Sequence(prefilter=prefilter), table, max_events=200_000 if quick else 500_000)
        except FlinkUnavailable as problem:
            print(f"Flink is not measured: {problem}")
            break
        rows.append([name, flink.events, flink.events_per_second, flink.matches, ours / flink.events_per_second])
        numbers[name] = {"events_per_second": flink.events_per_second, "times_slower": ours / flink.events_per_second}
    print_table("SASE's workload", ["engine", "events", "events/s", "matches", "ours / it"], rows)
    return numbers


def pushdowns(quick: bool) -> dict[str, float]:
    """What each pushdown is worth (SASE section 5.3)."""
    events = 100_000 if quick else 500_000
    text = "PATTERN SEQ(T0 a, T1 b, T2 c) WHERE [attr1, attr2] AND a.attr3 < c.attr3 WITHIN 5000"
    plans: dict[str, dict[str, Any]] = {
        "both tests in the scan": {},
        "second test in construction": {"equivalence": "construction"},
    }
    found = {name: rate(events, text, domain=100, **options)[0] for name, options in plans.items()}
    small = 4_000  # the basic plan builds every sequence first: the paper's could not finish at all
    found["basic plan (4,000 events)"] = rate(small, text, domain=100, pushdown=False, max_matches=10**8)[0]
    found["all pushed (4,000 events)"] = rate(small, text, domain=100)[0]
    print_table("Pushdowns", ["plan", "events/s"], [[name, value] for name, value in found.items()])
    return found


def growth(quick: bool) -> dict[str, Any]:
    """Cost against stream length, window, pattern length and number of keys."""
    size = 200_000 if quick else 1_000_000
    numbers: dict[str, Any] = {}

    def sweep(name: str, label: str, values: list[int], run: Any, log: bool = True) -> None:
        rates = [run(value) for value in values]
        numbers[name] = {str(value): rate for value, rate in zip(values, rates, strict=True)}
        nanoseconds = [1e9 / rate for rate in rates]
        plot_lines(
            f"sequence_{name}",
            f"Sequence engine: {label}",
            (label, values),
            "ns per event",
            {"": nanoseconds},
            log_x=log,
        )
        print_table(label, [label, "events/s", "ns per event"], list(zip(values, rates, nanoseconds, strict=True)))

    lengths = [size // 4, size // 2, size, 2 * size]
    sweep("events", "events in the stream", lengths, lambda n: rate(n, QUERY.format(window=10_000))[0])
    windows = [1_000, 3_000, 10_000, 30_000, 100_000]
    sweep("window", "window (events)", windows, lambda w: rate(size, QUERY.format(window=w))[0])
    keys = [100, 1_000, 10_000, 100_000]
    sweep("keys", "distinct keys", keys, lambda k: rate(size, QUERY.format(window=10_000), domain=k)[0])

    def of_length(length: int) -> float:
        components = ", ".join(f"T{place} v{place}" for place in range(length))
        return rate(size, f"PATTERN SEQ({components}) WHERE [attr1] WITHIN 10000", domain=100)[0]

    sweep("length", "pattern length", [2, 3, 4, 5, 6], of_length, log=False)
    return numbers


START = """
import time; begun = time.perf_counter()
import cepheid, pyarrow as pa
events = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "C"], "id": [7, 7, 7], "x": [1.0, 2.0, 3.0]})
cepheid.match(events, "PATTERN SEQ(A a, C c) WHERE [id] AND a.x < c.x WITHIN 5")
cold = time.perf_counter() - begun; begun = time.perf_counter()
cepheid.match(events, "PATTERN SEQ(A a, B b, C c) WHERE [id] AND a.x + 1 < c.x AND b.x > a.x * 0.5 WITHIN 9")
print(cold, time.perf_counter() - begun)
"""


def first_result() -> dict[str, float]:
    """A cold process with a warm cache, and a new query in a warm process."""
    subprocess.run([sys.executable, "-c", START], check=True, capture_output=True)  # fills the cache
    times = subprocess.run([sys.executable, "-c", START], check=True, capture_output=True, text=True).stdout.split()
    cold, new = float(times[0]), float(times[1])
    print_table("First result", ["what", "seconds"], [["cold process, warm cache", cold], ["new query, warm", new]])
    return {"cold_process_seconds": cold, "new_query_seconds": new}


def main(quick: bool = False) -> dict[str, Any]:
    """All of it; the numbers are kept in bench/results/sequence.json."""
    on_one_core()
    numbers = {
        "sase_workload": against_flink(quick),
        "pushdowns": pushdowns(quick),
        "growth": growth(quick),
        "first_result": first_result(),
    }
    save("sequence", numbers)
    return numbers


if __name__ == "__main__":
    main()

"""Flink CEP at a fixed rate: from the moment an event is handed out to the match that it ends."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import pyarrow as pa

from bench.flink.baseline import Sequence, driver_options, event_numbers
from bench.flink.installation import JAVA_OPTIONS, prepare
from bench.harness.experiment import Contestant, Outcome, Unavailable
from bench.rivals import setup
from cepheid.simulate import sase_events


def rate_events(events: int, seed: int) -> pa.Table:
    """SASE's stream with 300 keys, so that there are matches to time at low rates, too."""
    return sase_events(events, domains=(300, 20, 10, 100, 10_000), seed=seed).events


def flink_at_rate(rate: int, seconds: float, slots: int = 2) -> Contestant:
    """Flink CEP over SASE's stream, relevant types only, with its source held to a rate."""
    setup.flink()
    events = int(rate * seconds)
    most = 5_000_000
    if events > most:
        raise Unavailable(f"{events:,} events do not fit the driver's memory")

    def run() -> dict[str, float]:
        installation = prepare()
        workload = Sequence()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "events.bin"
            event_numbers(workload, rate_events(events, seed=1)).tofile(path)
            command = [
                installation.java,
                "-Xmx6g",
                *JAVA_OPTIONS,
                "-cp",
                installation.class_path,
                "FlinkCep",
                str(path),
            ]
            command += [*driver_options(workload), "warm_up=50000", f"slots={slots}", f"rate={rate}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60 + 3 * seconds)
        answers = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode != 0 or not answers:
            raise Unavailable(f"Flink failed: {(done.stderr or done.stdout).strip()[-500:]}")
        answer: dict[str, float] = json.loads(answers[-1])
        return answer

    def inspect(answer: dict[str, float]) -> Outcome:
        metrics = {name: answer[name] for name in ("p50_ms", "p95_ms", "p99_ms")}
        metrics["keeps_up"] = seconds / answer["seconds"]
        return Outcome(seconds=answer["seconds"], metrics=metrics)

    return Contestant("Flink CEP", run, events, inspect, agrees=False, most_repeats=1, warms_itself=True)

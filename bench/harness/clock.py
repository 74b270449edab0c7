"""Seconds and peak memory of one run."""

from __future__ import annotations

import gc
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.harness.experiment import Contestant, Outcome

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Run:
    """One run of one contestant. `peak_mb` is what the process held at most beyond what it held before."""

    contestant: str
    events: int
    seconds: float
    peak_mb: float
    outcome: Outcome

    def row(self) -> dict[str, Any]:
        """The run as flat data."""
        outcome = asdict(self.outcome)
        outcome.pop("seconds")
        facts = {"contestant": self.contestant, "events": self.events, "seconds": self.seconds}
        return {**facts, "peak_mb": self.peak_mb, **outcome}


def timed(contestant: Contestant) -> Run:
    """Runs a contestant once. Garbage of earlier runs is collected first, so that it is not on this one's bill."""
    gc.collect()
    before = reset_peak()
    begun = time.perf_counter()
    result = contestant.run()
    seconds = time.perf_counter() - begun
    peak = peak_memory_mb() - before
    outcome = contestant.inspect(result)
    return Run(contestant.name, contestant.events, outcome.seconds or seconds, max(peak, 0.0), outcome)


def use_cores(cores: int) -> None:
    """Arrow's functions use all cores unless told otherwise; the kernels use one."""
    pa.set_cpu_count(cores)
    pa.set_io_thread_count(cores)


def reset_peak() -> float:
    """Lets Linux count the peak of resident memory anew; returns what is resident now, in MB."""
    try:
        RESET.write_text("5")
    except OSError:
        return peak_memory_mb()
    return memory_mb("VmRSS")


def peak_memory_mb() -> float:
    """The peak of resident memory since the last reset."""
    return memory_mb("VmHWM")


def memory_mb(field: str) -> float:
    """A line of the process's status, in MB; 0 where the system has none."""
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(field + ":")), 0.0)

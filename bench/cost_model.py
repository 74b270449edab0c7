"""What a cluster would need, computed from the result files: `python -m bench cost`, and in bench/RESULTS.md.

The model is linear: core-seconds per event, measured on two cores of one machine, times events, divided by an
efficiency for more cores. What it assumes is printed with it; nothing of it was measured on a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.harness.store import read_results

CORES, TARGET = 100, 10_000_000  # the question: 100 cores, and a stream of 10 M events a second
EFFICIENCY = 0.7  # of a core of a cluster beside one of the two measured: network shuffle, stragglers, other tenants
HEADROOM = 0.6  # share of its capacity that a stream should use, so that it can catch up after a restart
ASSUMPTIONS = f"""Assumptions:

- the query is SASE's: 3 of 20 types relevant, 1,000 keys or more, none of them with more than a core's worth of events;
- events and columns that the query does not need are dropped before the shuffle, as they are here;
- a core of the cluster does {EFFICIENCY:.0%} of one measured here: the shuffle crosses a network there;
- a stream is given {HEADROOM:.0%} of what it could do at most, so that it catches up after a restart;
- the source (Kafka, files) delivers that rate, and the sink takes the matches: neither is in the numbers;
- keys spread evenly: a hot key is cut into slices of time only in batch."""


@dataclass(frozen=True)
class Rate:
    """Events a second of one core, in one of the ways to run."""

    way: str
    per_core: float

    def lines(self) -> list[str]:
        """What 100 cores do, and what the target needs."""
        share = EFFICIENCY * (HEADROOM if "stream" in self.way else 1.0)
        return [
            f"- {self.way}: {self.per_core:,.0f} events/s per core measured",
            f"  - {CORES} cores: {CORES * self.per_core * share / 1e6:,.1f} M events/s",
            f"  - {TARGET / 1e6:.0f} M events/s: {TARGET / (self.per_core * share):,.0f} cores",
            f"  - a billion events: {1e9 / self.per_core / share / 3600:,.2f} core-hours",
        ]


def rates(folder: Path) -> list[Rate]:
    """Rates per core from the results that there are."""
    found = []
    batch = read_results("spark-batch", folder)
    if batch is not None:
        for series in batch[1].series():
            cores, x = int(series.split()[0]), batch[1].xs("Cepheid", series)[-1]
            found.append(Rate(f"batch, {series}", batch[1].value("Cepheid", x, series) / cores))
    stream = read_results("spark-stream", folder)
    if stream is not None:
        x = stream[1].xs("Cepheid")[-1]
        found.append(Rate(f"stream, 2 cores, micro-batches of {x:,}", stream[1].value("Cepheid", x) / 2))
    return found


def model_lines(folder: Path) -> list[str]:
    """The model as text; without results, what is missing."""
    found = rates(folder)
    if not found:
        return ["Not computed for this page: it needs results of spark-batch or spark-stream."]
    text = ["Computed from the measurements above; nothing of it was measured on a cluster.", ""]
    text += [line for rate in found for line in rate.lines()]
    queries = read_results("spark-queries", folder)
    if queries is not None and len(xs := queries[1].xs("one pass")) > 1:
        first, last = (queries[1].value("one pass", x, of="seconds") for x in (xs[0], xs[-1]))
        text.append(f"- {xs[-1]} queries in one pass: x{last / first:.1f} of the cores of one")
    return [*text, "", ASSUMPTIONS]


def main(folder: Path) -> None:
    """Prints the model."""
    print("\n".join(model_lines(folder)))

"""How fast Flink CEP answers a query, on one slot or more, and how many matches it finds.

    python -m bench.flink.baseline

runs each workload once on simulated events.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.flink.installation import JAVA_OPTIONS, FlinkUnavailable, prepare
from cepheid.simulate import sase_events, stock_ticks
from cepheid.simulate.stocks import ITERATOR_PREDICATES

STRATEGIES = ("partition_contiguity", "skip_till_next_match")


@dataclass(frozen=True)
class Sequence:
    """SASE's `SEQ(types...) WHERE [key] WITHIN window`, skip till any match.

    `prefilter` drops events of other types in front of the pattern, as a careful Flink user would; without it the
    pattern operator sees and buffers all of them.
    """

    types: tuple[str, ...] = ("T0", "T1", "T2")
    key: str = "attr1"
    window: int = 10_000
    prefilter: bool = True
    time: str = "ts"
    type: str = "type"


@dataclass(frozen=True)
class Kleene:
    """SASE+'s template `SEQ(Stock+ a[], Stock b)` with iterator predicate p1, p2 or p3.

    The window counts units of the time column, since Flink has no window of events per key. Flink cannot say
    skip_till_next_match for a Kleene group; the driver's comments tell how the same matches are obtained.
    """

    iterator: str = "p2"
    strategy: str = "partition_contiguity"
    window: int = 1_000
    key: str = "symbol"
    price: str = "price"
    volume: str = "volume"
    time: str = "ts"


Workload = Sequence | Kleene


@dataclass(frozen=True)
class FlinkResult:
    """What a run took, and two numbers to compare answers by: the matches, and the events in all of them."""

    events: int
    seconds: float
    matches: int
    selected_events: int

    @property
    def events_per_second(self) -> float:
        return self.events / self.seconds


def measure(
    workload: Workload,
    table: pa.Table,
    *,
    max_events: int = 500_000,
    slots: int = 1,
    warm_up: int = 50_000,
    memory: str = "4g",
    timeout_seconds: float = 300.0,
) -> FlinkResult:
    """Run the workload over the first `max_events` rows of a table that is ordered by time.

    The seconds run from the first event to the last match, after the JVM and the cluster have started and a run over
    the first `warm_up` events has let the JIT compiler work. Raises FlinkUnavailable when Java or Flink cannot be had,
    or when the run fails or takes longer than `timeout_seconds`.
    """
    table = table.slice(0, max_events)
    installation = prepare()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.bin"
        event_numbers(workload, table).tofile(path)
        command = [installation.java, f"-Xmx{memory}", *JAVA_OPTIONS, "-cp", installation.class_path, "FlinkCep"]
        command += [str(path), *driver_options(workload), f"warm_up={warm_up}", f"slots={slots}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout_seconds)
        except subprocess.TimeoutExpired:
            raise FlinkUnavailable(
                f"Flink did not finish {workload} over {table.num_rows} events in {timeout_seconds} s; lower max_events"
            ) from None
    answers = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not answers:
        raise FlinkUnavailable(f"Flink failed on {workload}: {(done.stderr or done.stdout).strip()[-2000:]}")
    answer = json.loads(answers[-1])
    return FlinkResult(answer["events"], answer["seconds"], answer["matches"], answer["selected"])


def event_numbers(workload: Workload, table: pa.Table) -> np.ndarray:
    """The driver's input: the count, then time, key, type, price and volume, all as 64-bit numbers."""
    count = table.num_rows
    if count == 0:
        raise ValueError("there are no events to measure Flink on")
    none = np.zeros(count, np.int64)
    time = _numbers(table, workload.time)
    if np.any(time[1:] < time[:-1]):
        raise ValueError(f"column {workload.time!r} is not in order; sort the table by it, or Flink drops late events")
    if isinstance(workload, Sequence):
        # Types of the sequence become 0, 1, ...; all others the number after the last.
        position = pc.index_in(table[workload.type], value_set=pa.array(workload.types))
        kind = pc.fill_null(position, len(workload.types)).to_numpy().astype(np.int64)
        columns = [time, _numbers(table, workload.key), kind, none, none]
    else:
        prices, volumes = _numbers(table, workload.price), _numbers(table, workload.volume)
        columns = [time, _numbers(table, workload.key), none, prices, volumes]
    return np.concatenate([np.array([count], np.int64), *columns]).astype("<i8")


def driver_options(workload: Workload) -> list[str]:
    """The workload as the driver's NAME=VALUE arguments."""
    if isinstance(workload, Sequence):
        if len(set(workload.types)) < len(workload.types) or not workload.types:
            raise ValueError(f"a sequence needs distinct types, not {workload.types}")
        options = {"workload": "sequence", "length": len(workload.types), "prefilter": str(workload.prefilter).lower()}
    else:
        if workload.iterator not in ITERATOR_PREDICATES:
            raise ValueError(f"no iterator predicate {workload.iterator!r}; choose of {', '.join(ITERATOR_PREDICATES)}")
        if workload.strategy not in STRATEGIES:
            raise ValueError(f"no strategy {workload.strategy!r}; choose of {', '.join(STRATEGIES)}")
        options = {"workload": "kleene", "iterator": workload.iterator, "strategy": workload.strategy}
    return [f"{name}={value}" for name, value in {**options, "window": workload.window}.items()]


def _numbers(table: pa.Table, column: str) -> np.ndarray:
    """A column as 64-bit numbers: strings by the order of their first appearance, timestamps by their own unit."""
    values = table[column]
    if values.null_count:
        raise ValueError(f"column {column!r} has nulls; drop those rows first")
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        values = values.combine_chunks().dictionary_encode()
    if pa.types.is_dictionary(values.type):
        values = values.combine_chunks().indices if isinstance(values, pa.ChunkedArray) else values.indices
    return np.asarray(values.cast(pa.int64()).to_numpy(zero_copy_only=False))


def main() -> None:
    """Print one line per workload."""
    sequences = sase_events(500_000, seed=1).events
    ticks = stock_ticks(100_000, seed=1).events
    runs: list[tuple[Workload, pa.Table]] = [
        (Sequence(), sequences),
        (Sequence(prefilter=False), sequences),
        (Kleene(iterator="p2", strategy="partition_contiguity"), ticks),
        (Kleene(iterator="p2", strategy="skip_till_next_match"), ticks),
    ]
    for workload, table in runs:
        result = measure(workload, table)
        print(f"{result.events_per_second:12,.0f} events/s  {result.matches:9,} matches  {workload}")


if __name__ == "__main__":
    main()

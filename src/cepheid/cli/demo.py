"""`cepheid demo`: a day in a store whose readers miss tags, and who left it without paying."""

from __future__ import annotations

import os
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from rich import box
from rich.table import Table

import cepheid
from cepheid.cli.match_table import match_table
from cepheid.cli.messages import explaining_delay, note, out
from cepheid.cli.outputs import check_outputs, replacing
from cepheid.cli.report import write_page
from cepheid.cli.spark_run import AVAILABLE_NOW, SparkOptions, Task, run_stream
from cepheid.cli.stages import Stages
from cepheid.files.roles import Roles
from cepheid.report.matches import truth_of
from cepheid.simulate import Gap, Simulation, retail_visits

_Tags = Annotated[int, typer.Option(metavar="N", help="Number of articles picked from the shelves.", min=100)]
_Seed = Annotated[int, typer.Option(metavar="N", help="Random seed of the simulated day.")]
_Local = Annotated[bool, typer.Option("--local", help="Run in this process, without Spark.")]
_Folder = Annotated[Path, typer.Option("--output", "-o", metavar="PATH", help="Output path of the report.")]

QUERY = """PATTERN SEQ(Shelf x, !(Register y), Exit z)
WHERE [tag_id]
WITHIN 3 hours
THRESHOLD 0.3
OUTPUT MAXIMAL"""
HOURS = 12
LOSS = {"Shelf": 0.05, "Register": 0.1, "Exit": 0.05}
OPENED = datetime(2024, 1, 1, 8, tzinfo=UTC)
NOON = datetime(2024, 1, 1, 14, tzinfo=UTC)  # what lies before is history, what comes then is the stream
WINDOW = timedelta(hours=3)
FILES = 3  # in which the stream arrives


def demo(tags: _Tags = 6000, seed: _Seed = 7, local: _Local = False, output: _Folder = Path("out/demo")) -> None:
    """Simulate a day in a store, learn how much its readers miss, and find the thefts of the afternoon.

    The model is fitted on the first half of the day. The second half runs as a stream on Spark, or in this process if
    Java is missing. The demo compares the probabilities with the truth and writes a report.

    Example:

        cepheid demo
    """
    stages = Stages()
    output.parent.mkdir(parents=True, exist_ok=True)
    check_outputs({"--output": output}, ())
    query = cepheid.query(QUERY)
    assert isinstance(query, cepheid.Query)
    with stages.timed("simulate"):
        day = simulated_day(tags, seed)
    assert day.truth is not None
    morning = day.events.filter(pc.less(day.events["ts"], pa.scalar(NOON)))
    # The stream begins a window earlier: what was picked up then is still on its way.
    stream = day.events.filter(pc.greater_equal(day.events["ts"], pa.scalar(NOON - WINDOW)))
    out.print(
        f"A day in a store: {tags:,} articles are picked from the shelves, and readers at shelves, registers and exits "
        f"see {day.events.num_rows:,} of their movements. They miss one in ten to one in twenty.",
        soft_wrap=True,
    )
    out.print(f"\n{QUERY}\n", style="cyan")
    with stages.timed("fit"), explaining_delay():
        model = cepheid.fit(morning, query, loss={"y": LOSS["Register"]}, happens={"x": 1.0})
    out.print("Learned from the morning (the loss of registers is known from a test):", style="bold")
    out.print(str(model), soft_wrap=True, end="\n\n")
    given = {"model": model, "scoring": "posterior"}
    found = matched(query, stream, given, local, stages)
    found = found.filter(pc.greater_equal(found["match_end"], pa.scalar(NOON)))
    left_after_noon = day.truth.filter(pc.greater_equal(day.truth["exit_ts"], pa.scalar(NOON)))
    truth = truth_of(left_after_noon, "tag_id", "stolen")
    _print_matches(found, truth)
    _print_honesty(found, truth)
    title, page = "Who left without paying?", output / "report.html"
    with replacing(output) as beside:
        beside.mkdir()
        write_page(beside / page.name, query, stream, Roles(), given, stages, title, "tag_id", truth, found)
        model.save(beside / "model.json")
    stages.print_summary(events=stream.num_rows, matches=found.num_rows)
    out.print(f"The report is in {page}: open it in a browser.", style="bold", soft_wrap=True)


def simulated_day(tags: int, seed: int) -> Simulation:
    """A day of the store; thieves are as quick as others."""
    return retail_visits(
        tags,
        loss=LOSS,
        theft=0.1,
        arrivals=Gap("exponential", mean=(HOURS - 2) * 3600 / tags),
        to_register=Gap("gamma", mean=1200.0, shape=2.0),
        to_exit=Gap("gamma", mean=2400.0, shape=2.0),
        exit_clock="shelf",
        timestamps=True,
        seed=seed,
    )


def matched(query: cepheid.Query, events: pa.Table, given: dict[str, Any], local: bool, stages: Stages) -> pa.Table:
    """The matches of the afternoon: as a stream on Spark where that is possible, else in this process."""
    from cepheid.runners.spark.session import java_problem

    problem = None if local else java_problem()
    if problem is not None:
        note(f"{problem}. The demo continues without Spark.")
    if local or problem is not None:
        with stages.timed("match"), explaining_delay():
            found: pa.Table = cepheid.match(events, query, **given)
        return found
    with stages.timed("prepare"), explaining_delay():
        cepheid.match(events.slice(0, 100), query, **given)  # compiles what is not yet, once and not in each worker
    out.print(
        f"The afternoon arrives as a stream, in {FILES} files, and Spark matches it as it arrives ...", style="bold"
    )
    with tempfile.TemporaryDirectory(prefix="cepheid-demo-") as name:
        folder = Path(name)
        _write_stream(events, folder / "stream")
        task = Task(query, [str(folder / "stream")], Roles(), given, folder / "matches.parquet")
        settings = ["spark.sql.shuffle.partitions=2"]
        options = SparkOptions(
            "local[2]",
            settings,
            checkpoint=folder / "state",
            trigger=AVAILABLE_NOW,
            delay="10 minutes",
            files_per_batch=1,
        )
        run_stream(task, options, lambda _: None, stages)
        from pyarrow import dataset

        table = dataset.dataset(str(folder / "matches.parquet"), format="parquet").to_table()
    order = np.argsort(table.column("match_end").cast(pa.int64()).to_numpy(), kind="stable")
    return table.take(pa.array(order))


def _write_stream(events: pa.Table, folder: Path) -> None:
    from pyarrow import parquet

    folder.mkdir()
    size = -(-events.num_rows // FILES)
    for number in range(FILES):
        path = folder / f"part-{number}.parquet"
        parquet.write_table(events.slice(number * size, size), path)
        os.utime(path, (OPENED.timestamp() + 60 * number,) * 2)  # Spark reads files in the order of their times


def _print_matches(found: pa.Table, truth: dict[Any, bool]) -> None:
    """Some matches, from the surest to the least sure, beside the truth."""
    order = np.argsort(-found["probability"].to_numpy(), kind="stable")
    some = order[np.linspace(0, len(order) - 1, min(12, len(order))).astype(int)] if len(order) else order
    shown = found.take(pa.array(some))
    real = ["yes" if truth[row["z"]["tag_id"]] else "no" for row in shown.to_pylist()]
    out.print("Some of the matches, from the most to the least probable:", style="bold")
    out.print(match_table(shown.append_column("really stolen", pa.array(real)), limit=20))


def _print_honesty(found: pa.Table, truth: dict[Any, bool]) -> None:
    """Of the matches said to be so likely, how many are real?"""
    said = found["probability"].to_numpy()
    real = np.array([truth[row["tag_id"]] for row in found["z"].to_pylist()], bool)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("probability", "matches", "expected thefts", "thefts"):
        table.add_column(name, justify="right")
    for low, high in ((0.9, 1.01), (0.7, 0.9), (0.5, 0.7), (0.3, 0.5)):
        here = (said >= low) & (said < high)
        if here.any():
            expected, thefts = said[here].sum(), real[here].sum()
            table.add_row(f"{low:.0%} to {min(high, 1):.0%}", f"{here.sum():,}", f"{expected:,.1f}", f"{thefts:,}")
    out.print("Can the probabilities be trusted?", style="bold", end="")
    out.print(table)

"""Result files. Full runs are published under bench/results; smaller ones go to build/bench and never touch those.

Each experiment has files of its own: NAME.parquet holds every run, NAME.json what it was measured on and the summary,
NAME.png the plot. While it runs, NAME.progress.jsonl under build/bench keeps the cases that are done, so that a run
that was cut short goes on where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.harness.summary import Summary, summarise

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "bench" / "results"
BUILD = ROOT / "build" / "bench"


def folder_for(size: str) -> Path:
    """Where the results of a size go."""
    folder = PUBLISHED if size == "full" else BUILD / size
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def progress_file(name: str, size: str) -> Path:
    """Where the cases that are done are kept."""
    BUILD.mkdir(parents=True, exist_ok=True)
    return BUILD / f"{name}.{size}.progress.jsonl"


def read_progress(name: str, size: str, commit: str) -> dict[str, list[dict[str, Any]]]:
    """The runs of the cases that are done, if they were of the same commit."""
    path = progress_file(name, size)
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return {line["case"]: line["runs"] for line in lines if line["commit"] == commit}


def add_progress(name: str, size: str, commit: str, case: str, runs: Sequence[Mapping[str, Any]]) -> None:
    """Keeps the runs of a case."""
    with progress_file(name, size).open("a") as file:
        file.write(json.dumps({"commit": commit, "case": case, "runs": list(runs)}) + "\n")


def write_results(name: str, size: str, facts: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> Summary:
    """The files of an experiment that is complete."""
    folder = folder_for(size)
    flat = [{**run, "x": str(run["x"]), "metrics": json.dumps(run.get("metrics") or {})} for run in runs]
    pq.write_table(pa.Table.from_pylist(flat, schema=RUNS), folder / f"{name}.parquet", compression="zstd")
    summary = summarise(runs)
    rows = [{**asdict(row), "events_per_second": row.events_per_second} for row in summary.rows]
    (folder / f"{name}.json").write_text(json.dumps({**facts, "summary": rows}, indent=1) + "\n")
    progress_file(name, size).unlink(missing_ok=True)
    return summary


RUNS = pa.schema(
    {
        "series": pa.string(),
        "x": pa.string(),
        "contestant": pa.string(),
        "round": pa.int32(),
        "events": pa.int64(),
        "seconds": pa.float64(),
        "peak_mb": pa.float64(),
        "matches": pa.int64(),
        "digest": pa.string(),
        "metrics": pa.string(),
        "error": pa.string(),
    }
)


def read_results(name: str, folder: Path) -> tuple[dict[str, Any], Summary] | None:
    """The facts and the summary of an experiment, if it was run."""
    facts, kept = folder / f"{name}.json", folder / f"{name}.parquet"
    if not facts.exists() or not kept.exists():
        return None
    runs = [{**run, "x": as_number(run["x"])} for run in pq.read_table(kept).to_pylist()]
    return json.loads(facts.read_text()), summarise(runs)


def as_number(text: str) -> float | str:
    """A point of the axis as it was: a number, or a word."""
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() and "." not in text and "e" not in text else number

"""Two checkouts in one interleaved run: `python -m bench compare --before DIR --after DIR`.

Each side is a process of its own with its own package; the benchmarks are this checkout's, so both sides run the same
ones through the public call. Only one of them works at a time, in turns (before, after, after, before, ...).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.experiments import find_experiment
from bench.harness.machine import commit_of, machine_facts

HERE = Path(__file__).resolve().parents[2]
NOISE = 1.10  # ratios below are not told apart from none on a shared machine


class SideFailed(RuntimeError):
    """A side's process ended or runs another package than its own."""


@dataclass
class Side:
    """A checkout and the process that runs its package."""

    name: str
    checkout: Path
    process: subprocess.Popen[str] = field(init=False)

    def start(self, python: Path | None, log: Path) -> None:
        """Starts the process and checks that it runs the checkout's package."""
        source = self.checkout / "src"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(HERE)]), "PYTHONSAFEPATH": "1"}
        chosen = python or own_python(self.checkout)
        environment["PYSPARK_PYTHON"] = environment["PYSPARK_DRIVER_PYTHON"] = str(chosen)
        self.process = subprocess.Popen(
            [str(chosen), "-m", "bench.harness.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.open("w"),
            text=True,
            cwd=HERE,
            env=environment,
        )
        package = Path(self.answer()["package"])
        if not package.resolve().is_relative_to(source.resolve()):
            raise SideFailed(f"the side '{self.name}' imports {package}, not the package under {source}")

    def answer(self) -> dict[str, Any]:
        """The next line the process says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SideFailed(f"the side '{self.name}' ended with code {self.process.wait()}; its log says why")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, **request: Any) -> dict[str, Any]:
        """One request and its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def stop(self) -> None:
        """Ends the process."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()


def own_python(checkout: Path) -> Path:
    """The checkout's own interpreter; this process's, if it has none."""
    own = checkout / ".venv" / "bin" / "python"
    return own if own.exists() else Path(sys.executable)


def compare(
    before: Path,
    after: Path,
    names: Sequence[str],
    *,
    size: str,
    rounds: int,
    minutes: float,
    output: Path,
    pythons: Mapping[str, Path | None],
) -> list[dict[str, Any]]:
    """Runs the experiments on both sides; writes every run to Parquet and the ratios to JSON and Markdown."""
    output.mkdir(parents=True, exist_ok=True)
    sides = [Side("before", before.resolve()), Side("after", after.resolve())]
    points = [(name, index) for name in names for index in range(len(find_experiment(name).cases(size)))]
    deadline = time.monotonic() + 60 * minutes
    runs: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    try:
        for side in sides:
            side.start(pythons.get(side.name), output / f"{side.name}.log")
        for number, (name, index) in enumerate(points):
            allowed = max(0.0, deadline - time.monotonic()) / (len(points) - number)
            found = one_case(sides, name, index, size, rounds, time.monotonic() + allowed)
            runs += found
            lines += ratios(found)
            for line in lines[len(lines) - len({run["contestant"] for run in found}) :]:
                print(as_text(line), flush=True)
    finally:
        for side in sides:
            if hasattr(side, "process"):
                side.stop()
    facts = {
        "before": {"checkout": str(before), "commit": commit_of(before)},
        "after": {"checkout": str(after), "commit": commit_of(after)},
        "size": size,
        "machine": machine_facts(),
    }
    if runs:
        pq.write_table(pa.Table.from_pylist(runs), output / "compare.parquet")
    (output / "compare.json").write_text(json.dumps({**facts, "ratios": lines}, indent=1) + "\n")
    (output / "COMPARE.md").write_text(as_markdown(facts, lines))
    return lines


def one_case(
    sides: Sequence[Side], name: str, index: int, size: str, rounds: int, deadline: float
) -> list[dict[str, Any]]:
    """The runs of all contestants of a case, both sides in turns; the first run of each warms up."""
    case = find_experiment(name).cases(size)[index]
    told = {side.name: side.ask(experiment=name, size=size, case=index) for side in sides}
    label = {"experiment": name, "series": case.series, "x": str(case.x)}
    failed = {side: answer["error"] for side, answer in told.items() if "error" in answer}
    if failed:
        return [{**label, "contestant": "-", "side": side, "round": 0, "error": why} for side, why in failed.items()]
    contestants = list(dict.fromkeys(each for answer in told.values() for each in answer["contestants"]))
    runs: list[dict[str, Any]] = []
    broken: set[tuple[str, str]] = set()
    for turn in range(rounds + 1):
        if turn > 1 and time.monotonic() > deadline:
            break
        for contestant in contestants:
            for side in sides if turn % 2 == 0 else reversed(sides):
                if (side.name, contestant) in broken:
                    continue
                if contestant not in told[side.name]["contestants"]:
                    broken.add((side.name, contestant))
                    continue
                answer = side.ask(contestant=contestant)
                answer["metrics"] = json.dumps(answer.get("metrics", {}))
                if "error" in answer:
                    broken.add((side.name, contestant))
                if turn > 0 or "error" in answer:
                    runs.append({**label, "contestant": contestant, "side": side.name, "round": turn, **answer})
    return runs


def ratios(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each contestant of a case: median seconds of both sides, their ratio, and whether they found the same."""
    lines = []
    for contestant in dict.fromkeys(run["contestant"] for run in runs):
        ours = [run for run in runs if run["contestant"] == contestant]
        line: dict[str, Any] = {key: ours[0][key] for key in ("experiment", "series", "x", "contestant")}
        by_side = {side: [run for run in ours if run["side"] == side] for side in ("before", "after")}
        for side, theirs in by_side.items():
            seconds = [run["seconds"] for run in theirs if "seconds" in run]
            if seconds:
                line[side] = statistics.median(seconds)
                line[f"{side}_spread"] = max(seconds) / min(seconds)
                line[f"{side}_peak_mb"] = statistics.median(run["peak_mb"] for run in theirs if "peak_mb" in run)
            elif theirs:
                line[f"{side}_error"] = theirs[-1].get("error", "")
        if "before" in line and "after" in line:
            # The round-wise ratios share the machine's mood of the moment; their median is steadier than that of sums.
            at = {
                side: {r["round"]: r["seconds"] for r in theirs if "seconds" in r} for side, theirs in by_side.items()
            }
            line["ratio"] = statistics.median(
                at["after"][n] / at["before"][n] for n in at["before"] if n in at["after"]
            )
            answers = {(run.get("matches"), run.get("digest")) for run in ours if "seconds" in run}
            line["same_matches"] = len(answers) == 1
        lines.append(line)
    return lines


def as_text(line: Mapping[str, Any]) -> str:
    """A ratio as one line for the terminal."""
    name = " ".join(str(line[key]) for key in ("experiment", "series", "x", "contestant") if line[key] != "")
    if "ratio" not in line:
        why = line.get("before_error") or line.get("after_error") or "only one side has it"
        return f"{name:60} not compared: {why[:120]}"
    mark = "" if line["same_matches"] else "  MATCHES DIFFER"
    return f"{name:60} {line['before']:9.4f} s -> {line['after']:9.4f} s   x{line['ratio']:.2f}{mark}"


def as_markdown(facts: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> str:
    """The report for people: a table and what stands out."""
    compared = [line for line in lines if "ratio" in line]
    text = [
        f"# {facts['before']['commit']} (before) and {facts['after']['commit']} (after)",
        "",
        f"{facts['machine']['processor']}, {facts['machine']['cores']} cores, size {facts['size']}, in turns.",
        "Ratio: seconds after / seconds before, median over rounds; below 1 is faster.",
        "",
    ]
    if compared:
        middle = statistics.geometric_mean(line["ratio"] for line in compared)
        slower = [line for line in compared if line["ratio"] > NOISE]
        text += [
            f"Geometric mean {middle:.2f} over {len(compared)}; {len(slower)} slower by more than {NOISE - 1:.0%}."
        ]
        differ = [line for line in compared if not line["same_matches"]]
        text += [f"**Matches differ in {len(differ)}.**" if differ else "All find the same matches.", ""]
    text += [
        "| experiment | case | contestant | before s | after s | ratio | peak MB | matches |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for line in lines:
        case = " ".join(str(line[key]) for key in ("series", "x") if line[key] != "")
        begin = f"| {line['experiment']} | {case} | {line['contestant']} |"
        if "ratio" in line:
            peak = f"{line['before_peak_mb']:.0f} -> {line['after_peak_mb']:.0f}"
            same = "same" if line["same_matches"] else "**differ**"
            text.append(f"{begin} {line['before']:.4f} | {line['after']:.4f} | {line['ratio']:.2f} | {peak} | {same} |")
        else:
            why = line.get("before_error") or line.get("after_error") or "only one side has it"
            text.append(f"{begin} | | | | {why[:150].replace('|', '/')} |")
    return "\n".join(text) + "\n"

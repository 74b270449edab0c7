"""Draws cases of every area for as long as is asked, goes on where it stopped, and says what it found.

    make verify MINUTES=60
    python tests/verification/run.py --minutes 60 [--area "row patterns"] [--only many] [--record build/verification]

Each round takes the area that is furthest behind, with a seed of its own. What page.py has added up in record.json
counts, too, so that a fresh clone draws no seed again. `cases.jsonl` in the record's folder has a line for each run of
a property; `failures` has the smallest failing case of each property, with the command that draws it again. The exit
code is 1 if the newest run of any property failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from verification.areas import AREAS, Area

KEPT = Path(__file__).parent / "record.json"  # what page.py added up, kept with the sources
ROUND = 300.0  # seconds that a round should take, so that all areas have their turn in half an hour
MOST, FEWEST = 2000, 4  # cases of one property in one round

Line = dict[str, Any]


def lines_of(record: Path) -> list[Line]:
    """What was recorded so far."""
    file = record / "cases.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def read_kept() -> dict[str, Any]:
    """What earlier runs added up: areas, why cases of cells are refused, and the last seeds."""
    empty: dict[str, Any] = {"areas": {}, "reasons": {}, "seeds": {}}
    return empty | (json.loads(KEPT.read_text()) if KEPT.exists() else {})


def progress(kept: dict[str, Any], lines: Iterable[Line]) -> dict[str, int]:
    """Cases drawn so far, by area."""
    drawn: dict[str, int] = defaultdict(int)
    for name, area in kept.items():
        drawn[name] = area["cases"]
    for line in lines:
        drawn[line["area"]] += line["cases"]
    return drawn


def cases_of_next_round(area: Area, lines: Iterable[Line]) -> dict[str, int]:
    """Cases of each property that ran before, such that all take equally long and the round as long as rounds should.

    Slow properties draw fewer cases than fast ones, but some in every round. What counts is processor time, which is
    the same on a busy machine; on Spark, most of that is another process's.
    """
    clock = "processor" if area.environment else "seconds"
    newest = {line["property"]: line for line in lines if line["area"] == area.name and not line["failed"]}
    share = ROUND / max(len(newest), 1)
    wanted = {}
    for name, line in newest.items():
        affordable = int(line["asked"] * share / max(line[clock], 0.001))
        wanted[name] = max(min(affordable, 4 * line["asked"], MOST), FEWEST)
    return wanted


def run_round(area: Area, seed: int, cases: dict[str, int], record: Path, deadline: float, only: str) -> list[Line]:
    """Runs the properties of an area once, in a process of its own, and adds their lines to the record."""
    fresh, asked = record / "round.jsonl", record / "asked.json"
    fresh.unlink(missing_ok=True)
    asked.write_text(json.dumps(cases))
    at = commit()
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "verification.drawn_cases",
        "-p",
        "no:cacheprovider",
        "-m",
        "",
    ]
    command += [
        "--no-header",
        "--no-summary",
        f"--cases={area.first}",
        f"--cases-of={asked}",
        f"--cases-record={fresh}",
        f"--hypothesis-seed={seed}",
    ]
    chosen = " and ".join(f"({each})" for each in (area.chosen, only) if each)
    command += (["-k", chosen] if chosen else []) + list(area.tests)
    environment = {
        **os.environ,
        **area.environment,
        "PYTHONPATH": os.pathsep.join(["tests", os.environ.get("PYTHONPATH", "")]),
    }
    with (record / "output.txt").open("w") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        try:
            process.wait(max(deadline - time.monotonic(), 1.0))
        except subprocess.TimeoutExpired:
            process.terminate()  # what was drawn so far is in the record
            process.wait()
    lines = [json.loads(line) for line in fresh.read_text().splitlines()] if fresh.exists() else []
    for line in lines:
        line |= {"area": area.name, "seed": seed, "commit": at, "failed": "failure" in line}
    with (record / "cases.jsonl").open("a") as kept:
        kept.writelines(
            json.dumps({key: value for key, value in line.items() if key != "failure"}) + "\n" for line in lines
        )
    for line in lines:
        keep_failure(area, line, record)
    return lines


def keep_failure(area: Area, line: Line, record: Path) -> None:
    """Writes the smallest failing case of a property to a file, or removes the file once it passes."""
    folder = record / "failures"
    folder.mkdir(exist_ok=True)
    file = folder / (re.sub(r"\W+", "-", f"{area.name} {line['property']}").strip("-") + ".txt")
    if "failure" not in line:
        return
    variables = " ".join(f"{name}={value}" for name, value in area.environment.items())
    command = f"{variables} PYTHONPATH=tests pytest -m '' -p verification.drawn_cases --cases={line['asked']}"
    command += f" --cases-record=/dev/null --hypothesis-seed={line['seed']} '{line['property']}'"
    file.write_text(f"{command.strip()}\n\n{line['failure']}\n")


def commit() -> str:
    """The commit that is checked out."""
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip()


def verify(areas: list[Area], minutes: float, record: Path, only: str = "") -> list[Line]:
    """Rounds until the time is over; the lines of all of them."""
    record.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + 60 * minutes
    lines, kept = lines_of(record), read_kept()
    seed = max((line["seed"] for line in lines), default=kept["seeds"].get("cases", 0))
    found: list[Line] = []
    while areas and time.monotonic() < deadline:
        drawn = progress(kept["areas"], lines)
        area = min(areas, key=lambda each: drawn[each.name] / each.wanted)
        seed += 1
        cases = cases_of_next_round(area, lines)
        new = run_round(area, seed, cases, record, min(deadline, time.monotonic() + 5 * ROUND), only)
        lines, found = lines + new, found + new
        failed = [line["property"] for line in new if "failure" in line]
        total = drawn[area.name] + sum(line["cases"] for line in new)
        print(
            f"{area.name}: {total:,} of {area.wanted:,} cases, seed {seed}{': ' if failed else ''}{', '.join(failed)}",
            flush=True,
        )
        if not new and time.monotonic() < deadline:
            print(
                f"no property of {area.name} came to its end: left out\n{(record / 'output.txt').read_text()[-2000:]}"
            )
            areas = [each for each in areas if each is not area]
    return found


def report(areas: list[Area], record: Path) -> int:
    """Prints the state of every area; the number of properties whose newest run failed."""
    lines = lines_of(record)
    newest: dict[tuple[str, str], bool] = {(line["area"], line["property"]): line["failed"] for line in lines}
    drawn = progress(read_kept()["areas"], lines)
    for area in areas:
        properties = [key for key in newest if key[0] == area.name]
        failing = [name for key, failed in newest.items() for name in key[1:] if failed and key[0] == area.name]
        print(
            f"{area.name:30} {drawn[area.name]:>9,} of {area.wanted:,} cases, "
            f"{len(properties)} properties, {len(failing)} failing"
        )
        for name in failing:
            print(f"    {name}")
    return sum(newest.values())


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--area", action="append", choices=[area.name for area in AREAS], help="only these areas")
    parser.add_argument("--only", default="", help="only properties with such names, as for pytest -k")
    parser.add_argument("--first", type=int, help="cases of each property in the first round")
    parser.add_argument("--record", type=Path, default=Path("build/verification"))
    asked = parser.parse_args()
    areas = [area for area in AREAS if not asked.area or area.name in asked.area]
    if asked.first:
        areas = [replace(area, first=asked.first) for area in areas]
    verify(areas, asked.minutes, asked.record, asked.only)
    raise SystemExit(1 if report(areas, asked.record) else 0)


if __name__ == "__main__":
    main()

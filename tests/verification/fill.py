"""Fills the cells of the matrix for as long as is asked, and goes on where it stopped.

    python tests/verification/fill.py --minutes 20 [--runner "Spark stream"] [--record build/verification]

Cells with the fewest cases come first, those of cells.txt and of the record together. `cells.jsonl` in the record's
folder has a line for each case: the cell, the seed, what became of it, and how many rows were found. The exit code is 1
if a cell's newest case differs.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from verification import kept_cells
from verification.matrix import IN_MEMORY, ON_SPARK, Cell, OnSpark, Outcome, cells, outcome_of
from verification.run import commit, read_kept

Line = dict[str, Any]


def lines_of(record: Path) -> list[Line]:
    """The cases that were run so far."""
    file = record / "cells.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def run_cell(cell: Cell, seed: int, on_spark: OnSpark | None = None) -> Outcome:
    """What becomes of a cell; an error that is not ours is a difference, too."""
    try:
        return outcome_of(cell, seed, on_spark)
    except Exception:
        return Outcome("differs", f"{cell} seed {seed}\n{traceback.format_exc()[-2000:]}")


@contextmanager
def runner_of(name: str) -> Iterator[OnSpark | None]:
    """What runs the cells of a runner."""
    if name in IN_MEMORY:
        yield None
        return
    from verification.on_spark import session_for

    with session_for(name) as run:
        yield run


def fill(runners: list[str], minutes: float, record: Path) -> None:
    """Runs cells until the time is over."""
    record.mkdir(parents=True, exist_ok=True)
    lines = lines_of(record)
    by_cell = kept_cells.read()
    kept_cells.add(by_cell, lines)
    done = {cell: counts.total() for cell, counts in by_cell.items()}
    seed = max((line["seed"] for line in lines), default=read_kept()["seeds"].get("cells", 0))
    at = commit()
    with (record / "cells.jsonl").open("a") as kept:
        for number, name in enumerate(runners):
            deadline = time.monotonic() + 60 * minutes / len(runners)
            mine = [cell for cell in cells() if cell.runner == name]
            random.Random(seed + number).shuffle(mine)
            mine.sort(key=lambda cell: done[cell])  # stable: drawn order among equals
            with runner_of(name) as run:
                count: Counter[str] = Counter()
                left = {cell for cell in mine if done[cell] == 0}
                for cell in mine:
                    if time.monotonic() > deadline:
                        break
                    seed += 1
                    outcome = run_cell(cell, seed, run)
                    count[outcome.state] += 1
                    left.discard(cell)
                    line = {"cell": cell, "seed": seed, "commit": at, "at": time.strftime("%Y-%m-%d", time.gmtime())}
                    line |= {"state": outcome.state, "detail": outcome.detail, "rows": outcome.matches}
                    kept.write(json.dumps(line) + "\n")
                    kept.flush()
                    if outcome.state == "differs":
                        print(outcome.detail, flush=True)
            print(f"{name}: {dict(count)}, {len(left)} cells left", flush=True)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--runner", action="append", help="only these runners; otherwise those that need no Spark")
    parser.add_argument("--spark", action="store_true", help="the runners on Spark")
    parser.add_argument("--record", type=Path, default=Path("build/verification"))
    asked = parser.parse_args()
    fill(asked.runner or list((*ON_SPARK, "Connect") if asked.spark else IN_MEMORY), asked.minutes, asked.record)
    newest = {Cell(*line["cell"]): line["state"] for line in lines_of(asked.record)}
    raise SystemExit(1 if "differs" in newest.values() else 0)


if __name__ == "__main__":
    main()

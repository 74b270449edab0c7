"""What became of each cell of the matrix: cells.txt, kept with the sources.

A line is for all kinds of data of a cell: `query text | auto | rows | none | pyarrow | local: 3a 1a2r . ...`, in the
order of `DATA`. Of the cases of a cell, `3a` agree, `2r` are refused and `1d` differ; `.` is a cell that was not run.
Cases that differ are forgotten when a later one agrees.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from verification.matrix import DATA, Cell, cells

FILE = Path(__file__).parent / "cells.txt"
LETTERS = {"agrees": "a", "refused": "r", "differs": "d"}
Kept = dict[Cell, Counter[str]]


def _line_of(cell: Cell) -> str:
    return " | ".join((cell.language, cell.engine, cell.output, cell.uncertainty, cell.table, cell.runner))


def read(file: Path = FILE) -> Kept:
    """The cases of each cell by what became of them; a cell that was not run has none."""
    lines = dict(line.split(": ") for line in file.read_text().splitlines()) if file.exists() else {}
    states = {letter: state for state, letter in LETTERS.items()}
    kept: Kept = {}
    for cell in cells():
        shown = lines[_line_of(cell)].split()[DATA.index(cell.data)] if _line_of(cell) in lines else "."
        kept[cell] = Counter({states[letter]: int(number) for number, letter in re.findall(r"(\d+)(\w)", shown)})
    return kept


def add(kept: Kept, lines: Iterable[dict[str, Any]]) -> None:
    """Adds recorded cases; those of cells that are no longer in the matrix are left out."""
    for line in lines:
        if (cell := Cell(*line["cell"])) in kept:
            kept[cell][line["state"]] += 1
            if line["state"] == "agrees":
                kept[cell].pop("differs", None)


def write(kept: Kept, file: Path = FILE) -> None:
    """Writes all cells."""
    lines: dict[str, list[str]] = {}
    for cell, counts in kept.items():
        shown = "".join(f"{counts[state]}{letter}" for state, letter in LETTERS.items() if counts[state])
        lines.setdefault(_line_of(cell), []).append(shown or ".")
    file.write_text("".join(f"{line}: {' '.join(shown)}\n" for line, shown in lines.items()))

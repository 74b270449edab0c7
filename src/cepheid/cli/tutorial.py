"""`cepheid tutorial`: the first steps, run one after another in a terminal, or as a notebook."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer
from rich.syntax import Syntax

import cepheid
from cepheid.cli.match_table import match_table
from cepheid.cli.messages import explaining_delay, note, out
from cepheid.cli.outputs import replacing
from cepheid.errors import CepheidError

_Notebook = Annotated[
    Path | None,
    typer.Option("--notebook", metavar="PATH", help="Write the steps to a notebook, and open it if Jupyter exists."),
]
_Pause = Annotated[bool, typer.Option("--pause/--no-pause", help="Wait for Enter after each step.")]


@dataclass(frozen=True)
class Lesson:
    """A step: what it is about, the table of `cepheid.examples` that it reads, and its query."""

    title: str
    text: str
    table: str
    query: str
    tiebreak: tuple[str, ...] = ()


STEPS = (
    Lesson(
        "A sequence",
        "Articles are taken from a shelf and leave the shop. [tag] requires the same tag in both events.",
        "shoplifting",
        "PATTERN SEQ(Shelf a, Exit c)\nWHERE [tag]\nWITHIN 2 hours",
    ),
    Lesson(
        "An absence",
        "!(Register b) requires that no register reading comes in between: these articles were not paid for.",
        "shoplifting",
        "PATTERN SEQ(Shelf a, !(Register b), Exit c)\nWHERE [tag]\nWITHIN 2 hours",
    ),
    Lesson(
        "Repetition",
        "Failed{5} matches five failed logins; then one succeeds. RETURN lists the result's columns.",
        "logins",
        "PATTERN SEQ(Failed{5} a[], Accepted b)\nWHERE skip_till_next_match { [user, host] }\nWITHIN 1 minute\n"
        "RETURN b.user AS user, b.host AS host, b.ts - a[1].ts AS took\nOUTPUT NON-OVERLAP",
        ("row",),
    ),
    Lesson(
        "Something that never happens",
        "On a table, WITHIN ALL covers all events up to the last one: these orders are never paid.",
        "orders",
        "PATTERN SEQ(Ordered a, !(Paid b))\nWHERE [customer]\nWITHIN ALL\n"
        "RETURN a.customer AS customer, a.amount AS amount",
    ),
)
NEXT = (
    "Your own data: cepheid run query.cepheid --input events.csv. Nothing found: cepheid why, with the same arguments."
)


def tutorial(notebook: _Notebook = None, pause: _Pause = True) -> None:
    """Show the first steps: four queries over tables of the package, each with its result.

    Examples:

        cepheid tutorial

        cepheid tutorial --notebook first-steps.ipynb
    """
    if notebook is not None:
        _write(notebook)
        return
    waits = pause and sys.stdin.isatty() and out.is_terminal
    for number, step in enumerate(STEPS, start=1):
        out.print(f"{number}. {step.title}", style="bold")
        out.print(f"{step.text} The events are cepheid.examples.{step.table}().")
        out.print(Syntax(step.query, "sql", background_color="default") if out.is_terminal else step.query)
        with explaining_delay():
            out.print(match_table(matches(step), limit=5))
        if waits and number < len(STEPS):
            typer.prompt("press Enter to continue", default="", show_default=False, prompt_suffix=" ")
    out.print(NEXT)


def matches(step: Lesson) -> pa.Table:
    """What the query of a step finds."""
    events = pa.Table.from_pandas(getattr(cepheid.examples, step.table)(), preserve_index=False)
    result: pa.Table = cepheid.match(events, step.query, tiebreak=step.tiebreak)
    return result


def as_notebook() -> dict[str, object]:
    """The steps as a notebook of Jupyter's format 4."""
    cells = [_cell("markdown", "# First steps with Cepheid"), _cell("code", "import cepheid\n%load_ext cepheid")]
    for step in STEPS:
        options = "".join(f" --tiebreak {each}" for each in step.tiebreak)
        cells += [
            _cell("markdown", f"## {step.title}\n\n{step.text}"),
            _cell("code", f"{step.table} = cepheid.examples.{step.table}()\n{step.table}.head()"),
            _cell("code", f"%%cepheid {step.table}{options}\n{step.query}"),
        ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    for number, cell in enumerate(cells):
        cell["id"] = f"step-{number}"
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _cell(kind: str, text: str) -> dict[str, object]:
    source = text.splitlines(keepends=True)
    more: dict[str, object] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": source, **more}


def _write(path: Path) -> None:
    if path.suffix != ".ipynb":
        raise CepheidError(
            f"--notebook {path}: a notebook ends in .ipynb", hint=f"name it {path.with_suffix('.ipynb')}"
        )
    if path.exists():
        raise CepheidError(f"--notebook {path} exists", hint="name another, or remove it")
    with replacing(path) as beside:
        beside.write_text(json.dumps(as_notebook(), indent=1) + "\n", encoding="utf-8")
    note(f"wrote {path}")
    jupyter = shutil.which("jupyter")
    if jupyter is not None and out.is_terminal:
        subprocess.run([jupyter, "lab", str(path)], check=False)
    else:
        note(f"open it with Jupyter or an editor: jupyter lab {path}")

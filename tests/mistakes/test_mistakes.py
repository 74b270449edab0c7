"""Every mistake of two lists is told with its place, its value and its remedy; told.txt says how, to be read by eye.

`PYTHONPATH=tests:src python -m mistakes.test_mistakes` writes told.txt again.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

from cepheid.cli import exit_code
from cepheid.errors import CepheidError
from mistakes import calls, commands

TOLD = Path(__file__).with_name("told.txt")
LISTED = "; there are "  # the list of all options, which grows


def told_in_python(name: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            calls.CASES[name]()
        except CepheidError as error:
            return str(error).partition(LISTED)[0]
    raise AssertionError(f"{name}: nothing was said")


def told_on_the_command_line(arguments: list[str], folder: Path) -> str:
    for name, content in commands.FILES.items():
        Path(folder, name).write_bytes(content)
    Path(folder, "d").mkdir(exist_ok=True)
    said = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        code = exit_code(arguments)
    assert code == 1, f"{arguments}: exit code {code}: {said.getvalue()}"
    lines = [line.strip("│╭╰─╮╯ ") for line in said.getvalue().splitlines()]  # without the frame of a terminal
    return "\n".join(line for line in lines if line and not line.startswith(("Usage", "Try", "Error")))


def command(arguments: list[str]) -> str:
    return "cepheid " + " ".join(arguments).replace(commands.Q, "Q")


def expected() -> dict[str, str]:
    blocks = TOLD.read_text(encoding="utf-8").split("\n=== ")[1:]
    return {block.partition("\n")[0]: block.partition("\n")[2].strip("\n") for block in blocks}


@pytest.mark.parametrize("name", calls.CASES)
def test_in_python(name: str) -> None:
    assert told_in_python(name) == expected()[name]


# What starts Spark takes as long as all others together.
SLOW = {"--stream": [pytest.mark.slow]}
CASES = [pytest.param(case, id=command(case), marks=SLOW.get(case[-1], [])) for case in commands.CASES]


@pytest.mark.parametrize("arguments", CASES)
def test_on_the_command_line(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert told_on_the_command_line(arguments, tmp_path) == expected()[command(arguments)]


def write() -> None:
    os.environ["COLUMNS"] = "160"
    blocks = [f"{name}\n{told_in_python(name)}" for name in calls.CASES]
    with tempfile.TemporaryDirectory() as folder:
        blocks += [f"{command(each)}\n{told_on_the_command_line(each, Path(folder))}" for each in commands.CASES]
    head = "What is said to each mistake of calls.py and commands.py; see test_mistakes.py."
    TOLD.write_text("\n=== ".join([head + "\n", *(block + "\n" for block in blocks)]), encoding="utf-8")
    sys.stdout.write(f"{len(blocks)} mistakes\n")


if __name__ == "__main__":
    write()

"""Runs the console blocks of a page: every `$ cepheid ...` line works, and prints what the page says under it."""

from __future__ import annotations

import doctest
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from cepheid.cli import exit_code
from cepheid.cli.messages import out

BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@dataclass(frozen=True)
class Command:
    """A line after `$`, and what it is said to print (nothing: that is not shown)."""

    line: str
    printed: str


def commands(block: str) -> list[Command]:
    """The commands of a console block, in order; a backslash continues a line."""
    found = []
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, printed = part.replace("\\\n", " ").partition("\n")
        found.append(Command(line, printed))
    return found


def as_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are printed as on a terminal 80 columns wide, without colours."""
    monkeypatch.setattr(out, "_force_terminal", True)
    monkeypatch.setenv("COLUMNS", "80")


def run_page(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> int:
    """Runs the commands of a page in a folder; how many there were."""
    monkeypatch.chdir(folder)
    as_on_a_terminal(monkeypatch)
    return sum(run_block(block[1], capfd) for block in BLOCK.finditer(page.read_text(encoding="utf-8")))


def run_block(block: str, capfd: pytest.CaptureFixture[str]) -> int:
    """Runs the commands of one console block; how many there were."""
    found = [command for command in commands(block) if command.line.startswith("cepheid ")]
    for command in found:
        capfd.readouterr()
        code = exit_code(shlex.split(command.line)[1:])
        printed = capfd.readouterr()
        said = command.printed.strip()
        if said.startswith("error: "):
            assert code == 1, command.line
            assert_alike(said, printed.err, command.line)
        else:
            assert code == 0, f"{command.line}\n{printed.err}"
            if said:
                assert_alike(said, printed.out, command.line)
    return len(found)


def assert_alike(said: str, printed: str, line: str) -> None:
    """Do both say the same, spaces, rules and dots aside?"""
    wanted, found = (re.sub("─+", "─", text.strip()) + "\n" for text in (said, printed))
    if not doctest.OutputChecker().check_output(wanted, found, FLAGS):
        pytest.fail(f"$ {line}\nthe page says\n{said}\nbut it prints\n{printed}")

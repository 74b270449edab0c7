"""Commands run in this process, with what they print."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cepheid.cli import exit_code


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


Cepheid = Callable[..., Ran]


@pytest.fixture
def cepheid_command(capfd: pytest.CaptureFixture[str]) -> Cepheid:
    """Runs `cepheid` with arguments."""

    def run(*arguments: str | Path) -> Ran:
        capfd.readouterr()
        code = exit_code([str(argument) for argument in arguments])
        printed = capfd.readouterr()
        return Ran(code, printed.out, printed.err)

    return run


SHOP = """ts,type,id
1,Shelf,razor
2,Shelf,bread
3,Register,bread
4,Exit,bread
5,Exit,razor
"""
THEFT = "PATTERN SEQ(Shelf x, !(Register y), Exit z) WHERE [id] WITHIN 10"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A CSV file with one theft: the razor."""
    path = tmp_path / "shop.csv"
    path.write_text(SHOP)
    return path

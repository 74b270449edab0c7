"""The prompt of `cepheid sql`: statements over several lines, errors that do not end it, and a history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cepheid.cli.sql import history_file, named_files, prompt
from cepheid.errors import CepheidError


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def typed(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    given: Iterator[str] = iter(lines)

    def read(_: str) -> str:
        line = next(given, None)
        if line is None:
            raise EOFError
        if line == "^C":
            raise KeyboardInterrupt
        return line

    monkeypatch.setattr("builtins.input", read)


def test_statements_end_with_a_semicolon(monkeypatch: pytest.MonkeyPatch) -> None:
    typed(monkeypatch, "SELECT 1", "FROM t;", "SELECT 2;", "SELECT", "^C", "SELECT 3;")
    ran: list[str] = []
    prompt(None, [], ran.append)
    assert ran == ["SELECT 1\nFROM t;", "SELECT 2;", "SELECT 3;"]


def test_errors_do_not_end_it_and_quit_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(monkeypatch, "wrong;", "right;", "quit", "never;")
    ran: list[str] = []

    def run(text: str) -> None:
        if text == "wrong;":
            raise CepheidError("that is wrong")
        ran.append(text)

    prompt(None, [], run)
    assert ran == ["right;"]
    assert "that is wrong" in capsys.readouterr().err


def test_the_history_is_kept_where_state_is(tmp_path: Path) -> None:
    assert history_file() == tmp_path / "cepheid" / "sql_history"


def test_a_table_needs_a_name() -> None:
    with pytest.raises(CepheidError, match="has no table name"):
        named_files("ticks.parquet")

"""Each way a command can end has its exit code, and its message goes to stderr without a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

from cepheid.cli import run
from cepheid.cli.app import COMMANDS, app
from cli.conftest import THEFT, Cepheid


def test_zero_when_something_was_found(cepheid_command: Cepheid, shop: Path) -> None:
    assert cepheid_command("run", THEFT, "-i", shop).code == 0


def test_zero_when_nothing_was_found_and_a_way_on_is_named(cepheid_command: Cepheid, shop: Path) -> None:
    ran = cepheid_command("run", "PATTERN SEQ(Exit a, Shelf b) WITHIN 10", "-i", shop)
    assert (ran.code, ran.out) == (0, "")
    assert "cepheid why" in ran.err


def test_a_type_that_no_event_has_is_named(cepheid_command: Cepheid, shop: Path) -> None:
    ran = cepheid_command("run", "PATTERN SEQ(Shelf a, Exitt b) WITHIN 10", "-i", shop)
    assert ran.code == 0
    assert "did you mean 'Exit'?" in ran.err


def test_an_input_without_events_is_named(cepheid_command: Cepheid, tmp_path: Path) -> None:
    events = pa.table(
        {"ts": pa.array([], pa.int64()), "type": pa.array([], pa.string()), "id": pa.array([], pa.int64())}
    )
    pq.write_table(events, tmp_path / "none.parquet")
    ran = cepheid_command("run", THEFT, "-i", tmp_path / "none.parquet")
    assert ran.code == 0
    assert "the input holds no events" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "PATTERN SEQ(Shelf x, Exit z", "-i", "SHOP"], "expected ')'"),
        (["run", "PATTERN SEQ(Shelf x, Exit z) WHERE x.idd = 3", "-i", "SHOP"], "did you mean 'id'?"),
        (["run", "PATTERN SEQ(Shelf x, Exit z)", "-i", "SHOP", "--time", "tss"], "did you mean --time ts?"),
        (["run", "PATTERN SEQ(Shelf x, Exit z) WITHIN 3 hours", "-i", "SHOP"], "pass --time-unit ms"),
        (["run", "PATTERN SEQ(Shelf x, Exit z) WITHIN Longest", "-i", "SHOP"], "--parameter Longest=..."),
        (["run", "PATTERN SEQ(Shelf x, Exit z)", "-i", "SHOP", "--engine", "sequense"], "did you mean 'sequence'?"),
        (["run", "PATTERN SEQ(Shelf x, Exit z)", "-i", "SHOP", "-o", "found.parqet"], "did you mean found.parquet?"),
        (["run", "PATTERN SEQ(Shelf x, Exit z)", "-i", "SHOP", "-o", "nowhere/found.csv"], "mkdir -p nowhere"),
        (["run", "PATTERN SEQ(Shelf x, Exit z)", "-i", "no-such.csv"], "there is no such file"),
        (["run", "no-such.cepheid", "-i", "SHOP"], "there is no such file"),
        (["run", "PATTERN SEQ(Shelf x, Exit z)", "-i", "SHOP", "-p", "T"], "for example -p T=3600"),
        (["run", "PATTERN SEQ(Shelf x, Exit z)"], "--input"),
        (["run", "SHOP", "-i", "SHOP"], "pass it with --input"),
        (["run", THEFT, "-i", "SHOP", "-q", "b=PATTERN A a"], "--query NAME="),
        (["run", "-i", "SHOP"], "there is no query"),
        (["run", "-i", "SHOP", "-q", "PATTERN SEQ(A a, B b)"], "the query has no name"),
        (["run", "-i", "SHOP", "-q", "one=PATTERN SEQ(A a"], "query 'one': "),
        (["run", ".", "-i", "SHOP"], "holds no queries"),
        (["run", THEFT, "-i", "SHOP", "-o", "found.csv", "--partition-by", "query"], "needs an output directory"),
        (["run", THEFT, "-i", "SHOP", "-o", "found", "--partition-by", "matchstart"], "did you mean match_start?"),
        (["run", THEFT, "-i", "SHOP", "--functions", "none.py"], "there is no such file"),
        (["report", THEFT, "-i", "SHOP", "-o", "SHOP"], "is the input, and would overwrite it"),
        (["fit", THEFT, "-i", "SHOP", "-o", "SHOP"], "is the input, and would overwrite it"),
        (["simulate", "rfid", "10", "-o", "x.csv", "--truth", "x.csv"], "--truth and --output name the same file"),
        (["run", THEFT, "-i", "SHOP", "-o", "SHOP"], "is the input, and would overwrite it"),
        (["run", THEFT, "-i", "SHOP", "-o", "SHOP", "--master", "local[1]"], "is the input, and would overwrite it"),
        (["run", THEFT, "-i", "kafka://broker:9092/readings"], "add --stream"),
        (["run", f"{THEFT} THRESHOLD 0.1", "-i", "SHOP"], "learn one with `cepheid fit` and pass it with --model"),
        (["rum"], "Did you mean 'run'?"),
        (["match", "x"], "Did you mean 'run'?"),
        (["simulate", "rfid", "10", "-o", "x.csv", "--loss", "much"], "write it like --loss 0.05"),
        (["simulate", "rfid", "10", "-o", "x.csv", "--loss", "2"], "between 0 and 1"),
        (["simulate", "stocks", "10", "-o", "x.csv", "--truth", "t.csv"], "leave --truth out"),
        (["explain", THEFT, "--analyze"], "add --input PATH"),
    ],
)
def test_one_when_the_user_can_mend_it(
    cepheid_command: Cepheid,
    shop: Path,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = cepheid_command(*[str(shop) if item == "SHOP" else item for item in arguments])
    assert ran.code == 1
    assert ran.out == ""
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_two_when_the_fault_is_ours(cepheid_command: Cepheid, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(run, "read_events", broken)
    ran = cepheid_command("run", THEFT, "-i", shop)
    assert ran.code == 2
    assert "ZeroDivisionError: a defect" in ran.err
    assert "please report it" in ran.err


def _process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    command = [sys.executable, "-m", "cepheid.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**known, **environment}, check=False)


@pytest.mark.slow
def test_colours_switch_on_and_off() -> None:
    assert "\x1b[" in _process("check", "PATTERN SEQ(A a", FORCE_COLOR="1").stdout
    assert "\x1b[" not in _process("check", "PATTERN SEQ(A a", NO_COLOR="1").stdout
    assert "\x1b[" not in _process("check", "PATTERN SEQ(A a").stdout  # no terminal


def test_every_command_shows_an_example() -> None:
    commands = typer.main.get_command(app)
    assert isinstance(commands, typer.core.TyperGroup)
    context = typer.Context(commands)
    for name in commands.list_commands(context):
        command = commands.get_command(context, name)
        assert command is not None
        assert "Example" in (command.help or ""), name
        assert (command.help or "").partition("\n\n")[0] == COMMANDS[name]
    helped = _process("run", "--help")
    assert helped.returncode == 0
    assert "cepheid run" in helped.stdout


def test_a_deadline_stops_a_command(cepheid_command: Cepheid, tmp_path: Path) -> None:
    """It would take years, so that to come back at all is to be stopped."""
    events = pa.table({"ts": range(301), "type": ["A"] * 300 + ["B"], "x": [1] * 300 + [-1]})
    pq.write_table(events, tmp_path / "events.parquet")
    text = "PATTERN SEQ(A a, A b, A c, A d, A e, B f) WHERE a.x + b.x + c.x + d.x + e.x = f.x WITHIN 1000"
    ran = cepheid_command("run", text, "-i", tmp_path / "events.parquet", "--timeout", "0.5")
    assert ran.code != 0
    assert "--timeout 0.5" in ran.err
    assert ran.out == ""

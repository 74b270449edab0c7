"""Logs as input of commands."""

import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cepheid.files.input_files import find_files, format_of, keep_piped
from cli.conftest import Cepheid

LINES = [
    f"2024-05-04T09:00:0{n}Z web1 sshd[7]: {what} password for root from 10.0.0.9 port 22 ssh2"
    for n, what in enumerate(["Failed", "Failed", "Failed", "Accepted"])
]
BREAK_IN = "PATTERN SEQ(Failed{3} a[], Accepted b) WHERE [user, address] WITHIN 1 minute RETURN b.user AS user"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "auth.log"
    path.write_text("\n".join(LINES) + "\n")
    return path


def test_a_log_is_told_by_its_name_and_its_lines(cepheid_command: Cepheid, log: Path) -> None:
    ran = cepheid_command("run", BREAK_IN, "-i", log, "--quiet")
    assert json.loads(ran.out)["user"] == "root", ran.err
    for name in ("auth.log.1", "secure", "messages"):
        other = log.with_name(name)
        other.write_bytes(log.read_bytes())
        assert format_of(other) == "syslog"
    assert cepheid_command("run", BREAK_IN, "-i", other, "--format", "syslog", "--quiet").out == ran.out
    assert find_files([str(keep_piped(io.BytesIO(log.read_bytes())))]).format == "syslog"


def test_bad_lines_stop_or_are_set_aside(cepheid_command: Cepheid, log: Path, tmp_path: Path) -> None:
    log.write_text("\n".join([LINES[0], "--- rotated ---", *LINES[1:]]))
    ran = cepheid_command("run", BREAK_IN, "-i", log)
    assert ran.code == 1
    assert "line 2 is not a line of syslog: --- rotated ---" in ran.err
    assert "--bad-records drop" in ran.err
    aside = tmp_path / "bad.parquet"
    ran = cepheid_command("run", BREAK_IN, "-i", log, "--bad-records", "set aside", "--aside", aside)
    assert json.loads(ran.out)["user"] == "root", ran.err
    (bad,) = pq.read_table(aside).to_pylist()
    assert bad["unread"] == "line 2 is not a line of syslog: --- rotated ---"


def test_spark_does_not_read_logs_and_formats_are_known(cepheid_command: Cepheid, log: Path) -> None:
    assert "no format 'sylog'; choose syslog" in cepheid_command("run", BREAK_IN, "-i", log, "--format", "sylog").err

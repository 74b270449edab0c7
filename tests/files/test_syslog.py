"""System logs: forms, types of messages, years, and lines that are none."""

import gzip
import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import CepheidError, DataError

AUTH = """\
Dec 31 23:59:58 web1 sshd[101]: Failed password for invalid user bob from 10.0.0.9 port 4711 ssh2
Dec 31 23:59:59 web1 sshd[101]: message repeated 2 times: [ Failed password for root from 10.0.0.9 port 4712 ssh2]
Jan  1 00:00:01 web1 sshd[102]: Accepted publickey for root from 10.0.0.9 port 4713 ssh2: RSA SHA256:x
Dec 31 23:59:57 web1 sudo:   alice : TTY=pts/0 ; PWD=/ ; USER=root ; COMMAND=/bin/ls
Jan  1 00:00:02 web1 CRON[7]: pam_unix(cron:session): session opened for user root by (uid=0)
Jan  1 00:00:03 web1 kernel: [    0.1] Linux version 6
Jan  1 00:00:04 web1 last message repeated 2 times
"""


def written(folder: Path, text: str, name: str = "auth.log", changed: datetime | None = None) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    if changed is not None:
        os.utime(path, (changed.timestamp(), changed.timestamp()))
    return path


def test_messages_have_types_users_and_addresses(tmp_path: Path) -> None:
    table = cepheid.read(written(tmp_path, AUTH, changed=datetime(2024, 3, 1)))
    rows = table.to_pylist()
    assert [row["type"] for row in rows] == (
        ["Failed", "Failed", "Failed", "Accepted", "Sudo", "SessionOpened", "kernel", "kernel", "kernel"]
    )
    assert [row["user"] for row in rows[:6]] == ["bob", "root", "root", "root", "alice", "root"]
    assert (rows[0]["address"], rows[0]["port"]) == ("10.0.0.9", 4711)
    assert (rows[3]["host"], rows[3]["program"], rows[3]["pid"]) == ("web1", "sshd", 102)
    assert table.schema.field("ts").type == pa.timestamp("us")
    assert table.schema.field("port").type == table.schema.field("pid").type == pa.int64()


def test_years_follow_from_the_date_of_the_file_or_are_given(tmp_path: Path) -> None:
    path = written(tmp_path, AUTH, changed=datetime(2024, 3, 1))
    assert [str(each)[:10] for each in cepheid.read(path)["ts"].to_pylist()] == (
        ["2023-12-31"] * 3 + ["2024-01-01", "2023-12-31"] + ["2024-01-01"] * 4
    )
    assert str(cepheid.read(path, "syslog:2019")["ts"][3])[:4] == "2020"
    later = written(tmp_path, "May  4 10:00:00 h a: x\nMay  4 10:00:01 h a: y\n", changed=datetime(2024, 5, 3, 12))
    assert str(cepheid.read(later)["ts"][0])[:4] == "2024"  # clocks may differ by a day
    os.utime(later, (datetime(2024, 4, 1).timestamp(),) * 2)
    assert str(cepheid.read(later)["ts"][0])[:4] == "2023"


def test_the_29th_of_february_needs_its_year(tmp_path: Path) -> None:
    path = written(tmp_path, "Feb 29 10:00:00 h a: x\n", changed=datetime(2024, 12, 1))
    assert str(cepheid.read(path)["ts"][0]) == "2024-02-29 10:00:00"
    with pytest.raises(DataError, match="29th of February"):
        cepheid.read(path, "syslog:2023")
    with pytest.raises(CepheidError, match="is not a year"):
        cepheid.read(path, "syslog:24")


def test_times_with_zones_and_structured_lines(tmp_path: Path) -> None:
    text = (
        "2024-05-04T09:00:00.123456+02:00 h app[1]: hello\n"
        '<34>1 2024-05-04T07:00:01.003Z mymachine su 42 ID47 [a@1 b="x]y"][c@2 d="e"] \ufeffsession of root\n'
        "<165>1 2024-05-04T07:00:02Z - - - - -\n"
    )
    table = cepheid.read(written(tmp_path, text))
    assert table["ts"].to_pylist()[0] == datetime(2024, 5, 4, 7, 0, 0, 123456, tzinfo=UTC)
    rows = table.to_pylist()
    assert (rows[1]["message"], rows[1]["data"]) == ("session of root", '[a@1 b="x]y"][c@2 d="e"]')
    assert (rows[1]["priority"], rows[1]["pid"], rows[2]["host"], rows[2]["type"]) == (34, 42, None, "message")


def test_a_user_cannot_forge_the_address(tmp_path: Path) -> None:
    sent = "x from 1.1.1.1 port 22 ssh2"
    line = f"May  4 10:00:00 h sshd[1]: Failed password for invalid user {sent} from 6.6.6.6 port 40 ssh2\n"
    (row,) = cepheid.read(written(tmp_path, line)).to_pylist()
    assert (row["user"], row["address"], row["port"]) == (sent, "6.6.6.6", 40)


BAD = "May  4 10:00:00 h a: x\nno log\nMay 32 10:00:00 h a: x\n2024-05-04T07:00:02Z h a: x\n\nMay  4 10:00:01 h a: y\n"


def test_bad_lines_stop_or_are_left_out_or_set_aside(tmp_path: Path) -> None:
    path = written(tmp_path, BAD)
    with pytest.raises(DataError, match=r"line 2 is not a line of syslog: no log \(3 lines are like this\)"):
        cepheid.read(path)
    assert cepheid.read(path, bad_records="drop").num_rows == 2
    aside: list[pa.Table] = []
    assert cepheid.read(path, bad_records="set aside", aside=aside.append)["message"].to_pylist() == ["x", "y"]
    assert aside[0]["line"].to_pylist() == [2, 3, 4]
    assert aside[0]["text"].to_pylist()[0] == "no log"
    with pytest.raises(CepheidError, match="must be passed together"):
        cepheid.read(path, bad_records="set aside")


def test_bytes_that_are_no_text_and_endless_lines(tmp_path: Path) -> None:
    path = tmp_path / "auth.log.2.gz"
    with gzip.open(path, "wb") as stream:
        stream.write(b"May  4 10:00:00 h a: \xff\xfe\r\n" * 3)
    assert cepheid.read(path)["message"].to_pylist() == ["\\xff\\xfe"] * 3
    long = tmp_path / "long.log"
    long.write_bytes(b"May  4 10:00:00 h a: x\n" + b"x" * 3_000_000)
    with pytest.raises(DataError, match="line 2 is longer"):
        cepheid.read(long, "syslog")


def test_many_lines_come_in_batches(tmp_path: Path) -> None:
    path = written(tmp_path, "".join(f"May  4 10:00:{n % 60:02d} h a[{n}]: x\n" for n in range(45_000)))
    table = cepheid.read(path)
    assert table["pid"].to_pylist() == list(range(45_000))

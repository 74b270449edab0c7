"""Directories of results: only what a manifest names is ever removed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from cepheid.cli.outputs import replacing
from cepheid.errors import CepheidError
from cepheid.runners.result_folders import MANIFEST, clear, listed, others, write_manifest
from cli.conftest import THEFT, Cepheid

FOREIGN = [
    ".git/HEAD",
    ".ssh/id_rsa",
    "_drafts/one.txt",
    "part-time staff.xlsx",
    "k=1/notes",
    "part-0.parquet",
    "_SUCCESS",
]


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("name", [*FOREIGN, "empty/"])
def test_a_directory_with_anything_else_is_refused(
    cepheid_command: Cepheid, shop: Path, tmp_path: Path, name: str
) -> None:
    target = tmp_path / "found"
    place = target / name
    place.mkdir(parents=True) if name.endswith("/") else place.parent.mkdir(parents=True)
    if not name.endswith("/"):
        place.write_text("mine")
    before = tree(target)
    for more in ((), ("--partition-by", "x.id")):
        ran = cepheid_command("run", f"{THEFT} RETURN x.id AS id", "-i", shop, "-o", target, *more)
        assert ran.code == 1
        assert f"is a directory that holds {name}" in ran.err
    assert tree(target) == before
    assert place.exists()


def test_overwrite_removes_the_old_result_and_nothing_else(
    cepheid_command: Cepheid, shop: Path, tmp_path: Path
) -> None:
    target = tmp_path / "found"
    query = f"{THEFT} RETURN x.id AS id, x.ts AS ts"
    assert cepheid_command("run", query, "-i", shop, "-o", target, "--partition-by", "id").code == 0
    (first,) = listed(target)
    assert first.startswith("id=")
    for name in FOREIGN[:5]:
        (target / name).parent.mkdir(exist_ok=True)
        (target / name).write_text("mine")
    (target / first).with_name("notes").write_text("mine")
    mine = {name: text for name, text in tree(target).items() if text == b"mine"}
    refused = cepheid_command("run", query, "-i", shop, "-o", target)
    assert refused.code == 1
    assert "--overwrite" in refused.err
    again = cepheid_command("run", query, "-i", shop, "-o", target, "--overwrite")
    assert again.code == 0, again.err
    assert listed(target) == ["part-0.parquet"]
    assert not (target / first).exists()
    assert {name: text for name, text in tree(target).items() if text == b"mine"} == mine
    assert sorted(tree(target)) == sorted([*mine, "part-0.parquet", MANIFEST])


def test_overwrite_never_replaces_a_file_that_is_not_listed(
    cepheid_command: Cepheid, shop: Path, tmp_path: Path
) -> None:
    """A result of an earlier version, or of Spark, has no manifest: it is for its owner to remove."""
    target = tmp_path / "found"
    target.mkdir()
    (target / "part-0.parquet").write_text("mine")
    ran = cepheid_command("run", THEFT, "-i", shop, "-o", target, "--overwrite")
    assert ran.code == 1
    assert "holds part-0.parquet, which is not of an earlier result" in ran.err
    assert tree(target) == {"part-0.parquet": b"mine"}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (target / "part-0.parquet").unlink()
    (target / "id=a").symlink_to(elsewhere)
    (target / "id=b").symlink_to(elsewhere)
    query = f"{THEFT} RETURN x.id AS id, x.ts AS ts"
    ran = cepheid_command("run", query, "-i", shop, "-o", target, "--overwrite", "--partition-by", "id")
    assert list(elsewhere.iterdir()) == []


def test_results_are_replaced_and_read_as_before(cepheid_command: Cepheid, shop: Path, tmp_path: Path) -> None:
    target = tmp_path / "found"
    target.mkdir()  # an empty directory may be taken
    for _ in range(2):
        ran = cepheid_command("run", THEFT, "-i", shop, "-o", target)
        assert ran.code == 0, ran.err
        assert sorted(path.name for path in target.iterdir()) == [MANIFEST, "part-0.parquet"]
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    assert ds.dataset(str(target), format="parquet").to_table().num_rows == 1
    assert pq.read_table(target).num_rows == 1
    polars = pytest.importorskip("polars")
    assert polars.read_parquet(f"{target}/*.parquet").height == 1


@pytest.mark.parametrize(
    "manifest",
    [
        '{"format": "cepheid-result", "files": {"../mine": 4, "link/mine": 4, ".": 4, "": 4, "a/../mine": 4}}',
        '{"format": "cepheid-result", "files": {"mine": 5, "link": 4, "a": 4096}}',
        '{"format": "cepheid-result", "files": ["mine"]}',
        '{"format": "another", "files": {"mine": 4}}',
        "[]",
        "{",
        "[" * 100_000,
        "\0",
    ],
)
def test_a_manifest_that_others_made(tmp_path: Path, manifest: str) -> None:
    target = tmp_path / "found"
    (target / "a").mkdir(parents=True)
    (tmp_path / "mine").write_text("mine")
    (target / "mine").write_text("mine")
    (target / "link").symlink_to(tmp_path)
    (target / MANIFEST).write_text(manifest)
    assert listed(target) == []
    assert set(others(target)) >= {"mine", "link"}
    with pytest.raises(CepheidError, match="is a directory that holds"), replacing(target) as beside:
        beside.mkdir()
    clear(target)
    assert (tmp_path / "mine").exists()
    assert (target / "mine").exists()


def test_what_comes_into_the_directory_meanwhile_stays(tmp_path: Path) -> None:
    target = tmp_path / "found"
    with replacing(target) as beside:
        beside.mkdir()
        (beside / "part-0").write_text("first")

    def write() -> None:
        with replacing(target) as beside:
            beside.mkdir()
            (beside / "part-0").write_text("second")
            (target / "late.txt").write_text("mine")

    with pytest.raises(CepheidError, match=r"holds late\.txt"):
        write()
    assert tree(target).keys() == {"part-0", "late.txt", MANIFEST}
    assert (target / "part-0").read_text() == "first"
    write_manifest(target, {"part-0": 5})
    assert json.loads((target / MANIFEST).read_text())["files"] == {"part-0": 5}


def test_a_result_that_others_changed_is_theirs(cepheid_command: Cepheid, shop: Path, tmp_path: Path) -> None:
    target = tmp_path / "found"
    assert cepheid_command("run", THEFT, "-i", shop, "-o", target).code == 0
    (target / "part-0.parquet").write_text("mine")
    for more in ((), ("--overwrite",)):
        assert "holds part-0.parquet" in cepheid_command("run", THEFT, "-i", shop, "-o", target, *more).err
    (target / "part-0.parquet").unlink()
    (tmp_path / "mine").write_text("mine")
    (target / "part-0.parquet").symlink_to(tmp_path / "mine")
    for more in ((), ("--overwrite",)):
        assert "holds part-0.parquet" in cepheid_command("run", THEFT, "-i", shop, "-o", target, *more).err
    assert (tmp_path / "mine").read_text() == "mine"


FOREIGN_IN = {
    "run": ("run", THEFT, "-i", "SHOP", "-o"),
    "run --aside": ("run", THEFT, "-i", "SHOP", "--aside"),
    "run as a file": ("run", THEFT, "-i", "SHOP", "--aside", "bad.csv", "-o"),
    "run on Spark": ("run", THEFT, "-i", "SHOP", "--master", "local[1]", "-o"),
    "run as a stream": ("run", THEFT, "-i", ".", *("--stream", "--delay", "1 s", "--checkpoint", "state"), "-o"),
    "report": ("report", THEFT, "-i", "SHOP", "-o"),
    "report --aside": ("report", THEFT, "-i", "SHOP", "-o", "page.html", "--aside"),
    "fit": ("fit", THEFT, "-i", "SHOP", "--loss", "0.1", "-o"),
    "why --aside": ("why", THEFT, "-i", "SHOP", "--aside"),
    "simulate": ("simulate", "rfid", "5", "-o"),
    "simulate --truth": ("simulate", "rfid", "5", "-o", "events.csv", "--truth"),
    "simulate --query": ("simulate", "rfid", "5", "-o", "events.csv", "--query"),
    "sql": ("sql", "SELECT 1", "-o"),
    "demo": ("demo", "--local", "--tags", "100", "-o"),
}


@pytest.mark.parametrize("command", FOREIGN_IN.values(), ids=FOREIGN_IN)
@pytest.mark.parametrize("named", ["found", "found.csv"])
def test_every_command_leaves_the_files_of_others(
    cepheid_command: Cepheid,
    shop: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    named: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    target = tmp_path / named
    for name in (*FOREIGN, "report.html", "model.json"):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text("mine")
    before = tree(target)
    ran = cepheid_command(*(shop if part == "SHOP" else part for part in command), target)
    assert ran.code == 1
    assert "director" in ran.err
    has_option = command[0] in ("run", "sql", "simulate") and command[-1] not in ("--aside", "--query")
    assert has_option or "--overwrite" not in ran.err
    assert tree(target) == before


def test_what_is_read_is_not_written_over(cepheid_command: Cepheid, shop: Path, tmp_path: Path) -> None:
    before = shop.read_bytes()
    for command in (("run",), ("why",), ("report", "-o", tmp_path / "page.html")):
        ran = cepheid_command(command[0], THEFT, "-i", shop, "--aside", shop, *command[1:])
        assert ran.code == 1
        assert "is the input, and would overwrite it" in ran.err
    assert shop.read_bytes() == before


def test_a_file_is_not_replaced_by_a_directory(tmp_path: Path) -> None:
    target = tmp_path / "found"
    target.write_text("mine")
    with pytest.raises(CepheidError, match="it is a file"), replacing(target) as beside:
        beside.mkdir()
    assert target.read_text() == "mine"


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_a_run_that_is_told_to_end_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    """It is struck while the result is half written."""
    slow = """
import sys, time
from cepheid.cli import main, result_files
def write(table, path):
    path.write_text("half of")
    print("writing", flush=True)
    time.sleep(60)
result_files.WRITERS[".jsonl"] = write
main(["run", "PATTERN A a", "-i", sys.argv[1], "-o", sys.argv[2]])
"""
    pq.write_table(pa.table({"ts": [1], "type": ["A"]}), tmp_path / "in.parquet")
    arguments = [sys.executable, "-c", slow, str(tmp_path / "in.parquet"), str(tmp_path / "out.jsonl")]
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, text=True, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    process.send_signal(number)
    assert process.wait(timeout=30) == 128 + number
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]

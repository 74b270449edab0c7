"""What commands write: several queries, directories, and nothing that is read or was complete is ever lost."""

import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import cepheid
from cepheid.cli import result_files
from cepheid.cli.outputs import check_outputs, replacing
from cepheid.errors import CepheidError
from cepheid.runners.result_folders import MANIFEST
from cli.conftest import SHOP, THEFT, Cepheid

PAID = "PATTERN SEQ(Register y, Exit z) WHERE [id] WITHIN 10"


def test_several_queries_by_name_share_a_pass(cepheid_command: Cepheid, shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "paid.cepheid"
    file.write_text(PAID)
    ran = cepheid_command("run", "-q", f"theft={THEFT}", "-q", f"paid={file}", "-i", shop)
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert sorted((row["query"], row["match_end"]) for row in rows) == [("paid", 4), ("theft", 5)]
    shown = cepheid_command("run", "-q", f"theft={THEFT}", "-q", str(file), "-i", shop, "--show", "table")
    assert "theft" in shown.out
    assert "razor" in shown.out


def test_a_directory_of_queries(cepheid_command: Cepheid, shop: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "theft.cepheid").write_text(THEFT)
    (rules / "paid.cepheid").write_text(PAID)
    target = tmp_path / "found"
    ran = cepheid_command("run", rules, "-i", shop, "-o", target, "--partition-by", "query")
    assert ran.code == 0, ran.err
    assert sorted(path.name for path in target.iterdir()) == [MANIFEST, "query=paid", "query=theft"]
    # What was written can be read again, with its partition column, and be written over.
    again = cepheid_command("run", "PATTERN ANY(paid, theft) x", "-i", target, "--type", "query", "--time", "match_end")
    assert sorted(json.loads(line)["x"]["query"] for line in again.out.splitlines()) == ["paid", "theft"], again.err
    assert cepheid_command("run", THEFT, "-i", shop, "-o", target).code == 0
    assert sorted(path.name for path in target.iterdir()) == [MANIFEST, "part-0.parquet"]


def test_functions_from_a_file(cepheid_command: Cepheid, shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("import cepheid\n\n@cepheid.function\ndef twice_of(x: int) -> int:\n    return 2 * x\n")
    query = "PATTERN SEQ(Shelf x, Exit z) WHERE [id] AND twice_of(x.ts) = 2 WITHIN 10"
    ran = cepheid_command("run", query, "-i", shop, "--functions", file)
    assert len(ran.out.splitlines()) == 1, ran.err
    file.write_text("import cepheid\n\n1 / 0\n")
    broken = cepheid_command("run", query, "-i", shop, "--functions", file)
    assert broken.code == 1
    assert "mine.py, line 3: ZeroDivisionError" in broken.err


class Piped(io.TextIOWrapper):
    """Standard input with these bytes."""

    def __init__(self, text: str) -> None:
        super().__init__(io.BytesIO(text.encode()))


@pytest.mark.parametrize(
    "text", [SHOP, '{"ts": 1, "type": "Shelf", "id": "a"}\n{"ts": 3, "type": "Exit", "id": "a"}\n']
)
def test_events_through_a_pipe(cepheid_command: Cepheid, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", Piped(text))
    ran = cepheid_command("run", THEFT, "-i", "-")
    assert len(ran.out.splitlines()) == 1, ran.err
    twice = cepheid_command("run", "-", "-i", "-")
    assert twice.code == 1
    assert "standard input can be read once" in twice.err


def test_the_model_and_the_query_are_not_written_over(cepheid_command: Cepheid, shop: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.json"
    cepheid.Model(loss=0.1, gaps={"y": cepheid.Exponential(mean=2)}).save(model)
    query = tmp_path / "q.csv"  # an odd name, but it can be said
    before = model.read_text()
    ran = cepheid_command("run", THEFT, "-i", shop, "--model", model, "-o", model)
    assert (ran.code, model.read_text()) == (1, before)
    assert "is the input, and would overwrite it" in ran.err
    query.write_text(THEFT)
    with pytest.raises(CepheidError, match="would overwrite it"):
        check_outputs({"--output": query}, [query])
    hard = tmp_path / "other.csv"
    hard.hardlink_to(query)
    with pytest.raises(CepheidError, match="would overwrite it"):
        check_outputs({"--output": hard}, [query])


def test_a_full_disk_leaves_the_old_result(
    cepheid_command: Cepheid, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "found.parquet"
    assert cepheid_command("run", THEFT, "-i", shop, "-o", target).code == 0

    def full(_: Any, path: Path) -> None:
        path.write_bytes(b"half of")
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(result_files.WRITERS, ".parquet", full)
    ran = cepheid_command("run", THEFT, "-i", shop, "-o", target)
    assert ran.code == 1
    assert "No space left on device" in ran.err
    assert pq.read_table(target).num_rows == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["found.parquet", "shop.csv"]


def test_a_directory_is_replaced_when_the_new_one_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "found"
    for text in ("first", "second"):
        with replacing(target) as beside:
            beside.mkdir()
            (beside / "part-0").write_text(text)
        assert (target / "part-0").read_text() == text

    def interrupted() -> None:
        with replacing(target) as beside:
            beside.mkdir()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    assert (target / "part-0").read_text() == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["found"]


def test_a_link_goes_on_pointing(tmp_path: Path) -> None:
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    link.symlink_to(real)
    with replacing(link) as beside:
        beside.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"

"""Every story under examples/ runs as its README says and finds what it expects."""

import csv
import shutil
from pathlib import Path

import pytest

from console import run_page

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
STORIES = sorted(path for path in EXAMPLES.iterdir() if path.is_dir())
NEAR = 1e-6  # numbers that differ less are the same


def test_the_stories_are_there() -> None:
    assert {story.name for story in STORIES} >= {
        "antibiotics-overdose",
        "cluster-overload",
        "contaminated-shipments",
        "correlated-stocks",
        "lossy-readers",
        "misplaced-inventory",
        "shoplifting",
        "stock-trend",
    }


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_story(story: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / story.name
    shutil.copytree(story, folder)
    assert run_page(story / "README.md", folder, monkeypatch, capfd) > 0
    assert_same_rows(folder / "matches.csv", story / "expected.csv")


def assert_same_rows(found: Path, expected: Path) -> None:
    """The same rows in any order; numbers may differ in the last digits."""
    rows, wanted = rows_of(found), rows_of(expected)
    assert len(rows) == len(wanted)
    assert rows[0] == wanted[0]
    for row, other in zip(sorted(rows[1:]), sorted(wanted[1:]), strict=True):
        for value, wish in zip(row, other, strict=True):
            assert value == wish or float(value) == pytest.approx(float(wish), rel=NEAR)


def rows_of(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))

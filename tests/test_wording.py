"""The documentation uses the field's words: no page has a phrase of wording.txt in its own sentences."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "docs" / "llms.txt", *sorted((ROOT / "docs").glob("**/*.md"))]
OUTPUT = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def phrases() -> dict[str, str]:
    """Each phrase, in lower case, with what to write instead."""
    lines = (Path(__file__).parent / "wording.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.partition(" -> ") for line in lines if line and not line.startswith("#")]
    return {old.lower(): new for old, _, new in pairs}


def unwanted(text: str) -> list[str]:
    """What a text says that it should not, each with what to write instead."""
    sentences = " ".join(OUTPUT.sub(" ", text).lower().split())
    found = [(old, new) for old, new in phrases().items() if re.search(rf"(?<!\w){re.escape(old)}(?!\w)", sentences)]
    return [f"{old!r}: write {new!r}" for old, new in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_uses_an_old_phrase(page: Path) -> None:
    assert unwanted(page.read_text(encoding="utf-8")) == []


def test_phrases_are_found_across_lines_and_not_in_output() -> None:
    assert unwanted("An event\ncannot  Stand\nhere.") == ["'cannot stand here': write 'unexpected'"]
    assert unwanted("```console\n'x' cannot stand here\n```\n") == []
    assert unwanted("The message is commended; 11 hours are dearer.") == []


def test_every_phrase_has_a_better_one() -> None:
    assert phrases()
    assert all(phrases().values())

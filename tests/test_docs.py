"""The python blocks of every page under docs/ run, in order, and print what the page says."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parent.parent / "docs").glob("**/*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples(page: Path) -> None:
    """Blocks with >>> are compared with what they print; others only have to run. They share their names."""
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": f"docs.{page.stem}"}
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        if ">>>" in block[1]:
            example = doctest.DocTestParser().get_doctest(block[1], names, page.name, str(page), line)
            runner.run(example, clear_globs=False)
            names = example.globs
        else:
            exec(compile("\n" * line + block[1], str(page), "exec"), names)
    assert runner.failures == 0

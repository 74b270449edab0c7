"""The examples for Spark in the README and in the first steps run, in the session of the tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```py\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", pytest.param("docs/tutorial.md", marks=pytest.mark.slow)])
def test_examples(page: str, spark: Any) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    assert blocks
    names = {"__name__": "docs", "spark": spark}
    for block in blocks:
        exec(compile("\n" * text.count("\n", 0, block.start(1)) + block[1], page, "exec"), names)
    if page == "docs/tutorial.md":
        assert sorted(row["tag"] for row in spark.table("stolen").collect()) == [7, 27, 47]

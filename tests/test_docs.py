"""The python and console blocks of every page under docs/, and of the README, run in order and print what it says."""

from __future__ import annotations

import doctest
import html
import importlib.util
import re
from pathlib import Path

import pytest

import cepheid
from console import as_on_a_terminal, run_block

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```([^\n]*)\n.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)")
PRIVATE = re.compile(r"(?:from|import) cepheid\.(?:cli|diagnose|draw|engine|files|language|plan|report|runners)\b.*")
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Blocks with >>> are compared with what they print; other Python only has to run. Python blocks share names."""
    monkeypatch.chdir(tmp_path)
    as_on_a_terminal(monkeypatch)
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": f"docs.{page.stem}"}
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(2))
        if block[1] == "console":
            run_block(block[2], capfd)
        elif ">>>" in block[2]:
            example = doctest.DocTestParser().get_doctest(block[2], names, page.name, str(page), line)
            runner.run(example, clear_globs=False)
            names = example.globs
        else:
            exec(compile("\n" * line + block[2], str(page), "exec"), names)
    assert runner.failures == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_example_hides_from_the_tests(page: Path) -> None:
    """python and console blocks run here, py blocks with Spark in tests/spark, the others are not ours to run."""
    known = {"python", "console", "py", "sql", "text", "sh", "java"}
    assert set(FENCE.findall(page.read_text(encoding="utf-8"))) <= known
    spark = page.name in ("spark.md", "match-recognize-on-spark.md", "tutorial.md") or page == ROOT / "README.md"
    assert spark or "```py\n" not in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_import_public_names(page: Path) -> None:
    """Pages for users import from cepheid and its public modules; one page follows a query through the others."""
    if page.name != "how-a-query-runs.md":
        assert PRIVATE.findall(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_queries_of_compact_references_parse() -> None:
    text = (ROOT / "docs" / "cheat-sheet.md").read_text(encoding="utf-8")
    queries = re.findall(r"`(PATTERN \S[^`]*)`|<code>(PATTERN .*?)</code>", text)
    compact = (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8")
    queries += re.findall(r"^ {4}(PATTERN .*?)\n\n()", compact, re.MULTILINE | re.DOTALL)
    assert len(queries) > 20
    for query in queries:
        cepheid.query(html.unescape("".join(query)))


def test_drawings_show_what_queries_find() -> None:
    """`python docs/site/drawings.py` writes them anew."""
    found = importlib.util.spec_from_file_location("drawings", ROOT / "docs" / "site" / "drawings.py")
    assert found is not None
    assert found.loader is not None
    drawings = importlib.util.module_from_spec(found)
    found.loader.exec_module(drawings)
    for name, draw in drawings.DRAWINGS.items():
        assert (ROOT / "docs" / "img" / name).read_text(encoding="utf-8") == draw(), name

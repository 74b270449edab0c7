"""Pages, messages and names use the field's words: nothing that wording.txt lists, and no long table cells."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
PAGES = [*TOP, ROOT / "docs" / "llms.txt", *sorted((ROOT / "docs").glob("**/*.md"))]
SOURCES = sorted((ROOT / "src").glob("**/*.py"))
OUTPUT = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
MOST_WORDS = 25  # of a table cell
CODE = re.compile(r"``.*?``|`[^`]*`")
TARGET = re.compile(r"\]\([^)]*\)")
DOCSTRINGS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def listed(section: int) -> dict[str, str]:
    """The entries of a section of wording.txt, each with what to write instead."""
    text = (Path(__file__).parent / "wording.txt").read_text(encoding="utf-8")
    lines = re.split(r"^\[.*\]$", text, flags=re.MULTILINE)[section].splitlines()
    pairs = [line.partition(" -> ") for line in lines if line and not line.startswith("#")]
    return {old: new for old, _, new in pairs}


@cache
def phrases() -> dict[str, str]:
    """Each phrase, in lower case, with what to write instead."""
    return {old.lower(): new for old, new in listed(0).items()}


def retired(path: Path, source: str) -> list[str]:
    """The retired names of modules and classes that a module has, each with the name to use instead."""
    modules = [path.with_suffix(""), *path.parents]
    classes = [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]
    found = []
    for entry, new in listed(1).items():
        kind, _, old = entry.partition(" ")
        has = old in classes if kind == "class" else any(module.match(old) for module in modules)
        found += [f"{entry!r}: write {new!r}"] if has else []
    return found


def unwanted(text: str) -> list[str]:
    """What a text says that it should not, each with what to write instead."""
    sentences = " ".join(OUTPUT.sub(" ", text).lower().split())
    return [f"{old!r}: write {phrases()[old]!r}" for old in dict.fromkeys(any_phrase().findall(sentences))]


@cache
def any_phrase() -> re.Pattern[str]:
    """Finds every phrase, also one that begins inside another."""
    longest_first = sorted(phrases(), key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?=({'|'.join(map(re.escape, longest_first))})(?!\w))")


def long_cells(text: str) -> list[str]:
    """Cells of tables with too many words; code is one word, and targets of links are none."""
    rows = [line for line in OUTPUT.sub(" ", text).splitlines() if line.startswith("|")]
    cells = [cell for row in rows for cell in re.split(r"(?<!\\)\|", TARGET.sub("]", CODE.sub("code", row)))]
    return [cell.strip() for cell in cells if len(cell.split()) > MOST_WORDS]


def messages(source: str, *, help_texts: bool) -> Iterator[str]:
    """The strings of a module with a space in them; docstrings only where they are the help of a command."""
    tree = ast.parse(source)
    left_out = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, DOCSTRINGS) and not help_texts and ast.get_docstring(node) is not None:
            first = node.body[0]
            assert isinstance(first, ast.Expr)
            left_out.add(id(first.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and id(node) not in left_out and " " in str(node.value):
            yield str(node.value)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_uses_an_old_phrase(page: Path) -> None:
    assert unwanted(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_cell_of_a_table_is_long(page: Path) -> None:
    assert long_cells(page.read_text(encoding="utf-8")) == []


def test_no_message_uses_an_old_phrase() -> None:
    found = []
    for path in SOURCES:
        source = path.read_text(encoding="utf-8")
        for message in messages(source, help_texts="cli" in path.parts):
            found += [f"{path.relative_to(ROOT)}: {each}" for each in unwanted(message)]
    assert found == []


def test_no_module_or_class_has_a_retired_name() -> None:
    found = []
    for path in SOURCES:
        names = retired(path.relative_to(ROOT / "src"), path.read_text(encoding="utf-8"))
        found += [f"{path.relative_to(ROOT)}: {each}" for each in names]
    assert found == []


def test_retired_names_are_those_of_packages_modules_and_classes() -> None:
    assert retired(Path("cepheid/engine/search/preferred/run.py"), "") == ["'module preferred': write 'row_pattern'"]
    assert retired(Path("cepheid/engine/warm.py"), "") == ["'module engine/warm': write 'precompile'"]
    assert retired(Path("cepheid/engine/kept_runs.py"), "") == ["'module kept_*': write 'incremental_*'"]
    assert retired(Path("cepheid/cli/warm.py"), "class Worthy: ...\nworth = 1") == []
    assert retired(Path("cepheid/a.py"), "class Worth: ...") == ["'class Worth': write 'MatchScore'"]


def test_phrases_are_found_across_lines_and_not_in_output() -> None:
    assert unwanted("An event\ncannot  Stand\nhere.") == ["'cannot stand here': write 'unexpected'"]
    assert unwanted("```console\n'x' cannot stand here\n```\n") == []
    assert unwanted("The message is commended; 11 hours are dearer.") == []


def test_words_of_cells_are_counted() -> None:
    assert long_cells(f"| {'word ' * 25}| [two words](a/b) |") == []
    assert len(long_cells(f"| {'word ' * 26}| short |")) == 1
    assert long_cells(f"```text\n| {'word ' * 26}|\n```\n") == []


def test_messages_are_the_strings_of_a_module() -> None:
    source = 'def f(x):\n    """What it does."""\n    raise E(f"no {x} here", hint="a hint")\n'
    assert sorted(messages(source, help_texts=False)) == ["a hint", "no {} here"]
    assert "What it does." in set(messages(source, help_texts=True))


def test_every_phrase_has_a_better_one() -> None:
    assert phrases()
    assert listed(1)
    assert all([*phrases().values(), *listed(1).values()])

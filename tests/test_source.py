"""What no linter checks: private names stay at home, imports stand on top, and pages that are cited are there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "cepheid"
PAGE = re.compile(r"\b((?:docs|tests|bench|examples)/[\w./-]+\.(?:md|py))\b")
PAPERS_ONLY = re.compile(r"\b(SEMANTICS|DESIGN|STYLE)(\.md)?\s+(section\s+)?\d")

# Packages that are heavy or need not be installed; they are imported where they are needed.
HEAVY = {
    "altair",
    "deltalake",
    "llvmlite",
    "numba",
    "pandas",
    "polars",
    "pyarrow",
    "pyspark",
    "scipy",
    "sqlglot",
    "starlette",
    "uvicorn",
    "vl_convert",
}
# Modules of our own that load one of those, or kernels; they are loaded when something of theirs is asked for.
LOADED_LATE = (
    "cepheid.cli.",
    "cepheid.diagnose",
    "cepheid.engine.data.instants",
    "cepheid.engine.fitting",
    "cepheid.engine.incremental.by_queues",
    "cepheid.engine.kernels.cache",
    "cepheid.engine.kernels.parts",
    "cepheid.engine.kernels.quicker",
    "cepheid.engine.reference",
    "cepheid.engine.search",
    "cepheid.engine.scoring.edges",
    "cepheid.engine.values.in_object_mode",
    "cepheid.model.",
    "cepheid.report.",
    "cepheid.runners.",
)
# The command line answers `--help` at once, so everything else is loaded by the command that needs it.
LOADS_LATE = ("cli/",)


@cache
def modules() -> dict[Path, ast.Module]:
    """All modules of the package."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}


@cache
def imports(tree: ast.AST) -> list[tuple[ast.stmt, str, list[str]]]:
    """Every import with the module and the names taken from it."""
    found: list[tuple[ast.stmt, str, list[str]]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found.append((node, node.module or "", [each.name for each in node.names]))
        elif isinstance(node, ast.Import):
            found += [(node, each.name, []) for each in node.names]
    return found


def inside_functions(tree: ast.Module) -> Iterator[tuple[ast.stmt, str]]:
    """The imports that stand inside functions."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from ((node, module) for node, module, _ in imports(function))


def where(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def test_no_private_name_crosses_modules() -> None:
    crossing = {
        (where(path), name)
        for path, tree in modules().items()
        for _, module, names in imports(tree)
        for name in names
        if module.startswith("cepheid") and name.startswith("_") and not name.startswith("__")
    }
    assert crossing == set()


def test_imports_stand_on_top() -> None:
    """Except for heavy packages, and for modules of our own that load one."""
    hidden = [
        f"{where(path)}:{node.lineno} imports {module}"
        for path, tree in modules().items()
        if not where(path).startswith(LOADS_LATE)
        for node, module in inside_functions(tree)
        if module.partition(".")[0] not in HEAVY and not f"{module}.".startswith(LOADED_LATE)
    ]
    assert hidden == []


def test_pages_that_are_cited_are_in_the_repository() -> None:
    dead = []
    for path in [*modules(), *sorted((ROOT / "tests").rglob("*.py"))]:
        text = path.read_text(encoding="utf-8")
        dead += [f"{path.relative_to(ROOT)}: {page}" for page in PAGE.findall(text) if not (ROOT / page).exists()]
        dead += [f"{path.relative_to(ROOT)}: {found.group(0)}" for found in PAPERS_ONLY.finditer(text)]
    assert dead == []


def test_what_leans_on_insides_of_numba_is_in_the_kernels_room() -> None:
    """Parts of numba that it does not promise to keep are used in few places, so that a new version is met there."""
    allowed = ("engine/kernels/", "engine/values/compiled.py", "cli/messages.py")
    leaning = [
        where(path)
        for path, tree in modules().items()
        for _, module, _ in imports(tree)
        if module.startswith(("numba.core", "numba.experimental", "llvmlite")) and not where(path).startswith(allowed)
    ]
    assert leaning == []

"""Compiled conditions are kept on disk by their generated source, and functions of the user's are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from numba import types

from cepheid.engine.kernels.compile import COMPILES
from cepheid.engine.values import predicate_files
from cepheid.engine.values.predicate_files import compiled_once, is_on_disk
from cepheid.language.whole import sum_overflows

pytestmark = pytest.mark.skipif(not COMPILES, reason="nothing is compiled")
SIGNATURE = types.int64(types.int64)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return tmp_path / "cepheid"


def made(more: int, functions: Any = ()) -> Any:
    """A predicate that adds a number."""
    namespace: dict[str, Any] = {}
    exec(source_of(more), namespace)
    return compiled_once(namespace, source_of(more), functions, SIGNATURE, {})


def source_of(more: int) -> str:
    return f"def predicate(x):\n    return x + {more}"


def test_a_predicate_is_written_and_read_again(folder: Path) -> None:
    assert not is_on_disk(source_of(1), (), SIGNATURE)
    assert made(1)(41) == 42
    assert is_on_disk(source_of(1), (), SIGNATURE)
    (file,) = folder.glob("predicate-*")
    before = file.stat().st_mtime_ns
    assert made(1)(41) == 42
    assert file.stat().st_mtime_ns == before


def test_a_damaged_file_is_made_again(folder: Path) -> None:
    made(2)
    (file,) = folder.glob("predicate-*")
    file.write_bytes(file.read_bytes()[:-5])
    assert made(2)(1) == 3


def test_the_functions_that_it_calls_are_part_of_its_name(folder: Path) -> None:
    made(3)
    assert not is_on_disk(source_of(3), (("function_0", sum_overflows),), SIGNATURE)
    made(3, (("function_0", sum_overflows),))
    assert is_on_disk(source_of(3), (("function_0", sum_overflows),), SIGNATURE)


def test_functions_of_the_user_are_not_kept(folder: Path) -> None:
    def own(x: int) -> int:
        return x

    assert made(4, (("function_0", own),))(1) == 5
    assert not list(folder.glob("predicate-*"))


def test_no_more_than_so_many_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicate_files, "MOST_FILES", 2)
    for more in range(5, 9):
        assert made(more)(1) == more + 1
    assert len(list(folder.glob("predicate-*"))) == 2
    assert is_on_disk(source_of(8), (), SIGNATURE)

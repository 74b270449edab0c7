"""Fresh installations: first answers without the compiler, caches that cannot be written or read."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import runpy
import subprocess
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
import pyarrow as pa
import pytest

import cepheid
from cepheid import disk_cache
from cepheid.engine import jit_fallback, precompile
from cepheid.engine.data.arrays import Int64s
from cepheid.engine.kernels import progress
from cepheid.engine.kernels.compile import Kernel, called_kernels, interpreted, is_interpreted, kernel
from cepheid.engine.kernels.progress import tell_with
from cepheid.engine.search import stacks

compiled_only = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")

EVENTS = pa.table({"ts": list(range(60)), "type": ["A", "B", "C"] * 20, "x": [n * n % 7 for n in range(60)]})
QUERIES = {
    "sequence": "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x + 1 != c.x WITHIN 9",
    "runs": "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match(a, b[], c) { b[i].x > b[i-1].x } WITHIN 20",
}


@compiled_only
@pytest.mark.parametrize("engine", list(QUERIES))
def test_a_cold_engine_answers_as_plain_python(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[bool] = []
    compile_cases = stacks.compile_program

    def noted(*arguments: Any, **options: Any) -> Any:
        modes.append(is_interpreted())
        return compile_cases(*arguments, **options)

    monkeypatch.setattr(stacks, "compile_program", noted)
    monkeypatch.setattr(jit_fallback, "_is_cold", lambda module, events: True)
    found = cepheid.match(EVENTS, QUERIES[engine], engine=engine)
    assert found.num_rows > 0
    assert sorted(map(str, found.to_pylist())) == sorted(
        map(str, cepheid.match(EVENTS, QUERIES[engine], engine="reference").to_pylist())
    )
    assert modes == ([True] if engine == "sequence" else [])


@compiled_only
def test_a_first_answer_about_missing_events_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kernel: Kernel) -> Any:
        raise AssertionError(f"{kernel.__name__} was compiled")

    monkeypatch.setattr(Kernel, "dispatcher", refuse)
    monkeypatch.setattr(jit_fallback, "_is_cold", lambda module, events: True)
    model = cepheid.Model(loss=0.1, gaps={name: cepheid.Exponential(mean=3) for name in "bc"})
    found = cepheid.match(EVENTS, "PATTERN SEQ(A a, B b, C c) WITHIN 9 THRESHOLD 0.05", model=model)
    assert found.num_rows > 0


def test_what_takes_long_as_plain_python_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit_fallback, "_is_cold", lambda module, events: True)
    monkeypatch.setattr(jit_fallback, "PATIENCE", 0.0)
    assert cepheid.match(EVENTS, QUERIES["sequence"], engine="sequence").num_rows > 0


@compiled_only
def test_a_handful_of_events_loads_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kernel: Kernel) -> Any:
        raise AssertionError(f"{kernel.__name__} was loaded")

    monkeypatch.delenv("CEPHEID_COMPILE")
    monkeypatch.setattr(jit_fallback, "kernels_in_use", lambda: False)
    monkeypatch.setattr(jit_fallback._Spent, "seconds", 0.0)
    with monkeypatch.context() as refusing:
        refusing.setattr(Kernel, "dispatcher", refuse)
        assert cepheid.match(EVENTS, QUERIES["sequence"], engine="sequence").num_rows > 0
    monkeypatch.setattr(jit_fallback, "LOADING", 0.0)  # now it takes too long
    assert cepheid.match(EVENTS, QUERIES["sequence"], engine="sequence").num_rows > 0


@compiled_only
def test_a_deadline_of_the_caller_holds_for_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit_fallback, "_is_cold", lambda module, events: True)
    many = pa.table({"ts": list(range(301)), "type": ["A"] * 300 + ["B"]})
    with pytest.raises(cepheid.TimeoutReached):
        cepheid.match(many, "PATTERN SEQ(A a, A b, A c, A d, B e) WITHIN 1000", engine="sequence", timeout=0.3)


FIRST = """
import sys, time
import pyarrow as pa
import cepheid
from cepheid import disk_cache
events = pa.table({"ts": list(range(999)), "type": ["A", "B", "C"] * 333, "x": [n * n % 7 for n in range(999)]})
began = time.perf_counter()
print(cepheid.match(events, "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 9").num_rows > 0)
"""


@compiled_only
def test_the_first_answer_of_an_installation_compiles_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "CEPHEID_COMPILE": ""}
    done = subprocess.run(
        [sys.executable, "-c", FIRST], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr
    assert not list(tmp_path.rglob("*construct*"))


MODULE = """
from cepheid.engine.kernels.compile import kernel

@kernel
def doubled(value: int) -> int:
    return 2 * value

print(doubled(21))
"""


@compiled_only
def test_a_damaged_file_of_the_cache_is_written_again(tmp_path: Path) -> None:
    source = tmp_path / "doubling.py"
    source.write_text(MODULE)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "CEPHEID_COMPILE": "always"}

    def run() -> str:
        done = subprocess.run(
            [sys.executable, str(source)], env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert run() == "42"
    (cached,) = (tmp_path / "cache").rglob("*doubled*")
    whole = cached.read_bytes()
    middle = len(whole) // 2
    for damaged in (b"", whole[:middle], whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]):
        cached.write_bytes(damaged)
        assert run() == "42"
        assert len(cached.read_bytes()) > middle


COUNTED = """
from cepheid.engine.kernels import cache
from cepheid.engine.kernels.compile import kernel
from part import FACTOR, part

@kernel
def whole(value: int) -> int:
    return part(value) + FACTOR

known = whole.is_ready()
print(whole(7), known)
"""
PART = """
from cepheid.engine.kernels.compile import kernel
from constants import FACTOR

@kernel
def part(value: int) -> int:
    return {} * value
"""


@compiled_only
def test_a_kernel_is_compiled_again_when_what_it_contains_changes_and_only_then(tmp_path: Path) -> None:
    """Wherever it lies, and whenever its files were written."""

    def run(folder: Path, factor: int, constant: int) -> str:
        folder.mkdir(exist_ok=True)
        (folder / "whole.py").write_text(COUNTED)
        (folder / "part.py").write_text(PART.format(factor))
        (folder / "constants.py").write_text(f"FACTOR = {constant}\n")
        for file in folder.glob("*.py"):
            os.utime(file, (1_000_000_000, 1_000_000_000))
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, str(folder / "whole.py")]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=True
        ).stdout.strip()

    assert run(tmp_path / "here", 2, 1) == "15 False"
    assert run(tmp_path / "here", 2, 1) == "15 True"
    assert run(tmp_path / "there", 2, 1) == "15 True"
    assert run(tmp_path / "here", 3, 1) == "22 False"
    assert run(tmp_path / "here", 2, 5) == "19 False"
    assert not list((tmp_path / "cache").rglob("*part.part*"))  # a part is in the files of those that contain it


@compiled_only
def test_without_any_place_for_a_cache_kernels_are_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "folders", list)

    @kernel
    def longest(values: Int64s) -> int:
        return len(values)

    import numpy as np

    assert longest(np.arange(3)) == 3


NESTED = """
import numpy as np
from cepheid.engine.kernels.compile import borrowing, kernel

@kernel
def makes_an_array(size: int) -> int:
    return len(np.empty(size, np.int64))

@borrowing
def makes_none(size: int) -> int:
    return makes_an_array(size)

@kernel
def search(size: int) -> int:
    return makes_none(size)
"""


@compiled_only
def test_what_makes_arrays_can_be_compiled_for_what_makes_none(tmp_path: Path) -> None:
    """On a fresh installation the innermost kernel is compiled while its caller is, whose options numba hands on."""
    source = tmp_path / "nested.py"
    source.write_text(NESTED)
    spec = importlib.util.spec_from_file_location("nested", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.search(4) == 4


@compiled_only
def test_what_is_compiled_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("cepheid.engine.kernels.progress.PATIENCE", -1.0)
    lines: list[str] = []
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))  # it is not there yet
    source = tmp_path / "trebling.py"
    source.write_text("def trebled(value: int) -> int:\n    return 3 * value\n")
    trebled = kernel(runpy.run_path(str(source))["trebled"])
    tell_with(lines.append)
    try:
        assert trebled(2) == 6
    finally:
        tell_with(None)
    assert "trebled" in lines[0]
    assert lines[-1] == ""


@compiled_only
def test_kernels_know_what_they_call() -> None:
    (construct,) = (each for each in jit_fallback.search_kernels(stacks) if each.__name__ == "construct")
    assert isinstance(construct, Kernel)
    names = [each.__name__ for each in called_kernels(construct.py_func)]
    assert {"fill_stacks", "passes", "first_above"} <= set(names)
    assert names.index("in_window") < names.index("fill_stacks")


@compiled_only
def test_every_kernel_that_python_calls_is_compiled_beforehand() -> None:
    called = set()
    for found in pkgutil.walk_packages(cepheid.engine.__path__, "cepheid.engine."):
        names = vars(importlib.import_module(found.name))
        for function in names.values():
            if isinstance(function, FunctionType) and not hasattr(function, "__wrapped__"):
                values = jit_fallback.named_by(function)
                kernels = [getattr(value, "__wrapped__", None) if callable(value) else None for value in values]
                called |= {jit_fallback.full_name(each) for each in [*values, *kernels] if isinstance(each, Kernel)}
    shares = precompile.divided(precompile.EVERY)
    compiled = [name for names in shares.values() for name in names]
    assert called <= set(compiled)
    assert len(set(compiled)) == len(compiled)


def test_interpreted_ends_with_its_block() -> None:
    with interpreted():
        assert is_interpreted()
    assert not is_interpreted()


def test_a_notebook_gets_one_line_in_all(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    class Slow:
        __name__, __module__ = "walk", "cepheid.engine.search"

        def is_ready(self) -> bool:
            return False

    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress._Told, "noted", False)
    for _ in range(60):
        with progress.compiling(Slow()):
            pass
    assert capfd.readouterr().err.count("\n") == 1

"""What compile.py, parts.py and quicker.py of the kernels need of numba.

If one of these fails, numba has changed: look there.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
import pytest
from numba import types
from numba.core import event
from numba.core.compiler import Flags
from numba.core.targetconfig import TargetConfig
from numba.np import arrayobj

import cepheid.engine
from cepheid.engine.data.arrays import Int64s
from cepheid.engine.kernels.compile import Kernel, borrowing, called_by_address, kernel
from cepheid.engine.kernels.quicker import quicker

COMPILED = not numba.config.DISABLE_JIT
pytestmark = pytest.mark.skipif(not COMPILED, reason="nothing is compiled")


@pytest.fixture(autouse=True, scope="module")
def _no_cache_of_earlier_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Kernels from a cache cannot be looked into."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        yield


@borrowing
def total(values: Int64s) -> int:
    """The sum."""
    found = 0
    for value in values:
        found += value
    return found


@called_by_address
def twice(values: Int64s) -> int:
    """Twice the sum."""
    return 2 * total(values)


@kernel
def of_a_copy(values: Int64s) -> int:
    """Twice the sum, of a copy."""
    return twice(values.copy())


@kernel
def part_that_raises(values: Int64s, limit: int) -> int:
    """The sum, if it is not too large."""
    if values.sum() > limit:
        raise ValueError("too large", limit)
    return values.sum()


@kernel
def of_a_part(values: Int64s, limit: int) -> int:
    """The sum of a copy, if it is not too large."""
    return part_that_raises(values.copy(), limit)


def code_of(compiled: Any) -> str:
    """The machine-independent code of the only compiled form."""
    (code,) = compiled.dispatcher().inspect_llvm().values()
    return str(code)


def test_borrowing_functions_count_no_references() -> None:
    assert total(np.arange(5)) == 10
    assert "NRT_incref" not in code_of(total)
    assert "NRT_decref" not in code_of(total)


def test_functions_called_by_address_are_not_copied_into_their_callers() -> None:
    assert of_a_copy(np.arange(5)) == 20
    name = f"{twice.py_func.__module__}.{twice.py_func.__qualname__}"
    code = code_of(of_a_copy)
    assert f'declare i32 @"{name}' in code
    assert f'define i32 @"{name}' not in code


def test_what_only_kernels_call_is_a_part_of_them() -> None:
    assert of_a_part(np.arange(5), 10) == 10
    assert part_that_raises._dispatcher is None  # compiled as a part only
    (result,) = part_that_raises.part().overloads.values()
    assert result.library.get_pointer_to_function(result.fndesc.llvm_func_name) == 0


def test_what_is_called_by_its_address_can_be_called_from_python_too() -> None:
    assert twice(np.arange(5)) == 20


def test_errors_of_a_part_keep_their_arguments() -> None:
    with pytest.raises(ValueError, match="too large") as raised:
        of_a_part(np.arange(5), 9)
    assert raised.value.args == ("too large", 9)


def test_a_part_can_be_called_from_python_too() -> None:
    assert part_that_raises(np.arange(5), 10) == 10


@kernel
def put(values: Int64s, into: Int64s) -> None:
    """Copies numbers."""
    into[:] = values


def test_assignments_to_slices_compile_no_texts() -> None:
    into = np.zeros(3, np.int64)
    put(np.arange(3), into)
    assert into.tolist() == [0, 1, 2]
    assert "unicode" not in code_of(put)
    with pytest.raises(ValueError, match="another shape"):
        put(np.arange(2), into)


def test_numba_is_as_it_was_after_a_kernel_is_compiled() -> None:
    changed = [
        (TargetConfig, "__hash__"),
        (TargetConfig, "__eq__"),
        (types.BaseFunction, "get_call_type"),
        (arrayobj, "raise_with_shape_context"),
        (event, "install_timer"),
    ]
    before = [getattr(where, name) for where, name in changed]
    with quicker():
        assert all(getattr(where, name) is not was for (where, name), was in zip(changed, before, strict=True))
    assert [getattr(where, name) for where, name in changed] == before


def test_options_are_compared_and_hashed_as_by_numba() -> None:
    some = [Flags() for _ in range(4)]
    some[1].nrt, some[2].nrt = True, False  # False is what it is anyway
    some[3].forceinline = True
    hashes, equal = [*map(hash, some)], [one == other for one in some for other in some]
    with quicker():
        assert [*map(hash, some)] == hashes
        assert [one == other for one in some for other in some] == equal


def test_no_two_tuples_of_kernels_look_alike() -> None:
    # Numba tells a tuple that Python hands over by its class's name and what it holds, and then remembers the class.
    classes: dict[str, set[type]] = {}
    for found in pkgutil.walk_packages(cepheid.engine.__path__, "cepheid.engine."):
        for value in vars(importlib.import_module(found.name)).values():
            called = getattr(value, "__wrapped__", None) if not isinstance(value, Kernel) else value
            for each in tuples_of(called.signature) if isinstance(called, Kernel) else ():
                classes.setdefault(str(each), set()).add(each.instance_class)
    assert len(classes) > 30
    assert [name for name, alike in classes.items() if len(alike) > 1] == []


def tuples_of(signature: Any) -> Iterator[Any]:
    """All named tuples in a signature, those in others included."""
    waiting = [signature.return_type, *signature.args]
    while waiting:
        if isinstance(each := waiting.pop(), types.BaseTuple):
            waiting.extend(each)
            if isinstance(each, types.BaseNamedTuple):
                yield each


def test_what_cannot_be_compiled_leaves_standard_output_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """colorama would set it, and a compiler in another thread would set it back to what it no longer is."""
    pytest.importorskip("colorama")
    calls = list[str]()
    for name in ("init", "reinit", "deinit"):
        monkeypatch.setattr(f"numba.core.errors.{name}", lambda name=name: calls.append(name))
    with pytest.raises(numba.TypingError, match="No implementation of function"):
        numba.njit(lambda: 1 + "x")()  # type: ignore[operator]
    assert calls == []

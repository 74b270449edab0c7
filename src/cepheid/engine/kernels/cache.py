"""Compiled kernels on disk, found by content (`disk_cache`): all sources in a kernel, the constants that they see, its
signature and the versions make the name of its file.

A platform wheel carries kernels for a baseline processor (`make wheel`). They are used where the processor has all that
the baseline has; everything else is compiled for this processor.
"""

from __future__ import annotations

import hashlib
import pickle
import platform
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
from numba.core import config, errors
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from cepheid import disk_cache
from cepheid.engine.kernels.loading import Contents
from cepheid.errors import CepheidError

FORMAT = b"1"
HERE = Path(__file__).parent
_MODULES = ("compile.py", "parts.py", "stop.py", "memory.py", "objects.py")
HOW = tuple(str(HERE / name) for name in _MODULES)  # modules that say what code is made

# By machine: the processor that kernels of a wheel are for, and the features that tell whether this one has them all.
_V3 = ["avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2", "ssse3"]
BASELINES: dict[str, tuple[str, list[str]]] = {
    "x86_64": ("x86-64-v3", _V3),
    "AMD64": ("x86-64-v3", _V3),
    "aarch64": ("generic", []),
    "arm64": ("generic", []),
}

# What unpickling a file of another version can raise, should it have the right name.
UNREADABLE = (EOFError, pickle.UnpicklingError, ValueError, KeyError, IndexError, AttributeError, ImportError)


def _as_they_are(_: object, words: str, *__: object, **___: object) -> str:
    """The words of numba's errors without colours.

    Where colorama is installed, numba writes every error with it, also those that it solves while it compiles.
    That replaces `sys.stdout` and `sys.stderr` for a moment. A compiler in the background then puts back streams that
    the program has replaced, or closed, in the meantime.
    """
    return words


# Where nobody has chosen a scheme of colours, and where numba has found colorama.
if config.COLOR_SCHEME == "no_color" and hasattr(errors, "HighlightColorScheme"):  # type: ignore[attr-defined]
    errors.HighlightColorScheme._markup = _as_they_are


def read_or_compiled(function: Callable[..., Any], signature: Any, options: dict[str, Any], contents: Contents) -> Any:
    """The compiled function: read, or compiled and written where that is possible."""
    _load_arrays()
    dispatcher: Any = numba.njit(**options)(function)
    stem, digest = _name(function, signature, contents)
    dispatcher._cache = _Files(stem, digest, contents.most)
    if disk_cache.exists(stem, digest, _kinds()):
        dispatcher.compile(signature)
    else:
        from cepheid.engine.kernels.quicker import quicker

        with quicker():
            dispatcher.compile(signature)
    dispatcher.disable_compile()
    return dispatcher


def exists(function: Callable[..., Any], signature: Any, contents: Contents) -> bool:
    """Is there a compiled form of the function, as its contents are now?"""
    return disk_cache.exists(*_name(function, signature, contents), _kinds())


@cache
def _load_arrays() -> None:
    """Loads numba's functions of arrays without scipy.linalg.

    Numba imports that to see whether it is there, which takes a fifth of a first call. What needs it imports it still.
    """
    if "numba.np.arraymath" in sys.modules or find_spec("scipy") is None:
        return
    from numba.np import linalg

    look = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        from numba.np import arraymath
    finally:
        linalg.ensure_blas = look
    vars(arraymath)["ensure_blas"] = look


class _Files(NullCache):
    """What numba asks for the compiled form of one kernel."""

    def __init__(self, stem: str, digest: str, most: int) -> None:
        self.stem, self.digest, self.most = stem, digest, most

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled form from a file, or None."""
        target_context.refresh()
        for data in disk_cache.found(self.stem, self.digest, _kinds()):
            try:
                return CompileResult._rebuild(target_context, *pickle.loads(data))
            except UNREADABLE:
                continue
        return None

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Writes it, without the annotation, which is for readers and holds paths."""
        if cres.library.has_dynamic_globals or not all(each.can_cache for each in cres.lifted):
            return
        parts = list(cres._reduce())
        parts[6] = ""
        disk_cache.write(self.stem, self.digest, _own_kind(), dumps(tuple(parts)), self.most)


def _name(function: Callable[..., Any], signature: Any, contents: Contents) -> tuple[str, str]:
    """The name of a kernel's file but for the processor: a stem, and a digest of all it is made from."""
    made = hashlib.sha256(FORMAT)
    versions = (numba.__version__, llvmlite.__version__, sys.implementation.cache_tag)
    own = (contents.stem or f"{function.__module__}\0{function.__qualname__}", str(signature))
    for part in (*versions, *own, *sorted(contents.constants)):
        made.update(f"{part}\0".encode())
    for digest in sorted(map(_digest, {*contents.files, *HOW})):
        made.update(digest)
    named = contents.stem or f"{function.__module__}.{function.__qualname__}"
    stem = "".join(each for each in named if each.isalnum() or each in "._")
    return stem, made.hexdigest()[:24]


@cache
def _digest(path: str) -> bytes:
    """Of a file's content, once per process."""
    return hashlib.sha256(disk_cache.read(path) or path.encode()).digest()


def _kinds() -> tuple[str, str]:
    return _own_kind(), _baseline_kind()


@cache
def _own_kind() -> str:
    """The processor that code is made for here, as the end of a file's name."""
    return _kind(*_codegen().magic_tuple())


@cache
def _baseline_kind() -> str:
    """The same for the kernels that a wheel carries, if this processor has all that theirs has; else empty."""
    processor, needed = BASELINES.get(platform.machine(), ("", []))
    has = llvmlite.binding.get_host_cpu_features()
    fits = processor and all(has.get(each) for each in needed)
    return _kind(_codegen().magic_tuple()[0], processor, "") if fits else ""


def baseline_settings() -> dict[str, str]:
    """The environment in which numba compiles for the processor of a wheel."""
    if platform.machine() not in BASELINES:
        raise CepheidError(f"kernels of a wheel have no processor for a machine of the kind {platform.machine()}")
    return {"NUMBA_CPU_NAME": BASELINES[platform.machine()][0], "NUMBA_CPU_FEATURES": ""}


def _codegen() -> Any:
    return numba.core.registry.cpu_target.target_context.codegen()


def _kind(triple: str, processor: str, features: str) -> str:
    return f"{processor}-{hashlib.sha256(f'{triple} {features}'.encode()).hexdigest()[:8]}.kernel"

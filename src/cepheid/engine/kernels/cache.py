"""Compiled kernels on disk, found by content: what a kernel contains and how it is compiled make the name of its file.

Nothing in that name depends on times or paths, so a copied tree, an installed wheel and a container's layer keep what
was compiled. A platform wheel carries kernels for a baseline processor in `SHIPPED` (see `hatch_build.py`); they are
used where the processor has all that the baseline has, the rest of the name decides by itself. Everything else is
compiled for this processor and written to the first folder of `folders()` that can be written to.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import stat
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Set
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding
import numba
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

import cepheid

FORMAT = b"1"
PACKAGE = Path(cepheid.__file__).parent
SHIPPED = PACKAGE / "_kernels"
HERE = Path(__file__).parent
HOW = tuple(str(HERE / name) for name in ("compile.py", "parts.py", "stop.py"))  # modules that say what code is made
DIGEST = hashlib.sha256().digest_size

# By machine: the processor that kernels of a wheel are for, and the features that tell whether this one has them all.
_V3 = ["avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2", "ssse3"]
BASELINES: dict[str, tuple[str, list[str]]] = {
    "x86_64": ("x86-64-v3", _V3),
    "AMD64": ("x86-64-v3", _V3),
    "aarch64": ("generic", []),
    "arm64": ("generic", []),
}

# What reading a file that was cut off or overwritten can raise.
UNREADABLE = (EOFError, pickle.UnpicklingError, ValueError, KeyError, IndexError, AttributeError, ImportError, OSError)

config: Any = numba.config


class Contents(NamedTuple):
    """What a kernel is made of: the files of all functions in it, and the constants that they see."""

    files: Set[str]
    constants: Set[str] = frozenset()


def cached(function: Callable[..., Any], signature: Any, options: dict[str, Any], contents: Contents) -> Any:
    """The compiled function: read, or compiled and written where that is possible."""
    dispatcher: Any = numba.njit(**options)(function)
    dispatcher._cache = _Files(_name(function, signature, contents))
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    return dispatcher


def is_cached(function: Callable[..., Any], signature: Any, contents: Contents) -> bool:
    """Is there a compiled form of the function, as its contents are now?"""
    return any(map(_exists, _places(_name(function, signature, contents))))


class _Files(NullCache):
    """What numba asks for the compiled form of one kernel."""

    def __init__(self, name: str) -> None:
        self.name = name

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled form from a file, or None."""
        target_context.refresh()
        for data in map(_read, _places(self.name)):
            if data and hashlib.sha256(data[DIGEST:]).digest() == data[:DIGEST]:
                try:
                    rebuilt: Any = CompileResult._rebuild(target_context, *pickle.loads(data[DIGEST:]))
                    return rebuilt
                except UNREADABLE:
                    continue
        return None

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Writes it, without the annotation, which is for readers and holds paths."""
        if cres.library.has_dynamic_globals or not all(each.can_cache for each in cres.lifted):
            return
        if (folder := _writable()) is None:
            return
        parts = list(cres._reduce())
        parts[6] = ""
        data: bytes = dumps(tuple(parts))
        whole = folder / f"{self.name}.{_own_target()}"
        unfinished = whole.with_name(f"{uuid.uuid4().hex}.tmp")
        try:
            unfinished.write_bytes(hashlib.sha256(data).digest() + data)
            unfinished.replace(whole)
            if folder == _in_the_package():  # elsewhere other installations may need theirs
                for older in folder.glob(f"{self.name.rpartition('-')[0]}-*.{_own_target()}"):
                    if older != whole:
                        older.unlink(missing_ok=True)
        except OSError:
            unfinished.unlink(missing_ok=True)


def _name(function: Callable[..., Any], signature: Any, contents: Contents) -> str:
    """The name of a kernel's file but for the processor."""
    made = hashlib.sha256(FORMAT)
    versions = (numba.__version__, llvmlite.__version__, sys.implementation.cache_tag)
    own = (function.__module__, function.__qualname__, str(signature))
    for part in (*versions, *own, *sorted(contents.constants)):
        made.update(f"{part}\0".encode())
    for digest in sorted(map(_digest, {*contents.files, *HOW})):
        made.update(digest)
    named = "".join(each for each in f"{function.__module__}.{function.__qualname__}" if each.isalnum() or each in "._")
    return f"{named}-{made.hexdigest()[:24]}"


@cache
def _digest(path: str) -> bytes:
    """A file's content, once per process; of a file in an archive what its loader reads."""
    return hashlib.sha256(_read(path) or path.encode()).digest()


def _read(path: str | Path) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except OSError:
        loader: Any = cepheid.__spec__.loader if cepheid.__spec__ else None
    try:
        data: bytes = loader.get_data(str(path))
        return data
    except (AttributeError, OSError):
        return None


def _exists(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return bool(_read(path)) if SHIPPED in path.parents else False  # it may lie in an archive


def _places(name: str) -> Iterator[Path]:
    """The files that may hold a kernel for this processor, the best first."""
    for folder in folders():
        yield folder / f"{name}.{_own_target()}"
    if target := _baseline():
        yield SHIPPED / f"{name}.{target}"


@cache
def _own_target() -> str:
    """The processor that code is made for here, as the end of a file's name."""
    return _target(*numba.core.registry.cpu_target.target_context.codegen().magic_tuple())


def _target(triple: str, processor: str, features: str) -> str:
    return f"{processor}-{hashlib.sha256(f'{triple} {features}'.encode()).hexdigest()[:8]}.kernel"


@cache
def _baseline() -> str | None:
    """The processor of the kernels that a wheel carries, if this one has all that it has."""
    processor, needed = BASELINES.get(platform.machine(), ("", []))
    has = llvmlite.binding.get_host_cpu_features()
    fits = processor and all(has.get(each) for each in needed)
    return _target(llvmlite.binding.get_process_triple(), processor, "") if fits else None


def folders() -> list[Path]:
    """Where compiled kernels may be, and are written to: in the package, for the user, else among temporary files."""
    if config.CACHE_DIR:
        return [Path(config.CACHE_DIR) / "cepheid"]
    user = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/.cache")
    places = [_in_the_package(), Path(user) / "cepheid" / "kernels", _private()]
    return [each for each in places if each.is_absolute() and (each != _private() or _is_ours(each))]


def _in_the_package() -> Path:
    return PACKAGE / "__pycache__" / "kernels"


def _private() -> Path:
    return Path(tempfile.gettempdir()) / f"cepheid-kernels-{os.getuid() if hasattr(os, 'getuid') else 'user'}"


def _is_ours(folder: Path) -> bool:
    """Can nobody else write there? Code must not come from others. What is not there yet can be ours."""
    try:
        status = folder.lstat()
    except OSError:
        return True
    return stat.S_ISDIR(status.st_mode) and (
        not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o077)
    )


def _writable() -> Path | None:
    for folder in folders():
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700 if folder == _private() else 0o777, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        if folder != _private() or _is_ours(folder):
            return folder
    return None

"""Compiled kernels on disk: numba's cache, where it can be written, read again and trusted.

Numba takes what it has of a function as long as the function's own file is as it was. A kernel contains others, of
other files, so here all of these must be as they were, and the modules that say how kernels are compiled.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numba

# What reading a cache file that was cut off or overwritten can raise.
UNREADABLE = (EOFError, pickle.UnpicklingError, ValueError, KeyError, IndexError, AttributeError, ImportError, OSError)
HERE = Path(__file__).parent
HOW = tuple(str(HERE / name) for name in ("cache.py", "compile.py", "parts.py"))

config: Any = numba.config


def cached(function: Callable[..., Any], signature: Any, options: dict[str, Any], files: Iterable[str]) -> Any:
    """The compiled function, from the cache if that can be read and written; without one otherwise."""
    try:
        return _compiled(function, signature, options, files)
    except RuntimeError as error:  # an installation that cannot be written to, and no home to put it
        if "cannot cache" not in str(error) or not _own_cache():
            raise
    except numba.core.errors.NumbaError:
        raise
    except UNREADABLE:
        _forget(function)
    try:
        return _compiled(function, signature, options, files)
    except (RuntimeError, *UNREADABLE):
        return numba.njit(signature, **options)(function)


def is_cached(function: Callable[..., Any], signature: Any, files: Iterable[str]) -> bool:
    """Has the cache the function, as its files are now?"""
    try:
        cache = _with_cache(function, {}, files)._cache
        key = cache._index_key(signature, numba.core.registry.cpu_target.target_context.codegen())
        name = cache._cache_file._load_index().get(key)
        return name is not None and os.path.getsize(cache._cache_file._data_path(name)) > 0
    except (RuntimeError, *UNREADABLE):
        return False


def _compiled(function: Callable[..., Any], signature: Any, options: dict[str, Any], files: Iterable[str]) -> Any:
    dispatcher = _with_cache(function, options, files)
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    return dispatcher


def _with_cache(function: Callable[..., Any], options: dict[str, Any], files: Iterable[str]) -> Any:
    """Numba's form of a function, not compiled yet, whose cache knows the files it depends on."""
    dispatcher: Any = numba.njit(cache=True, **options)(function)
    file = dispatcher._cache._cache_file
    file._source_stamp = (file._source_stamp, *sorted(map(_stamp, {*files, *HOW})))
    return dispatcher


def _stamp(path: str) -> tuple[str, float, int]:
    try:
        status = os.stat(path)
    except OSError:  # in an archive, say: then numba's own stamp is all there is
        return os.path.basename(path), 0.0, 0
    return os.path.basename(path), status.st_mtime, status.st_size


def _own_cache() -> bool:
    """Gives numba a folder of temporary files that only this user can read or write."""
    folder = Path(tempfile.gettempdir()) / f"cepheid-kernels-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.stat()
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o077 or folder.is_symlink()):
            return True  # someone else's: code must not come from there, so nothing is kept
    except OSError:
        return True
    config.CACHE_DIR = str(folder)
    return True


def _forget(function: Callable[..., Any]) -> None:
    """Removes what the cache has of a function."""
    dispatcher: Any = numba.njit(cache=True)(function)
    file = dispatcher._cache._cache_file
    for path in Path(file._cache_path).glob(f"{Path(file._index_path).stem}*"):
        path.unlink(missing_ok=True)

"""Compiled predicates on disk: a condition that some process compiled before is loaded, not compiled again.

A file is found by all that its code is made from: the generated source, in which there is no text of the user's, the
sources of the library's functions that it calls, and the versions. Functions of the user's are not kept.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from cepheid.engine.kernels.compile import COMPILES
from cepheid.engine.kernels.loading import Contents, cached, is_cached, numba
from cepheid.language import library, whole

MOST_FILES = 200  # of predicates; constants are part of the source, so there may be any number of them
FEW_CALLS = 1_000  # of a condition as Python: they take about as long as to load a compiled one
_LIBRARY = "cepheid.language."

Functions = tuple[tuple[str, Any], ...]  # what the source names, and what that is


def compiled_once(
    namespace: dict[str, Any], source: str, functions: Functions, signature: object, options: dict[str, Any]
) -> Any:
    """The function that the source defined in a namespace, compiled: from a file, else written if it may be kept."""
    predicate = namespace["predicate"]
    contents = _contents(source, functions)
    if contents is None or not COMPILES:
        return numba().njit(signature, **options)(predicate)
    # Code from other processes is linked by names, so no other function may have this one.
    predicate.__qualname__ = f"predicate_{hashlib.sha256(repr(contents.constants).encode()).hexdigest()[:24]}"
    predicate.__module__ = __name__
    return cached(predicate, signature, options, contents)


def is_on_disk(source: str, functions: Functions, signature: object) -> bool:
    """Has some process compiled it?"""
    contents = _contents(source, functions)
    return contents is not None and is_cached(_contents, signature, contents)


def _contents(source: str, functions: Functions) -> Contents | None:
    """What it is made from; None if it is not kept."""
    if not COMPILES:
        return None
    calls = []
    for name, call in functions:
        plain = isinstance(call, FunctionType) and call.__closure__ is None and call.__module__.startswith(_LIBRARY)
        if not plain or "<" in call.__qualname__:  # made inside of another function: its name says too little
            return None
        calls.append(f"{name}={call.__module__}.{call.__qualname__}")
    return Contents(_files(), frozenset({"\n".join([source, *calls])}), "predicate", MOST_FILES)


@cache
def _files() -> frozenset[str]:
    folder = Path(str(library.__file__)).parent
    return frozenset({str(whole.__file__), str(Path(__file__).parent / "compiled.py"), *map(str, folder.glob("*.py"))})

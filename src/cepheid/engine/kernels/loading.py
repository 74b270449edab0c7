"""Numba is imported when the first kernel is compiled or loaded: a handful of events need none (`jit_fallback`).

Its import takes as long as a small query does with all else. What this package tells numba, such as what a function is
in compiled code, is told at that moment.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Set
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from cepheid.engine.kernels.signatures import signature_of


class Contents(NamedTuple):
    """What a kernel is made of: the files of all functions in it, and the constants that they see.

    Kernels that are made of generated source share a stem, under which so many of them are kept.
    """

    files: Set[str]
    constants: Set[str] = frozenset()
    stem: str = ""
    most: int = 1


class _Numba:
    module: Any = None  # None: it is not imported yet
    kernels = 0
    waiting: ClassVar[list[Callable[[], object]]] = []
    lock = threading.RLock()


def numba() -> Any:
    """The module, with all that it has to know of ours."""
    if _Numba.module is None:
        with _Numba.lock:
            import numba

            while _Numba.waiting:
                _Numba.waiting.pop(0)()
            _Numba.module = numba
    return _Numba.module


def when_loaded(tell: Callable[[], object]) -> None:
    """Calls a function as soon as numba is there."""
    with _Numba.lock:
        if _Numba.module is None:
            _Numba.waiting.append(tell)
            return
    tell()


def jit_is_disabled() -> bool:
    """Is `NUMBA_DISABLE_JIT` set? Numba has the last word where it reads a file of settings.

    Kernels are declared by the answer, so numba gets it, too: when it is imported, the variable may say something else.
    """
    disabled = _is_set()
    when_loaded(lambda: setattr(numba().config, "DISABLE_JIT", int(disabled)))
    return disabled


def _is_set() -> bool:
    if Path(".numba_config.yaml").exists():
        return bool(numba().config.DISABLE_JIT)
    try:
        return bool(int(os.environ.get("NUMBA_DISABLE_JIT", "0")))
    except ValueError:
        return False  # numba warns


def kernels_in_use() -> bool:
    """Has this process loaded or compiled a kernel? The first one costs half a second, the others little."""
    return _Numba.kernels > 0


def cached(function: Callable[..., Any], signature: Any, options: dict[str, Any], contents: Contents) -> Any:
    """The compiled function: read, or compiled and written where that is possible."""
    numba()
    from cepheid.engine.kernels.cache import read_or_compiled

    _Numba.kernels += 1
    return read_or_compiled(function, signature, options, contents)


def is_cached(function: Callable[..., Any], signature: Any, contents: Contents) -> bool:
    """Is there a compiled form of the function, as its contents are now?"""
    from cepheid.engine.kernels.cache import exists

    return exists(function, signature, contents)


def register(function: Any, generate: Any) -> None:
    """Says what a function is in compiled code: its types, and what makes its instructions.

    Functions that numba's `overload` makes may not return an array where no references are counted.
    """

    def tell() -> None:
        from numba import types
        from numba.core.typing.templates import ConcreteTemplate, infer_global
        from numba.extending import lower_builtin

        known = signature_of(function)

        class Signature(ConcreteTemplate):
            key = function
            cases: ClassVar[list[Any]] = [known]

        infer_global(function, types.Function(Signature))
        lower_builtin(function, *known.args)(generate)

    when_loaded(tell)

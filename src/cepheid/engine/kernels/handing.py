"""Handing a compiled condition to a kernel, many times a second.

Numba asks the compiler for the function's two addresses at every call, which takes longer than a small search. They do
not change: here they are asked for once. (`handed_over`, in compile.py, spares the search for the right signature.)
"""

from __future__ import annotations

from typing import Any

from cepheid.engine.kernels.compile import COMPILES
from cepheid.engine.values.compiled import PREDICATE


class _Library:
    """The compiled code of a function, which remembers the addresses that it has said."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._known: dict[str, int] = {}

    def get_pointer_to_function(self, name: str) -> int:
        if name not in self._known:
            self._known[name] = self._library.get_pointer_to_function(name)
        return self._known[name]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)


class _Result:
    """What numba knows of a compiled function, with such a library."""

    def __init__(self, result: Any) -> None:
        self._result, self.library = result, _Library(result.library)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._result, name)


def with_known_addresses(predicate: Any) -> Any:
    """The same condition, quicker to hand over; one that runs as plain Python stays as it is."""
    if not COMPILES or not hasattr(predicate, "get_compile_result"):
        return predicate
    result = predicate.get_compile_result(PREDICATE)
    if not isinstance(result, _Result):
        known = _Result(result)
        predicate.get_compile_result = lambda asked: known
    return predicate

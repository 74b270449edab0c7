"""Kernels that Python calls by their entry points, which spares it the look for the right signature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cepheid.engine.kernels.compile import COMPILES, Kernel


class Entry:
    """A kernel that Python calls; `cold` and `warm` find it by the name that guarded searches have, too."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__wrapped__ = function
        self._entry_point: Callable[..., Any] | None = None

    def direct(self) -> Callable[..., Any]:
        """What is called: compiled now, if it is not yet, or plain Python where nothing is compiled."""
        function = self.__wrapped__
        if not COMPILES or not isinstance(function, Kernel):
            return function
        if self._entry_point is None:  # once: Ctrl-C that comes while numba looks at its signatures is a KeyError there
            (result,) = function.dispatcher().overloads.values()
            self._entry_point = result.entry_point
        called: Callable[..., Any] = self._entry_point
        return called

    def is_ready(self) -> bool:
        """Is it compiled, or in the cache?"""
        function = self.__wrapped__
        return self._entry_point is not None or not isinstance(function, Kernel) or function.is_ready()

    def plain(self) -> Callable[..., Any]:
        """The same as plain Python, for `interpreted()`."""
        function = self.__wrapped__
        called: Callable[..., Any] = function.py_func if isinstance(function, Kernel) else function
        return called

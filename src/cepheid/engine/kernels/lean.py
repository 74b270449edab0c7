"""Compiled functions that own nothing: for the innermost parts of kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def lean(signature: Any, inline: bool = False) -> Callable[[Function], Function]:
    """Compiles a function that makes no arrays, only works on those it is given.

    Then numba need not count references to them. It would on every call, for every array of every tuple that is handed
    over, with an atomic instruction each: more than the work itself where a call takes nanoseconds. With `inline`,
    callers contain a copy of the function.
    """
    options: dict[str, Any] = {"cache": True, "_nrt": False, "inline": "always" if inline else "never"}
    decorator: Any = numba.njit(signature, **options)
    return decorator  # type: ignore[no-any-return]

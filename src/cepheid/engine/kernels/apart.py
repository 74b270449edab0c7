"""Compiled functions that stay out of their callers: each is optimised once, however many kernels call it."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, TypeVar

import llvmlite.binding
import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def apart(signature: Any) -> Callable[[Function], Function]:
    """Compiles a function that other kernels call by its address.

    Numba otherwise copies all that a kernel calls into the kernel and optimises it there again, so that a large
    function at the end of a chain of calls is compiled once for every link of the chain. A call by address costs a
    few nanoseconds more: worth it for functions that take longer than that and are long themselves.
    """

    def compiled(function: Function) -> Function:
        dispatcher: Any = numba.njit(signature, cache=True)(function)
        if dispatcher is function:  # compilation is switched off
            return function
        (result,) = dispatcher.overloads.values()
        known_as = copy(result.fndesc)
        known_as.mangled_name = f"{function.__module__}.{function.__qualname__} {result.signature}"
        address = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
        llvmlite.binding.add_symbol(known_as.mangled_name, address)
        # From here on callers find the name, and no code to copy.
        dispatcher.targetctx.remove_user_function(result.entry_point)
        dispatcher.targetctx.insert_user_function(result.entry_point, known_as, [])
        return dispatcher  # type: ignore[no-any-return]

    return compiled

"""How kernels are compiled: the one place that leans on insides of numba.

Three ways: `kernel` for functions that make arrays, `borrowing` for those that only work on arrays they are given, and
`called_by_address` for large ones that many others call. All have explicit signatures and are cached, so they are
compiled once for each installation. `tests/engine/test_numba_insides.py` says so loudly if numba changes what the last
two need of it.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, TypeVar

import llvmlite.binding
import numba

Function = TypeVar("Function", bound=Callable[..., Any])

NO_REFERENCES: dict[str, Any] = {"_nrt": False}  # numba's own switch: count no references to arrays


def kernel(signature: Any) -> Callable[[Function], Function]:
    """Compiles a function that may make arrays."""
    decorator: Any = numba.njit(signature, cache=True)
    return decorator  # type: ignore[no-any-return]


def borrowing(signature: Any, inline: bool = False) -> Callable[[Function], Function]:
    """Compiles a function that makes no arrays, only works on those it is given.

    Then numba need not count references to them. It would on every call, for every array of every tuple that is handed
    over, with an atomic instruction each: more than the work itself where a call takes nanoseconds. With `inline`,
    callers contain a copy of the function.
    """
    options = {"cache": True, "inline": "always" if inline else "never", **NO_REFERENCES}
    decorator: Any = numba.njit(signature, **options)
    return decorator  # type: ignore[no-any-return]


def called_by_address(signature: Any, borrows: bool = False) -> Callable[[Function], Function]:
    """Compiles a function that other kernels call by its address.

    Numba otherwise copies all that a kernel calls into the kernel and optimises it there again, so that a large
    function at the end of a chain of calls is compiled once for every link of the chain. A call by address costs a
    few nanoseconds more: worth it for functions that take longer than that and are long themselves. With `borrows`,
    it makes no arrays, and no references to those it is given are counted.
    """

    def compiled(function: Function) -> Function:
        dispatcher: Any = numba.njit(signature, cache=True, **(NO_REFERENCES if borrows else {}))(function)
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

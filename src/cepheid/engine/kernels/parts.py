"""The code of a kernel that only other kernels call: it is optimised where it is used, and nowhere else.

Numba makes a whole program of every function: it copies all that the function calls into it, optimises that, translates
it to machine code and adds what Python needs to call it. Of a function that only compiled code calls nobody uses any of
this but the copy, and in a chain of calls the last function was optimised once for every link. Six of seven kernels are
such parts. Leaving out what nobody uses halved what the optimiser and the translator take for all kernels (137 to 64 s
of processor time in one process, beside other work).

This module and `compile` are the places that lean on insides of numba (tests/engine/test_numba_insides.py).
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _NoEnvironment:
    """A part has no address at which Python's constants could be put: `set_environments` does it for the kernel."""

    def set_env(self, name: str, environment: Any) -> None:
        """Nothing."""


class Part(JITCodeLibrary):
    """Code that is there to be copied into others: neither optimised as a whole nor translated."""

    codegen = _NoEnvironment()

    def _optimize_final_module(self) -> None:
        """Nothing: what contains it is optimised."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """It has no address."""
        return 0


class PartCompiler(Compiler):
    """Numba's compiler, into a part."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        library = library or Part(target.codegen(), "part")  # type: ignore[no-untyped-call]
        super().__init__(typing, target, library, *rest)  # type: ignore[no-untyped-call]


WITHOUT_PYTHON: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # only compiled code calls it
OF_A_PART: dict[str, Any] = {"pipeline_class": PartCompiler, **WITHOUT_PYTHON}


def set_environments(dispatcher: Any) -> None:
    """Hands the constants of its parts to a kernel that was compiled just now, as numba does when it loads one."""
    for result in dispatcher.overloads.values():
        for environment in result._find_referenced_environments():
            result.library.codegen.set_env(environment.env_name, environment)

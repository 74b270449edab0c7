"""How kernels are compiled: this module, `parts` and `cache` are the places that lean on insides of numba.

Four ways: `kernel` for functions that make arrays, `borrowing` for those that only work on arrays they are given,
`called_by_address` for large ones that many others call, and `search_kernel` for whole searches, which can be stopped.
All have explicit signatures, which come from their annotations (see `signatures`). What Python or compiled code calls
by its address is cached, so that it is compiled once for each installation; all other kernels are parts of those (see
`parts`).
`tests/engine/test_numba_insides.py` says so loudly if numba changes what they need of it.

A kernel is compiled, or loaded from the cache, when it is first called, not when its module is imported. Inside
`interpreted()` kernels run as plain Python, with the same answers: so that a first small query need not wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from functools import cached_property
from types import CodeType
from typing import Any, TypeVar

import numpy as np

from cepheid.engine.kernels.loading import Contents, cached, is_cached, jit_is_disabled, numba, when_loaded
from cepheid.engine.kernels.progress import compiling
from cepheid.engine.kernels.signatures import signature_of
from cepheid.engine.kernels.stop import guarded, in_the_background

Function = TypeVar("Function", bound=Callable[..., Any])

COMPILES = not jit_is_disabled()  # False: NUMBA_DISABLE_JIT is set, and all kernels are plain Python
# Numba's own switches: are references to arrays counted, and do callers contain a copy for sure? Said always, since a
# function that says nothing is compiled as the one that happens to be compiled around it.
REFERENCES: dict[str, Any] = {"_nrt": True, "forceinline": False}
NO_REFERENCES: dict[str, Any] = {"_nrt": False, "forceinline": False}

_interpreted: ContextVar[bool] = ContextVar("cepheid_interpreted", default=False)


@contextmanager
def interpreted() -> Iterator[None]:
    """Kernels that are called in this block run as plain Python."""
    token = _interpreted.set(True)
    try:
        with np.errstate(all="ignore"):  # compiled code wraps and divides without a word, too
            yield
    finally:
        _interpreted.reset(token)


def is_interpreted() -> bool:
    """Do kernels run as plain Python here?"""
    return _interpreted.get()


class Kernel:
    """A function that is compiled when it is first called, or when another kernel that calls it is compiled."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], address: bool) -> None:
        self.py_func, self.address = function, address
        self.targetoptions = options  # numba looks here for `inline`
        self._dispatcher: Any = None
        self._part: Any = None
        self.__name__, self.__doc__, self.__module__ = function.__name__, function.__doc__, function.__module__
        self.__wrapped__ = function

    def __call__(self, *arguments: Any) -> Any:
        if _interpreted.get():
            return self.py_func(*arguments)
        try:
            return (self._for_python if self.address else self.dispatcher())(*arguments)
        except SystemError as error:
            # A signal handler raised while numba handed the result over: Python reports that as a fault of numba, and
            # what the handler raised, such as KeyboardInterrupt, as its cause. Where one call of C contains another,
            # the cause may be such a fault itself.
            raised: BaseException = error
            while isinstance(raised, SystemError) and raised.__cause__ is not None:
                raised = raised.__cause__
            if raised is error:
                raise
            raise raised from None

    def __reduce__(self) -> str:
        return self.py_func.__qualname__

    @cached_property
    def signature(self) -> Any:
        """What it takes and returns: worked out when it is first asked for, not when its module is imported."""
        return signature_of(self.py_func)

    @cached_property
    def _for_python(self) -> Any:
        """A copy that Python can call: code called by its address takes no Python objects. Only tests use it."""
        with compiling(self):
            return numba().njit(self.signature, **self.targetoptions)(self.py_func)

    def part(self) -> Any:
        """The function as other kernels see it."""
        if self.address:
            return self.dispatcher()
        if self._part is None:
            with _compiler_lock():
                if self._part is None:
                    self._part = self._compile_part()
        return self._part

    def dispatcher(self) -> Any:
        """The compiled function, as Python calls it."""
        if self._dispatcher is None:
            in_the_background(self._make)
        return self._dispatcher

    def _make(self) -> None:
        # Numba's own lock: one of our own could be taken in the other order by another thread.
        with _compiler_lock():
            if self._dispatcher is None:
                self._dispatcher = self._compile()

    def is_ready(self) -> bool:
        """Is it compiled, or in the cache?"""
        if self._dispatcher is not None:
            return True
        return is_cached(self.py_func, self.signature, self._contents())

    def _contents(self) -> Contents:
        """Where the source is of all that it contains, and the constants of its modules, which other files may set."""
        functions = [each.py_func for each in (self, *called_kernels(self.py_func))]
        constants = {
            f"{function.__module__}.{name}={value!r}"
            for function in functions
            for name in names_in(function.__code__)
            if isinstance(value := function.__globals__.get(name), int | float | str | np.generic)
        }
        return Contents({function.__code__.co_filename for function in functions}, constants)

    def _compile(self) -> Any:
        # What is called by its address must be there before code from the cache is linked.
        for other in called_kernels(self.py_func):
            if other.address:
                other.dispatcher()
        from cepheid.engine.kernels.parts import WITHOUT_PYTHON, set_environments

        options = {**self.targetoptions, **(WITHOUT_PYTHON if self.address else {"no_cfunc_wrapper": True})}
        with compiling(self):
            dispatcher = cached(self.py_func, self.signature, options, self._contents())
        set_environments(dispatcher)
        return _by_address(dispatcher, self.py_func) if self.address else dispatcher

    def _compile_part(self) -> Any:
        from cepheid.engine.kernels.parts import OF_A_PART

        with compiling(self):
            return numba().njit(self.signature, **self.targetoptions, **OF_A_PART)(self.py_func)


def _type_kernels() -> None:
    """Other kernels see the compiled function."""
    from numba.extending import typeof_impl

    typeof_impl.register(Kernel)(lambda value, context: typeof_impl(value.part(), context))


when_loaded(_type_kernels)


def _compiler_lock() -> Any:
    numba()
    from numba.core.compiler_lock import global_compiler_lock

    return global_compiler_lock


def called_kernels(function: Callable[..., Any]) -> list[Kernel]:
    """All kernels that a function calls, directly or through others; those that are called come first."""
    ordered: dict[int, Kernel] = {}

    def visit(called: Callable[..., Any]) -> None:
        for name in names_in(called.__code__):
            value = called.__globals__.get(name)
            if isinstance(value, Kernel) and id(value) not in ordered and value.py_func is not called:
                visit(value.py_func)
                ordered[id(value)] = value

    visit(function)
    return list(ordered.values())


def names_in(code: CodeType) -> Iterator[str]:
    """The names that a function uses, those of the functions inside it included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def _by_address(dispatcher: Any, function: Callable[..., Any]) -> Any:
    import llvmlite.binding

    (result,) = dispatcher.overloads.values()
    known_as = copy(result.fndesc)
    known_as.mangled_name = f"{function.__module__}.{function.__qualname__} {result.signature}"
    address = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
    llvmlite.binding.add_symbol(known_as.mangled_name, address)
    # From here on callers find the name, and no code to copy.
    dispatcher.targetctx.remove_user_function(result.entry_point)
    dispatcher.targetctx.insert_user_function(result.entry_point, known_as, [])
    return dispatcher


def handed_over(function: Any, signature: Any) -> Any:
    """A compiled function that kernels get as an argument: numba need not look its code up at each call.

    It would compare whole signatures, for a tenth of a millisecond.
    """
    if COMPILES:
        result = function.get_compile_result(signature)
        function.get_compile_result = lambda asked: result
    return function


def _compiled(function: Function, options: dict[str, Any], address: bool = False) -> Function:
    return Kernel(function, options, address) if COMPILES else function  # type: ignore[return-value]


def kernel(function: Function) -> Function:
    """Compiles a function that may make arrays."""
    return _compiled(function, REFERENCES)


def unlocked_kernel(function: Function) -> Function:
    """Compiles a function that may make arrays and runs without Python's global lock, where Python calls it."""
    return _compiled(function, {**REFERENCES, "nogil": True})


def search_kernel(function: Function) -> Function:
    """Compiles a whole search, which only Python calls: it runs without the global lock, and can be stopped.

    Its loops look at `stop_flag`.
    """
    return guarded(unlocked_kernel(function))  # type: ignore[return-value]


def borrowing(function: Function) -> Function:
    """Compiles a function that makes no arrays, only works on those it is given.

    Then numba need not count references to them. It would on every call, for every array of every tuple that is handed
    over, with an atomic instruction each: more than the work itself where a call takes nanoseconds.
    """
    return _compiled(function, NO_REFERENCES)


def inlined(function: Function) -> Function:
    """The same, and callers contain a copy of the function, however long it is."""
    return _compiled(function, {**NO_REFERENCES, "forceinline": True})


def called_by_address(function: Function) -> Function:
    """Compiles a function that other kernels call by its address.

    Numba otherwise copies all that a kernel calls into the kernel and optimises it there again, so that a large
    function at the end of a chain of calls is compiled once for every link of the chain. A call by address costs a
    few nanoseconds more: worth it for functions that take longer than that and are long themselves.
    """
    return _compiled(function, REFERENCES, address=True)


def borrowing_by_address(function: Function) -> Function:
    """The same for a function that makes no arrays: no references to those it is given are counted."""
    return _compiled(function, NO_REFERENCES, address=True)

"""What numba need not do again and again while it compiles kernels.

More than half of the time that kernels take to compile is numba's own, in Python. Much of that is spent on five things:

- It compares the options of compilers value by value, a hundred thousand times for a search.
- To type `a[i]` it tries a hundred functions that do not fit, each time.
- To say which shapes differ, an assignment to a slice compiles functions that put texts together.
- Every function that it compiles measures the time of all that are compiled inside it.
- Python looks for garbage among a million objects that are all in use.

The code is the same but for assignments to slices: their error no longer names the shapes.
All is as numba has it again when a kernel is compiled, so that functions of users are compiled as ever.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.targetconfig import ConfigStack, TargetConfig
from numba.extending import overload
from numba.np import arrayobj

GARBAGE = (50_000, 20, 50)  # so many new objects, and so many searches among them, before Python looks for garbage
_call_type: Any = types.BaseFunction.get_call_type
_is_equal: Any = TargetConfig.__eq__
_hashes: dict[Any, int] = {}  # by class of options
_known: dict[int, tuple[object, dict[Any, Any]]] = {}  # by function: itself, and the signatures of its calls


@contextmanager
def quicker() -> Iterator[None]:
    """Compiles faster in this block. The lock of the compiler is held: no other thread compiles at that time."""
    changes: tuple[tuple[Any, str, Any], ...] = (
        (TargetConfig, "__hash__", _hash),
        (TargetConfig, "__eq__", _equal),
        (types.BaseFunction, "get_call_type", _call_type_once),
        (arrayobj, "raise_with_shape_context", shapes_differ),
        (event, "install_timer", _no_timer),
    )
    with global_compiler_lock:
        before = [(where, name, getattr(where, name)) for where, name, _ in changes]
        thresholds = gc.get_threshold()
        try:
            if thresholds[0] and thresholds < GARBAGE:  # 0: somebody has it switched off
                gc.set_threshold(*GARBAGE)
            for where, name, value in changes:
                setattr(where, name, value)
            yield
        finally:
            gc.set_threshold(*thresholds)
            for where, name, value in before:
                setattr(where, name, value)


def _hash(options: Any) -> int:
    """Numba's hash of options: it is made of their names alone."""
    kind: Any = type(options)
    if kind not in _hashes:
        _hashes[kind] = hash(tuple(sorted(kind.options)))
    return _hashes[kind]


def _equal(options: Any, other: Any) -> Any:
    """Are options equal? Mostly those that were set are."""
    if options is other or (type(options) is type(other) and options._values == other._values):
        return True
    return _is_equal(options, other)


def _call_type_once(function: Any, context: Any, args: Any, kws: Any) -> Any:
    """The signature of a call. Those of functions that are compiled for it are not remembered.

    What numba keeps of such a function is one for all options: it has to be made again when they change.
    """
    _, signatures = _known.setdefault(id(function), (function, {}))
    options = ConfigStack.top_or_none()
    call = (context, tuple(args), tuple(kws.items()))
    signature = signatures.get((*call, options))
    if signature is not None:
        function._impl_keys[signature.args] = function.typing_key
        return signature
    signature = _call_type(function, context, args, kws)
    if function._impl_keys[signature.args] is function.typing_key:
        signatures[*call, options and options.copy()] = signature  # who has them may change them
    return signature


def shapes_differ(source: Any, target: Any) -> None:
    """Raises the error of an assignment to a slice."""
    raise NotImplementedError


@overload(shapes_differ)
def _shapes_differ(source: Any, target: Any) -> Any:
    def fail(source: Any, target: Any) -> None:
        raise ValueError("cannot assign an array of another shape to a slice")

    return fail


@contextmanager
def _no_timer(kind: str, callback: object) -> Iterator[None]:
    yield

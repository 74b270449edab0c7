"""Functions that queries may call: aggregates over Kleene groups, built-in ones, and the user's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, overload

from cepheid.errors import CepheidError
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.compilable import calculates
from cepheid.language.library import (
    number_functions,
    text_functions,
    time_functions,
    value_functions,
    zone_functions,
)
from cepheid.language.library.function import ANY, MANY, Function
from cepheid.language.schema import DataType

_RESERVED = frozenset({"not", "true", "false", "null"} | {strategy.value for strategy in s.Strategy})


BUILT_IN: dict[str, Function] = {
    function.name: function
    for library in (number_functions, text_functions, time_functions, zone_functions, value_functions)
    for function in library.FUNCTIONS
}
INTERNAL: dict[str, Function] = {function.name: function for function in value_functions.INTERNAL}

_USER: dict[str, Function] = {}
_registrations = 0
_RESULTS = {bool: DataType.BOOL, int: DataType.INT, float: DataType.FLOAT}


def find_function(name: str) -> Function | None:
    """The function a query means by a name; the user's own go first, case does not matter."""
    return _USER.get(name.lower()) or BUILT_IN.get(name.lower()) or INTERNAL.get(name.lower())


def in_python(kernel: object) -> object:
    """What Python calls where compiled code calls a kernel: some overflow to infinity only where they are compiled."""
    return number_functions.IN_PYTHON.get(kernel, kernel)  # type: ignore[call-overload]


def registrations() -> int:
    """How often the user has registered a function: what was bound before may mean something else now."""
    return _registrations


def function_names() -> list[str]:
    """Every name a query may call, aggregates included."""
    return sorted({*_USER, *BUILT_IN, *AGGREGATES})


@overload
def function(call: Callable[..., Any], /) -> Callable[..., Any]: ...
@overload
def function(
    *, name: str | None = None, result: type = ..., compiled: bool = ...
) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
def function(
    call: Callable[..., object] | None = None,
    /,
    *,
    name: str | None = None,
    result: type | None = None,
    compiled: bool = False,
) -> Any:
    """Registers a Python function for use in queries; it returns the function unchanged.

    The result type is taken from the annotation, or `result`, or else is a number. Arguments annotated as float get
    whole numbers as such. It means the same in every engine: one that might give another result when it is compiled
    (`language/compilable.py` says which) runs as Python, and EXPLAIN says so. With `compiled=True` you vouch that it
    does not, and it runs at full speed; what is compiled with numba already is taken as it is.

    >>> @function
    ... def distance(x: float, y: float) -> float:
    ...     return abs(x - y)
    >>> find_function("Distance").result
    <DataType.FLOAT: 'number'>
    """
    if call is None:
        return lambda inner: _register(inner, name, result, compiled)
    return _register(call, name, result, compiled)


def _register(
    call: Callable[..., object], name: str | None, result: type | None, compiled: bool
) -> Callable[..., object]:
    called = str(name or getattr(call, "__name__", "")).lower()
    if called in AGGREGATES or called in _RESERVED or not called.isidentifier():
        raise CepheidError(f"a function cannot be called '{called}'", hint="pass name=... with another name")
    annotated = result or getattr(call, "__annotations__", {}).get("return", float)
    if isinstance(annotated, str):  # annotations are text under `from __future__ import annotations`
        annotated = {"bool": bool, "int": int, "float": float}.get(annotated, annotated)
    if annotated not in _RESULTS:
        hint = "annotate it, or pass result=float"
        raise CepheidError(f"function '{called}' must return bool, int or float, not {annotated!r}", hint=hint)
    least, most = _argument_count(call, called)
    global _registrations
    _registrations += 1
    _USER[called] = Function(
        "",
        call,
        ANY,
        _RESULTS[annotated],
        called,
        least,
        most,
        user=True,
        fractions=_fractions(call),
        arithmetic=calculates(call),
        vouched=compiled,
    )
    return call


def _fractions(call: Callable[..., object]) -> tuple[int, ...]:
    """The arguments that are annotated as float."""
    plain = getattr(call, "py_func", call)
    annotations, code = getattr(plain, "__annotations__", {}), getattr(plain, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    return tuple(place for place, name in enumerate(names) if annotations.get(name) in (float, "float"))


def _argument_count(call: Callable[..., object], called: str) -> tuple[int, int]:
    try:
        parameters = inspect.signature(getattr(call, "py_func", call)).parameters.values()  # numba keeps it there
    except (TypeError, ValueError):  # some functions written in C do not tell
        return 0, MANY
    if any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters):
        raise CepheidError(f"function '{called}' has an argument that queries cannot pass", hint="give it a default")
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least = sum(p.default is p.empty for p in positional)
    return least, MANY if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(positional)

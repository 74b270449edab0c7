"""Functions that queries may call: aggregates over Kleene groups, built-in ones, and the user's own."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, overload

from cepheid.errors import CepheidError
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.schema import DataType

_RESERVED = frozenset({"not", "true", "false", "null"} | {strategy.value for strategy in s.Strategy})
_MANY = 20  # arguments that a function may take at most


@dataclass(frozen=True)
class Function:
    """A function of values. NULL arguments give NULL without a call, unless it is COALESCE."""

    name: str
    call: Callable[..., Any]
    least: int  # how many arguments at least and at most
    most: int
    accepts: frozenset[DataType]
    result: DataType | None  # None: that of the arguments
    user: bool = False
    kernel: Callable[..., Any] | None = None  # a form that numba takes, where `call` is none
    inline: str | None = None  # the function as source over its arguments, where it is that short
    null: str | None = None  # where it is NULL although its arguments are not, as source over them
    columns: bool = False  # computed for whole columns before any matching: functions of text
    spark: str | None = None  # Spark's function of the same meaning, for what is pushed below a shuffle

    @property
    def compiled(self) -> Callable[..., Any]:
        """The form that kernels call."""
        return self.kernel or self.call


_NUMBER = frozenset({DataType.INT, DataType.FLOAT})
_STRING = frozenset({DataType.STRING})
_ANY = frozenset(DataType)


def correlation(x: Any, y: Any) -> float:
    """Pearson's correlation of two equally long lists; not a number where either one is constant.

    >>> round(correlation([1.0, 2.0, 3.0], [2.0, 4.0, 6.5]), 3)
    0.998
    """
    n = min(len(x), len(y))
    mean_x = mean_y = 0.0
    for i in range(n):
        mean_x += x[i]
        mean_y += y[i]
    if n > 0:
        mean_x /= n
        mean_y /= n
    xy = xx = yy = 0.0
    for i in range(n):
        xy += (x[i] - mean_x) * (y[i] - mean_y)
        xx += (x[i] - mean_x) ** 2
        yy += (y[i] - mean_y) ** 2
    scale = math.sqrt(xx * yy)
    return xy / scale if scale > 0.0 else math.nan


def _guarded(call: Callable[..., float]) -> Callable[..., float]:
    """A mathematical function that answers NaN (so NULL) outside its domain instead of raising."""

    def safe(*arguments: float) -> float:
        try:
            return call(*arguments)
        except (ValueError, OverflowError, ZeroDivisionError):
            return math.nan

    return safe


# Compiled functions do not raise where Python's do, so their domains are written out.


def _sqrt(x: float) -> float:
    return math.sqrt(x) if x >= 0 else math.nan


def _log(x: float) -> float:
    return math.log(x) if x > 0 else math.nan


def _power(x: float, y: float) -> float:
    if (x < 0 and y != math.floor(y)) or (x == 0 and y < 0):
        return math.nan
    result = math.pow(x, y)
    return math.nan if math.isinf(result) and not (math.isinf(x) or math.isinf(y)) else result


def _exp(x: float) -> float:
    return math.exp(x) if x < _LARGEST_EXPONENT or x == math.inf else math.nan


def _floor(x: float) -> int:
    return math.floor(x)


def _ceil(x: float) -> int:
    return math.ceil(x)


_LARGEST_EXPONENT = 709.782712893384  # math.log of the largest number
_BEYOND_WHOLE = "not (-9223372036854775808.0 <= {0} < 9223372036854775808.0)"  # infinity, or more than 64 bits hold

BUILT_IN: dict[str, Function] = {
    function.name: function
    for function in (
        Function("abs", abs, 1, 1, _NUMBER, None, inline="abs({0})"),
        Function("sqrt", _sqrt, 1, 1, _NUMBER, DataType.FLOAT),
        Function("exp", _guarded(_exp), 1, 1, _NUMBER, DataType.FLOAT, kernel=_exp),
        Function("log", _log, 1, 1, _NUMBER, DataType.FLOAT),
        Function("power", _guarded(_power), 2, 2, _NUMBER, DataType.FLOAT, kernel=_power),
        Function("floor", _guarded(math.floor), 1, 1, _NUMBER, DataType.INT, kernel=_floor, null=_BEYOND_WHOLE),
        Function("ceil", _guarded(math.ceil), 1, 1, _NUMBER, DataType.INT, kernel=_ceil, null=_BEYOND_WHOLE),
        Function("least", min, 2, _MANY, _NUMBER, None, inline="min({all})"),
        Function("greatest", max, 2, _MANY, _NUMBER, None, inline="max({all})"),
        Function("lower", str.lower, 1, 1, _STRING, DataType.STRING, columns=True),
        Function("upper", str.upper, 1, 1, _STRING, DataType.STRING, columns=True),
        Function("length", len, 1, 1, _STRING | {DataType.LIST}, DataType.INT, spark="char_length", columns=True),
        Function("corr", correlation, 2, 2, frozenset({DataType.LIST}), DataType.FLOAT),
        Function("coalesce", lambda *values: None, 2, _MANY, _ANY, None),
    )
}

_USER: dict[str, Function] = {}
_RESULTS = {bool: DataType.BOOL, int: DataType.INT, float: DataType.FLOAT}


def find_function(name: str) -> Function | None:
    """The function a query means by a name; the user's own go first, case does not matter."""
    return _USER.get(name.lower()) or BUILT_IN.get(name.lower())


def function_names() -> list[str]:
    """Every name a query may call, aggregates included."""
    return sorted({*_USER, *BUILT_IN, *AGGREGATES})


@overload
def function(call: Callable[..., Any], /) -> Callable[..., Any]: ...
@overload
def function(*, name: str | None = None, result: type = ...) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
def function(call: Callable[..., Any] | None = None, /, *, name: str | None = None, result: type | None = None) -> Any:
    """Registers a Python function for use in queries; it returns the function unchanged.

    The result type is taken from the annotation, or `result`, or else is a number.
    Write it so that numba can compile it, and predicates that call it run at full speed.

    >>> @function
    ... def distance(x: float, y: float) -> float:
    ...     return abs(x - y)
    >>> find_function("Distance").result
    <DataType.FLOAT: 'number'>
    """
    if call is None:
        return lambda inner: _register(inner, name, result)
    return _register(call, name, result)


def _register(call: Callable[..., Any], name: str | None, result: type | None) -> Callable[..., Any]:
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
    _USER[called] = Function(called, call, least, most, _ANY, _RESULTS[annotated], user=True)
    return call


def _argument_count(call: Callable[..., Any], called: str) -> tuple[int, int]:
    try:
        parameters = inspect.signature(getattr(call, "py_func", call)).parameters.values()  # numba keeps it there
    except (TypeError, ValueError):  # some functions written in C do not tell
        return 0, _MANY
    if any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters):
        raise CepheidError(f"function '{called}' has an argument that queries cannot pass", hint="give it a default")
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least = sum(p.default is p.empty for p in positional)
    return least, _MANY if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(positional)

"""The compiled signature of a kernel, from its annotations."""

from __future__ import annotations

from collections import abc
from collections.abc import Callable
from functools import cache
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np

from cepheid.engine.data.arrays import READ_ONLY


def signature_of(function: Callable[..., Any]) -> Any:
    """What a function takes and returns, as numba has it."""
    *taken, returned = map(compiled_type, get_type_hints(function, include_extras=True).values())
    return returned(*taken)


@cache
def compiled_type(annotation: Any) -> Any:
    """A type as numba has it.

    >>> compiled_type(tuple[int, float])
    Tuple((int64, float64))
    >>> compiled_type(Callable[[int], bool])
    FunctionType[bool(int64)]
    """
    from numba import types

    plain: dict[Any, Any] = {int: types.int64, float: types.float64, bool: types.boolean, NoneType: types.void}
    if annotation in plain:
        return plain[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        array, said, *rest = arguments
        return said() if callable(said) else _array(array, said, READ_ONLY in rest)  # a function says numba's type
    if origin is np.ndarray:
        return _array(annotation, 1, False)
    if origin is abc.Callable:
        taken, returned = arguments
        return types.FunctionType(compiled_type(returned)(*map(compiled_type, taken)))
    if origin is tuple:
        return types.BaseTuple.from_types(tuple(map(compiled_type, arguments)))
    fields = get_type_hints(annotation, include_extras=True).values()
    return types.BaseTuple.from_types(tuple(map(compiled_type, fields)), annotation)


def _array(array: Any, dimensions: int, readonly: bool) -> Any:
    from numba import from_dtype, types

    (element,) = get_args(get_args(array)[1])
    return types.Array(from_dtype(np.dtype(element)), dimensions, "C", readonly=readonly)

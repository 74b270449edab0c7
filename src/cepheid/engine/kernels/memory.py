"""Arrays and functions by their addresses: a call of a kernel that gets one array of them takes half a microsecond.

Each array that Python hands to a kernel costs a quarter of a microsecond, and a function ten. As plain Python the same
addresses are read through ctypes, and a function has a number that it is known by here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from cepheid.engine.data.arrays import Float64Rows, Int32s, Int64Rows, Int64s, Uint8Rows
from cepheid.engine.data.columns import PredicateCall
from cepheid.engine.kernels.compile import COMPILES, is_interpreted
from cepheid.engine.kernels.loading import register
from cepheid.engine.values.compiled import predicate_signature

_numbers = count(1)
_functions: dict[int, Any] = {}  # that plain Python calls, by number


def int64_row(address: int, length: int) -> Int64s:
    """The whole numbers at an address."""
    return _at(address, (length,), ctypes.c_int64, np.int64)  # type: ignore[no-any-return]


def int64_rows(address: int, rows: int, columns: int) -> Int64Rows:
    """A table of whole numbers at an address."""
    return _at(address, (rows, columns), ctypes.c_int64, np.int64)  # type: ignore[no-any-return]


def int32_row(address: int, length: int) -> Int32s:
    """The short whole numbers at an address."""
    return _at(address, (length,), ctypes.c_int32, np.int32)  # type: ignore[no-any-return]


def float64_rows(address: int, rows: int, columns: int) -> Float64Rows:
    """A table of fractions at an address."""
    return _at(address, (rows, columns), ctypes.c_double, np.float64)  # type: ignore[no-any-return]


def uint8_rows(address: int, rows: int, columns: int) -> Uint8Rows:
    """A table of bytes at an address."""
    return _at(address, (rows, columns), ctypes.c_uint8, np.uint8)  # type: ignore[no-any-return]


def function_at(address: int) -> PredicateCall:
    """The condition of a query at an address."""
    return _functions[address]  # type: ignore[no-any-return]


def search_at(address: int) -> Callable[[Int64s], int]:
    """A search at an address, which gets the array of all that it needs."""
    return _functions[address]  # type: ignore[no-any-return]


def address_of(predicate: Any) -> int:
    """The address of a compiled condition, for `function_at`; the caller keeps the condition in memory."""
    if COMPILES and not is_interpreted():
        return _address(predicate.get_compile_result(predicate_signature()))
    return _number_of(predicate)


def address_of_kernel(function: Any) -> int:
    """The address of a kernel, for `search_at`: compiled now, if it is not yet."""
    if not COMPILES or is_interpreted():
        return _number_of(function)
    (result,) = function.dispatcher().overloads.values()
    return _address(result)


def _address(result: Any) -> int:
    address: int = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
    return address


def _number_of(function: Any) -> int:
    number = next((number for number, each in _functions.items() if each is function), None)
    if number is None:
        number = next(_numbers)
        _functions[number] = function
    return number


def _at(address: int, shape: tuple[int, ...], unit: Any, kind: Any) -> Any:
    size = int(np.prod([int(each) for each in shape]))
    if size == 0:
        return np.empty(shape, kind)
    return np.frombuffer((unit * size).from_address(int(address)), kind).reshape(shape)


def _array(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """An address as an array, without a copy."""
    from numba import types
    from numba.np.arrayobj import make_array, populate_array

    made = make_array(signature.return_type)(context, builder)
    size = context.get_constant(types.intp, signature.return_type.dtype.bitwidth // 8)
    strides = [size]
    for length in reversed(arguments[2:]):
        strides.insert(0, builder.mul(strides[0], length))
    data = builder.inttoptr(arguments[0], made.data.type)
    populate_array(made, data, arguments[1:], strides, size, None)
    return made._getvalue()


def _function(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """An address as a function that kernels get as an argument."""
    from llvmlite import ir
    from numba.core import cgutils

    made = cgutils.create_struct_proxy(signature.return_type)(context, builder)
    made.jit_addr = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
    return made._getvalue()


for each in (int64_row, int64_rows, int32_row, float64_rows, uint8_rows):
    register(each, _array)
register(function_at, _function)
register(search_at, _function)

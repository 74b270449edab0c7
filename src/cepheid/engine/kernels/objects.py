"""Python's objects in kernels, by their addresses: a kernel reads a dict without a line of Python in between.

Each function is one of Python's own for extensions, and costs some nanoseconds. What a kernel may not do with them is
to call code of the user: it reads values of exact types only. In plain Python the same functions are reached through
ctypes. A kernel that uses them runs with Python's global lock.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, TypeAlias

import numpy as np

from cepheid.engine.kernels.loading import register
from cepheid.engine.kernels.memory import uint8_rows

_api = ctypes.PyDLL("", handle=ctypes.pythonapi._handle)  # one of our own: others may say how `pythonapi` is called


@cache
def object_type() -> Any:
    """The type of an object that Python hands to a kernel, which gets its address."""
    from llvmlite import ir
    from numba import types
    from numba.extending import NativeValue, models, register_model, unbox

    word = ir.IntType(64)

    class ObjectType(types.Type):
        def __init__(self) -> None:
            super().__init__("PythonObject")

    @register_model(ObjectType)
    class Model(models.PrimitiveModel):
        def __init__(self, manager: Any, kind: Any) -> None:
            super().__init__(manager, kind, word)  # type: ignore[no-untyped-call]

    @unbox(ObjectType)
    def address_of(kind: Any, value: Any, context: Any) -> NativeValue:
        return NativeValue(context.builder.ptrtoint(value, word))

    return ObjectType()


def int32_type() -> Any:
    """The type of C's numbers."""
    from numba import types

    return types.int32


PythonObject: TypeAlias = Annotated[Any, object_type]
Int32: TypeAlias = Annotated[int, int32_type]


def address(value: PythonObject) -> int:
    """Where an object lies; who asks keeps it in memory."""
    return id(value)


register(address, lambda context, builder, signature, given: given[0])

_IN_C = {int: ctypes.c_ssize_t, Int32: ctypes.c_int, float: ctypes.c_double, None: None}


def _of_python(name: str, returned: Any, *taken: type[int] | type[float]) -> Any:
    """A function of Python's by its name: through ctypes in plain Python, a call in compiled code."""

    def called(*given: Any) -> int | float:
        function = getattr(_api, name)
        function.restype, function.argtypes = _IN_C[returned], [_IN_C[kind] for kind in taken]
        found: int | float | None = function(*(kind(each) for kind, each in zip(taken, given, strict=True)))
        return 0 if found is None else found

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        from llvmlite import ir
        from numba.core import cgutils

        kind = ir.VoidType() if returned is None else context.get_value_type(signature.return_type)
        kind = ir.FunctionType(kind, [each.type for each in given])
        made = builder.call(cgutils.get_or_insert_function(builder.module, kind, name), given)
        return context.get_dummy_value() if returned is None else made

    called.__annotations__ = {**{str(place): kind for place, kind in enumerate(taken)}, "return": returned}
    register(called, generate)
    return called


_Whole: TypeAlias = Callable[..., int]
_Nothing: TypeAlias = Callable[..., None]

# Objects go by their addresses. A function that makes one says 0 where there is no memory for it, one that changes one
# -1. What is made is given back by whoever asks for it (`give_back`).
dict_size: _Whole = _of_python("PyDict_Size", int, int)  # how many names a dict has
dict_item: _Whole = _of_python("PyDict_GetItem", int, int, int)  # of a dict and a key: the value; 0: there is none
dict_set: _Whole = _of_python("PyDict_SetItem", Int32, int, int, int)  # puts under a key of a dict a value
dict_new: _Whole = _of_python("PyDict_New", int)  # makes an empty dict
dict_copy: _Whole = _of_python("PyDict_Copy", int, int)  # makes a copy of a dict
tuple_of: _Whole = _of_python("PyTuple_New", int, int)  # makes a tuple of so many places, which are to be set
tuple_set: _Whole = _of_python(
    "PyTuple_SetItem", Int32, int, int, int
)  # hands over to a new tuple, at a place, a value
list_new: _Whole = _of_python("PyList_New", int, int)  # makes a list of so many places, which are to be set
list_append: _Whole = _of_python("PyList_Append", Int32, int, int)  # puts behind the values of a list another one
list_size: _Whole = _of_python("PyList_Size", int, int)  # how many values a list has
list_item: _Whole = _of_python("PyList_GetItem", int, int, int)  # of a list and a place: the value, which stays its own
whole_object: _Whole = _of_python("PyLong_FromLongLong", int, int)  # makes an object of a whole number
fraction_object: _Whole = _of_python("PyFloat_FromDouble", int, float)  # makes an object of a fraction
# Makes the text of letters in UTF-8, so many, without errors (0: they are not left out); 0: they are no text.
text_object: _Whole = _of_python("PyUnicode_DecodeUTF8", int, int, int, int)
# The whole number of an object; at the second address stands 0 if it is one of 64 bits.
whole_of: _Whole = _of_python("PyLong_AsLongLongAndOverflow", int, int, int)
fraction_of: Callable[..., float] = _of_python("PyFloat_AsDouble", float, int)  # the fraction of an object
# Where the letters of a text lie as UTF-8, and at the second address how many; 0: it has none: there is an error then.
letters_of: _Whole = _of_python("PyUnicode_AsUTF8AndSize", int, int, int)
clear_error: _Nothing = _of_python("PyErr_Clear", None)  # forgets what the last function complained of
collect_nothing: _Whole = _of_python("PyGC_Disable", Int32)  # no garbage is collected; 0: that was so before
collect_again: _Whole = _of_python("PyGC_Enable", Int32)  # garbage is collected again
hold: _Nothing = _of_python("Py_IncRef", None, int)  # an object is needed, until it is given back or handed over
give_back: _Nothing = _of_python("Py_DecRef", None, int)  # an object is no longer needed here

# Where objects hold what no function of Python's tells without making another object.
KIND = 8  # the address of their type
MEMORY = 16  # of an array of numpy's: where its values are
HAS_ZONE, PARTS_OF_TIME, ZONE = 24, 25, 40  # of a datetime: a byte; ten bytes from the year on; an address


def _are_known() -> bool:
    """Do objects lie in memory as is said here?"""
    time = datetime(2026, 3, 4, 5, 6, 7, 0x010203, tzinfo=UTC)
    if ctypes.sizeof(ctypes.c_void_p) != 8 or object.__basicsize__ != 16 or datetime.__basicsize__ < ZONE + 8:
        return False
    numbers = np.zeros(1, np.int64)
    if ctypes.c_int64.from_address(id(numbers) + MEMORY).value != numbers.ctypes.data:
        return False
    parts = bytes(uint8_rows(id(time) + HAS_ZONE, 1, 11)[0])
    kind, zone = (ctypes.c_int64.from_address(id(time) + place).value for place in (KIND, ZONE))
    return parts == bytes([1, 7, 234, 3, 4, 5, 6, 7, 1, 2, 3]) and (kind, zone) == (id(datetime), id(UTC))


ARE_KNOWN = _are_known()

"""Python's objects in kernels, by their addresses: a kernel reads a dict without a line of Python in between.

Each function is one of Python's own for extensions, and costs some nanoseconds. What a kernel may not do with them is
to call code of the user: it reads values of exact types only. In plain Python the same functions are reached through
ctypes. A kernel that uses them runs with Python's global lock.
"""

from __future__ import annotations

import ctypes
from datetime import UTC, datetime
from typing import Annotated, Any, TypeAlias

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import NativeValue, models, register_model, unbox

from cepheid.engine.kernels.memory import register, uint8_rows

_api = ctypes.PyDLL("", handle=ctypes.pythonapi._handle)  # one of our own: others may say how `pythonapi` is called
_WORD = ir.IntType(64)


class ObjectType(types.Type):
    """An object that Python hands to a kernel, which gets its address."""

    def __init__(self) -> None:
        super().__init__("PythonObject")


PythonObject: TypeAlias = Annotated[Any, ObjectType()]
Int32: TypeAlias = Annotated[int, types.int32]


@register_model(ObjectType)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _WORD)  # type: ignore[no-untyped-call]


@unbox(ObjectType)
def _unbox(kind: Any, value: Any, context: Any) -> NativeValue:
    return NativeValue(context.builder.ptrtoint(value, _WORD))


def address(value: PythonObject) -> int:
    """Where an object lies; who asks keeps it in memory."""
    return id(value)


def _called(name: str, result: Any, *arguments: Any) -> int | float:
    function = getattr(_api, name)
    function.restype, function.argtypes = result, [ctypes.c_ssize_t] * len(arguments)
    found: int | float | None = function(*map(int, arguments))
    return 0 if found is None else found


def dict_size(mapping: int) -> int:
    """How many names a dict has."""
    return int(_called("PyDict_Size", ctypes.c_ssize_t, mapping))


def dict_item(mapping: int, key: int) -> int:
    """The value of a key; 0: there is none."""
    return int(_called("PyDict_GetItem", ctypes.c_ssize_t, mapping, key))


def dict_set(mapping: int, key: int, value: int) -> Int32:
    """Puts a value into a dict; -1: there is no memory for it."""
    return int(_called("PyDict_SetItem", ctypes.c_int, mapping, key, value))


def dict_copy(mapping: int) -> int:
    """A copy of a dict, which whoever asks gives back by `give_back`; 0: there is no memory for it."""
    return int(_called("PyDict_Copy", ctypes.c_ssize_t, mapping))


def tuple_of(length: int) -> int:
    """A tuple whose places are to be set, and that is to be given back; 0: there is no memory for it."""
    return int(_called("PyTuple_New", ctypes.c_ssize_t, length))


def tuple_set(items: int, place: int, value: int) -> Int32:
    """Sets a place of a new tuple, to which the value is handed over."""
    return int(_called("PyTuple_SetItem", ctypes.c_int, items, place, value))


def list_append(items: int, value: int) -> Int32:
    """Puts a value behind those of a list; -1: there is no memory for it."""
    return int(_called("PyList_Append", ctypes.c_int, items, value))


def list_item(items: int, place: int) -> int:
    """A value of a list, which stays the list's."""
    return int(_called("PyList_GetItem", ctypes.c_ssize_t, items, place))


def whole_object(value: int) -> int:
    """A whole number as an object, to be given back; 0: there is no memory for it."""
    return int(_called("PyLong_FromLongLong", ctypes.c_ssize_t, value))


def fraction_object(value: float) -> int:
    """A fraction as an object, to be given back; 0: there is no memory for it."""
    function = _api.PyFloat_FromDouble
    function.restype, function.argtypes = ctypes.c_ssize_t, [ctypes.c_double]
    return int(function(float(value)))


def text_object(letters: int, length: int, errors: int) -> int:
    """The text of some letters in UTF-8, to be given back; 0: it is none. `errors` is 0: they are not left out."""
    return int(_called("PyUnicode_DecodeUTF8", ctypes.c_ssize_t, letters, length, errors))


def whole_of(value: int, beyond: int) -> int:
    """A whole number; at the address `beyond` stands 0 if it is one of 64 bits."""
    return int(_called("PyLong_AsLongLongAndOverflow", ctypes.c_longlong, value, beyond))


def fraction_of(value: int) -> float:
    """A fraction."""
    return float(_called("PyFloat_AsDouble", ctypes.c_double, value))


def letters_of(text: int, size_at: int) -> int:
    """Where the letters of a text lie as UTF-8; 0: it has none, and there is an error to clear."""
    return int(_called("PyUnicode_AsUTF8AndSize", ctypes.c_ssize_t, text, size_at))


def clear_error() -> None:
    """Forgets what the last function complained of."""
    _called("PyErr_Clear", None)


def hold(value: int) -> None:
    """Says that an object is needed, until it is given back or handed over."""
    _called("Py_IncRef", None, value)


def give_back(value: int) -> None:
    """Says that an object is no longer needed here."""
    _called("Py_DecRef", None, value)


def _own_address(context: Any, builder: Any, signature: Any, given: Any) -> Any:
    return given[0]


def _call_of(name: str) -> Any:
    """What calls a function of Python's by its name, in compiled code."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        nothing = signature.return_type is types.none
        returned = ir.VoidType() if nothing else context.get_value_type(signature.return_type)
        kind = ir.FunctionType(returned, [each.type for each in given])
        called = builder.call(cgutils.get_or_insert_function(builder.module, kind, name), given)
        return context.get_dummy_value() if nothing else called

    return generate


register(address, _own_address)
register(dict_size, _call_of("PyDict_Size"))
register(dict_item, _call_of("PyDict_GetItem"))
register(dict_set, _call_of("PyDict_SetItem"))
register(dict_copy, _call_of("PyDict_Copy"))
register(tuple_of, _call_of("PyTuple_New"))
register(tuple_set, _call_of("PyTuple_SetItem"))
register(list_append, _call_of("PyList_Append"))
register(list_item, _call_of("PyList_GetItem"))
register(whole_object, _call_of("PyLong_FromLongLong"))
register(fraction_object, _call_of("PyFloat_FromDouble"))
register(text_object, _call_of("PyUnicode_DecodeUTF8"))
register(whole_of, _call_of("PyLong_AsLongLongAndOverflow"))
register(fraction_of, _call_of("PyFloat_AsDouble"))
register(letters_of, _call_of("PyUnicode_AsUTF8AndSize"))
register(clear_error, _call_of("PyErr_Clear"))
register(hold, _call_of("Py_IncRef"))
register(give_back, _call_of("Py_DecRef"))

# Where objects hold what no function of Python's tells without making another object.
KIND = 8  # the address of their type
HAS_ZONE, PARTS_OF_TIME, ZONE = 24, 25, 40  # of a datetime: a byte; ten bytes from the year on; an address


def _are_known() -> bool:
    """Do objects lie in memory as is said here?"""
    time = datetime(2026, 3, 4, 5, 6, 7, 0x010203, tzinfo=UTC)
    if ctypes.sizeof(ctypes.c_void_p) != 8 or object.__basicsize__ != 16 or datetime.__basicsize__ < ZONE + 8:
        return False
    parts = bytes(uint8_rows(id(time) + HAS_ZONE, 1, 11)[0])
    kind, zone = (ctypes.c_int64.from_address(id(time) + place).value for place in (KIND, ZONE))
    return parts == bytes([1, 7, 234, 3, 4, 5, 6, 7, 1, 2, 3]) and (kind, zone) == (id(datetime), id(UTC))


ARE_KNOWN = _are_known()

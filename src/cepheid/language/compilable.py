"""Would a function of the user's give the same result compiled as it does in Python?

Compiled code counts in 64 bits and wraps around, gives NaN or garbage where Python raises, has its own powers and text,
and keeps the values that globals had when it was compiled. So only functions are compiled whose byte code shows nothing
of that: arguments, constants, comparisons, `+ - *` of fractions, division by a constant, `abs`, `min`, `max`, and a few
functions of `math` that every library rounds alike. All others run as Python.
"""

from __future__ import annotations

import dis
import math
from collections.abc import Callable
from types import CodeType
from typing import Any

_SAFE_CALLS: dict[str, Any] = {"abs": abs, "min": min, "max": max}
_SAFE_MATH = frozenset({"fabs", "isnan", "isinf", "isfinite", "copysign", "pi", "e", "inf", "nan"})
_ALWAYS = frozenset(
    [
        "RESUME",
        "NOP",
        "CACHE",
        "COPY_FREE_VARS",
        "PUSH_NULL",
        "POP_TOP",
        "COPY",
        "SWAP",
        "LOAD_FAST",
        "LOAD_FAST_CHECK",
        "LOAD_FAST_LOAD_FAST",
        "LOAD_FAST_BORROW",
        "LOAD_FAST_BORROW_LOAD_FAST_BORROW",
        "STORE_FAST",
        "STORE_FAST_LOAD_FAST",
        "STORE_FAST_STORE_FAST",
        "LOAD_CONST",
        "LOAD_SMALL_INT",
        "RETURN_VALUE",
        "RETURN_CONST",
        "COMPARE_OP",
        "TO_BOOL",
        "UNARY_NOT",
        "POP_JUMP_IF_FALSE",
        "POP_JUMP_IF_TRUE",
        "POP_JUMP_FORWARD_IF_FALSE",
        "POP_JUMP_FORWARD_IF_TRUE",
        "JUMP_FORWARD",
        "JUMP_IF_FALSE_OR_POP",
        "JUMP_IF_TRUE_OR_POP",
        "PRECALL",
        "CALL",
        "NOT_TAKEN",
    ]
)


def calculates(call: Callable[..., object]) -> bool | None:
    """None: compiled, the function might differ from Python. Else: does it calculate, so that whole numbers overflow?

    >>> calculates(lambda x, y: x > y), calculates(lambda x, y: abs(x - y)), calculates(lambda x: len(str(x)))
    (False, True, None)
    """
    if hasattr(call, "py_func"):  # compiled already: Python calls the same machine code
        return False
    code = getattr(call, "__code__", None)
    if not isinstance(code, CodeType) or code.co_cellvars or code.co_flags & 0x2C:  # *args, **kwargs, generators
        return None
    found = False
    loaded_math = False
    before = None
    for step in dis.get_instructions(call):
        name = step.opname
        if loaded_math and name in ("LOAD_ATTR", "LOAD_METHOD"):
            if str(step.argval) not in _SAFE_MATH:
                return None
            loaded_math = False
        elif name == "LOAD_GLOBAL":
            safe, loaded_math = _global(call, str(step.argval))
            if not safe:
                return None
        elif name == "LOAD_CONST" or name == "RETURN_CONST":
            if not isinstance(step.argval, bool | int | float):
                return None
        elif name == "BINARY_OP":
            divides = step.argrepr == "/" and before is not None and before.argval
            if step.argrepr not in ("+", "-", "*", "+=", "-=", "*=") and not (
                isinstance(divides, int | float) and divides
            ):
                return None
            found = True
        elif name == "UNARY_NEGATIVE":
            found = True
        elif name not in _ALWAYS:
            return None
        before = step
    # The absolute value of the least whole number does not fit, either.
    return found or "abs" in code.co_names


def _global(call: Callable[..., object], name: str) -> tuple[bool, bool]:
    """Is a global one of those that are safe, and is it the module `math`?"""
    known = getattr(call, "__globals__", {})
    if name in known:
        return known[name] is math, known[name] is math
    return name in _SAFE_CALLS, False

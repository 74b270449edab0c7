"""Whole numbers of 64 bits: which results still are some.

Where a whole result does not fit, the value is NULL, as Spark's try_add says; it never wraps around. The functions only
compare and never compute what might overflow themselves, so that they say the same compiled and as plain Python.
"""

from __future__ import annotations

from typing import Any

LEAST, GREATEST = -(2**63), 2**63 - 1
_HALF = 2**31  # the product of two numbers below this always fits


def within_64_bits(value: object) -> Any:
    """The value, or None if it is a whole number beyond 64 bits.

    >>> within_64_bits(2**63), within_64_bits(-(2**63)), within_64_bits(0.5)
    (None, -9223372036854775808, 0.5)
    """
    return None if isinstance(value, int) and not LEAST <= value <= GREATEST else value


def sum_overflows(a: int, b: int) -> bool:
    """Is a + b beyond 64 bits?"""
    return a > GREATEST - b if b >= 0 else a < LEAST - b


def difference_overflows(a: int, b: int) -> bool:
    """Is a - b beyond 64 bits?"""
    return a < LEAST + b if b >= 0 else a > GREATEST + b


def product_overflows(a: int, b: int) -> bool:
    """Is a * b beyond 64 bits?"""
    if -_HALF < a < _HALF and -_HALF < b < _HALF:
        return False
    if a == 0 or b == 0:
        return False
    if a == -1 or b == -1:
        return a == LEAST or b == LEAST
    # Whole division rounds down, so each bound is written as it is met from above or from below.
    if a > 0:
        return b > GREATEST // a if b > 0 else b < -(GREATEST // a) - (1 if GREATEST % a == a - 1 else 0)
    if b > 0:
        return a < -(GREATEST // b) - (1 if GREATEST % b == b - 1 else 0)
    return a < -(GREATEST // -b) if b != LEAST else True


OVERFLOWS = {"+": sum_overflows, "-": difference_overflows, "*": product_overflows}

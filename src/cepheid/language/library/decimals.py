"""Decimals: numbers with a fixed count of digits behind the point, with Spark's rules of precision and rounding.

A type is a pair (precision, scale): how many digits a number has at most, and how many of them stand behind the point.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TypeAlias

Precision: TypeAlias = tuple[int, int]

MOST = 38  # digits
OF_WHOLE: Precision = (20, 0)  # whole numbers of 64 bits
_LEAST_SCALE = 6  # digits that stay behind the point where a result would need more than 38
EXACT = Context(prec=160, rounding=ROUND_HALF_UP, Emin=-999999, Emax=999999)


def precision_of(value: int | Decimal) -> Precision:
    """The type of a number as it is written.

    >>> precision_of(Decimal("1.50")), precision_of(-12), precision_of(Decimal("0.05"))
    ((3, 2), (2, 0), (2, 2))
    """
    if isinstance(value, int):
        return max(len(str(abs(value))), 1), 0
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if exponent >= 0:
        return max(len(digits) + exponent, 1) if any(digits) else 1, 0
    return max(len(digits), -exponent), -exponent


def adjusted(precision: int, scale: int) -> Precision:
    """A type of at most 38 digits: those in front of the point go first, six behind it are kept."""
    if precision <= MOST:
        return precision, scale
    return MOST, max(MOST - (precision - scale), min(scale, _LEAST_SCALE))


def type_of_result(sign: str, left: Precision, right: Precision) -> Precision:
    """The type of `left sign right`.

    >>> type_of_result("*", (10, 2), (2, 1)), type_of_result("/", (2, 1), (1, 0))
    ((13, 3), (7, 6))
    """
    (p1, s1), (p2, s2) = left, right
    match sign:
        case "+" | "-":
            scale = max(s1, s2)
            return adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "*":
            return adjusted(p1 + p2 + 1, s1 + s2)
        case "/":
            scale = max(_LEAST_SCALE, s1 + p2 + 1)
            return adjusted(p1 - s1 + s2 + scale, scale)
    scale = max(s1, s2)
    return adjusted(min(p1 - s1, p2 - s2) + scale, scale)


def widest(types: Sequence[Precision]) -> Precision:
    """The type that holds the values of all.

    >>> widest([(3, 2), (20, 0)])
    (22, 2)
    """
    scale = max(scale for _, scale in types)
    whole = max(precision - scale for precision, scale in types)
    if whole + scale <= MOST:
        return whole + scale, scale
    return MOST, max(MOST - whole, 0)


def rounded_type(of: Precision, digits: int) -> Precision:
    """The type of round(x, digits), and of floor and ceil for 0 digits."""
    precision, scale = of
    if digits < 0:
        return min(max(precision - scale + 1, -digits + 1), MOST), 0
    kept = min(scale, digits)
    return min(precision - scale + 1 + kept, MOST), kept


def fitted(value: Decimal, wanted: Precision, rounding: str = ROUND_HALF_UP) -> Decimal | None:
    """The value with as many digits behind the point, rounded; None if it has too many in front of it.

    >>> fitted(Decimal("1.005"), (5, 2)), fitted(Decimal("123.4"), (3, 1))
    (Decimal('1.01'), None)
    """
    if not value.is_finite() or value.adjusted() > MOST:
        return None
    precision, scale = wanted
    rounded = value.quantize(Decimal(1).scaleb(-scale), rounding, EXACT)
    if not rounded:
        return rounded.copy_abs()  # there is no -0.0
    return None if len(rounded.as_tuple().digits) > precision else rounded


def operate(sign: str, left: Decimal, right: Decimal, wanted: Precision) -> Decimal | None:
    """`left sign right` in a type; None by zero, or where it does not fit.

    >>> operate("/", Decimal(10), Decimal(3), (8, 6)), operate("%", Decimal("-1.5"), Decimal(1), (2, 1))
    (Decimal('3.333333'), Decimal('-0.5'))
    """
    if sign in "/%" and not right:
        return None
    match sign:
        case "+":
            return fitted(EXACT.add(left, right), wanted)
        case "-":
            return fitted(EXACT.subtract(left, right), wanted)
        case "*":
            return fitted(EXACT.multiply(left, right), wanted)
        case "/":
            return fitted(EXACT.divide(left, right), wanted)
    return None if _is_beyond_java(EXACT.divide_int(left, right)) else fitted(EXACT.remainder(left, right), wanted)


def _is_beyond_java(quotient: Decimal) -> bool:
    """Has a whole quotient more digits than Spark takes for a remainder? Zeros at the end do not count."""
    return len(quotient.normalize(EXACT).as_tuple().digits) > MOST + 1


def as_decimal(value: int | float | Decimal) -> Decimal:
    """A number as a decimal; a double as it is written."""
    return value if isinstance(value, Decimal) else Decimal(value) if isinstance(value, int) else Decimal(repr(value))


def moved(value: int | Decimal, places: int) -> Decimal:
    """The value with its point so many places further to the right, no digit lost.

    >>> moved(150, -2), moved(Decimal("1.52"), 2)
    (Decimal('1.50'), Decimal('152'))
    """
    return Decimal(value).scaleb(places, EXACT)

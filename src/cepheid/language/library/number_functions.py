"""Functions of numbers. Outside its domain a function is NaN, which counts as NULL."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.language.library.function import MANY, NUMBER, Function
from cepheid.language.schema import DataType

_FLOAT = DataType.FLOAT
_LARGEST_EXPONENT = 709.782712893384  # math.log of the largest number
_BEYOND_WHOLE = "not (-9223372036854775808.0 <= {0} < 9223372036854775808.0)"  # infinity, or more than 64 bits hold


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


def _log10(x: float) -> float:
    return math.log10(x) if x > 0 else math.nan


def _log2(x: float) -> float:
    return math.log2(x) if x > 0 else math.nan


def _sin(x: float) -> float:
    return math.sin(x) if not math.isinf(x) else math.nan


def _cos(x: float) -> float:
    return math.cos(x) if not math.isinf(x) else math.nan


def _tan(x: float) -> float:
    return math.tan(x) if not math.isinf(x) else math.nan


def _atan2(y: float, x: float) -> float:
    return math.atan2(y, x)


def _radians(x: float) -> float:
    return x * (math.pi / 180.0)


def _degrees(x: float) -> float:
    return x * (180.0 / math.pi)


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


def haversine(latitude: float, longitude: float, other_latitude: float, other_longitude: float) -> float:
    """The distance in metres between two places on the earth, given in degrees, along its surface.

    >>> round(haversine(52.52, 13.405, 48.8566, 2.3522) / 1000)
    877
    """
    down, right = math.pi / 180.0 * (other_latitude - latitude), math.pi / 180.0 * (other_longitude - longitude)
    if math.isinf(down) or math.isinf(right):
        return math.nan
    slant = math.cos(math.pi / 180.0 * latitude) * math.cos(math.pi / 180.0 * other_latitude)
    north, east = math.sin(down / 2.0), math.sin(right / 2.0)
    share = north * north + slant * east * east
    # The earth's mean radius; a constant of the module would be frozen into compiled code as well.
    return 2.0 * 6_371_008.8 * math.asin(math.sqrt(min(1.0, max(0.0, share))))


def _cut(rounding: str, x: float | int, digits: int = 0) -> Any:
    """Rounded to so many decimal digits, as Spark does: the number as it is written, halves away from zero."""
    if isinstance(x, float) and not math.isfinite(x):
        return x
    if not -400 < digits < 400:
        return x if digits > 0 else type(x)(0)
    with localcontext() as context:
        context.prec = 1200
        cut = Decimal(repr(x)).quantize(Decimal(1).scaleb(-digits), rounding)
        return int(cut) if isinstance(x, int) else float(cut)


def _round(x: Any, digits: int = 0) -> Any:
    if isinstance(x, int) and digits >= 0:
        return x
    return _cut(ROUND_HALF_UP, x, digits)


def truncated(x: Any, digits: int = 0) -> Any:
    if isinstance(x, int) and digits >= 0:
        return x
    return _cut(ROUND_DOWN, x, digits)


def _alike(values: tuple[Any, ...]) -> list[Any]:
    """Those that are not NULL; as fractions, if one is."""
    known = [value for value in values if value is not None]
    return [float(value) for value in known] if any(isinstance(value, float) for value in known) else known


def _sign(x: float) -> float:
    return 1.0 if x > 0 else -1.0 if x < 0 else 0.0


def _pmod(x: Any, y: Any) -> Any:
    if y == 0:
        return math.nan if isinstance(x, float) or isinstance(y, float) else None
    rest = math.fmod(x, y) if isinstance(x, float) or isinstance(y, float) else int(x) - int(y) * _quotient(x, y)
    if rest >= 0:
        return rest
    rest = rest + y  # as Spark says it: with a negative divisor the result may stay negative
    return math.fmod(rest, y) if isinstance(rest, float) else rest - y * _quotient(rest, y)


def _quotient(x: int, y: int) -> int:
    whole = abs(x) // abs(y)
    return whole if (x < 0) == (y < 0) else -whole


def _whole_part(compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Rounded whole numbers of a column; NULL beyond 64 bits."""

    def columnwise(column: Any) -> Any:
        if pa.types.is_integer(column.type):
            return column
        fits = pc.and_(pc.greater_equal(column, -(2.0**63)), pc.less(column, 2.0**63))
        return pc.cast(compute(pc.if_else(fits, column, pa.scalar(None, pa.float64()))), pa.int64())

    return columnwise


def _as_float(column: Any) -> Any:
    return pc.cast(column, pa.float64(), safe=False)


def _sign_column(column: Any) -> Any:
    return pc.cast(pc.sign(column), pa.float64())


def _spark_floor(rounded: str) -> Callable[..., Any]:
    def spark(F: Any, x: Any) -> Any:
        fits = (x >= F.lit(-(2.0**63))) & (x < F.lit(2.0**63))
        # As doubles, the largest whole numbers would not fit.
        return F.when((F.typeof(x) == "bigint") | fits, getattr(F, rounded)(x)).cast("bigint")

    return spark


def _mathematical(name: str, kernel: Callable[..., float], says: str, most: int = 1, shown: str = "") -> Function:
    """Not on Spark: another library may differ in the last bit."""
    kinds = DataType.FLOAT
    return Function(name, _guarded(kernel), most, most, NUMBER, kinds, kernel=kernel, shown=shown, says=says)


FUNCTIONS: tuple[Function, ...] = (
    Function("abs", abs, 1, 1, NUMBER, None, inline="abs({0})", says="without its sign"),
    Function(
        "sqrt",
        _sqrt,
        1,
        1,
        NUMBER,
        _FLOAT,
        kernel=_sqrt,
        columnwise=lambda x: pc.sqrt(_as_float(x)),
        spark=lambda F, x: F.when(x >= 0, F.sqrt(x.cast("double"))),
        says="the square root",
    ),
    _mathematical("exp", _exp, "e to the power of x"),
    _mathematical("log", _log, "the natural logarithm"),
    _mathematical("ln", _log, "the natural logarithm"),
    _mathematical("log10", _log10, "the logarithm to base 10"),
    _mathematical("log2", _log2, "the logarithm to base 2"),
    _mathematical("sin", _sin, "the sine of an angle in radians"),
    _mathematical("cos", _cos, "the cosine"),
    _mathematical("tan", _tan, "the tangent"),
    _mathematical("atan2", _atan2, "the angle of the point (x, y)", 2, "atan2(y, x)"),
    _mathematical("radians", _radians, "degrees as radians"),
    _mathematical("degrees", _degrees, "radians as degrees"),
    _mathematical("power", _power, "x to the power of y", 2, "power(x, y)"),
    _mathematical("pow", _power, "the same", 2, "pow(x, y)"),
    Function(
        "floor",
        _guarded(math.floor),
        1,
        1,
        NUMBER,
        DataType.INT,
        kernel=_floor,
        null=_BEYOND_WHOLE,
        columnwise=_whole_part(pc.floor),
        spark=_spark_floor("floor"),
        says="rounded down to a whole number",
    ),
    Function(
        "ceil",
        _guarded(math.ceil),
        1,
        1,
        NUMBER,
        DataType.INT,
        kernel=_ceil,
        null=_BEYOND_WHOLE,
        columnwise=_whole_part(pc.ceil),
        spark=_spark_floor("ceil"),
        says="rounded up",
    ),
    Function(
        "round",
        _round,
        1,
        2,
        NUMBER,
        None,
        constants=(1,),
        wrong=lambda given: None if not given or type(given[0]) is int else "the digits are a whole number",
        shown="round(x, digits)",
        says="rounded to so many decimal digits (0 if left out), halves away from zero",
    ),
    Function(
        "sign",
        _sign,
        1,
        1,
        NUMBER,
        _FLOAT,
        inline="(1.0 if {0} > 0 else -1.0 if {0} < 0 else 0.0)",
        columnwise=_sign_column,
        spark=lambda F, x: F.signum(x.cast("double")),
        says="1.0, 0.0 or -1.0",
    ),
    Function(
        "mod",
        lambda x, y: math.nan,  # binding makes it x % y
        2,
        2,
        NUMBER,
        None,
        shown="mod(x, y)",
        says="the remainder, with the sign of x: the same as `x % y`",
    ),
    Function(
        "pmod", _guarded(_pmod), 2, 2, NUMBER, None, shown="pmod(x, y)", says="the remainder, positive where y is"
    ),
    Function(
        "least",
        lambda *values: min(_alike(values), default=None),
        2,
        MANY,
        NUMBER,
        None,
        strict=False,
        columnwise=lambda *columns: pc.min_element_wise(*columns, skip_nulls=True),
        shown="least(x, y, ...)",
        says="the smallest that is not NULL",
    ),
    Function(
        "greatest",
        lambda *values: max(_alike(values), default=None),
        2,
        MANY,
        NUMBER,
        None,
        strict=False,
        columnwise=lambda *columns: pc.max_element_wise(*columns, skip_nulls=True),
        shown="greatest(x, y, ...)",
        says="the largest that is not NULL",
    ),
    Function(
        "haversine",
        _guarded(haversine),
        4,
        4,
        NUMBER,
        _FLOAT,
        kernel=haversine,
        shown="haversine(lat1, lon1, lat2, lon2)",
        says="the distance in metres between two places given in degrees",
    ),
    Function(
        "corr",
        correlation,
        2,
        2,
        frozenset({DataType.LIST}),
        _FLOAT,
        kernel=correlation,
        shown="corr(x, y)",
        says="Pearson's correlation of two columns of lists",
    ),
)

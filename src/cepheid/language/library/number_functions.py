"""Functions of numbers. Outside its domain a function is NaN, which counts as NULL."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Decimal, localcontext
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.language.library.decimal_columns import row_by_row
from cepheid.language.library.decimals import Precision, fitted, precision_of, rounded_type, type_of_result, widest
from cepheid.language.library.function import NUMBER, ORDERED, Function, named_twice
from cepheid.language.library.operators import absolute, comparable, positive_remainder
from cepheid.language.schema import DataType

_FLOAT = DataType.FLOAT
_BEYOND_WHOLE = "not (-9223372036854775808.0 <= {0} < 9223372036854775808.0)"  # infinity, or more than 64 bits hold


def correlation(x: Any, y: Any) -> float:
    """Pearson's correlation of two lists, over the places where both have a number; NaN where either is constant.

    >>> round(correlation([1.0, 2.0, 3.0], [2.0, 4.0, 6.5]), 3)
    0.998
    """
    n = min(len(x), len(y))
    mean_x = mean_y = 0.0
    known = 0
    for i in range(n):
        if x[i] == x[i] and y[i] == y[i]:
            mean_x += x[i]
            mean_y += y[i]
            known += 1
    if known > 0:
        mean_x /= known
        mean_y /= known
    xy = xx = yy = 0.0
    for i in range(n):
        if x[i] == x[i] and y[i] == y[i]:
            xy += (x[i] - mean_x) * (y[i] - mean_y)
            xx += (x[i] - mean_x) ** 2
            yy += (y[i] - mean_y) ** 2
    scale = math.sqrt(xx * yy)
    return xy / scale if scale > 0.0 else math.nan


def _correlated(x: Sequence[Any], y: Sequence[Any]) -> float:
    lists = ([math.nan if each is None else float(each) for each in values] for values in (x, y))
    return correlation(*lists)


def _guarded(call: Callable[..., float]) -> Callable[..., float]:
    """A mathematical function that answers as compiled ones do: NaN outside its domain, infinity beyond all doubles."""

    def safe(*arguments: float) -> float:
        try:
            return call(*map(float, arguments))
        except OverflowError:
            return math.inf
        except (ValueError, ZeroDivisionError):
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


def _log_of(first: float, second: float) -> float:
    if not (first > 0 and second > 0):
        return math.nan
    base, number = math.log(first), math.log(second)
    if base == 0.0:
        return math.nan if number == 0.0 else math.copysign(math.inf, number)
    return number / base


def _logarithm(*given: float) -> float:
    return _log(given[0]) if len(given) == 1 else _log_of(given[0], given[1])


def _sin(x: float) -> float:
    return math.sin(x) if not math.isinf(x) else math.nan


def _cos(x: float) -> float:
    return math.cos(x) if not math.isinf(x) else math.nan


def _tan(x: float) -> float:
    return math.tan(x) if not math.isinf(x) else math.nan


def _atan2(y: float, x: float) -> float:
    return math.atan2(y + 0.0, x + 0.0)  # -0.0 counts as 0.0


def _radians(x: float) -> float:
    return x * (math.pi / 180.0)


def _degrees(x: float) -> float:
    return x * (180.0 / math.pi)


def _power(x: float, y: float) -> float:
    if abs(x) == 1.0 and math.isinf(y):
        return math.nan
    whole = math.isinf(y) or y == math.floor(y)
    if x < 0 and not whole and not math.isinf(x):
        return math.nan
    odd = whole and abs(y) < 9007199254740992.0 and math.fmod(y, 2.0) != 0.0
    if x == 0 and y < 0:
        return math.copysign(math.inf, x) if odd else math.inf
    size = abs(x)
    result = math.pow(size, y)
    return -result if odd and x < 0 else result


def _raised(x: float, y: float) -> float:
    try:
        return _power(float(x), float(y))
    except OverflowError:
        return -math.inf if x < 0 and math.fmod(y, 2.0) != 0.0 else math.inf


def _exp(x: float) -> float:
    return math.exp(x)


def _exp_of(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


# Kernels that overflow to infinity where they are compiled, and raise an error in Python: their forms there.
IN_PYTHON: dict[Callable[..., float], Callable[..., float]] = {_power: _raised, _exp: _exp_of}


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


# --- rounding ---------------------------------------------------------------------------------------------------------


def _cut(rounding: str, x: float | int, digits: int = 0) -> Any:
    """Rounded to so many decimal digits, as Spark does: the number as it is written, halves away from zero."""
    if isinstance(x, float) and not math.isfinite(x):
        return x
    if not -400 < digits < 400:
        return x if digits > 0 else type(x)(0)
    with localcontext() as context:
        context.prec = 1200
        cut = Decimal(repr(x)).quantize(Decimal(1).scaleb(-digits), rounding)
        return int(cut) if isinstance(x, int) else float(cut) or 0.0  # -0.4 becomes 0.0


def _round(x: Any, digits: int = 0) -> Any:
    if isinstance(x, Decimal):
        return _rounded_decimal(x, digits)
    if isinstance(x, int) and digits >= 0:
        return x
    return _cut(ROUND_HALF_UP, x, digits)


def _rounded_decimal(x: Decimal, digits: int) -> Decimal | None:
    precision, scale = rounded_type(precision_of(x), digits)
    if digits >= 0:
        return fitted(x, (precision, scale))
    if digits < -38:
        return Decimal(0)
    return fitted(_units(x, digits), (38, 0))


def _units(x: Decimal, digits: int) -> Decimal:
    with localcontext() as context:
        context.prec = 120
        return x.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP).quantize(Decimal(1))


def truncated(x: Any, digits: int = 0) -> Any:
    if isinstance(x, int) and digits >= 0:
        return x
    return _cut(ROUND_DOWN, x, digits)


def _to_whole(round_number: Callable[[Any], int], rounding: str) -> Callable[[object], object]:
    """floor or ceil: a decimal stays one, a double becomes a whole number, or NULL beyond 64 bits."""

    def call(x: Any) -> Any:
        if isinstance(x, Decimal):
            return fitted(x, (38, 0), rounding)
        return x if isinstance(x, int) else round_number(x) if math.isfinite(x) else None

    return call


def _round_type(kinds: Sequence[DataType], constants: Sequence[object]) -> DataType | str:
    return kinds[0]


def _whole_type(kinds: Sequence[DataType], constants: Sequence[object]) -> DataType | str:
    return DataType.DECIMAL if kinds[0] is DataType.DECIMAL else DataType.INT


def round_precision(types: Sequence[Precision], constants: Sequence[int]) -> Precision:
    """The type of round(x, digits) of a decimal."""
    return rounded_type(types[0], constants[0] if constants else 0)


# --- several numbers --------------------------------------------------------------------------------------------------


def _extreme(largest: bool) -> Callable[..., Any]:
    """The smallest or largest value that is not NULL; the first one of equal ones."""

    def better(one: object, other: object) -> Any:
        first, second = comparable(one, other)
        kind = float if isinstance(first, float) else None
        one, other = (one, other) if kind is None else (first, second)
        return other if (second > first if largest else second < first) else one

    def call(*values: Any) -> Any:
        known = [value for value in values if value is not None]
        if any(isinstance(value, float) for value in known):
            known = [float(value) for value in known]
        return reduce(better, known) if known else None

    return call


def _sign(x: Any) -> float:
    return 1.0 if x > 0 else -1.0 if x < 0 else float(x)


def _whole_part(compute: Callable[[Any], Any]) -> Callable[[object], object]:
    """Rounded whole numbers of a column; NULL beyond 64 bits. Decimals stay such."""

    def columnwise(column: Any) -> Any:
        if pa.types.is_integer(column.type):
            return column
        if pa.types.is_decimal(column.type):
            wanted = rounded_type((column.type.precision, column.type.scale), 0)
            rounding = ROUND_FLOOR if compute is pc.floor else ROUND_CEILING
            return row_by_row(lambda value: fitted(value, wanted, rounding), (column,), pa.decimal128(*wanted))
        fits = pc.and_(pc.greater_equal(column, -(2.0**63)), pc.less(column, 2.0**63))
        return pc.cast(compute(pc.if_else(fits, column, pa.scalar(None, pa.float64()))), pa.int64())

    return columnwise


def _as_float(column: object) -> Any:
    return pc.cast(column, pa.float64(), safe=False)


def _sign_column(column: object) -> Any:
    signs = pc.cast(pc.sign(column), pa.float64())
    return pc.if_else(pc.equal(column, 0), _as_float(column), signs)


def _spark_floor(rounded: str) -> Callable[..., object]:
    def spark(F: Any, x: object) -> Any:
        fits = (x >= F.lit(-(2.0**63))) & (x < F.lit(2.0**63))
        # As doubles, the largest whole numbers would not fit.
        return F.when((F.typeof(x) == "bigint") | fits, getattr(F, rounded)(x)).cast("bigint")

    return spark


def _mathematical(
    shown: str, kernel: Callable[..., float], says: str, call: Callable[..., float] | None = None
) -> Function:
    """Not on Spark: another library may differ in the last bit."""
    return Function(shown, call or _guarded(kernel), NUMBER, _FLOAT, kernel=kernel, says=says)


FUNCTIONS: tuple[Function, ...] = (
    Function("abs(x)", absolute, NUMBER, None, inline="abs({0})", says="the absolute value"),
    Function(
        "sqrt(x)",
        _guarded(_sqrt),
        NUMBER,
        _FLOAT,
        kernel=_sqrt,
        columnwise=lambda x: pc.sqrt(_as_float(x)),
        spark=lambda F, x: F.when(x >= 0, F.sqrt(x.cast("double"))),
        says="the square root",
    ),
    _mathematical("exp(x)", _exp, "e to the power of x"),
    Function(
        "log(x), log(base, x)",
        _guarded(_logarithm),
        NUMBER,
        _FLOAT,
        least=1,
        most=2,
        kernel=_log,
        kernels={2: _log_of},
        says="the natural logarithm, or the logarithm to a base",
    ),
    _mathematical("ln(x)", _log, "the natural logarithm"),
    _mathematical("log10(x)", _log10, "the logarithm to base 10"),
    _mathematical("log2(x)", _log2, "the logarithm to base 2"),
    _mathematical("sin(x)", _sin, "the sine of an angle in radians"),
    _mathematical("cos(x)", _cos, "the cosine"),
    _mathematical("tan(x)", _tan, "the tangent"),
    _mathematical("atan2(y, x)", _atan2, "the angle of the point (x, y)"),
    _mathematical("radians(x)", _radians, "degrees as radians"),
    _mathematical("degrees(x)", _degrees, "radians as degrees"),
    _mathematical("power(x, y)", _power, "x to the power of y", _raised),
    _mathematical("pow(x, y)", _power, "the same", _raised),
    Function(
        "floor(x)",
        _to_whole(math.floor, ROUND_FLOOR),
        NUMBER,
        DataType.INT,
        kernel=_floor,
        null=_BEYOND_WHOLE,
        columnwise=_whole_part(pc.floor),
        spark=_spark_floor("floor"),
        typed=_whole_type,
        precision=round_precision,
        says="x rounded down to a whole number",
    ),
    *named_twice(
        Function(
            "ceil(x)",
            _to_whole(math.ceil, ROUND_CEILING),
            NUMBER,
            DataType.INT,
            kernel=_ceil,
            null=_BEYOND_WHOLE,
            columnwise=_whole_part(pc.ceil),
            spark=_spark_floor("ceil"),
            typed=_whole_type,
            precision=round_precision,
            says="rounded up",
        ),
        "ceiling",
    ),
    Function(
        "round(x, digits)",
        _round,
        NUMBER,
        None,
        least=1,
        constants=(1,),
        wrong=lambda given: None if not given or type(given[0]) is int else "the digits are a whole number",
        typed=_round_type,
        precision=round_precision,
        says="x rounded to decimal digits (default 0), halves away from zero",
    ),
    Function(
        "sign(x)",
        _sign,
        NUMBER,
        _FLOAT,
        inline="(1.0 if {0} > 0 else -1.0 if {0} < 0 else {0} * 1.0)",
        columnwise=_sign_column,
        spark=lambda F, x: F.signum(x.cast("double")),
        says="1.0, 0.0 or -1.0",
    ),
    Function(
        "mod(x, y)",
        lambda x, y: math.nan,  # binding makes it x % y
        NUMBER,
        None,
        says="the remainder, with the sign of x: the same as `x % y`",
    ),
    Function(
        "pmod(x, y)",
        positive_remainder,
        NUMBER,
        None,
        precision=lambda types, constants: type_of_result("%", *types),
        says="the remainder, positive if y is positive",
    ),
    Function(
        "least(x, y, ...)",
        _extreme(False),
        ORDERED,
        None,
        strict=False,
        columnwise=lambda *columns: pc.min_element_wise(*columns, skip_nulls=True),
        precision=lambda types, constants: widest(types),
        says="the smallest value that is not NULL",
    ),
    Function(
        "greatest(x, y, ...)",
        _extreme(True),
        ORDERED,
        None,
        strict=False,
        columnwise=lambda *columns: pc.max_element_wise(*columns, skip_nulls=True),
        precision=lambda types, constants: widest(types),
        says="the largest value that is not NULL",
    ),
    Function(
        "isnan(x)",
        lambda x: x is not None and x != x,
        NUMBER,
        DataType.BOOL,
        strict=False,
        says="always false, because NaN is NULL",
    ),
    Function(
        "haversine(lat1, lon1, lat2, lon2)",
        _guarded(haversine),
        NUMBER,
        _FLOAT,
        kernel=haversine,
        says="the distance in metres between two places given in degrees",
    ),
    Function(
        "corr(x, y)",
        _correlated,
        frozenset({DataType.LIST}),
        _FLOAT,
        kernel=correlation,
        says="Pearson's correlation of two columns of lists",
    ),
)

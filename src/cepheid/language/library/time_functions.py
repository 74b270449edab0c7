"""Functions of timestamps, which are whole microseconds since 1970 here. Parts of dates are those in UTC, always.

Spark's own functions take the session's time zone; a result must not depend on it, so what goes to Spark is written
with arithmetic on microseconds and functions of dates, which know no zone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.language.library.dates import DAY, THURSDAY, civil, days_of, months_between
from cepheid.language.library.function import STRING, TIMES, Function, named_twice
from cepheid.language.schema import DataType

_FIXED = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": DAY,
    "week": 7 * DAY,
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_UNITS = (*_FIXED, *_MONTHS)


def _year(time: Any) -> Any:
    return civil(time // DAY)[0]


def _month(time: Any) -> Any:
    return civil(time // DAY)[1]


def _day(time: Any) -> Any:
    return civil(time // DAY)[2]


def _quarter(time: object) -> Any:
    return (_month(time) + 2) // 3


def _day_of_year(time: Any) -> Any:
    days = time // DAY
    return days - days_of(civil(days)[0], 1, 1) + 1


def _week_of_year(time: Any) -> Any:
    days = time // DAY
    thursday = days - (days + THURSDAY) % 7 + 3  # the week belongs to the year that its Thursday is in (ISO 8601)
    return (thursday - days_of(civil(thursday)[0], 1, 1)) // 7 + 1


def date_trunc(unit: str, time: Any) -> Any:
    """The time cut down to the beginning of its unit; weeks begin on Monday.

    >>> date_trunc("hour", 7_200_000_001), date_trunc("year", 40 * DAY)
    (7200000000, 0)
    """
    known = _unit(unit)
    if known == "week":
        days = time // DAY
        return (days - (days + THURSDAY) % 7) * DAY
    if known in _FIXED:
        return time - time % _FIXED[known]
    year, month, _ = civil(time // DAY)
    months = _MONTHS[known]
    return days_of(year, (month - 1) // months * months + 1, 1) * DAY


def fixed_size(unit: str) -> int | None:
    """How many microseconds a unit has; None: it has not always as many, as a month.

    >>> fixed_size("minute"), fixed_size("month")
    (60000000, None)
    """
    return _FIXED.get(_unit(unit))


def keeps_offset(unit: str) -> bool:
    """Is a time cut down to this unit, where clocks show it twice, the one that they show as they were put before?

    >>> keeps_offset("hour"), keeps_offset("week")
    (True, False)
    """
    return fixed_size(unit) is not None and _unit(unit) != "week"


def timestampdiff(unit: str, start: int, end: int) -> int:
    """How many whole units lie between two times; negative, if the first is the later one.

    >>> timestampdiff("minute", 0, 119_000_000), timestampdiff("month", 0, -31 * DAY)
    (1, -1)
    >>> timestampdiff("month", 30 * DAY + 1, 89 * DAY)  # from the last of January to the last of March, an instant less
    1
    """
    known = _unit(unit)
    if known in _FIXED:
        size = _FIXED[known]
        return (end - start) // size if end >= start else -((start - end) // size)
    months, size = months_between(start, end), _MONTHS[known]
    return months // size if months >= 0 else -(-months // size)


def _difference_source(arguments: Sequence[str], constants: Sequence[object]) -> str | None:
    known = _unit(str(constants[0]))
    if known not in _FIXED:
        return None
    size, (start, end) = _FIXED[known], arguments
    return f"(({end} - {start}) // {size} if {end} >= {start} else -(({start} - {end}) // {size}))"


def _unit(word: str) -> str:
    """The unit that a word names, or an empty text.

    >>> _unit("MINUTES"), _unit("mon"), _unit("dog")
    ('minute', 'month', '')
    """
    short = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"}
    plain = word.lower()
    plain = short.get(plain, plain)
    return plain if plain in _UNITS else plain.removesuffix("s") if plain.removesuffix("s") in _UNITS else ""


def _wrong_unit(constants: Sequence[object]) -> str | None:
    if isinstance(constants[0], str) and _unit(constants[0]):
        return None
    return f"no unit of time {constants[0]!r}: it is one of {', '.join(_UNITS)}"


# --- over columns and on Spark ----------------------------------------------------------------------------------------


def _vectorised(compute: Callable[[Any], Any]) -> Callable[[object], object]:
    def columnwise(column: Any) -> Any:
        if isinstance(column, pa.Scalar):
            return pa.scalar(int(compute(column.as_py())) if column.is_valid else None, pa.int64())
        values = np.asarray(pc.fill_null(column, 0).to_numpy())
        mask = np.asarray(column.is_null().to_numpy(zero_copy_only=False), bool) if column.null_count else None
        return pa.array(compute(values), pa.int64(), mask=mask)

    return columnwise


def _divided(F: Any, x: object, size: int) -> Any:
    """Whole division that rounds down, without a detour over fractions."""
    rest = F.pmod(x, F.lit(size).cast("bigint"))
    return F.call_function("div", x - rest, F.lit(size).cast("bigint"))


def _date(F: Any, x: object) -> Any:
    return F.date_from_unix_date(_divided(F, x, DAY).cast("int"))


def _clock(size: int, many: int) -> dict[str, object]:
    """A part of the time of day."""
    compute: Callable[[Any], object] = lambda time: time // size % many  # noqa: E731
    return {
        "call": compute,
        "columnwise": _vectorised(compute),
        "inline": f"({{0}} // {size} % {many})",
        "spark": lambda F, x: F.pmod(_divided(F, x, size), F.lit(many).cast("bigint")),
    }


def _weekly(first: int, counted_from: int) -> dict[str, object]:
    """A day of the week: which day begins it, and the number of that day."""
    compute: Callable[[Any], object] = lambda time: (time // DAY + first) % 7 + counted_from  # noqa: E731
    return {
        "call": compute,
        "columnwise": _vectorised(compute),
        "inline": f"(({{0}} // {DAY} + {first}) % 7 + {counted_from})",
        "spark": lambda F, x: F.pmod(_divided(F, x, DAY) + first, F.lit(7).cast("bigint")) + counted_from,
    }


def _of_date(compute: Callable[[Any], object], spark: str) -> dict[str, object]:
    return {
        "call": compute,
        "columnwise": _vectorised(compute),
        "spark": lambda F, x: getattr(F, spark)(_date(F, x)).cast("bigint"),
    }


def _spark_trunc(F: Any, unit: str, x: object) -> Any:
    known = _unit(unit)
    if known in _FIXED and known != "week":
        return x - F.pmod(x, F.lit(_FIXED[known]).cast("bigint"))
    return F.unix_date(F.trunc(_date(F, x), known)).cast("bigint") * F.lit(DAY).cast("bigint")


def _difference_columns(unit: str, start: Any, end: Any) -> Any:
    length = next((len(column) for column in (start, end) if not isinstance(column, pa.Scalar)), None)
    pairs = [
        [column.as_py()] * (1 if length is None else length) if isinstance(column, pa.Scalar) else column.to_pylist()
        for column in (start, end)
    ]
    found = [None if None in row else timestampdiff(unit, *row) for row in zip(*pairs, strict=True)]
    kept = [None if each is not None and not -(2**63) <= each < 2**63 else each for each in found]
    result = pa.array(kept, pa.int64())
    return result if length is not None else result[0]


def _days_between(end: Any, start: Any) -> Any:
    return end // DAY - start // DAY


def _part(name: str, forms: dict[str, Any], says: str, *others: str) -> tuple[Function, ...]:
    return tuple(
        Function(f"{each}(ts)", accepts=TIMES, result=DataType.INT, narrow=True, says=says, **forms)
        for each in (name, *others)
    )


def _since(name: str, size: int, says: str) -> Function:
    return Function(
        f"{name}(ts)",
        lambda time: time // size,
        TIMES,
        DataType.INT,
        inline=f"({{0}} // {size})",
        columnwise=_vectorised(lambda time: time // size),
        spark=lambda F, x: _divided(F, x, size),
        instant=True,
        says=says,
    )


FUNCTIONS: tuple[Function, ...] = (
    *_part("year", _of_date(_year, "year"), "the year"),
    *_part("quarter", _of_date(_quarter, "quarter"), "1 to 4"),
    *_part("month", _of_date(_month, "month"), "1 to 12"),
    *_part("day", _of_date(_day, "dayofmonth"), "the day of the month", "dayofmonth"),
    *_part("dayofyear", _of_date(_day_of_year, "dayofyear"), "1 to 366"),
    *_part("weekofyear", _of_date(_week_of_year, "weekofyear"), "1 to 53, as in ISO 8601"),
    *_part("dayofweek", _weekly(4, 1), "1 for Sunday to 7 for Saturday"),
    *_part("weekday", _weekly(THURSDAY, 0), "0 for Monday to 6 for Sunday"),
    *_part("hour", _clock(3_600_000_000, 24), "0 to 23"),
    *_part("minute", _clock(60_000_000, 60), "0 to 59"),
    *_part("second", _clock(1_000_000, 60), "0 to 59"),
    _since("unix_seconds", 1_000_000, "whole seconds since 1970"),
    _since("unix_millis", 1_000, "whole milliseconds since 1970"),
    _since("unix_micros", 1, "microseconds since 1970"),
    Function(
        "unix_timestamp(ts)",
        lambda time: time // 1_000_000 if time >= 0 else -(-time // 1_000_000),
        TIMES,
        DataType.INT,
        inline="({0} // 1_000_000 if {0} >= 0 else -(-{0} // 1_000_000))",
        instant=True,
        says="seconds since 1970, truncated towards zero",
    ),
    Function(
        "to_unixtime(ts)",
        lambda time: time / 1_000_000,
        TIMES,
        DataType.FLOAT,
        inline="({0} / 1_000_000)",
        instant=True,
        says="seconds since 1970, with a fraction",
    ),
    Function(
        "date_trunc('hour', ts)",
        date_trunc,
        (STRING, TIMES),
        DataType.TIME,
        constants=(0,),
        wrong=_wrong_unit,
        columnwise=lambda unit, column: _vectorised(lambda time: date_trunc(unit, time))(column),
        spark=_spark_trunc,
        says="the time truncated to a unit: microsecond to day, week (from Monday), month, quarter, year",
    ),
    Function(
        "timestampdiff(minute, start, end)",
        timestampdiff,
        (STRING, TIMES, TIMES),
        DataType.INT,
        constants=(0,),
        wrong=_wrong_unit,
        source=_difference_source,
        null="difference_overflows({1}, {0})",
        columnwise=_difference_columns,
        says="the number of whole units between two times",
    ),
    *named_twice(
        Function(
            "datediff(end, start)",
            _days_between,
            TIMES,
            DataType.INT,
            inline=f"({{0}} // {DAY} - {{1}} // {DAY})",
            spark=lambda F, end, start: _divided(F, end, DAY) - _divided(F, start, DAY),
            narrow=True,
            says="the number of days from start to end",
        ),
        "date_diff",
    ),
)

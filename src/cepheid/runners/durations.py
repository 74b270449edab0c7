"""Lengths of time that options give: as numbers, texts or timedeltas, in steps of the time column."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Any

from cepheid.errors import DataError
from cepheid.language.schema import DataType, Schema
from cepheid.language.units import convert, unit_named

_WRITTEN = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([^\W\d]*)\s*\Z")


def steps(given: Any, schema: Schema, option: str) -> int:
    """A length in steps of the time column, rounded up.

    >>> schema = Schema((("ts", DataType.TIME),), "ts", time_unit="microseconds")
    >>> steps("1.5 seconds", schema, "delay"), steps(timedelta(milliseconds=2), schema, "delay")
    (1500000, 2000)
    """
    if isinstance(given, int | float) and not isinstance(given, bool):
        number, unit = given, None
    else:
        number, unit = _parsed(given, option)
    if unit is None:
        if number and schema.type_of(schema.time) is DataType.TIME:
            hint = f"write {option}='{number} seconds', for example"
            raise DataError(f"column '{schema.time}' is a timestamp, so {option}={given!r} needs a unit", hint=hint)
    elif schema.time_unit is None:
        hint = f"pass time_unit='ms' (or what '{schema.time}' counts), or a plain number"
        message = f"{option}={given!r} has a unit, but it is not known what one step of column '{schema.time}' is"
        raise DataError(message, hint=hint)
    else:
        number = convert(number, unit, schema.time_unit)
    if not number >= 0 or math.isinf(number):
        raise DataError(f"{option}={given!r} must not be negative or endless")
    return math.ceil(number)


def milliseconds(given: Any, option: str) -> int:
    """A length of the machine's time; a plain number counts seconds.

    >>> milliseconds("2 minutes", "idle"), milliseconds(3, "idle")
    (120000, 3000)
    """
    if isinstance(given, int | float) and not isinstance(given, bool):
        number, unit = given, "seconds"
    else:
        number, found = _parsed(given, option)
        unit = found or "seconds"
    if not number > 0 or math.isinf(number):
        raise DataError(f"{option}={given!r} must be longer than nothing")
    return max(1, round(convert(number, unit, "milliseconds")))


def _parsed(given: Any, option: str) -> tuple[int | float, str | None]:
    if isinstance(given, timedelta):
        return given // timedelta(microseconds=1), "microseconds"
    found = _WRITTEN.match(given) if isinstance(given, str) else None
    if found is None:
        raise DataError(f"{option}={given!r} is no length of time", hint=f"for example {option}='10 seconds'")
    number, word = found.groups()
    unit = unit_named(word) if word else None
    if word and unit is None:
        raise DataError(f"no time unit '{word}' in {option}={given!r}", hint="seconds, minutes, hours, days, ...")
    return int(number) if number.isdigit() else float(number), unit

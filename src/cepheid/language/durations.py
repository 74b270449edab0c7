"""Lengths of time as users write them: 5, "7.5 s" or a timedelta, with a unit or in steps of the time column."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from fractions import Fraction
from numbers import Real

from cepheid.errors import DataError
from cepheid.language.schema import DataType, Schema
from cepheid.language.units import UNITS, unit_named

_LENGTH = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([^\W\d]*)\s*\Z")


def split_length(text: str) -> tuple[Fraction, str | None] | None:
    """A length that was written as text, as a number and the word behind it; None if it is none.

    >>> split_length("7.5 s"), split_length("12"), split_length("soon")
    ((Fraction(15, 2), 's'), (Fraction(12, 1), None), None)
    """
    found = _LENGTH.match(text)
    return None if found is None else (Fraction(found.group(1)), found.group(2) or None)


def parse_length(given: object, option: str) -> tuple[Fraction, str | None]:
    """A length as a number and its unit, if it has one; `option` is the name under which it was passed.

    >>> parse_length("7.5 s", "delay"), parse_length(5, "delay")
    ((Fraction(15, 2), 'seconds'), (Fraction(5, 1), None))
    """
    unit = None
    if isinstance(given, timedelta):
        length, unit = Fraction(given // timedelta(microseconds=1)), "microseconds"
    elif isinstance(given, str) and (written := split_length(given)) is not None:
        length, word = written
        unit = None if word is None else unit_named(word)
        if word is not None and unit is None:
            raise DataError(f"no time unit '{word}' in {option}={given!r}", hint="seconds, minutes, hours, days, ...")
    elif isinstance(given, Real) and not isinstance(given, bool) and math.isfinite(given):
        length = Fraction(str(given))  # str: 0.1 is a tenth, not the double next to it
    else:
        raise DataError(f"{option}={given!r} is no length of time", hint=f"for example {option}='7.5 s'")
    if length < 0:
        raise DataError(f"{option}={given!r} is less than nothing")
    return length, unit


def length_in_steps(given: object, steps_are: str | None, option: str) -> Fraction:
    """A length in steps of the time column; `steps_are` names what the column counts, if that is known.

    >>> length_in_steps("1.5 seconds", "microseconds", "delay"), length_in_steps(3, None, "delay")
    (Fraction(1500000, 1), Fraction(3, 1))
    """
    length, unit = parse_length(given, option)
    if unit is None:
        if steps_are == "microseconds" and length:
            hint = f"write {option}='{given} s', for example"
            raise DataError(f"{option}={given!r} needs a unit, since the time is a timestamp", hint=hint)
        return length
    if steps_are is None:
        raise DataError(
            f"{option}={given!r} has a unit, but it is not known what one step of the time column is",
            hint="pass time_unit='ms' (or what it counts), or a plain number",
        )
    return length * UNITS[unit] / UNITS[steps_are]


def whole_steps(given: object, schema: Schema, option: str) -> int:
    """A length in steps of the time column, rounded up.

    >>> schema = Schema((("ts", DataType.TIME),), "ts", time_unit="microseconds")
    >>> whole_steps("1.5 seconds", schema, "delay"), whole_steps(timedelta(milliseconds=2), schema, "delay")
    (1500000, 2000)
    """
    stamped = schema.type_of(schema.time) is DataType.TIME
    if not stamped and schema.time_unit is not None and parse_length(given, option)[1] is None:
        return math.ceil(parse_length(given, option)[0])  # whole numbers may count microseconds without naming them
    return math.ceil(length_in_steps(given, schema.time_unit, option))


def milliseconds(given: object, option: str) -> int:
    """A length of the machine's time; a plain number counts seconds.

    >>> milliseconds("2 minutes", "idle"), milliseconds(3, "idle")
    (120000, 3000)
    """
    length, unit = parse_length(given, option)
    if length == 0:
        raise DataError(f"{option}={given!r} must be longer than nothing")
    return max(1, round(length * UNITS[unit or "seconds"] / UNITS["milliseconds"]))

"""Lengths of time as users write them: 5, "7.5 s" or a timedelta, with a unit or in steps of the time column."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from fractions import Fraction
from numbers import Real

import numpy as np

from cepheid.errors import DataError
from cepheid.language.schema import DataType, Schema
from cepheid.language.units import UNITS, unit_named

_LENGTH = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([^\W\d]*)\s*\Z")


class LengthError(DataError):
    """Something that is no length of time."""


class UnitError(LengthError):
    """A word that is no unit of time."""


def parse_length(given: object, option: str = "") -> tuple[Fraction, str | None]:
    """A length as a number and its unit, if it has one; `option` is the name under which it was passed.

    >>> parse_length("7.5 s"), parse_length(5, "delay"), parse_length(timedelta(milliseconds=2))
    ((Fraction(15, 2), 'seconds'), (Fraction(5, 1), None), (Fraction(2000, 1), 'microseconds'))
    """
    named = f"{option}=" if option else ""
    if isinstance(given, np.generic):
        given = given.item()
    unit = None
    written = _LENGTH.match(given) if isinstance(given, str) else None
    if isinstance(given, timedelta):
        length, unit = Fraction(given // timedelta(microseconds=1)), "microseconds"
    elif written is not None:
        length, word = Fraction(written.group(1)), written.group(2)
        unit = unit_named(word) if word else None
        if word and unit is None:
            raise UnitError(f"{named}{given!r}: no time unit '{word}'", hint="seconds, minutes, hours, days, ...")
    elif isinstance(given, int | Fraction) and not isinstance(given, bool):
        length = Fraction(given)
    elif isinstance(given, Real) and not isinstance(given, bool) and math.isfinite(given):
        length = Fraction(str(given))  # str: 0.1 is a tenth, not the double next to it
    else:
        raise LengthError(f"{named}{given!r} is not a length of time", hint=f"for example {named}'7.5 s'")
    if length < 0:
        raise LengthError(f"{named}{given!r} is negative", hint="give 0 or more")
    return length, unit


def in_unit(length: Fraction, unit: str, into: str) -> Fraction:
    """The same length in another unit.

    >>> in_unit(Fraction(3, 2), "hours", "minutes")
    Fraction(90, 1)
    """
    return length * UNITS[unit] / UNITS[into]


def length_in_steps(given: object, steps_are: str | None, option: str) -> Fraction:
    """A length in steps of the time column; `steps_are` names what the column counts, if that is known.

    >>> length_in_steps("1.5 seconds", "microseconds", "delay"), length_in_steps(3, None, "delay")
    (Fraction(1500000, 1), Fraction(3, 1))
    """
    length, unit = parse_length(given, option)
    if unit is None:
        if steps_are == "microseconds" and length:
            hint = f"write {option}='{given} s', for example"
            raise DataError(f"{option}={given!r} needs a unit, because the time is a timestamp", hint=hint)
        return length
    if steps_are is None:
        raise DataError(
            f"{option}={given!r} has a unit, but it is not known what one step of the time column is",
            hint="pass time_unit='ms' (or what it counts), or a plain number",
        )
    return in_unit(length, unit, steps_are)


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
        raise DataError(f"{option}={given!r} must be longer than zero")
    return max(1, round(in_unit(length, unit or "seconds", "milliseconds")))

"""Lengths of time, however they are given: '7.5 s', 5, a timedelta. WITHIN, delays, uncertainty: all are read here."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from fractions import Fraction
from numbers import Real
from typing import Any

from cepheid.errors import DataError
from cepheid.language.units import UNITS, unit_named

_LENGTH = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*([^\W\d]*)\s*\Z")


class LengthError(DataError):
    """Something that is no length of time."""


class UnitError(LengthError):
    """A word that is no unit of time."""


def parse_length(given: Any) -> tuple[Fraction, str | None]:
    """A length and its unit, None where none is said; exact, since 0.1 s is a tenth and not the double next to it.

    >>> parse_length("7.5 s"), parse_length(5), parse_length(timedelta(milliseconds=2))
    ((Fraction(15, 2), 'seconds'), (Fraction(5, 1), None), (Fraction(2000, 1), 'microseconds'))
    """
    if isinstance(given, timedelta):
        return Fraction(given // timedelta(microseconds=1)), "microseconds"
    if hasattr(given, "item") and not isinstance(given, str):  # a numpy scalar
        given = given.item()
    if isinstance(given, Real) and not isinstance(given, bool):
        if isinstance(given, float) and not math.isfinite(given):
            raise LengthError(f"{given!r} is no length of time", hint="for example '10 seconds'")
        return Fraction(given) if isinstance(given, Fraction) else Fraction(str(given)), None
    written = _LENGTH.match(given) if isinstance(given, str) else None
    if written is None:
        raise LengthError(f"{given!r} is no length of time", hint="for example '10 seconds'")
    number, word = written.groups()
    unit = unit_named(word) if word else None
    if word and unit is None:
        raise UnitError(f"{given!r}: no time unit '{word}'", hint="seconds, minutes, hours, days, ...")
    return Fraction(number), unit


def in_unit(length: Fraction, unit: str, into: str) -> Fraction:
    """The same length in another unit.

    >>> in_unit(Fraction(3, 2), "hours", "minutes")
    Fraction(90, 1)
    """
    return length * UNITS[unit] / UNITS[into]


def in_steps(given: Any, column_unit: str | None, what: str, *, timestamp: bool = False) -> Fraction:
    """A length in steps of the time column, which count `column_unit`s (None: it is not known what they count).

    A plain number is in steps of the column, but for a `timestamp` it needs a unit. `what` names the option in errors.

    >>> in_steps("1.5 seconds", "milliseconds", "delay"), in_steps(5, None, "delay")
    (Fraction(1500, 1), Fraction(5, 1))
    """
    try:
        length, unit = parse_length(given)
    except LengthError as error:
        raise type(error)(f"{what}={error.message}", hint=error.hint) from None
    if length < 0:
        raise LengthError(f"{what}={given!r} is less than nothing")
    if unit is None:
        if timestamp and length:
            told = f"{what}={given!r} needs a unit, since the time is a timestamp"
            raise LengthError(told, hint=f"write {what}='{given} seconds', for example")
        return length
    if column_unit is None:
        told = f"{what}={given!r} has a unit, but it is not known what one step of the time column is"
        raise LengthError(told, hint="pass time_unit='ms' (or what the column counts), or a plain number")
    return in_unit(length, unit, column_unit)

"""Time units: what WITHIN may name, and how lengths become the time column's own unit."""

from __future__ import annotations

from fractions import Fraction

# Nanoseconds in one unit. Months and years are left out on purpose: they have no fixed length.
UNITS: dict[str, int] = {
    "nanoseconds": 1,
    "microseconds": 1_000,
    "milliseconds": 1_000_000,
    "seconds": 1_000_000_000,
    "minutes": 60_000_000_000,
    "hours": 3_600_000_000_000,
    "days": 86_400_000_000_000,
    "weeks": 604_800_000_000_000,
}

_SPELLINGS: dict[str, str] = {
    "ns": "nanoseconds",
    "us": "microseconds",
    "µs": "microseconds",
    "μs": "microseconds",
    "ms": "milliseconds",
    "s": "seconds",
    "sec": "seconds",
    "secs": "seconds",
    "m": "minutes",
    "min": "minutes",
    "mins": "minutes",
    "h": "hours",
    "hr": "hours",
    "hrs": "hours",
    "d": "days",
    "w": "weeks",
    **{unit: unit for unit in UNITS},
    **{unit.removesuffix("s"): unit for unit in UNITS},
}


def unit_named(word: str) -> str | None:
    """The canonical name of a time unit, or None.

    >>> unit_named("hr"), unit_named("Hours"), unit_named("fortnight")
    ('hours', 'hours', None)
    """
    return _SPELLINGS.get(word) or _SPELLINGS.get(word.lower())


def convert(length: int | float, unit: str, into: str) -> int | float:
    """A length in another unit; whole results stay integers.

    >>> convert(12, "hours", "seconds"), convert(1, "seconds", "minutes"), convert(1.5, "seconds", "milliseconds")
    (43200, 0.016666666666666666, 1500)
    """
    exact = Fraction(str(length)) * UNITS[unit] / UNITS[into]  # str: 0.1 is a tenth, not the double next to it
    return int(exact) if exact.denominator == 1 else float(exact)

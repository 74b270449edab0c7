"""The calendar: days since 1970 and their years, months and days, of numbers and of arrays (proleptic Gregorian)."""

from __future__ import annotations

from calendar import monthrange
from typing import Any

DAY = 86_400_000_000  # microseconds
THURSDAY = 3  # 1970 began on a Thursday; weeks begin on Monday


def civil(days: Any) -> tuple[Any, Any, Any]:
    """Year, month and day of so many days since 1970, of a number or an array (Hinnant, chrono-compatible dates).

    >>> civil(0), civil(-1), civil(19782)
    ((1970, 1, 1), (1969, 12, 31), (2024, 2, 29))
    """
    shifted = days + 719_468  # since 0000-03-01: leap days come last
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year_of_era = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 - 12 * (shifted_month // 10)
    return year_of_era + era * 400 + (month <= 2), month, day


def days_of(year: object, month: Any, day: object) -> Any:
    """Days since 1970 of a date.

    >>> days_of(2024, 2, 29), days_of(1969, 12, 31)
    (19782, -1)
    """
    shifted = year - (month <= 2)
    era = shifted // 400
    year_of_era = shifted - era * 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + of_year - 719_468


def is_date(year: int, month: int, day: int) -> bool:
    """Is there such a day?

    >>> is_date(2024, 2, 29), is_date(2023, 2, 29)
    (True, False)
    """
    if not 1 <= month <= 12 or day < 1:
        return False
    return day <= (monthrange(2000 + year % 400, month)[1])


def months_between(start: int, end: int) -> int:
    """How many whole months lie between two times in microseconds, towards zero.

    >>> months_between(30 * DAY, 58 * DAY), months_between(0, 31 * DAY)
    (0, 1)
    """
    first, last = start // DAY, end // DAY
    if last > first and end % DAY < start % DAY:
        last -= 1
    elif last < first and end % DAY > start % DAY:
        last += 1
    (year, month, day), (other_year, other_month, other_day) = civil(first), civil(last)
    packed = ((other_year - year) * 12 + other_month - month) * 32 + other_day - day
    return int(packed // 32 if packed >= 0 else -(-packed // 32))

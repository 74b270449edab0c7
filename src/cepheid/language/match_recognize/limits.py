"""How many matches a clause may have."""

from __future__ import annotations

from cepheid.errors import LimitError

MOST_MATCHES = 50_000_000  # unless a call says otherwise


def check_matches(number: int, most: int) -> None:
    """An error if a clause has more matches than it may."""
    if number > most:
        hint = "raise it, add WITHIN, or make the conditions tighter"
        raise LimitError(f"the clause reached max_matches={most}", hint=hint)

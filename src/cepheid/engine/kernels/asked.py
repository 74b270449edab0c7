"""What is asked of a search that has nothing else to choose: which matches, and how many at most."""

from __future__ import annotations

from typing import NamedTuple


class SearchRequest(NamedTuple):
    """Matches with after < completion <= until, and how many at most."""

    after: int
    until: int
    limit: int

"""What is worked out once of a bound query, and kept as long as that is: a live query asks for it with every event."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

Q = TypeVar("Q")
T = TypeVar("T")


def kept_with_query(make: Callable[[Q], T]) -> Callable[[Q], T]:
    """The function, which gives the same object for the same query; an equal query has its own.

    What is kept must not refer to the query itself, or both stay for ever.
    """
    kept: dict[int, tuple[weakref.ref[Q], T]] = {}

    @wraps(make)
    def found(bound: Q) -> T:
        number = id(bound)
        known = kept.get(number)
        if known is None or known[0]() is not bound:
            known = kept[number] = weakref.ref(bound, lambda _: forget(number)), make(bound)
        return known[1]

    def forget(number: int) -> None:
        kept.pop(number, None)

    return found

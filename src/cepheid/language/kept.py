"""What is worked out of a query once and kept as long as the query is: a live query asks for it with every event."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from cepheid.language.bound import BoundQuery

T = TypeVar("T")


def kept_with_query(make: Callable[[BoundQuery], T]) -> Callable[[BoundQuery], T]:
    """The function, which gives the same object for the same query; an equal query has its own.

    What is kept must not refer to the query itself, or both stay for ever.
    """
    kept: dict[int, tuple[weakref.ref[BoundQuery], T]] = {}

    @wraps(make)
    def found(bound: BoundQuery) -> T:
        number = id(bound)
        known = kept.get(number)
        if known is None or known[0]() is not bound:
            known = kept[number] = weakref.ref(bound, lambda _: forget(number)), make(bound)
        return known[1]

    def forget(number: int) -> None:
        kept.pop(number, None)

    return found

"""Numbers and lists by the size of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def sized(size: str, smoke: int, quick: int, full: int) -> int:
    """A number by the size of the run."""
    return {"smoke": smoke, "quick": quick, "full": full}[size]


def points(size: str, full: Sequence[T], quick: Sequence[T], smoke: Sequence[T] | None = None) -> Sequence[T]:
    """The points of an axis by the size of the run; the smoke run takes the last two of the quick one."""
    if size == "full":
        return full
    return quick if size == "quick" else (smoke if smoke is not None else quick[-2:])

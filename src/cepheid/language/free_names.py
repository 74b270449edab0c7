"""Names for columns of our own beside those of a table, which may be called anything."""

from __future__ import annotations

from collections.abc import Iterable


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """A name that no column has, nor begins with, in any case: Spark ignores the case of names by default.

    >>> free_name("__shard", ["ts", "id"]), free_name("__shard", ["__Shard", "__shard_1"])
    ('__shard', '__shard__')
    """
    lower = [name.lower() for name in taken]
    while any(name.startswith(wanted.lower()) for name in lower):
        wanted += "__" if not wanted.endswith("__") else "_"
    return wanted

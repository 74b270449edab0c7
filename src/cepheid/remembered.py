"""What a process remembers from one call or task to the next, so that it need not be made again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class Remembered(Generic[V]):
    """Values by their keys; where there are too many, the one goes that nobody has asked for the longest.

    >>> found = Remembered[str](most=2)
    >>> [found.get(key, key.upper) for key in "abac"], found.keys()
    (['A', 'B', 'A', 'C'], ['a', 'c'])
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, tuple[Any, V]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value of a key; it is made if it is not known, or if the key holds something that has no hash."""
        try:
            hash(key)
        except TypeError:
            return make()
        return self._get(key, None, make)

    def of(self, thing: object, make: Callable[[], V]) -> V:
        """The value of one thing, whatever equals it. The thing stays, so that no other gets its identity."""
        return self._get(id(thing), thing, make)

    def keys(self) -> list[Hashable]:
        """The keys, in the order in which they were asked for."""
        return list(self._values)

    def _get(self, key: Hashable, thing: object, make: Callable[[], V]) -> V:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][1]
        made = make()  # which may take long, or fail
        with self._lock:
            kept = self._values.setdefault(key, (thing, made))
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return kept[1]

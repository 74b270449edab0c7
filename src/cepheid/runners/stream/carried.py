"""What a stream carries from step to step besides events, by number: the ends of NON-OVERLAP, the sums of SUMMARISE."""

from __future__ import annotations

from typing import Protocol


class Carried(Protocol):
    """Where it lies."""

    def ended(self, query: int) -> bytes | None: ...
    def end(self, query: int, ended: bytes) -> None: ...
    def forget(self, query: int) -> None: ...


class Pending:
    """What a step is about to carry: it is kept only once the step has found all matches."""

    def __init__(self, store: Carried) -> None:
        self.store = store
        self.ends: dict[int, bytes] = {}

    def ended(self, query: int) -> bytes | None:
        """What is carried for a query."""
        return self.ends[query] if query in self.ends else self.store.ended(query)

    def end(self, query: int, ended: bytes) -> None:
        """Carries something for a query."""
        self.ends[query] = ended

    def forget(self, query: int) -> None:
        """Carries nothing for a query any more."""
        self.ends.pop(query, None)
        self.store.forget(query)

    def keep(self) -> None:
        """Writes all of it to the store."""
        for query, ended in self.ends.items():
            self.store.end(query, ended)

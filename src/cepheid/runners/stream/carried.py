"""What a stream carries from step to step besides events, by number: the ends of NON-OVERLAP, the sums of SUMMARISE."""

from __future__ import annotations

from typing import Protocol


class Carried(Protocol):
    """Where it lies."""

    def ended(self, query: int) -> bytes | None: ...
    def end(self, query: int, ended: bytes) -> None: ...

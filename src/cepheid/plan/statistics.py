"""What a sample of the events says about a query: how often its components occur, how selective its conditions are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Statistics:
    """Numbers for the cost model; each is an estimate from a sample."""

    events: int  # rows of the whole table
    partitions: int = 1  # distinct values of the equivalence tests
    per_window: tuple[float, ...] = ()  # events of each positive component in one window of one partition
    passing: tuple[int, ...] = ()  # events that could fill each component, positives first, then negated
    selectivity: Mapping[int, float] = field(default_factory=dict)  # conjunct number -> share of combinations it keeps
    # Events of each component, the negated ones last, that an event meets in its window and partition. Unlike
    # per_window this weighs partitions by their events: frequent keys have most of the work.
    met: tuple[float, ...] = ()
    agreeing: float = 1.0  # share of pairs of one partition that agree in the attributes that are compared

    @property
    def met_by_others(self) -> tuple[float, ...]:
        """The same, of the positive components; without a sample, per_window."""
        return self.met[: len(self.per_window)] or self.per_window

    @property
    def candidates_of(self) -> tuple[float, ...]:
        """Events of the whole table that could fill each positive component; without a sample, of a window."""
        return tuple(map(float, self.passing[: len(self.per_window)])) or self.per_window


DEFAULT_SELECTIVITY = 0.3  # of a condition nothing is known about

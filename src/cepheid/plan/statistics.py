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


DEFAULT_SELECTIVITY = 0.3  # of a condition nothing is known about

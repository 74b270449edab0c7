"""The physical plan: everything an engine needs to know besides the events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cepheid.draw.notebook import query_html
from cepheid.language.bound import BoundQuery


@dataclass(frozen=True)
class Limits:
    """How much a query may produce before it is stopped: skip_till_any with Kleene plus can be exponential."""

    max_matches: int = 50_000_000
    max_partial_matches: int = 50_000_000
    truncate: bool = False  # True: return what was found so far and say so; False: an error


@dataclass(frozen=True)
class Plan:
    """A query, the engine that runs it, and what was pushed where."""

    bound: BoundQuery
    engine: str
    partition: tuple[str, ...] = ()  # equivalence attributes that split the events in the scan (SASE 4.2.1)
    compared: tuple[str, ...] = ()  # equivalence attributes tested during construction (SASE 4.2.2)
    push_predicates: bool = True  # test conditions as soon as their events are chosen (SASE 4.2)
    push_window: bool = True  # use the window in scan and construction (SASE 4.3)
    order: tuple[int, ...] | None = None  # LAZY: the order in which components are filled
    limits: Limits = Limits()
    model: Any = None  # loss and gap model (AYAC)
    scoring: str = "exact"
    reasons: tuple[str, ...] = ()  # why this engine and these choices, for explain
    estimates: Mapping[str, float] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)  # engine hints, such as merge=False

    def _repr_html_(self) -> str:
        from cepheid.plan.explain import physical_lines

        return query_html(self.bound.syntax, "\n".join(physical_lines(self)))

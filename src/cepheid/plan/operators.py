"""The operators of a plan, as frozen data: what is read, how it is shuffled, matched, scored and output.

    scan -> exchange -> match -> score -> output -> transform

The rules in `rules/` move work from the later ones into the earlier ones; every runner executes their contents.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery, Conjunct
from cepheid.plan.options import EngineOptions, Limits

AUTO = "auto"  # the engine of a plan that is decided where the events are


@dataclass(frozen=True)
class Takes:
    """What a component takes, as far as it can be said of one event alone."""

    component: s.Component
    conditions: tuple[s.Expression, ...] = ()


@dataclass(frozen=True)
class Scan:
    """Which events and columns are read at all."""

    takes: tuple[Takes, ...]  # an event is needed if one of these takes it, positive components first...
    every_event: bool = False  # ...or always: contiguity and windows that count events look at all of them
    columns: tuple[str, ...] = ()  # that conditions, order and output mention

    def conditions_of(self, variable: str) -> tuple[s.Expression, ...]:
        """The conditions on a component alone."""
        return next((takes.conditions for takes in self.takes if takes.component.variable == variable), ())

    @property
    def types(self) -> frozenset[str] | None:
        """The event types that are needed; None: all."""
        if self.every_event or any(takes.component.types is None for takes in self.takes):
            return None
        return frozenset(name for takes in self.takes for name in takes.component.types or ())


@dataclass(frozen=True)
class Retention:
    """How long events are needed: what a stream keeps, and how far slices of time overlap."""

    reach: int | None = None  # steps of time after an event in which a match that needs it can complete
    events: int | None = None  # the same, counted in events of its partition (WITHIN n EVENTS)
    windows: int = 1  # how many windows before the completion of a match its events can lie
    decides_late: bool = False  # are matches known only when their window has passed?
    for_ever: str | None = None  # why no bounded number of events is enough


class Spread(Enum):
    """What parts events so that no match is lost."""

    KEYS = "keys"
    TIME = "slices of time"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Exchange:
    """Where events go: those that a match may need together go to one task, or to one shard of a stream."""

    spread: Spread = Spread.NOTHING
    keys: tuple[str, ...] = ()  # events with equal values of these stay together
    sliceable: bool = False  # can slices of time be matched independently?
    retention: Retention = Retention()
    # How it is done on Spark, where the caller says so; None: as Spark's settings say.
    partitions: int | None = None
    slices: int | None = None
    hot_keys: object = None  # keys that are cut by time, too: values, or "auto" to count them first
    shards: int | None = None  # pieces of a stream's state


@dataclass(frozen=True)
class Hashed:
    """Queues of missing events that are hashed by attributes which equalities compare (AYAC section 5.2).

    What was seen is tied together by them, whatever is missing; but for the sets of missing components in `untied`,
    which are searched for among all events. The `equalities` need no test in queues of one value each,
    where no event is without a value.
    """

    attributes: tuple[str, ...]
    equalities: frozenset[s.Expression]
    untied: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True)
class Match:
    """How matches are searched for."""

    bound: BoundQuery
    engine: str
    partition: tuple[str, ...] = ()  # equivalence attributes that part the events in the scan (SASE 4.2.1)
    compared: tuple[str, ...] = ()  # equivalence attributes compared during construction (SASE 4.2.2)
    conditions: tuple[Conjunct, ...] = ()  # tested as soon as their events are chosen (SASE 4.2)
    indexed: tuple[Conjunct, ...] = ()  # of these, equalities that find candidates by value
    window_pushed: bool = False  # is the window used in scan and construction (SASE 4.3)?
    # What is left for the end: SASE's basic plan tests everything there (section 3.1).
    compared_at_the_end: tuple[str, ...] = ()
    conditions_at_the_end: tuple[Conjunct, ...] = ()
    order: tuple[int, ...] | None = None  # LAZY: the order in which components are filled
    hashed: Hashed | None = None  # AYAC 5.2: what queues of missing events are parted by, beside `partition`
    limits: Limits = field(default_factory=Limits)
    options: EngineOptions = field(default_factory=EngineOptions)


@dataclass(frozen=True)
class Score:
    """How a match is judged: by the probability that its missing events happened, by its confidence, or both."""

    model: Any = None  # loss and gap model (AYAC)
    scoring: str = "exact"
    threshold: float | None = None
    confidence: float | None = None


@dataclass(frozen=True)
class Output:
    """Which of the matches are reported."""

    mode: s.OutputMode = s.OutputMode.ALL


@dataclass(frozen=True)
class Transform:
    """What is reported of a match: its events (None), or what RETURN picks."""

    returns: tuple[tuple[str, s.Expression], ...] | None = None


@dataclass(frozen=True)
class Union:
    """Several queries with names over the same events; those that are spread alike share a pass."""

    plans: tuple[tuple[str | None, Any], ...] = field(default=())

    def spread_alike(self) -> list[list[tuple[str | None, Any]]]:
        """The plans in groups that one spreading of the events serves."""
        groups: dict[Any, list[tuple[str | None, Any]]] = {}
        for name, plan in self.plans:
            groups.setdefault(alike(plan.exchange), []).append((name, plan))
        return list(groups.values())


def alike(exchange: Exchange) -> tuple[Spread, frozenset[str]]:
    """What two plans must have in common to be served by the same spreading of events."""
    return exchange.spread, frozenset(exchange.keys)


def scan_of(bound: BoundQuery) -> Scan:
    """The scan before any rule: events of the types that the query names, all columns."""
    components: Iterable[s.Component] = (*bound.positives, *(negation.component for negation in bound.negations))
    return Scan(tuple(Takes(component) for component in components), columns=bound.schema.names)

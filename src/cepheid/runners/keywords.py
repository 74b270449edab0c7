"""The keyword options of the public calls, as types: what a checker of types knows of them.

The values are checked again when a call is made (options.py), for those who have no such checker. A test keeps both
lists alike.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from cepheid.model import Model

EngineName = Literal[
    "auto",
    "reference",
    "sequence",
    "runs",
    "backtrack",
    "lazy-chain",
    "lazy-tree",
    "queues",
    "points",
    "intervals",
    "expansion",
    "states",
    "forecast",
]
Scoring = Literal["exact", "paper", "posterior"]
Method = Literal["auto", "query-order", "any-state", "sorted", "selectivity"]
BadRecords = Literal["fail", "drop", "set aside"]
Length = int | float | str | timedelta  # 5, "10 seconds" or a timedelta


class RoleKeywords(TypedDict, total=False):
    """Which columns mean what, and how records are read."""

    time: str  # the column that holds the time
    type: str | None  # the column that holds the event type; None: there are no types
    time_unit: str | None  # what a whole-number time counts: "ms", "s", ...
    tiebreak: str | Sequence[str]  # columns that order events of one time, or "row" for the order of rows
    lower: str | None  # imprecise times: the column of the earliest instant...
    upper: str | None  # ...and of the latest
    existence: str | None  # the column with the probability that an event happened at all
    # How far the time may be off: one length, a column, by type, or by the values of a column.
    uncertainty: Length | Mapping[str, Length | Mapping[str, Length]] | None
    lacks: Mapping[str, Sequence[str]] | None  # attributes that events of a type do not have
    tz: str | None  # the query's time zone
    ignore_case: bool  # types are the same whatever their case
    parameters: Mapping[str, Any] | None  # values for bare words of the query
    bad_records: BadRecords | None  # what becomes of records that cannot be events
    aside: str | Path | Callable[[Any], object] | None  # where bad records go that are set aside
    dedupe: str | Sequence[str]  # columns in which duplicates agree
    time_format: str | None  # how times in text are written; None: ISO 8601
    decimal: str | None  # the decimal mark of numbers in text
    thousands: str | None  # the mark between their thousands


class PlanKeywords(RoleKeywords, total=False):
    """How a query is planned and run; none of it changes what the query means, but `model` and `scoring`."""

    model: Model | None  # loss and gap model: events may be missing
    scoring: Scoring
    engine: EngineName
    equivalence: Literal["scan", "construction"]
    pushdown: bool
    merge: bool
    order: Sequence[str] | None
    learn: bool
    missing_last: bool
    forecast_at: int | None  # of FORECAST: all partial matches open at this instant
    confidence: float | None
    probabilities: str | None
    unit: Length | None
    max_width: int | None
    max_cost: float | None
    tolerance: float | None  # by how much a confidence may be off
    method: Method
    max_matches: int
    max_bytes: int | None  # by how much the memory of the process may grow
    timeout: float | None  # seconds that a search may take
    max_partial_matches: int
    truncate: bool


class MatchKeywords(PlanKeywords, total=False):
    """The options of `match`, but for `output`, which decides what is returned."""

    dialect: str  # of a MATCH_RECOGNIZE clause
    unsafe_functions: bool  # may such a clause call functions of Spark that are not known to be pure?
    partitions: int | None  # Spark batches
    slices: int | None
    hot_keys: Literal["auto"] | Iterable[Any] | None
    memory: int
    delay: Length | None  # streams: how much older than the newest event others may be when they come
    shards: int | None
    late_events: bool
    idle: Length | None
    heartbeat: bool
    metrics: str | None
    clock: Literal["all", "relevant"]
    keys: str | Sequence[str]  # for queries that come and go: columns that part the events of all of them
    state: bytes | None  # of a live query, to go on from
    max_ahead: Length | None  # how far before the machine's clock an event may lie
    max_state_bytes: int | None
    max_key_events: int | None
    max_batch_time: Length | None
    when_full: Literal["fail", "drop oldest", "drop largest keys", "sample"]


def signature_with(call: Callable[..., Any], *kinds: type) -> inspect.Signature:
    """The signature of a call with the options of some classes instead of **keywords, for help() and notebooks."""
    own = inspect.signature(call)
    kept = [each for each in own.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    known = {each.name for each in kept}
    more = []
    for each in (each for kind in kinds for each in fields(kind) if "kind" in each.metadata):
        if each.name not in known:
            known.add(each.name)
            default = None if each.default is MISSING else each.default
            more.append(inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default))
    return own.replace(parameters=[*kept, *more])

"""The keyword options of the public calls, as types: what a checker of types knows of them.

`python -m runners.option_pages` writes it from the declarations in plan/options.py and runners/options.py.
docs/api.md says what the options mean. The values are checked again when a call is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    "lazy-tree",
    "lazy-chain",
    "expansion",
    "states",
    "queues",
    "intervals",
    "forecast",
    "points",
]
Scoring = Literal["exact", "paper", "posterior"]
Method = Literal["auto", "query-order", "any-state", "sorted", "selectivity"]
Length = int | float | str | timedelta  # 5, "10 seconds" or a timedelta


class RoleKeywords(TypedDict, total=False):
    """Which columns mean what, and how records are read."""

    time: str
    type: str | None
    time_unit: str | None
    tz: str | None
    tiebreak: str | Sequence[str]
    lower: str | None
    upper: str | None
    uncertainty: Length | Mapping[str, Length | Mapping[str, Length]] | None
    existence: str | None
    lacks: Mapping[str, Sequence[str]] | None
    ignore_case: bool
    bad_records: Literal["fail", "drop", "set aside"] | None
    aside: str | Path | Callable[[Any], object] | None
    dedupe: str | Sequence[str]
    time_format: str | None
    decimal: str | None
    thousands: str | None
    parameters: Mapping[str, Any] | None


class PlanKeywords(RoleKeywords, total=False):
    """How a query is planned and run; none of it changes what the query means, but `model` and `scoring`."""

    engine: EngineName
    equivalence: Literal["scan", "construction"]
    model: Model | None
    scoring: Scoring
    max_matches: int
    max_partial_matches: int
    timeout: float | None
    max_bytes: int | None
    truncate: bool
    method: Method
    confidence: float | None
    probabilities: str | None
    unit: Length | None
    max_width: int | None
    max_cost: float | None
    tolerance: float | None
    missing_last: bool
    forecast_at: int | None
    learn: bool
    order: Sequence[str] | None
    merge: bool
    pushdown: bool


class MatchKeywords(PlanKeywords, total=False):
    """The options of `match` with a text, but for `output`, which decides what is returned."""

    dialect: str
    unsafe_functions: bool
    max_rows: int | None
    partitions: int | None
    slices: int | None
    hot_keys: Literal["auto"] | Iterable[Any] | None
    memory: int
    delay: Length | None
    late_events: bool
    shards: int | None
    heartbeat: bool
    idle: Length | None
    clock: Literal["all", "relevant"]
    metrics: str | None
    max_ahead: Length | None
    max_state_bytes: int | None
    max_key_events: int | None
    max_batch_time: Length | None
    when_full: Literal["fail", "drop oldest", "drop largest keys", "sample"]
    keys: str | Sequence[str]
    state: bytes | None


class FlinkKeywords(TypedDict, total=False):
    """The options of `match` with a Flink pattern."""

    parameters: Mapping[str, Any] | None
    delay: Length | None
    late_events: bool
    shards: int | None
    heartbeat: bool
    idle: Length | None
    metrics: str | None
    partitions: int | None
    output: Literal["rows", "count"]
    time: str
    type: str | None
    time_unit: str | None
    tz: str | None
    tiebreak: str | Sequence[str]
    engine: Literal["auto", "automaton", "reference"]
    max_matches: int
    max_partial_matches: int
    timeout: float | None
    max_bytes: int | None
    partition_by: str | Sequence[str]
    partial: bool

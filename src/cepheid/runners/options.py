"""The options of `match`, of all runners: the roles of columns, the plan, and how a batch or a stream is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cepheid.errors import CepheidError, DataError
from cepheid.language.durations import milliseconds
from cepheid.plan.options import (
    PlanOptions,
    anything,
    flag,
    names,
    one_of,
    option,
    options_of,
    read_options,
    takes,
    text,
    whole,
)

MEMORY = 512 * 2**20  # bytes of events that one task holds at a time, unless told otherwise
SHARDS = 16  # of a stream at most, unless told otherwise
BAD_RECORDS = ("fail", "drop", "set aside")
POLICIES = ("fail", "drop oldest", "drop largest keys", "sample")
OUTPUTS = ("rows", "count", "compressed")


Elsewhere = Mapping[str, type]  # options of other calls, by what these are for


def keys(value: object) -> str | None:
    """Keys of hot partitions, or "auto"."""
    listed = hasattr(value, "__iter__") and not isinstance(value, str)
    return None if value == "auto" or listed else "'auto' or a list of keys"


def place(value: object) -> str | None:
    """Where bad records go."""
    fits = isinstance(value, str | Path) or callable(value)
    return None if fits else "a path such as 'bad.parquet', or a function that takes a table"


def mark(value: object) -> str | None:
    """A mark inside numbers."""
    return (
        None
        if isinstance(value, str) and len(value) == 1 and not value.isalnum()
        else "a single character, such as ','"
    )


@dataclass(frozen=True)
class RecordOptions:
    """How records are read as events, and what becomes of those that cannot be."""

    bad_records: str | None = option(None, one_of(*BAD_RECORDS))  # None: fail, but for NULL keys, which match nothing
    aside: Any = field(default=None, metadata=takes(place))  # where bad records go that are set aside
    dedupe: tuple[str, ...] = option((), names)  # columns in which duplicates agree; the first record stays
    time_format: str | None = option(None, text)  # how times in text are written; None: ISO 8601
    decimal: str | None = option(None, mark)  # the decimal mark of numbers in text
    thousands: str | None = option(None, mark)  # the mark between their thousands


@dataclass(frozen=True)
class Options(PlanOptions, RecordOptions):
    """How a query is to be run: the roles of columns, the model, the engine and what it reads."""

    time: str = option("ts", text)
    type: str | None = option("type", text)
    time_unit: str | None = option(None, text)
    tiebreak: tuple[str, ...] = option((), names)  # columns that order events of one time, or "row"
    row_column: str | None = None  # made for tiebreak="row"; no option
    lower: str | None = option(None, text)
    upper: str | None = option(None, text)
    uncertainty: Any = field(default=None, metadata=takes(anything))  # how far the one time column may be off
    existence: str | None = option(None, text)  # a column: the probability that the event happened at all
    tz: str | None = option(None, text)  # the query's time zone; None: the session's on Spark, else the time column's
    lacks: Any = field(default=None, metadata=takes(anything))  # attributes that events of a type do not have
    ignore_case: bool = option(False, flag)  # True: types are the same whatever their case
    output: str = option("rows", one_of(*OUTPUTS))

    @classmethod
    def from_keywords(cls, keywords: Mapping[str, Any], elsewhere: Elsewhere | None = None) -> Options:
        """The options given to `match`; what is wrong with one is an error that proposes a right one."""
        if elsewhere is None:
            elsewhere = {"Spark batches": BatchOptions, "streams": StreamOptions}
        options = read_options(cls, {name: value for name, value in keywords.items() if name != "type"}, elsewhere)
        if "type" in keywords:
            options = replace(options, type=_type(keywords["type"]))
        if isinstance(options.tiebreak, str):
            options = replace(options, tiebreak=(options.tiebreak,))
        if isinstance(options.dedupe, str):
            options = replace(options, dedupe=(options.dedupe,))
        options = replace(options, tiebreak=tuple(options.tiebreak), dedupe=tuple(options.dedupe))
        options.check_bounds()
        options.check_records()
        return options

    def check_bounds(self) -> None:
        """Imprecise times need both bounds; `uncertainty` makes them by itself."""
        if self.uncertainty is not None and (self.lower is not None or self.upper is not None):
            raise DataError("pass either uncertainty, or the columns lower and upper")
        for name, other, value in (("lower", "upper", self.lower), ("upper", "lower", self.upper)):
            if value is not None and getattr(self, other) is None:
                raise CepheidError(
                    f"imprecise times need both bounds, and only {name} was passed", hint=f"add {other}='...'"
                )

    def check_records(self) -> None:
        """Records that are set aside go somewhere."""
        if (self.bad_records == "set aside") != (self.aside is not None):
            told = "bad_records='set aside' and aside='...'must be passed together"
            raise CepheidError(told, hint="for example aside='bad.parquet', or a function that takes a table")

    def roles(self) -> dict[str, Any]:
        """The roles of columns, as Schema.from_arrow takes them."""
        return {
            "time": self.time,
            "type": self.type,
            "time_unit": self.time_unit,
            "tiebreak": self.tiebreak,
            "lower": self.lower,
            "upper": self.upper,
            "lacks": self.lacks,
            "existence": self.existence,
            "ignore_case": self.ignore_case,
            "row_column": self.row_column,
            "tz": self.tz,
        }


@dataclass(frozen=True)
class BatchOptions:
    """How a batch is spread over workers; none of it changes the result."""

    partitions: int | None = option(None, whole(1))  # of the shuffle; None: as Spark's settings say
    slices: int | None = option(None, whole(1))  # of time, for queries that no key parts; None: one per task
    hot_keys: Any = field(
        default=None, metadata=takes(keys)
    )  # keys to part by time, too: values, or "auto" to count first
    memory: int = option(MEMORY, whole(1))  # bytes of events that a task holds at a time


@dataclass(frozen=True)
class StreamOptions:
    """How a stream is run; `delay` decides which events count as late, the others change no result."""

    delay: Any = field(
        default=None, metadata=takes(anything)
    )  # how much older than the newest event others may be when they come
    shards: int | None = option(
        None, whole(1)
    )  # pieces of state; fixed for a checkpoint; None: as many as tasks run at once, up to SHARDS
    late_events: bool = option(False, flag)  # True: late events come out, too, in a column of their own
    idle: Any = field(
        default=None, metadata=takes(anything)
    )  # after this much silence of the source, time goes on by the machine's clock
    heartbeat: bool = option(False, flag)  # True: the machine's clock moves time on every second, silence or not
    metrics: str | None = option(None, text)  # the name of the observed metrics; None: one of its own
    clock: str = option("all", one_of("all", "relevant"))  # which events move time on
    keys: tuple[str, ...] = option(
        (), names
    )  # for queries that come and go: the columns that part the events of all of them
    max_ahead: Any = field(
        default=None, metadata=takes(anything)
    )  # how far before the machine's clock an event may lie; one beyond cannot be an event
    max_state_bytes: int | None = option(None, whole(1))  # of retained events, over all shards
    max_key_events: int | None = option(None, whole(1))  # retained events of one key
    max_batch_time: Any = field(
        default=None, metadata=takes(anything)
    )  # how long the searches of a shard may take in one micro-batch, such as "2 seconds"
    when_full: str = option("fail", one_of(*POLICIES))  # what goes when a bound, or a limit of a search, is met
    state: bytes | None = field(default=None, metadata=takes(anything))  # of a live query, to go on from

    def batch_seconds(self) -> float | None:
        """`max_batch_time` in seconds."""
        return None if self.max_batch_time is None else milliseconds(self.max_batch_time, "max_batch_time") / 1000


def spark_options(keywords: Mapping[str, Any], streaming: bool) -> tuple[Options, BatchOptions | StreamOptions]:
    """The options of `match` on Spark: those for every table, and those for a batch or a stream."""
    kind: type[BatchOptions] | type[StreamOptions] = StreamOptions if streaming else BatchOptions
    elsewhere = {"Spark batches": BatchOptions} if streaming else {"streams": StreamOptions}
    own = {name: value for name, value in keywords.items() if name in options_of(kind)}
    rest = {name: value for name, value in keywords.items() if name not in own}
    for name in rest:  # a misspelt option may be meant for either
        if name not in options_of(Options) and not any(name in options_of(other) for other in elsewhere.values()):
            read_options(_EVERY[kind], {name: rest[name]})
    options = Options.from_keywords(rest, elsewhere)
    if streaming:
        refuse_output(options, "a stream")
    return options, read_options(kind, own)


def check_alone(output: str, query: object) -> None:
    """What is counted or compressed is one query's."""
    if output != "rows" and isinstance(query, Mapping):
        told = f"output={output!r} supports one query at a time"
        raise CepheidError(told, hint="give each query SUMMARISE count(*), or match them one by one")


def refuse_output(options: Options, who: str) -> None:
    """Not everyone can return anything but rows."""
    if options.output != "rows":
        told = f"output={options.output!r} is for tables, and {who} returns rows"
        raise CepheidError(told, hint="add SUMMARISE count(*) to the query; a stream needs EVERY, too")


def _type(given: object) -> str | None:
    """The type column; None is a choice here: there are no types."""
    wrong = None if given is None else text(given)
    if wrong is not None:
        raise CepheidError(f"type={given!r} is not {wrong}, or None for events without types")
    return None if given is None else str(given)


@dataclass(frozen=True)
class _Batch(Options, BatchOptions):
    """All options of a batch, to find the one that was meant."""


@dataclass(frozen=True)
class _Stream(Options, StreamOptions):
    """All options of a stream."""


_EVERY: dict[type, type] = {BatchOptions: _Batch, StreamOptions: _Stream}

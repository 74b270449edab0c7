"""The options of `match`, of all languages and runners: the roles of columns, the plan, how a batch or a stream is run.

Each is declared once, here or in plan/options.py, which says what comes from a declaration.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from cepheid.errors import CepheidError, DataError, EngineError, closest
from cepheid.language.durations import milliseconds
from cepheid.language.schema import Roles
from cepheid.plan.option_kinds import anything, flag, keys, length, mark, names, one_of, place, text, type_column, whole
from cepheid.plan.options import (
    EVERY_LANGUAGE,
    FLINK,
    MATCH_RECOGNIZE,
    TEXT_AND_FLINK,
    Limits,
    PlanOptions,
    declared,
    given_options,
    option,
    options_of,
    read_options,
)

MEMORY = 512 * 2**20  # bytes of events that one task holds at a time, unless told otherwise
SHARDS = 16  # of a stream at most, unless told otherwise
BAD_RECORDS = ("fail", "drop", "set aside")
POLICIES = ("fail", "drop oldest", "drop largest keys", "sample")
OUTPUTS = ("rows", "count", "compressed")
OUTPUTS_OF_PATTERNS = ("rows", "count")  # in the other languages
BATCHES, STREAMS = "Spark batches", "streams"


Elsewhere = Mapping[str, type]  # options of other calls, by what these are for


@dataclass(frozen=True)
class TextOptions:
    """What is read together with the text of a query, before anything else is known."""

    parameters: Mapping[str, object] | None = option(
        None,
        anything("Mapping[str, Any]"),
        "values of bare words in the query",
        languages=TEXT_AND_FLINK,
        example='{"T": 3600}',
    )
    dialect: str = option(
        "spark",
        text,
        "the dialect of a clause, see [match-recognize.md](match-recognize.md)",
        languages=(MATCH_RECOGNIZE,),
    )


@dataclass(frozen=True)
class RecordOptions:
    """How records are read as events, and how invalid ones are handled."""

    bad_records: str | None = option(
        None,
        one_of(*BAD_RECORDS),
        "how to handle invalid records: `fail`, `drop`, or `set aside` (with `aside`); see below",
        example='"drop"',
    )  # None: fail, but for NULL keys, which match nothing
    aside: Any = option(
        None,
        place,
        "destination of records that are set aside: a `.parquet`, `.csv` or `.jsonl` path, or a function that takes a "
        "pyarrow table",
        example='"bad.parquet"',
    )
    dedupe: tuple[str, ...] = option(
        (), names, "columns that identify duplicates; the first record stays", example='"id"'
    )
    time_format: str | None = option(
        None, text, "the format of times in text columns", example='"%d/%m/%Y %H:%M"', shown="ISO 8601"
    )
    decimal: str | None = option(
        None,
        mark,
        "the decimal mark of numbers in text columns that the query computes with or compares by order",
        example='","',
    )
    thousands: str | None = option(None, mark, "the thousands mark of such numbers", example='"."')


@dataclass(frozen=True)
class RoleOptions:
    """Which columns mean what."""

    time: str = option("ts", text, "the time column: whole numbers, timestamps or dates", languages=TEXT_AND_FLINK)
    type: str | None = option(
        "type", type_column, "the column of event types; `None` for untyped streams", languages=TEXT_AND_FLINK
    )
    time_unit: str | None = option(
        None,
        text,
        "the unit of a whole-number time: `us`, `ms`, `s`, `minutes`, ...; required if WITHIN has a unit",
        languages=TEXT_AND_FLINK,
        example='"ms"',
    )
    tz: str | None = option(
        None,
        text,
        "the [query's time zone](time.md); otherwise the session's on Spark, that of the time column, or UTC",
        languages=EVERY_LANGUAGE,
        example='"Europe/Berlin"',
    )
    tiebreak: tuple[str, ...] = option(
        (),
        names,
        "columns that order events with the same time, or `row` for row order; see below",
        languages=TEXT_AND_FLINK,
        example='"row"',
    )
    row_column: str | None = None  # made for tiebreak="row"; no option
    lower: str | None = option(
        None, text, "the column with the first possible instant (imprecise time)", example='"earliest"'
    )
    upper: str | None = option(
        None, text, "the column with the last possible instant (imprecise time)", example='"latest"'
    )
    uncertainty: Any = option(
        None,
        anything("Length | Mapping[str, Length | Mapping[str, Length]]"),
        "how far the time may be off: one length, a column, by type, or by values of a column, see "
        "[imprecise-time.md](imprecise-time.md)",
        example='"2 s"',
    )
    existence: str | None = option(
        None,
        text,
        "a column with the probability that the event happened at all, see "
        "[imprecise-time.md](imprecise-time.md#events-that-may-not-be-true)",
        example='"certainty"',
    )
    lacks: Any = option(
        None,
        anything("Mapping[str, Sequence[str]]"),
        "attributes that a type does not have: NULL satisfies conditions only there, see "
        "[semantics.md](semantics.md#predicates)",
        example='{"Login": ["amount"]}',
    )
    ignore_case: bool = option(False, flag, "`True`: event types are case-insensitive")


@dataclass(frozen=True)
class OutputOptions:
    """What comes back."""

    output: str = option(
        "rows",
        one_of(*OUTPUTS),
        "`count`: the number of matches; `compressed`: all matches as a shared structure; see below",
        languages=EVERY_LANGUAGE,
    )


@dataclass(frozen=True)
class Options(PlanOptions, RecordOptions, RoleOptions, OutputOptions):
    """How a query is to be run: the roles of columns, the model, the engine and what it reads."""

    @classmethod
    def from_keywords(cls, keywords: Mapping[str, object], elsewhere: Elsewhere | None = None) -> Self:
        """The options given to `match`; what is wrong with one is an error that proposes a right one."""
        options = read_options(cls, keywords, ELSEWHERE if elsewhere is None else elsewhere)
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
            message = "bad_records='set aside' and aside='...'must be passed together"
            raise CepheidError(message, hint="for example aside='bad.parquet', or a function that takes a table")

    def in_memory(self, columns: object) -> Self:
        """The same over a table in memory, which has an order of rows."""
        return self

    def roles(self) -> Roles:
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

    partitions: int | None = option(
        None,
        whole(1),
        "number of shuffle partitions",
        languages=EVERY_LANGUAGE,
        example="8",
        shown="`spark.sql.shuffle.partitions`; adaptive execution may merge them",
    )
    slices: int | None = option(
        None,
        whole(1),
        "number of time slices, for queries without a key",
        example="8",
        shown="as many as tasks run at once",
    )
    hot_keys: object = option(
        None,
        keys,
        "keys that are also split by time: a list of values (tuples for several attributes), or `auto` to count first",
        example='"auto"',
    )
    memory: int = option(MEMORY, whole(1), "bytes of events that a task holds at a time", shown="512 MiB")


@dataclass(frozen=True)
class StreamOptions:
    """How a stream is run; `delay` decides which events count as late, the others change no result."""

    delay: Any = option(
        None,
        length,
        "how much older than the newest event an event may be when it arrives",
        languages=EVERY_LANGUAGE,
        example='"10 seconds"',
        shown="the delay of `withWatermark`",
        live=True,
    )
    late_events: bool = option(
        False,
        flag,
        "`True`: late events are also rows of the result, in the column `late_event`",
        languages=EVERY_LANGUAGE,
    )
    shards: int | None = option(
        None,
        whole(1),
        "number of state shards; fixed for a checkpoint; with 1, a micro-batch is one task",
        languages=EVERY_LANGUAGE,
        example="1",
        shown="see below",
    )
    heartbeat: bool = option(
        False, flag, "`True`: time advances every second by the machine's clock", languages=EVERY_LANGUAGE
    )
    idle: object = option(
        None,
        length,
        "after this much silence of the source, time advances by the machine's clock",
        languages=EVERY_LANGUAGE,
        example='"1 minute"',
        shown="never",
    )
    clock: str = option(
        "all",
        one_of("all", "relevant"),
        "`relevant`: only events that some component can take advance time; Spark drops all others first",
    )
    metrics: str | None = option(
        None,
        text,
        "name of the [observed metrics](spark.md#metrics)",
        languages=EVERY_LANGUAGE,
        example='"thefts"',
        shown="`cepheid`, then `cepheid_2`, `cepheid_3`, ... for further streams of the process",
    )
    max_ahead: object = option(
        None,
        length,
        "how far an event may be ahead of the machine's clock; later ones are invalid",
        example='"1 hour"',
        shown="no limit",
        live=True,
    )
    max_state_bytes: int | None = option(
        None,
        whole(1),
        "maximum bytes of retained events, over all shards, see [Bounds](spark.md#bounds)",
        example="1_000_000_000",
    )
    max_key_events: int | None = option(
        None, whole(1), "maximum number of retained events of one key, see [Bounds](spark.md#bounds)", example="10_000"
    )
    max_batch_time: object = option(
        None,
        length,
        "how long the searches of a shard may take in one micro-batch, see [Bounds](spark.md#bounds)",
        example='"2 seconds"',
    )
    when_full: str = option(
        "fail",
        one_of(*POLICIES),
        "at a bound: `fail`, `drop oldest`, `drop largest keys` or `sample`, see [Bounds](spark.md#bounds)",
    )
    keys: tuple[str, ...] = option(
        (),
        names,
        "for [queries that come and go](spark.md#queries-that-come-and-go): columns that partition the events of all",
        example='"id"',
    )
    state: bytes | None = option(None, anything("bytes"), "the saved state of a live query, to go on from", live=True)

    def batch_seconds(self) -> float | None:
        """`max_batch_time` in seconds."""
        return None if self.max_batch_time is None else milliseconds(self.max_batch_time, "max_batch_time") / 1000


ELSEWHERE: Elsewhere = {BATCHES: BatchOptions, STREAMS: StreamOptions}


# --- the other languages --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PatternOptions(Options, BatchOptions, StreamOptions):
    """The options of a query in another language than query text, wherever it runs: those that its language has."""

    language: ClassVar[str]
    who: ClassVar[str]  # in messages
    engines: ClassVar[tuple[str, ...]]
    otherwise: ClassVar[str | None] = None  # a hint for options that the language does without
    reasons: ClassVar[Mapping[str, tuple[str, str]]] = {}  # for some of these: what is said, and a hint

    @classmethod
    def takes(cls, name: str, value: object) -> bool:
        """Is there such an option, with such a value?"""
        return name in options_of(cls, cls.language) and (name != "engine" or value in cls.engines)

    @classmethod
    def from_keywords(cls, keywords: Mapping[str, object], elsewhere: Elsewhere | None = None) -> Self:
        """The options of a call; an error for one that the language does not have."""
        known = options_of(cls, cls.language)
        for name in keywords:
            if name in cls.reasons:
                message, hint = cls.reasons[name]
                raise CepheidError(f"{name}: {message}", hint=hint)
            if name not in known:
                guess = None if cls.otherwise and name in declared(Options) else closest(name, known)
                hint = f"did you mean {guess}?" if guess else cls.otherwise or f"there are {', '.join(known)}"
                raise CepheidError(f"no option '{name}' for {cls.who}", hint=hint)
        options = read_options(cls, keywords)
        if options.engine not in cls.engines:
            hint = f"use {' or '.join(cls.engines)}"
            raise EngineError(f"engine '{options.engine}' cannot run {cls.who}", hint=hint)
        if options.output not in OUTPUTS_OF_PATTERNS:
            hint = f"use {' or '.join(OUTPUTS_OF_PATTERNS)}"
            raise CepheidError(f"output={options.output!r} is not for {cls.who}", hint=hint)
        return options

    @property
    def counts(self) -> bool:
        """Is the number of matches wanted instead of them?"""
        return self.output == "count"

    @property
    def limits(self) -> Limits:
        """How much it may produce."""
        return self.part(Limits)

    def check_place(self, here: str | None = None, live: bool = False) -> Self:
        """An error for options of Spark batches or of streams, unless it runs as one; `live` has some of them."""
        given = given_options(self)
        for where, kind in (*ELSEWHERE.items(), (STREAMS, RowStreamOptions)):
            for name, (_, said) in declared(kind).items():
                if name in given and where != here and not (live and said.live):
                    raise CepheidError(f"{name} is an option of {where}", hint="leave it out here")
        return self


@dataclass(frozen=True)
class RowStreamOptions:
    """Those of a MATCH_RECOGNIZE clause over a stream."""

    max_rows: int | None = option(
        None,
        whole(1),
        "the number of rows of a partition that may wait at a time, for a clause without WITHIN",
        languages=(MATCH_RECOGNIZE,),
        example="1000",
        live=True,
    )


@dataclass(frozen=True)
class RowOptions(PatternOptions, RowStreamOptions):
    """The options of a MATCH_RECOGNIZE clause."""

    language = MATCH_RECOGNIZE
    who = "a MATCH_RECOGNIZE clause"
    engines = ("auto", "preferred", "reference")
    otherwise = "PARTITION BY and ORDER BY name the columns"
    reasons: ClassVar[Mapping[str, tuple[str, str]]] = {
        "max_partial_matches": (
            "a row pattern follows one partial match at a time",
            "leave it out; timeout bounds the search",
        )
    }

    unsafe_functions: bool = option(
        False,
        flag,
        "`True`: a clause may call functions of Spark that are not known to be pure",
        languages=(MATCH_RECOGNIZE,),
    )


@dataclass(frozen=True)
class FlinkOptions(PatternOptions, TextOptions):
    """The options of a Flink pattern."""

    language = FLINK
    who = "a Flink pattern"
    engines = ("auto", "automaton", "reference")

    max_partial_matches: int = option(
        10_000_000, whole(1), "the maximum number of runs that are open at a time", languages=(FLINK,)
    )  # a run takes some hundred bytes
    partition_by: tuple[str, ...] = option(
        (), names, "one or several columns, like Flink's `keyBy`", languages=(FLINK,), example='"id"'
    )
    partial: bool = option(
        False,
        flag,
        "`True`: also report runs whose window closed before they were complete, with `timed_out`, `waiting_for` and "
        "`given_up`",
        languages=(FLINK,),
    )

    def in_memory(self, columns: Any) -> Self:
        """In memory, events of one time are taken in row order anyway: tiebreak="row" asks for nothing more."""
        if "row" in columns.names:
            return self
        return replace(self, tiebreak=tuple(name for name in self.tiebreak if name != "row"))


# --- Spark ----------------------------------------------------------------------------------------------------------


def spark_options(keywords: Mapping[str, object], streaming: bool) -> tuple[Options, BatchOptions | StreamOptions]:
    """The options of `match` on Spark: those for every table, and those for a batch or a stream."""
    kind: type[BatchOptions] | type[StreamOptions] = StreamOptions if streaming else BatchOptions
    elsewhere = {where: other for where, other in ELSEWHERE.items() if other is not kind}
    own = {name: value for name, value in keywords.items() if name in options_of(kind)}
    rest = {name: value for name, value in keywords.items() if name not in own}
    for name in rest:  # a misspelt option may be meant for either
        if name not in options_of(Options) and not any(name in options_of(other) for other in elsewhere.values()):
            guess = closest(name, [*options_of(Options), *options_of(kind)])
            if guess:
                raise CepheidError(f"no option '{name}'; did you mean {guess}?")
    options = Options.from_keywords(rest, elsewhere)
    if streaming:
        refuse_output(options, "a stream")
    return options, read_options(kind, own)


def check_alone(output: str, query: object) -> None:
    """What is counted or compressed is one query's."""
    if output != "rows" and isinstance(query, Mapping):
        message = f"output={output!r} supports one query at a time"
        raise CepheidError(message, hint="give each query SUMMARISE count(*), or match them one by one")


def refuse_output(options: Options, who: str) -> None:
    """Not everyone can return anything but rows."""
    if options.output != "rows":
        message = f"output={options.output!r} is for tables, and {who} returns rows"
        raise CepheidError(message, hint="add SUMMARISE count(*) to the query; a stream needs EVERY, too")


# --- signatures and commands ------------------------------------------------------------------------------------------


def help_of(name: str) -> str:
    """What an option is for, as a plain sentence of the command line.

    >>> help_of("tz")
    "The query's time zone; otherwise the session's on Spark, that of the time column, or UTC."
    """
    said = next(declared(kind)[name][1] for kind in (Options, BatchOptions, StreamOptions) if name in declared(kind))
    text = re.sub(r", see \[[^]]*\]\([^)]*\)|; see below", "", said.help)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "")
    return f"{text[0].upper()}{text[1:]}."


def signature_with(call: Callable[..., object], *kinds: type) -> inspect.Signature:
    """The signature of a call with the options of some classes instead of **keywords, for help() and notebooks."""
    own = inspect.signature(call)
    kept = [each for each in own.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    known = {each.name for each in kept}
    every = {name: each.default for kind in kinds for name, (each, _) in declared(kind).items() if name not in known}
    more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value) for name, value in every.items()]
    return own.replace(parameters=[*kept, *more])

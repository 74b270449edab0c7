"""The shell around queries of every language, written once for every kind of table.

A language says how its query is bound to columns (`Language`), and what a bound query does (`BoundSearch`): it runs
over a table in memory, counts its matches there, and begins a search that goes from watermark to watermark. Tables in
memory and explanations are here, several queries at once in together.py, live queries in live_search.py, Spark in
spark/searches.py. What a language does in its own way, it overrides: query text (text.py) shares one pass and one state
among the queries of a call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from cepheid.budget import available_threads, unbounded, within_budget
from cepheid.errors import CepheidError, DataError
from cepheid.language.functions import registrations
from cepheid.language.schema import Schema
from cepheid.remembered import Remembered
from cepheid.runners.composition import check_sources
from cepheid.runners.options import BATCHES, STREAMS, Options, PatternOptions
from cepheid.runners.tables import as_local, columns_of, in_memory, is_spark, no_table

if TYPE_CHECKING:
    from cepheid.runners.live_face import LiveFace
    from cepheid.runners.spark.searches import Above
    from cepheid.runners.stream.searches import SearchStream


class BoundSearch(ABC):
    """A query that is bound to the columns of a table. Workers of Spark get a copy of it."""

    columns: pa.Schema

    @abstractmethod
    def run(self, events: pa.Table, threads: int | None = None) -> pa.Table:
        """The result over a table in memory; None: in as many threads as there are cores."""

    @abstractmethod
    def count(self, events: pa.Table) -> int:
        """How many matches there are in a table in memory."""

    def compressed(self, events: pa.Table) -> Any:
        """All matches in a table in memory as a shared structure, in a language that has it."""
        raise NotImplementedError


class StepSearch(BoundSearch):
    """One whose state over a stream is a search of its own, which goes from watermark to watermark."""

    options: PatternOptions
    functions: tuple[bytes, ...]  # the user's, pickled; a worker registers them first

    def run(self, events: pa.Table, threads: int | None = None) -> pa.Table:
        """The result over a table in memory, within the limits of the call."""
        with within_budget(self.options.limits.timeout, self.options.limits.max_bytes):
            return self.found(events, available_threads() if threads is None else threads)

    def count(self, events: pa.Table) -> int:
        """How many matches there are in a table in memory, within the limits of the call."""
        with within_budget(self.options.limits.timeout, self.options.limits.max_bytes):
            return self.counted(events)

    @abstractmethod
    def found(self, events: pa.Table, threads: int) -> pa.Table:
        """The result over a table in memory, in so many threads."""

    @abstractmethod
    def counted(self, events: pa.Table) -> int:
        """How many matches there are in a table in memory."""

    @property
    @abstractmethod
    def keys(self) -> tuple[str, ...]:
        """The columns that partition the events."""

    @property
    @abstractmethod
    def clock(self) -> Schema:
        """The events as streams see them: at least the time column."""

    @property
    @abstractmethod
    def result(self) -> pa.Schema:
        """The columns of the result."""

    @abstractmethod
    def check_stream(self) -> None:
        """An error if no stream can run it."""

    @abstractmethod
    def lateness(self) -> int | None:
        """How long after its end a match may become known, in steps of the time column; None: it cannot be said."""

    @abstractmethod
    def begin(self, delay: int = 0) -> SearchStream:
        """A search over events as they come, of which some come so much later than the newest."""


@dataclass(frozen=True)
class LiveStart:
    """How a live query starts: how late events may come, what it goes on from, how far ahead events may lie."""

    delay: Any = 0
    state: bytes | None = None
    max_ahead: Any = None


class Language(ABC):
    """A query in a language, before it meets a table."""

    shares: ClassVar[bool] = False  # do the queries of a call share one pass over the events?

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the queries whose matches it reads; none: it reads the events themselves."""
        return ()

    def of_events(self) -> Language:
        """The same over the matches that it reads, as events."""
        return self

    @abstractmethod
    def takes(self, name: str, value: Any) -> bool:
        """Is there such an option, with such a value, in this language?"""

    @abstractmethod
    def timed(self) -> Language:
        """The same as one of several: with `match_start` and `match_end` among the columns of its result."""

    @abstractmethod
    def read(self, keywords: Mapping[str, Any]) -> Options:
        """The options of a call over a table in memory."""

    @abstractmethod
    def bind(self, columns: pa.Schema, options: Any) -> BoundSearch:
        """The query over the columns of a table."""

    def bound(self, columns: pa.Schema, options: Any) -> BoundSearch:
        """The same for a call over a table in memory, which may share it with others."""
        return self.bind(columns, options)

    @abstractmethod
    def explain(self, events: Any, keywords: Mapping[str, Any], analyze: bool = False) -> str:
        """How the query is run, over a table if there is one."""

    @abstractmethod
    def match_spark(self, df: Any, keywords: Mapping[str, Any]) -> Any:
        """The result over a Spark table, batch or stream; or how many matches there are."""

    @abstractmethod
    def live(self, given: Any, start: LiveStart, keywords: Mapping[str, Any]) -> LiveFace:
        """The query over events of a schema, as they come."""

    # --- several queries of one language, in the pass that they share ------------------------------------------------

    @abstractmethod
    def match_each(
        self, queries: Mapping[str, Any], table: pa.Table, keywords: Mapping[str, Any], known: Mapping[str, pa.Table]
    ) -> dict[str, pa.Table]:
        """The results over a table in memory; `known` are those of earlier passes."""

    @abstractmethod
    def match_spark_each(
        self, queries: Mapping[str, Any], df: Any, keywords: Mapping[str, Any], above: Above | None = None
    ) -> Any:
        """The common result over a Spark table; of a stream also of queries of later passes that read this one."""

    @abstractmethod
    def live_each(
        self, queries: Mapping[str, Any], given: Any, start: LiveStart, keywords: Mapping[str, Any]
    ) -> LiveFace:
        """The queries over events of a schema, as they come."""


_bound = Remembered[tuple[Language, BoundSearch]](most=64)


class PatternLanguage(Language):
    """A language whose bound queries are searches of their own."""

    options: ClassVar[type[PatternOptions]]

    @property
    @abstractmethod
    def subject(self) -> object:
        """The clause or pattern, which never changes."""

    @property
    def known_by(self) -> Hashable:
        """What tells the query from others; `bound` keeps the query itself, so that no other gets its identity."""
        return id(self.subject)

    @abstractmethod
    def bind(self, columns: pa.Schema, options: Any) -> StepSearch:
        """The query over the columns of a table."""

    def bound(self, columns: pa.Schema, options: Any) -> BoundSearch:
        """The same, kept for further calls: binding took a third of the time of a call over some thousand events."""
        key = (self.known_by, columns, options, registrations())
        return _bound.get(key, lambda: (self, self.bind(columns, options)))[1]

    @abstractmethod
    def times(self, options: Any) -> tuple[str, ...]:
        """The columns that hold times, as far as the query or the options name them."""

    @abstractmethod
    def described(self, columns: pa.Schema | None, options: Any) -> str:
        """How the query is run, over these columns or in general."""

    @abstractmethod
    def rows_spark(self, df: Any, options: Any, above: Above | None = None) -> Any:
        """The result over a Spark table, batch or stream; of a stream also that of queries that read it."""

    @abstractmethod
    def count_spark(self, df: Any, options: Any) -> int:
        """How many matches there are in a Spark table."""

    def asked(self, keywords: Mapping[str, Any]) -> PatternOptions:
        """The options of a call; an error for one that the language does not have."""
        return self.options.from_keywords(keywords)

    def takes(self, name: str, value: Any) -> bool:
        """Is it an option of this language?"""
        return self.options.takes(name, value)

    def read(self, keywords: Mapping[str, Any]) -> PatternOptions:
        """The options of a call over a table in memory."""
        return self.asked(keywords).check_place()

    def explain(self, events: Any, keywords: Mapping[str, Any], analyze: bool = False) -> str:
        """How the query is run and, with `analyze`, how many events it saw and matches it found."""
        options = self.asked(keywords)
        if events is None:
            return self.described(None, options)
        columns = columns_of(events)
        if is_spark(events):
            check_analyze(analyze)
            return self.described(columns, options)
        text = self.described(columns, options.in_memory(columns))
        if not analyze:
            return text
        table = in_memory(events)
        number = self.bind(columns, options.in_memory(columns)).count(table)
        return f"{text}\n\nActual\n  events{table.num_rows:>10,}\n  matches{number:>9,}"

    def match_spark(self, df: Any, keywords: Mapping[str, Any]) -> Any:
        """The result over a Spark table, or how many matches there are."""
        options = self.asked(keywords).check_place(STREAMS if df.isStreaming else BATCHES)
        if not options.counts:
            return self.rows_spark(df, options)
        if df.isStreaming:
            raise CepheidError("output='count' is for tables, and a stream returns rows", hint="leave it out")
        return self.count_spark(df, options)

    def live(self, given: Any, start: LiveStart, keywords: Mapping[str, Any]) -> LiveFace:
        """The query over events of a schema, as they come."""
        from cepheid.runners.live_search import live_search

        return live_search(self, given, start, keywords)

    def match_each(
        self, queries: Mapping[str, Any], table: pa.Table, keywords: Mapping[str, Any], known: Mapping[str, pa.Table]
    ) -> dict[str, pa.Table]:
        """The results over a table in memory."""
        return {name: match_events(query, table, keywords) for name, query in queries.items()}

    def match_spark_each(
        self, queries: Mapping[str, Any], df: Any, keywords: Mapping[str, Any], above: Above | None = None
    ) -> Any:
        """The result of one query as rows of the common one."""
        from cepheid.runners.spark.together import named

        ((name, query),) = queries.items()
        if above is not None:
            return query.rows_spark(df, query.asked(keywords).check_place(STREAMS), above)
        return named(name, query.match_spark(df, keywords))

    def live_each(
        self, queries: Mapping[str, Any], given: Any, start: LiveStart, keywords: Mapping[str, Any]
    ) -> LiveFace:
        """The one query over events of a schema."""
        (query,) = queries.values()
        found: LiveFace = query.live(given, start, keywords)
        return found


def check_analyze(analyze: bool) -> None:
    """An error for a run that would only be explained, on Spark."""
    if analyze:
        raise DataError("analyze=True counts what a run saw, and this would start one on Spark", hint="leave it out")


def match_events(query: Language, events: Any, keywords: Mapping[str, Any]) -> Any:
    """The result of a query over a table, as a table of the same kind; or how many matches there are."""
    check_sources(query)
    if is_spark(events):
        with unbounded():
            return query.match_spark(events, keywords)
    local = as_local(events)
    if local is None:
        raise no_table(events)
    options = query.read(keywords)
    search = query.bound(local.arrow.schema, options.in_memory(local.arrow.schema))
    if options.output == "rows":
        return local.back(search.run(local.arrow))
    return search.count(local.arrow) if options.output == "count" else search.compressed(local.arrow)

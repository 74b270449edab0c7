"""The shell around queries in other languages than query text, written once for every kind of table.

A language says how its query is bound to columns (`Language`), and what a bound query does (`BoundSearch`): it runs
over a table in memory, counts its matches there, and begins a search that goes from watermark to watermark. Tables in
memory and explanations are here, live queries in live_search.py, Spark in spark/searches.py.

Query text has plans instead (local.py). Its steps over streams and those of a `BoundSearch` are both a `Stepper`
(stream/incremental.py), with one clock, one codec of states and one set of metrics.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow as pa

from cepheid.budget import unbounded
from cepheid.errors import CepheidError
from cepheid.language.schema import Schema
from cepheid.runners.dispatch import is_spark
from cepheid.runners.options import PatternOptions
from cepheid.runners.stream.searches import SearchStream
from cepheid.runners.tables import as_local, columns_of, no_table


class BoundSearch(ABC):
    """A query that is bound to the columns of a table. Workers of Spark get a copy of it."""

    columns: pa.Schema
    functions: tuple[bytes, ...]  # the user's, pickled; a worker registers them first

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
    def run(self, events: pa.Table, threads: int = 1) -> pa.Table:
        """The result over a table in memory."""

    @abstractmethod
    def count(self, events: pa.Table) -> int:
        """How many matches there are in a table in memory."""

    @abstractmethod
    def check_stream(self) -> None:
        """An error if no stream can run it."""

    @abstractmethod
    def lateness(self) -> int | None:
        """How long after its end a match may become known, in steps of the time column; None: it cannot be said."""

    @abstractmethod
    def begin(self, delay: int = 0) -> SearchStream:
        """A search over events as they come, of which some come so much later than the newest."""


class Language(ABC):
    """A query in a language, before it meets a table."""

    options: ClassVar[type[PatternOptions]]

    @abstractmethod
    def bind(self, columns: pa.Schema, options: Any) -> BoundSearch:
        """The query over the columns of a table."""

    @abstractmethod
    def times(self, options: Any) -> tuple[str, ...]:
        """The columns that hold times, as far as the query or the options name them."""

    @abstractmethod
    def described(self, columns: pa.Schema | None, options: Any) -> str:
        """How the query is run, over these columns or in general."""

    @abstractmethod
    def match_spark(self, df: Any, options: Any) -> Any:
        """The result over a Spark table, batch or stream."""

    @abstractmethod
    def count_spark(self, df: Any, options: Any) -> int:
        """How many matches there are in a Spark table."""


def match_table(language: Language, events: Any, keywords: Mapping[str, Any], threads: int = 1) -> Any:
    """The result of a query over a table, as a table of the same kind; or how many matches there are."""
    options = language.options.from_keywords(keywords)
    if is_spark(events):
        with unbounded():
            if not options.counts:
                return language.match_spark(events, options)
            if events.isStreaming:
                raise CepheidError("output='count' is for tables, and a stream returns rows", hint="leave it out")
            return language.count_spark(events, options)
    options.check_place()
    local = as_local(events)
    if local is None:
        raise no_table(events)
    search = language.bind(local.arrow.schema, options.in_memory(local.arrow.schema))
    return search.count(local.arrow) if options.counts else local.back(search.run(local.arrow, threads))


def explain_query(language: Language, events: Any, keywords: Mapping[str, Any]) -> str:
    """How a query is run, over a table if there is one."""
    options = language.options.from_keywords(keywords)
    if events is None:
        return language.described(None, options)
    columns = columns_of(events)
    return language.described(columns, options if is_spark(events) else options.in_memory(columns))

"""Query text in the shell of all languages: the queries of a call share one pass over the events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.budget import unbounded
from cepheid.engine.data.shared import sharing
from cepheid.engine.engines import ENGINES
from cepheid.errors import QueryError
from cepheid.language import syntax as s
from cepheid.language.check import check
from cepheid.language.checked import CheckedQuery
from cepheid.language.partial import COMPLETE, partial_queries, with_length
from cepheid.plan.options import options_of
from cepheid.runners.languages import BoundSearch, Language, LiveStart, check_analyze
from cepheid.runners.local import explain_query, explain_table, prepare, run_each, run_table
from cepheid.runners.options import BatchOptions, Options, StreamOptions, check_alone
from cepheid.runners.tables import as_local, is_spark, no_table
from cepheid.runners.ties import ties_of, warn_of_ties, with_ties
from cepheid.runners.totals import count_matches

if TYPE_CHECKING:
    from cepheid.runners.compressed import CompressedResult
    from cepheid.runners.live_face import LiveFace
    from cepheid.runners.spark.searches import Above


@dataclass(frozen=True)
class TextSearch(BoundSearch):
    """A query over the columns of a table. It is bound when its records have been read as events."""

    query: CheckedQuery
    columns: pa.Schema
    options: Options

    def run(self, events: pa.Table, threads: int | None = None) -> pa.Table:
        """The result over a table in memory."""
        return run_table(self.query, events, self.options)

    def count(self, events: pa.Table) -> int:
        """How many matches there are."""
        prepared = prepare(self.query, events, self.options)
        number, ties = with_ties(prepared.plan, prepared.events, lambda: count_matches(prepared.plan, prepared.events))
        warn_of_ties([ties])
        return number

    def compressed(self, events: pa.Table) -> CompressedResult:
        """All matches as a shared structure."""
        from cepheid.runners.compressed import run_compressed

        prepared = prepare(self.query, events, self.options)
        warn_of_ties([ties_of(prepared.plan, prepared.events)])
        return run_compressed(prepared)


@dataclass(frozen=True)
class TextLanguage(Language):
    """A query of query text."""

    query: CheckedQuery
    shares = True

    @property
    def sources(self) -> tuple[str, ...]:
        """The queries of FROM."""
        return self.query.sources

    def of_events(self) -> TextLanguage:
        """The query without FROM."""
        alone = replace(self.query.syntax, sources=())
        return TextLanguage(CheckedQuery(alone, self.query.text, self.query.parameters))

    def takes(self, name: str, value: object) -> bool:
        """Is it an option of query text?"""
        known = any(name in options_of(kind) for kind in (Options, BatchOptions, StreamOptions))
        return known and (name != "engine" or value == "auto" or value in ENGINES)

    def timed(self) -> TextLanguage:
        """The query itself: its matches have times."""
        return self

    def read(self, keywords: Mapping[str, object]) -> Options:
        """The options of a call over a table in memory."""
        return Options.from_keywords(keywords)

    def bind(self, columns: pa.Schema, options: Options) -> BoundSearch:
        """The query over the columns of a table."""
        return TextSearch(self.query, columns, options)

    def explain(self, events: object, keywords: Mapping[str, object], analyze: bool = False) -> str:
        """The logical and physical plan and, with `analyze`, how many events each step saw."""
        if events is None:
            return explain_query(self.query, Options.from_keywords(keywords))
        local = as_local(events)
        if local is None and is_spark(events):
            from cepheid.runners.spark.match import explain_spark

            check_analyze(analyze)
            with unbounded():
                return explain_spark(events, self.query, keywords)
        if local is None:
            raise no_table(events)
        return explain_table(self.query, local.arrow, Options.from_keywords(keywords), analyze)

    def match_spark(self, df: object, keywords: Mapping[str, object]) -> Any:
        """The result over a Spark table, or how many matches there are, or these as a shared structure."""
        from cepheid.runners.spark.match import match_spark

        return match_spark(df, self.query, keywords)

    def live(self, given: object, start: LiveStart, keywords: Mapping[str, object]) -> LiveFace:
        """The query over events of a schema, as they come."""
        from cepheid.runners.live import live_query

        return live_query(self.query, given, start, keywords)

    def match_each(
        self, queries: Mapping[str, Any], table: pa.Table, keywords: Mapping[str, object], known: Mapping[str, pa.Table]
    ) -> dict[str, pa.Table]:
        """The results over a table in memory."""
        return run_each(_checked(queries), table, Options.from_keywords(keywords), known)

    def match_spark_each(
        self, queries: Mapping[str, Any], df: object, keywords: Mapping[str, object], above: Above | None = None
    ) -> Any:
        """The common result over a Spark table."""
        from cepheid.runners.spark.match import match_spark

        return match_spark(df, _checked(queries), keywords)

    def live_each(
        self, queries: Mapping[str, Any], given: object, start: LiveStart, keywords: Mapping[str, object]
    ) -> LiveFace:
        """The queries over events of a schema, as they come."""
        from cepheid.runners.live import live_query

        return live_query(_checked(queries), given, start, keywords)


def _checked(queries: Mapping[str, TextLanguage]) -> dict[str, CheckedQuery]:
    return {name: each.query for name, each in queries.items()}


@dataclass(frozen=True)
class PartialSearch(BoundSearch):
    """A query with OUTPUT PARTIAL over the columns of a table: one query for matches, others for what timed out."""

    language: PartialLanguage
    columns: pa.Schema
    options: Options

    def run(self, events: pa.Table, threads: int | None = None) -> pa.Table:
        """The matches, and the runs that timed out."""
        from cepheid.runners.partial import united

        with sharing():
            found = run_each(self.language.parts, events, self.options)
        return united(found, self.language.whole, self.columns, self.options)

    def count(self, events: pa.Table) -> int:
        """How many matches there are: runs that timed out are none."""
        return TextSearch(self.language.parts[COMPLETE], self.columns, self.options).count(events)

    def compressed(self, events: pa.Table) -> Any:
        """There is none of several queries."""
        return check_alone("compressed", self.language.parts)


class PartialLanguage(TextLanguage):
    """A query of query text with OUTPUT PARTIAL."""

    @property
    def parts(self) -> dict[str, CheckedQuery]:
        """The queries that it stands for."""
        found = partial_queries(self.query.syntax)
        return {name: CheckedQuery(check(part), None, self.query.parameters) for name, part in found.items()}

    @property
    def whole(self) -> s.QuerySyntax:
        """The query with the length of its window as a number."""
        return with_length(self.query.syntax, self.query.parameters)

    def timed(self) -> TextLanguage:
        """It is never one of several."""
        raise QueryError("OUTPUT PARTIAL runs one query at a time", hint="match this query alone", code="bad-partial")

    def bind(self, columns: pa.Schema, options: Options) -> BoundSearch:
        """The query over the columns of a table."""
        return PartialSearch(self, columns, options)

    def match_spark(self, df: object, keywords: Mapping[str, object]) -> Any:
        """The matches, and the runs that timed out."""
        from cepheid.runners.partial import finished_frame
        from cepheid.runners.spark.match import match_spark
        from cepheid.runners.spark.session import arrow_schema

        options = Options.from_keywords(
            {name: value for name, value in keywords.items() if name in options_of(Options)}
        )
        if options.output == "count":
            return match_spark(df, self.parts[COMPLETE], keywords)
        return finished_frame(match_spark(df, self.parts, keywords), self.whole, arrow_schema(df), options)

    def live(self, given: object, start: LiveStart, keywords: Mapping[str, object]) -> LiveFace:
        """The query over events of a schema, as they come."""
        from cepheid.runners.live import live_query
        from cepheid.runners.partial import PartialLive

        inner = live_query(self.parts, given, start, keywords)
        return PartialLive(inner, self.whole, inner.reader.schema, Options.from_keywords(keywords))


def text_language(query: CheckedQuery) -> TextLanguage:
    """What runs a query of query text."""
    partial = query.syntax.output.mode is s.OutputMode.PARTIAL
    return PartialLanguage(query) if partial else TextLanguage(query)

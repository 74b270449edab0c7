"""The public face: queries as objects, and `match` for every kind of table."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, overload

from cepheid.errors import CepheidError, QueryError, closest
from cepheid.language import syntax as s
from cepheid.language.check import check
from cepheid.language.checked import CheckedQuery
from cepheid.language.flink.pattern import Pattern as FlinkPattern
from cepheid.language.forecasts import LEAST
from cepheid.language.match_recognize.dialects import known_dialect
from cepheid.language.match_recognize.from_query import clause_of
from cepheid.language.match_recognize.parse import is_clause
from cepheid.language.sase.parse import parse
from cepheid.pattern_query import FlinkQuery, LanguageQuery, PatternQuery, RowQuery, log_match, row_query
from cepheid.plan.drawing import query_html, query_svg
from cepheid.plan.options import bounded
from cepheid.runners.keywords import Length, MatchKeywords, PlanKeywords
from cepheid.runners.options import BatchOptions, Options, StreamOptions, signature_with

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from cepheid.diagnose.diagnosis import Diagnosis
    from cepheid.language.build import Pattern
    from cepheid.model import Model
    from cepheid.model.check import Check
    from cepheid.runners.compressed import CompressedResult
    from cepheid.runners.keywords import FlinkKeywords
    from cepheid.runners.languages import Language
    from cepheid.runners.live_face import LiveFace as Live

# A text that is a MATCH_RECOGNIZE clause gives a RowQuery, a pattern of cepheid.flink a FlinkQuery.
AnyQuery: TypeAlias = "Query | Pattern | str"
OtherQuery: TypeAlias = "PatternQuery | FlinkPattern"


class Explanation(str):
    """What `explain` says: a text, which a notebook shows with the drawing of the automaton."""

    syntax: s.QuerySyntax

    def __new__(cls, text: str, syntax: s.QuerySyntax) -> Explanation:
        explanation = super().__new__(cls, text)
        explanation.syntax = syntax
        return explanation

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.syntax

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        _, _, plans = self.partition("\n\n")  # after the query, which the drawing already has
        return query_html(self.syntax, plans)


class Query(CheckedQuery, LanguageQuery):
    """A checked query. Equal queries have equal syntax; `str` gives the canonical text."""

    # The options of query text have types, those of other languages are checked when they are read.
    @overload  # type: ignore[override]
    def match(self, events: Any, *, output: Literal["count"], **options: Unpack[MatchKeywords]) -> int: ...
    @overload
    def match(
        self, events: Any, *, output: Literal["compressed"], **options: Unpack[MatchKeywords]
    ) -> CompressedResult: ...
    @overload
    def match(
        self, events: pd.DataFrame, *, output: Literal["rows"] = ..., **options: Unpack[MatchKeywords]
    ) -> pd.DataFrame: ...
    @overload
    def match(
        self, events: pl.DataFrame | pl.LazyFrame, *, output: Literal["rows"] = ..., **options: Unpack[MatchKeywords]
    ) -> pl.DataFrame: ...
    @overload
    def match(self, events: Any, *, output: Literal["rows"] = ..., **options: Unpack[MatchKeywords]) -> Any: ...

    def match(self, events: object, **options: object) -> Any:
        """The matches of this query; see `cepheid.match`."""
        return super().match(events, **options)

    @property
    def language(self) -> Language:
        """What runs it."""
        from cepheid.runners.text import text_language

        return text_language(self)

    @property
    def unit(self) -> str:
        """What a row of its result is."""
        return "match" if self.syntax.summary is None else "total"

    @property
    def keys(self) -> tuple[str, ...]:
        """The attributes of its equivalence tests."""
        parts = [part for part in s.conjoined(self.syntax.where) if isinstance(part, s.Equivalence)]
        return tuple(dict.fromkeys(name for part in parts for name, _ in part.tests))

    def with_parameters(self, parameters: Mapping[str, object] | None) -> Query:
        """The same with more values; one that the query does not name is a mistake."""
        if parameters is None:
            return self
        found = query(self, parameters)
        _check_used(parameters, [found])
        return found

    @bounded
    def explain(  # type: ignore[override]
        self, events: object = None, *, analyze: bool = False, **options: Unpack[MatchKeywords]
    ) -> Explanation:
        """The logical and physical plan, the engine and why; with `analyze=True` also what each step saw."""
        _check_near(options, "analyze")
        return Explanation(super().explain(events, analyze=analyze, **options), self.syntax)

    @bounded
    def why(  # type: ignore[override]
        self, events: object, *, most_events: int | None = None, **options: Unpack[PlanKeywords]
    ) -> Diagnosis:
        """Why it finds nothing, or too little; see `cepheid.why`."""
        from cepheid.diagnose.diagnose import MOST_EVENTS, diagnose

        keywords: dict[str, Any] = dict(options)
        asked = self.with_parameters(keywords.pop("parameters", None))
        return diagnose(events, asked, MOST_EVENTS if most_events is None else most_events, keywords)

    def live(  # type: ignore[override]
        self,
        schema: object,
        *,
        delay: Length = 0,
        state: bytes | None = None,
        max_ahead: Length | None = None,
        **options: Unpack[PlanKeywords],
    ) -> Live:
        """The query over events as they come; see `cepheid.live`."""
        return super().live(schema, delay=delay, state=state, max_ahead=max_ahead, **options)

    def to_match_recognize(self, dialect: str = "spark", *, time: str = "ts", type: str | None = "type") -> str:
        """A MATCH_RECOGNIZE clause with the same matches, for `spark` (Cepheid itself), `trino`, `oracle` or `flink`.

        A query that no clause can express is a QueryError that names what is in the way. Rows of one partition must
        have different times.

        >>> text = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [id] } WITHIN 5 minutes RETURN b.x AS x"
        >>> print(query(text).to_match_recognize("trino"))
        MATCH_RECOGNIZE (
          PARTITION BY "id"
          ORDER BY "ts"
          MEASURES
            FIRST("ts") AS "match_start",
            LAST("ts") AS "match_end",
            "b"."x" AS "x"
          ONE ROW PER MATCH
          AFTER MATCH SKIP TO NEXT ROW
          PATTERN ("a" "skip1"* "b")
          DEFINE
            "a" AS ("type" = 'A') AND "id" IS NOT NULL,
            "b" AS ("type" = 'B') AND "ts" - FIRST("ts") < INTERVAL '5' MINUTE,
            "skip1" AS NOT COALESCE(("type" = 'B'), FALSE)
        )
        """
        return clause_of(self.syntax, self.text, self.parameters, dialect=dialect, time=time, type=type)

    def svg(self, events: object = None) -> str:
        """The automaton as a drawing, in the colours of where it is shown."""
        return query_svg(self.syntax)

    def __repr__(self) -> str:
        return f"cepheid.query({str(self)!r})"

    def _repr_html_(self) -> str:
        return query_html(self.syntax)


@overload
def query(text: AnyQuery, parameters: Mapping[str, Any] | None = None) -> Query: ...
@overload
def query(text: RowQuery, parameters: Mapping[str, Any] | None = None) -> RowQuery: ...
@overload
def query(text: FlinkQuery | FlinkPattern, parameters: Mapping[str, Any] | None = None) -> FlinkQuery: ...


def query(text: object, parameters: Mapping[str, object] | None = None) -> Query | RowQuery | FlinkQuery:
    """A query from its text, or from a pattern built in Python; a QueryError points at what is wrong.

    The text is in Cepheid's own language, or a MATCH_RECOGNIZE clause.

    `parameters` gives values to bare words in the text, such as T in `WITHIN T`.

    >>> print(query("pattern seq(Shelf a, ~(Register b), Exit c) where [tag] within 12 hours"))
    PATTERN SEQ(Shelf a, !(Register b), Exit c)
    WHERE [tag]
    WITHIN 12 hours
    """
    check_parameters(parameters)
    if isinstance(text, RowQuery):
        return text
    if isinstance(text, Query):
        return Query(text.syntax, text.text, {**text.parameters, **(parameters or {})})
    if hasattr(text, "to_syntax"):
        return Query(text.to_syntax(), None, parameters)
    if isinstance(text, FlinkPattern):
        return FlinkQuery(text, parameters or {})
    if isinstance(text, FlinkQuery):
        return FlinkQuery(text.pattern, {**text.parameters, **(parameters or {})})
    if not isinstance(text, str):
        hint = "for example 'PATTERN SEQ(Shelf a, Exit b) WHERE [tag] WITHIN 1 hour'"
        if isinstance(text, list | tuple):
            hint = "several queries have names: {'thefts': query, ...}"
        elif hasattr(text, "columns") or hasattr(text, "schema"):
            hint = "the events come first: cepheid.match(events, query)"
        raise QueryError(f"a query is a text or a pattern, not {type(text).__name__}", hint=hint, code="not-a-query")
    if is_clause(text):
        return row_query(text)
    return Query(_checked(text), text, parameters)


@lru_cache(maxsize=256)
def _checked(text: str) -> s.QuerySyntax:
    """The syntax of a text. It is kept, as it never changes: on small tables parsing took a third of a call's time."""
    return check(parse(text), text)


def check_parameters(parameters: object) -> None:
    """Parameters have names."""
    if parameters is not None and not isinstance(parameters, Mapping):
        raise QueryError(
            f"parameters={parameters!r} is not a mapping of names to values",
            hint="for example parameters={'T': 3600}",
            code="bad-parameter",
        )


def _check_used(parameters: Mapping[str, object] | None, queries: Iterable[object]) -> None:
    """A parameter that no query names is a mistake."""
    if not parameters:
        return
    text = "\n".join(map(str, queries))
    for name in parameters:
        if not re.search(rf"\b{re.escape(name)}\b", text):
            raise QueryError(
                f"parameters={{'{name}': ...}}: the query has no parameter '{name}'",
                hint=f"write {name} in the query where the value belongs, or leave it out",
                code="bad-parameter",
            )


def _check_near(options: Mapping[str, object], own: str) -> None:
    """An option that is misspelt may be one of this call alone."""
    for name in options:
        if name not in MatchKeywords.__annotations__ and closest(name, [own]):
            raise CepheidError(f"no option '{name}'", hint=f"did you mean {own}?")


def sase_query(
    text: Any, parameters: Mapping[str, object] | None = None, refusal: str = "{} cannot be used here"
) -> Query:
    """The same for what takes queries in Cepheid's own language only; `refusal` says why, with {} for the language."""
    found: Query | PatternQuery = query(text, parameters)
    if isinstance(found, RowQuery):
        raise QueryError(refusal.format("a MATCH_RECOGNIZE clause"), code="row-pattern")
    if isinstance(found, FlinkQuery):
        raise QueryError(refusal.format("a Flink pattern"), code="flink-pattern")
    assert isinstance(found, Query)
    return found


@overload
def match(events: Any, query: FlinkPattern, **options: Unpack[FlinkKeywords]) -> Any: ...
@overload
def match(events: Any, query: AnyQuery, *, output: Literal["count"], **options: Unpack[MatchKeywords]) -> int: ...
@overload
def match(
    events: Any, query: AnyQuery, *, output: Literal["compressed"], **options: Unpack[MatchKeywords]
) -> CompressedResult: ...
@overload
def match(
    events: pd.DataFrame,
    query: AnyQuery | Mapping[str, AnyQuery],
    *,
    output: Literal["rows"] = ...,
    **options: Unpack[MatchKeywords],
) -> pd.DataFrame: ...
@overload
def match(
    events: pl.DataFrame | pl.LazyFrame,
    query: AnyQuery | Mapping[str, AnyQuery],
    *,
    output: Literal["rows"] = ...,
    **options: Unpack[MatchKeywords],
) -> pl.DataFrame: ...
@overload
def match(
    events: Any,
    query: AnyQuery | Mapping[str, AnyQuery] | Any,
    *,
    output: Literal["rows"] = ...,
    **options: Unpack[MatchKeywords],
) -> Any: ...


@bounded
def match(events: object, query: Any, **options: Any) -> Any:
    """The matches of a query in a table of events, as a table of the same kind.

    `events` is a pyarrow, pandas, polars or PySpark table. Several queries, {"name": query, ...}, share one pass, and
    the result says in column `query` which one a match is of. See docs/api.md for the options.

    >>> import pyarrow as pa
    >>> events = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "C"], "id": [7, 7, 7]})
    >>> match(events, "PATTERN SEQ(A a, C c) WHERE [id] WITHIN 5").select(["match_start", "match_end"]).to_pylist()
    [{'match_start': 1, 'match_end': 3}]
    """
    from cepheid.runners.together import match_changing, match_together, may_change

    parameters = options.pop("parameters", None)
    if isinstance(query, str) and is_clause(query):
        query = row_query(query, known_dialect(options.pop("dialect", "spark")))
    elif "dialect" in options:
        raise CepheidError("dialect is an option of MATCH_RECOGNIZE clauses", hint="leave it out here")
    if not isinstance(query, Mapping) and not may_change(query):
        asked: LanguageQuery = as_query(query)
        return asked.with_parameters(parameters).match(events, **options)
    begin = time.perf_counter()
    if isinstance(query, Mapping):
        queries = _named_queries(query, parameters)
        result = match_together({name: each.language for name, each in queries.items()}, events, options)
    else:
        result = match_changing(query, events, options)
    log_match(result, time.perf_counter() - begin)
    return result


def _named_queries(named: Mapping[str, Any], parameters: Mapping[str, object] | None) -> dict[str, LanguageQuery]:
    """Several queries with names; a parameter that none of them names is a mistake."""
    queries: dict[str, Any] = {name: as_query(each, parameters) for name, each in named.items()}
    _check_used(parameters, queries.values())
    return queries


@bounded
def fit(
    history: object,
    query: AnyQuery,
    *,
    loss: float | Mapping[str, float] | None = None,
    happens: Mapping[str, float] | None = None,
    negatives: Literal["pooled", "em"] = "pooled",
    loss_by: str | None = None,
    loss_by_hour: bool = False,
    **options: Unpack[PlanKeywords],
) -> Model:
    """A loss and gap model for a query, learned from past events: a table of the same kind as `match` takes.

    `loss` states known loss rates (a number, or one per variable) and `happens` how often components happen at all (a
    share per variable); what is not stated is told from the lengths of trips. `negatives="em"` infers the loss of
    negated components so, too; `loss_by` names an attribute, such as the reader, whose values share one loss, and
    with `loss_by_hour` losses depend on the hour of the day. All other options are those of `match`.
    """
    from cepheid.engine.fitting.learn import Fitting
    from cepheid.runners.fit import fit_model

    keywords: dict[str, Any] = dict(options)
    parameters = keywords.pop("parameters", None)
    asked = sase_query(query, parameters, "{} has no losses to fit")
    return fit_model(history, asked, Fitting(loss, happens, negatives, loss_by, loss_by_hour), keywords)


def forecast(events: object, query: AnyQuery, *, at: object = None, **options: Unpack[PlanKeywords]) -> Any:
    """All partial matches that are open at an instant, with the probability that they complete, and when.

    `at` is the newest time of the table unless it is given; later events do not count. A row has the events that are
    held, `waiting_for`, `probability`, `expected` (the median of the completion instant, if it completes), `earliest`
    and `latest` (its 90% interval). Takes a pyarrow, pandas, polars or PySpark table, and the options of `match`.

    >>> import pyarrow as pa
    >>> from cepheid import Exponential, Model
    >>> events = pa.table({"ts": [0, 40], "type": ["Ordered", "Ordered"], "id": [1, 2]})
    >>> model = Model(gaps={"b": Exponential(mean=30, happens=0.9)})
    >>> found = forecast(events, "PATTERN SEQ(Ordered a, Paid b) WHERE [id] WITHIN 100", model=model)
    >>> [(row["a"]["id"], round(row["probability"], 2)) for row in found.to_pylist()]
    [(1, 0.61), (2, 0.87)]
    """
    from cepheid.runners.forecast import forecast_events

    keywords: dict[str, Any] = dict(options)
    asked = sase_query(query, keywords.pop("parameters", None), "{} has no model to forecast with")
    syntax = check(replace(asked.syntax, forecast=asked.syntax.forecast or LEAST), asked.text)
    return forecast_events(events, Query(syntax, asked.text, asked.parameters), at, keywords)


@bounded
def why(
    events: object, query: AnyQuery | OtherQuery, *, most_events: int | None = None, **options: Unpack[PlanKeywords]
) -> Diagnosis:
    """Explains why a query, or its text, finds nothing or too little in a pyarrow, pandas or polars table.

    It takes the options of `match`. Tables of more than `most_events` (two million) are sampled, and the diagnosis
    says how. `print` shows it as text, a notebook as tables.

    >>> import pyarrow as pa
    >>> events = pa.table({"ts": [98, 100, 120], "type": ["D", "C", "D"]})
    >>> for hint in why(events, "PATTERN SEQ(C c, D d) WITHIN 5").hints:
    ...     print(hint.text)
    D d comes after C c, but at least 20 later; those within the window come before it
    WITHIN 5 is too short: the closest needs 21
    """
    _check_near(options, "most_events")
    keywords: dict[str, Any] = dict(options)
    asked: LanguageQuery = as_query(query)  # type: ignore[arg-type]
    return asked.why(events, most_events=most_events, **keywords)


def live(
    query: AnyQuery | OtherQuery | Mapping[str, AnyQuery | OtherQuery],
    schema: object,
    *,
    delay: Length = 0,
    state: bytes | None = None,
    max_ahead: Length | None = None,
    **options: Unpack[PlanKeywords],
) -> Live:
    """A query, or several with names, over events as they come: the streaming step without Spark.

    `schema` says what events are like: a pyarrow schema, {"ts": int, "type": str, ...}, or a table with the same
    columns. `delay` says how much older than the newest event others may be when they come. `state` is what `save()`
    of an earlier one returned. `max_ahead` says how far ahead of the machine's clock an event may lie: one beyond is
    left out and counted, since all that come after it would be late.

    >>> doors = live("PATTERN SEQ(Shelf a, Exit b) WHERE [tag] WITHIN 9", {"ts": int, "type": str, "tag": int})
    >>> doors.send({"ts": 1, "type": "Shelf", "tag": 7})
    []
    >>> doors.send([{"ts": 3, "type": "Exit", "tag": 7}, {"ts": 4, "type": "Exit", "tag": 8}])[0]["b"]
    {'ts': 3, 'type': 'Exit', 'tag': 7}
    """
    keywords: dict[str, Any] = dict(options)
    if not isinstance(query, Mapping):
        asked: LanguageQuery = as_query(query)  # type: ignore[arg-type]
        return asked.live(schema, delay=delay, state=state, max_ahead=max_ahead, **keywords)
    from cepheid.runners.languages import LiveStart
    from cepheid.runners.live_many import live_together

    queries = _named_queries(query, keywords.pop("parameters", None))
    languages = {name: each.language for name, each in queries.items()}
    return live_together(languages, schema, LiveStart(delay, state, max_ahead), keywords)


@bounded
def check_model(model: Model, events: object, query_or_text: object, **options: Any) -> Check:
    """What a loss and gap model predicts of a table of events, beside what that shows: `model.check` calls it."""
    from cepheid.runners.fit import check_model as compare

    return compare(
        model, events, sase_query(query_or_text, options.pop("parameters", None), "{} has no losses to fit"), **options
    )


as_query = query  # where a parameter is called `query`
match.__signature__ = signature_with(match, Options, BatchOptions, StreamOptions)  # type: ignore[attr-defined]

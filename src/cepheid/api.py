"""The public face: queries as objects, and `match` for every kind of table."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cepheid.draw.automaton import automaton_svg
from cepheid.draw.notebook import query_html
from cepheid.errors import QueryError
from cepheid.language import syntax as s
from cepheid.language.bind import bind
from cepheid.language.bound import BoundQuery
from cepheid.language.check import check
from cepheid.language.match_recognize.parse import is_clause
from cepheid.language.printing import to_text
from cepheid.language.sase.parse import parse
from cepheid.language.schema import Schema
from cepheid.row_query import RowQuery, row_query

if TYPE_CHECKING:
    from cepheid.model import Model
    from cepheid.model.check import Check

_log = logging.getLogger("cepheid")


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


class Query:
    """A checked query. Equal queries have equal syntax; `str` gives the canonical text."""

    def __init__(
        self, syntax: s.QuerySyntax, text: str | None = None, parameters: Mapping[str, Any] | None = None
    ) -> None:
        self.syntax = syntax
        self.text = text
        self.parameters = dict(parameters or {})

    def match(self, events: Any, **options: Any) -> Any:
        """The matches of this query; see `cepheid.match`."""
        return match(events, self, **options)

    def explain(self, events: Any = None, **options: Any) -> Explanation:
        """The logical and physical plan, the engine and why; with `analyze=True` also what each step saw."""
        from cepheid.runners.dispatch import explain

        return Explanation(explain(self, events, **options), self.syntax)

    def why(self, events: Any, **options: Any) -> Any:
        """Why it finds nothing, or too little; see `cepheid.why`."""
        from cepheid.diagnose.diagnose import why

        return why(events, self, **options)

    def svg(self) -> str:
        """The automaton as a drawing, in the colours of where it is shown."""
        return automaton_svg(self.syntax)

    def bind(self, schema: Schema, parameters: Mapping[str, Any] | None = None) -> BoundQuery:
        """The query over events of a schema; errors point into the text it was written as."""
        return bind(self.syntax, schema, {**self.parameters, **(parameters or {})}, self.text)

    def __str__(self) -> str:
        return to_text(self.syntax)

    def __repr__(self) -> str:
        return f"cepheid.query({str(self)!r})"

    def _repr_html_(self) -> str:
        return query_html(self.syntax)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Query) and (self.syntax, self.parameters) == (other.syntax, other.parameters)

    def __hash__(self) -> int:
        return hash(self.syntax)


def query(text: Any, parameters: Mapping[str, Any] | None = None) -> Query | RowQuery:
    """A query from its text, or from a pattern built in Python; a QueryError points at what is wrong.

    `parameters` gives values to bare words in the text, such as T in `WITHIN T`.

    >>> print(query("pattern seq(Shelf a, ~(Register b), Exit c) where [tag] within 12 hours"))
    PATTERN SEQ(Shelf a, !(Register b), Exit c)
    WHERE [tag]
    WITHIN 12 hours
    """
    if isinstance(text, RowQuery):
        return text
    if isinstance(text, Query):
        return Query(text.syntax, text.text, {**text.parameters, **(parameters or {})})
    if hasattr(text, "to_syntax"):
        return Query(text.to_syntax(), None, parameters)
    if not isinstance(text, str):
        raise QueryError(f"a query is a text or a pattern, not a {type(text).__name__}", code="not-a-query")
    if is_clause(text):
        return row_query(text)
    return Query(check(parse(text), text), text, parameters)


def sase_query(
    text: Any,
    parameters: Mapping[str, Any] | None = None,
    refusal: str = "a MATCH_RECOGNIZE clause cannot be used here",
) -> Query:
    """The same for what takes no MATCH_RECOGNIZE clause."""
    found = query(text, parameters)
    if isinstance(found, RowQuery):
        raise QueryError(refusal, code="row-pattern")
    return found


def match(events: Any, query_or_text: Any, **options: Any) -> Any:
    """The matches of a query in a table of events, as a table of the same kind.

    `events` is a pyarrow, pandas, polars or PySpark table. Several queries, {"name": query, ...}, share one pass, and
    the result says in column `query` which one a match is of. See docs/api.md for the options.

    >>> import pyarrow as pa
    >>> events = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "C"], "id": [7, 7, 7]})
    >>> match(events, "PATTERN SEQ(A a, C c) WHERE [id] WITHIN 5").select(["match_start", "match_end"]).to_pylist()
    [{'match_start': 1, 'match_end': 3}]
    """
    from cepheid.runners.dispatch import run

    parameters = options.pop("parameters", None)
    begin = time.perf_counter()
    if isinstance(query_or_text, RowQuery) or (isinstance(query_or_text, str) and is_clause(query_or_text)):
        dialect = options.pop("dialect", "spark")
        rows = query_or_text if isinstance(query_or_text, RowQuery) else row_query(query_or_text, dialect)
        result = rows.match(events, **options)
    elif isinstance(query_or_text, Mapping):
        queries = {name: query(each, parameters) for name, each in query_or_text.items()}
        if any(isinstance(each, RowQuery) for each in queries.values()):
            raise QueryError("MATCH_RECOGNIZE clauses do not share a pass; match one at a time", code="row-pattern")
        result = run(events, queries, **options)
    else:
        result = run(events, query(query_or_text, parameters), **options)
    if _log.isEnabledFor(logging.INFO):
        size = f"{len(result):,} rows" if hasattr(result, "__len__") else type(result).__name__
        _log.info("match: %s in %.3f s", size, time.perf_counter() - begin)
    return result


def fit(history: Any, query_or_text: Any, **options: Any) -> Any:
    """A loss and gap model for a query, learned from past events: a table of the same kind as `match` takes.

    `loss` states known loss rates (a number, or one per variable) and `happens` how often components happen at all (a
    share per variable); what is not stated is told from the lengths of trips. `negatives="em"` infers the loss of
    negated components so, too; `loss_by` names an attribute, such as the reader, whose values share one loss. All other
    options are those of `match`.
    """
    from cepheid.runners.fit import fit_model

    return fit_model(
        history,
        sase_query(query_or_text, options.pop("parameters", None), "a MATCH_RECOGNIZE clause has no losses to fit"),
        **options,
    )


def check_model(model: Model, events: Any, query_or_text: Any, **options: Any) -> Check:
    """What a loss and gap model predicts of a table of events, beside what that shows: `model.check` calls it."""
    from cepheid.runners.fit import check_model as compare

    return compare(
        model,
        events,
        sase_query(query_or_text, options.pop("parameters", None), "a MATCH_RECOGNIZE clause has no losses to fit"),
        **options,
    )

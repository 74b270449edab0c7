"""Several queries in one call, in any languages: which share a pass over the events, and their common result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cepheid.budget import unbounded
from cepheid.errors import CepheidError, DataError
from cepheid.runners.composition import in_order
from cepheid.runners.languages import Language
from cepheid.runners.many import as_one, check_names
from cepheid.runners.options import check_alone
from cepheid.runners.tables import as_local, is_spark, no_table


@dataclass(frozen=True)
class Pass:
    """Queries that share one pass over the events, and the options that they have."""

    queries: dict[str, Any]  # all of one language: the first one runs them
    keywords: Mapping[str, Any]
    reads: bool = False  # does each read matches of earlier passes, or of queries that do?

    @property
    def first(self) -> Language:
        """The query that runs them."""
        found: Language = next(iter(self.queries.values()))
        return found


def passes_of(queries: Mapping[str, Language], keywords: Mapping[str, object]) -> list[Pass]:
    """The passes of a call, each after those whose matches it reads."""
    check_names(queries)
    timed = {name: query.timed() for name, query in queries.items()}
    shared: set[str] = set()
    readers: dict[str, Language] = {}  # of queries that do not share their pass; in an order in which they can run
    for name in in_order(timed):
        if {*timed[name].sources} - shared:
            readers[name] = timed[name]
        elif timed[name].shares:
            shared.add(name)
    own = options_of_each(timed, keywords)
    together = [name for name in timed if name in shared]
    passes = [Pass({name: timed[name] for name in together}, own[together[0]])] if together else []
    passes += [Pass({name: timed[name]}, own[name]) for name in timed if name not in shared | readers.keys()]
    return passes + ([Pass(readers, own[next(iter(readers))], reads=True)] if readers else [])


def options_of_each(queries: Mapping[str, Language], keywords: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """The options that each query has. Where all are of one language, it reads them all, and says what is wrong."""
    if len({type(query) for query in queries.values()}) == 1:
        return dict.fromkeys(queries, keywords)
    for name, value in keywords.items():
        if not any(query.takes(name, value) for query in queries.values()):
            message = f"no option '{name}'" if name != "engine" else f"no language of this call has an engine '{value}'"
            raise CepheidError(f"{message} for any of these queries", hint="leave it out, or match them one by one")
    return {
        name: {key: value for key, value in keywords.items() if query.takes(key, value)}
        for name, query in queries.items()
    }


def match_together(queries: Mapping[str, Language], events: object, keywords: Mapping[str, Any]) -> Any:
    """The matches of queries with names as one table of the kind that came."""
    if is_spark(events):
        from cepheid.runners.spark.together import match_spark_together

        with unbounded():
            return match_spark_together(events, passes_of(queries, keywords), list(queries), keywords)
    local = as_local(events)
    if local is None:
        raise no_table(events)
    passes = passes_of(queries, keywords)
    check_alone(keywords.get("output", "rows"), queries)
    found: dict[str, Any] = {}
    for each in passes:
        found |= each.first.match_each(each.queries, local.arrow, each.keywords, found)
    return local.back(as_one({name: found[name] for name in queries}))


def may_change(query: object) -> bool:
    """Is it a folder or a table of queries that come and go?"""
    return isinstance(query, Path) or is_spark(query)


def match_changing(queries: object, events: object, keywords: Mapping[str, object]) -> Any:
    """The matches of queries that come and go, in a stream."""
    if not is_spark(events):
        message = "queries that are added and removed while running need a stream"
        raise no_table(events) if as_local(events) is None else DataError(message, hint="pass a text, or {name: text}")
    from cepheid.runners.spark.match import match_spark

    with unbounded():
        return match_spark(events, queries, keywords)

"""Several queries in one call, in more than one language."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

from cepheid.budget import unbounded
from cepheid.engine.engines import ENGINES
from cepheid.errors import CepheidError
from cepheid.plan.options import options_of
from cepheid.runners.dispatch import is_spark
from cepheid.runners.local import run_tables
from cepheid.runners.many import check_names
from cepheid.runners.options import BatchOptions, Options, StreamOptions, check_alone
from cepheid.runners.tables import as_local, no_table


class OtherQuery(Protocol):
    """A query in another language than query text."""

    def takes(self, name: str, value: Any) -> bool: ...
    def timed(self) -> OtherQuery: ...
    def match(self, events: Any, **options: Any) -> Any: ...


def match_together(
    events: Any, queries: Mapping[str, Any], others: Mapping[str, OtherQuery], keywords: Mapping[str, Any]
) -> Any:
    """The matches of queries with names, those in `others` in other languages than query text, as one table."""
    check_names(queries)
    check_alone(keywords.get("output", "rows"), queries)
    own = options_of_each(queries, others, keywords)
    given = options_of_text(keywords)
    if is_spark(events):
        from cepheid.runners.spark.together import match_spark_together

        with unbounded():
            return match_spark_together(events, queries, {name: (others[name], own[name]) for name in others}, given)
    local = as_local(events)
    if local is None:
        raise no_table(events)
    found = {name: partial(query.timed().match, **own[name]) for name, query in others.items()}
    return local.back(run_tables(queries, local.arrow, Options.from_keywords(given), found))


def options_of_each(
    queries: Mapping[str, Any], others: Mapping[str, OtherQuery], keywords: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """The options that each query in another language has; an error for one that no query has."""
    text = options_of_text(keywords) if len(others) < len(queries) else {}
    for name, value in keywords.items():
        if name not in text and not any(query.takes(name, value) for query in others.values()):
            told = f"no option '{name}'" if name != "engine" else f"no language of this call has an engine '{value}'"
            raise CepheidError(f"{told} for any of these queries", hint="leave it out, or match them one by one")
    return {
        name: {key: value for key, value in keywords.items() if query.takes(key, value)}
        for name, query in others.items()
    }


def options_of_text(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The options that query text has."""
    known = {name for kind in (Options, BatchOptions, StreamOptions) for name in options_of(kind)}
    return {
        name: value
        for name, value in keywords.items()
        if name in known and (name != "engine" or value == "auto" or value in ENGINES)
    }

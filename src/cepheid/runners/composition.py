"""Queries that read other queries' matches (FROM): in which order they run, and matches as events.

`FROM visits` makes an event of every match of the query called `visits`: its time is the match's end, its type the name
of the query, its attributes what that query returns, `match_start` and `match_end`. It may go as deep as wanted; only
circles are an error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from cepheid.errors import CepheidError, DataError, closest
from cepheid.language import syntax as s
from cepheid.plan.options import options_of
from cepheid.plan.physical import Plan
from cepheid.runners.options import Options, RecordOptions


class Reading(Protocol):
    """A query that may read others."""

    @property
    def sources(self) -> tuple[str, ...]: ...


def check_sources(query: Reading) -> None:
    """An error for a query that reads others, where there are none."""
    if query.sources:
        message = f"FROM {query.sources[0]} reads the matches of another query, and no other query was passed"
        raise CepheidError(message, hint="pass {name: query, ...} with both")


def in_order(queries: Mapping[str, Reading], known: Collection[str] = ()) -> list[str]:
    """The names of the queries, each after those that it reads, unless their matches are known."""
    found: list[str] = []
    open_: list[str] = []

    def visit(name: str) -> None:
        if name in found:
            return
        if name in open_:
            circle = " reads ".join([*open_[open_.index(name) :], name])
            raise CepheidError(f"queries read each other in a cycle: {circle}")
        open_.append(name)
        for source in queries[name].sources:
            if source in known:
                continue
            if source not in queries:
                guess = closest(source, queries)
                hint = f"did you mean {guess}?" if guess else f"there are {', '.join(queries)}"
                message = f"query '{name}' reads '{source}', which is not a query of this call"
                raise CepheidError(message, hint=hint)
            visit(source)
        open_.pop()
        found.append(name)

    for name in queries:
        visit(name)
    return found


def options_of_matches(options: Options) -> Options:
    """The options for a query that reads matches: their times are exact, and no record of them is bad."""
    exact = replace(options, lower=None, upper=None, uncertainty=None, existence=None, lacks=None, tiebreak=())
    return replace(exact, row_column=None, **vars(RecordOptions()))


def keywords_of_matches(keywords: Mapping[str, object]) -> dict[str, object]:
    """The same as keywords: those that the matches of other queries have no use for are left out."""
    return {name: value for name, value in keywords.items() if name not in _OF_EVENTS}


_OF_EVENTS = {"lower", "upper", "uncertainty", "existence", "lacks", "tiebreak", *options_of(RecordOptions)}


def matches_as_events(name: str, matches: pa.Table, options: Options) -> pa.Table:
    """The matches of a query as events of those that read it. An empty match of a row pattern is at no time."""
    check_columns(name, matches.schema, options)
    if matches.column("match_end").null_count:
        matches = matches.filter(matches.column("match_end").is_valid())
    kinds = {} if options.type is None else {options.type: pa.array([name] * matches.num_rows, pa.string())}
    columns = {options.time: matches.column("match_end"), **kinds}
    return pa.table({**columns, **dict(zip(matches.column_names, matches.columns, strict=True))})


def events_schema(results: Mapping[str, pa.Schema], options: Options) -> pa.Schema:
    """The columns of the events that the matches of some queries make."""
    empty = [matches_as_events(name, schema.empty_table(), options) for name, schema in results.items()]
    return united(empty).schema


def united(tables: Sequence[pa.Table]) -> pa.Table:
    """The matches of several queries as one table of events; what one does not return is NULL."""
    try:
        return pa.concat_tables(tables, promote_options="default")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        hint = "give the columns other names with AS, or cast them"
        raise DataError(
            f"queries that are read together return different kinds of values: {error}", hint=hint
        ) from None


def check_columns(name: str, schema: pa.Schema, options: Options) -> None:
    """What a query returns must have a time, and leave the names of the time and the type free."""
    if "match_end" not in schema.names:
        raise CepheidError(f"the matches of '{name}' have no time to be read by", hint="give the clause an ORDER BY")
    for role, taken in (("time", options.time), ("type", options.type)):
        if taken is not None and taken in schema.names:
            message = f"query '{name}' returns '{taken}', which is the name of the matches' own {role}"
            raise CepheidError(message, hint=f"give it another name: RETURN ... AS {taken}_of_event")


def lateness(plan: Plan) -> int | None:
    """How long after the end of a match it may become known; None: it cannot be said."""
    retention = plan.exchange.retention
    if not retention.decides_late and plan.output.mode is s.OutputMode.ALL:
        return 0
    return retention.reach


def returned_keys(plan: Plan, keys: Sequence[str]) -> tuple[str, ...] | None:
    """The names under which a query returns the attributes that part its events; None if it does not return one."""
    found = []
    for key in keys:
        names = [
            name
            for name, expression in plan.bound.returns or ()
            if isinstance(expression, s.Attribute) and expression.name == key
        ]
        if not names:
            return None
        found.append(names[0])
    return tuple(found)
